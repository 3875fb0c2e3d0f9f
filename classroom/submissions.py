"""What learners have handed in, read into memory: nothing of it is run here."""

import json
import re
from collections import Counter
from dataclasses import dataclass, field, replace

from classroom import names
from classroom.handed_in import files, shown
from helpers.checks.exercises import EXERCISES
from helpers.checks.submission import answer_cell, exercises_in
from helpers.exercise_notebooks import fresh_exercises

KEPT = "before-grading"  # a folder beside the learners' where `grade` keeps what has been changed meanwhile
FEEDBACK, EARLIER = "feedback", "earlier-grades"  # and those that it writes
WRITTEN = re.compile(rf"{KEPT}|{FEEDBACK}|{EARLIER}|(grades|class)(-\d+)?\.(csv|html)(\.before)?")
MOST_NAMED = 4  # files that are left out, by name
NO_CLASS = (
    "{} looks like the course itself, or like what one learner has. Give the folder above it, which holds a "
    "folder or a file for each learner."
)
NUMBERS = tuple(dict.fromkeys(exercise.notebook for exercise in EXERCISES))


class Refused(Exception):
    """Nothing can be graded; the text says why."""


@dataclass
class Submission:
    """One learner's notebooks, the newest last.

    notebooks : [{"file", "cells", "numbers", "names", "begun", "when"}], cells : [id, source] of code.
    """

    learner: str
    notebooks: list = field(default_factory=list)
    remarks: list = field(default_factory=list)  # sentences about the submission as a whole
    spellings: list = field(default_factory=list)  # the names under which it came
    moodle: str = ""  # the beginning of a file of feedback, where Moodle is to hand it out
    left_out: Counter = field(default_factory=Counter)  # name of a file or folder -> how many files

    @property
    def numbers(self):
        """Of the notebooks that are there: "03", …"""
        return {number for notebook in self.notebooks for number in notebook["numbers"]}

    def take_in(self, other):
        """Add what came under another name."""
        self.notebooks += other.notebooks
        self.remarks += other.remarks
        self.spellings += other.spellings
        self.left_out += other.left_out
        self.moodle = self.moodle or other.moodle


@dataclass(frozen=True)
class Course:
    """What the submissions are compared with, out of the solution notebooks."""

    imports: dict  # number -> the cell that imports, [id, source]
    own: frozenset  # sources of cells that are the course's and need not run
    to_read: frozenset  # sources of cells of the notebooks to read, which nobody has to hand in
    points: dict  # exercise -> points
    stems: dict  # file name without .ipynb -> number
    stubs: frozenset  # sources of cells for answers in which nothing is written yet
    known: frozenset  # names of all notebooks of the course, without .ipynb


def course(root):
    """The course in the folder `root`."""
    imports, own, points, stems, stubs = {}, set(), {}, {}, set()
    for name, notebook in fresh_exercises(root).items():
        number = name[:2]
        stems[name.removesuffix(".ipynb")] = number
        for cell in notebook.cells:
            mark = cell.metadata.get("nbgrader", {})
            if mark.get("grade"):
                points[exercise_of(cell.id)] = mark["points"]
            if cell.id == "imports":
                imports[number] = [cell.id, cell.source]
            if cell.cell_type == "code":
                (stubs if cell.id.endswith("-answer") else own).add(cell.source.strip())
    notebooks = sorted((root / "notebooks").glob("*.ipynb"))
    to_read = {
        source.strip()
        for path in notebooks
        for _, source in code_cells(path.read_text(encoding="utf-8"))
    }
    known = frozenset({path.stem for path in notebooks} | set(stems))
    to_read = frozenset(to_read - own)
    return Course(imports, frozenset(own), to_read, points, stems, frozenset(stubs), known)


def exercise_of(cell_id):
    """ "single-head-check" -> "single_head"."""
    return cell_id.rpartition("-")[0].replace("-", "_")


def read_folder(folder, course):
    """The submissions in a folder: a folder, a zip or files for each learner; by name.

    Returns (submissions, sentences about files that are left out).  Raises Refused.
    """
    if not folder.is_dir():
        raise Refused(f"{folder} is no folder. Give the folder that holds the submissions.")
    if (folder / "course.py").is_file():
        raise Refused(NO_CLASS.format(folder))
    passed_over = {path.name for path in folder.iterdir() if WRITTEN.fullmatch(path.name)}
    found = files(folder, passed_over)
    tops = {path.name: [] for path in folder.iterdir() if path.is_dir() and not path.is_symlink()}
    tops = {name: [] for name in tops if shown(name) and name not in passed_over}
    for file in out_of_class_zips(found, course):
        tops.setdefault(file.parts[0], []).append(file)
    by_person, nameless, sentences = {}, [], []
    for top, theirs in sorted(tops.items(), key=lambda pair: pair[0].lower()):
        name, is_folder = label(top, not theirs or len(theirs[0].parts) > 1)
        who, number = names.whose(name, course.known, is_folder)
        by_platform = names.by_a_platform(name, course.known, is_folder)
        if not (is_folder or by_platform or any(file.is_notebook for file in theirs)):
            trouble = theirs[0].trouble if len(theirs) == 1 else ""
            what = "holds no notebook" if theirs[0].parts[1:] else trouble or "is no notebook"
            sentences.append(f"{top} is left out: it {what}.")
        elif who:
            person = by_person.setdefault(names.same(who), {})
            submission = person.setdefault(number, Submission(who))
            submission.spellings.append(f"{who} ({number})" if number else who)
            submission.moodle = submission.moodle or names.moodles(name)
            read_into(submission, theirs, course)
        else:
            nameless.append(top)
    if "exercises" in nameless or nameless and not by_person:
        raise Refused(NO_CLASS.format(folder))
    if not by_person:
        raise Refused(" ".join([
            f"There are no notebooks in {folder}. It should hold a folder or a zip for each learner, with "
            "exercise notebooks in it, or the notebooks themselves, named after the learners.", *sentences
        ]))
    sentences += [
        f"{top} is left out: its name does not say whose it is. Put the learner's name in front of it."
        for top in nameless
    ]
    submissions = []
    for numbered in by_person.values():
        submissions += of_one_name(numbered, sentences)
    return sorted(submissions, key=lambda submission: submission.learner.lower()), sentences


def label(name, is_folder):
    """(name, whether it is a folder): without its extension where it is none, but a file or a zip."""
    if is_folder and not name.lower().endswith(".zip"):
        return name, True
    return name.rpartition(".")[0] or name, False


def out_of_class_zips(found, course):
    """The files; those in a zip of the whole class as if it had been unpacked here."""
    tops = {file.parts[0] for file in found if file.is_notebook}
    for top in filter(lambda name: name.lower().endswith(".zip"), tops):
        inside = [file.parts for file in found if file.parts[0] == top]
        at = 1
        while len({parts[at] for parts in inside}) == 1 and min(map(len, inside)) > at + 1:
            at += 1
        labels = {label(parts[at], len(parts) > at + 1) for parts in inside}
        people = {names.same(names.whose(name, course.known, is_folder)[0]) for name, is_folder in labels}
        of_a_class = any(names.by_a_platform(name, course.known, is_folder) for name, is_folder in labels)
        if of_a_class or len(tops) == 1 and len(people) > 1 and "" not in people:
            found = [
                replace(file, parts=file.parts[at:]) if file.parts[0] == top else file for file in found
            ]
    return found


def read_into(submission, found, course):
    """Read the files of one learner that came under one name."""
    copies = {file.parts[:-1] for file in found if file.name == "course.py"}  # folders with the whole course
    start = 1 if found and len(found[0].parts) > 1 else 0
    for file in found:
        in_a_copy = any(file.parts[:depth] in copies for depth in range(len(file.parts)))
        to_read = file.parts[-2:-1] in (("notebooks",), ("solutions",))
        own = to_read and file.name.removesuffix(".ipynb") in course.known
        if file.trouble:
            submission.remarks.append(f"{file.inside(start)} is left out: it {file.trouble}.")
        elif file.is_notebook and not own:
            add(submission, file, file.inside(start), course)
        elif not in_a_copy and file.name != "progress.json":
            folders = file.parts[start:-1]
            submission.left_out[f"{folders[0]}/" if folders else file.name] += 1


def of_one_name(numbered, sentences):
    """The submission under one name, out of {a platform's number or "": Submission}.

    More than one where different numbers have handed in the same notebook: then they are people of one name.
    """
    all_of_them = list(numbered.values())
    twice = Counter(number for s in all_of_them if s is not numbered.get("") for number in s.numbers)
    if max(twice.values(), default=0) > 1:
        for number, submission in numbered.items():
            submission.learner += f" ({number})" if number else ""
        learners = " and ".join(submission.learner for submission in all_of_them)
        sentences.append(f"{learners} have one name and different numbers: taken for different people.")
    else:
        first, *others = all_of_them
        for other in others:
            first.take_in(other)
        all_of_them = [first]
    for submission in all_of_them:
        submission.notebooks.sort(key=newest_last)
        submission.remarks = [*first_remarks(submission), *submission.remarks, *last_remarks(submission)]
    return all_of_them


def newest_last(notebook):
    return names.copy_number(notebook["file"].removesuffix(".ipynb")), notebook["when"], notebook["file"]


def first_remarks(submission):
    """Under which names it came, and which notebooks came twice."""
    spellings = list(dict.fromkeys(submission.spellings))
    if len(spellings) > 1:
        yield (
            f"Handed in as {', '.join(spellings)}: taken for one learner. If they are not, rename one of "
            "them and grade again."
        )
    for number in sorted(submission.numbers):
        there = [notebook["file"] for notebook in submission.notebooks if number in notebook["numbers"]]
        if len(there) > 1:
            yield (
                f"{len(there)} notebooks of {number}: {', '.join(there)}. A right answer in any of them "
                f"counts; where none is right, what is said is about the newest, {there[-1]}."
            )


def last_remarks(submission):
    """What else there is that was not graded."""
    left_out = [name if n == 1 else f"{name} ({n} files)" for name, n in submission.left_out.items()]
    more = f" and {len(left_out) - MOST_NAMED} more" if len(left_out) > MOST_NAMED else ""
    listed = ", ".join(left_out[:MOST_NAMED]) + more
    if not submission.notebooks and not submission.remarks:
        yield f"It holds no notebook{f', but {listed}' if listed else ''}."
    elif listed:
        yield f"Not graded, as it is no notebook with exercises: {listed}."


def add(submission, file, name, course):
    """Read one notebook into a submission; what cannot be read becomes a remark."""
    try:
        cells = code_cells(file.read().decode("utf-8-sig"))
        notebook = sorted_out(name, cells, course)
    except Exception as err:
        why = err if type(err) is ValueError else "the file is damaged, or no notebook"
        submission.remarks.append(f"{name} could not be read ({why}).")
        return
    if notebook:
        submission.notebooks.append(notebook | {"when": file.when})
    else:
        submission.remarks.append(f"{name} holds none of the exercises, or is a notebook to read.")


def code_cells(text):
    """[id, source] of the code cells of a notebook's text."""
    try:
        cells = json.loads(text)["cells"]
    except json.JSONDecodeError:
        raise ValueError("the file is damaged, or no notebook") from None
    return [
        [str(cell.get("id", "")), "".join(cell["source"])] for cell in cells if cell["cell_type"] == "code"
    ]


def sorted_out(name, cells, course):
    """A notebook as it is judged: {"file", "cells", "numbers", "names", "begun"}; None without any exercise.

    The course's own cells are left out, but for the imports, which come first even where they were deleted.
    """
    if 2 * sum(source.strip() in course.to_read for _, source in cells) > len(cells):
        return None
    number = next((number for stem, number in course.stems.items() if stem in name.lower()), None)
    numbers = [number] if number else numbers_in(cells)
    if not numbers:
        return None
    theirs = [[cell, source] for cell, source in cells if source.strip() not in course.own]
    return {
        "file": name,
        "cells": [course.imports[number] for number in numbers] + theirs,
        "numbers": numbers,
        "names": [exercise.name for exercise in EXERCISES if exercise.notebook in numbers],
        "begun": any(source.strip() not in course.stubs | {""} for _, source in theirs),
    }


def numbers_in(cells):
    """The numbers of the notebooks whose exercises are in these cells, whatever the file is called."""
    ids = {cell for cell, _ in cells}
    defined = {name for _, source in cells for name in exercises_in(source)}
    at_home = {e.notebook for e in EXERCISES if answer_cell(e.name) in ids}
    return sorted(at_home or {e.notebook for e in EXERCISES if e.name in defined})


def asked(submissions, only=()):
    """The exercises of the notebooks with these numbers, or of all that anybody has begun. Raises Refused."""
    begun = {number for s in submissions for n in s.notebooks if n["begun"] for number in n["numbers"]}
    if not only and not begun:
        raise Refused(
            f"No exercise is begun in any of the submissions ({len(submissions)}). To grade them as they "
            f"are, say which notebooks were set, for example --only {NUMBERS[0]}."
        )
    return [exercise for exercise in EXERCISES if exercise.notebook in (only or begun)]

"""A folder of submissions: whose is what, and what of it is graded. Nothing of it is run here.

Read `read_folder`, then `by_person`, `read_into` and `of_one_name`.
"""

import re
from collections import Counter
from dataclasses import dataclass, field, replace

from classroom import names
from classroom.handed_in import files, shown
from classroom.submissions import Refused, code_cells, sorted_out

KEPT = "before-grading"  # a folder beside the learners' where `grade` keeps what has been changed meanwhile
FEEDBACK, EARLIER = "feedback", "earlier-grades"  # and those that it writes
WRITTEN = re.compile(rf"{KEPT}|{FEEDBACK}|{EARLIER}|(grades|class)(-\d+)?\.(csv|html)(\.before)?")
MOST_NAMED = 4  # files that are left out, by name
NO_CLASS = (
    "{} looks like the course itself, or like what one learner has. Give the folder above it, which holds a "
    "folder or a file for each learner."
)


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


def read_folder(folder, course):
    """The submissions in a folder: a folder, a zip or files for each learner; by name.

    Returns (submissions, sentences about files that are left out).  Raises Refused.
    """
    if not folder.is_dir():
        raise Refused(f"{folder} is no folder. Give the folder that holds the submissions.")
    if (folder / "course.py").is_file():
        raise Refused(NO_CLASS.format(folder))
    people, nameless, sentences = by_person(entries(folder, course), course)
    if "exercises" in nameless or nameless and not people:
        raise Refused(NO_CLASS.format(folder))
    if not people:
        raise Refused(" ".join([
            f"There are no notebooks in {folder}. It should hold a folder or a zip for each learner, with "
            "exercise notebooks in it, or the notebooks themselves, named after the learners.", *sentences
        ]))
    sentences += [
        f"{top} is left out: its name does not say whose it is. Put the learner's name in front of it."
        for top in nameless
    ]
    found = [submission for numbered in people for submission in of_one_name(numbered, sentences)]
    return sorted(found, key=lambda submission: submission.learner.lower()), sentences


def entries(folder, course):
    """{name: files} of what lies in the folder, but for what grading has written there; by name."""
    written = {path.name for path in folder.iterdir() if WRITTEN.fullmatch(path.name)}
    folders = [path for path in folder.iterdir() if path.is_dir() and not path.is_symlink()]
    tops = {path.name: [] for path in folders if shown(path.name) and path.name not in written}
    for file in out_of_class_zips(files(folder, written), course):
        tops.setdefault(file.parts[0], []).append(file)
    return dict(sorted(tops.items(), key=lambda pair: pair[0].lower()))


def by_person(tops, course):
    """([{a platform's number or "": Submission} for each name], names that are nobody's, sentences)."""
    people, nameless, sentences = {}, [], []
    for top, theirs in tops.items():
        name, is_folder = label(top, not theirs or len(theirs[0].parts) > 1)
        who, number = names.whose(name, course.known, is_folder)
        by_platform = names.by_a_platform(name, course.known, is_folder)
        if not (is_folder or by_platform or any(file.is_notebook for file in theirs)):
            trouble = theirs[0].trouble if len(theirs) == 1 else ""
            what = "holds no notebook" if theirs[0].parts[1:] else trouble or "is no notebook"
            sentences.append(f"{top} is left out: it {what}.")
        elif who:
            submission = people.setdefault(names.same(who), {}).setdefault(number, Submission(who))
            submission.spellings.append(f"{who} ({number})" if number else who)
            submission.moodle = submission.moodle or names.moodles(name)
            read_into(submission, theirs, course)
        else:
            nameless.append(top)
    return list(people.values()), nameless, sentences


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

"""What learners have handed in, read into memory: nothing of it is run here."""

import json
from dataclasses import dataclass, field

from helpers.checks.exercises import EXERCISES
from helpers.checks.submission import answer_cell, exercises_in
from helpers.exercise_notebooks import fresh_exercises

KEPT = "before-grading"  # a folder beside the learners' where `grade` keeps what has been changed meanwhile
NOT_HANDED_IN = {".ipynb_checkpoints", "notebooks", "solutions"}  # in a whole folder of the course
LARGEST = 30_000_000  # bytes of a notebook that is read
NUMBERS = tuple(dict.fromkeys(exercise.notebook for exercise in EXERCISES))


class Refused(Exception):
    """Nothing can be graded; the text says why."""


@dataclass
class Submission:
    """One learner's notebooks. notebooks : [{"file", "cells", "numbers"}], cells : [id, source] of code."""

    learner: str
    notebooks: list = field(default_factory=list)
    remarks: list = field(default_factory=list)  # sentences about the submission as a whole

    @property
    def numbers(self):
        """Of the notebooks that are there: "03", …"""
        return {number for notebook in self.notebooks for number in notebook["numbers"]}


@dataclass(frozen=True)
class Course:
    """What the submissions are compared with, out of the solution notebooks."""

    imports: dict  # number -> the cell that imports, [id, source]
    own: frozenset  # sources of cells that are the course's and need not run
    to_read: frozenset  # sources of cells of the notebooks to read, which nobody has to hand in
    points: dict  # exercise -> points
    stems: dict  # file name without .ipynb -> number


def course(root):
    """The course in the folder `root`."""
    imports, own, points, stems = {}, set(), {}, {}
    for name, notebook in fresh_exercises(root).items():
        number = name[:2]
        stems[name.removesuffix(".ipynb")] = number
        for cell in notebook.cells:
            mark = cell.metadata.get("nbgrader", {})
            if mark.get("grade"):
                points[exercise_of(cell.id)] = mark["points"]
            if cell.id == "imports":
                imports[number] = [cell.id, cell.source]
            if cell.cell_type == "code" and not cell.id.endswith("-answer"):
                own.add(cell.source.strip())
    to_read = {
        source.strip()
        for path in sorted((root / "notebooks").glob("*.ipynb"))
        for _, source in code_cells(path.read_text(encoding="utf-8"))
    }
    return Course(imports, frozenset(own), frozenset(to_read - own), points, stems)


def exercise_of(cell_id):
    """ "single-head-check" -> "single_head"."""
    return cell_id.rpartition("-")[0].replace("-", "_")


def read_folder(folder, course):
    """The submissions in a folder: one folder a learner, or one file a learner and notebook; by name.

    Returns (submissions, sentences about files that are none).  Raises Refused.
    """
    if not folder.is_dir():
        raise Refused(f"{folder} is no folder. Give the folder that holds the submissions.")
    found, others = {}, []
    for path in sorted(folder.iterdir(), key=lambda path: path.name.lower()):
        if path.name.startswith(".") or path.name == KEPT:
            continue
        if path.is_dir():
            files = [file for file in sorted(path.rglob("*.ipynb")) if NOT_HANDED_IN.isdisjoint(file.parts)]
            submission = found.setdefault(path.name, Submission(path.name))
            for file in sorted(files, key=modified):
                add(submission, file, file.relative_to(path).as_posix(), course)
            if not files:
                packed = any(path.rglob("*.zip"))
                submission.remarks.append(
                    "The folder holds no notebook" + (", but a zip: unpack it there." if packed else ".")
                )
        elif path.suffix == ".ipynb":
            learner = learner_of(path.stem, course)
            add(found.setdefault(learner, Submission(learner)), path, path.name, course)
        elif path.suffix in (".zip", ".tar", ".gz"):
            others.append(f"{path.name} is left out: unpack it into a folder of its own first.")
    if not found:
        raise Refused(
            f"There are no notebooks in {folder}. It should hold a folder for each learner, with exercise "
            "notebooks in it, or the notebooks themselves, named after the learners."
        )
    return list(found.values()), others


def learner_of(stem, course):
    """ "anna_03_single_head_attention" -> "anna"; a name without a notebook's in it stays as it is."""
    for known in course.stems:
        if known in stem and (rest := stem.replace(known, "").strip(" _-.")):
            return rest
    return stem


def modified(file):
    return file.stat().st_mtime_ns, file.name


def add(submission, path, name, course):
    """Read one notebook into a submission; what cannot be read becomes a remark."""
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError(f"it is larger than {LARGEST // 1_000_000} MB")
        cells = code_cells(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as err:
        why = err if type(err) is ValueError else "the file is damaged, or no notebook"
        submission.remarks.append(f"{name} could not be read ({why}).")
        return
    notebook = sorted_out(name, cells, course)
    if notebook:
        submission.notebooks.append(notebook)
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
    """A notebook as it is judged: {"file", "cells", "numbers", "names"}; None without any exercise in it.

    The course's own cells are left out, but for the imports, which come first even where they were deleted.
    """
    if 2 * sum(source.strip() in course.to_read for _, source in cells) > len(cells):
        return None
    number = next((number for stem, number in course.stems.items() if stem in name), None)
    numbers = [number] if number else numbers_in(cells)
    if not numbers:
        return None
    theirs = [[cell, source] for cell, source in cells if source.strip() not in course.own]
    return {
        "file": name,
        "cells": [course.imports[number] for number in numbers] + theirs,
        "numbers": numbers,
        "names": [exercise.name for exercise in EXERCISES if exercise.notebook in numbers],
    }


def numbers_in(cells):
    """The numbers of the notebooks whose exercises are in these cells, whatever the file is called."""
    ids = {cell for cell, _ in cells}
    defined = {name for _, source in cells for name in exercises_in(source)}
    at_home = {e.notebook for e in EXERCISES if answer_cell(e.name) in ids}
    return sorted(at_home or {e.notebook for e in EXERCISES if e.name in defined})


def asked(submissions):
    """The exercises of all notebooks that anybody has handed in."""
    numbers = set().union(*(submission.numbers for submission in submissions))
    return [exercise for exercise in EXERCISES if exercise.notebook in numbers]

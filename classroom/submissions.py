"""The course as it is handed out, and a learner's notebook as it is judged. Nothing of it is run here."""

import json
from dataclasses import dataclass

from classroom.names import writable
from helpers.checks.exercises import EXERCISES
from helpers.checks.submission import answer_cell, exercises_in
from helpers.exercise_notebooks import fresh_exercises

NUMBERS = tuple(dict.fromkeys(exercise.notebook for exercise in EXERCISES))


class Refused(Exception):
    """Nothing can be graded; the text says why."""


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


def code_cells(text):
    """[id, source] of the code cells of a notebook's text."""
    try:
        cells = json.loads(text)["cells"]
    except json.JSONDecodeError:
        raise ValueError("the file is damaged, or no notebook") from None
    return [
        [writable(str(cell.get("id", ""))), "".join(cell["source"])]
        for cell in cells
        if cell["cell_type"] == "code"
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

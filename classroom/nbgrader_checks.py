"""How nbgrader grades this course: in the sandbox of `course.py grade`, in place of a run of the notebook.

nbgrader by itself runs a submission with the rights of whoever grades, in one kernel together with its check
cells. Here the functions are taken out of the notebook and judged in a process of their own with limits, and
the verdicts are put into the check cells, from which nbgrader reads points and feedback as ever.
"""

from functools import cache

import nbformat
from nbgrader import utils
from nbgrader.preprocessors import NbGraderPreprocessor

from classroom import submissions
from classroom.handout import without_solutions
from classroom.sandbox import ROOT, Sandbox


class Handout(NbGraderPreprocessor):
    """What is said of solutions/ is left out, as `course.py handout` does."""

    def preprocess(self, nb, resources):
        for cell in nb.cells:
            cell.source = without_solutions(cell.source)
        return nb, resources


class Marks(NbGraderPreprocessor):
    """Puts nbgrader's own marks in order, before anything reads them.

    Of cells that are there twice the first keeps its mark, and a mark that was changed is as it was before:
    otherwise nbgrader ends, and nobody who comes after is graded.
    """

    def preprocess(self, nb, resources):
        known = marks(f"{resources['nbgrader']['notebook']}.ipynb")
        seen = set()
        for cell in nb.cells:
            name = name_of(cell)
            cell.metadata.pop("nbgrader", None)
            if name in known and name not in seen and cell.cell_type == "code":
                cell.metadata["nbgrader"] = nbformat.from_dict(known[name])
                seen.add(name)
        return nb, resources


class Checks(NbGraderPreprocessor):
    """Stands in nbgrader_config.py in the place of nbgrader's own Execute."""

    def preprocess(self, nb, resources):
        file = f"{resources['nbgrader']['notebook']}.ipynb"
        cells = [[name_of(cell), cell.source] for cell in nb.cells if cell.cell_type == "code"]
        notebook = submissions.sorted_out(file, cells, course())
        verdicts, remarks = sandbox().judge([notebook], notebook["names"])
        for cell in nb.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        checks = {name_of(cell): cell for cell in nb.cells if utils.is_grade(cell)}
        for check in check_cells(file):
            cell = checks.get(name_of(check))
            if cell is None:  # deleted, or marked no longer
                cell = nbformat.from_dict(check)
                nb.cells.append(cell)
            verdict = verdicts.get(submissions.exercise_of(name_of(check)))
            cell.outputs = outputs(verdict)
        if remarks:
            nb.cells.insert(0, nbformat.v4.new_markdown_cell("\n".join(f"- {text}" for text in remarks)))
        return nb, resources


def name_of(cell):
    """The name under which nbgrader knows a cell."""
    mark = cell.metadata.get("nbgrader")
    return str(isinstance(mark, dict) and mark.get("grade_id") or cell.get("id", ""))


def outputs(verdict):
    """The verdict as outputs of a check cell: an error where there are no points."""
    text = "\n".join([verdict["message"], *verdict["remarks"]])
    if verdict["state"] == "passed":
        return [nbformat.v4.new_output("stream", name="stdout", text=text)]
    return [nbformat.v4.new_output("error", ename="AssertionError", evalue=text, traceback=[text])]


@cache
def course():
    return submissions.course(ROOT)


@cache
def sandbox():
    return Sandbox()


@cache
def solution(file):
    return nbformat.read(ROOT / "solutions" / file, as_version=4)


def marks(file):
    """{name: nbgrader's mark} of the cells of a solution notebook."""
    cells = [cell for cell in solution(file).cells if "nbgrader" in cell.metadata]
    return {name_of(cell): cell.metadata["nbgrader"] for cell in cells}


def check_cells(file):
    """The check cells of a solution notebook, as they are added where a learner has deleted them."""
    return [cell for cell in solution(file).cells if utils.is_grade(cell)]

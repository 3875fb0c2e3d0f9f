"""nbgrader: solutions are its sources, a failed check gives no points, and the real one grades rightly.

The real one only where it is installed: it is no part of the course. `python tests/class_in_nbgrader.py
FOLDER` has it grade the whole made-up class.
"""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import class_in_nbgrader
import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted(path.name for path in (ROOT / "solutions").glob("*.ipynb"))
ID = re.compile(r"[a-zA-Z0-9_-]+")
WANTED = {  # grade, locked, solution
    "answer": (False, False, True),
    "check": (True, True, False),
    "imports": (False, True, False),
}
KEYS = {"grade", "grade_id", "locked", "schema_version", "solution", "task"}


def marks(folder, file):
    """{cell id: (cell type, nbgrader's mark)} of a notebook."""
    notebook = nbformat.read(ROOT / folder / file, as_version=4)
    return {cell.id: (cell.cell_type, cell.metadata.get("nbgrader")) for cell in notebook.cells}


@pytest.mark.parametrize("file", FILES)
def test_solutions_have_nbgraders_marks_and_points(file):
    notebook = nbformat.read(ROOT / "solutions" / file, as_version=4)
    stars = {}
    for cell in notebook.cells:
        if cell.id.endswith("-statement"):
            stars[cell.id.removesuffix("-statement")] = re.search("●+", cell.source)[0]
    for cell_id, (cell_type, mark) in marks("solutions", file).items():
        base, _, role = cell_id.rpartition("-")
        if role not in WANTED:
            assert mark is None
            continue
        assert cell_type == "code" and mark["grade_id"] == cell_id and ID.fullmatch(cell_id)
        assert (mark["grade"], mark["locked"], mark["solution"]) == WANTED[role]
        assert mark["schema_version"] == 3 and mark["task"] is False
        assert set(mark) == KEYS | ({"points"} if role == "check" else set())
        assert role != "check" or mark["points"] == len(stars[base])


@pytest.mark.parametrize("file", FILES)
def test_exercises_keep_the_marks(file):
    assert marks("exercises", file) == marks("solutions", file)


CHECKED = "from helpers.checks import check\ndef scores(Q, K): return {}\ncheck(scores)\nprint('further')"


@pytest.mark.parametrize("mode", ["autograde", "validate", ""])
@pytest.mark.parametrize(("answer", "passes"), [("Q @ K.T", True), ("K @ Q.T", False)])
def test_a_failed_check_is_an_error_in_nbgrader_and_only_there(mode, answer, passes, tmp_path):
    env = dict(os.environ, PYTHONPATH=str(ROOT), NBGRADER_EXECUTION=mode, PYTHONIOENCODING="utf-8",
               COURSE_PROGRESS=str(tmp_path / "progress.json"))
    run = subprocess.run([sys.executable, "-c", CHECKED.format(answer)], env=env, cwd=tmp_path,
                         capture_output=True, encoding="utf-8")
    fails = bool(mode) and not passes
    assert (run.returncode != 0) == fails and ("further" in run.stdout) != fails
    if fails:
        assert re.search("AssertionError: . scores.*the keys come first", run.stderr, re.DOTALL)
    assert "scores" in run.stdout                       # the verdict is shown in any case


if importlib.util.find_spec("nbgrader"):

    @pytest.mark.parametrize("config", [class_in_nbgrader.CONFIG, ""], ids=["sandbox", "nbgrader alone"])
    def test_the_real_nbgrader_grades_and_says_why(tmp_path, config):
        names = ["right-1", "wrong-0"] + ["patched-checks", "deleted"] * bool(config)
        grades, feedback, said = class_in_nbgrader.in_nbgrader(tmp_path, names, config)
        assert set(grades) == set(feedback) == set(names), said
        for name in names:
            assert list(class_in_nbgrader.differences(name, grades, feedback)) == []
        assert "what comes out when" in feedback["wrong-0"]     # the named mistake

"""nbgrader: solutions are its sources, a failed check gives no points, and the real one grades rightly.

The real one grades the whole made-up class where it is to be had (class_in_nbgrader.py says how), as in CI.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import class_in_nbgrader
import made_up_class
import nbformat
import pytest

from classroom.handout import without_solutions

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


# The real one

needs_nbgrader = pytest.mark.skipif(
    class_in_nbgrader.python() is None,
    reason="nbgrader is not installed: COURSE_CLASSROOM names an environment with it (.ci/run makes one)",
)


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    return class_in_nbgrader.whole_class(tmp_path_factory.mktemp("nbgrader"))


@needs_nbgrader
@pytest.mark.parametrize("learner", made_up_class.LEARNERS)
def test_nbgrader_gives_each_the_right_points_and_says_why(graded, learner):
    assert list(class_in_nbgrader.differences(learner, graded)) == [], graded.said[-2000:]


@needs_nbgrader
def test_nobodys_work_is_lost_in_nbgrader(graded):
    assert len(made_up_class.LEARNERS) >= 30 and graded.changed == []


@needs_nbgrader
def test_nbgrader_alone_grades_those_who_do_not_try_the_machinery(tmp_path):
    names = ["right-1", "wrong-0"]
    graded = class_in_nbgrader.in_nbgrader(tmp_path, names, config="")
    wrong = [text for name in names for text in class_in_nbgrader.differences(name, graded)]
    assert wrong == [], graded.said[-2000:]


@needs_nbgrader
def test_nbgrader_hands_out_the_exercises_of_a_handout(graded):
    ours = nbformat.read(ROOT / "exercises" / made_up_class.FILE, as_version=4)
    expected = [without_solutions(cell.source) for cell in ours.cells]
    assert ["".join(cell["source"]) for cell in graded.released["cells"]] == expected


# What must be seen, if a submission had its way


WANTED_OF = {"softmax": "wrong", "scores": "passed"}


@pytest.mark.parametrize(("grades", "feedback", "seen"), [
    ({"softmax": 0, "scores": 1}, "so it is said", ""),
    ({"softmax": 2, "scores": 1}, "so it is said", "softmax has 2 points"),
    ({"softmax": 0, "scores": 0}, "so it is said", "scores has 0 points"),
    ({"softmax": 0, "scores": 100}, "so it is said", "scores has 100 points"),
    ({"softmax": 0}, "so it is said", "scores has None points"),
    ({"softmax": 0, "scores": 1}, "not it", "does not say: it is said"),
    ({"softmax": 0, "scores": 1}, None, "no feedback"),
])
def test_a_wrong_grade_would_be_seen(grades, feedback, seen, monkeypatch):
    monkeypatch.setitem(made_up_class.LEARNERS, "some", ("", WANTED_OF, "it is said"))
    graded = class_in_nbgrader.Graded({"some": grades}, {"some": feedback} if feedback else {}, [], {}, "")
    said = list(class_in_nbgrader.differences("some", graded))
    assert len(said) == bool(seen) and seen in "".join(said)

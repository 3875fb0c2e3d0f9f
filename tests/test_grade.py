"""A class hands in its notebooks: every grade is right, whatever one of them does to the others."""

import csv
import html
import json
import os
import time
from pathlib import Path

import made_up_class
import psutil
import pytest

from classroom import grade, page, results, submissions
from classroom.guard import Guard
from classroom.sandbox import Sandbox

ROOT = Path(__file__).resolve().parents[1]
COURSE = submissions.course(ROOT)
LEARNERS = made_up_class.LEARNERS


@pytest.fixture(scope="module")
def whole_class(tmp_path_factory):
    """The Results of the made-up class, graded."""
    folder = tmp_path_factory.mktemp("class")
    made_up_class.write(folder)
    before = {path: path.read_bytes() for path in folder.rglob("*.ipynb")}
    graded = grade.grade(folder, say=lambda text: None)
    assert {path: path.read_bytes() for path in before} == before
    return graded


def test_there_are_thirty_and_more():
    assert len(LEARNERS) >= 30


@pytest.mark.parametrize("name", LEARNERS)
def test_every_grade_is_right_whatever_the_others_do(whole_class, name):
    graded = next(graded for graded in whole_class.graded if graded.learner == name)
    _, expected, words = LEARNERS[name]
    for exercise, wanted in expected.items():
        verdict = graded.verdicts[exercise]
        if isinstance(wanted, str):
            assert verdict["state"] == wanted, f"{exercise}\n{verdict['message']}"
        else:
            assert verdict["state"] == "wrong" and set(wanted) <= set(verdict["mistakes"]), verdict["message"]
    told = "\n".join([*graded.remarks, *(v["message"] for v in graded.verdicts.values())])
    for text in [words] if isinstance(words, str) else words:
        assert text.lower() in told.lower()


def test_the_teachers_page_names_learner_exercise_and_mistake(whole_class):
    text = page.for_the_teacher(whole_class)
    assert text.count("<section") == len(LEARNERS)
    stuck = text.partition("Exercise by exercise</h2>")[2].partition("Who has solved what</h2>")[0]
    named = 0
    for graded in whole_class.graded:
        assert html.escape(graded.learner) in text
        for verdict in graded.verdicts.values():
            assert html.escape(verdict["message"]) in text
            if verdict["state"] == "wrong":
                named += 1
                assert graded.learner in stuck and html.escape(results.in_words(verdict)[0]) in stuck
    assert named > 12 and "<script" not in text and "http" not in text


def test_the_page_for_the_projector_names_nobody_and_quotes_no_code(whole_class):
    text = page.for_the_class(whole_class)
    assert not [name for name in LEARNERS if html.escape(name) in text]
    assert "solutions/03" not in text and "FileNotFoundError" in text      # what one of them reads in vain
    assert "exp is taken of the scores as they are, large ones too" in text
    assert "<script" not in text and "http" not in text


def test_on_top_stand_the_mistakes_that_most_have_made(whole_class):
    mistakes = [names for e in whole_class.exercises for _, names in whole_class.mistakes(e)]
    text = page.for_the_teacher(whole_class)
    top = text.partition("The commonest mistakes")[2].partition("Exercise by exercise")[0]
    counts = [int(part.split(" ")[0]) for part in top.split("<li><b>")[1:]]
    assert counts == sorted(map(len, mistakes), reverse=True)[:page.TOP]


def test_the_table_has_what_can_be_had_and_a_row_a_learner_with_points(whole_class):
    rows = list(csv.DictReader(results.as_csv(whole_class).splitlines()))
    by_name = {row["learner"]: row for row in rows}
    assert len(rows) == len(LEARNERS) + 1 and rows[0]["learner"] == results.POSSIBLE
    assert rows[0]["points"] == "12" and rows[0]["3.1 scores"] == "1" and rows[0]["3.3 softmax"] == "2"
    assert by_name["right-1"]["points"] == by_name["right-1"]["of"] == "12"
    assert by_name["unfinished"]["points"] == "2" and by_name["unfinished"]["3.1 scores"] == "1"
    assert by_name["endless-function"]["3.3 softmax: what"].startswith("wrong: The function does not come")


def test_what_each_gets_back_is_their_own(whole_class):
    graded = next(graded for graded in whole_class.graded if graded.learner == "own-check")
    text = page.for_a_learner(whole_class, graded)
    assert html.escape(graded.verdicts["softmax"]["message"]) in text and "own-check" in text
    assert not [name for name in LEARNERS if name != "own-check" and f"{name}:" in text]


# In the process that judges


def put(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_what_changes_meanwhile_is_kept_and_left_alone(tmp_path):
    folder = tmp_path / "course"
    put(folder, "a.py", "one")
    put(folder, "b.py", "two")
    put(folder, "c.py", "three")
    guard = Guard(tmp_path, [folder])
    assert guard.keep(tmp_path / "kept") == []
    put(folder, "a.py", "changed")
    (folder / "b.py").unlink()
    assert guard.keep(tmp_path / "kept") == ["course/a.py", "course/b.py"]
    assert guard.keep(tmp_path / "kept") == []
    assert (folder / "a.py").read_text("utf-8") == "changed" and not (folder / "b.py").exists()
    assert (tmp_path / "kept/course/a.py").read_text("utf-8") == "one"
    assert (tmp_path / "kept/course/b.py").read_text("utf-8") == "two"


def test_a_submission_that_never_ends_does_not_hold_up_the_class():
    slow = "import time\ndef scores(Q, K):\n    time.sleep(99)"
    cells = submissions.code_cells(json.dumps(made_up_class.notebook_with({"scores": slow})))
    notebook = submissions.sorted_out(made_up_class.FILE, cells, COURSE)
    verdicts, _ = Sandbox().judge([notebook], notebook["names"], limit=3)
    assert set(verdicts) == set(notebook["names"])
    assert {verdict["says"] for verdict in verdicts.values()} == {"not done after 3 s"}


@pytest.mark.skipif(os.name == "nt", reason="no such program")
def test_what_a_submission_starts_ends_with_it():
    seconds = f"{os.getpid()}.25"                   # nobody else sleeps so long
    starts = f"""
        import subprocess
        class Default:
            def __reduce__(self):                   # runs where the function arrives
                return subprocess.Popen, (["sleep", "{seconds}"],)
        def scores(Q, K, default=Default()):
            return Q @ K.T
        """
    cells = submissions.code_cells(json.dumps(made_up_class.notebook_with({"scores": starts})))
    notebook = submissions.sorted_out(made_up_class.FILE, cells, COURSE)
    verdicts, _ = Sandbox().judge([notebook], ["scores"])
    assert verdicts["scores"]["state"] in ("passed", "unusable", "wrong")
    time.sleep(0.2)
    left = [process for process in psutil.process_iter(["cmdline"])
            if seconds in (process.info["cmdline"] or ())]
    for process in left:
        process.kill()
    assert left == []

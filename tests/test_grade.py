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

from classroom import grade, page, submissions
from classroom.guard import Guard
from classroom.sandbox import Sandbox
from helpers.checks.exercises import EXERCISES

ROOT = Path(__file__).resolve().parents[1]
COURSE = submissions.course(ROOT)
LEARNERS = made_up_class.LEARNERS


@pytest.fixture(scope="module")
def whole_class(tmp_path_factory):
    """(folder, results by learner, exercises, page) of the made-up class, graded."""
    folder = tmp_path_factory.mktemp("class")
    made_up_class.write(folder)
    before = {path: path.read_bytes() for path in folder.rglob("*.ipynb")}
    results, exercises, course, sentences = grade.grade(folder, say=lambda text: None)
    assert {path: path.read_bytes() for path in before} == before
    return results, exercises, page.page(results, exercises, course, sentences)


def test_there_are_thirty_and_more():
    assert len(LEARNERS) >= 30


@pytest.mark.parametrize("name", LEARNERS)
def test_every_grade_is_right_whatever_the_others_do(whole_class, name):
    graded = next(graded for graded in whole_class[0] if graded.learner == name)
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


def test_the_page_names_learner_exercise_and_mistake(whole_class):
    results, exercises, text = whole_class
    assert text.count("<section") == len(results)
    for graded in results:
        assert html.escape(graded.learner) in text
        for verdict in graded.verdicts.values():
            assert html.escape(verdict["message"]) in text
    stuck = text.partition("Where the class is stuck")[2].partition("Who has solved what")[0]
    verdicts = [(graded.learner, v) for graded in results for v in graded.verdicts.values()]
    wrong = [(name, verdict) for name, verdict in verdicts if verdict["state"] == "wrong"]
    assert len(wrong) > 30
    for name, verdict in wrong:
        assert name in stuck and html.escape(verdict["says"]) in stuck
    assert "<script" not in text and "http" not in text


def test_the_table_has_a_row_a_learner_and_points(whole_class):
    results, exercises, _ = whole_class
    rows = list(csv.DictReader(grade.as_csv(results, exercises, COURSE).splitlines()))
    by_name = {row["learner"]: row for row in rows}
    assert len(rows) == len(LEARNERS)
    assert by_name["right-1"]["points"] == by_name["right-1"]["of"] == "12"
    assert by_name["unfinished"]["points"] == "2" and by_name["unfinished"]["3.1 scores"] == "1"
    assert by_name["endless-function"]["3.3 softmax: what"].startswith("wrong: The function does not come")


# How submissions are found


def put(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


RIGHT = LEARNERS["right-0"][0]
EMPTY = LEARNERS["untouched"][0]


def test_folders_files_and_whole_courses_are_all_found(tmp_path):
    to_read = (ROOT / "notebooks" / made_up_class.FILE).read_text(encoding="utf-8")
    put(tmp_path, "anna/03_single_head_attention.ipynb", RIGHT)
    put(tmp_path, f"ben/course/exercises/{made_up_class.FILE}", RIGHT)
    put(tmp_path, f"ben/course/notebooks/{made_up_class.FILE}", to_read)
    put(tmp_path, f"ben/course/exercises/.ipynb_checkpoints/{made_up_class.FILE}", EMPTY)
    put(tmp_path, "carla_03_single_head_attention.ipynb", RIGHT)
    put(tmp_path, "dan.ipynb", RIGHT)                                           # no telling name
    put(tmp_path, f"eva/{made_up_class.FILE}", to_read)                         # the wrong one
    put(tmp_path, "finn/note.txt", "I am ill")
    put(tmp_path, "grades.csv", "learner")
    put(tmp_path, "gina.zip", "PK")
    put(tmp_path, f"{submissions.KEPT}/anna/03_single_head_attention.ipynb", EMPTY)
    found, others = submissions.read_folder(tmp_path, COURSE)
    assert [s.learner for s in found] == ["anna", "ben", "carla", "dan", "eva", "finn"]
    assert [len(s.notebooks) for s in found] == [1, 1, 1, 1, 0, 0]
    assert all(s.numbers == {"03"} for s in found[:4])
    assert "a notebook to read" in found[4].remarks[0] and "holds no notebook" in found[5].remarks[0]
    assert len(others) == 1 and "gina.zip" in others[0]


def test_a_cell_copied_out_of_the_notebook_to_read_is_no_fault():
    cells = submissions.code_cells(RIGHT) + [["", next(iter(COURSE.to_read))]]
    assert submissions.sorted_out(made_up_class.FILE, cells, COURSE)


def test_points_are_those_of_all_exercises():
    assert set(COURSE.points) == {exercise.name for exercise in EXERCISES}


DAMAGED = ["{}", "[]", "null", '{"cells": 3}', '{"cells": [3]}', '{"cells": [{}]}', "\0", ""]


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_notebook_is_a_sentence(tmp_path, text):
    put(tmp_path, f"anna/{made_up_class.FILE}", text)
    (found,), _ = submissions.read_folder(tmp_path, COURSE)
    assert not found.notebooks and "could not be read" in found.remarks[0]


def test_a_folder_without_submissions_is_refused(tmp_path, capsys):
    assert grade.main([str(tmp_path)]) == 1 and "There are no notebooks" in capsys.readouterr().err
    assert grade.main([str(tmp_path / "none")]) == 1 and "is no folder" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


# What is written


def test_grades_of_before_are_kept_and_a_formula_is_text(tmp_path):
    grade.save(tmp_path / "grades.csv", "old")
    grade.save(tmp_path / "grades.csv", "new")
    assert (tmp_path / "grades.csv.before").read_text("utf-8") == "old"
    assert grade.harmless("=1+1") == "'=1+1" and grade.harmless(3) == 3 and grade.harmless("anna") == "anna"


def test_the_page_escapes_what_comes_from_submissions():
    verdict = {"name": "scores", "state": "wrong", "says": "<b>", "message": "<script>", "remarks": ["<i>"]}
    graded = grade.Graded("<anna>", {"scores": verdict}, ["<u>"])
    exercises = [exercise for exercise in EXERCISES if exercise.name == "scores"]
    text = page.page([graded], exercises, COURSE, ["<s>"])
    for tag in ("<b>", "<script>", "<i>", "<u>", "<s>", "<anna>"):
        assert tag not in text and html.escape(tag) in text


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

"""A class hands in its notebooks: every grade is right, whatever one of them does to the others."""

import csv
import html
from pathlib import Path

import made_up_class
import pytest

from classroom import grade, page, submissions

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
    assert {path: path.read_bytes() for path in folder.rglob("*.ipynb")} == before
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
    assert "K is not transposed" in stuck and "wrong-" in stuck
    assert "<script" not in text and "http" not in text


def test_the_table_has_a_row_a_learner_and_points(whole_class):
    results, exercises, _ = whole_class
    rows = list(csv.DictReader(grade.as_csv(results, exercises, COURSE).splitlines()))
    by_name = {row["learner"]: row for row in rows}
    assert len(rows) == len(LEARNERS)
    assert by_name["right-1"]["points"] == by_name["right-1"]["of"] == "12"
    assert by_name["unfinished"]["points"] == "2" and by_name["unfinished"]["3.1 scores"] == "1"
    assert by_name["endless-function"]["3.3 softmax: what"].startswith("wrong: The function does not come")

"""The verdict as a reader sees it: text, HTML, pictures, and consoles that know few letters."""

import io
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from helpers.checks import check, judge, newer_cell, process, record, report, run
from helpers.checks.compare import number, numbers
from helpers.checks.report import Report, encodable, print_safely, table
from helpers.figures.style import LIGHT


class Nesting(HTMLParser):
    """Reads HTML and complains about tags that are not closed in order, and about scripts."""

    def __init__(self, text):
        super().__init__()
        self.open, self.words = [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        assert tag in {"div", "p", "b", "br", "table", "tr", "td", "th"}, tag
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data.split()


def test_what_a_function_prints_cannot_become_html():
    def scores(Q, K):
        print("<script>alert(1)</script> & more")
        return Q
    verdict = run("scores", scores)
    assert "It printed:\n  <script>alert(1)</script> & more" in verdict.message
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in verdict._repr_html_()
    Nesting(verdict._repr_html_())


def test_a_passed_verdict_says_why_it_matters_and_what_is_next():
    verdict = run("scores", lambda Q, K: Q @ K.T)
    assert verdict.message == (
        "✓ scores     right on 9 of 9 inputs\n"
        "  One matrix product, and every query has met every key.     Next: 3.2 scaled_scores")
    assert run("last_query_attention", lambda q, K, V: 0).next == ""


def test_small_answers_are_shown_side_by_side_and_large_ones_are_not():
    small = run("scores", lambda Q, K: -Q @ K.T)
    (first, want, at), (second, have, _) = small.pictures
    assert (first, second) == ("expected", "given") and want.shape == have.shape and want[at] == -have[at]
    shown = small._repr_html_()
    assert shown.count("border: 2px solid") == 2, "the first difference is outlined in both"
    assert number(want[at]) in shown and number(have[at]) in shown
    assert run("scores", lambda Q, K: np.zeros((50, 50))).pictures == ()


def test_a_picture_holds_its_numbers_and_no_colour_alone():
    shown = table(np.array([[0.5, -0.25], [np.nan, np.inf]]), (1, 0))
    assert re.findall(r">([^<>]+)</td>", shown) == ["0.500", "-0.250", "nan", "inf"]
    assert re.findall(r"rgba\((\d+), .*?(0\.\d\d)\)", shown) == [
        ("230", "0.50"), ("108", "0.25"), ("108", "0.00"), ("230", "0.00")]
    assert table(np.array([True, False])).count("<tr") == 1


def test_positive_and_negative_have_the_colours_of_the_pictures():
    for name, channels in (("positive", report.POSITIVE), ("negative", report.NEGATIVE)):
        assert "#" + "".join(f"{int(c):02x}" for c in channels.split(",")) == LIGHT[name]


@pytest.mark.parametrize(("x", "text"), [
    (1.0, "1.000"), (-0.36249, "-0.362"), (0.0, "0.000"), (-0.0, "0.000"), (7, "7"), (np.int64(-3), "-3"),
    (True, "True"), (np.bool_(False), "False"), (np.nan, "nan"), (-np.inf, "-inf"), (2.5e-9, "2.50e-09"),
    (123456.0, "1.23e+05"), (-1e-4, "-1.00e-04")])
def test_numbers_are_written_as_a_reader_would(x, text):
    assert number(x) == text


def test_two_numbers_that_differ_look_different():
    assert numbers(0.5, 0.25) == ("0.500", "0.250")
    assert numbers(0.07133, 0.071) == ("0.07133", "0.07100")
    first, second = numbers(1.0, 1.0 + 1e-10)
    assert first != second


@pytest.mark.parametrize("encoding", ["cp1252", "cp437", "ascii", "no-such-encoding"])
def test_a_console_with_few_letters_gets_plain_ones(encoding):
    text = "✗ scores   √d_k · 2 ≠ 3 … “may read” → Wᵀ"
    plain = encodable(text, encoding)
    assert plain.startswith("x scores   sqrt d_k")
    assert plain.isascii()


def test_printing_goes_through_any_stream():
    for encoding in ("utf-8", "cp1252", "ascii"):
        raw = io.BytesIO()
        stream = io.TextIOWrapper(raw, encoding=encoding, write_through=True)
        print_safely("✓ done", stream)
        assert raw.getvalue().decode(encoding).strip() in ("✓ done", "ok done")


def test_check_prints_outside_a_notebook(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))

    def scores(Q, K):
        return Q @ K.T
    assert check(scores) is None
    assert capsys.readouterr().out.startswith("✓ scores     right on 9 of 9 inputs")


def test_check_displays_text_and_html_in_a_notebook(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))
    shown = []

    class Notebook:
        class display:
            display = staticmethod(shown.append)

        @staticmethod
        def get_ipython():
            return object()
    monkeypatch.setitem(report.sys.modules, "IPython", Notebook)

    def scores(Q, K):
        return Q @ K.T
    check(scores)
    (verdict,) = shown
    assert "did not run" not in verdict.message
    bundle = verdict._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"} and bundle["text/plain"] == verdict.message


@pytest.mark.parametrize(("cells", "said"), [
    (["def scores(Q, K):\n    return Q @ K.T", "def scores(Q, K)\n    return Q", "check(scores)"], True),
    (["def scores(Q, K)\n    return Q", "def scores(Q, K):\n    return Q @ K.T", "check(scores)"], False),
    (["def scores(Q, K):\n    return Q @ K.T", "def scores_too(Q, K)\n    return Q", "check(scores)"], False),
    (["def scores(Q, K)\n    return Q", "scores = lambda Q, K: Q @ K.T", "check(scores)"], False),
])
def test_a_cell_that_did_not_run_is_not_what_was_checked(monkeypatch, tmp_path, cells, said):
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))
    shown = []

    class Notebook:
        user_ns = {"In": ["", *cells]}

        class display:
            display = staticmethod(shown.append)

        @classmethod
        def get_ipython(cls):
            return cls
    monkeypatch.setitem(report.sys.modules, "IPython", Notebook)

    def scores(Q, K):
        return Q @ K.T
    check(scores)
    text = "The cell in which you wrote scores last did not run (line 1: expected ':'), so nothing is known"
    assert (text in shown[0].message) == said and ("did not run" in shown[0]._repr_html_()) == said


@pytest.mark.parametrize(("later", "said"), [
    ("def score(Q, K):\n    return K @ Q.T", True),
    ("def scores2(Q, K):\n    return K @ Q.T", True),
    ("def score(Q):\n    return Q", False),                  # it takes something else
    ("def scaled_scores(Q, K):\n    return Q", False),       # an exercise of its own
    ("def shares(Q, K):\n    return Q", False),
    ("score = 3", False),
])
def test_a_function_that_got_another_name_is_not_what_was_checked(monkeypatch, later, said):
    first = "def scores(Q, K):\n    return Q @ K.T"

    class Shell:
        user_ns = {"In": ["", first, later, "check(scores)"]}
        get_ipython = classmethod(lambda cls: cls)
    monkeypatch.setitem(report.sys.modules, "IPython", Shell)
    text = f"A later cell defines {later[4:].split('(')[0]}: what follows is about scores, from before."
    assert newer_cell("scores") == (text if said else "")
    Shell.user_ns["In"][1:3] = later, first                  # the right one came last
    assert newer_cell("scores") == ""


@pytest.mark.parametrize(("code", "exercise"), [
    ("scores = lambda Q, K: Q @ K.T", "scores"),
    ("def mine(Q, K): return Q @ K.T\nscores = mine", "scores"),
    ("from functools import partial\ndef f(flag, Q, K): return Q @ K.T\nscores = partial(f, True)", "scores"),
])
def test_check_knows_a_function_by_the_variable_that_holds_it(code, exercise, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))
    exec(code + f"\ncheck({exercise})", {"__name__": "__main__", "check": check})
    assert capsys.readouterr().out.startswith("✓ scores")


def test_check_of_another_name_helps(capsys):
    def softmaxx(z):
        return z
    check(softmaxx)
    assert "Did you mean softmax?" in capsys.readouterr().out
    check(run)
    assert "The exercises are token_ids, embed" in capsys.readouterr().out


def test_the_courses_own_function_does_not_count_as_solved(capsys, monkeypatch, tmp_path):
    from helpers.attention import softmax
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))
    check(softmax)
    assert "This is the course's own softmax" in capsys.readouterr().out
    assert not (tmp_path / "progress.json").exists()
    assert run("softmax", softmax).passed


def test_a_report_says_yes_or_no_and_nothing_else():
    assert Report("x", "passed").passed and not Report("x", "wrong").passed
    assert Report("x", "wrong").diagnosis == "" and Report("x", "wrong").remarks == []


@pytest.fixture
def jobs(monkeypatch):
    """The jobs that the process of the checks gets meanwhile; nothing is noted down as solved."""
    given, run_apart = [], process.run_apart
    monkeypatch.setattr(process, "run_apart", lambda *job, **how: given.append(job) or run_apart(*job, **how))
    monkeypatch.setattr(record, "note", lambda name, passed: "")
    monkeypatch.setattr(judge, "RIGHT", {})
    return given


def scaled_scores(Q, K):
    return Q @ K.T / Q.shape[1] ** 0.5


def test_what_a_check_has_just_found_right_is_not_judged_twice(jobs):
    check(scaled_scores)
    assert len(jobs) == 1
    assert run("scaled_scores", scaled_scores).passed and len(jobs) == 1
    check(scaled_scores)                                    # a check always asks
    assert len(jobs) == 2
    assert run("scaled_scores", lambda Q, K: scaled_scores(Q, K)).passed and len(jobs) == 3
    space = {}
    exec("def scaled_scores(Q, K):\n    return K", space)
    check(space["scaled_scores"])
    before = len(jobs)                                      # what is wrong is asked again
    assert not run("scaled_scores", space["scaled_scores"]).passed and len(jobs) > before


def test_what_is_wrong_or_rests_on_something_else_by_now_is_judged_again(jobs, monkeypatch):
    space = {"scale": lambda d: d ** 0.5}
    exec("def scaled_scores(Q, K):\n    return Q @ K.T / scale(Q.shape[1])", space)
    answer = space["scaled_scores"]
    check(answer)
    space["scale"] = lambda d: d
    assert not run("scaled_scores", answer).passed
    check(answer)
    space["scale"] = lambda d: d ** 0.5
    assert run("scaled_scores", answer).passed
    check(answer)
    monkeypatch.setattr(np, "sqrt", np.exp)
    assert "numpy.sqrt has been replaced" in run("scaled_scores", answer).message

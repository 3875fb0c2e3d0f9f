"""The command that runs the tests under many conditions: what it runs, says and keeps."""

import json

import matrix
import pytest

TEST = "def test_it():\n    assert {}\n"


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course of two tests, and a cell for each: good and bad. The third cannot be run."""
    root = tmp_path / "course"
    root.mkdir()
    for name, holds in (("good", True), ("bad", False)):
        (root / f"test_{name}.py").write_text(TEST.format(holds), encoding="utf-8")
    monkeypatch.setattr(matrix, "ROOT", root)
    monkeypatch.setattr(matrix, "HOME", root / ".matrix")
    monkeypatch.setattr(matrix, "PASSED", root / ".matrix" / "passed.json")
    monkeypatch.setattr(matrix, "cells", lambda: [
        matrix.Cell("good", ["test_good.py"]), matrix.Cell("bad", ["test_bad.py"], checkout="odd path"),
        matrix.Cell("elsewhere", [], cannot="no such machine")])
    monkeypatch.setattr(matrix.signal, "signal", lambda *_: None)
    return root


def rows(capsys):
    """{cell: what the closing table says of it}, and all that was printed."""
    text = capsys.readouterr().out
    table = text.rpartition("\n\n")[0].rpartition("\n\n")[2]
    return {line[:19].strip(): line[19:] for line in table.splitlines()}, text


def test_every_cell_gets_its_row_and_a_failure_is_named(course, capsys):
    assert matrix.main(["--at-once", "2"]) == 1
    table, text = rows(capsys)
    assert table["good"].startswith("1 passed") and table["bad"].startswith("FAILED: 1 failed")
    assert table["elsewhere"] == "left out: no such machine"
    assert "    FAILED test_bad.py::test_it" in text
    assert text.rstrip().splitlines()[-1].startswith("1 of 2 cells passed.")


def test_what_has_passed_is_not_run_again_until_a_file_changes(course, monkeypatch, capsys):
    def run(cell, show, cores):
        seen.append(cell.name)
        return ("FAILED: 1 failed" if cell.name == "bad" else "1 passed"), 0

    def ran(*arguments):
        seen.clear()
        matrix.main([*arguments])
        return set(seen)

    seen = []
    monkeypatch.setattr(matrix, "run", run)
    assert ran() == {"good", "bad"}
    assert ran() == {"bad"} and rows(capsys)[0]["good"] == "passed before: 1 passed"
    assert ran("good") == {"good"} and ran("--again") == {"good", "bad"}
    (course / "__pycache__").mkdir(exist_ok=True)
    (course / "__pycache__" / "made.pyc").touch()
    assert ran() == {"bad"}                                       # what is made by the way is no change
    (course / "test_bad.py").write_text(TEST.format(True), encoding="utf-8")
    assert ran() == {"good", "bad"}


def test_the_list_runs_nothing(course, capsys):
    assert matrix.main(["--list"]) == 0
    assert capsys.readouterr().out == f"good\nbad\n{'elsewhere':19}left out: no such machine\n"
    assert not (course / ".matrix").exists()


@pytest.mark.parametrize(("arguments", "word"), [
    (["gold"], "no cell is called gold"), (["--at-once", "0"], "a number from 1")])
def test_bad_arguments_are_refused(course, capsys, arguments, word):
    with pytest.raises(SystemExit):
        matrix.main(arguments)
    assert word in capsys.readouterr().err


def test_a_damaged_record_counts_for_nothing(course):
    matrix.HOME.mkdir()
    for text in ("", "[]", "{}", json.dumps({"state": "old", "cells": {"good": "1 passed"}})):
        matrix.PASSED.write_text(text, encoding="utf-8")
        assert matrix.passed("new") == {}, text

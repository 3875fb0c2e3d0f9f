"""Progress: never half written, never lost, and two kernels at once do no harm."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from helpers import checks
from helpers.checks import check, notebooks, progress, record
from helpers.checks.exercises import BY_NAME

ROOT = Path(__file__).parents[1]


@pytest.fixture
def file(tmp_path, monkeypatch):
    """The progress file of a folder of its own, and a kernel that has seen nothing."""
    monkeypatch.setattr(record, "_seen", {})
    monkeypatch.setattr(record, "_unsaved", {})
    monkeypatch.delenv("COURSE_PROGRESS", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "progress.json"


def kept(file):
    entries = json.loads(file.read_text(encoding="utf-8"))["exercises"]
    return {name: (entry["tries"], entry["solved"]) for name, entry in entries.items()}


def right(Q, K):
    return Q @ K.T


def wrong(Q, K):
    return Q @ K


def named(name, function):
    def inner(Q, K):
        return function(Q, K)
    inner.__name__ = name
    return inner


def test_tries_are_counted_and_solved_stays_solved(file):
    for function in (wrong, right, wrong):
        check(named("scores", function))
    assert kept(file) == {"scores": (3, True)}


def test_what_is_not_written_yet_leaves_no_trace(file):
    def scores(Q, K):
        raise NotImplementedError
    check(scores)
    check(len)
    check(None)
    check(lambda Q: Q)
    assert not file.exists() and list(file.parent.iterdir()) == []


def test_nothing_is_left_beside_the_file(file):
    record.note("scores", True)
    assert [path.name for path in file.parent.iterdir()] == ["progress.json"]


def test_in_a_folder_called_solutions_nothing_is_written(file, tmp_path, monkeypatch, capsys):
    (tmp_path / "solutions").mkdir()
    monkeypatch.chdir(tmp_path / "solutions")
    monkeypatch.setenv("COURSE_PROGRESS", str(file))
    check(named("scores", right))
    progress()
    assert re.search(r"3.1  scores +✓ solved    1 try", capsys.readouterr().out)
    assert [path.name for path in tmp_path.rglob("*")] == ["solutions"]


def test_another_place_can_be_named(file, tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "deep" / "kept.json"))
    record.note("scores", True)
    assert kept(tmp_path / "deep" / "kept.json") == {"scores": (1, True)} and not file.exists()


@pytest.mark.parametrize("damage", [
    "", "{", "[]", '{"exercises": 3}', '{"exercises": {"scores": {}}}', "\x00" * 50, "[" * 10_000,
    '{"exercises": {"scores": {"tries": "many", "solved": true}}}',
    '{"exercises": {"scores": {"tries": Infinity, "solved": true}}}',
    '{"exercises": {"scores": {"tries": NaN, "solved": true}}}',
    '{"exercises": {"scores": {"tries": -3, "solved": true}}}'])
def test_a_damaged_file_is_kept_aside_and_said(file, capsys, damage):
    record.note("softmax", True)
    file.write_text(damage, encoding="utf-8")
    progress()
    assert "progress.json could not be read" in capsys.readouterr().out
    assert file.read_text(encoding="utf-8") == damage, "looking changes nothing"
    check(named("scores", right))
    said = "it is kept as progress.json.bak, and a new one begins with what this notebook has checked"
    assert said in capsys.readouterr().out
    assert (file.parent / "progress.json.bak").read_text(encoding="utf-8") == damage
    assert kept(file) == {"softmax": (1, True), "scores": (1, True)}, "what this kernel knew is in it"


def test_a_file_that_is_no_text_is_kept_aside_and_one_such_file_is_enough(file):
    for last in (b"\x00", b"\x01"):
        file.write_bytes(b"\xff\xfe" + last)
        assert "kept as progress.json.bak," in record.note("scores", True)
        assert file.with_name("progress.json.bak").read_bytes() == b"\xff\xfe" + last
    assert sorted(path.name for path in file.parent.iterdir()) == ["progress.json", "progress.json.bak"]


def test_what_cannot_be_written_is_said_and_written_later(file, capsys):
    file.mkdir()                                            # a folder in its place, in root's way too
    check(named("scores", right))
    assert "your progress could not be saved to progress.json" in capsys.readouterr().out
    file.rmdir()
    record.note("softmax", False)
    assert kept(file) == {"scores": (1, True), "softmax": (1, False)}
    assert [path.name for path in file.parent.iterdir()] == ["progress.json"]


def test_a_folder_that_is_gone_harms_nothing(file, tmp_path, monkeypatch, capsys):
    if os.name != "posix":
        pytest.skip("Windows keeps a folder that somebody is in")
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    check(named("scores", right))
    shown = capsys.readouterr().out
    assert "✓ scores" in shown and "this notebook's folder is gone" in shown


def test_a_write_that_breaks_off_leaves_the_old_file(file, monkeypatch):
    record.note("scores", True)
    before = file.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda fd: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    assert "No space left on device" in record.note("softmax", True)
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == ["progress.json"]


def test_many_kernels_at_once_lose_nothing(file):
    code = """if True:
        from helpers.checks import record
        for i in range(25): assert record.note(f"e{i}", i % 2 == 0) == ""
        """
    env = os.environ | {"COURSE_PROGRESS": str(file)}
    kernels = [subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env=env) for _ in range(4)]
    assert [kernel.wait(60) for kernel in kernels] == [0] * 4
    assert kept(file) == {f"e{i}": (4, i % 2 == 0) for i in range(25)}


def test_a_lock_left_behind_is_taken_over(file):
    lock = file.with_name("progress.json.lock")
    lock.touch()
    old = time.time() - 60
    os.utime(lock, (old, old))
    assert record.note("scores", True) == "" and not lock.exists()


def test_a_lock_that_is_held_is_waited_for_and_then_said(file, monkeypatch):
    monkeypatch.setattr(record, "WAIT", 0.1)
    lock = file.with_name("progress.json.lock")
    lock.touch()
    assert "another notebook is writing it" in record.note("scores", True)
    lock.unlink()
    assert record.note("scores", False) == "" and kept(file) == {"scores": (2, True)}


def test_the_table_as_text_and_as_html(file):
    record.note("softmax", True)
    record.note("scores", False)
    table = record.Table(checks.EXERCISES, *record.entries())
    lines = str(table).splitlines()
    n = len(checks.EXERCISES)
    assert lines[0] == f"1 of {n} exercises solved" and len(lines) == n + 1
    width = max(map(len, BY_NAME))
    assert f"  3.3  {'softmax':{width}}  ✓ solved    1 try" in lines
    assert f"  3.1  {'scores':{width}}  ✗ tried     1 try" in lines
    assert f"  1.1  {'token_ids':{width}}  ○ not yet" in lines
    assert table._repr_html_().count("<tr>") == n + 1 and "✓ solved" in table._repr_html_()


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "ascii"])
def test_the_table_from_the_command_line(file, encoding):
    record.note("softmax", True)
    shown = subprocess.run([sys.executable, "-m", "helpers.checks", str(file)], cwd=ROOT, check=True,
                           capture_output=True, env=os.environ | {"PYTHONIOENCODING": encoding})
    text = shown.stdout.decode(encoding)
    assert f"1 of {len(checks.EXERCISES)} exercises solved" in text and "3.3  softmax" in text


def test_a_reader_of_the_table_may_stop_early(file):
    """As in `python3 course.py progress | head -2`."""
    read, write = os.pipe()
    os.close(read)
    shown = subprocess.run([sys.executable, "-m", "helpers.checks", str(file)], cwd=ROOT, stdout=write,
                           stderr=subprocess.PIPE)
    os.close(write)
    assert shown.returncode == 0 and shown.stderr == b""


def test_a_file_saved_by_another_editor_with_a_mark_in_front_is_read(file):
    record.note("scores", True)
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert record.note("softmax", False) == ""
    assert set(kept(file)) == {"scores", "softmax"}


def test_what_a_kernel_ended_in_the_middle_has_left_is_swept_away(file):
    old, new = (file.with_name(f"progress.json.{n}.tmp") for n in (11, 12))
    for path in (old, new):
        path.write_text("{", encoding="utf-8")
    os.utime(old, (time.time() - 60,) * 2)
    record.note("scores", True)
    assert not old.exists() and new.exists()


def test_a_folder_of_notebooks_is_checked_as_it_is_saved(tmp_path):
    notebook = nbformat.read(ROOT / "solutions" / "03_single_head_attention.ipynb", as_version=4)
    answer = next(cell for cell in notebook.cells if "def scaled_scores" in cell.source)
    answer.source = "def scaled_scores(Q, K):\n    return np.asarray(Q) @ np.asarray(K).T"
    nbformat.write(notebook, tmp_path / "03_single_head_attention.ipynb")
    shown = subprocess.run([sys.executable, "-m", "helpers.checks", str(tmp_path)], cwd=ROOT, check=True,
                           capture_output=True, encoding="utf-8").stdout
    assert re.search(r"3\.1 +scores +✓ solved", shown) and re.search(r"3\.2 +scaled_scores +✗ tried", shown)
    assert re.search(r"3\.2 scaled_scores: .*not divided", shown) and re.search(r"1\.1 .* not yet", shown)
    assert not (tmp_path / "progress.json").exists()
    assert not re.search(r"\d tr(y|ies)", shown), "none is noted down, so none is counted"


def notebook_of(**answers):
    """A notebook with these answers, as the text of its file."""
    cells = [new_code_cell(source, id=f"{name.replace('_', '-')}-answer") for name, source in answers.items()]
    return nbformat.writes(new_notebook(cells=cells))


def test_a_notebook_that_nobody_can_read_or_run_is_one_sentence_of_many(tmp_path):
    right = "def scores(Q, K):\n    return Q @ K.T"
    broken = {
        "scaled_scores": "x = " + "-" * 50_000 + "1",
        "softmax": "class Own(BaseException):\n    pass\nclass A:\n    raise Own('mine')",
        "causal_mask": "import sys\nx = sys.stdout.close()",
        "attention_weights": "x = print('nobody asks for this')",
        "single_head": "x = '\0'",
    }
    (tmp_path / "01_embeddings.ipynb").write_text("[" * 200_000, encoding="utf-8")
    (tmp_path / "03_single_head_attention.ipynb").write_text(notebook_of(**broken, scores=right), "utf-8")
    shown = subprocess.run([sys.executable, "-m", "helpers.checks", str(tmp_path)], cwd=ROOT,
                           capture_output=True, encoding="utf-8")
    assert shown.returncode == 0 and shown.stderr == "", shown.stderr
    assert re.search(r"3\.1 +scores +✓ solved", shown.stdout)
    for sentence in ("01_embeddings.ipynb is left out: it is no readable notebook",
                     "scaled_scores is left out: its cell is no Python (it is nested too deeply)",
                     "single_head is left out: its cell is no Python ("):
        assert sentence in shown.stdout
    assert "nobody asks" not in shown.stdout


def test_a_cell_that_raises_what_is_no_exception_is_left_out(tmp_path):
    whole = "class Own(BaseException):\n    pass\nclass softmax:\n    raise Own('mine')"
    (tmp_path / "03_a.ipynb").write_text(notebook_of(softmax=whole), encoding="utf-8")
    assert notebooks.saved_functions(tmp_path) == ({}, {"softmax": "its cell fails (Own: mine)"})
    stop = "class A:\n    raise KeyboardInterrupt"           # as when somebody stops the kernel
    (tmp_path / "03_a.ipynb").write_text(notebook_of(softmax=stop), encoding="utf-8")
    with pytest.raises(KeyboardInterrupt):
        notebooks.saved_functions(tmp_path)

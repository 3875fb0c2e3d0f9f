"""What `course.py bench` prints. No test of speed: only that it measures, says what it measured, and ends."""

import os
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest

from bench import __main__ as command
from bench import attention, decode, imports, notebooks, repaint
from bench.measure import Row, race
from helpers import explorers, smollm2, tiny_model

ROOT = Path(__file__).resolve().parents[1]


def bench(*arguments, **variables):
    env = os.environ | {"PYTHONIOENCODING": "utf-8"} | variables
    return subprocess.run([sys.executable, "-m", "bench", *arguments], cwd=ROOT, env=env, timeout=300,
                          capture_output=True, encoding="utf-8")


def test_a_race_runs_all_in_turn_and_takes_the_median_without_the_first_round():
    order, naps = [], {"slow": iter([0.2, 0.02, 0.02, 0.3]), "quick": iter([0.0] * 4)}

    def run(name):
        order.append(name)
        time.sleep(next(naps[name]))

    times = race({name: lambda name=name: run(name) for name in naps}, seconds=0)
    assert order == ["slow", "quick"] * 4
    assert 0.02 <= times["slow"] < 0.15 and times["quick"] < times["slow"]


def test_a_race_goes_on_for_the_seconds_it_is_given():
    rounds = []
    race({"one": lambda: rounds.append(1), "other": lambda: time.sleep(0.01)}, seconds=0.3)
    assert 4 < len(rounds) < 40


@pytest.mark.parametrize(("row", "parts"), [
    (Row("a", 2.0, "b", 1.0), ["a", "2 s", "b", "1 s", "2.00"]),
    (Row("a", 0.0123, "b", 0.1, 1.5), ["a", "12.3 ms", "b", "100 ms", "0.12", "≤ 1.5"]),
    (Row("a", 4.5e-5, "b", 0.123456), ["a", "45 µs", "b", "123 ms", "0.0004"]),
])
def test_a_row_tells_both_times_their_ratio_and_the_goal(row, parts):
    line = command.text(row)
    assert line.split() == " ".join(parts).split() and line == line.rstrip()
    assert line.index(parts[2]) == command.LINE.format("a", "", "b", "", "", "").index("b")


def test_attention_is_raced_against_torch_and_the_bare_products(monkeypatch):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    monkeypatch.setattr(attention, "GOALS", {16: 2.5, 200: 1.5, 5000: 1})
    monkeypatch.setattr(attention, "race", lambda contestants, seconds: race(contestants, 0))
    rows = list(attention.rows(quick=True))
    assert [(row.what, row.against, row.goal) for row in rows] == [
        (what, against, goal)
        for n, named in ((16, 2.5), (200, 1.5))
        for what, against, goal in (
            (f"attention, n = {n}", "PyTorch", named), (f"attention, n = {n}", "Q Kᵀ and A V alone", None),
            (f"attention, n = {n}, causal", "PyTorch", named),
        )
    ]
    assert all(row.ours > 0 and row.other > 0 for row in rows)


def test_without_torch_its_rows_are_left_out_with_a_word(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)         # import torch raises ImportError
    monkeypatch.setattr(attention, "GOALS", {16: 2.5})
    word, *rows = attention.rows(quick=True)
    assert word == "PyTorch is not installed: the rows against it are left out."
    assert [row.against for row in rows] == ["Q Kᵀ and A V alone"]


def test_decode_compares_equal_results_at_several_lengths(monkeypatch):
    monkeypatch.setattr(decode, "race", lambda contestants, seconds: race(contestants, 0, least=1))
    rows = list(decode.rows(quick=True))
    assert len(rows) == 3 and "128" in rows[1].what and "512" in rows[2].what
    steps = decode.steps(5)
    assert abs(steps["cached"]() - steps["cached"]()).max() == 0        # the same step each time


def test_imports_are_timed_in_fresh_processes(monkeypatch):
    monkeypatch.setattr(imports, "COURSE", "import sys; assert 'numpy' not in sys.modules; import helpers")
    monkeypatch.setattr(imports, "LIBRARIES", "import time; time.sleep(0.3)")
    row, = imports.rows(quick=True)
    assert row.other >= 0.3 and 0 < row.ours < row.other


@pytest.fixture
def small_course(tmp_path, monkeypatch):
    """A folder with two notebooks and a solution; the language model counts as fetched."""
    monkeypatch.setattr(notebooks, "is_fetched", lambda: True)
    answer = ("def f(x):\n    \"\"\"Twice x.\"\"\"\n    ### BEGIN SOLUTION\n    return 2 * x\n"
              "    ### END SOLUTION")
    cells = {"notebooks/b": "1", "notebooks/a": "1", f"notebooks/{notebooks.NEEDS_THE_MODEL[:-6]}": "1",
             "solutions/a": answer}
    for name, source in cells.items():
        path = tmp_path / f"{name}.ipynb"
        notebooks.write(path, nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)]))
    return tmp_path


def test_notebooks_solutions_and_exercises_are_run_against_as_many_empty_ones(monkeypatch, small_course):
    seen = []

    def run(paths, folder, how):
        assert all(path.parents[1] == Path(folder) for path in paths)
        seen.append({f"{path.parent.name}/{path.name}": path.read_text(encoding="utf-8") for path in paths})
        return float(len(seen)), True
    monkeypatch.setattr(notebooks, "run", run)
    on_all, in_one = notebooks.rows(root=small_course)
    assert (on_all.ours, on_all.other, on_all.goal) == (2.0, 1.0, 2)
    assert (in_one.ours, in_one.other, in_one.goal) == (4.0, 3.0, None)
    assert on_all.what == "5 notebooks under nbval, all cores"
    empty, full, *again = seen
    assert again == [empty, full]
    assert [name.split("/")[0] for name in empty] == 5 * ["empty"] and len(set(empty.values())) == 1
    assert list(full) == [f"notebooks/{notebooks.NEEDS_THE_MODEL}", "notebooks/a.ipynb", "notebooks/b.ipynb",
                          "solutions/a.ipynb", "exercises/a.ipynb"]
    assert "BEGIN SOLUTION" in full["solutions/a.ipynb"] and "SOLUTION" not in full["exercises/a.ipynb"]
    row, _ = notebooks.rows(quick=True, root=small_course)
    assert row.goal is None and len(seen[4]) == len(seen[5]) == 1


def test_without_the_language_model_its_notebooks_are_left_out_with_a_word(monkeypatch, small_course):
    monkeypatch.setattr(notebooks, "is_fetched", lambda: False)
    monkeypatch.setattr(notebooks, "run", lambda *_: (1.0, True))
    word, row, _ = notebooks.rows(root=small_course)
    assert "not fetched" in word and row.what == "4 notebooks under nbval, all cores"


def test_a_notebook_that_gives_something_else_is_told(small_course, monkeypatch):
    monkeypatch.setattr(notebooks, "HOW", {how: notebooks.HOW[how] for how in ["one process"]})
    for path in (small_course / "notebooks").iterdir():
        path.unlink()
    output = nbformat.v4.new_output("stream", name="stdout", text="1\n")
    cell = nbformat.v4.new_code_cell("print(2)", outputs=[output], execution_count=1)
    notebooks.write(small_course / "notebooks" / "wrong.ipynb", nbformat.v4.new_notebook(cells=[cell]))
    row, word = notebooks.rows(root=small_course)
    assert row.ours > 0 and row.other > 0 and "course.py test notebooks" in word


@pytest.mark.parametrize("how", notebooks.HOW)
def test_notebooks_run_on_all_cores_and_in_one_process(tmp_path, how):
    """Each file's cells stay together: they would fail alone."""
    cells = [nbformat.v4.new_code_cell(source) for source in ("x = 1", "x += 1", "assert x == 2")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    paths = [notebooks.write(tmp_path / name / "a.ipynb", notebook) for name in "bc"]
    assert notebooks.run(paths, tmp_path, how)[1]
    assert not notebooks.run([*paths, tmp_path / "missing.ipynb"], tmp_path, how)[1]


def test_without_a_browser_the_clicks_are_left_out_with_a_word(monkeypatch):
    monkeypatch.setattr(repaint.shutil, "which", lambda name: None)
    pytest.importorskip("playwright", reason="Playwright is not installed")
    left_out = "is not installed: the rows from click to repaint are left out."
    assert list(repaint.rows()) == [f"Chromium {left_out}"]
    monkeypatch.setitem(sys.modules, "playwright.sync_api", None)        # import raises ImportError
    assert list(repaint.rows()) == [f"Playwright {left_out}"]


def test_explorers_are_clicked_with_a_text_of_12_tokens(tmp_path):
    names = [name for name in explorers.__all__ if name.islower()]
    repaint.write(names, tmp_path / "a.ipynb")
    cells = [cell.source for cell in nbformat.read(tmp_path / "a.ipynb", as_version=4).cells]
    assert [cell.split("(")[0] for cell in cells[1:]] == [f"explorers.{name}" for name in names]
    assert f"explorers.heads({repaint.TEXT!r})" in cells and "explorers.rank()" in cells
    assert len(tiny_model.load().run(repaint.TEXT).tokens) == 12
    if smollm2.is_fetched():
        assert len(smollm2.load().tokenizer.encode(repaint.STORY)) == 12


def test_the_processes_that_are_measured_have_no_limits(monkeypatch):
    for name in ("OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("KEPT", "1")
    found = command.variables()
    assert found["KEPT"] == "1"
    assert not [name for name in found if name.startswith(("OPENBLAS", "OMP", "MKL"))]


def test_the_command_prints_its_table():
    result = bench("--only", "decode", "--quick", OPENBLAS_NUM_THREADS="1")
    assert result.returncode == 0, result.stderr
    machine, head, *lines = result.stdout.splitlines()
    assert f"{os.cpu_count()} cores" in machine and "NumPy" in machine
    assert head.split() == ["what", "takes", "against", "takes", "ratio", "goal"]
    assert len(lines) == 3 and all("cache" in line for line in lines)


def test_who_reads_the_first_lines_only_sees_no_traceback():
    command = [sys.executable, str(ROOT / "course.py"), "bench", "--only", "decode", "--quick"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        child.stdout.readline()
        child.stdout.close()                                # as head does
        assert child.stderr.read() == b""


def test_a_group_that_fails_is_named_and_the_others_go_on(monkeypatch, capfd):
    monkeypatch.setattr(command, "GROUPS", ["unheard-of", "decode"])
    monkeypatch.chdir(ROOT)
    assert not command.show("unheard-of", True)
    monkeypatch.setattr(command, "show", lambda name, quick: name == "decode")
    assert command.main([]) == 1
    assert "Not measured to the end: unheard-of." in capfd.readouterr().err


def test_an_unknown_group_is_refused():
    result = bench("--only", "frob")
    assert result.returncode == 2 and "frob" in result.stderr and "attention" in result.stderr

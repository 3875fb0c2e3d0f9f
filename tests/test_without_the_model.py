"""Where the language model has not been fetched: what is skipped, what is said, and that CI skips nothing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).resolve().parents[1]
NAME = "10_a_real_language_model.ipynb"


def notebook(*sources):
    v4 = nbformat.v4
    return v4.new_notebook(cells=[v4.new_code_cell(source, execution_count=i, outputs=[])
                                  for i, source in enumerate(sources, start=1)])


def run_tests(folder, **env):
    """pytest on copies of the conftest, a notebook that needs the model, and one that does not."""
    shutil.copy(ROOT / "conftest.py", folder)
    for name, source in ((NAME, "1 / 0"), ("09_context_length.ipynb", "x = 1")):
        (folder / "notebooks").mkdir(exist_ok=True)
        nbformat.write(notebook(source), folder / "notebooks" / name)
    command = [sys.executable, "-m", "pytest", "-q", "-ra", "--nbval", "--nbval-current-env",
               "-p", "no:cacheprovider", str(folder)]
    env = {**os.environ, "CI": "", "COURSE_MODEL": str(folder / "model"), "PYTHONPATH": str(ROOT)} | env
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, encoding="utf-8")


def test_the_notebook_is_skipped_with_a_word_and_the_others_run(tmp_path):
    run = run_tests(tmp_path)
    assert run.returncode == 0, run.stdout
    assert "1 passed, 1 skipped" in run.stdout
    assert "SKIPPED" in run.stdout and "python3 course.py model" in run.stdout


def test_in_ci_the_notebook_runs(tmp_path):
    run = run_tests(tmp_path, CI="true")
    assert run.returncode == 1 and "1 failed, 1 passed" in run.stdout, run.stdout


def test_with_the_model_the_notebook_runs(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "index.json").write_text("{}", encoding="utf-8")
    run = run_tests(tmp_path)
    assert run.returncode == 1 and "1 failed, 1 passed" in run.stdout, run.stdout


def test_run_all_stops_at_the_first_cell_with_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_MODEL", str(tmp_path))
    first = nbformat.read(ROOT / "notebooks" / NAME, as_version=4)
    with pytest.raises(CellExecutionError):
        NotebookClient(first, timeout=60, kernel_name="python3").execute()
    errors = [output for cell in first.cells if cell.cell_type == "code" and cell.execution_count is not None
              for output in cell.outputs if output.output_type == "error"]
    assert len(errors) == 1
    shown = "\n".join(errors[0].traceback)
    assert "python3 course.py model" in shown and len(shown.splitlines()) == 1

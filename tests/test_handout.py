"""What a learner gets: all there is to read and run, no answers, and a course that works."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from classroom.handout import handout, main
from helpers.exercise_notebooks import Refused, read, text_of

ROOT = Path(__file__).resolve().parents[1]
CAPTURED = {"capture_output": True, "encoding": "utf-8"}


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("class") / "handed out"
    handout(folder)
    return folder


def names(folder, pattern="*"):
    return {path.relative_to(folder).as_posix() for path in folder.rglob(pattern)}


def test_notebooks_exercises_and_helpers_are_all_there(out):
    for folder in ("notebooks", "exercises"):
        assert names(out / folder, "*.ipynb") == {path.name for path in (ROOT / folder).glob("*.ipynb")}
    assert names(out / "helpers", "*.py") == names(ROOT / "helpers", "*.py")
    assert (out / "course.py").read_bytes() == (ROOT / "course.py").read_bytes()


def test_no_solutions_no_tests_nothing_for_teachers_no_progress(out):
    top = {path.name for path in out.iterdir()}
    assert top.isdisjoint({"solutions", "tests", "classroom", ".ci", ".git", ".venv", "model"})
    assert not any("progress" in name or "__pycache__" in name for name in names(out))
    for path in out.rglob("*"):
        if path.suffix in (".ipynb", ".md"):
            text = path.read_text(encoding="utf-8")
            assert "solutions/" not in text and "BEGIN SOLUTION" not in text, path


def test_exercises_are_fresh_whatever_the_teacher_has_written(out):
    for path in (out / "exercises").glob("*.ipynb"):
        notebook = read(path)
        assert path.read_text(encoding="utf-8") == text_of(notebook)
        answers = [cell for cell in notebook.cells if "answer" in cell.metadata.get("tags", ())]
        assert answers and all("raise NotImplementedError" in cell.source for cell in answers)
        assert not any(cell.get("outputs") for cell in notebook.cells)
        nbformat.validate(notebook)


def test_the_readme_is_whole_but_for_what_is_not_there(out):
    text = (out / "README.md").read_text(encoding="utf-8")
    assert "## Start" in text and "## How to work" in text and "MIT licence" in text
    assert "course.py test" not in text and "  \n" not in text and ", ." not in text
    assert "Three hints stand below each check." in text


def test_checks_run_in_a_handout(out):
    code = "from helpers.checks import check\nimport helpers\ndef scores(Q, K): return Q @ K.T\n" \
           "check(scores)\nprint(helpers.__file__)"
    run = subprocess.run([sys.executable, "-c", code], cwd=out, **CAPTURED,
                         env=dict(os.environ, PYTHONPATH=str(out), PYTHONIOENCODING="utf-8"))
    assert "✓ scores" in run.stdout and str(out) in run.stdout, run.stderr


def test_without_the_model_a_learners_test_run_leaves_out_the_notebook_that_needs_it(out, tmp_path):
    env = dict(os.environ, PYTHONPATH=str(out), COURSE_MODEL=str(tmp_path), PYTHONIOENCODING="utf-8", CI="")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist",
               "notebooks/10_a_real_language_model.ipynb"]
    run = subprocess.run(command, cwd=out, env=env, **CAPTURED)
    assert run.returncode == 0 and re.search(r"(?m)^\d+ skipped", run.stdout), run.stdout


@pytest.mark.skipif(shutil.which("git") is None, reason="Git is not installed")
def test_a_learner_needs_no_more_than_what_git_keeps(out, tmp_path):
    compiled = shutil.ignore_patterns("__pycache__")            # by a test that ran the handout's own tests
    copy = shutil.copytree(out, tmp_path / "repository", ignore=compiled)
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], cwd=copy, check=True, **CAPTURED)
    kept = subprocess.run(["git", "ls-files", "-z"], cwd=copy, check=True, **CAPTURED).stdout.split("\0")
    written = {path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file()}
    assert set(kept) - {""} == {name for name in written if not name.startswith(".git/")}


def test_commands_for_teachers_say_that_they_are_not_there(out):
    run = subprocess.run([sys.executable, out / "course.py", "grade", "x"], **CAPTURED)
    assert run.returncode == 1 and "this is a learner's copy" in run.stderr


@pytest.mark.parametrize("place", ["full", "file", "inside"])
def test_a_folder_that_is_not_empty_is_refused_with_a_sentence(tmp_path, capsys, place):
    target = {"full": tmp_path, "file": tmp_path / "a", "inside": ROOT / "handed-out"}[place]
    (tmp_path / "a").write_text("mine", encoding="utf-8")
    assert main([str(target)]) == 1
    assert "Nothing was written." in capsys.readouterr().err
    assert (tmp_path / "a").read_text(encoding="utf-8") == "mine" and not (ROOT / "handed-out").exists()
    with pytest.raises(Refused):
        handout(target)

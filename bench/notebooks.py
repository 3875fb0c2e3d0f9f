"""All notebooks, solutions and exercises run by nbval, against as many empty ones.

On all cores, as `python3 course.py test` runs them and the goal has it, and in one process, where the two
notebooks that run the language model are a third of it: how fast memory is read decides. Each on one thread,
as tests are. The exercises are those that are handed out, not what you have made of them.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat

from bench.measure import Row
from helpers.exercise_notebooks import fresh_exercises
from helpers.smollm2 import is_fetched

ROOT = Path(__file__).resolve().parents[1]
GOALS = {"all cores": 2}
NEEDS_THE_MODEL = "10_a_real_language_model.ipynb"
HOW = {"all cores": ["-n", "auto", "--dist", "loadfile"], "one process": ["-n", "0"]}


def rows(quick=False, root=ROOT):
    with tempfile.TemporaryDirectory() as folder:
        paths = [path for name in ("notebooks", "solutions")
                 for path in sorted(Path(root, name).glob("*.ipynb"))]
        if not is_fetched():
            yield "The language model is not fetched: notebook 10 and its solution are left out."
            paths = [path for path in paths if path.name != NEEDS_THE_MODEL]
        paths = [copy(path, Path(folder, path.parent.name)) for path in paths]
        exercises = [write(Path(folder, "exercises", name), notebook)
                     for name, notebook in fresh_exercises(root).items()]
        paths = [*paths, *exercises][:1 if quick else None]
        empty = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("pass")])
        empty.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
        empties = [write(Path(folder, "empty", f"{i:02}.ipynb"), empty) for i in range(len(paths))]
        some = f"{len(paths)} notebook" + ("s" if len(paths) > 1 else "")
        for how in HOW:
            other, sound = run(empties, folder, how)
            ours, all_right = run(paths, folder, how)
            if not sound:
                yield "The empty notebooks do not run: no row."
                return
            yield Row(f"{some} under nbval, {how}", ours, "empty: " + some, other,
                      None if quick else GOALS.get(how))
            if not all_right:
                yield ("Not all cells gave what is stored: `python3 course.py test notebooks solutions` says "
                       "which.")
                return


def copy(path, folder):
    """The file, copied into a folder that is made if it is missing; returns its path there."""
    folder.mkdir(exist_ok=True)
    return Path(shutil.copy(path, folder))


def write(path, notebook):
    """Save a notebook, in a folder that is made if it is missing; returns the path."""
    path.parent.mkdir(exist_ok=True)
    nbformat.write(notebook, path)
    return path


def run(paths, folder, how):
    """Seconds of nbval on the notebooks in `folder`, start and all, and whether they passed.

    how : a key of HOW. No progress is noted.
    """
    command = [sys.executable, "-m", "pytest", "-q", "--config-file", str(ROOT / "pyproject.toml"),
               "--rootdir", str(folder), "-p", "no:cacheprovider", "-p", "conftest", *HOW[how],
               *map(str, paths)]
    with tempfile.TemporaryDirectory() as elsewhere:
        env = os.environ | {"OPENBLAS_NUM_THREADS": "1", "COURSE_PROGRESS": f"{elsewhere}/progress.json",
                            "PYTHONPATH": str(ROOT)}
        begun = time.perf_counter()
        status = subprocess.run(command, env=env, capture_output=True).returncode
        return time.perf_counter() - begun, status == 0

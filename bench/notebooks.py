"""All notebooks run and compared by nbval, against as many empty ones; each on one thread, as tests are."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat

from bench.measure import Row

ROOT = Path(__file__).resolve().parents[1]


def rows(quick=False, folder=ROOT / "notebooks"):
    paths = sorted(folder.glob("*.ipynb"))[:1 if quick else None]
    with tempfile.TemporaryDirectory() as empty:
        empties = [Path(empty, path.name) for path in paths]
        for path in empties:
            notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("pass")])
            notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
            nbformat.write(notebook, path)
        other, sound = run(empties)
        ours, all_right = run(paths)
    if not sound:
        yield "The empty notebooks do not run: no row."
        return
    some = f"{len(paths)} notebook" + ("s" if len(paths) > 1 else "")
    yield Row(f"{some} run under nbval", ours, "empty: " + some, other)
    if not all_right:
        yield "Not all cells gave what is stored: `python3 course.py test notebooks` says which."


def run(paths):
    """Seconds of nbval on the notebooks, start and all, and whether they passed."""
    command = [sys.executable, "-m", "pytest", "-q", "--config-file", str(ROOT / "pyproject.toml"),
               "-p", "no:cacheprovider", *map(str, paths)]
    env = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    begun = time.perf_counter()
    status = subprocess.run(command, env=env, capture_output=True).returncode
    return time.perf_counter() - begun, status == 0

"""Has a submission judged in a process of its own, with a clean copy of the helpers and limits.

The learner's code never runs in the process that grades: it runs in that of `helpers.checks.worker`, started
by that of `helpers.checks.submission`, started here, in a folder that is thrown away. Text comes back.
"""

import compileall
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from io import BytesIO
from pathlib import Path
from py_compile import PycInvalidationMode

from classroom.names import file_name
from helpers.checks import wire
from helpers.checks.family import APART, end
from helpers.checks.submission import place

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 300  # seconds for one submission
PASSED_ON = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LANG", "LC_ALL")


class Sandbox:
    """Judges submissions; `close` ends what is still running."""

    def __init__(self, root=ROOT):
        self.helpers = compiled(root / "helpers")
        self.model = str(root / os.path.expanduser(os.environ.get("COURSE_MODEL") or "model"))
        self.running, self.lock, self.closed = set(), threading.Lock(), False

    def judge(self, notebooks, names, limit=LIMIT):
        """({name: verdict}, sentences about the submission). Verdicts: `helpers.checks.submission`."""
        verdicts, remarks, left = {}, [], list(names)
        touched, until = False, time.monotonic() + limit
        while left and not self.closed:
            seconds = max(until - time.monotonic(), 0)
            answers, ended, changed = self.one_process(notebooks, left[:1] if touched else left, seconds)
            if changed and not touched:  # again, each exercise with a copy that no other has touched
                touched, verdicts, left = True, {}, list(names)
                remarks.append(
                    "It writes into the course's own files (here a copy, so nothing is lost); each exercise "
                    f"was judged with a clean one. Changed: {', '.join(changed[:5])}."
                )
                continue
            before = len(left)
            for answer in answers:
                if "troubles" in answer:
                    remarks += [sentence(*map(str, trouble)) for trouble in answer["troubles"]]
                elif answer.get("name") in left:
                    verdicts[answer["name"]] = answer
                    left.remove(answer["name"])
            if left and (ended or len(left) == before):
                lost = left[:1] if answers else left      # without an answer it did not get to the first
                late = time.monotonic() >= until
                why = f"not done after {limit} s" if late else ended or "its process ended"
                verdicts |= {name: unfinished(name, why) for name in lost}
                left = left[len(lost):]
        return verdicts, list(dict.fromkeys(remarks))

    def one_process(self, notebooks, names, limit):
        """(answers, how the process ended before it was through or "", files of the helpers it changed)."""
        with tempfile.TemporaryDirectory(prefix="submission-", ignore_cleanup_errors=True) as folder:
            folder = Path(folder)
            for part in ("course", "work", "home"):
                (folder / part).mkdir()
            lay_out(self.helpers, folder / "course")
            for notebook in notebooks:                    # the last exercise reads what else there is
                (folder / "work" / saved_name(notebook)).write_text(as_notebook(notebook), encoding="utf-8")
            job = json.dumps({"notebooks": notebooks, "names": names}).encode()
            out, ended = self.run(folder, job, limit)
            return list(frames(out)), ended, changed_in(self.helpers, folder / "course")

    def run(self, folder, job, limit):
        message = BytesIO()
        wire.send(message, job)
        with self.lock:
            if self.closed:
                return b"", "stopped"
            child = subprocess.Popen(
                [sys.executable, "-P", "-m", "helpers.checks.submission"],
                cwd=folder / "work",
                env=surroundings(folder, self.model),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                **APART,
            )
            self.running.add(child)
        try:
            out, _ = child.communicate(message.getvalue(), timeout=limit)
            return out, f"its process ended ({child.returncode})" if child.returncode else ""
        except subprocess.TimeoutExpired:
            end(child)
            return child.communicate()[0], "not done in time"
        finally:
            end(child)
            with self.lock:
                self.running.discard(child)

    def close(self):
        with self.lock:
            self.closed = True
            for child in self.running:
                end(child)


def surroundings(folder, model):
    """The environment variables of a submission: where things are, and nothing of the teacher's."""
    home = str(folder / "home")
    return {name: os.environ[name] for name in PASSED_ON if name in os.environ} | {
        "PYTHONPATH": str(folder / "course"),
        "PYTHONIOENCODING": "utf-8",
        "COURSE_MODEL": model,
        "COURSE_PROGRESS": str(folder / "progress.json"),
        "OPENBLAS_NUM_THREADS": "1",
    } | dict.fromkeys(("HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP"), home)


def compiled(helpers):
    """{path: bytes} of the helpers, compiled once for all copies."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "helpers")
        shutil.copytree(helpers, copy, ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints"))
        mode = PycInvalidationMode.UNCHECKED_HASH
        compileall.compile_dir(copy, quiet=2, stripdir=folder, invalidation_mode=mode)
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(copy.rglob("*"))
            if path.is_file()
        }


def lay_out(files, folder):
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def changed_in(files, folder):
    """The names of the files in a folder that are not what was laid out, or are gone."""
    changed = []
    for name, data in files.items():
        try:
            if (folder / name).read_bytes() != data:
                changed.append(name)
        except OSError:
            changed.append(name)
    return changed


def frames(data):
    """The messages in what a process wrote; one that is cut short ends it."""
    stream = BytesIO(data)
    while (message := wire.receive(stream)) is not None:
        try:
            answer = json.loads(message)
        except ValueError:
            return
        if isinstance(answer, dict):
            yield answer


def saved_name(notebook):
    """The name under which the last exercise finds a notebook, whatever it was called when handed in."""
    return f"{notebook['numbers'][0]}_{file_name(Path(notebook['file']).stem, 200)}.ipynb"


def as_notebook(notebook):
    code = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [code | {"id": cell, "source": source} for cell, source in notebook["cells"]]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def sentence(file, cell, what):
    return f"{place(file, cell)} {what}."


def unfinished(name, how):
    text = f"✗ {name}     could not be checked\n\n  {how[:1].upper()}{how[1:]}."
    return {"name": name, "state": "unusable", "says": how, "mistakes": [], "message": text, "remarks": []}

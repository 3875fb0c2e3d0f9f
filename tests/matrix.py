"""The tests on every Python, with the oldest and the newest packages, and under odd conditions.

    python3 course.py test --matrix              all of it (hours on a slow machine)
    python3 course.py test --matrix --list       the names of the cells, and which this machine can run
    python3 course.py test --matrix 3.12-oldest kernel-Haswell   these cells alone

A cell is one run of pytest. Environments go into the folder .matrix, one for each Python and choice of
packages, made once; what pytest said is kept beside them. What this machine cannot run is left out with a
word, and nothing is changed outside .matrix and temporary folders. Stopped, the same command goes on: a cell
that has passed runs again when a file of the course has changed, with --again, or when it is named.
"""

import argparse
import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from packaging.specifiers import SpecifierSet
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
import course  # noqa: E402  (it knows the requirements, and where the model is)

HOME = ROOT / ".matrix"
PASSED = HOME / "passed.json"           # the cells that passed, and for which files
MADE = (".git", ".venv", ".matrix", "model", "progress.json*", "__pycache__", ".ipynb_checkpoints",
        ".*_cache", ".hypothesis", "*.egg-info")            # what is not the course but lies in its folder
PYTHONS = ("3.11", "3.12", "3.13")
KERNELS = ("Haswell", "Zen", "SkylakeX", "Sandybridge", "Nehalem", "ARMV8", "NEOVERSEN1")
LOCALES = ("tr_TR.UTF-8", "de_DE.UTF-8", "ja_JP.UTF-8")
RUNS = 20
NOTEBOOKS = ["notebooks", "solutions"]
CAPTURED = {"capture_output": True, "encoding": "utf-8", "errors": "replace"}
ALL_BUT_BROWSER = ["--ignore=tests/browser"]


@dataclass
class Cell:
    """One run of pytest: with what, of what, how often; or why not."""

    name: str
    arguments: list
    python: str = sys.executable
    packages: str = ""                  # "oldest" or "newest", for an environment of its own
    variables: dict = field(default_factory=dict)
    checkout: str = ""                  # "odd path" or "read-only": a copy of this checkout
    runs: int = 1
    cannot: str = ""

    @property
    def log(self):
        return HOME / "said" / f"{self.name}.txt"


# What there is to run


def cells():
    yield Cell("here", [])
    for version in PYTHONS:
        python = find_python(version)
        for packages in ("oldest", "newest"):
            yield Cell(f"{version}-{packages}", ALL_BUT_BROWSER, python or "", packages,
                       cannot="" if python else f"no Python {version} on this machine")
    for n in ("1", "2"):
        few = (os.cpu_count() or 1) < int(n)
        yield Cell(f"threads-{n}", NOTEBOOKS, variables={"OPENBLAS_NUM_THREADS": n},
                   cannot="fewer cores" if few else "")
    for kernel in KERNELS:
        variables = {"OPENBLAS_CORETYPE": kernel}
        yield Cell(f"kernel-{kernel}", NOTEBOOKS, variables=variables, cannot=cannot_use(kernel))
    faster = " ".join(faster_loops())
    yield Cell("plain-loops", NOTEBOOKS, variables={"NPY_DISABLE_CPU_FEATURES": faster},
               cannot="" if faster else "NumPy has but one kind of loops for this processor")
    other = another_locale()
    yield Cell("locale", ALL_BUT_BROWSER, variables={
        "LC_ALL": other, "LANG": other, "LANGUAGE": other[:2], "TZ": "Asia/Kolkata"})
    yield Cell("odd-path", ALL_BUT_BROWSER, checkout="odd path")
    yield Cell("read-only", ALL_BUT_BROWSER, checkout="read-only", cannot=cannot_be_read_only())
    yield Cell(f"{RUNS}-runs", NOTEBOOKS, runs=RUNS)


def find_python(version):
    """The path of a Python of this version, one that starts; or None."""
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    paths = [getattr(sys, "_base_executable", sys.executable), shutil.which(f"python{version}")]
    paths += sorted(home.glob(f"{version}.*/bin/python"), reverse=True)
    commands = [[str(path)] for path in paths if path]
    if shutil.which("py"):                                  # Windows
        commands.append(["py", f"-{version}"])
    ask = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2], sys.executable)"
    for command in commands:
        answer = subprocess.run([*command, "-c", ask], **CAPTURED)
        said, _, path = answer.stdout.strip().partition(" ")
        if answer.returncode == 0 and said == version:
            return path
    return None


def another_locale():
    """The first of LOCALES that this machine has; its messages, commas and sorting differ from English."""
    if not shutil.which("locale"):
        return "C"
    known = subprocess.run(["locale", "-a"], **CAPTURED).stdout.lower().replace("utf8", "utf-8").split()
    return next((name for name in LOCALES if name.lower() in known), "C")


WHICH_KERNEL = """
import ctypes
import numpy as np
np.ones((70, 70)) @ np.ones((70, 70))
library = ctypes.CDLL(np.linalg._umath_linalg.__file__)
for name in ("scipy_openblas_get_corename64_", "openblas_get_corename64_", "openblas_get_corename"):
    if hasattr(library, name):
        function = getattr(library, name)
        function.restype = ctypes.c_char_p
        print(function().decode())
"""


def cannot_use(kernel):
    """Why NumPy's products cannot be those for this kind of processor; "" when they can."""
    env = dict(os.environ, OPENBLAS_CORETYPE=kernel)
    answer = subprocess.run([sys.executable, "-c", WHICH_KERNEL], env=env, **CAPTURED)
    used = answer.stdout.strip()
    if answer.returncode < 0:
        return "this processor cannot"
    if used.lower() == kernel.lower():
        return ""
    return f"OpenBLAS takes {used} instead" if used else "this NumPy does not multiply with OpenBLAS"


def faster_loops():
    """What NumPy's functions, exp for one, use of this processor that not every processor has."""
    inner = getattr(np, "_core", None) or np.core           # _core since NumPy 2
    umath = inner._multiarray_umath
    return [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__.get(name)]


READ_ONLY = ["unshare", "--mount", "sh", "-c",             # then the folder and the command
             'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && cd "$0" && exec "$@"']


def is_root():
    return hasattr(os, "geteuid") and os.geteuid() == 0


def cannot_be_read_only():
    """root may write everywhere: for it the copy has to be mounted read-only."""
    if os.name == "nt":
        return "read-only folders can be written to on Windows"
    if not is_root():
        return ""
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(OSError):
        reads = subprocess.run([*READ_ONLY, folder, "ls"], **CAPTURED).returncode == 0
        writes = subprocess.run([*READ_ONLY, folder, "touch", "file"], **CAPTURED).returncode == 0
        if reads and not writes:
            return ""
    return "root may write everywhere, and nothing can be mounted here"


# Environments


def environment(cell, show):
    """The Python of the cell: this one, or one of its own with the packages that are asked for."""
    if not cell.packages:
        return cell.python
    folder = HOME / cell.name
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    lines = course.requirements(tests=True, model=True)
    core = course.requirements()
    stamp, wanted = folder / "made-of.json", json.dumps([cell.packages, lines])
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return str(python)
    show("making the environment")
    subprocess.run([cell.python, "-m", "venv", "--clear", str(folder)], check=True, capture_output=True)
    if cell.packages == "oldest":
        show("asking for the oldest packages")
        lines = [oldest(str(python), line) if line in core else line for line in lines]
    show("installing the packages")
    env = dict(os.environ, PYTHONIOENCODING="utf-8")
    pip = [str(python), "-m", "pip", "install", "--progress-bar=off", "--only-binary=:all:", *lines]
    made = subprocess.run(pip, env=env, **CAPTURED)
    (folder / "pip.txt").write_text(made.stdout + made.stderr, encoding="utf-8")
    if made.returncode:
        raise RuntimeError("pip: " + (made.stderr.strip().splitlines() or ["?"])[-1])
    stamp.write_text(wanted, encoding="utf-8")
    return str(python)


def oldest(python, line):
    """"numpy>=1.26,<3" -> "numpy==1.26.0": the first version in the range that this Python can install."""
    name, limits = re.match(r"([\w.-]+)(.*)", line).groups()
    ask = [python, "-m", "pip", "install", "--dry-run", "--no-deps", "--only-binary=:all:", f"{name}==0"]
    answer = subprocess.run(ask, **CAPTURED).stderr         # there is no version 0: it tells which there are
    found = re.search(r"from versions: ([^)]+)", answer)
    if not found:
        raise RuntimeError(f"pip knows no versions of {name}")
    return f"{name}=={min(SpecifierSet(limits).filter(map(Version, found.group(1).split(', '))))}"


# Copies of the checkout


@contextlib.contextmanager
def checkout(cell):
    """The folder the cell runs in, and what stands before its command."""
    if not cell.checkout:
        yield ROOT, []
        return
    with tempfile.TemporaryDirectory() as outer:
        copy = Path(outer, "Kurs für mich – 自 注意" if cell.checkout == "odd path" else "course")
        copy.mkdir()
        for path in files():
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, copy / path)
        if cell.checkout == "odd path":
            yield copy, []
        elif is_root():
            yield copy, [*READ_ONLY, str(copy)]
        else:
            set_modes(copy, 0o555, 0o444)
            try:
                yield copy, []
            finally:
                set_modes(copy, 0o755, 0o644)


def files():
    """The course's files, as paths from its folder."""
    made = shutil.ignore_patterns(*MADE)
    for folder, folders, names in os.walk(ROOT):
        left = made(folder, folders + names)
        folders[:] = sorted(set(folders) - left)
        yield from (Path(folder, name).relative_to(ROOT) for name in sorted(set(names) - left))


def state():
    """A hash of all of them."""
    seen = hashlib.sha256()
    for path in files():
        data = (ROOT / path).read_bytes()
        seen.update(f"{path.as_posix()} {len(data)} ".encode() + data)
    return seen.hexdigest()


def set_modes(folder, of_folders, of_files):
    for path in [folder, *folder.rglob("*")]:
        executable = 0o111 if path.stat().st_mode & 0o100 else 0
        path.chmod(of_folders if path.is_dir() else of_files | executable)


# One cell, and all of them

children = set()                        # the runs of pytest that are going on


def run(cell, show, cores=1):
    """(what came of it, seconds), on so many cores."""
    begun = time.monotonic()
    cell.log.unlink(missing_ok=True)
    try:
        python = environment(cell, show)
    except (RuntimeError, OSError, subprocess.CalledProcessError) as error:
        return f"FAILED: no environment, {error}", time.monotonic() - begun
    begun = time.monotonic()
    with checkout(cell) as (folder, before), tempfile.TemporaryDirectory() as progress:
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        env |= {"OPENBLAS_NUM_THREADS": "1", "COURSE_MODEL": str(course.MODEL), "PYTHONPATH": str(folder),
                "COURSE_PROGRESS": str(Path(progress, "progress.json"))} | cell.variables
        if cell.name != "here":
            env.pop("CI", None)             # there are cells without a browser and without PyTorch
        command = [*before, python, "-m", "pytest", "-q", "--color=no", "-p", "no:cacheprovider"]
        command += ["-n", str(cores), "--dist", "loadfile"] if cores > 1 else []
        command += cell.arguments
        for number in range(1, cell.runs + 1):
            often = f"run {number} of {cell.runs}, " if cell.runs > 1 else ""
            status, last = pytest(command, folder, env, cell.log,
                                  lambda news, often=often: show(often + news))
            if status:
                return f"FAILED: {often}{last}", time.monotonic() - begun
    return (f"{cell.runs} times " if cell.runs > 1 else "") + last, time.monotonic() - begun


def pytest(command, folder, env, log, show):
    """pytest's status and its last line; how far it is goes to `show`, all it says to a file."""
    log.parent.mkdir(parents=True, exist_ok=True)
    last = "nothing was said"
    with open(log, "w", encoding="utf-8") as file, subprocess.Popen(
        command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, encoding="utf-8", errors="replace",
    ) as child:
        children.add(child)
        for line in child.stdout:
            file.write(line)
            file.flush()
            last = line.strip() or last
            if share := re.search(r"\[ *(\d+%)\]", line):
                show(share.group(1))
    children.discard(child)
    return child.returncode, last


def failures(cell):
    """The lines of pytest that name what failed."""
    lines = cell.log.read_text(encoding="utf-8").splitlines() if cell.log.exists() else []
    return [line for line in lines if line.startswith(("FAILED ", "ERROR "))]


def passed(now):
    """{name: what came of it} of the cells that have passed on the files as they are."""
    try:
        known = json.loads(PASSED.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known["cells"] if isinstance(known, dict) and known.get("state") == now else {}


class Display:
    """How far a cell is: on one line of a terminal; a line for each news elsewhere, or beside others."""

    def __init__(self, name, place, live):
        self.start, self.place, self.name, self.live = time.monotonic(), place, name, live
        self.shown = 0                  # when

    def show(self, news, now=False):
        seconds = time.monotonic() - self.start
        line = f"{self.place} {self.name}: {news}, {seconds:.0f} s"
        room = shutil.get_terminal_size().columns - 1
        if self.live:
            print("\r" + line[:room].ljust(room), end="\n" if now else "", flush=True)
        elif now or seconds - self.shown > 30:
            self.shown = seconds
            print(line, flush=True)


def run_all(waiting, at_once, done):
    """Run the cells, `at_once` of them at a time; done(cell, what, seconds) after each."""
    live = at_once == 1 and sys.stdout.isatty()
    cores = (os.cpu_count() or 1) // at_once

    def one(number, cell):
        display = Display(cell.name, f"[{number} of {len(waiting)}]", live)
        display.show("begins", now=not live)
        what, seconds = run(cell, display.show, cores)
        display.show(what.strip("= "), now=True)
        return cell, what, seconds

    pool = ThreadPoolExecutor(at_once)
    try:
        for job in as_completed([pool.submit(one, *entry) for entry in enumerate(waiting, 1)]):
            done(*job.result())
    finally:
        pool.shutdown(cancel_futures=True)


def stop(*_):
    for child in list(children):
        child.terminate()
    sys.exit(130)


def parse(arguments, names):
    parser = argparse.ArgumentParser(prog="course.py test --matrix", allow_abbrev=False)
    parser.add_argument("cells", nargs="*", metavar="CELL", help="run these alone")
    parser.add_argument("--list", action="store_true", help="name the cells and run nothing")
    parser.add_argument("--again", action="store_true", help="also run what has passed on these files before")
    parser.add_argument("--at-once", type=int, default=1, metavar="N",
                        help="how many cells run at the same time; they share the cores (1)")
    options = parser.parse_args(arguments)
    if unknown := set(options.cells) - set(names):
        parser.error(f"no cell is called {', '.join(sorted(unknown))}; --list names them")
    if options.at_once < 1:
        parser.error("--at-once needs a number from 1")
    return options


def main(arguments):
    found = {cell.name: cell for cell in cells()}
    options = parse(arguments, found)
    now = state()
    known = passed(now)
    if options.list:
        for name, cell in found.items():
            word = f"left out: {cell.cannot}" if cell.cannot else "passed" if name in known else ""
            print(f"{name:19}{word}".rstrip())
        return 0
    signal.signal(signal.SIGTERM, stop)
    chosen = [found[name] for name in found if name in options.cells or not options.cells]
    before = {} if options.cells or options.again else known
    rows = {cell.name: f"left out: {cell.cannot}" for cell in chosen if cell.cannot} | {
        name: f"passed before: {what}" for name, what in before.items()}

    def done(cell, what, seconds):
        rows[cell.name] = f"{what.strip('= ')}  ({seconds:.0f} s)"
        known.pop(cell.name, None)
        if not what.startswith("FAILED"):
            known[cell.name] = what.strip("= ")
        HOME.mkdir(exist_ok=True)
        PASSED.write_text(json.dumps({"state": now, "cells": known}, indent=1), encoding="utf-8")

    waiting = [cell for cell in chosen if cell.name not in rows]
    run_all(waiting, options.at_once, done)
    print()
    for cell in chosen:
        print(f"{cell.name:19}{rows[cell.name]}")
        if rows[cell.name].startswith("FAILED"):
            for line in failures(cell)[:10]:
                print(f"    {line}")
    good = sum(not rows[cell.name].startswith("FAILED") for cell in waiting)
    print(f"\n{good} of {len(waiting)} cells passed. What pytest said is in {HOME / 'said'}.")
    return 0 if good == len(waiting) else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("\nStopped.")

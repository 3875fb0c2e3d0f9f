"""Nothing assumes one operating system: what can be seen in the sources, and what can be played here."""

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.checks import worker

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("helpers", "bench", "classroom", "tests")
SOURCES = [path for part in PARTS for path in sorted((ROOT / part).rglob("*.py"))]
SOURCES += [ROOT / "course.py", ROOT / "conftest.py"]
PRODUCT = [path for path in SOURCES if path.relative_to(ROOT).parts[0] != "tests"]
NOT_EVERYWHERE = ["SIGALRM", "setitimer", "os.fork(", "os.getuid", "os.uname", '"/tmp', '"/dev', "shell=True",
                  "os.system(", "import fcntl", "import resource", "import pwd"]
GUARDED = {
    "course.py": {"import fcntl"},          # the other branch is msvcrt
    "worker.py": {"import resource"},       # it does without where there is none
}


def name_of(call):
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def without_encoding(source):
    """Lines that read or write text, or what a program says, and leave the encoding to the system."""
    for call in ast.walk(ast.parse(source)):
        if not isinstance(call, ast.Call):
            continue
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        name, values = name_of(call), [a.value for a in call.args if isinstance(a, ast.Constant)]
        plain = isinstance(call.func, ast.Name)
        own_open = plain and name == "open"
        said = "encoding" in given or "utf-8" in values
        if not plain and name in ("read_text", "write_text") and not said:
            yield call.lineno
        if own_open and not said and not any("b" in str(value) for value in values[-1:]):
            yield call.lineno
        if any(getattr(given.get(name), "value", None) is True for name in ("text", "universal_newlines")):
            yield call.lineno


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_encoding_of_every_text_is_said(path):
    assert list(without_encoding(path.read_text(encoding="utf-8"))) == []


def test_an_encoding_that_is_not_said_is_found():
    found = ["p.read_text()", "p.write_text(x)", "open(p)", "open(p, 'w')", "subprocess.run(c, text=True)"]
    for line in found:
        assert list(without_encoding(line)) == [1], line
    for line in ("p.read_text('utf-8')", "open(p, 'rb')", "open(p, 'w', encoding='utf-8')", "zip.open(name)",
                 "made(text='read')"):
        assert list(without_encoding(line)) == [], line


@pytest.mark.parametrize("path", PRODUCT, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_called_that_only_some_systems_have(path):
    source = path.read_text(encoding="utf-8")
    code = re.sub(r"#.*", "", source)
    found = {name for name in NOT_EVERYWHERE if name in code}
    assert found - GUARDED.get(path.name, set()) == set()


def test_the_other_branch_is_there():
    assert "import msvcrt" in (ROOT / "course.py").read_text(encoding="utf-8")


def test_checks_do_without_the_limits_that_windows_does_not_have(monkeypatch):
    monkeypatch.setitem(sys.modules, "resource", None)      # its import fails
    worker.limit_memory()
    worker.limit_time()


# Names and line ends, as another system's disks have them

FILES = [path.relative_to(ROOT) for path in [
    *SOURCES, *(ROOT / "notebooks").glob("*.ipynb"), *(ROOT / "tests" / "data").iterdir()]]
RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))}


def test_no_two_files_have_names_that_differ_in_case_alone():
    assert len({path.as_posix().lower() for path in FILES}) == len(FILES)


def test_no_name_is_one_that_windows_refuses():
    for path in FILES:
        for part in path.parts:
            assert part.partition(".")[0].lower() not in RESERVED, path
            assert not re.search(r'[<>:"|?*\\]|[ .]$', part), path


def test_every_source_ends_its_lines_in_one_way():
    assert "* text=auto eol=lf" in (ROOT / ".gitattributes").read_text(encoding="utf-8")
    assert [path for path in SOURCES if b"\r" in path.read_bytes()] == []


# Consoles


def console(encoding):
    """A machine whose programs write in an old encoding and know no UTF-8 mode."""
    return dict(os.environ, PYTHONIOENCODING=encoding, PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", LC_ALL="C")


@pytest.mark.parametrize("encoding", ["cp1252", "cp437", "ascii"])
@pytest.mark.parametrize("command", [["progress"], ["--help"], ["exercises", "--check"]], ids=" ".join)
def test_commands_can_be_read_on_old_consoles(command, encoding):
    run = subprocess.run([sys.executable, str(ROOT / "course.py"), *command], env=console(encoding),
                         capture_output=True, encoding=encoding)
    assert "Error" not in run.stderr and run.stdout and run.returncode in (0, 1), run.stderr


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_a_folder_that_the_console_cannot_write_is_no_accident(encoding, tmp_path):
    folder = tmp_path / "自注意 – é"
    (folder / ".venv").mkdir(parents=True)
    (folder / ".venv" / "thesis.txt").touch()
    for name in ("course.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    (folder / "requirements.txt").write_text("not-there>=7\n", encoding="utf-8")
    run = subprocess.run([sys.executable, str(folder / "course.py"), "progress"], env=console(encoding),
                         capture_output=True, encoding=encoding)
    assert run.returncode == 1 and "is not a Python environment" in run.stderr
    assert "Traceback" not in run.stderr


# Windows

PLAYED = """
# This Python plays Windows: what only POSIX systems have is gone, and the system has another name.
import asyncio, concurrent.futures.thread, logging, multiprocessing, os, platform, signal, subprocess, sys
import sysconfig, tempfile, types
import cloudpickle, numpy, psutil       # they ask for the system's name when they are imported
platform.uname(), sysconfig.get_config_vars()
for module, names in (
    (os, "fork forkpty killpg getpgid getpgrp setsid setpgid getuid geteuid getgid uname register_at_fork"),
    (signal, "SIGALRM SIGHUP SIGQUIT SIGUSR1 SIGCHLD SIGPIPE alarm setitimer pause pthread_kill"),
):
    for name in names.split():
        vars(module).pop(name, None)
for name in ("fcntl", "resource", "pwd", "grp", "termios", "pty"):
    sys.modules[name] = None
sys.modules["msvcrt"] = types.SimpleNamespace(setmode=lambda number, mode: None)
os.O_BINARY = subprocess.CREATE_NEW_PROCESS_GROUP = subprocess.CREATE_NO_WINDOW = 0
sys.platform = "win32"
"""
JUDGED = """
import os
from helpers.checks import process, run

def right(Q, K):
    return Q @ K.T

def loops(Q, K):
    while True:
        pass

def ends(Q, K):
    os._exit(7)

for function in (right, ends, right):
    print(run("scores", function).message.partition("seconds")[0])
process.CASE_LIMIT = 1
print(run("scores", loops).message)
"""


def test_checks_judge_and_stop_a_function_with_what_windows_has(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(PLAYED, encoding="utf-8")
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([str(tmp_path), str(ROOT)]), PYTHONIOENCODING="utf-8")
    run = subprocess.run([sys.executable, "-c", JUDGED], env=env, cwd=tmp_path, timeout=300,
                         capture_output=True, encoding="utf-8")
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("✓ scores") == 2, run.stdout
    assert "exit status 7" in run.stdout and "does not come to an end" in run.stdout


@pytest.fixture
def course():
    spec = importlib.util.spec_from_file_location("course_played", ROOT / "course.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("system", "place"), [("nt", "Scripts/python.exe"), ("posix", "bin/python")])
def test_the_python_of_the_environment_is_where_the_system_has_it(course, monkeypatch, system, place):
    class System:
        name = system

        def __getattr__(self, name):
            return getattr(os, name)

    monkeypatch.setattr(course, "os", System())
    assert course.venv_python() == course.VENV / place


def test_locks_work_by_msvcrt(course, monkeypatch, tmp_path):
    taken = set()

    class Msvcrt:
        LK_NBLCK = 2

        def locking(self, number, mode, n):
            assert (mode, n) == (2, 1)
            if taken:
                raise PermissionError(13, "held by another")
            taken.add(number)

    class Windows:
        name = "nt"

        def __getattr__(self, name):
            return getattr(os, name)

    monkeypatch.setitem(sys.modules, "msvcrt", Msvcrt())
    monkeypatch.setattr(course, "os", Windows())
    with open(tmp_path / "lock", "a", encoding="utf-8") as file:
        assert course.locked(file) and not course.locked(file)

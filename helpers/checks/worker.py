"""The process in which a reader's function runs, so that nothing it does can hurt the notebook.

`process` starts it as `python -m helpers.checks.worker`. It reads jobs from its standard input and answers
on what was its standard output; both are moved out of reach, so that prints, input() and even os.write(1,
…) cannot get in between. It ends when its input ends, which is when the notebook's kernel is gone.
"""

import builtins
import contextlib
import io
import os
import pickle
import queue
import random
import sys
import threading

import cloudpickle  # noqa: F401  (a reader's function arrives as its pickle: have it loaded before the first job)
import numpy as np

from helpers.checks import borrowed, wire
from helpers.checks.family import end_this_one
from helpers.checks.observe import Outcome, describe, observe
from helpers.checks.pristine import MATHS, Snapshot

MEMORY_LIMIT = 3 * 2**30  # bytes of address space
CPU_LIMIT = 120  # seconds of computing for one job, should the notebook be gone and the function loop
STARTING = {  # the audit events of Python when a function starts another process
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.spawn",
    "os.startfile",
    "os.system",
    "subprocess.Popen",
    "_winapi.CreateProcess",
}
STARTED = []  # those that have come


def main():
    jobs_in, answers = private_streams()
    limit_memory()
    jobs = queue.Queue()
    threading.Thread(target=read_jobs, args=(jobs_in, jobs), daemon=True).start()
    snapshot = Snapshot((*MATHS, "random", "operator", "functools"))
    sys.addaudithook(lambda event, _: event in STARTING and STARTED.append(event))
    wire.send(answers, b'{"ready": true}')
    while True:
        work(jobs.get(), answers, snapshot)


def private_streams():
    """Take the two pipes for ourselves and leave /dev/null in their place."""
    streams = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    if sys.platform == "win32":
        import msvcrt

        for stream in streams:
            msvcrt.setmode(stream.fileno(), os.O_BINARY)
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    sys.stdin, sys.stdout, sys.stderr = io.StringIO(), io.StringIO(), io.StringIO()
    builtins.input = no_input
    return streams


class NobodyThere(Exception):
    """What input() raises here."""


def no_input(prompt="", /):
    raise NobodyThere("input() waits for somebody to type, and in a check nobody does")


def limit_memory():
    """An absurd allocation fails with MemoryError and does not take the machine down (where that can be
    had)."""
    try:
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        limit = MEMORY_LIMIT if hard == resource.RLIM_INFINITY else min(MEMORY_LIMIT, hard)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    except (ImportError, OSError, ValueError):
        pass  # Windows has no such limits, macOS not all of them


def limit_time():
    try:
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        limit = int(used.ru_utime + used.ru_stime) + CPU_LIMIT
        resource.setrlimit(
            resource.RLIMIT_CPU, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard)
        )
    except (ImportError, OSError, ValueError):
        pass


def read_jobs(stream, jobs):
    while (message := wire.receive(stream)) is not None:
        jobs.put(message)
    end_this_one()  # the notebook is gone


def has_child():
    """Whether there is a process that this one has started: some libraries do so without an audit event."""
    try:
        return hasattr(os, "WNOHANG") and os.waitpid(-1, os.WNOHANG) is not None
    except ChildProcessError:
        return False


def work(message, answers, snapshot):
    """Run one job: every case in turn, an answer for each as soon as it is there."""
    job = pickle.loads(message)
    threads = threading.active_count()
    limit_time()
    sys.path[:] = [*dict.fromkeys([*sys.path, *job["path"]])]
    sys.setrecursionlimit(1000)
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002  (for readers who use it)
    with contextlib.suppress(OSError, TypeError):  # the folder is gone
        os.chdir(job["folder"])
    try:
        function = pickle.loads(job["function"])
    except BaseException as err:
        wire.send(answers, wire.pack(Outcome(error=describe(err)), loaded=False))
        return
    wire.send(answers, wire.pack(Outcome(), loaded=True))
    home, replaced, originals = os.getpid(), set(), dict(vars(builtins))
    own = borrowed.found(job["withheld"])

    def put_back(*arguments, **options):
        """The function, with NumPy and Python mended behind it before anything else is done."""
        try:
            with borrowed.kept_back(own):
                return function(*arguments, **options)
        finally:
            vars(builtins).update(originals)
            if not snapshot.looks_untouched():
                replaced.update(snapshot.put_back())

    for index, (frozen, call) in enumerate(job["cases"]):
        outcome = observe(put_back, frozen, call)
        if os.getpid() != home:  # a copy of this process, made by os.fork
            os._exit(0)
        wire.send(answers, wire.pack(outcome, case=index))
    replaced.update(snapshot.put_back())  # what looked untouched
    soiled = bool(replaced or STARTED or sys.gettrace()) or threading.active_count() > threads or has_child()
    wire.send(answers, wire.pack(Outcome(), replaced=sorted(replaced), soiled=soiled))


if __name__ == "__main__":
    main()

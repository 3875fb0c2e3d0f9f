"""The notebook's side of the worker process: start it, give it jobs, stop it when it does not answer.

One worker is kept warm. It is replaced when a function did not come back, when it took the process down, and
when it left something behind: NumPy or Python changed, a thread, a program that it has started.
"""

import atexit
import contextlib
import functools
import io
import os
import pickle
import queue
import re
import subprocess
import sys
import threading
import types
from pathlib import Path
from time import monotonic

from helpers.checks import wire
from helpers.checks.family import APART, end
from helpers.checks.observe import Outcome, freeze, is_readers
from helpers.checks.source import codes, enclosed, own_functions

MODULE = "helpers.checks.worker"
START_LIMIT = 60  # seconds for Python and NumPy to start, on a machine that has much to do
LOAD_LIMIT = 30  # seconds for the function and the packages it imports to arrive
CASE_LIMIT = 5  # seconds for one call
TOTAL_LIMIT = 20  # seconds for all calls together
LARGEST = 50_000_000  # bytes of a function with all that it uses


class CannotCarry(Exception):
    """The function cannot be taken into another process; the message says why in a sentence."""


class Worker:
    """One worker process and the thread that listens to it."""

    def __init__(self):
        root = Path(__file__).resolve().parents[2]
        env = os.environ | {
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")])),
        }
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", MODULE],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            **APART,
        )
        self.messages = queue.Queue()
        self.ready = False
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        with self.process.stdout as stream:
            while (message := wire.receive(stream)) is not None:
                self.messages.put(message)
        self.messages.put(None)

    def answer(self, seconds):
        """The next message; None when the process has ended; queue.Empty after too long."""
        return self.messages.get(timeout=seconds)

    def wait_until_ready(self):
        try:
            started = self.ready or self.answer(START_LIMIT) is not None
        except queue.Empty:
            raise RuntimeError(f"the process that runs the checks did not start in {START_LIMIT} s") from None
        if not started:
            self.stop()
            raise RuntimeError(
                f"the process that runs the checks ended at once ({how_it_ended(self.process)}); "
                f"`python -m {MODULE}` in a terminal shows why"
            )
        self.ready = True

    def stop(self):
        """End it, and whatever it has started, at once. Safe to call twice."""
        end(self.process)
        self.process.wait()
        try:
            self.process.stdin.close()
        except OSError:  # a job that was never read
            pass


_lock = threading.RLock()
_worker = None


def warm_up():
    """Start the worker now, without waiting for it, so that the first check is quick."""
    global _worker
    with _lock:
        if _worker is not None and _worker.process.poll() is not None:
            close()
        if _worker is None:
            _worker = Worker()
    return _worker


@atexit.register
def close():
    """End the worker, if there is one."""
    global _worker
    with _lock:
        if _worker is not None:
            _worker.stop()
        _worker = None


def run_apart(function, cases, limit=None, total=None, withheld=()):
    """What the function does on each case, as outcomes; fewer than cases when it did not come back from one.

    limit, total : seconds for one call, and for all of them; CASE_LIMIT and TOTAL_LIMIT when not given.
    withheld : names of the course's functions that it may not call (`borrowed`).
    Returns (outcomes, names the function replaced in NumPy and Python).  Raises CannotCarry.
    """
    limit, total = limit or CASE_LIMIT, total or TOTAL_LIMIT
    carried = carry(function)
    if len(carried) > LARGEST:
        raise CannotCarry(too_large(function))
    frozen = [(freeze(case.arguments, case.options), case.call) for case in cases]
    with _lock:
        for last_try in (False, True):
            worker = warm_up()
            try:
                worker.wait_until_ready()
                outcomes = _run(worker, carried, frozen, limit, total, withheld)
            except BaseException:  # ■ in the notebook, too
                close()
                raise
            if outcomes is not None:
                return outcomes
            close()  # it died before it had seen the function: a new one
            if last_try:
                raise RuntimeError("the process that runs the checks ends before it has begun")


def _run(worker, carried, frozen, case_limit, total, withheld):
    job = {"function": carried, "cases": frozen, "path": sys.path, "folder": folder(), "withheld": withheld}
    try:
        wire.send(worker.process.stdin, pickle.dumps(job))
    except OSError:
        return None
    outcomes, replaced, end = [], [], None
    while True:
        limit = LOAD_LIMIT if end is None else min(case_limit, max(end - monotonic(), 0.01))
        try:
            message = worker.answer(limit)
        except queue.Empty:
            outcomes.append(Outcome(ended="time", late=limit < case_limit))
            break
        if message is None:
            if end is None:
                return None
            outcomes.append(Outcome(ended=how_it_ended(worker.process)))
            break
        outcome, more = wire.unpack(message)
        if "loaded" in more:
            end = monotonic() + total
            if not more["loaded"]:
                raise CannotCarry(
                    f"it could not be taken into the process that checks it: "
                    f"{outcome.error.type}: {outcome.error.text}"
                )
        elif "soiled" in more:
            replaced = more["replaced"]
            if not more["soiled"]:
                return outcomes, replaced
            break
        elif more["case"] == len(outcomes):
            outcomes.append(outcome)
    close()
    warm_up()
    return outcomes, replaced


def folder():
    try:
        return os.getcwd()
    except OSError:  # somebody has removed it
        return None


def how_it_ended(process):
    """ "exit 3" or "signal 11"."""
    try:
        code = process.wait(5)
    except subprocess.TimeoutExpired:
        return "closed"
    return f"signal {-code}" if code < 0 else f"exit {code}"


def carry(function):
    """The function as bytes, with the reader's own functions and variables that it uses."""
    import cloudpickle

    own = [module for module in list(sys.modules.values()) if by_value(module)]
    for module in own:
        cloudpickle.register_pickle_by_value(module)
    try:
        return pickled(function)
    except RecursionError:
        raise CannotCarry("it refers to itself in a way that cannot be copied") from None
    except Exception as err:
        raise CannotCarry(
            culprit(function, cloudpickle)
            or "it cannot be copied into the process that checks "
            f"it ({re.sub(' at 0x[0-9a-fA-F]+', '', str(err))})"
        ) from None
    finally:
        for module in own:
            cloudpickle.unregister_pickle_by_value(module)


def pickled(function):
    """What functools.cache was put around is carried without it: that changes nothing in an answer."""
    import cloudpickle

    class Pickler(cloudpickle.Pickler):
        def reducer_override(self, thing):
            if isinstance(thing, functools._lru_cache_wrapper):
                return uncached, (thing.__wrapped__,)
            return super().reducer_override(thing)

    with io.BytesIO() as file:
        Pickler(file).dump(function)
        return file.getvalue()


def uncached(function):
    return function


def too_large(function):
    """Which of the reader's variables makes the function too large to be copied, as a sentence."""
    import cloudpickle

    sizes = {}
    for own in own_functions(function).values():
        for name, value in variables(own).items():
            if not isinstance(value, types.FunctionType):
                with contextlib.suppress(Exception):
                    sizes[name] = len(cloudpickle.dumps(value))
    if not sizes:
        return "it is too large to be copied into the process that checks it"
    name = max(sizes, key=sizes.get)
    return (
        f"it uses your variable {name} ({sizes[name] / 1e6:.0f} MB), which is too large to be copied into "
        "the process that checks it. Let the function work on its arguments alone"
    )


def variables(own):
    """{name: value} of what a function uses from outside."""
    used = {
        name: own.__globals__[name]
        for code in codes(own.__code__)
        for name in code.co_names
        if name in own.__globals__
    }
    return used | enclosed(own)


def by_value(module):
    """Whether this is a file of the reader's own, which may have changed since the worker first saw it."""
    file = getattr(module, "__file__", None)
    name = getattr(module, "__name__", "")
    return (
        isinstance(file, str)
        and is_readers(file)  # so few are that the rest is hardly asked
        and os.path.isabs(file)  # what was imported from a file; some libraries' made-up modules are not
        and name != "__main__"
        and sys.modules.get(name) is module
    )


def culprit(function, cloudpickle):
    """Which of the reader's variables cannot be copied, as a sentence; "" when that cannot be told."""
    for own in own_functions(function).values():
        for name, value in variables(own).items():
            try:
                cloudpickle.dumps(value)
            except Exception:
                if not isinstance(value, types.FunctionType):
                    return (
                        f"it uses your variable {name} (a {type(value).__name__}), which cannot be copied "
                        "into the process that checks it. Let the function work on its arguments alone"
                    )
    return ""


if "ipykernel" in sys.modules:  # in a notebook: have it ready when the first check comes
    with contextlib.suppress(OSError):  # the check itself will say it
        warm_up()

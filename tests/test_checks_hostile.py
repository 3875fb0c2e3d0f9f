"""Functions that misbehave: each gets a clear verdict, the kernel lives, and the next check works."""

import functools
import linecache
import os
import signal
import subprocess
import sys
import textwrap
import time
import types
from pathlib import Path

import numpy as np
import psutil
import pytest

from helpers.checks import judge, process, run, verdict_on

ROOT = Path(__file__).parents[1]
POSIX = pytest.mark.skipif(os.name != "posix", reason="signals and fork are not on Windows")
GROUPS = pytest.mark.skipif(os.name != "posix", reason="Windows forgets who started what when that has ended")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(judge, "STRICT", True)
    monkeypatch.setattr(process, "CASE_LIMIT", 2.5)


def check(code, name="scores"):
    """The report on a function given as source, and a proof that the next check works."""
    code = textwrap.dedent(code).lstrip("\n")
    linecache.cache["<cell>"] = (len(code), None, code.splitlines(True), "<cell>")
    scope = {"__name__": "__main__"}
    exec(compile(code, "<cell>", "exec"), scope)
    report = run(name, scope[name])
    assert run("scores", lambda Q, K: Q @ K.T).passed
    assert "Traceback" not in report.message and len(report.message) < 3000
    return report


WRONG = {
    "endless loop": ("""
        def scores(Q, K):
            while True:
                pass
        """, "does not come to an end"),
    "endless loop that catches everything": ("""
        def scores(Q, K):
            while True:
                try:
                    while True: pass
                except BaseException: pass
        """, "does not come to an end"),
    "endless loop in NumPy": ("""
        import numpy as np
        def scores(Q, K):
            return np.sort(np.random.rand(300_000_000))
        """, "does not come to an end"),
    "endless loop on one input": ("""
        def scores(Q, K):
            while len(Q) == 1: pass
            return Q @ K.T
        """, "right on 3 of 9 inputs (5 not tried)\\n\\n  1 query, 1 key, d_k = 4"),
    "recursion": ("def scores(Q, K): return scores(Q, K)", "RecursionError"),
    "recursion that kills Python": ("""
        import ctypes
        def scores(Q, K):
            ctypes.string_at(0)
        """, "crashed Python itself" if os.name == "posix" else ""),
    "exception": ("""
        def scores(Q, K):
            n = len(Q)
            return Q[n] @ K.T
        """, "in line 3 of scores:  return Q[n] @ K.T\\n  There Q is (3, 3) and K is (3, 3)."),
    "exception in a helper": ("""
        def dots(a, b):
            return a @ b
        def scores(Q, K):
            return dots(Q, K)
        """, "in line 2 of dots, which scores calls"),
    "exception that cannot be shown": ("""
        class Odd(Exception):
            def __str__(self): raise ValueError
        def scores(Q, K): raise Odd
        """, "Odd"),
    "exception as long as a book": ("def scores(Q, K): raise ValueError('x' * 10**7)", "ValueError: xxx"),
    "a name nobody defined": ("def scores(Q, K): return np.dot(Q, K.T)", "has its cell been run?"),
    "nothing returned": ("""
        def scores(Q, K):
            S = Q @ K.T
        """, "Is there a return at its end?"),
    "a string": ("def scores(Q, K): return 'S'", "gave back a string"),
    "a dict": ("def scores(Q, K): return {'S': Q @ K.T}", "gave back a dict"),
    "a function": ("def scores(Q, K): return (Q @ K.T).copy", "Were its brackets forgotten?"),
    "three dots": ("def scores(Q, K):\n    S = Q @ K.T\n    return ...", "three dots"),
    "a ragged list": ("def scores(Q, K): return [[1, 2], [3]]", "rows differ in length"),
    "an object array": ("def scores(Q, K): return (Q @ K.T).astype(object)", "dtype object"),
    "an array with None": ("""
        import numpy as np
        def scores(Q, K): return np.array([[None] * len(K)] * len(Q))
        """, "holds None"),
    "strings in an array": ("def scores(Q, K): return (Q @ K.T).astype(str)", "strings"),
    "complex numbers": ("def scores(Q, K): return Q @ K.T + 0j", "complex"),
    "a masked array": ("""
        import numpy as np
        def scores(Q, K): return np.ma.masked_less(Q @ K.T, 0)
        """, "masked array"),
    "far too much": ("""
        import numpy as np
        def scores(Q, K): return np.zeros((3000, 3000))
        """, "far smaller"),
    "a generator": ("""
        def scores(Q, K):
            for q in Q: yield K @ q
        """, "is there a yield"),
    "async": ("async def scores(Q, K): return Q @ K.T", "async def"),
    "changed input": ("""
        def scores(Q, K):
            S = Q @ K.T
            K[0] = 0
            return S
        """, "changes K in place"),
    "changed shape of an input": ("""
        def scores(Q, K):
            S = Q @ K.T
            Q.shape = (-1, 1, 1)
            return S
        """, "changes Q in place"),
    "flood of output": ("""
        def scores(Q, K):
            for _ in range(100_000): print("x" * 100)
            return Q + 1
        """, "more lines"),
    "strange letters printed": (r"""
        def scores(Q, K):
            print("\ud800 \x00 \x1b[31m <script>")
            return Q
        """, "It printed"),
    "exit": ("import sys\ndef scores(Q, K): sys.exit('bye')", "It calls exit()"),
    "hard exit": ("import os\ndef scores(Q, K): os._exit(3)", "exit status 3"),
    "KeyboardInterrupt": ("def scores(Q, K): raise KeyboardInterrupt", "KeyboardInterrupt"),
    "input": ("def scores(Q, K): return Q @ float(input('scale? '))", "waits for somebody to type"),
    "huge array": ("import numpy as np\ndef scores(Q, K): return np.ones((10**6, 10**6))",
                   "more memory than there is"),
    "closed pipes": ("""
        import os
        def scores(Q, K):
            os.closerange(3, 60)
            return Q @ K.T
        """, "ended"),
}


@pytest.mark.parametrize(("code", "says"), WRONG.values(), ids=WRONG)
def test_gets_a_clear_verdict(code, says):
    report = check(code)
    assert not report.passed and report.state == "wrong"
    assert says.replace("\\n", "\n") in report.message
    assert report.mistakes == () or "@ b" in code, "a crash of its own must not be taken for a known mistake"


RIGHT = {
    "flood of output": "def scores(Q, K):\n    print('x' * 10**7)\n    return Q @ K.T",
    "flood past Python": """
        import os
        def scores(Q, K):
            os.write(1, b"x" * 10**6); os.write(2, b"y" * 10**6)
            return Q @ K.T
        """,
    "reading standard input": "import sys\ndef scores(Q, K):\n    sys.stdin.read()\n    return Q @ K.T",
    "streams thrown away": """
        import sys
        def scores(Q, K):
            sys.stdout = sys.stderr = None
            return Q @ K.T
        """,
    "a thread that ends the process later": """
        import os, threading, time
        def scores(Q, K):
            threading.Thread(target=lambda: (time.sleep(0.2), os._exit(1))).start()
            return Q @ K.T
        """,
    "an object with a call": """
        class Scores:
            def __call__(self, Q, K): return Q @ K.T
        scores = Scores()
        """,
    "NumPy set to raise": """
        import numpy as np
        def scores(Q, K):
            np.seterr(all="raise")
            return Q @ K.T
        """,
    "built-ins thrown away": """
        import builtins
        def scores(Q, K):
            builtins.len = builtins.isinstance = None
            return Q @ K.T
        """,
}


@pytest.mark.parametrize("code", RIGHT.values(), ids=RIGHT)
def test_does_no_harm_and_is_right(code):
    report = check(code)
    assert report.passed and report.remarks == [], report.message


def test_a_replaced_function_of_numpy_stays_in_the_worker():
    report = check("""
        import numpy as np
        def scores(Q, K):
            np.exp = np.matmul = np.asarray = None
            return Q @ K.T
        """)
    assert report.passed
    assert "it replaces numpy.asarray, numpy.exp, numpy.matmul for everybody" in report.message


@pytest.mark.parametrize("by", ["None", "np.arange(3.0)", "unittest.mock.ANY", "float(repr(np.euler_gamma))"])
def test_whatever_stands_in_for_a_name_of_numpy_is_found(by):
    report = check(f"""
        import unittest.mock
        import numpy as np
        def scores(Q, K):
            np.euler_gamma = {by}
            return Q @ K.T
        """)
    assert report.passed and "it replaces numpy.euler_gamma for everybody" in report.message


def test_numpy_is_mended_between_two_draws():
    report = check("""
        import numpy as np
        def sample_next(logits, rng, temperature=1.0, top_k=None, top_p=None):
            assert np.bincount is not None and np.euler_gamma < 1
            np.bincount, np.euler_gamma, np.of_my_own = None, np.arange(3.0), 1
            return 0
        """, "sample_next")
    assert "an assert does not hold" not in report.message and "came in 100.0 %" in report.message


def test_numpy_replaced_in_the_notebook_changes_no_verdict(monkeypatch):
    import numpy as np
    mine = np.exp2
    monkeypatch.setattr(np, "exp", mine)

    def softmax(z):
        e = np.exp(z - z.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)
    report = run("softmax", softmax)
    assert np.exp is mine, "the notebook's own choice is left alone"
    assert report.passed and any("numpy.exp has been replaced" in remark for remark in report.remarks)


@pytest.mark.parametrize(("code", "says"), [
    ("def scores(Q): return Q", "called with 2 arguments (Q, K); yours takes (Q)"),
    ("def scores(Q, K, V): return Q", "yours takes (Q, K, V)"),
    ("import threading\nlock = threading.Lock()\ndef scores(Q, K):\n    with lock: return Q @ K.T",
     "it uses your variable lock"),
    ("def outer(lines):\n    def scores(Q, K): return next(lines)\n    return scores\n"
     "scores = outer(line for line in 'abc')", "it uses your variable lines (a generator)"),
    ("import threading\ndef scores(Q, K): return Q @ K.T\nscores.lock = threading.Lock()",
     "cannot be copied"),
    ("scores = 3", "check needs the function itself"),
    ("scores = 'scores'", "not its name in quotes"),
    ("scores = None", "not what a call gives back (None)"),
    ("import numpy as np\nscores = np.ones(3)", "not what a call gives back (an array)"),
])
def test_what_cannot_be_checked_gets_a_sentence(code, says):
    report = check(code)
    assert report.state == "unusable" and not report.passed
    assert says in report.message and "0x" not in report.message


def test_a_cache_around_a_function_changes_nothing():
    @functools.cache
    def attention_flops(n, d_model, n_heads):
        return 8 * int(n) * int(d_model)**2 + 4 * int(n)**2 * int(d_model)

    @functools.lru_cache(maxsize=8)
    def root(n):
        return n**0.5

    def scaled_scores(Q, K):
        return Q @ K.T / root(Q.shape[1])
    assert run("attention_flops", attention_flops).passed
    assert run("scaled_scores", scaled_scores).passed


def test_a_wrong_function_with_a_cache_is_told_by_its_own_line():
    @functools.cache
    def causal_mask(n_q, n_k=None):
        raise KeyError("gone")
    assert 'in line 3 of causal_mask:  raise KeyError("gone")' in run("causal_mask", causal_mask).message


def test_a_variable_that_is_too_large_to_be_copied_is_named():
    large = np.zeros(8_000_000)

    def softmax(z):
        return large[0] + z
    (says,) = run("softmax", softmax).facts
    assert "it uses your variable large (64 MB), which is too large to be copied" in says


def test_slow_is_not_taken_for_endless(monkeypatch):
    """It is the time for all calls together that has run out."""
    monkeypatch.setattr(process, "TOTAL_LIMIT", 1.0)

    def softmax(z):
        time.sleep(0.3)
        e = np.exp(z - z.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)
    report = run("softmax", softmax)
    assert not report.passed and "not tried" in report.summary
    assert "the time ran out that all calls together have" in report.message
    assert "far too slow" in report.message
    assert "does not come to an end" not in report.message


def test_an_object_that_cannot_be_looked_at_gets_a_sentence():
    class Odd:
        def __getattr__(self, name):
            raise RuntimeError(name)

        def __call__(self, z):
            return z
    softmax = Odd()
    for report in (run("softmax", softmax), verdict_on(softmax, sys._getframe())):
        assert "reading an attribute of it raises RuntimeError" in report.message


def test_an_optional_argument_that_is_missing_gets_a_sentence():
    report = check("def single_head(X, W_q, W_k, W_v): return X", "single_head")
    assert report.state == "unusable" and "optional argument causal" in report.message


@pytest.mark.parametrize("body", ["raise NotImplementedError  # your code here", "...", "pass", "return None",
                                  "'''Only a docstring.'''", "'''Doc.'''\n    raise NotImplementedError()"])
def test_a_stub_is_not_written_yet(body):
    report = check(f"def scores(Q, K):\n    {body}")
    assert report.state == "not written" and report.message == "○ scores     not written yet"


def test_a_forgotten_stub_line_is_pointed_out():
    report = check("def scores(Q, K):\n    S = Q @ K.T\n    raise NotImplementedError  # your code here")
    assert "raise NotImplementedError is still there" in report.message


@POSIX
def test_a_fork_goes_no_further_and_leaves_nothing_behind(tmp_path):
    calls = tmp_path / "calls"
    report = check(f"""
        import os
        def scores(Q, K):
            with open({str(calls)!r}, "a") as file:
                file.write("x")
            os.fork()
            return Q @ K.T
        """)
    time.sleep(0.5)
    assert report.passed
    assert calls.read_text(encoding="utf-8") == 9 * "x", "the copies did not run the other inputs"
    listed = subprocess.run(["ps", "-A", "-o", "pgid=,args="], capture_output=True, encoding="utf-8").stdout
    group = [line for line in listed.splitlines() if line.split()[0] == str(process.warm_up().process.pid)]
    assert len(group) == 1, group


def python(code, **options):
    """A process like a kernel, that uses the checks."""
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], cwd=ROOT, encoding="utf-8",
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


LOOPING = """
    import sys
    from helpers.checks import process, run
    worker = process.warm_up()
    worker.wait_until_ready()
    print(worker.process.pid, flush=True)
    process.CASE_LIMIT = process.TOTAL_LIMIT = 60

    def scores(Q, K):
        while True: pass
    try:
        run("scores", scores)
    except KeyboardInterrupt:
        print("stopped", run("scores", lambda Q, K: Q @ K.T).passed, flush=True)
    """


def alive(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def gone(pid, seconds=10):
    end = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.05)
    return not alive(pid)


@POSIX
def test_interrupting_the_kernel_stops_the_function_and_the_next_check_works():
    kernel = python(LOOPING)
    worker = int(kernel.stdout.readline())
    time.sleep(1)
    kernel.send_signal(signal.SIGINT)
    out, err = kernel.communicate(timeout=60)
    assert out.strip() == "stopped True", err
    assert gone(worker)


@POSIX
def test_the_worker_ends_when_the_kernel_is_killed_in_the_middle_of_a_loop():
    kernel = python(LOOPING)
    worker = int(kernel.stdout.readline())
    time.sleep(1)
    kernel.kill()
    kernel.communicate(timeout=30)
    assert gone(worker)


# A program that a function starts, in several ways; `pids` is a file that it writes its number to.
SLEEP = "import os, sys, time; print(os.getpid(), file=open(sys.argv[1], 'a'), flush=True); time.sleep(60)"
PROGRAMS = {
    "a program": "subprocess.Popen([sys.executable, '-c', SLEEP, pids])",
    "a program in a session of its own":
        "subprocess.Popen([sys.executable, '-c', SLEEP, pids], start_new_session=True)",
    "a program of a program":
        "subprocess.run([sys.executable, '-c', 'import subprocess, sys; subprocess.Popen(sys.argv[1:])',"
        " sys.executable, '-c', SLEEP, pids])",
    "a process of multiprocessing":
        "multiprocessing.get_context('spawn').Process(target=exec, args=(SLEEP, {})).start()",
}
STARTS = """
    import os, subprocess, sys, time, multiprocessing
    SLEEP = {SLEEP!r}

    def scores(Q, K):
        pids = {pids!r}
        if not os.path.exists(pids):
            sys.argv[1:] = [pids]
            open(pids, "w").close()
            {start}
            while not os.path.getsize(pids):
                time.sleep(0.01)
            {then}
        return Q @ K.T
    """


def code_that_starts(tmp_path, start, then="pass"):
    return STARTS.format(SLEEP=SLEEP, pids=str(tmp_path / "pids"), start=start, then=then)


def started(tmp_path):
    return [int(pid) for pid in (tmp_path / "pids").read_text(encoding="utf-8").split()]


@pytest.mark.parametrize("start", [
    pytest.param(start, id=name, marks=[GROUPS] if name == "a program of a program" else [])
    for name, start in PROGRAMS.items()])
def test_what_a_function_starts_does_not_outlive_the_check(start, tmp_path, monkeypatch):
    monkeypatch.setattr(process, "CASE_LIMIT", 30)
    report = check(code_that_starts(tmp_path, start))
    assert report.passed and report.remarks == [], report.message
    (pid,) = started(tmp_path)
    assert gone(pid, 5)


@pytest.mark.parametrize(("then", "says"), [
    pytest.param("os._exit(3)", "exit status 3", marks=GROUPS),
    ("while True: pass", "does not come to an end")])
def test_what_a_function_starts_ends_with_one_that_does_not_come_back(then, says, tmp_path):
    assert says in check(code_that_starts(tmp_path, PROGRAMS["a program"], then)).message
    (pid,) = started(tmp_path)
    assert gone(pid, 5)


@POSIX
def test_what_a_function_starts_ends_when_the_kernel_is_killed(tmp_path):
    code = code_that_starts(tmp_path, PROGRAMS["a program"], "while True: pass")
    kernel = python(textwrap.dedent(code) + textwrap.dedent("""
        from helpers.checks import process, run
        process.CASE_LIMIT = process.TOTAL_LIMIT = 60
        run("scores", scores)
        """))
    while not (tmp_path / "pids").exists() or not started(tmp_path):
        assert kernel.poll() is None
        time.sleep(0.05)
    kernel.kill()
    kernel.communicate(timeout=30)
    (pid,) = started(tmp_path)
    assert gone(pid)


def test_the_checks_work_without_a_fresh_interpreter_path(tmp_path):
    """Files in the reader's folder named like library modules do not get in the way of the worker."""
    for name in ("json", "queue", "pickle", "random"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('mine')\n", encoding="utf-8")
    (tmp_path / "mine.py").write_text("def dots(Q, K):\n    return Q @ K.T\n", encoding="utf-8")
    code = f"""
        import sys
        from helpers.checks import run
        import json, queue, pickle, random
        sys.path.insert(0, {str(tmp_path)!r})
        import os; os.chdir({str(tmp_path)!r})
        import mine
        def scores(Q, K):
            return mine.dots(Q, K)
        print(run("scores", scores).passed)
        mine.dots = lambda Q, K: Q @ K
        print(run("scores", scores).passed)
    """
    out, err = python(code).communicate(timeout=120)
    assert out.split() == ["True", "False"], err


@POSIX
def test_a_kernel_whose_folder_is_gone_checks_as_before(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    made_up = types.ModuleType("made_up")                  # as PyTorch has some
    made_up.__file__ = "_made_up.py"
    monkeypatch.setitem(sys.modules, "made_up", made_up)
    assert run("scores", lambda Q, K: Q @ K.T).passed


def test_a_process_that_does_not_start_gets_a_sentence(monkeypatch):
    process.close()
    monkeypatch.setattr(process.sys, "executable", "/no/such/python")
    report = run("scores", lambda Q, K: Q @ K.T)
    assert report.state == "unusable" and "scores was not run: " in report.message
    assert "no such file or directory" in report.message and "moved or deleted" in report.message
    assert "[Errno" not in report.message
    monkeypatch.undo()
    monkeypatch.setattr(process, "MODULE", "helpers.no_such_module")
    report = run("scores", lambda Q, K: Q @ K.T)
    assert report.state == "unusable" and "ended at once (exit 1)" in report.message
    monkeypatch.undo()
    assert run("scores", lambda Q, K: Q @ K.T).passed


def test_importing_the_checks_is_light():
    code = """
        import sys
        import numpy                    # 1.26 loads numpy.ma by itself
        before = set(sys.modules)
        import helpers.checks
        heavy = {"matplotlib", "ipywidgets", "cloudpickle", "IPython", "torch", "numpy.ma"}
        heavy |= {"helpers.tiny_model", "helpers.smollm2"}
        helpers.checks.EXERCISES[3].expected
        print(sorted(heavy & set(sys.modules) - before), helpers.checks.process._worker)
    """
    out, err = python(code).communicate(timeout=60)
    assert out.split() == ["[]", "None"], err


def test_in_a_notebook_the_process_starts_while_the_rest_is_imported():
    code = """
        import subprocess, sys
        start, sys.modules["ipykernel"] = subprocess.Popen, None
        def noted(*arguments, **options):
            print("helpers.checks.exercises" in sys.modules)
            return start(*arguments, **options)
        subprocess.Popen = noted
        import helpers.checks
    """
    out, err = python(code).communicate(timeout=60)
    assert out.split() == ["False"], err

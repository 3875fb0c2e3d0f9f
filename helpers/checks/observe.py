"""Call a function once and write down what happened, whatever it does.

`observe` is used on both sides: on the reader's function in the worker process, on the known mistakes in the reader's
notebook. What comes back is an `Outcome` of plain data: arrays, numbers, strings, lists of these, or a `Strange` that
only describes. Nothing of the reader's own classes gets through.
"""

import inspect
import io
import os
import pickle
import sysconfig
import traceback
import warnings
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

import numpy as np

PRINT_LIMIT = 2_000          # characters kept of what a function prints in one call
SIZE_LIMIT = 200_000         # numbers in an answer; a larger one is only described
TEXT_LIMIT = 400             # characters of an error message
NOT_READERS = tuple(os.path.normcase(os.path.join(path, "")) for path in {
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
    *(sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib", "purelib", "platlib"))})


@dataclass(frozen=True)
class Strange:
    """An answer that is no array, number or list of them: what it is, in words, and its shape if it has one."""

    what: str                # "a generator"
    shape: tuple | None = None


@dataclass(frozen=True)
class Problem:
    """An exception, told without the exception object."""

    type: str                # "ValueError"
    text: str
    file: str = ""           # where the reader's own code was when it happened …
    line: int = 0
    function: str = ""
    first_line: int = 0      # … and where that function begins
    shapes: tuple = ()       # ((variable, "(5, 6)"), …) in that function, arrays only


@dataclass(frozen=True)
class Outcome:
    """What one call did."""

    value: object = None
    error: Problem | None = None
    ended: str = ""          # "" | "time" | "memory" | "exit 3" | "signal 11": the process did not survive
    changed: tuple = ()      # positions of the inputs that were changed
    shared: tuple = ()       # positions of the inputs whose memory the answer shares
    printed: str = ""
    warned: tuple = ()       # of (text, file, line)


def freeze(arguments, options):
    """Arguments in a form from which any number of fresh copies can be made."""
    return pickle.dumps((tuple(arguments), dict(options)), protocol=pickle.HIGHEST_PROTOCOL)


def observe(function, frozen, call=None):
    """Call `function` on a fresh copy of the frozen arguments; never raises, whatever the function does."""
    arguments, options = pickle.loads(frozen)
    before, _ = pickle.loads(frozen)
    out = Bounded(PRINT_LIMIT)
    value = error = None
    with redirect_stdout(out), redirect_stderr(out), warnings.catch_warnings(record=True) as caught, np.errstate():
        warnings.simplefilter("always")
        try:
            result = function(*arguments, **options) if call is None else call(function, *arguments, **options)
            value = simple(result)
            shared = tuple(i for i, a in enumerate(arguments) if shares(result, a))
            del result
        except BaseException as err:                       # SystemExit and KeyboardInterrupt too
            error, shared = describe(err), ()
    try:
        changed = tuple(i for i, (a, b) in enumerate(zip(arguments, before, strict=True)) if not same(a, b))
    except Exception:                                      # so changed that it cannot even be compared
        changed = tuple(range(len(before)))
    warned = dict.fromkeys((str(w.message)[:TEXT_LIMIT], w.filename, w.lineno) for w in caught[:20])
    return Outcome(value, error, "", changed, shared, out.text(), tuple(warned)[:3])


class Bounded(io.TextIOBase):
    """A stream that keeps the first characters and counts the rest."""

    def __init__(self, limit):
        self.limit, self.kept, self.length = limit, "", 0

    def write(self, text):
        text = str(text)
        if len(self.kept) < self.limit:
            self.kept += text[:self.limit - len(self.kept)]
        self.length += len(text)
        return len(text)

    def writable(self):
        return True

    def text(self):
        more = self.length - len(self.kept)
        return self.kept + (f"\n… and {more:,} more characters" if more else "")


def simple(value, depth=3):
    """The answer as arrays, numbers, strings and lists of these; `Strange` for anything else."""
    if value is None or isinstance(value, (bool, int, float, str)) and type(value).__module__ == "builtins":
        return value if not isinstance(value, (int, str)) or isinstance(value, bool) else bounded(value)
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if isinstance(value, np.ma.MaskedArray):
        return Strange("a masked array (np.ma); .filled(0) makes an ordinary one", value.shape)
    if isinstance(value, np.ndarray):
        value = np.asarray(value)
        if value.dtype.kind not in "biufcSU":
            return Strange(f"an array of dtype {value.dtype}{what_is_inside(value)}", value.shape)
        if value.size > SIZE_LIMIT:
            return Strange(f"an array of {value.size:,} numbers", value.shape)
        return value
    if isinstance(value, (list, tuple)) and depth and len(value) <= SIZE_LIMIT:
        parts = [simple(part, depth - 1) for part in value]
        strange = next((p for p in parts if isinstance(p, Strange)), None)
        kind = "tuple" if isinstance(value, tuple) else "list"
        return parts if strange is None else Strange(f"a {kind} that holds {strange.what}")
    return Strange(in_words(value), shape_of(value))


def bounded(value):
    """Whole numbers and strings of a sane length."""
    if isinstance(value, int) and value.bit_length() > 1000:
        return Strange("a whole number of more than 300 digits")
    return value[:1000] if isinstance(value, str) else value


def what_is_inside(value):
    """For an object array: the odd thing in it."""
    for item in value.flat:
        if not isinstance(item, (int, float, np.number)):
            return f" that holds {'None' if item is None else in_words(item)}"
    return " (rows of different length?)" if value.ndim == 1 else ""


def in_words(value):
    """What kind of thing this is, with an article."""
    if value is Ellipsis:
        return "... (three dots)"
    if inspect.isgenerator(value) or isinstance(value, (map, filter, zip)):
        return "a generator, which has computed nothing yet (yield, or round brackets around a loop?)"
    if inspect.iscoroutine(value):
        value.close()
        return "a coroutine (async def in place of def?)"
    if inspect.isroutine(value) or inspect.isclass(value):
        return f"the function {getattr(value, '__name__', '')} itself (brackets forgotten?)"
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def shape_of(value):
    try:
        return tuple(int(n) for n in value.shape)
    except Exception:
        return None


def shares(result, argument):
    """Whether writing to the answer could change the input."""
    return (isinstance(result, np.ndarray) and isinstance(argument, np.ndarray)
            and result.size > 0 and np.may_share_memory(result, argument))


def same(a, b):
    """Whether an input is still what it was: type, shape and every bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b if isinstance(a, (bool, int, float, str, type(None))) else True


def describe(err):
    """An exception as plain data, with the last place in the reader's own code."""
    try:
        text = str(err)[:TEXT_LIMIT]
    except BaseException:
        text = ""
    if isinstance(err, AssertionError) and not text:
        text = "an assert does not hold"
    place = {}
    for frame, line in traceback.walk_tb(err.__traceback__):
        code = frame.f_code
        if not is_readers(code.co_filename):
            continue
        place = {"file": code.co_filename, "line": line or 0, "function": code.co_name,
                 "first_line": code.co_firstlineno, "shapes": tuple(shapes_in(frame))}
    return Problem(type(err).__name__, text, **place)


def is_readers(filename):
    return not (filename.startswith("<frozen") or filename.startswith("<__array_function__")
                or os.path.normcase(filename).startswith(NOT_READERS))


def shapes_in(frame):
    """The shapes of the arrays among the local variables, for the sentence "there Q is (5, 6)"."""
    for name, value in list(frame.f_locals.items())[:30]:
        if isinstance(value, np.ndarray):
            yield name, str(value.shape)


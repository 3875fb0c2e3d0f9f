"""Call a function once and write down what happened, whatever it does.

`observe` is used on both sides: on the reader's function in the worker process, on the known mistakes in
the notebook. What comes back is an `Outcome` of plain data: arrays, numbers, strings, lists of these, or a
`Strange` that only describes. Nothing of the reader's own classes gets through.
"""

import inspect
import io
import os
import pickle
import sys
import sysconfig
import traceback
import warnings
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache

import numpy as np

PRINT_LIMIT = 2_000  # characters kept of what a function prints in one call
SIZE_LIMIT = 200_000  # numbers in an answer; a larger one is only described
TEXT_LIMIT = 300  # characters of an error message
NOT_READERS = tuple(
    os.path.normcase(os.path.join(path, ""))
    for path in {
        os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
        *(sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")),
    }
)


@dataclass(frozen=True)
class Strange:
    """An answer that is no array, number or list of them: what it is, in words."""

    what: str  # "a generator"
    hint: str = ""  # a further sentence


@dataclass(frozen=True)
class Told:
    """What a case's own `call` found wrong, as a sentence in place of an answer."""

    sentence: str


@dataclass(frozen=True)
class Place:
    """Where the reader's own code was."""

    function: str
    first_line: int  # of the function
    line: int


@dataclass(frozen=True)
class Problem:
    """An exception, told without the exception object."""

    type: str  # "ValueError"
    text: str
    place: Place | None = None
    shapes: tuple = ()  # ((variable, "(5, 6)"), …) in that function, arrays only


@dataclass(frozen=True)
class Outcome:
    """What one call did."""

    value: object = None
    error: Problem | None = None
    ended: str = ""  # "" | "time" | "memory" | "exit 3" | "signal 11": the process did not survive
    changed: tuple = ()  # positions of the inputs that were changed
    shared: tuple = ()  # positions of the inputs whose memory the answer shares
    printed: str = ""
    warned: tuple = ()  # of (text, Place or None)
    tuple: bool = False  # the answer was a tuple; `value` holds a list of what was in it
    late: bool = False  # of "time": it was the time for all calls together that ran out


def freeze(arguments, options):
    """Arguments in a form from which any number of fresh copies can be made."""
    return pickle.dumps((tuple(arguments), dict(options)), protocol=pickle.HIGHEST_PROTOCOL)


def observe(function, frozen, call=None):
    """Call `function` on a fresh copy of the frozen arguments; never raises, whatever the function does."""
    arguments, options = pickle.loads(frozen)
    before, _ = pickle.loads(frozen)
    out = Bounded(PRINT_LIMIT)
    value = error = None
    warned = {}

    def heard(message, category, filename, lineno, file=None, line=None):
        if len(warned) < 3:
            warned.setdefault(str(message)[:TEXT_LIMIT], place_of(sys._getframe(1)))

    with redirect_stdout(out), redirect_stderr(out), warnings.catch_warnings(), np.errstate():
        warnings.simplefilter("always")
        warnings.showwarning = heard
        try:
            result = (
                function(*arguments, **options) if call is None else call(function, *arguments, **options)
            )
            value = simple(result)
            shared = tuple(i for i, a in enumerate(arguments) if shares(result, a))
            a_tuple = isinstance(result, tuple)
            del result
        except BaseException as err:  # SystemExit and KeyboardInterrupt too
            error, shared, a_tuple = describe(err), (), False
    try:
        changed = tuple(i for i, (a, b) in enumerate(zip(arguments, before, strict=True)) if not same(a, b))
    except Exception:  # so changed that it cannot even be compared
        changed = tuple(range(len(before)))
    return Outcome(value, error, "", changed, shared, out.text(), tuple(warned.items()), a_tuple)


class Bounded(io.TextIOBase):
    """A stream that keeps the first characters and counts the rest."""

    def __init__(self, limit):
        self.limit, self.kept, self.length = limit, "", 0

    def write(self, text):
        text = str(text)
        if len(self.kept) < self.limit:
            self.kept += text[: self.limit - len(self.kept)]
        self.length += len(text)
        return len(text)

    def writable(self):
        return True

    def text(self):
        more = self.length - len(self.kept)
        return self.kept + (f"\n… and {more:,} more characters" if more else "")


def simple(value, depth=5):
    """The answer as arrays, numbers, strings and lists of these; `Strange` for anything else."""
    if value is None or isinstance(value, (bool, int, float, str)) and type(value).__module__ == "builtins":
        return value if not isinstance(value, (int, str)) or isinstance(value, bool) else bounded(value)
    if type(value) is Told:
        return value
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if is_masked(value):
        return Strange("a masked array (np.ma)", ".filled(0) makes an ordinary array of it.")
    if isinstance(value, np.ndarray):
        value = np.asarray(value)
        if value.dtype.kind not in "biufcSU":
            return Strange(f"an array of dtype {value.dtype}{what_is_inside(value)}")
        if value.size > SIZE_LIMIT:
            return Strange(f"an array of shape {value.shape}", "It should be far smaller.")
        return value.copy()  # the function may go on to write into it
    if isinstance(value, (list, tuple)) and depth and len(value) <= SIZE_LIMIT:
        parts = [simple(part, depth - 1) for part in value]
        strange = next((p for p in parts if isinstance(p, Strange)), None)
        kind = "tuple" if isinstance(value, tuple) else "list"
        return parts if strange is None else Strange(f"a {kind} that holds {strange.what}", strange.hint)
    return in_words(value)


def is_masked(value):
    """Whether it is a masked array with something masked; NumPy loads what makes these when it is needed."""
    ma = sys.modules.get("numpy.ma")
    return ma is not None and isinstance(value, ma.MaskedArray) and ma.is_masked(value)


def bounded(value):
    """Whole numbers and strings of a sane length."""
    if isinstance(value, int) and value.bit_length() > 1000:
        return Strange("a whole number of more than 300 digits")
    return value[:1000] if isinstance(value, str) else value


def what_is_inside(value):
    """For an object array: the odd thing in it."""
    for item in value.flat:
        if not isinstance(item, (int, float, np.number)):
            return f" that holds {'None' if item is None else in_words(item).what}"
    return " (rows of different length?)" if value.ndim == 1 else ""


def in_words(value):
    """What kind of thing this is."""
    if value is Ellipsis:
        return Strange("... (three dots)", "Is the last line still to be written?")
    if inspect.isgenerator(value) or isinstance(value, (map, filter, zip)):
        return Strange(
            "a generator",
            "A generator has computed nothing yet: is there a yield, or a loop in round brackets?",
        )
    if inspect.iscoroutine(value):
        value.close()
        return Strange("a coroutine", "It should begin with def, not with async def.")
    if inspect.isroutine(value) or inspect.isclass(value):
        return Strange(
            f"the function {getattr(value, '__name__', '')} itself", "Were its brackets forgotten?"
        )
    name = type(value).__name__
    return Strange(f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}")


def shares(result, argument):
    """Whether writing to the answer, or to an array in it, could change the input."""
    if isinstance(result, (list, tuple)) and len(result) < 1000:
        return any(shares(part, argument) for part in result if isinstance(part, np.ndarray))
    return (
        isinstance(result, np.ndarray)
        and isinstance(argument, np.ndarray)
        and result.size > 0
        and np.may_share_memory(result, argument)
    )


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
    place, shapes = None, ()
    for frame, line in traceback.walk_tb(err.__traceback__):
        if is_readers(frame.f_code.co_filename):
            place = Place(frame.f_code.co_name, frame.f_code.co_firstlineno, line or 0)
            shapes = tuple(shapes_in(frame))
    return Problem(type(err).__name__, text, place, shapes)


def place_of(frame):
    """The innermost place in the reader's code, from a frame outwards."""
    while frame is not None and not is_readers(frame.f_code.co_filename):
        frame = frame.f_back
    return frame and Place(frame.f_code.co_name, frame.f_code.co_firstlineno, frame.f_lineno or 0)


@cache
def is_readers(filename):
    return not (
        filename.endswith((".pyx", ".pxd", ".pxi"))  # inside a compiled module, by a path of its maker's
        or filename.startswith("<frozen")
        or filename.startswith("<__array_function__")
        or os.path.normcase(filename).startswith(NOT_READERS)
    )


def shapes_in(frame):
    """The shapes of the arrays among the local variables, for the sentence "there Q is (5, 6)"."""
    for name, value in list(frame.f_locals.items())[:30]:
        if isinstance(value, np.ndarray):
            yield name, str(value.shape)

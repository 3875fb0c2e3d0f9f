"""Is this outcome right, and if not, what is the first thing to say about it?

`compare` looks at one input. It knows shapes, kinds of numbers, values that are not finite, changed inputs
and shared memory; it knows nothing of any single exercise and nothing of mistakes.
"""

from dataclasses import dataclass

import numpy as np

from helpers.checks.observe import Strange, Told


@dataclass(frozen=True)
class Fault:
    """What is wrong with the outcome on one input."""

    kind: str  # time, ended, error, no error, none, type, parts, things, dtype, shape, nan, value, …
    lines: tuple = ()  # sentences for the reader
    part: str = ""  # "Q", where an answer has several parts
    at: tuple | None = None  # where the first difference is
    expected: np.ndarray | None = None
    given: np.ndarray | None = None


def parts(exercise, value):
    """What is compared, as a list of arrays in the order of `exercise.parts`; a `Fault` when it is no such
    thing. A free part becomes zeros of its shape; what cannot be derived, for a wrong shape, is empty."""
    pieces = pieces_of(exercise, exercise.returns, value)
    if isinstance(pieces, Fault):
        return pieces
    arrays = []
    for name, piece in pieces:
        array = as_numbers(name if len(pieces) > 1 else "", piece)
        if isinstance(array, Fault):
            return array
        arrays.append(array)
    found = []
    for _, function in exercise.derived.values():
        try:
            with np.errstate(all="ignore"):
                found.append(np.asarray(function(*arrays)))
        except ValueError:
            found.append(np.empty(0))
    blank = [
        np.zeros(array.shape) if name in exercise.free else array
        for (name, _), array in zip(pieces, arrays, strict=True)
    ]
    return blank + found


def pieces_of(exercise, returns, value):
    """[(name, piece), …] of an answer, with what has parts itself taken apart; or a `Fault`."""
    if value is None:
        return Fault("none", (f"{exercise.name} gave back None. Is there a return at its end?",))
    one = len(returns) == 1
    asked = f"{exercise.one_answer or wanted(returns)} {'is' if one else 'are'} expected."
    if isinstance(value, str):
        value = Strange("a string")
    if isinstance(value, Strange):
        hint = filter(None, [value.hint])
        return Fault("type", (f"{exercise.name} gave back {value.what}, where {asked}", *hint))
    if isinstance(value, Told):
        return Fault("told", (value.sentence,))
    if one:
        return [(next(iter(returns)), value)]
    have = not_the_parts(returns, value)
    if have:
        return Fault("parts", (f"{exercise.name} gave back {have}, where {asked}",))
    pieces = []
    for (name, axes), piece in zip(returns.items(), value, strict=True):
        inner = [(name, piece)] if not isinstance(axes, dict) else inside(name, axes, piece)
        if isinstance(inner, Fault):
            return inner
        pieces += inner
    return pieces


def inside(name, returns, value):
    """The pieces of a part that has parts itself; or a `Fault`."""
    have = "None" if value is None else not_the_parts(returns, value)
    if not have:
        return list(zip(returns, value, strict=True))
    return Fault("parts", (f"{name} is {have}, where ({', '.join(returns)}) is expected.",), name)


def not_the_parts(returns, value):
    """"" when these are as many things as there are parts, otherwise what it is, in words."""
    if not isinstance(value, list) and not (isinstance(value, np.ndarray) and value.ndim):
        return "one thing"
    shape, axes = shape_of(value), [axes for axes in returns.values()]
    if shape and len(shape) <= min(0 if isinstance(a, dict) else len(a) for a in axes):
        return f"one array of shape {shape}"  # a list of its rows, too
    if len(value) == len(returns):
        return ""
    if isinstance(value, np.ndarray):
        return f"one array of shape {shape}"
    if len(value) < 5:
        return f"{things(len(value))} ({listed(map(thing_in_words, value))})"
    return things(len(value))


def listed(texts):
    """"a", "a and b", "a, b and c"."""
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last


def thing_in_words(thing):
    shape = shape_of(thing)
    return "None" if thing is None else f"an array of shape {shape}" if shape else "a single number"


def shape_of(value):
    """The shape of what NumPy makes of it; () when it makes no array."""
    try:
        return np.shape(value)
    except ValueError:
        return ()


def things(count):
    return "1 thing" if count == 1 else f"{count} things"


def as_numbers(name, piece):
    """One part of an answer as an array of numbers; or a `Fault`."""
    what = name or "The answer"
    if piece is None:
        return Fault("none", (f"{what} is None.",), name)
    try:
        array = np.asarray(piece)
    except ValueError:
        shapes = [shape_of(thing) for thing in piece] if len(piece) < 5 else []
        if any(len(shape) > 1 for shape in shapes):
            arrays = f"{len(shapes)} arrays, of shapes {' and '.join(map(str, shapes))}"
            return Fault("type", (f"{what} is {arrays}, where one is expected.",), name)
        return Fault("type", (f"{what} is a list whose rows differ in length.",), name)
    if array.dtype == object and array.size and all(type(item) is int for item in array.flat):
        return array.astype(np.float64)  # integers beyond 64 bits
    if array.dtype.kind not in "biufc" and array.size:
        held = (
            "strings"
            if array.dtype.kind in "US"
            else "None in places"
            if None in array.ravel().tolist()
            else "things that are no numbers"
        )
        return Fault("type", (f"{what} holds {held}, where numbers are expected.",), name)
    if array.dtype.kind == "c":
        return Fault("dtype", (f"{what} holds complex numbers.",), name)
    return array


def wanted(returns):
    """The answer in words: "an array", "one number", "3 arrays (Q, K, V)", "2 things (z, (K, V))"."""
    if len(returns) == 1:
        return "one number" if () in returns.values() else "an array"
    nested = any(isinstance(axes, dict) for axes in returns.values())
    return f"{len(returns)} {'things' if nested else 'arrays'} {in_brackets(returns)}"


def in_brackets(returns):
    names = [in_brackets(axes) if isinstance(axes, dict) else name for name, axes in returns.items()]
    return f"({', '.join(names)})"


def compare(exercise, case, expected, given, forgive=False):
    """None when the outcome is right, otherwise the `Fault`.

    forgive : overlook what differs in `case.edge_rows`.
    """
    if given.ended == "time" and given.late:
        return Fault("late", ("Here the time ran out that all calls together have (20 seconds).",))
    if given.ended == "time":
        return Fault("time", (f"{exercise.name} had not come back after several seconds and was stopped.",))
    if given.ended:
        return Fault("ended", (ended_in_words(exercise, given.ended),))
    if case.raises:
        return (
            None
            if given.error
            else Fault("no error", ("An error is expected here, and none came." + got(given.value),))
        )
    if given.error:
        return Fault("error", ())
    wants, arrays = parts(exercise, expected.value), parts(exercise, given.value)
    too_many = several_for_one(exercise, wants, given.value)
    if too_many:
        return too_many
    if isinstance(arrays, Fault):
        return arrays
    several = len(exercise.parts) > 1
    for name, want, have in zip(exercise.parts, wants, arrays, strict=True):
        fault = compare_arrays(exercise, case, name if several else "", want, have, forgive)
        if fault:
            return fault
    if exercise.own_memory and given.shared:
        return Fault(
            "shared",
            (
                f"The numbers are right, but they are the same memory as {names_of(exercise, given.shared)}: "
                "whoever writes to the result changes the input.",
            ),
        )
    if given.changed:
        return Fault(
            "changed",
            (
                f"The numbers are right, but {names_of(exercise, given.changed)} "
                "no longer holds what it held before the call.",
            ),
        )
    return None


def several_for_one(exercise, wants, value):
    """A Fault when the answer and something else were returned together (return A, S), otherwise None."""
    if len(wants) > 1 or not isinstance(value, list) or len(value) < 2:
        return None
    shapes = [shape_of(thing) for thing in value]
    if wants[0].ndim not in map(len, shapes) or any(isinstance(thing, (str, Strange)) for thing in value):
        return None
    have = things(len(value)) + (f" ({listed(map(thing_in_words, value))})" if len(value) < 5 else "")
    want = "one array" if wants[0].ndim else "one number"
    return Fault("things", (f"{exercise.name} gave back {have}, where {want} is expected.",))


def compare_arrays(exercise, case, name, want, have, forgive):
    axes = exercise.parts[name] if name else next(iter(exercise.parts.values()))
    expected_name = f"{name}: expected" if name else "expected"
    if want.shape != have.shape and not want.ndim:
        return Fault("shape", (f"{expected_name} one number, got an array of shape {have.shape}",), name)
    if want.shape != have.shape:
        symbols = f"({', '.join(axes)}{',' if len(axes) == 1 else ''}) = " if len(axes) == want.ndim else ""
        return Fault(
            "shape",
            (f"{expected_name} shape {symbols}{want.shape}, got {have.shape}",),
            name,
            None,
            *((want, have) if name not in exercise.free else ()),
        )
    if exercise.whole and have.dtype.kind not in "iu" and have.size:
        return Fault(
            "dtype",
            (f"{expected_name} whole numbers (an integer dtype), got dtype {have.dtype}",),
            name,
            None,
            want,
            have,
        )
    ok = agree(exercise, case, want, have)
    if forgive and case.edge_rows is not None:
        ok = ok | case.edge_rows
    if ok.all():
        return None
    at = tuple(int(i) for i in np.argwhere(~ok)[0])
    if case.draws:
        return Fault("value", (drawn_in_words(case, want, have, ok),), name, at, want, have)
    here_want, here_have = numbers(want[at], have[at])
    place = f"at [{', '.join(map(str, at))}] " if at else ""
    lines = [f"{name + ': ' if name else ''}{place}expected {here_want}, got {here_have}"]
    kind = (
        "value"
        if np.isfinite(have[~ok].astype(float)).all() or not np.isfinite(want.astype(float)).all()
        else "nan"
    )
    return Fault(kind, tuple(lines), name, at, want, have)


def agree(exercise, case, want, have):
    """Where two arrays of one shape agree, within the tolerance."""
    want, have = want.astype(np.float64), have.astype(np.float64)
    if case.draws:
        return as_often(want, have, case.draws)
    tolerance = case.tolerance or exercise.tolerance
    finite = np.abs(want[np.isfinite(want)])
    scale = max(finite.max(initial=0.0), 1e-12)
    with np.errstate(all="ignore"):
        near = np.abs(have - want) <= tolerance * (np.abs(want) + scale) / 2
    near |= (have == want) | (np.isnan(have) & np.isnan(want))
    if exercise.zeros:
        near &= (want != 0) | (have == 0)
    return near


CHANCE = 27  # e to the power -27 is 2 in 10^12: how rare an accident must be to count as a fault


def as_often(want, have, draws):
    """Where shares `have` of so many draws are no surprise if the probabilities are `want`.

    By chance a share lies so far off with a probability of at most exp(-draws · KL(have, want)) on either
    side (Chernoff's bound, true for any number of draws).
    """
    with np.errstate(all="ignore"):
        want, have = (np.where(abs(p - p.round()) < 1e-9, p.round(), p) for p in (want, have))
        far = [np.where(p == 0, 0, p * np.log(p / q)) for p, q in ((have, want), (1 - have, 1 - want))]
        return draws * (far[0] + far[1]) <= CHANCE


def drawn_in_words(case, want, have, ok):
    """The id that is furthest off; one that should never come before all others."""
    never = np.flatnonzero(~ok & (want == 0) & (have > 0))
    if never.size:
        i = never[have[never].argmax()]
        return f"id {i} should never come here, and came in {percent(have[i])} of {case.draws} draws"
    i = np.where(ok, -1, np.abs(want - have)).argmax()
    share = percent(have[i])
    return f"id {i} should come in {percent(want[i])} of the draws, and came in {share} of {case.draws}"


def percent(share):
    return f"{100 * share:.1f} %"


def names_of(exercise, positions):
    names = list(exercise.arguments)
    return " and ".join(names[i] for i in positions)


def got(value):
    if isinstance(value, np.ndarray):
        return f" The answer was an array of shape {value.shape}."
    return "" if value is None or isinstance(value, list) else f" The answer was {str(value)[:80]}."


def ended_in_words(exercise, ended):
    how, _, code = ended.partition(" ")
    if how == "exit":
        return (
            f"{exercise.name} ended Python (exit status {code}): os._exit, or a crash that left no message."
        )
    if how == "signal" and code in ("4", "6", "7", "10", "11"):
        return (
            f"{exercise.name} crashed Python itself (signal {code}). The usual reason is a function that "
            "calls itself without end."
        )
    if how == "signal" and code == "9":
        return f"{exercise.name} was ended by the system (signal 9), most often because memory ran out."
    return f"{exercise.name} ended the process it ran in ({ended})."


def number(x, digits=3):
    """A number the way a reader would write it."""
    if isinstance(x, (bool, np.bool_)):
        return str(bool(x))
    if isinstance(x, (int, np.integer)):
        return str(int(x))
    x = float(x)
    if not np.isfinite(x):
        return "nan" if np.isnan(x) else ("inf" if x > 0 else "-inf")
    if x == 0 or 1e-3 <= abs(x) < 1e5:
        text = f"{x:.{digits}f}"
        return "0.000" if text == "-0.000" else text
    return f"{x:.{max(digits - 1, 1)}e}"


def numbers(a, b):
    """Two numbers that differ, with enough digits to see it; what is rounding noise beside the other is 0."""
    if isinstance(a, (float, np.floating)) and isinstance(b, (float, np.floating)):
        a, b = (0.0 if np.isfinite(y) and abs(x) < 1e-15 * abs(y) else x for x, y in ((a, b), (b, a)))
    for digits in (3, 5, 8, 12, 16):
        texts = number(a, digits), number(b, digits)
        if texts[0] != texts[1]:
            return texts
    return texts

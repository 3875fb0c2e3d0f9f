"""Which known mistake gives what this answer gave?

Every mistake of an exercise is run on the same inputs as the reader's function, and the outcomes are
compared: behaviour against behaviour, never source text. One mistake is tried before two together. When no
mistake fits, `kinds` looks for what mistakes have in common (a factor, a transpose, rows in another order)
and otherwise says what does hold.
"""

import re
from dataclasses import dataclass

import numpy as np

from helpers.checks import kinds
from helpers.checks.compare import as_often, compare, parts, shape_of

ARITHMETIC = (
    "OverflowError",
    "ZeroDivisionError",
    "FloatingPointError",
)  # what inf and nan are in plain Python
SHAPES = (
    "ValueError",
    "IndexError",
    "TypeError",
    "UFuncTypeError",
    "UFuncOutputCastingError",
    "UFuncInputCastingError",
    "_UFuncOutputCastingError",
    "_UFuncInputCastingError",
    "AxisError",
    "AssertionError",
    "LinAlgError",
    "_UFuncNoLoopError",
    "_UFuncBinaryResolutionError",
    "OverflowError",
)


@dataclass(frozen=True)
class Diagnosis:
    """What was done wrong, why that matters, where to read."""

    mistakes: tuple  # of Mistake; empty for a kind
    what: str  # a sentence
    why: str = ""
    read: tuple = ()  # of (notebook, heading)
    inputs: tuple = ()  # of Tried: the wrong ones it explains; empty when it explains them all
    sure: bool = True  # False for what fits some of the wrong answers only: a clue, no diagnosis


@dataclass(frozen=True)
class Tried:
    """One input with everything known about it."""

    case: object
    expected: object
    given: object
    fault: object  # None where the answer is right
    forgiven: bool = False  # the fault is one on which careful people differ


def diagnose(exercise, tried):
    """The Diagnosis of an answer that is wrong somewhere, or None."""
    tried = [t for t in tried if not t.case.edge]
    wrong = [t for t in tried if t.fault]
    if not wrong or any(t.given.ended for t in tried):
        return None
    blank = kinds.says_nothing(exercise, tried)
    mistakes = best_single(exercise, tried, exactly=bool(blank))
    if not mistakes and blank:  # any two mistakes that spoil everything would fit
        return Diagnosis((), *blank)
    mistakes = mistakes or fitting_pair(exercise, tried)
    if mistakes:
        return named(exercise, mistakes)
    if all(t.fault.kind == "error" and t.case.error for t in wrong):
        return Diagnosis((), *wrong[0].case.error)
    if exercise.free and kinds.whole_for_floats(exercise, wrong):
        return Diagnosis((), *kinds.WHOLE_NUMBERS)
    part = partly(exercise, tried)
    (what, why, *read), inputs = explained(exercise, tried) or (("", ""), ())
    numbers = not {"shared", "changed"} & {t.fault.kind for t in wrong}
    if not what and numbers and part and part.sure:  # it says more than a kind can
        return part
    if not what:
        what, why = kinds.recognise(exercise, tried)
    read = tuple((exercise.notebook, heading) for heading in read)
    return Diagnosis((), what, why, read, inputs) if what else part


def partly(exercise, tried):
    """The mistake that explains most of the wrong answers where several have come together, or None."""
    wrong = [
        t for t in tried if t.fault and not t.given.error and isinstance(parts(exercise, t.given.value), list)
    ]
    best = ()
    for mistake, outcomes in exercise.wrong_outcomes:
        there = [outcomes[i] for i in positions(exercise, wrong)]
        does = tuple(
            t
            for t, o in zip(wrong, there, strict=True)
            if agreement(exercise, t, o) == EXACT and compare(exercise, t.case, t.expected, o)
        )
        if len(does) > len(best):
            best, found = does, mistake
    if len(best) < 2 or len(best) * 3 < len(wrong):
        return None
    all_wrong = sum(t.fault is not None for t in tried)
    if len(best) < all_wrong:
        clue = f"On {len(best)} of the {all_wrong} inputs that fail it is what comes out when {found.what}; "
        return Diagnosis((), f"{clue}the others do not fit that.", inputs=best, sure=False)
    part = named(exercise, (found,))
    also = "It is so on the inputs that fail only: there are others where it would show, and they are right."
    return Diagnosis(part.mistakes, f"{part.what} {also}", part.why, part.read, best)


def explained(exercise, tried):
    """(what the exercise's own `explain` says, the inputs on which it says that), or None.

    Something said on less than half of the wrong answers explains too little.
    """
    wrong = [t for t in tried if exercise.explain and t.fault and t.fault.given is not None]
    said = [
        (exercise.explain(t.fault.expected, t.fault.given, *t.case.arguments, **t.case.options), t)
        for t in wrong
    ]
    said = [(found, t) for found, t in said if found]
    if not said or len(said) * 2 < len(wrong):
        return None
    first = said[0][0]
    return first, tuple(t for found, t in said if found == first)


def named(exercise, mistakes):
    if len(mistakes) == 1:
        what = f"This is what comes out when {mistakes[0].what}."
    else:
        what = "Two things seem to have gone wrong together: " + "; and ".join(m.what for m in mistakes) + "."
    read = dict.fromkeys(
        m.read if isinstance(m.read, tuple) else (exercise.notebook, m.read) for m in mistakes
    )
    return Diagnosis(mistakes, what, " ".join(dict.fromkeys(m.why for m in mistakes)), tuple(read))


def best_single(exercise, tried, exactly=False):
    """(mistake,) for the known one that fits best, or (): fewest doubts, then the order of the exercise.

    exactly : only one that leaves no doubt.
    """
    inputs = positions(exercise, tried)
    best = None
    for mistake, outcomes in exercise.wrong_outcomes:
        doubts = fit(exercise, tried, [outcomes[i] for i in inputs], mistake.by_text)
        if doubts is not None and (best is None or doubts < best[0]):
            best = doubts, mistake
            if doubts == (0, 0):
                break
    return best[1:] if best and (not exactly or best[0] == (0, 0)) else ()


def positions(exercise, tried):
    where = {id(case): i for i, case in enumerate(exercise.inputs)}
    return [where[id(t.case)] for t in tried]


def fitting_pair(exercise, tried):
    """The first two mistakes that together fit without a clash, or ()."""
    inputs = positions(exercise, tried)
    for pair, outcome in exercise.pairs:
        if exercise.canonical is None:
            plain = ((t, i) for t, i in zip(tried, inputs, strict=True) if not t.case.style)
            if any(match(exercise, t, outcome(i)) < LOOSE for t, i in plain):
                continue
        outcomes = exercise.in_one_form([outcome(i) for i in range(len(exercise.inputs))])
        doubts = fit(exercise, tried, [outcomes[i] for i in inputs])
        if doubts is not None and doubts[0] <= sum(t.case.style for t in tried):
            return pair
    return ()


def fit(exercise, tried, outcomes, by_text=False):
    """None when the mistake does not explain the answer, otherwise its doubts: (clashes, loose agreements).

    A clash is an input on which one of the two raised an error and the other did not: that depends on style.
    by_text : an error tells something only where it is the same word for word.
    """
    clashes = loose = evidence = errors = 0
    some_right = not all(t.fault for t in tried)  # then it tells something where the errors come
    speaks = False  # whether the mistake ever gives a wrong answer without an error
    for t, wrong in zip(tried, outcomes, strict=True):
        how = match(exercise, t, wrong)
        mistaken = compare(exercise, t.case, t.expected, wrong) is not None
        if how == 0:
            return None
        clashes += how == CLASH
        loose += how == LOOSE
        speaks |= mistaken and not wrong.error
        if by_text and t.given.error and wrong.error and differ_in_numbers(t.given.error, wrong.error):
            return None
        if mistaken and t.fault is not None and how != CLASH:
            evidence += not wrong.error
            errors += bool(wrong.error) and how == EXACT and (
                t.given.error.text == wrong.error.text
                if by_text
                else some_right or tells_enough(t.given.error, wrong.error)
            )
    if not evidence and (speaks or clashes or not errors) or clashes * 2 > len(tried):
        return None
    return clashes, loose


EXACT, LOOSE, CLASH = 3, 2, 1


def match(exercise, t, wrong):
    """How well a mistake agrees with the reader's answer on one input: EXACT, LOOSE, CLASH, 0 for not at
    all."""
    return agreement(exercise, t, wrong) or (CLASH if t.case.style else 0)


def agreement(exercise, t, wrong):
    given = t.given
    if t.case.raises and bool(given.error) != bool(wrong.error):
        return CLASH if given.error else 0  # right here, by a test of one's own
    if t.fault and t.fault.kind == "changed" and not wrong.changed:
        return 0  # it does not explain the change
    if t.case.error and given.error and not wrong.error:
        return CLASH
    if given.error or wrong.error:
        if given.error and wrong.error:
            if t.case.raises or same_complaint(given.error, wrong.error):
                return EXACT
            if given.error.type == wrong.error.type:
                return LOOSE
            return LOOSE if {given.error.type, wrong.error.type} <= {*SHAPES, *ARITHMETIC} else 0
        error, value = (given.error, wrong.value) if given.error else (wrong.error, given.value)
        if error.type in ARITHMETIC and not_finite(exercise, value):
            return LOOSE
        return CLASH if error.type in SHAPES or error.type in ARITHMETIC else 0
    if not set(wrong.changed) <= set(given.changed) or (
        exercise.own_memory and bool(wrong.shared) != bool(given.shared)
    ):
        return 0
    a, b = parts(exercise, given.value), parts(exercise, wrong.value)
    if not isinstance(a, list) or not isinstance(b, list):
        faults = not isinstance(a, list) and not isinstance(b, list)
        if not faults or (a.kind, a.part) != (b.kind, b.part):
            return 0
        if a.lines == b.lines:
            return EXACT
        other_things = a.kind == "parts" and not rows_of_one(given.value)
        return 0 if a.kind == "told" or other_things else LOOSE
    if [x.shape for x in a] != [x.shape for x in b]:
        return 0
    if exercise.whole and [x.dtype.kind == "f" for x in a] != [x.dtype.kind == "f" for x in b] and a[0].size:
        return 0
    if all(alike(exercise, x, y, t.case) for x, y in zip(a, b, strict=True)):
        return EXACT
    if all(alike(exercise, x, empty_rows(x, y), t.case) for x, y in zip(a, b, strict=True)):
        return LOOSE
    if not_finite(exercise, given.value) and not_finite(exercise, wrong.value):
        return LOOSE if has_nan(a) == has_nan(b) else 0
    return 0


def rows_of_one(value):
    """Whether a list of things could be one array, row by row."""
    return not isinstance(value, list) or len(set(map(shape_of, value))) == 1


COMPLAINTS = (
    ("sizes", "mismatch|broadcast|aligned|same (number|shape)|must match|concatenat|reshape|inhomogeneous"),
    ("places", "out of (bounds|range)"),
    ("nothing", "NoneType"),
    ("types", "[Cc]annot cast|ufunc|unsupported operand"),
    ("shares", "[Pp]robabilities"),
    ("one row", "must be 1-dimensional"),
    ("room", "cannot resize"),
)


def same_complaint(one, other):
    """Whether two errors say the same: ValueError is raised for many reasons."""
    if one.type != other.type or one.type not in SHAPES:
        return one.type == other.type
    return complaint(one.text) == complaint(other.text)


def tells_enough(one, other):
    """Whether two alike errors are evidence by themselves: many a slip makes sizes that do not fit."""
    return one.text == other.text or complaint(one.text) != "sizes"


def differ_in_numbers(one, other):
    return one.text != other.text and in_letters(one.text) == in_letters(other.text)


def complaint(text):
    """What an error message is about; the message itself, without its numbers, when that is not known."""
    known = (kind for kind, pattern in COMPLAINTS if re.search(pattern, text))
    return next(known, in_letters(text))


def in_letters(text):
    return re.sub(r"[\d\W]+", " ", text)


def empty_rows(x, y):
    """y, where a row or column that is all nan in one of the two and 0 in the other counts as the same.

    What comes of a query that may read nothing depends on how softmax was written.
    """
    if not x.ndim:
        return y
    one, other = (a.astype(np.float64) for a in (x, y))
    for axis in range(-min(one.ndim, 2), 0):
        none, zero = np.isnan(one).all(axis, keepdims=True), (one == 0).all(axis, keepdims=True)
        same = none & (other == 0).all(axis, keepdims=True) | zero & np.isnan(other).all(axis, keepdims=True)
        other = np.where(same, one, other)
    return other


def alike(exercise, x, y, case):
    x, y = x.astype(np.float64), y.astype(np.float64)
    if case.draws:
        return bool(as_often(y, x, case.draws).all())
    if exercise.zeros:  # tiny weights tell mistakes apart: compare them too
        return np.allclose(x, y, rtol=1e-3, atol=1e-30, equal_nan=True)
    finite = np.abs(y[np.isfinite(y)])
    tolerance = max(case.tolerance or 0, 1e-5)
    return np.allclose(
        x, y, rtol=tolerance, atol=tolerance * min(finite.max(initial=0), 1e3) + 1e-12, equal_nan=True
    )


def has_nan(arrays):
    return any(np.isnan(x.astype(np.float64)).any() for x in arrays)


def not_finite(exercise, value):
    arrays = parts(exercise, value)
    return isinstance(arrays, list) and any(not np.isfinite(x.astype(np.float64)).all() for x in arrays)

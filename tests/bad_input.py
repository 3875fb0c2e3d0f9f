"""Kinds of arguments, each with a right value and many wrong ones, and the judge of what wrong ones lead to.

What comes back must be a ValueError or a TypeError whose text names the argument, says what it must be and
what came.
"""

import importlib
import inspect
import re

import numpy as np


class Kind:
    """A right value of an argument, wrong ones, and some that are `fine` if the others happen to fit.

    called : how the message may call it, a regular expression, where that is not its own name.
    """

    def __init__(self, value, wrong, fine=None, called=None):
        self.value, self.wrong, self.fine, self.called = value, wrong, fine or {}, called


def array(*shape, stacked=False, hides=False, integers=False, called=None, right=None, gaps=False):
    """Right: numbers of this shape. Wrong: everything else, and -inf unless a mask `hides` with it.

    right : the right numbers, where any others are wrong.  gaps : NaN and inf are shown as they are.
    """
    if right is None:
        right = np.zeros(shape, int) if integers else np.linspace(-1, 1, int(np.prod(shape))).reshape(shape)
    wrong = {"None": None, "text": "text", "a dict": {}, "words": np.full(shape, "a"), "things": object()}
    wrong["complex"] = right + 1j
    wrong["ragged"] = [[1.0, 2.0], [3.0]] if len(shape) < 3 else [[[1.0], [2.0]], [[3.0]]]
    wrong["one number"] = 1.0
    wrong["masked"] = np.ma.masked_array(right, np.arange(right.size).reshape(shape) == 0)
    if not stacked:
        wrong |= {"one axis more": right[None], "one axis less": right[0]}
    for name, bad in (("NaN", np.nan), ("inf", np.inf), ("-inf", -np.inf)):
        if integers or gaps:
            continue
        spoilt = right.copy()
        spoilt[(-1,) * len(shape)] = bad
        if not (hides and bad == -np.inf):
            wrong[name] = spoilt
    maybe = {f"axis {i} longer": np.concatenate([right, right.take([0], i)], i) for i in range(len(shape))}
    maybe |= {f"axis {i} empty": right.take([], i) for i in range(len(shape))}
    return Kind(right, wrong, maybe, called)


# Exact arithmetic takes these; who makes room for so many must refuse them, and before the work begins.
VERY_LARGE = {"of thirteen digits": 2**40, "of hundreds of digits": 10**400}


def count(value, least=0, most=None, called=None):
    wrong = {"None": None, "text": "3", "a half": 2.5, "a float": float(value), "True": True, "NaN": np.nan,
             "inf": np.inf, "a list": [value], "too small": least - 1}
    return Kind(value, wrong | ({} if most is None else {"too large": most + 1}), VERY_LARGE, called)


def optional(kind):
    wrong = {name: bad for name, bad in kind.wrong.items() if bad is not None}
    return Kind(kind.value, wrong, kind.fine, kind.called)


def number(value, *more):
    wrong = {"None": None, "text": "1", "True": True, "NaN": np.nan, "a list": [1.0], "an array": np.ones(2),
             "too large for a float": 10**400, "longer than Python writes out": -10**5000}
    return Kind(value, wrong | {str(bad): bad for bad in more})


def flag(value=False):
    return Kind(value, {"None": None, "text": "yes", "a number": 2, "an array": np.ones(2, bool), "[]": []})


def thing(value, *wrong, called=None):
    return Kind(value, {f"{i}: {bad!r}"[:40]: bad for i, bad in enumerate(wrong)}, called=called)


def public(module):
    """The functions, classes and methods of a module that a reader may call: {name: what it is}."""
    found = {}
    for name, value in vars(importlib.import_module(f"helpers.{module}")).items():
        if name.startswith("_") or getattr(value, "__module__", "") != f"helpers.{module}":
            continue
        if inspect.isfunction(inspect.unwrap(value)):
            found[f"{module}.{name}"] = value
        elif inspect.isclass(value):
            found[f"{module}.{name}"] = value
            for method, function in vars(value).items():
                if method[0] != "_" and inspect.isfunction(inspect.unwrap(function)):
                    found[f"{module}.{name}.{method}"] = inspect.unwrap(function)
    return found


def right(kinds):
    """The right values of all arguments."""
    return {argument: kind.value for argument, kind in kinds.items()}


EXPECTED = r"must|is not in the vocabulary|do not fit|is full|next position|leave no token"
CAME = r"got|has|had|differ|gave|holds|is \d|more came|'\w+'|\(\d.*\), \w+ \(|throughout"


def is_tried(name, functions, good, besides=("self",)):
    """That `good` has a kind for each argument of this function, but for those named `besides`.

    Of a function that takes any names (**more) it is only asked that it is there.
    """
    assert name in good, f"{name} is new: say in GOOD how it is called and of what kind its arguments are"
    parameters = inspect.signature(functions[name]).parameters
    if all(parameter.kind != parameter.VAR_KEYWORD for parameter in parameters.values()):
        assert sorted(good[name]) == sorted(set(parameters) - set(besides))


def judge(function, kinds, argument, expected=EXPECTED, came=CAME):
    """Call the function with each wrong value of one argument; AssertionError unless it is refused well."""
    kind = kinds[argument]
    called = rf"(?<![\w]){'(?:' + (kind.called or re.escape(argument)) + ')'}(?!\w)"
    for what, bad in {**kind.wrong, **kind.fine}.items():
        try:
            function(**(right(kinds) | {argument: bad}))
        except (ValueError, TypeError) as error:
            words = str(error)
            assert re.search(called, words), f"{argument} = {what}: does not name it: {words}"
            assert re.search(expected, words), f"{argument} = {what}: not what is expected: {words}"
            assert re.search(came, words), f"{argument} = {what}: not what came: {words}"
        else:
            assert what in kind.fine, f"{argument} = {what} was taken"

"""Does an answer only call the course's own? In the process of the checks that one is not to be had.

A reader may take functions of earlier exercises from the course, as the notebooks say; those of the exercise
itself and of later ones they write. While the reader's function runs, the code of these is exchanged, so that
it does not matter by which name, from where or through what else they are reached.
"""

import sys
from contextlib import contextmanager

from helpers.checks.exercises import BY_NAME, EXERCISES
from helpers.checks.report import Report
from helpers.checks.source import is_course
from helpers.checks.words import error_lines


class Borrowed(BaseException):  # (no Exception: `except Exception` does not hide it)
    """What a function raises that is not to be had; the message is its name."""


def not_to_be_had(*arguments, **options):
    """The code of every such function. It runs with that function's globals, so it imports what it needs."""
    import sys

    from helpers.checks.borrowed import Borrowed

    raise Borrowed(sys._getframe().f_code.co_name)


def withheld(exercise, function):
    """The course's functions that may not be used in an answer, as ("helpers.attention.softmax", …)."""
    if is_course(function):  # asked for: `run("softmax", helpers.attention.softmax)`
        return ()
    names = list(BY_NAME)
    later = EXERCISES[names.index(exercise.name) :] if exercise.name in names else ()
    functions = [*(e.reference for e in later), *exercise.does_it_all]
    return tuple(f"{f.__module__}.{f.__name__}" for f in functions if f.__module__ in sys.modules)


def found(names):
    """The functions with these names, each with its code and the one that says whose it is."""
    pairs = (name.rpartition(".")[::2] for name in names)
    functions = [getattr(sys.modules[module], name) for module, name in pairs if module in sys.modules]
    return [(f, f.__code__, not_to_be_had.__code__.replace(co_name=f"{f.__module__}.{f.__name__}"))
            for f in functions]


@contextmanager
def kept_back(functions):
    """Meanwhile each of these functions, as `found` gives them, raises Borrowed."""
    try:
        for function, _, refusal in functions:
            function.__code__ = refusal
        yield
    finally:
        for function, code, _ in functions:
            function.__code__ = code


def verdict(exercise, function, outcomes):
    """The Report where one of these was called; None where none was."""
    problem = next((o.error for o in outcomes if o.error and o.error.type == Borrowed.__name__), None)
    if problem is None:
        return None
    return Report(
        exercise.name,
        "wrong",
        "not your own yet",
        facts=tuple(error_lines(exercise, function, problem))[1:2],  # where
        diagnosis=f"It calls {problem.text}, {what_it_is(exercise, problem.text)}: write it yourself.",
        why="Functions of earlier exercises may be imported; this one and those that come after it may not.",
    )


def what_it_is(exercise, full_name):
    """The course's function in words."""
    other = BY_NAME.get(full_name.rpartition(".")[2])
    if other is exercise:
        return "the course's own answer"
    return f"the course's own answer to {other.number}" if other else "in which the course does this work"

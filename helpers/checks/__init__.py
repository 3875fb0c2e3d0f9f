"""The checks behind the exercises.

    from helpers.checks import check, run, progress
    check(softmax)              # shows a verdict and writes down what was solved
    run("softmax", function)    # the same as a report: .passed, .diagnosis, .remarks, .message
    progress()                  # the table of what has been solved

To read on: `judge` tells the story in order. `process` and `worker` run the reader's function where it can do
no harm, `family` ends what it has started, `observe` writes down what it did, `compare` says whether that is
right, `diagnose` finds the mistake that does the same, `kinds` knows what mistakes have in common, `again`
asks once more, `earlier` finds the reader's functions behind this one, `borrowed` an answer that is the
course's own, `words` and `report` make the verdict, `record` keeps the progress file. `together` judges the
last exercise, for which `notebooks` finds all that a reader has written, and `submission` what a class hands
in, where `follow_on` counts a mistake once. What an exercise is stands in `exercise`; the exercises
themselves, with their inputs and known mistakes, are in `exercises/`.
"""

import ast
import inspect
import os
import re
import sys
from difflib import get_close_matches

from helpers.checks import (
    process,  # noqa: F401  (first: in a notebook the process of the checks starts while the rest is imported)
    record,
)
from helpers.checks.exercises import BY_NAME, EXERCISES
from helpers.checks.judge import run, run_and_keep, snapshot, unusable, with_more
from helpers.checks.report import Report, show
from helpers.checks.signature import not_a_function

__all__ = ["check", "progress", "run"]


def check(function):
    """Check your answer to the exercise that is named like the function, and show the verdict."""
    report = verdict_on(function, inspect.currentframe().f_back)
    show(report)
    if os.environ.get("NBGRADER_EXECUTION") and not report.passed:  # no points, and the feedback says why
        raise AssertionError(report.message)


def verdict_on(function, frame):
    """The report that `check` shows; notes down what was tried."""
    name = exercise_named(function, frame)
    if name is None:
        return no_such_exercise(function)
    if (getattr(function, "__module__", "") or "").startswith("helpers."):
        own = f"This is the course's own {name}. Write yours under the same name and check that."
        return Report(name, "not written", "not written yet", facts=(own,))
    report = run_and_keep(name, function)
    if report.state in ("passed", "wrong"):
        trouble = record.note(name, report.passed)
        if trouble:
            report = with_more(report, remarks=[*report.remarks, trouble])
    stale = newer_cell(name)
    if stale:
        report = with_more(report, shown="\n".join(filter(None, [stale, report.shown])))
    return report


def progress():
    """Show which exercises have been solved."""
    show(record.Table(EXERCISES, *record.entries()))


def exercise_named(function, frame):
    """The exercise a function answers: by its own name, or by the variable that holds it (a lambda)."""
    if not callable(function):
        return None
    try:
        name = getattr(function, "__name__", None)
    except Exception:  # an object that answers no such question
        name = None
    if name in BY_NAME:
        return name
    scope = {**frame.f_globals, **frame.f_locals} if frame else {}
    return next((known for known in BY_NAME if scope.get(known) is function), None)


def newer_cell(name):
    """A sentence when an older function is checked than the reader may think: the last cell that defines
    `name` is no Python, or a later one defines something with nearly that name and as many arguments."""
    ipython = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    later = {}  # functions of later cells: name -> number of arguments
    for cell in reversed(getattr(shell, "user_ns", {}).get("In", ())):
        try:
            defined = functions_in(cell)
        except SyntaxError as err:
            if not re.search(rf"^\s*def\s+{name}\b", cell, re.MULTILINE):
                continue
            return (
                f"The cell in which you wrote {name} last did not run (line {err.lineno}: {err.msg}), so "
                "nothing is known about it: what follows is about the function from before."
            )
        if name in defined:
            alike = [n for n, count in later.items() if count == defined[name] and n not in BY_NAME]
            close = get_close_matches(name, alike, 1, 0.8)
            text = f"A later cell defines {{}}: what follows is about {name}, from before."
            return text.format(close[0]) if close else ""
        later = defined | later
    return ""


def functions_in(cell):
    """{name: number of arguments} of the functions that a cell defines, with def or as a variable."""
    found = {}
    for node in ast.walk(ast.parse(cell)):
        if isinstance(node, ast.FunctionDef):
            found[node.name] = len(node.args.posonlyargs + node.args.args)
        elif isinstance(node, ast.Assign):
            found |= {target.id: -1 for target in node.targets if isinstance(target, ast.Name)}
    return found


def no_such_exercise(function):
    if not callable(function):
        return unusable("check", not_a_function("softmax", function))
    name = getattr(function, "__name__", type(function).__name__)
    close = get_close_matches(name, BY_NAME, 1, 0.5)
    return unusable(
        name,
        f"check finds the exercise by the function's name, and there is no exercise {name}."
        + (f" Did you mean {close[0]}?" if close else f" The exercises are {', '.join(BY_NAME)}."),
    )


if "ipykernel" in sys.modules:  # in a notebook, before anything there can be replaced
    snapshot()

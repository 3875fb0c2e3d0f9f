"""From a reader's function to a report: run it, compare, find the mistake, choose what to show."""

import warnings
from difflib import get_close_matches
from functools import cache

import numpy as np

from helpers import arrays as given
from helpers.checks import borrowed, process
from helpers.checks.again import depends_on_more
from helpers.checks.compare import Fault, compare, listed, pieces_of
from helpers.checks.diagnose import Tried, diagnose
from helpers.checks.earlier import course_in_place_of, others
from helpers.checks.exercises import BY_NAME
from helpers.checks.kinds import what_holds
from helpers.checks.pristine import Snapshot
from helpers.checks.report import Report
from helpers.checks.signature import bound, is_empty, is_stub, not_a_function, wrong_arguments
from helpers.checks.words import end_in_words, facts, filled, in_words, pictures, printed, what_next


@cache
def snapshot():
    return Snapshot()


RIGHT = {}  # name -> (function, all that it rests on, the report), of answers that `check` has found right


def run(name, function):
    """Check `function` as the answer to the exercise `name`.

    Where `check` has found this function right, and nothing that it rests on is different since, that report
    is given again.
    Returns a Report: .passed (bool), .diagnosis (text, "" when no known mistake fits), .remarks (a list of
    texts), .message (the whole text).  Raises TypeError or ValueError for a name that is no exercise.
    """
    exercise = exercise_called(name)
    checked, rested_on, report = RIGHT.get(name, (None, None, None))
    if rested_on and checked is function and rested_on == rests_on(exercise, function):
        return report
    return judged(exercise, function)


def run_and_keep(name, function):
    """The report of `run`, made now, and kept for it where the function is right."""
    exercise = exercise_called(name)
    report = judged(exercise, function)
    RIGHT.pop(name, None)
    if report.passed:
        RIGHT[name] = function, rests_on(exercise, function), report
    return report


def rests_on(exercise, function):
    """All that a verdict on a function rests on, to be compared; None where that cannot be told."""
    try:
        on = process.carry(function) if exercise.cases else last_exercise().rests_on(function)
    except (process.CannotCarry, OSError):  # it was, a moment ago
        return None
    return on, snapshot().replaced()


def exercise_called(name):
    if given.text("name", name) not in BY_NAME:
        close = get_close_matches(name, BY_NAME, 1)
        raise ValueError(
            f"name must be that of an exercise, got {given.came(name)}."
            f"{f' Did you mean {close[0]!r}?' if close else ''} The exercises are {', '.join(BY_NAME)}."
        )
    return BY_NAME[name]


def judged(exercise, function):
    """The report on a function of a reader's, made with NumPy as it was."""
    with snapshot().in_force() as replaced:
        report = judge(exercise, function, may_blame=True)
    if replaced and report.state in ("passed", "wrong"):
        remark = (
            f"in this notebook {', '.join(replaced)} has been replaced; the check used the original. "
            "Restart the kernel to have it back."
        )
        report = with_more(report, remarks=[*report.remarks, remark])
    return report


def with_more(report, **more):
    return Report(**{**vars(report), **more})


def judge(exercise, function, may_blame=False):
    name = exercise.name
    if not callable(function):
        return unusable(name, not_a_function(name, function))
    try:
        getattr(function, "__wrapped__", None)
    except Exception as err:
        return unusable(name, f"{name} was not run: reading an attribute of it raises {type(err).__name__}.")
    trouble = wrong_arguments(exercise, function)
    if trouble:
        return unusable(name, trouble)
    if exercise.cases and is_stub(function):  # nothing to be run, nor to be waited for
        return Report(name, "not written", "not written yet")
    try:
        if exercise.cases is None:
            return last_exercise().judge(exercise, function)
        outcomes, replaced = process.run_apart(
            bound(exercise, function), exercise.inputs, withheld=borrowed.withheld(exercise, function)
        )
    except process.CannotCarry as err:
        return unusable(name, f"{name} was not run: {err}.")
    except RuntimeError as err:
        return unusable(name, f"{name} was not run: {err}.")
    except OSError as err:
        return unusable(
            name,
            f"{name} was not run: the process that runs the checks could not be started "
            f"({(err.strerror or str(err)).lower()}). Has the course's folder, or its Python, been moved or "
            "deleted since this notebook was opened? Then open it again from where it is now.",
        )
    if is_empty(function) and outcomes[0].error is None and outcomes[0].value is None:
        return Report(name, "not written", "not written yet")
    first = outcomes[0].error
    if first and first.type == "NotImplementedError":
        return not_written(exercise, function, first)
    return borrowed.verdict(exercise, function, outcomes) or weigh(
        exercise, function, outcomes, replaced, may_blame
    )


def last_exercise():
    """Who judges my_model: `together`. With it comes the language model, which no other exercise needs."""
    from helpers.checks import together

    return together


def weigh(exercise, function, outcomes, replaced, may_blame):
    given = exercise.in_one_form(outcomes)
    tried = [weighed(exercise, *row) for row in zip(exercise.inputs, exercise.expected, given, strict=False)]
    counted = [t for t in tried if not t.case.edge]
    faults = [t for t in counted if t.fault]
    if not faults:  # an edge case that is wrong where careful people agree
        faults = [t for t in tried if t.fault and not t.forgiven]
        counted += faults
    total = len(counted) + sum(not case.edge for case in exercise.inputs[len(tried) :])
    summary = f"right on {len(counted) - len(faults)} of {total} inputs"
    if total > len(counted):
        summary += f" ({total - len(counted)} not tried)"
    remarks = list(remarks_on(exercise, tried, outcomes, replaced))
    if not faults:
        return Report(
            exercise.name, "passed", summary, why=exercise.passed, remarks=remarks, next=what_next(exercise)
        )
    found = told(diagnose, exercise, tried)
    first, theirs = told(blame, exercise, function) or ((), None) if may_blame else ((), None)
    if found and len(first) > 1 and theirs and 0 < len(found.mistakes) < len(theirs.mistakes):
        first, theirs = first[:-1], None  # with the reader's own, wrong as they are, it is simpler
    if not found or not found.sure:
        found = told(depends_on_more, exercise, function, choose(exercise, faults)) or found
    clue = () if not found or found.sure else (found.what,)
    found = None if clue else found
    shown = choose(exercise, list(found.inputs) if found and found.inputs else faults)
    holds = () if found else (*(told(what_holds, exercise, counted, shown) or ()), *clue)
    sizes = exercise.sizes(shown.case)
    report = Report(
        exercise.name,
        "wrong",
        summary,
        shown=shown.case.says or in_words(exercise, shown.case),
        facts=tuple(facts(exercise, function, shown, found)),
        first=first,
        diagnosis=found.what if found else end_in_words(shown),
        why=filled(found.why, sizes) if found else "",
        holds=tuple(holds),
        read=tuple(f'notebook {nb}, "{heading}"' for nb, heading in found.read) if found else (),
        printed=tuple(printed(shown)),
        mistakes=tuple(m.name for m in found.mistakes) if found else (),
        pictures=pictures(exercise, shown),
    )
    if theirs:  # what is wrong is told where it is, without what is wrong elsewhere
        same = {key: getattr(theirs, key) for key in ("diagnosis", "why", "holds", "read", "mistakes")}
        report = with_more(report, **same)
    return report


STRICT = False  # in tests: let a fault of the diagnosis itself be seen


def told(ask, *arguments):
    """What `ask` says, or None: a fault of the diagnosis must never cost a reader the verdict."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ask(*arguments)
    except Exception:
        if STRICT:
            raise
        return None


def weighed(exercise, case, expected, given):
    """One input with its fault, and whether that is one on which careful people differ."""
    fault = compare(exercise, case, expected, given)
    forgiven = bool(
        fault
        and case.edge
        and not given.ended
        and (
            fault.kind == "error"
            or compare(exercise, case, expected, given, forgive=True) is None
            or case.edge_rows is None
        )
    )
    return Tried(case, expected, given, fault, forgiven)


def unusable(name, sentence):
    return Report(name, "unusable", "could not be checked", facts=(sentence,))


def not_written(exercise, function, problem):
    inner = problem.place.function if problem.place else exercise.name
    if inner in BY_NAME and inner != exercise.name:
        module = BY_NAME[inner].reference.__module__
        return Report(
            exercise.name,
            "not written",
            "waits for an earlier function",
            facts=(
                f"{inner} ({BY_NAME[inner].number}) is not written yet, and {exercise.name} uses it.",
                f"Write it first, or take the course's own: from {module} import {inner}",
            ),
        )
    code = getattr(function, "__code__", None)
    if code is not None and (
        set(code.co_names) > {"NotImplementedError"} or code.co_nlocals > code.co_argcount
    ):
        return Report(
            exercise.name,
            "not written",
            "stops before its end",
            facts=(
                "The line raise NotImplementedError is still there, and it ends the function. Take it out.",
            ),
        )
    return Report(exercise.name, "not written", "not written yet")


def remarks_on(exercise, tried, outcomes, replaced):
    for t in tried:
        if t.forgiven and t.fault.kind == "error" and t.case.edge_error:
            yield f"with {t.case.kind} it raises {t.given.error.type}{t.case.edge_error}"
        elif t.forgiven:
            yield t.case.edge
    if exercise.remark:
        text = exercise.remark([o.value if o.error is None else None for o in outcomes])
        if text:
            yield text
    tuples = any(t.given.tuple for t in tried)
    if len(exercise.returns) == 1 and any(isinstance(t.given.value, list) for t in tried):
        if not exercise.lists:
            came = f"{exercise.name} gives back a {'tuple' if tuples else 'list'}"
            yield f"{came}; the functions that come after it expect a NumPy array."
        elif tuples:
            yield "it gives back a tuple; the exercise asks for a list, to which one can append."
    elif plain := list(dict.fromkeys(name for t in tried for name in parts_in_lists(exercise, t))):
        come = "comes as a list" if len(plain) == 1 else "come as lists"
        yield f"{listed(plain)} {come}; the functions that come after it expect NumPy arrays."
    if replaced:
        yield f"it replaces {', '.join(replaced)} for everybody; use a name of your own."


def parts_in_lists(exercise, t):
    """The names of the parts of an answer that are no arrays; what a case puts together tells nothing."""
    of_ours = t.given.error or t.case.call
    pieces = [] if of_ours else pieces_of(exercise, exercise.returns, t.given.value)
    return [] if isinstance(pieces, Fault) else [name for name, piece in pieces if isinstance(piece, list)]


def choose(exercise, faults):
    """The input to show: the smallest that fails in the most common way; a size of 1 hides too much."""
    ended = [t for t in faults if t.given.ended]
    if ended:
        return ended[0]
    errors = [t for t in faults if t.fault.kind == "error"]
    others = [t for t in faults if t.fault.kind != "error"]
    group = errors if len(errors) > len(others) else others

    def effort(t):
        sizes = exercise.sizes(t.case).values()
        return min(sizes, default=2) == 1, t.case.style, t.case.size

    return min(group, key=effort)


def blame(exercise, function):
    """(sentences about earlier functions of the reader's that are used here and fail, the report to go by).

    The report is that of the earlier function without which all is right; where more is wrong, it
    is that of this exercise with the course's own functions in place of those earlier ones.
    """
    earlier = others(exercise, function)
    reports = {name: judge(BY_NAME[name], earlier[name]) for name in BY_NAME if name in earlier}
    doubtful = [name for name, report in reports.items() if not report.passed or report.remarks]
    rest = None
    for names in [[name] for name in doubtful] + [doubtful] * (len(doubtful) > 1):
        with course_in_place_of(function, {name: earlier[name] for name in names}):
            rest = judge(exercise, function)
        if not rest.passed:
            continue
        are, their = ("is", "its") if len(names) == 1 else ("are", "their")
        which = " and ".join(f"{name} ({BY_NAME[name].number})" for name in names)
        passes = all(reports[name].passed for name in names)
        says = "does not fit here, though it passes its own check" if passes else f"{are} what fails"
        line = (
            f"Your {which} {are} used here and {says}: with the course's own in {their} place, "
            f"{exercise.name} is right. Begin there."
        )
        if passes:
            return (line, *reports[names[0]].remark_lines), None
        return (line,), reports[names[0]] if len(names) == 1 else None
    lines = [
        f"Your {name} ({BY_NAME[name].number}) is used here, and its own check "
        f"{'has nothing to run yet' if reports[name].state == 'not written' else 'fails'}: begin there."
        for name in doubtful
        if not reports[name].passed
    ]
    if not lines or not rest.diagnosis or rest.state != "wrong":
        return tuple(lines), None
    its = "its" if len(lines) == 1 else "their"
    return (*lines, f"With the course's own in {its} place {exercise.name} is still wrong:"), rest

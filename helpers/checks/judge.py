"""From a reader's function to a report: run it, compare, find the mistake, choose what to show."""

import dis
import inspect
import linecache
import re
from difflib import get_close_matches
from functools import cache

from helpers.checks import process
from helpers.checks.exercises import BY_NAME, EXERCISES
from helpers.checks.compare import compare
from helpers.checks.diagnose import Tried, diagnose
from helpers.checks.kinds import what_holds
from helpers.checks.observe import Strange
from helpers.checks.pristine import Snapshot
from helpers.checks.report import Report, picturable

SOURCE_LIMIT = 90     # characters of a source line in a verdict


@cache
def snapshot():
    return Snapshot()


def run(name, function):
    """Check `function` as the answer to the exercise `name`.

    Returns a Report: .passed (bool), .diagnosis (text, "" when no known mistake fits), .remarks (list of texts),
    .message (the whole text).  Raises ValueError for a name that is no exercise.
    """
    if name not in BY_NAME:
        close = get_close_matches(str(name), BY_NAME, 1)
        raise ValueError(f"there is no exercise {name!r}{f'; did you mean {close[0]!r}?' if close else ''} "
                         f"The exercises are {', '.join(BY_NAME)}.")
    with snapshot().in_force() as replaced:
        report = judge(BY_NAME[name], function, may_blame=True)
    if replaced and report.state in ("passed", "wrong"):
        remark = (f"in this notebook {', '.join(replaced)} has been replaced; the check used the original. "
                  "Restart the kernel to have it back.")
        report = with_more(report, remarks=(*report.remarks, remark))
    return report


def with_more(report, **more):
    return Report(**{**vars(report), **more})


def judge(exercise, function, may_blame=False):
    name = exercise.name
    if not callable(function):
        return unusable(name, not_a_function(name, function))
    trouble = wrong_arguments(exercise, function)
    if trouble:
        return unusable(name, trouble)
    try:
        outcomes, replaced = process.run_apart(bound(exercise, function), exercise.inputs)
    except process.CannotCarry as err:
        return unusable(name, f"{name} was not run: {err}.")
    except (OSError, RuntimeError) as err:
        return unusable(name, f"{name} was not run: {err}.")
    if is_empty(function) and outcomes[0].error is None and outcomes[0].value is None:
        return Report(name, "not written", "not written yet")
    first = outcomes[0].error
    if first and first.type == "NotImplementedError":
        return not_written(exercise, function, first)
    return weigh(exercise, function, outcomes, replaced, may_blame)


def weigh(exercise, function, outcomes, replaced, may_blame):
    given = exercise.in_one_form(outcomes)
    tried = [weighed(exercise, *row) for row in zip(exercise.inputs, exercise.expected, given, strict=False)]
    faults = [t for t in tried if t.fault and not t.forgiven]
    counted = [t for t in tried if not t.case.edge or t in faults]
    total = len(counted) + sum(not case.edge for case in exercise.inputs[len(tried):])
    summary = f"right on {len(counted) - len(faults)} of {total} inputs"
    remarks = tuple(remarks_on(exercise, tried, replaced))
    if not faults:
        return Report(exercise.name, "passed", summary, why=exercise.passed, remarks=remarks, next=what_next(exercise))
    shown = choose(faults)
    also = [*printed(shown)]
    if may_blame:
        also = [*blame(exercise, function), *also]
    found = diagnose(exercise, tried)
    holds = () if found else what_holds(exercise, counted, shown)
    sizes = exercise.sizes(shown.case)
    return Report(
        exercise.name, "wrong", summary, shown=shown.case.says or in_words(exercise, shown.case),
        facts=tuple(facts(exercise, shown)), diagnosis=found.what if found else end_in_words(shown),
        why=filled(found.why, sizes) if found else "",
        holds=tuple(holds), read=tuple(f'notebook {nb}, "{heading}"' for nb, heading in found.read) if found else (),
        also=tuple(also), mistakes=tuple(m.name for m in found.mistakes) if found else (), pictures=pictures(exercise, shown))


def weighed(exercise, case, expected, given):
    """One input with its fault, and whether that is one on which careful people differ."""
    fault = compare(exercise, case, expected, given)
    forgiven = bool(fault and case.edge and not given.ended
                    and (fault.kind == "error" or compare(exercise, case, expected, given, forgive=True) is None
                         or case.edge_rows is None))
    return Tried(case, expected, given, fault, forgiven)


def unusable(name, sentence):
    return Report(name, "unusable", "could not be checked", facts=(sentence,))


def not_a_function(name, thing):
    if thing is None or hasattr(thing, "shape") or isinstance(thing, (list, tuple, int, float)):
        what = "None" if thing is None else f"a {type(thing).__name__}"
        return f"check needs the function itself, not what a call gives back ({what}): check({name}), without brackets after {name}."
    if isinstance(thing, str):
        return f"check needs the function itself, not its name in quotes: check({name})."
    return f"check needs a function, and this is a {type(thing).__name__}."


def wrong_arguments(exercise, function):
    """A sentence when the function cannot be called with the arguments of the exercise."""
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return ""
    try:
        signature.bind(*exercise.arguments)
    except TypeError:
        return (f"{exercise.name} is called with {plural(len(exercise.arguments), 'argument')} "
                f"({', '.join(exercise.arguments)}); yours takes {signature}.")
    optional = dict.fromkeys(name for case in exercise.inputs for name in case.options)
    spare = [p for p in list(signature.parameters.values())[len(exercise.arguments):] if p.kind != p.KEYWORD_ONLY]
    taken = set(signature.parameters)
    any_keyword = any(p.kind == p.VAR_KEYWORD for p in signature.parameters.values())
    missing = [name for name in optional if name not in taken]
    if missing and not any_keyword and len(spare) < len(optional):
        return (f"{exercise.name} has an optional argument {' and '.join(missing)}, and yours takes {signature}.")
    return ""


def bound(exercise, function):
    """The function, taking optional arguments by the exercise's names whatever it calls them itself."""
    optional = list(dict.fromkeys(name for case in exercise.inputs for name in case.options))
    try:
        parameters = inspect.signature(function).parameters
    except (ValueError, TypeError):
        return function
    if all(name in parameters for name in optional) or any(p.kind == p.VAR_KEYWORD for p in parameters.values()):
        return function
    return ByPlace(function, tuple(optional))


class ByPlace:
    """Passes optional arguments by place, for a function that has its own names for them."""

    def __init__(self, function, optional):
        self.function, self.optional = function, optional

    def __call__(self, *arguments, **options):
        return self.function(*arguments, *(options[name] for name in self.optional if name in options))


def is_empty(function):
    """Whether the body does nothing at all: only a docstring, pass, or three dots."""
    code = getattr(function, "__code__", None)
    idle = {"RESUME", "NOP", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST", "CACHE", "LOAD_COMMON_CONSTANT"}
    return code is not None and all(step.opname in idle for step in dis.get_instructions(code))


def not_written(exercise, function, problem):
    inner = problem.function
    if inner in BY_NAME and inner != exercise.name:
        module = BY_NAME[inner].reference.__module__
        return Report(exercise.name, "not written", "waits for an earlier function", facts=(
            f"{inner} ({BY_NAME[inner].number}) is not written yet, and {exercise.name} uses it.",
            f"Write it first, or take the course's own: from {module} import {inner}"))
    code = getattr(function, "__code__", None)
    if code is not None and (set(code.co_names) > {"NotImplementedError"} or code.co_nlocals > code.co_argcount):
        return Report(exercise.name, "not written", "stops before its end", facts=(
            "The line raise NotImplementedError is still there, and it ends the function. Take it out.",))
    return Report(exercise.name, "not written", "not written yet")


def remarks_on(exercise, tried, replaced):
    for t in tried:
        if t.forgiven:
            yield t.case.edge
    if len(exercise.returns) == 1 and any(isinstance(t.given.value, list) for t in tried):
        yield f"{exercise.name} gives back a list; the functions that come after it expect a NumPy array."
    if replaced:
        yield f"a call of {exercise.name} replaces {', '.join(replaced)} for everybody; use a name of your own."


def what_next(exercise):
    after = EXERCISES.index(exercise) + 1
    if after == len(EXERCISES):
        return "That was the last one."
    following = EXERCISES[after]
    return f"Next: {following.number} {following.name}"


def choose(faults):
    """The input to show: the smallest of those that fail in the most common way, small answers last."""
    ended = [t for t in faults if t.given.ended]
    if ended:
        return ended[0]
    errors = [t for t in faults if t.fault.kind == "error"]
    others = [t for t in faults if t.fault.kind != "error"]
    group = errors if len(errors) > len(others) else others

    def effort(t):
        answer = t.expected.value
        tiny = getattr(answer, "size", 9) < 4
        return tiny, t.case.style, t.case.size
    return min(group, key=effort)


def facts(exercise, shown):
    """What happened on the input shown."""
    if shown.fault.kind == "error":
        yield from error_lines(exercise, shown.given.error)
    else:
        yield from shown.fault.lines
        if shown.fault.kind != "changed" and shown.given.changed:
            names = " and ".join(list(exercise.arguments)[i] for i in shown.given.changed)
            yield f"Besides, the call changed {names} in place."
    if shown.fault.kind in ("nan", "error"):
        for text, file, line in shown.given.warned[:2]:
            source = source_line(file, line)
            yield f"NumPy warned: {text}{f', at  {source}' if source else ''}"


def error_lines(exercise, problem):
    text = re.sub(r", with gufunc signature \S+", "", problem.text.strip())
    yield f"{problem.type}: {text}" if text else problem.type
    if not problem.function:
        return
    source = source_line(problem.file, problem.line)
    here = problem.line - problem.first_line + 1
    inside = problem.function if problem.function != exercise.name else exercise.name
    where = f"in line {here} of {inside}" if problem.function != "<module>" else f"in line {problem.line}"
    where = where.replace("of <lambda>", "of a lambda")
    also = f", which {exercise.name} calls" if problem.function not in (exercise.name, "<module>", "<lambda>") else ""
    yield f"{where}{also}{f':  {source}' if source else ''}"
    used = [(n, s) for n, s in problem.shapes if not source or re.search(rf"\b{re.escape(n)}\b", source)]
    if used:
        yield "There " + " and ".join(f"{n} is {s}" for n, s in used[:6]) + "."


def source_line(file, line):
    """The reader's own line; notebook cells are known to linecache as well."""
    text = linecache.getline(file, line).strip() if file else ""
    return text if len(text) <= SOURCE_LIMIT else text[:SOURCE_LIMIT] + " …"


ERRORS = {
    "NameError": "A name is used that nobody has defined. Is it spelled the same way, and has its cell been run?",
    "UnboundLocalError": "A variable is read before anything was put into it.",
    "RecursionError": "The function calls itself without end.",
    "MemoryError": "It asks for more memory than there is: look at the shapes of what it makes.",
    "SystemExit": "It calls exit(), which ends the program. A function gives its answer with return.",
    "KeyboardInterrupt": "It raises KeyboardInterrupt, which ends the program. A function gives its answer with return.",
}


def end_in_words(shown):
    """A diagnosis for what needs no known mistake."""
    if shown.fault.kind == "error":
        return ERRORS.get(shown.given.error.type, "")
    return {"time": "The function does not come to an end: a loop whose condition never becomes false, or far too much work.",
            "ended": "The function ends the process it runs in.",
            "none": "The function computes something and does not return it."}.get(shown.fault.kind, "")


def printed(shown):
    text = shown.given.printed.strip("\n")
    if text.strip():
        lines = text.split("\n")
        more = [f"… and {len(lines) - 6} more lines"] if len(lines) > 6 else []
        yield "It printed:\n" + "\n".join([line[:110] for line in lines[:6]] + more)


def blame(exercise, function):
    """A line for each earlier function of the reader's that this one uses and that fails its own check."""
    for name, own in used_functions(function).items():
        if name in BY_NAME and name != exercise.name:
            report = judge(BY_NAME[name], own)
            if not report.passed:
                yield (f"Your {name} ({BY_NAME[name].number}) is used here, and its own check "
                       f"{'has nothing to run yet' if report.state == 'not written' else 'fails'}: begin there.")


def used_functions(function, depth=3):
    """The reader's own functions that this one calls, by name, those they call included."""
    found = {}
    code = getattr(function, "__code__", None)
    for name in getattr(code, "co_names", ()):
        own = function.__globals__.get(name)
        if inspect.isfunction(own) and own is not function and not own.__module__.startswith("helpers."):
            found[own.__name__ if depth < 3 else name] = own
            if depth > 1:
                found = {**used_functions(own, depth - 1), **found}
    return found


WORDS = {"n": "token", "n_q": "query", "n_k": "key"}


def in_words(exercise, case):
    """"5 queries, 7 keys, d_k = 6", and what is special about it."""
    sizes = exercise.sizes(case)
    texts = [plural(sizes[name], word) for name, word in WORDS.items() if name in sizes]
    texts += [f"{name} = {size}" for name, size in sizes.items() if name not in WORDS]
    texts += [f"{name}={value}" for name, value in case.options.items() if isinstance(value, bool)]
    said = ", ".join(texts)
    return f"{said} ({case.kind})" if case.kind and case.kind not in texts else said


def plural(count, word):
    if count == 1:
        return f"1 {word}"
    return f"{count} {word[:-1] + 'ies' if word.endswith('y') and not word.endswith('ey') else word + 's'}"


def filled(text, sizes):
    """{d_k} and the like replaced; a size this input does not have leaves the text as it is."""
    for name, size in sizes.items():
        text = text.replace(f"{{{name}}}", str(size))
    return text


def pictures(exercise, shown):
    """Expected and given side by side, where both are small."""
    fault = shown.fault
    want, have = fault.expected, fault.given
    if want is None and shown.case.raises and not isinstance(shown.given.value, Strange):
        return ()
    if want is None or not picturable(want) or not picturable(have):
        return ()
    name = f"{fault.part}: " if fault.part else ""
    return (f"{name}expected", want, fault.at), (f"{name}given", have, fault.at)


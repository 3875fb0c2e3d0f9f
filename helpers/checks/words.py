"""The sentences of a verdict: what the input was, what happened on it, what comes next."""

import re

from helpers.checks.exercises import EXERCISES
from helpers.checks.observe import Strange
from helpers.checks.report import picturable
from helpers.checks.source import locate

WORDS = {"n": "token", "n_q": "query", "n_k": "key"}


def in_words(exercise, case):
    """The sizes of an input and what is special about it: "5 queries, 7 keys, d_k = 6 (integers)"."""
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
    if want is None:
        return ()
    name, at = f"{fault.part}: " if fault.part else "share of each id, " if shown.case.draws else "", fault.at
    if at is not None and want.ndim == 3 and have.shape == want.shape:
        first, at = at[0], at[1:]  # of several matrices the one with the fault
        want, have, name = want[first], have[first], f"{name}[{first}] "
    if not picturable(want) or not picturable(have):
        return ()
    return (f"{name}expected", want, at), (f"{name}given", have, at)


def facts(exercise, function, shown, found):
    """What happened on the input shown."""
    if shown.fault.kind == "error":
        yield from error_lines(exercise, function, shown.given.error)
    elif not (shown.fault.kind in ("changed", "shared") and found):  # the diagnosis says it
        yield from shown.fault.lines
        if shown.fault.kind != "changed" and shown.given.changed:
            names = " and ".join(list(exercise.arguments)[i] for i in shown.given.changed)
            yield f"Besides, the call changed {names} in place."
    if shown.fault.kind in ("nan", "error"):
        for text, place in shown.given.warned[:2]:
            name, line, source = locate(function, place) if place else ("", 0, "")
            where = f", in line {line} of {name}{':  ' + source if source else ''}" if place else ""
            yield f"Python warned: {text}{where}"


def error_lines(exercise, function, problem):
    text = re.sub(r", with gufunc signature \S+", "", problem.text.strip())
    yield f"{problem.type}: {text}" if text else problem.type
    place = problem.place
    if place is None:
        return
    name, line, source = locate(function, place)
    name = {"<lambda>": "a lambda"}.get(name, name)
    also = f", which {exercise.name} calls" if name not in (exercise.name, "a lambda") else ""
    yield f"in line {line} of {name}{also}{':  ' + source if source else ''}"
    used = [(n, s) for n, s in problem.shapes if not source or re.search(rf"\b{re.escape(n)}\b", source)]
    if used:
        yield "There " + " and ".join(f"{n} is {s}" for n, s in used[:6]) + "."


ENDS = "which ends the program. A function gives its answer with return."
ERRORS = {
    "NameError": "A name is used that nobody has defined. Is it spelled right, and has its cell been run?",
    "UnboundLocalError": "A variable is read before anything was put into it.",
    "RecursionError": "The function calls itself without end.",
    "MemoryError": "It asks for more memory than there is: look at the shapes of what it makes.",
    "NobodyThere": "It waits for somebody to type. A function gets what it needs from its arguments.",
    "SystemExit": f"It calls exit(), {ENDS}",
    "KeyboardInterrupt": f"It raises KeyboardInterrupt, {ENDS}",
}
FAULTS = {
    "time": "The function does not come to an end: a loop that never stops, or far too much work.",
    "late": "It does come back, but far too slowly: on inputs as small as these a call takes milliseconds.",
    "ended": "The function ends the process it runs in.",
    "none": "The function computes something and does not return it.",
    "things": "Several things are returned where one is asked for: return the answer alone.",
}


MESSAGES = (  # part of an error message -> what it means
    (
        "NoneType",
        "Something here is None: an argument that was not given, or what a function without return gives.",
    ),
    (
        "only integers, slices|indices must be integers|interpreted as an integer|integer scalar arrays",
        "An index or a size must be a whole number: / gives a float, // a whole number.",
    ),
    (
        "out of bounds for u?int|too large to convert|too large for a C",
        "A NumPy integer has no room for this number: int(…) makes a Python integer, which has.",
    ),
    (
        "mismatch in its core dimension|not aligned",
        "In a product (n, k) @ (k, m) the two inner sizes must be the same.",
    ),
    (
        "inhomogeneous shape",
        "One array holds only things of one shape, and these differ. To return several, write commas between "
        "them; to join them there is np.concatenate.",
    ),
    (
        "must hold finite numbers.* got nan",
        "Something before this has made a nan: 0 · inf, inf - inf and 0 / 0 do.",
    ),
    (
        "could not broadcast input array|setting an array element with a sequence",
        "What is put there has another shape than its place: was the array made in the answer's shape?",
    ),
    (
        "could not be broadcast",
        "Shapes are compared from the last axis backwards: two sizes must be the same, or one of them 1.",
    ),
    ("cannot reshape", "reshape keeps all numbers: the sizes of the new shape must multiply to as many."),
    ("truth value of an array", "if needs one True or False; of many, .all() or .any() makes one."),
    ("ndarray' object is not callable", "An array is picked from with square brackets; round ones call."),
    ("values to unpack", "There are more names, or fewer, on the left of = than things on the right."),
    ("missing .* required .*argument", "A function is called here with fewer arguments than it takes."),
    (
        "softmax.* unexpected keyword argument 'axis'",
        "The course's softmax takes no axis: it always runs along the last one.",
    ),
    ("unexpected keyword argument", "The function called here has no argument of that name."),
    ("robabilities do not sum to 1", "rng.choice wants probabilities that add up to 1."),
    ("robabilities contain NaN", "The probabilities are nan: is there a 0 / 0, or an exp that overflows?"),
    ("p' must be 1-dim|p must be 1-dim", "rng.choice wants one row of probabilities, one for each id."),
    ("'a' and 'p' must have", "rng.choice wants as many probabilities as there are things to draw from."),
)


def end_in_words(shown):
    """A diagnosis for what needs no known mistake."""
    if shown.fault.kind == "error":
        error = shown.given.error
        meant = (text for part, text in MESSAGES if re.search(part, error.text))
        return ERRORS.get(error.type, "") or next(meant, "")
    return FAULTS.get(shown.fault.kind, "") if not shown.fault.part else ""


def printed(shown):
    text = shown.given.printed.strip("\n")
    if text.strip():
        lines = text.split("\n")
        more = [f"… and {len(lines) - 6} more lines"] if len(lines) > 6 else []
        yield "It printed:\n" + "\n".join([line[:110] for line in lines[:6]] + more)


def what_next(exercise):
    """The exercise that comes after this one."""
    names = [e.name for e in EXERCISES]
    following = EXERCISES[names.index(exercise.name) + 1 :] if exercise.name in names else ()
    return f"Next: {following[0].number} {following[0].name}" if following else "That was the last one."

"""Can this be checked at all? What is no function, and what takes other arguments, gets a sentence."""

import dis
import inspect

from helpers.checks.compare import listed
from helpers.checks.observe import in_words
from helpers.checks.words import plural


def not_a_function(name, thing):
    """What to say about something that cannot be called."""
    if isinstance(thing, str):
        return f"check needs the function itself, not its name in quotes: check({name})."
    kind = "None" if thing is None else "an array" if hasattr(thing, "shape") else in_words(thing).what
    return (
        f"check needs the function itself, not what a call gives back ({kind}): check({name}), "
        f"without brackets after {name}."
    )


def wrong_arguments(exercise, function):
    """A sentence when the function cannot be called with the arguments of the exercise."""
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return ""
    optional = optional_names(exercise)
    try:
        signature.bind(*exercise.arguments)
    except TypeError:
        text = (
            f"{exercise.name} is called with {plural(len(exercise.arguments), 'argument')} "
            f"({', '.join(exercise.arguments)}); yours takes {signature}."
        )
        last = list(signature.parameters)[len(exercise.arguments) :]
        if last and last == list(optional)[: len(last)]:
            also = "has a default value" if len(last) == 1 else "have default values"
            text += f" In the exercise {listed(last)} {also}, to be taken when nothing is given."
        return text
    parameters = list(signature.parameters.values())
    by_place = [p for p in parameters[len(exercise.arguments) :] if p.kind != p.KEYWORD_ONLY]
    if not takes(signature, optional) and len(by_place) < len(optional):
        some = "an optional argument" if len(optional) == 1 else "optional arguments"
        return f"{exercise.name} has {some} {' and '.join(optional)}; yours takes {signature}."
    return ""


def optional_names(exercise):
    """{name: default} of the optional arguments that the inputs use, in the order of the exercise."""
    used = {name for case in exercise.inputs for name in case.options}
    parameters = inspect.signature(exercise.reference).parameters
    return {name: p.default for name, p in parameters.items() if name in used}


def takes(signature, names):
    """Whether all these arguments can be given by name."""
    parameters = signature.parameters
    return all(n in parameters for n in names) or any(p.kind == p.VAR_KEYWORD for p in parameters.values())


def bound(exercise, function):
    """The function, taking optional arguments by the exercise's names whatever it calls them itself."""
    optional = optional_names(exercise)
    try:
        by_name = takes(inspect.signature(function), optional)
    except (ValueError, TypeError):
        by_name = True
    return function if by_name else ByPlace(function, optional)


class ByPlace:
    """Passes optional arguments by place, for a function that has its own names for them.

    optional : {name: default}; a default stands in for what is not given in front of what is.
    """

    def __init__(self, function, optional):
        self.function, self.optional = function, optional

    def __call__(self, *arguments, **options):
        last = max((i for i, name in enumerate(self.optional, 1) if name in options), default=0)
        values = (self.optional | options).values()
        return self.function(*arguments, *list(values)[:last])


IDLE = {"RESUME", "NOP", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST", "CACHE", "LOAD_COMMON_CONSTANT"}


def is_empty(function):
    """Whether the body does nothing at all: only a docstring, pass, or three dots."""
    code = getattr(function, "__code__", None)
    return code is not None and all(step.opname in IDLE for step in dis.get_instructions(code))


def is_stub(function):
    """Whether the body is the line it is handed out with, `raise NotImplementedError`, and nothing else."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_names != ("NotImplementedError",):
        return False
    steps = [step.opname for step in dis.get_instructions(code) if step.opname not in IDLE]
    return steps == ["LOAD_GLOBAL", "RAISE_VARARGS"]

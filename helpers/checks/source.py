"""Find the reader's own functions and source lines behind a function.

A function that travelled to the worker has lost its file name, so a line is found by the name and the first
line of the function it stands in. Notebook cells are known to `linecache` as well as files are.
"""

import functools
import inspect
import linecache
import types

LINE_LIMIT = 90  # characters of a source line in a verdict


def own_functions(function):
    """{name: function} of the reader's functions that this one reaches, itself included, outermost first."""
    found, waiting, seen = {}, [(None, function)], set()
    while waiting:
        name, thing = waiting.pop(0)
        if isinstance(thing, functools.partial):
            thing = thing.func
        elif isinstance(thing, functools._lru_cache_wrapper):
            thing = thing.__wrapped__
        elif not inspect.isroutine(thing) and not inspect.isclass(thing) and callable(thing):
            thing = type(thing).__call__
        if not isinstance(thing, types.FunctionType) or id(thing) in seen or is_course(thing):
            continue
        seen.add(id(thing))
        found.setdefault(name or thing.__name__, thing)
        for code in codes(thing.__code__):
            waiting += [(n, thing.__globals__[n]) for n in code.co_names if n in thing.__globals__]
        waiting += list(enclosed(thing).items())
        waiting.append((None, getattr(thing, "__wrapped__", None)))
    return found


def is_course(function):
    return (getattr(function, "__module__", None) or "").startswith("helpers.")


def codes(code):
    """A code object and all that are nested in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


def enclosed(function):
    """The variables of surrounding functions that this one uses."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not filled yet
            continue
    return found


def locate(function, place):
    """(name of the reader's function, line counted from its first, the line itself or "") for a `Place`."""
    for name, own in own_functions(function).items():
        for code in codes(own.__code__):
            if (code.co_name, code.co_firstlineno) == (place.function, place.first_line):
                text = linecache.getline(code.co_filename, place.line).strip()
                return (
                    name,
                    place.line - own.__code__.co_firstlineno + 1,
                    text if len(text) <= LINE_LIMIT else text[:LINE_LIMIT] + " …",
                )
    return place.function, place.line - place.first_line + 1, ""

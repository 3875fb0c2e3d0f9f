"""The functions that a reader has written, out of the exercise notebooks in their folder.

Read `functions_of`, which takes them out of one notebook. Of its code only imports, definitions and
assignments run, each on its own: no check, no picture, and nothing that breaks off can stop the rest.
"""

import ast
import inspect
import json
import re

from helpers import arrays as given
from helpers.checks.exercises import BY_NAME
from helpers.checks.signature import is_empty
from helpers.checks.source import is_course

NOTEBOOKS = "[0-9][0-9]_*.ipynb"
RUN = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)


def my_functions():
    """{name: function} of every exercise you have written.

    Those of this notebook count as you ran them. The others are read from the exercise notebooks in this
    folder, as they are saved; each sees what its own notebook imports and defines.
    """
    namespace = inspect.currentframe().f_back.f_globals
    return saved_functions()[0] | running_functions(namespace)


def running_functions(namespace):
    """{name: function} of the exercises that are written in a running notebook."""
    return {name: namespace[name] for name in BY_NAME if is_written(namespace.get(name))}


def saved_functions(folder="."):
    """({name: function}, {what is left out: why}) of the exercises written in the notebooks of a folder.

    A function that stands in several, because it was pasted, is taken from the notebook of its exercise.
    Raises TypeError when `folder` is no path.
    """
    found, left_out = {}, {}
    for path in sorted(given.path("folder", folder).glob(NOTEBOOKS)):
        try:
            here = functions_of(path, left_out)
            at_home = {name for name in here if path.name.startswith(BY_NAME[name].notebook)}
            found |= {name: here[name] for name in here if name in at_home or name not in found}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, MemoryError):
            left_out[path.name] = "it is no readable notebook"
    lost = {name for name in left_out if name not in found and (name in BY_NAME or name.endswith(".ipynb"))}
    return found, {name: left_out[name] for name in left_out if name in lost}


def functions_of(path, left_out):
    """{name: function} of the exercises written in one notebook; adds to `left_out` what does not run."""
    found, namespace = {}, {"__name__": "__main__"}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        name = cell.get("id", "").removesuffix("-answer").replace("-", "_")
        where = f"{path.name}, cell {cell.get('id', '')}"
        try:
            statements = parsed("".join(cell["source"])).body
        except SyntaxError as err:
            line = f"line {err.lineno}: " if err.lineno else ""
            left_out[name] = f"its cell is no Python ({line}{err.msg})"
            continue
        for statement in statements:
            if not isinstance(statement, RUN):
                continue
            try:
                exec(compile(ast.Module([statement], []), where, "exec"), namespace)
            except KeyboardInterrupt:
                raise
            except BaseException as err:
                left_out[getattr(statement, "name", name)] = f"its cell fails ({type(err).__name__}: {err})"
                continue
            found |= running_functions(namespace)
    return found


def parsed(source):
    """The cell as Python, without lines such as %timeit; raises SyntaxError, whatever is wrong with it."""
    try:
        try:
            return ast.parse(source)
        except SyntaxError:
            return ast.parse(re.sub(r"^([ \t]*)[%!].*", r"\1pass", source, flags=re.MULTILINE))
    except (RecursionError, MemoryError):
        raise SyntaxError("it is nested too deeply") from None
    except ValueError as err:                   # a sign that no source may hold
        raise SyntaxError(str(err)) from None


def is_written(function):
    """Whether this is a function of the reader's that does something: no stub, and not the course's own."""
    names = getattr(getattr(function, "__code__", None), "co_names", None)
    return (
        callable(function)
        and not is_course(function)
        and not is_empty(function)
        and names != ("NotImplementedError",)
    )

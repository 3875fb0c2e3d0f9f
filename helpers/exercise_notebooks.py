"""Exercise notebooks from solution notebooks: `python -m helpers.exercise_notebooks [--check]`.

solutions/ is the single source. In each of its code cells what stands between the lines "### BEGIN SOLUTION"
and "### END SOLUTION" (nbgrader's marks) becomes a stub, outputs are cleared, and everything else is kept:
texts, cell ids, tags. Read `exercise`, which makes one notebook out of the other, then `write` and `check`,
which go through the folders. A notebook that a reader has changed is never overwritten: a fingerprint in its
metadata tells.
"""

import argparse
import ast
import copy
import hashlib
import json
import os
import re
import sys
import tempfile
from pathlib import Path

import nbformat

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
LOOKS_LIKE_A_MARK = re.compile(r"(begin|end)[ _-]*solution", re.IGNORECASE)
STUB = "raise NotImplementedError  # your code here"
FINGERPRINT = "written_from_solutions"


class Refused(Exception):
    """A solution notebook from which no exercise can be written; the text names file and cell."""


def stub(source):
    """The cell's source with every marked block replaced by the stub line, indented as the mark is.

    Raises ValueError for marks that are unbalanced, nested, not alone on their line or outside a function, or
    when what is left is not Python.
    """
    lines, begun = [], None
    for number, line in enumerate(source.split("\n"), start=1):
        mark = line.strip()
        if mark == BEGIN:
            if begun:
                raise ValueError(f'line {number} has "{BEGIN}" inside the block that begins in line {begun}')
            begun = number
            lines.append(line[:line.index(BEGIN)] + STUB)
        elif mark == END:
            if not begun:
                raise ValueError(f'line {number} has "{END}" and no "{BEGIN}" before it')
            begun = None
        elif LOOKS_LIKE_A_MARK.search(line):
            raise ValueError(f'line {number} has a mark that is not exactly "{BEGIN}" or "{END}", '
                             f"alone on its line: {mark}")
        elif not begun:
            lines.append(line)
    if begun:
        raise ValueError(f'line {begun} has "{BEGIN}" and no "{END}" after it')
    text = "\n".join(lines)
    try:
        statements = ast.parse(text).body
    except SyntaxError as err:
        raise ValueError(f"without its solution it is not Python (line {err.lineno}: {err.msg})") from None
    if any(isinstance(statement, ast.Raise) for statement in statements):
        raise ValueError("a solution outside a function: the cell would stop the notebook")
    return text


def exercise(solution, name="the notebook"):
    """The exercise notebook for a solution notebook: same cells, ids and tags, stubs, no outputs.

    Raises Refused, naming the notebook and the cell, when a mark is wrong or an id is missing or used twice.
    """
    notebook, seen = copy.deepcopy(solution), set()
    for number, cell in enumerate(notebook.cells, start=1):
        cell_id = cell.get("id")
        where = f'{name}, cell {number} ("{cell_id}")'
        if not cell_id or cell_id in seen:
            raise Refused(f"{where}: {'this id is used twice' if cell_id else 'the cell has no id'}")
        seen.add(cell_id)
        if cell.cell_type != "code":
            if LOOKS_LIKE_A_MARK.search(cell.source):
                raise Refused(f"{where}: a solution mark in a cell that is not code")
            continue
        cell.outputs, cell.execution_count = [], None
        try:
            written = stub(cell.source) if LOOKS_LIKE_A_MARK.search(cell.source) else cell.source
        except ValueError as err:
            raise Refused(f"{where}: {err}") from None
        if "answer" in cell.metadata.get("tags", ()) and written == cell.source:
            raise Refused(f'{where}: tagged "answer", but no solution is marked in it')
        cell.source = written
    notebook.metadata[FINGERPRINT] = fingerprint(notebook)
    return notebook


def fingerprint(notebook):
    """A short text that changes when a cell is added, removed, moved or edited, not when it is run."""
    cells = [(cell.cell_type, cell.source) for cell in notebook.cells]
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()[:16]


def is_stub(source):
    """Whether the cell is a function that holds nothing but a docstring and the stub."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return False
    if len(body) != 1 or not isinstance(body[0], ast.FunctionDef):
        return False
    rest = body[0].body[1:] if ast.get_docstring(body[0]) is not None else body[0].body
    return len(rest) == 1 and ast.unparse(rest[0]) == STUB.split("  #")[0]


def differences(there, fresh):
    """How a notebook in exercises/ differs from a fresh one: (drift, own), two lists of (cell id, what).

    drift : what must be written anew.  own : what belongs to a reader, answers and added cells.
    """
    drift, own = [], []
    cells = {cell.get("id"): cell for cell in there.cells}
    for cell in fresh.cells:
        found = cells.pop(cell.id, None)
        if found is None:
            drift.append((cell.id, "is missing"))
        elif found.source == cell.source and found.cell_type == cell.cell_type:
            if found.metadata.get("tags") != cell.metadata.get("tags"):
                drift.append((cell.id, "has other tags"))
        elif STUB in cell.source and not is_stub(found.source):
            own.append((cell.id, "holds an answer"))
        else:
            drift.append((cell.id, "differs"))
    own += [(cell_id, "is added") for cell_id in cells]
    order = [cell.id for cell in fresh.cells]
    kept = [cell.get("id") for cell in there.cells if cell.get("id") in order]
    if not drift and kept != order:
        drift.append((next(a for a, b in zip(kept, order, strict=True) if a != b), "has moved"))
    return drift, own


def read(path):
    """The notebook at `path`; raises ValueError when the file is not one."""
    try:
        return nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
    except Exception as err:
        raise ValueError(f"not a readable notebook ({type(err).__name__})") from err


def text_of(notebook):
    """The notebook as it stands in its file."""
    return nbformat.writes(notebook, version=4) + "\n"


def write_text(path, text):
    """Write a file whole or not at all. An OSError names it, and not the one written on the way."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=".tmp")
        try:
            with open(handle, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as err:
        raise OSError(err.errno, err.strerror or str(err), str(path)) from None


def fresh_exercises(root):
    """{file name: exercise notebook} for every solution; raises Refused when one cannot be written."""
    fresh = {}
    for path in sorted((root / "solutions").glob("*.ipynb")):
        try:
            fresh[path.name] = exercise(read(path), f"solutions/{path.name}")
        except ValueError as err:
            raise Refused(f"solutions/{path.name}: {err}") from None
    if not fresh:
        raise Refused(f"there are no notebooks in {root / 'solutions'}")
    return fresh


def write(root, say=print):
    """Write every exercise notebook but those that somebody has changed. Returns an exit status."""
    fresh = fresh_exercises(root)                           # all of them are sound before any is written
    if (root / "exercises").is_file():
        raise Refused(f"{root / 'exercises'} should be a folder and is a file: move it away")
    (root / "exercises").mkdir(exist_ok=True)
    for name, notebook in fresh.items():
        path = root / "exercises" / name
        text = text_of(notebook)
        if path.exists():
            try:
                there = read(path)
            except ValueError as err:
                say(f"exercises/{name}: left as it is, {err}. To get a fresh one, rename or delete it "
                    "and run this again.")
                continue
            drift, own = differences(there, notebook)
            if (drift or own) and there.metadata.get(FINGERPRINT) != fingerprint(there):
                changed = ", ".join(cell_id for cell_id, _ in own or drift)
                say(f"exercises/{name}: left as it is, because it holds your work (cells {changed}). "
                    "To get a fresh one, rename or delete it and run this again.")
                continue
            if path.read_text(encoding="utf-8") == text:
                say(f"exercises/{name}: up to date")
                continue
        write_text(path, text)
        say(f"exercises/{name}: written")
    return 0


def check(root, say=print, strict=None):
    """Compare exercises/ with what solutions/ gives; write nothing. Returns an exit status: 1 for drift.

    strict : also 1 for what does not belong in the repository, a reader's answers, added cells, outputs; by
    default so when CI=true. Otherwise a notebook with a reader's work in it is reported, and never a fault.
    """
    strict = os.environ.get("CI", "").lower() == "true" if strict is None else strict
    fresh, status = fresh_exercises(root), 0
    for name, notebook in fresh.items():
        path = root / "exercises" / name
        mend = "python3 course.py exercises writes it from the solution"
        if not path.exists():
            say(f"exercises/{name}: missing; {mend}")
            status = 1
            continue
        try:
            there = read(path)
        except ValueError as err:
            say(f"exercises/{name}: {err}; rename or delete it, then {mend}")
            status = 1
            continue
        drift, own = differences(there, notebook)
        for cell_id, what in drift:
            say(f'exercises/{name}: cell "{cell_id}" {what}, drifted from solutions/{name}; {mend}')
        for cell_id, what in own:
            say(f'exercises/{name}: cell "{cell_id}" {what}{", not for the repository" if strict else ""}')
        if drift or own:
            if strict or not own:                           # a reader's notebook may be an older one
                status = 1
        elif strict and path.read_text(encoding="utf-8") != text_of(notebook):
            say(f"exercises/{name}: its outputs or its metadata differ; {mend}")
            status = 1
        else:
            say(f"exercises/{name}: up to date")
    for path in sorted((root / "exercises").glob("*.ipynb")):
        if path.name not in fresh:
            say(f"exercises/{path.name}: there is no solutions/{path.name}")
            status = 1 if strict else status
    return status


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m helpers.exercise_notebooks",
                                     description="Write exercises/ from solutions/.")
    parser.add_argument("--check", action="store_true",
                        help="write nothing; exit status 1 when exercises/ has drifted from solutions/")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[1],
                        help="the folder that holds solutions/ and exercises/ (default: the course)")
    options = parser.parse_args(arguments)
    try:
        return check(options.root) if options.check else write(options.root)
    except Refused as err:
        print(f"{err}. Nothing was written.", file=sys.stderr)
        return 1
    except OSError as err:
        if err.filename is None:                            # not of a notebook: of what this prints into
            raise
        print(f"{err.filename} cannot be written: {err.strerror}. Copy the course into a folder of your own, "
              "on a disk with room, and run this there.", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())

"""Judges what a learner has handed in: `python -m helpers.checks.submission`, a process for one submission.

The classroom's grading starts it, in a folder of its own with a clean copy of the helpers. It reads one job
from its standard input and answers on its standard output, an exercise at a time. The cells of the notebooks
run in the process of the checks, never here, one at a time; what comes back are functions. Read `main`, then
`functions_in`, then `judged`.
"""

import ast
import json
import linecache
import pickle
import re
import types

import numpy as np

from helpers.checks import process, wire
from helpers.checks.exercise import Case
from helpers.checks.exercises import BY_NAME
from helpers.checks.follow_on import Judge
from helpers.checks.judge import unusable, with_more
from helpers.checks.notebooks import is_written, parsed
from helpers.checks.source import own_functions
from helpers.checks.worker import limit_memory, private_streams

CELL_LIMIT, TOTAL = 10, 120  # seconds for one cell, and for all of a notebook
VERSIONS = 3  # of one function that are tried, the last first
CHUNK, LARGEST = 150_000, 20_000_000  # bytes of a function on its way
DEFINITIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
NOT_RUN = {"check", "progress", "run", "display", "print", "help", "exit", "quit", "input"}
FUNCTIONS = "the functions"
WHOLE, PART, NOTHING = "whole", "definitions alone", "nothing"  # of a cell that runs
LESS = {WHOLE: PART, PART: NOTHING}


def main():
    jobs, answers = private_streams()
    limit_memory()
    job = json.loads(wire.receive(jobs))
    versions, troubles = {}, []
    for notebook in job["notebooks"]:
        found, trouble = functions_in(notebook["file"], notebook["cells"], notebook["names"])
        troubles += trouble
        for name, functions in found.items():
            versions[name] = functions + versions.get(name, [])
    send(answers, troubles=[[file, cell, what] for file, cell, what, _ in troubles])
    process.close()  # what the cells did to that process ends with it
    judge = Judge()
    for name in job["names"]:
        send(answers, **judged(judge, name, versions.get(name, []), troubles, job["notebooks"]))


def send(answers, **what):
    wire.send(answers, json.dumps(what).encode())


def functions_in(file, cells, names):
    """({name: [(cell, function as bytes, why it could not be carried), …]}, [(file, cell, what, source), …]).

    cells : [id, source] of each code cell.  A cell that does not come to an end, or ends its process, is left
    out the next time, all but its definitions first.
    """
    how = [WHOLE] * len(cells)
    troubles = {}
    while True:
        steps = [Case("", (i,)) for i in range(len(cells))] + [Case("", (FUNCTIONS,))]
        outcomes, _ = process.run_apart(Cells(file, cells, names, how), steps, CELL_LIMIT, TOTAL)
        last, at = outcomes[-1], len(outcomes) - 1
        if not last.ended:
            break
        if at == len(cells) or how[at] == NOTHING:
            return {}, [(file, "", "what its cells define could not be taken out of it", "")]
        how[at] = LESS[how[at]]
        slow = last.ended == "time"
        troubles[at] = (
            f"does not come to an end within {CELL_LIMIT} s" if slow else f"ends the program ({last.ended})"
        )
    for at, outcome in enumerate(outcomes[:-1]):
        if at not in troubles and outcome.value:
            troubles[at] = outcome.value
    found = {}
    for name, cell, trouble, *chunks in outcomes[-1].value or ():
        function = (cell, b"".join(chunk.tobytes() for chunk in chunks), trouble)
        found.setdefault(name, []).append(function)
    return found, [(file, cells[at][0], what, cells[at][1]) for at, what in sorted(troubles.items())]


class Cells:
    """The code cells of a notebook, on the way to the process of the checks.

    Called with the number of a cell it runs it, and gives what went wrong as a sentence or ""; called with
    FUNCTIONS it gives [[name, cell, why it cannot be carried, *chunks of bytes], …], the last version first.
    """

    def __init__(self, file, cells, names, how):
        self.file, self.cells, self.names, self.how = file, cells, names, how
        self.namespace, self.found = {"__name__": "__main__"}, {name: [] for name in names}

    def __call__(self, step):
        return self.carried() if step == FUNCTIONS else self.run(*self.cells[step], self.how[step])

    def run(self, cell, source, how):
        trouble = ""
        try:
            statements = parsed(source).body if how != NOTHING else []
        except SyntaxError as err:
            line = f"line {err.lineno}: " if err.lineno else ""
            return f"is no Python ({line}{err.msg})"
        for statement in statements:
            if how == PART and not isinstance(statement, DEFINITIONS) or shows(statement):
                continue
            try:
                code = compile(ast.Module([statement], []), place(self.file, cell), "exec")
                exec(code, self.namespace)
            except (Exception, SystemExit, KeyboardInterrupt) as err:
                trouble = trouble or f"fails in line {statement.lineno} ({type(err).__name__}: {err})"[:300]
        for name, versions in self.found.items():
            function = self.namespace.get(name)
            if is_written(function) and all(function is not known for _, known in versions):
                versions.append((cell, function))
            elif versions and not is_written(function):  # a stub further down, a cell that was copied
                self.namespace[name] = versions[-1][1]
        return trouble

    def carried(self):
        out = []
        for name, versions in self.found.items():
            for cell, function in versions[::-1][:VERSIONS]:
                try:
                    data, trouble = process.carry(function), ""
                except process.CannotCarry as err:
                    data, trouble = b"", str(err)
                if len(data) > LARGEST:
                    data, trouble = b"", "it drags more than 20 MB of the notebook's variables with it"
                whole = np.frombuffer(data, np.uint8)
                out.append([name, cell, trouble, *(whole[i:i + CHUNK] for i in range(0, len(data), CHUNK))])
        return out


def shows(statement):
    """Whether the statement only shows something, or ends the program, and need not run."""
    call = getattr(statement, "value", None) if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Constant) or getattr(getattr(call, "func", None), "id", None) in NOT_RUN


def place(file, cell):
    """What stands for a file name in tracebacks."""
    return f"{file}, cell {cell}" if cell else file


def judged(judge, name, versions, troubles, notebooks):
    """The verdict on one exercise, as plain data: of several versions that of the first that passes."""
    reports = []
    for cell, data, trouble in versions:
        reports.append((cell, *report_on(judge, name, data, trouble, notebooks)))
        if reports[-1][1].passed:
            break
    if not reports:
        return nothing_there(name, troubles, notebooks)
    cell, report, once = reports[-1] if reports[-1][1].passed else reports[0]
    remarks = [f"Mind: {remark}" for remark in report.remarks]
    if len(reports) > 1 and report.passed:
        remarks.append(f"It is defined several times; the one that counts is in cell {cell}.")
    says = next(filter(None, (report.diagnosis, *report.facts, report.summary)))
    return {
        "name": name,
        "state": report.state,
        "says": once if report.passed else says,
        "mistakes": list(report.mistakes),
        "message": (with_more(report, summary=once) if once else report).message,
        "remarks": remarks,
    }


def report_on(judge, name, data, trouble, notebooks):
    """(the Report on one version, "" or once what else of the learner's is right it is right)."""
    if trouble:
        return unusable(name, f"{name} was not run: {trouble}."), ""
    try:
        function = pickle.loads(data)
        find_lines(function, notebooks)
        return judge(BY_NAME[name], function)
    except Exception as err:
        return unusable(name, f"{name} was not run: {type(err).__name__}: {err}"), ""


def find_lines(function, notebooks):
    """Tell a function, and those of the learner's that it calls, which cell they stand in, so that a verdict
    can quote their lines: what travels from one process to another has lost that."""
    for own in own_functions(function).values():
        for notebook in notebooks:
            for cell, source in notebook["cells"]:
                lines = source.splitlines(keepends=True)
                first = "".join(lines[own.__code__.co_firstlineno - 1:][:1])
                if re.match(rf"\s*(@|def\s+{re.escape(own.__code__.co_name)}\b)|.*\blambda\b", first):
                    where = place(notebook["file"], cell)
                    linecache.cache[where] = (len(source), None, lines, where)
                    own.__code__ = named(own.__code__, where)


def named(code, file):
    """The code object, and those nested in it, as if it came from this file."""
    nested = (named(c, file) if isinstance(c, types.CodeType) else c for c in code.co_consts)
    return code.replace(co_filename=file, co_consts=tuple(nested))


def nothing_there(name, troubles, notebooks):
    """The verdict where no cell has defined the function."""
    cells = [(cell, source) for notebook in notebooks for cell, source in notebook["cells"]]
    state, says = "not written", ""
    own = answer_cell(name)
    for file, cell, what, source in troubles:
        if not cell or cell == own or defines(name, source):
            state, says = "broken", f"{place(file, cell)} {what}" if not cell else f"its cell {what}"
            break
    else:
        if all(cell != own and not defines(name, source) for cell, source in cells):
            says = "its cell is not there any more"
    text = f"○ {name}     not written yet" if state == "not written" else f"✗ {name}     could not be checked"
    message = f"{text}\n\n  {says[:1].upper()}{says[1:]}." if says else text
    return {"name": name, "state": state, "says": says, "mistakes": [], "message": message, "remarks": []}


def answer_cell(name):
    """The id of the cell for the answer to an exercise."""
    return f"{name.replace('_', '-')}-answer"


def defines(name, source):
    """Whether a cell, Python or not, looks as if it defined this function."""
    return bool(re.search(rf"^[ \t]*(def\s+{name}\b|{name}\s*=[^=])", source, re.MULTILINE))


def exercises_in(source):
    """The names of the exercises that a cell, Python or not, seems to define."""
    return [name for name in BY_NAME if defines(name, source)]


if __name__ == "__main__":
    main()

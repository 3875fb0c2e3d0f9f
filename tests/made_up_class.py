"""A class of made-up learners who hand in notebook 03, and what must come of each of them.

`python -m tests.made_up_class FOLDER` writes their notebooks, a folder a learner, for a try by hand.
"""

import ast
import copy
import inspect
import json
import sys
import textwrap
from pathlib import Path

import nbformat
import right_answers
import wrong_answers

from helpers.checks.source import own_functions
from helpers.exercise_notebooks import exercise

ROOT = Path(__file__).resolve().parents[1]
FILE = "03_single_head_attention.ipynb"
NAMES = ("scores", "scaled_scores", "softmax", "causal_mask", "attention_weights", "single_head",
         "last_query_attention")
SOLUTION = nbformat.read(ROOT / "solutions" / FILE, as_version=4)
ANSWERS = {name: next(cell.source for cell in SOLUTION.cells if cell.id == f"{name.replace('_', '-')}-answer")
           for name in NAMES}
PREAMBLE = "import functools\nimport math\nfrom dataclasses import dataclass\n"
BY_THE_COURSE = "from helpers import attention\n\ndef softmax(z):\n    return attention.softmax(z)"
LEARNERS = {}           # name -> (notebook as text, {exercise: state or named mistakes}, words in the page)


def cell_of(notebook, name, role="answer"):
    return next(cell for cell in notebook.cells if cell.id == f"{name.replace('_', '-')}-{role}")


def notebook_with(answers):
    """The exercise notebook with these answers in it, {name: source}; None leaves the stub."""
    notebook = exercise(SOLUTION)
    for name in NAMES:
        source = answers.get(name, ANSWERS[name])
        if source is not None:
            cell_of(notebook, name).source = textwrap.dedent(source).strip()
    return notebook


def learner(name, answers=None, expected=None, change=None, says=(), text=None):
    """Keep one: right in all but what is in `answers`, unless `expected` says otherwise."""
    notebook = notebook_with(answers or {})
    if change:
        change(notebook)
    states = dict.fromkeys(NAMES, "passed") | (expected or {})
    LEARNERS[name] = (text or json.dumps(notebook), states, says)        # ids as they are, also used twice


def as_cell(name, function):
    """An answer of the tests as a learner has it in a cell: with what it needs, under the exercise's name."""
    module = inspect.getmodule(function)
    tree = ast.parse(inspect.getsource(module))
    reached = own_functions(function)
    names = {own.__name__ for own in reached.values()} | set(reached) | {"remembered", "Head"}
    needed = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    parts = []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module.startswith("helpers"):
            parts.append(node)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in names:
            ours = ("right", "wrong")
            node.decorator_list = [d for d in node.decorator_list
                                   if getattr(getattr(d, "func", d), "id", "") not in ours]
            parts.append(node)
        elif isinstance(node, ast.Assign) and node.targets[0].id == "ROOM" and "ROOM" in needed:
            parts.append(node)
    return f"{PREAMBLE}{ast.unparse(ast.Module(parts, []))}\n{name} = {function.__name__}"


# all right, in many styles

for number in range(6):
    styles = {}
    for exercise_name in NAMES:
        known = [function for name, function, _ in right_answers.ANSWERS if name == exercise_name]
        if number and known:
            styles[exercise_name] = as_cell(exercise_name, known[number % len(known)])
    learner(f"right-{number}", styles)

# several wrong

for number in range(8):
    wrong, expected = {}, {}
    for exercise_name in NAMES[number % 2::2]:
        known = [(function, named) for name, function, named, _ in wrong_answers.ANSWERS
                 if name == exercise_name and named]
        if known:
            function, named = known[number // 2 % len(known)]
            wrong[exercise_name] = as_cell(exercise_name, function)
            expected[exercise_name] = named
    for exercise_name in NAMES:
        if exercise_name not in expected:       # the solution calls the others: let it be one that does not
            alone = next(function for name, function, _ in right_answers.ANSWERS if name == exercise_name)
            wrong[exercise_name] = as_cell(exercise_name, alone)
    learner(f"wrong-{number}", wrong, expected)

# and those who try the machinery

LOOP = "def softmax(z):\n    while True:\n        pass"
WRONG = "def softmax(z):\n    return np.exp(z) / np.exp(z).sum()"
FAIL = {"softmax": "wrong"}             # and the three that call it are right, once it is


def without(*ids):
    def change(notebook):
        notebook.cells = [cell for cell in notebook.cells if cell.id not in ids]
    return change


def twice(notebook):
    """Copies of cells, with the same ids: a stub below the answer, an answer in front of the stub."""
    cells = []
    for cell in notebook.cells:
        cells.append(cell)
        if cell.id.endswith("-answer") or cell.id.endswith("-check"):
            again = copy.deepcopy(cell)
            if cell.id == "softmax-answer":
                again.source = cell_of(exercise(SOLUTION), "softmax").source
            cells.append(again)
    notebook.cells = cells


def added(source, at=0):
    def change(notebook):
        notebook.cells.insert(at, nbformat.v4.new_code_cell(textwrap.dedent(source).strip(), id="added"))
    return change


def checks_changed(notebook):
    for cell in notebook.cells:
        if cell.id.endswith("-check"):
            cell.source = "print('passed')"


def marks_changed(notebook):
    """What a notebook may look like that has been through other programs."""
    cell_of(notebook, "scores", "check").metadata["nbgrader"] = {}
    cell_of(notebook, "scores").metadata.pop("nbgrader")
    cell_of(notebook, "softmax", "check").metadata["nbgrader"].update(points=100, schema_version=1)
    cell_of(notebook, "causal_mask").metadata["nbgrader"]["grade_id"] = "softmax-check"
    cell_of(notebook, "softmax", "hints").metadata["nbgrader"] = "hello"


learner("other-marks", change=marks_changed)
learner("unfinished", dict.fromkeys(NAMES[2:]), dict.fromkeys(NAMES[2:], "not written"))
learner("untouched", dict.fromkeys(NAMES), dict.fromkeys(NAMES, "not written"))
learner("endless-function", {"softmax": LOOP}, FAIL,
        says=("does not come to an end", "right, once your softmax (3.3) is"))
learner("by-the-course", {"softmax": BY_THE_COURSE}, FAIL, says="attention.softmax, the course's own answer")
learner("one-mistake", {"scores": "def scores(Q, K):\n    return K @ Q.T"}, {"scores": ("transposed",)},
        says="single_head     right, once your scores (3.1) is")
learner("two-mistakes", {"scores": "def scores(Q, K):\n    return K @ Q.T",
                         "scaled_scores": "def scaled_scores(Q, K):\n    return scores(Q, K) / Q.shape[1]"},
        {"scores": ("transposed",), "scaled_scores": ("d_not_sqrt",)},
        says=("judged with the course's own scores (3.1)", "your scores (3.1) and scaled_scores (3.2) are"))
learner("endless-cell", {"causal_mask": ANSWERS["causal_mask"] + "\n\nwhile True:\n    pass"},
        says="cell causal-mask-answer does not come to an end within 10 s")
learner("syntax-error", {"causal_mask": "def causal_mask(n_q, n_k=None:\n    return 1"},
        {"causal_mask": "broken"},
        says=("its cell is no Python (line 1: ", "right, once your causal_mask (3.4) is written"))
learner("deleted", expected={"causal_mask": "not written"},
        change=without("causal-mask-answer", "imports", "scores-check", "softmax-check", "progress"),
        says="Its cell is not there any more")
learner("duplicated", change=twice)
learner("other-checks", {"softmax": WRONG}, FAIL, change=checks_changed)
learner("own-check", {"softmax": f"{WRONG}\n\ndef check(f):\n    print('passed')\nrun = check"}, FAIL)
learner("patched-checks", {"softmax": f"""
    import helpers.checks.judge, helpers.checks.report, helpers.checks.process
    class Good:
        passed, state, message, diagnosis, remarks, mistakes = True, "passed", "", "", [], ()
    for part in (helpers.checks, helpers.checks.judge):
        part.run = part.judge = part.check = lambda *a, **k: Good()
    helpers.checks.judge.compare = lambda *a, **k: None
    helpers.checks.report.Report.passed = True
    helpers.checks.process.run_apart = lambda *a, **k: ([], [])
    {WRONG.replace(chr(10), chr(10) + '    ')}"""}, FAIL)
learner("patched-numpy", {"softmax": f"""
    np.allclose = np.array_equal = lambda *a, **k: True
    np.abs = np.zeros_like
    {WRONG.replace(chr(10), chr(10) + '    ')}"""}, FAIL)
learner("overwrites", {"softmax": f"""
    import helpers, os
    from pathlib import Path
    def spoil():
        for file in Path(helpers.__file__).parent.rglob("*.py"):
            file.write_text("raise SystemExit")
    spoil()
    {WRONG.replace(chr(10), chr(10) + '    ')}"""}, FAIL, says="writes into the course's own files")
learner("overwrites-late", {"scores": """
    import helpers
    from pathlib import Path
    def scores(Q, K):
        for file in Path(helpers.__file__).parent.rglob("*.py*"):
            file.write_text("raise SystemExit")
        return Q @ K.T
    """}, says="writes into the course's own files")
learner("deletes", {"scores": """
    import helpers, shutil
    from pathlib import Path
    def scores(Q, K):
        for folder in (".", "..", Path(helpers.__file__).parent, Path.home()):
            shutil.rmtree(folder, ignore_errors=True)
        return Q @ K.T
    """}, says="writes into the course's own files")
learner("writes", {"scores": """
    from pathlib import Path
    def scores(Q, K):
        for name in ("grades.csv", "../grades.csv", "progress.json", "03_single_head_attention.ipynb"):
            Path(name).write_text("all right")
        return Q @ K.T
    """})
learner("exits", {"scaled_scores": ANSWERS["scaled_scores"] + "\n\nimport os\nos._exit(0)"},
        says="cell scaled-scores-answer ends the program (exit 0)")
learner("exits-function", {"scores": "import os\ndef scores(Q, K):\n    os._exit(3)"},
        {"scores": "wrong"}, says="exit status 3")
learner("exits-politely", {"scores": ANSWERS["scores"] + "\n\nexit()\nraise SystemExit"})
learner("reads-solutions", {"softmax": f"""
    import json
    from pathlib import Path
    def softmax(z):
        cells = json.loads(Path("../solutions/{FILE}").read_text())["cells"]
        space = {{"np": np}}
        exec("".join(next(cell["source"] for cell in cells if cell["id"] == "softmax-answer")), space)
        return space["softmax"](z)
    """}, FAIL, says="FileNotFoundError")
learner("memory", {"softmax": "def softmax(z):\n    return np.ones((10**6, 10**6)) * 1.0"}, FAIL,
        says="MemoryError")
learner("damaged", expected=dict.fromkeys(NAMES, "not handed in"), text='{"cells": [{"cell_type": "co',
        says="could not be read (the file is damaged, or no notebook)")


def write(folder):
    """A folder for each learner with the notebook in it."""
    for name, (text, _, _) in LEARNERS.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / FILE).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))

"""The exercises of the course: every one keeps the contract and its own promises."""

import ast
import doctest
import inspect
import re
from functools import cache
from pathlib import Path

import nbformat
import numpy as np
import pytest

from helpers import attention, embeddings, tiny_model
from helpers.checks import run
from helpers.exercise_notebooks import BEGIN, END, STUB, check, exercise, stub

ROOT = Path(__file__).resolve().parents[1]

# number, name and signature of every exercise, as the contract has them
CONTRACT = {
    "1.1": "token_ids(tokens, vocab)",
    "1.2": "embed(ids, E)",
    "1.3": "sinusoidal_positions(n, d, base=10000.0)",
    "2.1": "project_qkv(X, W_q, W_k, W_v)",
    "3.1": "scores(Q, K)",
    "3.2": "scaled_scores(Q, K)",
    "3.3": "softmax(z)",
    "3.4": "causal_mask(n_q, n_k=None)",
    "3.5": "attention_weights(S, mask)",
    "3.6": "single_head(X, W_q, W_k, W_v, causal=False)",
    "3.7": "last_query_attention(q, K, V)",
}
NAMES = [signature.split("(")[0] for signature in CONTRACT.values()]
FILES = sorted(path.name for path in (ROOT / "solutions").glob("*.ipynb"))


@cache
def solution(file):
    return nbformat.read(ROOT / "solutions" / file, as_version=4)


def cells(role, notebook=None):
    """{function: source} of the statement, answer, check or hints of every exercise."""
    found = {}
    for file in FILES if notebook is None else [None]:
        for cell in (notebook or solution(file)).cells:
            for name in NAMES:
                if cell.id == f"{name.replace('_', '-')}-{role}":
                    found[name] = cell.source
    return found


def helper(name):
    """The course's own function of that name."""
    return next(vars(module)[name] for module in (embeddings, attention) if name in vars(module))


@cache
def solved():
    """The functions of the solution notebooks, each of them seeing those before it, as in a kernel."""
    namespace = {"np": np, "__name__": "__main__"}
    for name, source in cells("answer").items():
        exec(compile(source, f"<solution of {name}>", "exec"), namespace)
    return namespace


def hints(name):
    return re.findall(r"<details><summary>(.*?)</summary>\n\n(.*?)\n\n</details>", cells("hints")[name], re.S)


def solution_lines(name):
    """The lines of code between the marks, without comments and blanks."""
    block = cells("answer")[name].split(BEGIN)[1].split(END)[0]
    return [line for line in (re.sub(r"\s*#.*", "", raw).strip() for raw in block.split("\n")) if line]


# What an exercise is

def test_exercises_are_those_of_the_contract_in_order():
    headings = [re.match(r"## ([\d.]+) · `(\w+)`", text).groups() for text in cells("statement").values()]
    assert headings == list(zip(CONTRACT, NAMES, strict=True))


@pytest.mark.parametrize("file", FILES)
def test_every_exercise_has_its_four_cells_together(file):
    ids = [cell.id for cell in solution(file).cells]
    tags = {cell.id: cell.metadata.get("tags") for cell in solution(file).cells}
    here = [name for name in NAMES if f"{name.replace('_', '-')}-answer" in ids]
    assert here
    for name in here:
        at = ids.index(f"{name.replace('_', '-')}-statement")
        roles = ["statement", "answer", "check", "hints"]
        assert ids[at:at + 4] == [f"{name.replace('_', '-')}-{role}" for role in roles]
        assert [tags[i] for i in ids[at:at + 4]] == [[role] for role in roles]


@pytest.mark.parametrize("name", NAMES)
def test_the_check_stands_alone_in_its_cell(name):
    assert cells("check")[name] == f"check({name})"


@pytest.mark.parametrize(("number", "signature"), CONTRACT.items())
def test_signatures_are_those_of_the_contract_and_of_the_helpers(number, signature):
    name = signature.split("(")[0]
    for source in (cells("answer")[name], stub(cells("answer")[name])):
        (function,) = ast.parse(source).body                # one function in a cell, and nothing else
        assert f"{function.name}({ast.unparse(function.args)})" == signature
    assert f"{name}{inspect.signature(helper(name))}" == signature


@pytest.mark.parametrize("name", NAMES)
def test_stub_is_a_docstring_and_the_line_to_be_replaced(name):
    text = stub(cells("answer")[name])
    assert text.endswith(f'    """\n    {STUB}')
    docstring = ast.get_docstring(ast.parse(text).body[0])
    assert "Returns" in docstring
    for parameter in inspect.signature(helper(name)).parameters:
        assert re.search(rf"\b{parameter}\b", docstring) or parameter == "base"


@pytest.mark.parametrize("name", NAMES)
def test_heading_tells_difficulty_and_minutes(name):
    heading = cells("statement")[name].split("\n")[0]
    assert re.fullmatch(r"## \d\.\d · `\w+`  (●○○|●●○|●●●)  about \d+ minutes", heading)


@pytest.mark.parametrize("file", FILES)
def test_the_minutes_of_a_notebook_are_those_of_its_exercises(file):
    texts = [cell.source for cell in solution(file).cells]
    minutes = [int(m) for text in texts for m in re.findall(r"^## .*about (\d+) minutes$", text, re.M)]
    assert re.search(r"\*\*Time\.\*\* About (\d+) minutes\.", texts[0]).group(1) == str(sum(minutes))


@pytest.mark.parametrize("name", NAMES)
def test_statement_gives_the_shapes_in_a_table(name):
    table = [line for line in cells("statement")[name].split("\n") if line.startswith("|")]
    assert table[0].startswith("| in |") and "| out |" in table[0]
    assert len({line.count("|") for line in table}) == 1
    for parameter in inspect.signature(helper(name)).parameters:
        assert any(f"`{parameter}`" in line for line in table)


@pytest.mark.parametrize("name", NAMES)
def test_three_hints_a_question_a_shape_and_a_line_with_a_gap(name):
    (first, question), (second, _), (third, line) = hints(name)
    assert [first, second, third] == ["Hint 1: a question", "Hint 2: the shapes", "Hint 3: a line with a gap"]
    assert "?" in question and "____" in line and "____" not in question


@pytest.mark.parametrize("name", NAMES)
def test_no_hint_and_no_statement_gives_a_line_of_the_solution(name):
    told = cells("statement")[name] + cells("hints")[name] + stub(cells("answer")[name])
    for line in solution_lines(name):
        assert line in ("else:", "if causal:") or line not in told


# The worked examples

@pytest.mark.parametrize("functions", ["helpers", "solutions"])
@pytest.mark.parametrize("name", NAMES)
def test_worked_example_gives_what_is_printed(name, functions):
    namespace = {"np": np, name: helper(name) if functions == "helpers" else solved()[name]}
    fences = re.findall(r"```python\n(.*?)```", cells("statement")[name], re.S)
    examples = [e for fence in fences for e in doctest.DocTestParser().get_examples(fence)]
    printed = [e for e in examples if e.want]
    assert any(name in e.source for e in examples) and printed
    for example in examples:
        if not example.want:
            exec(example.source, namespace)
            continue
        got = np.asarray(eval(example.source, namespace))
        want = eval(example.want, {"array": np.array})
        np.testing.assert_array_equal(got, want, err_msg=example.source)
        assert got.shape == want.shape
        if functions == "solutions":
            assert re.sub(r"\s", "", repr(got)) == re.sub(r"\s", "", example.want)


@pytest.mark.parametrize("name", NAMES)
def test_sums_in_the_prose_are_right(name):
    prose = re.sub(r"```.*?```", "", cells("statement")[name], flags=re.S)
    for left, right in re.findall(r"((?:[\d(][\d.()]*)(?: ?[·+/^] ?[\d.()]+)+) = (\d+(?:\.\d+)?)", prose):
        value = eval(left.replace("·", "*").replace("^", "**"))
        assert value == pytest.approx(float(right)), f"{left} = {right}"


def test_there_are_sums_in_the_prose():
    prose = "".join(cells("statement").values())
    assert {"1·0 + 2·2 = 4", "1·1 + 0·2 + 2·3 = 7", "1 / 100^(2/4) = 0.1"} <= set(
        re.findall(r"[\d][\d·+/^() ]+ = [\d.]*\d", prose))


@pytest.mark.parametrize("function", [embeddings.embed, pytest.param("solution", id="solution")])
@pytest.mark.parametrize("wrong", [3, -1])
def test_embed_refuses_an_id_that_no_row_has(function, wrong):
    embed = solved()["embed"] if function == "solution" else function
    with pytest.raises((IndexError, ValueError)):
        embed(np.array([0, wrong]), np.zeros((3, 2)))


# The solutions

@pytest.mark.parametrize("name", NAMES)
def test_solution_passes_its_check_without_a_remark(name):
    report = run(name, solved()[name])
    assert report.passed and not report.remarks, report.message


@pytest.mark.parametrize("file", FILES)
def test_exercise_with_the_solutions_put_back_is_the_solution_notebook(file):
    blank = exercise(solution(file))
    for cell, answer in zip(blank.cells, solution(file).cells, strict=True):
        block = re.search(rf"^ *{BEGIN}.*?{END}", answer.source, re.S | re.M)
        if block:
            put_back = block.group()
            cell.source = re.sub(rf"^ *{re.escape(STUB)}", lambda _, text=put_back: text,
                                 cell.source, flags=re.M)
        assert (cell.id, cell.cell_type, cell.source, cell.metadata) == (
            answer.id, answer.cell_type, answer.source, answer.metadata)


@pytest.mark.parametrize("file", FILES)
def test_exercise_holds_nothing_of_the_solution(file):
    blank = exercise(solution(file))
    text = "\n".join(cell.source for cell in blank.cells)
    assert "SOLUTION" not in text and not any(cell.get("outputs") for cell in blank.cells)
    for name in cells("answer", solution(file)):
        for line in solution_lines(name):
            assert line in ("else:", "if causal:") or line not in text


def test_exercises_are_those_of_the_solutions():
    said = []
    assert check(ROOT, say=said.append) == 0, "\n".join(said)


# What the pictures after the exercises say of the trained model

def test_words_with_the_same_job_are_the_closest_pairs():
    model = tiny_model.load()
    X = model.E[[model.word_to_id[w] for w in ("cat", "dog", "sleeps", "runs", "milk", "tea")]]
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    C = X @ X.T
    same = [C[0, 1], C[2, 3], C[4, 5]]
    other = C[np.kron(np.eye(3), np.ones((2, 2))) == 0]
    assert min(same) > other.max() + 0.1


def test_a_head_of_the_second_layer_looks_back_at_cats():
    trace = tiny_model.load().run("the cats near the dog")
    assert trace.top(1)[0][0] == "sleep"
    assert trace.layers[1].A[:, -1, trace.tokens.index("cats")].max() > 0.5


def test_the_next_word_of_the_story_is_annas_fruit():
    assert tiny_model.load().run("anna loves apples . ben loves pears . she eats").top(1)[0][0] == "apples"

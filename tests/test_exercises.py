"""The exercises of the course: every one keeps the contract and its own promises."""

import ast
import contextlib
import doctest
import inspect
import io
import re
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest

from helpers import (
    attention,
    cost,
    embeddings,
    kv_cache,
    kv_sharing,
    low_rank,
    multi_head,
    sampling,
    smollm2,
    tiny_model,
)
from helpers.checks import run
from helpers.checks.exercises import together
from helpers.exercise_notebooks import BEGIN, END, STUB, check, exercise, stub
from helpers.smollm2.functions import Functions
from helpers.tiny_model import corpus

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
    "4.1": "split_heads(X, n_heads)",
    "4.2": "merge_heads(H)",
    "4.3": "multi_head(X, W_q, W_k, W_v, W_o, n_heads, causal=False)",
    "4.4": "pre_norm_residual(x, sublayer, gamma, beta, eps=1e-05)",
    "5.1": "low_rank_factors(W, r)",
    "5.2": "per_head_updates(H, W_o)",
    "5.3": "shared_qkv_basis(W_q, W_k, W_v, r)",
    "6.1": "kv_cache_step(x, W_q, W_k, W_v, cache)",
    "6.2": "generate_with_cache(prompt_ids, n_new, model)",
    "6.3": "cache_bytes(n_layers, n_heads, n_kv_heads, d_head, n_tokens, bytes_per_value=2, batch=1)",
    "7.1": "grouped_query_attention(Q, K, V)",
    "7.2": "latent_attention(X, W_q, W_down, W_up_k, W_up_v, n_heads)",
    "8.1": "sample_next(logits, rng, temperature=1.0, top_k=None, top_p=None)",
    "9.1": "attention_flops(n, d_model, n_heads)",
    "10.1": "rope(x, positions, base=10000.0)",
    "10.2": "rope_attention(Q, K, V, positions)",
    "10.3": "my_model(model, mine)",
}
NO_WEIGHTS = smollm2.SmolLM2(None, None, Functions())              # takes functions, and cannot run
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
    modules = (embeddings, attention, multi_head, low_rank, kv_cache, kv_sharing, sampling, cost,
               together)
    return next(vars(module)[name] for module in modules if name in vars(module))


def parameters(name):
    """The names of what the reader's function takes."""
    signature = next(signature for signature in CONTRACT.values() if signature.startswith(f"{name}("))
    return [argument.arg for argument in ast.parse(f"def {signature}: pass").body[0].args.args]


@cache
def solved():
    """The functions of the solution notebooks, each of them seeing what its own notebook has before it."""
    functions = {}
    for file in FILES:
        namespace = {"__name__": "__main__"}
        exec(next(cell.source for cell in solution(file).cells if cell.id == "imports"), namespace)
        for name, source in cells("answer", solution(file)).items():
            exec(compile(source, f"<solution of {name}>", "exec"), namespace)
            functions[name] = namespace[name]
    return functions


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
    course = inspect.signature(helper(name)).parameters      # it may take more, and then does without it
    asked = [p for p in course.values() if p.name in parameters(name)]
    assert f"{name}{inspect.Signature(asked)}" == signature
    assert all(p.default is False for p in list(course.values())[len(asked):])


@pytest.mark.parametrize("name", NAMES)
def test_stub_is_a_docstring_and_the_line_to_be_replaced(name):
    text = stub(cells("answer")[name])
    assert text.endswith(f'    """\n    {STUB}')
    docstring = ast.get_docstring(ast.parse(text).body[0])
    assert "Returns" in docstring
    for parameter in parameters(name):
        assert re.search(rf"\b{parameter}\b", docstring) or parameter == "base"


@pytest.mark.parametrize("name", NAMES)
def test_heading_tells_difficulty_and_minutes(name):
    heading = cells("statement")[name].split("\n")[0]
    assert re.fullmatch(r"## \d+\.\d · `\w+`  (●○○|●●○|●●●)  about \d+ minutes", heading)


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
    for parameter in parameters(name):
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
    namespace = {"np": np, "model": NO_WEIGHTS, "softmax": attention.softmax,
                 "single_head": attention.single_head}
    namespace[name] = helper(name) if functions == "helpers" else solved()[name]
    fences = re.findall(r"```python\n(.*?)```", cells("statement")[name], re.S)
    examples = [e for fence in fences for e in doctest.DocTestParser().get_examples(fence)]
    printed = [e for e in examples if e.want]
    assert any(name in e.source for e in examples) and printed
    for example in examples:
        if not example.want:
            exec(example.source, namespace)
            continue
        got = eval(example.source, namespace)
        want = eval(example.want, {"array": np.array})
        np.testing.assert_array_equal(got, want, err_msg=example.source)
        assert np.shape(got) == np.shape(want)
        if functions == "solutions":
            assert re.sub(r"\s", "", repr(got)) == re.sub(r"\s", "", example.want)


@pytest.mark.parametrize("function", [embeddings.embed, pytest.param("solution", id="solution")])
@pytest.mark.parametrize("wrong", [3, -1])
def test_embed_refuses_an_id_that_no_row_has(function, wrong):
    embed = solved()["embed"] if function == "solution" else function
    with pytest.raises((IndexError, ValueError)):
        embed(np.array([0, wrong]), np.zeros((3, 2)))


@pytest.mark.parametrize("function", [multi_head.split_heads, pytest.param("solution", id="solution")])
@pytest.mark.parametrize("n_heads", [4, 5, 7, 12])
def test_split_heads_refuses_heads_that_do_not_divide_the_width(function, n_heads):
    split_heads = solved()["split_heads"] if function == "solution" else function
    with pytest.raises(ValueError):
        split_heads(np.zeros((2, 6)), n_heads)


def test_nothing_of_rank_1_leaves_less_of_the_example():
    W = np.array([[4, 0], [3, -5]])
    np.testing.assert_array_equal(W - [[2, -2], [4, -4]], [[2, 2], [-1, -1]])
    assert np.linalg.svd(W)[1][1] ** 2 == pytest.approx(10)
    rng = np.random.default_rng(0)
    for a, b in rng.normal(size=(2000, 2, 2)):
        assert np.sum((W - np.outer(a, b) * (a @ W @ b) / (a @ a * (b @ b))) ** 2) >= 10 - 1e-9


def test_columns_of_the_shared_basis_example_lie_to_either_side_of_the_direction():
    u, W_v = np.array([3, 4]), np.array([[-1, 7], [7, 1]])
    across = W_v - u[:, None]
    assert not (u @ across).any() and not across.sum(axis=1).any()


def test_generation_example_has_the_scores_of_the_prose():
    E, ids = np.eye(4), [2, 0, 2, 1]
    logits = E[1] + 8 * E[ids].mean(axis=0)
    assert logits[2] == 4 and logits[1] == 3 and logits.argmax() == 2


def test_cache_example_is_one_too_large_for_32_bits():
    assert kv_cache.cache_bytes(32, 32, 32, 128, 4096) == np.iinfo(np.int32).max + 1
    model = tiny_model.load()
    assert (len(model.layers), model.n_heads, model.d_k, model.d_v) == (2, 4, 12, 12)


def test_head_1_of_the_groups_example_would_read_otherwise_in_any_other_order():
    Q, K = np.array([[[0], [0]], [[1], [0]]] * 2), np.array([[[0], [50]], [[50], [0]]])
    V = np.array([[[1], [3]], [[10], [30]]])
    dealt = attention.softmax(Q @ np.tile(K, (2, 1, 1)).swapaxes(1, 2)) @ np.tile(V, (2, 1, 1))
    assert dealt[1, 0].round(2) == 10 and kv_sharing.grouped_query_attention(Q, K, V)[1, 0].round(2) == 3


def test_sampling_example_tells_top_p_of_what_is_left_from_top_p_of_all():
    logits = np.log([[0.7, 0.1, 0.1, 0.1], [0.1, 0.5, 0.1, 0.3]])
    np.testing.assert_allclose(sampling.next_probabilities(logits, top_k=2), [0, 0.625, 0, 0.375])
    np.testing.assert_allclose(sampling.next_probabilities(logits, top_p=0.6), [0, 0.625, 0, 0.375])
    np.testing.assert_allclose(sampling.next_probabilities(logits, top_k=2, top_p=0.6), [0, 1, 0, 0])


@pytest.mark.parametrize("how", [{}, {"temperature": 0.5}, {"top_k": 3}, {"top_k": 9}, {"top_p": 0.7},
                                 {"top_p": 1}, {"temperature": 2, "top_k": 4, "top_p": 0.55}])
def test_sample_next_draws_from_the_distribution_of_the_course(how):
    logits = np.log([[0.5, 0.1, 0.1, 0.1, 0.2], [0.1, 0.25, 0.1, 0.4, 0.15]])
    rng = np.random.default_rng(0)
    drawn = [solved()["sample_next"](logits, rng, **how) for _ in range(4000)]
    p = sampling.next_probabilities(logits, **how)
    counts = np.bincount(drawn, minlength=5)
    assert not counts[p == 0].any()
    assert np.abs(counts / 4000 - p).max() < 4 * 0.5 / 4000 ** 0.5


# The solutions

@pytest.mark.parametrize("name", NAMES)
def test_solution_passes_its_check_without_a_remark(name, monkeypatch):
    if name == "my_model" and not smollm2.is_fetched():
        pytest.skip("the language model is not fetched")
    monkeypatch.chdir(ROOT / "solutions")                    # my_model takes the other functions from there
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

def see(cell_id, file, name, **instead):
    """Run a "see what you made" cell on the solutions: (what it gives to a figure, what it prints)."""
    given, printed = [], io.StringIO()

    def draw(*arguments, **_):
        given.append(arguments)
    namespace = solved()[name].__globals__ | {
        "display": lambda picture: None,
        "figures": SimpleNamespace(lines=draw, bars=draw),
        "run": lambda *_: SimpleNamespace(passed=True)} | instead
    with contextlib.redirect_stdout(printed):
        exec(next(cell.source for cell in solution(file).cells if cell.id == cell_id), namespace)
    return given, printed.getvalue()


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


def test_without_head_1_the_model_is_no_longer_sure_that_cats_sleep():
    model = tiny_model.load()
    sure = [dict(model.run("the cats near the dog", without=off).top(45))["sleep"]
            for off in ([], *([(1, r)] for r in range(4)))]
    assert sure[2] < 0.6 and min(sure[:2] + sure[3:]) > 0.99


def test_most_of_the_push_towards_sleep_is_of_head_1():
    model = tiny_model.load()
    Z = model.run("the cats near the dog").layers[1].Z
    updates, _ = low_rank.per_head_updates(Z, model.layers[1].W_o)
    towards = model.W_t[:, model.word_to_id["sleep"]] - model.W_t[:, model.word_to_id["run"]]
    push = updates[:, -1] @ towards
    assert push[1] > 3 * np.abs(np.delete(push, 1)).sum()


def test_nothing_is_lost_at_rank_12_and_something_below():
    layer = tiny_model.load().layers[1]
    for head in (0, 3):
        own = slice(12 * head, 12 * head + 12)
        s = np.linalg.svd(layer.W_v[:, own] @ layer.W_o[own], compute_uv=False)
        assert s[11] > 0.01 * s[0] and s[12] < 1e-6 * s[0]


def test_a_shared_basis_of_36_saves_nothing_and_loses_something():
    layer = tiny_model.load().layers[1]
    B, *A = low_rank.shared_qkv_basis(layer.W_q, layer.W_k, layer.W_v, 36)
    whole = np.concatenate([layer.W_q, layer.W_k, layer.W_v], axis=1)
    assert B.size + sum(a.size for a in A) == whole.size
    assert np.linalg.norm(whole - B @ np.concatenate(A, axis=1)) > 0.1 * np.linalg.norm(whole)


def test_one_head_speaks_for_the_fruit_of_whoever_eats():
    model = tiny_model.load()
    for who, fruit in (("she", "apples"), ("he", "pears")):
        z = model.run(f"anna loves apples . ben loves pears . {who} eats").layers[1].Z[3, -1]
        assert model.vocab[(z @ model.layers[1].W_o[36:] @ model.W_t).argmax()] == fruit


def test_the_bars_of_the_cache_are_those_of_their_title():
    seen = []

    def bars(names, values, title, *_, **__):
        seen.append((names, values, title))
    namespace = solved()["cache_bytes"].__globals__ | {
        "display": lambda picture: None, "figures": SimpleNamespace(bars=bars)}
    exec(next(cell.source for cell in solution("06_kv_cache.ipynb").cells
              if cell.id == "bytes-picture"), namespace)
    ((names, values, title),) = seen
    kib, models = dict(zip(names, values, strict=True)), namespace["models"]
    assert title == "Sharing keys and values, a 70B model keeps less than a 7B model"
    assert kib["Llama 3 70B"] < kib["Llama 2 7B"] and set(kib) == set(models)
    sharing = {name for name, (_, n_heads, n_kv_heads, _) in models.items() if n_kv_heads < n_heads}
    assert sharing == {name for name in models if "Llama 3" in name}


def test_the_cats_still_sleep_when_heads_share_but_the_model_is_less_sure():
    printed = see("groups-picture", "07_sharing_keys_and_values.ipynb", "grouped_query_attention")[1]
    assert re.findall(r"sets of keys and values: (\d) → (\w+)", printed) == [(g, "sleep") for g in "421"]
    own, two, one = (float(p) for p in re.findall(r"\d\.\d\d", printed))
    assert own > 0.99 and two < 0.7 and one < 0.6


def test_16_numbers_a_token_do_and_8_do_not():
    given, _ = see("latents-picture", "07_sharing_keys_and_values.ipynb", "latent_attention")
    ((x, curves, title, *_),) = given
    assert title == "16 numbers a token serve these two words as well as 48, 8 do not"
    for curve in curves.values():
        at = dict(zip(x, curve, strict=True))
        assert at[48] > 0.99 and min(at[r] for r in range(16, 49, 4)) > at[48] - 0.02 and at[8] < 0.9
    model = tiny_model.load()
    assert model.n_heads * (model.d_k + model.d_v) == 96     # what a layer keeps a token


def test_stories_are_the_readers_own_and_the_hot_one_leaves_the_grammar():
    printed = see("stories-picture", "08_logits_and_sampling.ipynb", "sample_next")[1].split("\n")
    stories = {how: text.strip() for how, text in zip(printed[::2], printed[1::2], strict=False)}
    assert list(stories) == ["temperature 0", "temperature 1", "temperature 3", "temperature 3, top_k 3",
                             "temperature 3, top_p 0.6"]
    grammar = corpus.grammar()
    for how, text in stories.items():
        with pytest.raises(ValueError) if how == "temperature 3" else contextlib.nullcontext():
            grammar.next_words(text)                         # raises outside the grammar
    drawn = see("stories-picture", "08_logits_and_sampling.ipynb", "sample_next",
                sample_next=lambda logits, rng, **how: 2)[1]
    assert drawn.count("anna loves apples . . .") == len(stories)


def test_work_of_a_doubled_text_goes_from_two_to_four_times_and_passes_three_on_the_way():
    pictures, printed = see("doubling-picture", "09_context_length.ipynb", "attention_flops")
    ((x, curves, title, *_),) = pictures
    assert title == "A text twice as long takes 2 times the work at first, 4 times in the end"
    for curve in curves.values():
        assert list(curve) == sorted(curve) and 2 <= curve[0] < 2.2 and 3.9 < curve[-1] <= 4
    assert re.findall(r"it is (\S+)", printed) == ["3.00", "3.00"]


def test_along_a_diagonal_of_turned_queries_and_keys_nothing_changes():
    shown = []
    see("diagonals-picture", "10_a_real_language_model.ipynb", "rope",
        figures=SimpleNamespace(matrix=lambda S, *_, **__: shown.append(S)))
    (S,) = shown
    diagonals = [S.diagonal(k) for k in range(-5, 6)]
    assert all(np.ptp(row) < 1e-9 for row in diagonals)
    assert min(abs(a[0] - b[0]) for a, b in zip(diagonals, diagonals[1:], strict=False)) > 0.01


@pytest.mark.parametrize(("form", "drawn"), [
    (lambda mask: mask, True), (lambda mask: mask * 1.0, True), (lambda mask: mask.tolist(), True),
    (lambda mask: np.where(mask, 0.0, -np.inf), False), (lambda mask: np.where(mask, 0.0, -1e9), False)])
def test_a_mask_in_another_form_that_passes_gets_no_nonsense_for_a_picture(form, drawn, capsys):
    pictures, right = [], solved()["causal_mask"]

    def causal_mask(n_q, n_k=None):
        return form(right(n_q, n_k))
    assert run("causal_mask", causal_mask).passed
    namespace = solved()["causal_mask"].__globals__ | {
        "causal_mask": causal_mask, "display": pictures.append}
    exec(next(cell.source for cell in solution("03_single_head_attention.ipynb").cells
              if cell.id == "weights-picture"), namespace)
    assert len(pictures) == drawn and ("holds True and False" in capsys.readouterr().out) != drawn

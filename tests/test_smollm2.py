"""The language model's forward pass: a small one of random weights against plain loops, and the real one
against what the `transformers` library computes for it in float32 (tests/data/smollm2_reference.npz: four
prompts, logits of the last position at every 64th id and the 40 largest, the likeliest token everywhere, 40
greedy tokens, two attention patterns).
"""

import json
import os
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from prose_claims import SMOLLM2

from bench import language_model
from helpers import attention, embeddings, kv_sharing, multi_head, sampling, smollm2
from helpers.smollm2 import measure
from helpers.smollm2 import model as module
from helpers.smollm2.functions import WHEN, Functions
from helpers.smollm2.model import FEW, SmolLM2, product, rms_norm, silu
from helpers.smollm2.side_by_side import write_side_by_side
from helpers.smollm2.tokenizer import open_tokenizer
from helpers.smollm2.weights import Config, Weights

DATA = Path(__file__).with_name("data")
SMALL = Config(n_layers=2, n_heads=6, n_kv_heads=2, d_head=8, d_model=24, d_ff=40, n_vocab=50, n_max=64,
               rope_base=1000.0, norm_eps=1e-5)
IDS = np.array([3, 1, 4, 1, 5, 9, 2, 6])


def small_model(seed=0):
    rng = np.random.default_rng(seed)
    arrays = {name: rng.normal(1 if "norm" in name else 0, 0.3, shape).astype(np.float32)
              for name, shape in SMALL.shapes.items()}
    return SmolLM2(Weights(SMALL, **arrays), None, Functions())


@pytest.fixture(scope="module")
def small():
    return small_model()


def by_loops(model, ids, without=()):
    """The logits in float64, head by head and query by query, with rope as complex numbers."""
    c, w = model.config, model.weights
    d, speeds = c.d_head, c.rope_base ** (-np.arange(0, c.d_head, 2) / c.d_head)

    def norm(x, gamma):
        return np.array([row / np.sqrt(row @ row / len(row) + c.norm_eps) for row in x]) * gamma

    def turn(row, position):
        z = (row[0::2] + 1j * row[1::2]) * np.exp(1j * position * speeds)
        return np.stack([z.real, z.imag], axis=-1).ravel()

    X = w.E.astype(np.float64)[ids]
    for i in range(c.n_layers):
        N, out = norm(X, w.attention_norm[i]), np.zeros_like(X)
        for head in range(c.n_heads):
            if (i, head) in without:
                continue
            h = model.head(i, head)
            q, k = ([turn(x @ W, p) for p, x in enumerate(N)] for W in (h.W_q, h.W_k))
            for p in range(len(ids)):
                e = np.array([np.exp(q[p] @ k[j] / np.sqrt(d)) for j in range(p + 1)])
                out[p] += sum(e[j] / e.sum() * (N[j] @ h.W_v) for j in range(p + 1)) @ h.W_o
        X = X + out
        both = norm(X, w.mlp_norm[i]) @ w.W_gate_up[i]
        gate, up = both[:, :c.d_ff], both[:, c.d_ff:]
        X = X + (gate / (1 + np.exp(-gate)) * up) @ w.W_down[i]
    return norm(X, w.final_norm) @ w.E.T.astype(np.float64)


def close(a, b, tolerance=2e-4):
    return np.allclose(a, b, rtol=0, atol=tolerance * np.abs(b).max())


# The forward pass


def test_the_forward_pass_equals_plain_loops(small):
    L = small.logits(IDS)
    assert L.dtype == np.float32 and L.shape == (len(IDS), SMALL.n_vocab)
    assert close(L, by_loops(small, IDS))
    assert not close(L, by_loops(small_model(1), IDS))


def test_heads_switched_off_are_as_if_they_were_not_there(small):
    off = [(0, 2), (1, 5), (1, 0)]
    assert close(small.logits(IDS, off), by_loops(small, IDS, off))
    assert not close(small.logits(IDS, off), small.logits(IDS))


def test_rms_norm_and_silu():
    x = np.array([[3.0, 4.0]], np.float32)
    assert np.allclose(rms_norm(x, np.array([1, 2], np.float32), 0), [[3 / 12.5**0.5, 8 / 12.5**0.5]])
    assert rms_norm(np.zeros((1, 3), np.float32), np.ones(3, np.float32), 1e-5).tolist() == [[0, 0, 0]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        z = np.array([-1e4, -3, 0, 3, 1e4], np.float32)
        assert np.allclose(silu(z), [0, -3 / (1 + np.exp(3)), 0, 3 / (1 + np.exp(-3)), 1e4])


@pytest.mark.parametrize("n", [0, 1, 2, FEW, FEW + 1])
@pytest.mark.parametrize("d_out", [3 * FEW, 3 * FEW + 1])
def test_a_product_is_the_same_in_parts_and_at_once(n, d_out):
    rng = np.random.default_rng(n)
    x, W_t = (rng.normal(size=(m, 40)).astype(np.float32) for m in (n, d_out))
    for rows in (x, np.asfortranarray(x)):
        for W in (W_t.T, np.ascontiguousarray(W_t.T)):      # as it lies on the disk, and the other way
            assert product(rows, W).dtype == np.float32
            np.testing.assert_allclose(product(rows, W), x.astype(float) @ W, rtol=0, atol=1e-4)


@pytest.mark.parametrize("chunk", [1, 3, 8])
def test_reading_in_parts_changes_nothing(small, monkeypatch, chunk):
    whole, losses = small.logits(IDS), small.losses(IDS)
    monkeypatch.setattr(module, "CHUNK", chunk)
    assert close(small.logits(IDS), whole) and close(small.losses(IDS), losses)


def test_losses_are_those_of_the_softmax(small):
    L = by_loops(small, IDS)
    p = np.exp(L - L.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    assert np.allclose(small.losses(IDS), -np.log(p[np.arange(len(IDS) - 1), IDS[1:]]), atol=1e-3)
    assert small.losses([7]).shape == (0,)


@pytest.mark.parametrize("settings", [
    {}, {"temperature": 1.0}, {"temperature": 2.0, "top_k": 9, "top_p": 0.9},
])
def test_with_a_cache_the_same_tokens_come_as_without(small, settings):
    def write(cache, seed=4):
        rng = np.random.default_rng(seed)
        return list(small.generate_ids(IDS, 20, rng=rng, cache=cache, stop=False, **settings))

    assert write(cache=True) == write(cache=False) and len(write(True)) == 20
    assert (write(True, seed=5) == write(True)) == (not settings)


def test_greedy_tokens_are_the_largest_logits(small):
    ids = list(IDS)
    for chosen in small.generate_ids(IDS, 5, stop=False):
        assert chosen == by_loops(small, ids)[-1].argmax()
        ids.append(chosen)


def test_what_makes_no_sense_is_refused(small):
    for text, error in (([], ValueError), ([50], ValueError), ([-1], ValueError), ([[1]], TypeError),
                        ([1.5], TypeError), ([1] * 65, ValueError), (["a"], TypeError)):
        with pytest.raises(error):
            small.logits(text)
    with pytest.raises(ValueError, match=r"at most 64 tokens, got 8 \+ 57"):
        small.generate_ids(IDS, 57)
    with pytest.raises(ValueError, match="no layer 2, head 0: 2 layers of 6 heads"):
        small.logits(IDS, without=[(2, 0)])
    with pytest.raises(ValueError, match="no layer 0, head 6"):
        small.head(0, 6)
    with pytest.raises(ValueError, match="layers must be one of 0 … 1, got 2"):
        small.run(IDS, layers=[2])
    with pytest.raises(TypeError, match=r"layers must be a list of whole numbers, such as \[16\], got 1"):
        small.run(IDS, layers=1)
    for k in (0, -1):
        with pytest.raises(ValueError, match="k must be at least 1"):
            small.next_tokens(IDS, k)
    for settings in ({"top_k": -4}, {"top_p": 7}, {"temperature": -1}, {"temperature": float("nan")}):
        with pytest.raises(ValueError, match=f"{next(iter(settings))} must be"):
            small.generate_ids(IDS, 1, **settings)
    with pytest.raises(ValueError, match="no layer 2, head 0"):
        small.generate_ids(IDS, 1, without=[(2, 0)])


@pytest.mark.parametrize("without", [(1, 0), "1.0", [1], 1, [(0, 1, 2)], None])
def test_what_are_no_pairs_of_layer_and_head_is_said(small, without):
    for call in (small.logits, small.losses, small.run, small.generate_ids, small.next_tokens,
                 lambda ids, without: measure.patterns(small, ids, without)):
        with pytest.raises(TypeError, match=r"without must be a list of pairs .* such as \[\(16, 0\)\], got"):
            call(IDS, without=without)
    with pytest.raises(TypeError, match="layer must be a whole number, got 1.0"):
        small.logits(IDS, [(1.0, 0)])


def test_layers_and_pairs_that_come_one_by_one_serve(small, monkeypatch):
    """A generator can be gone through once; what it holds counts for every part of the text."""
    off = [(0, 2), (1, 5)]
    small = SmolLM2(small.weights, SimpleNamespace(tokens=list), Functions())
    trace = small.run(IDS, layers=(i for i in (0, 1)), without=(pair for pair in off))
    assert list(trace.layers) == [0, 1] and not trace.layers[1].Z[5].any()
    monkeypatch.setattr(module, "CHUNK", 3)
    assert close(small.logits(IDS, (pair for pair in off)), by_loops(small, IDS, off))
    written = list(small.generate_ids(IDS, 9, stop=False, without=off))
    assert written == list(small.generate_ids(IDS, 9, stop=False, without=(pair for pair in off)))
    assert written != list(small.generate_ids(IDS, 9, stop=False))


def test_the_bench_reads_every_weight_and_makes_the_step_of_generation(small):
    squares = sum(float((getattr(small.weights, name) ** 2).sum()) for name in SMALL.shapes)
    assert np.isclose(language_model.read(small.weights), squares, rtol=1e-5)
    run = language_model.step(small, IDS)
    assert close(run(), small.logits(IDS)[-1]) and close(run(), small.logits(IDS)[-1])


def test_the_bench_says_that_the_model_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_MODEL", str(tmp_path))
    assert "not fetched" in list(language_model.rows())[0]


# The reader's functions

CONTRACT = {"rope": (2, 1), "scores": (2, 2), "scaled_scores": (2, 2), "grouped_query_attention": (3, 3, 3),
            "merge_heads": (3,), "split_heads": (2,), "embed": (1, 2), "sample_next": (2,),
            "softmax": (3,), "attention_weights": (3, 2), "causal_mask": ()}
NOT_CAUSAL = {"grouped_query_attention": lambda Q, K, V: kv_sharing.grouped_query_attention(Q, K, V)}


def strict(name, calls):
    """The helpers' function as a reader writes it: for what the contract promises and nothing else."""

    def own(*arguments):
        calls.append(name)
        axes = tuple(np.ndim(x) for x in arguments if isinstance(x, np.ndarray))
        assert axes == CONTRACT[name], axes
        return np.asarray(NOT_CAUSAL.get(name, WHEN[name][0])(*arguments), dtype=None)

    return own


def outcome(model):
    """What a model makes of a text: logits (prefill), then tokens (decode)."""
    return model.logits(IDS), list(model.generate_ids(IDS, 6, stop=False))


@pytest.mark.parametrize("name", WHEN)
def test_a_function_put_in_is_what_runs(small, name):
    calls = []
    mine = small.use(**{name: strict(name, calls)})
    L, written = outcome(mine)
    assert close(L, small.logits(IDS)) and written == outcome(small)[1]
    assert len(calls) == mine.functions.calls[name] > 0
    assert f"{name:24s} yours, {len(calls)} calls" in str(mine.functions)
    assert not small.functions.own, "the model it came from is left as it was"


FAULTS = {
    "embed": lambda ids, E: E[ids][::-1],
    "split_heads": lambda X, h: X.reshape(h, len(X), -1),
    "rope": lambda x, positions, base: embeddings.rope(x, positions + x[0, 0] * 0, 10 * base),
    "scores": lambda Q, K: attention.scores(Q, K) / 2,
    "scaled_scores": lambda Q, K: Q @ K.T,
    "causal_mask": lambda n_q, n_k=None: np.ones((n_q, n_k or n_q), bool),
    "softmax": lambda z: attention.softmax(z / 2),
    "attention_weights": lambda S, mask: attention.softmax(np.where(mask, S, 0)),
    "grouped_query_attention": lambda Q, K, V: kv_sharing.grouped_query_attention(
        Q, np.roll(K, 1, axis=0), np.roll(V, 1, axis=0)),
    "merge_heads": lambda H: H.reshape(H.shape[1], -1),
    "sample_next": lambda logits, rng, temperature, top_k, top_p: logits[-1].argmin(),
}


@pytest.mark.parametrize("name", WHEN)
def test_a_fault_put_in_shows(small, name):
    L, written = outcome(small.use(**{name: FAULTS[name]}))
    assert name == "sample_next" or not close(L, small.logits(IDS))
    assert written != outcome(small)[1]


def test_parts_read_the_text_and_the_whole_writes(small):
    calls = []
    mine = small.use(**{name: strict(name, calls) for name in ("grouped_query_attention", "softmax")})
    mine.logits(IDS)
    assert set(calls) == {"softmax"}
    calls.clear()
    list(mine.generate_ids(IDS, 3, stop=False))
    layers = SMALL.n_layers
    assert calls == ["softmax"] * layers + ["grouped_query_attention"] * 2 * layers


def test_alone_the_whole_reads_token_by_token(small):
    calls = []
    small.use(grouped_query_attention=strict("grouped_query_attention", calls)).logits(IDS)
    assert len(calls) == len(IDS) * SMALL.n_layers


def test_parts_alone_do_everything(small):
    calls = []
    list(small.use(softmax=strict("softmax", calls)).generate_ids(IDS, 3, stop=False))
    assert len(calls) == 3 * SMALL.n_layers


def test_what_yours_calls_itself_is_said(small):
    text = str(small.use(scores=attention.scores, scaled_scores=attention.scaled_scores).functions)
    assert "scores                   in scaled_scores" in text


def test_all_together(small):
    calls = []
    own = {name: strict(name, calls) for name in WHEN if name not in ("scores", "softmax")}
    L, written = outcome(small.use(**own))
    assert close(L, small.logits(IDS)) and written == outcome(small)[1] and set(calls) == set(own)


def test_what_is_printed_of_a_model_is_short(small):
    mine = small.use(rope=embeddings.rope)
    assert repr(small) == "<SmolLM2: 2 layers of 6 heads, 2 of keys and values>"
    assert repr(mine) == "<SmolLM2: 2 layers of 6 heads, 2 of keys and values; on your rope>"
    lines = str(mine.functions).splitlines()
    assert len(lines) == len(WHEN) and max(map(len, lines)) <= 92


def test_use_adds_to_what_was_put_in_before(small):
    mine = small.use(rope=embeddings.rope).use(softmax=attention.softmax)
    assert set(mine.functions.own) == {"rope", "softmax"}


@pytest.mark.parametrize("form", [
    lambda n_q, n_k: np.tril(np.ones((n_q, n_k)), n_k - n_q),
    lambda n_q, n_k: np.triu(np.full((n_q, n_k), -np.inf), n_k - n_q + 1),
    lambda n_q, n_k: np.where(attention.causal_mask(n_q, n_k), 0.0, -1e9),
])
def test_masks_of_all_forms_serve(small, form):
    assert close(small.use(causal_mask=form).logits(IDS), small.logits(IDS))


@pytest.mark.parametrize("name", [name for name in WHEN if name not in ("sample_next", "causal_mask")])
def test_float64_from_a_function_goes_no_further(small, name):
    function = NOT_CAUSAL.get(name, WHEN[name][0])
    mine = small.use(**{name: lambda *arguments: np.asarray(function(*arguments), np.float64)})
    assert mine.logits(IDS).dtype == np.float32


@pytest.mark.parametrize("name", [name for name in WHEN if name != "sample_next"])
@pytest.mark.parametrize("wrong", [
    lambda *_: None, lambda *_: np.zeros((2, 2, 2, 2)), lambda *_: [[1], [2, 3]], lambda *_: "text",
    lambda *_: 1j,
])
def test_a_wrong_shape_is_said_with_the_functions_name(small, name, wrong):
    with pytest.raises(ValueError, match=f"your {name} must give numbers of shape"):
        small.use(**{name: wrong}).logits(IDS)


@pytest.mark.parametrize("name", [name for name in WHEN if name not in ("sample_next", "causal_mask")])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_said_with_the_functions_name_and_the_place(small, name, bad):
    def spoilt(*arguments):
        result = np.array(NOT_CAUSAL.get(name, WHEN[name][0])(*arguments))
        result[(-1,) * result.ndim] = bad
        return result
    with pytest.raises(ValueError, match=rf"your {name} must give finite numbers; it gave {bad} at \[\d"):
        small.use(**{name: spoilt}).logits(IDS)


def test_a_mask_of_false_alone_lets_nothing_be_read(small):
    """Of bool it is what it says; of numbers, all 0 is the mask that is added and hides nothing."""
    nothing = small.use(causal_mask=lambda n_q, n_k: np.zeros((n_q, n_k), bool))
    everything = small.use(causal_mask=lambda n_q, n_k: np.zeros((n_q, n_k)))
    for model, reads in ((nothing, False), (everything, True)):
        keep = {0: None}
        model.forward(IDS, model.new_caches(len(IDS)), keep=keep)
        assert (keep[0].A > 0).all() == (keep[0].A > 0).any() == reads


@pytest.mark.parametrize("wrong", [None, 50, -1, 1.5, [1], "a", float("nan")])
def test_a_token_that_is_none_is_said(small, wrong):
    with pytest.raises(ValueError, match="your sample_next must give (an id|one number;|finite numbers;)"):
        list(small.use(sample_next=lambda *_: wrong).generate_ids(IDS, 1, stop=False))


def test_what_cannot_be_put_in_is_said(small):
    with pytest.raises(ValueError, match="layer_norm is no part of this model; what can be replaced: embed,"):
        small.use(layer_norm=multi_head.layer_norm)
    with pytest.raises(ValueError, match="rope_attention is no part of this model .its base is fixed"):
        small.use(rope_attention=embeddings.rope_attention)
    with pytest.raises(TypeError, match="rope must be a function, got 3"):
        small.use(rope=3)


def right_answers():
    for entry in json.loads((DATA / "right_answers.json").read_text(encoding="utf-8")):
        if entry["function"] in WHEN:
            yield pytest.param(entry["function"], "\n".join(entry["code"]), id=entry["id"])


@pytest.mark.parametrize(("name", "code"), list(right_answers()))
def test_every_right_answer_to_an_exercise_runs_the_model(small, name, code):
    room = {}
    exec(code, room)
    L, written = outcome(small.use(**{name: room[name]}))
    assert close(L, small.logits(IDS)) and written == outcome(small)[1]


def test_names_are_those_of_the_exercises():
    assert {name: given[0] for name, given in WHEN.items()} == {
        name: getattr(home, name) for home, names in (
            (embeddings, ("embed", "rope")), (multi_head, ("split_heads", "merge_heads")),
            (attention, ("scores", "scaled_scores", "causal_mask", "softmax", "attention_weights")),
            (kv_sharing, ("grouped_query_attention",)), (sampling, ("sample_next",))) for name in names}


def test_a_trace_takes_as_many_bytes_as_its_docstring_says(small):
    def numbers(c, n):
        """In a layer: A, then rows as wide as the model, as all query heads, and as all KV heads."""
        return c.n_heads * n * n, n * (4 * c.d_model + 2 * c.n_heads * c.d_head + 2 * c.n_kv_heads * c.d_head)

    small = SmolLM2(small.weights, SimpleNamespace(tokens=list), Functions())
    layers = small.run(IDS).layers.values()
    held = sum(x.nbytes for layer in layers for x in vars(layer).values())
    assert held == len(layers) * sum(numbers(SMALL, len(IDS))) * 4
    squares, rows = numbers(SMOLLM2, 1)
    assert f"{SMOLLM2.n_layers} · ({squares} n² + {rows} n) · 4 bytes" in SmolLM2.run.__doc__


# The real model


@pytest.fixture(scope="module")
def real():
    if not smollm2.is_fetched():
        pytest.skip("the language model is not fetched: python3 course.py model")
    pytest.importorskip("tokenizers", reason="the package tokenizers is missing: python3 course.py model")
    return smollm2.load()


@pytest.fixture(scope="module")
def reference():
    with np.load(DATA / "smollm2_reference.npz", allow_pickle=False) as file:
        return dict(file)


@pytest.fixture(params=range(4))
def case(request, reference):
    """One of the four prompts: a dict without the number in its names."""
    number = str(request.param)
    return {name.removesuffix(number).rstrip("_"): x
            for name, x in reference.items() if name.endswith(number)}


def test_logits_are_those_of_transformers(real, case):
    L = real.logits(str(case["prompt"]))
    assert np.abs(L[-1, case["logit_ids"]] - case["logits"]).max() < 5e-4
    assert (L.argmax(axis=-1) == case["argmax"]).all()


def test_forty_greedy_tokens_are_those_of_transformers(real, case):
    assert list(real.generate_ids(str(case["prompt"]), 40, stop=False)) == case["greedy"].tolist()


def test_attention_patterns_are_those_of_transformers(real, case):
    layers = real.run(str(case["prompt"]), layers=[0, 16]).layers
    for layer in (0, 16):
        assert np.abs(layers[layer].A[0] - case[f"attn_l{layer}h0"]).max() < 1e-5


def test_ids_are_those_of_transformers_and_the_prompt_comes_back(real, case):
    text = str(case["prompt"])
    assert real.tokenizer.encode(text).tolist() == case["ids"].tolist()
    assert real.tokenizer.decode(case["ids"]) == text


STRINGS = [
    "", " ", "  two  spaces ", "\n\n\t tabs\r\n", "zażółć gęślą jaźń", "你好,世界", "こんにちは", "العربية",
    "\U0001f642 \U0001f469\u200d\U0001f467 \U0001f3f3\ufe0f\u200d\U0001f308", "e\u0301 é", "𝔸∑∞≠√", "a" * 300,
    "3.14159 and 2,000,000", "def f(x):\n    return x**2  # square\n", "\x00\x07", "\u200b\ufeff",
    "<|im_start|>user\nhi<|im_end|>", "I'm, you're, they'll", "100%…“quoted”",
]


@pytest.mark.parametrize("text", STRINGS)
def test_every_string_comes_back_whole_and_in_pieces(real, text):
    ids = real.tokenizer.encode(text)
    pieces = list(real.tokenizer.stream(ids.tolist()))
    assert real.tokenizer.decode(ids) == "".join(pieces) == text
    assert not any("\ufffd" in piece for piece in pieces)


def test_bytes_that_make_no_character_are_told_and_lose_nothing(real):
    ids = real.tokenizer.encode("a🙂b").tolist()
    cut = ids[:2] + ids[-1:]                                # the emoji's first bytes, then b
    assert "".join(real.tokenizer.stream(cut)) == real.tokenizer.decode(cut)
    assert "".join(real.tokenizer.stream(ids[:2])) == real.tokenizer.decode(ids[:2])
    assert list(real.tokenizer.stream([])) == []


def test_digits_are_tokens_of_their_own_and_marks_are_one(real):
    assert real.tokenizer.tokens(real.tokenizer.encode("2024")) == ["2", "0", "2", "4"]
    assert real.tokenizer.encode("<|im_end|>").tolist() == [real.tokenizer.id_of("<|im_end|>")] == [2]
    with pytest.raises(ValueError, match="no single token"):
        real.tokenizer.id_of("<|end|>")
    with pytest.raises(TypeError, match="must be a string"):
        real.tokenizer.encode(7)
    with pytest.raises(ValueError, match=r"text must hold whole characters, got '\\ud83d' at 1, half of one"):
        real.tokenizer.encode("a\ud83d")


def test_with_a_cache_and_without_the_real_model_writes_the_same(real):
    text = "Once upon a time"
    assert list(real.generate_ids(text, 8, cache=False)) == list(real.generate_ids(text, 8))


def test_the_real_model_on_functions_put_in(real):
    calls, prompt = [], "The capital of France is"
    names = ("rope", "grouped_query_attention", "scaled_scores", "causal_mask", "attention_weights",
             "sample_next")
    mine = real.use(**{name: strict(name, calls) for name in names})
    assert "".join(mine.generate(prompt, 2)) == "".join(real.generate(prompt, 2)) == " Paris."
    assert set(calls) == set(names)

    def half_split(x, positions, base):
        """The other pairing: i with i + d/2. Right for other files, wrong for this one."""
        order = np.arange(x.shape[1]).reshape(2, -1).T.ravel()                 # 0, d/2, 1, d/2 + 1, …
        turned = np.empty_like(x)
        turned[:, order] = embeddings.rope(x[:, order], positions, base)
        return turned

    text = "The water in the river was cold, and the children who lived near it knew that winter was coming."
    assert real.use(rope=half_split).losses(text).mean() > real.losses(text).mean() + 0.5


def test_a_trace_holds_what_the_layers_computed(real):
    trace = real.run("I love apples and I love", without=[(16, 0)])
    assert trace.tokens == ["I", " love", " apples", " and", " I", " love"] and len(trace.layers) == 30
    for i, layer in trace.layers.items():
        assert layer.A.shape == (9, 6, 6) and np.allclose(layer.A.sum(axis=-1), 1, atol=1e-5)
        assert not np.triu(layer.A, 1).any()
        after = trace.layers[i + 1].X if i < 29 else None
        assert after is None or np.allclose(layer.X + layer.update + layer.mlp, after, atol=1e-3)
    assert not trace.layers[16].Z[0].any() and trace.layers[16].Z[1].any()
    assert np.allclose(real.to_vocabulary(trace.X_out), real.logits(trace.ids, [(16, 0)]), atol=5e-4)
    head = real.head(0, 4)
    N, V = trace.layers[0].N, trace.layers[0].V
    assert np.allclose(N @ head.W_v, V[4 // 3], atol=1e-4)
    assert [M.shape for M in vars(head).values()] == [(576, 64)] * 3 + [(64, 576)]
    with pytest.raises(ValueError, match="does not hand out its pattern"):
        real.use(grouped_query_attention=NOT_CAUSAL["grouped_query_attention"]).run("hello")


@pytest.mark.parametrize(("before", "without"), [([], [(16, 0)]), ([], [(16, 0), (3, 1), (29, 8)]), ([], []),
                                                 ([(16, 0)], [(3, 1)]), ([(3, 1)], [(16, 0)])])
def test_a_run_once_more_is_the_run_without_these_heads(real, before, without):
    seen = real.run("I love apples and I love", without=before)
    again, anew = real.rerun(seen, without), real.run(seen.ids, without=before + without)
    assert again.tokens == anew.tokens and again.without == anew.without and again.ids is seen.ids
    np.testing.assert_array_equal(again.X_out, anew.X_out)
    assert list(again.layers) == list(anew.layers) == list(range(30))
    for i, layer in anew.layers.items():
        for name, array in vars(layer).items():
            np.testing.assert_array_equal(vars(again.layers[i])[name], array)


def test_a_run_once_more_begins_at_the_first_head_that_is_off(real):
    mine = real.use(rope=embeddings.rope)
    seen = mine.run("I love apples", [5, 16])
    mine.functions.calls.clear()
    again = mine.rerun(seen, [(20, 1), (16, 0)], [5])
    assert mine.functions.calls["rope"] == 30 - 16 and again.layers == {5: seen.layers[5]}
    for layers, off in (([5], [(3, 0)]), ([3], [(16, 0)]), ([3], [])):
        with pytest.raises(ValueError, match=r"seen must keep layer 3, got one that keeps \[5, 16\]"):
            real.rerun(seen, off, layers)


DRAWS = [{}, {"temperature": 0.8, "top_p": 0.9}, {"temperature": 2, "top_k": 1000}, {"temperature": 1}]


def drawn(seed):
    """The draws, each with its own new rng."""
    return [draw | {"rng": np.random.default_rng([seed, j])} for j, draw in enumerate(DRAWS)]


def test_side_by_side_the_same_words_come_as_one_by_one(real):
    text = "The capital of France is"
    found = write_side_by_side(real, text, drawn(1), 6)
    assert found == ["".join(real.generate(text, 6, **draw)) for draw in drawn(1)] and len(set(found)) == 4
    with pytest.raises(ValueError, match=r"at most 8192 tokens, got 5 \+ 8188"):
        write_side_by_side(real, text, [{}], 8188)
    assert write_side_by_side(real, text, [], 6) == [] and write_side_by_side(real, text, [{}], 0) == [""]


def test_side_by_side_each_ends_at_the_mark(real):
    end = real.tokenizer.id_of("<|im_end|>")
    chosen = iter([7, 8, end, 9, 7, end])    # two a step; when both have ended none is asked for
    mine = real.use(sample_next=lambda *_: next(chosen))
    found = write_side_by_side(mine, "hello", [{}, {}], 9)
    assert found == [real.tokenizer.decode([7]), real.tokenizer.decode([8, 9])]


def test_side_by_side_your_functions_run_and_each_reads_its_own_past(real):
    names = ("rope", "grouped_query_attention", "split_heads", "merge_heads", "embed")
    mine = real.use(**{name: strict(name, []) for name in names}, scaled_scores=attention.scaled_scores)
    found = write_side_by_side(mine, "The capital of France is", drawn(1)[:2], 3)
    assert found == write_side_by_side(real, "The capital of France is", drawn(1)[:2], 3)
    calls = mine.functions.calls
    assert calls["rope"] == 3 * 30 and calls["grouped_query_attention"] == 2 * 2 * 30


def test_the_likeliest_tokens_to_come(real):
    found = real.next_tokens("The capital of France is", k=3)
    assert found[0][0] == " Paris" and found[0][1] > found[1][1] > found[2][1] > 0
    assert found == real.next_tokens(real.ids("The capital of France is"), k=3)


def test_a_chat_keeps_what_was_said(real):
    chat = real.chat()
    assert "".join(chat.say("What is the capital of France?", 30)) == "The capital of France is Paris."
    assert "".join(chat.say("And of Italy?", 30)) == "The capital of Italy is Rome."
    assert chat.text.count("<|im_end|>\n") == 5 and chat.text.endswith("Rome.<|im_end|>\n")
    afresh = "".join(real.generate(chat.text[:chat.text.index("The capital of Italy")], 30))
    assert afresh == "The capital of Italy is Rome."


def test_a_chat_survives_an_answer_that_nobody_hears_out(real):
    chat = real.chat()
    first = chat.say("Count from one to ten.", 60)
    heard = next(first) + next(first)
    assert "".join(chat.say("What is the capital of France?", 30)).strip()
    assert heard in chat.text and list(first) == []
    chat.caches[3].append(*(np.zeros((3, 1, 64), np.float32),) * 2)       # as if interrupted between layers
    assert "Rome" in "".join(chat.say("What is the capital of Italy?", 30))
    with pytest.raises(TypeError, match="text must be a string, got 3"):
        chat.say(3)
    with pytest.raises(ValueError, match="holds 2048 tokens"):
        chat.say("Go on.", 2000)


def test_an_answer_nobody_asked_a_piece_of_leaves_no_trace(real):
    chat = real.chat()
    before, never = chat.text, chat.say("Hi")
    assert chat.text == before
    assert "".join(chat.say("What is the capital of France?", 30)) == "The capital of France is Paris."
    assert list(never) == [] and "Hi" not in chat.text
    assert chat.text.count("<|im_start|>") == chat.text.count("<|im_end|>\n") == 3
    with pytest.raises(ValueError, match="top_p must be above 0"):
        chat.say("Go on.", top_p=7)


def test_a_chat_cut_at_its_last_token_reads_it_at_the_next_turn(real):
    chat = real.chat()
    assert "".join(chat.say("What is the capital of France?", 3)) == "The capital of"
    assert chat.text.endswith("The capital of<|im_end|>\n")
    said = "".join(chat.say("Go on.", 12))
    prompt = chat.text[:chat.text.rindex("<|im_start|>assistant\n")] + "<|im_start|>assistant\n"
    assert said == "".join(real.generate(prompt, 12))


def test_the_tokenizer_is_read_once_as_long_as_its_file_stays(real, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_bytes((smollm2.weights.default_folder() / "tokenizer.json").read_bytes())
    first, second = open_tokenizer(tmp_path), open_tokenizer(tmp_path)
    assert first._tokenizer is second._tokenizer and len(first) == SMOLLM2.n_vocab
    os.utime(path, ns=(0, 0))
    assert open_tokenizer(tmp_path)._tokenizer is not first._tokenizer


def test_opening_the_model_takes_no_time(real):
    """Under a second in any case; a tenth of one is usual."""
    import time

    start = time.process_time()
    smollm2.load()
    assert time.process_time() - start < 1

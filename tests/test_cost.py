"""Counted work against numbers that count their own multiplications, against real arrays, and by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.cost import (
    activation_bytes,
    attention_flops,
    crossover,
    head_width,
    layer_flops,
    mlp_weights,
    pairs,
    projection_weights,
)
from helpers.kv_cache import cache_bytes


class Counted:
    """A number that knows nothing but how often such numbers were multiplied."""

    multiplied = 0

    def __mul__(self, other):
        Counted.multiplied += 1
        return self

    def __add__(self, other):
        return self


def counted(*shape):
    return np.full(shape, Counted(), object)


def flops_of(first, second):
    """2 FLOPs for every multiplication that NumPy carries out in first @ second."""
    Counted.multiplied = 0
    first @ second
    return 2 * Counted.multiplied


@st.composite
def layers(draw):
    """n, n_past, d_head, n_heads, n_kv_heads, d_ff, gated: small, and all different at times."""
    g = draw(st.integers(1, 3))
    small = st.integers(1, 4)
    return draw(small), draw(st.integers(0, 4)), draw(small), g * draw(small), g, draw(
        st.integers(0, 5)), draw(st.booleans())


@given(layers())
def test_every_part_is_what_the_products_themselves_count(sizes):
    n, n_past, d_head, h, g, d_ff, gated = sizes
    d_model, n_k = h * d_head, n_past + n
    X, Q, K, A, V = (counted(*shape) for shape in (
        (n, d_model), (h, n, d_head), (h, d_head, n_k), (h, n, n_k), (h, n_k, d_head)))
    widths = (h * d_head, g * d_head, g * d_head, d_model)  # W_q, W_k, W_v; W_o takes the heads side by side
    assert layer_flops(n, d_model, h, g, d_ff, gated, n_past) == {
        "projections": sum(flops_of(X, counted(d_model, width)) for width in widths),
        "scores": flops_of(Q, K),
        "weighted sum": flops_of(A, V),
        "MLP": (1 + gated) * flops_of(X, counted(d_model, d_ff)) + flops_of(counted(n, d_ff),
                                                                            counted(d_ff, d_model)),
    }
    if not n_past and g == h:
        assert attention_flops(n, d_model, h) == sum(layer_flops(n, d_model, h, d_ff=0).values())


@given(st.integers(0, 6), st.integers(0, 6))
def test_pairs_are_those_that_a_loop_meets(n, n_past):
    assert pairs(n, n_past) == len([(i, j) for i in range(n) for j in range(n_past + n)])
    may_read = [(i, j) for i in range(n) for j in range(n_past + n) if j <= n_past + i]
    assert pairs(n, n_past, causal=True) == len(may_read)


def test_attention_flops_by_hand_and_without_overflow():
    assert attention_flops(3, 4, 2) == 8 * 3 * 16 + 4 * 9 * 4 == 528
    assert attention_flops(0, 4, 2) == 0
    n, d, h = np.int32(131_072), np.int32(4096), np.int32(32)
    assert attention_flops(n, d, h) == 8 * 131_072 * 4096**2 + 4 * 131_072**2 * 4096
    assert type(attention_flops(n, d, h)) is int
    assert {attention_flops(7, 12, h) for h in (1, 2, 3, 4, 6, 12)} == {8 * 7 * 144 + 4 * 49 * 12}


def test_one_step_of_decoding_after_another_adds_up_to_prefill():
    sizes = {"d_model": 12, "n_heads": 4, "n_kv_heads": 2, "d_ff": 20, "gated": True}
    whole = layer_flops(9, **sizes, causal=True)
    steps = [layer_flops(1, **sizes, n_past=t) for t in range(9)]
    assert whole == {part: sum(step[part] for step in steps) for part in whole}


def test_weights_of_published_models():
    assert 96 * (projection_weights(12_288, 96) + mlp_weights(12_288)) == 12 * 96 * 12_288**2   # GPT-3
    d, kv = 576, 3 * 64                                     # SmolLM2-135M
    assert projection_weights(d, 9, 3) == d * d + d * kv + d * kv + d * d
    assert mlp_weights(d, 1536, gated=True) == 3 * d * 1536
    assert type(projection_weights(np.int32(65_536), np.int32(64), np.int32(8))) is int
    assert projection_weights(np.int32(65_536), np.int32(64), np.int32(8)) == 2 * 65_536**2 * 9 // 8


def test_the_share_of_attention_is_about_n_over_12_d():
    for n, d, h, times in ((2048, 12_288, 96, 0.014), (131_072, 4096, 32, 2.7)):
        parts = layer_flops(n, d, h, causal=True)
        share = (parts["scores"] + parts["weighted sum"]) / (parts["projections"] + parts["MLP"])
        assert share == pytest.approx(n / (12 * d), rel=1e-3) and share == pytest.approx(times, rel=0.05)


@given(layers(), st.booleans())
def test_the_crossover_is_the_first_n_at_which_attention_takes_as_much(sizes, causal):
    _, _, d_head, h, g, d_ff, gated = sizes

    def takes_as_much(n):
        parts = layer_flops(n, h * d_head, h, g, d_ff, gated, causal=causal)
        return parts["scores"] + parts["weighted sum"] >= parts["projections"] + parts["MLP"]

    n = crossover(h * d_head, h, g, d_ff, gated, causal)
    assert n == next(n for n in range(1, 10_000) if takes_as_much(n))


def test_the_crossover_by_hand():
    assert crossover(512, 8, d_ff=0) == 2 * 512
    assert crossover(512, 8) == 6 * 512
    assert crossover(512, 8, causal=True) == 12 * 512 - 1
    assert crossover(np.int32(65_536), 64) == 6 * 65_536


@given(layers(), st.sampled_from([np.float16, np.float32, np.float64]), st.integers(1, 3))
def test_activation_bytes_are_those_of_the_arrays(sizes, dtype, batch):
    n, n_past, d_head, h, g, _, _ = sizes
    Q, K = np.zeros((batch, h, n, d_head), dtype), np.zeros((batch, g, n_past + n, d_head), dtype)
    S = np.zeros((batch, h, n, n_past + n), dtype)
    expected = {"Q": Q.nbytes, "K and V": 2 * K.nbytes, "S": S.nbytes, "Z": Q.nbytes}
    assert activation_bytes(n, h * d_head, h, g, n_past, dtype().itemsize, batch) == expected


def test_activation_bytes_of_a_long_text():
    n, d, h = np.int32(131_072), np.int32(4096), np.int32(32)
    taken = activation_bytes(n, d, h)
    assert taken["S"] == 4 * 32 * 131_072**2 == 2 * 2**40   # two tebibytes
    assert taken["K and V"] == cache_bytes(1, 32, 32, 128, 131_072, 4)
    assert all(type(size) is int for size in taken.values())


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: attention_flops(3, 10, 4), ValueError, "n_heads must divide d_model, got 4 and 10"),
        (lambda: attention_flops(-1, 8, 4), ValueError, "n must be at least 0, got -1"),
        (lambda: attention_flops(3, 8.0, 4), TypeError, "d_model must be a whole number, got 8.0"),
        (lambda: attention_flops(3, 8, 0), ValueError, "n_heads must be at least 1, got 0"),
        (lambda: head_width(0, 1), ValueError, "d_model must be at least 1, got 0"),
        (lambda: projection_weights(8, 4, 3), ValueError, "n_kv_heads must divide n_heads, got 3 and 4"),
        (lambda: layer_flops(1, 8, 4, 0), ValueError, "n_kv_heads must be at least 1, got 0"),
        (lambda: layer_flops(1, 8, 4, d_ff=-1), ValueError, "d_ff must be at least 0, got -1"),
        (lambda: layer_flops(1, 8, 4, n_past=-1), ValueError, "n_past must be at least 0, got -1"),
        (lambda: pairs(True), TypeError, "n must be a whole number, got True"),
        (lambda: crossover(8, 3), ValueError, "n_heads must divide d_model, got 3 and 8"),
        (lambda: activation_bytes(1, 8, 4, 3), ValueError, "n_kv_heads must divide n_heads, got 3 and 4"),
        (lambda: activation_bytes(1, 8, 4, bytes_per_value=0), ValueError, "bytes_per_value must be at"),
    ],
)
def test_wrong_use_is_named_with_what_was_expected_and_what_came(call, error, words):
    with pytest.raises(error, match=words):
        call()

"""Shared keys and values against loops over heads and against each other, and what wrong use is told."""

import numpy as np
import pytest
import slow
from hypothesis import given
from hypothesis import strategies as st
from strategies import matrix, sizes

from helpers import kv_sharing
from helpers.kv_cache import latent_cache_bytes
from helpers.kv_sharing import attend_absorbed, attend_restored, grouped_query_attention, latent_attention
from helpers.multi_head import multi_head, split_heads


@st.composite
def grouped(draw):
    """Q (h, n_q, d_k), K (g, n_k, d_k), V (g, n_k, d_v), g a divisor of h, n_q at most n_k."""
    g, share, n_q, extra, d_k, d_v = (draw(st.integers(1, 4)) for _ in range(6))
    n_k = n_q + extra - 1
    return draw(matrix(g * share, n_q, d_k)), draw(matrix(g, n_k, d_k)), draw(matrix(g, n_k, d_v))


@st.composite
def latent(draw, largest=3.0):
    """X, W_q, W_down, W_up_k, W_up_v and n_heads, every size drawn on its own."""
    n, d, r, h, d_k, d_v = (draw(sizes) for _ in range(6))
    shapes = (n, d), (d, h * d_k), (d, r), (r, h * d_k), (r, h * d_v)
    return *(draw(matrix(*shape, largest=largest)) for shape in shapes), h


@given(grouped(), st.booleans())
def test_each_head_reads_the_keys_and_values_of_its_group(inputs, causal):
    Q, K, V = inputs
    share = len(Q) // len(K)
    expected = [slow.head(Q[i], K[i // share], V[i // share], causal) for i in range(len(Q))]
    Z = grouped_query_attention(Q, K, V, causal)
    assert Z.shape == (len(Q), Q.shape[1], V.shape[2])
    np.testing.assert_allclose(Z, expected, rtol=1e-7, atol=1e-7)


def test_groups_are_repeated_not_tiled():
    rng = np.random.default_rng(0)
    Q, K, V = (rng.normal(size=(heads, 5, 3)) for heads in (6, 2, 2))
    Z = grouped_query_attention(Q, K, V)
    np.testing.assert_allclose(Z, grouped_query_attention(Q, *(np.repeat(M, 3, axis=0) for M in (K, V))))
    tiled = grouped_query_attention(Q, *(np.tile(M, (3, 1, 1)) for M in (K, V)))
    assert [i for i in range(6) if np.allclose(Z[i], tiled[i])] == [0, 2, 3, 5]  # 000111, 010101


@given(latent(), st.booleans())
def test_latent_attention_equals_its_heads_in_loops(inputs, causal):
    X, W_q, W_down, W_up_k, W_up_v, h = inputs
    C = slow.matmul(X, W_down)
    Q, K, V = (np.split(np.array(M), h, axis=1)
               for M in (slow.matmul(X, W_q), slow.matmul(C, W_up_k), slow.matmul(C, W_up_v)))
    expected = np.concatenate([slow.head(*head, causal) for head in zip(Q, K, V, strict=True)], axis=1)
    for absorbed in (False, True):
        Z, kept = latent_attention(*inputs, causal=causal, absorbed=absorbed)
        assert Z.shape == (len(X), W_up_v.shape[1])
        np.testing.assert_allclose(Z, expected, rtol=1e-7, atol=1e-6)
        np.testing.assert_allclose(kept, C, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("absorbed", "other"), [(False, "attend_absorbed"), (True, "attend_restored")])
def test_the_keyword_chooses_the_form(absorbed, other, monkeypatch):
    monkeypatch.setattr(kv_sharing, other, None)            # the other form cannot be called
    Z, _ = latent_attention(*map(np.ones, ((3, 4), (4, 6), (4, 2), (2, 6), (2, 4))), 2, absorbed=absorbed)
    np.testing.assert_allclose(Z, np.full((3, 4), 8.0))


def test_a_latent_as_wide_as_the_model_loses_nothing():
    rng = np.random.default_rng(0)
    X, (W_q, W_k, W_v) = rng.normal(size=(7, 6)), rng.normal(size=(3, 6, 8))
    for absorbed in (False, True):
        Z, C = latent_attention(X, W_q, np.eye(6), W_k, W_v, 4, causal=True, absorbed=absorbed)
        np.testing.assert_allclose(Z, multi_head(X, W_q, W_k, W_v, np.eye(8), 4, causal=True))
        np.testing.assert_array_equal(C, X)


@pytest.mark.parametrize("attend", [attend_restored, attend_absorbed])
def test_a_cache_of_latents_is_enough_to_go_on(attend):
    rng = np.random.default_rng(0)
    n, d, r, h = 6, 5, 3, 2
    X, W_q, W_down = rng.normal(size=(n, d)), rng.normal(size=(d, h * 4)), rng.normal(size=(d, r))
    W_up_k, W_up_v = rng.normal(size=(r, h * 4)), rng.normal(size=(r, h * 7))
    whole, _ = latent_attention(X, W_q, W_down, W_up_k, W_up_v, h, causal=True)
    cache = np.zeros((0, r))
    for t, x in enumerate(X):
        cache = np.concatenate([cache, x[None] @ W_down])
        z = attend(split_heads(x[None] @ W_q, h), cache, W_up_k, W_up_v, causal=True)
        np.testing.assert_allclose(z.ravel(), whole[t])
    assert cache.nbytes == latent_cache_bytes(1, r, 0, n, bytes_per_value=8)


@pytest.mark.parametrize("absorbed", [False, True])
def test_large_lists_and_integers_are_taken_and_inputs_left_alone(absorbed):
    rng = np.random.default_rng(0)
    inputs = [rng.integers(-200, 200, shape) for shape in ((3, 4), (4, 6), (4, 2), (2, 6), (2, 4))]
    before = [M.copy() for M in inputs]
    Z, C = latent_attention(*inputs, 2, absorbed=absorbed)
    assert np.isfinite(Z).all() and Z.dtype == C.dtype == np.float64
    as_lists, _ = latent_attention(*(M.tolist() for M in inputs), 2, absorbed=absorbed)
    np.testing.assert_array_equal(as_lists, Z)
    Q, K, V = (rng.integers(-200, 200, (heads, 3, 2)) for heads in (4, 2, 2))
    np.testing.assert_array_equal(grouped_query_attention(Q.tolist(), K.tolist(), V.tolist()),
                                  grouped_query_attention(Q, K, V))
    for M, was in zip(inputs, before, strict=True):
        np.testing.assert_array_equal(M, was)


def test_float32_stays_float32():
    rng = np.random.default_rng(0)
    Q, K, V = (rng.normal(size=(heads, 3, 2)).astype(np.float32) for heads in (4, 2, 2))
    assert grouped_query_attention(Q, K, V, causal=True).dtype == np.float32
    W = [rng.normal(size=shape).astype(np.float32) for shape in ((3, 4), (4, 6), (4, 2), (2, 6), (2, 4))]
    for absorbed in (False, True):
        assert {M.dtype for M in latent_attention(*W, 2, absorbed=absorbed)} == {np.dtype(np.float32)}


def heads(*shape):
    return np.ones(shape)


def call_latent(n_heads=2, X=(3, 4), W_q=(4, 6), W_down=(4, 2), W_up_k=(2, 6), W_up_v=(2, 4)):
    return lambda: latent_attention(*map(np.ones, (X, W_q, W_down, W_up_k, W_up_v)), n_heads)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: grouped_query_attention(heads(6, 3, 2), heads(4, 3, 2), heads(4, 3, 2)),
            ValueError,
            r"heads of K must divide those of Q: Q \(6, 3, 2\) has 6, K \(4, 3, 2\) has 4",
        ),
        (
            lambda: grouped_query_attention(heads(2, 3, 2), heads(0, 3, 2), heads(0, 3, 2)),
            ValueError,
            r"must divide .* K \(0, 3, 2\) has 0",
        ),
        (
            lambda: grouped_query_attention(heads(4, 3, 2), heads(2, 3, 5), heads(2, 3, 2)),
            ValueError,
            "Q and K must agree in d_k",
        ),
        (
            lambda: grouped_query_attention(heads(4, 3, 2), heads(2, 3, 2), heads(2, 4, 2)),
            ValueError,
            "K and V must agree in n_k",
        ),
        (
            lambda: grouped_query_attention(heads(4, 3, 2), heads(2, 3, 2), heads(4, 3, 2)),
            ValueError,
            "K and V must agree in g",
        ),
        (
            lambda: grouped_query_attention(heads(3, 2), heads(2, 3, 2), heads(2, 3, 2)),
            ValueError,
            r"Q must have shape \(h, n_q, d_k\), got \(3, 2\)",
        ),
        (call_latent(W_q=(5, 6)), ValueError, r"X and W_q must agree in d: .* \(5, 6\) has 5"),
        (call_latent(W_down=(5, 2)), ValueError, "X and W_down must agree in d"),
        (call_latent(W_up_k=(3, 6)), ValueError, "W_down and W_up_k must agree in r"),
        (call_latent(W_up_v=(3, 4)), ValueError, "C and W_up_v must agree in r"),
        (call_latent(W_up_k=(2, 8)), ValueError, r"W_q and W_up_k must agree in h·d_k: .* \(2, 8\) has 8"),
        (
            lambda: attend_restored(heads(2, 3, 3), np.ones((3, 2)), np.ones((2, 8)), np.ones((2, 4))),
            ValueError,
            r"W_up_k must have h·d_k = 2·3 = 6 columns for Q \(2, 3, 3\), got \(2, 8\)",
        ),
        (call_latent(W_up_v=(2, 5)), ValueError, r"divide the width of W_up_v: .* 5 columns, n_heads is 2"),
        (call_latent(n_heads=4), ValueError, r"divide the width of W_q: .* 6 columns, n_heads is 4"),
        (call_latent(n_heads=0), ValueError, "n_heads must be at least 1, got 0"),
        (call_latent(n_heads=2.0), TypeError, "n_heads must be a whole number"),
        (call_latent(X=(4,)), ValueError, r"X must have shape \(n, d\), got \(4,\)"),
    ],
)
def test_wrong_use_is_named_with_what_was_expected_and_what_came(call, error, words):
    with pytest.raises(error, match=words):
        call()

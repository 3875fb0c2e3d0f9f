"""Heads side by side against heads one by one, the norm against loops, and what both say to bad input."""

import numpy as np
import pytest
import slow
from hypothesis import given
from hypothesis import strategies as st
from strategies import matrix, sizes

from helpers.attention import single_head
from helpers.multi_head import layer_norm, merge_heads, multi_head, pre_norm_residual, split_heads


@st.composite
def layers(draw):
    """X, W_q, W_k, W_v, W_o and the number of heads, every size drawn on its own."""
    n, d_model, h, d_k, d_v = (draw(sizes) for _ in range(5))
    shapes = ((n, d_model), (d_model, h * d_k), (d_model, h * d_k), (d_model, h * d_v), (h * d_v, d_model))
    return (*(draw(matrix(*shape, largest=3.0)) for shape in shapes), h)


@given(st.data())
def test_split_puts_the_columns_of_head_r_at_r_and_merge_undoes_it(data):
    n, h, d_k = (data.draw(sizes) for _ in range(3))
    X = data.draw(matrix(n, h * d_k))
    H = split_heads(X, h)
    assert H.shape == (h, n, d_k)
    for r in range(h):
        np.testing.assert_array_equal(H[r], X[:, r * d_k : (r + 1) * d_k])
    np.testing.assert_array_equal(merge_heads(H), X)


@given(layers(), st.booleans())
def test_multi_head_is_the_sum_of_single_heads_through_their_rows_of_W_o(layer, causal):
    X, W_q, W_k, W_v, W_o, h = layer
    d_k, d_v = W_q.shape[1] // h, W_v.shape[1] // h
    total = np.zeros(X.shape)
    for r in range(h):
        k, v = slice(r * d_k, (r + 1) * d_k), slice(r * d_v, (r + 1) * d_v)
        total += single_head(X, W_q[:, k], W_k[:, k], W_v[:, v], causal) @ W_o[v]
    np.testing.assert_allclose(multi_head(*layer, causal=causal), total, rtol=1e-9, atol=1e-9)


@given(st.data(), st.sampled_from([1e-5, 0.1]))
def test_layer_norm_equals_loops(data, eps):
    n, d = data.draw(sizes), data.draw(sizes)
    x, gamma, beta = data.draw(matrix(n, d)), data.draw(matrix(d)), data.draw(matrix(d))
    expected = [slow.layer_norm(list(row), gamma, beta, eps) for row in x]
    np.testing.assert_allclose(layer_norm(x, gamma, beta, eps), expected, rtol=1e-7, atol=1e-7)


def test_pre_norm_residual_normalises_what_goes_in_and_adds_what_comes_out():
    rng = np.random.default_rng(0)
    x, gamma, beta, W = (
        rng.normal(size=(4, 6)),
        rng.normal(size=6),
        rng.normal(size=6),
        rng.normal(size=(6, 6)),
    )
    expected = x + layer_norm(x, gamma, beta, 0.1) @ W
    np.testing.assert_allclose(pre_norm_residual(x, lambda y: y @ W, gamma, beta, 0.1), expected)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: split_heads(np.ones((2, 5)), 2),
            ValueError,
            r"n_heads must divide the width of X: X \(2, 5\) has 5 columns, n_heads is 2",
        ),
        (lambda: split_heads(np.ones((2, 4)), 0), ValueError, "n_heads must be at least 1"),
        (lambda: split_heads(np.ones((2, 4)), 2.0), TypeError, "n_heads must be a whole number"),
        (lambda: merge_heads(np.ones((2, 4))), ValueError, r"H must have shape \(h, n, d_k\)"),
        (
            lambda: multi_head(*[np.ones((4, 4))] * 4, np.ones((3, 4)), 2),
            ValueError,
            "W_v and W_o must agree in h·d_v",
        ),
        (
            lambda: multi_head(np.ones((2, 3)), *[np.ones((4, 4))] * 4, 2),
            ValueError,
            "X and W_q must agree in d_model",
        ),
        (lambda: multi_head(*[np.ones((4, 4))] * 5, 3), ValueError, "n_heads must divide"),
        (
            lambda: layer_norm(np.ones((2, 3)), np.ones(2), np.ones(3)),
            ValueError,
            "x and gamma must agree in d",
        ),
        (
            lambda: pre_norm_residual(np.ones((2, 3)), lambda y: y[:1], np.ones(3), np.ones(3)),
            ValueError,
            "sublayer must keep the shape",
        ),
    ],
)
def test_bad_input_is_named_with_what_was_expected_and_what_came(call, error, words):
    with pytest.raises(error, match=words):
        call()

"""One head against loops over single numbers, its edges, and what it says to bad input."""

import math

import numpy as np
import pytest
import slow
from hypothesis import given
from hypothesis import strategies as st
from strategies import head_inputs, matrix, qkv, sizes

from helpers.attention import (
    attention_weights,
    causal_mask,
    last_query_attention,
    project_qkv,
    scaled_scores,
    scores,
    single_head,
    softmax,
)

CLOSE = {"rtol": 1e-9, "atol": 1e-9}


@given(head_inputs())
def test_project_qkv_equals_loops(inputs):
    X, *weights = inputs
    for projected, W in zip(project_qkv(*inputs), weights, strict=True):
        np.testing.assert_allclose(projected, slow.matmul(X, W), **CLOSE)


@given(qkv())
def test_scores_are_every_dot_product_and_scaled_ones_are_divided_by_the_root_of_the_width(inputs):
    Q, K, _ = inputs
    S, scaled = scores(Q, K), scaled_scores(Q, K)
    assert S.shape == scaled.shape == (len(Q), len(K))
    for i, q in enumerate(Q):
        for j, k in enumerate(K):
            assert math.isclose(S[i, j], slow.dot(q, k), rel_tol=1e-9, abs_tol=1e-9)
            assert math.isclose(scaled[i, j] * math.sqrt(len(q)), S[i, j], rel_tol=1e-12, abs_tol=1e-12)


@given(st.data(), st.sampled_from([1.0, 30.0, 1e4]))
def test_softmax_equals_loops_at_every_size(data, largest):
    z = data.draw(matrix(data.draw(sizes), data.draw(sizes), largest=largest))
    A = softmax(z)
    for row, expected in zip(A, z, strict=True):
        np.testing.assert_allclose(row, slow.softmax(expected), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(A.sum(axis=-1), 1, rtol=1e-12)


@given(st.data(), st.floats(-1e3, 1e3))
def test_softmax_is_the_same_when_a_row_is_shifted(data, shift):
    z = data.draw(matrix(2, 4))
    np.testing.assert_allclose(softmax(z + shift), softmax(z), rtol=1e-9, atol=1e-12)


def test_softmax_works_on_any_number_of_axes_and_any_real_type():
    z = np.arange(24).reshape(2, 3, 4)
    for dtype in (np.int32, np.int64, np.uint8, bool, np.float16, np.float32, np.float64):
        A = softmax(z.astype(dtype))
        assert A.shape == z.shape and A.dtype == (dtype if np.dtype(dtype).kind == "f" else np.float64)
    np.testing.assert_allclose(softmax(z)[1, 2], slow.softmax(z[1, 2]))
    np.testing.assert_allclose(softmax([1.0, 2.0]), slow.softmax([1.0, 2.0]))
    long_row = softmax(np.zeros(100_000, np.float16))  # their sum does not fit into float16
    assert abs(long_row.astype(float).sum() - 1) < 0.01


def test_softmax_of_a_row_of_minus_infinity_is_zero_and_of_no_columns_is_empty():
    with np.errstate(all="raise"):
        assert softmax([[-np.inf, -np.inf], [0.0, -np.inf]]).tolist() == [[0, 0], [1, 0]]
        assert softmax(np.zeros((3, 0))).shape == (3, 0)


@given(st.integers(0, 6), st.integers(0, 6))
def test_the_causal_mask_lets_each_query_read_up_to_its_own_position(n_q, extra):
    n_k = n_q + extra
    mask = causal_mask(n_q, n_k)
    assert mask.dtype == bool and mask.shape == (n_q, n_k)
    for i in range(n_q):
        for j in range(n_k):
            assert mask[i, j] == (j <= i + extra)


def test_the_causal_mask_is_square_by_default_and_one_query_reads_everything():
    assert causal_mask(3).tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert causal_mask(1, 6).all()


@given(st.data())
def test_attention_weights_are_softmax_over_the_allowed_keys_alone(data):
    n_q, n_k = data.draw(sizes), data.draw(sizes)
    S = data.draw(matrix(n_q, n_k, largest=2e5))
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=n_q * n_k, max_size=n_q * n_k))).reshape(
        n_q, n_k
    )
    A = attention_weights(S, mask)
    assert (A[~mask] == 0).all()
    for row, s, may in zip(A, S, mask, strict=True):
        np.testing.assert_allclose(row, slow.softmax(s, may), rtol=1e-9, atol=1e-12)
    stacked = attention_weights(np.stack([S, -S]), mask)
    np.testing.assert_array_equal(stacked[0], A)


@given(head_inputs(), st.booleans())
def test_single_head_equals_loops(inputs, causal):
    X, *weights = inputs
    Q, K, V = (slow.matmul(X, W) for W in weights)
    np.testing.assert_allclose(
        single_head(*inputs, causal=causal), slow.head(Q, K, V, causal), rtol=1e-7, atol=1e-7
    )


@given(qkv())
def test_the_newest_token_alone_gives_the_last_row_of_the_whole(inputs):
    Q, K, V = inputs
    expected = slow.head(Q, K, V, causal=True)[-1]
    np.testing.assert_allclose(last_query_attention(Q[-1], K, V), expected, rtol=1e-7, atol=1e-7)


def test_no_token_reads_the_future():
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(6, 5)), rng.normal(size=(3, 5, 4))
    Z = single_head(X, *weights, causal=True)
    X[4:] = rng.normal(size=(2, 5))
    changed = single_head(X, *weights, causal=True)
    np.testing.assert_array_equal(Z[:4], changed[:4])
    assert not np.allclose(Z[4:], changed[4:])


def test_shuffled_tokens_give_shuffled_outputs_without_a_mask_and_not_with_one():
    rng = np.random.default_rng(0)
    X, weights, order = rng.normal(size=(6, 5)), rng.normal(size=(3, 5, 4)), rng.permutation(6)
    np.testing.assert_allclose(single_head(X[order], *weights), single_head(X, *weights)[order])
    assert not np.allclose(
        single_head(X[order], *weights, causal=True), single_head(X, *weights, causal=True)[order]
    )


def test_lists_will_do_and_inputs_stay_as_they_are():
    rng = np.random.default_rng(0)
    X, W = rng.integers(-3, 4, size=(4, 4)), rng.integers(-3, 4, size=(4, 4))
    before = X.copy(), W.copy()
    as_lists = [X.tolist(), W.tolist()]
    mask = [[True] * 4] * 4
    calls = [
        (project_qkv, (0, 1, 1, 1)),
        (scores, (0, 1)),
        (scaled_scores, (0, 1)),
        (softmax, (0,)),
        (single_head, (0, 1, 1, 1)),
    ]
    for function, which in calls:
        np.testing.assert_array_equal(
            function(*((X, W)[i] for i in which)), function(*(as_lists[i] for i in which))
        )
    np.testing.assert_array_equal(attention_weights(as_lists[0], mask), attention_weights(X, np.array(mask)))
    np.testing.assert_array_equal(
        last_query_attention(as_lists[0][0], as_lists[0], as_lists[1]), last_query_attention(X[0], X, W)
    )
    assert np.array_equal(X, before[0]) and np.array_equal(W, before[1])


def test_float32_stays_float32():
    rng = np.random.default_rng(0)
    X, *W = (rng.normal(size=(4, 4)).astype(np.float32) for _ in range(4))
    for result in (
        *project_qkv(X, *W),
        scores(X, X),
        scaled_scores(X, X),
        softmax(X),
        attention_weights(X, causal_mask(4)),
        single_head(X, *W, causal=True),
        last_query_attention(X[0], X, X),
    ):
        assert result.dtype == np.float32


def test_empty_sequences_pass_through():
    none, W = np.zeros((0, 3)), np.ones((3, 2))
    assert single_head(none, W, W, W, causal=True).shape == (0, 2)
    assert last_query_attention(np.ones(2), np.zeros((0, 2)), np.zeros((0, 5))).tolist() == [0] * 5


ONES = np.ones((2, 3))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: project_qkv(ONES, ONES, np.ones((3, 2)), np.ones((3, 2))),
            ValueError,
            r"X and W_q must agree in d_model: X \(2, 3\)",
        ),
        (
            lambda: project_qkv(ONES, np.ones((3, 2)), np.ones((3, 1)), np.ones((3, 2))),
            ValueError,
            "W_q and W_k must agree in d_k",
        ),
        (
            lambda: project_qkv(ONES, np.ones((3, 2)), np.ones((3, 2)), np.ones((4, 2))),
            ValueError,
            "X and W_v",
        ),
        (
            lambda: project_qkv(np.ones(3), ONES.T, ONES.T, ONES.T),
            ValueError,
            r"X must have shape \(n, d_model\), got \(3,\)",
        ),
        (
            lambda: scores(ONES, np.ones((2, 4))),
            ValueError,
            r"Q and K must agree in d_k: Q \(2, 3\) has 3, K \(2, 4\) has 4",
        ),
        (lambda: scaled_scores(ONES, [[1, 2], [1]]), ValueError, "K must have rows of equal length"),
        (lambda: scores(ONES, [["a", "b", "c"]]), TypeError, "K must hold real numbers"),
        (lambda: scores(ONES, 1j * ONES), TypeError, "K .* complex"),
        (lambda: scores(None, ONES), TypeError, "Q must hold real numbers"),
        (lambda: softmax(3.0), ValueError, r"z must have shape \(…, m\), got \(\)"),
        (lambda: softmax("abc"), TypeError, "z must hold real numbers"),
        (lambda: causal_mask(-1), ValueError, "n_q must be at least 0, got -1"),
        (lambda: causal_mask(2.5), TypeError, "n_q must be a whole number, got 2.5"),
        (lambda: causal_mask(2, "3"), TypeError, "n_k must be a whole number"),
        (
            lambda: attention_weights(ONES, np.ones((3, 2), bool)),
            ValueError,
            r"S and mask must agree .*S \(2, 3\), mask \(3, 2\)",
        ),
        (lambda: attention_weights(ONES, np.full((2, 3), -np.inf)), TypeError, "mask must be boolean"),
        (lambda: attention_weights(ONES, np.array(True)), ValueError, "S and mask"),
        (
            lambda: last_query_attention(ONES, ONES, ONES),
            ValueError,
            r"q must have shape \(d_k,\), got \(2, 3\)",
        ),
        (lambda: last_query_attention(np.ones(2), ONES, ONES), ValueError, "q and K must agree in d_k"),
        (
            lambda: last_query_attention(np.ones(3), ONES, np.ones((4, 3))),
            ValueError,
            "K and V must agree in n",
        ),
    ],
)
def test_bad_input_is_named_with_what_was_expected_and_what_came(call, error, words):
    with pytest.raises(error, match=words):
        call()

"""Thin products against other routes to the same thing, and what they say to bad input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import matrix, sizes

from helpers.low_rank import low_rank_factors, per_head_updates, shared_qkv_basis
from helpers.multi_head import merge_heads


def tail(W, r):
    """What the best rank-r approximation must leave over, from the eigenvalues of W Wᵀ: no SVD."""
    return np.sqrt(np.clip(np.linalg.eigvalsh(W @ W.T)[::-1][r:], 0, None).sum())


@given(st.data())
def test_low_rank_factors_leave_over_exactly_the_small_singular_values(data):
    m, k = data.draw(sizes), data.draw(sizes)
    W, r = data.draw(matrix(m, k)), data.draw(st.integers(1, min(m, k)))
    A, B = low_rank_factors(W, r)
    assert A.shape == (m, r) and B.shape == (r, k)
    np.testing.assert_allclose(np.linalg.norm(W - A @ B), tail(W, r), rtol=1e-6, atol=1e-5)


@given(st.data())
def test_the_updates_add_up_to_concatenate_then_project(data):
    h, n, d_v, d_model = (data.draw(sizes) for _ in range(4))
    H, W_o = data.draw(matrix(h, n, d_v)), data.draw(matrix(h * d_v, d_model))
    updates, total = per_head_updates(H, W_o)
    assert updates.shape == (h, n, d_model)
    np.testing.assert_allclose(total, merge_heads(H) @ W_o, rtol=1e-9, atol=1e-9)
    for r in range(h):
        np.testing.assert_allclose(updates[r], H[r] @ W_o[r * d_v : (r + 1) * d_v], rtol=1e-9, atol=1e-9)


@given(st.data())
def test_the_shared_basis_is_the_best_joint_fit(data):
    d, widths = data.draw(sizes), [data.draw(sizes) for _ in range(3)]
    weights = [data.draw(matrix(d, width)) for width in widths]
    r = data.draw(st.integers(1, min(d, sum(widths))))
    B, *coefficients = shared_qkv_basis(*weights, r)
    np.testing.assert_allclose(B.T @ B, np.eye(r), atol=1e-9)
    assert [A.shape for A in coefficients] == [(r, width) for width in widths]
    left = np.sqrt(sum(np.linalg.norm(W - B @ A) ** 2 for W, A in zip(weights, coefficients, strict=True)))
    np.testing.assert_allclose(left, tail(np.concatenate(weights, axis=1), r), rtol=1e-6, atol=1e-5)


ONES = np.ones((2, 3))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: low_rank_factors(ONES, 3),
            ValueError,
            r"r must be at most 2, the smaller side of W \(2, 3\)",
        ),
        (lambda: low_rank_factors(ONES, 0), ValueError, "r must be at least 1"),
        (lambda: low_rank_factors(ONES, 1.0), TypeError, "r must be a whole number"),
        (lambda: low_rank_factors(np.ones(3), 1), ValueError, r"W must have shape \(m, k\)"),
        (lambda: per_head_updates(np.ones((2, 3, 4)), np.ones((9, 5))), ValueError, "2·4 = 8 rows"),
        (lambda: per_head_updates(ONES, ONES), ValueError, r"H must have shape \(h, n, d_v\)"),
        (lambda: shared_qkv_basis(ONES, np.ones((3, 3)), ONES, 1), ValueError, "W_q and W_k must agree in d"),
        (lambda: shared_qkv_basis(ONES, ONES, np.ones((4, 1)), 1), ValueError, "W_q and W_v must agree in d"),
        (lambda: shared_qkv_basis(ONES, ONES, ONES, 3), ValueError, "r must be at most 2"),
    ],
)
def test_bad_input_is_named_with_what_was_expected_and_what_came(call, error, words):
    with pytest.raises(error, match=words):
        call()

"""What a head can and cannot write: products of thin matrices (notebook 05).

Read `low_rank_factors` (the best thin product for one matrix), `per_head_updates` (concatenate-then-project
as a sum over heads), and `shared_qkv_basis` (one basis for Q, K and V together).
"""

import numpy as np

from helpers.arrays import array, came, count, fits, same_size, widened
from helpers.attention import times


def low_rank_factors(W, r):
    """The best product of two thin matrices for W, in the sense of least squares.

    W : (m, k), r : 1 … min(m, k).  Returns A (m, r) and B (r, k); A @ B is the closest matrix to W of rank
    at most r. The singular values are shared out evenly, their roots to either side.  Eckart & Young 1936.
    """
    U, s, Vt = svd(array("W", W, ("m", "k")), r, "W")       # (m, p), (p,), (p, k)
    root = np.sqrt(s[:r])
    return U[:, :r] * root, root[:, None] * Vt[:r]          # (m, r), (r, k)


def per_head_updates(H, W_o):
    """What each head adds to the residual stream through its own rows of W_o, and the sum of it all.

    H : (h, n, d_v), W_o : (h * d_v, d_model).  Returns updates (h, n, d_model) and their sum (n, d_model),
    which is what `merge_heads(H) @ W_o` gives.  Raises ValueError when W_o does not have h * d_v rows.
    Elhage et al. 2021.
    """
    H, W_o = array("H", H, ("h", "n", "d_v")), array("W_o", W_o, ("h·d_v", "d_model"))
    h, _, d_v = H.shape
    if len(W_o) != h * d_v:
        raise ValueError(f"W_o must have h·d_v = {h}·{d_v} = {h * d_v} rows for H {H.shape}, got {W_o.shape}")
    rows = W_o.reshape(h, d_v, W_o.shape[1])                # (h·d_v, d_model) -> (h, d_v, d_model)
    updates = times("H", H, "W_o", rows)         # (h, n, d_v) @ (h, d_v, d_model) -> (h, n, d_model)
    with np.errstate(over="ignore", invalid="ignore"):
        total = widened(updates).sum(axis=0)                # (n, d_model)
    return updates, fits("the sum of the updates", total, updates.dtype)


def shared_qkv_basis(W_q, W_k, W_v, r):
    """One basis for all three projections: B @ A_q, B @ A_k and B @ A_v are the best joint fit of rank r.

    W_q, W_k, W_v : (d, ·), r : 1 … min(d, their widths added).
    Returns B (d, r) with orthonormal columns and A_q, A_k, A_v (r, ·), cut at the widths of the three.
    """
    weights = [array(name, W, ("d", "·")) for name, W in (("W_q", W_q), ("W_k", W_k), ("W_v", W_v))]
    same_size("d", ("W_q", weights[0]), ("W_k", weights[1]), axis=(0, 0))
    same_size("d", ("W_q", weights[0]), ("W_v", weights[2]), axis=(0, 0))
    side_by_side = np.concatenate(weights, axis=1)          # (d, ·) three times -> (d, all)
    B = svd(side_by_side, r, "[W_q W_k W_v]")[0][:, :r]     # (d, r)
    return (B, *(times("B.T", B.T, "W", W) for W in weights))             # (r, d) @ (d, ·) -> (r, ·)


def svd(W, r, name):
    """The thin singular value decomposition of W, after a look at r; float16 is computed in float32."""
    r = count("r", r, least=1)
    if r > min(W.shape):
        raise ValueError(f"r must be at most {min(W.shape)}, the smaller side of {name} {W.shape}, "
                         f"got {came(r)}")
    with np.errstate(over="ignore"):
        U, s, Vt = np.linalg.svd(widened(W), full_matrices=False)
    return U, fits(f"the singular values of {name}", s), Vt

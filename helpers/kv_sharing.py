"""Fewer keys and values than heads (notebook 07).

Read `grouped_query_attention` (heads in a group read the same keys and values), then `latent_attention` (all
heads read one narrow row a token) with its two forms, `attend_restored` and `attend_absorbed`, which give the
same numbers: keys and values formed from the latent, or never formed at all.
"""

import math

import numpy as np

from helpers.arrays import array, fits, flag, look_at_values, same_size, widened
from helpers.attention import attention_weights, causal_mask, products, scaled_scores, softmax, times
from helpers.multi_head import heads_of, merge_heads


def grouped_query_attention(Q, K, V, causal=False):
    """Heads in groups: query head i reads key and value head i // (h/g), the groups stand side by side.

    Q : (h, n_q, d_k), K : (g, n_k, d_k), V : (g, n_k, d_v); g divides h.  Returns (h, n_q, d_v).
    g = h is multi-head attention, g = 1 multi-query attention. It equals repeating K and V h/g times along
    the first axis with `np.repeat`, without the copies.  causal : the last query sits at the last key.
    Raises ValueError when a shape does not fit or g does not divide h.  Ainslie et al. 2023, §2.2.
    """
    Q = array("Q", Q, ("h", "n_q", "d_k"))
    K, V = array("K", K, ("g", "n_k", "d_k"), holds=None), array("V", V, ("g", "n_k", "d_v"), holds=None)
    same_size("d_k", ("Q", Q), ("K", K))
    same_size("n_k", ("K", K), ("V", V), axis=(1, 1))
    g = same_size("g", ("K", K), ("V", V), axis=(0, 0))
    h, n_q, d_k = Q.shape
    if g == 0 or h % g:
        raise ValueError(f"the heads of K must divide those of Q: Q {Q.shape} has {h}, K {K.shape} has {g}")
    rows, n_k = h // g * n_q, K.shape[1]                    # all queries of a group, one below the other
    S = products(Q.reshape(g, rows, d_k), K)                # (g, rows, d_k) @ (g, d_k, n_k)
    if not np.isfinite(S).all():                            # what K holds that it must not shows here
        look_at_values("K", K)
        fits("the scores of Q and K", S)
    A = pattern(S.reshape(h, n_q, n_k) / math.sqrt(max(d_k, 1)), causal)
    with np.errstate(over="ignore", invalid="ignore"):
        Z = A.reshape(g, rows, n_k) @ widened(V)            # (g, rows, n_k) @ (g, n_k, d_v)
    if not np.isfinite(Z).all():
        look_at_values("V", V)
        fits("the weighted sum of V", Z)
    Z = Z.reshape(h, n_q, V.shape[-1])                      # (g, rows, d_v) -> (h, n_q, d_v)
    return Z.astype(np.result_type(Q, K, V), copy=False)


def latent_attention(X, W_q, W_down, W_up_k, W_up_v, n_heads, causal=False, absorbed=False):
    """Keys and values of all heads from one narrow row a token, C = X W_down: all that a cache would keep.

    X : (n, d), W_q : (d, h * d_k), W_down : (d, r), W_up_k : (r, h * d_k), W_up_v : (r, h * d_v).
    Returns Z (n, h * d_v), the heads side by side, and C (n, r).
    absorbed : never form keys and values (see `attend_absorbed`); the numbers are the same up to rounding.
    No norm, no rotary key.  Raises ValueError when a shape does not fit or n_heads does not divide a width.
    DeepSeek-AI 2024 (DeepSeek-V2), §2.1.2.
    """
    X, W_q = array("X", X, ("n", "d")), array("W_q", W_q, ("d", "h·d_k"))
    W_down, W_up_k = array("W_down", W_down, ("d", "r")), array("W_up_k", W_up_k, ("r", "h·d_k"))
    for name, W in (("W_q", W_q), ("W_down", W_down)):
        same_size("d", ("X", X), (name, W), axis=(1, 0))
    same_size("r", ("W_down", W_down), ("W_up_k", W_up_k), axis=(1, 0))
    same_size("h·d_k", ("W_q", W_q), ("W_up_k", W_up_k))
    attend = attend_absorbed if flag("absorbed", absorbed) else attend_restored
    C = times("X", X, "W_down", W_down)                     # (n, d) @ (d, r) -> (n, r)
    W_q = heads_of("W_q", W_q, n_heads)                     # (h, d, d_k)
    Q = times("X", X, "W_q", W_q)                           # (n, d) @ (h, d, d_k) -> (h, n, d_k)
    Z = attend(Q, C, W_up_k, W_up_v, causal)
    return merge_heads(Z), C                                # (h, n, d_v) -> (n, h·d_v)


def attend_restored(Q, C, W_up_k, W_up_v, causal=False):
    """The naive form: every head's keys and values are formed from the latent, then read as usual.

    Q : (h, n_q, d_k), C : (n_k, r), W_up_k : (r, h * d_k), W_up_v : (r, h * d_v).  Returns (h, n_q, d_v).
    """
    Q, C, U_k, U_v = up_projections(Q, C, W_up_k, W_up_v)
    K = times("C", C, "W_up_k", U_k)                        # (n_k, r) @ (h, r, d_k) -> (h, n_k, d_k)
    V = times("C", C, "W_up_v", U_v)                        # (n_k, r) @ (h, r, d_v) -> (h, n_k, d_v)
    return times("A", pattern(scaled_scores(Q, K), causal), "V", V)       # (h, n_q, n_k) @ (h, n_k, d_v)


def attend_absorbed(Q, C, W_up_k, W_up_v, causal=False):
    """The absorbed form: queries go into the latent's space, what they read comes out of it afterwards.

    q · (c U_k) = (q U_kᵀ) · c, and A (C U_v) = (A C) U_v: all heads read the rows of C themselves, as keys
    and as values. The scale stays √d_k, for these are the same scores.  Shapes as for `attend_restored`.
    """
    Q, C, U_k, U_v = up_projections(Q, C, W_up_k, W_up_v)
    Q_latent = times("Q", Q, "W_up_k", U_k.swapaxes(1, 2))  # (h, n_q, d_k) @ (h, d_k, r) -> (h, n_q, r)
    S = products(Q_latent, C) / math.sqrt(max(Q.shape[-1], 1))            # (h, n_q, n_k)
    S = fits("the scores of Q and C", S, np.result_type(Q, C))
    read = times("A", pattern(S, causal), "C", C)           # (h, n_q, n_k) @ (n_k, r) -> (h, n_q, r)
    return times("A C", read, "W_up_v", U_v)                # (h, n_q, r) @ (h, r, d_v) -> (h, n_q, d_v)


def up_projections(Q, C, W_up_k, W_up_v):
    """Q and C as arrays, and the part of W_up_k and W_up_v that belongs to each head of Q, heads first."""
    Q, C = array("Q", Q, ("h", "n_q", "d_k")), array("C", C, ("n_k", "r"))
    W_up_k, W_up_v = array("W_up_k", W_up_k, ("r", "h·d_k")), array("W_up_v", W_up_v, ("r", "h·d_v"))
    for name, W in (("W_up_k", W_up_k), ("W_up_v", W_up_v)):
        same_size("r", ("C", C), (name, W), axis=(1, 0))
    h, _, d_k = Q.shape
    if W_up_k.shape[1] != h * d_k:
        raise ValueError(f"W_up_k must have h·d_k = {h}·{d_k} = {h * d_k} columns for Q {Q.shape}, "
                         f"got {W_up_k.shape}")
    return Q, C, heads_of("W_up_k", W_up_k, h), heads_of("W_up_v", W_up_v, h)


def pattern(S, causal):
    """Softmax of the scores S (…, n_q, n_k), over all keys or, when causal, over those that may be read."""
    if flag("causal", causal):
        return attention_weights(S, causal_mask(*np.shape(S)[-2:]))
    return softmax(S)

"""One head of attention, in the order of the computation (notebooks 02 and 03).

Read downwards: `project_qkv`, `scores`, `scaled_scores`, `softmax`, `causal_mask`, `attention_weights`, and
the two functions that put them together, `single_head` and `last_query_attention`. A token is a row, softmax
runs over keys (the last axis), and A[i, j] is how much query i reads from key j.
"""

import math

import numpy as np

from helpers.arrays import (
    array,
    fits,
    flag,
    look_at_values,
    room,
    same_size,
    same_stack,
    size,
    unmasked,
    widened,
)
from helpers.tiles import attend_in_tiles

SHORT = 128 * 128       # up to so many scores a head, the plain way is as fast as tiles


def project_qkv(X, W_q, W_k, W_v):
    """Three projections of every token: what it asks, what it answers to, what it passes on.

    X : (n, d_model), W_q, W_k : (d_model, d_k), W_v : (d_model, d_v).
    Returns Q (n, d_k), K (n, d_k), V (n, d_v).  Raises ValueError when a shape does not fit.
    """
    X = array("X", X, ("n", "d_model"))
    W_q, W_k = array("W_q", W_q, ("d_model", "d_k")), array("W_k", W_k, ("d_model", "d_k"))
    W_v = array("W_v", W_v, ("d_model", "d_v"))
    for name, W in (("W_q", W_q), ("W_k", W_k), ("W_v", W_v)):
        same_size("d_model", ("X", X), (name, W), axis=(1, 0))
    same_size("d_k", ("W_q", W_q), ("W_k", W_k))
    return times("X", X, "W_q", W_q), times("X", X, "W_k", W_k), times("X", X, "W_v", W_v)


def times(name, X, name_w, W):
    """X @ W, (…, m) @ (m, d) -> (…, d); float16 is added up in float32.

    Raises ValueError when the result is too large for their type.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        Y = widened(X) @ widened(W)
    return fits(f"{name} {name_w}", Y, np.result_type(X, W))


def scores(Q, K):
    """The dot product of every query with every key, not scaled.

    Q : (…, n_q, d_k), K : (…, n_k, d_k).  Returns S : (…, n_q, n_k), S[i, j] = q_i · k_j.
    Raises ValueError when Q and K differ in d_k, or when a score is too large for their type.
    """
    Q, K = queries_and_keys(Q, K)
    return fits("the scores of Q and K", products(Q, K), np.result_type(Q, K))


def scaled_scores(Q, K):
    """Scores of every query against every key, kept near unit variance.

    Q : (…, n_q, d_k), K : (…, n_k, d_k).  Returns S : (…, n_q, n_k), S[i, j] = q_i · k_j / √d_k.
    Raises ValueError as `scores` does.  Vaswani et al. 2017, eq. 1.
    """
    Q, K = queries_and_keys(Q, K)
    S = products(Q, K) / math.sqrt(max(Q.shape[-1], 1))     # (…, n_q, n_k)
    return fits("the scores of Q and K", S, np.result_type(Q, K))


def queries_and_keys(Q, K):
    """Q (…, n_q, d_k) and K (…, n_k, d_k) as arrays, after a look at them."""
    Q, K = array("Q", Q, ("n_q", "d_k"), stacked=True), array("K", K, ("n_k", "d_k"), stacked=True)
    same_size("d_k", ("Q", Q), ("K", K))
    same_stack(("Q", Q), ("K", K))
    return Q, K


def products(Q, K):
    """Every q · k, (…, n_q, n_k); of float16 in float32. What is too large comes out as infinity or NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        return widened(Q) @ np.swapaxes(widened(K), -1, -2)               # (n_q, d_k) @ (d_k, n_k)


def softmax(z):
    """Each row as shares that sum to 1, in proportion to exp(z).

    z : (…, m), any real dtype.  Returns the same shape, over the last axis.  The row's maximum is subtracted
    first, which changes nothing in the result and keeps exp from overflowing.  A row of -inf gives zeros.
    Raises ValueError for NaN and +inf.
    """
    z = array("z", z, ("m",), stacked=True, holds=None)
    wide = widened(z)
    top = wide.max(axis=-1, keepdims=True, initial=-np.inf)               # (…, 1)
    if not (top < np.inf).all():                                          # NaN is not less than anything
        look_at_values("z", z, "finite numbers or -inf")
    with np.errstate(over="ignore"):                                      # what is too far below becomes -inf
        e = wide - np.where(top == -np.inf, 0, top)                       # (…, m), a copy: from here in place
    np.exp(e, out=e)                                                      # the largest is 1
    total = e.sum(axis=-1, keepdims=True)                                 # (…, 1)
    e /= np.where(total == 0, 1, total)
    return e.astype(z.dtype, copy=False)


def causal_mask(n_q, n_k=None):
    """Which keys each query may read: its own position and all before it.

    n_q, n_k : counts; n_k defaults to n_q.  Returns (n_q, n_k) bool, True where query i may read key j.
    The last query sits at the last key, so query i has position i + n_k - n_q: with a cache there are more
    keys than queries. (Where n_q > n_k the first queries come before every key: their rows are all False.)
    """
    n_q = size("n_q", n_q)
    n_k = n_q if n_k is None else size("n_k", n_k)
    room(n_q=n_q, n_k=n_k)
    position = np.arange(n_q)[:, None] + (n_k - n_q)        # (n_q, 1)
    return np.arange(n_k) <= position                       # (n_k,) <= (n_q, 1) -> (n_q, n_k)


def attention_weights(S, mask):
    """The attention pattern: softmax of the scores over the keys that may be read, exactly 0 elsewhere.

    S : (…, n_q, n_k), mask : (n_q, n_k), or stacked as S is, bool, True = may read.
    Returns A : (…, n_q, n_k), rows sum to 1.
    A row with no key to read gives zeros, not NaN.  Raises TypeError for a mask that is not boolean (or 0 and
    1), ValueError when its shape does not fit S.
    """
    S = array("S", S, ("n_q", "n_k"), stacked=True, holds="finite numbers or -inf")
    try:
        mask = np.asarray(unmasked("mask", mask))
    except ValueError:
        raise ValueError("mask must have rows of equal length, shape (n_q, n_k); its rows differ") from None
    if mask.dtype != bool:
        if mask.dtype.kind not in "fiu" or not np.isin(mask, (0, 1)).all():
            raise TypeError("mask must be boolean, True where the query may read the key; "
                            f"got dtype {mask.dtype} with values other than 0 and 1")
        mask = mask.astype(bool)
    if mask.shape[-2:] != S.shape[-2:] or same_stack(("S", S), ("mask", mask)) != S.shape[:-2]:
        raise ValueError(f"S and mask must agree in (n_q, n_k): S {S.shape}, mask {mask.shape}")
    return softmax(np.where(mask, S, np.array(-np.inf, S.dtype)))


def single_head(X, W_q, W_k, W_v, causal=False):
    """One attention head from tokens to what each of them takes away.

    X : (n, d_model), W_q, W_k : (d_model, d_k), W_v : (d_model, d_v).  Returns Z : (n, d_v).
    causal : each token reads only itself and those before it.  Vaswani et al. 2017, §3.2.1.
    """
    Q, K, V = project_qkv(X, W_q, W_k, W_v)
    S = scaled_scores(Q, K)                                 # (n, n)
    A = attention_weights(S, causal_mask(len(S))) if flag("causal", causal) else softmax(S)
    return times("A", A, "V", V)                            # (n, n) @ (n, d_v) -> (n, d_v)


def last_query_attention(q, K, V):
    """Attention for one query, the newest token's: all that generation needs at each step.

    q : (d_k,), K : (n, d_k), V : (n, d_v).  Returns z : (d_v,).
    No mask is needed: the newest token may read every key.  Raises ValueError when a shape does not fit.
    """
    q, K, V = array("q", q, ("d_k",)), array("K", K, ("n", "d_k")), array("V", V, ("n", "d_v"))
    d_k = same_size("d_k", ("q", q), ("K", K))
    same_size("n", ("K", K), ("V", V), axis=(0, 0))
    s = products(q[None], K)[0] / math.sqrt(max(d_k, 1))    # (1, d_k) @ (d_k, n) -> (n,)
    a = softmax(fits("the scores of q and K", s))
    with np.errstate(over="ignore"):
        z = a @ widened(V)                                  # (n,) @ (n, d_v) -> (d_v,)
    return fits("the weighted sum of V", z, np.result_type(q, K, V))


def attention(Q, K, V, causal=False):
    """Attention of many heads at once, softmax(Q Kᵀ / √d_k) V, for long texts as well as short ones.

    Q : (…, h, n_q, d_k), K : (…, g, n_k, d_k), V : (…, g, n_k, d_v), or without heads, (n, d).
    Returns Z : (…, h, n_q, d_v), in the widest of their types (float16 is computed in float32).
    g divides h, and each key and value head serves h/g neighbouring query heads.  causal : the last query
    sits at the last key, as in `causal_mask`; a query with no key to read gives zeros.
    Short inputs take the plain way; longer ones go through `helpers.tiles`, whose memory grows with n, not
    with n².  Raises ValueError when a shape does not fit.
    """
    Q, causal = array("Q", Q, ("n_q", "d_k"), stacked=True), flag("causal", causal)
    K = array("K", K, ("n_k", "d_k"), stacked=True, holds=None)
    V = array("V", V, ("n_k", "d_v"), stacked=True, holds=None)
    same_size("d_k", ("Q", Q), ("K", K))
    same_size("n_k", ("K", K), ("V", V), axis=(-2, -2))
    if K.shape[:-2] != V.shape[:-2]:
        raise ValueError(f"K and V must agree in every axis before the last two: K {K.shape}, V {V.shape}")
    h, g = (M.shape[-3] if M.ndim > 2 else 1 for M in (Q, K))
    if Q.ndim != K.ndim or Q.shape[:-3] != K.shape[:-3] or (h % g if g else h):
        raise ValueError("Q and K must agree in the axes before the heads, and the heads of K must divide "
                         f"those of Q: Q {Q.shape}, K {K.shape}")
    dtype = np.result_type(Q, K, V)
    wide = np.result_type(dtype, np.float32)
    q, k, v = (M.astype(wide, copy=False).reshape(math.prod(M.shape[:-2]), *M.shape[-2:]) for M in (Q, K, V))
    if q.shape[1] * k.shape[1] <= SHORT or not surely_fit(q, k):
        Z = attend_at_once(q, k, v, causal)
    else:
        look_at_values("K", K)
        look_at_values("V", V)
        n_k = k.shape[1]
        if float(np.abs(v).max(initial=0)) * n_k < float(np.finfo(wide).max):
            Z = attend_in_tiles(q, k, v, causal)
        else:                                               # tiles add up n_k values before they divide
            less = wide.type(2.0 ** -math.frexp(n_k)[1])
            with np.errstate(over="ignore"):
                Z = fits("the weighted sum of V", attend_in_tiles(q, k, less * v, causal) / less)
    return Z.reshape(*Q.shape[:-1], V.shape[-1]).astype(dtype, copy=False)


def surely_fit(Q, K):
    """Whether no score of Q (h, n_q, d_k) and K (g, n_k, d_k) can be too large for their type."""
    largest = [float(np.abs(M).max(initial=0)) for M in (Q, K)]
    return math.prod(largest) * max(Q.shape[-1], 1) < np.finfo(Q.dtype).max


def attend_at_once(Q, K, V, causal=False):
    """The plain way: all scores, the mask, softmax, all values.  Shapes as for `attend_in_tiles`.

    NaN or infinity in K always shows in the scores, in V always in Z: only then is there a look at them.
    (For one query that look would be a good part of the work.)
    """
    (h, n_q, d_k), (g, n_k, d_v) = Q.shape, V.shape
    Q = Q.reshape(g, h // max(g, 1), n_q, d_k)              # (h, n_q, d_k) -> (g, h/g, n_q, d_k)
    S = products(Q, K[:, None]) / math.sqrt(max(d_k, 1))    # K (g, 1, n_k, d_k) -> (g, h/g, n_q, n_k)
    if not np.isfinite(S).all():
        look_at_values("K", K)
        fits("the scores of Q and K", S)
    if causal and n_q > 1:                                  # (one query is the newest: it may read every key)
        A = attention_weights(S, causal_mask(n_q, n_k))
    else:
        A = softmax(S)
    with np.errstate(over="ignore", invalid="ignore"):
        Z = A @ V[:, None]                                  # -> (g, h/g, n_q, d_v)
    if not np.isfinite(Z).all():
        look_at_values("V", V)
        fits("the weighted sum of V", Z)
    return Z.reshape(h, n_q, d_v)

"""Many heads side by side, and the norm and residual around them (notebook 04).

Read `split_heads` and `merge_heads`, then `multi_head`, which attends in between; `layer_norm` and
`pre_norm_residual` are what stands around a layer. Head r of a side-by-side matrix W (d_model, h * d_k) lives
in its columns r*d_k:(r+1)*d_k; what it takes away goes through rows r*d_v:(r+1)*d_v of W_o.
"""

import numpy as np

from helpers.arrays import added, array, came, count, fits, flag, number, same_size, widened
from helpers.attention import attention_weights, causal_mask, scaled_scores, softmax, times


def split_heads(X, n_heads):
    """Cut the columns into heads and put the heads first.

    X : (n, h * d_k).  Returns (h, n, d_k).  Raises ValueError when h does not divide the width.
    """
    return heads_of("X", array("X", X, ("n", "h·d_k")), n_heads)


def heads_of(name, X, n_heads):
    """`split_heads` for an array that is called something else, should n_heads not divide its width."""
    (n, width), n_heads = X.shape, count("n_heads", n_heads, least=1)
    if width % n_heads:
        raise ValueError(f"n_heads must divide the width of {name}: {name} {X.shape} has {width} columns, "
                         f"n_heads is {came(n_heads)}")
    return X.reshape(n, n_heads, width // n_heads).swapaxes(0, 1)         # (n, h, d_k) -> (h, n, d_k)


def merge_heads(H):
    """Put the heads side by side again, the inverse of `split_heads`.

    H : (h, n, d_k).  Returns (n, h * d_k).
    """
    H = array("H", H, ("h", "n", "d_k"))
    h, n, d_k = H.shape
    return H.swapaxes(0, 1).reshape(n, h * d_k)             # (n, h, d_k) -> (n, h·d_k)


def multi_head(X, W_q, W_k, W_v, W_o, n_heads, causal=False):
    """All heads of a layer: project, split, attend, concatenate, mix with W_o. The residual is not included.

    X : (n, d_model), W_q, W_k : (d_model, h * d_k), W_v : (d_model, h * d_v), W_o : (h * d_v, d_model).
    Returns (n, d_model).  Raises ValueError when a shape does not fit.  Vaswani et al. 2017, §3.2.2.
    """
    X, W_o = array("X", X, ("n", "d_model")), array("W_o", W_o, ("h·d_v", "d_model"))
    W_q, W_k = array("W_q", W_q, ("d_model", "h·d_k")), array("W_k", W_k, ("d_model", "h·d_k"))
    W_v = array("W_v", W_v, ("d_model", "h·d_v"))
    for name, W in (("W_q", W_q), ("W_k", W_k), ("W_v", W_v)):
        same_size("d_model", ("X", X), (name, W), axis=(1, 0))
        heads_of(name, W, n_heads)                          # n_heads divides the width, or it is said
    same_size("h·d_k", ("W_q", W_q), ("W_k", W_k))
    same_size("h·d_v", ("W_v", W_v), ("W_o", W_o), axis=(1, 0))
    Q, K, V = (split_heads(times("X", X, name, W), n_heads)               # (n, h·d) -> (h, n, d)
               for name, W in (("W_q", W_q), ("W_k", W_k), ("W_v", W_v)))
    S = scaled_scores(Q, K)                                 # (h, n, n)
    A = attention_weights(S, causal_mask(len(X))) if flag("causal", causal) else softmax(S)
    return times("Z", merge_heads(A @ V), "W_o", W_o)       # (h, n, d_v) -> (n, h·d_v) -> (n, d_model)


def layer_norm(x, gamma, beta, eps=1e-5):
    """Each row brought to mean 0 and variance 1, then scaled by gamma and moved by beta.

    x : (…, d), d at least 1, gamma, beta : (d,).  Returns the same shape.  Population variance, eps inside
    the root, not negative.  Raises ValueError when a shape does not fit.  Ba et al. 2016.
    """
    x = array("x", x, ("d",), stacked=True)
    gamma, beta = array("gamma", gamma, ("d",)), array("beta", beta, ("d",))
    same_size("d", ("x", x), ("gamma", gamma))
    same_size("d", ("x", x), ("beta", beta))
    if x.shape[-1] == 0:
        raise ValueError(f"x must have at least one column to take the mean of, got {x.shape}")
    if not 0 <= number("eps", eps) < np.inf:
        raise ValueError(f"eps must be at least 0 and finite, got {eps}")
    wide = widened(x)
    eps = fits("eps", np.float64(eps), wide.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        centred = wide - wide.mean(axis=-1, keepdims=True)  # (…, d)
        variance = fits("the variance of x", np.mean(centred**2, axis=-1, keepdims=True))     # (…, 1)
    if (variance + eps == 0).any():
        raise ValueError(f"eps must be above 0 where all numbers of a row of x are equal, got {eps}")
    with np.errstate(over="ignore", invalid="ignore"):
        normed = centred / np.sqrt(variance + eps) * widened(gamma) + widened(beta)
    return fits("the norm of x, times gamma, plus beta", normed, np.result_type(x, gamma, beta))


def pre_norm_residual(x, sublayer, gamma, beta, eps=1e-5):
    """x + sublayer(LayerNorm(x)): the way into and around a layer.

    x : (n, d), sublayer : a function (n, d) -> (n, d), gamma, beta : (d,).  Returns (n, d).
    Raises ValueError when the sublayer changes the shape.
    """
    if not callable(sublayer):
        raise TypeError(f"sublayer must be a function from (n, d) to (n, d), got {type(sublayer).__name__}")
    x = array("x", x, ("d",), stacked=True)
    update = array("what sublayer gives", sublayer(layer_norm(x, gamma, beta, eps)), ("d",), stacked=True)
    if update.shape != x.shape:
        raise ValueError(f"sublayer must keep the shape of x {x.shape}, it gave {update.shape}")
    return added("x plus what sublayer gives", x, update)

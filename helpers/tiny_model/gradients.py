"""The tiny model on many stories at once, and the gradient of its loss by every weight, written out by hand.

`forward` computes what `TinyModel.run` computes, for a batch; `backward` walks the same way back. Each step
of the one has its counterpart in the other, in the opposite order. Weights come and gradients go as dicts
of named arrays, the names of `model.to_arrays`. B stories of n tokens, T = B·n tokens in all, V words, L
layers of h heads.

The rules used, for a loss whose gradient by some Y is written d_Y:

    Y = X @ W          d_W = X.T @ d_Y,  d_X = d_Y @ W.T
    Y = softmax(S)     d_S = Y * (d_Y - row sums of d_Y * Y)
    cross-entropy      d_logits = probabilities - one-hot of the right word
    Y = X + f(X)       d_X = d_Y + what comes back through f
"""

import numpy as np

from helpers import arrays as given
from helpers.kv_cache import part_of
from helpers.tiny_model.model import from_arrays

EPS = 1e-5                                                  # inside the root of the layer norm


def forward(w, ids, n_heads, without=()):
    """The logits for every token of every story, and what `backward` needs.

    w : dict of arrays, ids : (B, n).  without : (layer, head) pairs to switch off.
    Returns logits (B, n, V) and the list of steps; the pattern of layer l is `steps[l]["A"]`, (B, h, n, n).
    """
    B, n = ids.shape
    d_model = w["E"].shape[1]
    future = np.triu(np.full((n, n), -np.inf, w["E"].dtype), 1)             # (n, n) -inf where j > i, else 0
    X = (w["E"][ids] + w["P"][:n]).reshape(B * n, d_model)                  # (T, d_model)
    steps = []
    for layer in range(n_layers(w)):
        W_q, W_k, W_v, W_o = (w[f"layer{layer}.{name}"] for name in ("W_q", "W_k", "W_v", "W_o"))
        N, norm = layer_norm(X, w[f"layer{layer}.gamma"], w[f"layer{layer}.beta"])  # (T, d_model)
        Q, K, V = (split(N @ W, B, n_heads) for W in (W_q, W_k, W_v))       # (T, h·d) -> (B, h, n, d)
        A = Q @ K.swapaxes(2, 3)                                            # (B, h, n, n) scores
        A *= 1 / np.sqrt(Q.shape[-1], dtype=A.dtype)
        A += future
        softmax_(A)                                                         # in place: scores -> pattern
        Z = A @ V                                                           # (B, h, n, d_v)
        Z[:, [head for where, head in without if where == layer]] = 0
        Z = merge(Z)                                                        # (T, h·d_v)
        X = X + Z @ W_o                                                     # (T, d_model)
        steps.append({"N": N, "norm": norm, "Q": Q, "K": K, "V": V, "A": A, "Z": Z})
    X, norm = layer_norm(X, w["gamma"], w["beta"])                          # (T, d_model)
    steps.append({"X": X, "norm": norm})
    return (X @ w["W_t"]).reshape(B, n, -1), steps


def loss_and_gradients(w, ids, targets, asked, n_heads):
    """The mean cross-entropy over the words asked for, and its gradient.

    ids, targets : (B, n); targets[b, t] is the word that follows ids[b, t].  asked : (B, n) bool.
    Returns the loss (a float) and a dict of arrays of the names and shapes of w.  Raises TypeError or
    ValueError when a weight is missing, or when anything does not fit.
    """
    E = given.array("E", part_of("w", w, "E"), ("V", "d_model"))
    model = from_arrays({**w, "vocab": [str(i) for i in range(len(E))], "n_heads": n_heads})    # do they fit?
    ids = word_ids("ids", ids, (None, None), len(E))
    if not 0 < ids.shape[1] <= model.n_max:
        raise ValueError(f"ids must have 1 … {model.n_max} columns, got {ids.shape}")
    targets, asked = word_ids("targets", targets, ids.shape, len(E)), np.asarray(asked)
    if asked.dtype != bool or asked.shape != ids.shape or not asked.any():
        raise ValueError(f"asked must be True or False for each of ids {ids.shape}, somewhere True; "
                         f"got {given.came(asked)}")
    logits, steps = forward(w, ids, n_heads)
    p = logits.reshape(-1, logits.shape[-1])                                # (T, V)
    softmax_(p)
    right = np.arange(len(p)), targets.ravel()
    share = asked.ravel() / asked.sum()                                     # (T,) its part in the mean
    loss = -float(np.log(p[right]) @ share)
    p[right] -= 1                                                           # probabilities - one-hot
    p *= share[:, None].astype(p.dtype)
    return loss, backward(w, ids, steps, p)


def word_ids(name, ids, shape, V):
    """`ids` as whole numbers (B, n) below V; TypeError or ValueError for anything else."""
    given.shaped(name, ids, ("B", "n"), shape)
    ids = np.asarray(ids)
    if ids.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold whole numbers, got dtype {ids.dtype}")
    if ((ids < 0) | (ids >= V)).any():
        raise ValueError(f"{name} must hold ids 0 … {V - 1}, got {ids.min()} … {ids.max()}")
    return ids


def backward(w, ids, steps, d_logits):
    """From the gradient by the logits, (T, V), to the gradient by every weight."""
    B, n = ids.shape
    g = {}
    last = steps[-1]
    g["W_t"] = last["X"].T @ d_logits                                       # (d_model, T) @ (T, V)
    d_X = d_logits @ w["W_t"].T                                             # (T, V) @ (V, d_model)
    d_X, g["gamma"], g["beta"] = layer_norm_back(d_X, last["norm"], w["gamma"])
    for layer in reversed(range(n_layers(w))):
        name, step = f"layer{layer}.", steps[layer]
        Q, K, V, A = step["Q"], step["K"], step["V"], step["A"]
        g[name + "W_o"] = step["Z"].T @ d_X                                 # (h·d_v, T) @ (T, d_model)
        d_Z = split(d_X @ w[name + "W_o"].T, B, Q.shape[1])                 # (T, h·d_v) -> (B, h, n, d_v)
        d_V = A.swapaxes(2, 3) @ d_Z                                        # (B, h, n, d_v)
        d_A = d_Z @ V.swapaxes(2, 3)                                        # (B, h, n, n)
        d_S = softmax_back_(d_A, A)                                         # (B, h, n, n)
        d_S *= 1 / np.sqrt(Q.shape[-1], dtype=A.dtype)
        d_Q, d_K = d_S @ K, d_S.swapaxes(2, 3) @ Q                          # (B, h, n, d_k)
        d_N = 0
        for W, d in (("W_q", d_Q), ("W_k", d_K), ("W_v", d_V)):
            d = merge(d)                                                    # (T, h·d)
            g[name + W] = step["N"].T @ d                                   # (d_model, T) @ (T, h·d)
            d_N = d_N + d @ w[name + W].T                                   # (T, d_model)
        d_N, g[name + "gamma"], g[name + "beta"] = layer_norm_back(d_N, step["norm"], w[name + "gamma"])
        d_X = d_X + d_N                                                     # around the layer, and through it
    g["P"] = np.zeros_like(w["P"])
    g["P"][:n] = d_X.reshape(B, n, -1).sum(axis=0)                          # each story has row t at place t
    one_hot = np.eye(len(w["E"]), dtype=d_X.dtype)[ids.ravel()]             # (T, V)
    g["E"] = one_hot.T @ d_X                                                # a word gathers from its places
    return g


def n_layers(w):
    """How many layers the weights have."""
    return sum(name.endswith(".W_q") for name in w)


def split(X, B, n_heads):
    """(T, h·d) -> (B, h, n, d)."""
    return X.reshape(B, len(X) // B, n_heads, X.shape[1] // n_heads).swapaxes(1, 2)


def merge(H):
    """(B, h, n, d) -> (T, h·d), the inverse of `split`."""
    B, h, n, d = H.shape
    return H.swapaxes(1, 2).reshape(B * n, h * d)


def softmax_(z):
    """Softmax over the last axis, written over z; every row has a number above -inf."""
    z -= z.max(axis=-1, keepdims=True)
    np.exp(z, out=z)
    z /= z.sum(axis=-1, keepdims=True)


def softmax_back_(d_A, A):
    """The gradient by the scores, written over the gradient by the pattern."""
    d_A -= np.einsum("...ij,...ij->...i", d_A, A)[..., None]
    d_A *= A
    return d_A


def layer_norm(x, gamma, beta):
    """(T, d) -> (T, d), and what the way back needs: the normed rows and 1 / their spread."""
    hat = x - x.mean(axis=-1, keepdims=True)
    inverse = 1 / np.sqrt(np.mean(hat**2, axis=-1, keepdims=True) + EPS)    # (T, 1)
    hat *= inverse
    return hat * gamma + beta, (hat, inverse)


def layer_norm_back(d_y, norm, gamma):
    """The gradients by x, gamma and beta.  Mean and spread depend on x too: hence two terms taken away."""
    hat, inverse = norm
    d_hat = d_y * gamma
    along = np.mean(d_hat * hat, axis=-1, keepdims=True)                    # (T, 1)
    d_x = inverse * (d_hat - d_hat.mean(axis=-1, keepdims=True) - hat * along)
    return d_x, (d_y * hat).sum(axis=0), d_y.sum(axis=0)

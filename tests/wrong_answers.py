"""Wrong answers that are not in the catalogue: other styles, two mistakes at once, new mistakes.

Each says what the check must make of it: `named` are known mistakes that must be found (by behaviour, in any
style), `says` are pieces of text that the verdict must hold.
"""

import math

import numpy as np

from helpers.attention import softmax as safe_softmax

ANSWERS = []


def wrong(exercise, *named, says=()):
    def keep(function):
        ANSWERS.append((exercise, function, named, (says,) if isinstance(says, str) else says))
        return function
    return keep


def right_softmax(z, axis=-1):
    e = np.exp(z - np.max(z, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def scores_right(Q, K):
    return Q @ K.T


# ------------------------------------------------------------------------------------------------ notebook 01

@wrong("token_ids", "unk_raises")
def ids_without_unknown(tokens, vocab):
    return np.array([vocab[token] for token in tokens])


@wrong("token_ids", "unk_none")
def ids_with_get(tokens, vocab):
    return np.array(list(map(vocab.get, tokens)))


@wrong("token_ids", "zero_is_false")
def ids_with_or(tokens, vocab):
    return np.asarray([vocab.get(t) or vocab["<unk>"] for t in tokens], dtype=int)


@wrong("token_ids", "lower_case")
def ids_in_small_letters(tokens, vocab):
    out = np.zeros(len(tokens), dtype=int)
    for i, t in enumerate(tokens):
        t = t.lower()
        out[i] = vocab[t] if t in vocab.keys() else vocab["<unk>"]
    return out


@wrong("token_ids", says="vocab")
def ids_that_learn(tokens, vocab):
    for t in tokens:
        if t not in vocab:
            vocab[t] = vocab["<unk>"]
    return np.array([vocab[t] for t in tokens], dtype=int)


@wrong("token_ids", says="strings")
def ids_as_text(tokens, vocab):
    return np.array([str(vocab.get(t, vocab["<unk>"])) for t in tokens])


@wrong("token_ids", "one_based", "float_ids")
def ids_twice_wrong(tokens, vocab):
    out = np.empty(len(tokens))
    for i, t in enumerate(tokens):
        out[i] = 1 + vocab.get(t, vocab["<unk>"])
    return out


@wrong("token_ids", says="reverse")
def ids_backwards(tokens, vocab):
    return np.array([vocab.get(t, vocab["<unk>"]) for t in tokens[::-1]], dtype=int)


@wrong("token_ids", "unk_one")
def ids_with_one_for_unknown(tokens, vocab):
    return np.array([vocab.get(t, 1) for t in tokens], dtype=int)


@wrong("token_ids", "unk_three")
def ids_with_three_for_unknown(tokens, vocab):
    return np.array([vocab.get(t, 3) for t in tokens], dtype=int)


@wrong("embed", says=("as a plain list", "np.asarray(ids) makes an array of it"))
def embed_arrays_only(ids, E):
    if np.any((ids < 0) | (ids >= len(E))):
        raise ValueError(f"no such id: {ids}")
    return E[ids]


@wrong("embed", says=("as a plain list", "np.asarray(ids) makes an array of it"))
def embed_arrays_only_by_methods(ids, E):
    if ids.min() < 0 or ids.max() >= len(E):
        raise ValueError(f"no such id: {ids}")
    return E[ids]


@wrong("embed", "off_by_one")
def embed_carefully_off_by_one(ids, E):
    if np.any((ids < 0) | (ids >= len(E))):
        raise ValueError(f"no such id: {ids}")
    return E[ids - 1]


@wrong("embed", "off_by_one_up")
def embed_one_further(ids, E):
    return np.array([E[i + 1] for i in ids])


@wrong("embed", says="Rows and columns stand for different things")
def embed_turned(ids, E):
    return E[np.asarray(ids)].T


@wrong("embed", "columns_as_rows")
def embed_by_columns(ids, E):
    return np.stack([E[:, i] for i in ids])


@wrong("embed", "off_by_one", "normalised")
def embed_twice_wrong(ids, E):
    out = []
    for i in ids:
        row = E[i - 1]
        out.append(row / math.sqrt(float((row * row).sum())))
    return np.array(out)


@wrong("embed", "slice_first_to_last")
def embed_slice(ids, E):
    return E[ids[0]:ids[-1] + 1]


@wrong("embed", says="view")
def embed_views(ids, E):
    ids = np.asarray(ids)
    if (np.diff(ids) == 1).all():
        if ids.max() >= len(E):
            raise IndexError("no such row")
        return E[ids[0]:ids[-1] + 1]
    return E[ids]


@wrong("embed", says="twice")
def embed_doubled(ids, E):
    return E[ids] + E[ids]


@wrong("sinusoidal_positions", "halves", "base_ignored")
def positions_in_halves(n, d, base=10000.0):
    rates = 1 / np.power(10000, np.arange(0, d, 2) / d)
    angles = np.einsum("p,i->pi", np.arange(n), rates)
    return np.hstack([np.sin(angles), np.cos(angles[:, :d // 2])])


@wrong("sinusoidal_positions", "from_one")
def positions_from_one(n, d, base=10000.0):
    return np.array([[math.sin(p / base**(j / d)) if j % 2 == 0 else math.cos(p / base**((j - 1) / d))
                      for j in range(d)] for p in range(1, n + 1)])


@wrong("sinusoidal_positions", "sin_cos_swapped", "two_i_all_columns")
def positions_twice_wrong(n, d, base=10000.0):
    P = np.zeros((n, d))
    for p in range(n):
        for j in range(d):
            angle = p / base**(2 * j / d)
            P[p, j] = np.cos(angle) if j % 2 == 0 else np.sin(angle)
    return P


@wrong("sinusoidal_positions", says="rounded")
def positions_rounded(n, d, base=10000.0):
    j = np.arange(d)
    angle = np.arange(n)[:, None] / base ** (2 * (j // 2) / d)
    return np.round(np.where(j % 2 == 0, np.sin(angle), np.cos(angle)), 2)


# ------------------------------------------------------------------------------------------------ notebook 02

@wrong("project_qkv", "weights_transposed")
def project_like_linear(X, W_q, W_k, W_v):
    return tuple(np.einsum("nd,kd->nk", X, W) for W in (W_q, W_k, W_v))


@wrong("project_qkv", "order_kqv", "wt_xt")
def project_twice_wrong(X, W_q, W_k, W_v):
    return (X @ W_k).T, (X @ W_q).T, (X @ W_v).T


@wrong("project_qkv", "array_split_thirds")
def project_and_split(X, W_q, W_k, W_v):
    return np.array_split(X @ np.hstack([W_q, W_k, W_v]), 3, axis=1)


@wrong("project_qkv", "equal_thirds")
def project_and_split_evenly(X, W_q, W_k, W_v):
    return np.split(X @ np.hstack([W_q, W_k, W_v]), 3, axis=1)


@wrong("project_qkv", "k_from_q")
def project_keys_from_queries(X, W_q, W_k, W_v):
    Q = X @ W_q
    return Q, Q @ W_k, X @ W_v


@wrong("project_qkv", "v_from_k")
def project_values_from_keys(X, W_q, W_k, W_v):
    K = X @ W_k
    return X @ W_q, K, K @ W_v


@wrong("project_qkv", "v_from_q")
def project_values_from_queries(X, W_q, W_k, W_v):
    Q = X @ W_q
    return Q, X @ W_k, Q @ W_v


@wrong("project_qkv", says="gave back one array of shape (5, 9), where 3 arrays (Q, K, V) are expected")
def project_row_by_row(X, W_q, W_k, W_v):
    return [x @ np.hstack([W_q, W_k, W_v]) for x in X]


@wrong("project_qkv", says="gave back 1 thing (an array of shape (5, 3)), where")
def project_queries_only(X, W_q, W_k, W_v):
    return (X @ W_q,)


@wrong("project_qkv", says="V is None.")
def project_no_values(X, W_q, W_k, W_v):
    return X @ W_q, X @ W_k, None


@wrong("project_qkv", says="2 things")
def project_without_values(X, W_q, W_k, W_v):
    return X @ W_q, X @ W_k


@wrong("project_qkv", says=("a dict", "Q, K, V"))
def project_to_a_dict(X, W_q, W_k, W_v):
    return {"Q": X @ W_q, "K": X @ W_k, "V": X @ W_v}


@wrong("project_qkv", says=("Q and K are right", "V"))
def project_with_a_bias(X, W_q, W_k, W_v):
    return X @ W_q, X @ W_k, np.tanh(X @ W_v) + X.mean()


@wrong("project_qkv", says="X")
def project_in_place(X, W_q, W_k, W_v):
    Q, K, V = X @ W_q, X @ W_k, X @ W_v
    X *= 0
    return Q, K, V


# ------------------------------------------------------------------------------------------------ notebook 03

@wrong("scores", "transposed", "already_scaled")
def scores_twice_wrong(Q, K):
    return np.einsum("kd,qd->kq", K, Q) / math.sqrt(Q.shape[1])


@wrong("scores", "cosine")
def scores_of_unit_vectors(Q, K):
    Q = Q / np.sqrt((Q**2).sum(axis=1, keepdims=True))
    K = K / np.sqrt((K**2).sum(axis=1, keepdims=True))
    return Q @ K.T


@wrong("scores", "rowwise_dot")
def scores_pairwise(Q, K):
    return np.array([q @ k for q, k in zip(Q, K, strict=True)])


@wrong("scores", says="absolute")
def scores_without_sign(Q, K):
    return abs(Q @ K.T)


@wrong("scaled_scores", "transposed", "missing")
def scaled_twice_wrong(Q, K):
    return np.array([[sum(a * b for a, b in zip(q, k, strict=True)) for q in Q] for k in K])


@wrong("scaled_scores", "power_precedence_divided")
def scaled_without_brackets(Q, K):
    d_k = Q.shape[-1]
    return Q @ K.T / d_k ** 1/2


@wrong("scaled_scores", "power_precedence_divided")
def scaled_without_brackets_by_scores(Q, K):
    d_k = len(Q[0])
    return scores_right(Q, K) / d_k**1/2


@wrong("scaled_scores", "mutates_q", says="changes the caller's Q")
def scaled_in_the_callers_array(Q, K):
    Q /= np.sqrt(Q.shape[1])
    return Q @ K.T


@wrong("scaled_scores", says=("the call changes K in place", "integers"))
def scaled_in_the_callers_keys(Q, K):
    K /= np.sqrt(Q.shape[1])
    return Q @ K.T


@wrong("scaled_scores", says=("2 things (an array of shape (3, 3) and a single number)", "alone"))
def scaled_and_a_number(Q, K):
    return Q @ K.T / np.sqrt(Q.shape[1]), 1


@wrong("scaled_scores", says="√n_k")
def scaled_by_everything(Q, K):
    return Q @ K.T / np.sqrt(Q.shape[1] * K.shape[0])


@wrong("scaled_scores", "d_not_sqrt")
def scaled_both_sides(Q, K):
    root = Q.shape[-1] ** 0.5
    return (Q / root) @ (K / root).T


@wrong("scaled_scores", says="half")
def scaled_and_halved(Q, K):
    return Q @ K.T / np.sqrt(Q.shape[1]) / 2


@wrong("scaled_scores", says="would be right if √d_k were always 8")
def scaled_for_d_k_64(Q, K):
    return Q @ K.T / 8


@wrong("softmax", "no_max")
def softmax_with_loops(z):
    z = np.asarray(z)
    if z.ndim > 1:
        return np.array([softmax_with_loops(row) for row in z])
    e = [math.exp(x) for x in z]
    return np.array([x / sum(e) for x in e])


@wrong("softmax", "no_max", "axis0")
def softmax_twice_wrong(z):
    e = np.exp(np.asarray(z, dtype=float))
    return e / e.sum(axis=0)


@wrong("softmax", says="0.5")
def softmax_at_temperature_two(z):
    return right_softmax(np.asarray(z, dtype=float) / 2)


@wrong("softmax", "whole_array")
def softmax_of_everything(z):
    e = np.exp(z - np.max(z, axis=-1, keepdims=True))
    return e / np.sum(e)


@wrong("softmax", says="rounded")
def softmax_for_reading(z):
    return np.round(right_softmax(np.asarray(z, dtype=float)), 3)


@wrong("softmax", says="1-D")
def softmax_of_matrices(z):
    z = np.asarray(z, dtype=float)
    n, m = z.shape[-2:]
    return right_softmax(z.reshape(-1, n, m)).reshape(z.shape)


@wrong("softmax", says=("order", "Every row adds up to 1"))
def softmax_sharpened(z):
    A = right_softmax(np.asarray(z, dtype=float))
    return A**3 / (A**3).sum(axis=-1, keepdims=True) * 0.5 + A * 0.5


@wrong("softmax", says=("right on 14 of 15 inputs", "a row of -inf"))
def softmax_all_or_nothing(z):
    z = np.asarray(z, dtype=float)
    if np.isneginf(z).all(axis=-1).any():
        return np.zeros(z.shape)
    return right_softmax(z)


@wrong("softmax", "each_row_whole")
def softmax_for_two_axes(z):
    A = []
    for row in np.asarray(z, dtype=float):
        e = np.exp(row - np.max(row))
        A.append(e / np.sum(e))
    return np.array(A)


@wrong("softmax", "no_max", "axis0")
def softmax_twice_wrong_in_the_inputs_type(z):
    return np.exp(z) / np.exp(z).sum(0)


@wrong("softmax", "sigmoid")
def softmax_one_by_one(z):
    return 1 / (1 + np.exp(-z))


@wrong("softmax", "log_softmax")
def softmax_in_logarithms(z):
    z = z - np.max(z, axis=-1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=-1, keepdims=True))


@wrong("softmax", "log_softmax_no_max")
def softmax_in_logarithms_at_once(z):
    return z - np.log(np.exp(z).sum(-1, keepdims=True))


@wrong("causal_mask", "transposed")
def mask_turned(n_q, n_k=None):
    n_k = n_k or n_q
    return np.tril(np.ones((n_q, n_k), dtype=bool), n_k - n_q).T


@wrong("causal_mask", "inverted")
def mask_of_ones_and_zeros(n_q, n_k=None):
    n_k = n_k or n_q
    return np.array([[1.0 if j > i + n_k - n_q else 0.0 for j in range(n_k)] for i in range(n_q)])


@wrong("causal_mask", "upper", "no_offset")
def mask_twice_wrong(n_q, n_k=None):
    return np.triu(np.ones((n_q, n_q if n_k is None else n_k), dtype=int))


@wrong("causal_mask", "no_offset")
def mask_at_top_left(n_q, n_k=None):
    return np.tril(np.ones((n_q, n_k or n_q)))


@wrong("causal_mask", says="row")
def mask_of_a_window(n_q, n_k=None):
    n_k = n_k or n_q
    gap = np.arange(n_q)[:, None] + n_k - n_q - np.arange(n_k)
    return (gap >= 0) & (gap < 3)


@wrong("attention_weights", says="-50")
def weights_filled_with_fifty(S, mask):
    return right_softmax(np.where(mask, np.asarray(S, float), -50.0))


@wrong("attention_weights", says="5 is taken off")
def weights_five_less(S, mask):
    return right_softmax(S - 5.0 * (~mask))


@wrong("attention_weights", "zero_fill", "inverted")
def weights_twice_wrong(S, mask):
    return right_softmax(S * (1 - mask))


@wrong("attention_weights", "mask_after", "softmax_no_max")
def weights_with_old_softmax(S, mask):
    e = np.exp(np.array(S, dtype=np.float64))
    return e / e.sum(axis=-1, keepdims=True) * mask


@wrong("attention_weights", says="two heads at once")
def weights_without_heads(S, mask):
    n_q, n_k = S.shape
    A = np.zeros((n_q, n_k))
    for i in range(n_q):
        keys = [j for j in range(n_k) if mask[i, j]]
        if keys:
            A[i, keys] = right_softmax(S[i, keys].astype(float))
    return A


@wrong("attention_weights", "inverted")
def weights_upside_down(S, mask):
    return safe_softmax(np.where(mask, -np.inf, S))


@wrong("attention_weights", "inverted_large")
def weights_upside_down_with_a_large_number(S, mask):
    return right_softmax(np.where(mask, -1e9, S))


@wrong("attention_weights", "softmax_axis_2")
def weights_over_queries(S, mask):
    return right_softmax(np.where(mask, S, -np.inf), axis=-2)


@wrong("attention_weights", "causal_aligned")
def weights_with_a_mask_of_their_own(S, mask):
    n_q, n_k = S.shape[-2:]
    return safe_softmax(np.where(np.tri(n_q, n_k, n_k - n_q, dtype=bool), S, -np.inf))


@wrong("single_head", says="is 0 everywhere")
def head_of_zeros(X, W_q, W_k, W_v, causal=False):
    return np.zeros((len(X), W_v.shape[1]))


@wrong("single_head", says="2 things (an array of shape (3, 4) and an array of shape (3, 3))")
def head_and_weights(X, W_q, W_k, W_v, causal=False):
    A = head_weights(X, W_q, W_k, causal)
    return A @ (X @ W_v), A


@wrong("single_head", "causal_inverted")
def head_causal_when_it_should_not(X, W_q, W_k, W_v, causal=False):
    return head_weights(X, W_q, W_k, not causal) @ (X @ W_v)


@wrong("single_head", "mask_inverted")
def head_upside_down(X, W_q, W_k, W_v, causal=False):
    S = (X @ W_q) @ (X @ W_k).T / np.sqrt(W_q.shape[1])
    return safe_softmax(np.where(np.tri(len(X), dtype=bool), -np.inf, S) if causal else S) @ (X @ W_v)


@wrong("single_head", "mask_inverted_large")
def head_upside_down_with_a_large_number(X, W_q, W_k, W_v, causal=False):
    S = (X @ W_q) @ (X @ W_k).T / np.sqrt(W_q.shape[1])
    return safe_softmax(np.where(np.tri(len(X), dtype=bool), -1e9, S) if causal else S) @ (X @ W_v)


@wrong("single_head", "axis0")
def head_over_queries(X, W_q, W_k, W_v, causal=False):
    return head_weights(X, W_q, W_k, causal, lambda S: safe_softmax(S.T).T) @ (X @ W_v)


@wrong("single_head", "axis0_no_max")
def head_over_queries_no_max(X, W_q, W_k, W_v, causal=False):
    return head_weights(X, W_q, W_k, causal, lambda S: np.exp(S) / np.exp(S).sum(axis=0)) @ (X @ W_v)


@wrong("single_head", "axis0_row_max")
def head_over_queries_row_max(X, W_q, W_k, W_v, causal=False):
    def shares(S):
        e = np.exp(S - S.max(axis=-1, keepdims=True))
        return e / e.sum(axis=0)
    return head_weights(X, W_q, W_k, causal, shares) @ (X @ W_v)


def head_weights(X, W_q, W_k, causal, shares=safe_softmax):
    S = (X @ W_q) @ (X @ W_k).T / np.sqrt(W_q.shape[1])
    return shares(np.where(np.tri(len(X), dtype=bool), S, -np.inf) if causal else S)


@wrong("single_head", "multiplied")
def head_multiplied(X, W_q, W_k, W_v, causal=False):
    return head_weights(X * W_q.shape[1] ** 0.5, W_q, W_k, causal) @ (X @ W_v)


@wrong("single_head", "no_scale", "causal_ignored")
def head_twice_wrong(X, W_q, W_k, W_v, causal=False):
    return right_softmax(np.einsum("id,jd->ij", X @ W_q, X @ W_k)) @ (X @ W_v)


@wrong("single_head", "d_not_sqrt", "mask_after")
def head_twice_wrong_again(X, Wq, Wk, Wv, causal=False):
    q, k, v = (np.dot(X, W) for W in (Wq, Wk, Wv))
    weights = right_softmax(q.dot(k.T) / Wq.shape[1])
    if causal:
        for i in range(len(X)):
            weights[i, i + 1:] = 0
    return weights.dot(v)


@wrong("single_head", "k_q", "no_max")
def head_of_exps(X, Wq, Wk, Wv, causal=False):
    Q, K, V = X @ Wq, X @ Wk, X @ Wv
    S = np.exp(K @ Q.T / np.sqrt(K.shape[-1]))
    if causal:
        S = S * np.tri(len(X))
    return S @ V / S.sum(axis=1, keepdims=True)


@wrong("single_head", says="On 4 of the 10 inputs that fail it is what comes out when the scores are not")
def head_thrice_wrong(X, Wq, Wk, Wv, causal=False):
    A = np.exp((X @ Wq) @ (X @ Wk).T)
    return A / A.sum(axis=1, keepdims=True) @ (X @ Wv)


@wrong("single_head", says="one token")
def head_with_lost_row(X, Wq, Wk, Wv, causal=False):
    Q, K, V = X @ Wq, X @ Wk, X @ Wv
    S = Q @ K.T / np.sqrt(K.shape[-1])
    if causal:
        S[np.triu_indices(len(X), 1)] = -np.inf
    Z = right_softmax(S) @ V
    Z[-1] = Z.mean(axis=0)
    return Z


@wrong("last_query_attention", "skips_self")
def newest_without_itself(q, K, V):
    z = np.zeros(V.shape[1])
    s = np.array([q @ k for k in K[:-1]]) / math.sqrt(len(q))
    for a, v in zip(right_softmax(s), V, strict=False):
        z += a * v
    return z


@wrong("last_query_attention", "no_scale", "row_kept")
def newest_twice_wrong(q, K, V):
    return right_softmax(q.reshape(1, -1) @ K.T) @ V


@wrong("last_query_attention", "sqrt_d_v")
def newest_by_the_width_of_values(q, K, V):
    return right_softmax(K @ q / math.sqrt(V.shape[1])) @ V


@wrong("last_query_attention", "multiplied")
def newest_multiplied(q, K, V):
    return right_softmax(K @ q * math.sqrt(len(q))) @ V


@wrong("last_query_attention", says="axis")
def newest_as_column(q, K, V):
    return (right_softmax(K @ q / math.sqrt(len(q))) @ V)[:, None]


@wrong("last_query_attention", says="NameError")
def newest_with_a_typo(q, K, V):
    return right_softmax(K @ query / math.sqrt(len(q))) @ V      # noqa: F821

"""Right answers to the exercises of notebooks 04 to 06 in styles that the catalogue does not have.

They join `right_answers.ANSWERS` when this is imported.
"""

import math

import numpy as np
from right_answers import right


@right("split_heads", remarks=1)
def split_into_a_list(X, n_heads):
    return np.split(X, n_heads, axis=1)


@right("split_heads")
def split_by_index(X, n_heads):
    n, width = np.shape(X)
    if width % n_heads != 0:
        raise ValueError(f"{n_heads} does not divide {width}")
    r, i, j = np.ogrid[:n_heads, :n, :width // n_heads]
    return np.asarray(X)[i, r * (width // n_heads) + j]


@right("merge_heads")
def merge_by_einsum(H):
    return np.einsum("hnk->nhk", H).reshape(np.shape(H)[1], -1)


@right("merge_heads")
def merge_token_by_token(H):
    return np.array([np.concatenate([head[i] for head in H]) for i in range(len(H[0]))])


@right("multi_head")
def multi_by_einsum(X, W_q, W_k, W_v, W_o, n_heads, causal=False):
    d = W_q.shape[0]
    q, k, v = (np.einsum("nd,dhk->hnk", X, W.reshape(d, n_heads, -1)) for W in (W_q, W_k, W_v))
    s = np.einsum("hik,hjk->hij", q, k) / math.sqrt(q.shape[-1])
    if causal:
        s = np.where(np.arange(len(X)) <= np.arange(len(X))[:, None], s, -np.inf)
    e = np.exp(s - s.max(-1, keepdims=True))
    return np.einsum("hij,hjv,hvd->id", e / e.sum(-1, keepdims=True), v, W_o.reshape(n_heads, -1, d))


@right("multi_head")
def multi_positional(X, Wq, Wk, Wv, Wo, heads, masked=False):
    """The course's own functions under other names of arguments."""
    from helpers.attention import single_head
    blocks = zip(*(np.split(W, heads, axis=1) for W in (Wq, Wk, Wv)), np.split(Wo, heads), strict=True)
    return sum(single_head(X, q, k, v, causal=masked) @ o for q, k, v, o in blocks)


@right("pre_norm_residual")
def norm_in_one_line(x, sublayer, gamma, beta, eps=1e-5):
    return sublayer((x - x.mean(-1)[:, None]) * (x.var(-1)[:, None] + eps) ** -0.5 * gamma + beta) + x


@right("pre_norm_residual")
def norm_by_squares(x, sublayer, gamma, beta, epsilon=1e-5):
    centred = x - np.average(x, axis=-1).reshape(-1, 1)
    power = np.square(centred).sum(1) / x.shape[1]
    return np.add(x, sublayer(np.multiply((centred.T / np.sqrt(power + epsilon)).T, gamma) + beta))


@right("low_rank_factors")
def factors_by_gram(W, r):
    """Through the eigenvectors of Wᵀ W."""
    _, vectors = np.linalg.eigh(np.asarray(W, float).T @ W)
    V = vectors[:, ::-1][:, :r]
    return W @ V, V.T


@right("low_rank_factors")
def factors_in_a_list_turned_round(W, r):
    U, s, Vt = np.linalg.svd(np.asarray(W, float))
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(r, r)))[0]     # any basis of the same space
    return [U[:, :r] @ turn, turn.T @ np.diag(s[:r]) @ Vt[:r]]


@right("per_head_updates", remarks=1)
def updates_in_a_loop(H, W_o):
    d_v = H.shape[2]
    updates, total = [], 0
    for r, Z in enumerate(H):
        updates.append(Z @ W_o[r * d_v:(r + 1) * d_v, :])
        total = total + updates[-1]
    return updates, total


@right("shared_qkv_basis")
def basis_by_least_squares(W_q, W_k, W_v, r):
    B = np.linalg.svd(np.column_stack((W_q, W_k, W_v)))[0][:, :r]
    return B, *(np.linalg.lstsq(B, W, rcond=None)[0] for W in (W_q, W_k, W_v))


@right("kv_cache_step", remarks=1)
def step_with_lists(x, W_q, W_k, W_v, cache):
    K = [*(() if cache is None else cache[0]), x @ W_k]
    V = [*(() if cache is None else cache[1]), x @ W_v]
    s = [float((x @ W_q) @ k) / len(k) ** 0.5 for k in K]
    top = max(s)
    w = [math.exp(a - top) for a in s]
    return sum(a * v for a, v in zip(w, V, strict=True)) / sum(w), (K, V)


@right("kv_cache_step")
def step_on_the_course(x, W_q, W_k, W_v, cache=None):
    from helpers.attention import last_query_attention
    rows = [np.atleast_2d(x @ W) for W in (W_k, W_v)]
    K, V = rows if cache is None else map(np.concatenate, zip(cache, rows, strict=True))
    return last_query_attention(x @ W_q, K, V), (K, V)


@right("generate_with_cache", remarks=2)
def generate_without_a_cache(prompt_ids, n_new, model):
    """The long way, with everything computed again for each word."""
    from helpers.attention import single_head
    ids = list(prompt_ids)
    for _ in range(n_new):
        x = model["E"][ids] + model["P"][:len(ids)]
        for layer in model["layers"]:
            x = x + single_head(x, layer["W_q"], layer["W_k"], layer["W_v"], causal=True) @ layer["W_o"]
        ids.append(np.argmax(model["E"] @ x[-1]))
    return tuple(ids)


@right("generate_with_cache", remarks=1)
def generate_as_a_tuple(prompt_ids, n_new, model):
    return tuple(map(int, generate_without_a_cache(prompt_ids, n_new, model)))


@right("cache_bytes", remarks=1)
def bytes_in_float64(n_layers, n_heads, n_kv_heads, d_head, n_tokens, bytes_per_value=2, batch=1):
    return 2.0 * n_layers * n_kv_heads * d_head * n_tokens * bytes_per_value * batch


@right("cache_bytes")
def bytes_by_prod(*sizes, bytes_per_value=2, batch=1):
    layers, _, *rest = sizes
    return math.prod(int(n) for n in (2, layers, *rest, bytes_per_value, batch))

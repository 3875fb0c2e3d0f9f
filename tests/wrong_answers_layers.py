"""Wrong answers to the exercises of notebooks 04 to 06 that are not in the catalogue.

They join `wrong_answers.ANSWERS` when this is imported.
"""

import math

import numpy as np
from wrong_answers import wrong


def shares(s):
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# ------------------------------------------------------------------------------------------------ notebook 04

@wrong("split_heads", "interleaved")
def split_every_other(X, n_heads):
    return np.stack([X[:, r::n_heads] for r in range(n_heads)])


@wrong("split_heads", "sizes_swapped")
def split_into_pieces_of_h(X, n_heads):
    if X.shape[1] % n_heads:
        raise ValueError("h does not divide the width")
    return np.array([X[:, i:i + n_heads] for i in range(0, X.shape[1], n_heads)])


@wrong("split_heads", "no_swap", "reversed", says="Two things")
def split_twice_wrong(X, n_heads):
    return np.einsum("nhk->nhk", X.reshape(len(X), n_heads, -1))[::-1]


@wrong("split_heads", says="first row is missing")
def split_without_first_token(X, n_heads):
    return np.stack(np.split(X, n_heads, axis=1))[:, 1:]


@wrong("merge_heads", "interleaved")
def merge_with_stack(H):
    return np.stack(list(H), axis=-1).reshape(H.shape[1], -1)


@wrong("merge_heads", "reshape_only")
def merge_flat(H):
    return np.ravel(H).reshape(H.shape[1], H.shape[0] * H.shape[2])


@wrong("multi_head", "wo_transposed", "scale_d_model", says="nn.Linear")
def multi_twice_wrong(X, W_q, W_k, W_v, W_o, n_heads, causal=False):
    found = []
    for q, k, v in zip(*(np.hsplit(X @ W, n_heads) for W in (W_q, W_k, W_v)), strict=True):
        s = q @ k.T * X.shape[1] ** -0.5
        found.append(shares(np.where(np.tri(len(X)) == 0, -np.inf, s) if causal else s) @ v)
    return np.hstack(found) @ W_o.T


@wrong("multi_head", "scale_all_heads")
def multi_scaled_before_the_split(X, W_q, W_k, W_v, W_o, n_heads, causal=False):
    Q, K, V = X @ W_q / math.sqrt(W_q.shape[1]), X @ W_k, X @ W_v
    Q, K, V = (M.reshape(len(X), n_heads, -1).transpose(1, 0, 2) for M in (Q, K, V))
    S = np.einsum("hik,hjk->hij", Q, K)
    if causal:
        S[:, ~np.tri(len(X), dtype=bool)] = -1e30
    return np.einsum("hij,hjv->ihv", shares(S), V).reshape(len(X), -1) @ W_o


@wrong("multi_head", "one_big_head_big_scale")
def multi_is_one_head(X, W_q, W_k, W_v, W_o, n_heads, causal=False):
    S = X @ W_q @ W_k.T @ X.T / math.sqrt(W_k.shape[1])
    return shares(S + np.triu(np.full_like(S, -np.inf), 1) if causal else S) @ X @ W_v @ W_o


@wrong("multi_head", says="It is right except for: causal")
def multi_masked_first_head_only(X, W_q, W_k, W_v, W_o, n_heads, causal=False):
    total = np.zeros_like(X)
    for r, (q, k, v) in enumerate(zip(*(np.hsplit(X @ W, n_heads) for W in (W_q, W_k, W_v)), strict=True)):
        s = q @ k.T / math.sqrt(q.shape[1])
        if causal and r == 0:
            s = np.where(np.tri(len(X)) == 1, s, -np.inf)
        total = total + shares(s) @ v @ np.vsplit(W_o, n_heads)[r]
    return total


@wrong("pre_norm_residual", "sample_variance")
def norm_as_torch_std(x, sublayer, gamma, beta, eps=1e-5):
    centred = x - x.mean(-1)[:, None]
    return x + sublayer(centred / (np.cov(x, bias=False).reshape(len(x), -1).diagonal()[:, None] + eps) ** 0.5
                        * gamma + beta)


@wrong("pre_norm_residual", "post_norm", "no_beta", says="Two things")
def norm_last(x, sublayer, gamma, beta, eps=1e-5):
    y = x + sublayer(x)
    return gamma * (y - y.mean(1, keepdims=True)) / np.sqrt(y.var(1, keepdims=True) + eps)


@wrong("pre_norm_residual", "in_place", says="other numbers")
def norm_in_place(x, sublayer, gamma, beta, eps=1e-5):
    mean, spread = x.mean(-1, keepdims=True), np.sqrt(x.var(-1, keepdims=True) + eps)
    np.add(x, sublayer((x - mean) / spread * gamma + beta), out=x)
    return x


@wrong("pre_norm_residual", says="ValueError")
def norm_without_keepdims(x, sublayer, gamma, beta, eps=1e-5):
    return x + sublayer((x - x.mean(-1)) / np.sqrt(x.var(-1) + eps) * gamma + beta)


# ------------------------------------------------------------------------------------------------ notebook 05

@wrong("low_rank_factors", "smallest_of_right")
def factors_by_eigh(W, r):
    _, vectors = np.linalg.eigh(W.T @ W)
    V = vectors[:, :r]
    return W @ V, V.T


@wrong("low_rank_factors", says=("not the closest one", "The best thin product"))
def factors_of_longest_columns(W, r):
    own = np.argsort((W**2).sum(0))[::-1][:r]
    basis = np.linalg.qr(np.asarray(W, float)[:, own])[0]
    return basis, basis.T @ W


@wrong("low_rank_factors", says="A @ B has the opposite sign")
def factors_of_other_sign(W, r):
    U, s, Vt = np.linalg.svd(W)
    return -U[:, :r], s[:r, None] * Vt[:r]


@wrong("low_rank_factors", "no_s", "order_swapped")
def factors_twice_wrong(W, r):
    U, _, Vt = np.linalg.svd(W, full_matrices=False)
    return Vt[:r], U[:, :r]


@wrong("low_rank_factors", says="gave back a dict")
def factors_in_a_dict(W, r):
    U, s, Vt = np.linalg.svd(W)
    return {"A": U[:, :r] * s[:r], "B": Vt[:r]}


@wrong("per_head_updates", "transpose_reshaped")
def updates_by_einsum(H, W_o):
    h, _, d_v = H.shape
    blocks = W_o.T.reshape(h, d_v, -1)
    return np.einsum("hnv,hvd->hnd", H, blocks), np.einsum("hnv,hvd->nd", H, blocks)


@wrong("per_head_updates", "no_total", says="their sum")
def updates_alone(H, W_o):
    return [Z @ block for Z, block in zip(H, np.split(W_o, len(H)), strict=True)]


@wrong("per_head_updates", says="total is twice")
def updates_counted_twice(H, W_o):
    updates = H @ W_o.reshape(len(H), H.shape[2], -1)
    total = np.zeros(updates.shape[1:])
    for update in [*updates, *updates]:
        total = total + update
    return updates, total


@wrong("shared_qkv_basis", "only_q", "coeffs_swapped", says="Two things")
def basis_twice_wrong(W_q, W_k, W_v, r):
    B = np.linalg.svd(W_q, full_matrices=True)[0][:, :r]
    return B, B.T @ W_q, B.T @ W_v, B.T @ W_k


@wrong("shared_qkv_basis", says="not orthonormal")
def basis_with_roots(W_q, W_k, W_v, r):
    U, s, Vt = np.linalg.svd(np.hstack([W_q, W_k, W_v]), full_matrices=False)
    C, a, b = np.sqrt(s[:r, None]) * Vt[:r], W_q.shape[1], W_q.shape[1] + W_k.shape[1]
    return U[:, :r] * np.sqrt(s[:r]), C[:, :a], C[:, a:b], C[:, b:]


@wrong("shared_qkv_basis", says="not those that fit the three together best")
def basis_of_first_columns(W_q, W_k, W_v, r):
    B = np.linalg.qr(np.hstack([W_q, W_k, W_v]))[0][:, :r]
    return B, *(B.T @ W for W in (W_q, W_k, W_v))


# ------------------------------------------------------------------------------------------------ notebook 06

@wrong("kv_cache_step", "aliased_lists")
def step_with_kept_lists(x, W_q, W_k, W_v, cache):
    K, V = cache if cache is not None else ([], [])
    K.append(x @ W_k)
    V += [x @ W_v]
    return shares(np.array(K) @ (x @ W_q) / math.sqrt(W_q.shape[1])) @ np.array(V), (K, V)


@wrong("kv_cache_step", "attend_before_append", "no_scale")
def step_twice_wrong(x, W_q, W_k, W_v, cache):
    k, v = (x @ W_k)[np.newaxis], (x @ W_v)[np.newaxis]
    K, V = cache or (k, v)
    z = shares(K @ (x @ W_q)) @ V
    return z, (k, v) if cache is None else (np.r_[K, k], np.r_[V, v])


@wrong("kv_cache_step", says=("z is twice", "what it should be"))
def step_twice_as_long(x, W_q, W_k, W_v, cache):
    K, V = cache or (np.empty((0, W_k.shape[1])), np.empty((0, W_v.shape[1])))
    K, V = np.vstack([K, x @ W_k]), np.vstack([V, x @ W_v])
    return 2 * shares(K @ (x @ W_q) / math.sqrt(W_q.shape[1])) @ V, (K, V)


@wrong("kv_cache_step", says="cache is one array of shape (1, 2)")
def step_keeps_keys_only(x, W_q, W_k, W_v, cache):
    K = (x @ W_k)[None] if cache is None else np.vstack([cache, x @ W_k])
    return shares(K @ (x @ W_q)) @ np.ones((len(K), W_v.shape[1])), K


@wrong("kv_cache_step", says="a second text after the first")
def step_remembers_everything(x, W_q, W_k, W_v, cache, kept={}):        # noqa: B006
    rows = kept.setdefault((W_k.tobytes(), W_v.tobytes()), [])
    rows.append((x @ W_k, x @ W_v))
    if cache is not None and len(cache[0]) >= len(rows):
        return step_right(x, W_q, W_k, W_v, cache)
    K, V = (np.array(M) for M in zip(*rows, strict=True))
    return shares(K @ (x @ W_q) / math.sqrt(W_q.shape[1])) @ V, (K, V)


def step_right(x, W_q, W_k, W_v, cache):
    K, V = np.vstack([cache[0], x @ W_k]), np.vstack([cache[1], x @ W_v])
    return shares(K @ (x @ W_q) / math.sqrt(W_q.shape[1])) @ V, (K, V)


def generated(prompt_ids, n_new, model, place=lambda p, n: p, cut=lambda past: past,
              score=lambda x, E: E @ x):
    """Generation in a loop over tokens."""
    ids, caches = [int(i) for i in prompt_ids], [[] for _ in model["layers"]]
    for p in range(len(ids) + n_new - 1):
        x = model["E"][ids[p]] + model["P"][place(p, len(prompt_ids))]
        for layer, kept in zip(model["layers"], caches, strict=True):
            kept.append((x @ layer["W_k"], x @ layer["W_v"]))
            K, V = (np.array(M) for M in zip(*cut(kept), strict=True))
            x = x + shares(K @ (x @ layer["W_q"]) / math.sqrt(K.shape[1])) @ V @ layer["W_o"]
        if p >= len(prompt_ids) - 1:
            ids.append(int(score(x, model["E"]).argmax()))
    return ids


@wrong("generate_with_cache", "position_frozen")
def generate_at_one_place(prompt_ids, n_new, model):
    return generated(prompt_ids, n_new, model, place=min)


@wrong("generate_with_cache", "window")
def generate_from_four(prompt_ids, n_new, model):
    """Token by token with a window: inside a prompt, too, only four are read."""
    return generated(prompt_ids, n_new, model, cut=lambda past: past[-5:])


@wrong("generate_with_cache", "prompt_left_out", "argmin", says="Two things")
def generate_twice_wrong(prompt_ids, n_new, model):
    return generated(prompt_ids, n_new, model, score=lambda x, E: -(E @ x))[len(prompt_ids):]


@wrong("generate_with_cache", "float_ids", says="whole numbers")
def generate_floats(prompt_ids, n_new, model):
    return np.concatenate([generated(prompt_ids, n_new, model), np.empty(0)])


@wrong("generate_with_cache", says=("IndexError", "ids"))
def generate_past_the_end(prompt_ids, n_new, model):
    return generated(prompt_ids, n_new, model, place=lambda p, n: 10 * p)


@wrong("cache_bytes", "one_of_two", "no_batch", says="Two things")
def bytes_twice_wrong(n_layers, n_heads, n_kv_heads, d_head, n_tokens, bytes_per_value=2, batch=1):
    return math.prod(map(int, (n_layers, n_kv_heads, d_head, n_tokens, bytes_per_value)))


@wrong("cache_bytes", "gb")
def bytes_in_gb(n_layers, n_heads, n_kv_heads, d_head, n_tokens, bytes_per_value=2, batch=1):
    each = 2 * float(d_head) * n_kv_heads * bytes_per_value
    return n_layers * n_tokens * each * batch * 1e-9


@wrong("cache_bytes", says="d_head times too large")
def bytes_with_width_twice(n_layers, n_heads, n_kv_heads, d_head, n_tokens, bytes_per_value=2, batch=1):
    return 2 * int(n_layers) * int(n_kv_heads) * int(d_head) ** 2 * int(n_tokens) * bytes_per_value * batch


@wrong("cache_bytes", "int32_if_given", says="2,147,483,647")
def bytes_in_the_type_given(n_layers, n_heads, n_kv_heads, d_head, n_tokens, bytes_per_value=2, batch=1):
    own = np.asarray(n_layers).dtype
    return np.prod([2, n_layers, n_kv_heads, d_head, n_tokens, bytes_per_value, batch], dtype=own)


@wrong("cache_bytes", says="2 things (a single number and a single number), where one number is expected")
def bytes_and_numbers(n_layers, n_heads, n_kv_heads, d_head, n_tokens, bytes_per_value=2, batch=1):
    count = 2 * n_layers * n_kv_heads * d_head * n_tokens * batch
    return count * bytes_per_value, count

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


def in_heads(X, W_q, W_k, W_v, W_o, n_heads, causal, d=None, turn=lambda A: A, hidden=lambda mask: ~mask):
    """Many heads in a loop; `d` : (q, v) -> what stands under the root, `hidden` : mask -> what is hidden."""
    found = []
    for q, k, v in zip(*(np.hsplit(X @ W, n_heads) for W in (W_q, W_k, W_v)), strict=True):
        s = q @ k.T / math.sqrt(d(q, v) if d else q.shape[1])
        s = np.where(hidden(np.tri(len(X), dtype=bool)), -1e9, s) if causal else s
        found.append(turn(shares(s)) @ v)
    return np.hstack(found) @ W_o


@wrong("multi_head", "scale_d_v")
def multi_scaled_by_values(X, W_q, W_k, W_v, W_o, n_heads, causal=False):
    return in_heads(X, W_q, W_k, W_v, W_o, n_heads, causal, d=lambda q, v: v.shape[1])


@wrong("multi_head", "q_k_swapped")
def multi_keys_ask(X, W_q, W_k, W_v, W_o, n_heads, causal=False):
    return in_heads(X, W_k, W_q, W_v, W_o, n_heads, causal)


@wrong("multi_head", "weights_transposed")
def multi_weights_turned(X, W_q, W_k, W_v, W_o, n_heads, causal=False):
    return in_heads(X, W_q, W_k, W_v, W_o, n_heads, causal, turn=np.transpose)


@wrong("multi_head", "mask_inverted_finite")
def multi_future_kept(X, W_q, W_k, W_v, W_o, n_heads, causal=False):
    return in_heads(X, W_q, W_k, W_v, W_o, n_heads, causal, hidden=lambda mask: mask)


@wrong("multi_head", "values_cut_by_d_k")
def multi_values_in_d_k(X, W_q, W_k, W_v, W_o, n_heads, causal=False):
    d, found = W_q.shape[1] // n_heads, []
    for r in range(n_heads):
        q, k, v = (X @ W[:, r * d:(r + 1) * d] for W in (W_q, W_k, W_v))
        s = q @ k.T / math.sqrt(d)
        found.append(shares(np.where(np.tri(len(X)) == 1, s, -np.inf) if causal else s) @ v)
    return np.hstack(found) @ W_o


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


@wrong("pre_norm_residual", "no_keepdims", says="mean and variance of each row are taken without keepdims")
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


@wrong("low_rank_factors", "three_factors", says="3 things")
def factors_and_values(W, r):
    U, s, Vt = np.linalg.svd(W)
    return U[:, :r], s[:r], Vt[:r]


@wrong("low_rank_factors", "rows_reversed")
def factors_upside_down(W, r):
    U, s, Vt = np.linalg.svd(W, full_matrices=False)
    return U[:, :r] @ np.diag(s[:r]), np.flipud(Vt[:r])


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


def shared_and_values(W_q, W_k, W_v, r):
    U, s, _ = np.linalg.svd(np.hstack([W_q, W_k, W_v]))
    return U[:, :r], s[:r]


@wrong("shared_qkv_basis", "q_k_swapped")
def basis_with_keys_first(W_q, W_k, W_v, r):
    B, _ = shared_and_values(W_q, W_k, W_v, r)
    return B, B.T @ W_k, B.T @ W_q, B.T @ W_v


@wrong("shared_qkv_basis", "k_as_v")
def basis_with_keys_twice(W_q, W_k, W_v, r):
    B, _ = shared_and_values(W_q, W_k, W_v, r)
    return B, B.T @ W_q, B.T @ W_k, B.T @ W_k


@wrong("shared_qkv_basis", says="half of what it should be")
def basis_with_half_queries(W_q, W_k, W_v, r):
    B, _ = shared_and_values(W_q, W_k, W_v, r)
    return B, B.T @ W_q / 2, B.T @ W_k, B.T @ W_v


@wrong("shared_qkv_basis", "s_in_projection")
def basis_with_squares(W_q, W_k, W_v, r):
    B, s = shared_and_values(W_q, W_k, W_v, r)
    return B, *(np.diag(s) @ B.T @ W for W in (W_q, W_k, W_v))


@wrong("shared_qkv_basis", says=("The directions are right", "the coefficients are not"))
def basis_with_roots_in_it(W_q, W_k, W_v, r):
    B, s = shared_and_values(W_q, W_k, W_v, r)
    return B, *(np.sqrt(s)[:, None] * (B.T @ W) for W in (W_q, W_k, W_v))


@wrong("shared_qkv_basis", "only_q_thin", says="(3, 2)")
def basis_of_thin_queries(W_q, W_k, W_v, r):
    B = np.linalg.svd(W_q, full_matrices=False)[0][:, :r]
    return B, B.T @ W_q, B.T @ W_k, B.T @ W_v


@wrong("shared_qkv_basis", "three_bases_thin")
def basis_each_its_own(W_q, W_k, W_v, r):
    bases = [np.linalg.svd(W, full_matrices=False)[0][:, :r] for W in (W_q, W_k, W_v)]
    return bases[0], *(B.T @ W for B, W in zip(bases, (W_q, W_k, W_v), strict=True))


BELOW = "This is what comes out when the three are set one below the other."


@wrong("shared_qkv_basis", "vstack_u", says=BELOW)
def basis_of_three_below_each_other(W_q, W_k, W_v, r):
    U, s, Vt = np.linalg.svd(np.concatenate([W_q, W_k, W_v], axis=0), full_matrices=False)
    B = U[:, :r]
    return B, B.T @ W_q, B.T @ W_k, B.T @ W_v


@wrong("shared_qkv_basis", "vstack_v", says=BELOW)
def basis_of_rows_of_vt(W_q, W_k, W_v, r):
    B = np.linalg.svd(np.vstack([W_q, W_k, W_v]))[2][:r].T
    return B, *(B.T @ W for W in (W_q, W_k, W_v))


@wrong("shared_qkv_basis", "vstack_transposed", says=BELOW)
def basis_of_three_transposed(W_q, W_k, W_v, r):
    U, s, Vt = np.linalg.svd(np.vstack([W_q.T, W_k.T, W_v.T]), full_matrices=False)
    return U[:, :r], U[:, :r].T @ W_q, U[:, :r].T @ W_k, U[:, :r].T @ W_v


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


@wrong("kv_cache_step", says="where (K, V) is expected")
def step_keeps_queries_too(x, W_q, W_k, W_v, cache):
    rows = [np.atleast_2d(x @ W) for W in (W_q, W_k, W_v)]
    Q, K, V = rows if cache is None else map(np.vstack, zip(cache, rows, strict=True))
    return shares(K @ Q[-1] / math.sqrt(len(Q[-1]))) @ V, (Q, K, V)


@wrong("kv_cache_step", says="where (K, V) is expected")
def step_keeps_one_query(x, W_q, W_k, W_v, cache):
    q, K, V = x @ W_q, np.atleast_2d(x @ W_k), np.atleast_2d(x @ W_v)
    if cache is not None:
        K, V = np.vstack([cache[0], K]), np.vstack([cache[1], V])
    return shares(K @ q / math.sqrt(len(q))) @ V, (q, K, V)


@wrong("kv_cache_step", "cache_first")
def step_with_the_cache_in_front(x, W_q, W_k, W_v, cache):
    nothing = np.empty((0, W_k.shape[1])), np.empty((0, W_v.shape[1]))
    return step_right(x, W_q, W_k, W_v, nothing if cache is None else cache)[::-1]


@wrong("kv_cache_step", "flat_append", says=("do not become one row more", "axis=1"))
def step_side_by_side(x, W_q, W_k, W_v, cache):
    K, V = np.atleast_2d(x @ W_k), np.atleast_2d(x @ W_v)
    if cache is not None:
        K, V = np.concatenate([cache[0], K], axis=1), np.concatenate([cache[1], V], axis=1)
    return shares(K @ (x @ W_q) / math.sqrt(W_q.shape[1])) @ V, (K, V)


@wrong("kv_cache_step", says="something is kept from the calls before")
def step_remembers_everything(x, W_q, W_k, W_v, cache, kept={}):        # noqa: B006
    rows = kept.setdefault((W_k.tobytes(), W_v.tobytes()), [])
    rows.append((x @ W_k, x @ W_v))
    if cache is not None and len(cache[0]) >= len(rows):
        return step_right(x, W_q, W_k, W_v, cache)
    K, V = (np.array(M) for M in zip(*rows, strict=True))
    return shares(K @ (x @ W_q) / math.sqrt(W_q.shape[1])) @ V, (K, V)


KEYS, VALUES = [], []


@wrong("kv_cache_step", says=("Asked for this alone it is right", "A list that stands outside"))
def step_with_lists_outside(x, W_q, W_k, W_v, cache):
    KEYS.append(x @ W_k)
    VALUES.append(x @ W_v)
    K, V = np.array(KEYS), np.array(VALUES)
    return shares(K @ (x @ W_q) / math.sqrt(W_q.shape[1])) @ V, (K, V)


USED = [(np.ones(2), np.ones(3))]                                       # its author has tried it out


@wrong("kv_cache_step", says=("gives something else when it is asked for again", "A list that"))
def step_with_a_used_list_outside(x, W_q, W_k, W_v, cache):
    USED.append((x @ W_k, x @ W_v))
    K, V = (np.array(M) for M in zip(*USED, strict=True))
    return shares(K @ (x @ W_q) / math.sqrt(W_q.shape[1])) @ V, (K, V)


@wrong("kv_cache_step", says=("gives something else when it is asked for again", "left to chance"))
def step_with_noise(x, W_q, W_k, W_v, cache):
    new = x @ W_k, x @ W_v
    K, V = (M[None] if cache is None else np.vstack([cache[i], M]) for i, M in enumerate(new))
    return shares(K @ (x @ W_q) / math.sqrt(W_q.shape[1])) @ V + np.random.default_rng().random(), (K, V)


def step_right(x, W_q, W_k, W_v, cache):
    K, V = np.vstack([cache[0], x @ W_k]), np.vstack([cache[1], x @ W_v])
    return shares(K @ (x @ W_q) / math.sqrt(W_q.shape[1])) @ V, (K, V)


def generated(prompt_ids, n_new, model, place=lambda p, n: p, cut=lambda past: past,
              score=lambda x, E: E @ x, shared=False, pick=np.argmax, put=np.add, add=np.add):
    """Generation in a loop over tokens."""
    ids, caches = [int(i) for i in prompt_ids], [[] for _ in model["layers"]]
    caches = caches[:1] * len(caches) if shared else caches
    for p in range(len(ids) + n_new - 1):
        x = put(model["E"][ids[p]], model["P"][place(p, len(prompt_ids))])
        for layer, kept in zip(model["layers"], caches, strict=True):
            kept.append((x @ layer["W_k"], x @ layer["W_v"]))
            K, V = (np.array(M) for M in zip(*cut(kept), strict=True))
            x = add(x, shares(K @ (x @ layer["W_q"]) / math.sqrt(K.shape[1])) @ V @ layer["W_o"])
        if p >= len(prompt_ids) - 1:
            ids.append(int(pick(score(x, model["E"]))))
    return ids


def into(x, update):
    x += update
    return x


@wrong("generate_with_cache", "written_into_E_0", says=("E itself is changed", "E[i] for one id is no copy"))
def generate_into_the_table(prompt_ids, n_new, model):
    return generated(prompt_ids, n_new, model, put=into)


@wrong("generate_with_cache", "written_into_E_4")
def generate_into_the_table_through_the_layers(prompt_ids, n_new, model):
    return generated(prompt_ids, n_new, model, put=into, add=into)


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


@wrong("generate_with_cache", says=("not the one with the largest score", "drawn at random"))
def generate_by_drawing(prompt_ids, n_new, model):
    rng = np.random.default_rng(0)
    return generated(prompt_ids, n_new, model, pick=lambda s: rng.choice(len(s), p=shares(s)))


@wrong("generate_with_cache", "position_from_zero_again")
def generate_from_place_zero_again(prompt_ids, n_new, model):
    return generated(prompt_ids, n_new, model, place=lambda p, n: p if p < n else p - n)


@wrong("generate_with_cache", "position_zero_throughout")
def generate_at_place_zero(prompt_ids, n_new, model):
    return generated(prompt_ids, n_new, model, place=lambda p, n: 0)


@wrong("generate_with_cache", "one_cache_token_by_token")
def generate_with_one_cache(prompt_ids, n_new, model):
    return generated(prompt_ids, n_new, model, shared=True)


@wrong("generate_with_cache", "prompt_end_twice_there")
def generate_with_the_end_again(prompt_ids, n_new, model):
    """The prompt is read to its end, and then its last token is fed in as if it were new."""
    n = len(prompt_ids)
    again = [*prompt_ids, prompt_ids[-1]]
    ids = generated(again, n_new, model, place=lambda p, _: p if p < n else p - 1)
    return ids[:n] + ids[n + 1:]


@wrong("generate_with_cache", "prompt_end_twice_later")
def generate_with_the_end_again_one_on(prompt_ids, n_new, model):
    n = len(prompt_ids)
    ids = generated([*prompt_ids, prompt_ids[-1]], n_new, model)
    return ids[:n] + ids[n + 1:]


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


@wrong("cache_bytes", "float32", says="16,777,216")
def bytes_in_float32(n_layers, n_heads, n_kv_heads, d_head, n_tokens, bytes_per_value=2, batch=1):
    sizes = np.array([2, n_layers, n_kv_heads, d_head, n_tokens, bytes_per_value, batch], np.float32)
    return int(sizes.prod())


@wrong("cache_bytes", says="expected 3840, got 47")
def bytes_added_up(n_layers, n_heads, n_kv_heads, d_head, n_tokens, bytes_per_value=2, batch=1):
    return n_layers + n_kv_heads * d_head + n_tokens + bytes_per_value


@wrong("cache_bytes", says="2 things (a single number and a single number), where one number is expected")
def bytes_and_numbers(n_layers, n_heads, n_kv_heads, d_head, n_tokens, bytes_per_value=2, batch=1):
    count = 2 * n_layers * n_kv_heads * d_head * n_tokens * batch
    return count * bytes_per_value, count

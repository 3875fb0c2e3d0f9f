"""Wrong answers of a tester who looked for untrue verdicts, to exercises of all notebooks.

Each looks, on some inputs or where it says nothing, like another mistake than it is.
They join `wrong_answers.ANSWERS` when this is imported.
"""

import numpy as np
from wrong_answers import right_softmax, safe_softmax, wrong

from helpers import multi_head

# ----------------------------------------------------------------------- what passed and should not have


@wrong("token_ids", "place_among_ids", says="no gaps")
def ids_by_place_among_ids(tokens, vocab):
    words = sorted(vocab, key=vocab.get)
    return np.array([words.index(t if t in words else "<unk>") for t in tokens], int)


@wrong("token_ids", "split_again")
def ids_of_words_split_again(tokens, vocab):
    return np.array([vocab.get(t, vocab["<unk>"]) for t in " ".join(tokens).split()], int)


@wrong("token_ids", "stripped")
def ids_without_full_stops(tokens, vocab):
    return np.array([vocab.get(t.strip(".,!? "), vocab["<unk>"]) for t in tokens], int)


@wrong("token_ids", says=("expected 300, got 44", "It is right except for: ids with gaps, larger ones too"))
def ids_in_one_byte(tokens, vocab):
    return np.array([vocab.get(t, vocab["<unk>"]) for t in tokens]).astype(np.uint8)


@wrong("token_ids", "unk_put_in", says="the caller's vocabulary is changed")
def ids_for_new_words(tokens, vocab):
    for token in tokens:
        if token not in vocab:
            vocab[token] = len(vocab)
    return np.array([vocab[token] for token in tokens], int)


@wrong("embed", says="The answer is a view of E")
def embed_with_views(ids, E):
    if min(ids) < 0:
        raise ValueError("no such row")
    return [E[i] for i in ids]


@wrong("embed", says="The numbers are rounded to two decimals.")
def embed_rounded(ids, E):
    return np.round(E[np.asarray(ids)], 2)


@wrong("merge_heads", says="The numbers are rounded to two decimals.")
def merge_rounded(H):
    return np.concatenate(list(H), axis=1).round(2)


@wrong("attention_weights", says=("tokens that may not read themselves",))
def weights_that_open_the_mask(S, mask):
    mask[0, 0] = True
    return safe_softmax(np.where(mask, S, -np.inf))

# -------------------------------------------------------- answers that say nothing: all 0, nan, or an input


@wrong("softmax", says="z comes back as it was given.")
def softmax_of_nothing(z):
    return z.copy()


@wrong("softmax", says="The answer is nan everywhere.")
def softmax_far_down(z):
    e = np.exp(np.asarray(z, np.float64) - 20_000)
    return e / e.sum(-1, keepdims=True)


@wrong("sinusoidal_positions", says="The answer is 0 everywhere.")
def positions_never_filled(n, d, base=1e4):
    return np.zeros((n, d))


@wrong("causal_mask", says="The answer is False everywhere.")
def mask_never_filled(n_q, n_k=None):
    return np.zeros((n_q, n_k or n_q), bool)


@wrong("attention_weights", says="The answer is 0 everywhere.")
def weights_never_filled(S, mask):
    return np.zeros(S.shape)


@wrong("rope", says="x comes back as it was given.")
def rope_that_stands_still(x, positions, base=1e4):
    return np.array(x, float)

# ------------------------------------------------------------- one slip that looks like others in places


@wrong("softmax", "nan_hidden", says="turned into 0")
def softmax_with_nan_made_0(z):
    e = np.exp(np.asarray(z, float))
    p = e / e.sum(-1, keepdims=True)
    p[np.isnan(p)] = 0
    return p


@wrong("softmax", "last_subtracted")
def softmax_less_the_last(z):
    e = np.exp(z - z[..., -1:])
    return e / e.sum(-1, keepdims=True)


@wrong("softmax", "first_subtracted")
def softmax_less_the_first(z):
    e = np.exp(z - z[..., :1])
    return e / e.sum(-1, keepdims=True)


@wrong("softmax", "size_subtracted")
def softmax_less_the_largest_size(z):
    e = np.exp(z - np.abs(z).max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@wrong("softmax", "clipped_700")
def softmax_clipped_high(z):
    e = np.exp(np.clip(z, -700, 700))
    return e / e.sum(-1, keepdims=True)


@wrong("softmax", "exp_missing", says="exp is never taken")
def softmax_without_exp(z):
    return z - z.max(axis=-1, keepdims=True)


@wrong("softmax", "no_exp_spread")
def softmax_in_straight_lines(z):
    z = z - z.min(axis=-1, keepdims=True)
    return z / z.sum(axis=-1, keepdims=True)


@wrong("causal_mask", says="an argument that was not given")
def mask_without_a_default(n_q, n_k=None):
    return np.tril(np.ones((n_q, n_k), bool), n_k - n_q)


@wrong("causal_mask", says="an argument that was not given")
def mask_by_arange_without_a_default(n_q, n_k=None):
    return np.arange(n_k)[None] <= np.arange(n_k - n_q, n_k)[:, None]


@wrong("causal_mask", "inverted", "additive_plus_inf", says="+inf marks the hidden keys")
def mask_of_inf_and_0(n_q, n_k=None):
    n_k = n_k or n_q
    return np.where(np.tri(n_q, n_k, n_k - n_q) > 0, np.inf, 0)


@wrong("token_ids", says="an axis of length 1 too many")
def ids_in_a_column(tokens, vocab):
    return np.array([[vocab.get(t, vocab["<unk>"])] for t in tokens], int)       # no tokens: no column


@wrong("embed", says="printed about, and no error is raised")
def embed_that_prints(ids, E):
    if max(ids) >= len(E):
        print("there is no such row")
        return None
    return E[np.array(ids)]


def heads_of(X, weights, n_heads):
    return [multi_head.split_heads(X @ W, n_heads) for W in weights]


@wrong("multi_head", "scale_d_model_over_h", says="only where h·d_k = d_model")
def heads_scaled_by_the_model(X, W_q, W_k, W_v, W_o, n_heads, causal=False):
    Q, K, V = heads_of(X, (W_q, W_k, W_v), n_heads)
    S = Q @ K.transpose(0, 2, 1) / np.sqrt(X.shape[1] / n_heads)
    if causal:
        S = np.where(np.tri(len(X)) > 0, S, -np.inf)
    return multi_head.merge_heads(right_softmax(S) @ V) @ W_o


@wrong("multi_head", "softmax_heads_finite")
def heads_shared_among_heads(X, W_q, W_k, W_v, W_o, n_heads, causal=False):
    Q, K, V = heads_of(X, (W_q, W_k, W_v), n_heads)
    S = Q @ K.transpose(0, 2, 1) / np.sqrt(Q.shape[-1])
    if causal:
        S = np.where(np.tri(len(X)) > 0, S, -1e9)
    return multi_head.merge_heads(right_softmax(S, axis=0) @ V) @ W_o


@wrong("multi_head", "cut_by_d_model")
def heads_as_wide_as_the_model_says(X, W_q, W_k, W_v, W_o, n_heads, causal=False):
    own, out = X.shape[1] // n_heads, []
    for r in range(n_heads):
        Q, K, V = (X @ W[:, r * own:(r + 1) * own] for W in (W_q, W_k, W_v))
        S = Q @ K.T / np.sqrt(own)
        out.append(right_softmax(np.where(np.tri(len(X)) > 0, S, -np.inf) if causal else S) @ V)
    return np.hstack(out) @ W_o


@wrong("merge_heads", "last_missing", says="the last head is missing")
def merge_all_but_one(H):
    return np.hstack([H[i] for i in range(len(H) - 1)])


@wrong("low_rank_factors", says="The answer holds whole numbers, where decimals belong.")
def factors_of_whole_numbers(W, r):
    U, s, Vt = np.linalg.svd(W, full_matrices=False)
    return (U[:, :r] * s[:r] * 3).astype(int), (Vt[:r] * 3).astype(int)


@wrong("low_rank_factors", "by_qr", says="the first r columns of W are taken")
def factors_of_first_columns(W, r):
    W = np.asarray(W, float)
    return W[:, :r], np.linalg.lstsq(W[:, :r], W, rcond=None)[0]


@wrong("rope", "first_pair")
def rope_of_one_pair(x, positions, base=1e4):
    if x.shape[1] % 2:
        raise ValueError("d must be even")
    y, p = np.array(x, float), np.asarray(positions)
    y[:, 0] = x[:, 0] * np.cos(p) - x[:, 1] * np.sin(p)
    y[:, 1] = x[:, 0] * np.sin(p) + x[:, 1] * np.cos(p)
    return y


@wrong("grouped_query_attention", says=("On 6 of the 9 inputs that fail it is what comes out when",
                                        "not divided by √d_k; the others do not fit that."))
def grouped_scaled_by_the_group(Q, K, V):
    m = len(Q) // len(K)
    K, V = np.repeat(K, m, 0), np.repeat(V, m, 0)
    return right_softmax(Q @ K.transpose(0, 2, 1) / np.sqrt(Q.shape[-1] / m)) @ V

# ----------------------------------------------------------------------------------- natural slips unnamed


@wrong("single_head", "sqrt_d_v")
def head_scaled_by_values(X, W_q, W_k, W_v, causal=False):
    S = X @ W_q @ (X @ W_k).T / np.sqrt(W_v.shape[1])
    return right_softmax(np.where(np.tri(len(X)) > 0, S, -np.inf) if causal else S) @ X @ W_v


@wrong("attention_weights", "softmax_twice")
def weights_of_weights(S, mask):
    return safe_softmax(np.where(mask, right_softmax(S), -np.inf))


@wrong("attention_weights", "self_always")
def weights_with_the_diagonal(S, mask):
    return safe_softmax(np.where(mask | np.eye(*mask.shape, dtype=bool), S, -np.inf))


@wrong("pre_norm_residual", "centred_residual")
def norm_that_moves_x(x, sublayer, gamma, beta, eps=1e-5):
    x = x - x.mean(-1, keepdims=True)
    return x + sublayer(x / np.sqrt(x.var(-1, keepdims=True) + eps) * gamma + beta)


@wrong("pre_norm_residual", "affine_after")
def norm_with_gamma_outside(x, sublayer, gamma, beta, eps=1e-5):
    centred = x - x.mean(-1, keepdims=True)
    return x + sublayer(centred / np.sqrt(x.var(-1, keepdims=True) + eps)) * gamma + beta


@wrong("grouped_query_attention", "queries_averaged_for_all")
def grouped_with_one_question(Q, K, V):
    h, n, d = Q.shape
    q = Q.reshape(len(K), -1, n, d).mean(1)
    return np.repeat(right_softmax(q @ K.transpose(0, 2, 1) / np.sqrt(d)) @ V, h // len(K), 0)


@wrong("latent_attention", "values_cut_by_d_k")
def latent_with_one_width(X, W_q, W_down, W_up_k, W_up_v, n_heads):
    C, d = X @ W_down, W_q.shape[1] // n_heads
    cuts = [slice(r * d, (r + 1) * d) for r in range(n_heads)]
    Q, K, V = X @ W_q, C @ W_up_k, C @ W_up_v
    return np.hstack([right_softmax(Q[:, c] @ K[:, c].T / np.sqrt(d)) @ V[:, c] for c in cuts]), C


@wrong("rope_attention", "turned_twice")
def rope_attention_at_double_distance(Q, K, V, positions):
    from helpers.embeddings import rope
    q, k = (rope(rope(M, positions), positions) for M in (Q, K))
    return right_softmax(q @ k.T / np.sqrt(Q.shape[1])) @ V


@wrong("kv_cache_step", "v_before_k")
def step_with_values_first(x, W_q, W_k, W_v, cache):
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    V, K = (v[None], k[None]) if cache is None else (np.vstack([cache[0], v]), np.vstack([cache[1], k]))
    return right_softmax(K @ q / np.sqrt(len(q))) @ V, (V, K)


@wrong("kv_cache_step", "q_k_swapped")
def step_that_asks_with_keys(x, W_q, W_k, W_v, cache):
    k, q, v = x @ W_q, x @ W_k, x @ W_v
    K, V = (k[None], v[None]) if cache is None else (np.vstack([cache[0], k]), np.vstack([cache[1], v]))
    return right_softmax(K @ q / np.sqrt(len(q))) @ V, (K, V)


@wrong("last_query_attention", "axis_of_one")
def last_query_as_a_column(q, K, V):
    return (right_softmax(K @ q[:, None] / np.sqrt(len(q))).T @ V)[0]


@wrong("scaled_scores", says="rounded down to whole ones, as // does")
def scaled_scores_of_whole_numbers(Q, K):
    return Q @ K.T // np.sqrt(Q.shape[1])


@wrong("scores", says=("Row 0 is right, rows 1 and 2 are not.",
                       "All numbers that are wrong are 0: were they ever filled?"))
def scores_of_the_first_row(Q, K):
    S = np.zeros((len(Q), len(K)))
    for i in range(len(Q)):
        for j in range(len(K)):
            S[i, j] = Q[i] @ K[j]
        return S


@wrong("cache_bytes", says=("With NumPy's 32-bit integers it is wrong", "int(…) makes a Python integer"))
def bytes_made_large_too_late(n_layers, n_heads, n_kv_heads, d_head, n_tokens, bytes_per_value=2, batch=1):
    return int(np.int64(n_layers * n_kv_heads * d_head * n_tokens) * 2 * bytes_per_value * batch)


@wrong("attention_flops", says="With NumPy's 32-bit integers it is wrong")
def flops_made_float_too_late(n, d_model, n_heads):
    return 8.0 * n * d_model * d_model + 4.0 * (n * n) * d_model

"""Wrong answers to the exercises of notebooks 07 to 10 that are not in the catalogue.

They join `wrong_answers.ANSWERS` when this is imported.
"""

import math
import random

import numpy as np
from right_answers_later import last_probabilities, shares
from wrong_answers import wrong

# ------------------------------------------------------------------------------------------------ notebook 07


@wrong("grouped_query_attention", "tiled", says="i // (h/g)")
def grouped_round_and_round(Q, K, V):
    return np.array([shares(q @ K[i % len(K)].T / math.sqrt(q.shape[1])) @ V[i % len(K)]
                     for i, q in enumerate(Q)])


@wrong("grouped_query_attention", "heads_do_not_meet")
def grouped_without_groups(Q, K, V):
    return shares(np.matmul(Q, K.transpose(0, 2, 1)) / np.sqrt(K.shape[2])) @ V


@wrong("grouped_query_attention", "index_by_g")
def grouped_by_number_of_groups(Q, K, V):
    g = K.shape[0]
    return np.stack([shares(Q[i] @ K[i // g].T / Q.shape[-1] ** .5) @ V[i // g] for i in range(len(Q))])


@wrong("grouped_query_attention", "sqrt_n")
def grouped_scaled_by_tokens(Q, K, V):
    h, n, d = Q.shape
    q = Q.reshape(len(K), -1, n, d)
    return (shares(q @ K[:, None].swapaxes(2, 3) / np.sqrt(q.shape[2])) @ V[:, None]).reshape(h, n, -1)


@wrong("grouped_query_attention", "tiled", "no_scale", says="Two things")
def grouped_twice_wrong(Q, K, V):
    m = len(Q) // len(K)
    K, V = np.concatenate([K] * m), np.concatenate([V] * m)
    return shares(np.einsum("hik,hjk->hij", Q, K)) @ V


@wrong("grouped_query_attention", "softmax_heads_no_max", says="axis 0")
def grouped_shared_among_heads(Q, K, V):
    m = len(Q) // len(K)
    e = np.exp(Q @ np.repeat(K, m, 0).swapaxes(1, 2) / np.sqrt(Q.shape[2]))
    return e / e.sum(axis=0) @ np.repeat(V, m, 0)


@wrong("grouped_query_attention", "k_t", says="swapaxes(-1, -2)")
def grouped_all_axes_turned(Q, K, V):
    m = len(Q) // len(K)
    return shares(Q @ np.repeat(K, m, 0).T / np.sqrt(Q.shape[2])) @ np.repeat(V, m, 0)


@wrong("grouped_query_attention", says=("IndexError", "/ gives a float, // a whole number"))
def grouped_by_a_fraction(Q, K, V):
    group = len(Q) / len(K)
    return np.array([shares(q @ K[i / group].T / len(q[0]) ** 0.5) @ V[i / group] for i, q in enumerate(Q)])


@wrong("grouped_query_attention", "scaled_after", says="it is the scores that must be kept close together")
def grouped_scaled_too_late(Q, K, V):
    m = len(Q) // len(K)
    A = shares(Q @ np.repeat(K, m, 0).swapaxes(1, 2))
    return A / np.sqrt(K.shape[-1]) @ np.repeat(V, m, 0)


@wrong("grouped_query_attention", "weights_returned", says="A @ V")
def grouped_without_values(Q, K, V):
    return shares(Q @ np.repeat(K, len(Q) // len(K), 0).swapaxes(1, 2) / np.sqrt(Q.shape[-1]))


@wrong("grouped_query_attention", says=("Where whole numbers are given the decimals are cut", "zeros_like"))
def grouped_into_whole_numbers(Q, K, V):
    Z = np.zeros_like(Q, shape=(*Q.shape[:2], V.shape[-1]))
    for i in range(len(Q)):
        j = i * len(K) // len(Q)
        Z[i] = shares(Q[i] @ K[j].T / np.sqrt(Q.shape[-1])) @ V[j]
    return Z


@wrong("grouped_query_attention", says=("could not broadcast", "another shape than its place"))
def grouped_into_the_shape_of_queries(Q, K, V):
    Z = np.zeros(Q.shape)
    for i in range(len(Q)):
        j = i * len(K) // len(Q)
        Z[i] = shares(Q[i] @ K[j].T / np.sqrt(Q.shape[-1])) @ V[j]
    return Z


@wrong("grouped_query_attention", says="it always runs along the last one")
def grouped_with_an_axis(Q, K, V):
    from helpers.attention import softmax
    m = len(Q) // len(K)
    return softmax(Q @ np.repeat(K, m, 0).swapaxes(1, 2) / np.sqrt(Q.shape[-1]), axis=-1) @ np.repeat(V, m, 0)


@wrong("latent_attention", "k_t")
def latent_all_axes_turned(X, W_q, W_down, W_up_k, W_up_v, h):
    C = X @ W_down
    q, k, v = (M.reshape(len(X), h, -1).transpose(1, 0, 2) for M in (X @ W_q, C @ W_up_k, C @ W_up_v))
    return (shares(q @ k.T / np.sqrt(q.shape[-1])) @ v).transpose(1, 0, 2).reshape(len(X), -1), C


@wrong("latent_attention", "keys_and_values", says=("C is 2 arrays, of shapes", "only C is kept"))
def latent_keeps_keys_and_values(X, W_q, W_down, W_up_k, W_up_v, n_heads):
    out, C = latent_loop(X, W_q, W_down, W_up_k, W_up_v, n_heads)
    return np.hstack(out), (C @ W_up_k, C @ W_up_v)


@wrong("latent_attention", "scale_r", says="stays √d_k")
def latent_absorbed_with_its_own_scale(X, W_q, W_down, W_up_k, W_up_v, n_heads):
    C, out = X @ W_down, []
    for q, k, v in zip(*(np.hsplit(W, n_heads) for W in (W_q, W_up_k, W_up_v)), strict=True):
        query = X @ q @ k.T
        out.append(shares(query @ C.T / math.sqrt(query.shape[-1])) @ C @ v)
    return np.hstack(out), C


@wrong("latent_attention", "ups_swapped")
def latent_ups_mixed_up(X, W_q, W_down, W_up_k, W_up_v, n_heads):
    C = X @ W_down
    K, V, Q = C @ W_up_v, C @ W_up_k, X @ W_q
    Q, K, V = (M.reshape(len(X), n_heads, -1).swapaxes(0, 1) for M in (Q, K, V))
    Z = shares(Q @ K.swapaxes(1, 2) / np.sqrt(Q.shape[2])) @ V
    return Z.swapaxes(0, 1).reshape(len(X), -1), C


def latent_loop(X, W_q, W_down, W_up_k, W_up_v, n_heads, scale=None, latent=lambda C: C):
    C, out = latent(X @ W_down), []
    for q, k, v in zip(*(np.hsplit(W, n_heads) for W in (W_q, W_up_k, W_up_v)), strict=True):
        out.append(shares(X @ q @ (C @ k).T / (scale or math.sqrt(q.shape[1]))) @ (C @ v))
    return out, C


@wrong("latent_attention", "keys_kept", says="only C is kept")
def latent_keeps_the_keys(X, W_q, W_down, W_up_k, W_up_v, n_heads):
    out, C = latent_loop(X, W_q, W_down, W_up_k, W_up_v, n_heads)
    return np.hstack(out), C @ W_up_k


@wrong("latent_attention", says="C is twice what it should be")
def latent_returned_double(X, W_q, W_down, W_up_k, W_up_v, n_heads):
    out, C = latent_loop(X, W_q, W_down, W_up_k, W_up_v, n_heads)
    return np.hstack(out), 2 * C


@wrong("latent_attention", "latent_layer_norm", "no_scale", says="Two things")
def latent_twice_wrong(X, W_q, W_down, W_up_k, W_up_v, n_heads):
    out, C = latent_loop(X, W_q, W_down, W_up_k, W_up_v, n_heads, 1, lambda C: (
        C - C.mean(1, keepdims=True)) / np.sqrt(C.var(1, keepdims=True) + 1e-5))
    return np.concatenate(out, axis=1), C


@wrong("latent_attention", "scale_d_v")
def latent_scaled_by_values(X, W_q, W_down, W_up_k, W_up_v, n_heads):
    out, C = latent_loop(X, W_q, W_down, W_up_k, W_up_v, n_heads, math.sqrt(W_up_v.shape[1] / n_heads))
    return np.hstack(out), C


@wrong("latent_attention", "scaled_after")
def latent_scaled_too_late(X, W_q, W_down, W_up_k, W_up_v, n_heads):
    out, C = latent_loop(X, W_q, W_down, W_up_k, W_up_v, n_heads, 1)
    return np.hstack(out) / math.sqrt(W_up_k.shape[1] / n_heads), C


@wrong("latent_attention", "latent_split", says="Every head reads the whole latent row")
def latent_in_heads(X, W_q, W_down, W_up_k, W_up_v, n_heads):
    C = X @ W_down
    Q, c = ((M.reshape(len(X), n_heads, -1).swapaxes(0, 1)) for M in (X @ W_q, C))
    K, V = (c @ W.reshape(len(W), n_heads, -1).swapaxes(0, 1) for W in (W_up_k, W_up_v))
    Z = shares(Q @ K.swapaxes(1, 2) / np.sqrt(Q.shape[2])) @ V
    return Z.swapaxes(0, 1).reshape(len(X), -1), C


@wrong("latent_attention", says=("mismatch in its core dimension", "the two inner sizes must be the same"))
def latent_keys_without_heads(X, W_q, W_down, W_up_k, W_up_v, n_heads):
    """As many inputs right, and as many errors, as when C is cut into heads; another slip all the same."""
    C = X @ W_down
    Q = (X @ W_q).reshape(len(X), n_heads, -1).swapaxes(0, 1)
    Z = shares(Q @ (C @ W_up_k).T / np.sqrt(Q.shape[2])) @ (C @ W_up_v).reshape(
        len(X), n_heads, -1).swapaxes(0, 1)
    return Z.swapaxes(0, 1).reshape(len(X), -1), C


@wrong("latent_attention", says="(an array of shape (3, 4), an array of shape (3, 2) and an array of")
def latent_gives_all_away(X, W_q, W_down, W_up_k, W_up_v, n_heads):
    out, C = latent_loop(X, W_q, W_down, W_up_k, W_up_v, n_heads)
    return np.hstack(out), C, X


@wrong("latent_attention", "three_things", says="only C is kept")
def latent_gives_keys_and_values(X, W_q, W_down, W_up_k, W_up_v, n_heads):
    out, C = latent_loop(X, W_q, W_down, W_up_k, W_up_v, n_heads)
    return np.hstack(out), C @ W_up_k, C @ W_up_v


@wrong("latent_attention", says="Z: expected shape")
def latent_stacked_downwards(X, W_q, W_down, W_up_k, W_up_v, n_heads):
    out, C = latent_loop(X, W_q, W_down, W_up_k, W_up_v, n_heads)
    return np.vstack(out), C

# ------------------------------------------------------------------------------------------------ notebook 08


def draw_one(ids, p, rng):
    return int(ids[min(np.searchsorted(np.cumsum(p), rng.random()), len(ids) - 1)])


@wrong("sample_next", "other_generator", says="the same seed")
def sample_with_numpy_random(logits, rng, temperature=1.0, top_k=None, top_p=None):
    if temperature == 0:
        return int(np.argmax(logits[-1]))
    ids, p = last_probabilities(logits, temperature, top_k, top_p)
    return int(np.random.choice(ids, p=p))  # noqa: NPY002


@wrong("sample_next", "other_generator")
def sample_with_module_random(logits, rng, temperature=1.0, top_k=None, top_p=None):
    ids, p = last_probabilities(logits, temperature or 1e-6, top_k, top_p)
    return random.choices(ids, p)[0]


@wrong("sample_next", "other_generator")
def sample_with_a_new_generator(logits, rng, temperature=1.0, top_k=None, top_p=None):
    return draw_one(*last_probabilities(logits, temperature or 1e-6, top_k, top_p), np.random.default_rng())


@wrong("sample_next", "place_not_id", says="place 0 is the likeliest id")
def sample_a_place(logits, rng, temperature=1.0, top_k=None, top_p=None):
    if temperature == 0:
        return int(np.argmax(logits[-1]))
    _, p = last_probabilities(logits, temperature, top_k, top_p)
    return int(rng.choice(len(p), p=p))


@wrong("sample_next", says="Every draw gave the same id.")
def sample_with_a_fixed_seed(logits, rng, temperature=1.0, top_k=None, top_p=None):
    if temperature == 0:
        return int(logits[-1].argmax())
    rng = np.random.default_rng(42)
    return draw_one(*last_probabilities(logits, temperature, top_k, top_p), rng)


@wrong("sample_next", "rest_beyond", says="beyond the last id")
def sample_beyond_the_end(logits, rng, temperature=1.0, top_k=None, top_p=None):
    z = np.asarray(logits, float)[-1]
    if temperature == 0:
        return int(z.argmax())
    p = shares(z / temperature)
    if top_k:
        p[np.argsort(-p, kind="stable")[top_k:]] = 0
    if top_p:
        order = np.argsort(-p, kind="stable")
        before = np.cumsum(p[order] / p.sum()) - p[order] / p.sum()
        p[order[before >= top_p]] = 0
    return int(np.searchsorted(np.cumsum(p), rng.random()))


@wrong("sample_next", "float_returned", says="no row 2.0")
def sample_a_float(logits, rng, temperature=1.0, top_k=None, top_p=None):
    if temperature == 0:
        return int(np.argmax(logits[-1]))
    ids, p = last_probabilities(logits, temperature, top_k, top_p)
    return float(rng.choice(ids, p=p))


@wrong("sample_next", "topp_not_crossing", says="crosses top_p stays")
def sample_up_to_the_line(logits, rng, temperature=1.0, top_k=None, top_p=None):
    ids, p = last_probabilities(logits, temperature or 1e-7, top_k, None)
    if top_p:
        keep = max(1, int((np.cumsum(p) <= top_p).sum()))
        ids, p = ids[:keep], np.array(p[:keep]) / sum(p[:keep])
    return draw_one(ids, p, rng)


@wrong("sample_next", "temp_multiplied", "topk_one_extra", says="Two things")
def sample_twice_wrong(logits, rng, temperature=1.0, top_k=None, top_p=None):
    if temperature == 0:
        return int(logits[-1].argmax())
    return draw_one(*last_probabilities(logits, 1 / temperature, top_k and top_k + 1, top_p), rng)


@wrong("sample_next", says=("id 0 should never come here", "It is right"))
def sample_often_right(logits, rng, temperature=1.0, top_k=None, top_p=None):
    """Now and then, with top_k, the id 0."""
    if top_k and rng.random() < 0.1:
        return 0
    if temperature == 0:
        return int(logits[-1].argmax())
    return draw_one(*last_probabilities(logits, temperature, top_k, top_p), rng)


@wrong("sample_next", says="changes logits in place")
def sample_in_place(logits, rng, temperature=1.0, top_k=None, top_p=None):
    if temperature == 0:
        return int(np.argmax(logits[-1]))
    logits[-1] /= temperature                              # again and again, were they not given afresh
    return draw_one(*last_probabilities(logits, 1.0, top_k, top_p), rng)


def in_steps(logits, rng, temperature, top_k, top_p, few=None, nucleus=None, scaled_at_last=True):
    """The draw in small steps, each of which may go wrong."""
    z = np.asarray(logits, float)[-1]
    if temperature == 0:
        return int(z.argmax())
    z = z / temperature
    if top_k:
        gone = np.argsort(-z, kind="stable")[top_k:]
        z[gone] = -np.inf if few is None else few
    p = shares(z)
    if top_p:
        order = np.argsort(-p, kind="stable")
        late = order[np.cumsum(p[order]) - p[order] >= top_p - 1e-12]
        p = np.where(np.isin(np.arange(len(p)), late), 0, p) if nucleus is None else nucleus(p, top_p)
        p = p / p.sum() if scaled_at_last else p
    return int(rng.choice(len(p), p=p))


@wrong("sample_next", "topp_min_p", says="It is the sum, from the likeliest down")
def sample_with_a_floor(logits, rng, temperature=1.0, top_k=None, top_p=None):
    return in_steps(logits, rng, temperature, top_k, top_p,
                    nucleus=lambda p, top_p: np.where((p >= 1 - top_p) | (p == p.max()), p, 0))


@wrong("sample_next", "topp_of_largest", says="min-p")
def sample_with_a_share_of_the_largest(logits, rng, temperature=1.0, top_k=None, top_p=None):
    return in_steps(logits, rng, temperature, top_k, top_p,
                    nucleus=lambda p, top_p: p * (p >= top_p * p.max()))


@wrong("sample_next", says=("Where ids are cut off, only the likeliest is left.", '"Top-k"'))
def sample_the_best_of_the_cut(logits, rng, temperature=1.0, top_k=None, top_p=None):
    if temperature == 0 or top_k or top_p:
        return int(logits[-1].argmax())
    return draw_one(*last_probabilities(logits, temperature, top_k, top_p), rng)


@wrong("sample_next", "not_renormalised_after_top_p", says=("of in_steps", "There p is ("))
def sample_without_the_last_division(logits, rng, temperature=1.0, top_k=None, top_p=None):
    return in_steps(logits, rng, temperature, top_k, top_p, scaled_at_last=False)


@wrong("sample_next", "topk_zeroed", says="exp(0) = 1")
def sample_with_zeros(logits, rng, temperature=1.0, top_k=None, top_p=None):
    return in_steps(logits, rng, temperature, top_k, top_p, few=0)


@wrong("sample_next", "softmax_again", says="what was cut off comes back")
def sample_with_softmax_twice(logits, rng, temperature=1.0, top_k=None, top_p=None):
    if temperature == 0:
        return int(logits[-1].argmax())
    ids, p = last_probabilities(logits, temperature, None, None)
    for cut, keep in ((top_k, top_k), (top_p, None)):
        if cut is not None:
            keep = keep or next(i for i, s in enumerate(np.cumsum(p), 1) if s >= top_p - 1e-12)
            p = shares(np.where(np.arange(len(p)) < keep, p, 0))
            order = np.argsort(-p, kind="stable")
            ids, p = [ids[i] for i in order], p[order]
    return draw_one(ids, p, rng)


@wrong("sample_next", "all_rows", says=("of sample_from_all_rows", "There p is ("))
def sample_from_all_rows(logits, rng, temperature=1.0, top_k=None, top_p=None):
    p = shares(np.asarray(logits, float) / (temperature or 1))
    best = int(p[-1].argmax())
    return best if temperature == 0 else int(rng.choice(p.shape[1], p=p))


@wrong("sample_next", says=("gave back a string, where one id, an int, is expected",))
def sample_a_word(logits, rng, temperature=1.0, top_k=None, top_p=None):
    return "apples"


# ------------------------------------------------------------------------------------------------ notebook 09


@wrong("attention_flops", "no_output")
def flops_of_three_projections(n, d_model, n_heads):
    n, d, h = map(int, (n, d_model, n_heads))
    return h * (3 * 2 * n * d * (d // h) + 2 * 2 * n * n * (d // h))


@wrong("attention_flops", "int32_if_given", says="32 bits")
def flops_as_they_come(n, d_model, n_heads):
    return n * d_model * d_model * 8 + n * n * d_model * 4      # 8 * n would be int64 with NumPy 1


@wrong("attention_flops", "macs", "times_h", says="Two things")
def flops_twice_wrong(n, d_model, n_heads):
    n, d, h = map(int, (n, d_model, n_heads))
    return 4 * n * d * d + 2 * h * n * n * d


@wrong("attention_flops", says=("5·h·n² more", "Softmax, scaling and masks are not counted here"))
def flops_with_softmax(n, d_model, n_heads):
    n, d, h = int(n), int(d_model), int(n_heads)
    return 8 * n * d * d + 4 * n * n * d + 5 * h * n * n


@wrong("attention_flops", "causal", says="nothing is masked")
def flops_of_half(n, d_model, n_heads):
    n, d = int(n), int(d_model)
    return 8 * n * d**2 + 2 * n * (n + 1) * d


@wrong("attention_flops", "n_for_d", says="where n·d_model² belongs")
def flops_of_twelve(n, d_model, n_heads):
    n, d = int(n), int(d_model)
    return 12 * n * n * d


@wrong("attention_flops", "n_and_d_swapped")
def flops_the_other_way_round(n, d_model, n_heads):
    d, n = int(n), int(d_model)
    return 8 * n * d * d + 4 * n * n * d


@wrong("attention_flops", "d_for_n")
def flops_of_rows_with_rows(n, d_model, n_heads):
    n, d = int(n), int(d_model)
    return 8 * n * d**2 + 4 * n * d**2


@wrong("attention_flops", "additions_exact", says=("by custom", "Counted, number by number"))
def flops_to_the_last(n, d_model, n_heads):
    n, d, h = int(n), int(d_model), int(n_heads)
    return 4 * n * d * (2 * d - 1) + h * n * n * (2 * d // h - 1) + n * d * (2 * n - 1)


@wrong("attention_flops", "narrow_queries")
def flops_of_narrow_queries(n, d_model, n_heads):
    n, d, h = int(n), int(d_model), int(n_heads)
    return 2 * n * d * (3 * (d // h) + d + 2 * n)


@wrong("attention_flops", "narrow_output")
def flops_of_a_narrow_way_out(n, d_model, n_heads):
    n, d, h = int(n), int(d_model), int(n_heads)
    return 2 * n * d * (3 * d + d // h + 2 * n)


@wrong("attention_flops", says=("It is h·n² more than asked",))
def flops_with_the_scaling(n, d_model, n_heads):
    n, d, h = int(n), int(d_model), int(n_heads)
    return 8 * n * d * d + 4 * n * n * d + h * n * n


@wrong("attention_flops", says="The answer is 7 too large on every input.")
def flops_and_seven(n, d_model, n_heads):
    n, d = int(n), int(d_model)
    return 8 * n * d * d + 4 * n * n * d + 7


@wrong("attention_flops", says=("expected one number, got an array of shape (1,)", "of length 1 too"))
def flops_in_an_array(n, d_model, n_heads):
    n, d = float(n), float(d_model)
    return np.array([8 * n * d * d + 4 * n * n * d])


@wrong("attention_flops", says="gave back a string, where one number is expected")
def flops_in_words(n, d_model, n_heads):
    return f"{8 * int(n) * int(d_model)**2:,}"


# ------------------------------------------------------------------------------------------------ notebook 10


@wrong("rope", "half_pairs", says="half-split")
def rope_as_in_llama(x, positions, base=10000.0):
    d = x.shape[1]
    angle = np.outer(positions, base ** (-np.arange(0, d, 2) / d))
    cos, sin = (np.tile(f(angle), 2) for f in (np.cos, np.sin))
    return x * cos + np.hstack([-x[:, d // 2:], x[:, :d // 2]]) * sin


@wrong("rope", "clockwise", says="clockwise")
def rope_the_other_way(x, positions, base=10000.0):
    d = x.shape[1]
    if d % 2:
        raise ValueError("d must be even")
    z = x[:, ::2] + 1j * x[:, 1::2]
    z = z * np.exp(-1j * np.outer(positions, 1 / base ** (np.arange(0, d, 2) / d)))
    return np.stack([z.real, z.imag], -1).reshape(x.shape)


@wrong("rope", "half_2i", "base_fixed", says="Two things")
def rope_twice_wrong(x, positions, base=10000.0):
    out = np.array(x, dtype=float)
    for row, p in zip(out, positions, strict=True):
        for i in range(len(row) // 2):
            a = p * 10000.0 ** (-i / len(row))
            u, v = row[2 * i], row[2 * i + 1]
            row[2 * i:2 * i + 2] = u * np.cos(a) - v * np.sin(a), u * np.sin(a) + v * np.cos(a)
    return out


@wrong("rope", says="Every row has kept its length.")
def rope_one_pair_too_slow(x, positions, base=10000.0):
    d = x.shape[1]
    speed = base ** (-np.arange(0, d, 2) / d)
    speed[-1] *= 0.5
    z = (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * np.outer(positions, speed))
    return np.stack([z.real, z.imag], -1).reshape(x.shape)


@wrong("rope", "number_by_number", says="positions[:, None]")
def rope_number_by_number(x, positions, base=10000.0):
    d = x.shape[1]
    angle = positions * base ** (-np.arange(0, d, 2) / d)
    out, a, b = np.empty(x.shape), x[:, 0::2], x[:, 1::2]
    out[:, 0::2] = a * np.cos(angle) - b * np.sin(angle)
    out[:, 1::2] = a * np.sin(angle) + b * np.cos(angle)
    return out


@wrong("rope", "swapped_out", says="on the way out")
def rope_pairs_swapped(x, positions, base=10000.0):
    d = x.shape[1]
    angle = np.outer(positions, base ** (-np.arange(0, d, 2) / d))
    out, a, b = np.empty(x.shape), x[:, 0::2], x[:, 1::2]
    out[:, 1::2] = a * np.cos(angle) - b * np.sin(angle)
    out[:, 0::2] = a * np.sin(angle) + b * np.cos(angle)
    return out


@wrong("rope", "from_last", says="last position")
def rope_from_the_last(x, positions, base=10000.0):
    d = x.shape[1]
    angle = np.outer(positions - positions[-1], base ** (-np.arange(0, d, 2) / d))
    out, a, b = np.empty(x.shape), x[:, 0::2], x[:, 1::2]
    out[:, 0::2] = a * np.cos(angle) - b * np.sin(angle)
    out[:, 1::2] = a * np.sin(angle) + b * np.cos(angle)
    return out


@wrong("rope", "linspace", says="np.linspace")
def rope_with_both_ends(x, positions, base=10000.0):
    d = x.shape[1]
    angle = np.outer(positions, base ** -np.linspace(0, 1, d // 2))
    out, a, b = np.empty(x.shape), x[:, 0::2], x[:, 1::2]
    out[:, 0::2] = a * np.cos(angle) - b * np.sin(angle)
    out[:, 1::2] = a * np.sin(angle) + b * np.cos(angle)
    return out


@wrong("rope", "half_of_the_pairs", says="Some models leave a part unturned")
def rope_of_the_first_half(x, positions, base=10000.0):
    h = x.shape[1] // 2 // 2 * 2
    angle = np.outer(positions, base ** (-np.arange(0, h, 2) / h)) if h else np.empty((len(x), 0))
    out, a, b = np.array(x, float), x[:, 0:h:2], x[:, 1:h:2]
    out[:, 0:h:2], out[:, 1:h:2] = (a * np.cos(angle) - b * np.sin(angle),
                                    a * np.sin(angle) + b * np.cos(angle))
    return out


@wrong("rope_attention", "rope_clockwise", says="looks like a key ahead")
def rope_attention_clockwise(Q, K, V, positions):
    from helpers.embeddings import rope
    q, k = (rope(M, -np.asarray(positions)) for M in (Q, K))
    return shares(q @ k.T / np.sqrt(Q.shape[1])) @ V


@wrong("rope_attention", "rope_degrees", says="degrees")
def rope_attention_in_degrees(Q, K, V, positions):
    from helpers.embeddings import rope
    q, k = (rope(M, np.radians(positions)) for M in (Q, K))
    return shares(q @ k.T / np.sqrt(Q.shape[1])) @ V


@wrong("rope_attention", "rope_base", says="100000")
def rope_attention_of_another_base(Q, K, V, positions):
    from helpers.embeddings import rope
    q, k = (rope(M, positions, 1e5) for M in (Q, K))
    return shares(q @ k.T / np.sqrt(Q.shape[1])) @ V


@wrong("rope_attention", "times_root", says="multiplied")
def rope_attention_times_the_root(Q, K, V, positions):
    from helpers.embeddings import rope
    q, k = (rope(M, positions) for M in (Q, K))
    return shares(q @ k.T * np.sqrt(Q.shape[1])) @ V


@wrong("rope_attention", "opposite_ways", says="opposite directions")
def rope_attention_turned_apart(Q, K, V, positions):
    from helpers.embeddings import rope
    return shares(rope(Q, positions) @ rope(K, -np.asarray(positions)).T / math.sqrt(Q.shape[1])) @ V


@wrong("rope_attention", "queries_only", "no_scale", says="Two things")
def rope_attention_twice_wrong(Q, K, V, positions):
    from helpers.embeddings import rope
    return shares(rope(Q, positions) @ K.T) @ V


@wrong("rope_attention", "rope_half_pairs", says="rope goes wrong")
def rope_attention_with_halves(Q, K, V, positions):
    q, k = rope_as_in_llama(Q, positions), rope_as_in_llama(K, positions)
    return shares(q @ k.T / np.sqrt(q.shape[1])) @ V

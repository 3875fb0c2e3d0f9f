"""Wrong answers of a newcomer who took the exercises of notebooks 06 to 10 and read the verdicts.

They join `wrong_answers.ANSWERS` when this is imported.
"""

import math

import numpy as np
from right_answers_later import generate, last_probabilities, shares, step
from wrong_answers import wrong

from helpers.embeddings import rope
from helpers.multi_head import merge_heads, split_heads

# ------------------------------------------------------------------------------------------------ notebook 06


@wrong("kv_cache_step", "value_at_the_front", says="the new value is put above the old ones")
def step_with_values_upside_down(x, W_q, W_k, W_v, cache):
    return step(x, W_q, W_k, W_v, cache, join_V=lambda old, new: np.concatenate([new, old]))


@wrong("kv_cache_step", "key_at_the_front", says="the new key is put above the old ones")
def step_with_keys_upside_down(x, W_q, W_k, W_v, cache):
    return step(x, W_q, W_k, W_v, cache, join_K=lambda old, new: np.vstack([new, old]))


@wrong("kv_cache_step", "scale_d_v", says="√d_v in place of √d_k")
def step_scaled_by_values(x, W_q, W_k, W_v, cache):
    return step(x, W_q, W_k, W_v, cache, width=W_v.shape[1])


@wrong("generate_with_cache", "position_stuck", says="the position of the prompt's last token")
def generate_where_the_prompt_ended(prompt_ids, n_new, model):
    return generate(prompt_ids, n_new, model, place=lambda p, n: min(p, n - 1))


@wrong("generate_with_cache", "layers_reversed", says="in reverse order")
def generate_from_the_last_layer(prompt_ids, n_new, model):
    return generate(prompt_ids, n_new, model | {"layers": model["layers"][::-1]})


@wrong("generate_with_cache", "first_x_for_all", says="every layer reads the first x")
def generate_from_the_first_x(prompt_ids, n_new, model):
    ids, caches = list(prompt_ids), [None] * len(model["layers"])
    for position in range(len(ids) + n_new - 1):
        first = x = model["E"][ids[position]] + model["P"][position]
        for i, layer in enumerate(model["layers"]):
            z, caches[i] = step(first, layer["W_q"], layer["W_k"], layer["W_v"], caches[i])
            x = x + z @ layer["W_o"]
        if position >= len(prompt_ids) - 1:
            ids.append(int(np.argmax(x @ model["E"].T)))
    return ids


@wrong("generate_with_cache", "last_layer_only", says="what the others have added is lost")
def generate_from_the_last_update(prompt_ids, n_new, model):
    ids, caches = list(prompt_ids), [None] * len(model["layers"])
    for position in range(len(ids) + n_new - 1):
        first = model["E"][ids[position]] + model["P"][position]
        for i, layer in enumerate(model["layers"]):
            z, caches[i] = step(first, layer["W_q"], layer["W_k"], layer["W_v"], caches[i])
            x = first + z @ layer["W_o"]
        if position >= len(prompt_ids) - 1:
            ids.append(int(np.argmax(x @ model["E"].T)))
    return ids


@wrong("generate_with_cache", "emptied_after_prompt", says="the keys and values of the prompt too")
def generate_with_new_caches_for_new_words(prompt_ids, n_new, model):
    def read(text, begin, caches):
        for position, id_ in enumerate(text, begin):
            x = model["E"][id_] + model["P"][position]
            for i, layer in enumerate(model["layers"]):
                z, caches[i] = step(x, layer["W_q"], layer["W_k"], layer["W_v"], caches[i])
                x = x + z @ layer["W_o"]
        return int(np.argmax(model["E"] @ x))
    ids = list(prompt_ids)
    new, caches = read(ids, 0, [None] * len(model["layers"])), [None] * len(model["layers"])
    for _ in range(n_new):
        ids.append(new)
        new = read([new], len(ids) - 1, caches)
    return ids


@wrong("generate_with_cache", "first_word_late", says=("IndexError", "at position len(prompt_ids) - 1"))
def generate_one_token_late(prompt_ids, n_new, model):
    return generate(prompt_ids, n_new, model, first_word=lambda n: n)


def in_bytes(n_layers, n_heads, n_kv_heads, d_head, n_tokens, bytes_per_value=2, batch=1):
    return math.prod(map(int, (2, n_layers, n_kv_heads, d_head, n_tokens, bytes_per_value, batch)))


@wrong("cache_bytes", "kib", says="in KiB, divided by 1024.")
def bytes_in_kib(*sizes, bytes_per_value=2, batch=1):
    return in_bytes(*sizes, bytes_per_value, batch) / 1024


@wrong("cache_bytes", "kib_cut", says="in KiB, divided by 1024.")
def bytes_in_whole_kib(*sizes, bytes_per_value=2, batch=1):
    return in_bytes(*sizes, bytes_per_value, batch) // 2**10


@wrong("cache_bytes", "mib_cut", says="in MiB")
def bytes_in_whole_mib(*sizes, bytes_per_value=2, batch=1):
    return in_bytes(*sizes, bytes_per_value, batch) // 2**20


@wrong("cache_bytes", "gib_cut", says="in GiB")
def bytes_in_whole_gib(*sizes, bytes_per_value=2, batch=1):
    return in_bytes(*sizes, bytes_per_value, batch) // 2**30


@wrong("cache_bytes", "gb_cut", says="in GB")
def bytes_in_whole_gb(*sizes, bytes_per_value=2, batch=1):
    return int(in_bytes(*sizes, bytes_per_value, batch) / 1e9)


# ------------------------------------------------------------------------------------------------ notebook 07


def latent(X, W_q, W_down, W_up_k, W_up_v, n_heads, row=lambda C: C):
    C = row(X @ W_down)
    Q, K, V = (split_heads(M, n_heads) for M in (X @ W_q, C @ W_up_k, C @ W_up_v))
    return merge_heads(shares(Q @ np.swapaxes(K, 1, 2) / math.sqrt(Q.shape[2])) @ V), C


@wrong("latent_attention", "no_heads", says="with one head of all columns")
def latent_without_heads(X, W_q, W_down, W_up_k, W_up_v, n_heads):
    return latent(X, W_q, W_down, W_up_k, W_up_v, 1)


@wrong("latent_attention", "latent_unit", says="C = X W_down")
def latent_of_length_one(X, W_q, W_down, W_up_k, W_up_v, n_heads):
    return latent(X, W_q, W_down, W_up_k, W_up_v, n_heads,
                  lambda C: C / np.sqrt((C * C).sum(1, keepdims=True)))


# ------------------------------------------------------------------------------------------------ notebook 08


def in_order(logits, temperature, top_k):
    """(ids from the likeliest down, their probabilities among all ids) of the top_k that stay."""
    z = np.asarray(logits, float)[-1] / temperature
    ids = np.argsort(-z, kind="stable")[:top_k]
    return ids, shares(z)[ids]


def to_top_p(ids, p, top_p):
    if top_p is None:
        return ids, p
    keep = np.searchsorted(np.cumsum(p), top_p - 1e-12) + 1
    return ids[:keep], p[:keep] / p[:keep].sum()


@wrong("sample_next", "not_renormalised_before_top_p",
       says=("robabilities do not sum to 1", "what is kept is not divided by its sum"))
def sample_softmax_before_the_cut(logits, rng, temperature=1.0, top_k=None, top_p=None):
    if temperature == 0:
        return int(np.argmax(logits[-1]))
    ids, p = to_top_p(*in_order(logits, temperature, top_k), top_p)
    return int(rng.choice(ids, p=p))


@wrong("sample_next", "not_renormalised_before_top_p", says="what is kept is not divided by its sum")
def sample_with_zeros_for_the_cut(logits, rng, temperature=1.0, top_k=None, top_p=None):
    p = shares(np.asarray(logits, float)[-1] / (temperature or 1e-6))
    if top_k is not None:
        p[np.argsort(-p, kind="stable")[top_k:]] = 0
    if top_p is not None:
        order = np.argsort(-p, kind="stable")
        p[order[np.searchsorted(np.cumsum(p[order]), top_p - 1e-12) + 1:]] = 0
        p /= p.sum()
    return int(rng.choice(len(p), p=p))


@wrong("sample_next", "rest_beyond_before_top_p", says="a draw can fall beyond the last id")
def sample_beyond_the_cut(logits, rng, temperature=1.0, top_k=None, top_p=None):
    if temperature == 0:
        return int(np.argmax(logits[-1]))
    ids, p = to_top_p(*in_order(logits, temperature, top_k), top_p)
    by_id = np.zeros(len(logits[-1]))
    by_id[ids] = p
    return int(np.searchsorted(np.cumsum(by_id), rng.random()))


@wrong("sample_next", "rest_to_last_before_top_p", says="goes to the last id")
def sample_the_rest_for_the_last(logits, rng, temperature=1.0, top_k=None, top_p=None):
    return min(sample_beyond_the_cut(logits, rng, temperature, top_k, top_p), len(logits[-1]) - 1)


def among(ids, logits, rng, temperature, top_p, pick=lambda ids, i: ids[i]):
    """A draw among these ids, from the likeliest down."""
    z = np.asarray(logits, float)[-1] / temperature
    ids, p = to_top_p(ids, shares(z[ids]), top_p)
    return int(pick(ids, rng.choice(len(ids), p=p)))


def place(ids, i):
    return i


@wrong("sample_next", "topk_none_of_one", says="so that k - 1 stay")
def sample_of_one_fewer(logits, rng, temperature=1.0, top_k=None, top_p=None):
    if temperature == 0:
        return int(np.argmax(logits[-1]))
    ids = np.argsort(-np.asarray(logits[-1]), kind="stable")
    return among(ids[:top_k - 1] if top_k else ids, logits, rng, temperature, top_p)


@wrong("sample_next", "topk_one_fewer", says="so that k - 1 stay")
def sample_of_one_fewer_at_least_one(logits, rng, temperature=1.0, top_k=None, top_p=None):
    if temperature == 0:
        return int(np.argmax(logits[-1]))
    ids = np.argsort(-np.asarray(logits[-1]), kind="stable")
    return among(ids[:max(1, top_k - 1)] if top_k else ids, logits, rng, temperature, top_p)


def place_says(where=""):
    return wrong("sample_next", f"place_not_id{where}", says="that stands there.\n  After sorting, place 0")


@place_says()
def sample_the_place(logits, rng, temperature=1.0, top_k=None, top_p=None):
    if temperature == 0:
        return int(np.argmax(logits[-1]))
    ids = np.argsort(-np.asarray(logits[-1]), kind="stable")[:top_k]
    return among(ids, logits, rng, temperature, top_p, place)


@place_says("_where_cut")
def sample_the_place_of_the_cut(logits, rng, temperature=1.0, top_k=None, top_p=None):
    if temperature == 0:
        return int(np.argmax(logits[-1]))
    if top_k is None and top_p is None:
        return among(np.arange(len(logits[-1])), logits, rng, temperature, None)
    return sample_the_place(logits, rng, temperature, top_k, top_p)


@place_says("_after_top_k")
def sample_the_place_of_top_k(logits, rng, temperature=1.0, top_k=None, top_p=None):
    if temperature == 0:
        return int(np.argmax(logits[-1]))
    ids = np.argsort(-np.asarray(logits[-1]), kind="stable")[:top_k]
    return among(ids, logits, rng, temperature, top_p, place if top_k else lambda ids, i: ids[i])


@place_says("_after_top_p")
def sample_the_place_of_top_p(logits, rng, temperature=1.0, top_k=None, top_p=None):
    if temperature == 0:
        return int(np.argmax(logits[-1]))
    ids = np.argsort(-np.asarray(logits[-1]), kind="stable")[:top_k]
    return among(ids, logits, rng, temperature, top_p, place if top_p else lambda ids, i: ids[i])


@place_says("_at_zero_too")
def sample_the_place_always(logits, rng, temperature=1.0, top_k=None, top_p=None):
    return sample_the_place(logits, rng, temperature or 1e-6, top_k, top_p)


@wrong("sample_next", "t0_inf", says=("ValueError", "divided by a temperature of 0", "a case of its own"))
def sample_with_softmax_of_inf(logits, rng, temperature=1.0, top_k=None, top_p=None):
    from helpers.attention import softmax
    z = np.asarray(logits, float)[-1] / temperature
    ids = np.argsort(-z, kind="stable")[:top_k]
    ids, p = to_top_p(ids, softmax(z[ids]), top_p)
    return int(rng.choice(ids, p=p))


@wrong("sample_next", "t0_division", says=("ZeroDivisionError", "divided by a temperature of 0"))
def sample_in_plain_python(logits, rng, temperature=1.0, top_k=None, top_p=None):
    ids, p = last_probabilities(logits, temperature, top_k, top_p)
    return int(rng.choice(ids, p=p))


# ------------------------------------------------------------------------------------------------ notebook 09


@wrong("attention_flops", "projections_times_h", says="the projections are multiplied by the number of heads")
def flops_of_whole_matrices_for_each_head(n, d_model, n_heads):
    n, d, h = int(n), int(d_model), int(n_heads)
    return 8 * h * n * d * d + 4 * n * n * d


# ------------------------------------------------------------------------------------------------ notebook 10


@wrong("rope_attention", "rope_pos_ignored", says="both turned by positions counted from 0")
def rope_attention_counted_from_zero(Q, K, V, positions):
    q, k = (rope(M, np.arange(len(M))) for M in (Q, K))
    return shares(q @ k.T / np.sqrt(Q.shape[1])) @ V


@wrong("rope_attention", "weights_returned", says="A @ V")
def rope_attention_without_values(Q, K, V, positions):
    return shares(rope(Q, positions) @ rope(K, positions).T / np.sqrt(Q.shape[1]))

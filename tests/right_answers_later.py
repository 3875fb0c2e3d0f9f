"""Right answers to the exercises of notebooks 06 to 10 in styles that the catalogue does not have.

They join `right_answers.ANSWERS` when this is imported.
"""

import math

import numpy as np
from right_answers import right


def shares(s):
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def step(x, W_q, W_k, W_v, cache, join_K=None, join_V=None, width=None):
    """One token of one head; `join_K` and `join_V` put new rows and old ones together."""
    q, k, v = x @ W_q, (x @ W_k)[None], (x @ W_v)[None]
    K, V = (k, v) if cache is None else ((join or below)(old, new) for join, old, new in zip(
        (join_K, join_V), cache, (k, v), strict=True))
    return shares(K @ q / math.sqrt(width or len(q))) @ V, (K, V)


def below(old, new):
    return np.append(old, new, axis=0)


def generate(prompt_ids, n_new, model, place=lambda p, n: p, first_word=lambda n: n - 1, one_step=step):
    """Token by token; `place` : where one stands, `first_word` : where the first new one is taken."""
    ids, n, caches = list(prompt_ids), len(prompt_ids), [None] * len(model["layers"])
    for position in range(n + n_new - 1):
        x = model["E"][ids[position]] + model["P"][place(position, n)]
        for i, layer in enumerate(model["layers"]):
            z, caches[i] = one_step(x, layer["W_q"], layer["W_k"], layer["W_v"], caches[i])
            x = x + z @ layer["W_o"]
        if position >= first_word(n):
            ids.append(int(np.argmax(model["E"] @ x)))
    return ids


@right("generate_with_cache")
def generate_token_by_token(prompt_ids, n_new, model):
    return generate(prompt_ids, n_new, model)


@right("generate_with_cache")
def generate_with_the_matrix_first(prompt_ids, n_new, model):
    def turned_step(x, W_q, W_k, W_v, cache):
        rows = (W_k.T @ x)[None], np.dot(W_v.T, x)[None]
        K, V = rows if cache is None else map(np.vstack, zip(cache, rows, strict=True))
        return shares(K @ (W_q.T @ x) / math.sqrt(K.shape[1])) @ V, (K, V)
    return generate(prompt_ids, n_new, model, one_step=turned_step)


@right("generate_with_cache")
def generate_with_x_kept(prompt_ids, n_new, model):
    """Keys never made: queries go through W_k, so that what is kept is x itself."""
    def folded_step(x, W_q, W_k, W_v, cache):
        X = x[None] if cache is None else np.vstack([cache, x])
        return shares(x @ (W_q @ W_k.T) @ X.T / math.sqrt(W_k.shape[1])) @ X @ W_v, X
    return generate(prompt_ids, n_new, model, one_step=folded_step)


@right("generate_with_cache")
def generate_with_the_prompt_read_twice(prompt_ids, n_new, model):
    """Once for what it says, and once for its keys and values: more than needed, but not for every word."""
    from helpers.attention import single_head
    ids, caches = list(prompt_ids), []
    x = model["E"][ids] + model["P"][:len(ids)]
    for layer in model["layers"]:
        weights = [layer[name] for name in ("W_q", "W_k", "W_v")]
        caches.append((x @ weights[1], x @ weights[2]))
        x = x + single_head(x, *weights, causal=True) @ layer["W_o"]
    x = x[-1]
    for position in range(len(ids), len(ids) + n_new):
        ids.append(int(np.argmax(model["E"] @ x)))
        x = model["E"][ids[-1]] + model["P"][position]
        for i, layer in enumerate(model["layers"]):
            z, caches[i] = step(x, layer["W_q"], layer["W_k"], layer["W_v"], caches[i])
            x = x + z @ layer["W_o"]
    return ids


@right("generate_with_cache", remarks=1)
def generate_with_everything_again(prompt_ids, n_new, model):
    ids = list(prompt_ids)
    for _ in range(n_new):
        x = model["E"][ids] + model["P"][:len(ids)]
        for layer in model["layers"]:
            Q, K, V = (x @ layer[name] for name in ("W_q", "W_k", "W_v"))
            S = np.where(np.tri(len(x)) > 0, Q @ K.T / math.sqrt(K.shape[1]), -np.inf)
            x = x + shares(S) @ V @ layer["W_o"]
        ids.append(int(np.argmax(x[-1] @ model["E"].T)))
    return ids


@right("generate_with_cache", remarks=1)
def generate_with_new_caches_for_each_word(prompt_ids, n_new, model):
    from helpers.kv_cache import kv_cache_step
    ids = list(prompt_ids)
    for _ in range(n_new):
        ids = generate(ids, 1, model, one_step=kv_cache_step)
    return ids


@right("latent_attention", remarks=1)
def latent_as_lists(X, W_q, W_down, W_up_k, W_up_v, n_heads):
    Z, C = latent_half_absorbed(X, W_q, W_down, W_up_k, W_up_v, n_heads)
    return Z.tolist(), C.tolist()


@right("grouped_query_attention")
def grouped_in_a_loop(Q, K, V):
    h, g = len(Q), len(K)
    rows = [i * g // h for i in range(h)]
    return np.array([shares(q @ K[r].T / math.sqrt(q.shape[1])) @ V[r] for q, r in zip(Q, rows, strict=True)])


@right("grouped_query_attention")
def grouped_on_the_course(Q, K, V):
    """One query at a time, with a function of notebook 03."""
    from helpers.attention import last_query_attention
    each = len(Q) // len(K)
    return np.stack([[last_query_attention(q, K[i // each], V[i // each]) for q in head]
                     for i, head in enumerate(Q)])


@right("grouped_query_attention", remarks=1)
def grouped_as_a_list(Q, K, V):
    groups = np.split(np.asarray(Q, float), len(K))
    found = [shares(q @ k.T * q.shape[-1] ** -0.5) @ v for q, k, v in zip(groups, K, V, strict=True)]
    return [head for group in found for head in group]


@right("latent_attention")
def latent_as_multi_head(X, W_q, W_down, W_up_k, W_up_v, n_heads):
    """W_down W_up is a W_k or W_v like any other, and W_o the identity."""
    from helpers.multi_head import multi_head
    W_v, d, r = W_down @ W_up_v, X.shape[1], W_down.shape[1]
    more = max(W_v.shape[1] - d, 0)                        # multi_head wants W_o to lead back to d columns
    X = np.pad(X, ((0, 0), (0, more)))
    W_q, W_k, W_v, W_down = (np.pad(W, ((0, more), (0, 0))) for W in (W_q, W_down @ W_up_k, W_v, W_down))
    Z = multi_head(X, W_q, W_k, W_v, np.eye(W_v.shape[1], d + more), n_heads)
    return [Z[:, :W_v.shape[1]], np.einsum("nd,dr->nr", X, W_down)[:, :r]]


@right("latent_attention")
def latent_half_absorbed(X, W_q, W_down, W_up_k, W_up_v, h):
    """Keys folded into the queries, values formed."""
    C = X @ W_down
    out = []
    for q, k, v in zip(*(np.split(W, h, axis=-1) for W in (W_q, W_up_k, W_up_v)), strict=True):
        out.append(shares((X @ (q @ k.T)) @ C.T / q.shape[1] ** 0.5) @ (C @ v))
    return np.concatenate(out, -1), C


@right("latent_attention")
def latent_in_float32(X, W_q, W_down, W_up_k, W_up_v, n_heads):
    X, W_q, W_down, W_up_k, W_up_v = (a.astype(np.float32) for a in (X, W_q, W_down, W_up_k, W_up_v))
    C = X @ W_down
    q, k, v = (M.reshape(len(X), n_heads, -1) for M in (X @ W_q, C @ W_up_k, C @ W_up_v))
    A = shares(np.einsum("ihk,jhk->hij", q, k) / np.float32(math.sqrt(q.shape[-1])))
    return np.einsum("hij,jhv->ihv", A, v).reshape(len(X), -1), C


def last_probabilities(logits, temperature, top_k, top_p):
    """(ids from the likeliest down, their probabilities), in plain Python."""
    z = [x / temperature for x in map(float, logits[-1])]
    ids = sorted(range(len(z)), key=lambda i: -z[i])[:top_k]
    weights = [math.exp(z[i] - z[ids[0]]) for i in ids]
    p = [w / sum(weights) for w in weights]
    if top_p is not None:
        reached, keep = 0.0, 0
        while keep < len(p) and reached < top_p:
            reached, keep = reached + p[keep], keep + 1
        ids, p = ids[:keep], p[:keep]
    return ids, [x / sum(p) for x in p]


@right("sample_next")
def sample_by_hand(logits, rng, temperature=1.0, top_k=None, top_p=None):
    if not temperature:
        return max(range(len(logits[-1])), key=lambda i: logits[-1][i])
    ids, p = last_probabilities(logits, temperature, top_k, top_p)
    u = rng.random()
    for i, share in zip(ids, p, strict=True):
        u -= share
        if u < 0:
            return i
    return ids[-1]


@right("sample_next", remarks=1)
def sample_with_other_names(L, generator, T=1.0, k=None, p=None):
    """NumPy's integers, and names of its own for the settings."""
    if T == 0:
        return np.argmax(L[-1])
    ids, shares_ = last_probabilities(L, T, k, p)
    return ids[generator.multinomial(1, shares_).argmax()] if len(ids) > 1 else np.int64(ids[0])


@right("sample_next")
def sample_by_gumbel(logits, rng, temperature=1.0, top_k=None, top_p=None):
    if temperature == 0:
        return np.asarray(logits)[-1].argmax().item()
    ids, p = last_probabilities(logits, temperature, top_k, top_p)
    return ids[int(np.argmax(np.log(p) + rng.gumbel(size=len(p))))]


@right("sample_next")
def sample_by_refusal(logits, rng, temperature=1.0, top_k=None, top_p=None):
    """Darts at the bars until one hits; a tiny temperature for 0."""
    ids, p = last_probabilities(logits, max(temperature, 1e-9), top_k, top_p)
    while True:
        i = int(rng.integers(len(ids)))
        if rng.random() * max(p) < p[i]:
            return ids[i]


@right("sample_next", remarks=1)
def sample_by_exponentials(logits, rng, temperature=1.0, *, top_k=None, top_p=None):
    """The first of several clocks to ring; of equal logits the larger id stays."""
    z = np.array(logits[-1], dtype=float)
    if temperature == 0:
        return int(z.argmax())
    order = np.argsort(z / temperature)[::-1]
    p = shares(z[order[:top_k]] / temperature)
    if top_p:
        p = p[:1 + np.count_nonzero(np.cumsum(p)[:-1] < top_p)]
    return int(order[np.argmin(rng.exponential(size=len(p)) / p)])


@right("attention_flops")
def flops_of_products(n, d_model, n_heads):
    n, d, h = (a.item() if hasattr(a, "item") else a for a in (n, d_model, n_heads))
    products = [((n, d), (d, d // h))] * 3 * h + [((n, d // h), (d // h, n)), ((n, n), (n, d // h))] * h
    return sum(2 * a * b * c for (a, b), (_, c) in [*products, ((n, d), (d, d))])


@right("attention_flops")
def flops_in_int64(n, d_model, n_heads):
    n, d = np.int64(n), np.int64(d_model)
    return 4 * n * d * (2 * d + n)


@right("rope")
def rope_as_complex_numbers(x, positions, base=10000.0):
    x = np.ascontiguousarray(x, dtype=float)
    if x.shape[1] % 2:
        raise ValueError("an even number of columns is needed")
    speed = base ** (-np.arange(0, x.shape[1], 2) / x.shape[1])
    return (x.view(complex) * np.exp(1j * np.outer(positions, speed))).view(float)


@right("rope", remarks=1)
def rope_in_two_loops(x, positions, theta=10000):
    out = [list(map(float, row)) for row in x]
    for row, position in zip(out, positions, strict=True):
        for i in range(0, len(row) - 1, 2):
            angle = position / theta ** (i / len(row))
            c, s = math.cos(angle), math.sin(angle)
            row[i], row[i + 1] = row[i] * c - row[i + 1] * s, row[i] * s + row[i + 1] * c
    return np.array(out)


@right("rope_attention")
def rope_attention_by_differences(Q, K, V, positions):
    """Only the keys are turned, for each query by how far away they stand."""
    from helpers.embeddings import rope
    rows = [shares(rope(K, np.asarray(positions) - p) @ q / math.sqrt(len(q))) @ V
            for q, p in zip(Q, positions, strict=True)]
    return np.array(rows)

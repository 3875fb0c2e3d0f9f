"""Every function of the maths on arrays of all kinds, against loops over single numbers in double precision.

The inputs: float16, float32 and float64; in rows, in columns, with gaps, backwards, cut out of larger ones,
never to be written to; no token, one, some; values to 10,000. What may differ is what rounding explains.
"""

import math

import numpy as np
import slow
from hypothesis import given
from hypothesis import strategies as st
from strategies import few, makers, width

from helpers import tiles
from helpers.attention import (
    attend_at_once,
    attention,
    attention_weights,
    last_query_attention,
    project_qkv,
    scaled_scores,
    scores,
    single_head,
    softmax,
)
from helpers.embeddings import embed, rope, rope_attention, sinusoidal_positions
from helpers.kv_cache import KVCache, cache_bytes, generate_with_cache, kv_cache_step, latent_cache_bytes
from helpers.kv_sharing import attend_absorbed, attend_restored, grouped_query_attention, latent_attention
from helpers.low_rank import low_rank_factors, per_head_updates, shared_qkv_basis
from helpers.multi_head import layer_norm, merge_heads, multi_head, pre_norm_residual, split_heads
from helpers.sampling import next_probabilities, sample_next
from helpers.tiles import attend_in_tiles, attend_tile

wide = st.sampled_from([np.float32, np.float64])


def loops(A, B):
    """A @ B in loops, with its shape where it is empty."""
    return np.array(slow.matmul(A, B), np.float64).reshape(len(A), np.shape(B)[1])


def loop_head(Q, K, V, causal=False):
    if len(K) == 0:
        return np.zeros((len(Q), np.shape(V)[1]))
    return np.array(slow.head(Q, K, V, causal)).reshape(len(Q), np.shape(V)[1])


def size(*factors):
    """The largest number that a product of these can reach on its way, signs aside."""
    product = np.abs(np.asarray(factors[0], np.float64))
    for factor in factors[1:]:
        product = product @ np.abs(np.asarray(factor, np.float64))
    return product.max(initial=0)


def equal(ours, expected, rounding):
    """Same shape, and no further apart than `rounding`."""
    assert np.shape(ours) == np.shape(expected)
    np.testing.assert_allclose(np.asarray(ours, np.float64), expected, rtol=0, atol=rounding + 1e-300)


def rounded(ours, make, largest):
    """What a few roundings of numbers as large as `largest` may add up to, in the type of the result."""
    assert ours.dtype == make.dtype
    return 12 * np.finfo(make.dtype).eps * largest + np.finfo(make.dtype).tiny


def read(ours, expected, make, score, value):
    """Compare what was read: an error e in the scores changes each weight by a factor of exp(2e) at most."""
    eps = np.finfo(make.dtype).eps
    assert ours.dtype == make.dtype and np.isfinite(ours).all()
    equal(ours, expected, value * (min(2.0, math.expm1(min(24 * eps * score, 1.0))) + 12 * eps))


# Embeddings


@given(makers(), few, width)
def test_embed_takes_rows_of_any_table(make, n, d):
    E = make(5, d)
    ids = np.arange(n) * 3 % 5
    X = embed(ids, E)
    assert X.dtype == make.dtype and X.flags.writeable
    assert X.tolist() == [E[i].tolist() for i in ids]


@given(makers(), few, st.integers(0, 3), st.sampled_from([2.0, 1e4]), st.integers(0, 2))
def test_rope_turns_pairs_in_any_array(make, n, half, base, heads):
    x = make(*[2] * heads, n, 2 * half)
    positions = [7 * p - 5 for p in range(n)]
    turned = rope(x, positions, base)
    expected = np.zeros(x.shape)
    for where in np.ndindex(*x.shape[:-1]):
        for i in range(half):
            angle = positions[where[-1]] / base ** (i / half)
            a, b = float(x[where][2 * i]), float(x[where][2 * i + 1])
            expected[where][2 * i] = a * math.cos(angle) - b * math.sin(angle)
            expected[where][2 * i + 1] = a * math.sin(angle) + b * math.cos(angle)
    equal(turned, expected, rounded(turned, make, size(x) if x.size else 0))


@given(makers(dtypes=(np.float32, np.float64), largest=(1.0, 30.0)), st.integers(1, 4), width, width)
def test_rope_attention_reads_by_turned_queries_and_keys(make, n, half, d_v):
    Q, K, V = make(n, 2 * half), make(n, 2 * half), make(n, d_v)
    positions = np.arange(n) * 2 + 1
    turned = [rope(np.asarray(M, np.float64), positions) for M in (Q, K)]
    expected = loop_head(*turned, V)
    read(rope_attention(Q, K, V, positions), expected, make, 2 * size(Q, K.T), size(V))


@given(few, st.integers(0, 7), st.floats(1.5, 1e5))
def test_each_position_is_a_sine_or_a_cosine(n, d, base):
    P = sinusoidal_positions(n, d, base)
    for p in range(n):
        for j in range(d):
            angle = p * math.exp(-math.log(base) * (j - j % 2) / d)
            assert math.isclose(P[p, j], (math.cos if j % 2 else math.sin)(angle), abs_tol=1e-12)


# One head


@given(makers(), few, width, width, width)
def test_projections_and_scores(make, n, d, d_k, d_v):
    X, W_q, W_k, W_v = make(n, d), *(make(d, w, most=1.0) for w in (d_k, d_k, d_v))
    for projected, W in zip(project_qkv(X, W_q, W_k, W_v), (W_q, W_k, W_v), strict=True):
        equal(projected, loops(X, W), rounded(projected, make, size(X, W)))
    K = make(n + 1, d, most=1.0)
    for S, scale in ((scores(X, K), 1), (scaled_scores(X, K), math.sqrt(d))):
        equal(S, loops(X, K.T) / scale, rounded(S, make, size(X, K.T)))


@given(makers(), few, few, st.data())
def test_softmax_and_masks(make, n_q, n_k, data):
    S = make(n_q, n_k)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=n_q * n_k, max_size=n_q * n_k)), bool)
    mask = mask.reshape(n_q, n_k)
    A, masked = softmax(S), attention_weights(S, mask)
    shape = (n_q, n_k)
    for ours, allowed in ((A, np.ones(shape, bool)), (masked, mask)):
        expected = [slow.softmax(row, may) for row, may in zip(S, allowed, strict=True)]
        equal(ours, np.reshape(expected, shape), rounded(ours, make, 1.0 + abs(S).max(initial=0) * (
            0 if make.dtype == np.float16 else 2)))
        assert not ours[~allowed].any()
    hidden = softmax(np.where(mask, S, -np.inf).astype(make.dtype))
    np.testing.assert_array_equal(hidden, masked)


@given(makers(largest=(1.0, 10.0), dtypes=(np.float16,)) | makers(dtypes=(np.float32, np.float64)),
       few, width, width, width, st.booleans())
def test_one_head_from_tokens(make, n, d, d_k, d_v, causal):
    X, W_q, W_k, W_v = make(n, d), *(make(d, w, most=1.0) for w in (d_k, d_k, d_v))
    expected = loop_head(*(loops(X, W) for W in (W_q, W_k, W_v)), causal)
    score, value = size(X, W_q, np.abs(W_k).T, np.abs(X).T), size(X, W_v)
    read(single_head(X, W_q, W_k, W_v, causal), expected, make, score, value)
    if n:
        Q, K, V = project_qkv(X, W_q, W_k, W_v)
        last = loop_head(Q[-1:], K, V)[0]
        read(last_query_attention(Q[-1], K, V), last, make, size(Q, K.T), size(V))


# Heads side by side, tiled or not


@given(makers(), few, few, st.sampled_from([(), (1, 1), (2, 1), (4, 2), (3, 3)]), st.booleans(), st.data())
def test_attention_whole_and_in_tiles(make, n_q, n_k, heads, causal, data):
    d_k, d_v = data.draw(width), data.draw(width)
    h, g = heads or (1, 1)
    batch = (2,) if heads and data.draw(st.booleans()) else ()
    front = [(*batch, count) if heads else () for count in (h, g, g)]
    Q, K, V = (make(*f, n, d) for f, n, d in zip(front, (n_q, n_k, n_k), (d_k, d_k, d_v), strict=True))
    per_head = [M.reshape(math.prod(M.shape[:-2]), *M.shape[-2:]) for M in (Q, K, V)]
    expected = np.reshape([
        loop_head(q, per_head[1][i // (h // g)], per_head[2][i // (h // g)], causal)
        for i, q in enumerate(per_head[0])
    ], (*Q.shape[:-1], d_v))
    score, value = d_k * size(Q.ravel()) * size(K.ravel()), size(V.ravel())
    read(attention(Q, K, V, causal), expected, make, score, value)
    if not n_k or make.dtype == np.float16:
        return
    before = tiles.N_QUERIES, tiles.N_SCORES
    tiles.N_QUERIES, tiles.N_SCORES = data.draw(st.sampled_from([(1, 1), (2, 2), (2, 6), (3, 3)]))
    try:
        in_tiles = attend_in_tiles(*per_head, causal)
        read(in_tiles.reshape(expected.shape), expected, make, score, value)
        if n_q:
            q, k, v = per_head[0][0, :tiles.N_QUERIES], per_head[1][0], per_head[2][0]
            read(attend_tile(q, k, v), loop_head(q, k, v), make, score, value)
    finally:
        tiles.N_QUERIES, tiles.N_SCORES = before
    read(attend_at_once(*per_head, causal).reshape(expected.shape), expected, make, score, value)


@given(makers(largest=(1.0, 10.0), dtypes=(np.float16,)) | makers(dtypes=(np.float32, np.float64)),
       few, few, width, st.integers(1, 3), st.booleans())
def test_groups_of_heads_read_their_own_keys(make, n_q, n_k, d, share, causal):
    Q, K, V = make(2 * share, n_q, d), make(2, n_k, d), make(2, n_k, 3)
    expected = [loop_head(q, K[i // share], V[i // share], causal) for i, q in enumerate(Q)]
    Z = grouped_query_attention(Q, K, V, causal)
    read(Z, np.array(expected), make, d * size(Q.ravel()) * size(K.ravel()), size(V.ravel()))


@given(makers(dtypes=(np.float32, np.float64)), few, width, width, st.integers(1, 3), st.booleans())
def test_latent_attention_in_both_forms(make, n, d, r, h, causal):
    X, W_q, W_down = make(n, d), make(d, 2 * h, most=1.0), make(d, r, most=1.0)
    W_up_k, W_up_v = make(r, 2 * h, most=1.0), make(r, 3 * h, most=1.0)
    Q, C = loops(X, W_q), loops(X, W_down)
    K, V = loops(C, W_up_k), loops(C, W_up_v)
    parts = [np.split(M, h, axis=1) for M in (Q, K, V)]
    one_by_one = [loop_head(*head, causal) for head in zip(*parts, strict=True)]
    score = size(X, W_q, np.abs(W_up_k).T, np.abs(W_down).T, np.abs(X).T)
    value = size(X, W_down, W_up_v)
    for absorbed in (False, True):
        Z, kept = latent_attention(X, W_q, W_down, W_up_k, W_up_v, h, causal, absorbed)
        equal(kept, C, rounded(kept, make, size(X, W_down)))
        read(Z, np.concatenate(one_by_one, axis=1), make, score, value)
    for attend in (attend_restored, attend_absorbed):
        Z = attend(split_heads(X @ W_q, h), X @ W_down, W_up_k, W_up_v, causal)
        read(Z, np.array(one_by_one), make, score, value)


@given(makers(), few, st.integers(1, 3), width)
def test_heads_are_cut_out_of_columns_and_put_back(make, n, h, d):
    X = make(n, h * d)
    H = split_heads(X, h)
    assert H.shape == (h, n, d) and H.dtype == make.dtype
    for r, i, c in np.ndindex(h, n, d):
        assert H[r, i, c] == X[i, r * d + c]
    np.testing.assert_array_equal(merge_heads(H), X)


@given(makers(largest=(1.0,), dtypes=(np.float16,)) | makers(dtypes=(np.float32, np.float64)),
       few, width, st.integers(1, 3), st.booleans())
def test_a_whole_layer_of_heads(make, n, d, h, causal):
    X, W_q, W_k = make(n, d), make(d, 2 * h, most=1.0), make(d, 2 * h, most=1.0)
    W_v, W_o = make(d, 3 * h, most=1.0), make(3 * h, d, most=1.0)
    parts = [np.split(loops(X, W), h, axis=1) for W in (W_q, W_k, W_v)]
    side_by_side = np.concatenate([loop_head(*head, causal) for head in zip(*parts, strict=True)], axis=1)
    Z = multi_head(X, W_q, W_k, W_v, W_o, h, causal)
    read(Z, loops(side_by_side, W_o), make, size(X, W_q, np.abs(W_k).T, np.abs(X).T),
         3 * h * size(X, W_v) * size(W_o.ravel()))


@given(makers(dtypes=(np.float32, np.float64)), few, width, st.sampled_from([1e-5, 0.1]))
def test_norm_and_residual(make, n, d, eps):
    x, gamma, beta = make(n, d), make(d, most=1.0), make(d, most=1.0)
    expected = np.reshape([slow.layer_norm(row, gamma, beta, eps) for row in x.astype(float)], x.shape)
    largest = 1 + abs(x).max(initial=0) / math.sqrt(eps)    # rows all alike: rounding is all that is divided
    normed = layer_norm(x, gamma, beta, eps)
    equal(normed, expected, rounded(normed, make, largest))
    seen = []
    out = pre_norm_residual(x, lambda y: seen.append(y) or y + y, gamma, beta, eps)
    np.testing.assert_array_equal(seen[0], normed)
    equal(out, x.astype(float) + 2 * expected, rounded(out, make, 3 * largest + abs(x).max(initial=0)))


# Thin products


@given(makers(), width, width, st.data())
def test_thin_products_leave_over_what_they_must(make, m, k, data):
    W, r = make(m, k), data.draw(st.integers(1, min(m, k)))
    A, B = low_rank_factors(W, r)
    assert (A.shape, B.shape) == ((m, r), (r, k))
    exact = W.astype(np.float64)
    left = np.sqrt(max(np.linalg.eigvalsh(exact @ exact.T)[: m - r].sum(), 0))
    rounding = 50 * (np.finfo(A.dtype).eps + 1e-8) * (1 + np.linalg.norm(exact))
    assert abs(np.linalg.norm(exact - loops(A, B)) - left) <= rounding
    U, V = make(m, 2), make(m, 3)
    r = min(r, m)
    basis, *parts = shared_qkv_basis(W, U, V, r)
    both = np.concatenate([W, U, V], axis=1).astype(np.float64)
    left = np.sqrt(max(np.linalg.eigvalsh(both @ both.T)[: m - r].sum(), 0))
    ours = np.linalg.norm(both - np.concatenate([loops(basis, P) for P in parts], axis=1))
    assert abs(ours - left) <= 50 * (np.finfo(parts[0].dtype).eps + 1e-8) * (1 + np.linalg.norm(both))


@given(makers(), few, st.integers(1, 3), width, width)
def test_each_heads_own_part_of_the_sum(make, n, h, d_v, d):
    H, W_o = make(h, n, d_v), make(h * d_v, d, most=1.0)
    updates, total = per_head_updates(H, W_o)
    expected = np.array([loops(H[r], W_o[r * d_v:(r + 1) * d_v]) for r in range(h)])
    most = d_v * size(H.ravel())
    equal(updates, expected, rounded(updates, make, most))
    equal(total, expected.sum(axis=0), rounded(total, make, h * most))


# A cache


@given(makers(largest=(1.0, 10.0), dtypes=(np.float16,)) | makers(dtypes=(np.float32, np.float64)),
       st.integers(1, 4), width, width, width)
def test_a_head_with_a_cache_reads_what_it_would_without(make, n, d, d_k, d_v):
    X, W_q, W_k, W_v = make(n, d), *(make(d, w, most=1.0) for w in (d_k, d_k, d_v))
    Q, K, V = (loops(X, W) for W in (W_q, W_k, W_v))
    room, cache = KVCache(1, n, d_k, d_v, make.dtype), None
    for t, x in enumerate(X):
        z, cache = kv_cache_step(x, W_q, W_k, W_v, cache)
        read(z, loop_head(Q[t:t + 1], K[:t + 1], V[:t + 1])[0], make,
             size(X, W_q, np.abs(W_k).T, np.abs(X).T), size(X, W_v))
        kept = room.append((x @ W_k)[None, None], (x @ W_v)[None, None], position=t)
        for ours, other in zip(cache, kept, strict=True):
            np.testing.assert_array_equal(ours, other[0])
    assert cache[0].nbytes == cache_bytes(1, 5, 1, d_k, n, make.dtype.itemsize) / 2
    assert room.nbytes == cache[0].nbytes + cache[1].nbytes


@given(st.integers(0, 99), st.integers(1, 3), st.integers(0, 3), st.integers(0, 2))
def test_a_small_model_generates_what_loops_generate(seed, n, n_new, n_layers):
    rng = np.random.default_rng(seed)
    E, P = rng.normal(size=(4, 3)), rng.normal(size=(n + n_new, 3))
    layers = [dict(zip(("W_q", "W_k", "W_v", "W_o"), rng.normal(size=(4, 3, 3)), strict=True))
              for _ in range(n_layers)]
    ids = [int(i) for i in rng.integers(0, 4, n)]
    ours = generate_with_cache(ids, n_new, {"E": E, "P": P, "layers": layers})
    for _ in range(n_new):
        X = np.array([[E[i][c] + P[t][c] for c in range(3)] for t, i in enumerate(ids)])
        for layer in layers:
            Z = loop_head(*(loops(X, layer[name]) for name in ("W_q", "W_k", "W_v")), True)
            X = X + loops(Z, layer["W_o"])
        logits = [slow.dot(X[-1], e) for e in E]
        ids.append(logits.index(max(logits)))
    assert ours == ids


@given(*[st.integers(1, 4)] * 4, st.integers(0, 4), st.sampled_from([2, 4, 8]))
def test_bytes_of_caches_are_those_of_arrays(layers, g, share, d, n, each):
    dtype = {2: np.float16, 4: np.float32, 8: np.float64}[each]
    held = [np.zeros((2, g, n, d), dtype) for _ in range(layers)]
    assert cache_bytes(layers, g * share, g, d, n, each) == sum(M.nbytes for M in held)
    latents = [np.zeros((n, d + share), dtype) for _ in range(layers)]
    assert latent_cache_bytes(layers, d, share, n, each) == sum(M.nbytes for M in latents)


# The next token


@given(makers(), st.integers(1, 3), st.integers(1, 6), st.sampled_from([0.0, 0.7, 3.0]), st.data())
def test_the_next_token_is_drawn_from_what_the_definition_leaves(make, n, V, temperature, data):
    logits = make(n, V)
    top_k = data.draw(st.none() | st.integers(1, 7))
    z = logits[-1].astype(np.float64).tolist()
    ranked = sorted(range(V), key=lambda i: (-z[i], i))[:1 if temperature == 0 else top_k]
    expected = slow.softmax([value / (temperature or 1) for value in z], [i in ranked for i in range(V)])
    p = next_probabilities(logits, temperature, top_k)
    equal(p, expected, 1e-9)
    drawn = sample_next(logits, np.random.default_rng(n), temperature, top_k)
    assert type(drawn) is int and drawn in ranked

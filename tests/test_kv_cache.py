"""With a cache and without: the same numbers, counted bytes, and what wrong use is told."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import matrix, sizes

from helpers.attention import single_head
from helpers.kv_cache import KVCache, cache_bytes, generate_with_cache, kv_cache_step


@given(st.data())
def test_one_token_at_a_time_equals_the_whole_causal_head(data):
    n, d_model, d_k, d_v = (data.draw(sizes) for _ in range(4))
    X = data.draw(matrix(n, d_model))
    weights = [data.draw(matrix(d_model, d)) for d in (d_k, d_k, d_v)]
    whole, cache = single_head(X, *weights, causal=True), None
    for t, x in enumerate(X):
        z, cache = kv_cache_step(x, *weights, cache)
        np.testing.assert_allclose(z, whole[t], rtol=1e-7, atol=1e-7)
        assert cache[0].shape == (t + 1, d_k) and cache[1].shape == (t + 1, d_v)


def test_two_continuations_of_one_cache_do_not_disturb_each_other():
    rng = np.random.default_rng(0)
    weights, (a, b, c) = rng.normal(size=(3, 4, 2)), rng.normal(size=(3, 4))
    _, start = kv_cache_step(a, *weights, None)
    before = start[0].copy(), start[1].copy()
    _, left = kv_cache_step(b, *weights, start)
    _, right = kv_cache_step(c, *weights, start)
    np.testing.assert_array_equal(start[0], before[0])
    np.testing.assert_array_equal(start[1], before[1])
    np.testing.assert_allclose(left[0][1], b @ weights[1])
    np.testing.assert_allclose(right[0][1], c @ weights[1])


def random_model(seed, n_layers=2, V=9, d=6, n_max=16):
    rng = np.random.default_rng(seed)
    shapes = {"W_q": (d, 4), "W_k": (d, 4), "W_v": (d, 3), "W_o": (3, d)}
    layers = [{name: rng.normal(size=shape) for name, shape in shapes.items()} for _ in range(n_layers)]
    return {"E": rng.normal(size=(V, d)), "P": rng.normal(size=(n_max, d)), "layers": layers}


def next_without_cache(ids, model):
    X = model["E"][ids] + model["P"][: len(ids)]
    for layer in model["layers"]:
        X = X + single_head(X, layer["W_q"], layer["W_k"], layer["W_v"], causal=True) @ layer["W_o"]
    return int(np.argmax(X[-1] @ model["E"].T))


@given(st.integers(0, 10_000), st.lists(st.integers(0, 8), min_size=1, max_size=5), st.integers(0, 6))
@settings(deadline=None)
def test_cached_generation_equals_full_recompute_at_every_step(seed, prompt, n_new):
    model = random_model(seed)
    expected = list(prompt)
    for _ in range(n_new):
        expected.append(next_without_cache(expected, model))
    before = list(prompt)
    assert generate_with_cache(prompt, n_new, model) == expected
    assert prompt == before


@given(st.data())
def test_the_preallocated_cache_holds_what_concatenation_would(data):
    heads, d_k, d_v = (data.draw(sizes) for _ in range(3))
    pieces = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=5))
    cache = KVCache(heads, max(sum(pieces), 1), d_k, d_v, dtype=np.float64)
    rng = np.random.default_rng(0)
    Ks, Vs = np.zeros((heads, 0, d_k)), np.zeros((heads, 0, d_v))
    for m in pieces:
        K, V = rng.normal(size=(heads, m, d_k)), rng.normal(size=(heads, m, d_v))
        Ks, Vs = np.concatenate([Ks, K], axis=1), np.concatenate([Vs, V], axis=1)
        K_all, V_all = cache.append(K, V, position=cache.n_tokens)
        np.testing.assert_array_equal(K_all, Ks)
        np.testing.assert_array_equal(V_all, Vs)
    assert cache.nbytes == Ks.nbytes + Vs.nbytes
    assert cache.nbytes == cache_bytes(1, heads, heads, d_k, sum(pieces), 4) + cache_bytes(
        1, heads, heads, d_v, sum(pieces), 4
    )


def test_what_a_cache_gives_back_cannot_be_written_to():
    cache = KVCache(1, 4, 2)
    K, _ = cache.append(np.ones((1, 2, 2)), np.ones((1, 2, 2)))
    with pytest.raises(ValueError, match="read-only"):
        K[0, 0, 0] = 5
    cache.append(np.ones((1, 2, 2)), np.ones((1, 2, 2)))
    assert cache.n_tokens == cache.n_max == 4


@pytest.mark.parametrize(("K", "V", "position"), [
    (np.ones((1, 3, 2)), np.ones((1, 3, 2)), None),         # no room
    (np.ones((1, 1, 2)), np.ones((1, 1, 3)), None),         # one of the two too wide
    (np.ones((1, 1, 2)), np.ones((1, 1, 2)), 1),            # out of step
])
def test_a_cache_that_refuses_stays_as_it_was(K, V, position):
    cache = KVCache(1, 4, 2)
    cache.append(np.full((1, 2, 2), 7), np.full((1, 2, 2), 8))
    with pytest.raises(ValueError):
        cache.append(K, V, position)
    assert (cache.n_tokens, cache.n_max, cache.sizes) == (2, 4, (1, 2, 2))
    assert (cache.K == 7).all() and (cache.V == 8).all()


def test_cache_bytes_of_published_models():
    assert cache_bytes(80, 64, 8, 128, 128_000) == 2 * 80 * 8 * 128 * 128_000 * 2
    int32 = [np.int32(x) for x in (80, 64, 64, 128, 128_000)]
    assert cache_bytes(*int32, batch=np.int32(8)) == 2 * 80 * 64 * 128 * 128_000 * 2 * 8 > 2**31
    assert cache_bytes(1, 2, 1, 3, 5, bytes_per_value=1, batch=7) == 2 * 3 * 5 * 7


ONE = np.ones((1, 1, 2))
W = np.ones((4, 2))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: KVCache(1, 1, 2).append(np.ones((1, 2, 2)), np.ones((1, 2, 2))),
            ValueError,
            "full: .* 0 of 1 .* 2 more",
        ),
        (
            lambda: KVCache(1, 4, 3).append(ONE, ONE),
            ValueError,
            r"K must have shape \(1, m, 3\) .* got \(1, 1, 2\)",
        ),
        (lambda: KVCache(2, 4, 2).append(ONE, ONE), ValueError, r"K must have shape \(2, m, 2\)"),
        (lambda: KVCache(1, 4, 2, 3).append(ONE, ONE), ValueError, r"V must have shape \(1, m, 3\)"),
        (lambda: KVCache(1, 4, 2).append(ONE, np.ones((1, 2, 2))), ValueError, "K and V must agree in m"),
        (
            lambda: KVCache(1, 4, 2).append(ONE, ONE, position=1),
            ValueError,
            "next position of this cache is 0, got 1",
        ),
        (lambda: KVCache(1, 0, 2), ValueError, "n_max must be at least 1"),
        (lambda: kv_cache_step(np.ones(3), W, W, W, None), ValueError, "x and W_q must agree in d_model"),
        (
            lambda: kv_cache_step(np.ones(4), W, W, W, (np.ones((2, 3)), np.ones((2, 2)))),
            ValueError,
            "cached K and W_k",
        ),
        (
            lambda: kv_cache_step(np.ones(4), W, W, W, (np.ones((2, 2)), np.ones((1, 2)))),
            ValueError,
            "agree in t",
        ),
        (lambda: generate_with_cache([], 1, random_model(0)), ValueError, "at least one id"),
        (lambda: generate_with_cache([9], 1, random_model(0)), ValueError, "0 … 8, got 9"),
        (lambda: generate_with_cache([0], 16, random_model(0)), ValueError, r"1 \+ 16 tokens do not fit"),
        (lambda: generate_with_cache([0], -1, random_model(0)), ValueError, "n_new must be at least 0"),
        (lambda: cache_bytes(1, 6, 4, 8, 10), ValueError, "n_kv_heads must divide n_heads, got 4 and 6"),
        (lambda: cache_bytes(1, 4, 4, 8.0, 10), TypeError, "d_head must be a whole number"),
    ],
)
def test_wrong_use_is_named_with_what_was_expected_and_what_came(call, error, words):
    with pytest.raises(error, match=words):
        call()

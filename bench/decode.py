"""Generation with the keys and values of the past kept, against computing everything again."""

import numpy as np

from bench.measure import Row, race
from helpers import tiny_model
from helpers.attention import attention
from helpers.kv_cache import KVCache
from helpers.multi_head import merge_heads, multi_head, split_heads

D_MODEL, N_HEADS = 512, 8


def rows(quick=False):
    seconds = 0.2 if quick else 1
    model, text = tiny_model.load(), "the cats near the dog sleep ."
    n_new = model.n_max - len(model.tokens(text))
    times = race({
        "cached": lambda: model.generate(text, n_new),
        "uncached": lambda: model.generate(text, n_new, cache=False),
    }, seconds)
    yield Row(f"tiny model, {n_new} words with a cache", times["cached"], "without", times["uncached"])
    for n in (128, 512) if quick else (128, 512, 2048):
        times = race(steps(n), seconds)
        yield Row(f"a layer's step at {n} tokens, cached", times["cached"], "not cached", times["uncached"])


def steps(n):
    """The newest token's row of one layer, with the n - 1 tokens before it in a cache, and without."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, D_MODEL)).astype(np.float32)
    W = W_q, W_k, W_v, W_o = (rng.normal(size=(4, D_MODEL, D_MODEL)) / D_MODEL**0.5).astype(np.float32)
    cache = KVCache(N_HEADS, n, D_MODEL // N_HEADS)
    cache.append(*(split_heads(X[:-1] @ M, N_HEADS) for M in (W_k, W_v)))

    def cached():
        cache.n_tokens = n - 1                                                  # the same step, every time
        Q, K, V = (split_heads(X[-1:] @ M, N_HEADS) for M in (W_q, W_k, W_v))   # (h, 1, d_head)
        return merge_heads(attention(Q, *cache.append(K, V))) @ W_o             # (1, d_model)

    def uncached():
        return multi_head(X, *W, N_HEADS, causal=True)[-1:]                     # (1, d_model)

    assert np.abs(cached() - uncached()).max() < 1e-3
    return {"cached": cached, "uncached": uncached}

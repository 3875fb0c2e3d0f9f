"""Many stories of the tiny model, written side by side: `write_stories`.

A step reads the newest word of every story at once, one product for all of them; word by word it is what
`TinyModel.generate` does. The caches hold all stories in one array: head j of story i is head i·h + j.
"""

import numpy as np

from helpers.arrays import came, count, generator, size
from helpers.attention import scaled_scores, softmax
from helpers.kv_cache import KVCache
from helpers.multi_head import layer_norm
from helpers.sampling import next_probabilities, sample_rows
from helpers.tiny_model.model import TinyModel


def write_stories(model, m, n_new, rng=None, temperature=1.0, top_k=None, top_p=None):
    """m stories of n_new words after "<bos>": each word the likeliest (greedy) or, with an rng, drawn.

    rng, temperature, top_k, top_p : as in `sample_next`; the stories draw in turn.  "<bos>" is never written.
    Returns a list of m lists of words, "<bos>" first.  Raises TypeError for what is no TinyModel, TypeError
    or ValueError for a count that makes no sense or more words than the model reads, and what `sample_next`
    raises.
    """
    if not isinstance(model, TinyModel):
        raise TypeError(f"model must be a TinyModel, got {came(model)}")
    m, n_new = size("m", m), count("n_new", n_new, most=model.n_max - 1)
    next_probabilities(np.zeros((1, 1)), temperature, top_k, top_p)         # refuses what cannot be
    rng = None if rng is None else generator("rng", rng)
    h, bos = model.n_heads, model.word_to_id["<bos>"]
    ids = np.full((m, n_new + 1), bos)
    caches = [KVCache(max(m, 1) * h, n_new + 1, model.d_k, model.d_v, model.E.dtype) for _ in model.layers]
    for t in range(n_new if m else 0):
        X = model.E[ids[:, t]] + model.P[t]                             # (m, d_model)
        for layer, cache in zip(model.layers, caches, strict=True):
            N = layer_norm(X, layer.gamma, layer.beta)
            Q, K, V = ((N @ W).reshape(m * h, 1, -1) for W in (layer.W_q, layer.W_k, layer.W_v))
            K, V = cache.append(K, V, position=t)                       # (m·h, 1, d) -> (m·h, t + 1, d)
            Z = softmax(scaled_scores(Q, K)) @ V                        # (m·h, 1, d_v)
            X = X + Z.reshape(m, -1) @ layer.W_o                        # (m, h·d_v) -> (m, d_model)
        logits = layer_norm(X, model.gamma, model.beta) @ model.W_t     # (m, V)
        logits[:, bos] = -np.inf
        if rng is None:
            ids[:, t + 1] = logits.argmax(axis=1)
        else:
            ids[:, t + 1] = sample_rows(logits.astype(np.float64), rng, temperature, top_k, top_p)
    return [[model.vocab[i] for i in story] for story in ids]

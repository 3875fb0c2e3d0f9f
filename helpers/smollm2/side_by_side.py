"""One text continued several times at once by the language model: `write_side_by_side`.

A step reads the newest token of every continuation, and the weights, 540 MB, once for all of them; that
reading is what a step waits for. Each continuation has its own past, so attention goes by continuation.
"""

import copy

import numpy as np

from helpers import arrays as given
from helpers.smollm2.model import END, drawer, known, rms_norm, settings_of

SETTINGS = ("temperature", "top_k", "top_p", "rng")


def write_side_by_side(model, text, draws, n_new=100):
    """Continue a text once for each of `draws`, each as `model.generate(text, n_new, **draw)` does.

    draws : dicts of temperature, top_k, top_p and rng, what `generate_ids` takes; an rng for each.
    Returns a list of strings.  Raises TypeError or ValueError for what `generate_ids` refuses.
    """
    ids, n_new, c = known(model).ids(text), given.size("n_new", n_new), model.config
    draws = given.listed("draws", draws, "dicts, such as {'temperature': 0.8}")
    for draw in draws:
        if not isinstance(draw, dict) or not set(draw) <= set(SETTINGS):
            raise TypeError(f"each of draws must be a dict of {', '.join(SETTINGS)}, got {draw!r}")
    settings = [settings_of(draw.get("temperature", 0.0), draw.get("top_k"), draw.get("top_p"))
                for draw in draws]
    rngs = [drawer(draw.get("rng")) for draw in draws]
    model._fits(len(ids), n_new)
    caches = model.new_caches(len(ids) + n_new)
    for X_out in model.read(ids, caches):                   # noqa: B007  the last counts
        pass
    pasts = [[copy.deepcopy(cache) for _ in draws] for cache in caches]     # of each layer, for each draw
    X_out = np.repeat(X_out[-1:], len(draws), axis=0)       # (m, d_model)
    end, written = model.tokenizer.id_of(END), [[] for _ in draws]
    for t in range(n_new):
        logits = model.to_vocabulary(X_out)                 # (m, V)
        for j, one in enumerate(written):
            one.append(model.functions.next_token(logits[j:j + 1], rngs[j], *settings[j]))
        if t == n_new - 1 or all(end in one for one in written):
            break
        newest, positions = [one[-1] for one in written], np.full(len(draws), len(ids) + t)
        X = model.functions.embed(np.array(newest), model.weights.E)        # (m, d_model)
        for i, past in enumerate(pasts):
            X, _ = model.layer(i, X, positions, past)
        X_out = rms_norm(X, model.weights.final_norm, c.norm_eps)
    return [model.tokenizer.decode(one[:one.index(end)] if end in one else one) for one in written]

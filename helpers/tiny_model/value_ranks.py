"""The tiny model with thinner value maps: what it loses when W_v W_o of a head is cut to rank r.

`thin_values` makes such a model, `measured` its loss for every r. That takes a second a head, so the losses
of the shipped model are kept in value_ranks.json; `losses` reads them there. To write the file anew:

    python -m helpers.tiny_model.value_ranks
"""

import zlib
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from helpers import arrays as given
from helpers.low_rank import low_rank_factors
from helpers.tiny_model.measure import cross_entropy
from helpers.tiny_model.model import load, tiny, to_arrays
from helpers.tiny_model.stored import figures_in, save_figures

KEPT = Path(__file__).with_name("value_ranks.json")


def value_map(model, layer, head):
    """W_v W_o of one head, (d_model, d_model): what a word that is read adds to the word that reads."""
    layer = given.count("layer", layer, most=len(tiny(model).layers) - 1)
    head = given.count("head", head, most=model.n_heads - 1)
    own, weights = slice(head * model.d_v, (head + 1) * model.d_v), model.layers[layer]
    return weights.W_v[:, own] @ weights.W_o[own]           # (d_model, d_v) @ (d_v, d_model)


def best_map(M, r):
    """The closest matrix of rank at most r; zeros for r = 0."""
    M = given.array("M", M, ("m", "k"))
    r = given.count("r", r, most=min(M.shape))
    return np.matmul(*low_rank_factors(M, r)) if r else np.zeros_like(M)


def thin_values(model, r, heads=None):
    """The model with the value maps of some heads cut to rank r, 0 … d_v; of all heads by default.

    heads : (layer, head) pairs.  The widths stay: what is cut are zeros.
    """
    layers, d_v = [], tiny(model).d_v
    r = given.count("r", r, most=d_v)
    heads = None if heads is None else given.pairs("heads", heads, len(model.layers), model.n_heads)
    for number, layer in enumerate(model.layers):
        W_v, W_o = layer.W_v.copy(), layer.W_o.copy()
        for head in range(model.n_heads):
            if heads is None or (number, head) in heads:
                own, kept = slice(head * d_v, (head + 1) * d_v), slice(head * d_v, head * d_v + r)
                W_v[:, own], W_o[own] = 0, 0
                if r:
                    W_v[:, kept], W_o[kept] = low_rank_factors(value_map(model, number, head), r)
        layers.append(replace(layer, W_v=W_v, W_o=W_o))
    return replace(model, layers=layers)


def measured(model, heads=None):
    """The loss in nats a word for each r = 0 … d_v, a list of floats."""
    return [cross_entropy(thin_values(model, r, heads))[0] for r in range(tiny(model).d_v + 1)]


def losses(model, head=None):
    """The loss for each r = 0 … d_v when one head (layer, head) is cut, or all of them: a list of floats.

    From the file for the shipped model, else measured.
    """
    if head is not None:
        head, = given.pairs("head", [head], len(tiny(model).layers), model.n_heads)
    stored = kept()
    if stored["weights"] == fingerprint(model):
        return stored["losses"][name(head)]
    return measured(model, None if head is None else [head])


@cache
def kept():
    return figures_in(KEPT)


def name(head):
    """The head's name in the file: "1.3", or "all"."""
    return "all" if head is None else f"{head[0]}.{head[1]}"


def fingerprint(model):
    """A number that tells these weights from others."""
    arrays = [M for M in to_arrays(model).values() if M.dtype.kind == "f"]
    return zlib.crc32(b"".join(M.astype("<f4").tobytes() for M in arrays))


def write(path=KEPT):
    """Measure the shipped model and write the file."""
    model = load()
    heads = [None, *((layer, head) for layer in range(len(model.layers)) for head in range(model.n_heads))]
    found = {name(head): [round(loss, 9) for loss in measured(model, head and [head])] for head in heads}
    save_figures(path, {"weights": fingerprint(model), "losses": found})


if __name__ == "__main__":
    write()

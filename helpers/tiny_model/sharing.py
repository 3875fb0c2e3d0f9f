"""The tiny model with fewer keys and values: heads that share them, or one narrow row a token (notebook 07).

Read the two ways, `Groups` and `Latent`, then `convert` and `fine_tune`. The model stays a TinyModel: its W_k
and W_v are *expanded*, with columns for every head, made from the fewer numbers that are free. The gradient
by these follows from the gradient by the expanded ones.

A fine-tune takes a few seconds, so the losses of the shipped model, before and after, are kept in
sharing.json, and its fine-tuned form with two KV heads in weights_gqa.npz. To make both anew:

    python -m helpers.tiny_model.sharing

The latents start from the singular values of the weights. With those of the keys and values of real stories
the ranks from 24 up start a little better, and those below 16 worse.
"""

from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

from helpers import arrays as given
from helpers.low_rank import low_rank_factors
from helpers.tiny_model import measure
from helpers.tiny_model.gradients import loss_and_gradients
from helpers.tiny_model.model import from_arrays, load, save, tiny, to_arrays
from helpers.tiny_model.stored import figures_in, save_figures
from helpers.tiny_model.train import BATCH, SEED, descend, flatten, how_long, one_thread
from helpers.tiny_model.value_ranks import fingerprint

KEPT, GROUPED = (Path(__file__).with_name(name) for name in ("sharing.json", "weights_gqa.npz"))
STEPS, PEAK_RATE = 100, 3e-3        # a twentieth of the steps of training, at half its rate


@dataclass(frozen=True)
class Groups:
    """Heads in groups that stand side by side; each group has one key and one value a token."""

    n_kv_heads: int

    def __post_init__(self):
        given.count("n_kv_heads", self.n_kv_heads, least=1)

    def numbers(self, model):
        """How many numbers a layer keeps of a token."""
        return self.n_kv_heads * (tiny(model).d_k + model.d_v)

    def parts(self, W_k, W_v, n_heads):
        """The free weights: the mean of the heads of each group (Ainslie et al. 2023, §2.1)."""
        W_k, W_v = columns_of(W_k, W_v, n_heads)
        return {name: self.in_groups(W, n_heads).mean(axis=2).reshape(len(W), -1)
                for name, W in (("W_k", W_k), ("W_v", W_v))}

    def expand(self, parts, n_heads):
        """W_k and W_v (d, h * d_head): the columns of each group, once for every head in it."""
        shared = (parts[name].reshape(len(parts[name]), self.n_kv_heads, -1) for name in ("W_k", "W_v"))
        return [np.repeat(W, n_heads // self.n_kv_heads, axis=1).reshape(len(W), -1) for W in shared]

    def back(self, parts, d_W_k, d_W_v, n_heads):
        """From the gradient by the expanded weights to that by the parts: what is used by many adds up."""
        return {name: self.in_groups(d, n_heads).sum(axis=2).reshape(len(d), -1)
                for name, d in (("W_k", d_W_k), ("W_v", d_W_v))}

    def in_groups(self, W, n_heads):
        """(d, h * d_head) -> (d, g, h/g, d_head)."""
        if n_heads % self.n_kv_heads:
            raise ValueError(f"n_kv_heads must divide the heads, got {self.n_kv_heads} and {n_heads}")
        return W.reshape(len(W), self.n_kv_heads, n_heads // self.n_kv_heads, -1)


@dataclass(frozen=True)
class Latent:
    """One row of r numbers a token, from which the keys and values of all heads are made."""

    r: int

    def __post_init__(self):
        given.count("r", self.r, least=1)

    def numbers(self, model):
        """How many numbers a layer keeps of a token."""
        return tiny(model) and self.r

    def parts(self, W_k, W_v, n_heads):
        """W_down (d, r), W_up_k and W_up_v (r, ·): the closest thin product for the two side by side."""
        W_k, W_v = columns_of(W_k, W_v, n_heads)
        W_down, W_up = low_rank_factors(np.hstack([W_k, W_v]), self.r)
        return {"W_down": W_down, "W_up_k": W_up[:, :W_k.shape[1]], "W_up_v": W_up[:, W_k.shape[1]:]}

    def expand(self, parts, n_heads):
        """W_k and W_v (d, h * d_head), each of rank at most r."""
        return parts["W_down"] @ parts["W_up_k"], parts["W_down"] @ parts["W_up_v"]

    def back(self, parts, d_W_k, d_W_v, n_heads):
        """From the gradient by the expanded weights to that by the parts."""
        return {"W_down": d_W_k @ parts["W_up_k"].T + d_W_v @ parts["W_up_v"].T,
                "W_up_k": parts["W_down"].T @ d_W_k, "W_up_v": parts["W_down"].T @ d_W_v}


def columns_of(W_k, W_v, n_heads):
    """W_k and W_v (d, ·) as arrays; TypeError or ValueError unless n_heads divides the columns of both."""
    W_k, W_v = given.array("W_k", W_k, ("d", "·")), given.array("W_v", W_v, ("d", "·"))
    given.same_size("d", ("W_k", W_k), ("W_v", W_v), axis=(0, 0))
    n_heads = given.count("n_heads", n_heads, least=1)
    for name, W in (("W_k", W_k), ("W_v", W_v)):
        if W.shape[1] % n_heads or not W.size:
            raise ValueError(f"n_heads must divide the columns of {name}, got {n_heads} and {W.shape}")
    return W_k, W_v


WAYS = {"MHA": Groups(4), "GQA": Groups(2), "MQA": Groups(1),
        **{f"r = {r}": Latent(r) for r in (48, 24, 16, 12, 8, 6)}}


def convert(model, way):
    """The model with its keys and values cut down, and not trained any further.  Returns a TinyModel.

    way : a Groups or a Latent.  Raises ValueError when the groups do not divide the heads, or when the
    latent is wider than a token.
    """
    known(way)
    return from_arrays(to_arrays(model) | expanded(free_weights(model, way), way, model))


def known(way):
    """TypeError when it is neither Groups nor a Latent."""
    if not isinstance(way, (Groups, Latent)):
        raise TypeError(f"way must be a Groups or a Latent, such as Groups(2), got {given.came(way)}")


def fine_tune(model, way, steps=STEPS, batch=BATCH, show=print):
    """The converted model, trained on for a while with all its weights free.  Returns a TinyModel.

    In float64, so that it comes out the same on every machine but for the last digits.  show : called with
    each line of progress, or None.
    """
    known(way)
    steps, batch = how_long(steps, batch, show)
    row, w = flatten(free_weights(model, way), np.float64)

    def slope(*words):
        loss, gradients = loss_and_gradients(expanded(w, way, model), *words, model.n_heads)
        return loss, free_gradients(gradients, w, way, model)

    descend(row, w, slope, np.random.default_rng(SEED), steps, batch, PEAK_RATE, show)
    return from_arrays(to_arrays(model) | expanded(w, way, model))


def free_weights(model, way):
    """What is trained: a dict of arrays, the parts of `way` in the place of each layer's W_k and W_v."""
    w = {name: M for name, M in to_arrays(model).items()
         if M.dtype.kind == "f" and not name.endswith((".W_k", ".W_v"))}
    for i, layer in enumerate(model.layers):
        parts = way.parts(layer.W_k, layer.W_v, model.n_heads)
        w |= {f"layer{i}.{name}": M for name, M in parts.items()}
    return w


def expanded(w, way, model):
    """The free weights w, and each layer's W_k and W_v with columns for every head, made from them."""
    full = dict(w)
    for i in range(len(model.layers)):
        full[f"layer{i}.W_k"], full[f"layer{i}.W_v"] = way.expand(parts_of(w, i), model.n_heads)
    return full


def free_gradients(g, w, way, model):
    """The gradient by the free weights w, from the gradient g by the expanded ones: the chain rule."""
    free = dict(g)
    for i in range(len(model.layers)):
        parts = way.back(parts_of(w, i), g[f"layer{i}.W_k"], g[f"layer{i}.W_v"], model.n_heads)
        free |= {f"layer{i}.{name}": M for name, M in parts.items()}
    return free


def parts_of(w, i):
    """The arrays of layer i, by their names there."""
    return {name.partition(".")[2]: M for name, M in w.items() if name.startswith(f"layer{i}.")}


@dataclass(frozen=True)
class Result:
    """What one way keeps, and what it costs."""

    numbers: int          # kept of a token, by each layer
    before: float         # loss after the conversion, nats a word
    after: float          # loss after the fine-tune
    right_before: dict    # kind of word -> share that is right
    right_after: dict

    @classmethod
    def of(cls, model, way, show=None):
        """(Result, the fine-tuned model) of one way, measured."""
        tuned, cut = fine_tune(model, way, show=show), convert(model, way)
        losses = [round(measure.cross_entropy(m)[0], 6) for m in (cut, tuned)]
        right = [{kind: round(share, 4) for kind, share in measure.accuracy(m).items()} for m in (cut, tuned)]
        return cls(way.numbers(model), *losses, *right), tuned


def results():
    """The losses of the shipped model for each of WAYS, from the file: dict of name -> Result."""
    return {name: Result(**found) for name, found in kept()["ways"].items()}


@cache
def kept():
    return figures_in(KEPT)


def write(folder=KEPT.parent, show=print):
    """Fine-tune the shipped model in each of WAYS and write both files."""
    model, found = load(), {}
    for name, way in WAYS.items():
        show(f"{name}: {way.numbers(model)} numbers a token and layer")
        found[name], tuned = Result.of(model, way, show)
        show(f"loss {found[name].before:.3f} before, {found[name].after:.3f} after")
        if name == "GQA":
            save(tuned, folder / GROUPED.name)
    ways = {name: asdict(result) for name, result in found.items()}
    save_figures(folder / KEPT.name, {"weights": fingerprint(model), "ways": ways})


if __name__ == "__main__":
    one_thread(lambda: write(show=partial(print, flush=True)))

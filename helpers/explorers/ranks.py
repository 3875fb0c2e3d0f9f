"""How many directions a head's value map needs: `Rank`."""

import numpy as np

from helpers import tiny_model
from helpers.explorers.base import Explorer, choice, slider, stepper
from helpers.figures import value_rank
from helpers.figures.words import number, rounded
from helpers.tiny_model.value_ranks import best_map, losses, value_map


class Rank(Explorer):
    """A head's W_v W_o cut to rank r: what is left of it, and what the model loses."""

    def __init__(self, layer, head, r):
        super().__init__()
        self.model = tiny_model.load()
        self.measures = {}                                    # (layer, head) -> what does not hang on r
        self.layer = choice("layer", range(len(self.model.layers)), layer)
        self.head = choice("head", range(self.model.n_heads), head)
        self.r = slider("rank r", self.model.d_v, r, "how many singular values are kept", argument="r")
        self.back, self.on = stepper(self.r)
        self.assemble([self.layer, self.head], [self.r, self.back, self.on])

    def measure(self):
        """The chosen head's singular values (d_v,), errors (d_v + 1,), numbers (d_v + 1,), and losses."""
        at, d_v = (self.layer.value, self.head.value), self.model.d_v
        if at not in self.measures:
            M = value_map(self.model, *at)                    # (d_model, d_model)
            strengths = np.linalg.svd(M, compute_uv=False)[:d_v]
            errors = [np.linalg.norm(M - best_map(M, r)) / np.linalg.norm(M) for r in range(d_v + 1)]
            counts = [2 * self.model.d_model * r for r in range(d_v + 1)]
            curves = {"this head cut": losses(self.model, at), "all heads cut": losses(self.model)}
            self.measures[at] = strengths, errors, counts, curves
        return self.measures[at]

    def picture(self):
        strengths, errors, counts, curves = self.measure()
        r, d_v = self.r.value, len(strengths)
        name = f"layer {self.layer.value}, head {self.head.value}"
        rise = curves["this head cut"][r] - curves["this head cut"][d_v]
        change = f"{'rises' if rise > 0 else 'falls'} by {number(abs(rise), 3)}"
        if rounded(rise, 3) == 0:
            change = "stays the same"
        said = "nothing is cut" if r == d_v else f"error {number(errors[r])}, the loss {change}"
        title = f"Rank {r} of {d_v} in {name}: {said}"
        note = ("Error: the size of what is cut, as a share of the whole map's (Frobenius norm). "
                "Loss: on stories the model has not read.")
        return value_rank.value_rank(r, strengths, errors, counts, curves, title, note)

"""One head of the tiny model on one text: `Similarity`, `ValueReading`, `StepThrough`."""

import math

import ipywidgets as widgets
import numpy as np

from helpers.attention import scores
from helpers.explorers.base import Reading, choice, stepper
from helpers.figures import heads
from helpers.figures.words import number


class OneHead(Reading):
    """One head of the tiny model on one text, with a word chosen as the query."""

    def __init__(self, text, layer, head, query):
        super().__init__(text)
        self.layer = choice("layer", range(len(self.model.layers)), layer)
        self.head = choice("head", range(self.model.n_heads), head)
        self.query = widgets.ToggleButtons(description="query").add_class("sa-query")
        self.offer_tokens(self.query, query)

    def new_text(self):
        self.offer_tokens(self.query)

    def state(self):
        """(the chosen layer's LayerTrace, head, position of the query)."""
        return self.trace.layers[self.layer.value], self.head.value, self.query.value


class Similarity(OneHead):
    """Every key's dot product with the query, its scaled score and its weight."""

    def __init__(self, text, layer, head, query):
        super().__init__(text, layer, head, query)
        self.assemble([self.text], [self.layer, self.head], [self.query])

    def picture(self):
        at, head, i = self.state()
        dots = scores(at.Q[head], at.K[head])[i]              # (n,)
        return heads.similarity(self.names, i, dots, at.S[head, i], at.A[head, i], self.model.d_k)


class ValueReading(OneHead):
    """The parts that add up to what the query takes away."""

    def __init__(self, text, layer, head, query):
        super().__init__(text, layer, head, query)
        self.assemble([self.text], [self.layer, self.head], [self.query])

    def picture(self):
        at, head, i = self.state()
        A = at.A[head, i]                                     # (n,)
        parts = A[:, None] * at.V[head]                       # (n, 1) * (n, d_v) -> (n, d_v)
        return heads.value_reading(self.names, i, A, parts, at.Z[head, i])


class StepThrough(OneHead):
    """Score, scale, mask, softmax, sum: one array after the other, forth and back."""

    def __init__(self, text, layer, head, query, step):
        super().__init__(text, layer, head, query)
        names = [f"{s + 1} {name}" for s, name in enumerate(heads.STEPS)]
        self.step = choice("step", range(len(names)), step, names)
        self.back, self.on = stepper(self.step)
        self.assemble([self.text], [self.layer, self.head], [self.query], [self.step, self.back, self.on])

    def picture(self):
        at, head, i = self.state()
        Q, K, S, A, Z = at.Q[head], at.K[head], at.S[head], at.A[head], at.Z[head]
        (n, d_k), d_v, step = Q.shape, Z.shape[1], self.step.value
        M, role, title, formula = (
            lambda: (scores(Q, K), "S", "Every query meets every key: one dot product a cell",
                     f"Q Kᵀ: ({n}, {d_k}) @ ({d_k}, {n}) → ({n}, {n})"),
            lambda: (S, "S", f"The same scores, each divided by √{d_k} = {number(math.sqrt(d_k))}",
                     f"S = Q Kᵀ / √d_k: ({n}, {n})"),
            lambda: (np.where(np.tri(n, dtype=bool), S, -np.inf), "S",
                     "A word may read itself and what came before; all else becomes −∞",
                     f"S with −∞ where the mask forbids: ({n}, {n})"),
            lambda: (A, "A", "Each row becomes shares that add up to 1; −∞ becomes 0",
                     f"A = softmax of each row: ({n}, {n})"),
            lambda: (Z, "Z", "Each row of A mixes the values: what every word takes away",
                     f"Z = A V: ({n}, {n}) @ ({n}, {d_v}) → ({n}, {d_v})"),
        )[step]()
        first, end = heads.window(n, i)
        words, note = self.names[first:end], heads.windowed(n, first, end, summed=step == 3)
        M, columns, sums = M[first:end], None, None           # Z has a column for each of d_v numbers
        if step < 3:
            M, columns = M[:, first:end], words
        elif step == 3:
            sums, M = M.sum(axis=1), heads.weights_in(A, first, end)
            columns = heads.columns_in(self.names, first, end)
            best = heads.largest(A[i])
            if note:
                note += (f" “{self.names[i]}” gives its largest weight to “{self.names[best]}”: "
                         f"{number(A[i, best])}.")
        return heads.step(step, words, i - first, M, title, formula, columns, sums, role, note)

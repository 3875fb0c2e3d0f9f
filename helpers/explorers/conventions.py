"""A word as a row and a word as a column: `RowOrColumn`."""

import math

import ipywidgets as widgets
import numpy as np

from helpers.attention import attention_weights, causal_mask
from helpers.explorers.base import Reading, choice, stepper
from helpers.figures.both_ways import both_ways
from helpers.figures.heads import window, windowed
from helpers.figures.words import number

STEPS = ("X", "Q", "K", "S", "mask", "A", "V", "Z")
WHAT = {"X": "words", "Q": "queries", "K": "keys", "S": "scores", "A": "weights", "V": "values",
        "Z": "what is taken away"}


class RowOrColumn(Reading):
    """One head's way from words to Z in row form and in column form, step by step."""

    def __init__(self, text, layer, head, query, step):
        super().__init__(text)
        self.layer = choice("layer", range(len(self.model.layers)), layer)
        self.head = choice("head", range(self.model.n_heads), head)
        self.query = widgets.ToggleButtons(description="query").add_class("sa-query")
        self.offer_tokens(self.query, query)
        names = [f"{s + 1} {name}" for s, name in enumerate(STEPS)]
        self.step = choice("step", range(len(names)), step, names)
        self.back, self.on = stepper(self.step)
        self.assemble([self.text], [self.layer, self.head], [self.query], [self.step, self.back, self.on])

    def new_text(self):
        self.offer_tokens(self.query)

    def forms(self):
        """{name: (array in row form, array in column form)}, each computed in its own convention."""
        layer, d_k = self.model.layers[self.layer.value], self.model.d_k
        own = slice(self.head.value * d_k, (self.head.value + 1) * d_k)               # d_v = d_k
        W_q, W_k, W_v = (W[:, own] for W in (layer.W_q, layer.W_k, layer.W_v))
        X = self.trace.layers[self.layer.value].N                           # (n, d_model)
        X_c, W_q_c, W_k_c, W_v_c = X.T, W_q.T, W_k.T, W_v.T                 # as a column writer has them
        Q, Q_c = X @ W_q, W_q_c @ X_c                                       # (n, d_k)    (d_k, n)
        K, K_c = X @ W_k, W_k_c @ X_c                                       # (n, d_k)    (d_k, n)
        V, V_c = X @ W_v, W_v_c @ X_c                                       # (n, d_v)    (d_v, n)
        S, S_c = Q @ K.T / math.sqrt(d_k), Q_c.T @ K_c / math.sqrt(d_k)     # (n, n)      (n, n)
        mask = causal_mask(len(X))
        M, M_c = np.where(mask, S, -np.inf), np.where(mask, S_c, -np.inf)   # (n, n)      (n, n)
        A, A_c = attention_weights(S, mask), attention_weights(S_c, mask)   # (n, n)      (n, n)
        Z, Z_c = A @ V, V_c @ A_c.T                                         # (n, d_v)    (d_v, n)
        return {"X": (X, X_c), "Q": (Q, Q_c), "K": (K, K_c), "S": (S, S_c), "mask": (M, M_c),
                "A": (A, A_c), "V": (V, V_c), "Z": (Z, Z_c)}

    def formulas(self, name, n):
        """What is computed, with its shapes, in row and in column form."""
        d, d_k = self.model.d_model, self.model.d_k
        if name in "QKV":
            w = f"W_{name.lower()}"
            return (f"{name} = X {w}: ({n}, {d}) @ ({d}, {d_k}) → ({n}, {d_k})",
                    f"{name} = {w} X: ({d_k}, {d}) @ ({d}, {n}) → ({d_k}, {n})")
        return {
            "X": (f"X: ({n}, {d})", f"X: ({d}, {n})"),
            "S": (f"S = Q Kᵀ / √{d_k}: ({n}, {d_k}) @ ({d_k}, {n}) → ({n}, {n})",
                  f"S = Qᵀ K / √{d_k}: ({n}, {d_k}) @ ({d_k}, {n}) → ({n}, {n})"),
            "mask": (f"S with −∞ where the mask forbids: ({n}, {n})",) * 2,
            "A": (f"A = softmax of each masked row: ({n}, {n})",) * 2,
            "Z": (f"Z = A V: ({n}, {n}) @ ({n}, {d_k}) → ({n}, {d_k})",
                  f"Z = V Aᵀ: ({d_k}, {n}) @ ({n}, {n}) → ({d_k}, {n})"),
        }[name]

    def picture(self):
        name, i, n = STEPS[self.step.value], self.query.value, len(self.names)
        row, column = self.forms()[name]
        square, word = name in ("S", "mask", "A"), f"“{self.names[i]}”"
        other = column if square else column.T
        finite = np.isfinite(row) | np.isfinite(other)
        off = number(np.abs(row[finite] - other[finite]).max())
        if square:
            title = ("Mask: in both, a row may read up to its own word; the words after become −∞"
                     if name == "mask" else
                     f"{name}, {WHAT[name]}: the same matrix in both, row for row")
            note = f"{word} has row {i} on both sides. Largest difference of the two: {off}."
            if name == "S":
                note += " Nothing is hidden yet: the mask comes next."
            elif name == "A":
                note += " Softmax runs over the keys, along each row, in both: each row adds up to 1."
        else:
            title = f"{name}, {WHAT[name]}: the row of a word on the left is its column on the right"
            note = f"Outlined: {word}. Largest difference of the one and the other transposed: {off}."
            if name in "QKV":
                note += f" A column writer's W_{name.lower()} is ours transposed."
            if name == "X":
                note += " X as the head gets it, after the norm."
        first, end = window(n, i)
        sums = row[first:end].sum(axis=1) if name == "A" else None
        row = row[first:end]
        column = column[first:end] if square else column[:, first:end]
        if square:
            row, column = row[:, first:end], column[:, first:end]
        note = f"{note} {windowed(n, first, end)}".strip()
        return both_ways(self.step.value, STEPS, self.names[first:end], i - first, row, column,
                         self.formulas(name, n), "S" if name == "mask" else name, title, note, sums)

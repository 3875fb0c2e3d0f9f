"""Where the causal mask belongs: `CausalMask`."""

import ipywidgets as widgets
import numpy as np

from helpers.attention import attention_weights, causal_mask, softmax
from helpers.explorers.base import Reading, choice
from helpers.figures.mask_ways import mask_ways
from helpers.figures.style import SHOWN
from helpers.figures.words import number, rounded

WAYS = {"off": "no mask", "before": "before softmax", "after": "after softmax", "divided": "after, ÷ sum"}
NOTES = {
    "off": "Softmax over all words: what a word takes away depends on what comes after it.",
    "before": "The hidden scores become −∞, and e^−∞ is 0: no weight depends on them, however large.",
    "after": "Each weight was divided by a sum with the hidden words in it. They no longer pass on values, "
             "but their scores still change every visible weight.",
    "divided": "The sum over all words cancels, so this is the same as masking before, until the visible "
               "weights are too small for a number.",
}
TRY = {"after": "Raise them and see.", "divided": "Raise the hidden scores by 1000."}     # until that is done
RAISED = {0: "as they are", 5: "+ 5", 1000: "+ 1000"}


class CausalMask(Reading):
    """One head's pattern without mask, masked before softmax, after it, and after it and divided again."""

    def __init__(self, text, layer, head, query, mask, raised):
        super().__init__(text)
        self.layer = choice("layer", range(len(self.model.layers)), layer)
        self.head = choice("head", range(self.model.n_heads), head)
        self.query = widgets.ToggleButtons(description="query").add_class("sa-query")
        self.offer_tokens(self.query, len(self.trace.tokens) // 2 if query is None else query)
        self.mask = choice("mask", WAYS, mask, list(WAYS.values()))
        self.raised = choice("hidden scores", RAISED, raised, list(RAISED.values()), argument="raised")
        self.assemble([self.text], [self.layer, self.head], [self.query], [self.mask], [self.raised])

    def new_text(self):
        self.offer_tokens(self.query, len(self.trace.tokens) // 2)

    def patterns(self):
        """{way: A (n, n)}, the hidden scores raised first."""
        S = self.trace.layers[self.layer.value].S[self.head.value]        # (n, n), nothing masked
        mask = causal_mask(len(S))
        S = S + self.raised.value * ~mask
        off = softmax(S)
        after = off * mask
        with np.errstate(invalid="ignore"):                   # 0 / 0 where no visible weight is left
            divided = after / after.sum(axis=1, keepdims=True)
        return {"off": off, "before": attention_weights(S, mask), "after": after, "divided": divided}

    def picture(self):
        ways, i, way = self.patterns(), self.query.value, self.mask.value
        names, n = self.names, len(self.names)
        word, hidden = f"“{names[i]}”", ways["off"][i, i + 1:]
        lost, total = number(hidden.sum()), number(ways["after"][i].sum())
        if i == n - 1:
            title = f"Nothing is hidden from the last word, {word}: its row is the same in every way"
        elif way == "off":
            most = i + 1 + max(range(len(hidden)), key=lambda j: rounded(hidden[j]))
            title = (f"No mask: {word} gives {lost} of its weight to words it must not read, "
                     f"most of it to “{names[most]}”")
        elif way == "before":
            title = "Masked before softmax: hidden words get 0, and every row adds up to 1"
        elif way == "after":
            title = f"Masked after softmax: the row of {word} adds up to {total}, hidden words took {lost}"
        elif np.isnan(ways["divided"][i]).any():
            title = f"Divided by the sum: the visible weights of {word} were rounded to 0, and 0 / 0 is NaN"
        else:
            off = number(np.abs(ways["divided"] - ways["before"])[i].max())
            title = f"Divided by the sum: the weights of masking before (largest difference {off})"
        tip = "" if self.raised.value else TRY.get(way, "")
        note = " ".join(filter(None, [NOTES[way], tip, "Dashed: what lies right of it must not be read."]))
        if n > SHOWN:
            note += f" {n} words; those around the query are shown."
        return mask_ways(names, i, {WAYS[key]: A for key, A in ways.items()}, WAYS[way], title, note)

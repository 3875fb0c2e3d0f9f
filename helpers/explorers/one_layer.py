"""What a layer writes, head by head: `ConcatOrSum`."""

import ipywidgets as widgets
import numpy as np

from helpers.explorers.base import Reading, choice, slider, stepper
from helpers.figures import head_sum
from helpers.figures.words import number
from helpers.low_rank import per_head_updates
from helpers.multi_head import merge_heads


class ConcatOrSum(Reading):
    """Heads side by side through W_o, against the sum of each head through its own rows of W_o."""

    def __init__(self, text, layer, query, added, column):
        super().__init__(text)
        h, d_model = self.model.n_heads, self.model.d_model
        self.layer = choice("layer", range(len(self.model.layers)), layer)
        self.query = widgets.ToggleButtons(description="query").add_class("sa-query")
        self.offer_tokens(self.query, query)
        self.added = choice("heads added", range(h + 1), h if added is None else added, argument="added")
        self.back, self.on = stepper(self.added)
        if column is None:
            column = int(np.argmax(np.abs(self.parts()[3]).round(6)))
        self.column = slider("column", d_model - 1, column, "the column whose numbers are written out")
        self.left, self.right = stepper(self.column, "◀ column", "column ▶", "column")
        self.assemble([self.text], [self.layer], [self.query], [self.added, self.back, self.on],
                      [self.column, self.left, self.right])

    def new_text(self):
        self.offer_tokens(self.query)

    def parts(self):
        """z (h, d_v), W_o, the heads' updates (h, d_model), and concat · W_o (d_model,) for the query."""
        i, W_o = self.query.value, self.model.layers[self.layer.value].W_o
        Z = self.trace.layers[self.layer.value].Z[:, i:i + 1]               # (h, 1, d_v)
        updates, _ = per_head_updates(Z, W_o)                               # (h, 1, d_model)
        return Z[:, 0], W_o, updates[:, 0], (merge_heads(Z) @ W_o)[0]       # (1, h·d_v) -> (1, d_model)

    def picture(self):
        z, W_o, updates, total = self.parts()
        added, h = self.added.value, len(z)
        running = updates[:added].sum(axis=0)                               # (d_model,)
        off = np.abs(total - running).max()
        if added == h:
            title = (f"All {h} heads added: their sum is concat · W_o in all {len(total)} columns "
                     f"(largest difference {number(off)})")
        else:
            title = f"{added} of {h} heads added: the sum is still off by up to {number(off)}"
        return head_sum.head_sum(self.names[self.query.value], z, W_o, updates, added, running, total,
                                 self.column.value, title)

"""Keys and values kept: `Cache`, a generation step by step."""

import ipywidgets as widgets

from helpers.arrays import count
from helpers.explorers.base import SHOWN, Reading, choice, slider, stepper
from helpers.figures import cache_step
from helpers.figures.words import numbered
from helpers.kv_cache import cache_bytes
from helpers.tiny_model.work import multiply_adds

LENGTHS = (4, 8, 16)         # words to write, besides the number asked for


class Cache(Reading):
    """A generation, step by step or played, with the cache and without it."""

    def __init__(self, text, n_new, step):
        n_new = count("n_new", n_new, least=1)
        self.n_new = choice("words to write", sorted({*LENGTHS, n_new}), n_new)
        super().__init__(text)
        self.step = slider("step", n_new, step, "how many steps are done; each writes a word")
        self.back, self.on = stepper(self.step)
        self.play = widgets.Play(step, 0, n_new, interval=1000, tooltip="play the steps")
        for name in ("max", "value"):
            widgets.link((self.step, name), (self.play, name))
        self.assemble([self.text], [self.n_new], [self.step, self.back, self.on, self.play])

    def run(self, text):
        """The trace of the prompt, after the whole generation has been tried."""
        self.written = self.model.generate(text, self.n_new.value)
        return self.model.run(text)

    def new_text(self):
        self.step.value = 0

    def changed(self, change):
        if self.still or change["owner"] is not self.n_new:
            super().changed(change)
            return
        self.complaint = ""
        with self.together():
            try:
                self.run(self.trace.tokens)
                self.step.max = self.n_new.value
            except ValueError as err:                         # more than the model can read
                self.complaint, self.n_new.value = str(err), change["old"]

    def counts(self):
        """(with the cache, without) multiply-adds of each step."""
        n = len(self.trace.tokens)
        texts = range(n, n + self.n_new.value)                    # how long the text is at each step
        return [(multiply_adds(self.model, n if t == n else 1, t), multiply_adds(self.model, t, t))
                for t in texts]

    def picture(self):
        step, work, n = self.step.value, self.counts(), len(self.trace.tokens)
        read = n + step - 1 if step else 0                    # tokens the model has read
        names = numbered(self.written)[:n + step]
        states = [("new" if step == 1 or i == read - 1 else "kept",
                   "new" if step == 1 or i == read - 1 else "again") for i in range(read)]
        rows = [(name, *state) for name, state in zip(names, states, strict=False)]
        if len(rows) > SHOWN:
            earlier = len(rows) - SHOWN + 1                   # one line for all of them
            rows = [(f"{earlier} earlier", *states[0]), *rows[earlier:]]
        so_far = tuple(sum(both[c] for both in work[:step]) for c in (0, 1))
        h, d_head, value = self.model.n_heads, self.model.d_k, self.model.E.itemsize
        kept = cache_bytes(len(self.model.layers), h, h, d_head, read, value)
        if step == 0:
            title = f"Before the first step: a prompt of {n} tokens, nothing computed yet"
        elif step == 1:
            title = f"Step 1 reads the prompt: {n} new rows of K and V either way"
        else:
            title = (f"Step {step}: 1 new row with the cache, {read} rows without; "
                     f"so far {so_far[1] / so_far[0]:.1f} times the work without it")
        return cache_step.cache_step(rows, names[-1] if step else None, step, work, so_far, (kept, 0), title,
                                     f"Rows for each of {len(self.model.layers)} layers and {h} heads.")

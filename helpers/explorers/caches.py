"""Keys and values kept: `Cache`, a generation step by step, and `CacheCalculator`, what real models keep."""

import ipywidgets as widgets

from helpers import arrays as given
from helpers.explorers.base import Explorer, Reading, choice, slider, stepper
from helpers.figures import cache_sizes, cache_step
from helpers.figures.style import SHOWN
from helpers.figures.words import counted, numbered, thousands
from helpers.kv_cache import cache_bytes, latent_cache_bytes
from helpers.published_models import PUBLISHED
from helpers.tiny_model.work import multiply_adds

LENGTHS = (4, 8, 16)         # words to write, besides the number asked for
TOKENS, BATCHES = (2048, 8192, 32768, 131072), (1, 8, 64)
MOST_TOKENS, MOST_TEXTS = 10**8, 10**6           # far above what anyone keeps


class Cache(Reading):
    """A generation, step by step or played, with the cache and without it."""

    def __init__(self, text, n_new, step):
        n_new = given.size("n_new", n_new, least=1)
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
        self.forget_refused()
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
            title = f"Before the first step: a prompt of {counted(n, 'token')}, nothing computed yet"
        elif step == 1:
            title = f"Step 1 reads the prompt: {counted(n, 'new row')} of K and V either way"
        else:
            title = (f"Step {step}: 1 new row with the cache, {read} rows without; "
                     f"without it {so_far[1] / so_far[0]:.1f} times as much work so far")
        return cache_step.cache_step(rows, names[-1] if step else None, step, work, so_far, (kept, 0), title,
                                     f"Rows for each of {len(self.model.layers)} layers and {h} heads.")


class CacheCalculator(Explorer):
    """Bytes of a named model's cache, with keys and values for each head, for groups, for all, or latents."""

    def __init__(self, model, n_tokens, batch, bytes_per_value, n_kv_heads):
        super().__init__()
        n_tokens = given.count("n_tokens", n_tokens, least=1, most=MOST_TOKENS)
        batch = given.count("batch", batch, least=1, most=MOST_TEXTS)
        self.model = choice("model", PUBLISHED, model)
        tokens = sorted({*TOKENS, n_tokens})
        self.n_tokens = choice("tokens", tokens, n_tokens, [thousands(n) for n in tokens])
        batches = sorted({*BATCHES, batch})
        self.batch = choice("batch", batches, batch, [thousands(n) for n in batches])
        self.bytes_per_value = choice("bytes a number", (1, 2, 4), bytes_per_value,
                                      argument="bytes_per_value")
        self.groups = choice("KV heads (GQA)", self.divisors(), self.grouped(n_kv_heads),
                             argument="n_kv_heads")
        self.assemble([self.model], [self.n_tokens], [self.batch, self.bytes_per_value], [self.groups])

    @property
    def sizes(self):
        return PUBLISHED[self.model.value]

    def divisors(self):
        """The numbers of KV heads that the heads can share evenly, all and one among them."""
        return [g for g in range(1, self.sizes.n_heads + 1) if self.sizes.n_heads % g == 0]

    def grouped(self, n_kv_heads=None):
        """The number of KV heads to begin with: the one given, else the published, else 8 or what is near."""
        h, g = self.sizes.n_heads, self.sizes.n_kv_heads
        near = min(self.divisors(), key=lambda d: abs(d - 8))
        return n_kv_heads if n_kv_heads is not None else g if 1 < g < h else near

    def changed(self, change):
        if change["owner"] is not self.model:
            super().changed(change)
        elif not self.still:
            with self.together():
                wanted = choice(self.groups.description, self.divisors(), self.grouped())
                self.groups.options, self.groups.tooltips = wanted.options, wanted.tooltips
                self.groups.value = wanted.value

    def ways(self):
        """(name, formula, bytes, bytes of one token, whether published so) of each way to keep K and V."""
        m, t, v, b = self.sizes, self.n_tokens.value, self.bytes_per_value.value, self.batch.value
        h, g = m.n_heads, self.groups.value
        rest = f"{counted(t, 'token')} · {counted(v, 'byte')} · batch {thousands(b)}"
        out = []
        for name, heads, published in (
                ("MHA: each head", h, m.n_kv_heads == h),
                (f"GQA: {counted(g, 'KV head')}", g, m.n_kv_heads == g and 1 < g < h),
                ("MQA: one for all", 1, m.n_kv_heads == 1)):
            formula = f"2 · {m.n_layers} layers · {counted(heads, 'KV head')} · d_head {m.d_head} · {rest}"
            size, token = (cache_bytes(m.n_layers, h, heads, m.d_head, n, v, k) for n, k in ((t, b), (1, 1)))
            out.append((name, formula, size, token, published and not m.latent))
        d_c, d_r = self.latent()
        size, token = (latent_cache_bytes(m.n_layers, d_c, d_r, n, v, k) for n, k in ((t, b), (1, 1)))
        formula = f"{m.n_layers} layers · (d_c {d_c} + d_r {d_r}) · {rest}"
        return [*out, ("Latent: d_c + d_r", formula, size, token, bool(m.latent))]

    def latent(self):
        """(d_c, d_r): as published, or in DeepSeek-V2's proportions to d_head, 4 and a half."""
        return self.sizes.latent or (4 * self.sizes.d_head, self.sizes.d_head // 2)

    def picture(self):
        m, name, ways = self.sizes, self.model.value, self.ways()
        sizes = self.n_tokens.value, self.bytes_per_value.value, self.batch.value
        kept = (latent_cache_bytes(m.n_layers, *m.latent, *sizes) if m.latent else
                cache_bytes(m.n_layers, m.n_heads, m.n_kv_heads, m.d_head, *sizes))
        title = (f"{name}: {cache_sizes.size_text(kept)} for {counted(self.batch.value, 'text')} of "
                 + counted(self.n_tokens.value, "token"))
        if kept != ways[0][2]:
            title += f"; as MHA it would be {cache_sizes.size_text(ways[0][2])}"
        notes = [f"Sizes: {m.source}."]
        if not any(published for *_, published in ways):
            notes.append(f"It is published with {counted(m.n_kv_heads, 'KV head')}.")
        if not m.latent:
            notes.append("Latents as if in DeepSeek-V2's proportions: d_c = 4 · d_head, d_r = d_head / 2.")
        if self.n_tokens.value > m.context:
            notes.append(f"{name} was released for texts of up to {thousands(m.context)} tokens.")
        return cache_sizes.cache_sizes(ways, title, " ".join(notes))

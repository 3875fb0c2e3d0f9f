"""The next word, drawn: `Sampling`."""

import ipywidgets as widgets
import numpy as np

from helpers.arrays import count
from helpers.attention import softmax
from helpers.explorers.base import Reading, choice, pick, slider
from helpers.figures.next_word import Line, next_word
from helpers.figures.style import SHOWN
from helpers.figures.words import number, thousands
from helpers.sampling import next_probabilities

MOST = 1000                  # draws
TEMPERATURES = [t / 10 for t in range(31)]
SHARES = [share / 100 for share in range(1, 101)]
SEEDS = (0, 1, 2)            # besides the one asked for
LATEST = 8                   # draws written out


class Sampling(Reading):
    """The model's logits after a text, through temperature, top-k and top-p, to seeded draws."""

    def __init__(self, text, temperature, top_k, top_p, seed, draws):
        super().__init__(text)
        next_probabilities(self.trace.logits, temperature, top_k, top_p)      # refuses what cannot be
        n_words = len(self.model.vocab)
        self.temperature = pick("temperature", TEMPERATURES, temperature,
                                "the logits are divided by it; 0 takes the likeliest", "{:g}".format)
        self.top_k = slider("top-k", n_words, n_words if top_k is None else min(top_k, n_words),
                            f"how many of the likeliest words stay; {n_words} is all", first=1)
        self.top_p = pick("top-p", SHARES, 1.0 if top_p is None else top_p,
                          "the fewest words with this share together stay; 1 is all", "{:g}".format)
        seed = count("seed", seed)
        self.seed = choice("seed", sorted({*SEEDS, seed}), seed)
        self.draws = slider("draws", MOST, draws, "how many words are drawn")
        self.more = [self.draw_button(by) for by in (1, 100)]
        self.assemble([self.text], [self.temperature, self.top_k, self.top_p],
                      [self.seed, self.draws, *self.more])

    def draw_button(self, by):
        button = widgets.Button(description=f"draw {by}", tooltip=f"draw {by} more; at {MOST} it stops")

        def draw(_):
            if self.draws.value == MOST:
                self.complain(f"{thousands(MOST)} draws are the most. Turn “draws” down, or choose a seed.")
            self.draws.value = min(self.draws.value + by, MOST)

        button.on_click(draw)
        return button

    def drawn(self, p):
        """The ids drawn from p (V,): what `sample_next` draws, called over and over with one generator."""
        return np.random.default_rng(self.seed.value).choice(len(p), self.draws.value, p=p)

    def lines(self, p, ids):
        """A Line for each likely word, one for all others; p : (V,) shares to draw with, ids : the drawn."""
        logits, T, k = self.trace.logits[-1], self.temperature.value, self.top_k.value
        order = np.argsort(-logits, kind="stable")            # (V,) as in next_probabilities
        logits, p = logits[order], p[order]
        z = (logits - logits[0]) / (T or 1)                   # (V,) the largest is 0
        before, warm = softmax(logits), softmax(z) if T else np.eye(len(z))[0]
        running = np.cumsum(softmax(z[:k]) if T else warm[:k])            # (k,)
        counts = np.bincount(ids, minlength=len(p))[order]
        lines = [Line(self.model.vocab[word], logits[i], before[i], warm[i], running[i] if i < k else None,
                      p[i] > 0, self.fate(i, p[i]), p[i], int(counts[i])) for i, word in enumerate(order)]
        if len(lines) <= SHOWN:
            return lines
        lines, rest = lines[:SHOWN - 1], lines[SHOWN - 1:]
        kept, fates = sum(line.kept for line in rest), {line.fate for line in rest}
        name = f"{len(rest)} others" + (f", {kept} kept" if 0 < kept < len(rest) else "")
        fate = fates.pop() if len(fates) == 1 else "partly kept" if kept else "cut by top-k or top-p"
        before, warm, left = (sum(getattr(line, part) for line in rest) for part in ("before", "warm", "p"))
        return [*lines, Line(name, None, before, warm, running[-1] if k >= SHOWN else None,
                             kept > 0, fate, left, sum(line.count for line in rest))]

    def fate(self, i, p):
        """What becomes of the i-th likeliest word, whose share in the end is p."""
        if p > 0:
            return "kept"
        if i >= self.top_k.value:
            return "cut by top-k"
        return "cut by top-p" if self.temperature.value and self.top_p.value < 1 else "share 0"

    def picture(self):
        logits, T, k, top_p = (self.trace.logits, self.temperature.value, self.top_k.value, self.top_p.value)
        p = next_probabilities(logits, T, k, top_p)           # (V,)
        ids = self.drawn(p)
        lines, n_words, kept = self.lines(p, ids), len(p), int((p > 0).sum())
        first = lines[0]
        was, now = number(first.before), number(first.p)
        goes = f"stays at {now}" if was == now else f"goes from {was} to {now}"
        left = f"all {n_words} words" if kept == n_words else f"{kept} of {n_words} words"
        title = f"{self.after}: “{first.word}” {goes}; {left} can be drawn"
        note = ("Sum so far: what top-p adds up, softmax over the words that top-k leaves. Can be drawn: the "
                "exact share above, the share of the draws below.")
        if len(ids):
            latest = ", ".join(self.model.vocab[i] for i in ids[-LATEST:])
            note += f" {'Drawn last' if len(ids) > LATEST else 'Drawn'}: {latest}."
        return next_word(lines, T, len(ids), title, note)

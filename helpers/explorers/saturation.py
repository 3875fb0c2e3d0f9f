"""Untrained queries and keys of any width: `ScaleAndSaturation`."""

import math

import numpy as np

from helpers import arrays as given
from helpers.attention import softmax
from helpers.explorers.base import Explorer, choice, pick
from helpers.figures.saturation import saturation, size
from helpers.figures.words import number, short_number

WIDTHS = [2**e for e in range(11)]
WIDEST = 4096                # d_k, if it is asked for
ROWS, KEYS = 300, 6          # queries drawn, and keys for each
SEEDS = (0, 1, 2)            # besides the one asked for
WAYS = ("divided by √d_k", "not divided")
TEMPERATURES = [t / 10 for t in range(1, 51)]


class ScaleAndSaturation(Explorer):
    """Scores of drawn queries and keys, divided or not: how evenly softmax shares out, and its slope."""

    def __init__(self, d_k, temperature, scale, seed):
        super().__init__()
        temperature = given.number("temperature", temperature, positive=True)
        seed, d_k = given.count("seed", seed), given.count("d_k", d_k, least=1, most=WIDEST)
        self.d_k = pick("d_k", WIDTHS, d_k, "numbers in a query and in a key")
        self.scores = choice("scores", (True, False), given.flag("scale", scale), WAYS)
        self.temperature = pick("temperature", TEMPERATURES, temperature, "scores are divided by it too",
                                written="{:g}".format)
        self.seed = choice("seed", sorted({*SEEDS, seed}), seed)
        self.drawn = {}                                       # seed -> {width: raw scores}
        self.assemble([self.d_k, self.temperature], [self.scores, self.seed])

    def raw(self):
        """{width: raw scores (ROWS, KEYS)}; a wider query goes on from a narrower one."""
        seed, widths = self.seed.value, [d for _, d in self.d_k.options]
        if seed not in self.drawn:
            rng = np.random.default_rng(seed)
            products = rng.normal(size=(ROWS, 1, widths[-1])) * rng.normal(size=(ROWS, KEYS, widths[-1]))
            self.drawn[seed] = {d: products[..., :d].sum(axis=-1) for d in widths}
        return self.drawn[seed]

    def picture(self):
        raw, now, T, divided = self.raw(), self.d_k.value, self.temperature.value, self.scores.value
        entering = {way: {d: S / T / (math.sqrt(d) if way == WAYS[0] else 1) for d, S in raw.items()}
                    for way in WAYS}                          # (ROWS, KEYS) each
        A = {way: {d: softmax(S) for d, S in rows.items()} for way, rows in entering.items()}
        curves = {name: {way: [float(np.median(of(A[way][d]))) for d in raw] for way in WAYS} for name, of in
                  (("entropy of the weights", entropy), ("size of the softmax gradient", slope))}
        chosen = WAYS[0] if divided else WAYS[1]
        at = list(raw).index(now)
        shares, gradient = (ways[chosen][at] for ways in curves.values())
        facts = [("spread of raw scores", number(raw[now].std())),
                 ("spread of what softmax gets", number(entering[chosen][now].std())),
                 ("entropy, typical row", f"{number(shares)} of {number(math.log(KEYS))}"),
                 ("gradient, typical row", size(gradient))]
        warm = "" if T == 1 else f", T = {short_number(T)}"
        title = f"d_k = {now}, {chosen}{warm}: entropy {number(shares)}, a gradient of size {size(gradient)}"
        note = (f"{ROWS} queries with {KEYS} keys each, all numbers drawn with mean 0 and variance 1; bars: "
                "the first query. Typical row: the median of all. Spread: standard deviation. Entropy: "
                f"ln {KEYS} = {number(math.log(KEYS))} when all keys share alike, 0 when one takes all. "
                "Gradient: diag(a) − a aᵀ, how far the weights move when softmax's input is nudged; its "
                "size: the root of the sum of its squared numbers.")
        return saturation(raw[now][0], entering[chosen][now][0], A[chosen][now][0], facts, list(raw), now,
                          curves, chosen, title, note)


def entropy(A):
    """−Σ a ln a of each row of A (n, m), in nats."""
    return -np.sum(A * np.log(np.where(A > 0, A, 1)), axis=-1)


def slope(A):
    """The Frobenius norm of diag(a) − a aᵀ for each row a of A (n, m)."""
    others = 1 - np.eye(A.shape[-1])                          # (m, m), so that nothing near 1 is subtracted
    squares = A**2
    diagonal = squares * (A @ others) ** 2                    # a_i² (1 − a_i)²
    return np.sqrt((diagonal + squares * (squares @ others)).sum(axis=-1))

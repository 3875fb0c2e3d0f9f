"""From logits to the next token (notebook 08).

Read `next_probabilities`, the distribution that temperature, top-k and top-p leave, then `sample_next`, which
draws from it.
"""

import math

import numpy as np

from helpers.arrays import array, count, generator, number
from helpers.attention import softmax

ROUNDING = 1e-12                  # a sum of probabilities this close below top_p has reached it


def next_probabilities(logits, temperature=1.0, top_k=None, top_p=None):
    """The exact distribution of the next token.

    logits : (n, V), the last row counts; -inf rules a token out.  Returns p : (V,) float64, sums to 1.
    The order is: the logits are divided by the temperature, the top_k largest are kept, softmax, the fewest
    of them, from the most likely down, that together reach top_p are kept (so the one that crosses top_p
    stays), and what is left is scaled up to sum to 1. Of equal logits the one with the smaller id goes first,
    so exactly top_k are kept; a top_k above V keeps all. Temperature 0 is its limit: 1 at the largest logit.
    Raises ValueError for logits with NaN or +inf, a last row of -inf only, or a setting outside its range.
    Fan et al. 2018 (top-k), Holtzman et al. 2020 (top-p).
    """
    temperature = number("temperature", temperature)
    top_k = None if top_k is None else count("top_k", top_k, least=1)
    top_p = None if top_p is None else number("top_p", top_p)
    if not 0 <= temperature < math.inf:
        raise ValueError(f"temperature must be at least 0 and finite, got {temperature}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p must be above 0 and at most 1, got {top_p}")
    z = last_row(logits)                                    # (n, V) -> (V,)
    p = np.zeros(len(z))
    if temperature == 0:
        p[z.argmax()] = 1                                   # of equal ones the first
        return p
    order = np.argsort(-z, kind="stable")                   # (V,) ids from the largest logit down
    with np.errstate(over="ignore"):                        # what gets too large for a number becomes -inf
        z = (z[order] - z[order[0]]) / temperature          # (V,) sorted, the largest is 0
    sorted_p = softmax(z[:top_k])                           # (k,)
    if top_p is not None and top_p < 1:
        crossing = np.searchsorted(np.cumsum(sorted_p), top_p - ROUNDING)
        sorted_p = sorted_p[:crossing + 1]
    p[order[:len(sorted_p)]] = sorted_p / sorted_p.sum()
    return p


def sample_next(logits, rng, temperature=1.0, top_k=None, top_p=None):
    """Draw the id of the next token from `next_probabilities`.

    logits : (n, V), the last row counts, rng : a generator, for example `np.random.default_rng(0)`.
    Returns an int.  Raises TypeError when rng is not a generator, and what `next_probabilities` raises.
    """
    rng = generator("rng", rng)
    p = next_probabilities(logits, temperature, top_k, top_p)             # (V,)
    return int(rng.choice(len(p), p=p))


def last_row(logits):
    """The logits (V,) of the last position in float64, after a look at them."""
    logits = array("logits", logits, ("n", "V"), holds=None)              # the last row alone counts
    if logits.size == 0:
        raise ValueError(f"logits must hold at least one position and one token, got {logits.shape}")
    z = logits[-1].astype(np.float64)                       # a copy: the input stays as it is
    top = z.max()                                           # NaN if there is one
    if not top < math.inf:
        raise ValueError("logits must be finite or -inf, the last row holds "
                         f"{'NaN' if math.isnan(top) else '+inf'}")
    if top == -math.inf:
        raise ValueError("logits leave no token to choose: the last row is -inf throughout")
    return z

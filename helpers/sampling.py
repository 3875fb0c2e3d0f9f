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
    return row_by_row(last_row(logits)[None], temperature, top_k, top_p)[0]     # (1, V) -> (V,)


def row_by_row(z, temperature, top_k, top_p):
    """The distribution that each row of logits leaves.  z : (m, V) float64.  Returns (m, V)."""
    p, rows = np.zeros(z.shape), np.arange(len(z))[:, None]                     # (m, V), (m, 1)
    if temperature == 0:
        p[rows, z.argmax(axis=1, keepdims=True)] = 1        # of equal ones the first
        return p
    order = np.argsort(-z, axis=1, kind="stable")           # (m, V) ids from the largest logit down
    z = z[rows, order]                                      # (m, V) sorted
    with np.errstate(over="ignore"):                        # what gets too large for a number becomes -inf
        z = (z - z[:, :1]) / temperature                    # (m, V) the largest is 0
    sorted_p = softmax(z[:, :top_k])                        # (m, k)
    if top_p is not None and top_p < 1:
        reached = np.cumsum(sorted_p, axis=1) >= top_p - ROUNDING               # (m, k)
        sorted_p[:, 1:][reached[:, :-1]] = 0                # what comes after the one that crosses
    p[rows, order[:, :top_k]] = sorted_p / sorted_p.sum(axis=1, keepdims=True)
    return p


def sample_next(logits, rng, temperature=1.0, top_k=None, top_p=None):
    """Draw the id of the next token from `next_probabilities`.

    logits : (n, V), the last row counts, rng : a generator, for example `np.random.default_rng(0)`.
    Returns an int.  Raises TypeError when rng is not a generator, and what `next_probabilities` raises.
    """
    rng = generator("rng", rng)
    p = next_probabilities(logits, temperature, top_k, top_p)             # (V,)
    return int(rng.choice(len(p), p=p))


def sample_rows(z, rng, temperature, top_k, top_p):
    """An id for each row of logits: what `sample_next` draws of one row after the other.

    z : (m, V) float64, rng : a generator.  Returns (m,).
    """
    reached = np.cumsum(row_by_row(z, temperature, top_k, top_p), axis=1)       # (m, V)
    u = rng.random((len(z), 1))                             # (m, 1), a number a row, as rng.choice takes it
    return (reached / reached[:, -1:] <= u).sum(axis=1)     # (m,)


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

"""From words to vectors: ids, rows of the embedding matrix, and positions (notebook 01).

Read `token_ids`, then `embed`, then `sinusoidal_positions`. A token is a row everywhere. `rope` and
`rope_attention` (notebook 10) put positions in another place: not added to the tokens, but turned into their
queries and keys.
"""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from helpers.arrays import (
    array,
    count,
    fits,
    listed,
    look_at_values,
    number,
    room,
    same_size,
    same_stack,
    size,
    unmasked,
    widened,
)
from helpers.attention import scaled_scores, softmax


def token_ids(tokens, vocab):
    """The id of each token; a word outside the vocabulary gets the id of "<unk>".

    tokens : list of n str, vocab : dict word -> id, case-sensitive.  Returns (n,) int64.
    Raises TypeError when `tokens` is one string or holds anything but strings, or `vocab` is no dict,
    ValueError for an unknown word when the vocabulary has no "<unk>"; either for an id that is none.
    """
    if isinstance(tokens, str):
        raise TypeError(f"tokens must be a list of words, got one string: {tokens!r}; split it first")
    if not isinstance(vocab, Mapping):
        raise TypeError(f"vocab must be a dict from word to id, got {type(vocab).__name__}")
    tokens = listed("tokens", tokens, "words")
    for token in tokens:
        if not isinstance(token, str):
            raise TypeError(f"tokens must hold strings, got {token!r}")
        if token not in vocab and "<unk>" not in vocab:
            raise ValueError(f"{token!r} is not in the vocabulary, and the vocabulary has no '<unk>'")
    words = [token if token in vocab else "<unk>" for token in tokens]
    ids = [count(f"vocab[{word!r}]", vocab[word], most=np.iinfo(np.int64).max) for word in words]
    return np.array(ids, dtype=np.int64)


def embed(ids, E):
    """The rows of the embedding matrix that belong to the ids.

    ids : (n,) integers in 0 … V-1, E : (V, d).  Returns X : (n, d), a copy: writing to it leaves E alone.
    Raises TypeError for ids that are not integers, ValueError for an id outside 0 … V-1 or for a row taken
    that holds NaN or infinity.
    """
    E = array("E", E, ("V", "d"), holds=None)               # V may be large: the rows taken are looked at
    try:
        ids = np.asarray(unmasked("ids", ids))
    except ValueError:
        raise ValueError("ids must have shape (n,), one id a token; got a list of lists") from None
    if ids.ndim != 1:
        raise ValueError(f"ids must have shape (n,), got {ids.shape}")
    if ids.size == 0:
        ids = ids.astype(np.int64)
    if ids.dtype.kind not in "iu":
        raise TypeError(f"ids must be integers, got dtype {ids.dtype}")
    outside = ids[(ids < 0) | (ids >= len(E))]
    if outside.size:
        raise ValueError(f"every id must lie in 0 … {len(E) - 1} (E has {len(E)} rows), got {outside[0]}")
    X = E[ids]                                              # (n,) into (V, d) -> (n, d)
    if not np.isfinite(X).all():
        look_at_values("E", E)                              # says where
    return X


def sinusoidal_positions(n, d, base=10000.0):
    """Position p as d numbers: sines in the even columns, cosines in the odd ones, interleaved.

    n, d : counts.  Returns (n, d): column 2i is sin(p / base^(2i/d)), column 2i+1 is cos of that angle; an
    odd d ends in a sine.  Raises ValueError for a base that is not positive.  Vaswani et al. 2017, §3.5.
    """
    n, d, base = size("n", n), size("d", d), number("base", base, positive=True)
    room(n=n, d=d)
    pair = np.arange(d) // 2                                # (d,): 0, 0, 1, 1, 2, 2, …
    with np.errstate(all="ignore"):                         # with a base near 0 they are too large
        angle = np.arange(n)[:, None] / base ** (2 * pair / max(d, 1))    # (n, 1) / (d,) -> (n, d)
    fits("the angles of base", angle)
    P = np.empty((n, d))
    P[:, 0::2] = np.sin(angle[:, 0::2])
    P[:, 1::2] = np.cos(angle[:, 1::2])
    return P


def rope(x, positions, base=10000.0):
    """Each row turned by its position: pair (2i, 2i+1) by the angle position · base^(-2i/d).

    x : (…, n, d) queries or keys, d even, positions : (n,), any real numbers.  Returns the shape and dtype
    of x. Turned counter-clockwise, like the complex number x[2i] + 1j·x[2i+1] times exp(1j·angle): lengths
    stay, and the dot product of two turned rows depends on the difference of their positions alone.
    Raises ValueError for an odd d, a base that is not positive, or positions that do not fit.
    Su et al. 2021, §3.2.2.
    """
    x, positions = array("x", x, ("n", "d"), stacked=True), array("positions", positions, ("n",))
    same_size("n", ("x", x), ("positions", positions), axis=(-2, 0))
    d = x.shape[-1]
    if d % 2:
        raise ValueError(f"rope turns pairs of columns, so d must be even; x {x.shape} has d = {d}")
    base = number("base", base, positive=True)
    cos, sin = cos_and_sin(positions.astype(np.float64).tobytes(), d, base, x.dtype)        # (n, d/2) each
    even, odd = x[..., 0::2], x[..., 1::2]                  # (…, n, d/2) each
    turned = np.empty_like(x)
    with np.errstate(over="ignore", invalid="ignore"):
        turned[..., 0::2] = even * cos - odd * sin
        turned[..., 1::2] = even * sin + odd * cos
    return fits("x turned", turned)


@lru_cache(maxsize=8)
def cos_and_sin(positions, d, base, dtype):
    """Of the angles by which `rope` turns: position · base^(-2i/d). Kept, since every layer needs the same.

    positions : the bytes of (n,) float64.  Returns two arrays (n, d/2), read-only.
    """
    with np.errstate(all="ignore"):
        speed = base ** (-np.arange(0, d, 2) / max(d, 1))   # (d/2,): 1 for the first pair, ever slower
        angle = np.frombuffer(positions)[:, None] * speed   # (n, 1) * (d/2,) -> (n, d/2)
    fits("the angles of positions and base", angle)
    found = np.cos(angle).astype(dtype), np.sin(angle).astype(dtype)
    for M in found:
        M.flags.writeable = False
    return found


def rope_attention(Q, K, V, positions):
    """One head that knows where its tokens stand only from the turned queries and keys; V is not turned.

    Q, K : (…, n, d_k), d_k even, V : (…, n, d_v), positions : (n,).  Returns Z : (…, n, d_v), not causal.
    Raises ValueError when a shape does not fit.  Su et al. 2021, §3.2.2.
    """
    Q, K = array("Q", Q, ("n", "d_k"), stacked=True), array("K", K, ("n", "d_k"), stacked=True)
    V = array("V", V, ("n", "d_v"), stacked=True)
    same_size("n", ("K", K), ("V", V), axis=(-2, -2))
    S = scaled_scores(rope(widened(Q), positions), rope(widened(K), positions))     # (…, n, n)
    same_stack(("Q and K", S), ("V", V))
    Z = softmax(S) @ widened(V)                                   # (…, n, n) @ (…, n, d_v) -> (…, n, d_v)
    return Z.astype(np.result_type(Q, K, V), copy=False)

"""From words to vectors: ids, rows of the embedding matrix, and positions (notebook 01).

Read `token_ids`, then `embed`, then `sinusoidal_positions`. A token is a row everywhere.
"""

import numpy as np

from helpers.arrays import array, count


def token_ids(tokens, vocab):
    """The id of each token; a word outside the vocabulary gets the id of "<unk>".

    tokens : list of n str, vocab : dict word -> id, case-sensitive.  Returns (n,) int64.
    Raises TypeError when `tokens` is one string or holds anything but strings, ValueError for an unknown word
    when the vocabulary has no "<unk>".
    """
    if isinstance(tokens, str):
        raise TypeError(f"tokens must be a list of words, got one string: {tokens!r}; split it first")
    tokens = list(tokens)
    for token in tokens:
        if not isinstance(token, str):
            raise TypeError(f"tokens must hold strings, got {token!r}")
        if token not in vocab and "<unk>" not in vocab:
            raise ValueError(f"{token!r} is not in the vocabulary, and the vocabulary has no '<unk>'")
    return np.array([vocab[t] if t in vocab else vocab["<unk>"] for t in tokens], dtype=np.int64)


def embed(ids, E):
    """The rows of the embedding matrix that belong to the ids.

    ids : (n,) integers in 0 … V-1, E : (V, d).  Returns X : (n, d), a copy: writing to it leaves E alone.
    Raises TypeError for ids that are not integers, ValueError for an id outside 0 … V-1.
    """
    E = array("E", E, ("V", "d"))
    ids = np.asarray(ids)
    if ids.ndim != 1:
        raise ValueError(f"ids must have shape (n,), got {ids.shape}")
    if ids.size == 0:
        ids = ids.astype(np.int64)
    if ids.dtype.kind not in "iu":
        raise TypeError(f"ids must be integers, got dtype {ids.dtype}")
    outside = ids[(ids < 0) | (ids >= len(E))]
    if outside.size:
        raise ValueError(f"every id must lie in 0 … {len(E) - 1} (E has {len(E)} rows), got {outside[0]}")
    return E[ids]                                           # (n,) into (V, d) -> (n, d)


def sinusoidal_positions(n, d, base=10000.0):
    """Position p as d numbers: sines in the even columns, cosines in the odd ones, interleaved.

    n, d : counts.  Returns (n, d): column 2i is sin(p / base^(2i/d)), column 2i+1 is cos of that angle; an
    odd d ends in a sine.  Raises ValueError for a base that is not positive.  Vaswani et al. 2017, §3.5.
    """
    n, d = count("n", n), count("d", d)
    if not base > 0:
        raise ValueError(f"base must be positive, got {base}")
    pair = np.arange(d) // 2                                # (d,): 0, 0, 1, 1, 2, 2, …
    angle = np.arange(n)[:, None] / base ** (2 * pair / max(d, 1))   # (n, 1) / (d,) -> (n, d)
    P = np.empty((n, d))
    P[:, 0::2] = np.sin(angle[:, 0::2])
    P[:, 1::2] = np.cos(angle[:, 1::2])
    return P

"""Attention in tiles, without ever holding the whole pattern (notebook 09).

Read `attend_tile`: a few queries meet the keys a tile at a time, and a running softmax keeps what they have
read so far right. `attend_in_tiles` shares the tiles of queries out to a few threads. What is held at any
time is one tile of scores per thread, however long the text. The function to call is
`helpers.attention.attention`.
"""

import itertools
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from helpers.blas import one_thread_a_product

N_QUERIES = 256                 # queries in a tile: many, so that each key that is fetched is used often
N_SCORES = N_QUERIES * 1024     # scores in a tile: a megabyte of float32, few enough to stay in fast memory


def attend_tile(Q, K, V, n_past=None):
    """Some neighbouring queries of one head against all keys that they may read.

    Q : (m, d_k), K : (n_k, d_k), V : (n_k, d_v).  Returns Z : (m, d_v).
    n_past : None, every query reads every key; or how many keys come before the first query's own: query i
    reads the first n_past + i + 1.  Rabe & Staats 2021; Dao et al. 2022, §3.1.
    """
    m, d_k = Q.shape
    Q = Q / math.sqrt(max(d_k, 1))                          # scales m·d_k numbers instead of m·n_k scores
    n_free = len(K) if n_past is None else n_past           # keys that all m queries may read
    width = N_SCORES // m
    tiles = [(start, min(start + width, n_free)) for start in range(0, n_free, width)]
    if n_past is not None:
        tiles.append((n_past, n_past + m))                  # on the diagonal, the m queries' own keys

    room = np.empty((m, max(stop - start for start, stop in tiles)), Q.dtype)
    top = np.full((m, 1), -np.inf, Q.dtype)                 # the largest score so far
    total = np.zeros((m, 1), Q.dtype)                       # the sum of exp(score - top) so far
    Z = np.zeros((m, V.shape[-1]), Q.dtype)                 # the sum of exp(score - top) · value so far
    for start, stop in tiles:
        S = np.matmul(Q, K[start:stop].T, out=room[:, :stop - start])     # (m, d_k) @ (d_k, w) -> (m, w)
        if start == n_past:
            np.copyto(S, -np.inf, where=~np.tri(m, dtype=bool))
        new_top = np.maximum(top, S.max(axis=-1, keepdims=True))          # (m, 1)
        S -= new_top
        E = np.exp(S, out=S)                                              # (m, w), the largest is at most 1
        shrink = np.exp(top - new_top)                                    # (m, 1), for what came before
        total = shrink * total + E.sum(axis=-1, keepdims=True)
        Z = shrink * Z + E @ V[start:stop]                                # (m, w) @ (w, d_v) -> (m, d_v)
        top = new_top
    return Z / total


def attend_in_tiles(Q, K, V, causal=False):
    """Attention of stacked heads, tiles of queries side by side on as many threads as NumPy's products use.

    Q : (h, n_q, d_k), K : (g, n_k, d_k), V : (g, n_k, d_v), of one float type, n_k > 0, g divides h.
    Returns Z : (h, n_q, d_v).  The last query sits at the last key; queries before every key get zeros.
    """
    (h, n_q, _), (g, n_k, d_v) = Q.shape, V.shape
    K, V = np.ascontiguousarray(K), np.ascontiguousarray(V)               # BLAS wants its rows in one piece
    Z = np.zeros((h, n_q, d_v), Q.dtype)
    offset = n_k - n_q                                      # the position of the first query
    first = max(-offset, 0) if causal else 0

    tiles = list(itertools.product(range(h), range(first, n_q, N_QUERIES)))
    left = iter(tiles)

    def work(_):
        for head, start in left:                            # each thread takes the next one that is left
            rows, kv_head = slice(start, start + N_QUERIES), head // (h // g)
            n_past = start + offset if causal else None
            Z[head, rows] = attend_tile(Q[head, rows], K[kv_head], V[kv_head], n_past)

    with one_thread_a_product as n_threads, ThreadPoolExecutor(n_threads) as threads:
        try:
            list(threads.map(work, tiles[:n_threads]))      # as a list: what fails in a thread is raised here
        finally:
            list(left)                                      # after a failure or Ctrl-C there is nothing left
    return Z

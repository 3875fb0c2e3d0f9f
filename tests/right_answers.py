"""Right answers in styles the catalogue does not have: nothing in them may be held against their writers."""

import functools
import math
from dataclasses import dataclass

import numpy as np

ANSWERS = []
ROOM = {"scale": True}


def right(exercise, remarks=0):
    """`remarks` : how many remarks the answer must get."""
    def keep(function):
        ANSWERS.append((exercise, function, remarks))
        return function
    return keep


def remembered(function):
    """A decorator as people write them for their own use."""
    @functools.wraps(function)
    def inner(*arguments, **options):
        inner.calls += 1
        return function(*arguments, **options)
    inner.calls = 0
    return inner


@right("token_ids", remarks=1)
def ids_as_a_list(tokens, vocab):
    return [vocab.get(token, vocab["<unk>"]) for token in tokens]


@right("token_ids")
def ids_by_vectorize(tokens, vocab):
    if len(tokens) == 0:
        return np.empty(0, dtype=np.intp)
    return np.vectorize(lambda t: vocab[t] if t in vocab else vocab["<unk>"], otypes=[np.int16])(tokens)


@right("token_ids", remarks=1)
def ids_without_a_type(tokens, vocab):
    return np.array([vocab.get(token, vocab["<unk>"]) for token in tokens])


@right("embed")
def embed_carefully(ids, E):
    ids = np.asarray(ids)
    assert ((0 <= ids) & (ids < len(E))).all(), "an id is outside the table"
    return E[ids].copy()


@right("embed", remarks=1)
def embed_with_take(ids, E):
    return np.take(E, ids, axis=0)


@right("sinusoidal_positions", remarks=1)
def positions_without_odd(n: int, d: int, base: float = 10000.0) -> np.ndarray:
    if d % 2:
        raise ValueError("d must be even")
    turns = np.exp(1j * np.outer(np.arange(n), base ** (-np.arange(0, d, 2) / d)))      # points on a circle
    return np.stack([turns.imag, turns.real], axis=-1).reshape(n, d)


@right("sinusoidal_positions")
def positions_in_float32(n, d, base=10_000):
    P = np.zeros((n, d), dtype=np.float32)
    for p in range(n):
        for j in range(d):
            angle = p / base ** ((j - j % 2) / d)
            P[p, j] = math.cos(angle) if j % 2 else math.sin(angle)
    return P


@right("sinusoidal_positions", remarks=1)
def positions_in_pairs(n, d, base=10000.0):
    P = np.zeros((n, d))
    for p in range(n):
        for i in range(0, d, 2):
            angle = p / base ** (i / d)
            P[p, i], P[p, i + 1] = math.sin(angle), math.cos(angle)
    return P


@right("project_qkv")
def project_fused(X, W_q, W_k, W_v):
    d_k = W_q.shape[1]
    Y = np.asarray(X) @ np.hstack((W_q, W_k, W_v))
    return np.split(Y, [d_k, 2 * d_k], axis=1)


@right("scores")
@remembered
def scores_decorated(Q, K):
    print("scores of", Q.shape, "and", K.shape)
    return np.inner(Q, K)


@right("scores")
def scores_with_walrus(Q, K):
    S = np.zeros((n_q := len(Q), n_k := len(K)))
    for place in range(n_q * n_k):
        S.flat[place] = sum(a * b for a, b in zip(Q[place // n_k], K[place % n_k], strict=True))
    return S


@right("scores")
def scores_that_could_be_masked(Q, K):
    return np.ma.array(Q @ K.T)


@right("scaled_scores")
def scaled_with_a_global(Q, K):
    S = np.tensordot(Q, K, axes=(1, 1))
    return np.true_divide(S, math.sqrt(K.shape[1])) if ROOM["scale"] else S


@right("scaled_scores")
def scaled_in_float32(Q, K):
    Q, K = np.float32(Q), np.float32(K)
    return Q @ K.T * np.float32(Q.shape[1]) ** np.float32(-0.5)


@right("softmax", remarks=1)
def softmax_by_recursion(z):
    z = np.asarray(z)
    if z.ndim > 1:
        return np.stack([softmax_by_recursion(row) for row in z])
    e = np.exp((z - max(z)).astype(float))
    return e / math.fsum(e)


@right("softmax", remarks=1)
def softmax_by_logarithms(z):
    z = np.array(z, dtype=np.longdouble)
    z -= z.max(axis=-1, keepdims=True)
    return np.exp(z - np.log(np.exp(z).sum(axis=-1, keepdims=True)))


@right("softmax")
def softmax_quietly(z, axis=-1):
    with np.errstate(all="ignore"):
        A = np.exp(z - np.max(z, axis, keepdims=True), dtype=np.float64)
        return np.nan_to_num(A / A.sum(axis, keepdims=True))


@right("causal_mask", remarks=1)
def mask_of_minus_1e9(n_q, n_k=None):
    n_k = n_k or n_q
    return np.triu(np.full((n_q, n_k), -1e9), k=1 + n_k - n_q)


@right("causal_mask", remarks=1)
def mask_of_floats(queries, keys=None):
    keys = queries if keys is None else keys
    return (np.arange(keys)[None] - np.arange(queries)[:, None] <= keys - queries) * 1.0


@right("causal_mask", remarks=1)
def mask_of_ints(n_q, n_k=None):
    n_k = n_k or n_q
    return np.tril(np.ones((n_q, n_k), int), n_k - n_q)


@right("causal_mask", remarks=1)
def mask_as_lists(n_q, n_k=None):
    n_k = n_k or n_q
    return [[j <= i + n_k - n_q for j in range(n_k)] for i in range(n_q)]


@right("attention_weights", remarks=1)
def weights_additive(S, mask):
    Z = S + (~mask) * -1e30
    Z = np.where(mask, Z, -np.inf)
    e = np.exp(Z - Z.max(-1)[..., np.newaxis])
    return e / e.sum(-1)[..., np.newaxis]


@right("attention_weights")
def weights_key_by_key(S, mask):
    S = np.asarray(S, dtype=float)
    A = np.zeros(S.shape)
    for where in np.ndindex(S.shape[:-1]):
        keys = np.flatnonzero(mask[where[-1]])
        if len(keys):
            e = np.exp(S[where][keys] - S[where][keys].max())
            A[where + (keys,)] = e / e.sum()
    return A


@dataclass
class Head:
    """One head as an object."""

    causal: bool

    def __call__(self, Q, K, V):
        Z = []
        for i, q in enumerate(Q):
            last = i + 1 if self.causal else len(K)
            s = K[:last] @ q / math.sqrt(len(q))
            a = np.exp(s - s.max())
            Z.append(a @ V[:last] / a.sum())
        return np.array(Z)


@right("single_head")
def head_as_object(X, W_q, W_k, W_v, *, causal=False):
    return Head(causal)(X @ W_q, X @ W_k, X @ W_v)


@right("single_head")
def head_with_bilinear_form(X, W_q, W_k, W_v, masked=False):
    S = X @ (W_q @ W_k.T) @ X.T / W_q.shape[1] ** 0.5
    if masked:
        S = S + np.triu(np.full_like(S, -np.inf), 1)
    A = np.exp(S - S.max(1, keepdims=True))
    return (A / A.sum(1, keepdims=True) @ X) @ W_v


@right("last_query_attention")
def newest_by_running_sum(q, K, V):
    top, total, z = -math.inf, 0.0, np.zeros(V.shape[1])
    for k, v in zip(K, V, strict=True):
        s = float(q @ k) / math.sqrt(q.size)
        new = max(top, s)
        z = z * math.exp(top - new) + v * math.exp(s - new)
        total = total * math.exp(top - new) + math.exp(s - new)
        top = new
    return z / total


# ---------------------------------------------------------------------------------- an exercise for the tests

def make_counter(start, by=1):
    def count():
        nonlocal start
        start += by
        return start
    return count


def count_three_times(function, start):
    count = function(start)
    return np.array([count() for _ in range(3)])

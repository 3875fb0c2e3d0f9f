"""What every head of the language model does on one text: its patterns, and a score for each kind of work.

Read `SCORES` (what is measured), `head_scores`, and `patterns`, which runs the model for them.
"""

from dataclasses import dataclass

import numpy as np

from helpers import arrays as given
from helpers.smollm2.model import known, rms_norm

SCORES = {
    "previous token": "the weight on the token just before, from the third token on",
    "first token": "the weight on the first token, the sink, from the third token on",
    "itself": "the weight a token gives itself, from the second token on",
    "duplicate token": "the weight on earlier copies of the same token, where there are any",
    "induction": "the weight on what came after earlier copies of the same token, where there are any",
    "entropy": "the entropy of the weights, 1 where all that may be read count the same, from the second "
               "token on",
}
ROWS = 128                        # of E that are multiplied at a time: as float64 they stay in fast memory


@dataclass(frozen=True)
class Patterns:
    """What all heads read in one text, and what the model then expects."""

    ids: np.ndarray       # (n,)
    A: np.ndarray         # (layers, h, n, n) float64, also of heads that are switched off
    p: np.ndarray         # (V,) float64, the share of each token to come next


def patterns(model, text, without=()):
    """Run over a text in float64, so that rounded numbers are the same on every machine; a Patterns.

    What a function of yours gives is float32, so on yours the last digits may differ.

    without : (layer, head) pairs to switch off.  Raises TypeError or ValueError as `model.ids` does.
    """
    ids, c, off = known(model).ids(text), model.config, model._switched(without)
    E, positions, A = model.weights.E, np.arange(len(ids)), []
    X = model.functions.embed(ids, E).astype(np.float64)                                     # (n, d_model)
    for i, cache in enumerate(model.new_caches(len(ids))):
        X, trace = model.layer(i, X, positions, cache, off.get(i, ()), need_pattern=True)    # (n, d_model)
        A.append(trace.A.astype(np.float64))                                                 # (h, n, n)
    x = rms_norm(X[-1:], model.weights.final_norm, c.norm_eps)                               # (1, d_model)
    z = np.concatenate([x[0] @ E[i:i + ROWS].T for i in range(0, len(E), ROWS)])             # (V,)
    p = np.exp(z - z.max())
    return Patterns(ids, np.array(A), p / p.sum())


def head_scores(A, ids):
    """dict name of a score -> (layers, h) numbers 0 … 1, NaN where no token of the text can be asked.

    A : (layers, h, n, n), ids : (n,).  Each is a mean over the queries that have something to be read.
    Raises TypeError or ValueError when they are no such arrays, or differ in n.
    """
    A, ids = given.array("A", A, ("layers", "h", "n", "n")), given.array("ids", ids, ("n",))
    for axis in (-1, -2):
        given.same_size("n", ("A", A), ("ids", ids), (axis, 0))
    if not len(ids):
        raise ValueError(f"ids must hold at least one id, got shape {ids.shape}")
    return {name: entropy(A) if name == "entropy" else mean_weight(A, asked(name, ids)) for name in SCORES}


def asked(name, ids):
    """(n, n) bool: the pairs of query and key whose weights a score adds up; for the entropy all of a row."""
    name, ids = given.one_of("name", name, SCORES), given.array("ids", ids, ("n",))
    query, key = np.indices((len(ids), len(ids)))
    same = (ids[:, None] == ids) & (key < query)            # (n, n) an earlier copy of the query's token
    if name == "duplicate token":
        return same
    if name == "induction":
        after = np.zeros_like(same)
        after[:, 1:] = same[:, :-1]
        return after & (key < query)
    return {"previous token": (key == query - 1) & (query > 1), "first token": (key == 0) & (query > 1),
            "itself": (key == query) & (query > 0), "entropy": (key <= query) & (query > 0)}[name]


def n_asked(name, ids):
    """How many queries a score is the mean of."""
    return int(asked(name, ids).any(axis=1).sum())


def mean_weight(A, pairs):
    """The weight on these pairs, a mean over the queries that have any; (layers, h)."""
    queries = pairs.any(axis=1)                             # (n,)
    if not queries.any():
        return np.full(A.shape[:2], np.nan)
    return (A * pairs).sum(axis=-1)[..., queries].mean(axis=-1)


def entropy(A):
    """The entropy of each row over the largest it can have, a mean without the first row; (layers, h)."""
    n = A.shape[-1]
    if n == 1:
        return np.full(A.shape[:2], np.nan)
    nats = -(A * np.log(np.where(A > 0, A, 1))).sum(axis=-1)[..., 1:]        # (layers, h, n - 1)
    return (nats / np.log(np.arange(2, n + 1))).mean(axis=-1)

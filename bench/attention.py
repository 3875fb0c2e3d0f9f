"""`helpers.attention.attention` against PyTorch's, and the two matrix products it consists of."""

import numpy as np

from bench.measure import Row, race
from helpers.attention import attention

N_HEADS, D_HEAD = 8, 64
GOALS = {256: 2.5, 1024: 1.5, 4096: 1.5}        # times PyTorch's scaled_dot_product_attention, on two cores


def rows(quick=False):
    try:
        import torch
    except ImportError:
        torch = None
        yield "PyTorch is not installed: the rows against it are left out."
    rng = np.random.default_rng(0)
    for n, goal in GOALS.items():
        if quick and n > 1024:
            return
        Q, K, V = (rng.normal(size=(N_HEADS, n, D_HEAD)).astype(np.float32) for _ in range(3))
        for causal in (False, True):
            contestants = {"ours": lambda: attention(Q, K, V, causal)}          # noqa: B023 (raced at once)
            if torch:
                contestants["PyTorch"] = of_torch(torch, Q, K, V, causal)
            if not causal:
                contestants["Q Kᵀ and A V alone"] = products(Q, K, V)
            if len(contestants) > 1:
                times = race(contestants, seconds=0.2 if quick else 2)
                ours = times.pop("ours")
                for name, other in times.items():
                    what = f"attention, n = {n}" + (", causal" if causal else "")
                    yield Row(what, ours, name, other, goal if name == "PyTorch" else None)


def of_torch(torch, Q, K, V, causal):
    q, k, v = (torch.from_numpy(M)[None] for M in (Q, K, V))                    # (1, h, n, d): a batch of one
    attend = torch.nn.functional.scaled_dot_product_attention
    difference = np.abs(attend(q, k, v, is_causal=causal)[0].numpy() - attention(Q, K, V, causal)).max()
    assert difference < 1e-4, f"the two differ by {difference}"
    return lambda: attend(q, k, v, is_causal=causal)


def products(Q, K, V):
    """Head by head into the same room: no softmax, nothing to be made new."""
    S, Z = np.empty((Q.shape[1], K.shape[1]), Q.dtype), np.empty_like(Q)

    def run():
        for head in range(len(Q)):
            np.matmul(Q[head], K[head].T, out=S)                                # (n, d) @ (d, n) -> (n, n)
            np.matmul(S, V[head], out=Z[head])                                  # (n, n) @ (n, d) -> (n, d)

    return run

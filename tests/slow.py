"""The maths of the course once more, in loops over single numbers: the second route for the tests.

Nothing here calls NumPy's matrix product, and nothing here is shared with `helpers`.
"""

import math


def dot(a, b):
    return sum(float(x) * float(y) for x, y in zip(a, b, strict=True))


def softmax(row, allowed=None):
    """A list of shares; `allowed` says which may be more than 0."""
    allowed = [True] * len(row) if allowed is None else list(allowed)
    kept = [float(z) for z, may in zip(row, allowed, strict=True) if may and z != -math.inf]
    if not kept:
        return [0.0] * len(row)
    top = max(kept)
    total = math.fsum(math.exp(z - top) for z in kept)
    return [
        math.exp(float(z) - top) / total if may and z != -math.inf else 0.0
        for z, may in zip(row, allowed, strict=True)
    ]


def matmul(A, B):
    columns = list(zip(*B, strict=True))
    return [[dot(row, column) for column in columns] for row in A]


def head(Q, K, V, causal=False):
    """Attention for each query in turn; with `causal` the last query sits at the last key."""
    out = []
    for i, q in enumerate(Q):
        row = [dot(q, k) / math.sqrt(len(q)) for k in K]
        last = i + len(K) - len(Q)
        weights = softmax(row, [j <= last or not causal for j in range(len(K))])
        out.append([sum(a * float(v[c]) for a, v in zip(weights, V, strict=True)) for c in range(len(V[0]))])
    return out


def layer_norm(row, gamma, beta, eps):
    mean = math.fsum(row) / len(row)
    variance = math.fsum((x - mean) ** 2 for x in row) / len(row)
    return [(x - mean) / math.sqrt(variance + eps) * g + b for x, g, b in zip(row, gamma, beta, strict=True)]

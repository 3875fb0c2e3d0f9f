"""The exercise of notebook 02: project_qkv."""

import numpy as np

from helpers import attention as right
from helpers.checks.exercise import Case, Exercise, Mistake


def project_cases():
    rng = np.random.default_rng(21)

    def case(kind, n, d_model, d_k, d_v, whole=False):
        def draw(*shape):
            return rng.integers(-4, 5, size=shape) if whole else rng.normal(size=shape).round(2)
        weights = draw(d_model, d_k), draw(d_model, d_k), draw(d_model, d_v)
        return Case(kind, (draw(n, d_model), *weights), style=whole)
    return [
        case("", 5, 4, 3, 6),
        case("d_k and d_v equal", 3, 5, 2, 2),
        case("square weights", 5, 3, 3, 3),
        case("all sizes equal", 4, 4, 4, 4),
        case("one token", 1, 4, 2, 3),
        case("as many tokens as features", 4, 4, 2, 3),
        case("integers", 3, 4, 2, 5, whole=True),
        case("d_v smaller than d_k", 2, 3, 4, 1),
    ]


def three_products(X, W_q, W_k, W_v):
    return X @ W_q, X @ W_k, X @ W_v


def equal_thirds(X, W_q, W_k, W_v):
    Y = X @ np.concatenate([W_q, W_k, W_v], axis=1)
    third = Y.shape[1] // 3
    return Y[:, :third], Y[:, third:2 * third], Y[:, 2 * third:]


def array_split_thirds(X, W_q, W_k, W_v):
    return tuple(np.array_split(X @ np.concatenate([W_q, W_k, W_v], axis=1), 3, axis=1))


def chained(X, W_q, W_k, W_v):
    Q = X @ W_q
    K = Q @ W_k
    return Q, K, K @ W_v


def project_steps(X, W_q, W_k, W_v, multiply=None, project=three_products, order=lambda Q, K, V: (Q, K, V)):
    if multiply is not None:
        return order(multiply(X, W_q), multiply(X, W_k), multiply(X, W_v))
    return order(*project(X, W_q, W_k, W_v))


THREE = "Three projections by hand"
PROJECT_QKV = Exercise(
    "2.1", "project_qkv", "02", right.project_qkv,
    arguments={"X": ("n", "d_model"), "W_q": ("d_model", "d_k"), "W_k": ("d_model", "d_k"),
               "W_v": ("d_model", "d_v")},
    returns={"Q": ("n", "d_k"), "K": ("n", "d_k"), "V": ("n", "d_v")},
    cases=project_cases, steps=project_steps,
    passed="Each word now asks, answers and passes on with three different vectors.",
    mistakes=(
        Mistake("weights_transposed", dict(multiply=lambda X, W: X @ W.T),
                "the weights are transposed (X @ W.T)",
                "PyTorch's nn.Linear stores its weights that way round; here W has one row for each feature "
                "of X.", "By loops, then by matrices"),
        Mistake("wt_xt", dict(multiply=lambda X, W: W.T @ X.T), "the product is left in column form, Wᵀ Xᵀ",
                "Right numbers, but with tokens in columns; in this course a token is a row.",
                "By loops, then by matrices"),
        Mistake("xt_w", dict(multiply=lambda X, W: X.T @ W), "X is transposed before the product (X.T @ W)",
                "The sum then runs over tokens where it must run over features.",
                "By loops, then by matrices"),
        Mistake("w_x", dict(multiply=lambda X, W: W @ X), "the factors are in the wrong order (W @ X)",
                "With tokens in rows the weights stand on the right.", "By loops, then by matrices"),
        Mistake("order_kqv", dict(order=lambda Q, K, V: (K, Q, V)), "the answer comes in the order K, Q, V",
                "Queries and keys then swap roles: who asks becomes who answers.", "One word, three jobs"),
        Mistake("order_qvk", dict(order=lambda Q, K, V: (Q, V, K)), "the answer comes in the order Q, V, K",
                "Keys and values then swap roles: what is compared and what is passed on.",
                "One word, three jobs"),
        Mistake("order_vkq", dict(order=lambda Q, K, V: (V, K, Q)), "the answer comes in the order V, K, Q",
                "Each of the three has its own job, and the order tells them apart.", "One word, three jobs"),
        Mistake("same_weight", dict(project=lambda X, W_q, W_k, W_v: three_products(X, W_q, W_q, W_q)),
                "one matrix, W_q, is used for all three",
                "A word could then only look for what it is itself; three matrices give it three jobs.",
                "One word, three jobs"),
        Mistake("k_with_w_q", dict(project=lambda X, W_q, W_k, W_v: three_products(X, W_q, W_q, W_v)),
                "the keys are made with W_q, so that Q and K are the same",
                "Scores would be symmetric: what a word asks would be what it answers to.",
                "One word, three jobs"),
        Mistake("v_with_w_k", dict(project=lambda X, W_q, W_k, W_v: three_products(X, W_q, W_k, W_k)),
                "the values are made with W_k, so that K and V are the same",
                "What makes a word found and what it passes on are two different things.",
                "One word, three jobs"),
        Mistake("k_from_q_input", dict(project=chained),
                "each projection is made from the one before, not from X",
                "All three read the same word; none of them reads another's result.",
                "Three projections by hand"),
        Mistake("k_from_q", dict(project=lambda X, W_q, W_k, W_v: (X @ W_q, X @ W_q @ W_k, X @ W_v)),
                "the keys are made from Q, not from X",
                "All three read the same word; none of them reads another's result.",
                "Three projections by hand"),
        Mistake("v_from_k", dict(project=lambda X, W_q, W_k, W_v: (X @ W_q, X @ W_k, X @ W_k @ W_v)),
                "the values are made from K, not from X",
                "All three read the same word; none of them reads another's result.",
                "Three projections by hand"),
        Mistake("v_from_q", dict(project=lambda X, W_q, W_k, W_v: (X @ W_q, X @ W_k, X @ W_q @ W_v)),
                "the values are made from Q, not from X",
                "All three read the same word; none of them reads another's result.",
                "Three projections by hand"),
        Mistake("value_not_projected", dict(project=lambda X, W_q, W_k, W_v: (X @ W_q, X @ W_k, X)),
                "X itself is returned as V",
                "Attention passes on values, not words: W_v decides what of a word is worth passing on.",
                "What a value carries"),
        Mistake("equal_thirds", dict(project=equal_thirds), "one fused product is cut into three equal parts",
                "That is right only while d_k = d_v; here the cuts are at d_k and 2 d_k.",
                "One fused matrix, cut in the right places"),
        Mistake("array_split_thirds", dict(project=array_split_thirds),
                "one fused product is cut into three equal parts (np.array_split into 3)",
                "That is right only while d_k = d_v; here the cuts are at d_k and 2 d_k.",
                "One fused matrix, cut in the right places"),
        *(Mistake(name, dict(order=pack), "the three are packed into one array",
                  "One array needs things of one shape, and d_v need not be d_k: keep the three apart "
                  "and return Q, K, V.", "How wide? d_k and d_v", by_text=True)
          for name, pack in (("packed", lambda Q, K, V: np.array([Q, K, V])),
                             ("stacked", lambda Q, K, V: np.stack([Q, K, V])))),
        Mistake("scaled",
                dict(project=lambda X, W_q, W_k, W_v: (X @ W_q / np.sqrt(W_q.shape[1]), X @ W_k, X @ W_v)),
                "Q is already divided by √d_k",
                "That belongs to the scores; done here and there it is done twice.", THREE),
        Mistake("elementwise", dict(multiply=lambda X, W: X * W),
                "the product is taken entry by entry (*) in place of @",
                "A projection adds up over features; * adds up nothing and fits only by accident.",
                "By loops, then by matrices"),
    ))

EXERCISES = (PROJECT_QKV,)

"""The exercises of notebook 03 about scores: scores, scaled_scores."""

import numpy as np

from helpers import attention as right
from helpers.checks.exercise import Case, Exercise, Mistake, drawer
from helpers.checks.exercises.softmax_and_masks import softmax_steps


def score_cases():
    draw = drawer(31)
    Q = draw(4, 3)
    return [
        Case("", (draw(5, 6), draw(7, 6))),
        Case("as many keys as queries", (draw(4, 3), draw(4, 3))),
        Case("all sizes equal", (draw(3, 3), draw(3, 3))),
        Case("one query, one key", (draw(1, 4), draw(1, 4))),
        Case("d_k = 1", (draw(2, 1), draw(4, 1))),
        Case("one query", (draw(1, 3), draw(4, 3))),
        Case("Q and K the same", (Q, Q.copy())),
        Case("integers", (draw(3, 2, whole=True), draw(5, 2, whole=True)), style=True),
        Case("one key", (draw(4, 2), draw(1, 2))),
    ]


def scaled_score_cases():
    draw = drawer(32)
    return [
        Case("", (draw(5, 6), draw(7, 6))),
        Case("as many keys as queries", (draw(4, 7), draw(4, 7))),
        Case("all sizes equal", (draw(3, 3), draw(3, 3))),
        Case("d_k = 4", (draw(2, 4), draw(3, 4))),
        Case("d_k = 9", (draw(3, 9), draw(2, 9))),
        Case("d_k = 1", (draw(2, 1), draw(4, 1))),
        Case("one query", (draw(1, 5), draw(3, 5))),
        Case("as many keys as features", (draw(3, 5), draw(5, 5))),
        Case("as many queries as features", (draw(5, 5), draw(3, 5))),
        Case("integers", (draw(3, 2, whole=True), draw(4, 2, whole=True)), style=True),
    ]


def rows_with_rows(Q, K):
    return Q @ K.T


def reshaped(Q, K):
    return Q @ K.reshape(K.shape[1], K.shape[0])


def distances(Q, K):
    return -((Q[:, None] - K[None]) ** 2).sum(-1)


def cosines(Q, K):
    return Q @ K.T / np.linalg.norm(Q, axis=1)[:, None] / np.linalg.norm(K, axis=1)


def divide_in_place(S, factor):
    S /= factor
    return S


def score_steps(Q, K, product=rows_with_rows, scale=lambda Q, K, S: 1, divide=lambda S, factor: S / factor):
    S = product(Q, K)
    return divide(S, scale(Q, K, S))


def scaled_score_steps(Q, K, scale=lambda Q, K, S: np.sqrt(Q.shape[-1]), **steps):
    return score_steps(Q, K, scale=scale, **steps)


BY_HAND, AT_ONCE, FAR = "One query by hand", "Every query at once", "How far apart are the scores?"
PRODUCTS = (
    Mistake("no_transpose", dict(product=lambda Q, K: Q @ K), "K is not transposed (Q @ K)",
            "Then features are multiplied with keys. It only runs at all while there are as many keys as "
            "features, and is wrong even then.", AT_ONCE),
    Mistake("qt_k", dict(product=lambda Q, K: Q.T @ K), "Q is transposed in place of K (Q.T @ K)",
            "That compares features with features. Kᵀ Q is right only where tokens are columns; here a "
            "token is a row.", "Rows or columns"),
    Mistake("rowwise_dot", dict(product=lambda Q, K: np.sum(Q * K, axis=-1)),
            "query i is compared with key i only",
            "Every query has to meet every key: that is what makes the answer a matrix.", AT_ONCE),
    Mistake("reshape_for_T", dict(product=reshaped), "K is reshaped where it should be transposed",
            "reshape fills the new shape in reading order, so the numbers of different keys get mixed up.",
            AT_ONCE),
    Mistake("transposed", dict(product=lambda Q, K: K @ Q.T),
            "the keys come first: rows are keys and columns are queries",
            "Row i must belong to query i, because softmax will share out each row among the keys.", AT_ONCE),
    Mistake("qq", dict(product=lambda Q, K: Q @ Q.T), "queries are compared with queries and K is never used",
            "A query asks; only the keys answer.", AT_ONCE),
    Mistake("kk", dict(product=lambda Q, K: K @ K.T), "keys are compared with keys and Q is never used",
            "The keys answer, but nobody has asked.", AT_ONCE),
    Mistake("distance", dict(product=distances),
            "a (negative, squared) distance is taken in place of the dot product",
            "Distance ignores how long a vector is, and attention lets length count.", BY_HAND),
    Mistake("cosine", dict(product=cosines), "the cosine is taken: the dot product divided by both lengths",
            "Attention lets length count: a long key can be found by everybody.", BY_HAND),
    Mistake("outer", dict(product=lambda Q, K: Q[:, None, :] * K[None, :, :]),
            "the products are not added up over the features",
            "A score is one number for a query and a key: the sum of d_k products.", BY_HAND),
    Mistake("negative", dict(product=lambda Q, K: -(Q @ K.T)), "every score has the opposite sign",
            "Softmax would read most from the key that fits least.", BY_HAND),
)

SCORES = Exercise(
    "3.1", "scores", "03", right.scores,
    arguments={"Q": ("n_q", "d_k"), "K": ("n_k", "d_k")}, returns={"S": ("n_q", "n_k")},
    cases=score_cases, steps=score_steps,
    passed="One matrix product, and every query has met every key.",
    mistakes=(
        *PRODUCTS,
        Mistake("already_scaled", dict(scale=lambda Q, K, S: np.sqrt(Q.shape[-1])),
                "the scores are already divided by √d_k",
                "This exercise asks for the raw dot products; here the next function divides.", FAR),
        Mistake("softmaxed", dict(divide=lambda S, factor: softmax_steps(S)),
                "the scores already went through softmax",
                "Scores are what softmax starts from; this exercise asks for the dot products themselves.",
                "Scores are not the attention pattern"),
    ))

SCALED_SCORES = Exercise(
    "3.2", "scaled_scores", "03", right.scaled_scores,
    arguments={"Q": ("n_q", "d_k"), "K": ("n_k", "d_k")}, returns={"S": ("n_q", "n_k")},
    cases=scaled_score_cases,
    steps=scaled_score_steps,
    passed="You kept the spread near 1 for every d_k, so softmax starts out with a slope.",
    mistakes=(
        Mistake("missing", dict(scale=lambda Q, K, S: 1), "the scores are not divided at all",
                "At d_k = {d_k} it is hard to see; at d_k = 256 softmax would be a switch.", FAR),
        Mistake("d_not_sqrt", dict(scale=lambda Q, K, S: Q.shape[-1]),
                "the scores are divided by d_k, without the root",
                "The spread grows like √d_k, not like d_k: now the scores get ever smaller and softmax ever "
                "flatter.", FAR),
        Mistake("power_precedence", dict(scale=lambda Q, K, S: Q.shape[-1] / 2),
                "the scores are divided by d_k / 2",
                "In Python d_k ** 1/2 means (d_k ** 1) / 2; it agrees with √d_k only at d_k = 4.", FAR),
        Mistake("power_precedence_divided", dict(scale=lambda Q, K, S: Q.shape[-1] * 2),
                "the scores are divided by d_k and then by 2",
                "In Python x / d_k ** 1/2 means (x / d_k) / 2: the root needs brackets, d_k ** (1/2).", FAR),
        Mistake("sqrt_n_keys", dict(scale=lambda Q, K, S: np.sqrt(K.shape[0])),
                "√(number of keys) is what they are divided by",
                "Each score is a sum of d_k products, so d_k sets its spread; the number of keys does not.",
                FAR),
        Mistake("sqrt_n_queries", dict(scale=lambda Q, K, S: np.sqrt(len(Q))),
                "√(number of queries) is what they are divided by",
                "len(Q) counts rows; the spread comes from the number of columns, d_k.", FAR),
        Mistake("int_sqrt", dict(scale=lambda Q, K, S: int(np.sqrt(Q.shape[-1]))),
                "the root is cut to a whole number",
                "√d_k is whole only for d_k = 1, 4, 9, 16, …", FAR),
        Mistake("multiplied", dict(scale=lambda Q, K, S: 1 / np.sqrt(Q.shape[-1])),
                "the scores are multiplied by √d_k",
                "The spread was √d_k too large already; now it is d_k too large.", FAR),
        Mistake("n_keys", dict(scale=lambda Q, K, S: len(K)),
                "the number of keys is what they are divided by",
                "Each score is a sum of d_k products, so d_k sets its spread; the number of keys does not.",
                FAR),
        Mistake("standardised", dict(scale=lambda Q, K, S: S.std()),
                "the scores are divided by their own measured spread",
                "The factor would change with every text. √d_k is a constant of the model: it depends on no "
                "input.", FAR),
        Mistake("in_place_int", dict(divide=divide_in_place),
                "the scores are divided in place, which cannot be done to integers",
                "S /= … keeps the type of S, and an array of integers has no room for decimals.", FAR),
        Mistake("mutates_q", dict(product=lambda Q, K: scale_in_place(Q) @ K.T, scale=lambda Q, K, S: 1),
                "Q itself is scaled in place before the product",
                "Q *= … changes the caller's Q: the next one to use it finds other numbers.", FAR),
        *PRODUCTS,
        Mistake("softmaxed", dict(divide=lambda S, factor: softmax_steps(S / factor)),
                "the scores already went through softmax",
                "Scores are what softmax starts from; this exercise asks for them as they are.",
                "Scores are not the attention pattern"),
    ))


def scale_in_place(Q):
    if Q.dtype.kind != "f":
        return Q * Q.shape[-1] ** -0.5
    Q *= Q.shape[-1] ** -0.5
    return Q

EXERCISES = (SCORES, SCALED_SCORES)

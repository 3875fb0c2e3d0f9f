"""The exercises of notebook 03 that put one head together: single_head, last_query_attention."""

import numpy as np

from helpers import attention as right
from helpers.checks.exercise import Case, Exercise, Mistake, drawer
from helpers.checks.exercises.scores import AT_ONCE, FAR, rows_with_rows
from helpers.checks.exercises.softmax_and_masks import (
    BEFORE,
    CAUSAL,
    LEAK,
    NOT_PATTERN,
    OVERFLOW,
    SLIPS,
    WEIGHTS,
    row_sum,
    slip,
    softmax_steps,
)


def head_cases():
    draw = drawer(36)

    def case(kind, n, d_model, d_k, d_v, causal=False, large=False):
        X, W_q, W_k, W_v = draw(n, d_model), draw(d_model, d_k), draw(d_model, d_k), draw(d_model, d_v)
        if large:                                          # whole numbers, eighths: exact in float32 too
            X, W_q, W_k, W_v = (np.round(4 * a) * f for a, f in ((X, 4), (W_q, 1), (W_k, 1), (W_v, 0.125)))
        return Case(kind, (X, W_q, W_k, W_v), {"causal": True} if causal else {})
    return [
        case("", 4, 5, 3, 2),
        case("causal", 4, 5, 3, 2, causal=True),
        case("all sizes equal", 3, 3, 3, 3),
        case("all sizes equal, causal", 3, 3, 3, 3, causal=True),
        case("d_k and d_v equal", 3, 4, 2, 2),
        case("square weights", 5, 3, 3, 3, causal=True),
        case("as many tokens as d_k", 3, 4, 3, 2),
        case("d_k = 1", 4, 3, 1, 2),
        case("d_v larger than d_model", 3, 2, 3, 4, causal=True),
        case("one token", 1, 4, 2, 3),
        case("large", 4, 5, 4, 2, large=True),
        case("large, causal", 4, 5, 4, 2, causal=True, large=True),
    ]


def hide_with_inf(S, mask):
    return np.where(mask, S, -np.inf)


def head_steps(X, W_q, W_k, W_v, causal=False, project=right.project_qkv, product=rows_with_rows,
               scale=lambda X, Q, V: np.sqrt(Q.shape[-1]), hide=hide_with_inf, softmax=softmax_steps,
               turn=lambda A: A, after=lambda A, mask: A, mixed=lambda X, Q, K, V: V,
               when=lambda causal: causal, values=lambda V, causal: V, mix=lambda A, S, V: A @ V,
               finish=lambda Z, Q: Z, around=lambda Z, X: Z):
    with np.errstate(all="ignore"):
        Q, K, V = project(X, W_q, W_k, W_v)
        S = product(Q, K) / scale(X, Q, V)
        mask, causal = np.tril(np.ones(S.shape, bool)), when(causal)
        if causal:
            S = hide(S, mask)
        A = turn(softmax(S))
        if causal:
            A = after(A, mask)
        V = values(mixed(X, Q, K, V), causal)
        return around(finish(mix(A, np.where(np.isfinite(S), S, 0), V), Q), X)


def project_with(multiply):
    return lambda X, W_q, W_k, W_v: (multiply(X, W_q), multiply(X, W_k), multiply(X, W_v))


def shared_evenly(S):
    """The same weight for every key that is not hidden."""
    return np.isfinite(S) / np.isfinite(S).sum(-1, keepdims=True)


def reversed_sums(V, causal):
    return V[::-1].cumsum(0)[::-1] if causal else V


ONE_HEAD, NEWEST = "One head, whole", "One query for the newest token"
SINGLE_HEAD = Exercise(
    "3.6", "single_head", "03", right.single_head,
    arguments={"X": ("n", "d_model"), "W_q": ("d_model", "d_k"), "W_k": ("d_model", "d_k"),
               "W_v": ("d_model", "d_v")},
    returns={"Z": ("n", "d_v")},
    cases=head_cases, steps=head_steps, does_it_all=(right.attention,),
    passed="That is attention, whole: everything after this is many of these side by side.",
    mistakes=(
        Mistake("no_scale", dict(scale=lambda X, Q, V: 1), "the scores are not divided by √d_k",
                "At d_k = {d_k} it is hard to see; at d_k = 256 softmax would be a switch.", FAR),
        Mistake("d_not_sqrt", dict(scale=lambda X, Q, V: Q.shape[-1]),
                "the scores are divided by d_k, without the root",
                "The spread grows like √d_k; divided by d_k the scores are too small and softmax too flat.",
                FAR),
        Mistake("sqrt_d_model",
                dict(scale=lambda X, Q, V: np.sqrt(X.shape[-1])),
                "the scores are divided by √d_model in place of √d_k",
                "A score is a sum of d_k products, so d_k sets its spread.", FAR),
        Mistake("sqrt_n", dict(scale=lambda X, Q, V: np.sqrt(len(Q))),
                "the scores are divided by √n in place of √d_k",
                "A score is a sum of d_k products, so d_k sets its spread; the number of tokens does not.",
                FAR),
        Mistake("sqrt_d_v", dict(scale=lambda X, Q, V: np.sqrt(V.shape[-1])),
                "the scores are divided by √d_v in place of √d_k",
                "A score is a sum of d_k products, so d_k sets its spread; the width of a value does not.",
                FAR),
        Mistake("power_precedence", dict(scale=lambda X, Q, V: Q.shape[-1] / 2),
                "the scores are divided by d_k / 2",
                "In Python d_k ** 1/2 means (d_k ** 1) / 2.", FAR),
        Mistake("power_precedence_divided", dict(scale=lambda X, Q, V: Q.shape[-1] * 2),
                "the scores are divided by d_k and then by 2",
                "In Python x / d_k ** 1/2 means (x / d_k) / 2: the root needs brackets, d_k ** (1/2).", FAR),
        Mistake("multiplied", dict(scale=lambda X, Q, V: 1 / np.sqrt(Q.shape[-1])),
                "the scores are multiplied by √d_k",
                "The spread was √d_k too large already; now it is d_k too large.", FAR),
        Mistake("scale_after_softmax",
                dict(scale=lambda X, Q, V: 1, finish=lambda Z, Q: Z / np.sqrt(Q.shape[-1])),
                "the division by √d_k comes after softmax",
                "There it only shrinks the answer; it is the scores that must be kept close together.", FAR),
        Mistake("causal_ignored", dict(hide=lambda S, mask: S), "causal=True changes nothing",
                "Each token then reads the words that come after it.", CAUSAL),
        Mistake("causal_inverted", dict(when=lambda causal: not causal),
                "causal is taken the other way round: the mask is used when causal is False",
                "With causal=True each token reads itself and what came before; with False it reads all.",
                CAUSAL),
        Mistake("mask_after", dict(hide=lambda S, mask: S, after=lambda A, mask: A * mask),
                "the mask is applied after softmax",
                "The hidden keys have taken their share by then: what is left no longer adds up to 1.",
                BEFORE),
        Mistake("mask_after_renormalised",
                dict(hide=lambda S, mask: S, after=lambda A, mask: A * mask / row_sum(A * mask)),
                "the mask is applied after softmax and each row divided by what is left",
                "Right on paper; but a huge hidden score has pushed all others to 0 by then, and 0 / 0 is "
                "nan.", BEFORE),
        Mistake("mask_upper", dict(hide=lambda S, mask: np.where(mask.T, S, -np.inf)),
                "the mask is the wrong triangle: the past is hidden and the future read",
                "A token may read itself and what came before it.", CAUSAL),
        Mistake("mask_inverted", dict(hide=lambda S, mask: np.where(mask, -np.inf, S)),
                "the mask is used the wrong way round: what may be read is hidden",
                "True means “may read” in this course.", CAUSAL),
        Mistake("mask_inverted_large", dict(hide=lambda S, mask: np.where(mask, -1e9, S)),
                "the mask is used the wrong way round: what may be read is hidden",
                "True means “may read” in this course.", CAUSAL),
        Mistake("mask_without_self_large", dict(hide=lambda S, mask: np.where(np.tril(mask, -1), S, -1e9)),
                "a token may not read itself",
                "The first token would have nothing to read at all.", CAUSAL),
        Mistake("mask_without_self", dict(hide=lambda S, mask: np.where(np.tril(mask, -1), S, -np.inf)),
                "a token may not read itself",
                "The first token would have nothing to read at all.", CAUSAL),
        Mistake("zero_fill", dict(hide=lambda S, mask: np.where(mask, S, 0.0)), "hidden scores are set to 0",
                LEAK, BEFORE),
        Mistake("always_causal",
                dict(softmax=lambda S: softmax_steps(np.where(np.tril(np.ones(S.shape, bool)), S, -np.inf))),
                "the mask is applied even when causal is False",
                "Without causal every token may read every other.", CAUSAL),
        Mistake("axis0", dict(softmax=slip(SLIPS["axis0"])), "softmax runs down the columns, over queries",
                "Each query shares itself out among the keys: its row must add up to 1.", "Rows or columns"),
        *(Mistake(name, dict(softmax=slip(SLIPS[name])), SLIPS[name].what, SLIPS[name].why, "Rows or columns")
          for name in ("axis0_no_max", "axis0_row_max", "axis0_global_max")),
        Mistake("k_q", dict(product=lambda Q, K: K @ Q.T), "the scores are K Qᵀ: keys ask and queries answer",
                "Row i must hold the scores of query i.", AT_ONCE),
        Mistake("weights_transposed", dict(turn=lambda A: A.T),
                "the weights are transposed before they meet the values",
                "Row i of A says what token i reads; transposed it says by whom it is read.", ONE_HEAD),
        Mistake("no_softmax", dict(mix=lambda A, S, V: S @ V),
                "the scores are used as weights, without softmax",
                "Scores are not shares: they can be negative and do not add up to 1.", NOT_PATTERN),
        Mistake("softmax_after_v", dict(mix=lambda A, S, V: softmax_steps(S @ V)),
                "softmax comes after the values were mixed",
                "Softmax makes weights of scores; the values themselves are passed on as they are.",
                ONE_HEAD),
        Mistake("no_max", dict(softmax=slip(SLIPS["no_max"])),
                "softmax takes exp of large scores as they are",
                OVERFLOW, WEIGHTS),
        Mistake("global_max", dict(softmax=slip(SLIPS["global_max"])),
                SLIPS["global_max"].what,
                SLIPS["global_max"].why, WEIGHTS),
        Mistake("not_normalised", dict(softmax=slip(SLIPS["not_normalised"])),
                SLIPS["not_normalised"].what,
                SLIPS["not_normalised"].why, WEIGHTS),
        Mistake("sum_no_keepdims", dict(softmax=slip(SLIPS["sum_no_keepdims"])),
                SLIPS["sum_no_keepdims"].what,
                SLIPS["sum_no_keepdims"].why, WEIGHTS),
        Mistake("max_no_keepdims", dict(softmax=slip(SLIPS["max_no_keepdims"])),
                SLIPS["max_no_keepdims"].what,
                SLIPS["max_no_keepdims"].why, WEIGHTS),
        Mistake("x_not_v", dict(mixed=lambda X, Q, K, V: X), "the weights mix X, not V",
                "What is passed on is the values: W_v decides what of a token that is.", ONE_HEAD),
        Mistake("k_not_v", dict(mixed=lambda X, Q, K, V: K), "the weights mix the keys, not the values",
                "A key is for being found, a value for being passed on.", ONE_HEAD),
        Mistake("q_not_v", dict(mixed=lambda X, Q, K, V: Q), "the weights mix the queries, not the values",
                "A query asks; what is passed on is the values.", ONE_HEAD),
        Mistake("qv_scores", dict(project=lambda X, W_q, W_k, W_v: (X @ W_q, X @ W_v, X @ W_v)),
                "the queries are compared with the values, not the keys",
                "The keys are what a query is compared with; values may even have another width.", ONE_HEAD),
        Mistake("qq_scores", dict(product=lambda Q, K: Q @ Q.T),
                "the queries are compared with the queries, not the keys",
                "A query asks; the keys answer.", ONE_HEAD),
        Mistake("no_transpose", dict(product=lambda Q, K: Q @ K), "K is not transposed (Q @ K)",
                "It only runs while there are as many tokens as features, and is wrong even then.", AT_ONCE),
        Mistake("projections_transposed", dict(project=project_with(lambda X, W: X @ W.T)),
                "the projections are transposed (X @ W.T)",
                "PyTorch's nn.Linear stores its weights that way round; here W has one row for each feature "
                "of X.", ("02", "By loops, then by matrices")),
        Mistake("no_projection", dict(project=lambda X, W_q, W_k, W_v: (X, X, X @ W_v)),
                "the scores are made from X itself, without W_q and W_k",
                "Then a word can only look for words like itself.", ("02", "One word, three jobs")),
        Mistake("bidirectional_values", dict(values=reversed_sums),
                "each value already holds the sum of all later ones",
                "The mask then hides nothing: the future comes in through V.", CAUSAL),
        Mistake("uniform", dict(softmax=shared_evenly), "all values that may be read are averaged, whatever "
                "the scores", "The scores are what makes it attention: some words matter more than others.",
                ONE_HEAD),
        Mistake("residual_added", dict(around=lambda Z, X: X + Z), "X is already added to the result",
                "A head gives what it has read, d_v numbers for each token; adding it to X comes later, in "
                "notebook 04.", ONE_HEAD),
        Mistake("returns_weights", dict(mix=lambda A, S, V: A),
                "the weights are returned in place of the mixed values",
                "The last step is still missing: A @ V.", ONE_HEAD),
    ))


def last_cases():
    draw = drawer(37)

    def case(kind, n, d_k, d_v, sign=0):
        q, K, V = draw(d_k), draw(n, d_k), draw(n, d_v)
        if sign:                                           # whole numbers: all scores large, of one sign
            q, K = np.round(40 * np.abs(q) + 20), sign * np.round(40 * np.abs(K) + 20)
        return Case(kind, (q, K, V))
    return [
        case("", 5, 3, 4),
        case("all sizes equal", 4, 4, 4),
        case("the first token", 1, 3, 2),
        case("two keys", 2, 4, 3),
        case("d_k and d_v equal", 5, 2, 2),
        case("as many keys as features", 3, 3, 2),
        case("d_k = 1", 3, 1, 2),
        case("large scores", 4, 4, 2, sign=1),
        case("very negative scores", 3, 4, 2, sign=-1),
    ]


def last_steps(q, K, V, product=lambda q, K: K @ q, scale=lambda q, K, V: np.sqrt(len(q)), hide=lambda s: s,
               softmax=softmax_steps, seen=lambda K: K, mixed=lambda K, V: V, mix=lambda a, V: a @ V,
               finish=lambda z: z):
    with np.errstate(all="ignore"):
        K, V = seen(K), seen(V)
        return finish(mix(softmax(hide(product(q, K) / scale(q, K, V))), mixed(K, V)))


def only_first(s):
    return np.where(np.arange(len(s)) == 0, s, -np.inf)


LAST_QUERY_ATTENTION = Exercise(
    "3.7", "last_query_attention", "03", right.last_query_attention,
    arguments={"q": ("d_k",), "K": ("n", "d_k"), "V": ("n", "d_v")}, returns={"z": ("d_v",)},
    cases=last_cases, steps=last_steps, does_it_all=(right.attention,),
    passed="This is all a model computes for each new word, once keys and values are kept.",
    mistakes=(
        Mistake("axis_of_one", dict(softmax=np.ones_like),
                "every weight is 1, as when softmax runs over an axis of length 1",
                "With one query as a column, (n, 1), the keys are the first axis; weights must add up to 1.",
                "Rows or columns"),
        Mistake("no_scale", dict(scale=lambda q, K, V: 1), "the scores are not divided by √d_k",
                "At d_k = {d_k} it is hard to see; at d_k = 256 softmax would be a switch.", FAR),
        Mistake("d_not_sqrt", dict(scale=lambda q, K, V: len(q)),
                "the scores are divided by d_k, without the root",
                "The spread grows like √d_k; divided by d_k the scores are too small and softmax too flat.",
                FAR),
        Mistake("sqrt_n", dict(scale=lambda q, K, V: np.sqrt(len(K))),
                "the scores are divided by √n, the number of keys",
                "A score is a sum of d_k products, so d_k sets its spread; len(K) counts keys.", FAR),
        Mistake("sqrt_d_v", dict(scale=lambda q, K, V: np.sqrt(V.shape[1])),
                "the scores are divided by √d_v in place of √d_k",
                "A score is a sum of d_k products, so d_k sets its spread; the width of a value does not.",
                FAR),
        Mistake("multiplied", dict(scale=lambda q, K, V: 1 / np.sqrt(len(q))),
                "the scores are multiplied by √d_k",
                "The spread was √d_k too large already; now it is d_k too large.", FAR),
        Mistake("power_precedence", dict(scale=lambda q, K, V: len(q) / 2),
                "the scores are divided by d_k / 2",
                "In Python d_k ** 1/2 means (d_k ** 1) / 2.", FAR),
        Mistake("power_precedence_divided", dict(scale=lambda q, K, V: len(q) * 2),
                "the scores are divided by d_k and then by 2",
                "In Python x / d_k ** 1/2 means (x / d_k) / 2: the root needs brackets, d_k ** (1/2).", FAR),
        Mistake("tril_one_row", dict(hide=only_first), "only the first key is read",
                "A causal mask for one row, lined up at the top left, lets only the first key through; the "
                "newest token is the last and may read all.", NEWEST),
        Mistake("skips_self", dict(seen=lambda K: K[:-1]),
                "the newest token's own key and value are left out",
                "A token may read itself, and the very first one has nothing else to read.", NEWEST),
        Mistake("only_last", dict(hide=lambda s: np.where(np.arange(len(s)) == len(s) - 1, s, -np.inf)),
                "only the newest token's own value is read",
                "The newest token may read every key there is; that is what the cache is kept for.", NEWEST),
        Mistake("keys_mixed", dict(mixed=lambda K, V: K), "the weights mix the keys, not the values",
                "A key is for being found, a value for being passed on.", ONE_HEAD),
        Mistake("q_at_k", dict(product=lambda q, K: q @ K), "K is not transposed (q @ K)",
                "It only runs while there are as many keys as features, and is wrong even then.", NEWEST),
        Mistake("row_kept", dict(finish=lambda z: z[None]), "the answer is a row of a matrix, (1, d_v)",
                "One token, one vector: here the answer has the shape (d_v,), as q has the shape (d_k,).",
                NEWEST),
        Mistake("uniform", dict(softmax=lambda s: np.full(len(s), 1 / len(s))),
                "all values are averaged, whatever the scores",
                "The scores are what makes it attention: some words matter more than others.", NEWEST),
        Mistake("hard_max", dict(softmax=lambda s: (np.arange(len(s)) == s.argmax()).astype(float)),
                "only the value with the largest score is taken",
                "Softmax is soft: every key gets its share.", WEIGHTS),
        Mistake("not_normalised", dict(softmax=slip(SLIPS["not_normalised"])),
                "exp is taken and the division by the sum is missing",
                "Weights are shares: they must add up to 1.", WEIGHTS),
        Mistake("no_softmax", dict(softmax=lambda s: s), "the scores are used as weights, without softmax",
                "Scores are not shares: they can be negative and do not add up to 1.", NOT_PATTERN),
        Mistake("no_max", dict(softmax=slip(SLIPS["no_max"])),
                "softmax takes exp of large scores as they are",
                OVERFLOW, WEIGHTS),
        Mistake("returns_weights", dict(mix=lambda a, V: a),
                "the weights are returned in place of the mixed values",
                "The last step is still missing: the weighted sum of the values.", NEWEST),
        Mistake("not_summed", dict(mix=lambda a, V: a[:, None] * V), "the weighted values are not added up",
                "The newest token takes away one vector: the sum.", NEWEST),
    ))

EXERCISES = (SINGLE_HEAD, LAST_QUERY_ATTENTION)

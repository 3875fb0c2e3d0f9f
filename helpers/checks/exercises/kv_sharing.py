"""The exercises of notebook 07: grouped_query_attention, latent_attention."""

import numpy as np

from helpers import kv_sharing as right
from helpers.attention import attention
from helpers.checks.exercise import Case, Exercise, Mistake, drawer
from helpers.checks.exercises.many_heads import MERGE, SPLIT, hide_with_inf, merge, softmax_along, split
from helpers.checks.exercises.scores import FAR
from helpers.checks.exercises.softmax_and_masks import NOT_PATTERN, SLIPS, WEIGHTS, slip, softmax_steps

BY_HAND, GROUPS = "By hand: two heads, one key", "Which heads share"
GROUPED = "Grouped-query attention, whole"
LATENT, FOLDED = "One narrow row for all heads", "Never form the keys"
ATTENTION, HEADS = "03", "04"
SPREAD = "A score is a sum of d_k products, so d_k sets its spread."
AFTER = "the division by √d_k comes after softmax"
AFTER_WHY = "There it only shrinks the answer; it is the scores that must be kept close together."
NO_MASK = "This exercise asks for no mask: every token reads all tokens, those after it too."


def future_hidden(S):
    return hide_with_inf(S, np.tril(np.ones(S.shape[-2:], bool)))


def softmax_slips():
    """The mistakes of softmax itself that people make in every function with heads in front."""
    return (
        Mistake("softmax_heads", dict(softmax=softmax_along(0)), "softmax runs over the heads (axis 0)",
                "With heads in front the last axis is the keys: each head shares itself out among the keys, "
                "on its own.", (ATTENTION, WEIGHTS)),
        Mistake("softmax_heads_no_max", dict(softmax=lambda S: np.exp(S) / np.exp(S).sum(0)),
                "softmax runs over the heads (axis 0), and takes exp of large scores as they are",
                "With heads in front the last axis is the keys: each head shares itself out among the keys, "
                "on its own. And exp(1000) is inf: the largest score is taken away first.",
                (ATTENTION, WEIGHTS)),
        Mistake("softmax_queries", dict(softmax=softmax_along(-2)), "softmax runs over the queries",
                "In (h, n, n) axis 1 is the queries. The keys are the last axis: -1, however many stand in "
                "front.", (ATTENTION, WEIGHTS)),
        Mistake("no_max", dict(softmax=slip(SLIPS["no_max"])),
                "softmax takes exp of large scores as they are", SLIPS["no_max"].why, (ATTENTION, WEIGHTS)),
        Mistake("global_max", dict(softmax=slip(SLIPS["global_max"])), SLIPS["global_max"].what,
                SLIPS["global_max"].why, (ATTENTION, WEIGHTS)),
        Mistake("not_normalised", dict(softmax=slip(SLIPS["not_normalised"])), SLIPS["not_normalised"].what,
                SLIPS["not_normalised"].why, (ATTENTION, WEIGHTS)),
        Mistake("no_softmax", dict(softmax=lambda S: S), "the scores are used as weights, without softmax",
                "Scores are not shares: they can be negative and do not add up to 1.",
                (ATTENTION, NOT_PATTERN)),
        Mistake("weights_transposed", dict(softmax=lambda S: np.swapaxes(softmax_steps(S), -1, -2)),
                "the weights are transposed before they mix the values",
                "A row of the weights belongs to one query and adds up to 1; it stays a row.",
                (ATTENTION, "Rows or columns")),
    )

# ------------------------------------------------------------------------------------ grouped_query_attention


def grouped_cases():
    draw = drawer(71)

    def case(kind, h, g, n, d_k, d_v, large=1, **more):
        Q, K, V = draw(h, n, d_k), draw(g, n, d_k), draw(g, n, d_v)
        if large > 1:                                      # whole numbers: exact in float32 too
            Q, K = np.round(4 * Q) * large, np.round(4 * K) * large
        return Case(kind, (Q, K, V), **more)

    rows_apart = case("rows of very different size", 4, 2, 3, 2, 3)
    Q, K, _ = rows_apart.arguments
    Q[:, 0] = Q[:, 0].round() * 400
    return [
        case("", 4, 2, 3, 4, 2),
        case("six heads in two groups", 6, 2, 4, 3, 2),
        case("six heads in three groups", 6, 3, 4, 2, 3),
        case("one group", 3, 1, 4, 3, 2),
        case("a group for each head", 3, 3, 4, 2, 3),
        case("as many tokens as groups", 4, 2, 2, 3, 4),
        case("as many tokens as heads", 4, 2, 4, 3, 2),
        case("d_k and d_v equal", 4, 2, 3, 2, 2),
        case("one token", 6, 2, 1, 3, 2),
        case("large", 4, 2, 3, 3, 2, large=8),
        rows_apart,
        Case("integers", tuple(draw(*shape, whole=True) for shape in ((4, 3, 2), (2, 3, 2), (2, 3, 3))),
             style=True),
    ]


def neighbours(M, h):
    """(g, …) -> (h, …): head i gets the i // (h/g)-th."""
    return np.repeat(M, h // len(M), axis=0)


def in_turn(M, h):
    return np.tile(M, (h // len(M), 1, 1))


def heads_of_keys(pick):
    """Both keys and values by the same wrong rule: pick(M, h) -> (h, …)."""
    return dict(keys=pick, values=pick)


def last_two_swapped(K):
    return np.swapaxes(K, 1, 2)


def root_of_d_k(Q, *others):
    return np.sqrt(Q.shape[-1])


def weighted_sum(A, V):
    return A @ V


def grouped_steps(Q, K, V, keys=neighbours, values=neighbours, queries=lambda Q, K: Q, turn=last_two_swapped,
                  scale=root_of_d_k, hide=lambda S: S, softmax=softmax_steps, after=lambda Q: 1,
                  mixed=lambda K, V: V, mix=weighted_sum, finish=lambda Z: Z):
    """`after` : what the weights are divided by, after softmax."""
    with np.errstate(all="ignore"):
        h, Q = len(Q), queries(Q, K)
        S = Q @ turn(keys(K, h)) / scale(Q, V)
        return finish(mix(softmax(hide(S)) / after(Q), values(mixed(K, V), h)))


def group_means(Q, K):
    return Q.reshape(len(K), -1, *Q.shape[1:]).mean(axis=1)


def shared_out(M, h):
    """Each key head for one query head only, the rest without any: zeros."""
    return np.concatenate([M, np.zeros((h - len(M), *M.shape[1:]))])


GROUPED_QUERY_ATTENTION = Exercise(
    "7.1", "grouped_query_attention", "07", right.grouped_query_attention,
    arguments={"Q": ("h", "n", "d_k"), "K": ("g", "n", "d_k"), "V": ("g", "n", "d_v")},
    returns={"Z": ("h", "n", "d_v")},
    cases=grouped_cases, steps=grouped_steps, does_it_all=(attention,),
    passed="Many heads ask and few answer: the cache shrinks by h / g, and nothing else changes.",
    mistakes=(
        Mistake("tiled", heads_of_keys(in_turn), "query head i reads key head i % g, round and round",
                "In this course, and in published models, neighbours share: head i reads i // (h/g). "
                "np.repeat lays a, a, b, b; np.tile, and a reshape to (h/g, g, …), lay a, b, a, b.", GROUPS),
        Mistake("k_repeat_v_tile", dict(values=in_turn),
                "keys are repeated head by head, and values round and round (np.tile)",
                "A key and its value belong to the same head: both must be shared out by one rule.", GROUPS),
        Mistake("k_tile_v_repeat", dict(keys=in_turn),
                "values are repeated head by head, and keys round and round (np.tile)",
                "A key and its value belong to the same head: both must be shared out by one rule.", GROUPS),
        Mistake("heads_do_not_meet", heads_of_keys(lambda M, h: np.repeat(M, h // len(M), axis=1)),
                "keys and values still have g heads when they meet the h heads of the queries",
                "A product with heads in front pairs head with head. They can be repeated, h/g times along "
                "the first axis and no other, or the queries can be put into g groups.", GROUPS),
        Mistake("repeat_by_g", heads_of_keys(lambda M, h: np.repeat(M, len(M), axis=0)),
                "keys and values are repeated g times, not h/g times",
                "g heads repeated h/g times make h; repeated g times they make g · g.", GROUPS),
        Mistake("index_by_g", heads_of_keys(lambda M, h: M[np.arange(h) // len(M)]),
                "query head i reads key head i // g",
                "A group has h/g query heads, so the group of head i is i // (h/g).", GROUPS),
        Mistake("first_kv_only", heads_of_keys(lambda M, h: np.repeat(M[:1], h, axis=0)),
                "all heads read the first key and value head",
                "That is multi-query attention with the other key heads thrown away; each group has its own.",
                GROUPS),
        Mistake("last_kv_only", heads_of_keys(lambda M, h: np.repeat(M[-1:], h, axis=0)),
                "all heads read the last key and value head",
                "Each group of query heads has a key and value head of its own.", GROUPS),
        Mistake("kv_averaged", heads_of_keys(lambda M, h: np.repeat(M.mean(0, keepdims=True), h, axis=0)),
                "the key and value heads are averaged into one",
                "Averaging is a way to convert a trained model. Here the g heads are given: each group reads "
                "its own.", GROUPS),
        Mistake("reversed_groups", heads_of_keys(lambda M, h: neighbours(M[::-1], h)),
                "the groups come in reverse order: the first query heads read the last key head",
                "The first h/g query heads share key head 0.", GROUPS),
        Mistake("queries_averaged", dict(queries=group_means, **heads_of_keys(lambda M, h: M)),
                "the queries of a group are averaged, so that only g heads come out",
                "Query heads stay apart: they share what they read, not what they ask. All h come out.",
                BY_HAND),
        Mistake("queries_averaged_for_all",
                dict(queries=lambda Q, K: np.repeat(group_means(Q, K), len(Q) // len(K), axis=0)),
                "the queries of a group are averaged",
                "Query heads stay apart: they share what they read, not what they ask.", BY_HAND),
        Mistake("rest_zero", heads_of_keys(shared_out),
                "only the first g query heads have keys and values, and the others get zeros",
                "Every query head reads the keys and values of its group.", GROUPS),
        Mistake("values_not_shared", dict(values=lambda M, h: np.repeat(M[:1], h, axis=0)),
                "all heads mix the values of the first head",
                "A group reads the keys and the values of the same head.", GROUPED),
        Mistake("no_scale", dict(scale=lambda Q, V: 1), "the scores are not divided by √d_k",
                "Their spread grows with d_k, and softmax becomes a switch.", (ATTENTION, FAR)),
        Mistake("d_not_sqrt", dict(scale=lambda Q, V: Q.shape[-1]),
                "the scores are divided by d_k, without the root",
                "The spread grows like √d_k; divided by d_k the scores are too small and softmax too flat.",
                (ATTENTION, FAR)),
        Mistake("sqrt_all_heads", dict(scale=lambda Q, V: np.sqrt(Q.shape[0] * Q.shape[-1])),
                "the scores are divided by √(h·d_k), the width of all heads together",
                f"{SPREAD} The number of heads does not enter.", (ATTENTION, FAR)),
        Mistake("sqrt_n", dict(scale=lambda Q, V: np.sqrt(Q.shape[1])),
                "the scores are divided by √n, the number of tokens", SPREAD, (ATTENTION, FAR)),
        Mistake("sqrt_h", dict(scale=lambda Q, V: np.sqrt(len(Q))),
                "the scores are divided by √h, the number of heads",
                f"{SPREAD} With heads in front d_k is the last size of the shape.", (ATTENTION, FAR)),
        Mistake("sqrt_d_v", dict(scale=lambda Q, V: np.sqrt(V.shape[-1])),
                "the scores are divided by √d_v in place of √d_k", SPREAD, (ATTENTION, FAR)),
        Mistake("scaled_after", dict(scale=lambda Q, V: 1, after=root_of_d_k), AFTER, AFTER_WHY,
                (ATTENTION, FAR)),
        Mistake("causal", dict(hide=future_hidden), "a causal mask is applied", NO_MASK, GROUPED),
        *softmax_slips(),
        Mistake("weights_returned", dict(mix=lambda A, V: A),
                "the weights are returned in place of the mixed values",
                "The last step is still missing: A @ V.", GROUPED),
        Mistake("k_t", dict(turn=lambda K: K.T), "K.T turns round all three axes of the keys",
                "With heads in front only the last two change places: swapaxes(-1, -2).", (HEADS, SPLIT)),
        Mistake("keys_mixed", dict(mixed=lambda K, V: K), "the weights mix the keys, not the values",
                "A key is for being found, a value for being passed on.", GROUPED),
        Mistake("merged", dict(finish=merge), "the heads are put side by side at the end: (n, h·d_v)",
                "That comes later, before W_o; this exercise asks for (h, n, d_v).", GROUPED),
        Mistake("tokens_first", dict(finish=lambda Z: Z.swapaxes(0, 1)),
                "tokens come first at the end: (n, h, d_v)",
                "This exercise asks for heads in front, (h, n, d_v), as they came.", GROUPED),
    ))

# ------------------------------------------------------------------------------------------- latent_attention


def latent_cases():
    draw = drawer(72)

    def case(kind, n, d, h, d_k, d_v, r, large=1, **more):
        X, W_q, W_down = draw(n, d), draw(d, h * d_k), draw(d, r)
        W_up_k, W_up_v = draw(r, h * d_k), draw(r, h * d_v)
        if large > 1:                                      # whole numbers: exact in float32 too
            X, W_q, W_down, W_up_k = (np.round(2 * a) * f for a, f in
                                      ((X, large), (W_q, 1), (W_down, 1), (W_up_k, 1)))
        return Case(kind, (X, W_q, W_down, W_up_k, W_up_v, h), **more)
    return [
        case("", 3, 5, 2, 2, 1, 3),
        case("more tokens", 5, 4, 3, 2, 2, 3),
        case("one head", 4, 5, 1, 3, 2, 2),
        case("r = d_k = d_v", 4, 5, 2, 3, 3, 3),
        case("one head, r = d_k = d_v", 4, 5, 1, 3, 3, 3),
        case("r = d", 3, 4, 2, 3, 1, 4),
        case("r divisible by the heads", 3, 5, 2, 3, 2, 4),
        case("r = h·d_k", 3, 5, 2, 2, 3, 4),
        case("as many tokens as r", 3, 4, 2, 2, 3, 3),
        case("d = h·d_k", 3, 6, 2, 3, 2, 4),
        case("one token", 1, 5, 2, 3, 2, 4),
        case("large", 3, 4, 2, 3, 2, 2, large=8),
    ]


def naive(X, Q, C, W_up_k, W_up_v, n_heads, split, scale, hide, softmax, merge):
    """Keys and values formed from the latent; then many heads as ever."""
    K, V = split(C @ W_up_k, n_heads), split(C @ W_up_v, n_heads)
    return merge(softmax(hide(Q @ np.swapaxes(K, -1, -2) / scale(X, Q, C, W_up_v))) @ V)


def absorbed(fold=lambda U_k: U_k.swapaxes(1, 2), unfold=lambda Y, U_v: Y @ U_v):
    """Queries taken into the latent's space, what they read taken out of it."""
    def attend(X, Q, C, W_up_k, W_up_v, n_heads, split, scale, hide, softmax, merge):
        S = Q @ fold(split(W_up_k, n_heads)) @ C.T / scale(X, Q, C, W_up_v)
        return merge(unfold(softmax(hide(S)) @ C, split(W_up_v, n_heads)))
    return attend


def own_piece_of_the_latent(X, Q, C, W_up_k, W_up_v, n_heads, split, scale, hide, softmax, merge):
    """Head i reads r // h columns of C, and of the weights the rows that go with them."""
    own, found = C.shape[1] // n_heads, []
    U_k, U_v = split(W_up_k, n_heads), split(W_up_v, n_heads)
    for i in range(n_heads):
        mine = slice(i * own, (i + 1) * own)
        S = Q[i] @ (C[:, mine] @ U_k[i, mine]).T / scale(X, Q, C, W_up_v)
        found.append(softmax(hide(S)) @ C[:, mine] @ U_v[i, mine])
    return merge(np.stack(found))


def latent_cut_into_heads(X, Q, C, W_up_k, W_up_v, n_heads, split, scale, hide, softmax, merge):
    """Fits for one head only: W_up_k has r rows, and each piece r // h columns."""
    K, V = (split(C, n_heads) @ split(W, n_heads) for W in (W_up_k, W_up_v))
    return merge(softmax(hide(Q @ np.swapaxes(K, -1, -2) / scale(X, Q, C, W_up_v))) @ V)


def one_wide_head(X, Q, C, W_up_k, W_up_v, n_heads, split, scale, hide, softmax, merge):
    q, K, V = merge(Q), C @ W_up_k, C @ W_up_v
    return softmax(hide(q @ K.T / scale(X, Q, C, W_up_v))) @ V


def queries_and_keys_swapped(X, Q, C, W_up_k, W_up_v, n_heads, split, scale, hide, softmax, merge):
    K, V = split(C @ W_up_k, n_heads), split(C @ W_up_v, n_heads)
    return merge(softmax(hide(K @ np.swapaxes(Q, -1, -2) / scale(X, Q, C, W_up_v))) @ V)


def values_cut_by_d_k(X, Q, C, W_up_k, W_up_v, n_heads, split, scale, hide, softmax, merge):
    """Head i reads columns i·d_k to (i + 1)·d_k of the values; there may be none there."""
    K, V, d_k = split(C @ W_up_k, n_heads), C @ W_up_v, Q.shape[-1]
    A = softmax(hide(Q @ np.swapaxes(K, -1, -2) / scale(X, Q, C, W_up_v)))
    return np.concatenate([A[i] @ V[:, i * d_k:(i + 1) * d_k] for i in range(n_heads)], axis=1)


def ups_swapped(X, Q, C, W_up_k, W_up_v, *others):
    return naive(X, Q, C, W_up_v, W_up_k, *others)


def keys_as_values(X, Q, C, W_up_k, W_up_v, *others):
    return naive(X, Q, C, W_up_k, W_up_k, *others)


def all_axes_turned(X, Q, C, W_up_k, W_up_v, n_heads, split, scale, hide, softmax, merge):
    K, V = split(C @ W_up_k, n_heads), split(C @ W_up_v, n_heads)
    return merge(softmax(hide(Q @ K.T / scale(X, Q, C, W_up_v))) @ V)


def keys_and_values(Z, C, X, W_up_k, W_up_v, n_heads):
    return Z, (C @ W_up_k, C @ W_up_v)


def keys_and_values_in_heads(Z, C, X, W_up_k, W_up_v, n_heads):
    return Z, (split(C @ W_up_k, n_heads), split(C @ W_up_v, n_heads))


def rms(C):
    return C / np.sqrt((C**2).mean(-1, keepdims=True) + 1e-6)


def layer_normed(C):
    return (C - C.mean(-1, keepdims=True)) / np.sqrt(C.var(-1, keepdims=True) + 1e-5)


def latent_steps(X, W_q, W_down, W_up_k, W_up_v, n_heads, latent=lambda C: C, split=split, attend=naive,
                 scale=lambda X, Q, C, W_up_v: np.sqrt(Q.shape[-1]), hide=lambda S: S, softmax=softmax_steps,
                 after=lambda Q: 1, merge=merge, answer=lambda Z, C, *_: (Z, C)):
    with np.errstate(all="ignore"):
        C, Q = latent(X @ W_down), split(X @ W_q, n_heads)
        Z = attend(X, Q, C, W_up_k, W_up_v, n_heads, split, scale, hide, softmax, merge) / after(Q)
        return answer(Z, C, X, W_up_k, W_up_v, n_heads)


def width_of_all_heads(X, Q, C, W_up_v):
    return np.sqrt(Q.shape[0] * Q.shape[-1])


NOTHING_ELSE = "This exercise asks for the plain product, C = X W_down."
LATENT_ATTENTION = Exercise(
    "7.2", "latent_attention", "07", right.latent_attention,
    arguments={"X": ("n", "d"), "W_q": ("d", "h·d_k"), "W_down": ("d", "r"), "W_up_k": ("r", "h·d_k"),
               "W_up_v": ("r", "h·d_v"), "n_heads": ()},
    returns={"Z": ("n", "h·d_v"), "C": ("n", "r")},
    cases=latent_cases, steps=latent_steps,
    does_it_all=(right.attend_restored, right.attend_absorbed),
    passed="One narrow row a token is all a cache would keep, and every head still has keys of its own.",
    mistakes=(
        Mistake("scale_d_over_h", dict(scale=lambda X, Q, C, W_up_v: np.sqrt(X.shape[1] / len(Q))),
                "the scores are divided by √(d / h)",
                f"{SPREAD} d / h is that width only when h·d_k = d; take d_k from the queries.",
                (ATTENTION, FAR)),
        Mistake("scale_r", dict(scale=lambda X, Q, C, W_up_v: np.sqrt(C.shape[1])),
                "the scores are divided by √r, the width of the latent",
                "Folded or not, these are the same scores, q · k with d_k products: the scale stays √d_k.",
                FOLDED),
        Mistake("scale_all_heads", dict(scale=width_of_all_heads),
                "the scores are divided by √(h·d_k), the width of all heads together",
                f"{SPREAD} Read d_k after the split, or divide by n_heads.", (ATTENTION, FAR)),
        Mistake("scale_d", dict(scale=lambda X, Q, C, W_up_v: np.sqrt(X.shape[1])),
                "the scores are divided by √d, the width of a token", SPREAD, (ATTENTION, FAR)),
        Mistake("no_scale", dict(scale=lambda X, Q, C, W_up_v: 1), "the scores are not divided by √d_k",
                "Their spread grows with d_k, and softmax becomes a switch.", (ATTENTION, FAR)),
        Mistake("d_not_sqrt", dict(scale=lambda X, Q, C, W_up_v: Q.shape[-1]),
                "the scores are divided by d_k, without the root",
                "The spread grows like √d_k; divided by d_k the scores are too small and softmax too flat.",
                (ATTENTION, FAR)),
        Mistake("scale_d_v", dict(scale=lambda X, Q, C, W_up_v: np.sqrt(W_up_v.shape[1] // len(Q))),
                "the scores are divided by √d_v in place of √d_k", SPREAD, (ATTENTION, FAR)),
        Mistake("scaled_after", dict(scale=lambda X, Q, C, W_up_v: 1, after=root_of_d_k), AFTER, AFTER_WHY,
                (ATTENTION, FAR)),
        Mistake("latent_split", dict(attend=latent_cut_into_heads),
                "C is cut into heads, as queries, keys and values are",
                "Every head reads the whole latent row; what is the head's own is its columns of W_up_k and "
                "W_up_v.", LATENT, by_text=True),
        Mistake("absorb_no_T", dict(attend=absorbed(fold=lambda U_k: U_k)),
                "a query is multiplied by W_up_k as it stands, not transposed",
                "q · (c W_up_k) = (q W_up_kᵀ) · c: folded into the query the weights change sides, and "
                "(n, d_k) @ (d_k, r) fits.", FOLDED),
        Mistake("wuv_missing", dict(attend=absorbed(unfold=lambda Y, U_v: Y)),
                "what is read stays in the latent's space: W_up_v is never used",
                "A (C W_up_v) = (A C) W_up_v: the weights come after the mixing, and must still come.",
                FOLDED),
        Mistake("latent_per_head", dict(attend=own_piece_of_the_latent),
                "the columns of C are shared out among the heads",
                "Every head reads the whole latent row; what is the head's own is its columns of W_up_k and "
                "W_up_v.", LATENT),
        Mistake("reshape_no_T", dict(split=lambda Y, h: Y.reshape(h, len(Y), -1)),
                "heads are made by one reshape to (h, n, …)",
                "reshape reads row by row: a head then gets pieces of whole tokens, not its columns of every "
                "token. Reshape to (n, h, …), then swap.", (HEADS, SPLIT)),
        Mistake("merge_no_T", dict(merge=lambda H: H.reshape(H.shape[1], -1)),
                "the heads are put together by one reshape from (h, n, d_v)",
                "Memory runs through all tokens of head 0 first: swap heads and tokens, then reshape.",
                (HEADS, MERGE)),
        Mistake("interleaved", dict(split=lambda Y, h: Y.reshape(len(Y), -1, h).transpose(2, 0, 1)),
                "head i takes every h-th column", "A head owns neighbouring columns.", (HEADS, SPLIT)),
        Mistake("one_wide_head", dict(attend=one_wide_head), "all columns are used as one head",
                "Each of the heads has scores and a pattern of its own.", LATENT),
        Mistake("no_heads", dict(attend=one_wide_head, scale=width_of_all_heads),
                "everything is done with one head of all columns, as if n_heads were 1",
                "Each of the heads has scores and a pattern of its own, from its own columns.", LATENT),
        Mistake("latent_nonlinear", dict(latent=lambda C: np.maximum(C, 0)),
                "negative numbers of the latent are set to 0 (a ReLU)",
                f"{NOTHING_ELSE} With anything but a product in between, nothing could be folded.", LATENT),
        Mistake("latent_normalised", dict(latent=rms), "the latent rows are normalised (RMSNorm)",
                f"DeepSeek's models do that. {NOTHING_ELSE}", LATENT),
        Mistake("latent_unit", dict(latent=lambda C: C / np.linalg.norm(C, axis=-1, keepdims=True)),
                "the latent rows are divided by their lengths", NOTHING_ELSE, LATENT),
        Mistake("latent_layer_norm", dict(latent=layer_normed), "the latent rows are normalised (LayerNorm)",
                NOTHING_ELSE, LATENT),
        Mistake("q_k_swapped", dict(attend=queries_and_keys_swapped),
                "queries and keys have changed places",
                "The queries are X W_q, the keys C W_up_k; row i holds what token i asks of all the others.",
                LATENT),
        Mistake("values_cut_by_d_k", dict(attend=values_cut_by_d_k),
                "the values are cut into pieces of d_k columns",
                "A value has d_v numbers, and d_v need not be d_k: take each width from its own array.",
                (HEADS, SPLIT)),
        Mistake("ups_swapped", dict(attend=ups_swapped), "W_up_k and W_up_v have changed places",
                "W_up_k makes the keys, which meet the queries; W_up_v makes what is passed on.", LATENT),
        Mistake("keys_as_values", dict(attend=keys_as_values), "the weights mix the keys, not the values",
                "A key is for being found, a value for being passed on.", LATENT),
        Mistake("causal", dict(hide=future_hidden), "a causal mask is applied", NO_MASK, LATENT),
        *softmax_slips(),
        Mistake("not_returned", dict(answer=lambda Z, C, *_: Z), "C is not returned",
                "It is what a cache would keep: return Z and C.", LATENT),
        Mistake("c_first", dict(answer=lambda Z, C, *_: (C, Z)), "C comes first",
                "The exercise asks for Z first, then C.", LATENT),
        Mistake("x_kept", dict(answer=lambda Z, C, X, *_: (Z, X)), "X is returned in place of C",
                "What a cache would keep is narrower: the r numbers of C a token.", LATENT),
        Mistake("keys_kept", dict(answer=lambda Z, C, X, W_up_k, *_: (Z, C @ W_up_k)),
                "the keys are returned in place of C",
                "Keys and values can be made from C whenever they are needed: only C is kept.", LATENT),
        Mistake("three_things", dict(answer=lambda Z, C, X, W_up_k, W_up_v, h: (Z, C @ W_up_k, C @ W_up_v)),
                "Z, keys and values are returned",
                "Keys and values can be made from C whenever they are needed: only C is kept.", LATENT),
        *(Mistake(name, dict(answer=answer), "keys and values are returned in place of C",
                  "They can be made from C whenever they are needed: only C is kept.", LATENT)
          for name, answer in (("keys_and_values", keys_and_values),
                               ("keys_and_values_in_heads", keys_and_values_in_heads))),
        Mistake("k_t", dict(attend=all_axes_turned), "K.T turns round all three axes of the keys",
                "With heads in front only the last two change places: swapaxes(-1, -2).", (HEADS, SPLIT)),
        Mistake("heads_in_front", dict(merge=lambda H: H), "the heads are not put side by side at the end",
                "Z is (n, h·d_v), a row a token, as multi_head has it before W_o.", (HEADS, MERGE)),
    ))

EXERCISES = (GROUPED_QUERY_ATTENTION, LATENT_ATTENTION)

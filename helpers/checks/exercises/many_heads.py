"""The exercises of notebook 04: split_heads, merge_heads, multi_head, pre_norm_residual."""

from functools import partial

import numpy as np

from helpers import multi_head as right
from helpers.checks.exercise import Case, Exercise, Mistake, drawer
from helpers.checks.exercises.scores import FAR
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

BY_HAND, SPLIT, MERGE = "Two heads by hand", "Split: reshape, then swap", "Concatenate: the way back"
WHOLE, WIDE = "Many heads in one function", "One wide head or many narrow ones?"
AROUND, ATTENTION = "The norm in front, the residual around", "03"
TRAPS = "Common traps"

# ------------------------------------------------------------------------------------------------ split_heads


def split_cases():
    draw = drawer(41)

    def case(kind, n, h, d_k, **more):
        return Case(kind, (draw(n, h * d_k), h), **more)
    return [
        case("", 4, 3, 2),
        case("one head", 3, 1, 4),
        case("as many heads as columns", 3, 4, 1),
        case("as many tokens as heads", 3, 3, 2),
        case("d_k = n_heads", 5, 2, 2),
        case("as many tokens as d_k", 4, 2, 4),
        case("one token", 1, 3, 2),
        case("two heads", 3, 2, 5),
        Case("integers", (np.arange(24).reshape(2, 12), 4), style=True),
        Case("n_heads does not divide the width", (draw(3, 7), 2), raises=True,
             says="X of shape (3, 7), n_heads = 2: two heads cannot share 7 columns",
             edge="n_heads = 2 and 7 columns are taken without a word. The exercise asks for an error when "
                  "n_heads does not divide the width, so that no column is lost."),
    ]


def blocks(X, n_heads):
    """(n, h, d_k): the columns cut into neighbours."""
    return X.reshape(len(X), n_heads, -1)


def heads_first(H):
    return H.swapaxes(0, 1)


def split_steps(X, n_heads, cut=blocks, turn=heads_first, finish=lambda H: H):
    return finish(turn(cut(X, n_heads)))


def same(H):
    return H


def whole_copies(X, n_heads):
    return np.stack([X] * n_heads, axis=1)


def rows_cut(X, n_heads):
    return X.reshape(n_heads, -1, X.shape[1])


SPLIT_HEADS = Exercise(
    "4.1", "split_heads", "04", right.split_heads,
    arguments={"X": ("n", "width"), "n_heads": ()}, returns={"H": ("h", "n", "d_k")},
    cases=split_cases, steps=split_steps, does_it_all=(right.heads_of,),
    passed="Every head has its own few columns now, of every token.",
    mistakes=(
        Mistake("no_swap", dict(turn=same), "the heads are cut and never brought to the front: (n, h, d_k)",
                "Every step after this one works on the last two axes, and those must be tokens and features "
                "of one head.", SPLIT),
        Mistake("reshape_only", dict(cut=lambda X, h: X.reshape(h, len(X), -1), turn=same),
                "one reshape goes straight to (h, n, d_k)",
                "reshape reads row by row, so the first head gets whole tokens, chopped up, in place of its "
                "columns of every token.", SPLIT),
        Mistake("wrong_axes", dict(turn=lambda H: H.transpose(1, 2, 0)),
                "the axes are put in the order (h, d_k, n)",
                "Within a head a row must be a token, as everywhere else.", SPLIT),
        Mistake("all_reversed", dict(turn=lambda H: H.T), "all three axes are turned round (.T)",
                ".T reverses every axis; of three axes only the first two should change places.", SPLIT),
        Mistake("fortran", dict(cut=lambda X, h: X.reshape((h, len(X), -1), order="F"), turn=same),
                'the array is read column by column (order="F")',
                "Neighbouring columns then end up in different heads.", SPLIT),
        Mistake("interleaved", dict(cut=lambda X, h: X.reshape(len(X), -1, h),
                                    turn=lambda H: H.transpose(2, 0, 1)),
                "head r takes every h-th column: r, r + h and so on",
                "In this course a head owns neighbouring columns; weights made one way cannot be read the "
                "other way.", SPLIT),
        Mistake("sizes_swapped", dict(cut=lambda X, h: X.reshape(len(X), -1, h)),
                "the number of heads and the width of a head have changed places",
                "The columns are cut into pieces of n_heads numbers, where n_heads pieces are wanted.",
                SPLIT),
        Mistake("repeated", dict(cut=whole_copies), "every head gets a copy of all the columns",
                "A head sees all tokens, and of each token only its own d_k columns.", BY_HAND),
        Mistake("rows_cut", dict(cut=rows_cut, turn=same), "the rows are cut in place of the columns",
                "Every head reads the whole text; what is shared out among the heads is the columns.",
                BY_HAND),
        Mistake("reversed", dict(finish=lambda H: H[::-1]), "the heads come in the opposite order",
                "Head 0 owns the first columns; rows of W_o would meet the wrong head later.", SPLIT),
    ))

# ------------------------------------------------------------------------------------------------ merge_heads


def merge_cases():
    draw = drawer(42)
    return [
        Case("", (draw(3, 4, 2),)),
        Case("one head", (draw(1, 3, 4),)),
        Case("as many tokens as heads", (draw(3, 3, 2),)),
        Case("as many heads as d_k", (draw(2, 5, 2),)),
        Case("as many tokens as d_k", (draw(2, 4, 4),)),
        Case("one token", (draw(3, 1, 2),)),
        Case("more decimals", (draw(2, 3, 3) / 3,)),
        Case("all sizes equal", (draw(3, 3, 3),)),
        Case("d_k = 1", (draw(4, 3, 1),)),
        Case("integers", (np.arange(24).reshape(2, 3, 4),), style=True),
    ]


def tokens_first(H):
    return H.swapaxes(0, 1)


def side_by_side(H):
    return H.reshape(len(H), -1)


def merge_steps(H, turn=tokens_first, join=side_by_side):
    return join(turn(H))


MERGE_HEADS = Exercise(
    "4.2", "merge_heads", "04", right.merge_heads,
    arguments={"H": ("h", "n", "d_k")}, returns={"X": ("n", "h·d_k")},
    cases=merge_cases, steps=merge_steps,
    passed="Everything the heads found for a token stands in its row again.",
    mistakes=(
        Mistake("reshape_only", dict(turn=same, join=lambda H: H.reshape(H.shape[1], -1)),
                "one reshape goes straight to (n, h·d_k)",
                "With the heads in front, reading row by row goes through all tokens of head 0 first: rows "
                "then mix tokens. The tokens must come first.", MERGE),
        Mistake("concat_axis0", dict(turn=same, join=lambda H: H.reshape(-1, H.shape[-1])),
                "the heads are set one below the other, (h·n, d_k)",
                "np.concatenate joins along axis 0 unless told otherwise; a token's row must hold all heads.",
                MERGE),
        Mistake("sum", dict(turn=same, join=lambda H: H.sum(0)), "the heads are added up",
                "W_o has own rows for every head; once added up, nobody can tell them apart.", MERGE),
        Mistake("mean", dict(turn=same, join=lambda H: H.mean(0)), "the heads are averaged",
                "W_o has own rows for every head; once averaged, nobody can tell them apart.", MERGE),
        Mistake("transposed", dict(turn=lambda H: H.swapaxes(1, 2), join=lambda H: H.reshape(-1, H.shape[2])),
                "features stand in rows and tokens in columns, (h·d_k, n)",
                "In this course a token is a row; W_o stands on the right.", MERGE),
        Mistake("stack_last", dict(join=lambda H: H.swapaxes(1, 2)),
                "the heads are stacked along a new last axis, (n, d_k, h)",
                "There is no join yet: the result must have two axes, (n, h·d_k).", MERGE),
        Mistake("swap_only", dict(join=same), "tokens and heads have changed places and nothing is joined",
                "(n, h, d_k) is half the way: a reshape must still join the last two axes.", MERGE),
        Mistake("interleaved", dict(join=lambda H: H.swapaxes(1, 2).reshape(len(H), -1)),
                "the first numbers of all heads come first, then all second ones, and so on",
                "A head's numbers must stand together, because its rows of W_o do.", MERGE),
        Mistake("fortran", dict(turn=same, join=lambda H: H.reshape((H.shape[1], -1), order="F")),
                'the array is read in the opposite order (order="F")',
                "Rows then mix numbers of different tokens.", MERGE),
        Mistake("first_only", dict(join=lambda H: np.tile(H[:, 0], H.shape[1])),
                "the first head is repeated and the others never used",
                "Each head has looked for something else; all of them belong in the row.", MERGE),
        Mistake("first_head_alone", dict(join=lambda H: H[:, 0]), "only the first head is returned",
                "Each head has looked for something else; all of them belong in the row.", MERGE),
        Mistake("last_missing", dict(join=lambda H: side_by_side(H[:, :-1])), "the last head is missing",
                "range(h - 1) ends one too early, and so does [:-1]: each head belongs in the row.", MERGE),
        Mistake("last_zero", dict(join=lambda H: side_by_side(H * (np.arange(H.shape[1]) < H.shape[1] - 1)[
                    :, None])), "the last head is missing, its columns are 0",
                "range(h - 1) ends one too early: each head belongs in the row.", MERGE),
        Mistake("reversed", dict(join=lambda H: side_by_side(H[:, ::-1])),
                "the heads come in the opposite order",
                "Head 0 owns the first rows of W_o and must stand in the first columns.", MERGE),
    ))

# ------------------------------------------------------------------------------------------------- multi_head


def multi_cases():
    draw = drawer(43)

    def case(kind, n, d_model, h, d_k, d_v, causal=False, large=0):
        X, W_q, W_k = draw(n, d_model), draw(d_model, h * d_k), draw(d_model, h * d_k)
        W_v, W_o = draw(d_model, h * d_v), draw(h * d_v, d_model)
        if large:                                          # whole numbers: exact in float32 too
            factors = (X, large), (W_q, 1), (W_k, 1), (W_v, 0.125)
            X, W_q, W_k, W_v = (np.round(4 * a) * f for a, f in factors)
        return Case(kind, (X, W_q, W_k, W_v, W_o, h), {"causal": True} if causal else {})

    rows_apart = case("rows of very different size", 3, 4, 2, 3, 2)
    X, W_q, W_k, *_ = rows_apart.arguments
    X[:, :2], W_q[1], W_k[0] = ((1, 2.5), (1, -2.4), (1, 0.5)), 13, 10     # scores near 600, -600 and 100
    return [
        case("", 3, 4, 2, 3, 1),
        case("causal", 3, 4, 2, 3, 1, causal=True),
        case("h·d_k = d_model", 5, 6, 3, 2, 2),
        case("h·d_k = d_model, causal", 5, 6, 3, 2, 2, causal=True),
        case("one head", 4, 3, 1, 2, 3),
        case("as many tokens as heads", 3, 4, 3, 2, 2),
        case("as many heads as d_k", 4, 5, 2, 2, 3, causal=True),
        case("square weights", 4, 4, 2, 2, 2),
        case("h·d_v = d_model", 3, 4, 2, 1, 2),
        case("one token", 1, 4, 2, 3, 2),
        case("large", 4, 4, 2, 3, 2, large=4),
        case("large, causal", 4, 4, 2, 3, 2, causal=True, large=4),
        rows_apart,
    ]


def split(Y, n_heads):
    return Y.reshape(len(Y), n_heads, -1).swapaxes(0, 1)


def merge(H):
    return side_by_side(tokens_first(H))


def hide_with_inf(S, mask):
    return np.where(mask, S, -np.inf)


def attend_in_heads(X, W_q, W_k, W_v, n_heads, causal, split, scale, hide, softmax, after, mixed, merge):
    Q, K, V = split(X @ W_q, n_heads), split(X @ W_k, n_heads), split(X @ W_v, n_heads)
    S = Q @ np.swapaxes(K, -1, -2) / scale(X, W_q, Q, V)
    mask = np.tril(np.ones(S.shape[-2:], bool))
    A = softmax(hide(S, mask) if causal else S)
    return merge((after(A, mask) if causal else A) @ mixed(Q, K, V))


def multi_steps(X, W_q, W_k, W_v, W_o, n_heads, causal=False, split=split,
                scale=lambda X, W_q, Q, *_: np.sqrt(Q.shape[-1]), hide=hide_with_inf, softmax=softmax_steps,
                after=lambda A, mask: A, mixed=lambda Q, K, V: V, merge=merge, attend=attend_in_heads,
                mix=lambda Z, W_o, X: Z @ W_o, finish=lambda Y, X: Y):
    with np.errstate(all="ignore"):
        Z = attend(X, W_q, W_k, W_v, n_heads, causal, split, scale, hide, softmax, after, mixed, merge)
        return finish(mix(Z, W_o, X), X)


def one_wide_head(X, W_q, W_k, W_v, n_heads, causal, split, scale, hide, softmax, after, mixed, merge):
    """One head over all columns, with the scale of a narrow one."""
    def wide(Y, n_heads):
        return Y

    def narrow(X, W_q, Q, V):
        return scale(X, W_q, Q[:, :Q.shape[1] // n_heads], V)
    return attend_in_heads(X, W_q, W_k, W_v, n_heads, causal, wide, narrow, hide, softmax, after, mixed,
                           lambda Z: Z)


def slices_of_x(X, W_q, W_k, W_v, n_heads, causal, split, scale, hide, softmax, after, mixed, merge):
    """Each head projects its own columns of X only."""
    own, found = X.shape[1] // n_heads, []
    for r in range(n_heads):
        mine = slice(r * own, (r + 1) * own)
        parts = [W[mine, r * (W.shape[1] // n_heads):(r + 1) * (W.shape[1] // n_heads)]
                 for W in (W_q, W_k, W_v)]
        found.append(attend_in_heads(X[:, mine], *parts, 1, causal, split, scale, hide, softmax, after, mixed,
                                     merge))
    return np.concatenate(found, axis=1)


def split_before_projection(X, W_q, W_k, W_v, n_heads, causal, split, *others):
    return attend_in_heads(split(X, n_heads), W_q, W_k, W_v, n_heads, causal, lambda Y, n_heads: Y, *others)


def values_cut_by_d_k(X, W_q, W_k, W_v, n_heads, causal, split, scale, hide, softmax, after, mixed, merge):
    """Head r gets columns r·d_k to (r + 1)·d_k of W_v too; there may be none there."""
    d_k = W_q.shape[1] // n_heads
    own = [slice(r * d_k, (r + 1) * d_k) for r in range(n_heads)]
    return np.concatenate([
        attend_in_heads(X, W_q[:, mine], W_k[:, mine], W_v[:, mine], 1, causal, lambda Y, n_heads: Y[None],
                        scale, hide, softmax, after, mixed, lambda H: H[0]) for mine in own], axis=1)


def cut_by_d_model(X, W_q, W_k, W_v, n_heads, causal, split, scale, hide, softmax, after, mixed, merge):
    """Head r gets d_model / h columns of each; there may be none there."""
    own = X.shape[1] // n_heads
    cuts = [slice(r * own, (r + 1) * own) for r in range(n_heads)]
    return np.concatenate([
        attend_in_heads(X, W_q[:, mine], W_k[:, mine], W_v[:, mine], 1, causal, lambda Y, n_heads: Y[None],
                        lambda *_: np.sqrt(own), hide, softmax, after, mixed, lambda H: H[0])
        for mine in cuts], axis=1)


def all_axes_turned(X, W_q, W_k, W_v, n_heads, causal, split, scale, hide, softmax, after, mixed, merge):
    """Scores with K.T, which of three axes turns round all."""
    Q, K = split(X @ W_q, n_heads), split(X @ W_k, n_heads)
    return merge(softmax(Q @ K.T / scale(X, W_q, Q, K)) @ split(X @ W_v, n_heads))


def queries_and_keys_swapped(X, W_q, W_k, *others):
    return attend_in_heads(X, W_k, W_q, *others)


def softmax_along(axis):
    def softmax(S):
        e = np.exp(S - S.max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)
    return softmax


def tokens_kept_first(Y, n_heads):
    return Y.reshape(len(Y), n_heads, -1)


MULTI_HEAD = Exercise(
    "4.3", "multi_head", "04", right.multi_head,
    arguments={"X": ("n", "d_model"), "W_q": ("d_model", "h·d_k"), "W_k": ("d_model", "h·d_k"),
               "W_v": ("d_model", "h·d_v"), "W_o": ("h·d_v", "d_model"), "n_heads": ()},
    returns={"Y": ("n", "d_model")},
    cases=multi_cases, steps=multi_steps,
    passed="Many heads look at once, each for something of its own, and W_o mixes what they found.",
    mistakes=(
        Mistake("scale_d_model", dict(scale=lambda X, W_q, Q, *_: np.sqrt(X.shape[-1])),
                "the scores are divided by √d_model in place of √d_k",
                "A head's score is a sum of d_k products, so the width of one head sets its spread.", WHOLE),
        *(Mistake(name, dict(scale=scale), "the scores are divided by √(d_model / h) in place of √d_k",
                  "They are the same only where h·d_k = d_model: take d_k from the queries, after the split.",
                  WHOLE)
          for name, scale in (
              ("scale_d_model_over_h", lambda X, W_q, Q, *_: np.sqrt(X.shape[-1] / len(Q))),
              ("scale_d_model_over_h_whole", lambda X, W_q, Q, *_: np.sqrt(X.shape[-1] // len(Q))))),
        Mistake("cut_by_d_model", dict(attend=cut_by_d_model),
                "the weights are cut into pieces of d_model / h columns",
                "The width of a head is d_k, whatever d_model is: take it from W_q, d_v from W_v.", SPLIT),
        Mistake("scale_all_heads", dict(scale=lambda X, W_q, Q, *_: np.sqrt(W_q.shape[1])),
                "the scores are divided by √(h·d_k), the width of all heads together",
                "A head's score is a sum of d_k products: read d_k after the split, or divide by n_heads.",
                WHOLE),
        Mistake("scale_d_v", dict(scale=lambda X, W_q, Q, V: np.sqrt(V.shape[-1])),
                "the scores are divided by √d_v in place of √d_k",
                "A score is a product of a query and a key; values have no part in it.", WHOLE),
        Mistake("no_scale", dict(scale=lambda X, W_q, Q, *_: 1), "the scores are not divided by √d_k",
                "Their spread grows with d_k, and softmax becomes a switch.", (ATTENTION, FAR)),
        Mistake("d_not_sqrt", dict(scale=lambda X, W_q, Q, *_: Q.shape[-1]),
                "the scores are divided by d_k, without the root",
                "The spread grows like √d_k; divided by d_k the scores are too small and softmax too flat.",
                (ATTENTION, FAR)),
        Mistake("power_precedence", dict(scale=lambda X, W_q, Q, *_: Q.shape[-1] / 2),
                "the scores are divided by d_k / 2",
                "In Python d_k ** 1/2 means (d_k ** 1) / 2.", (ATTENTION, FAR)),
        Mistake("scale_times_two", dict(scale=lambda X, W_q, Q, *_: 2 * Q.shape[-1]),
                "the scores are divided by d_k and then by 2",
                "In Python x / d_k ** 1/2 means (x / d_k) / 2: the power comes first, then the two divisions "
                "from the left.", (ATTENTION, FAR)),
        Mistake("sqrt_n", dict(scale=lambda X, W_q, Q, *_: np.sqrt(len(X))),
                "the scores are divided by √n, the number of tokens",
                "A score is a sum of d_k products, so d_k sets its spread; the number of tokens does not.",
                (ATTENTION, FAR)),
        Mistake("scale_n_heads", dict(scale=lambda X, W_q, Q, *_: np.sqrt(len(Q))),
                "the scores are divided by the root of the number of heads",
                "Once the heads are in front, len(Q) counts heads; d_k is the last axis.", WHOLE),
        Mistake("one_big_head", dict(attend=one_wide_head), "all columns together are treated as one head",
                "There is then a single pattern of weights; with heads there are h, each looking for "
                "something else.", WIDE),
        Mistake("one_big_head_big_scale",
                dict(attend=one_wide_head, scale=lambda X, W_q, Q, *_: np.sqrt(W_q.shape[1])),
                "all columns together are treated as one wide head",
                "There is then a single pattern of weights; with heads there are h, each looking for "
                "something else.", WIDE),
        Mistake("merge_reshape", dict(merge=lambda H: H.reshape(H.shape[1], -1)),
                "the heads are joined by one reshape, with the heads still in front",
                "Rows then mix what belongs to different tokens: swap back first, then reshape.", MERGE),
        Mistake("split_reshape", dict(split=lambda Y, h: Y.reshape(h, len(Y), -1)),
                "the heads are cut by one reshape to (h, n, d_k)",
                "A head then gets a few tokens, chopped up, in place of its columns of every token.", SPLIT),
        Mistake("both_reshape", dict(split=lambda Y, h: Y.reshape(h, len(Y), -1),
                                     merge=lambda H: H.reshape(H.shape[1], -1)),
                "the heads are cut and joined by reshape alone, without a swap",
                "Each head then reads a few tokens, chopped up, in place of its columns of every token.",
                SPLIT),
        Mistake("interleaved", dict(split=lambda Y, h: Y.reshape(len(Y), -1, h).transpose(2, 0, 1),
                                    merge=lambda H: H.transpose(1, 2, 0).reshape(H.shape[1], -1)),
                "head r takes every h-th column, on the way in and on the way out",
                "It is a way to lay out heads, but not the one of this course: here a head owns neighbouring "
                "columns, and the weights given are laid out so.", SPLIT),
        Mistake("merge_interleaved",
                dict(merge=lambda H: H.transpose(1, 2, 0).reshape(H.shape[1], -1)),
                "the heads are joined number by number, not one after the other",
                "Rows of W_o then meet numbers of other heads.", MERGE),
        Mistake("heads_reversed", dict(merge=lambda H: merge(H[::-1])),
                "the heads are joined in the opposite order",
                "Rows of W_o then meet another head's numbers.", MERGE),
        Mistake("no_wo", dict(mix=lambda Z, W_o, X: Z), "the joined heads are returned, without W_o",
                "W_o is what mixes the heads, and what brings them back to d_model numbers.", WHOLE),
        Mistake("wo_transposed", dict(mix=lambda Z, W_o, X: Z @ W_o.T), "W_o is transposed (… @ W_o.T)",
                "PyTorch's nn.Linear stores its weights that way round; here W_o has a row for each number "
                "of the joined heads.", WHOLE),
        Mistake("softmax_heads", dict(softmax=softmax_along(0)), "softmax runs over the heads (axis 0)",
                "With heads in front the last axis is the keys: each head shares itself out among the keys, "
                "on its own.", WHOLE),
        Mistake("softmax_heads_finite", dict(softmax=softmax_along(0),
                                             hide=lambda S, mask: np.where(mask, S, -1e9)),
                "softmax runs over the heads (axis 0)",
                "With heads in front the last axis is the keys: each head shares itself out among the keys, "
                "on its own.", WHOLE),
        Mistake("softmax_queries", dict(softmax=softmax_along(-2)), "softmax runs over the queries",
                "In (h, n, n) axis 1 is the queries. The keys are the last axis: -1, however many stand in "
                "front.", WHOLE),
        Mistake("heads_attend_heads", dict(split=tokens_kept_first, merge=side_by_side,
                                           hide=lambda S, mask: S),
                "the heads were not brought to the front, so that each token mixes its own heads",
                "(n, h, d_k) @ (n, d_k, h) compares heads with heads inside one token, and no token reads "
                "another.", SPLIT),
        Mistake("causal_ignored", dict(hide=lambda S, mask: S), "causal=True changes nothing",
                "Each token then reads the words that come after it.", (ATTENTION, CAUSAL)),
        Mistake("always_causal",
                dict(softmax=lambda S: softmax_steps(hide_with_inf(S, np.tril(np.ones(S.shape[-2:], bool))))),
                "the mask is applied even when causal is False",
                "Without causal every token may read every other.", (ATTENTION, CAUSAL)),
        Mistake("mask_upper", dict(hide=lambda S, mask: hide_with_inf(S, mask.T)),
                "the mask is the wrong triangle: the past is hidden and the future read",
                "A token may read itself and what came before it.", (ATTENTION, CAUSAL)),
        Mistake("mask_inverted", dict(hide=lambda S, mask: hide_with_inf(S, ~mask)),
                "the mask is used the wrong way round: what may be read is hidden",
                "True means “may read” in this course.", (ATTENTION, CAUSAL)),
        Mistake("mask_inverted_finite", dict(hide=lambda S, mask: np.where(mask, -1e9, S)),
                "what may be read is hidden, with a large negative number in place of -inf",
                "True means “may read” in this course; the last token is left with nothing but such numbers, "
                "and then reads everything alike.", (ATTENTION, CAUSAL)),
        Mistake("mask_without_self", dict(hide=lambda S, mask: hide_with_inf(S, np.tril(mask, -1))),
                "a token may not read itself",
                "The first token would have nothing to read at all.", (ATTENTION, CAUSAL)),
        Mistake("zero_fill", dict(hide=lambda S, mask: np.where(mask, S, 0.0)), "hidden scores are set to 0",
                LEAK, (ATTENTION, BEFORE)),
        Mistake("mask_after", dict(hide=lambda S, mask: S, after=lambda A, mask: A * mask),
                "the mask is applied after softmax",
                "The hidden keys have taken their share by then: what is left no longer adds up to 1.",
                (ATTENTION, BEFORE)),
        Mistake("mask_after_renormalised",
                dict(hide=lambda S, mask: S, after=lambda A, mask: A * mask / row_sum(A * mask)),
                "the mask is applied after softmax and each row divided by what is left",
                "Right on paper; but a huge hidden score has pushed all others to 0 by then, and 0 / 0 is "
                "nan.", (ATTENTION, BEFORE)),
        Mistake("no_max", dict(softmax=slip(SLIPS["no_max"])),
                "softmax takes exp of large scores as they are",
                OVERFLOW, (ATTENTION, WEIGHTS)),
        Mistake("global_max", dict(softmax=slip(SLIPS["global_max"])), SLIPS["global_max"].what,
                SLIPS["global_max"].why, (ATTENTION, WEIGHTS)),
        Mistake("not_normalised", dict(softmax=slip(SLIPS["not_normalised"])), SLIPS["not_normalised"].what,
                SLIPS["not_normalised"].why, (ATTENTION, WEIGHTS)),
        Mistake("no_softmax", dict(softmax=lambda S: np.where(np.isfinite(S), S, 0)),
                "the scores are used as weights, without softmax",
                "Scores are not shares: they can be negative and do not add up to 1.",
                (ATTENTION, NOT_PATTERN)),
        Mistake("keys_mixed", dict(mixed=lambda Q, K, V: K), "the weights mix the keys, not the values",
                "A key is for being found, a value for being passed on.", WHOLE),
        Mistake("k_t", dict(attend=all_axes_turned), "K.T turns round all three axes of the keys",
                "With heads in front only the last two change places: swapaxes(-1, -2).", WHOLE),
        Mistake("q_k_swapped", dict(attend=queries_and_keys_swapped),
                "queries and keys have changed places (K Qᵀ)",
                "Row i of the scores must hold what token i asks of all the others: Q Kᵀ.", WHOLE),
        Mistake("weights_transposed", dict(softmax=lambda S: np.swapaxes(softmax_steps(S), -1, -2)),
                "the weights are transposed before they mix the values",
                "A row of the weights belongs to one query and adds up to 1; it stays a row.", WHOLE),
        Mistake("values_cut_by_d_k", dict(attend=values_cut_by_d_k),
                "W_v is cut into pieces of d_k columns",
                "A value has d_v numbers, and d_v need not be d_k: take each width from its own array.",
                SPLIT),
        Mistake("split_input", dict(attend=slices_of_x),
                "X itself is cut into heads, before the projection",
                "Every head may look at the whole token; it is Q, K and V that are cut, not X.", TRAPS),
        Mistake("split_before_projection", dict(attend=split_before_projection),
                "X is split into heads before it is projected",
                "A piece of X has d_model / h numbers and W_q has d_model rows. Every head reads all of X: "
                "project first, then split.", TRAPS, by_text=True),
        Mistake("not_joined", dict(merge=lambda H: H.sum(0)),
                "what meets W_o is as wide as one head: the heads are added up or picked, not joined",
                "W_o has h·d_v rows, one for each number of the heads side by side; it is the product with "
                "W_o that adds them up.", MERGE, by_text=True),
        Mistake("not_merged", dict(merge=lambda H: H),
                "what meets W_o is as wide as one head: the heads still stand one behind the other",
                "W_o has h·d_v rows, one for each number of the heads side by side.", MERGE, by_text=True),
        Mistake("relu_out", dict(finish=lambda Y, X: np.maximum(Y, 0)),
                "negative numbers of the result are set to 0 (a ReLU)",
                "The last step is a plain product with W_o; a head may push in either direction.", WHOLE),
        Mistake("residual_added", dict(finish=lambda Y, X: X + Y), "X is already added to the result",
                "The residual is the business of what stands around the layer; added here and there it is "
                "added twice.", AROUND),
    ))

# ------------------------------------------------------------------------------------------ pre_norm_residual


def mix_all(W, N):
    """A sublayer: mixes features and tokens, is not linear, and does not give 0 for 0."""
    rows = np.atleast_2d(N)
    return (np.tanh(rows @ W) + rows.mean(axis=0) / 2 + 0.25).reshape(np.shape(N))


def unchanged(N):
    return N


def norm_cases():
    plain_draw = drawer(44)

    def draw(*shape, spread=4.0, **more):                  # so large that eps does not show
        return plain_draw(*shape, spread=spread, **more)
    flat = draw(3, 4)
    flat[1] = 2.0

    def case(kind, x, sublayer=None, eps=None, plain=False, **more):
        d = x.shape[1]
        gamma, beta = (np.ones(d), np.zeros(d)) if plain else (draw(d, spread=1) + 1.5, draw(d, spread=1))
        f = sublayer or partial(mix_all, draw(d, d, spread=1))
        n, d = x.shape
        says = f"{n} token{'s' if n > 1 else ''}, d = {d}" + (f", eps = {eps}" if eps else "")
        says += ", sublayer = " + ("lambda N: N" if sublayer else "a function that mixes tokens and features")
        return Case(kind or "any numbers", (x, f, gamma, beta), {"eps": eps} if eps else {},
                    says=f"{says} ({kind})" if kind else says, **more)
    return [
        case("", draw(4, 3)),
        case("as many tokens as features", draw(3, 3)),
        case("numbers close together", (0.001 * draw(3, 4, spread=1)).round(6)),
        case("a large eps", draw(3, 4, spread=1), eps=0.1),
        case("a row of equal numbers", flat),
        case("one token", draw(1, 5)),
        case("a mean far from 0", draw(3, 4) + 20),
        case("gamma 1, beta 0", draw(2, 4), plain=True),
        case("a sublayer that changes nothing", draw(3, 4), unchanged),
        case("integers", draw(3, 4, whole=True), style=True),
    ]


def row_mean(x):
    return x.mean(axis=-1, keepdims=True)


def population(x):
    return ((x - row_mean(x)) ** 2).mean(axis=-1, keepdims=True)


def norm_steps(x, sublayer, gamma, beta, eps=1e-5, centre=row_mean, variance=population,
               width=lambda var, eps: np.sqrt(var + eps), affine=lambda z, gamma, beta: z * gamma + beta,
               around=lambda x, f, norm: x + f(norm(x)), used=lambda eps: eps, late=False):
    def norm(x):
        return affine((x - centre(x)) / width(variance(x), used(eps)), gamma, beta)
    def sublayer_then_affine(N):
        return sublayer(N) * gamma + beta
    with np.errstate(all="ignore"):
        return around(x, sublayer_then_affine if late else sublayer, norm)


def add_in_place(x, f, norm):
    x += f(norm(x))
    return x


def overwritten(x, f, norm):
    x = norm(x)
    return x + f(x)


def row_by_row(x, f, norm):
    return x + np.stack([f(row[None])[0] for row in norm(x)])


PRE_NORM_RESIDUAL = Exercise(
    "4.4", "pre_norm_residual", "04", right.pre_norm_residual,
    arguments={"x": ("n", "d"), "sublayer": (), "gamma": ("d",), "beta": ("d",)},
    returns={"y": ("n", "d")},
    cases=norm_cases, steps=norm_steps, does_it_all=(right.layer_norm,),
    passed="What comes in goes on unchanged and a layer only adds to it, so layers can be stacked.",
    mistakes=(
        Mistake("no_residual", dict(around=lambda x, f, norm: f(norm(x))), "x is not added at the end",
                "The token itself is then gone; a layer should only add to it.", AROUND),
        Mistake("normed_residual", dict(around=overwritten),
                "the normalised x is added back in place of x itself",
                "x = norm(x) overwrites the stream: what came in can no longer go on unchanged.", AROUND),
        Mistake("norm_unused", dict(around=lambda x, f, norm: x + f(x)),
                "the sublayer gets x itself, not the normalised x",
                "The norm is there so that every layer finds numbers of the same size.", AROUND),
        Mistake("norm_output", dict(around=lambda x, f, norm: x + norm(f(x))),
                "the norm comes after the sublayer, not before it",
                "The sublayer must see normalised numbers; what it gives is added as it is.",
                "Norm before or norm after"),
        Mistake("centred_residual", dict(around=lambda x, f, norm: x - row_mean(x) + f(norm(x))),
                "x without its mean is added back, in place of x itself",
                "x -= mean changes what is added at the end: keep x as it came.", AROUND),
        Mistake("affine_after", dict(affine=lambda z, gamma, beta: z, late=True),
                "gamma and beta are applied to what the sublayer gives",
                "They belong to the norm: gamma and beta change what goes into the sublayer.", AROUND),
        Mistake("sum_of_squares", dict(variance=lambda x: x.shape[-1] * population(x)),
                "the squared distances are added up and not divided by d",
                "The variance is their mean.", AROUND),
        Mistake("post_norm", dict(around=lambda x, f, norm: norm(x + f(x))),
                "the norm comes last, around the sum: norm(x + sublayer(x))",
                "That is post-norm, as in the first transformer; this exercise asks for pre-norm, which "
                "leaves the stream itself alone.", "Norm before or norm after"),
        Mistake("normed_twice", dict(around=lambda x, f, norm: norm(x + f(norm(x)))),
                "the sum is normalised once more",
                "The stream itself stays as it is; only the sublayer sees normalised numbers.", AROUND),
        Mistake("axis0", dict(centre=lambda x: x.mean(0), variance=lambda x: x.var(0)),
                "mean and variance are taken down the columns, over the tokens",
                "Every token is normalised by itself, over its own d numbers: axis -1.", AROUND),
        *(Mistake(name, steps, f"{which} taken without keepdims",
                  "A number for each row then lines up with the columns: that fits only where there are as "
                  "many tokens as features, and is wrong even then. keepdims=True keeps a column, (n, 1).",
                  AROUND)
          for name, which, steps in (
              ("no_keepdims", "mean and variance of each row are",
               dict(centre=lambda x: x.mean(-1), variance=lambda x: x.var(-1))),
              ("mean_no_keepdims", "the mean of each row is", dict(centre=lambda x: x.mean(-1))),
              ("variance_no_keepdims", "the variance of each row is",
               dict(variance=lambda x: x.var(-1))),
              ("no_keepdims_by_hand", "mean and variance of each row are",
               dict(centre=lambda x: x.mean(-1),
                    variance=lambda x: ((x - x.mean(-1)) ** 2).mean(-1))),
              ("mean_no_keepdims_by_hand", "the mean of each row is",
               dict(centre=lambda x: x.mean(-1),
                    variance=lambda x: ((x - x.mean(-1)) ** 2).mean(-1, keepdims=True))))),
        Mistake("whole_array", dict(centre=lambda x: x.mean(), variance=lambda x: x.var()),
                "one mean and one variance are taken for all tokens together",
                "Every token is normalised by itself, over its own d numbers: axis -1.", AROUND),
        Mistake("sample_variance", dict(variance=lambda x: x.var(-1, ddof=1, keepdims=True)),
                "the variance is divided by d - 1",
                "LayerNorm takes the plain mean of the squared distances, divided by d; d - 1 is for "
                "guessing the spread of a larger population.", AROUND),
        Mistake("eps_outside", dict(width=lambda var, eps: np.sqrt(var) + eps),
                "eps is added outside the root, to the standard deviation",
                "Inside the root it is √(variance + eps); outside it is far weaker where numbers are close "
                "together.", AROUND),
        Mistake("eps_ignored", dict(used=lambda eps: 1e-5),
                "the eps given is ignored and 0.00001 always used",
                "An argument that changes nothing is worse than none: nobody notices.", AROUND),
        Mistake("no_eps", dict(used=lambda eps: 0.0), "eps is left out",
                "A row of equal numbers has variance 0, and 0 / 0 is nan.", AROUND),
        Mistake("sqrt_of_std", dict(variance=lambda x: np.sqrt(population(x))),
                "the root is taken twice: √(standard deviation + eps)",
                "np.std is a root already; under the root belongs np.var.", AROUND),
        Mistake("divide_var", dict(width=lambda var, eps: var + eps),
                "it is divided by the variance, without the root",
                "The variance is a square; its root has the size of the numbers themselves.", AROUND),
        Mistake("rms_only", dict(centre=lambda x: 0, variance=lambda x: (x**2).mean(-1, keepdims=True)),
                "the mean is not subtracted: each row is divided by its root mean square",
                "That is RMSNorm, which many newer models use; this course's models use LayerNorm, which "
                "brings the mean to 0 first.", AROUND),
        Mistake("mean_kept", dict(centre=lambda x: 0), "the mean is not subtracted",
                "Normalised means mean 0 as well as variance 1.", AROUND),
        Mistake("not_divided", dict(width=lambda var, eps: 1),
                "the mean is subtracted and nothing divided",
                "Normalised means variance 1 as well as mean 0.", AROUND),
        Mistake("no_affine", dict(affine=lambda z, gamma, beta: z), "gamma and beta are not used",
                "They begin as 1 and 0, and training changes them.", AROUND),
        Mistake("no_beta", dict(affine=lambda z, gamma, beta: z * gamma), "beta is not added",
                "It begins as 0, and training changes it.", AROUND),
        Mistake("no_gamma", dict(affine=lambda z, gamma, beta: z + beta), "gamma is not used",
                "It begins as 1, and training changes it.", AROUND),
        Mistake("affine_swapped", dict(affine=lambda z, gamma, beta: z * beta + gamma),
                "gamma and beta have changed places", "gamma multiplies and beta is added.", AROUND),
        Mistake("beta_first", dict(affine=lambda z, gamma, beta: (z + beta) * gamma),
                "beta is added before gamma multiplies", "First times gamma, then plus beta.", AROUND),
        Mistake("row_by_row", dict(around=row_by_row), "the sublayer is called for each token by itself",
                "Attention reads other tokens: give it the whole (n, d) at once.", AROUND),
        Mistake("in_place", dict(around=add_in_place), "the result is added into the array x that was given",
                "x += … changes the caller's x, and whoever uses it next finds other numbers.", AROUND),
    ))

EXERCISES = (SPLIT_HEADS, MERGE_HEADS, MULTI_HEAD, PRE_NORM_RESIDUAL)

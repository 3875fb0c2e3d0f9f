"""The exercises of notebook 03 from scores to weights: softmax, causal_mask, attention_weights."""

import numpy as np

from helpers import attention as right
from helpers.checks.exercise import Case, Exercise, Mistake, drawer

NOTHING_READ = "a token that may read nothing takes nothing away."


def softmax_cases():
    draw = drawer(33)
    apart = np.array([[1.0, 2.0, 3.0], [-2000.0, -2001.0, -2000.5], [900.0, 903.0, 901.0], [0.0, 0.5, -0.5]])
    hidden = draw(3, 4)
    hidden[0, 1:] = hidden[1, 2] = hidden[2, 0] = -np.inf
    hidden[0, 1] = 0.25
    full = draw(3, 4)
    full[1] = -np.inf

    def case(kind, z, **more):
        says = f"an array of shape {z.shape}" + (f", {kind}" if kind else "")
        return Case(kind or "any numbers", (z,), says=says, **more)
    return [
        case("", draw(4, 5)),
        case("square", draw(4, 4)),
        case("one row", draw(1, 4)),
        case("one column", draw(3, 1)),
        case("all numbers equal", np.full((2, 4), 0.75)),
        case("1-D", draw(5)),
        case("3-D", draw(2, 3, 4)),
        case("integers", draw(3, 4, whole=True), style=True),
        case("numbers up to 10,000",
             np.array([[1e4, 9999.0, 9998.5], [-1e4, 1e4, 0.0], [-9998.0, -9999.0, -1e4]])),
        case("all numbers near -10,000", np.array([[-1e4, -9999.0, -9998.5], [-1e4, -1e4, -9999.5]])),
        case("rows of very different size", apart),
        case("a wide range in one row", np.array([[-300.0, 0.0, 60.0, 61.0], [80.0, 0.0, 79.0, -80.0]])),
        case("some numbers -inf", hidden),
        case("large float16", np.array([[30.0, 29.0, 28.5], [-40.0, -41.0, -40.5]], np.float16),
             tolerance=6e-3, style=True),
        case("a row of -inf", full, edge="a row of -inf gives something else than zeros (a textbook softmax "
             f"gives nan there, PyTorch's too). The course uses zeros: {NOTHING_READ}",
             edge_rows=np.array([[False], [True], [False]])),
    ]


def row_max(z):
    return z.max(axis=-1, keepdims=True)


def row_sum(e):
    return e.sum(axis=-1, keepdims=True)


def share(z, top, exp, total):
    """exp of what is left after `top` is taken away, divided by `total` of it."""
    e = exp(z - top(z))
    return e / total(e)


def as_floats(z):
    return np.asarray(z, dtype=float)


def softmax_steps(z, top=row_max, exp=np.exp, total=row_sum, shares=share, through=as_floats,
                  finish=lambda A, z: A):
    with np.errstate(all="ignore"):
        return finish(shares(through(z), top, exp, total), z)


def in_place(z, top, exp, total):
    z -= top(z)
    exp(z, out=z)
    z /= total(z)
    return z


def exp_of_ratio(z, top, exp, total):
    z = z - top(z)
    return exp(z / total(exp(z)))


def min_shifted(z, top, exp, total):
    z = z - z.min(axis=-1, keepdims=True)
    s = total(z)
    return np.where(s > 0, z / np.where(s > 0, s, 1), 1 / z.shape[-1])


def along(axis):
    """Shares along a hard-coded axis."""
    def shares(z, top, exp, total):
        e = exp(z - (z.max(axis=axis, keepdims=True) if top is row_max else top(z)))
        return e / e.sum(axis=axis, keepdims=True)
    return shares


def each_row_whole(z, top, exp, total):
    """As if the first axis counted rows and nothing stood in front of it."""
    return np.array([exp(row - row.max()) / exp(row - row.max()).sum() for row in z])


def log_shares(z, top, exp, total):
    z = z - top(z)
    return z - np.log(total(exp(z)))


WEIGHTS, NOT_PATTERN = "From scores to weights: softmax", "Scores are not the attention pattern"
SAFE = "The row's own maximum is always safe to subtract: the largest exponent is then 0."
OVERFLOW = ("exp(1000) is too large for a float and becomes inf, exp(-1000) is too small and becomes 0: such "
            "a row cannot be shared out any more (inf / inf and 0 / 0 are nan).")
SOFTMAX_SLIPS = (
    Mistake("no_max", dict(top=lambda z: 0), "exp is taken of the scores as they are, large ones too",
            OVERFLOW + " Take each row's maximum away first (added, it makes things worse).", WEIGHTS),
    Mistake("global_max", dict(top=lambda z: z.max()),
            "the largest number of the whole array is subtracted, not each row's own",
            "A row that lies far below it becomes 0 everywhere, and 0 / 0 is nan.", WEIGHTS),
    Mistake("max_floor_zero", dict(top=lambda z: np.maximum(0, row_max(z))),
            "the maximum is never less than 0",
            "A maximum search that starts at 0 misses rows that are all far below: they become 0 / 0, which "
            "is nan.", WEIGHTS),
    Mistake("min_subtracted", dict(top=lambda z: z.min(axis=-1, keepdims=True)),
            "the row's minimum is subtracted, not its maximum",
            "That makes the exponents larger, not smaller, and exp overflows sooner.", WEIGHTS),
    Mistake("mean_subtracted", dict(top=lambda z: z.mean(axis=-1, keepdims=True)),
            "the row's mean is subtracted, not its maximum",
            SAFE, WEIGHTS),
    Mistake("max_no_keepdims", dict(top=lambda z: z.max(axis=-1)),
            "the maximum of each row is taken without keepdims",
            "A row of maxima then lines up with the columns: each column has another row's maximum taken "
            "away.", WEIGHTS),
    Mistake("sum_no_keepdims", dict(total=lambda e: e.sum(axis=-1)),
            "the sum of each row is taken without keepdims",
            "A row of sums then lines up with the columns: each column is divided by another row's sum.",
            WEIGHTS),
    Mistake("axis0", dict(shares=along(0)), "the shares are taken down the columns (axis 0)",
            "A row holds one query's scores, and it is the query that shares itself out among the keys.",
            WEIGHTS),
    Mistake("each_row_whole", dict(shares=each_row_whole),
            "the array is taken apart along its first axis, as if it always had two",
            "A single row (1-D) then falls apart into numbers, and with heads in front whole matrices are "
            "shared out. axis=-1 with keepdims=True fits any number of axes.", WEIGHTS),
    Mistake("axis1", dict(shares=along(1)), "the axis is fixed as 1",
            "For two axes 1 is the last one; with heads in front it is another, and a single row has none. "
            "-1 is always the last.", WEIGHTS),
    Mistake("whole_array", dict(total=lambda e: e.sum()),
            "everything is divided by the sum of the whole array",
            "Each row belongs to one query and must add up to 1 on its own.", WEIGHTS),
    Mistake("whole_array_max", dict(total=lambda e: e.sum(), top=lambda z: z.max()),
            "the whole array is treated as one long row",
            "Each row belongs to one query and must add up to 1 on its own.", WEIGHTS),
    Mistake("not_normalised", dict(total=lambda e: 1),
            "exp is taken and the division by the row's sum is missing",
            "Weights are shares: each row must add up to 1.", WEIGHTS),
    Mistake("paren_slip", dict(shares=exp_of_ratio), "exp is taken of the ratio, not the ratio of the exps",
            "A bracket stands in the wrong place: first exp, then divide by the sum of the exps.", WEIGHTS),
    Mistake("no_exp", dict(shares=lambda z, top, exp, total: z / total(z)),
            "the scores are divided by their sum, without exp",
            "Scores can be negative and can add up to 0; exp makes each share positive first.", WEIGHTS),
    Mistake("no_exp_shifted", dict(shares=min_shifted),
            "the row's minimum is subtracted and the rest divided by its sum, without exp",
            "The rows add up to 1, but the smallest score always gets nothing and large ones do not stand "
            "out.", WEIGHTS),
    Mistake("absolute", dict(shares=lambda z, top, exp, total: abs(z) / total(abs(z))),
            "absolute values are divided by their sum, without exp",
            "A very negative score would then be read as much as a very positive one.", WEIGHTS),
    Mistake("sigmoid", dict(shares=lambda z, top, exp, total: 1 / (1 + exp(-z))),
            "each score goes through a sigmoid, 1 / (1 + exp(-z)), on its own",
            "Softmax looks at the whole row: the more one key gets, the less is left for the others.",
            WEIGHTS),
    Mistake("base2", dict(exp=np.exp2), "powers of 2 are taken in place of powers of e",
            "It has the same shape but is flatter: as if all scores were multiplied by 0.69.", WEIGHTS),
    Mistake("base10", dict(exp=lambda z: 10.0 ** z), "powers of 10 are taken in place of powers of e",
            "It is sharper: as if all scores were multiplied by 2.3.", WEIGHTS),
    Mistake("clipped", dict(top=lambda z: 0, through=lambda z: np.clip(np.asarray(z, float), -50, 50)),
            "scores are clipped before exp",
            "No overflow, but all scores beyond the limit become equal. " + SAFE, WEIGHTS),
    Mistake("inconsistent", dict(shares=lambda z, top, exp, total: exp(z - top(z)) / total(exp(z))),
            "the maximum is subtracted above the line only",
            "Subtracting changes nothing only while it is done above and below: the factor must cancel.",
            WEIGHTS),
    Mistake("inconsistent_below", dict(shares=lambda z, top, exp, total: exp(z) / total(exp(z - top(z)))),
            "the maximum is subtracted below the line only",
            "Subtracting changes nothing only while it is done above and below: the factor must cancel.",
            WEIGHTS),
    Mistake("negative", dict(through=lambda z: -np.asarray(z, float)), "exp is taken of the negative scores",
            "The key that fits least would then be read most.", WEIGHTS),
    Mistake("eps_big", dict(total=lambda e: row_sum(e) + 1e-2),
            "a small number is added to the sum before dividing",
            "After the maximum is subtracted the sum is at least 1: nothing can be divided by zero, and the "
            "rows no longer add up to 1.", WEIGHTS),
    Mistake("twice", dict(finish=lambda A, z: softmax_steps(A)), "softmax is taken twice",
            "The first one gives shares between 0 and 1; the second makes them nearly equal.", WEIGHTS),
    Mistake("log", dict(finish=lambda A, z: np.log(A)), "the logarithm of the shares is returned",
            "That is log-softmax, useful in training; attention needs the shares themselves.", WEIGHTS),
    Mistake("log_softmax", dict(shares=log_shares), "the logarithm of the shares is returned (log-softmax)",
            "It is useful in training; attention needs the shares themselves: take exp of it.", WEIGHTS),
    Mistake("log_softmax_no_max", dict(shares=log_shares, top=np.zeros_like),
            "the logarithm of the shares is returned (log-softmax), without subtracting the maximum first",
            "It is useful in training; attention needs the shares themselves, and exp(1000) is more than a "
            "float can hold.", WEIGHTS),
)

# Slips that are two in the softmax exercise itself and one where softmax is a step.
AXIS_SLIPS = (
    Mistake("axis0_no_max", dict(shares=along(0), top=np.zeros_like),
            "the shares are taken down the columns (axis 0), and of large scores exp is taken as they are",
            "A row holds one query's scores, and it is the query that shares itself out among the keys. And "
            "exp(1000) becomes inf, exp(-1000) 0: the largest score must be taken away first.", WEIGHTS),
    Mistake("axis0_row_max", dict(total=lambda e: e.sum(axis=0, keepdims=True)),
            "each row's maximum is subtracted, but the sums run down the columns (axis 0)",
            "A row holds one query's scores, and it is the query that shares itself out among the keys.",
            WEIGHTS),
    Mistake("axis0_global_max", dict(total=lambda e: e.sum(axis=0, keepdims=True), top=lambda z: z.max()),
            "the maximum of the whole array is subtracted, and the sums run down the columns (axis 0)",
            "A row holds one query's scores, and it is the query that shares itself out among the keys.",
            WEIGHTS),
)


def another_base(expected, given, z):
    """Shares proportional to b to the power z, for one b."""
    A, z = np.atleast_2d(given), np.atleast_2d(np.asarray(z, float))
    steep = np.diff(z)
    if A.shape != z.shape or not steep.size or not np.isfinite(steep).all() or not (A > 0).all():
        return None
    if np.ptp(steep) == 0:
        return None
    slope = float((np.diff(np.log(A)) * steep).sum() / (steep**2).sum())
    if not np.allclose(np.diff(np.log(A)), slope * steep, atol=1e-6) or abs(slope) < 1e-6:
        return None
    if abs(slope - 1) < 1e-6:
        return ("Within a row the shares have the right ratios, but the rows do not add up to 1.",
                "Each row must be divided by its own sum.")
    return (f"It is a softmax of {slope:.3g} times the numbers given.",
            f"The factor makes the weights {'flatter' if abs(slope) < 1 else 'sharper'} than they should be.")


SOFTMAX = Exercise(
    "3.3", "softmax", "03", right.softmax,
    arguments={"z": ("m",)}, returns={"A": ()},
    cases=softmax_cases, steps=softmax_steps, explain=another_base,
    passed="Whatever the scores, each row is now a set of shares, and no score is too large.",
    holds=(("Every row adds up to 1.", lambda A, z: np.allclose(A.sum(-1), 1)),
           ("No number is negative.", lambda A, z: (A >= 0).all())),
    mistakes=(
        *SOFTMAX_SLIPS,
        *(Mistake(name, dict(top=top), f"{which} is subtracted, not its maximum", SAFE, WEIGHTS)
          for name, top, which in (
              ("first_subtracted", lambda z: z[..., :1], "the row's first number"),
              ("last_subtracted", lambda z: z[..., -1:], "the row's last number"),
              ("size_subtracted", lambda z: abs(z).max(axis=-1, keepdims=True),
               "the largest absolute value of the row"))),
        Mistake("nan_hidden", dict(top=lambda z: 0, finish=lambda A, z: np.nan_to_num(A)),
                "exp is taken of the scores as they are, and what comes out as nan is turned into 0",
                "inf / inf and 0 / 0 are nan: made 0, the answer is wrong without a word. " + SAFE, WEIGHTS),
        Mistake("exp_missing", dict(shares=lambda z, top, exp, total: z - top(z)),
                "the maximum is subtracted and exp is never taken",
                "What is left is at most 0; exp makes each share positive, and the sum divides it.", WEIGHTS),
        Mistake("clipped_700", dict(top=lambda z: 0, through=lambda z: np.clip(as_floats(z), -700, 700)),
                "scores are clipped before exp, at 700 or so",
                "No overflow, but all scores beyond the limit become equal. " + SAFE, WEIGHTS),
        Mistake("no_exp_spread", dict(shares=lambda z, top, exp, total: (
                    z - z.min(axis=-1, keepdims=True)) / total(z - z.min(axis=-1, keepdims=True))),
                "the row's minimum is subtracted and the rest divided by its sum, without exp",
                "The smallest score then always gets nothing, and equal scores give 0 / 0.", WEIGHTS),
        Mistake("sum_at_least_1", dict(top=lambda z: 0, total=lambda e: np.maximum(row_sum(e), 1)),
                "exp is taken of the scores as they are, and the sum is never taken as less than 1",
                "Rows of small scores then add up to less than 1. " + SAFE, WEIGHTS),
        Mistake("divided_by_largest", dict(through=lambda z: z / abs(z).max(axis=-1, keepdims=True)),
                "the scores are divided by the largest before exp",
                "That keeps them small, but changes how far apart they are. " + SAFE, WEIGHTS),
        Mistake("in_place", dict(shares=in_place, through=lambda z: z),
                "the array that was given is written into on the way",
                "z -= … and the like overwrite the caller's scores, and whoever looks at them next finds "
                "other numbers.", WEIGHTS),
        Mistake("int_buffer", dict(finish=lambda A, z: A.astype(z.dtype)),
                "the shares are written into an array of the input's own type",
                "np.zeros_like keeps integers as integers: every share below 1 becomes 0.", WEIGHTS),
    ))


def mask_cases():
    return [
        Case("", (5,), says="n_q = 5"),
        Case("n_k given, the same as n_q", (4,), {"n_k": 4}),
        Case("one token", (1,), says="n_q = 1"),
        Case("two tokens", (2,), says="n_q = 2"),
        Case("two queries, five keys", (2,), {"n_k": 5}),
        Case("one query, six keys", (1,), {"n_k": 6}),
        Case("three queries, four keys", (3,), {"n_k": 4}),
    ]


def mask_in_one_form(values):
    """Boolean, 0/1 and additive (0, very negative) masks as booleans, True = may read; others as they are.

    A mask of zeros only says nothing by itself; the other masks of the same function tell which form it is.
    """
    arrays = [as_numbers(v) for v in values]
    numbers, additive = numbers_in_masks(arrays)
    zero_one = ((numbers == 0) | (numbers == 1)).all() and not additive
    out = []
    for value, a in zip(values, arrays, strict=True):
        if a is None or a.dtype == bool or not (additive or zero_one):
            out.append(value)
        else:
            out.append(a == 0 if additive else a == 1)
    return out


def numbers_in_masks(arrays):
    """(all numbers in masks that are not boolean, whether they are there to be added to scores)."""
    numbers = np.concatenate([np.zeros(0), *(a.ravel() for a in arrays if a is not None and a.dtype != bool)])
    return numbers, ((numbers == 0) | (numbers <= -1e4)).all()


def mask_to_add(values):
    """A remark on masks of numbers: those that are added to the scores, and those of 0 and 1."""
    arrays = [as_numbers(v) for v in values]
    numbers, additive = numbers_in_masks(arrays)
    if not numbers.size:
        return ""
    if not additive:
        turned = "raises an error" if any(a is not None and a.dtype.kind == "f" for a in arrays) else \
            "makes -2 of a 1, which counts as True"
        return ("this is a mask of the numbers 0 and 1, and the exercise asks for True and False. "
                f"np.where(mask, …) reads it alike, but ~mask {turned}. mask == 1 makes True and False of "
                "it.")
    return ("this is a mask to be added to the scores: 0 where a key may be read. In this course True means "
            "“may read”, and np.where(mask, …) takes 0 for False, so it would read your mask upside down. "
            "mask == 0 makes True and False of it.")


def as_numbers(value):
    try:
        a = np.asarray(value)
    except ValueError:
        return None
    return a if a.dtype.kind in "biuf" else None


def mask_steps(n_q, n_k=None, shape=lambda n_q, n_k: (n_q, n_k), offset=lambda n_q, n_k: n_k - n_q,
               allowed=lambda gap: gap >= 0, finish=lambda M: M):
    n_k = n_q if n_k is None else n_k
    rows, columns = shape(n_q, n_k)
    position = np.arange(rows)[:, None] + offset(rows, columns)
    with np.errstate(all="ignore"):
        return finish(allowed(position - np.arange(columns)))


def first_row_empty(M):
    M = M.copy()
    M[0] = False
    return M


CAUSAL = "The causal mask"
MASK_NAME = "True (or 1, or an added 0) means “may read” here"
CAUSAL_MASK = Exercise(
    "3.4", "causal_mask", "03", right.causal_mask,
    arguments={"n_q": ()}, returns={"mask": ("n_q", "n_k")},
    cases=mask_cases, steps=mask_steps, canonical=mask_in_one_form, remark=mask_to_add,
    passed="Nobody reads the future any more, with a cache in front as well.",
    mistakes=(
        Mistake("upper", dict(allowed=lambda gap: gap <= 0),
                "each token may read itself and what comes after it",
                "That is the wrong triangle: the future is read and the past is hidden.", CAUSAL),
        Mistake("inverted", dict(allowed=lambda gap: gap < 0), "True marks the keys that are hidden",
                f"{MASK_NAME}; some libraries use the opposite, and mixing the two lets the future through.",
                CAUSAL),
        Mistake("blocked_with_diagonal", dict(allowed=lambda gap: gap > 0),
                "a token may read what came before it but not itself",
                "The first token would have nothing to read at all.", CAUSAL),
        Mistake("one_too_many", dict(allowed=lambda gap: gap >= -1),
                "each token may also read the one right after it",
                "That next word is just what the model is meant to predict.", CAUSAL),
        Mistake("square_queries", dict(shape=lambda n_q, n_k: (n_q, n_q)),
                "n_k is ignored and the mask is n_q by n_q",
                "With a cache there are more keys than queries, and each key needs its column.", CAUSAL),
        Mistake("square_keys", dict(shape=lambda n_q, n_k: (n_k, n_k)),
                "n_q is ignored and the mask is n_k by n_k",
                "With a cache there are fewer queries than keys, and only the queries have rows.", CAUSAL),
        Mistake("swapped", dict(shape=lambda n_q, n_k: (n_k, n_q)),
                "rows and columns of the mask are swapped",
                "Queries are the rows, keys the columns, as in S.", CAUSAL),
        Mistake("transposed", dict(finish=lambda M: M.T),
                "the mask is transposed: its rows and columns are swapped",
                "Queries are the rows, keys the columns, as in S.", CAUSAL),
        Mistake("no_offset", dict(offset=lambda n_q, n_k: 0), "the first query is put at the first key",
                "The queries are the newest tokens: the last query sits at the last key, so the offset is "
                "n_k - n_q.", CAUSAL),
        Mistake("offset_sign", dict(offset=lambda n_q, n_k: n_q - n_k), "the offset has the wrong sign",
                "The queries are the newest tokens: the last query sits at the last key, further to the "
                "right, not the left.", CAUSAL),
        Mistake("no_mask", dict(allowed=lambda gap: np.ones(gap.shape, bool)), "every key may be read",
                "Then each token can see the word it is meant to predict.", CAUSAL),
        Mistake("diagonal_only", dict(allowed=lambda gap: gap == 0), "each token may read itself only",
                "Attention is for reading the others; the past is allowed.", CAUSAL),
        Mistake("additive_plus_inf", dict(finish=lambda M: np.where(M, 0.0, np.inf)),
                "+inf marks the hidden keys, not -inf",
                "exp(-inf) is 0 and hides a key; exp(+inf) is inf, and inf / inf is nan.", CAUSAL),
        Mistake("zero_times_inf", dict(finish=lambda M: (1 - M.astype(float)) * -np.inf),
                "0 is multiplied by -inf",
                "0 · inf is nan, not 0, so the allowed keys are spoilt; np.where makes no such product.",
                CAUSAL),
        Mistake("additive_small", dict(finish=lambda M: np.where(M, 0.0, -1.0)),
                "the number added to hidden keys is -1",
                "exp(-1) is 0.37: the future is read a little less, not hidden. -inf hides it.", CAUSAL),
        Mistake("loop_skips_first", dict(finish=first_row_empty), "the first row is left empty",
                "range(1, …) begins at the second row; the first token may read itself (and what is in the "
                "cache).", CAUSAL),
    ))


def weight_cases():
    draw = drawer(35)

    def causal(n_q, n_k=None):
        return right.causal_mask(n_q, n_k)
    lopsided = np.array([[1, 0, 1, 0], [1, 1, 0, 0], [0, 1, 1, 1], [0, 0, 0, 1]], bool)
    wide = np.array([[1, 0, 1, 1, 0, 0], [0, 1, 0, 0, 1, 1], [1, 1, 1, 0, 0, 1]], bool)
    huge = draw(4, 4)
    huge[0, 2], huge[1, 3] = 1e6, 2e4
    low = -200_000 + np.array([[0.0, 1.5, 0.5], [1.0, -0.5, 2.0], [0.25, 0.75, -1.0]])
    zeros = draw(4, 4)
    zeros[1, 0] = zeros[2, 1] = zeros[3, 3] = zeros[0, 3] = 0.0
    far = np.array([[9000.0, 1e4, -1e4], [-1e4, -9999.0, 1e4], [1e4, 9999.5, 9998.0]])
    full = np.array([[1, 0, 1, 0], [0, 0, 0, 0], [1, 1, 0, 1]], bool)
    return [
        Case("causal", (draw(5, 5), causal(5))),
        Case("any mask", (draw(3, 6), wide)),
        Case("a mask that is not symmetric", (draw(4, 4), lopsided)),
        Case("hidden scores that are huge", (huge, causal(4))),
        Case("all scores negative", (-np.abs(draw(3, 3)) - 3, causal(3))),
        Case("scores near -200,000", (low, causal(3))),
        Case("large, to ±10,000", (far, causal(3))),
        Case("scores that are exactly 0", (zeros, causal(4))),
        Case("nothing hidden", (draw(2, 4), np.ones((2, 4), bool))),
        Case("tokens that may not read themselves",
             (draw(4, 4), np.array([[0, 1, 0, 1], [1, 0, 1, 1], [0, 1, 0, 0], [1, 1, 0, 0]], bool))),
        Case("one query, one key", (draw(1, 1), np.ones((1, 1), bool))),
        Case("more keys than queries", (draw(2, 5), causal(2, 5))),
        Case("two heads at once", (draw(2, 4, 4), causal(4)), says="2 heads, 4 queries, 4 keys"),
        Case("integers", (draw(4, 4, whole=True), causal(4)), style=True),
        Case("a query that may read nothing", (draw(3, 4), full),
             edge="a query that may read no key gets something else than zeros (often nan). "
                  f"The course uses zeros: {NOTHING_READ}",
             edge_rows=np.array([[False], [True], [False]])),
    ]


def weight_steps(S, mask, hide=lambda S, mask: np.where(mask, S, -np.inf), read=lambda mask: mask,
                 through=as_floats, softmax=softmax_steps, finish=lambda A, mask: A):
    mask = read(mask)
    with np.errstate(all="ignore"):
        return finish(softmax(hide(through(S), mask)), mask)


def fill(value):
    """Hidden scores replaced by `value`."""
    return lambda S, mask: np.where(mask, S, value)


def overwrite(S, mask):
    S[..., ~mask] = -np.inf
    return S


def slip(mistake):
    """The softmax of an earlier exercise with one of its mistakes."""
    return lambda z: softmax_steps(z, **mistake.steps)


def scores_or_leaks(expected, given, S, mask):
    """Scores that never went through softmax, whatever hidden keys hold; or `what_hidden_keys_got`."""
    A, S = np.asarray(given, float), np.asarray(S, float)
    if A.shape == S.shape and np.allclose(A[..., mask], S[..., mask]):
        return ("Where a key may be read, its score comes back as it was: softmax is missing.",
                "Weights are shares: none is negative, and each row adds up to 1.", WEIGHTS)
    return what_hidden_keys_got(expected, A, S, mask)


def what_hidden_keys_got(expected, A, S, mask):
    """The score a hidden key must have had to get the weight it got, if that is the same for all."""
    if A.shape != S.shape or A.ndim != 2 or not (A > 0).all() or mask.all() or not np.isfinite(A).all():
        return None
    best = np.where(mask, A, 0).argmax(-1)[:, None]
    score = np.log(A / np.take_along_axis(A, best, -1)) + np.take_along_axis(S, best, -1)
    if not np.allclose(score[mask], S[mask], atol=1e-5):
        return None
    hidden, taken_off = score[~mask], (S - score)[~mask]
    if np.ptp(hidden) < 1e-5:
        return f"Hidden scores are set to {hidden[0]:.4g}, and softmax gives that a share.", FILLED
    if np.ptp(taken_off) < 1e-5:
        return f"{taken_off[0]:.4g} is taken off the hidden scores, and softmax still reads them.", FILLED
    return None


SLIPS = {mistake.name: mistake for mistake in (*SOFTMAX_SLIPS, *AXIS_SLIPS)}
BEFORE = "Mask before softmax, not after"
LEAK = "0 is a score like any other: exp(0) = 1, so a hidden key would still be read."
FILLED = "A hidden key must get exactly nothing, and only -inf does that whatever the other scores are."
ATTENTION_WEIGHTS = Exercise(
    "3.5", "attention_weights", "03", right.attention_weights,
    arguments={"S": ("n_q", "n_k"), "mask": ("n_q", "n_k")}, returns={"A": ("n_q", "n_k")}, zeros=True,
    cases=weight_cases, steps=weight_steps, explain=scores_or_leaks,
    passed="Hidden keys get exactly nothing, and the rest still adds up to 1.",
    holds=(("Every row adds up to 1.", lambda A, S, mask: np.allclose(A.sum(-1), 1)),
           ("Hidden keys get exactly 0.", lambda A, S, mask: not mask.all() and not (A * ~mask).any()),
           ("Hidden keys get a weight.", lambda A, S, mask: bool((A * ~mask).any()))),
    mistakes=(
        Mistake("mask_ignored", dict(hide=lambda S, mask: S), "the mask is not used at all",
                "Every key is read, the hidden ones too.", BEFORE),
        Mistake("zero_fill", dict(hide=fill(0.0)), "hidden scores are set to 0 (or multiplied by the mask)",
                LEAK, BEFORE),
        Mistake("mask_after", dict(hide=lambda S, mask: S, finish=lambda A, mask: A * mask),
                "the mask is applied after softmax",
                "The hidden keys have taken their share by then: what is left no longer adds up to 1.",
                BEFORE),
        Mistake("mask_after_renormalised",
                dict(hide=lambda S, mask: S, finish=lambda A, mask: A * mask / row_sum(A * mask)),
                "the mask is applied after softmax and each row divided by what is left",
                "Right on paper; but a huge hidden score has pushed all others to 0 by then, and 0 / 0 is "
                "nan.", BEFORE),
        Mistake("inverted", dict(read=lambda mask: ~mask), "the mask is read the other way round",
                "True means “may read” in this course; some libraries use True for “hidden”.", BEFORE),
        Mistake("inverted_large", dict(read=lambda mask: ~mask, hide=fill(-1e9)),
                "the mask is read the other way round",
                "True means “may read” in this course; some libraries use True for “hidden”.", BEFORE),
        Mistake("small_negative", dict(hide=fill(-np.e)),
                "hidden scores are set to a small negative number (-e)",
                FILLED, BEFORE),
        Mistake("fill_minus_1", dict(hide=fill(-1.0)), "hidden scores are set to -1",
                FILLED, BEFORE),
        Mistake("fill_minus_10", dict(hide=fill(-10.0)), "hidden scores are set to -10",
                FILLED, BEFORE),
        Mistake("fill_minus_100", dict(hide=fill(-100.0)), "hidden scores are set to a number like -100",
                FILLED, BEFORE),
        Mistake("fill_minus_1e4", dict(hide=fill(-1e4)), "hidden scores are set to -10,000",
                FILLED, BEFORE),
        Mistake("fill_1e5", dict(hide=fill(-1e5)), "hidden scores are set to -100,000",
                "Real scores can lie below that, and then the hidden keys are the ones that win.", BEFORE),
        Mistake("add_1e4", dict(hide=lambda S, mask: S - 1e4 * ~mask),
                "10,000 is taken off the hidden scores",
                "A hidden score can be larger than that, and then it is still read. -inf leaves nothing.",
                BEFORE),
        Mistake("add_1e5", dict(hide=lambda S, mask: S - 1e5 * ~mask),
                "100,000 is taken off the hidden scores",
                "A hidden score can be larger than that, and then it is still read. -inf leaves nothing.",
                BEFORE),
        Mistake("fill_min", dict(hide=lambda S, mask: np.where(mask, S, S.min())),
                "hidden scores are set to the smallest score there is",
                "The smallest score still gets a share.", BEFORE),
        Mistake("plus_inf", dict(hide=fill(np.inf)), "hidden scores are set to +inf, not -inf",
                "exp(-inf) is 0 and hides a key; +inf gives nan.", BEFORE),
        Mistake("added_bool", dict(hide=lambda S, mask: S + mask), "the mask is added to the scores as it is",
                "True counts as 1: allowed keys gain a little, and hidden ones are read all the same.",
                BEFORE),
        Mistake("times_1e9", dict(hide=lambda S, mask: S + mask * -1e9),
                "-1e9 is added where the mask is True",
                "True means “may read” in this course, so the allowed keys are the ones that got hidden.",
                BEFORE),
        Mistake("zero_inf_nan", dict(hide=lambda S, mask: S + (1 - mask.astype(float)) * -np.inf),
                "0 is multiplied by -inf",
                "0 · inf is nan, not 0, so the allowed keys are spoilt; np.where makes no such product.",
                BEFORE),
        Mistake("zero_inf_nan_refused",
                dict(hide=lambda S, mask: S + (1 - mask.astype(float)) * -np.inf, softmax=right.softmax),
                "the scores of allowed keys become nan, as when 0 is multiplied by -inf",
                "0 · inf is nan, not 0, so the allowed keys are spoilt; np.where makes no such product.",
                BEFORE, by_text=True),
        Mistake("times_inf", dict(hide=lambda S, mask: S * np.where(mask, 1.0, -np.inf)),
                "hidden scores are multiplied by -inf",
                "The sign of the score decides: a negative one becomes +inf, and a 0 becomes nan.", BEFORE),
        Mistake("mask_transposed", dict(read=lambda mask: mask.T), "the mask is transposed",
                "Rows of the mask are queries and columns are keys, as in S.", BEFORE),
        Mistake("query_mask", dict(read=lambda mask: mask.all(axis=-1, keepdims=True), hide=fill(-1e9)),
                "whole queries are hidden in place of single keys",
                "The mask says for each query which keys it may read.", BEFORE),
        Mistake("key_mask", dict(read=lambda mask: mask.all(axis=0, keepdims=True)),
                "a key is hidden from all as soon as it is hidden from one",
                "The mask says for each query which keys it may read.", BEFORE),
        Mistake("causal_always", dict(read=lambda mask: np.tril(np.ones(mask.shape, bool))),
                "a causal mask is used in place of the one given",
                "The mask is an argument because it is not always the causal one.", BEFORE),
        Mistake("causal_aligned", dict(read=lambda mask: right.causal_mask(*mask.shape)),
                "a causal mask is used in place of the one given",
                "The mask is an argument because it is not always the causal one.", BEFORE),
        Mistake("self_always", dict(read=lambda mask: mask | np.eye(*mask.shape, dtype=bool)),
                "every query may read the key at its own place, whatever the mask says",
                "The mask alone says what may be read.", BEFORE),
        Mistake("softmax_twice", dict(through=softmax_steps), "softmax is taken twice",
                "The first one gives shares between 0 and 1; the second makes them nearly equal.", WEIGHTS),
        Mistake("scaled_by_keys", dict(through=lambda S: S / np.sqrt(S.shape[-1])),
                "the scores are divided by the root of their own width, the number of keys",
                "The scores come scaled already, and the number of keys plays no part in it.", WEIGHTS),
        Mistake("softmax_axis_2", dict(softmax=lambda z: softmax_steps(z, shares=along(-2))),
                "the shares are taken down the columns (axis -2), over the queries",
                "A row holds one query's scores, and it is the query that shares itself out among the keys.",
                WEIGHTS),
        Mistake("in_place", dict(hide=overwrite, through=lambda S: S),
                "the scores that were given are overwritten with -inf",
                "The caller's S is changed (and an array of integers cannot hold -inf).", BEFORE),
        *(Mistake(f"softmax_{old.name}", dict(softmax=slip(old)), old.what, old.why, WEIGHTS)
          for old in SLIPS.values() if old.name in (
              "no_max", "global_max", "max_floor_zero", "axis0", "axis0_no_max", "axis1", "sum_no_keepdims",
              "whole_array", "not_normalised", "eps_big", "base2")),
    ))

EXERCISES = (SOFTMAX, CAUSAL_MASK, ATTENTION_WEIGHTS)

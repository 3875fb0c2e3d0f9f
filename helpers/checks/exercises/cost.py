"""The exercise of notebook 09: attention_flops."""

import numpy as np

from helpers import cost as right
from helpers.checks.exercise import Case, Exercise, Mistake
from helpers.checks.exercises.kv_cache import no_int, number_types

PRODUCTS, COUNTED = "Every product of one layer", "Counted, number by number"
TERMS, CAUSAL = "Two terms, and neither may be dropped", "Causal: half the pairs"
SQUARE = "Where the square overtakes"


def flop_cases():
    def case(kind, *numbers):
        return Case(kind, numbers)
    return [
        case("", 7, 12, 3),
        case("one head", 5, 6, 1),
        case("n = d_model", 8, 8, 4),
        case("one token", 1, 10, 5),
        case("many tokens, a narrow model", 900, 4, 2),
        case("few tokens, a wide model", 3, 640, 10),
        case("n = 2·d_model", 24, 12, 6),
        case("as many heads as tokens", 4, 20, 4),
        case("one number a head", 5, 3, 3),
        case("n = 0", 0, 6, 2),
        case("sizes that a float32 cannot multiply exactly", 61_003, 1030, 5),
        case("131,072 tokens", 131_072, 4096, 32),
        case("the same in NumPy integers (int32)", *map(np.int32, (131_072, 4096, 32))),
    ]


def flop_steps(n, d_model, n_heads, queries=1, keys=1, values=1, output=1, scores=1, mix=1, heads=1,
               tokens=lambda n: n, pairs=lambda n: n * n, each=2, times=1, own=lambda d, h: d,
               joined=None, wide=lambda d, h: d, extra=lambda n, d, h: 0, less=lambda n, d, h: 0,
               sizes=lambda n, d, h: (n, d, h), number=lambda numbers: int, unit=1):
    """`queries`, `keys`, … : how often each product is counted, `own` : the width of a projection, `joined` :
    that of W_o where it is another, `wide` : that of scores and weighted sum, `extra` : multiply-adds of
    other products, `less` : FLOPs not counted."""
    as_number = number((n, d_model, n_heads))
    n, d, h = (as_number(int(size)) for size in sizes(n, d_model, n_heads))
    with np.errstate(all="ignore"):
        projections = as_number(queries + keys + values) * tokens(n) * d * own(d, h)
        projections += as_number(output) * tokens(n) * d * (joined or own)(d, h)
        products = as_number(scores + mix) * as_number(heads if heads == 1 else h) * pairs(n) * wide(d, h)
        total = as_number(each * times) * (projections + products + as_number(extra(n, d, h)))
        total -= as_number(less(n, d, h))
        return total if unit == 1 else total / unit


def softmax_counted(expected, given, n, d_model, n_heads):
    """For what is a few operations too many for each score."""
    scores, more = int(n) ** 2 * int(n_heads), float(given) - float(expected)
    each = round(more / scores) if scores else 0
    if not 1 <= each <= 10 or more != each * scores:
        return None
    times = f"{each}·" if each > 1 else ""
    return (f"It is {times}h·n² more than asked: {each} more for each score.",
            "Softmax, scaling and masks are not counted here, only the matrix products.", PRODUCTS)


def causal_pairs(n):
    return n * (n + 1) // 2


def sums(n, d, h):
    """How many numbers the six products have, each of them a sum."""
    return 4 * n * d + h * n * n + n * d


def head_width(d, h):
    return d // h


def model_width(d, h):
    return d


ATTENTION_FLOPS = Exercise(
    "9.1", "attention_flops", "09", right.attention_flops,
    arguments={"n": (), "d_model": (), "n_heads": ()}, returns={"total": ()}, tolerance=1e-15,
    cases=flop_cases, steps=flop_steps, remark=no_int, explain=softmax_counted,
    does_it_all=(right.layer_flops,),
    passed="One term grows with n and one with n²: you can say from where on a long text costs more.",
    mistakes=(
        Mistake("no_projections", dict(queries=0, keys=0, values=0, output=0), "the projections are left out",
                "W_q, W_k, W_v and W_o take 8·n·d_model²: for short texts that is most of the work.", TERMS),
        Mistake("no_scores", dict(scores=0, mix=0), "scores and weighted sum are left out",
                "They grow with n², and for long texts they are most of the work.", TERMS),
        Mistake("macs", dict(each=1), "multiply-adds are counted, not FLOPs",
                "A multiply-add is two operations, one multiplication and one addition.", PRODUCTS),
        Mistake("one_matmul", dict(mix=0), "scores and weighted sum together are half of what they take",
                "They are two products, Q Kᵀ and A V, with n·n·d_model multiply-adds each, and each of these "
                "is two operations.", PRODUCTS),
        Mistake("mixed_factor", dict(mix=0.5, number=lambda _: float),
                "of scores and weighted sum one is counted in multiply-adds and one in FLOPs",
                "A multiply-add is two operations in every product.", PRODUCTS),
        Mistake("no_output", dict(output=0), "W_o is left out",
                "Joining the heads is a product of its own: (n, d_model) @ (d_model, d_model).", PRODUCTS),
        Mistake("one_projection", dict(keys=0, values=0, output=0), "one projection is counted, not four",
                "Queries, keys, values and the way out have a matrix each.", PRODUCTS),
        Mistake("two_projections", dict(values=0, output=0), "the projections are half of what they take",
                "They are four products, n·d_model² multiply-adds each, and each of these is two operations.",
                PRODUCTS),
        Mistake("times_h", dict(heads=0), "scores and weighted sum are multiplied by the number of heads",
                "A head is d_model / h wide: h heads do the work of one head of width d_model.",
                PRODUCTS),
        Mistake("all_times_h", dict(heads=0, own=lambda d, h: d * h), "everything is multiplied by the "
                "number of heads", "A head is d_model / h wide: h heads do the work of one head of width "
                "d_model.", PRODUCTS),
        Mistake("projections_times_h", dict(own=lambda d, h: d * h),
                "the projections are multiplied by the number of heads",
                "A head is d_model / h wide: the h heads share the d_model columns of one matrix.",
                PRODUCTS),
        Mistake("one_head", dict(own=lambda d, h: d // h, wide=lambda d, h: d // h),
                "one head is counted, not all of them",
                "There are h heads, each d_model / h wide.", PRODUCTS),
        Mistake("one_head_pairs", dict(wide=lambda d, h: d // h),
                "scores and weighted sum are counted for one head only",
                "There are h heads, each d_model / h wide.", PRODUCTS),
        Mistake("narrow_projections", dict(own=lambda d, h: d // h),
                "the projections are counted for one head only",
                "There are h heads, each d_model / h wide.", PRODUCTS),
        Mistake("narrow_queries", dict(own=head_width, joined=model_width),
                "Q, K and V are counted for one head only",
                "W_q, W_k and W_v are d_model wide: there are h heads, each d_model / h wide.", PRODUCTS),
        Mistake("narrow_output", dict(own=model_width, joined=head_width),
                "W_o is counted for one head only",
                "W_o joins all h heads: (n, d_model) @ (d_model, d_model).", PRODUCTS),
        Mistake("n_for_d", dict(tokens=lambda n: n * n, own=lambda d, h: 1),
                "n and d_model have changed places in the projections: n²·d_model, where n·d_model² belongs",
                "X is (n, d_model) and a matrix (d_model, d_model): n·d_model numbers, each a sum of d_model "
                "products.", PRODUCTS),
        Mistake("d_for_n", dict(pairs=lambda n: n, wide=lambda d, h: d * d),
                "n and d_model have changed places in scores and weighted sum: n·d_model², where n²·d_model "
                "belongs", "Each head has n·n scores, each of them a sum of d_model / h products.", PRODUCTS),
        Mistake("n_and_d_swapped", dict(sizes=lambda n, d, h: (d, n, h)),
                "n and d_model have changed places throughout",
                "n is the number of tokens, d_model the width of each: a projection takes n·d_model², the "
                "scores n²·d_model.", PRODUCTS),
        Mistake("additions_exact", dict(less=sums), "additions are counted one fewer in each sum",
                "The first product of a sum is added to nothing, so that is exact; by custom a multiply-add "
                "counts as two all the same.", COUNTED),
        Mistake("n_missing", dict(tokens=lambda n: 1), "the projections are counted for one token",
                "Each of the n tokens goes through the four matrices.", PRODUCTS),
        Mistake("tokens_squared", dict(tokens=lambda n: n * n), "the projections are counted with n²",
                "Each token goes through the matrices once, by itself: that is n rows, not n² pairs.", TERMS),
        Mistake("linear_pairs", dict(pairs=lambda n: n), "scores and weighted sum are counted with n, not n²",
                "Each of the n queries meets each of the n keys.", TERMS),
        Mistake("causal", dict(pairs=causal_pairs), "only the pairs that a causal mask lets through are "
                "counted", "This exercise asks for all n·n: nothing is masked.", CAUSAL),
        Mistake("backward", dict(times=3), "the way back is counted too, three times the work in all",
                "That is the cost of training. This exercise asks for one pass forward.", PRODUCTS),
        Mistake("mlp_counted", dict(extra=lambda n, d, h: 8 * n * d * d), "the layer's MLP is counted too",
                "Two matrices of d_model · 4·d_model: not part of attention, and not asked for here.",
                SQUARE),
        Mistake("giga", dict(unit=10**9), "the answer is in GFLOPs, divided by 10⁹",
                "The exercise asks for FLOPs; divide when you print.", PRODUCTS),
        Mistake("tera", dict(unit=10**12), "the answer is in TFLOPs, divided by 10¹²",
                "The exercise asks for FLOPs; divide when you print.", PRODUCTS),
        *number_types(PRODUCTS),
    ))

EXERCISES = (ATTENTION_FLOPS,)

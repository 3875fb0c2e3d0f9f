"""The exercise of notebook 09: attention_flops."""

import numpy as np

from helpers import cost as right
from helpers.checks.exercise import Case, Exercise, Mistake
from helpers.checks.exercises.kv_cache import TYPES, int32_always, int32_if_given, no_int

PRODUCTS, COUNTED = "Every product of one layer", "Counted, number by number"
TERMS, CAUSAL = "Two terms, and neither may be dropped", "Causal: half the pairs"


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
        case("no token", 0, 6, 2),
        case("sizes that a float32 cannot multiply exactly", 61_003, 1030, 5),
        case("131,072 tokens", 131_072, 4096, 32),
        case("the same in NumPy integers (int32)", *map(np.int32, (131_072, 4096, 32))),
    ]


def flop_steps(n, d_model, n_heads, queries=1, keys=1, values=1, output=1, scores=1, mix=1, heads=1,
               tokens=lambda n: n, pairs=lambda n: n * n, each=2, times=1, own=lambda d, h: d,
               wide=lambda d, h: d, extra=lambda n, d, h: 0, number=lambda numbers: int, unit=1):
    """`queries`, `keys`, … : how often each product is counted, `own` : the width of a projection, `wide` :
    that of scores and weighted sum, `extra` : multiply-adds of other products."""
    as_number = number((n, d_model, n_heads))
    n, d, h = (as_number(int(size)) for size in (n, d_model, n_heads))
    with np.errstate(all="ignore"):
        projections = as_number(queries + keys + values + output) * tokens(n) * d * own(d, h)
        products = as_number(scores + mix) * as_number(heads if heads == 1 else h) * pairs(n) * wide(d, h)
        total = as_number(each * times) * (projections + products + as_number(extra(n, d, h)))
        return total if unit == 1 else total / unit


def softmax_counted(expected, given, n, d_model, n_heads):
    """For what is a few operations too many for each score."""
    scores, more = int(n) ** 2 * int(n_heads), float(given) - float(expected)
    each = round(more / scores) if scores else 0
    if not 1 <= each <= 10 or more != each * scores:
        return None
    return (f"It is {each}·h·n² more than asked: {each} more for each score.",
            "Softmax, scaling and masks are not counted here, only the matrix products.", PRODUCTS)


def causal_pairs(n):
    return n * (n + 1) // 2


ATTENTION_FLOPS = Exercise(
    "9.1", "attention_flops", "09", right.attention_flops,
    arguments={"n": (), "d_model": (), "n_heads": ()}, returns={"total": ()}, tolerance=1e-15,
    cases=flop_cases, steps=flop_steps, remark=no_int, explain=softmax_counted,
    passed="One term grows with n and one with n²: you can say from where on a long text costs more.",
    mistakes=(
        Mistake("no_projections", dict(queries=0, keys=0, values=0, output=0), "the projections are left out",
                "W_q, W_k, W_v and W_o take 8·n·d_model²: for short texts that is most of the work.", TERMS),
        Mistake("no_scores", dict(scores=0, mix=0), "scores and weighted sum are left out",
                "They grow with n², and for long texts they are most of the work.", TERMS),
        Mistake("macs", dict(each=1), "multiply-adds are counted, not FLOPs",
                "A multiply-add is two operations, one multiplication and one addition.", COUNTED),
        Mistake("one_matmul", dict(mix=0), "scores and weighted sum together are half of what they take",
                "They are two products, Q Kᵀ and A V, with n·n·d_model multiply-adds each, and each of these "
                "is two operations.", PRODUCTS),
        Mistake("mixed_factor", dict(mix=0.5, number=lambda _: float),
                "of scores and weighted sum one is counted in multiply-adds and one in FLOPs",
                "A multiply-add is two operations in every product.", COUNTED),
        Mistake("no_output", dict(output=0), "W_o is left out",
                "Joining the heads is a product of its own: (n, d_model) @ (d_model, d_model).", PRODUCTS),
        Mistake("one_projection", dict(keys=0, values=0, output=0), "one projection is counted, not four",
                "Queries, keys, values and the way out have a matrix each.", PRODUCTS),
        Mistake("two_projections", dict(values=0, output=0), "the projections are half of what they take",
                "They are four products, n·d_model² multiply-adds each, and each of these is two operations.",
                PRODUCTS),
        Mistake("times_h", dict(heads=0), "scores and weighted sum are multiplied by the number of heads",
                "A head is d_model / h wide: h heads do the work of one head of width d_model.", COUNTED),
        Mistake("all_times_h", dict(heads=0, own=lambda d, h: d * h), "everything is multiplied by the "
                "number of heads", "A head is d_model / h wide: h heads do the work of one head of width "
                "d_model.", COUNTED),
        Mistake("one_head", dict(own=lambda d, h: d // h, wide=lambda d, h: d // h),
                "one head is counted, not all of them", "There are h heads, each d_model / h wide.", COUNTED),
        Mistake("one_head_pairs", dict(wide=lambda d, h: d // h),
                "scores and weighted sum are counted for one head only",
                "There are h heads, each d_model / h wide.", COUNTED),
        Mistake("narrow_projections", dict(own=lambda d, h: d // h),
                "the projections are counted for one head only",
                "There are h heads, each d_model / h wide.", COUNTED),
        Mistake("n_missing", dict(tokens=lambda n: 1), "the projections are counted for one token",
                "Each of the n tokens goes through the four matrices.", COUNTED),
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
                PRODUCTS),
        Mistake("giga", dict(unit=10**9), "the answer is in GFLOPs, divided by 10⁹",
                "The exercise asks for FLOPs; divide when you print.", COUNTED),
        Mistake("tera", dict(unit=10**12), "the answer is in TFLOPs, divided by 10¹²",
                "The exercise asks for FLOPs; divide when you print.", COUNTED),
        Mistake("float32", dict(number=lambda numbers: np.float32), "it is computed in float32",
                "A float32 holds whole numbers exactly up to 16,777,216 only; beyond that the last digits "
                "are rounded. Multiply Python integers.", COUNTED),
        Mistake("int32", dict(number=int32_always), "it is computed in 32-bit integers",
                f"They end at 2,147,483,647 and begin again below zero. {TYPES}", COUNTED),
        Mistake("int32_if_given", dict(number=int32_if_given),
                "NumPy integers are multiplied as they come, in 32 bits",
                f"They end at 2,147,483,647 and begin again below zero. {TYPES}", COUNTED),
    ))

EXERCISES = (ATTENTION_FLOPS,)

"""The exercise of notebook 08: sample_next.

The answer is drawn at random, so `drawn` asks for it many times, and the share of each id is compared with
its exact probability. The functions of our own (`sample_steps`, with or without a mistake) give probabilities
and draw nothing.
"""

import copy
from functools import partial

import numpy as np

from helpers import sampling as right
from helpers.checks.exercise import Case, Exercise, Mistake
from helpers.checks.exercises.softmax_and_masks import OVERFLOW, WEIGHTS
from helpers.checks.observe import Told

LAST_ROW, TEMPERATURE, TOP_K, TOP_P = "From the last row to logits", "Temperature", "Top-k", "Top-p"
ORDER, SEED = "The order of the three", "Drawing with a seed"
ATTENTION = "03"
# Draws: the most where shares are looked at closely, many where little tells mistakes apart, half of that
# where more does, some where it is the ids that do, few where only one may come.
MOST, MANY, HALF, SOME, FEW = 1500, 800, 400, 250, 60
REPEATED = 50  # of them are drawn once more, with a second generator of the same seed

OTHER_IDS = "sample_next drew other ids when it was called again with a generator of the same seed."
NO_SUCH_ID = "sample_next gave back an id that does not exist: ids go from 0 to V - 1."


def sample_cases():
    def case(kind, logits, draws=MANY, call=None, edge="", style=False, **options):
        logits = np.asarray(logits)
        row = "[" + ", ".join(f"{x:.6g}" for x in logits[-1]) + "]"
        n, said = len(logits), [f"{name} = {value}" for name, value in options.items()]
        says = f"{', '.join(said) or 'no settings'}; the last of {n} rows is {row}"
        return Case(kind, (logits, np.random.default_rng(8)), options, edge=edge, style=style,
                    says=says if n > 1 else f"{', '.join(said) or 'no settings'}; the only row is {row}",
                    call=partial(call or drawn, draws=draws), draws=draws)

    # Rows whose likeliest ids differ, whose mean is another row, and none of whose ids is far ahead.
    A = [[1.5, -0.5, 0.0, 0.7, -1.0], [-0.6, 0.3, 2.0, -1.0, 0.5], [0.2, 1.1, -0.9, 0.8, 0.1]]
    B = [[0.4, -0.8, 1.9, 0.0, -0.3, 0.6], [-0.2, 1.0, 0.3, -1.5, 1.3, 0.6]]
    C = [[1.2, 0.3, -0.4, 0.9], [-1.3, 0.4, 1.2, 0.7]]
    steep = [[0.5, 1.0, -1.5, 0.0, 2.0], [0.0, 4.0, 2.0, -2.0, 1.0]]
    return [
        case("no settings", A, MOST),
        case("temperature 0.5", A, temperature=0.5),
        case("temperature 4", steep, HALF, temperature=4.0),
        case("temperature 0", A, FEW, temperature=0),
        case("temperature 0 and top_k", B, FEW, temperature=0, top_k=3),
        case("top_k = 1", B, FEW, top_k=1),
        case("top_k", B, top_k=3),
        case("top_k above V", C, SOME, top_k=9),
        case("top_p", B, top_p=0.7),
        case("a tiny top_p", A, FEW, top_p=0.01),
        case("top_p = 1", C, SOME, top_p=1.0),
        case("top_k and top_p", A, HALF, top_k=3, top_p=0.75),
        case("temperature and top_p", [C[0], [-1.3, 0.4, 2.4, 0.7]], HALF, temperature=3.0, top_p=0.7),
        case("temperature and top_k", B, HALF, temperature=0.5, top_k=2),
        case("large logits", np.add(10_000, C), HALF),
        case("negative logits and top_k", np.subtract(B, 9), SOME, top_k=2),
        case("one row", C[1:], SOME),
        case("integers", np.array([[0, 3, 1, 2], [2, 0, 1, 1]]), SOME, style=True, temperature=2),
        case("ties at the k-th logit", [[0.2, 0.1, 0.4, 0.3], [1.0, 0.5, 0.5, 0.5]], top_k=2,
             edge="of equal logits at the k-th place it keeps more than one, or another than that with the "
                  "smallest id; the exercise asks for exactly k."),
        case("the type of the id", C, FEW, call=plain,
             edge="it gives back NumPy's integers; the exercise asks for an int, and int(…) makes one."),
    ]


def drawn(function, logits, rng, draws, **options):
    """The share of each id in so many draws, or what is wrong with an answer."""
    untouched, again = logits.copy(), copy.deepcopy(rng)
    V, ids = logits.shape[1], []
    for i in range(draws):
        answer = function(untouched.copy() if i else logits, rng, **options)
        if not is_whole(answer):
            return what_came(answer)
        if not 0 <= answer < V:
            return Told(NO_SUCH_ID)
        ids.append(int(answer))
    if any(function(untouched.copy(), again, **options) != i for i in ids[:REPEATED]):
        return Told(OTHER_IDS)
    return np.bincount(ids, minlength=V) / draws


def plain(function, logits, rng, draws):
    """Whether ids are Python's own integers, drawn or not."""
    if all(type(function(logits, rng, temperature=T)) is int for T in (0, 1.0)):
        return drawn(function, logits, rng, draws)
    return Told("sample_next gave back a NumPy integer.")


def is_whole(answer):
    if isinstance(answer, np.ndarray):
        return answer.ndim == 0 and answer.dtype.kind in "iu"
    return isinstance(answer, (int, np.integer)) and not isinstance(answer, bool)


def what_came(answer):
    """An answer that is no id, in words; what has words already goes back as it is."""
    if isinstance(answer, (list, tuple)):
        came = f"{len(answer)} thing{'s' if len(answer) != 1 else ''}"
    elif isinstance(answer, np.ndarray) and answer.ndim:
        came = f"an array of shape {answer.shape}"
    elif isinstance(answer, (bool, np.bool_)):
        came = "True or False"
    elif isinstance(answer, (float, np.floating, np.ndarray)):
        came = "a number with a decimal point"
    else:
        return answer
    return Told(f"sample_next gave back {came}, where one id is expected, an int.")


def best_k(p, k):
    """The k likeliest stay, of equal ones those with the smaller ids."""
    return cut(p, likeliest_first(p)[k:])


def likeliest_first(p):
    return np.argsort(-p, kind="stable")


def cut(p, gone):
    p = p.copy()
    p[gone] = 0
    return p


def up_to_crossing(p, top_p, extra=0):
    """The likeliest stay, up to the one where their sum crosses top_p, and `extra` more."""
    order = likeliest_first(p)
    return cut(p, order[np.searchsorted(np.cumsum(p[order]), top_p - 1e-12) + 1 + extra:])


def rescaled(p):
    return p / p.sum()


def k_then_p(p, top_k, top_p, few, nucleus, rescale):
    if top_k is not None:
        p = rescale(few(p, top_k))
    if top_p is not None:
        p = rescale(nucleus(p, top_p))
    return p


def p_then_k(p, top_k, top_p, few, nucleus, rescale):
    p = k_then_p(p, None, top_p, few, nucleus, rescale)
    return k_then_p(p, top_k, None, few, nucleus, rescale)


def only_k_rescaled(p, top_k, top_p, few, nucleus, rescale):
    p = k_then_p(p, top_k, None, few, nucleus, rescaled)
    return k_then_p(p, None, top_p, few, nucleus, rescale)


def only_p_rescaled(p, top_k, top_p, few, nucleus, rescale):
    """After top_k alone nothing is divided; with top_p behind it the rest is, in time."""
    p = k_then_p(p, top_k, None, few, nucleus, rescale if top_p is None else rescaled)
    return k_then_p(p, None, top_p, few, nucleus, rescaled)


def k_never_rescaled(p, top_k, top_p, few, nucleus, rescale):
    """As it comes out of top_k it goes into top_p, and only what is left then is divided."""
    p = k_then_p(p, top_k, None, few, nucleus, not_rescaled)
    return k_then_p(p, None, top_p, few, nucleus, rescaled)


def exp_shares(z):
    e = np.exp(z - z.max())
    return e / e.sum()


def certain(z):
    return np.eye(len(z))[z.argmax()]


def sample_steps(logits, rng, temperature=1.0, top_k=None, top_p=None, row=lambda L: L[-1],
                 at_zero=certain, heat=lambda z, T: z / T, early=lambda z, k: z, shares=exp_shares,
                 cuts=k_then_p, few=best_k, nucleus=up_to_crossing, rescale=rescaled, late=lambda p, T: p,
                 pick=lambda p: p, places=lambda p, *settings: p, wrap=lambda p, V: p, answer=lambda p, T: p):
    """The probability of each id; `early` is what top_k does to the logits."""
    with np.errstate(all="ignore"):
        z = row(np.asarray(logits, dtype=float))
        if temperature == 0 and at_zero:
            p = at_zero(z)
        else:
            p = shares(early(heat(z, temperature) if temperature or not at_zero else z, top_k))
            p = late(cuts(p, top_k, top_p, few, nucleus, rescale), temperature)
        p = wrap(places(pick(p), temperature, top_k, top_p), np.shape(logits)[1])
        if not isinstance(p, Told) and not abs(p.sum() - 1) < 1e-8:
            raise ValueError("probabilities do not sum to 1")
        return p if isinstance(p, Told) else answer(p, temperature)


def cut_to_zero(z, k):
    """Logits of 0 where they should be -inf."""
    return z if k is None else cut(z, likeliest_first(z)[k:])


def more_than(threshold):
    """All as likely as that stay, and the likeliest."""
    return lambda p, top_p: np.where((p >= threshold(p, top_p)) | (p == p.max()), p, 0)


def not_one_row(p, T):
    """At temperature 0 the answer is made in another way, and right."""
    if T:
        raise ValueError("p must be 1-dimensional")
    return p


def each_alone(p, top_p):
    return np.where((p >= top_p) | (p == p.max()), p, 0)


def at_threshold(p, k):
    """Everything as likely as the k-th; there is none when k is above V."""
    return np.where(p < np.sort(p)[-k], 0, p)


def above_threshold(p, k):
    return np.where((p > np.sort(p)[-min(k, len(p))]) | (p == p.max()), p, 0)


def unsorted_mask(p, top_p):
    """How many to keep is counted in sorted order, and the first so many ids are kept."""
    return cut(p, slice(np.searchsorted(np.cumsum(np.sort(p)[::-1]), top_p - 1e-12) + 1, None))


def in_id_order(p, top_p):
    return cut(p, slice(np.searchsorted(np.cumsum(p), top_p - 1e-12) + 1, None))


def least_likely_first(p, top_p):
    order = likeliest_first(p)[::-1]
    return cut(p, order[np.searchsorted(np.cumsum(p[order]), top_p - 1e-12) + 1:])


def empty_nucleus(p, top_p):
    order = likeliest_first(p)
    return cut(p, order[np.cumsum(p[order]) > top_p + 1e-12])


def not_crossing(p, top_p):
    order = likeliest_first(p)
    return cut(p, order[1:][np.cumsum(p[order])[1:] > top_p + 1e-12])


def down_to(k):
    """One fewer than top_k stay: k(top_k)."""
    return lambda p, top_k: best_k(p, k(top_k))


def ends_with(error, text):
    """What an answer does at temperature 0 that divides by it."""
    def at_zero(z):
        raise error(text)
    return at_zero


def in_sorted_order(when):
    """Shares of places in the sorted list, where when(T, top_k, top_p) says so."""
    return lambda p, *settings: np.sort(p)[::-1] if when(*settings) else p


def not_rescaled(p):
    return p


def rest_to_last(p):
    return p + (1 - p.sum()) * (np.arange(len(p)) == len(p) - 1)


def rest_beyond(p):
    return Told(NO_SUCH_ID) if p.sum() < 1 - 1e-8 else p


def all_positions(p, V):
    return p.reshape(-1, V).sum(0)


def beyond_one_row(p, V):
    return Told(NO_SUCH_ID) if p[V:].any() else p[:V]


def always(sentence):
    return lambda p, T: Told(sentence)


def when_drawn(sentence):
    """At temperature 0 the answer is made in another way, and right."""
    return lambda p, T: Told(sentence) if T else p


def unless_certain(sentence):
    return lambda p, T: p if p.max() == 1 else Told(sentence)


def came(thing):
    return f"sample_next gave back {thing}, where one id is expected, an int."


def probabilities(p, T):
    return what_came(p) if T else p


def one_id_always(expected, given, logits, rng, top_k=None, top_p=None, **others):
    """For a function that gives the same id each time."""
    if given.max() < 1 or expected.max() > 0.9:
        return None
    if (top_k or top_p) and given.argmax() == expected.argmax():
        return ("Where ids are cut off, only the likeliest is left.",
                "top_k keeps as many as it says, and top_p the likeliest until together they reach it: "
                "here more than one.", TOP_P if top_p else TOP_K)
    return ("Every draw gave the same id.",
            "One and the same rng must be asked each time. A generator made inside the function begins at "
            "the same place at every call.", SEED)


CROSSING = "The token that crosses top_p stays, so that what is kept reaches top_p, and at least one is kept."
SAMPLE_NEXT = Exercise(
    "8.1", "sample_next", "08", right.sample_next,
    arguments={"logits": ("n", "V"), "rng": ()}, returns={"share of each id": ("V",)},
    one_answer="one id, an int,",
    cases=sample_cases, steps=sample_steps, explain=one_id_always,
    does_it_all=(right.next_probabilities, right.row_by_row, right.sample_rows),
    exact=lambda logits, rng, **options: right.next_probabilities(logits, **options),
    passed="A model gives logits; how bold a text it writes with them is yours to set.",
    mistakes=(
        Mistake("always_greedy", dict(pick=certain), "the likeliest id is always taken, nothing is drawn",
                "Then the same words come every time. Each id must come as often as its probability says.",
                SEED),
        Mistake("uniform_among_kept", dict(pick=lambda p: (p > 0) / (p > 0).sum()),
                "all ids that were kept are drawn equally often",
                "A cut says what may come; how often is still a matter of the probabilities.", SEED),
        *(Mistake(f"place_not_id{where}", dict(places=in_sorted_order(when)),
                  "the place in the sorted list is returned, not the id that stands there",
                  "After sorting, place 0 is the likeliest id: draw from the ids, or look up which id stands "
                  "at the place that was drawn.", SEED)
          for where, when in (
              ("", lambda T, k, top_p: T),                  # at 0 the answer is made in another way
              ("_at_zero_too", lambda T, k, top_p: True),
              ("_where_cut", lambda T, k, top_p: T and (k or top_p)),
              ("_after_top_k", lambda T, k, top_p: T and k),
              ("_after_top_p", lambda T, k, top_p: T and top_p))),
        Mistake("temp_ignored", dict(heat=lambda z, T: z),
                "the temperature changes nothing: it is left out, or divides the probabilities",
                "The logits are divided by it, before softmax. Probabilities divided by it, and then by "
                "their sum, are what they were.", TEMPERATURE),
        Mistake("temp_multiplied", dict(heat=lambda z, T: z * T), "the logits are multiplied by the "
                "temperature", "A high temperature should make the choice freer: divide, and logits come "
                "closer together.", TEMPERATURE),
        Mistake("temp_twice", dict(heat=lambda z, T: z / T / T), "the temperature is applied twice",
                "Divided twice, temperature 2 works like 4.", TEMPERATURE),
        Mistake("temp_root", dict(heat=lambda z, T: z / np.sqrt(T)),
                "the logits are divided by the root of the temperature",
                "The root belongs to √d_k in attention; here the logits are divided by T itself.",
                TEMPERATURE),
        Mistake("temp_last", dict(heat=lambda z, T: z, late=lambda p, T: rescaled(p ** (1 / T))),
                "the temperature comes after the cuts",
                "First the temperature: top_p counts the probabilities that it leaves.", ORDER),
        *(Mistake(name, dict(at_zero=at_zero), "the logits are divided by a temperature of 0",
                  f"{why} Temperature 0 is a case of its own: the id with the largest logit.", TEMPERATURE)
          for name, at_zero, why in (
              ("t0_nan", None, "0 / 0 is nan."),
              ("t0_inf", ends_with(ValueError, "z must hold finite numbers or -inf, got inf at [0]"),
               "With NumPy a number divided by 0 is inf, which softmax cannot use."),
              ("t0_division", ends_with(ZeroDivisionError, "float division by zero"),
               "Plain Python cannot divide by 0."))),
        Mistake("t0_as_t1", dict(at_zero=None, heat=lambda z, T: z / T if T else z),
                "temperature 0 is taken for “no temperature”",
                "Temperature 0 is the coldest of all: the id with the largest logit, always. In Python 0 "
                "counts as False, so `if temperature` misses it.", TEMPERATURE),
        Mistake("mean_rows", dict(row=lambda L: L.mean(0)), "the logits of all rows are averaged",
                "Each row predicts the token after its own; the newest prediction is in the last row.",
                LAST_ROW),
        Mistake("first_row", dict(row=lambda L: L[0]), "the first row is used, not the last",
                "Each row predicts the token after its own; the newest prediction is in the last row.",
                LAST_ROW),
        Mistake("flattened", dict(row=np.ravel, wrap=all_positions),
                "all rows together are treated as one long row of logits",
                "Each row predicts the token after its own; the newest prediction is in the last row.",
                LAST_ROW),
        Mistake("flattened_index", dict(row=np.ravel, wrap=beyond_one_row),
                "all rows together are treated as one long row of logits, and the place in it returned",
                "Each row predicts the token after its own; the newest prediction is in the last row.",
                LAST_ROW),
        Mistake("no_max", dict(shares=lambda z: np.exp(z) / np.exp(z).sum()),
                "softmax takes exp of large logits as they are",
                OVERFLOW, (ATTENTION, WEIGHTS)),
        Mistake("all_rows", dict(answer=not_one_row),
                "softmax is taken of all rows, and no row is picked of what comes out",
                "Each row predicts the token after its own; the newest prediction is in the last row.",
                LAST_ROW, by_text=True),
        Mistake("topk_zeroed", dict(early=cut_to_zero, few=lambda p, k: p),
                "the logits that top_k cuts off are set to 0",
                "0 is a logit like any other, and exp(0) = 1: what must not come needs the logit -inf.",
                TOP_K),
        Mistake("softmax_again", dict(rescale=exp_shares),
                "softmax is taken once more, of probabilities",
                "exp(0) = 1, so what was cut off comes back, and the others come closer together. Divide "
                "what is left by its sum.", TOP_K),
        Mistake("topk_ignored", dict(few=lambda p, k: p), "top_k changes nothing",
                "Only the top_k likeliest ids may come.", TOP_K),
        Mistake("topk_lowest", dict(few=lambda p, k: cut(p, np.argsort(p)[k:])), "the k least likely ids are "
                "kept", "np.argsort puts the smallest first: take the last k, or sort the negative.", TOP_K),
        Mistake("topk_first_ids", dict(few=lambda p, k: cut(p, slice(k, None))),
                "the first k ids are kept, whatever their logits",
                "It is the k likeliest that stay: sort first, or compare with the k-th largest.", TOP_K),
        Mistake("topk_index_crash", dict(few=at_threshold), "a top_k above V asks for a place that is not "
                "there", "With fewer ids than top_k all of them stay: min(top_k, V), or a slice, which stops "
                "by itself.", TOP_K),
        Mistake("ties_all_dropped", dict(few=above_threshold),
                "the k-th likeliest id is dropped as well, so that k - 1 stay",
                "The k-th belongs to the k: where a threshold decides, what equals it stays.", TOP_K),
        *(Mistake(name, dict(few=down_to(k)), "one id fewer than top_k is kept, so that k - 1 stay",
                  "A slice [:k] holds k entries: places 0 to k - 1.", TOP_K)
          for name, k in (("topk_one_fewer", lambda k: max(1, k - 1)),
                          ("topk_none_of_one", lambda k: k - 1))),
        Mistake("topk_one_extra", dict(few=lambda p, k: best_k(p, k + 1)), "one id more than top_k is kept",
                "A slice [:k] holds k entries; places count from 0.", TOP_K),
        Mistake("topp_ignored", dict(nucleus=lambda p, top_p: p), "top_p changes nothing",
                "Only the likeliest ids that together reach top_p may come.", TOP_P),
        Mistake("topp_empty", dict(nucleus=empty_nucleus),
                "the token that crosses top_p is dropped, and nothing may be left", CROSSING, TOP_P),
        Mistake("topp_not_crossing", dict(nucleus=not_crossing), "the token that crosses top_p is dropped",
                CROSSING, TOP_P),
        Mistake("topp_one_extra", dict(nucleus=partial(up_to_crossing, extra=1)),
                "one token more than needed is kept by top_p",
                "Kept are the fewest that together reach top_p: the one that crosses it is the last.",
                TOP_P),
        Mistake("topp_mask_not_unsorted", dict(nucleus=unsorted_mask),
                "what top_p keeps is counted in sorted order, and then cut off in the order of the ids",
                "Place 0 of the sorted array is the likeliest id, not id 0: go back through the order that "
                "np.argsort gave.", TOP_P),
        Mistake("topp_in_id_order", dict(nucleus=in_id_order),
                "the probabilities are added up in the order of the ids",
                "top_p keeps the likeliest: sort from the likeliest down, then add up.", TOP_P),
        Mistake("topp_least_first", dict(nucleus=least_likely_first),
                "the probabilities are added up from the least likely upwards",
                "top_p keeps the likeliest: sort from the likeliest down, then add up.", TOP_P),
        Mistake("topp_each_alone", dict(nucleus=each_alone),
                "each probability is compared with top_p on its own",
                "It is the sum, from the likeliest down, that must reach top_p.", TOP_P),
        Mistake("topp_min_p", dict(nucleus=more_than(lambda p, top_p: 1 - top_p)),
                "each probability is compared with 1 − top_p on its own",
                "It is the sum, from the likeliest down, that must reach top_p.", TOP_P),
        Mistake("topp_of_largest", dict(nucleus=more_than(lambda p, top_p: top_p * p.max())),
                "each probability is compared with a share of the largest (min-p)",
                "That is another way to cut. Here it is the sum, from the likeliest down, that must reach "
                "top_p.", TOP_P),
        Mistake("topp_before_topk", dict(cuts=p_then_k), "top_p counts the probabilities of all ids, those "
                "that top_k cuts off as well",
                "Both orders are in use; in this course top_k cuts first, and top_p counts what is left, "
                "scaled to add up to 1.", ORDER),
        *(Mistake(f"{name}{which}", dict(rescale=not_rescaled, **cuts, **steps), what + where, why, read)
          for which, cuts, where, read in (
              ("", {}, "", TOP_K),
              ("_after_top_p", dict(cuts=only_k_rescaled), " (after top_p)", TOP_P),
              ("_after_top_k", dict(cuts=only_p_rescaled), " (after top_k)", TOP_K),
              ("_before_top_p", dict(cuts=k_never_rescaled), " (after top_k)", TOP_K))
          for name, steps, what, why in (
              ("not_renormalised", {}, "what is kept is not divided by its sum",
               "After a cut the rest adds up to less than 1, and rng.choice wants probabilities that add up "
               "to 1."),
              ("rest_to_last", dict(pick=rest_to_last), "what was cut off goes to the last id",
               "After a cut the rest adds up to less than 1: divide by the sum, or a draw that falls beyond "
               "it ends at the last id."),
              ("rest_beyond", dict(pick=rest_beyond),
               "what is kept is not divided by its sum, so that a draw can fall beyond the last id",
               "After a cut the rest adds up to less than 1."))),
        Mistake("other_generator", dict(answer=unless_certain(OTHER_IDS)),
                "the draw does not come from the rng that was given",
                "np.random, the module random and a generator of your own go on by themselves: the same seed "
                "then gives another text each time.", SEED),
        Mistake("array_returned", dict(answer=when_drawn(came("an array of shape (1,)"))),
                "an array with one id in it is returned",
                "The exercise asks for the id itself, an int: leave size=1 out, or take int(…) of its entry.",
                SEED),
        Mistake("array_always", dict(answer=always(came("an array of shape (1,)"))),
                "an array with one id in it is returned, at temperature 0 too",
                "The exercise asks for the id itself, an int.", SEED),
        Mistake("float_returned", dict(answer=when_drawn(came("a number with a decimal point"))),
                "the id is a float", "An id picks a row, and there is no row 2.0.", SEED),
        Mistake("probabilities_returned", dict(answer=probabilities), "the probabilities are returned",
                "They say how often each id should come; one id is still to be drawn.", SEED),
    ))

EXERCISES = (SAMPLE_NEXT,)

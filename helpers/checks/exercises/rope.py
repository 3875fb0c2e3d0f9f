"""The exercises of notebook 10: rope, rope_attention."""

import numpy as np

from helpers import embeddings as right
from helpers.checks.exercise import Case, Exercise, Mistake, drawer
from helpers.checks.exercises.scores import FAR
from helpers.checks.exercises.softmax_and_masks import (
    CAUSAL,
    NOT_PATTERN,
    SLIPS,
    WEIGHTS,
    slip,
    softmax_steps,
)

TURNED, DISTANCE = "Positions, turned in", "Only the distance counts"
PAIRINGS = "Two pairings, one of them wrong"
ATTENTION = "03"

# ------------------------------------------------------------------------------------------------------- rope


def rope_cases():
    draw = drawer(101)

    def case(kind, positions, d, whole=False, tolerance=None, style=False, **options):
        positions = np.asarray(positions)
        x = draw(len(positions), d, whole=whole)
        said = f"positions {', '.join(map(str, positions))}; d = {d}"
        said += "".join(f", {name} = {value}" for name, value in options.items())
        return Case(kind, (x, positions), options, says=f"{said} ({kind})" if kind else said, style=style,
                    tolerance=tolerance)
    odd = Case("an odd d", (draw(3, 5), np.arange(3)), raises=True,
               says="positions 0, 1, 2; d = 5: one column has no partner",
               edge="with an odd d one column has no partner to turn with; the course's rope raises an error "
                    "there.")
    return [
        case("", [0, 1, 2], 6),
        case("positions from 7 on", [7, 8, 9], 4),
        case("one token, position 9", [9], 6),
        case("position 0 only", [0], 4),
        case("d = 2", [0, 1, 2, 3], 2),
        case("gaps", [1, 4, 11], 4),
        case("backwards", [3, 2, 0], 6),
        case("large positions", [1000, 1003, 1010, 1100, 1200], 6, tolerance=1e-3),
        case("as many tokens as columns", [0, 1, 2, 3], 4),
        case("another base", [0, 2, 5], 6, base=100.0),
        case("half as many tokens as columns", [1, 2, 3], 6),
        case("integers", [1, 2, 5], 4, whole=True),
        odd,
    ]


def neighbours(x):
    """Pair i is columns 2i and 2i + 1."""
    return x[:, 0::2], x[:, 1::2]


def put_back(first, second):
    return np.stack([first, second], axis=-1).reshape(len(first), -1)


def halves(x):
    return x[:, :x.shape[1] // 2], x[:, x.shape[1] // 2:]


def put_halves_back(first, second):
    return np.concatenate([first, second], axis=1)


def slower_and_slower(d, base):
    return base ** (-np.arange(0, d, 2) / d)


def counter_clockwise(a, b, cos, sin):
    return a * cos - b * sin, a * sin + b * cos


def one_pair_each(angles):
    return angles, angles


def rope_steps(x, positions, base=10000.0, place=lambda p: p, speed=slower_and_slower, used=lambda base: base,
               product=np.outer, angles=lambda a: a, pairs=neighbours, turn=counter_clockwise, back=put_back,
               each=one_pair_each, finish=lambda y, x: y):
    with np.errstate(all="ignore"):
        if x.shape[1] % 2:
            raise ValueError("rope turns pairs of columns, so d must be even")
        place = place(np.asarray(positions, dtype=float))
        angle = angles(product(place, speed(x.shape[1], used(base))))
        one, two = each(angle)                              # the angle of the first and second of each pair
        a, b = pairs(np.asarray(x, dtype=float))
        if one is two:
            return finish(back(*turn(a, b, np.cos(one), np.sin(one))), x)
        first, _ = turn(a, b, np.cos(one), np.sin(one))
        _, second = turn(a, b, np.cos(two), np.sin(two))
        return finish(back(first, second), x)


def number_by_number(positions, speeds):
    """positions · speeds without a new axis: fits where there are as many tokens as pairs, or one token."""
    if len(speeds) == 1 < len(positions):
        raise ValueError("an angle a token in one row, where each token has a row of its own")
    return positions * speeds


def half_of_the_pairs(d, base):
    """The speeds of the first half of the columns, as if there were no more; the others stand still."""
    h = d // 4 * 2
    return np.concatenate([base ** (-np.arange(0, h, 2) / max(h, 1)), np.zeros((d - h) // 2)])


def angles_laid_twice(angle):
    """The list of angles once after the other over the columns, for neighbours: each column its own."""
    return neighbours(np.concatenate([angle, angle], axis=1))


def angles_repeated(angle):
    """Each angle for two neighbouring columns, for halves: each column its own."""
    return halves(np.repeat(angle, 2, axis=1))


def overwritten(a, b, cos, sin):
    a = a * cos - b * sin
    return a, a * sin + b * cos


def into_x(y, x):
    x[...] = y
    return x


def first_half_turned(y, x):
    return np.concatenate([y[:, :y.shape[1] // 2], x[:, y.shape[1] // 2:]], axis=1)


def first_pair_turned(y, x):
    return np.concatenate([y[:, :2], x[:, 2:]], axis=1)


def half_precision(angle):
    return angle.astype(np.float32).astype(np.float16).astype(float)


SLOWER = "Pair 0 turns by one radian a position, and each pair after it more slowly, down to about 1 / base."
OTHER_WAY = ("Turned the other way, a key behind looks like a key ahead: scores differ, and a model's "
             "weights fit one direction only.")
PAIRS = "In this course pair i is the neighbours 2i and 2i + 1"
ROPE = Exercise(
    "10.1", "rope", "10", right.rope,
    arguments={"x": ("n", "d"), "positions": ("n",)}, returns={"y": ("n", "d")},
    cases=rope_cases, steps=rope_steps,
    passed="A position is an angle now: lengths stay, and only differences of positions are seen.",
    holds=(("Every row has kept its length.",
            lambda y, x, positions: np.allclose((y**2).sum(-1), (np.asarray(x)**2).sum(-1))),
           ("The row of position 0 is unchanged, as it should be.",
            lambda y, x, positions: (positions == 0).any() and np.allclose(y[positions == 0],
                                                                           x[positions == 0]))),
    mistakes=(
        Mistake("half_pairs", dict(pairs=halves, back=put_halves_back),
                "column i is paired with column i + d/2 (the half-split form)",
                f"{PAIRS}. Both forms are in use, and a model's weights fit only the one it was trained "
                "with.", PAIRINGS),
        Mistake("clockwise", dict(turn=lambda a, b, cos, sin: (a * cos + b * sin, b * cos - a * sin)),
                "the pairs are turned the other way round, clockwise",
                f"The minus belongs to the first of a pair: (a cos − b sin, a sin + b cos). {OTHER_WAY}",
                TURNED),
        Mistake("mixed_layout_2", dict(each=angles_laid_twice),
                "neighbours are paired, but the angles are laid out for halves (all of them, then all again)",
                "The two columns of a pair must have one angle, or it is no turn: repeat each angle twice.",
                PAIRINGS),
        Mistake("mixed_layout_1", dict(pairs=halves, back=put_halves_back, each=angles_repeated),
                "column i is paired with column i + d/2, but the angles are laid out for neighbours",
                f"The two columns of a pair must have one angle, or it is no turn. {PAIRS}.", PAIRINGS),
        Mistake("not_interleaved", dict(back=put_halves_back),
                "the first columns of all pairs are put in front and the second ones behind",
                "What was taken from columns 0, 2, 4, … must go back there, and the others between.", TURNED),
        Mistake("half_in_neighbours_out", dict(pairs=halves),
                "pairs are taken from the two halves and put back as neighbours",
                f"{PAIRS}, on the way in as on the way out.", PAIRINGS),
        Mistake("sign_both", dict(turn=lambda a, b, cos, sin: (a * cos + b * sin, a * sin + b * cos)),
                "the minus sign is missing",
                "Without it the pair is stretched, not turned: (a cos − b sin, a sin + b cos).", TURNED),
        Mistake("both_minus", dict(turn=lambda a, b, cos, sin: (a * cos - b * sin, b * cos - a * sin)),
                "both lines have a minus sign",
                "With two of them the pair is stretched, not turned: (a cos − b sin, a sin + b cos).",
                TURNED),
        Mistake("sin_cos_swapped", dict(turn=lambda a, b, cos, sin: (a * sin - b * cos, a * cos + b * sin)),
                "sine and cosine have changed places",
                "At position 0 nothing turns: cos 0 = 1 must keep the pair as it is.", TURNED),
        Mistake("swapped_out", dict(back=lambda first, second: put_back(second, first)),
                "the two columns of each pair have changed places on the way out",
                "Column 2i gets a cos − b sin, column 2i + 1 a sin + b cos: at position 0 nothing changes.",
                TURNED),
        Mistake("cosines_only", dict(turn=lambda a, b, cos, sin: (a * cos, b * cos)),
                "only the cosine is used", "A turn mixes the two numbers of a pair; its length stays.",
                TURNED),
        Mistake("one_of_two", dict(turn=lambda a, b, cos, sin: (a * cos - b * sin, b)),
                "only the first column of each pair is turned",
                "A turn changes both: (a cos − b sin, a sin + b cos).", TURNED),
        Mistake("in_place_overwrite", dict(turn=overwritten),
                "the second column of a pair is computed from the first one's new value",
                "Keep the old values of both until both new ones are made.", TURNED),
        Mistake("pos_ignored", dict(place=lambda p: np.arange(len(p))),
                "positions are counted from 0, whatever was given",
                "With a cache a new row stands far from 0: its position comes from `positions`.", TURNED),
        Mistake("from_first", dict(place=lambda p: p - p[:1]), "the first position is subtracted from all",
                "Each row turns by its own position, so that rows of other calls fit.", TURNED),
        Mistake("from_last", dict(place=lambda p: p - p[-1:]), "the last position is subtracted from all",
                "Each row turns by its own position, so that rows of other calls fit.", TURNED),
        Mistake("one_too_large", dict(place=lambda p: p + 1), "positions are one too large",
                "Position 0 does not turn at all.", TURNED),
        Mistake("exp_positive", dict(speed=lambda d, base: base ** (np.arange(0, d, 2) / d)),
                "later pairs turn faster, not more slowly: base^(+2i/d), or a division by base^(−2i/d)",
                SLOWER, TURNED),
        Mistake("number_by_number", dict(product=number_by_number),
                "positions and speeds are multiplied number by number",
                "Every token needs an angle for every pair, (n, d/2): positions[:, None] * speed, or "
                "np.outer. Number by number it fails, or goes wrong unseen where there are as many "
                "tokens as pairs.", TURNED),
        Mistake("linspace", dict(speed=lambda d, base: base ** -np.linspace(0, 1, d // 2)),
                "the exponents go from 0 to 1 with both ends, as np.linspace gives them",
                "The exponent of pair i is −2i/d, so the last is not −1: it is −(d − 2)/d.", TURNED),
        Mistake("half_of_the_pairs", dict(speed=half_of_the_pairs),
                "the first half of the columns is turned as if there were no more, and the others not at all",
                "All d/2 pairs turn. Some models leave a part unturned; here none is.", TURNED),
        Mistake("double_2i", dict(speed=lambda d, base: base ** (-2 * np.arange(0, d, 2) / d)),
                "the exponent is twice as large as it should be",
                "np.arange(0, d, 2) is 2i already; times 2 again it is 4i.", TURNED),
        Mistake("half_2i", dict(speed=lambda d, base: base ** (-np.arange(d // 2) / d)),
                "the exponent is i / d, half of what it should be",
                "The exponent of pair i is −2i/d: i counts pairs, and d counts columns.", TURNED),
        Mistake("base_fixed", dict(used=lambda base: 10000.0), "the base given is ignored",
                "Models with long texts use another base: an argument that changes nothing is worse than "
                "none.", TURNED),
        Mistake("same_angle", dict(speed=lambda d, base: np.ones(d // 2)), "all pairs turn by the same angle",
                SLOWER, TURNED),
        Mistake("pairs_reversed", dict(speed=lambda d, base: slower_and_slower(d, base)[::-1]),
                "the speeds come in the opposite order", SLOWER, TURNED),
        Mistake("degrees", dict(angles=np.radians), "the angles are taken for degrees",
                "Angles are in radians, as np.cos and np.sin take them.", TURNED),
        Mistake("full_turns", dict(angles=lambda a: 2 * np.pi * a), "the angles are multiplied by 2π",
                "The speeds are radians a position already.", TURNED),
        Mistake("float16_positions", dict(angles=half_precision), "the angles are rounded to half precision",
                "float16 has three digits: at position 9 the angle is off by up to 0.004.", TURNED),
        Mistake("int_angles", dict(angles=np.trunc), "the angles are cut down to whole numbers",
                "An array of integers keeps no decimals: all slow pairs then stand still.", TURNED),
        Mistake("added", dict(turn=lambda a, b, cos, sin: (a + sin, b + cos)),
                "sines and cosines are added to x", "Positions of notebook 01 are added; here each pair is "
                "turned, so that its length stays.", TURNED),
        Mistake("first_pair", dict(finish=first_pair_turned), "only the first pair of columns is turned",
                "All d/2 pairs turn, each at a speed of its own.", TURNED),
        Mistake("second_line_minus", dict(turn=lambda a, b, cos, sin: (a * cos - b * sin, a * sin - b * cos)),
                "the second line has a minus where the plus belongs",
                "A turn is (a cos − b sin, a sin + b cos).", TURNED),
        Mistake("first_half", dict(finish=first_half_turned), "only the first half of the columns is turned",
                "All d/2 pairs turn.", TURNED),
        Mistake("input_changed", dict(finish=into_x), "the turned rows are written into the array x that was "
                "given", "Whoever uses x afterwards finds it turned already, and may turn it again.", TURNED),
        Mistake("int_buffer", dict(finish=lambda y, x: y.astype(x.dtype)),
                "the turned rows are put into an array of x's own type",
                "np.zeros_like and np.empty_like of integers keep integers: the decimals are cut off.",
                TURNED),
    ))

# --------------------------------------------------------------------------------------------- rope_attention


def rope_attention_cases():
    draw = drawer(102)

    def case(kind, positions, d_k, d_v, large=1, **more):
        positions = np.asarray(positions)
        n = len(positions)
        Q, K, V = draw(n, d_k) * large, draw(n, d_k) * large, draw(n, d_v)
        said = f"positions {', '.join(map(str, positions))}; d_k = {d_k}, d_v = {d_v}"
        return Case(kind, (Q, K, V, positions), says=f"{said} ({kind})" if kind else said, **more)
    return [
        case("", [0, 1, 2], 4, 3),
        case("positions from 20 on", [20, 21, 22, 23], 4, 2),
        case("gaps", [2, 5, 6, 30], 6, 2),
        case("backwards", [3, 1, 0], 4, 2),
        case("d_k and d_v equal", [0, 1, 2, 3, 4], 4, 4),
        case("as many tokens as d_k", [0, 1, 2, 3], 4, 2),
        case("d_k = 2", [0, 1, 2], 2, 4),
        case("one token", [5], 4, 2),
        case("large", [0, 1, 3], 4, 2, large=50, tolerance=1e-3),
    ]


def turned(M, positions):
    return rope_steps(M, positions)


def as_it_is(M, positions):
    return M


def from_zero(M, positions):
    return turned(M, np.arange(len(M)))


def other_way(M, positions):
    return turned(M, -np.asarray(positions, dtype=float))


def with_mistake(name):
    """rope with one of its own mistakes."""
    (mistake,) = (m for m in ROPE.mistakes if m.name == name)
    return lambda M, positions: rope_steps(M, positions, **mistake.steps)


def both(turn):
    return dict(q=turn, k=turn)


def rope_attention_steps(Q, K, V, positions, q=turned, k=turned, v=as_it_is,
                         product=lambda q, k: q @ k.T, scale=lambda Q, V: np.sqrt(Q.shape[1]),
                         hide=lambda S: S, softmax=softmax_steps, after=lambda Q: 1,
                         mixed=lambda K, V, turned_k: V, mix=lambda A, V: A @ V,
                         finish=lambda Z, positions: Z):
    with np.errstate(all="ignore"):
        k_turned = k(K, positions)
        S = product(q(Q, positions), k_turned) / scale(Q, V)
        values = mixed(K, v(V, positions), k_turned)
        return finish(mix(softmax(hide(S)) / after(Q), values), positions)


SAME = "Both must turn alike, each by its own position: then only the difference of positions is left."
ROPE_ATTENTION = Exercise(
    "10.2", "rope_attention", "10", right.rope_attention,
    arguments={"Q": ("n", "d_k"), "K": ("n", "d_k"), "V": ("n", "d_v"), "positions": ("n",)},
    returns={"Z": ("n", "d_v")},
    cases=rope_attention_cases, steps=rope_attention_steps,
    passed="How much one token reads of another now depends on how far apart they stand.",
    mistakes=(
        Mistake("att_none", both(as_it_is), "nothing is turned: positions play no part",
                "Without them a text is a bag of words: turn queries and keys first.", TURNED),
        Mistake("att_v_rotated", dict(v=turned), "the values are turned as well",
                "What is passed on should not depend on where it stood; only the comparison should.", TURNED),
        Mistake("att_k_from_zero", dict(k=from_zero), "keys are turned by positions counted from 0, queries "
                "by the positions given", SAME, DISTANCE),
        Mistake("att_q_from_zero", dict(q=from_zero), "queries are turned by positions counted from 0, keys "
                "by the positions given", SAME, DISTANCE),
        Mistake("queries_only", dict(k=as_it_is), "only the queries are turned", SAME, DISTANCE),
        Mistake("keys_only", dict(q=as_it_is), "only the keys are turned", SAME, DISTANCE),
        Mistake("opposite_ways", dict(k=other_way), "queries and keys are turned in opposite directions",
                f"The scores then see the sum of two positions. {SAME}", DISTANCE),
        Mistake("values_for_all", dict(q=as_it_is, k=as_it_is, v=turned), "only the values are turned",
                "It is queries and keys that are compared: they turn, the values stay as they are.", TURNED),
        Mistake("output_turned", dict(finish=turned), "the result is turned",
                "Queries and keys turn; what is passed on stays as it is.", TURNED),
        *(Mistake(f"rope_{name}", both(with_mistake(name)), f"rope goes wrong: {what}", why,
                  PAIRINGS if name == "half_pairs" else TURNED)
          for name, what, why in (
              ("half_pairs", "column i is paired with column i + d/2", f"{PAIRS}."),
              ("clockwise", "the pairs are turned the other way round, clockwise", OTHER_WAY),
              ("degrees", "the angles are taken for degrees",
               "Angles are in radians, as np.cos and np.sin take them."),
              ("sign_both", "the minus sign is missing",
               "Without it the pair is stretched, not turned: (a cos − b sin, a sin + b cos)."),
              ("exp_positive", "later pairs turn faster, not more slowly", SLOWER),
              ("same_angle", "all pairs turn by the same angle", SLOWER),
              ("double_2i", "the exponent is twice as large as it should be",
               "np.arange(0, d, 2) is 2i already; times 2 again it is 4i."),
              ("in_place_overwrite", "the second column of a pair is computed from the first one's new value",
               "Keep the old values of both until both new ones are made."),
              ("added", "sines and cosines are added", "A turn keeps the length of each pair."))),
        Mistake("rope_pos_ignored", both(with_mistake("pos_ignored")),
                "queries and keys are both turned by positions counted from 0, whatever `positions` says",
                "Rows that stand far apart must be turned far apart: it is `positions` that says how far.",
                DISTANCE),
        Mistake("turned_twice", both(lambda M, positions: turned(turned(M, positions), positions)),
                "queries and keys are turned twice",
                "Turned twice they stand at twice their positions: every distance counts double.", TURNED),
        Mistake("scaled_after", dict(scale=lambda Q, V: 1, after=lambda Q: np.sqrt(Q.shape[1])),
                "the division by √d_k comes after softmax",
                "There it only shrinks the answer; it is the scores that must be kept close together.",
                (ATTENTION, FAR)),
        Mistake("rope_base", both(lambda M, positions: rope_steps(M, positions, base=1e5)),
                "rope goes wrong: its base is 100000",
                "This exercise asks for rope's own, 10000. The language model of this notebook has 100000.",
                TURNED),
        Mistake("times_root", dict(scale=lambda Q, V: 1 / np.sqrt(Q.shape[1])),
                "the scores are multiplied by √d_k, not divided",
                "Their spread grows with d_k already; divided by √d_k it stays about 1.", (ATTENTION, FAR)),
        Mistake("no_scale", dict(scale=lambda Q, V: 1), "the scores are not divided by √d_k",
                "Their spread grows with d_k, and softmax becomes a switch.", (ATTENTION, FAR)),
        Mistake("d_not_sqrt", dict(scale=lambda Q, V: Q.shape[1]),
                "the scores are divided by d_k, without the root",
                "The spread grows like √d_k; divided by d_k the scores are too small and softmax too flat.",
                (ATTENTION, FAR)),
        Mistake("sqrt_d_v", dict(scale=lambda Q, V: np.sqrt(V.shape[1])),
                "the scores are divided by √d_v in place of √d_k",
                "A score is a sum of d_k products, so d_k sets its spread.", (ATTENTION, FAR)),
        Mistake("sqrt_n", dict(scale=lambda Q, V: np.sqrt(len(Q))),
                "the scores are divided by √n, the number of tokens",
                "A score is a sum of d_k products, so d_k sets its spread.", (ATTENTION, FAR)),
        Mistake("causal", dict(hide=lambda S: np.where(np.tri(len(S)) > 0, S, -np.inf)),
                "a causal mask is applied",
                "This exercise asks for no mask: every token reads all tokens, those after it too.",
                (ATTENTION, CAUSAL)),
        Mistake("k_q", dict(product=lambda q, k: k @ q.T), "keys ask and queries answer (K Qᵀ)",
                "Row i must hold the scores of query i.", (ATTENTION, "Every query at once")),
        *(Mistake(name, dict(softmax=slip(SLIPS[name])), SLIPS[name].what, SLIPS[name].why,
                  (ATTENTION, WEIGHTS)) for name in ("axis0", "no_max", "not_normalised")),
        Mistake("no_softmax", dict(softmax=lambda S: S), "the scores are used as weights, without softmax",
                "Scores are not shares: they can be negative and do not add up to 1.",
                (ATTENTION, NOT_PATTERN)),
        Mistake("keys_mixed", dict(mixed=lambda K, V, turned_k: K),
                "the weights mix the keys, not the values",
                "A key is for being found, a value for being passed on.", (ATTENTION, "One head, whole")),
        Mistake("weights_returned", dict(mix=lambda A, V: A),
                "the weights are returned in place of the mixed values",
                "The last step is still missing: A @ V.", (ATTENTION, "One head, whole")),
        Mistake("turned_keys_mixed", dict(mixed=lambda K, V, turned_k: turned_k),
                "the weights mix the turned keys, not the values",
                "A key is for being found, a value for being passed on.", (ATTENTION, "One head, whole")),
    ))

EXERCISES = (ROPE, ROPE_ATTENTION)

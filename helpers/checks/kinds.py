"""What wrong answers have in common, whatever the exercise; what still holds in one that nothing explains.

Each recogniser takes the inputs on which both answers are arrays and gives (what, why) or None. It must
explain every one of them, and at least one on which the answer is wrong.
"""

import math

import numpy as np

from helpers.checks.compare import agree, listed, names_of, number, parts
from helpers.checks.observe import Strange


def recognise(exercise, tried):
    """(what was done, why that matters), or ("", "")."""
    wrong = [t for t in tried if t.fault]
    kinds = {t.fault.kind for t in wrong if not (t.fault.kind == "error" and t.case.style)}
    if kinds == {"changed"}:
        return changed(exercise, wrong)
    if all(t.fault.kind == "shared" for t in wrong):
        return (
            f"The answer is a view of {names_of(exercise, wrong[0].given.shared)}, not a copy of its own.",
            "Whoever writes to the result would change the table it came from.",
        )
    if all(t.case.raises for t in wrong):
        if all(t.given.printed.strip() for t in wrong):
            return (
                "A bad input is printed about, and no error is raised.",
                "Whoever calls the function goes on with what it gives back, and may never see what was "
                "printed: raise ends the work.",
            )
        return (
            "A bad input goes through without an error.",
            "A wrong number that makes no noise is found much later, somewhere else.",
        )
    if 2 * sum(t.fault.kind == "error" for t in wrong) > len(wrong):  # what is left says too little
        return "", ""
    together = wrong_parts(exercise, tried)[:1]
    if not together:
        return "", ""
    what, why = explained(exercise, *together[0])
    if what:
        return what, why
    if all(t.fault.kind == "value" and of_32_bits(t) for t in wrong):
        return (
            "With NumPy's 32-bit integers it is wrong: somewhere they are multiplied as they come.",
            "Those end at 2,147,483,647 and begin again below zero. int(…) makes a Python integer of each, "
            "which never overflows.",
        )
    if whole_for_floats(exercise, wrong):
        return WHOLE_NUMBERS
    return "", ""


def says_nothing(exercise, tried):
    """(what, why) for an answer that is 0, nan or inf everywhere, or an input as it was; otherwise None."""
    rows = []
    for t in tried:
        if t.case.draws or t.given.error or t.given.ended or t.case.raises:
            continue
        have = parts(exercise, t.given.value)
        if not isinstance(have, list) or not all(a.size for a in have):
            return None
        rows.append((t, have))
    if len(rows) < 2 or sum(t.fault is not None for t, _ in rows) < 2:
        return None
    given = [a for _, have in rows for a in have]
    every = "the answer" if len(exercise.parts) == 1 else EVERY_PART
    for test, text, why in EVERYWHERE:
        if all(test(a) for a in given):
            if text == "0" and all(a.dtype == bool for a in given):
                text = "False"
            return f"{every[0].upper()}{every[1:]} is {text} everywhere.", why
    if len(exercise.parts) > 1:
        return None
    for i, name in enumerate(exercise.arguments):
        inputs = [np.asarray(t.case.arguments[i]) if i < len(t.case.arguments) else None for t, _ in rows]
        if all(
            a is not None and a.dtype.kind in "biuf" and a.ndim and np.array_equal(a, have[0])
            for a, (_, have) in zip(inputs, rows, strict=True)
        ):
            return f"{name} comes back as it was given.", "Nothing that is done to it reaches the answer."
    return None


EVERY_PART = "every part of the answer"
EVERYWHERE = (
    (lambda a: not a.any(), "0", "Is what was computed ever put into what is returned?"),
    (
        lambda a: a.dtype.kind == "f" and np.isnan(a).all(),
        "nan",
        "0 / 0, inf / inf and 0 · inf make nan, and whatever is computed with a nan is nan.",
    ),
    (
        lambda a: a.dtype.kind == "f" and np.isinf(a).all(),
        "inf",
        "exp of a large number and a division by 0 make inf.",
    ),
)


def changed(exercise, wrong):
    names = names_of(exercise, sorted({i for t in wrong for i in t.given.changed}))
    return (
        f"The answer is right, but the call changes {names} in place"
        + (", which integers cannot even take." if any(t.given.error for t in wrong) else "."),
        f"Whoever uses {names} afterwards works with other numbers and does not know it.",
    )


def of_32_bits(t):
    return any(isinstance(a, np.int32) for a in t.case.arguments)


WHOLE_NUMBERS = (
    "The answer holds whole numbers, where decimals belong.",
    "astype(int), round or an array of integers cuts the decimals off.",
)


def whole_for_floats(exercise, wrong):
    """Whether every array that is given back is one of integers, and none of those expected is."""
    if exercise.whole or not any(exercise.parts.values()):
        return False
    for t in wrong:
        have, want = parts(exercise, t.given.value), parts(exercise, t.expected.value)
        own = t.given.value if exercise.free else have
        if t.given.error or not isinstance(have, list) or not isinstance(own, list):
            return False
        arrays = [np.asarray(a) for a in own]
        if any(a.dtype.kind not in "iu" for a in arrays) or any(a.dtype.kind in "biu" for a in want):
            return False
    return True


def explained(exercise, name, pairs):
    """(what, why) of the first recogniser that explains all of this part of the answer, or ("", "")."""
    for recogniser in (
        nothing,
        order_of_axes,
        extra_axes,
        another_shape,
        factor,
        sign_or_shift,
        moved,
        cut,
        function_of,
        sharper,
        row_by_row,
    ):
        found = recogniser(exercise, pairs)
        if found:
            what, why = found
            it = name or "the answer"
            return what.format(it=it, It=it[0].upper() + it[1:] if " " in it else it), why
    return "", ""


def wrong_parts(exercise, tried):
    """[(name, [(t, expected, given), …]), …] for the parts of the answer that are wrong: first all of them
    together, then, as what explains one need not explain the others, each alone."""
    rows = []
    for t in tried:
        if t.given.error or t.given.ended or t.case.raises or t.case.draws:
            continue
        have = parts(exercise, t.given.value)
        if isinstance(have, list):
            rows.append(
                (
                    t,
                    *(
                        [a.astype(np.float64) for a in arrays]
                        for arrays in (parts(exercise, t.expected.value), have)
                    ),
                )
            )
    if not any(t.fault for t, _, _ in rows):
        return []
    names = list(exercise.parts)
    bad = [i for i in range(len(names))
           if any(not right(exercise, t, want[i], have[i]) for t, want, have in rows)]
    found = [(names[i] if len(names) > 1 else "", [(t, want[i], have[i]) for t, want, have in rows])
             for i in bad]
    if len(bad) > 1:
        name = f"each of {' and '.join(names[i] for i in bad)}" if len(bad) < len(names) else EVERY_PART
        found.insert(0, (name, [(t, want[i], have[i]) for t, want, have in rows for i in bad]))
    return found


def right(exercise, t, want, have):
    return want.shape == have.shape and bool(agree(exercise, t.case, want, have).all())


def close(exercise, t, want, have):
    return (
        np.shape(want) == np.shape(have)
        and np.isfinite(have).all()
        and bool(agree(exercise, t.case, np.asarray(want), np.asarray(have)).all())
    )


def explains(exercise, pairs, change):
    """Whether `change` of the right answer gives the answer on every input."""
    told = False
    for t, want, have in pairs:
        try:
            changed_want = np.asarray(change(want, t))
        except (ValueError, IndexError, ZeroDivisionError):
            return False
        if not close(exercise, t, changed_want, have):
            return False
        told |= not right(exercise, t, want, have)
    return told


def nothing(exercise, pairs):
    if explains(exercise, pairs, lambda want, t: np.zeros(want.shape)):
        return "{It} is 0 everywhere.", "Is what was computed ever put into what is returned?"
    return None


def order_of_axes(exercise, pairs):
    if explains(exercise, pairs, lambda want, t: np.swapaxes(want, -1, -2) if want.ndim > 1 else want):
        return (
            "{It} has rows and columns swapped.",
            "Rows and columns stand for different things: the next step would take one for the other.",
        )
    if explains(exercise, pairs, lambda want, t: want.T):
        return "{It} has its axes in the opposite order.", "The next step would work along the wrong axis."
    return None


def extra_axes(exercise, pairs):
    if all(
        want.size == have.size and close(exercise, t, np.squeeze(want), np.squeeze(have))
        for t, want, have in pairs
    ):
        more = any(have.ndim > want.ndim for _, want, have in pairs)
        return (
            f"The numbers are right, but {{it}} has an axis of length 1 too {'many' if more else 'few'}.",
            "The next step would broadcast it in a way nobody meant.",
        )
    return None


def another_shape(exercise, pairs):
    if all(
        want.size == have.size and close(exercise, t, want.ravel(), have.ravel()) for t, want, have in pairs
    ):
        return (
            "The numbers are right and in the right order, but {it} has another shape.",
            "The shape says which number belongs to which token.",
        )
    return None


SIZES = (("{}", lambda s: s), ("√{}", math.sqrt), ("{}²", lambda s: s * s), ("√√{}", lambda s: s**0.25))


def factor(exercise, pairs):
    """The same factor on all entries: 2, √d_k, 1/n, …"""
    factors = []
    for t, want, have in pairs:
        if want.shape != have.shape or not np.isfinite(have).all():
            return None
        biggest = np.unravel_index(np.abs(want).argmax(), want.shape) if want.size else None
        if biggest is None or want[biggest] == 0:
            continue
        ratio = float(have[biggest]) / float(want[biggest])
        if ratio == 0 or not close(exercise, t, want * ratio, have):
            return None
        factors.append((exercise.sizes(t.case), ratio))
    if not factors or all(abs(f - 1) < 1e-5 for _, f in factors):
        return None
    for number_, text in (
        (-1, "{It} has the opposite sign everywhere."),
        (2, "{It} is twice what it should be."),
        (0.5, "{It} is half of what it should be."),
    ):
        if all(math.isclose(f, number_, rel_tol=1e-4) for _, f in factors):
            return (
                text,
                "Every step after this one takes the size and the sign of these numbers at face value.",
            )
    for name in factors[0][0]:
        for text, function in SIZES:
            for way, sign in (("large", 1), ("small", -1)):
                if all(
                    name in sizes
                    and sizes[name] > 0
                    and math.isclose(f, function(sizes[name]) ** sign, rel_tol=1e-4)
                    for sizes, f in factors
                ):
                    return (
                        f"{{It}} is {text.format(name)} times too {way}.",
                        "The pattern is right, only its size is not: look at what you divide or multiply by.",
                    )
            fixed = [f / function(sizes[name]) for sizes, f in factors if sizes.get(name, 0) > 0]
            if (
                len(fixed) == len(factors) > 2
                and np.ptp(fixed) < 1e-4 * abs(fixed[0])
                and len({sizes[name] for sizes, _ in factors}) > 1
            ):
                return (
                    f"{{It}} would be right if {text.format(name)} were always {number(1 / fixed[0])}: "
                    "a fixed number stands in its place.",
                    "It works for one size only; take the size from the shapes.",
                )
    if np.ptp([f for _, f in factors]) < 1e-4 * abs(factors[0][1]):
        return (
            f"{{It}} is {number(factors[0][1])} times what it should be, on every input.",
            "The pattern is right, only its size is not.",
        )
    if all(want.size == 1 for _, want, _ in pairs):  # one number is always a factor away from another
        return None
    return (
        "{It} is right up to one factor, and that factor changes from input to input.",
        "The pattern is right, only its size is not: look at what you divide or multiply by.",
    )


def sign_or_shift(exercise, pairs):
    shifts = [
        float(have.ravel()[0]) - float(want.ravel()[0])
        for _, want, have in pairs
        if want.shape == have.shape and want.size
    ]
    if (
        shifts
        and np.ptp(shifts) < 1e-6
        and abs(shifts[0]) > 1e-6
        and explains(exercise, pairs, lambda want, t: want + shifts[0])
    ):
        direction = "too large" if shifts[0] > 0 else "too small"
        if all(not want.ndim for _, want, _ in pairs):
            return (
                f"The answer is {abs(shifts[0]):.6g} {direction} on every input.",
                "Something is added or taken away that does not depend on what is given.",
            )
        return (
            f"Every entry of {{it}} is {number(abs(shifts[0]))} {direction}.",
            "A constant that is added once goes through every step that follows.",
        )
    return None


def row_axis(w):
    """The axis that counts rows, whatever stands in front of it."""
    return max(w.ndim - 2, 0)


def without(w, place, axis):
    return np.delete(w, place, axis) if w.ndim else w


MOVES = (
    ("{It} has its rows in reverse order.", lambda w, t: np.flip(w, row_axis(w)) if w.ndim else w),
    ("{It} has its columns in reverse order.", lambda w, t: w[..., ::-1]),
    ("{It} has its first axis in reverse order.", lambda w, t: w[::-1]),
    ("{It} has its rows moved down by one.", lambda w, t: np.roll(w, 1, row_axis(w))),
    ("{It} has its rows moved up by one.", lambda w, t: np.roll(w, -1, row_axis(w))),
    ("{It} has its columns moved right by one.", lambda w, t: np.roll(w, 1, -1)),
    ("{It} has its columns moved left by one.", lambda w, t: np.roll(w, -1, -1)),
    ("{It} has its rows sorted.", lambda w, t: np.sort(w, row_axis(w))),
    ("{It} has the numbers of each row sorted.", lambda w, t: np.sort(w, -1)),
    ("The first row is missing from {it}.", lambda w, t: without(w, 0, row_axis(w))),
    ("The last row is missing from {it}.", lambda w, t: without(w, -1, row_axis(w))),
    ("The first column is missing from {it}.", lambda w, t: w[..., 1:]),
    ("The last column is missing from {it}.", lambda w, t: w[..., :-1]),
)


def moved(exercise, pairs):
    for text, move in MOVES:
        if explains(exercise, pairs, move):
            return (
                text,
                "Each row and each column stands for one thing of its own: the place is the meaning.",
            )
    permuted = False
    for t, want, have in pairs:
        if want.shape != have.shape or want.ndim < 2:
            return None
        order = [np.lexsort(np.round(a.reshape(len(a), -1).T[::-1], 6)) for a in (want, have)]
        if not close(exercise, t, want[order[0]], have[order[1]]):
            return None
        permuted |= not right(exercise, t, want, have)
    return (
        ("{It} has the right rows in another order.", "Row i must belong to token i.") if permuted else None
    )


def whole(t):
    """Whether this input is of whole numbers throughout."""
    kinds = [np.asarray(a).dtype.kind for a in t.case.arguments if isinstance(a, (np.ndarray, list))]
    return bool(kinds) and all(kind in "iu" for kind in kinds)


def cut(exercise, pairs):
    if explains(exercise, pairs, lambda w, t: np.trunc(w) if whole(t) else w):
        return (
            "Where whole numbers are given the decimals are cut off: {it} went through an array of integers.",
            "np.zeros_like and np.empty_like of integers keep integers, and so does writing into one; "
            "np.zeros(shape) makes floats.",
        )
    for text, change in (
        ("The decimals are cut off: {it} went through an array of integers.", lambda w, t: np.trunc(w)),
        ("The numbers are rounded down to whole ones, as // does.", lambda w, t: np.floor(w)),
        ("The numbers are rounded to whole ones.", lambda w, t: np.round(w)),
        ("The numbers are rounded to one decimal.", lambda w, t: np.round(w, 1)),
        ("The numbers are rounded to two decimals.", lambda w, t: np.round(w, 2)),
        ("The numbers are rounded to three decimals.", lambda w, t: np.round(w, 3)),
        ("The numbers are rounded to four decimals.", lambda w, t: np.round(w, 4)),
    ):
        if explains(exercise, pairs, change):
            return text, "Round for printing only; the next step needs all the digits."
    half = [(t, w, h) for t, w, h in pairs if w.shape == h.shape and np.isfinite(h).all()]
    if len(half) == len(pairs) and all(
        np.abs(h - w).max(initial=0) <= 2e-3 * max(np.abs(w).max(initial=0), 1e-3) for _, w, h in half
    ):
        return (
            "The numbers are right to about three digits only.",
            "Something in between is rounded, or an epsilon or float16 is in the way.",
        )
    return None


FUNCTIONS = (
    ("absolute values", np.abs),
    ("exp", np.exp),
    ("logarithms", np.log),
    ("squares", np.square),
    ("square roots", np.sqrt),
    ("reciprocals", np.reciprocal),
    ("tanh", np.tanh),
    ("1 minus the right answer", lambda w: 1 - w),
    ("only the positive part", lambda w: np.maximum(w, 0)),
)


def function_of(exercise, pairs):
    for name, function in FUNCTIONS:
        if explains(exercise, pairs, lambda want, t, function=function: function(want)):
            return (
                f"{{It}} holds {name} in place of the right numbers."
                if name[0] != "1"
                else f"{{It}} is {name}.",
                "One step too many, or one too few.",
            )
    return None


ROWS = (
    ("each row of {it} is divided by its sum", lambda w: w / w.sum(-1, keepdims=True)),
    ("each row of {it} is divided by its length", lambda w: w / np.linalg.norm(w, axis=-1, keepdims=True)),
    ("each column of {it} is divided by its sum", lambda w: w / w.sum(0, keepdims=True)),
    ("each row of {it} is brought to mean 0", lambda w: w - w.mean(-1, keepdims=True)),
    ("each row of {it} has its maximum subtracted", lambda w: w - w.max(-1, keepdims=True)),
    ("exp is taken of {it}, and each row divided by its sum", lambda w: softmax_of(w)),
    (
        "exp is taken of {it}, and each column divided by its sum",
        lambda w: softmax_of(w.T).T if w.ndim == 2 else w,
    ),
    ("all numbers of the answer are added up", lambda w: w.sum()),
    ("all numbers of the answer are averaged", lambda w: w.mean()),
    ("the answer is summed over the rows", lambda w: w.sum(0)),
    ("the answer is summed over each row", lambda w: w.sum(-1)),
    ("the answer is averaged over the rows", lambda w: w.mean(0)),
    ("the answer is averaged over each row", lambda w: w.mean(-1)),
)


def softmax_of(w):
    e = np.exp(w - w.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def row_by_row(exercise, pairs):
    vectors = all(want.ndim == 1 for _, want, _ in pairs)  # which have no rows
    for text, function in ROWS:
        if explains(
            exercise, pairs, lambda want, t, function=function: function(want) if want.ndim else want
        ):
            text = text.replace("each row of {it}", "{it}").replace("each row", "it") if vectors else text
            return f"This is what comes out when {text}.", "It is one step more than was asked for."
    rows = [(t, w, h) for t, w, h in pairs if w.shape == h.shape and w.ndim >= 2 and np.isfinite(h).all()]
    if len(rows) < len(pairs):
        return None
    right_ones = [agree(exercise, t.case, w, h).all(-1) for t, w, h in rows if t.fault]
    if any(2 * ones.sum() >= ones.size for ones in right_ones):  # it is only some rows that are wrong
        return None
    if all(proportional(exercise, t, w, h) for t, w, h in rows):
        return (
            "Each row of {it} is right up to a factor of its own.",
            "What a row is divided by is not what it should be: look at the sum, and at its axis.",
        )
    return None


def sharper(exercise, pairs):
    """Shares whose logarithms are all the same number of times too large: another scale before softmax."""
    powers = []
    for _, want, have in pairs:
        if want.shape != have.shape or not want.ndim or not (have >= 0).all() or not (want >= 0).all():
            return None
        if not (np.allclose(want.sum(-1), 1) and np.allclose(have.sum(-1), 1)):
            return None
        if ((want > 0) != (have > 0)).any():
            return None
        logs = [np.where(a > 0, np.log(np.where(a > 0, a, 1)), np.nan) for a in (want, have)]
        steep, given = (a - np.nanmax(a, -1, keepdims=True) for a in logs)
        powers += list((given / steep)[steep < -1e-3])
    if not powers or np.ptp(powers) > 1e-4 * abs(np.mean(powers)) or abs(np.mean(powers) - 1) < 1e-4:
        return None
    power = float(np.mean(powers))
    return (
        f"{{It}} is what comes out when the scores are multiplied by {number(power)} before softmax.",
        f"The weights are {'sharper' if power > 1 else 'flatter'} than they should be: something scales the "
        "scores, or the shares are raised to a power.",
    )


def proportional(exercise, t, want, have):
    if (want.any(-1) & ~have.any(-1)).any():  # a factor of 0 is no factor
        return False
    ratio = (want * have).sum(-1, keepdims=True) / (want * want).sum(-1, keepdims=True)
    return close(exercise, t, want * np.nan_to_num(ratio), have)


def what_holds(exercise, tried, shown):
    """Sentences that are true of the answer, to narrow the fault down."""
    found = []
    fine = [t.case.kind for t in tried if not t.fault and t.case.kind and not t.case.raises]
    bad = [t.case.kind for t in tried if t.fault and t.case.kind]
    whole = not any(t.given.ended for t in tried)  # what comes after a call that ended everything: unknown
    if fine and whole and len(bad) <= len(tried) / 2:
        found.append(f"It is right except for: {'; '.join(dict.fromkeys(bad))}.")
    elif fine:
        found.append(f"It is right for: {'; '.join(dict.fromkeys(fine))}.")
    elsewhere = sorted({i for t in tried for i in t.given.changed}) if not shown.given.changed else ()
    if elsewhere:
        found.append(f"On other inputs the call changed {names_of(exercise, elsewhere)} in place.")
    have = parts(exercise, shown.given.value) if not shown.given.error and not shown.given.ended else None
    if not isinstance(have, list) or isinstance(shown.given.value, Strange) or shown.case.raises:
        return found
    if shown.fault.kind == "things":
        return found
    want = parts(exercise, shown.expected.value)
    if len(want) > 1:
        good = [
            n for n, w, h in zip(exercise.parts, want, have, strict=True) if right(exercise, shown, w, h)
        ]
        if good:
            found.append(f"{' and '.join(good)} {'is' if len(good) == 1 else 'are'} right.")
    for name, w, h in zip(exercise.parts, want, have, strict=True):
        if not right(exercise, shown, w, h):  # the first that is wrong, as in the facts above
            if w.shape == h.shape:
                found += true_of(exercise, shown, w, h, name if len(want) > 1 else "")
            break
    found += filter(None, (explained(exercise, *part)[0] for part in wrong_parts(exercise, tried)[1:]))
    return list(dict.fromkeys(found))


def true_of_draws(exercise, t, want, have):
    """What holds in the shares of many draws."""
    if not have[want == 0].any() and (want == 0).any():
        yield "No id comes that should not."
    missing = np.flatnonzero((have == 0) & ~agree(exercise, t.case, want, have))
    if missing.size:
        yield f"Never drawn, though possible: {', '.join(map(str, missing))}."
    if want.argmax() == have.argmax():
        yield "The id that comes most often is the right one."


def true_of(exercise, t, want, have, name):
    """What holds in one array of the right shape."""
    zero = "False" if have.dtype == bool else "0"
    have, want = have.astype(np.float64), want.astype(np.float64)
    if not np.isfinite(have).all():
        bad = int((~np.isfinite(have)).sum())
        yield f"{bad} of {have.size} numbers are nan or inf."
        return
    if t.case.draws:
        yield from true_of_draws(exercise, t, want, have)
        return
    if not want.ndim:
        if want and have:
            yield f"Here it is {number(float(have / want))} times the right number."
        return
    yield f"The shape{f' of {name}' if name else ''} is right and all numbers are finite."
    if have.size and not have.any():
        yield f"Here {name or 'the answer'} is {zero} throughout."
        return
    for text, test in exercise.holds:
        if test(have, *t.case.arguments):
            yield text
    ok = agree(exercise, t.case, want, have)
    if ok.any() and not ok.all() and not have[~ok].any():
        yield "All numbers that are wrong are 0: were they ever filled?"
    if ok.any():
        if want.ndim == 2 and 1 < want.shape[0]:
            if ok.all(-1).any():
                yield capital(right_and_not("row", ok.all(-1)))
            elif ok.all(0).any():
                yield capital(right_and_not("column", ok.all(0)))
            else:
                yield f"{int(ok.sum())} of {ok.size} numbers are right."
        elif want.ndim == 3 and 1 < want.shape[0] and ok.all((1, 2)).any():
            yield f"Along the first axis {right_and_not('place', ok.all((1, 2)))}"
        else:
            yield f"{int(ok.sum())} of {ok.size} numbers are right."
    elif same_order(want, have):
        yield f"In every row the order of the numbers is right{how_far_apart(want, have)}."


def capital(text):
    return text[0].upper() + text[1:]


def right_and_not(word, ok):
    """"row 0 is right, rows 1 to 5 are not."; how many are right where the lists would be long."""
    lists = [in_a_list(np.flatnonzero(these).tolist()) for these in (ok, ~ok)]
    if not all(lists):
        return f"{ok.sum()} of {ok.size} {word}s are right."
    (good, goods), (bad, bads) = lists
    one, other = (f"{word}s" if many else word for many in (goods, bads))
    return f"{one} {good} {'are' if goods else 'is'} right, {other} {bad} {'are' if bads else 'is'} not."


def in_a_list(places):
    """("0, 2 and 4 to 7", whether it is more than one), or None where that would be long or there is none."""
    runs = []
    for i in places:
        if runs and i == runs[-1][-1] + 1:
            runs[-1].append(i)
        else:
            runs.append([i])
    texts = [
        text
        for run in runs
        for text in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run))
    ]
    return (listed(texts), len(places) > 1) if 0 < len(texts) < 5 else None


def same_order(want, have):
    """Whether the numbers of each row are ordered as they should be; rows of equal numbers have no order."""
    if want.shape[-1] < 2:
        return False
    one, other = (
        np.sign(np.where(np.abs(gap) > 1e-9 * np.abs(a).max(), gap, 0))
        for a, gap in ((a, a[..., :, None] - a[..., None, :]) for a in (want, have))
    )
    return bool((one == other).all() and other.any((-2, -1)).all())


def how_far_apart(want, have):
    """"; they are too close together", where that is so in every row."""
    one, other = (np.ptp(a, axis=-1) for a in (want, have))
    if (other < 0.999 * one).all():
        return "; they are too close together"
    return "; they are too far apart" if (other > 1.001 * one).all() else ""

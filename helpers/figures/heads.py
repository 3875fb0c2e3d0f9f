"""Pictures of one head at work, behind the explorers: `similarity`, `value_reading`, `step`.

Arrays in, a Picture out; what is shown is computed elsewhere. A word that comes twice is told apart with a
small number, here or before. Lists have a line for every word, compact ones for more than a dozen; of a
larger matrix a `window` is shown.
"""

import numpy as np

from helpers import arrays as given
from helpers.figures.arrays import cell_size, draw_cells, label_room, write_columns
from helpers.figures.charts import level_bars
from helpers.figures.picture import Picture
from helpers.figures.style import CELL, COMPACT, LABEL, PAD, ROLES, ROW, SHOWN, SMALL, TEXT, WIDTH, shade
from helpers.figures.svg import Sheet
from helpers.figures.words import number, numbered, rounded, shorten, table, width

STEPS = ("score", "scale", "mask", "softmax", "sum")


def similarity(tokens, query, dots, scaled, weights, d_k):
    """One query against every key: dot product, scaled score and weight, a bar and a number each.

    tokens : n words, query : position, dots, scaled, weights : (n,).  Keys after the query are shown as
    masked.
    """
    words, query = asked(tokens, query)
    dots, scaled, weights = (given.shaped(name, x, ("n",), (len(words),)) for name, x in
                             (("dots", dots), ("scaled", scaled), ("weights", weights)))
    d_k, best = given.count("d_k", d_k, least=1), largest(weights)
    readable = [j <= query for j in range(len(words))]
    title = f"“{words[query]}” gives its largest weight to “{words[best]}”: {number(weights[best])}"
    told = [number(w) if ok else "masked" for w, ok in zip(weights, readable, strict=True)]
    sheet = Sheet(title, f"{words[query]} against every key: dot product, scaled score, weight.", WIDTH)
    side, gap = label_room(words) + 40, 24
    room = (WIDTH - 2 * PAD - side - 3 * gap) // 3          # of one column of bars
    starts = [sheet.left + side + gap + c * (room + gap) for c in range(3)]
    heads = [("q · k", "dot product", "ink"), (f"÷ √{d_k}", "scaled score", "ink"),
             ("softmax", "weight α", "A")]
    sheet.text(sheet.left, sheet.top + TEXT, "key", TEXT, "K", weight="bold")
    for x, (name, what, colour) in zip(starts, heads, strict=True):
        sheet.text(x, sheet.top + TEXT, name, TEXT, colour, weight="bold")
        sheet.text(x + width(name, TEXT) + 12, sheet.top + TEXT, what, SMALL, "soft")
    top, row = sheet.top + TEXT + 10, line_height(words)
    sheet.rect(sheet.left - 6, top + query * row, WIDTH - 2 * PAD + 12, row, "panel", 1, "Q", 1.5, radius=4)
    for j, word in enumerate(words):
        sheet.text(sheet.left, top + (j + 0.5) * row + 5, shorten(word, LABEL, TEXT),
                   colour="ink" if readable[j] else "soft", weight="bold" if j == best else None)
    sheet.text(sheet.left + side, top + (query + 0.5) * row + 5, "query", SMALL, "Q", "end", "bold")
    inks = ["ink" if ok else "soft" for ok in readable]
    for x, values in zip(starts, (dots, scaled), strict=False):
        fills = ["positive" if v >= 0 else "negative" for v in values]
        fills = [fill if ok else "line" for fill, ok in zip(fills, readable, strict=True)]
        level_bars(sheet, x, top, room, values, fills=fills, inks=inks, row=row)
    level_bars(sheet, starts[2], top, room, weights, fills=["A"] * len(words), inks=inks, words=told, row=row)
    sheet.top = top + len(words) * row + 4
    masked = "" if query == len(words) - 1 else " Keys after the query are masked."
    sheet.note(f"The weights add up to {number(sum(weights))}.{masked}")
    body = [[word + (" (query)" if j == query else ""), number(dots[j]), number(scaled[j]), told[j]]
            for j, word in enumerate(words)]
    text = table(body, ["key", "q · k", f"÷ √{d_k}", "weight"])
    return Picture(title, f"{title}\n{text}", sheet.finish())


def value_reading(tokens, query, weights, parts, z):
    """What one query takes away: each word's value times its weight, and their sum.

    tokens : n words, query : position, weights : (n,), parts : (n, d_v) with rows α_j v_j, z : (d_v,) their
    sum.
    """
    words, query = asked(tokens, query)
    weights = given.shaped("weights", weights, ("n",), (len(words),))
    parts = given.shaped("parts", parts, ("n", "d_v"), (len(words), None))
    z, best = given.shaped("z", z, ("d_v",), (parts.shape[1],)), largest(weights)
    most = number(weights[best])
    title = f"“{words[query]}” takes {most} of the value of “{words[best]}”, the largest share"
    told = [number(w) if j <= query else "masked" for j, w in enumerate(weights)]
    side, alpha = label_room([*words, "sum = z"]) + 44, 62
    d_v = len(z)
    all_rows = np.array([*parts, z], dtype=float)
    cell, readable = cell_size([all_rows], 2, WIDTH - 2 * PAD - side - alpha)
    sheet = Sheet(title, "Each word's value times its weight, a row a word; the last row is their sum, z.",
                  max(side + alpha + cell * d_v + 2 * PAD, 560))
    x = sheet.left + side + alpha
    sheet.text(x - alpha, sheet.top + TEXT, "weight α", SMALL, "A", weight="bold")
    sheet.text(x, sheet.top + TEXT, f"α × value: {d_v} numbers a word", SMALL, "V", weight="bold")
    top = sheet.top = sheet.top + TEXT + 7
    row = line_height(words)
    fullest = max(abs(rounded(v)) for v in all_rows.flat) or 1
    for j, (word, weight) in enumerate(zip(words, weights, strict=True)):
        y, middle, masked = top + j * row, top + (j + 0.5) * row + 4, j > query
        ink = "soft" if masked else "ink"
        sheet.text(x - alpha - 8, middle, shorten(word, LABEL, TEXT), TEXT, ink, "end",
                   "bold" if j == best else None)
        sheet.rect(x - alpha, y, alpha - 8, row, "A", shade(rounded(weight), 1), "line", 0.5)
        sheet.text(x - alpha / 2 - 4, middle, told[j], CELL, ink, "middle")
    sheet.text(sheet.left, top + (query + 0.5) * row + 4, "query", SMALL, "Q", weight="bold")
    draw_cells(sheet, x, all_rows[:-1], cell, "V", 2, readable, largest=fullest, high=row)
    sheet.rect(sheet.left - 6, top + query * row, x - sheet.left + d_v * cell + 6, row, stroke="Q", thick=1.5)
    y = sheet.top = sheet.top + 8
    sheet.text(x - alpha - 8, y + 17, "sum = z", TEXT, "ink", "end", "bold")
    sheet.text(x - alpha / 2 - 4, y + 17, number(sum(weights)), CELL, "ink", "middle", "bold")
    draw_cells(sheet, x, all_rows[-1:], cell, "Z", 2, readable, weight="bold", largest=fullest)
    draw_columns(sheet, x, z, cell, fullest)
    sheet.text(x - alpha - 8, sheet.top - 36, "z as bars", SMALL, "soft", "end")
    sheet.note("Every column adds up to z; the numbers shown are rounded to two digits.")
    body = [[word + (" (query)" if j == query else ""), told[j], *map(number, parts[j])]
            for j, word in enumerate(words)]
    text = table([*body, ["sum = z", number(sum(weights)), *map(number, z)]], ["word", "weight", *range(d_v)])
    return Picture(title, f"{title}\n{text}", sheet.finish())


def step(which, tokens, query, M, title, formula, columns=None, sums=None, role="S", note=""):
    """One step of the way from scores to Z: where we are, the formula with its shapes, the array's numbers.

    which : 0 … 4, tokens : n words, query : the row to outline, M : (n, c), columns : c words or None,
    sums : (n,) row sums or None.
    """
    which, (words, query) = given.position("which", which, len(STEPS)), asked(tokens, query)
    M = given.shaped("M", M, ("n", "c"), (len(words), None), holds="finite numbers or -inf")
    columns = range(M.shape[1]) if columns is None else columns
    columns = numbered(given.words("columns", columns, M.shape[1]))
    sums = sums if sums is None else given.shaped("sums", sums, ("n",), (len(words),))
    formula, note = given.text("formula", formula), given.text("note", note)
    role = given.one_of("role", role, ROLES)
    side, extra = label_room(words), 74 if sums is not None else 0
    cell, readable = cell_size([M], 2, WIDTH - 2 * PAD - side - extra, columns)
    sheet = Sheet(title, f"Step {which + 1} of {len(STEPS)}, {STEPS[which]}. {formula}.",
                  max(side + extra + cell * M.shape[1] + 2 * PAD, 600))
    draw_steps(sheet, STEPS, which)
    sheet.text(sheet.left, sheet.top + TEXT, formula, TEXT)
    sheet.top += TEXT + 14
    x = sheet.left + side
    after = x + cell * M.shape[1] + 38
    if sums is not None:
        sheet.text(after, sheet.top + SMALL, "row sum", SMALL, "soft", "middle")
    write_columns(sheet, x, columns, cell)
    top = sheet.top
    draw_cells(sheet, x, M, cell, role, 2, readable, words, [(query, None)], outline="Q")
    if sums is not None:
        sheet.texts([(after, top + i * ROW + 17, number(total)) for i, total in enumerate(sums)], CELL, "A",
                    weight="bold")
    sheet.top += 4
    sheet.note(" ".join(filter(None, [f"Outlined: the row of the query, “{words[query]}”.", note])))
    body = [[word + (" (query)" if i == query else ""), *map(number, M[i])]
            + ([number(sums[i])] if sums is not None else []) for i, word in enumerate(words)]
    text = [title, formula, table(body, ["", *columns, *(["row sum"] if sums is not None else [])]), note]
    return Picture(title, "\n".join(filter(None, text)), sheet.finish())


def asked(tokens, query):
    """The words, told apart, and the position of the query; TypeError or ValueError when they do not fit."""
    words = numbered(given.words("tokens", tokens))
    return words, given.position("query", query, len(words))


def draw_steps(sheet, names, which):
    """The steps in a line with arrows between them, the present one filled."""
    x = sheet.left
    for s, name in enumerate(names):
        label, here = f"{s + 1} {name}", s == which
        box = width(label, TEXT) + 22
        fill, edge, ink = ("ink", "ink", "surface") if here else ("panel", "line", "soft")
        sheet.rect(x, sheet.top, box, 28, fill, stroke=edge, radius=14)
        sheet.text(x + box / 2, sheet.top + 19, label, TEXT, ink, "middle", "bold" if here else None)
        if s < len(names) - 1:
            sheet.arrow(x + box + 3, sheet.top + 14, x + box + 21)
        x += box + 24
    sheet.top += 40


def draw_columns(sheet, x, values, cell, fullest):
    """Upright bars under a row of cells, up for positive, down for negative."""
    tall = 32
    base = sheet.top + 8 + tall
    for c, v in enumerate(map(rounded, values)):
        high = round(abs(v) / fullest * tall)
        if high:
            sheet.rect(x + c * cell + cell / 5, base - high if v >= 0 else base, cell * 0.6, high,
                       "positive" if v >= 0 else "negative")
    sheet.line(x, base, x + cell * len(values), base, "soft")
    sheet.top = base + tall


def line_height(words):
    """Of a list with a line for each word."""
    return ROW if len(words) <= SHOWN else COMPACT


def window(n, query):
    """Which of n tokens a matrix shows: all, or of more than a dozen those up to the query, as (first, end).

    Where some come before them, a column that sums these up takes the place of one.
    """
    return (0, min(n, SHOWN)) if query < SHOWN else (query - SHOWN + 2, query + 1)


def weights_in(A, first, end):
    """Rows and columns `first` to `end` of A (n, n); before them, where some are left out, their sum."""
    shown = A[first:end, first:end]
    return np.hstack([A[first:end, :first].sum(axis=1, keepdims=True), shown]) if first else shown


def columns_in(names, first, end):
    """Labels for the columns of `weights_in`."""
    return [*([f"0–{first - 1}"] if first else []), *names[first:end]]


def windowed(n, first, end, summed=False):
    """What to say when a matrix does not show all of n tokens, but perhaps the sum of those before."""
    if (first, end) == (0, n):
        return ""
    rest = f"; column 0–{first - 1} adds up those before" if summed and first else ""
    return f"Tokens {first} to {end - 1} of 0 to {n - 1} are shown{rest}."


def largest(weights):
    """Position of the largest weight; the first of several that look the same."""
    return max(range(len(weights)), key=lambda j: rounded(weights[j]))

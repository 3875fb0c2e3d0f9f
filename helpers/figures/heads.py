"""Pictures of one head at work, behind the explorers: `similarity`, `value_reading`, `step`.

Arrays in, a Picture out; what is shown is computed elsewhere. `tokens` are the words shown, at most a dozen.
"""

from helpers.figures.arrays import ROW, draw
from helpers.figures.picture import Picture
from helpers.figures.style import SMALL, TEXT, WIDTH, shade
from helpers.figures.svg import Sheet
from helpers.figures.words import number, numbered, rounded, shorten, table, width

STEPS = ("score", "scale", "mask", "softmax", "sum")


def similarity(tokens, query, dots, scaled, weights, d_k, note=""):
    """One query against every key: dot product, scaled score and weight, a bar and a number each.

    tokens : n words, query : position, dots, scaled, weights : (n,).  Keys after the query are marked as masked.
    """
    words = numbered(tokens)
    best = max(range(len(words)), key=lambda j: rounded(weights[j]))
    title = f"“{words[query]}” gives its largest weight to “{words[best]}”: {number(weights[best])}"
    rows = [[word + (" (query)" if j == query else ""), number(dots[j]), number(scaled[j]),
             number(weights[j]) if j <= query else "0 (masked)"] for j, word in enumerate(words)]
    header = ["key", "q · k", "scaled", "weight"]
    sheet = Sheet(title, table(rows, header), WIDTH)
    side, gap = max(width(shorten(w, 110, TEXT), TEXT) for w in words) + 20, 22
    room = (WIDTH - 2 * sheet.left - side - 3 * gap) / 3           # of one column of bars
    heads = [("q · k", "dot product"), (f"÷ √{d_k}", "scaled score"), ("softmax", "weight")]
    for c, (name, what) in enumerate(heads):
        x = sheet.left + side + gap + c * (room + gap)
        sheet.text(x, sheet.top + TEXT, name, TEXT, "A" if c == 2 else "ink", weight="bold")
        sheet.text(x + width(name, TEXT) + 14, sheet.top + TEXT, what, SMALL, "soft")
    sheet.text(sheet.left, sheet.top + TEXT, "keys", TEXT, "K", weight="bold")
    sheet.top += TEXT + 10
    top = sheet.top
    for j, word in enumerate(words):
        y = top + j * ROW
        if j == query:
            sheet.rect(sheet.left - 6, y, WIDTH - 2 * sheet.left + 12, ROW, "panel", radius=4)
        ink = "ink" if j <= query else "soft"
        sheet.text(sheet.left, y + 18, shorten(word, 110, TEXT), TEXT, ink, weight="bold" if j == best else None)
    for c, values in enumerate((dots, scaled, weights)):
        x = sheet.left + side + gap + c * (room + gap)
        signed_bars(sheet, x, top, room, values, query, weight=c == 2)
    sheet.top = top + len(words) * ROW + 6
    sheet.text(sheet.left, sheet.top + TEXT, "query", SMALL, "Q", weight="bold")
    sheet.text(sheet.left + 42, sheet.top + TEXT, words[query], TEXT, "Q", weight="bold")
    if not note:
        sheet.text(WIDTH - sheet.left, sheet.top + TEXT, f"weights add up to {number(sum(weights))}", SMALL, "A", "end")
    sheet.top += TEXT + 8
    if note:
        sheet.note(note)
    return Picture(title, "\n".join(filter(None, [title, table(rows, header), note])), sheet.finish())


def signed_bars(sheet, x, y, room, values, query, weight):
    """A column of level bars from a common zero, each with its number."""
    shown = [rounded(v) for v in values]
    largest = max(map(abs, shown)) or 1
    label = max(width(number(v), TEXT) for v in shown) + 8
    low = label if not weight else 0
    zero = x + (low + (room - low - label) / 2 if min(shown) < 0 else 0)
    span = room - label - (zero - x)
    for j, v in enumerate(shown):
        masked = j > query
        length = round(abs(v) / largest * span, 1)
        fill = "line" if masked else "A" if weight else "positive" if v >= 0 else "negative"
        sheet.rect(zero if v >= 0 else zero - length, y + j * ROW + 5, length, ROW - 10, fill, radius=2)
        words = "masked" if masked and weight else number(v)
        ink = "soft" if masked else "ink"
        sheet.text(zero + length + 6 if v >= 0 else zero - length - 6, y + j * ROW + 18, words,
                   SMALL if masked and weight else TEXT, ink, "start" if v >= 0 else "end")
    if min(shown) < 0:
        sheet.line(zero, y, zero, y + len(shown) * ROW, "soft")


def value_reading(tokens, query, weights, parts, z, earlier=None):
    """What one query takes away: each word's value times its weight, and their sum.

    tokens : n words, query : position, weights : (n,), parts : (n, d_v) with rows α_j v_j, z : (d_v,).
    earlier : (count, weight, part (d_v,)) of words that are not shown one by one, or None.
    """
    words = numbered(tokens)
    best = max(range(len(words)), key=lambda j: rounded(weights[j]))
    title = f"“{words[query]}” takes away mostly the value of “{words[best]}”, {number(weights[best])} of it"
    names, shares, rows = list(words), list(weights), [list(p) for p in parts]
    if earlier:
        names, shares, rows = [f"{earlier[0]} earlier", *names], [earlier[1], *shares], [list(earlier[2]), *rows]
    dims = [str(c) for c in range(len(z))]
    lines = [[name, number(share), *map(number, row)] for name, share, row in zip(names, shares, rows, strict=True)]
    text = table([*lines, ["sum = z", number(sum(shares)), *map(number, z)]], ["word", "weight", *dims])
    side = max(width(shorten(n, 110, TEXT), TEXT) for n in [*names, "sum = z"]) + 14
    cell = min(max(width(number(v), 12) for row in [*rows, z] for v in row) + 8,
               (WIDTH - 2 * 14 - side - 70) / len(z))
    cell = max(cell, 36)
    sheet = Sheet(title, text, max(side + 70 + cell * len(z) + 28, 480))
    left = sheet.left + side
    sheet.text(left + 28, sheet.top + TEXT, "weight α", SMALL, "A", "middle", "bold")
    sheet.text(left + 70, sheet.top + TEXT, f"α × value, in each of its {len(z)} numbers", SMALL, "V", weight="bold")
    sheet.top += TEXT + 6
    top = sheet.top
    largest = max(abs(rounded(v)) for row in [*rows, z] for v in row) or 1
    hidden = len(names) - len(words)
    for j, (name, share) in enumerate(zip(names, shares, strict=True)):
        masked = j - hidden > query
        ink = "soft" if masked else "ink"
        sheet.text(left - 10, top + j * ROW + 18, shorten(name, 110, TEXT), TEXT, ink, "end",
                   "bold" if j - hidden in (best, query) else None)
        sheet.rect(left, top + j * ROW, 56, ROW, "A", shade(rounded(share), 1), "line", 0.5)
        sheet.text(left + 28, top + j * ROW + 17, "masked" if masked else number(share), SMALL if masked else 12, ink, "middle")
    cells(sheet, left + 70, top, rows, cell, largest)
    y = top + len(rows) * ROW + 8
    sheet.text(left - 10, y + 18, "sum = z", TEXT, "ink", "end", "bold")
    sheet.text(left + 28, y + 17, number(sum(shares)), 12, "ink", "middle", "bold")
    cells(sheet, left + 70, y, [z], cell, largest, weight="bold")
    sheet.rect(left + 70, top, cell * len(z), len(rows) * ROW, stroke="V", thick=1.5)
    sheet.rect(left + 70, y, cell * len(z), ROW, stroke="ink", thick=2)
    base, tall = y + ROW + 44, 34
    for c, v in enumerate(rounded(v) for v in z):
        high = round(abs(v) / largest * tall, 1)
        sheet.rect(left + 70 + c * cell + 6, base - high if v >= 0 else base, cell - 12, high,
                   "positive" if v >= 0 else "negative")
    sheet.line(left + 70, base, left + 70 + cell * len(z), base, "soft")
    sheet.text(left - 10, base + 4, "z as bars", SMALL, "soft", "end")
    sheet.top = base + tall + 6
    sheet.note("Each column adds up, in full precision; the numbers shown are rounded.")
    return Picture(title, f"{title}\n{text}", sheet.finish())


def cells(sheet, x, y, rows, cell, largest, weight=None):
    """Signed numbers in shaded cells."""
    for i, row in enumerate(rows):
        for c, v in enumerate(map(rounded, row)):
            sheet.rect(x + c * cell, y + i * ROW, cell, ROW, "positive" if v >= 0 else "negative",
                       shade(v, largest), "line", 0.5)
            sheet.text(x + (c + 0.5) * cell, y + i * ROW + 17, number(v), 12, "soft" if v == 0 else "ink", "middle", weight)


def step(number_of_step, tokens, query, M, title, formula, sums=None, columns=None, role="S", note=""):
    """One step of the way from scores to Z: where we are, the formula with its shapes, the array with its numbers.

    number_of_step : 0 … 4, tokens : n words, query : row to outline, M : (n, c), sums : (n,) row sums or None.
    """
    words = numbered(tokens)
    columns = numbered(columns) if columns is not None else [str(c) for c in range(M.shape[1])]
    body = [[w + (" (query)" if i == query else ""), *map(number, M[i]), *([number(sums[i])] if sums is not None else [])]
            for i, w in enumerate(words)]
    header = ["", *columns, *(["row sum"] if sums is not None else [])]
    text = "\n".join(filter(None, [title, formula, table(body, header), note]))
    side = max(width(shorten(w, 110, TEXT), TEXT) for w in words) + 12
    extra = 74 if sums is not None else 0
    cell = max(34, min(max([width(number(v), 12) + 8 for v in M.flat] + [min(width(c, SMALL), 70) + 6 for c in columns]),
                       (WIDTH - 28 - side - extra) / M.shape[1]))
    sheet = Sheet(title, f"{formula}\n{table(body, header)}", max(side + extra + cell * M.shape[1] + 28, 620))
    x = sheet.left
    for s, name in enumerate(STEPS):
        box = width(name, TEXT) + 40
        here = s == number_of_step
        sheet.rect(x, sheet.top, box, 28, "ink" if here else "panel", stroke="ink" if here else "line", radius=14)
        sheet.text(x + box / 2, sheet.top + 19, f"{s + 1} {name}", TEXT, "surface" if here else "soft", "middle",
                   "bold" if here else None)
        if s < len(STEPS) - 1:
            sheet.arrow(x + box + 3, sheet.top + 14, x + box + 21)
        x += box + 24
    sheet.top += 40
    sheet.text(sheet.left, sheet.top + TEXT, formula, TEXT)
    sheet.top += TEXT + 14
    top = sheet.top
    if sums is not None:
        sheet.text(sheet.left + side + cell * M.shape[1] + 37, top + SMALL, "row sum", SMALL, "soft", "middle")
    draw(sheet, sheet.left + side, M, cell, role, 2, True, words, columns, [(query, None)])
    if sums is not None:
        for i, total in enumerate(sums):
            y = sheet.top - (len(words) - i) * ROW
            sheet.text(sheet.left + side + cell * M.shape[1] + 37, y + 17, number(total), 12, "A", "middle", "bold")
    sheet.top += 4
    sheet.note(" ".join(filter(None, [f"Outlined: the row of the query “{words[query]}”.", note])))
    return Picture(title, text, sheet.finish())

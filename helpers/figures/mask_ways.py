"""Four things to do with a causal mask, side by side, behind an explorer: `mask_ways`.

Arrays in, a Picture out.
"""

import numpy as np

from helpers import arrays as given
from helpers.figures.arrays import cell_size, draw_cells, draw_shades, label_room, write_columns
from helpers.figures.heads import asked
from helpers.figures.picture import Picture
from helpers.figures.style import CELL, PAD, SHOWN, SMALL, TEXT, WIDTH
from helpers.figures.svg import Sheet, px
from helpers.figures.words import number, shorten, table

GAP, SUMS, LINE = 14, 34, 16             # px: between patterns, their row sums, a row
LEFT_OUT = SHOWN - 2                     # words shown where some are left out; two columns add up the others


def mask_ways(tokens, query, ways, chosen, title, note=""):
    """Patterns side by side with their row sums, and the row of one query in each, with numbers.

    tokens : n words, query : position, ways : {name: A (n, n)}, one of them chosen. A word may read itself
    and those before it. Of more than a dozen words those around the query are shown.  NaN is shown as it is.
    """
    words, query = asked(tokens, query)
    ways = {name: given.shaped(f"ways {name!r}", A, ("n", "n"), (len(words),) * 2, holds=None)
            for name, A in given.named("ways", ways, "patterns").items()}
    chosen, note = given.one_of("chosen", chosen, ways), given.text("note", note)
    first, end = around(len(words), query)
    columns = [*([f"0–{first - 1}"] if first else []), *words[first:end],
               *([f"{end}–{len(words) - 1}"] if end < len(words) else [])]
    rows, at = words[first:end], query - first
    shown = {name: part(A, first, end) for name, A in ways.items()}
    sums = {name: A.sum(axis=1)[first:end] for name, A in ways.items()}
    sheet = Sheet(title, f"{len(ways)} heat maps side by side with the sum of each row. Below, the row of "
                         "one query in each way, with its numbers.", WIDTH)
    side = label_room(rows)
    wide = (WIDTH - 2 * PAD - side - (len(ways) - 1) * GAP) / len(ways) - SUMS
    top, cell = sheet.top, wide / len(columns)
    visible = [i + 1 + (first > 0) for i in range(len(rows))]          # columns that each row may read
    y = top + TEXT + 24
    sheet.texts([(sheet.left + side - 8, y + i * LINE + 12, shorten(word, side, SMALL))
                 for i, word in enumerate(rows)], SMALL, "ink", "end")
    for c, (name, A) in enumerate(shown.items()):
        x, here = sheet.left + side + c * (wide + SUMS + GAP), name == chosen
        sheet.text(x, top + TEXT, name, TEXT, "ink", weight="bold" if here else None)
        sheet.text(x + wide + SUMS, top + TEXT + 18, "row sum", SMALL, "soft", "end")
        draw_shades(sheet, x, y, A, cell, LINE, 1, "A")
        sheet.rect(x, y, wide, LINE * len(rows), stroke="ink" if here else "line", thick=2.5 if here else 1)
        stairs = "".join(f"H{px(x + k * cell)}v{LINE}" for k in visible)
        sheet.path(f"M{px(x + visible[0] * cell)} {px(y)}{stairs}", stroke="soft", thick=1.2, dash="3 2")
        sheet.rect(x, y + at * LINE, wide, LINE, stroke="Q", thick=1.5)
        totals = [(x + wide + SUMS, y + i * LINE + 12, number(total)) for i, total in enumerate(sums[name])]
        sheet.texts(totals, SMALL, "ink", "end")
    sheet.top = y + LINE * len(rows) + 26
    sheet.text(sheet.left, sheet.top, f"the row of “{words[query]}”", TEXT, "Q", weight="bold")
    sheet.top += 8
    draw_row(sheet, list(shown), [A[at] for A in shown.values()], [total[at] for total in sums.values()],
             columns, visible[at], list(ways).index(chosen))
    sheet.note(note)
    body = [[f"{name}{' (chosen)' if name == chosen else ''}", *map(number, A[at]), number(sums[name][at])]
            for name, A in shown.items()]
    heads = [f"{word}{'' if j < visible[at] else '*'}" for j, word in enumerate(columns)]
    everything = [[word, *(number(total[i]) for total in sums.values())] for i, word in enumerate(rows)]
    text = [title, f"The row of “{words[query]}” (* = must not be read):",
            table(body, ["", *heads, "row sum"]), "Row sums:", table(everything, ["", *ways]), note]
    return Picture(title, "\n".join(filter(None, text)), sheet.finish())


def draw_row(sheet, names, rows, totals, columns, visible, chosen):
    """One query's weights in each way, a line a way; what must not be read stands behind a dashed line."""
    side, extra = label_room(names) + 14, 66
    cell, readable = cell_size([np.array(rows)], 2, WIDTH - 2 * PAD - side - extra, columns)
    x = sheet.left + side
    sheet.text(x + cell * len(columns) + 58, sheet.top + SMALL, "row sum", SMALL, "soft", "end")
    write_columns(sheet, x, columns, cell)
    top = sheet.top
    draw_cells(sheet, x, np.array(rows), cell, "A", 2, readable, names, [(chosen, None)])
    high = (sheet.top - top) / len(rows)
    sheet.texts([(x + cell * len(columns) + 58, top + (i + 0.5) * high + 4, number(total))
                 for i, total in enumerate(totals)], CELL, "ink", "end", "bold")
    if visible < len(columns):
        sheet.line(x + visible * cell, top - 4, x + visible * cell, sheet.top + 18, "soft", 1.6, "3 2")
        sheet.text(x + visible * cell + 6, sheet.top + 15, "must not be read", SMALL, "soft")
    sheet.top += 20


def around(n, query):
    """Which of n tokens are shown, as (first, end): all, or LEFT_OUT of them about the query."""
    if n <= SHOWN:
        return 0, n
    first = min(max(query - LEFT_OUT // 2, 0), n - LEFT_OUT)
    return first, first + LEFT_OUT


def part(A, first, end):
    """Rows and columns `first` to `end` of A (n, n), and the sums of the columns before and after them."""
    rows = A[first:end]
    before, after = rows[:, :first].sum(axis=1, keepdims=True), rows[:, end:].sum(axis=1, keepdims=True)
    return np.hstack([*([before] if first else []), rows[:, first:end], *([after] if end < len(A) else [])])

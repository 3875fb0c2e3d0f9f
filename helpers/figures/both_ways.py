"""One array with words as rows and with words as columns, behind an explorer: `both_ways`.

Arrays in, a Picture out.
"""

import numpy as np

from helpers import arrays as given
from helpers.figures.arrays import (
    array_text,
    cell_size,
    draw_cells,
    draw_shades,
    label_room,
    write_columns,
    write_key,
)
from helpers.figures.heads import asked, draw_steps
from helpers.figures.picture import Picture
from helpers.figures.style import CELL, PAD, ROLES, ROW, SMALL, TEXT, WIDTH
from helpers.figures.svg import Sheet
from helpers.figures.words import number, rounded, shorten, width

GAP, SUMS = 30, 60                       # px: between both sides, and room for row sums
HIGH, LOW, MANY = 20, 6, 16              # px: a row that is no word, and if there are more than MANY of them
HEADS = ("a word is a row", "a word is a column")


def both_ways(which, steps, tokens, query, row, column, formulas, role, title, note="", sums=None):
    """The same step in row and in column form: left a word is a row, right a word is a column.

    which : one of the names `steps`, by position, tokens : n words, query : position of the one outlined,
    row : (n, c), column : (c, n), or (n, n) both, then with a row for each word on either side,
    formulas : both with their shapes, sums : (n,) row sums of both or None.
    """
    steps, (words, query) = given.words("steps", steps), asked(tokens, query)
    which, role = given.position("which", which, len(steps)), given.one_of("role", role, ROLES)
    n, square = len(words), role in ("S", "A")
    row = given.shaped("row", row, ("n", "c"), (n, n if square else None), holds="finite numbers or -inf")
    column = given.shaped("column", column, ("c", "n"), (row.shape[1], n), holds="finite numbers or -inf")
    if not row.size:
        raise ValueError(f"row must have at least one row and one column, got {row.shape}")
    sums = sums if sums is None else given.shaped("sums", sums, ("n",), (n,))
    formulas, note = given.words("formulas", formulas, 2), given.text("note", note)
    digits = 2 if square else 1
    side, extra = label_room(words), SUMS if sums is not None else 0
    sheet = Sheet(title, f"Step {which + 1} of {len(steps)}, {steps[which]}, in both forms side by side.",
                  WIDTH)
    draw_steps(sheet, steps, which)
    least = max(width(formula, TEXT) for formula in formulas)             # of either side
    labels = GAP + side + (side if square else 0) + 2 * extra
    cell, readable = cell_size([row, column], digits, WIDTH - 2 * PAD - labels, words)
    cells = (min(cell, (WIDTH - 2 * PAD - GAP - least - side) / row.shape[1]) if not square else cell, cell)
    if not readable:
        fitting = [min((WIDTH - 2 * PAD - labels) / 2 / M.shape[1], 46) for M in (row, column)]
        longest = max(width(word, SMALL) for word in words) + 2
        cells = [cell if cell >= longest else min(cell, 33) for cell in fitting]     # or words stand upright
    top, left = sheet.top, sheet.left
    right = left + max(side + cells[0] * row.shape[1] + extra, least) + GAP
    bottoms = []
    for c, (M, x) in enumerate(((row, left), (column, right))):
        sheet.text(x, top + TEXT, HEADS[c], TEXT, weight="bold")
        sheet.text(x, top + TEXT + 20, formulas[c], TEXT)
        sheet.top = top + TEXT + 34
        labelled = c == 0 or square                           # whether a word has a row here
        x += side if labelled else 0
        if c == 1 or square:
            write_columns(sheet, x, words, cells[c])
        y, across = sheet.top, cells[c] * M.shape[1]
        high = ROW if labelled else HIGH if readable or len(M) <= MANY else LOW
        if readable:
            draw_cells(sheet, x, M, cells[c], role, digits, high=high)
        else:
            largest = 1 if role == "A" else max(abs(rounded(v)) for v in M.flat if np.isfinite(v))
            draw_shades(sheet, x, y, M, cells[c], high, largest, "A" if role == "A" else None)
            sheet.rect(x, y, across, high * len(M), stroke=ROLES[role], thick=1.5)
        if labelled:
            sheet.texts([(x - 8, y + (i + 0.5) * high + 4, shorten(word, side, TEXT))
                         for i, word in enumerate(words)], TEXT, "ink", "end")
            sheet.rect(x, y + query * high, across, high, stroke="Q", thick=2.5)
        else:
            sheet.rect(x + query * cells[c], y, cells[c], high * len(M), stroke="Q", thick=2.5)
        if sums is not None:
            edge = x + across + SUMS - 4
            sheet.text(edge, y - 7, "row sum", SMALL, "soft", "end")
            sheet.texts([(edge, y + (i + 0.5) * high + 4, number(total)) for i, total in enumerate(sums)],
                        CELL, "A", "end", "bold")
        bottoms.append(y + high * len(M))
    sheet.top = max(bottoms) + 2
    if not readable:
        write_key(sheet, [row], 0)
    sheet.note(note)
    named = words if square else None
    text = [title, f"{HEADS[0]}: {formulas[0]}", array_text(row, words, named, digits),
            f"{HEADS[1]}: {formulas[1]}", array_text(column, named, words, digits)]
    if sums is not None:
        text.append(f"Row sums in both: {' '.join(map(number, sums))}")
    return Picture(title, "\n".join([*text, note]), sheet.finish())

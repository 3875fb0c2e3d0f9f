"""Pictures of arrays: `matrix`, `matrices`, `tokens`, `pipeline`.

Arrays in, a Picture out; nothing is computed here. `draw_cells` is the heat map that all of them share.
"""

import numpy as np

from helpers import arrays as given
from helpers.figures.picture import Picture
from helpers.figures.style import CELL, LABEL, PAD, ROLES, ROW, SMALL, TEXT, WIDTH, shade
from helpers.figures.svg import Sheet, px
from helpers.figures.words import (
    MOST_DIGITS,
    number,
    numbered,
    rounded,
    shape_text,
    shorten,
    table,
    width,
)

MOST_CELLS = 2**16          # more than 256 x 256: nobody can see them, and they take seconds to draw
SIGN_ROOM = 12              # px: a cell as wide as this has room for a minus sign


def matrix(M, title, rows=None, columns=None, role="A", digits=2, mark=None):
    """A heat map with the number in each cell.

    M : (r, c).  rows, columns : labels.  role : one of X Q K V S A Z W; weights (A) are shaded by size, all
    others by size and sign.  mark : a row (int), a cell (i, j), or a list of these, outlined.
    Where numbers do not fit, in more than about 20 columns, cells are only shaded, and a line below says how;
    the text form has the numbers.
    NaN and infinity are written as they are.  Raises TypeError or ValueError when M is not a table, or when
    labels, role, digits or mark do not fit.
    """
    M, digits = checked("M", M, role), given.count("digits", digits, most=MOST_DIGITS)
    rows, columns = labelled("rows", rows, M, 0), labelled("columns", columns, M, 1)
    marks = checked_marks(mark, M.shape)
    side = label_room(rows)
    cell, readable = cell_size([M], digits, WIDTH - side - 2 * PAD, columns)
    sheet = Sheet(title, f"Heat map of {M.shape[0]} rows and {M.shape[1]} columns.",
                  side + cell * M.shape[1] + 2 * PAD)
    x = sheet.left + side
    if columns:
        write_columns(sheet, x, columns, cell)
    draw_cells(sheet, x, M, cell, role, digits, readable, rows, marks)
    if not readable:
        write_key(sheet, [M], cell)
    return Picture(title, f"{title}\n{array_text(M, rows, columns, digits)}", sheet.finish())


def matrices(items, title, rows=None, digits=2):
    """Several matrices side by side, each with its name and shape.

    items : [(name, M, role), …].  rows : labels of the rows, written beside the first.
    Raises TypeError or ValueError as `matrix` does.
    """
    items = [(given.text("every name in items", name), checked(f"M of {name!r} in items", M, role), role)
             for name, M, role in given.records("items", items, ("name", "M", "role"))]
    digits = given.count("digits", digits, most=MOST_DIGITS)
    rows = labelled("rows", rows, items[0][1], 0)
    side, gap = label_room(rows), 2 * PAD
    cell, readable = cell_size([M for _, M, _ in items], digits, WIDTH - side - gap * len(items))
    heads = [f"{name} {shape_text(M)}" for name, M, _ in items]
    named = list(zip(items, heads, strict=True))
    widths = [max(cell * M.shape[1], width(head, TEXT * 1.1)) for (_, M, _), head in named]
    text = [title]
    sheet = Sheet(title, f"Heat maps side by side: {', '.join(heads)}.",
                  side + sum(widths) + gap * len(items))
    top, x, bottom = sheet.top, sheet.left + side, sheet.top
    for i, ((_, M, role), head) in enumerate(named):
        same_rows = rows if len(M) == len(items[0][1]) else None
        text += [head, array_text(M, same_rows, None, digits)]
        sheet.text(x, top + TEXT, head, weight="bold", colour=ROLES[role])
        sheet.top = top + TEXT + 8
        draw_cells(sheet, x, M, cell, role, digits, readable, rows if i == 0 else None)
        x, bottom = x + widths[i] + gap, max(bottom, sheet.top)
    sheet.top = bottom
    if not readable:
        write_key(sheet, [M for _, M, _ in items], cell)
    return Picture(title, "\n".join(text), sheet.finish())


def tokens(tokens, weights, title, query=None, digits=2):
    """The words of a text with a number each: a bar above, the number below; the query is outlined.

    tokens : n words, weights : (n,), query : position of the word that asks.  NaN and infinity are written.
    Raises TypeError or ValueError when the lengths differ or there is no such position.
    """
    weights, words = given.array("weights", weights, ("n",), holds=None), given.words("tokens", tokens)
    if len(words) != len(weights) or not words:
        raise ValueError("tokens and weights must have the same length, at least 1; "
                         f"got {len(words)} tokens, weights {weights.shape}")
    query = None if query is None else given.position("query", query, len(words))
    digits, words = given.count("digits", digits, most=MOST_DIGITS), numbered(words)
    shown = [rounded(w, digits) for w in weights]
    largest = max((abs(w) for w in shown if np.isfinite(w)), default=0)
    signed = any(w < 0 for w in shown)
    boxes = [max(width(shorten(w, LABEL, TEXT), TEXT) + 16, width(number(v, digits), TEXT) + 6, 44)
             for w, v in zip(words, shown, strict=True)]
    lines = in_lines([box + 6 for box in boxes])
    sheet = Sheet(title, "A strip of words; above each a bar, below each its number.",
                  max(sum(boxes[i] + 6 for i in line) for line in lines) + 2 * PAD)
    for line in lines:
        x, base = sheet.left, sheet.top + 52
        y = base + (56 if signed else 4)                       # the top of the words
        for i in line:
            w, middle = shown[i], x + boxes[i] / 2
            tall = round(min(abs(w) / largest, 1) * 50) if largest and np.isfinite(w) else 0
            fill = "A" if not signed else "positive" if w >= 0 else "negative"
            if tall:
                sheet.rect(middle - 11, base - tall if w >= 0 else base, 22, tall, fill, radius=2)
            sheet.rect(x, y, boxes[i], ROW, fill, shade(w, largest), "Q" if i == query else "line",
                       2.5 if i == query else 1, radius=4)
            sheet.text(middle, y + 17, shorten(words[i], LABEL, TEXT), anchor="middle",
                       weight="bold" if i == query else None)
            sheet.text(middle, y + ROW + 16, number(w, digits), anchor="middle")
            if i == query:
                sheet.text(middle, y + ROW + 31, "query", SMALL, "Q", "middle", "bold")
            x += boxes[i] + 6
        if signed:
            sheet.line(sheet.left, base, x - 6, base, "soft")
        sheet.top = y + ROW + (36 if query in line else 22)
    body = [[words[i] + (" (query)" if i == query else ""), number(w, digits)] for i, w in enumerate(weights)]
    return Picture(title, f"{title}\n{table(body)}", sheet.finish())


def pipeline(steps, title):
    """Boxes with arrows between them, from left to right, then the next line.

    steps : [(name, shape or note), …]; a list of such pairs in place of one stands side by side in one step.
    Raises TypeError or ValueError for what is no such step, and when there are none.
    """
    steps = [given.records("steps", step if isinstance(step, list) else [step], ("name", "note"))
             for step in given.listed("steps", steps, "(name, note)")]
    if not steps:
        raise ValueError("steps must be a list of at least one (name, note), got none")
    steps = [[(given.text("every name in steps", name, empty=False),
               given.text("every note in steps", "" if note is None else note)) for name, note in step]
             for step in steps]
    arrow, high, gap = 32, 54, 8
    widths = [max(max(width(name, (TEXT + 1) * 1.06), width(note, SMALL)) for name, note in step) + 20
              for step in steps]
    lines = in_lines([wide + arrow for wide in widths])
    sheet = Sheet(title, "Boxes joined by arrows.",
                  max(sum(widths[i] + arrow for i in line) for line in lines) + 2 * PAD)
    for line in lines:
        x, tall = sheet.left, max(len(steps[i]) for i in line) * (high + gap) - gap
        middle = sheet.top + tall / 2                           # where a step of one box has its arrows
        before = [middle]
        for i in line:
            first = middle - (len(steps[i]) * (high + gap) - gap) / 2
            tops = [first + r * (high + gap) for r in range(len(steps[i]))]
            ends = [top + high / 2 for top in tops]
            if i:
                for start, end in [(a, b) for a in before for b in ends]:
                    sheet.arrow(x + 3, start, x + arrow - 3, end)
                x += arrow
            for top, (name, note) in zip(tops, steps[i], strict=True):
                role = name if name in ("Q", "K", "V", "A") else None
                sheet.rect(x, top, widths[i], high, "panel", 1, role or "line", 2 if role else 1, radius=6)
                sheet.text(x + widths[i] / 2, top + (23 if note else 32), name, TEXT + 1, role or "ink",
                           "middle", "bold")
                if note:
                    sheet.text(x + widths[i] / 2, top + 41, note, SMALL, "soft", "middle")
            x, before = x + widths[i], ends
        sheet.top += tall + PAD
    sheet.top -= PAD
    text = "\n→ ".join("; ".join(f"{name}: {note}" if note else name for name, note in step)
                       for step in steps)
    return Picture(title, f"{title}\n{text}", sheet.finish())


def draw_cells(sheet, x, M, cell, role, digits=2, readable=True, rows=None, marks=(), weight=None,
               largest=None, high=None, outline="ink"):
    """A heat map with its left edge at x, from the sheet's top down; `largest` has the fullest shade.

    high : the height of a row, by default what suits its numbers.  outline : the colour of marks, Q for a
    query.
    """
    high = high or (ROW if readable or len(M) <= 16 else 14)
    y, across = sheet.top, cell * M.shape[1]
    shown = [[rounded(v, digits) for v in row] for row in M]
    if largest is None:
        largest = max((abs(v) for row in shown for v in row if np.isfinite(v)), default=0)
        largest = max(1, largest) if role == "A" else largest         # weights: the same shade everywhere
    fills, inked, faint = {}, [], []
    for i, row in enumerate(shown):
        for j, v in enumerate(row):
            fill = "A" if role == "A" else "positive" if v >= 0 else "negative"
            if opacity := shade(v, largest):
                fills.setdefault((fill, opacity), []).append(f"M{px(x + j * cell)} {px(y + i * high)}"
                                                             f"h{px(cell)}v{px(high)}h-{px(cell)}z")
            words = number(v, digits) if readable else "−" if v < 0 and cell >= SIGN_ROOM else ""
            if words:
                place = (x + (j + 0.5) * cell, y + (i + 0.5) * high + 4, words)
                (inked if v and np.isfinite(v) else faint).append(place)
    for (fill, opacity), boxes in sorted(fills.items()):
        sheet.path("".join(boxes), fill, opacity)
    if cell >= 8:
        level = [f"M{px(x)} {px(y + i * high)}h{px(across)}" for i in range(1, len(M))]
        upright = [f"M{px(x + j * cell)} {px(y)}v{px(high * len(M))}" for j in range(1, M.shape[1])]
        sheet.path("".join(level + upright), stroke="line", thick=0.5)
    sheet.texts(inked, CELL, "ink", weight=weight)
    sheet.texts(faint, CELL, "soft", weight=weight)
    if rows:
        sheet.texts([(x - 8, y + (i + 0.5) * high + 4, shorten(label, LABEL, TEXT))
                     for i, label in enumerate(rows)], TEXT if high >= ROW else SMALL, "ink", "end")
    sheet.rect(x, y, across, high * len(M), stroke=ROLES[role] if role in "QKVA" else "soft", thick=1.5)
    for i, j in marks:
        first, count = (0, M.shape[1]) if j is None else (j, 1)
        sheet.rect(x + first * cell, y + i * high, cell * count, high, stroke=outline, thick=2.5)
    sheet.top = y + high * len(M)


def write_key(sheet, matrices, cell):
    """What the shades mean of heat maps without numbers, in small print below them."""
    negative = any(rounded(v) < 0 for M in matrices for v in M.flat)
    sheet.top += 2
    sign = "−" if cell >= SIGN_ROOM else "grey"
    sheet.note(f"deeper = larger, {sign} = negative" if negative else "deeper = larger")


def draw_shades(sheet, x, y, M, wide, high, largest, fill=None):
    """A heat map without numbers, in cells of wide by high px; `fill` for all, or a colour for each sign."""
    fills = {}
    for i, row in enumerate(M):
        for j, v in enumerate(map(rounded, row)):
            if opacity := shade(v, largest):
                colour = fill or ("positive" if v >= 0 else "negative")
                fills.setdefault((colour, opacity), []).append(f"M{px(x + j * wide)} {px(y + i * high)}"
                                                               f"h{px(wide)}v{px(high)}h-{px(wide)}z")
    for (colour, opacity), boxes in sorted(fills.items()):
        sheet.path("".join(boxes), colour, opacity)


def write_columns(sheet, x, columns, cell):
    """Labels above the columns of a heat map; over narrow columns they stand upright."""
    middles = [x + (j + 0.5) * cell for j in range(len(columns))]
    if cell >= 34:
        sheet.texts([(m, sheet.top + SMALL, shorten(label, cell - 2, SMALL))
                     for m, label in zip(middles, columns, strict=True)], SMALL, "soft")
        sheet.top += SMALL + 7
    elif cell >= SMALL:
        sheet.top += max(min(width(label, SMALL), 80) for label in columns) + 6
        for m, label in zip(middles, columns, strict=True):
            sheet.text(m + 4, sheet.top - 6, shorten(label, 80, SMALL), SMALL, "soft", turn=-90)


def cell_size(matrices, digits, room, columns=None):
    """(width of a cell in px, whether its number can be read) for matrices side by side in `room` px."""
    count = sum(M.shape[1] for M in matrices)
    number_room = max(width(number(v, digits), CELL) for M in matrices for v in M.flat) + 10
    wanted = max([number_room, 34] + [width(label, SMALL) + 6 for label in columns or ()])
    fitting = int(room / count)
    if fitting >= number_room:
        return min(wanted, fitting, 84), True
    return max(min(room / count, 22), 4), False


def label_room(labels):
    """Room for row labels and the gap behind them, in px."""
    return max(min(width(label, TEXT), LABEL) for label in labels) + 10 if labels else 0


def in_lines(widths):
    """Positions of things of these widths, broken into lines that fit."""
    lines, used = [[]], 0
    for i, w in enumerate(widths):
        if lines[-1] and used + w > WIDTH - 2 * PAD:
            lines.append([])
            used = 0
        lines[-1].append(i)
        used += w
    return lines


def array_text(M, rows, columns, digits):
    """The numbers of M as a plain table with its labels."""
    names = rows or [f"row {i}" for i in range(len(M))]
    return table([[name, *(number(v, digits) for v in row)] for name, row in zip(names, M, strict=True)],
                 ["", *(columns or range(M.shape[1]))])


def checked(name, M, role):
    """M as a (r, c) array of floats, a vector as one row; TypeError or ValueError says what does not fit."""
    M = given.array(name, M, ("c",), stacked=True, holds=None).astype(float)
    M = M[None, :] if M.ndim == 1 else M
    if M.ndim != 2 or 0 in M.shape:
        raise ValueError(f"{name} must have shape (r, c) with at least one row and one column, got {M.shape}")
    if M.size > MOST_CELLS:
        raise ValueError(f"{name} must have at most {MOST_CELLS:,} cells to be drawn, got {M.shape}: draw a "
                         "part, such as M[:20, :20]")
    given.one_of("role", role, ROLES)
    return M


def labelled(name, labels, M, axis):
    """The labels, told apart where a word comes twice; ValueError when there are too few or too many."""
    if labels is None:
        return None
    labels = given.words(name, labels)
    if len(labels) != M.shape[axis]:
        raise ValueError(f"{name} must be {M.shape[axis]} labels for a matrix of shape {M.shape}, "
                         f"got {len(labels)}")
    return numbered(labels)


def checked_marks(mark, shape):
    """`mark` as a list of (i, j); j is None for a whole row."""
    marks = [] if mark is None else list(mark) if isinstance(mark, (list, set)) else [mark]
    marks = [(m, None) if given.whole(m) else m for m in marks]
    for m in marks:
        if not isinstance(m, (tuple, list, np.ndarray)) or len(m) != 2 or not (
                given.whole(m[0]) and (m[1] is None or given.whole(m[1]))):
            raise TypeError("mark must be a row (a whole number), a cell (i, j) or a list of these, "
                            f"got {given.came(m)}")
        i, j = m
        if not (0 <= i < shape[0] and (j is None or 0 <= j < shape[1])):
            raise ValueError(f"mark must lie in a matrix of shape {shape}, got {i if j is None else (i, j)}")
    return [tuple(m) for m in marks]

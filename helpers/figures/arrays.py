"""Pictures of arrays: `matrix`, `matrices`, `tokens`, `pipeline`. Arrays in, a Picture out; nothing is computed here."""

import numpy as np

from helpers.figures.picture import Picture
from helpers.figures.style import ROLES, SMALL, TEXT, WIDTH, shade
from helpers.figures.svg import Sheet
from helpers.figures.words import number, numbered, rounded, shape_text, shorten, table, width

GAP, ROW = 14, 26            # px between things, height of a row


def matrix(M, title, rows=None, columns=None, role="A", digits=2, mark=None):
    """A heat map with the number in each cell.

    M : (r, c).  rows, columns : labels.  role : one of X Q K V S A Z W; A is shaded by size, the others by size and sign.
    mark : a row (int), a cell (i, j), or a list of these, outlined.  Where numbers do not fit (more than about
    20 columns) cells are shaded only, and the numbers stand in the text form.
    Raises ValueError when M is not a table or labels, role or mark do not fit.
    """
    M, rows, columns = checked(M, rows, columns, role)
    marks = checked_marks(mark, M.shape)
    row_labels = None if rows is None else numbered(rows)
    column_labels = None if columns is None else numbered(columns)
    side = label_width(row_labels)
    cell, numbers = cell_size([M], digits, WIDTH - side - 2 * GAP, column_labels)
    text = f"{title}\n{array_text(M, row_labels, column_labels, digits)}"
    sheet = Sheet(title, array_text(M, row_labels, column_labels, digits),
                  max(side + cell * M.shape[1] + 2 * GAP, 320))
    draw(sheet, sheet.left + side, M, cell, role, digits, numbers, row_labels, column_labels, marks)
    if not numbers:
        sheet.note("Shaded by size; a − marks negative numbers." if (M < 0).any() and cell >= 12 else "Shaded by size.")
    return Picture(title, text, sheet.finish())


def matrices(items, title, rows=None, digits=2):
    """Several matrices side by side, each with its name and shape.

    items : [(name, M, role), …].  rows : labels of the rows, beside the first.  Raises ValueError as `matrix` does.
    """
    items = [(name, checked(M, None, None, role)[0], role) for name, M, role in items]
    if not items:
        raise ValueError("matrices needs at least one (name, M, role)")
    if rows is not None:
        checked(items[0][1], rows, None, "A")
    row_labels = None if rows is None else numbered(rows)
    side = label_width(row_labels)
    room = WIDTH - side - (len(items) + 1) * 2 * GAP
    cell, numbers = cell_size([M for _, M, _ in items], digits, room)
    names = [f"{name} {shape_text(M)}" for name, M, _ in items]
    widths = [max(cell * M.shape[1], width(label, TEXT)) for (_, M, _), label in zip(items, names, strict=True)]
    text = "\n".join([title] + [f"{label}\n{array_text(M, row_labels if len(M) == len(items[0][1]) else None, None, digits)}"
                                for (_, M, _), label in zip(items, names, strict=True)])
    sheet = Sheet(title, "; ".join(names), max(side + sum(widths) + 2 * GAP * len(items), 320))
    top, x, bottom = sheet.top, sheet.left + side, 0
    for i, ((_, M, role), label) in enumerate(zip(items, names, strict=True)):
        sheet.text(x, top + TEXT, label, weight="bold", colour=ROLES[role])
        sheet.top = top + TEXT + 8
        draw(sheet, x, M, cell, role, digits, numbers, row_labels if i == 0 else None, None, [])
        x, bottom = x + widths[i] + 2 * GAP, max(bottom, sheet.top)
    sheet.top = bottom
    return Picture(title, text, sheet.finish())


def tokens(tokens, weights, title, query=None, digits=2):
    """The words of a text with a number each: a bar above, the number below; the query is outlined.

    tokens : n words, weights : (n,), query : position of the token that asks.
    Raises ValueError when the lengths differ or there is no such position.
    """
    weights = np.asarray(weights, dtype=float)
    if weights.ndim != 1 or len(tokens) != len(weights):
        raise ValueError(f"tokens and weights must have the same length: {len(tokens)} tokens, "
                         f"weights {weights.shape}")
    if query is not None and not 0 <= query < len(tokens):
        raise ValueError(f"query must be a position 0 … {len(tokens) - 1}, got {query}")
    words = numbered(tokens)
    lines = [[words[i] + (" (query)" if i == query else ""), number(w, digits)] for i, w in enumerate(weights)]
    text = f"{title}\n{table(lines)}"
    shown = [rounded(w, digits) for w in weights]
    largest = max((abs(w) for w in shown if np.isfinite(w)), default=0)
    signed = any(w < 0 for w in shown)
    boxes = [max(width(shorten(w, 110, TEXT), TEXT) + 14, 52) for w in words]
    per_line, line_width = [[]], 0
    for i, box in enumerate(boxes):
        if per_line[-1] and line_width + box + 6 > WIDTH - 2 * GAP:
            per_line.append([])
            line_width = 0
        per_line[-1].append(i)
        line_width += box + 6
    across = max(sum(boxes[i] + 6 for i in line) for line in per_line) + 2 * GAP
    sheet = Sheet(title, table(lines), max(across, 320))
    up, down = 56, (56 if signed else 0)
    for line in per_line:
        x, base = sheet.left, sheet.top + up
        for i in line:
            w, box = shown[i], boxes[i]
            tall = 0 if not largest or not np.isfinite(w) else round(abs(w) / largest * 52)
            fill = "A" if not signed else "positive" if w >= 0 else "negative"
            sheet.rect(x + box / 2 - 11, base - tall if w >= 0 else base, 22, tall, fill, radius=2)
            y = base + down + 4
            sheet.rect(x, y, box, ROW, fill, shade(w, largest), "Q" if i == query else "line",
                       2.5 if i == query else 1, radius=4)
            sheet.text(x + box / 2, y + 17, shorten(words[i], 110, TEXT), anchor="middle",
                       weight="bold" if i == query else None)
            sheet.text(x + box / 2, y + ROW + 15, number(w, digits), anchor="middle")
            if i == query:
                sheet.text(x + box / 2, y + ROW + 29, "query", SMALL, "Q", "middle", "bold")
            x += box + 6
        if signed:
            sheet.line(sheet.left, base, x - 6, base, "soft")
        sheet.top = base + down + 4 + ROW + (34 if query in line else 20)
    return Picture(title, text, sheet.finish())


def pipeline(steps, title):
    """Boxes with arrows between them.

    steps : [(name, shape or note), …], read from left to right, then the next line.
    """
    steps = [(str(name), str(note or "")) for name, note in steps]
    if not steps:
        raise ValueError("pipeline needs at least one (name, note)")
    boxes = [max(width(name, TEXT + 1), width(note, SMALL)) + 22 for name, note in steps]
    arrow, lines, x = 34, [[]], 0
    for i, box in enumerate(boxes):
        if lines[-1] and x + box + arrow > WIDTH - 2 * GAP:
            lines.append([])
            x = 0
        lines[-1].append(i)
        x += box + arrow
    text = f"{title}\n" + "\n→ ".join(f"{name}: {note}" if note else name for name, note in steps)
    across = max(sum(boxes[i] + arrow for i in line) for line in lines) + 2 * GAP
    sheet = Sheet(title, " → ".join(f"{name} {note}".strip() for name, note in steps), max(across, 320))
    for line in lines:
        x = sheet.left
        for i in line:
            name, note = steps[i]
            role = name if name in ("Q", "K", "V", "A") else None
            if i:
                sheet.arrow(x + 2, sheet.top + 26, x + arrow - 4)
            x += arrow if i else 0
            sheet.rect(x, sheet.top, boxes[i], 52, "panel", 1, role or "line", 2 if role else 1, radius=6)
            sheet.text(x + boxes[i] / 2, sheet.top + (22 if note else 31), name, TEXT + 1, role or "ink", "middle", "bold")
            if note:
                sheet.text(x + boxes[i] / 2, sheet.top + 40, note, SMALL, "soft", "middle")
            x += boxes[i]
        sheet.top += 52 + GAP
    sheet.top -= GAP
    return Picture(title, text, sheet.finish())


def draw(sheet, x, M, cell, role, digits, numbers, row_labels, column_labels, marks):
    """One heat map with its left edge at x, from the sheet's top down."""
    if column_labels is not None:
        for j, label in enumerate(column_labels):
            if numbers:
                sheet.text(x + (j + 0.5) * cell, sheet.top + SMALL, shorten(label, cell - 4, SMALL), SMALL, "soft", "middle")
        sheet.top += SMALL + 7 if numbers else 0
    y, high = sheet.top, ROW if numbers or len(M) <= 16 else 14
    shown = [[rounded(v, digits) for v in row] for row in M]
    largest = max((abs(v) for row in shown for v in row if np.isfinite(v)), default=0)
    for i, row in enumerate(shown):
        if row_labels is not None:
            sheet.text(x - 8, y + (i + 0.5) * high + 4, shorten(row_labels[i], 120, TEXT), TEXT, "ink", "end")
        for j, v in enumerate(row):
            left, top = x + j * cell, y + i * high
            fill = "A" if role == "A" else "positive" if v >= 0 else "negative"
            sheet.rect(left, top, cell, high, fill, shade(v, largest) if np.isfinite(v) else 0, "line", 0.5)
            if numbers:
                sheet.text(left + cell / 2, top + high / 2 + 4, number(v, digits), 12,
                           "soft" if v == 0 or not np.isfinite(v) else "ink", "middle")
            elif v < 0 and cell >= 12:
                sheet.text(left + cell / 2, top + high / 2 + 4, "−", SMALL, "ink", "middle")
    sheet.rect(x, y, cell * M.shape[1], high * len(M), "none", 1, ROLES[role] if role in "QKVA" else "soft", 1.5)
    for i, j in marks:
        first, count = (0, M.shape[1]) if j is None else (j, 1)
        sheet.rect(x + first * cell, y + i * high, cell * count, high, "none", 1, "ink", 2.5)
    sheet.top = y + high * len(M)


def cell_size(matrices, digits, room, column_labels=None):
    """(width of a cell in px, whether numbers fit) for matrices side by side in `room` px."""
    count = sum(M.shape[1] for M in matrices)
    widest = max((width(number(v, digits), 12) for M in matrices for v in M.flat), default=30) + 8
    if column_labels:
        widest = max([widest] + [min(width(label, SMALL), 70) + 6 for label in column_labels])
    if count * widest <= room:
        return max(widest, 34), True
    return max(min(room / max(count, 1), 22), 4), False


def label_width(labels):
    """Room for row labels, in px."""
    return 0 if labels is None else max([min(width(label, TEXT), 120) for label in labels], default=0) + 12


def array_text(M, rows, columns, digits):
    """The numbers of M as a plain table with its labels."""
    body = [[number(v, digits) for v in row] for row in M]
    names = rows if rows is not None else [f"row {i}" for i in range(len(M))]
    header = ["", *(columns if columns is not None else map(str, range(M.shape[1])))]
    return table([[name, *line] for name, line in zip(names, body, strict=True)], header)


def checked(M, rows, columns, role):
    """M as a (r, c) array, and its labels as lists; ValueError says what does not fit."""
    M = np.asarray(M, dtype=float)
    M = M[None, :] if M.ndim == 1 else M
    if M.ndim != 2 or 0 in M.shape:
        raise ValueError(f"a picture of a matrix needs at least one row and one column, shape (r, c); got {M.shape}")
    if role not in ROLES:
        raise ValueError(f"role must be one of {' '.join(ROLES)}, got {role!r}")
    for name, labels, size in (("rows", rows, M.shape[0]), ("columns", columns, M.shape[1])):
        if labels is not None and len(labels) != size:
            raise ValueError(f"{name} must be {size} labels for a matrix of shape {M.shape}, got {len(labels)}")
    return M, rows, columns


def checked_marks(mark, shape):
    """`mark` as a list of (i, j); j is None for a whole row."""
    if mark is None:
        return []
    marks = mark if isinstance(mark, (list, set)) else [mark]
    marks = [(m, None) if isinstance(m, (int, np.integer)) else tuple(m) for m in marks]
    for i, j in marks:
        if not (0 <= i < shape[0] and (j is None or 0 <= j < shape[1])):
            raise ValueError(f"mark {(i, j) if j is not None else i} lies outside a matrix of shape {shape}")
    return marks

"""The way through a layer of many heads: `multi_head`. Sizes in, a Picture out."""

from helpers import arrays as given
from helpers.figures.picture import Picture
from helpers.figures.style import PAD, SMALL, TEXT
from helpers.figures.svg import Sheet, px
from helpers.figures.words import shape_text, width

LANE, GAP, ARROW, HIGH = 62, 12, 22, 54     # px: a head, between two heads, an arrow, a box between arrows
MOST = 6                                    # heads, as many as can be looked at


def multi_head(X, n_heads, d_k, title):
    """One layer on X: norm, project, split, attend, concatenate, mix with W_o, add X.

    X : (n, d_model), n_heads : 1 … 6 heads of width d_k = d_v.  Every box bears its shape.
    Raises TypeError or ValueError for other numbers of heads, and for what is no X.
    """
    X, d_k = given.array("X", X, ("n", "d_model"), holds=None), given.count("d_k", d_k, least=1)
    n_heads = given.count("n_heads", n_heads, least=1, most=MOST)
    full, n = shape_text(X), len(X)
    side_by_side, one, square = f"({n}, {n_heads * d_k})", f"({n}, {d_k})", f"({n}, {n})"
    columns = [f"{r * d_k}–{(r + 1) * d_k - 1}" for r in range(n_heads)]
    notes = {"X": [full], "norm": [full], "project": [f"{letter} {side_by_side}" for letter in "QKV"],
             "head": [f"columns {columns[-1]}", f"Q K V {one}"], "A": [square], "Z = A V": [one],
             "concat": [side_by_side], "· W_o": [full], "+": [full]}
    wide = {name: max(width(name, TEXT * 1.06), *(width(line, SMALL) for line in lines)) + 12
            for name, lines in notes.items()}
    tall = max(n_heads * (LANE + GAP) - GAP, LANE + 2 * GAP)
    sheet = Sheet(title, f"Boxes joined by arrows. {n_heads} heads attend side by side; X goes round them.",
                  sum(wide.values()) + ARROW * (len(wide) - 1) + 2 * PAD)
    top, x = sheet.top, sheet.left
    middle, start = top + tall / 2, x + wide["X"] / 2
    for name, lines in list(notes.items())[:-1]:
        if name in ("head", "A", "Z = A V"):                   # a box in each head's lane
            high, lane = min(LANE, tall), top + (tall - n_heads * (LANE + GAP) + GAP) / 2
            boxes = [(lane + r * (LANE + GAP), name, lines) for r in range(n_heads)]
            if name == "head":
                boxes = [(y, f"head {r}", [f"columns {columns[r]}", lines[1]])
                         for r, (y, *_) in enumerate(boxes)]
        else:
            high = tall if name in ("project", "concat") else HIGH
            boxes = [(middle - high / 2, name, lines)]
        for y, words, small in boxes:
            box(sheet, x, y, wide[name], high, words, small, {"A": "A", "Z = A V": "V"}.get(name))
            if name not in ("X", "concat"):
                sheet.arrow(x - ARROW + 2, y + high / 2, x - 2)
            if name == "Z = A V":
                sheet.arrow(x + wide[name] + 2, y + high / 2, x + wide[name] + ARROW - 2)
        x += wide[name] + ARROW
    plus = x + wide["+"] / 2
    sheet.arrow(x - ARROW + 2, middle, plus - 17)
    sheet.rect(plus - 15, middle - 15, 30, 30, "panel", 1, "ink", 1.5, radius=15)
    sheet.text(plus, middle + 6, "+", TEXT + 5, "ink", "middle", "bold")
    sheet.text(plus, middle - 22, full, SMALL, "soft", "middle")
    low = top + tall + 22
    sheet.path(f"M{px(start)} {px(middle + HIGH / 2)}V{px(low)}H{px(plus)}V{px(middle + 22)}", stroke="ink",
               thick=2)
    sheet.path(f"M{px(plus - 5)} {px(middle + 25)}l5 -9l5 9z", "ink")
    sheet.text((start + plus) / 2, low - 7, "residual: X goes round, unchanged", SMALL, "soft", "middle")
    sheet.top = low
    owned = "; ".join(f"head {r} columns {these}" for r, these in enumerate(columns))
    text = [title, f"X {full}", f"→ norm {full}", f"→ project: Q, K and V, each {side_by_side}",
            f"→ split: {owned}; Q, K and V of a head {one} each",
            f"→ attend, each head for itself: A {square}, then Z = A V {one}",
            f"→ concat {side_by_side}", f"→ · W_o {full}", f"→ + X {full}; X goes round, unchanged"]
    return Picture(title, "\n".join(text), sheet.finish())


def box(sheet, x, y, w, h, name, lines, role=None):
    """A box with a name and small lines below it, in the middle of its height."""
    sheet.rect(x, y, w, h, "panel", 1, role or "line", 2 if role else 1, radius=6)
    first = y + h / 2 - 8 * len(lines) + 5
    sheet.text(x + w / 2, first, name, TEXT, role or "ink", "middle", "bold")
    sheet.texts([(x + w / 2, first + 16 * (i + 1), line) for i, line in enumerate(lines)], SMALL, "soft")

"""Concatenate-then-project against the sum over heads, behind an explorer: `head_sum`.

Arrays in, a Picture out.
"""

from helpers import arrays as given
from helpers.figures.arrays import draw_shades
from helpers.figures.picture import Picture
from helpers.figures.style import PAD, SMALL, TEXT, WIDTH
from helpers.figures.svg import Sheet
from helpers.figures.words import number, rounded, table, width

SIDE, STRIP, GAP = 288, 18, 8          # px: W_o is SIDE by SIDE, a vector is a strip, a gap after a label
HEAD_COLOURS = ("head0", "head1", "head2", "head3")


def head_sum(word, z, W_o, updates, added, running, total, column, title, note=""):
    """One word's heads side by side through W_o, and through W_o's row blocks one head after the other.

    word : the row's word, z : (h, d_v), W_o : (h * d_v, d_model), updates : (h, d_model), a head's part each,
    added : how many of them `running` (d_model,) has, total : (d_model,) what concat · W_o gives,
    column : the one whose numbers are written out.
    """
    word, z = given.text("word", word), given.array("z", z, ("h", "d_v"))
    h, d_v = z.shape
    W_o = given.shaped("W_o", W_o, ("h·d_v", "d_model"), (h * d_v, None))
    rows, d_model = W_o.shape
    if not W_o.size:
        raise ValueError(f"W_o must have at least one row and one column, got {W_o.shape}")
    updates = given.shaped("updates", updates, ("h", "d_model"), (h, d_model))
    running, total = (given.shaped(name, x, ("d_model",), (d_model,))
                      for name, x in (("running", running), ("total", total)))
    added, column = given.count("added", added, most=h), given.position("column", column, d_model)
    note = given.text("note", note)
    sheet = Sheet(title, f"Left W_o as a heat map in {h} blocks of rows, its {rows} factors beside it, the "
                         f"result below. Right the part of each head and their sum.", WIDTH)
    block, wide = SIDE / h, SIDE / d_model
    left = sheet.left + width("head 0", TEXT) + GAP                       # of the factors
    matrix = left + STRIP + GAP
    strips = WIDTH - PAD - SIDE - 70                                      # of the parts on the right
    numbers = WIDTH - PAD
    shapes = f"concat (1, {rows}) · W_o ({rows}, {d_model})"
    sheet.text(sheet.left, sheet.top + TEXT, shapes, TEXT, weight="bold")
    sheet.text(strips, sheet.top + TEXT, f"the sum over {h} heads", TEXT, weight="bold")
    sheet.text(numbers, sheet.top + TEXT, f"column {column}", SMALL, "soft", "end")
    top = sheet.top = sheet.top + TEXT + 12
    colours = [HEAD_COLOURS[r % len(HEAD_COLOURS)] for r in range(h)]
    draw_shades(sheet, left, top, z.reshape(-1, 1), STRIP, SIDE / rows, largest([z]))
    draw_shades(sheet, matrix, top, W_o, wide, SIDE / rows, largest([W_o]))
    scale = largest([updates, total])
    for r, colour in enumerate(colours):
        y, there = top + r * block, r < added
        middle = y + block / 2
        sheet.text(left - GAP, middle + 4, f"head {r}", TEXT, colour, "end", "bold")
        sheet.rect(left, y + 1, STRIP, block - 2, stroke=colour, thick=2)
        sheet.rect(matrix, y + 1, SIDE, block - 2, stroke=colour, thick=2 if there else 1)
        own = f"{r * d_v}:{(r + 1) * d_v}"
        label = f"concat[{own}] · W_o[{own}]"
        sheet.text(strips, middle - 7, label, SMALL, colour if there else "soft")
        if not there:
            sheet.text(strips + SIDE, middle - 7, "not added yet", SMALL, "soft", "end")
        draw_strip(sheet, strips, middle, updates[r], wide, scale, colour if there else "line")
        sign = "" if r == 0 or rounded(updates[r][column]) < 0 else "+"
        sheet.text(numbers, middle + 14, sign + number(updates[r][column]), TEXT, "ink" if there else "soft",
                   "end")
        sheet.arrow(matrix + SIDE + 6, middle + STRIP / 2, strips - 6, stroke="soft" if there else "line")
    y, frame = top + SIDE + 26, column * wide
    sheet.text(matrix, y - 7, "concat · W_o", SMALL, weight="bold")
    sheet.text(matrix + SIDE, y - 7, f"column {column}: {number(total[column])}", TEXT, "ink", "end", "bold")
    draw_strip(sheet, matrix, y, total, wide, scale, "ink")
    names = {0: "no head added yet", 1: "head 0", h: f"all {h} heads"}
    so_far = names.get(added, f"heads 0 to {added - 1}")
    sheet.text(strips, y - 7, f"sum so far: {so_far}", SMALL, weight="bold")
    draw_strip(sheet, strips, y, running, wide, scale, "ink")
    sheet.text(numbers, y + 14, number(running[column]), TEXT, anchor="end", weight="bold")
    sheet.line(numbers - 50, y - 4, numbers, y - 4, "soft")
    sheet.rect(matrix + frame - 1, top - 2, wide + 2, SIDE + 4, stroke="ink", thick=1.5)
    tops = [(strips, top + (r + 0.5) * block) for r in range(h)]
    for x, first in (*tops, (strips, y), (matrix, y)):
        sheet.rect(x + frame - 1, first - 2, wide + 2, STRIP + 4, stroke="ink", thick=1.5)
    sheet.top = y + STRIP + 4
    sheet.note(" ".join(filter(None, [
        f"The row of “{word}”. Beside W_o stand the {rows} numbers that its rows are multiplied by; "
        f"framed: column {column}. Stronger = larger, grey = negative.", note])))
    names = [f"head {r}" + ("" if r < added else " (not added)") for r in range(h)]
    body = [[name, *map(number, v)] for name, v in zip([*names, "sum so far", "concat · W_o"],
                                                       [*updates, running, total], strict=True)]
    text = [title, f"The row of “{word}”, {d_model} columns; column {column}: "
            f"sum so far {number(running[column])}, concat · W_o {number(total[column])}",
            table(body, ["part", *range(d_model)]), note]
    return Picture(title, "\n".join(filter(None, text)), sheet.finish())


def draw_strip(sheet, x, y, v, wide, scale, edge):
    """A vector as a strip of shades."""
    draw_shades(sheet, x, y, [v], wide, STRIP, scale)
    sheet.rect(x, y, wide * len(v), STRIP, stroke=edge, thick=1.5)


def largest(arrays):
    """The largest size of a number in them, as it is shown."""
    return max(abs(rounded(v)) for M in arrays for v in M.flat)

"""What a layer costs as its text grows, behind an explorer: `work_curves`. Numbers in, a Picture out."""

from helpers import arrays as given
from helpers.figures.cache_sizes import size_text
from helpers.figures.charts import COLOURS, DASHES, Axes, mark, panels, rising, told_facts
from helpers.figures.picture import Picture
from helpers.figures.style import CELL, PAD, SMALL, TEXT, WIDTH
from helpers.figures.svg import Sheet, px
from helpers.figures.words import large, number, table, thousands, width

HIGH, RIGHT = 262, 330                    # px: height of the plot, and the room for the bars beside it
PAIRED = ("scores", "weighted sum", "S, formed whole")            # what grows with n²


def work_curves(n, lengths, curves, overtakes, parts, held, facts, title, note=""):
    """FLOPs of a layer against the length of the text, and, at length n, by part, with the bytes beside them.

    lengths : (m,) rising, curves : {name: (m,)}, the work that grows with n and that with n²,
    overtakes : the length from which on the second is larger, parts : {name: FLOPs at n},
    held : {name: bytes at n}, facts : [(name, value), …], a panel each.
    """
    lengths, facts, note = rising("lengths", lengths), told_facts(facts), given.text("note", note)
    n, overtakes = given.one_of("n", n, lengths), given.number("overtakes", overtakes, positive=True)
    curves, parts, held = (given.named(name, values, "numbers") for name, values in
                           (("curves", curves), ("parts", parts), ("held", held)))
    for name, curve in curves.items():
        for flops in given.shaped(f"curves {name!r}", curve, ("m",), (len(lengths),)):
            given.number("every number in curves", flops, positive=True)
    for value in (*parts.values(), *held.values()):
        given.number("every number in parts and held", value, finite=True)
    sheet = Sheet(title, f"Two lines on logarithmic scales, FLOPs of a layer against n; n = {n} and their "
                         "crossing are marked. Beside them bars for each part of the work and for bytes.",
                  WIDTH)
    panels(sheet, facts)
    top = sheet.top
    draw_curves(sheet, n, lengths, curves, overtakes)
    bottom = sheet.top
    x = WIDTH - PAD - RIGHT
    y = draw_bars(sheet, x, top, f"FLOPs of one layer, n = {thousands(n)}", parts, large, share=True)
    y = draw_bars(sheet, x, y + 14, "bytes of one layer", held, size_text)
    sheet.top = max(bottom, y)
    sheet.note(note)
    total = sum(parts.values()) or 1
    text = [title, table([[name, value] for name, value in facts]),
            table([[name, large(value), percent(value / total)] for name, value in parts.items()],
                  [f"one layer, n = {thousands(n)}", "FLOPs", "share"]),
            table([[name, size_text(value)] for name, value in held.items()], ["held", "bytes"]),
            table([[thousands(at) + (" (now)" if at == n else ""), *map(large, both)]
                   for at, *both in zip(lengths, *curves.values(), strict=True)], ["n", *curves]), note]
    return Picture(title, "\n".join(filter(None, text)), sheet.finish())


def draw_curves(sheet, n, lengths, curves, overtakes):
    """Both curves with the lengths that matter marked."""
    everything = [v for curve in curves.values() for v in curve]
    axes = Axes(sheet, WIDTH - 2 * PAD - RIGHT - 76 - 26, HIGH, (lengths[0], lengths[-1]),
                (min(everything) / 2, max(everything) * 2), "n, tokens", "FLOPs of one layer", True, True)
    for i, curve in enumerate(curves.values()):
        dots = [(axes.x(a), axes.y(b)) for a, b in zip(lengths, curve, strict=True)]
        sheet.path("M" + "L".join(f"{px(a)} {px(b)}" for a, b in dots), stroke=COLOURS[i], thick=2.2,
                   dash=DASHES[i])
        here = lengths.index(n)
        mark(sheet, *dots[here], i)
        sheet.rect(dots[here][0] - 8, dots[here][1] - 8, 16, 16, stroke="ink", thick=2, radius=8)
    if lengths[0] <= overtakes <= lengths[-1]:
        x = axes.x(overtakes)
        sheet.line(x, axes.top, x, axes.top + axes.high, "soft", 1.5, "2 3")
    sheet.line(axes.x(n), axes.top, axes.x(n), axes.top + axes.high, "ink", 1.5, "4 3")
    wide = max(width(name, SMALL) for name in curves) + 46
    x, y = axes.left + axes.wide - wide - 6, axes.top + axes.high - 46    # of the key; no line comes there
    sheet.rect(x, y, wide, 42, "surface")
    for i, name in enumerate(curves):
        middle = y + 13 + i * 19
        sheet.line(x + 6, middle, x + 32, middle, COLOURS[i], 2.2, DASHES[i])
        sheet.text(x + 40, middle + 4, name, SMALL)


def draw_bars(sheet, x, top, head, values, written, share=False):
    """A heading and a bar for each value, its number at its end; returns where they end."""
    sheet.text(x, top + TEXT, head, TEXT, weight="bold")
    side = max(width(name, SMALL) for name in values) + 10
    most, total = max(values.values()) or 1, sum(values.values()) or 1
    for i, (name, value) in enumerate(values.items()):
        y = top + TEXT + 8 + i * 22
        long = max(round(value / most * (RIGHT - side - 132)), 1)
        sheet.text(x, y + 14, name, SMALL)
        sheet.rect(x + side, y + 3, long, 14, COLOURS[name in PAIRED], radius=2)
        sheet.text(x + side + long + 6, y + 14, written(value), CELL)
        if share:
            sheet.text(WIDTH - PAD, y + 14, percent(value / total), CELL, anchor="end")
    return top + TEXT + 8 + len(values) * 22


def percent(share):
    """A share of a whole as percent, with a digit behind the point where it is small, or almost the whole."""
    text = f"{number(100 * share, 0 if 0.1 <= share < 0.99 or share == 1 else 1)} %"
    return {"100.0 %": "over 99.9 %", "0.0 %": "under 0.1 %"}.get(text, text) if share else text

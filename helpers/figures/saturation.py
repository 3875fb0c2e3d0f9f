"""How scores of untrained heads saturate softmax, behind an explorer: `saturation`.

Numbers in, a Picture out.
"""

import math

from helpers import arrays as given
from helpers.figures.charts import COLOURS, DASHES, Axes, level_bars, mark, panels, rising, told_facts
from helpers.figures.picture import Picture
from helpers.figures.style import PAD, ROW, SMALL, TEXT, WIDTH
from helpers.figures.svg import Sheet, px
from helpers.figures.words import number, table, width

HIGH = 150                               # px: of a plot
LEAST = 1e-12                            # what is less is shown as this


def saturation(raw, entering, weights, facts, widths, now, curves, chosen, title, note=""):
    """One query's scores on their way through softmax, and typical rows at every width.

    raw, entering, weights : (n_keys,) of one query: dot products, what softmax gets, what it gives.
    facts : [(name, value), …], a panel each.  widths : d_k rising, now : the one shown.
    curves : {name: {way: (m,)}}, the entropy, then the size of the gradient, for each width and way,
    chosen : the way in force.
    """
    raw = given.array("raw", raw, ("n_keys",))
    n_keys = len(raw)
    if not n_keys:
        raise ValueError("raw must hold at least one number, got none")
    entering, weights = (given.shaped(name, x, ("n_keys",), (n_keys,))
                         for name, x in (("entering", entering), ("weights", weights)))
    facts, widths, note = told_facts(facts), rising("widths", widths), given.text("note", note)
    now = given.one_of("now", now, widths)
    curves = {name: {way: given.shaped(f"curves {name!r}, {way!r},", values, ("m",), (len(widths),))
                     for way, values in given.named(f"curves {name!r}", ways, "numbers").items()}
              for name, ways in given.named("curves", curves, "curves").items()}
    for ways in curves.values():
        chosen = given.one_of("chosen", chosen, ways)
    sheet = Sheet(title, f"Bars for {n_keys} keys: raw score, what softmax gets, weight. Below, two plots "
                         "over d_k, each with a curve for divided scores, one for the others.", WIDTH)
    panels(sheet, facts)
    left, top = sheet.left, sheet.top
    side, gap = 52, 26
    room = (WIDTH - 2 * PAD - side - 2 * gap) / 3
    starts = [left + side + c * (room + gap) for c in range(3)]
    heads = ("raw score q · k", "what softmax gets", "weight")
    for x, head, colour in zip(starts, heads, ("ink", "ink", "A"), strict=True):
        sheet.text(x, top + TEXT, head, TEXT, colour, weight="bold")
    y = top + TEXT + 8
    for j in range(n_keys):
        sheet.text(left, y + j * ROW + 18, f"key {j}", TEXT)
    for x, values, fills in zip(starts, (raw, entering, weights), (None, None, ["A"] * n_keys), strict=True):
        level_bars(sheet, x, y, room, values, fills=fills)
    top = y + n_keys * ROW + 26
    x = left + 76
    for i, way in enumerate(next(iter(curves.values()))):
        mark(sheet, x, top - 4, i)
        sheet.text(x + 12, top, way, SMALL)
        x += width(way, SMALL) + 40
    top += 12
    for i, (name, ways) in enumerate(curves.items()):
        sheet.left, sheet.top = left + i * (WIDTH / 2 - PAD), top
        sheet.text(sheet.left + 8, top + TEXT, name, TEXT, weight="bold")
        sheet.top = top + TEXT + 10
        draw_plot(sheet, widths, now, ways, chosen, ((LEAST / 2, 1) if i else (0, 1.05 * math.log(n_keys))))
    sheet.left = left
    sheet.note(note)
    bars = [[f"key {j}", number(raw[j]), number(entering[j]), number(weights[j])] for j in range(n_keys)]
    text = [title, table([[name, value] for name, value in facts]), table(bars, ["first query", *heads])]
    for name, ways in curves.items():
        rows = [[f"{d}{' (now)' if d == now else ''}", *map(size, values)]
                for d, *values in zip(widths, *ways.values(), strict=True)]
        text += [f"{name}, typical row:", table(rows, ["d_k", *ways])]
    return Picture(title, "\n".join([*text, note]), sheet.finish())


def size(x):
    """A number of any size with two digits that count."""
    if x >= 0.01:
        return number(x, 2 if x >= 0.1 else 3)
    return f"{x:.1e}".replace("-", "−") if x >= LEAST else "less than 1e−12"


def draw_plot(sheet, widths, now, ways, chosen, ys):
    """A curve for each way over the widths, between ys, on a logarithmic scale when these are above 0."""
    axes = Axes(sheet, WIDTH / 2 - PAD - 76 - 22, HIGH, (widths[0], widths[-1]), ys, "d_k", "", logx=True,
                logy=ys[0] > 0, xticks=[d for d in widths if d in (1, 4, 16, 64, 256, 1024)])
    for i, (way, values) in enumerate(ways.items()):
        dots = [(axes.x(d), axes.y(max(v, LEAST))) for d, v in zip(widths, values, strict=True)]
        sheet.path("M" + "L".join(f"{px(a)} {px(b)}" for a, b in dots), stroke=COLOURS[i], thick=2.2,
                   dash=DASHES[i])
        for a, b in dots:
            mark(sheet, a, b, i)
        if way == chosen:
            x, y = dots[widths.index(now)]
            sheet.rect(x - 8, y - 8, 16, 16, stroke="ink", thick=2, radius=8)
    sheet.line(axes.x(now), axes.top, axes.x(now), axes.top + axes.high, "ink", 1.5, "4 3")

"""What a smaller cache costs: `loss_and_cache`. Numbers in, a Picture out."""

from helpers import arrays as given
from helpers.figures.charts import CHART_TEXT, COLOURS, DASHES, MARK, SIDE, Axes, mark, spot
from helpers.figures.picture import Picture
from helpers.figures.style import PAD, SMALL, TEXT, WIDTH
from helpers.figures.svg import Sheet, px
from helpers.figures.words import number, table, width

WIDE, HIGH = 310, 290                    # px: one plot
SAMPLE = 30                              # px: the piece of a line in the legend


def loss_and_cache(kinds, floor, size_name, title, note=""):
    """Loss against the size of the cache, before and after a fine-tune, and the last once more from close by.

    kinds : [(name, [(label, size, loss before, loss after), …])], sizes positive.  floor : (name, loss), a
    level line, size_name : what the sizes are.  Raises TypeError or ValueError for anything else.
    """
    kinds = [(given.text("every name in kinds", name),
              given.records("every kind in kinds", ways, ("label", "size", "loss before", "loss after")))
             for name, ways in given.records("kinds", kinds, ("name", "ways"))]
    for label, size, *losses in (way for _, ways in kinds for way in ways):
        given.text("every label in kinds", label)
        given.number("every size in kinds", size, positive=True)
        for loss in losses:
            given.number("every loss in kinds", loss, finite=True)
    floor, = given.records("floor", [floor], ("name", "loss"))
    given.text("the name in floor", floor[0])
    given.number("the loss in floor", floor[1], finite=True)
    size_name, note = given.text("size_name", size_name), given.text("note", note)
    sheet = Sheet(title, "Left before and after a fine-tune, right after it, closer.", WIDTH)
    curves = [(f"{name}, {when}", [(label, size, losses[k]) for label, size, *losses in ways])
              for name, ways in kinds for k, when in enumerate(("before", "after"))]
    x = sheet.left
    for i, (name, _) in enumerate(curves):
        sheet.line(x, sheet.top + 9, x + SAMPLE, sheet.top + 9, COLOURS[i], 1.8, DASHES[i])
        mark(sheet, x + SAMPLE / 2, sheet.top + 9, i)
        sheet.text(x + SAMPLE + 6, sheet.top + 13, name, SMALL)
        x += SAMPLE + width(name, SMALL) + 24
    sheet.line(x, sheet.top + 9, x + SAMPLE, sheet.top + 9, "ink", 1.5, "2 3")
    sheet.text(x + SAMPLE + 6, sheet.top + 13, f"{floor[0]}: {number(floor[1], 3)}", SMALL)
    top = sheet.top = sheet.top + 34
    after = [(i, curve) for i, curve in enumerate(curves) if i % 2]
    for left, chosen, name in ((PAD, list(enumerate(curves)), "before and after"),
                               (PAD + SIDE + WIDE + 32, after, "after, from close by")):
        sheet.left, sheet.top = left, top
        plot(sheet, chosen, floor[1], name, size_name)
    sheet.left = PAD
    sheet.note(note)
    body = [[label, name, size, number(before, 3), number(after, 3)]
            for name, ways in kinds for label, size, before, after in ways]
    text = table(body, ["", "kind", size_name, "loss before", "loss after"])
    lines = [title, text, f"{floor[0]}: {number(floor[1], 3)}", note]
    return Picture(title, "\n".join(filter(None, lines)), sheet.finish())


def plot(sheet, curves, floor, name, size_name):
    """One plot of the numbered curves [(i, (name, [(label, size, loss)]))]."""
    sheet.text(sheet.left + SIDE, sheet.top, name, TEXT, weight="bold")
    sheet.top += 10
    losses = [loss for _, (_, ways) in curves for _, _, loss in ways] + [floor]
    sizes = sorted({size for _, (_, ways) in curves for _, size, _ in ways})
    room = (max(losses) - min(losses)) * 0.08
    axes = Axes(sheet, WIDE, HIGH, (sizes[0] / 1.2, sizes[-1] * 1.2),
                (min(losses) - room, max(losses) + room), size_name, "loss, nats a word", logx=True,
                xticks=sizes)
    y = axes.y(floor)
    sheet.line(axes.left, y, axes.left + WIDE, y, "ink", 1.5, "2 3")
    taken, todo = [(axes.left, y - 2, axes.left + WIDE, y + 2)], []
    for i, (_, ways) in curves:
        dots = [(axes.x(size), axes.y(loss), label) for label, size, loss in ways]
        way = "M" + "L".join(f"{px(a)} {px(b)}" for a, b, _ in dots)
        sheet.path(way, stroke=COLOURS[i], thick=1.8, dash=DASHES[i])
        for a, b, label in dots:
            mark(sheet, a, b, i)
            taken.append((a - MARK - 1, b - MARK - 1, a + MARK + 1, b + MARK + 1))
            if len(curves) == 2 or not i % 2:               # where both are drawn, those before are named
                todo.append((a, b, label))
        taken += [box for (a, b, _), (c, d, _) in zip(dots, dots[1:], strict=False)
                  for box in along(a, b, c, d)]
    for a, b, label in todo:
        taken.append(spot(a, b, width(label, CHART_TEXT), taken, axes))
        sheet.text(taken[-1][0], taken[-1][3] - 3, label, CHART_TEXT)


def along(a, b, c, d, parts=8):
    """Small boxes on the way from (a, b) to (c, d), for labels to keep clear of."""
    for k in range(1, parts):
        x, y = a + (c - a) * k / parts, b + (d - b) * k / parts
        yield x - 3, y - 3, x + 3, y + 3

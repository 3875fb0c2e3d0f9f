"""A head's value map cut to rank r, behind an explorer: `value_rank`. Arrays in, a Picture out."""

from helpers import arrays as given
from helpers.figures.charts import COLOURS, DASHES, Axes, mark, panels
from helpers.figures.picture import Picture
from helpers.figures.style import PAD, SMALL, TEXT, WIDTH
from helpers.figures.svg import Sheet, px
from helpers.figures.words import number, rounded, table

BARS, HIGH = 300, 230                     # px: room for the singular values, and the height of both plots


def value_rank(r, strengths, errors, counts, curves, title, note=""):
    """What is kept at rank r, and what the model loses at every rank.

    strengths : (d_v,) singular values, errors : (d_v + 1,) relative errors at rank 0 … d_v, counts :
    (d_v + 1,) numbers in the two thin matrices, curves : {name: (d_v + 1,)}, losses.
    """
    strengths = given.array("strengths", strengths, ("d_v",))
    d_v = len(strengths)
    if not d_v:
        raise ValueError("strengths must hold at least one number, got none")
    r, ranks = given.count("r", r, most=d_v), (("d_v + 1",), (d_v + 1,))
    errors = given.shaped("errors", errors, *ranks)
    counts = [given.count("every one of counts", c) for c in given.listed("counts", counts, "whole numbers")]
    given.shaped("counts", counts, *ranks)
    curves = {name: given.shaped(f"curves {name!r}", curve, *ranks)
              for name, curve in given.named("curves", curves, "losses").items()}
    note = given.text("note", note)
    sheet = Sheet(title, f"Left {d_v} bars, the first {r} filled. Right the loss at each rank, two curves, "
                         f"a line at rank {r}.", WIDTH)
    saved = 1 - counts[r] / counts[d_v]
    facts = [("error of the value map", number(errors[r]), "of its size"),
             ("numbers in its two matrices", str(counts[r]), f"of {counts[d_v]}: {saved:.0%} saved"),
             *((f"loss, {name}", number(curve[r], 3), f"uncut {number(curve[d_v], 3)}")
               for name, curve in curves.items())]
    panels(sheet, facts)
    top, left = sheet.top + TEXT, sheet.left
    sheet.text(left, top, "singular values of W_v W_o", TEXT, weight="bold")
    slot, base = BARS / d_v, top + 20 + HIGH
    for k, strength in enumerate(strengths):
        tall = max(round(rounded(strength) / (rounded(strengths[0]) or 1) * HIGH), 1)
        x, here = left + k * slot, k < r
        sheet.rect(x + 3, base - tall, slot - 6, tall, "V" if here else "none", 1, "V" if here else "soft", 1)
    sheet.texts([(left + (k + 0.5) * slot, base + 16, k + 1) for k in range(d_v)], SMALL, "soft")
    sheet.line(left, base, left + BARS, base, "soft")
    if r < d_v:
        sheet.line(left + r * slot, top + 14, left + r * slot, base, "ink", 1.5, "4 3")
    kept = f"kept: {r}" if r else "all cut"
    sheet.text(left + BARS, top + 34, f"{kept}, cut: {d_v - r}" if 0 < r < d_v else
               f"all {d_v} kept" if r else kept, SMALL, "soft", "end")
    x = left + BARS + 24
    sheet.text(x, top, "loss of the model, nats a word", TEXT, weight="bold")
    sheet.left, sheet.top = x - 24, top + 16
    losses = [v for curve in curves.values() for v in curve]
    room = (max(losses) - min(losses)) * 0.08 or 0.1
    axes = Axes(sheet, WIDTH - PAD - sheet.left - 76 - 8, HIGH, (0, d_v),
                (min(losses) - room, max(losses) + room), "rank r", "", xticks=range(d_v + 1))
    sheet.line(axes.x(r), axes.top, axes.x(r), axes.top + HIGH, "ink", 1.5, "4 3")
    for i, (name, curve) in enumerate(curves.items()):
        dots = [(axes.x(k), axes.y(v)) for k, v in enumerate(curve)]
        sheet.path("M" + "L".join(f"{px(a)} {px(b)}" for a, b in dots), stroke=COLOURS[i], thick=2.2,
                   dash=DASHES[i])
        for a, b in dots:
            mark(sheet, a, b, i)
        sheet.rect(axes.x(r) - 8, axes.y(curve[r]) - 8, 16, 16, stroke="ink", thick=2, radius=8)
        y = axes.top + 16 + i * 20
        mark(sheet, axes.left + axes.wide - 150, y - 4, i)
        sheet.text(axes.left + axes.wide - 138, y, name, TEXT)
    sheet.left = PAD
    if note:
        sheet.note(note)
    body = [[f"{k}{' (chosen)' if k == r else ''}", number(strengths[k - 1]) if k else "", number(errors[k]),
             counts[k], *(number(curve[k], 3) for curve in curves.values())] for k in range(d_v + 1)]
    header = ["rank r", "singular value r", "error", "numbers", *(f"loss, {name}" for name in curves)]
    text = [title, table(body, header), note]
    return Picture(title, "\n".join(filter(None, text)), sheet.finish())

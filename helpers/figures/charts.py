"""Charts: `scatter`, `lines`, `bars`. Arrays in, a Picture out.

They are drawn as SVG by hand and not through matplotlib: a PNG reaches JupyterLab without alt text, and
nbval does not compare it, so that any picture would pass. Groups and curves differ in mark or dash as well
as in colour.
"""

import math

import numpy as np

from helpers import arrays as given
from helpers.figures.picture import Picture
from helpers.figures.style import PAD, ROW, SMALL, TEXT
from helpers.figures.svg import Sheet, px
from helpers.figures.words import (
    MOST_DIGITS,
    SUPERSCRIPTS,
    number,
    numbered,
    rounded,
    short_number,
    shorten,
    table,
    thousands,
    width,
)

COLOURS = ("head0", "head1", "head2", "head3", "soft", "ink")     # no role has them
DASHES = (None, "7 4", "2 3", "10 3 2 3", "14 5", "1 5")
MARK = 4.5                                   # half the size of a mark
CHART_TEXT, LABEL_MOST = 12, 140             # px: labels in a plot
SAMPLE, MEET = 36, 3                         # px: for a piece of a curve, where two end as close as this
SIDE = 76                                    # left of a plot area: room for ticks and the name of the axis


def scatter(points, labels, title, groups=None, xlabel="", ylabel=""):
    """Labelled points in the plane, one px worth the same on both axes: distances and angles are true.

    points : (n, 2), labels : n words, groups : n names or None.  A word that comes twice gets a small number,
    a full stop quotation marks: alone it would pass for a speck.
    Raises TypeError or ValueError when they do not fit.
    """
    points = given.array("points", points, ("n", "2")).astype(float)
    if points.shape[1] != 2 or not len(points):
        raise ValueError(f"points must have shape (n, 2), n at least 1; got {points.shape}")
    labels = numbered(label if any(map(str.isalnum, label)) else f"“{label}”"
                      for label in given.words("labels", labels, len(points)))
    groups = groups if groups is None else given.words("groups", groups, len(points))
    xlabel, ylabel = given.text("xlabel", xlabel), given.text("ylabel", ylabel)
    names = list(dict.fromkeys(groups or []))
    which = [names.index(g) for g in groups] if names else [0] * len(points)
    key = max(width(name, TEXT) for name in names) + 40 if names else 0
    wide, high = 600, 420
    sheet = Sheet(title, f"{len(points)} labelled points.", SIDE + wide + key + 2 * PAD)
    least, most = points.min(axis=0), points.max(axis=0)
    scale = max((most - least) / (wide - 80, high - 50)) or 1.0  # what one px is worth
    half = np.array([wide, high]) / 2 * scale
    (left, bottom), (right, top) = (least + most) / 2 - half, (least + most) / 2 + half
    axes = Axes(sheet, wide, high, (left, right), (bottom, top), xlabel, ylabel)
    where = [(axes.x(x), axes.y(y)) for x, y in points]
    for (x, y), g in zip(where, which, strict=True):
        mark(sheet, x, y, g)
    taken = [(x - MARK - 1, y - MARK - 1, x + MARK + 1, y + MARK + 1) for x, y in where]
    for (x, y), label in zip(where, labels, strict=True):
        label = shorten(label, LABEL_MOST, CHART_TEXT)
        taken.append(spot(x, y, width(label, CHART_TEXT), taken, axes))
        sheet.text(taken[-1][0], taken[-1][3] - 3, label, CHART_TEXT)
    for g, name in enumerate(names):
        mark(sheet, axes.left + wide + 16, axes.top + 12 + g * 22, g)
        sheet.text(axes.left + wide + 28, axes.top + 16 + g * 22, name)
    rows = [[label, *([names[g]] if names else []), number(x), number(y)]
            for (x, y), label, g in zip(points, labels, which, strict=True)]
    header = ["", *(["group"] if names else []), xlabel or "x", ylabel or "y"]
    return Picture(title, f"{title}\n{table(rows, header)}", sheet.finish())


def told_number(y):
    """A number of a curve, in words: a whole one as it is, another in three digits that count."""
    whole = float(y).is_integer() and abs(y) < 1e6
    return thousands(int(y)).replace("-", "−") if whole else short_number(f"{y:.3g}")


def lines(x, series, title, xlabel, ylabel, logx=False, logy=False):
    """Curves over the same x, each with its name at its end; where ends meet, a piece of the curve before it.

    x : (n,), rising, series : {name: (n,)}.  Raises TypeError or ValueError when lengths differ, for NaN and
    infinity, and when a logarithm is asked of what is not positive.
    """
    x = given.array("x", x, ("n",)).astype(float)
    if not len(x) or (np.diff(x) <= 0).any():
        raise ValueError(f"x must be at least one number, rising, got {given.came(x)}")
    series = {name: given.array(f"series {name!r}", y, ("n",)).astype(float)
              for name, y in given.named("series", series, "curves").items()}
    for name, y in series.items():
        given.same_size("n", ("x", x), (f"series {name!r}", y))
    xlabel, ylabel = given.text("xlabel", xlabel), given.text("ylabel", ylabel)
    everything = np.concatenate(list(series.values()))
    for asked, values, axis in ((logx, x, "x"), (logy, everything, "y")):
        if given.flag(f"log{axis}", asked) and values.min() <= 0:
            raise ValueError(f"with log{axis} all numbers must be positive, got {values.min():g}")
    bottom, top = everything.min(), everything.max()
    if logy:
        bottom, top = bottom / 1.25, top * 1.25
    else:
        room = (top - bottom) * 0.06 or abs(top) * 0.1 or 1.0
        bottom, top = (0.0 if 0 <= bottom < 0.4 * top else bottom - room), top + room
    key = max(width(name, TEXT) for name in series) + 16 if len(series) > 1 else PAD
    key, wide, high = min(key, 240), 540, 300
    last = sorted(share(y[-1], bottom, top, logy) * high for y in series.values())
    sample = SAMPLE if any(b - a < MEET for a, b in zip(last, last[1:], strict=False)) else 0
    sheet = Sheet(title, f"Curves over {xlabel or 'x'}: {', '.join(series)}.",
                  SIDE + wide + sample + key + 2 * PAD)
    axes = Axes(sheet, wide, high, (x[0], x[-1]), (bottom, top), xlabel, ylabel, logx, logy,
                xticks=x if len(x) <= (8 if logx else 12) else None)
    ends = []
    for i, (name, y) in enumerate(series.items()):
        dots = [(axes.x(a), axes.y(b)) for a, b in zip(x, y, strict=True)]
        way = "M" + "L".join(f"{px(a)} {px(b)}" for a, b in dots)
        sheet.path(way, stroke=COLOURS[i % 6], thick=2.2, dash=DASHES[i % 6])
        if len(x) <= 16:
            for a, b in dots:
                mark(sheet, a, b, i)
        ends.append([dots[-1][1], name, i])
    if len(series) > 1:
        left = axes.left + wide + 12
        for y, name, i in spread_out(sorted(ends), 17, axes.top, axes.top + axes.high):
            if sample:
                sheet.line(left, y, left + sample - 6, y, COLOURS[i % 6], 2.2, DASHES[i % 6])
            sheet.text(left + sample, y + 4, shorten(name, key, TEXT))
    at = range(len(x)) if len(x) <= 12 else sorted({round(i * (len(x) - 1) / 8) for i in range(9)})
    rows = [[short_number(x[i]), *(told_number(y[i]) for y in series.values())] for i in at]
    return Picture(title, f"{title}\n{table(rows, [xlabel or 'x', *series])}", sheet.finish())


def bars(labels, values, title, ylabel="", digits=2):
    """A level bar for each label, its number at the end; ylabel says what is measured.

    labels : n words, values : (n,).  Raises TypeError or ValueError when the lengths differ, and for NaN and
    infinity.
    """
    values, labels = given.array("values", values, ("n",)).astype(float), given.words("labels", labels)
    if not len(values) or len(labels) != len(values):
        raise ValueError("labels and values must have the same length, at least 1; "
                         f"got {len(labels)} labels, values {values.shape}")
    digits, ylabel = given.count("digits", digits, most=MOST_DIGITS), given.text("ylabel", ylabel)
    sheet = Sheet(title, f"{len(values)} bars.", 640)
    if ylabel:
        sheet.top -= 6
        sheet.note(ylabel)
        sheet.top += 8
    left = sheet.left + max(min(width(label, TEXT), 220) for label in labels) + 10
    level_bars(sheet, left, sheet.top, sheet.width - PAD - left, values, digits)
    for i, label in enumerate(labels):
        sheet.text(left - 10, sheet.top + i * ROW + 18, shorten(label, 220, TEXT), anchor="end")
    sheet.top += len(values) * ROW
    rows = [[label, number(v, digits)] for label, v in zip(labels, values, strict=True)]
    return Picture(title, "\n".join(filter(None, [title, ylabel, table(rows)])), sheet.finish())


def level_bars(sheet, x, y, room, values, digits=2, fills=None, inks=None, words=None, row=ROW):
    """Level bars from a common zero within `room` px, each with its number at its end.

    fills, inks : a colour for each bar and its number; words : what is written in place of the number,
    row : the height of a line.
    """
    shown = [rounded(v, digits) for v in values]
    words = words or [number(v, digits) for v in shown]
    label = max(width(word, TEXT) for word in words) + 8
    largest_up, largest_down = max(0, *shown, 0), max(0, *(-v for v in shown), 0)
    unit = (room - label * (2 if largest_down else 1)) / ((largest_up + largest_down) or 1)
    inset = 5 if row >= ROW else 3
    zero = x + (label + largest_down * unit if largest_down else 0)
    for i, v in enumerate(shown):
        long = round(abs(v) * unit)
        sheet.rect(zero if v >= 0 else zero - long, y + i * row + inset, long, row - 2 * inset,
                   fills[i] if fills else "positive" if v >= 0 else "negative", radius=2)
        sheet.text(zero + long + 6 if v >= 0 else zero - long - 6, y + (i + 0.5) * row + 5, words[i],
                   colour=inks[i] if inks else "ink", anchor="start" if v >= 0 else "end")
    sheet.line(zero, y, zero, y + len(shown) * row, "soft")


class Axes:
    """A plot area with ticks, grid and labels, drawn on the sheet at once, and the way from numbers to px."""

    def __init__(self, sheet, wide, high, xs, ys, xlabel, ylabel, logx=False, logy=False, xticks=None):
        self.logx, self.logy, self.xs, self.ys = logx, logy, xs, ys
        yticks = ticks(*ys, logy)
        xticks = ticks(*xs, logx) if xticks is None else list(xticks)
        self.left, self.top, self.wide, self.high = sheet.left + SIDE, sheet.top + 4, wide, high
        if not logx and self.crowded(xticks):
            xticks = ticks(*xs, logx)
        for t in yticks:
            sheet.line(self.left, self.y(t), self.left + self.wide, self.y(t), "line", 0.6)
        for t in xticks:
            sheet.line(self.x(t), self.top, self.x(t), self.top + high, "line", 0.6)
        y_text, x_text = tick_text(yticks, logy), tick_text(xticks, logx)
        sheet.texts([(self.left - 6, self.y(t) + 4, y_text(t)) for t in yticks], SMALL, "soft", "end")
        sheet.texts([(self.x(t), self.top + high + 16, x_text(t)) for t in xticks], SMALL, "soft")
        sheet.path(f"M{px(self.left)} {px(self.top)}v{px(high)}h{px(self.wide)}", stroke="soft")
        if ylabel:
            middle = self.top + high / 2
            sheet.text(sheet.left + 10, middle, ylabel, CHART_TEXT, "soft", "middle", turn=-90)
        if xlabel:
            sheet.text(self.left + self.wide / 2, self.top + high + 34, xlabel, CHART_TEXT, "soft", "middle")
        sheet.top = self.top + high + (40 if xlabel else 20)

    def crowded(self, xticks):
        gaps = zip(xticks, xticks[1:], strict=False)
        return any(self.x(b) - self.x(a) < width(short_number(b), SMALL) for a, b in gaps)

    def x(self, value):
        return half_px(self.left + share(value, *self.xs, self.logx) * self.wide)

    def y(self, value):
        return half_px(self.top + (1 - share(value, *self.ys, self.logy)) * self.high)


def share(value, low, high, log):
    """How far `value` is on the way from low to high, 0 … 1."""
    if log:
        value, low, high = math.log(value), math.log(low), math.log(high)
    return (value - low) / (high - low) if high > low else 0.5


def half_px(x):
    """To the nearest half px: the last bits of different machines disappear."""
    return round(float(x) * 2) / 2


def ticks(low, high, log=False):
    """About five round numbers between low and high; powers of ten for a logarithmic axis that spans some."""
    if not high > low:
        return [low]
    if log:
        first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
        powers = [10.0**e for e in range(first, last + 1, max(1, (last - first) // 6))]
        if len(powers) > 1:
            return powers
    raw = (high - low) / 5
    size = 10 ** math.floor(math.log10(raw))
    by = next(m * size for m in (1, 2, 2.5, 5, 10) if m * size >= raw * (1 - 1e-9))
    count = range(math.ceil(low / by - 1e-9), math.floor(high / by + 1e-9) + 1)
    return [i * by for i in count if not log or i > 0]


def tick_text(values, log):
    """The function that writes the ticks of an axis: powers of ten where a logarithmic axis goes far."""
    exponents = [math.log10(v) for v in values] if log else [0]
    if max(map(abs, exponents)) < 3.5 or any(abs(e - round(e)) > 1e-9 for e in exponents):
        return short_number
    return lambda v: f"10{str(round(math.log10(v))).translate(SUPERSCRIPTS)}"


def mark(sheet, x, y, kind):
    """A small mark: disc, square, diamond, triangle, ring or cross, in the colour that goes with it."""
    colour, r = COLOURS[kind % 6], MARK
    shape = (f"M{px(x - r)} {px(y)}a{r} {r} 0 1 0 {2 * r} 0a{r} {r} 0 1 0 {-2 * r} 0z",
             f"M{px(x - r)} {px(y - r)}h{2 * r}v{2 * r}h{-2 * r}z",
             f"M{px(x)} {px(y - r - 1)}l{r + 1} {r + 1}l{-r - 1} {r + 1}l{-r - 1} {-r - 1}z",
             f"M{px(x)} {px(y - r - 1)}l{r + 0.5} {2 * r}h{-2 * r - 1}z",
             f"M{px(x - r)} {px(y)}a{r} {r} 0 1 0 {2 * r} 0a{r} {r} 0 1 0 {-2 * r} 0z",
             f"M{px(x - r)} {px(y - r)}l{2 * r} {2 * r}m0 {-2 * r}l{-2 * r} {2 * r}")[kind % 6]
    if kind % 6 < 4:
        sheet.path(shape, colour)
    else:
        sheet.path(shape, stroke=colour, thick=2)


def told_facts(facts):
    """[(name, value), …], both strings; TypeError or ValueError for anything else."""
    return [tuple(given.text("every part of facts", part) for part in fact)
            for fact in given.records("facts", facts, ("name", "value"))]


def rising(name, values):
    """Whole numbers from 1 up, each above the one before; TypeError or ValueError for anything else."""
    found = [given.count(f"every number in {name}", v, least=1)
             for v in given.listed(name, values, "whole numbers")]
    if not found or found != sorted(set(found)):
        raise ValueError(f"{name} must be at least one number, rising, got {given.came(found)}")
    return found


def panels(sheet, facts):
    """Numbers that matter, in a row of boxes: facts are (name, value) or (name, value, small print)."""
    gap = 8
    wide = (sheet.width - 2 * PAD + gap) / len(facts)
    for i, (name, value, *beside) in enumerate(facts):
        x = sheet.left + i * wide
        sheet.rect(x, sheet.top, wide - gap, 50, "panel", radius=6)
        sheet.text(x + 10, sheet.top + 18, name, SMALL, "soft")
        sheet.text(x + 10, sheet.top + 40, value, TEXT + 2, weight="bold")
        for words in beside:
            sheet.text(x + 18 + width(value, TEXT + 2), sheet.top + 40, words, SMALL, "soft")
    sheet.top += 64


def spot(x, y, long, taken, axes):
    """A box for a label near (x, y), as (left, top, right, bottom), that covers as little as possible."""
    best = None
    for dx, dy in ((7, -6), (-7 - long, -6), (-long / 2, -20), (-long / 2, 8), (6, -18), (6, 6),
                   (-6 - long, -18), (-6 - long, 6), (16, -6), (-16 - long, -6)):
        box = (half_px(x + dx), half_px(y + dy), half_px(x + dx) + long, half_px(y + dy) + 13)
        covered = sum(overlap(box[0], box[2], x1, x2) * overlap(box[1], box[3], y1, y2)
                      for x1, y1, x2, y2 in taken)
        inside = (axes.left <= box[0] and box[2] <= axes.left + axes.wide
                  and axes.top <= box[1] and box[3] <= axes.top + axes.high)
        covered += 0 if inside else 100
        if best is None or covered < best[0]:
            best = (covered, box)
        if not covered:
            break
    return best[1]


def overlap(a, b, c, d):
    """How much of the stretch from a to b lies between c and d."""
    return max(0, min(b, d) - max(a, c))


def spread_out(ends, gap, top, bottom):
    """Labels at [y, name, …], rising in y, moved apart to `gap` px and kept between top and bottom."""
    for i in range(1, len(ends)):
        ends[i][0] = max(ends[i][0], ends[i - 1][0] + gap)
    limit = bottom
    for end in reversed(ends):
        end[0] = min(end[0], limit)
        limit = end[0] - gap
    return ends

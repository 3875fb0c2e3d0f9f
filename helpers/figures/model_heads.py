"""All heads of a large model on one text, behind an explorer: `model_heads`. Arrays in, a Picture out."""

import unicodedata

import numpy as np

from helpers import arrays as given
from helpers.figures.arrays import cell_size, draw_cells, draw_shades, label_room, write_columns
from helpers.figures.head_grid import looked_at, without
from helpers.figures.heads import columns_in, largest, weights_in, window, windowed
from helpers.figures.picture import Picture
from helpers.figures.style import PAD, ROW, SMALL, TEXT, WIDTH
from helpers.figures.svg import Sheet, px
from helpers.figures.words import number, rounded, shorten, table, width

SIDE, WIDE, HIGH = 20, 23, 14                # px: room for the numbers of heads, and a cell of the map
BEST = 6                                     # heads named beside the map
GAP = 8                                      # px: between two small patterns
WORDS = 230                                  # px: room for the tokens expected next
SHOWN_AS = {" ": "␣", "\n": "⏎", "\t": "⇥"}


def visible(token):
    """A token as it is shown: spaces and what cannot be seen get a sign."""
    return "".join(SHOWN_AS.get(c, c if c.isprintable() else f"U+{ord(c):04X}") for c in token) or "(nothing)"


def isolated(name):
    """A name for use within a sentence: one written from right to left would turn round what follows it."""
    from_right = any(unicodedata.bidirectional(c) in ("R", "AL", "AN") for c in name)
    return f"\u2068{name}\u2069" if from_right else name      # first strong isolate … pop


def model_heads(names, patterns, scores, score, meaning, n_asked, chosen, query, off, predictions, title):
    """A map of a score for all heads, the patterns of one layer, and one head large with its numbers.

    names : n tokens, told apart, patterns : A (layers, h, n, n), scores : (layers, h), 0 … 1 or NaN,
    score : its name, meaning : what it is, n_asked : of how many queries it is the mean,
    chosen : (layer, head) of the large one, query : position,
    off : set of (layer, head) switched off, predictions : [(token, with all heads, without those off), …].
    """
    names = given.words("names", names)
    patterns, chosen, off, predictions = looked_at(names, patterns, chosen, off, predictions)
    (layer, head), (n_layers, n_heads) = chosen, patterns.shape[:2]
    scores = given.shaped("scores", scores, ("layers", "h"), (n_layers, n_heads), holds=None)
    score, meaning = given.text("score", score), given.text("meaning", meaning)
    n_asked, query = given.count("n_asked", n_asked), given.position("query", query, len(names))
    ranked = [divmod(int(at), n_heads) for at in np.argsort(-scores, axis=None, kind="stable")]
    ranked = [] if np.isnan(scores).any() else ranked
    first, end = window(len(names), query)
    large, columns = weights_in(patterns[layer][head], first, end), columns_in(names, first, end)
    part = windowed(len(names), first, end, summed=True)
    mean = f"a mean of {n_asked} quer{'y' if n_asked == 1 else 'ies'}" if n_asked else "this text has none"
    note = f"{score.capitalize()}: {meaning}; {mean}."
    sheet = Sheet(title, f"A map of {n_layers} layers by {n_heads} heads, {n_heads} small heat maps, and one "
                         "large with its numbers; bars for the tokens expected next.", WIDTH)
    draw_map(sheet, scores, score, ranked, chosen, off)
    draw_layer(sheet, patterns[layer], layer, chosen, query, off)
    top = sheet.top
    gone = chosen in off
    sheet.text(sheet.left, top + TEXT, f"{layer}.{head}: layer {layer}, head {head}"
               + (", switched off" if gone else ""), TEXT, "soft" if gone else "A", weight="bold")
    sheet.top = top + TEXT + 9
    side = label_room(names[first:end])
    room = WIDTH - 2 * PAD - side - WORDS - 22
    cell, readable = cell_size([large], 2, room, columns)
    write_columns(sheet, sheet.left + side, columns, cell)
    draw_cells(sheet, sheet.left + side, large, cell, "A", 2, readable, names[first:end],
               [(query - first, None)], outline="Q")
    bottom = draw_predictions(sheet, WIDTH - PAD - WORDS, top, predictions, off)
    sheet.top = max(sheet.top, bottom) + 4
    parts = "� is part of a character. " * any("\ufffd" in name for name in names)
    sheet.note(f"{note} {parts}Rows ask, columns are read; the query's row is outlined. {part}".strip())
    rows = [[f"layer {r}", *(told(v) for v in row)] for r, row in enumerate(scores)]
    reads = [[f"{layer}.{s}", names[largest(A[query])], number(max(A[query])),
              "off" if (layer, s) in off else "on"] for s, A in enumerate(patterns[layer])]
    best = ", ".join(f"{r}.{s} {told(scores[r, s])}" for r, s in ranked[:BEST])
    text = [title, note + f" Highest: {best}." * bool(ranked),
            table(rows, ["", *(f"head {s}" for s in range(n_heads))]),
            table(reads, [f"“{isolated(names[query])}” reads most", "token", "weight", "state"]),
            f"layer {layer} head {head}:",
            table([[name + (" (query)" if first + i == query else ""), *map(number, row)]
                   for i, (name, row) in enumerate(zip(names[first:end], large, strict=True))],
                  ["", *columns]),
            table([[token, number(before), *([number(after)] if off else [])]
                   for token, before, after in predictions],
                  ["next token", "all heads", *([without(off)] if off else [])]), parts.strip(), part]
    return Picture(title, "\n".join(filter(None, text)), sheet.finish())


def draw_map(sheet, scores, score, ranked, chosen, off):
    """The map of scores, a column for each layer; beside it the heads that come first."""
    n_layers, n_heads = scores.shape
    sheet.text(sheet.left, sheet.top + TEXT, score, TEXT, "A", weight="bold")
    words = "of every head: the fuller, the higher; a column for each layer, a row for each head"
    sheet.text(sheet.left + width(score, TEXT) + 16, sheet.top + TEXT, words, SMALL, "soft")
    if ranked:
        sheet.text(WIDTH - PAD - 78, sheet.top + TEXT, "highest", TEXT, weight="bold")
    x, y = sheet.left + SIDE, sheet.top + TEXT + 9
    across, high = WIDE * n_layers, HIGH * n_heads
    draw_shades(sheet, x, y, scores.T, WIDE, HIGH, 1, "A")
    level = [f"M{x} {y + s * HIGH}h{across}" for s in range(1, n_heads)]
    upright = [f"M{x + r * WIDE} {y}v{high}" for r in range(1, n_layers)]
    sheet.path("".join(level + upright), stroke="line", thick=0.5)
    sheet.rect(x, y, across, high, stroke="soft")
    for r, s in sorted(off):
        left, top = x + r * WIDE, y + s * HIGH
        cross(sheet, left, top, WIDE, HIGH)
    layer, head = chosen
    sheet.rect(x + layer * WIDE, y, WIDE, high, stroke="ink")
    sheet.rect(x + layer * WIDE, y + head * HIGH, WIDE, HIGH, stroke="ink", thick=2.5)
    sheet.texts([(x + (r + 0.5) * WIDE, y + high + SMALL + 3, r) for r in range(n_layers) if r != layer],
                SMALL, "soft")
    sheet.text(x + (layer + 0.5) * WIDE, y + high + SMALL + 3, layer, SMALL, anchor="middle", weight="bold")
    sheet.texts([(x - 6, y + (s + 0.5) * HIGH + 4, s) for s in range(n_heads)], SMALL, "soft", "end")
    for i, (r, s) in enumerate(ranked[:BEST]):
        weight = "bold" if (r, s) == chosen else None
        sheet.text(WIDTH - PAD - 78, y + 12 + i * 19, f"{r}.{s}", weight=weight)
        sheet.text(WIDTH - PAD, y + 12 + i * 19, number(scores[r, s]), anchor="end", weight=weight)
    sheet.top = y + max(high + SMALL + 16, (BEST * 19 + 8) if ranked else 0)


def draw_layer(sheet, patterns, layer, chosen, query, off):
    """The patterns of one layer side by side, each with its name, the query's row marked."""
    n_heads, n = len(patterns), patterns.shape[-1]
    size = min((WIDTH - 2 * PAD + GAP) // n_heads - GAP, 90)
    top = sheet.top + SMALL + 9
    for s, A in enumerate(patterns):
        x, here, gone = sheet.left + s * (size + GAP), (layer, s) == chosen, (layer, s) in off
        sheet.text(x, top - 5, f"{layer}.{s}" + (" off" if gone else ""), SMALL, "soft" if gone else "ink",
                   weight="bold" if here else None)
        draw_shades(sheet, x, top, A, size / n, size / n, 1, "line" if gone else "A")
        sheet.rect(x, top + query * size / n, size, size / n, stroke="Q", thick=0.75)
        sheet.rect(x, top, size, size, stroke="ink" if here else "line", thick=2.5 if here else 1)
        if gone:
            cross(sheet, x, top, size, size)
    sheet.top = top + size + 14


def draw_predictions(sheet, x, top, predictions, off):
    """For each token two bars, with all heads above, without those switched off below, and both numbers.

    The longest bar fills the room: what is likeliest has a small share in many texts.
    """
    sheet.text(x, top + TEXT, "the next token", TEXT, weight="bold")
    top += TEXT + 7
    words = f"all heads → {without(off)}" if off else "all heads on"
    sheet.text(x, top + SMALL, shorten(words, WORDS, SMALL), SMALL, "soft")
    top += SMALL + 8
    side, right = 84, 94 if off else 40
    largest_share = max(rounded(p) for _, *both in predictions for p in both)
    unit = (WORDS - side - right) / (largest_share or 1)
    for i, (token, before, after) in enumerate(predictions):
        y = top + i * ROW
        sheet.text(x, y + 18, shorten(token, side - 8, TEXT))
        if off:
            sheet.rect(x + side, y + 4, round(rounded(before) * unit), 9, "negative")
        sheet.rect(x + side, y + (13 if off else 8), round(rounded(after) * unit), 9, "positive")
        words = f"{number(before)} → {number(after)}" if off else number(after)
        sheet.text(x + WORDS, y + 18, words, anchor="end")
    sheet.line(x + side, top, x + side, top + len(predictions) * ROW, "soft")
    return top + len(predictions) * ROW


def cross(sheet, x, y, wide, high):
    """A cross over what is switched off."""
    sheet.path(f"M{px(x)} {px(y)}l{px(wide)} {px(high)}M{px(x)} {px(y + high)}l{px(wide)} -{px(high)}",
               stroke="soft", thick=1.5)


def told(score):
    """A score as it is shown, a dash where there is none."""
    return "–" if np.isnan(score) else number(score)

"""All heads of a model on one text, behind an explorer: `head_grid`. Arrays in, a Picture out."""

from helpers import arrays as given
from helpers.figures.arrays import cell_size, draw_cells, draw_shades, label_room, write_columns
from helpers.figures.heads import columns_in, largest, weights_in, window, windowed
from helpers.figures.picture import Picture
from helpers.figures.style import PAD, ROW, SMALL, TEXT, WIDTH
from helpers.figures.svg import Sheet
from helpers.figures.words import number, numbered, rounded, shorten, table

SMALL_SIDE, GAP = 60, 8                      # px: a small pattern, and between two of them


def head_grid(tokens, patterns, chosen, off, predictions, title):
    """Every head's pattern small, one of them large with its numbers, and the words expected next.

    tokens : n words, patterns : a list of A (h, n, n), one a layer, chosen : (layer, head) of the large one,
    whose last dozen rows are shown, with the sum of what they give to earlier words,
    off : set of (layer, head) switched off, predictions : [(word, with all heads, without those off), …].
    """
    words = numbered(given.words("tokens", tokens))
    patterns, chosen, off, predictions = looked_at(words, patterns, chosen, off, predictions)
    (layer, head), n_heads = chosen, patterns.shape[1]
    left_room = n_heads * (SMALL_SIDE + GAP) - GAP
    side = label_room(words)
    first, end = window(len(words), len(words) - 1)
    large = weights_in(patterns[layer][head], first, end)
    columns = columns_in(words, first, end)
    cell, readable = cell_size([large], 2, WIDTH - 2 * PAD - left_room - 22 - side, columns)
    heads = [(r, s) for r in range(len(patterns)) for s in range(n_heads)]
    sheet = Sheet(title, f"{len(heads)} small heat maps, layer {layer} head {head} also large with its "
                         "numbers, and bars for the words expected next.", WIDTH)
    top = sheet.top
    for r, s in heads:
        x, y = sheet.left + s * (SMALL_SIDE + GAP), top + r * (SMALL_SIDE + ROW + 4)
        small_pattern(sheet, x, y, patterns[r][s], f"{r}.{s}", (r, s) == chosen, (r, s) in off)
    bottom = top + len(patterns) * (SMALL_SIDE + ROW + 4) + 8
    bottom = draw_predictions(sheet, bottom, left_room, predictions, off)
    x = sheet.left + left_room + 22
    gone = (layer, head) in off
    sheet.text(x, top + TEXT, f"layer {layer}, head {head}" + (": switched off" if gone else ""), TEXT,
               "soft" if gone else "A", weight="bold")
    sheet.top = top + TEXT + 9
    write_columns(sheet, x + side, columns, cell)
    draw_cells(sheet, x + side, large, cell, "A", 2, readable, words[first:end])
    sheet.top = max(sheet.top, bottom)
    part = windowed(len(words), first, end, summed=True)
    sheet.note(f"Rows ask, columns are read. Outlined: the head shown large. {part}".strip())
    body = [[f"layer {r} head {s}", words[largest(patterns[r][s][-1])], number(max(patterns[r][s][-1])),
             "off" if (r, s) in off else "on"] for r, s in heads]
    text = [title, table(body, [f"“{words[-1]}” reads most", "word", "weight", "state"]),
            f"layer {layer} head {head}:",
            table([[word, *map(number, row)] for word, row in zip(words[first:end], large, strict=True)],
                  ["", *columns]),
            prediction_table(predictions, off), part]
    return Picture(title, "\n".join(filter(None, text)), sheet.finish())


def looked_at(words, patterns, chosen, off, predictions):
    """Patterns (layers, h, n, n), one of the heads, some of them, [(word, share, share), …], looked at."""
    patterns = given.array("patterns", patterns, ("layers", "h", "n", "n"))
    n_layers, n_heads, *square = patterns.shape
    if square != [len(words)] * 2 or not patterns.size:
        raise ValueError(f"patterns must have shape (layers, h, n, n), here n = {len(words)}, "
                         f"and none may be 0; got {patterns.shape}")
    chosen, = given.pairs("chosen", [chosen], n_layers, n_heads)
    predictions = given.records("predictions", predictions, ("word", "before", "after"))
    for word, *shares in predictions:
        given.text("every word in predictions", word)
        for share in shares:
            given.number("every share in predictions", share, finite=True)
    return patterns, chosen, given.pairs("off", off, n_layers, n_heads), predictions


def small_pattern(sheet, x, y, A, name, chosen, off):
    """A pattern as shades alone, with its name above; crossed out when it is switched off."""
    sheet.text(x, y + SMALL + 4, name + (" off" if off else ""), SMALL, "soft" if off else "ink",
               weight="bold" if chosen else None)
    y += SMALL + 9
    cell = SMALL_SIDE / len(A)
    draw_shades(sheet, x, y, A, cell, cell, 1, "line" if off else "A")
    sheet.rect(x, y, SMALL_SIDE, SMALL_SIDE, stroke="ink" if chosen else "line", thick=2.5 if chosen else 1)
    if off:
        sheet.line(x, y, x + SMALL_SIDE, y + SMALL_SIDE, "soft", 1.5)
        sheet.line(x, y + SMALL_SIDE, x + SMALL_SIDE, y, "soft", 1.5)


def draw_predictions(sheet, top, room, predictions, off):
    """For each word two bars, with all heads above, without those switched off below, and both numbers."""
    side, right = label_room([word for word, _, _ in predictions]), 100 if off else 44
    sheet.text(sheet.left, top + TEXT, "the next word", TEXT, weight="bold")
    if off:                                                 # with many names it needs a line of its own
        top += TEXT + 4
        sheet.text(sheet.left, top + SMALL, f"all heads → {without(off)}", SMALL, "soft")
        top += SMALL + 8
    else:
        sheet.text(sheet.left + room, top + TEXT, "all heads on", SMALL, "soft", "end")
        top += TEXT + 8
    x, room = sheet.left + side, room - side - right
    for i, (word, before, after) in enumerate(predictions):
        y = top + i * ROW
        sheet.text(sheet.left, y + 18, shorten(word, side, TEXT))
        if off:
            sheet.rect(x, y + 4, round(rounded(before) * room), 9, "negative")
        sheet.rect(x, y + (13 if off else 8), round(rounded(after) * room), 9, "positive")
        words = f"{number(before)} → {number(after)}" if off else number(after)
        sheet.text(x + room + right, y + 18, words, anchor="end")
    sheet.line(x, top, x, top + len(predictions) * ROW, "soft")
    return top + len(predictions) * ROW


def prediction_table(predictions, off):
    """The words expected next as text."""
    header = ["next word", "all heads", *([without(off)] if off else [])]
    return table([[word, number(before), *([number(after)] if off else [])]
                  for word, before, after in predictions], header)


def without(off):
    """"without" and the heads that are switched off, or how many they are."""
    names = [f"{layer}.{head}" for layer, head in sorted(off)]
    return f"without {', '.join(names)}" if len(names) <= 3 else f"without {len(names)} heads"

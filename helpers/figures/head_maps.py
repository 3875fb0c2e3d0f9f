"""A score for every head of a large model: `head_maps`. Arrays in, a Picture out."""

import numpy as np

from helpers import arrays as given
from helpers.figures.arrays import draw_shades
from helpers.figures.picture import Picture
from helpers.figures.style import CELL, PAD, SMALL, TEXT, WIDTH
from helpers.figures.svg import Sheet
from helpers.figures.words import number, table

APART, BELOW = 40, 48                        # px: between maps side by side; from a map to the next below
SIDE, GREATEST = 18, 16                      # px: room for the numbers of heads; the largest cell


def head_maps(scores, title, best=1):
    """A map for each kind of score: a column for each layer, a row for each head, the fuller the higher.

    scores : dict kind -> (layers, heads) numbers from 0 to 1, best : how many of each are outlined and named.
    Two maps stand side by side.  Raises TypeError or ValueError when the shapes differ.
    """
    scores = {kind: given.array(f"scores {kind!r}", M, ("layers", "heads"))
              for kind, M in given.named("scores", scores, "numbers (layers, heads)").items()}
    shapes = {M.shape for M in scores.values()}
    if len(shapes) != 1 or 0 in max(shapes):
        raise ValueError(f"scores must have one shape (layers, heads), none of it 0; got {sorted(shapes)}")
    n_layers, n_heads = shapes.pop()
    best = given.count("best", best, most=n_layers * n_heads)
    cell = min(((WIDTH - 2 * PAD - APART) // 2 - SIDE) // n_layers, GREATEST)
    wide, high = cell * n_layers, cell * n_heads
    sheet = Sheet(title, f"{len(scores)} heat maps, {n_layers} layers by {n_heads} heads, the best outlined.",
                  2 * (SIDE + wide) + APART + 2 * PAD)
    body, first = [], sheet.top
    for i, (kind, M) in enumerate(scores.items()):
        x = sheet.left + SIDE + i % 2 * (wide + SIDE + APART)
        top = first + i // 2 * (high + BELOW) + TEXT + 8
        order = np.argsort(-M, axis=None, kind="stable")
        places = [divmod(int(at), n_heads) for at in order]
        named = ", ".join(f"{layer}.{head}" for layer, head in places[:best])
        sheet.text(x, top - 8, f"{kind}: {named}", TEXT, weight="bold")
        draw_shades(sheet, x, top, M.T, cell, cell, 1, "A")
        sheet.rect(x, top, wide, high, stroke="soft")
        for layer, head in places[:best]:
            sheet.rect(x + layer * cell - 1, top + head * cell - 1, cell + 2, cell + 2, stroke="ink", thick=2)
        sheet.texts([(x + (layer + 0.5) * cell, top + high + SMALL + 3, layer)
                     for layer in range(0, n_layers, 5)], SMALL, "soft")
        sheet.texts([(x - 6, top + (head + 0.5) * cell + 4, head) for head in range(0, n_heads, 2)], SMALL,
                    "soft", "end")
        body.append([kind, *(f"{layer}.{head} {number(M[layer, head])}" for layer, head in places[:5])])
    sheet.top = first + (len(scores) + 1) // 2 * (high + BELOW) - CELL
    sheet.note("Columns are layers, rows are heads. The fuller, the higher; the best is outlined and named, "
               "layer.head.")
    text = table(body, ["", "best", "2nd", "3rd", "4th", "5th"][:len(body[0])])
    return Picture(title, f"{title}\n{text}", sheet.finish())

"""Which query heads read which keys and values: `shared_heads`. Numbers in, a Picture out."""

from helpers import arrays as given
from helpers.figures.picture import Picture
from helpers.figures.style import CELL, PAD, SMALL, TEXT
from helpers.figures.svg import Sheet
from helpers.figures.words import table, width

BOX, STEP, HIGH, APART = 40, 48, 26, 44  # px: a head, from one to the next, its height, between two ways
FALL = 62                                # px: from the query heads down to the key and value heads


def shared_heads(ways, title):
    """A drawing for each way to share: query heads above, key and value heads below, a line for each reading.

    ways : [(name, reads)], reads : h whole numbers, the key and value head that query head i reads.
    Raises TypeError or ValueError when the heads that are read do not count up from 0.
    """
    ways = given.records("ways", ways, ("name", "reads"))
    for name, reads in ways:
        given.text("every name in ways", name)
        reads = [given.count(f"every head {name!r} reads in ways", i)
                 for i in given.listed(f"what {name!r} reads in ways", reads, "heads")]
        if not reads or set(reads) != set(range(max(reads) + 1)):
            raise ValueError(f"the heads that {name!r} reads in ways must count up from 0, got {reads}")
    rooms = [max(len(reads) * STEP - STEP + BOX, width(name, TEXT * 1.06)) for name, reads in ways]
    side = 86
    sheet = Sheet(title, f"{len(ways)} ways to share.", side + sum(rooms) + APART * (len(ways) - 1) + 2 * PAD)
    top, x = sheet.top + TEXT + 14, sheet.left + side
    sheet.text(sheet.left, top + 18, "query heads", SMALL, "Q", weight="bold")
    sheet.text(sheet.left, top + FALL + 18, "K, V heads", SMALL, "K", weight="bold")
    for (name, reads), room in zip(ways, rooms, strict=True):
        sheet.text(x, sheet.top + TEXT, name, TEXT, weight="bold")
        centre = [x + i * STEP + BOX / 2 for i in range(len(reads))]
        g = max(reads) + 1
        middle = (centre[0] + centre[-1]) / 2
        below = [middle + (j - (g - 1) / 2) * STEP * len(reads) / g for j in range(g)]
        for i, j in enumerate(reads):
            sheet.line(centre[i], top + HIGH, below[j], top + FALL, "ink", 1.5)
        for y, places, role in ((top, centre, "Q"), (top + FALL, below, "K")):
            for i, c in enumerate(places):
                sheet.rect(c - BOX / 2, y, BOX, HIGH, "surface", stroke=role, thick=1.8, radius=5)
                sheet.text(c, y + 17, i, CELL, role, "middle", "bold")
        x += room + APART
    sheet.top = top + FALL + HIGH
    most = max(len(reads) for _, reads in ways)
    body = [[f"query head {i}", *(reads[i] if i < len(reads) else "" for _, reads in ways)]
            for i in range(most)]
    text = table(body, ["reads K, V head", *(name for name, _ in ways)])
    return Picture(title, f"{title}\n{text}", sheet.finish())

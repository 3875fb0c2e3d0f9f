"""How large a cache is when keys and values are shared, behind an explorer: `cache_sizes`.

Numbers in, a Picture out.
"""

from helpers import arrays as given
from helpers.figures.picture import Picture
from helpers.figures.style import PAD, SMALL, TEXT, WIDTH
from helpers.figures.svg import Sheet
from helpers.figures.words import large, number, table, thousands, width

UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
HIGH, BAR = 58, 18                       # px: one way to keep, and its bar


def cache_sizes(ways, title, note=""):
    """A bar for each way to keep keys and values, with its formula.

    ways : [(name, formula with its numbers, bytes, bytes of one token, whether the model is published so)].
    """
    ways = given.records("ways", ways, ("name", "formula", "bytes", "bytes of a token", "published"))
    for name, formula, size, token, published in ways:
        given.text("every name in ways", name)
        given.text("every formula in ways", formula)
        given.count("every number of bytes in ways", size, least=1)
        given.count("the bytes of a token in ways", token, least=1)
        given.flag("published in ways", published)
    note = given.text("note", note)
    sheet = Sheet(title, f"{len(ways)} bars with their formulas.", WIDTH)
    most = max(size for _, _, size, _, _ in ways)
    side = max(width(name, TEXT * 1.06) for name, *_ in ways) + 18
    x, room = sheet.left + side, WIDTH - 2 * PAD - side - 230
    for i, (name, formula, size, token, published) in enumerate(ways):
        y = sheet.top + i * HIGH
        if published:
            sheet.rect(sheet.left - 6, y - 2, WIDTH - 2 * PAD + 12, HIGH - 4, "panel", radius=6)
        sheet.text(sheet.left + 2, y + 17, name, TEXT, weight="bold")
        if published:
            sheet.text(sheet.left + 2, y + 37, "published so", SMALL, "soft")
        long = max(round(size / most * room), 1)
        sheet.rect(x, y + 4, long, BAR, "positive" if published else "negative", radius=2)
        sheet.text(x + long + 8, y + 18, size_text(size), TEXT, weight="bold")
        times = "" if size == most else f", {number(most / size, 1)} times less"
        sheet.text(WIDTH - PAD, y + 18, f"{size_text(token)} a token{times}", SMALL, "soft", "end")
        sheet.text(x, y + 40, f"{formula} {equals(size)} bytes", SMALL)
    sheet.top += len(ways) * HIGH - 4
    sheet.note(note)
    body = [[name + (" (published so)" if published else ""), size_text(size), size_text(token),
             number(most / size, 1), f"{formula} {equals(size)} bytes"]
            for name, formula, size, token, published in ways]
    header = ["kept", "bytes", "a token", "times less", "formula"]
    return Picture(title, f"{title}\n{table(body, header)}\n{note}", sheet.finish())


def equals(size):
    """A number of bytes behind its formula: every digit, where there is room for it."""
    return f"= {thousands(size)}" if size < 10**15 else f"≈ {large(size)}"


def size_text(n):
    """A number of bytes in the unit that suits it; a KiB has 1024."""
    for unit in UNITS:
        if n < 1024 or unit == UNITS[-1]:
            return f"{n} bytes" if unit == "bytes" else f"{number(n, 2)} {unit}"
        n /= 1024

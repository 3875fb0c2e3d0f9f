"""One step of a generation with and without a cache, behind an explorer: `cache_step`.

Numbers in, a Picture out.
"""

from helpers import arrays as given
from helpers.figures.picture import Picture
from helpers.figures.style import CELL, LABEL, PAD, SMALL, TEXT, WIDTH
from helpers.figures.svg import Sheet
from helpers.figures.words import shorten, table, thousands

LINE, BOX = 25, 58                              # px: a row of K and V, the box of a key or a value
LOOKS = {"new": ("positive", 0.6), "again": ("negative", 0.5), "kept": ("none", 1)}
MODES = ("with the cache", "without")


def cache_step(rows, written, step, work, so_far, kept_bytes, title, note=""):
    """Which rows of K and V a step computes, and how much work that is.

    rows : [(word, state with the cache, state without), …], a state "new", "kept" or "again"; written : the
    word that the step writes, or None.  work : [(with, without), …] multiply-adds of each step, step : how
    many steps are done, so_far : (with, without) up to there, kept_bytes : (with, without).
    """
    rows = given.records("rows", rows, ("word", "with", "without"), least=0)
    for word, *states in rows:
        given.text("every word in rows", word)
        for state in states:
            given.one_of("every state in rows", state, LOOKS)
    work, (so_far,), (kept_bytes,) = (counts("work", work), counts("so_far", [so_far]),
                                      counts("kept_bytes", [kept_bytes]))
    step, note = given.count("step", step, most=len(work)), given.text("note", note)
    written = written if written is None else given.text("written", written)
    sheet = Sheet(title, "Left the rows of K and V, each new, kept or computed again. Right the work of this "
                         "step and of all so far, bytes kept, and the work of every step as bars.", WIDTH)
    top, left = sheet.top, sheet.left
    columns = [left + LABEL + 8, left + LABEL + 8 + 2 * BOX + 26]
    for x, mode in zip(columns, MODES, strict=True):
        sheet.text(x, top + TEXT, mode, TEXT, weight="bold")
        for c, role in enumerate("KV"):
            sheet.text(x + (c + 0.5) * BOX + c * 4, top + TEXT + 18, role, SMALL, role, "middle", "bold")
    y = top + TEXT + 25
    for word, *states in rows:
        sheet.text(left + LABEL, y + 16, shorten(word, LABEL, TEXT), anchor="end")
        for x, state in zip(columns, states, strict=True):
            fill, opacity = LOOKS[state]
            for c, role in enumerate("KV"):
                sheet.rect(x + c * (BOX + 4), y, BOX, LINE - 4, fill, opacity, role, 1.5, radius=3)
                ink, weight = role if state == "kept" else "ink", "bold" if state == "new" else None
                sheet.text(x + (c + 0.5) * BOX + c * 4, y + 15, state, CELL, ink, "middle", weight)
        y += LINE
    if written:
        sheet.text(left + LABEL, y + 16, shorten(written, LABEL, TEXT), anchor="end", weight="bold")
        sheet.text(columns[0], y + 16, "← written now, read in the next step", SMALL, "soft")
        y += LINE
    right = columns[1] + 2 * BOX + 40
    bottom = draw_counters(sheet, right, top, work[step - 1] if step else (0, 0), so_far, kept_bytes)
    bottom = draw_steps(sheet, right, bottom + 12, step, work)
    sheet.top = max(y, bottom)
    sheet.note(" ".join(filter(None, ["A multiply-add: one product of two numbers, added to a sum.", note])))
    counters = [["multiply-adds in this step", *map(thousands, work[step - 1] if step else (0, 0))],
                ["multiply-adds so far", *map(thousands, so_far)],
                ["bytes kept for the next step", *map(thousands, kept_bytes)]]
    body = [[word, *states] for word, *states in rows]
    text = [title, table(body, ["row of K and V", *MODES]) if rows else "", written and f"written: {written}",
            table(counters, ["", *MODES]),
            table([[i + 1, *map(thousands, both)] for i, both in enumerate(work)], ["step", *MODES]), note]
    return Picture(title, "\n".join(filter(None, text)), sheet.finish())


def counts(name, values):
    """A list of pairs (with, without) of whole numbers; TypeError or ValueError for anything else."""
    return [tuple(given.count(f"every number in {name}", n) for n in both)
            for both in given.records(name, values, ("with", "without"))]


def draw_counters(sheet, x, top, step_work, so_far, kept_bytes):
    """Three pairs of bars with their numbers; returns where they end."""
    room = WIDTH - PAD - x
    for name, pair in (("multiply-adds in this step", step_work), ("multiply-adds so far", so_far),
                       ("bytes kept for the next step", kept_bytes)):
        sheet.text(x, top + TEXT, name, TEXT, weight="bold")
        for c, value in enumerate(pair):
            y = top + TEXT + 7 + c * 18
            sheet.text(x, y + 12, MODES[c], SMALL, "soft")
            long = round(value / (max(pair) or 1) * (room - 96 - 84))
            sheet.rect(x + 96, y + 2, long, 12, ("positive", "negative")[c], radius=2)
            sheet.text(x + 96 + long + 6, y + 12, thousands(value), CELL)
        top += TEXT + 7 + 2 * 18 + 9
    return top


def draw_steps(sheet, x, top, step, work):
    """Two upright bars for each step, those still to come pale; returns where they end."""
    high, slot = 76, (WIDTH - PAD - x) / len(work)
    sheet.text(x, top + TEXT, "multiply-adds of each step", TEXT, weight="bold")
    base, most = top + TEXT + 8 + high, max(max(pair) for pair in work) or 1
    thick = min((slot - 3) / 2, 16)
    for i, pair in enumerate(work):
        middle = x + (i + 0.5) * slot
        for c, value in enumerate(pair):
            tall = max(round(value / most * high), 1)
            sheet.rect(middle - thick + c * thick, base - tall, thick, tall, ("positive", "negative")[c],
                       1 if i < step else 0.25)
        if len(work) <= 16 or i % 5 == 4 or i == 0:
            sheet.text(middle, base + 15, i + 1, SMALL, "ink" if i + 1 == step else "soft", "middle",
                       "bold" if i + 1 == step else None)
    sheet.line(x, base, WIDTH - PAD, base, "soft")
    return base + 18

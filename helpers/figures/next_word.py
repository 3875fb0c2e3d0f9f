"""From logits to draws, step by step, behind an explorer: `next_word`. Numbers in, a Picture out."""

from dataclasses import dataclass

from helpers import arrays as given
from helpers.figures.picture import Picture
from helpers.figures.style import PAD, ROW, SMALL, TEXT, WIDTH
from helpers.figures.svg import Sheet
from helpers.figures.words import number, rounded, shorten, table, width

BAR, GAP = 112, 50               # px: the longest bar of a column, and what its number takes behind it
LONGEST = 132                    # px: of a word, or of a line that stands for several


@dataclass(frozen=True)
class Line:
    """One word, or several taken together, on its way from logit to draws."""

    word: str
    logit: float | None
    before: float                # softmax of the logits as they are
    warm: float                  # softmax of the logits divided by the temperature
    running: float | None        # what top-p adds up: this share and those above it, after top-k
    kept: bool                   # whether it can be drawn
    fate: str                    # that in words, or what cut it
    p: float                     # the share with which it is drawn
    count: int                   # how often it was drawn


def next_word(lines, temperature, draws, title, note=""):
    """A line for each word: its logit, both softmaxes, what cuts it, its share, and how often it was drawn.

    lines : list of Line, likeliest first, temperature : of the second softmax, draws : how many were drawn.
    """
    lines = given.listed("lines", lines, "Line")
    if not lines or not all(isinstance(line, Line) for line in lines):
        raise TypeError(f"lines must be a list of at least one Line, got {given.came(lines)}")
    temperature, draws = given.number("temperature", temperature, finite=True), given.count("draws", draws)
    note = given.text("note", note)
    heads = ("word", "logit", "softmax", f"softmax at T = {temperature:g}", "sum so far", "can be drawn",
             f"drawn of {draws}")
    sheet = Sheet(title, f"{len(lines)} lines with three columns of bars: softmax before and after the "
                         "temperature, and what can be drawn beside what was drawn.", WIDTH)
    left = sheet.left
    side = max(min(width(line.word, TEXT), LONGEST) for line in lines)
    logit = left + side + 66                                        # where the logits end
    first, second = logit + 24, logit + 24 + BAR + GAP
    running = second + BAR + GAP + 44
    third = WIDTH - PAD - BAR - 2 * GAP
    scale = max(rounded(v) for line in lines for v in (line.before, line.warm, line.p, share(line, draws)))
    y = sheet.top + SMALL
    starts = [(left, "start"), (logit, "end"), (first, "start"), (second, "start"), (running, "end"),
              (third, "start"), (WIDTH - PAD, "end")]
    for (x, anchor), head in zip(starts, heads, strict=True):
        sheet.text(x, y, head, SMALL, "soft", anchor)
    top = y + 8
    for i, line in enumerate(lines):
        y, kept = top + i * ROW, line.kept
        ink = "ink" if kept else "soft"
        if i and (kept, kept or line.fate) != (lines[i - 1].kept, kept or lines[i - 1].fate):
            sheet.line(left, y, WIDTH - PAD, y, "soft", 1.2, "4 3")
        base = y + 18
        sheet.text(left, base, shorten(line.word, LONGEST, TEXT), TEXT, ink)
        if line.logit is not None:
            sheet.text(logit, base, number(line.logit), TEXT, ink, "end")
        for x, value, fill in ((first, line.before, "negative"), (second, line.warm, "positive")):
            long = round(rounded(value) / scale * BAR)
            fill, edge = ("none", "soft") if x == second and not kept else (fill, None)
            sheet.rect(x, y + 6, long, ROW - 12, fill, stroke=edge, radius=2)
            sheet.text(x + long + 6, base, number(value), colour=ink)
        if line.running is not None:
            sheet.text(running, base, number(line.running), TEXT, ink, "end")
        if not kept:
            sheet.text(third, base, line.fate, SMALL, ink)
        else:
            exact, drawn = (round(rounded(v) / scale * BAR) for v in (line.p, share(line, draws)))
            sheet.rect(third, y + 4, exact, 9, "positive", radius=2)
            sheet.rect(third, y + 14, drawn, 6, "ink", radius=2)
            sheet.text(third + BAR + 6, base, number(line.p), weight="bold")
            sheet.text(WIDTH - PAD, base, line.count, TEXT, anchor="end")
    sheet.top = top + len(lines) * ROW + 2
    sheet.note(note)
    body = [[line.word, "" if line.logit is None else number(line.logit), number(line.before),
             number(line.warm), "" if line.running is None else number(line.running), line.fate,
             number(line.p), line.count] for line in lines]
    text = table(body, [*heads[:5], "", *heads[5:]])
    return Picture(title, "\n".join(filter(None, [title, text, note])), sheet.finish())


def share(line, draws):
    """The share of all draws that went to this line."""
    return line.count / draws if draws else 0.0

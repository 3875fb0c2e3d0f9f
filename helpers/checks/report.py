"""The verdict on one answer, as text and as HTML: the same words in both, small arrays side by side in HTML.

Nothing in it changes from run to run: no times, no paths, no addresses.
"""

import html
import sys
from dataclasses import dataclass, field

import numpy as np

from helpers.checks.compare import number

PLAIN = {
    "✗": "x",
    "✓": "ok",
    "○": "-",
    "√": "sqrt ",
    "·": "*",
    "…": "...",
    "≠": "!=",
    "≤": "<=",
    "−": "-",
    "²": "^2",
    "α": "alpha",
    "→": "->",
    "“": '"',
    "”": '"',
    "’": "'",
    "–": "-",
    "⌊": "floor(",
    "⌋": ")",
    "×": "x",
}
MARKS = {"passed": "✓", "wrong": "✗", "not written": "○", "not tried": "○", "unusable": "✗"}
LARGEST = 64  # numbers in an array that is shown whole
BLUE, ORANGE, GREY = "rgb(31, 119, 180)", "rgb(255, 127, 14)", "rgb(128, 128, 128)"  # safe for all eyes
POSITIVE, NEGATIVE = "230, 159, 0", "108, 129, 148"  # as in the pictures (figures/style.py; a test compares)
EDGES = {"passed": BLUE, "not written": GREY, "not tried": GREY}


@dataclass(frozen=True)
class Report:
    """What a check found. `passed`, `diagnosis`, `remarks` and `message` are what programs look at."""

    name: str
    state: str  # "passed", "wrong", "not written", "not tried", "unusable"
    summary: str = ""  # "right on 1 of 9 inputs"
    shown: str = ""  # the input that shows the fault, in words
    facts: tuple = ()  # what happened on it, a line each
    diagnosis: str = ""  # what was done wrong; "" when no known mistake fits
    why: str = ""
    holds: tuple = ()  # what is true of the answer, when there is no diagnosis
    read: tuple = ()  # "notebook 03, “…”"
    first: tuple = ()  # an earlier function that fails its own check
    printed: tuple = ()
    remarks: list = field(default_factory=list)  # passes, but mind this
    next: str = ""
    mistakes: tuple = ()  # names of the known mistakes that fit
    at_fault: tuple = ()  # of the last exercise: names of the functions that are what fails
    pictures: tuple = ()  # of (title, array, marked index or None)

    @property
    def passed(self):
        return self.state == "passed"

    @property
    def message(self):
        """The whole verdict as text."""
        last = (self.diagnosis, self.why, *self.holds, *self.read_again)
        if self.passed:
            line = f"{self.why}     {self.next}"
            last = (line,) if len(line) <= 100 else (self.why, self.next)
        blocks = [(self.shown, *self.facts), self.first, last, self.printed, self.remark_lines]
        blocks = [
            "\n".join(f"  {line}" for text in block if text for line in text.split("\n")) for block in blocks
        ]
        head = f"{MARKS[self.state]} {self.name}     {self.summary}"
        return clean(("\n" if self.passed else "\n\n").join([head, *filter(None, blocks)]))

    @property
    def read_again(self):
        return (f"Read again: {' and '.join(self.read)}",) if self.read else ()

    @property
    def remark_lines(self):
        return tuple(f"Mind: {remark}" for remark in self.remarks)

    def __str__(self):
        return self.message

    def __repr__(self):
        return self.message

    def _repr_html_(self):
        """The verdict for JupyterLab; it follows the light and the dark theme."""
        text = clean_html
        out = [
            f'<div style="border-left: 4px solid {EDGES.get(self.state, ORANGE)}; padding-left: 10px">'
            f"<b>{MARKS[self.state]} {text(self.name)}</b>&emsp;{text(self.summary)}"
        ]
        if self.shown or self.facts:
            out.append(f"<p>{'<br>'.join(map(text, filter(None, (self.shown, *self.facts))))}</p>")
        if self.pictures:
            out.append(side_by_side(self.pictures))
        told = [
            f"<b>{text(self.diagnosis)}</b>" if self.diagnosis else "",
            text(self.why),
            *map(text, self.holds),
            *map(text, self.read_again),
        ]
        for block in (
            map(text, self.first),
            told,
            map(text, self.printed),
            map(text, self.remark_lines),
            (text(self.next),),
        ):
            lines = "<br>".join(filter(None, block))
            if lines:
                out.append(f"<p>{lines}</p>")
        return clean("".join(out) + "</div>")

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": self.message, "text/html": self._repr_html_()}


def show(thing):
    """Display it in a notebook, print it elsewhere."""
    ipython = sys.modules.get("IPython")
    if ipython is not None and ipython.get_ipython() is not None:
        ipython.display.display(thing)
    else:
        print_safely(str(thing))


def print_safely(text, stream=None):
    """Print to a stream whose encoding may know few letters (a Windows console)."""
    stream = stream or sys.stdout
    print(encodable(text, getattr(stream, "encoding", None) or "utf-8"), file=stream)


def encodable(text, encoding):
    """The text in letters that the encoding has."""
    try:
        text.encode(encoding)
        return text
    except (UnicodeEncodeError, LookupError):
        for letter, plain in PLAIN.items():
            text = text.replace(letter, plain)
        return text.encode("ascii", "replace").decode()


def clean(text):
    """Text that any stream can take: no half or control characters from what a function printed."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    return "".join(
        c if c.isprintable() or c == "\n" else "�" for c in text.replace("\r\n", "\n").replace("\t", "    ")
    )


def clean_html(text):
    return html.escape(text, quote=False).replace("\n", "<br>").replace("  ", "&nbsp; ")


def picturable(array):
    """Whether an array is small enough to be shown whole."""
    return (
        1 <= array.ndim <= 2
        and 0 < array.size <= LARGEST
        and array.dtype.kind in "biuf"
        and max(array.shape) <= 12
    )


def side_by_side(pictures):
    cells = "".join(
        f'<td style="vertical-align: top; border: none; background: none; text-align: left">'
        f"{html.escape(title)}{table(array, at)}</td>"
        for title, array, at in pictures
    )
    return f'<table style="border: none; margin: 0"><tr style="background: none">{cells}</tr></table>'


def table(array, marked=None):
    """A small array as a table: numbers, shaded by size, the marked cell outlined."""
    array = np.atleast_2d(np.asarray(array))
    plain = array.astype(np.float64)
    top = np.abs(plain[np.isfinite(plain)]).max(initial=0) or 1.0
    marked = None if marked is None else (0, *marked)[-2:]
    rows = []
    for i, row in enumerate(array):
        cells = []
        for j, x in enumerate(row):
            share = min(abs(plain[i, j]) / top, 1) * 0.5 if np.isfinite(plain[i, j]) else 0
            colour = f"rgba({POSITIVE if plain[i, j] >= 0 else NEGATIVE}, {share:.2f})"
            style = f"background-color: {colour}; text-align: right; color: inherit; font-family: monospace"
            if (i, j) == marked:
                style += "; border: 2px solid currentColor; font-weight: bold"
            cells.append(f'<td style="{style}">{number(x)}</td>')
        rows.append(f'<tr style="background: none">{"".join(cells)}</tr>')
    return f'<table style="margin: 2px 12px 2px 0">{"".join(rows)}</table>'

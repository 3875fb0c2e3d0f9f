"""Numbers, labels and tables as text, the same on every machine."""

import math
import unicodedata

import numpy as np

from helpers import arrays as given

MOST_DIGITS = 9             # behind the point
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def rounded(x, digits=2):
    """`x` as the float that is shown: numbers that sit on a rounding edge fall the same way on every machine.

    A first rounding, four digits finer, takes away what the last bits of different machines disagree about.
    """
    x = float(x)
    return round(round(x, digits + 4), digits) if math.isfinite(x) else x


def number(x, digits=2):
    """`x` for people: fixed digits, a real minus sign, never -0.00.

    NaN and infinity are written out.  Raises TypeError or ValueError for what is no number, or no number of
    digits.
    """
    if not (isinstance(x, float) and type(digits) is int and 0 <= digits <= MOST_DIGITS):    # quick to see
        x, digits = given.number("x", x), given.count("digits", digits, most=MOST_DIGITS)
    x = rounded(x, digits)
    if math.isnan(x):
        return "NaN"
    if math.isinf(x):
        return "∞" if x > 0 else "−∞"
    text = f"{abs(x):.{digits}f}" if abs(x) < 1e5 else f"{abs(x):.1e}"
    return "−" + text if x < 0 else text


def short_number(x):
    """`x` in as many digits as it needs, at most four that count: for axes."""
    x = float(f"{float(x):.4g}")
    if 1000 <= abs(x) < 1e6:
        text = f"{abs(x):,.0f}"
    else:
        text = f"{abs(x):.4g}".replace("e+0", "e").replace("e-0", "e−").replace("e+", "e")
    return "−" + text if x < 0 else text


def thousands(n):
    """The whole number `n` with a comma between thousands, as Python and the notebooks write it."""
    return f"{n:,}"


def counted(n, thing):
    """How many there are of a thing, in words."""
    return f"{thousands(n)} {thing}{'' if n == 1 else 's'}"


def large(x):
    """A number for people: its digits, from a million on the first three times a power of ten."""
    if x < 1e6:
        return thousands(round(x))
    power = math.floor(math.log10(x))
    digits = number(x / 10**power, 2)
    if digits == "10.00":
        digits, power = "1.00", power + 1
    return f"{digits} · 10{str(power).translate(SUPERSCRIPTS)}"


def ending(words, most=32):
    """The text of `words`, or its last ones after an ellipsis, in about `most` characters."""
    words = list(words)
    first = 0
    while first < len(words) - 1 and (len(" ".join(words[first:])) > most or first and words[first] == "."):
        first += 1
    return "… " * (first > 0) + " ".join(words[first:])


def width(text, size):
    """About how many px `text` takes at `size`, on the wide side: fonts differ from machine to machine."""
    return math.ceil(sum(map(em, str(text))) * size)


def em(c):
    """About how wide a character is, as a share of the size of the font."""
    return (1.0 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else
            0.4 if c in "iljtf.,:;'|() " else 0.95 if c in "mwMW@" else 0.64)


def shorten(text, room, size):
    """`text`, or as much of its front as fits into `room` px and an ellipsis.

    The small number at the end of a word that stands twice ("loves₂") is kept: it tells the two apart.
    """
    text = str(text)
    if width(text, size) <= room:
        return text
    word = text.rstrip("₀₁₂₃₄₅₆₇₈₉")
    end = "…" + text[len(word):]
    return word[:how_many_fit(word, room, size, sum(map(em, end)))] + end


def how_many_fit(text, room, size, wide=0):
    """How many characters from the front of `text` fit into `room` px, beside something `wide` em wide."""
    for i, c in enumerate(text):
        wide += em(c)
        if math.ceil(wide * size) > room:
            return i
    return len(text)


def wrap(text, room, size):
    """`text` as lines that fit into `room` px; a word longer than that is broken."""
    lines = []
    for word in pieces(str(text), room, size):
        if lines and width(f"{lines[-1]} {word}", size) <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines or [""]


def pieces(text, room, size):
    """The words of `text`, those wider than `room` px in parts that fit."""
    for word in text.split():
        start = 0
        while start < len(word):
            fitting = max(1, how_many_fit(word[start:start + int(room) + 1], room, size))
            yield word[start:start + fitting]
            start += fitting


def numbered(tokens):
    """Words with a small number on those that come more than once: loves₁ … loves₂."""
    tokens = [str(t) for t in tokens]
    seen, out = {}, []
    for token in tokens:
        seen[token] = seen.get(token, 0) + 1
        out.append(token + str(seen[token]).translate(SUBSCRIPTS) if tokens.count(token) > 1 else token)
    return out


def table(rows, header=None):
    """Rows of cells as aligned plain text, first column to the left, the others to the right."""
    lines = [[str(c) for c in row] for row in ([header] if header else []) + list(rows)]
    widths = [max(len(row[i]) for row in lines) for i in range(len(lines[0]))] if lines else []
    return "\n".join("  ".join(cell.rjust(w) if i else cell.ljust(w)
                               for i, (cell, w) in enumerate(zip(row, widths, strict=True))).rstrip()
                     for row in lines)


def shape_text(M):
    """The shape as NumPy writes it."""
    return str(tuple(int(s) for s in np.shape(M)))

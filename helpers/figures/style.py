"""Colours and sizes of every picture, in one place.

Q, K, V and A have a colour each, positive and negative numbers another; nothing else uses them. The four and orange are
from the palette of Okabe and Ito (2008), darkened or lightened until text in them reads well on the theme's background;
negative is a cool grey, so that the pair differs in the one direction that every kind of colour vision keeps.
A colour never stands alone: names, numbers, signs and outlines say the same.
"""

LIGHT = {
    "surface": "#ffffff",     # behind the picture
    "panel": "#f3f5f7",       # boxes, tracks of bars
    "ink": "#1b1f24",         # text and numbers
    "soft": "#545d68",        # captions, axes
    "line": "#c5ccd3",        # hairlines
    "Q": "#b84300",           # vermillion
    "K": "#0067a5",           # blue
    "V": "#00735a",           # bluish green
    "A": "#99417c",           # reddish purple
    "positive": "#e69f00",    # orange
    "negative": "#6c8194",    # cool grey
}
DARK = {
    "surface": "#111418",
    "panel": "#22272e",
    "ink": "#f0f3f6",
    "soft": "#b3bcc6",
    "line": "#4b545e",
    "Q": "#ff9a5c",
    "K": "#6cbcf5",
    "V": "#3fcfa3",
    "A": "#e59ac8",
    "positive": "#c98a00",
    "negative": "#7d95aa",
}
ROLES = {"Q": "Q", "K": "K", "V": "V", "A": "A", "X": "ink", "S": "ink", "Z": "ink", "W": "ink"}

FONT = "'DejaVu Sans', Verdana, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
TITLE, TEXT, SMALL = 15, 13, 11           # px
WIDTH = 860                               # px: what fits a notebook cell without scrolling
SHADES = 12                               # steps of a heat map
DARKEST = 0.72                            # opacity of the last step: ink still reads on it, in both themes


def shade(value, largest):
    """The opacity of a heat map's cell, 0 … DARKEST in SHADES steps; both numbers as rounded for display.

    Steps hang on the rounded numbers alone: what looks the same in figures looks the same in colour, on every machine.
    """
    if not largest:
        return 0.0
    return round(round(min(abs(value) / largest, 1) * SHADES) / SHADES * DARKEST, 2)


def live_css(name="sa"):
    """The style sheet of a live picture: JupyterLab's dark theme is told from its light one by an attribute."""
    def variables(palette):
        return "".join(f"--sa-{key}:{value};" for key, value in palette.items())
    return (f".{name}{{{variables(LIGHT)}}}"
            f'[data-jp-theme-light="false"] .{name}{{{variables(DARK)}}}')


def contrast(a, b):
    """Contrast ratio of two colours "#rrggbb", 1 … 21 (WCAG 2.1)."""
    first, second = sorted((luminance(a), luminance(b)), reverse=True)
    return (first + 0.05) / (second + 0.05)


def luminance(colour):
    """Relative luminance of "#rrggbb", 0 … 1 (WCAG 2.1)."""
    r, g, b = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in rgb(colour))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def blend(colour, background, opacity):
    """`colour` at `opacity` over `background`, all "#rrggbb"."""
    mixed = (round(255 * (opacity * c + (1 - opacity) * b)) for c, b in zip(rgb(colour), rgb(background), strict=True))
    return "#" + "".join(f"{v:02x}" for v in mixed)


def rgb(colour):
    """"#rrggbb" as three numbers 0 … 1."""
    return [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]

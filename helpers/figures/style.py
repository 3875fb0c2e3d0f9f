"""Colours and sizes of every picture, in one place.

Q, K, V and A have a colour each, positive and negative numbers another; what Q's colour outlines is the
query. Where all numbers are positive, positive is also what is meant and negative what it is compared with.
Heads, curves and groups have colours of their own. The four of Q, K, V and A and orange come from the
palette of Okabe and Ito (2008), darkened or lightened until text in them reads well on the theme's
background; negative is a cool grey, so that the pair differs in the direction that every kind of colour
vision keeps. A colour never stands alone: names, numbers, signs and outlines say the same.
"""

LIGHT = {
    "surface": "#ffffff",     # behind the picture
    "panel": "#f1f3f5",       # boxes, the row that is meant
    "ink": "#1b1f24",         # text and numbers
    "soft": "#545d68",        # captions, axes, what is masked
    "line": "#c5ccd3",        # hairlines
    "Q": "#b84300",           # vermillion
    "K": "#0067a5",           # blue
    "V": "#00735a",           # bluish green
    "A": "#99417c",           # reddish purple
    "positive": "#e69f00",    # orange
    "negative": "#6c8194",    # cool grey
    "head0": "#4a3fb0",       # indigo: heads, curves, groups, where they have to be told apart
    "head1": "#8a5200",       # brown
    "head2": "#006d77",       # petrol
    "head3": "#b0265e",       # crimson
}
DARK = {
    "surface": "#111111",
    "panel": "#262626",
    "ink": "#f2f2f2",
    "soft": "#b8b8b8",
    "line": "#505050",
    "Q": "#ff9a5c",
    "K": "#6cbcf5",
    "V": "#3fcfa3",
    "A": "#de8fc0",
    "positive": "#d18f00",
    "negative": "#7d95aa",
    "head0": "#aaa4ff",
    "head1": "#e0a458",
    "head2": "#5fd0d8",
    "head3": "#ff8fb5",
}
ROLES = {"Q": "Q", "K": "K", "V": "V", "A": "A", "X": "ink", "S": "ink", "Z": "ink", "W": "ink"}

FONT = "'DejaVu Sans', Verdana, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
TITLE, TEXT, CELL, SMALL = 15, 13, 12, 11  # px
PAD = 14                                   # around a picture
WIDTH = 860                                # px: what fits a notebook cell without scrolling
ROW = 26                                   # height of a line of cells or bars
COMPACT = 18                               # the same where more than SHOWN lines stand below each other
SHOWN = 12                                 # the most words in full detail
LABEL = 110                                # the most that a word may take
SHADES = 12                                # steps of a heat map
DARKEST = 0.6                              # opacity of the last step: ink still reads on it, in both themes


def shade(value, largest):
    """The opacity of a heat map's cell, 0 … DARKEST in SHADES steps; both numbers as rounded for display.

    Steps hang on the rounded numbers alone: what has the same numbers has the same colours, on every machine.
    """
    if not largest or abs(value) == float("inf") or value != value:
        return 0.0
    return round(round(min(abs(value) / largest, 1) * SHADES) / SHADES * DARKEST, 2)


def live_css():
    """The style sheet of a live picture; JupyterLab marks its page when the theme is dark."""
    def variables(palette):
        return "".join(f"--sa-{name}:{colour};" for name, colour in palette.items())
    return f'.sa{{{variables(LIGHT)}}}[data-jp-theme-light="false"] .sa{{{variables(DARK)}}}'


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
    pairs = zip(rgb(colour), rgb(background), strict=True)
    return "#" + "".join(f"{round(255 * (opacity * c + (1 - opacity) * b)):02x}" for c, b in pairs)


def rgb(colour):
    """The colour "#rrggbb" as three numbers 0 … 1."""
    return [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]

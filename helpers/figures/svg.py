"""A sheet to draw on: collects shapes, gives SVG text. Colours are named as in `style`.

A drawing takes its colours, the background too, from the theme's variables (`style.live_css`). `Picture.svg` puts
the light colours in their place, for an image that stands in a stored notebook and that no style sheet reaches.
"""

from xml.sax.saxutils import escape, quoteattr

from helpers.figures.style import FONT, LIGHT, SMALL, TEXT, TITLE
from helpers.figures.words import wrap


class Sheet:
    """Draw from the top down; `top` is where the next thing may begin."""

    def __init__(self, title, description, width, pad=14):
        self.title, self.description, self.width = title, description, width
        self.parts = []
        self.left = pad
        self.top = pad
        for line in wrap(title, width - 2 * pad, TITLE):
            self.text(pad, self.top + TITLE - 1, line, size=TITLE, weight="bold")
            self.top += TITLE + 5
        self.top += 7

    def colour(self, name):
        if name == "none":
            return name
        if name not in LIGHT:
            raise ValueError(f"no colour {name!r}; there are {' '.join(LIGHT)}")
        return f"var(--sa-{name})"

    def rect(self, x, y, w, h, fill="none", opacity=1, stroke=None, thick=1, radius=0, dash=None):
        self.parts.append(f'<rect x="{px(x)}" y="{px(y)}" width="{px(w)}" height="{px(h)}"'
                          + (f' rx="{px(radius)}"' if radius else "")
                          + f' fill="{self.colour(fill)}"' + (f' fill-opacity="{opacity:g}"' if opacity != 1 else "")
                          + self.stroke(stroke, thick, dash) + "/>")

    def line(self, x1, y1, x2, y2, stroke="line", thick=1, dash=None):
        self.parts.append(f'<line x1="{px(x1)}" y1="{px(y1)}" x2="{px(x2)}" y2="{px(y2)}"'
                          + self.stroke(stroke, thick, dash) + "/>")

    def polygon(self, points, fill):
        where = " ".join(f"{px(x)},{px(y)}" for x, y in points)
        self.parts.append(f'<polygon points="{where}" fill="{self.colour(fill)}"/>')

    def arrow(self, x1, y, x2, stroke="soft"):
        """A level arrow from x1 to x2."""
        self.line(x1, y, x2 - 6, y, stroke, 1.5)
        self.polygon([(x2 - 8, y - 4.5), (x2, y), (x2 - 8, y + 4.5)], stroke)

    def text(self, x, y, words, size=TEXT, colour="ink", anchor="start", weight=None):
        self.parts.append(f'<text x="{px(x)}" y="{px(y)}" font-size="{size}" fill="{self.colour(colour)}"'
                          + (f' text-anchor="{anchor}"' if anchor != "start" else "")
                          + (f' font-weight="{weight}"' if weight else "") + f">{escape(str(words))}</text>")

    def note(self, words):
        """A line of small print below what is drawn so far."""
        for line in wrap(words, self.width - 2 * self.left, SMALL):
            self.text(self.left, self.top + SMALL, line, SMALL, "soft")
            self.top += SMALL + 5

    def stroke(self, name, thick, dash):
        if not name:
            return ""
        return (f' stroke="{self.colour(name)}" stroke-width="{thick:g}"'
                + (f' stroke-dasharray="{dash}"' if dash else ""))

    def finish(self):
        """The whole SVG."""
        w, h = px(self.width), px(self.top + self.left)
        ground = f'<rect width="{w}" height="{h}" fill="{self.colour("surface")}"/>'
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img"'
                f' aria-label={quoteattr(self.title)} font-family="{FONT}" style="max-width:100%;height:auto">'
                f"<title>{escape(self.title)}</title><desc>{escape(self.description)}</desc>"
                f"{ground}{''.join(self.parts)}</svg>")


def px(x):
    """A length with at most one decimal."""
    return f"{round(float(x), 1):g}"

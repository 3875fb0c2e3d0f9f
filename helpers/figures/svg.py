"""A sheet to draw on: collects shapes, gives SVG text. Colours are named as in `style`.

A drawing takes its colours, the background too, from the theme's variables (`style.live_css`). `Picture.svg`
puts the light colours in their place, for an image in a stored notebook, which no style sheet reaches.
"""

import html

from helpers import arrays as given
from helpers.figures.style import FONT, LIGHT, PAD, SMALL, TEXT, TITLE
from helpers.figures.words import width as text_width
from helpers.figures.words import wrap

TITLE_ROOM = 640            # px: as wide as a title may make a picture


class Sheet:
    """Draw from the top down; `top` is where the next thing may begin, `left` the left edge."""

    def __init__(self, title, description, width):
        given.text("title", title, empty=False)
        bold = TITLE * 1.06                                        # its letters are wider
        self.title, self.description = title, description
        self.width = max(width, min(text_width(title, bold) + 2 * PAD, TITLE_ROOM))
        self.parts, self.left, self.top = [], PAD, PAD
        for line in wrap(title, self.width - 2 * PAD, bold):
            self.text(PAD, self.top + TITLE - 1, line, size=TITLE, weight="bold")
            self.top += TITLE + 5
        self.top += 7

    def colour(self, name):
        if name != "none" and name not in LIGHT:
            raise ValueError(f"no colour {name!r}; there are {' '.join(LIGHT)}")
        return name if name == "none" else f"var(--sa-{name})"

    def rect(self, x, y, w, h, fill="none", opacity=1, stroke=None, thick=1, radius=0):
        self.parts.append(f'<rect x="{px(x)}" y="{px(y)}" width="{px(w)}" height="{px(h)}"'
                          + (f' rx="{px(radius)}"' if radius else "")
                          + self.filled(fill, opacity) + self.stroked(stroke, thick) + "/>")

    def path(self, d, fill="none", opacity=1, stroke=None, thick=1, dash=None):
        self.parts.append(f'<path d="{d}"{self.filled(fill, opacity)}{self.stroked(stroke, thick, dash)}/>')

    def line(self, x1, y1, x2, y2, stroke="line", thick=1, dash=None):
        self.path(f"M{px(x1)} {px(y1)}L{px(x2)} {px(y2)}", stroke=stroke, thick=thick, dash=dash)

    def arrow(self, x1, y1, x2, y2=None, stroke="soft"):
        """An arrow from (x1, y1) to the right, level unless y2 is given; its head points to the right."""
        y = y1 if y2 is None else y2
        self.line(x1, y1, x2 - 6, y, stroke, 1.5)
        self.path(f"M{px(x2 - 8)} {px(y - 4.5)}L{px(x2)} {px(y)}L{px(x2 - 8)} {px(y + 4.5)}z", stroke)

    def text(self, x, y, words, size=TEXT, colour="ink", anchor="start", weight=None, turn=0):
        around = f' transform="rotate({turn} {px(x)} {px(y)})"' if turn else ""
        looks = self.lettered(size, colour, anchor, weight) + around
        self.parts.append(f'<text x="{px(x)}" y="{px(y)}"{looks}>{escaped(words)}</text>')

    def texts(self, items, size=TEXT, colour="ink", anchor="middle", weight=None):
        """Many words that look alike, as (x, y, words)."""
        inside = [f'<text x="{px(x)}" y="{px(y)}">{escaped(words)}</text>' for x, y, words in items]
        if inside:
            self.parts.append(f"<g{self.lettered(size, colour, anchor, weight)}>{''.join(inside)}</g>")

    def note(self, words):
        """Small print below what is drawn so far."""
        for line in wrap(words, self.width - 2 * self.left, SMALL):
            self.top += SMALL + 5
            self.text(self.left, self.top, line, SMALL, "soft")

    def filled(self, fill, opacity):
        return f' fill="{self.colour(fill)}"' + (f' fill-opacity="{opacity:g}"' if opacity != 1 else "")

    def stroked(self, name, thick, dash=None):
        if not name:
            return ""
        return (f' stroke="{self.colour(name)}" stroke-width="{thick:g}"'
                + (f' stroke-dasharray="{dash}"' if dash else ""))

    def lettered(self, size, colour, anchor, weight):
        return (f' font-size="{size}" fill="{self.colour(colour)}"'
                + (f' text-anchor="{anchor}"' if anchor != "start" else "")
                + (f' font-weight="{weight}"' if weight else ""))

    def finish(self):
        """The whole SVG."""
        w, h, shapes = px(self.width), px(self.top + PAD), "".join(self.parts)
        title = escaped(self.title)
        label = title.replace('"', "&quot;")
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}"'
                f' role="img" aria-label="{label}" font-family="{FONT}"'
                ' style="max-width:100%;height:auto">'
                f"<title>{title}</title><desc>{escaped(self.description)}</desc>"
                f'<rect width="{w}" height="{h}" fill="{self.colour("surface")}"/>{shapes}</svg>')


def escaped(words):
    """Words as they stand between two tags."""
    return html.escape(str(words), quote=False)


def px(x):
    """A length with at most one decimal."""
    return f"{round(float(x), 1) + 0.0:g}"

"""What every function of `figures` returns: one picture in the forms a notebook may need."""

import base64
import html
import re
from dataclasses import dataclass

from helpers.figures.style import LIGHT

# What XML, or UTF-8, has no form for: most control characters, and halves of characters.
UNWRITABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True)
class Picture:
    """A picture and its text form. The last expression of a cell shows it.

    JupyterLab shows SVG without alt text, and not at all in a notebook that it does not trust yet, such as
    a fresh clone's; it does show `html`, an image with alt text and the text form below. Others take SVG or
    text.
    """

    title: str        # what to see
    text: str         # the same in words and numbers, title included, for those who do not see it
    drawing: str      # SVG whose colours are the theme's variables: for a live picture

    def __post_init__(self):
        for name in ("title", "text", "drawing"):
            object.__setattr__(self, name, UNWRITABLE.sub("\ufffd", getattr(self, name)))

    @property
    def svg(self):
        """The drawing in colours of its own: for a stored picture, which no theme reaches."""
        return re.sub(r'(?<=")var\(--sa-(\w+)\)(?=")', lambda m: LIGHT[m[1]], self.drawing)

    @property
    def html(self):
        """The picture as an image with alt text, and its text form to be opened below."""
        data = base64.b64encode(self.svg.encode()).decode()
        return (f'<img alt="{html.escape(self.title)}" src="data:image/svg+xml;base64,{data}">'
                f"<details><summary>As text</summary>{self.text_html}</details>")

    @property
    def text_html(self):
        """The text form for a web page, its lines unbroken."""
        return f'<pre style="white-space:pre;overflow-x:auto">{html.escape(self.text)}</pre>'

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": self.html, "image/svg+xml": self.svg, "text/plain": self.text}

    def __repr__(self):
        return self.text

"""What every function of `figures` returns: one picture in the forms a notebook may need."""

import re
from dataclasses import dataclass

from helpers.figures.style import LIGHT


@dataclass(frozen=True)
class Picture:
    """A picture as SVG or PNG, with its text form. The last expression of a cell shows it."""

    title: str                  # what to see
    text: str                   # the same in words and numbers, for those who do not see it
    drawing: str | None = None  # SVG whose colours are the theme's variables: for a live picture
    png: bytes | None = None

    @property
    def svg(self):
        """The drawing in colours of its own: for a stored picture, which no theme reaches. None for a chart."""
        return self.drawing and re.sub(r'(?<=")var\(--sa-(\w+)\)(?=")', lambda m: LIGHT[m[1]], self.drawing)

    def _repr_mimebundle_(self, include=None, exclude=None):
        data, metadata = {"text/plain": self.text}, {}
        for kind, content in (("image/svg+xml", self.svg), ("image/png", self.png)):
            if content is not None:
                data[kind] = content
                metadata[kind] = {"alt": self.text}
        return data, metadata

    def __repr__(self):
        return self.text

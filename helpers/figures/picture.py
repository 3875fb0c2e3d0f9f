"""What every function of `figures` returns: one picture in the forms a notebook may need."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Picture:
    """A picture as SVG or PNG, with its text form. The last expression of a cell shows it."""

    title: str                  # what to see
    text: str                   # the same in words and numbers, for those who do not see it
    svg: str | None = None
    png: bytes | None = None

    def _repr_mimebundle_(self, include=None, exclude=None):
        data, metadata = {"text/plain": self.text}, {}
        for kind, content in (("image/svg+xml", self.svg), ("image/png", self.png)):
            if content is not None:
                data[kind] = content
                metadata[kind] = {"alt": self.text}
        return data, metadata

    def __repr__(self):
        return self.text

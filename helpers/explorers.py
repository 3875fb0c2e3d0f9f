"""Pictures a reader can take hold of: controls above a picture that a pure function of their state draws.

    explorers.similarity()                       # as the last expression of a cell
    explorers.step_through("i love apples")      # any text of the tiny model's words

`Explorer` holds what all have in common; `OneHead` adds the choice of text, layer, head and query. An
explorer only wires: the model computes, `figures` draws. Without a running kernel its display shows the
picture of its state, and where no picture can be shown, the numbers as text.
"""

import contextlib
import html
import math

import ipywidgets as widgets
import numpy as np

from helpers import figures, tiny_model
from helpers.attention import scores
from helpers.figures import heads
from helpers.figures.style import live_css
from helpers.figures.words import numbered

SHOWN = 12                   # tokens in full detail
SENTENCE = "anna loves apples . ben loves pears . she eats"


class Explorer:
    """Controls, a line that says what is wrong with an entry, and a picture.

    A subclass makes its controls, names them in `rows`, and defines `picture()`.
    """

    def __init__(self):
        self.larger = widgets.ToggleButton(description="Larger", tooltip="Larger picture, for a projector")
        self.in_words = widgets.ToggleButton(description="As text", tooltip="The picture's numbers as a text table")
        self.canvas = widgets.HTML()
        self.words = widgets.HTML()
        self.complaint = ""
        self.still = False

    def assemble(self, *rows):
        """Lay out the controls, a list for each line, and draw for the first time."""
        lines = [widgets.HBox(row, layout=widgets.Layout(flex_flow="row wrap")) for row in rows]
        lines.append(widgets.HBox([self.larger, self.in_words]))
        for control in (c for row in rows for c in row):
            if not isinstance(control, widgets.Button):
                control.observe(self.changed, "value")
        self.larger.observe(self.changed, "value")
        self.in_words.observe(self.changed, "value")
        self.box = widgets.VBox([widgets.HTML(f"<style>{live_css()}{CONTROLS_CSS}</style>"), *lines, self.canvas, self.words])
        self.box.add_class("sa-explorer")
        self.draw()

    def picture(self):
        """The Picture of the state the controls are in."""
        raise NotImplementedError

    def changed(self, change):
        if not self.still:
            self.draw()

    def draw(self):
        picture = self.picture()
        complaint = f'<p role="alert" class="sa-complaint">{html.escape(self.complaint)}</p>' if self.complaint else ""
        size = " sa-larger" if self.larger.value else ""
        self.canvas.value = f'{complaint}<div class="sa{size}">{picture.drawing}</div>'
        self.words.value = f"<pre>{html.escape(picture.text)}</pre>" if self.in_words.value else ""

    @contextlib.contextmanager
    def together(self):
        """Several controls change, one drawing follows."""
        self.still = True
        try:
            yield
        finally:
            self.still = False
        self.draw()

    def _repr_mimebundle_(self, include=None, exclude=None):
        data, metadata = self.picture()._repr_mimebundle_()
        view = "application/vnd.jupyter.widget-view+json"
        return data | {view: self.box._repr_mimebundle_()[view]}, metadata


CONTROLS_CSS = (
    ".sa-explorer .widget-toggle-buttons .widget-toggle-button{width:auto;min-width:34px;padding:0 9px}"
    ".sa-explorer button:focus-visible,.sa-explorer input:focus-visible{outline:3px solid #1a73e8;outline-offset:1px}"
    ".sa-complaint{color:var(--jp-ui-font-color1);border-left:4px solid #d55e00;padding:2px 8px}"
    ".sa{overflow-x:auto}.sa svg{display:block}.sa-larger svg{zoom:1.5;max-width:none!important}"
)


class OneHead(Explorer):
    """One head of the tiny model on one text, with a word chosen as the query."""

    def __init__(self, text, layer, head, query):
        super().__init__()
        self.model = tiny_model.load()
        self.trace = self.model.run(text)
        self.text = widgets.Text(" ".join(self.trace.tokens[1:]), description="text", continuous_update=False,
                                 tooltip="any words the tiny model knows; Enter reads them",
                                 layout=widgets.Layout(width="min(640px, 98%)"))
        self.layer = choice("layer", range(len(self.model.layers)), layer)
        self.head = choice("head", range(self.model.n_heads), head)
        self.query = widgets.ToggleButtons(description="query")
        self.offer_queries(query)
        self.text.observe(self.read, "value")

    @property
    def first(self):
        """The position of the first token shown in full detail."""
        return max(0, len(self.trace.tokens) - SHOWN)

    def offer_queries(self, query=None):
        """Make a button of each word shown; the last one is chosen unless `query` says which."""
        n = len(self.trace.tokens)
        query = n - 1 if query is None else query
        if not self.first <= query < n:
            raise ValueError(f"query must be one of the positions {self.first} … {n - 1} of this text, got {query}")
        words = numbered(self.trace.tokens)
        self.query.options = [(words[i], i) for i in range(self.first, n)]
        self.query.tooltips = [f"query: word {i}, {self.trace.tokens[i]}" for i in range(self.first, n)]
        self.query.value = query

    def read(self, change):
        """Run the model over what has been typed; a text it cannot read changes nothing but the complaint."""
        try:
            self.trace = self.model.run(change["new"])
            self.complaint = ""
        except ValueError as err:
            self.complaint = str(err)
            self.draw()
            return
        with self.together():
            self.offer_queries()

    def changed(self, change):
        if change["owner"] is not getattr(self, "text", None):
            self.complaint = ""
            super().changed(change)


    def computed(self):
        """The layer's trace and the chosen head's number."""
        return self.trace.layers[self.layer.value], self.head.value

    def earlier_note(self):
        return f"The last {SHOWN} of {len(self.trace.tokens)} tokens are shown." if self.first else ""


class Similarity(OneHead):
    """Every key's dot product with the query, its scaled score and its weight."""

    def __init__(self, text, layer, head, query):
        super().__init__(text, layer, head, query)
        self.assemble([self.text], [self.layer, self.head], [self.query])

    def picture(self):
        at, head = self.computed()
        i, shown = self.query.value, slice(self.first, None)
        dots = scores(at.Q[head], at.K[head])[i]                                  # (n,)
        note = self.earlier_note()
        if note:
            note += f" Those before them get {figures.number(at.A[head, i, :self.first].sum())} of the weight."
        return heads.similarity(self.trace.tokens[shown], i - self.first, dots[shown], at.S[head, i, shown],
                                at.A[head, i, shown], self.model.d_k, note)


class ValueReading(OneHead):
    """The parts that add up to what the query takes away."""

    def __init__(self, text, layer, head, query):
        super().__init__(text, layer, head, query)
        self.assemble([self.text], [self.layer, self.head], [self.query])

    def picture(self):
        at, head = self.computed()
        i, first = self.query.value, self.first
        parts = at.A[head, i][:, None] * at.V[head]                               # (n, 1) * (n, d_v) -> (n, d_v)
        earlier = (first, at.A[head, i, :first].sum(), parts[:first].sum(axis=0)) if first else None
        return heads.value_reading(self.trace.tokens[first:], i - first, at.A[head, i, first:], parts[first:],
                                   at.Z[head, i], earlier)


class StepThrough(OneHead):
    """Score, scale, mask, softmax, sum: one array after the other, forth and back."""

    def __init__(self, text, layer, head, query, step):
        super().__init__(text, layer, head, query)
        self.step = widgets.ToggleButtons(description="step", options=[(f"{s + 1} {name}", s) for s, name in
                                                                       enumerate(heads.STEPS)], value=step)
        self.back = widgets.Button(description="◀ back", tooltip="one step back")
        self.on = widgets.Button(description="next ▶", tooltip="one step on")
        self.back.on_click(lambda _: self.go(-1))
        self.on.on_click(lambda _: self.go(1))
        self.assemble([self.text], [self.layer, self.head], [self.query], [self.step, self.back, self.on])

    def go(self, by):
        """One step on or back; the first and the last stay where they are."""
        self.step.value = min(max(self.step.value + by, 0), len(heads.STEPS) - 1)

    def draw(self):
        self.back.disabled, self.on.disabled = self.step.value == 0, self.step.value == len(heads.STEPS) - 1
        super().draw()

    def picture(self):
        at, head = self.computed()
        n, d_k, d_v, first = len(self.trace.tokens), self.model.d_k, self.model.d_v, self.first
        S, A = at.S[head], at.A[head]                                             # (n, n), (n, n)
        masked = np.where(np.tri(n, dtype=bool), S, -np.inf)
        step, tokens = self.step.value, self.trace.tokens[first:]
        M, title, formula = [
            (scores(at.Q[head], at.K[head]), "Every query meets every key: one dot product a cell",
             f"Q Kᵀ: ({n}, {d_k}) @ ({d_k}, {n}) → ({n}, {n})"),
            (S, f"The same scores, smaller: each divided by √{d_k} = {figures.number(math.sqrt(d_k))}",
             f"S = Q Kᵀ / √d_k: ({n}, {n})"),
            (masked, "A word may read itself and what came before; the rest becomes −∞",
             f"S with −∞ where the mask forbids: ({n}, {n})"),
            (A, "Each row becomes shares that add up to 1; −∞ becomes 0", f"A = softmax of each row: ({n}, {n})"),
            (at.Z[head], "Each row of A mixes the values: what every word takes away",
             f"Z = A V: ({n}, {n}) @ ({n}, {d_v}) → ({n}, {d_v})"),
        ][step]
        square = step < 4
        return heads.step(step, tokens, self.query.value - first, M[first:, first:] if square else M[first:], title,
                          formula, sums=A.sum(axis=1)[first:] if step == 3 else None,
                          columns=tokens if square else None, role="A" if step == 3 else "S",
                          note=self.earlier_note())


def choice(name, values, value):
    """ToggleButtons with a number each. Raises ValueError when `value` is none of them."""
    values = list(values)
    if value not in values:
        raise ValueError(f"{name} must be one of {', '.join(map(str, values))}, got {value!r}")
    return widgets.ToggleButtons(description=name, options=[(str(v), v) for v in values], value=value,
                                 tooltips=[f"{name} {v}" for v in values])


def similarity(text=SENTENCE, layer=1, head=0, query=None):
    """Choose any word as the query; see its dot product, scaled score and weight with every key."""
    return Similarity(text, layer, head, query)


def value_reading(text=SENTENCE, layer=1, head=0, query=None):
    """Choose a query; see which values it reads, as signed parts that add up to z."""
    return ValueReading(text, layer, head, query)


def step_through(text="i love apples", layer=1, head=0, query=None, step=0):
    """Walk from scores to Z: score, scale, mask, softmax, sum."""
    if step not in range(len(heads.STEPS)):
        raise ValueError(f"step must be one of 0 … {len(heads.STEPS) - 1}, got {step!r}")
    return StepThrough(text, layer, head, query, step)

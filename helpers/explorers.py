"""Pictures a reader can take hold of: controls above a picture that a pure function of their state draws.

    explorers.similarity()                       # as the last expression of a cell
    explorers.step_through("i love apples")      # any text of the tiny model's words

`Explorer` holds what all have in common; `OneHead` adds the choice of text, layer, head and query. An
explorer only wires: the model computes, `figures` draws. Without a running kernel its cell shows the
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
LAYER, HEAD = 1, 3           # the head that goes from "eats" to the fruit of its subject
VIEW = "application/vnd.jupyter.widget-view+json"
CSS = live_css() + """
.sa-picture{overflow-x:auto}
.sa-picture svg{display:block}
.sa-larger svg{zoom:1.5;max-width:none!important}
.sa-controls{flex-flow:row wrap!important;align-items:center;gap:2px 18px}
.sa-controls .widget-label{width:auto!important;min-width:40px;margin-right:6px;text-align:left}
.sa-controls .widget-toggle-buttons{display:flex;align-items:baseline;width:auto;margin:2px;overflow:visible}
.sa-controls button{width:auto!important;min-width:32px;padding:0 9px}
.sa-controls button.mod-active{background:var(--sa-ink);color:var(--sa-surface);box-shadow:none}
.sa-query button.mod-active{background:var(--sa-Q)}
.sa-controls :is(button,input):focus-visible{outline:3px solid var(--sa-K)!important;outline-offset:1px}
.sa-complaint{color:var(--sa-ink);border-left:4px solid var(--sa-Q);padding:2px 8px;margin:4px 0}
.sa-unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
"""


class Explorer:
    """Controls, a sentence when an entry cannot be used, and a picture.

    A subclass makes its controls, hands them to `assemble`, and defines `picture()`.
    """

    def __init__(self):
        self.larger = widgets.ToggleButton(description="Larger", tooltip="larger picture, for a projector")
        self.in_words = widgets.ToggleButton(description="As text", tooltip="the numbers as a text table")
        self.canvas, self.words = widgets.HTML(), widgets.HTML()
        self.complaint, self.still = "", False

    def assemble(self, *rows):
        """Lay out the controls, a list of them for each line, and draw for the first time."""
        lines = []
        self.choices = [c for row in rows for c in row if isinstance(c, widgets.ToggleButtons)]
        for row in (*rows, [self.larger, self.in_words]):
            lines.append(widgets.HBox(row).add_class("sa-controls"))
            for control in row:
                if not isinstance(control, widgets.Button):
                    control.observe(self.changed, "value")
        style = widgets.HTML(f"<style>{CSS}</style>", layout=widgets.Layout(display="none"))
        self.box = widgets.VBox([style, *lines[:-1], self.canvas, lines[-1], self.words]).add_class("sa")
        self.draw()

    def picture(self):
        """The Picture of the state the controls are in."""
        raise NotImplementedError

    def changed(self, change):
        """A control has a new value."""
        if not self.still:
            self.draw()

    def draw(self):
        """Show the picture of the state, and name the state for those who do not see the pressed buttons."""
        picture = self.picture()
        alarm = html.escape(self.complaint)
        alarm = alarm and f'<p role="alert" class="sa-complaint">{alarm}</p>'
        chosen = ", ".join(f"{c.description} {c.label}" for c in self.choices)
        size = "sa-picture sa-larger" if self.larger.value else "sa-picture"
        self.canvas.value = (f'{alarm}<p role="status" class="sa-unseen">{html.escape(chosen)}</p>'
                             f'<div class="{size}">{picture.drawing}</div>')
        self.words.value = picture.text_html if self.in_words.value else ""

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
        return self.picture()._repr_mimebundle_() | {VIEW: self.box._repr_mimebundle_()[VIEW]}

    def __repr__(self):
        return self.picture().text


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
        self.query = widgets.ToggleButtons(description="query").add_class("sa-query")
        self.offer_queries(query)

    @property
    def first(self):
        """The position of the first token shown in full detail."""
        return max(0, len(self.trace.tokens) - SHOWN)

    @property
    def shown(self):
        """The tokens shown in full detail, told apart where a word comes twice."""
        return numbered(self.trace.tokens)[self.first:]

    def offer_queries(self, query=None):
        """Make a button of each word shown; the last one is chosen unless `query` says which."""
        last = len(self.trace.tokens) - 1
        query = last if query is None else query
        if query not in range(self.first, last + 1):
            raise ValueError(f"query must be one of the positions {self.first} … {last}, got {query!r}")
        positions = range(self.first, last + 1)
        self.query.options = list(zip(self.shown, positions, strict=True))
        self.query.tooltips = [f"query: token {i}, {self.trace.tokens[i]}" for i in positions]
        self.query.value = query

    def changed(self, change):
        if self.still:
            return
        self.complaint = ""
        if change["owner"] is self.text:
            self.read(change["new"])
        else:
            self.draw()

    def read(self, text):
        """Run the model over what has been typed; a text it cannot read changes nothing but the complaint."""
        try:
            self.trace = self.model.run(text)
        except ValueError as err:
            self.complaint = str(err)
            self.draw()
            return
        with self.together():
            self.offer_queries()

    def state(self):
        """(the chosen layer's LayerTrace, head, position of the query, position of the first token shown)."""
        return self.trace.layers[self.layer.value], self.head.value, self.query.value, self.first

    def note(self):
        """What to say when some of the tokens are not shown."""
        return f"The last {SHOWN} of {len(self.trace.tokens)} tokens are shown." if self.first else ""


class Similarity(OneHead):
    """Every key's dot product with the query, its scaled score and its weight."""

    def __init__(self, text, layer, head, query):
        super().__init__(text, layer, head, query)
        self.assemble([self.text], [self.layer, self.head], [self.query])

    def picture(self):
        at, head, i, first = self.state()
        dots = scores(at.Q[head], at.K[head])[i]              # (n,)
        A = at.A[head, i]                                     # (n,)
        note = self.note()
        if note:
            note += f" Those before get {figures.number(A[:first].sum())} of the weight."
        return heads.similarity(self.shown, i - first, dots[first:], at.S[head, i, first:], A[first:],
                                self.model.d_k, note)


class ValueReading(OneHead):
    """The parts that add up to what the query takes away."""

    def __init__(self, text, layer, head, query):
        super().__init__(text, layer, head, query)
        self.assemble([self.text], [self.layer, self.head], [self.query])

    def picture(self):
        at, head, i, first = self.state()
        A = at.A[head, i]                                     # (n,)
        parts = A[:, None] * at.V[head]                       # (n, 1) * (n, d_v) -> (n, d_v)
        earlier = (first, A[:first].sum(), parts[:first].sum(axis=0)) if first else None
        return heads.value_reading(self.shown, i - first, A[first:], parts[first:], at.Z[head, i], earlier)


class StepThrough(OneHead):
    """Score, scale, mask, softmax, sum: one array after the other, forth and back."""

    def __init__(self, text, layer, head, query, step):
        super().__init__(text, layer, head, query)
        names = [f"{s + 1} {name}" for s, name in enumerate(heads.STEPS)]
        self.step = choice("step", range(len(names)), step, names)
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
        at, head, i, first = self.state()
        Q, K, S, A, Z = at.Q[head], at.K[head], at.S[head], at.A[head], at.Z[head]
        (n, d_k), d_v, step = Q.shape, Z.shape[1], self.step.value
        M, role, title, formula = (
            lambda: (scores(Q, K), "S", "Every query meets every key: one dot product a cell",
                     f"Q Kᵀ: ({n}, {d_k}) @ ({d_k}, {n}) → ({n}, {n})"),
            lambda: (S, "S", f"The same scores, each divided by √{d_k} = {figures.number(math.sqrt(d_k))}",
                     f"S = Q Kᵀ / √d_k: ({n}, {n})"),
            lambda: (np.where(np.tri(n, dtype=bool), S, -np.inf), "S",
                     "A word may read itself and what came before; all else becomes −∞",
                     f"S with −∞ where the mask forbids: ({n}, {n})"),
            lambda: (A, "A", "Each row becomes shares that add up to 1; −∞ becomes 0",
                     f"A = softmax of each row: ({n}, {n})"),
            lambda: (Z, "Z", "Each row of A mixes the values: what every word takes away",
                     f"Z = A V: ({n}, {n}) @ ({n}, {d_v}) → ({n}, {d_v})"),
        )[step]()
        last = step == len(heads.STEPS) - 1                   # Z has a column for each of d_v numbers
        M, columns = (M[first:], None) if last else (M[first:, first:], self.shown)
        sums = A.sum(axis=1)[first:] if step == 3 else None
        return heads.step(step, self.shown, i - first, M, title, formula, columns, sums, role, self.note())


def choice(name, values, value, labels=None):
    """A row of buttons, one for each value. Raises ValueError when `value` is none of them."""
    values = list(values)
    if value not in values:
        raise ValueError(f"{name} must be one of {', '.join(map(str, values))}, got {value!r}")
    labels = labels or [str(v) for v in values]
    options = list(zip(labels, values, strict=True))
    return widgets.ToggleButtons(description=name, options=options, value=value,
                                 tooltips=[f"{name} {label}" for label in labels])


def similarity(text=SENTENCE, layer=LAYER, head=HEAD, query=None):
    """Choose any word as the query; see its dot product, scaled score and weight with every key."""
    return Similarity(text, layer, head, query)


def value_reading(text=SENTENCE, layer=LAYER, head=HEAD, query=None):
    """Choose a query; see which values it reads, as signed parts that add up to z."""
    return ValueReading(text, layer, head, query)


def step_through(text=SENTENCE, layer=LAYER, head=HEAD, query=None, step=0):
    """Walk from scores to Z: score, scale, mask, softmax, sum."""
    return StepThrough(text, layer, head, query, step)

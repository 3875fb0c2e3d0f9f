"""What all explorers have in common: `Explorer`, and `Reading` for those that read a text.

`choice` makes a row of buttons, `slider` a slider over whole numbers, `pick` one over any values, `stepper`
the two buttons that move buttons or a slider forth and back.
"""

import contextlib
import html

import ipywidgets as widgets

from helpers import arrays as given
from helpers import tiny_model
from helpers.figures.style import live_css
from helpers.figures.words import ending, numbered, thousands

SENTENCE = "anna loves apples . ben loves pears . she eats"
LAYER, HEAD = 1, 3           # the head that goes from "eats" to the fruit of its subject
SLIDERS = (widgets.IntSlider, widgets.SelectionSlider)
VIEW = "application/vnd.jupyter.widget-view+json"
CSS = live_css() + """
.sa-picture{overflow-x:auto;container-type:inline-size}
.sa-hint{display:none;color:var(--sa-ink);margin:4px 0}
@container (max-width:600px){.sa-hint{display:block}}
@container (max-width:960px){.sa-larger .sa-hint{display:block}}
.sa-picture svg{display:block}
.sa-larger svg{zoom:1.5}
.sa-controls{flex-flow:row wrap!important;align-items:center;gap:2px 18px}
.sa-controls .widget-label{width:auto!important;min-width:40px;flex-shrink:0;margin-right:6px;text-align:left}
.sa-controls .widget-hslider{margin:2px;min-width:120px;width:200px;flex-shrink:1}
.sa-controls .widget-hslider .widget-label{display:none}
.sa-controls .noUi-handle{visibility:hidden}
.sa-controls .noUi-handle::after{content:"";visibility:visible;position:absolute;inset:-1px;
width:auto;height:auto;border:2px solid var(--sa-K);border-radius:50%;background:var(--sa-surface);
cursor:pointer}
.sa-pair{align-items:center;gap:2px 18px;overflow:visible}
.sa-entry{width:auto!important;margin:2px}
.sa-entry input{width:80px!important;flex:none!important}
.sa-entry select{width:auto!important;flex:none!important;appearance:auto;background-image:none!important}
[data-jp-theme-light="false"] .sa-entry{color-scheme:dark}
.sa-controls .widget-play{width:auto}
.sa-controls .widget-play button:nth-of-type(1)::after{content:" play / pause"}
.sa-controls .widget-play button:nth-of-type(2)::after{content:" stop"}
.sa-controls .widget-play button:nth-of-type(3)::after{content:" repeat"}
.sa-controls .widget-toggle-buttons{display:flex;align-items:baseline;width:auto;margin:2px;overflow:visible}
.sa-controls button{width:auto!important;min-width:32px;padding:0 9px}
.sa-controls button.mod-active{background:var(--sa-ink);color:var(--sa-surface);box-shadow:none}
.sa-query button.mod-active{background:var(--sa-Q)}
.sa-controls :is(button,input,select):focus-visible{outline:3px solid var(--sa-K)!important;
outline-offset:1px}
.sa-complaint{color:var(--sa-ink);border-left:4px solid var(--sa-Q);padding:2px 8px;margin:4px 0;
overflow-wrap:anywhere}
.sa-unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
"""


HINT = '<p class="sa-hint">Little room: close the side bar (Ctrl + B, ⌘ B) or widen the window.</p>'


class Explorer:
    """Controls, a sentence when an entry cannot be used, and a picture.

    A subclass makes its controls, hands them to `assemble`, and defines `picture()`.
    """

    def __init__(self):
        self.larger = widgets.ToggleButton(description="Larger",
                                           tooltip="larger picture, as wide as there is room")
        self.in_words = widgets.ToggleButton(description="As text", tooltip="the numbers as a text table")
        self.canvas, self.words = widgets.HTML(), widgets.HTML()
        self.complaint, self.still = "", False

    def assemble(self, *rows):
        """Lay out the controls, a list of them for each line, and draw for the first time."""
        lines = []
        self.choices = [c for row in rows for c in row if isinstance(c, widgets.ToggleButtons)]
        self.sliders = [c for row in rows for c in row if isinstance(c, SLIDERS)]
        self.entries = []
        for row in (*rows, [self.larger, self.in_words]):
            for control in row:
                if hasattr(control, "value") and not isinstance(control, widgets.Play):
                    control.observe(self.changed, "value")
            shown = [self.with_entry(c) if c in self.sliders else c for c in row]
            lines.append(widgets.HBox(shown).add_class("sa-controls"))
        style = widgets.HTML(f"<style>{CSS}</style>", layout=widgets.Layout(display="none"))
        self.box = widgets.VBox([style, *lines[:-1], self.canvas, lines[-1], self.words]).add_class("sa")
        self.draw()

    def with_entry(self, control):
        """A slider and, before it, what it shows: to be typed or chosen, too.

        ipywidgets gives a slider's handle no name that a screen reader could say. So the keyboard and screen
        readers have the entry, which has one, and the handle is for the mouse alone.
        """
        if isinstance(control, widgets.SelectionSlider):
            entry, same = widgets.Dropdown(options=control.options, index=control.index), ("options", "index")
        else:
            entry, same = widgets.BoundedIntText(control.value, control.min, control.max), ("max", "value")
        entry.description, entry.tooltip, control.readout = control.description, control.tooltip, False
        for trait in same:
            widgets.link((control, trait), (entry, trait))
        self.entries.append(entry.add_class("sa-entry"))
        return widgets.HBox([entry, control]).add_class("sa-pair")

    def picture(self):
        """The Picture of the state the controls are in."""
        raise NotImplementedError

    def state_in_words(self):
        """What is chosen, for those who do not see the pressed buttons."""
        return ", ".join([f"{c.description} {c.label}" for c in self.choices]
                         + [f"{c.description} {getattr(c, 'label', c.value)}" for c in self.sliders])

    def changed(self, change):
        """A control has a new value."""
        if not self.still:
            self.complaint = ""
            self.draw()

    def complain(self, sentence):
        """Show a sentence above the picture, until a control changes."""
        self.complaint = sentence
        self.draw()

    def draw(self):
        """Show the picture of the state, and say the state."""
        self.drawn_last = picture = self.picture()
        alarm = html.escape(self.complaint)
        alarm = alarm and f'<p role="alert" class="sa-complaint">{alarm}</p>'
        size = "sa-picture sa-larger" if self.larger.value else "sa-picture"
        state = html.escape(self.state_in_words())
        self.canvas.value = (f'{alarm}<p role="status" class="sa-unseen">{state}</p>'
                             f'<div class="{size}">{HINT}{picture.drawing}</div>')
        self.words.value = picture.text_html if self.in_words.value else ""

    @contextlib.contextmanager
    def together(self):
        """Several controls change, one drawing follows, and is sent before they are."""
        with contextlib.ExitStack() as held:
            for control in (*self.choices, *self.sliders, *self.entries):
                held.enter_context(control.hold_sync())
            self.still = True
            try:
                yield
            finally:
                self.still = False
            self.draw()

    def _repr_mimebundle_(self, include=None, exclude=None):
        return self.drawn_last._repr_mimebundle_() | {VIEW: self.box._repr_mimebundle_()[VIEW]}

    def __repr__(self):
        return self.drawn_last.text


class Reading(Explorer):
    """An explorer in which the tiny model reads a text that can be typed anew."""

    def __init__(self, text):
        super().__init__()
        self.model = tiny_model.load()
        self.trace = self.run(text)
        self.text = widgets.Text(" ".join(self.trace.tokens[1:]), description="text", continuous_update=False,
                                 tooltip="any words the tiny model knows; Enter reads them",
                                 layout=widgets.Layout(width="min(640px, 98%)"))

    def run(self, text):
        """The model's Trace of a text. Raises ValueError for one it cannot read."""
        return self.model.run(text)

    def new_text(self):
        """Called when another text has been read: fit the controls to it."""

    @property
    def names(self):
        """The tokens, told apart where a word comes twice."""
        return numbered(self.trace.tokens)

    @property
    def after(self):
        """After which text the next word comes: all of it, or its end where it is long."""
        return f"After “{ending(self.trace.tokens[1:]) or self.trace.tokens[0]}”"

    def changed(self, change):
        if self.still:
            return
        if change["owner"] is self.text:
            self.read(change["new"])
        else:
            self.forget_refused()
            super().changed(change)

    def forget_refused(self):
        """A text that was refused gives way to the one the picture shows."""
        shown = " ".join(self.trace.tokens[1:])
        if self.complaint and self.text.value.split() != shown.split():
            self.still = True
            self.text.value = shown
            self.still = False

    def read(self, text):
        """Run the model over what has been typed; a text it cannot read changes nothing but the complaint."""
        self.complaint = ""
        try:
            self.trace = self.run(text)
        except ValueError as err:
            self.complain(f"{err}. The picture still shows the last good text.")
            return
        with self.together():
            self.new_text()

    def offer_tokens(self, control, position=None):
        """Make a button of each token; the last one is chosen unless `position` says which."""
        n = len(self.trace.tokens)
        position = n - 1 if position is None else given.position(control.description, position, n)
        positions = range(n)
        control.options = list(zip(self.names, positions, strict=True))
        control.tooltips = [f"{control.description}: token {i}, {self.trace.tokens[i]}" for i in positions]
        control.value = position


def choice(name, values, value, labels=None, argument=None):
    """A row of buttons, one for each value. Raises ValueError when `value` is none of them.

    argument : what the reader calls it, where that is not its name.
    """
    values = list(values)
    value = given.one_of(argument or name, value, values)
    labels = labels or [str(v) for v in values]
    options = list(zip(labels, values, strict=True))
    return widgets.ToggleButtons(description=name, options=options, value=value,
                                 tooltips=[f"{name} {label}" for label in labels])


def slider(name, last, value, tooltip, first=0, argument=None):
    """A slider from `first` to `last`. Raises ValueError when `value` lies outside, TypeError for no number.

    argument : what the reader calls it, where that is not its name.
    """
    value = given.count(argument or name, value, first, last)
    return widgets.IntSlider(value, first, last, description=name, tooltip=tooltip)


def pick(name, values, value, tooltip, written=thousands):
    """A slider over `values` and `value`, each as it is `written`.

    A FloatSlider would do for fractions, but moves the value to its nearest step as soon as it is shown.
    """
    options = written_out({*values, value}, written)
    return widgets.SelectionSlider(options=options, value=value, description=name, tooltip=tooltip)


def written_out(values, written=thousands):
    """The options of a slider over `values`: rising, with a label each."""
    return [(written(v), v) for v in sorted(values)]


def stepper(control, back="◀ back", on="next ▶", what="step"):
    """The buttons that move `control`, a slider or buttons for 0, 1, 2 …, one back and one on.

    At the first and the last step they do nothing; disabled, they would lose the focus of the keyboard.
    """
    back = widgets.Button(description=back, tooltip=f"one {what} back")
    on = widgets.Button(description=on, tooltip=f"one {what} on")

    def last():
        return control.max if hasattr(control, "max") else len(control.options) - 1

    def go(by):
        control.value = min(max(control.value + by, 0), last())

    back.on_click(lambda _: go(-1))
    on.on_click(lambda _: go(1))
    return back, on

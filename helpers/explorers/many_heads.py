"""All heads of the tiny model at once: `Heads`."""

import ipywidgets as widgets

from helpers import arrays as given
from helpers.explorers.base import Reading, choice
from helpers.figures import head_grid
from helpers.figures.words import number

TOP = 3                      # the likeliest words with all heads on, and as many without those switched off


class Heads(Reading):
    """Every head's pattern, one of them large, and what the model expects without those switched off."""

    def __init__(self, text, layer, head, without):
        self.everything = None                                # the trace with all heads on
        self.switches = {}
        super().__init__(text)
        self.layer = choice("layer", range(len(self.model.layers)), layer)
        self.head = choice("head", range(self.model.n_heads), head)
        off = given.pairs("without", without, len(self.model.layers), self.model.n_heads)
        for at in [(r, s) for r in range(len(self.model.layers)) for s in range(self.model.n_heads)]:
            self.switches[at] = widgets.ToggleButton(at in off, description=f"{at[0]}.{at[1]}",
                                                     tooltip=f"switch off layer {at[0]}, head {at[1]}")
        self.all_on = widgets.Button(description="all on", tooltip="switch all heads on")
        self.all_on.on_click(lambda _: self.switch_all_on())
        self.rerun()
        self.assemble([self.text], [self.layer, self.head],
                      [widgets.Label("switch off"), *self.switches.values(), self.all_on])

    @property
    def off(self):
        """The (layer, head) pairs switched off."""
        return {at for at, switch in self.switches.items() if switch.value}

    def run(self, text):
        self.everything = self.model.run(text)
        return self.model.run(text, self.off)

    def rerun(self):
        """The same words without the heads that are switched off now."""
        self.trace = self.model.run(self.trace.tokens, self.off)

    def changed(self, change):
        if change["owner"] in self.switches.values():
            self.rerun()
        super().changed(change)

    def switch_all_on(self):
        with self.together():
            for switch in self.switches.values():
                switch.value = False

    def state_in_words(self):
        return f"{super().state_in_words()}, {head_grid.without(self.off) if self.off else 'all heads on'}"

    def picture(self):
        off = self.off
        p, q = self.everything.probabilities[-1], self.trace.probabilities[-1]        # (V,), (V,)
        before, after = ([word for word, _ in trace.top(TOP)] for trace in (self.everything, self.trace))
        ids = [self.model.vocab.index(word) for word in dict.fromkeys(before + after)]
        predictions = [(self.model.vocab[i], p[i], q[i]) for i in ids]
        if not off:
            title = f"{self.after} the eight heads together expect “{before[0]}”: {number(p[ids[0]])}"
        else:
            was, now = number(p[ids[0]]), number(q[ids[0]])
            falls = f"“{before[0]}” " + (f"stays at {was}" if was == now else f"goes from {was} to {now}")
            turned = "" if before[0] == after[0] else f"; now “{after[0]}” is likeliest"
            title = f"{head_grid.without(off).capitalize()}: {falls}{turned}"
        patterns = [layer.A for layer in self.trace.layers]                          # (h, n, n) each
        return head_grid.head_grid(self.names, patterns, (self.layer.value, self.head.value), off,
                                   predictions, title)

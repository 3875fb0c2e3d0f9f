"""All heads of the language model on the reader's own text: `ModelHeads`."""

import ipywidgets as widgets
import numpy as np

from helpers import arrays as given
from helpers import smollm2
from helpers.explorers.base import Explorer, choice, slider
from helpers.figures.head_grid import without as names_of
from helpers.figures.heads import largest
from helpers.figures.model_heads import isolated, model_heads, visible
from helpers.figures.words import number, numbered
from helpers.smollm2.measure import SCORES, head_scores, n_asked, patterns

MOST = 24                    # tokens
TOP = 4                      # the likeliest tokens with all heads on, and as many without those switched off


class ModelHeads(Explorer):
    """A score for every head, the patterns of a layer, one of them large, and what the model expects next."""

    def __init__(self, text, layer, head, query, score, without, model):
        super().__init__()
        self.model = smollm2.load() if model is None else model
        if not isinstance(self.model, smollm2.SmolLM2):
            raise TypeError(f"model must be one as smollm2.load() gives it, got {given.came(model)}")
        c = self.model.config
        self.off = given.pairs("without", without, c.n_layers, c.n_heads)
        self.read(text)
        self.text = widgets.Text(text, description="text", continuous_update=False,
                                 tooltip=f"any text of at most {MOST} tokens; Enter reads it",
                                 layout=widgets.Layout(width="min(640px, 98%)"))
        self.score = choice("score", SCORES, score)
        self.score.tooltips = list(SCORES.values())
        self.layer = slider("layer", c.n_layers - 1, layer, "the layer whose patterns are shown")
        self.head = choice("head", range(c.n_heads), head)
        self.query = widgets.ToggleButtons(description="query").add_class("sa-query")
        self.offer_queries(query)
        self.best = widgets.Button(description="go to the highest", tooltip="the head with the highest score")
        self.best.on_click(lambda _: self.go_to_best())
        self.switch = widgets.Button(tooltip="switch the chosen head off, or on again")
        self.switch.on_click(lambda _: self.switch_off(self.off ^ {self.chosen}))
        self.all_on = widgets.Button(description="all on", tooltip="switch all heads on")
        self.all_on.on_click(lambda _: self.switch_off(set()))
        self.assemble([self.text], [self.score, self.best], [self.layer, self.head],
                      [self.query], [self.switch, self.all_on])

    @property
    def chosen(self):
        """The (layer, head) shown large."""
        return self.layer.value, self.head.value

    def read(self, text):
        """Run the model; a text it cannot read raises TypeError or ValueError and changes nothing."""
        ids = self.model.ids(self.model.tokenizer.encode(text))
        if len(ids) > MOST:
            raise ValueError(f"the text is cut into {len(ids)} tokens, and the picture has room for {MOST}")
        everything = patterns(self.model, ids)
        self.now = patterns(self.model, ids, self.off) if self.off else everything
        self.everything, self.shown = everything, text
        self.names = numbered(map(visible, self.model.tokenizer.tokens(ids)))
        self.scores = head_scores(self.now.A, ids)

    def offer_queries(self, query=None):
        """A button for each token; the last is chosen unless `query` says which."""
        n = len(self.names)
        query = n - 1 if query is None else given.position("query", query, n)
        self.query.options = [(name, i) for i, name in enumerate(self.names)]
        self.query.tooltips = [f"query: token {i}, {name}" for i, name in enumerate(self.names)]
        self.query.value = query

    def changed(self, change):
        if self.still:
            return
        if change["owner"] is not self.text:
            self.forget_refused()
            super().changed(change)
            return
        self.complaint = ""
        try:
            self.read(change["new"])
        except ValueError as err:
            self.complain(f"{err}. The picture still shows the last good text.")
            return
        with self.together():
            self.offer_queries()

    def forget_refused(self):
        """A text that was refused gives way to the one the picture shows."""
        self.complaint, self.still = "", True
        self.text.value = self.shown
        self.still = False

    def switch_off(self, off):
        """Read the same text without these heads."""
        self.off = off
        self.forget_refused()
        with self.together():
            self.now = patterns(self.model, self.now.ids, off) if off else self.everything
            self.scores = head_scores(self.now.A, self.now.ids)

    def go_to_best(self):
        scores = self.scores[self.score.value]
        if not np.isnan(scores).any():
            self.forget_refused()
            with self.together():
                self.layer.value, self.head.value = divmod(int(scores.argmax()), scores.shape[1])

    def draw(self):
        layer, head = self.chosen
        self.switch.description = f"switch {layer}.{head} {'on' if self.chosen in self.off else 'off'}"
        super().draw()

    def state_in_words(self):
        return f"{super().state_in_words()}, {names_of(self.off) if self.off else 'all heads on'}"

    def predictions(self):
        """(token, share with all heads, share without those off) for the likeliest of both."""
        p, q = self.everything.p, self.now.p
        best = [np.argsort(-share, kind="stable")[:TOP] for share in (p, q)]
        ids = list(dict.fromkeys(int(i) for i in np.concatenate(best)))
        return [(visible(self.model.tokenizer.decode([i])), p[i], q[i]) for i in ids]

    def picture(self):
        (layer, head), query, score = self.chosen, self.query.value, self.score.value
        weights = self.now.A[layer, head, query]
        most = largest(weights)
        off = ", switched off" if self.chosen in self.off else ""
        title = (f"Head {layer}.{head}{off}: “{isolated(self.names[query])}” gives its largest weight to "
                 f"“{isolated(self.names[most])}”: {number(weights[most])}")
        return model_heads(self.names, self.now.A, self.scores[score], score, SCORES[score],
                           n_asked(score, self.now.ids), self.chosen, query, self.off, self.predictions(),
                           title)

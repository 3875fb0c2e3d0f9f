"""What the tiny model has learned, in figures: how close it comes to the grammar, and what its heads do.

Everything is measured on stories the model has not read: those about people each have a name and a fruit that
never go together in training. `cross_entropy` and `accuracy` look at the predictions, `head_scores` and
`score` at the attention, for the four kinds of word of `corpus.KINDS`; `best_heads` says which head does
what, `report` says it all in words. The stories are drawn once and kept in fresh_stories.npz; `python -m
helpers.tiny_model.measure` writes it anew.
"""

from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np

from helpers import arrays as given
from helpers.tiny_model.corpus import (
    ANIMALS,
    DRINKS,
    FRUITS,
    HELD_OUT,
    KINDS,
    NAMES,
    VOCAB,
    WORD_TO_ID,
    Stories,
    grammar,
)
from helpers.tiny_model.gradients import forward
from helpers.tiny_model.model import as_float32, tiny, to_arrays
from helpers.tiny_model.stored import arrays_in

STORIES, DRAWN = Path(__file__).with_name("fresh_stories.npz"), (400, 41, 2017)     # and how: m, n, seed
ENOUGH = 0.7              # a head is said to do a job when it scores this
NEEDED = 0.05             # and when without it accuracy falls by this
TELLS = 0.2               # each head of a pair scores at least this alone
AT_ONCE = 8               # stories that are read at a time
KEPT = 4                  # predictions that are kept, in case the next question is about the same model

# The words that could be taken for the right one, for each kind.
RIVALS = {"neighbour": (*NAMES, "she", "he", "i", "you"), "agreement": ANIMALS,
          "reference": FRUITS, "content": FRUITS + DRINKS}


def fresh_stories(m=400, n=41, seed=2017):
    """m stories of n tokens, each with a pair of HELD_OUT or with no name at all.  Returns Stories."""
    return _fresh_stories(*(given.count(name, value, least) for name, value, least in
                            (("m", m, 1), ("n", n, 1), ("seed", seed, 0))))


@cache
def _fresh_stories(m, n, seed):
    return Stories(**arrays_in(STORIES)) if (m, n, seed) == DRAWN else draw_stories(m, n, seed)


def draw_stories(m, n, seed):
    """What `fresh_stories` gives, drawn from the grammar."""
    drawn = grammar().stories(6 * m, n, seed)
    held_out = np.zeros((len(VOCAB), len(VOCAB)), bool)                     # (V, V) name, fruit
    for name, fruit in HELD_OUT:
        held_out[WORD_TO_ID[name], WORD_TO_ID[fruit]] = True
    loves = drawn.ids[:, 1:-1] == WORD_TO_ID["loves"]                       # (6m, n - 2)
    pairs = loves & held_out[drawn.ids[:, :-2], drawn.ids[:, 2:]]
    named = np.isin(drawn.ids, [WORD_TO_ID[name] for name in NAMES])        # (6m, n)
    chosen = np.nonzero(pairs.any(axis=1) | ~named.any(axis=1))[0][:m]
    return Stories(*(x[chosen] for x in (drawn.ids, drawn.log_p, drawn.kind, drawn.allowed, drawn.new_fruit)))


_predicted = {}           # (weights, heads that are off) -> logits, the last KEPT


def predict(model, without=()):
    """What the model makes of the fresh stories: logits (m, n, V), and for each layer A (m, h, n, n)."""
    what, (m, n), logits = asked(model, without), fresh_stories().ids[:, :-1].shape, []
    patterns = np.empty((len(model.layers), m, model.n_heads, n, n), np.float32)        # room, made once
    for some, of_layers in in_parts(model, without):
        done = sum(map(len, logits))
        patterns[:, done:done + len(some)] = of_layers
        logits.append(some)
    return keep(what, logits), list(patterns)


def predict_words(model, without=()):
    """The logits of `predict` alone, (m, n, V), read-only: the last few are kept and given out again."""
    what = asked(model, without)
    if what not in _predicted:
        keep(what, [logits for logits, _ in in_parts(model, without)])
    return _predicted[what]


def asked(model, without):
    """What a prediction rests on, to be compared."""
    off = given.pairs("without", without, len(tiny(model).layers), model.n_heads)
    return tuple((name, M.shape, M.tobytes()) for name, M in to_arrays(model).items()), frozenset(off)


def keep(what, parts):
    """The logits from their parts, read-only; kept, where they are new, and the oldest then forgotten."""
    logits = np.concatenate(parts)
    logits.flags.writeable = False
    if what not in _predicted:
        while len(_predicted) >= KEPT:
            del _predicted[next(iter(_predicted))]
        _predicted[what] = logits
    return logits


def in_parts(model, without=()):
    """The same, some stories after the others: few at a time stay in fast memory.  Yields (logits, A's).

    In float32, which takes two thirds of the time: all that is asked are means over many places, and words
    whose logit leads by far more than it rounds.
    """
    without = given.pairs("without", without, len(tiny(model).layers), model.n_heads)
    w, ids = as_float32(to_arrays(model)), fresh_stories().ids[:, :-1]
    for start in range(0, len(ids), AT_ONCE):
        logits, steps = forward(w, ids[start:start + AT_ONCE], model.n_heads, without)
        yield logits, [step["A"] for step in steps[:-1]]


def cross_entropy(model, without=()):
    """Nats a word that the model needs, and that the grammar needs on the same words.  Returns two floats."""
    stories = fresh_stories()
    logits = predict_words(model, without).astype(np.float64)
    top = logits.max(axis=-1, keepdims=True)
    own = np.take_along_axis(logits, stories.ids[:, 1:, None], axis=-1)         # (m, n, 1)
    log_p = own - top - np.log(np.exp(logits - top).sum(axis=-1, keepdims=True))
    return -float(log_p.mean()), -float(stories.log_p[:, 1:].mean())


def accuracy(model, without=()):
    """How often the model's likeliest word is right: dict from each kind, and "determined", to a share.

    "determined" is every word for which the grammar leaves no choice.
    """
    stories = fresh_stories()
    right = predict_words(model, without).argmax(axis=-1) == stories.ids[:, 1:]
    shares = {kind: float(right[stories.kind[:, 1:] == k].mean()) for k, kind in enumerate(KINDS)}
    return shares | {"determined": float(right[stories.allowed[:, 1:] == 1].mean())}


def head_scores(model):
    """How well each head looks at the right word: dict from each kind to an array (n_layers, n_heads).

    A head's score is its attention on the right word less its attention on the best wrong one (`RIVALS`),
    averaged over all places where the next word is of that kind. 1: it looks at nothing else. 0: it cannot
    tell the two apart. Negative: it looks at the wrong one.
    """
    _, patterns = predict(model)
    return {kind: np.array([[one_score(A[:, head], kind) for head in range(model.n_heads)] for A in patterns])
            for kind in KINDS}


def score(model, kind, heads):
    """The score of several heads together, whose attention is added up first.

    kind : one of KINDS, heads : (layer, head) pairs.  Returns a float.
    """
    kind = given.one_of("kind", kind, KINDS)
    heads = given.pairs("heads", heads, len(tiny(model).layers), model.n_heads)
    if not heads:
        raise ValueError("heads must hold at least one pair (layer, head), got none")
    _, patterns = predict(model)
    return one_score(sum(patterns[layer][:, head] for layer, head in heads), kind)


def one_score(A, kind):
    """The score of one attention pattern for every story, A : (m, n, n).  Returns a float."""
    story, query, right, rival, slot = places(kind)
    A = A[story, query]                                                     # (places, n)
    on_right = np.where(right, A, 0).sum(axis=1)                            # (places,)
    on_rivals = np.bincount(slot, A[rival], len(A) * len(VOCAB)).reshape(len(A), -1)    # (places, V)
    return float(np.mean(on_right - on_rivals.max(axis=1)))


@cache
def places(kind):
    """Where the next word of the fresh stories is of this kind, and where one should look from there.

    Returns story (p,) and query (p,): the places; right (p, n) bool: the tokens to look at; rival (p, n)
    bool: the tokens that are rivals; slot: for each of those its place in a table (p, V), where a word that
    stands there twice gathers what both have.
    """
    stories = fresh_stories()
    read, following = stories.ids[:, :-1], stories.ids[:, 1:]
    story, query = np.nonzero(stories.kind[:, 1:] == KINDS.index(kind))
    key, words = np.arange(read.shape[1]), read[story]                      # (n,), (p, n)
    if kind == "neighbour":
        right = key == query[:, None] - 1                                   # she [buys]: one back
    elif kind == "agreement":
        right = key == query[:, None] - 3                                   # cats near the [dog]: three back
    else:
        right = words == following[story, query][:, None]                   # wherever it was named
    seen = key <= query[:, None]
    rival = np.isin(words, [WORD_TO_ID[word] for word in RIVALS[kind]]) & seen & ~right
    slot = np.arange(len(words))[:, None] * len(VOCAB) + words              # (p, n) row by row
    return story, query, right & seen, rival, slot[rival]


@dataclass(frozen=True)
class Work:
    """What some heads do for one kind of word."""

    heads: tuple          # of one or two (layer, head)
    score: float          # of their attention, added up
    right: float          # accuracy on the kind
    without: float        # the same with the heads removed

    @property
    def shown(self):
        """Whether these heads can be said to do the job: they look at the right word, and they are needed."""
        return self.score >= ENOUGH and self.without <= self.right - NEEDED

    def __str__(self):
        heads = " and ".join(f"layer {layer}, head {head}" for layer, head in self.heads)
        return f"{heads}: score {self.score:.2f}; without {self.without:.1%} right"


def best_heads(model):
    """Which head does the work for each kind, or which pair shares it where no head does it alone.

    Returns a dict from each kind to a Work. A pair counts only if each of its heads tells right from wrong
    by itself.
    """
    right, (_, patterns), best = accuracy(model), predict(model), {}
    for kind, scores in head_scores(model).items():
        able = [(int(layer), int(head)) for layer, head in np.argwhere(scores >= min(TELLS, scores.max()))]
        options = []
        for size in (1, 2):
            for heads in combinations(able, size):
                A = sum(patterns[layer][:, head] for layer, head in heads)
                without = accuracy(model, heads)[kind]
                options.append(Work(heads, one_score(A, kind), right[kind], without))
            best[kind] = max(options, key=lambda work: (work.shown, work.score))
            if best[kind].shown:
                break
    return best


def shortfalls(model):
    """What the model lacks of what the course shows with it: a list of sentences, empty if nothing."""
    needs, grammar_needs = cross_entropy(model)
    lacks = []
    if needs > 1.05 * grammar_needs:
        lacks.append(f"cross-entropy is {needs / grammar_needs - 1:.1%} over the grammar's, more than 5%")
    lacks += [f"only {share:.1%} of the {kind} words are right, less than 99%"
              for kind, share in accuracy(model).items() if share < 0.99]
    lacks += [f"no head or pair does the work for {kind}; the nearest is {work}"
              for kind, work in best_heads(model).items() if not work.shown]
    return lacks


def report(model):
    """The figures in words, a few lines of text."""
    needs, grammar_needs = cross_entropy(model)
    lines = [f"cross-entropy {needs:.4f} nats a word, {needs / grammar_needs - 1:+.1%} of the grammar's own "
             f"{grammar_needs:.4f}",
             f"words the story determines: {accuracy(model)['determined']:.1%} right"]
    lines += [f"{kind:10s} {work.right:.1%} right; {work}" for kind, work in best_heads(model).items()]
    return "\n".join(lines)


if __name__ == "__main__":
    np.savez_compressed(STORIES, **vars(draw_stories(*DRAWN)))

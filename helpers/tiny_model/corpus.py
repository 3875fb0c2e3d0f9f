"""The tiny stories that the tiny model reads, and the grammar they come from, with every probability known.

A story opens with "<bos>" and goes on, sentence after sentence, until it is cut. It is about two people who
each love a fruit, or about "i", who loves a fruit and a drink. Its sentences, where `|` is a choice and what
stands in `( )?` may be left out:

    the ANIMAL (near the ANIMAL)? VERB .        cats sleep, dogs run, birds sing: the first animal counts
    NAME loves FRUIT .                          once for each of two people, a woman and a man
    (NAME | she | he) eats FRUIT .              the fruit that person loves
    (NAME | she | he) buys (her | his) FRUIT .
    i love you .
    i love (FRUIT | DRINK) .                    one of each
    i eat FRUIT .   i drink DRINK .             the one i love

Any sentence may open with "then". Animal sentences stand anywhere and differ in length, so a word's place in
the story says nothing about its job. Four kinds of word can be told only by looking back, each in its own way
(`KINDS`; the word in question stands in brackets):

    neighbour   she buys [her] pears .                                  look at the word before: who buys?
    agreement   the cats near the dog [sleep] .                         look at the cats, not the nearer dog
    reference   anna loves apples . ben loves pears . she eats [apples] .     look at her fruit, not at his
    content     i love apples . i love tea . i drink [tea] .            look at a drink, not at a fruit

Some names never go with some fruits in training (`HELD_OUT`), so that nothing can be known by heart.

Read `openings` and `moves`, which are the grammar; `Grammar` is the same as a table, from which stories are
drawn and the entropy is computed exactly.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from helpers import arrays as given

WOMEN, MEN = ("anna", "emma", "lily"), ("ben", "tom", "sam")
NAMES = WOMEN + MEN
FRUITS = ("apples", "pears", "plums", "grapes", "figs", "kiwis")
DRINKS = ("milk", "tea", "juice")
VERB_OF = {"cat": "sleeps", "dog": "runs", "bird": "sings", "cats": "sleep", "dogs": "run", "birds": "sing"}
ANIMALS, VERBS = tuple(VERB_OF), tuple(VERB_OF.values())
VOCAB = ["<bos>", "<unk>", ".", "i", "you", "she", "he", "her", "his", *NAMES, *FRUITS, *DRINKS,
         "love", "loves", "eat", "eats", "drink", "buys", "the", "near", "then",
         *ANIMALS, *VERBS]
WORD_TO_ID = {word: i for i, word in enumerate(VOCAB)}

HELD_OUT = frozenset([(name, fruit) for name, fruits in (("lily", FRUITS[:3]), ("sam", FRUITS[3:]))
                      for fruit in fruits])
HELD_OUT_NAMES = ("lily", "sam")

KINDS = ("neighbour", "agreement", "reference", "content")


def pronoun(name):
    """She or he, for a name."""
    return "she" if given.one_of("name", name, NAMES) in WOMEN else "he"


def possessive(name):
    """Her or his, for a name."""
    return "her" if given.one_of("name", name, NAMES) in WOMEN else "his"


def openings(loved):
    """How a sentence may open, as (word, share, the phrase it begins).

    loved : what the story has said so far, a tuple of (who, what): (("anna", "apples"), ("ben", "pears")).
    """
    yield "the", 0.2, ("the",)
    if not loved:
        yield "i", 0.2, ("i",)
        for name in NAMES:
            yield name, 0.6 / len(NAMES), ("new", name)
        return
    people = [who for who, _ in loved]
    if people[0] == "i":
        yield "i", 0.8, ("i",)
        return
    for name in people:
        yield name, 0.2, ("does", name)
        yield pronoun(name), 0.2, ("does", name)
    if len(people) == 1:
        others = MEN if people[0] in WOMEN else WOMEN
        for name in others:
            yield name, 0.8 / len(others), ("new", name)


def moves(loved, phrase):
    """The words that may come next, as (word, share, what is loved after it, the phrase after it).

    Shares are in proportion: they need not add up to 1. The phrase keeps of the sentence so far only what the
    rest of it depends on.
    """
    match phrase:
        case ("start",) | ("then",):
            if phrase == ("start",):
                yield "then", 0.1, loved, ("then",)
            for word, share, after in openings(loved):
                yield word, share, loved, after
        case ("the",):
            for animal in ANIMALS:
                yield animal, 1, loved, ("animal", animal)
        case ("animal", animal):
            yield "near", 2, loved, ("near", animal)
            yield VERB_OF[animal], 1, loved, ("end",)
        case ("near", animal):
            yield "the", 1, loved, ("near the", animal)
        case ("near the", animal):
            for nearer in ANIMALS:
                yield nearer, 1, loved, ("animal near", animal, animal == nearer)
        case ("animal near", animal, _):
            yield VERB_OF[animal], 1, loved, ("end",)
        case ("new", name):
            yield "loves", 1, loved, ("loves", name)
        case ("loves", name):
            for fruit in FRUITS:
                if fruit not in dict(loved).values():
                    yield fruit, 1, (*loved, (name, fruit)), ("end",)
        case ("does", name):
            yield "eats", 1, loved, ("eats", name)
            yield "buys", 1, loved, ("buys", name)
        case ("buys", name):
            yield possessive(name), 1, loved, ("eats", name)
        case ("eats", name):
            yield dict(loved)[name], 1, loved, ("end",)
        case ("i",):
            things = [thing for _, thing in loved]
            if len(things) < 2:
                yield "love", 2, loved, ("love",)
            for thing in things:
                yield ("eat" if thing in FRUITS else "drink"), 1, loved, ("use", thing)
        case ("love",):
            yield "you", 0.2, loved, ("end",)
            for group in (FRUITS, DRINKS):
                if not any(thing in group for _, thing in loved):
                    for thing in group:
                        yield thing, 0.4 / len(group), (*loved, ("i", thing)), ("end",)
        case ("use", thing):
            yield thing, 1, loved, ("end",)
        case ("end",):
            yield ".", 1, loved, ("start",)


def kind_of_next(loved, phrase):
    """Which of KINDS the next word is, or None where nothing could be mistaken for it."""
    match phrase:
        case ("buys", _) if len(loved) == 2:
            return "neighbour"
        case ("animal near", _, same) if not same:
            return "agreement"
        case ("eats", _) if len(loved) == 2:
            return "reference"
        case ("use", _) if len(loved) == 2:
            return "content"
    return None


@dataclass(frozen=True)
class Stories:
    """Stories of one length, and what the grammar knows about each of their words. m stories of n tokens."""

    ids: np.ndarray       # (m, n) int64, "<bos>" first
    log_p: np.ndarray     # (m, n) log-probability of each word, given those before it; 0 for "<bos>"
    kind: np.ndarray      # (m, n) int8: the word's place in KINDS, -1 where it is of no kind
    allowed: np.ndarray   # (m, n) int8: how many words the grammar allows here
    new_fruit: np.ndarray   # (m, n) bool: the word says what somebody of HELD_OUT_NAMES loves

    def words(self, i):
        """Story i as a list of words."""
        return [VOCAB[j] for j in self.ids[given.position("i", i, len(self.ids))]]


@dataclass(frozen=True)
class Grammar:
    """The grammar as a table: S states, up to k words out of each."""

    word: np.ndarray          # (S, k) id of each word that may come next
    probability: np.ndarray   # (S, k) and how likely it is; 0 where there are fewer than k
    after: np.ndarray         # (S, k) the state it leads to
    kind: np.ndarray          # (S,)   the kind of the next word, a place in KINDS, or -1
    new_fruit: np.ndarray     # (S,)   the next word says what somebody of HELD_OUT_NAMES loves

    def stories(self, m, n, seed):
        """m stories of n tokens, drawn with a seed (or a NumPy Generator).  Returns Stories."""
        m, n = given.size("m", m, least=1), given.size("n", n, least=1)
        seed = seed if isinstance(seed, np.random.Generator) else given.count("seed", seed)
        rng = np.random.default_rng(seed)
        edge = np.cumsum(self.probability, axis=1)                    # (S, k)
        edge[:, -1] = 1.0
        many = (self.probability > 0).sum(axis=1)                     # (S,)
        ids, log_p = np.full((m, n), WORD_TO_ID["<bos>"]), np.zeros((m, n))
        kind, allowed = np.full((m, n), -1, np.int8), np.ones((m, n), np.int8)
        new_fruit = np.zeros((m, n), bool)
        state = np.zeros(m, np.int64)
        for t in range(1, n):
            pick = (rng.random(m)[:, None] >= edge[state]).sum(axis=1)          # (m,)
            pick = np.minimum(pick, many[state] - 1)
            ids[:, t], log_p[:, t] = self.word[state, pick], np.log(self.probability[state, pick])
            kind[:, t], allowed[:, t], new_fruit[:, t] = self.kind[state], many[state], self.new_fruit[state]
            state = self.after[state, pick]
        return Stories(ids, log_p, kind, allowed, new_fruit)

    def entropy(self, n):
        """The exact entropy of each of n words, given those before it, in nats.  Returns (n,)."""
        log = np.log(np.where(self.probability > 0, self.probability, 1))
        own = -(self.probability * log).sum(axis=1)                   # (S,) entropy of the next word
        share = np.zeros(len(own))                                    # (S,) how likely each state is by now
        share[0] = 1.0
        result = np.zeros(given.size("n", n, least=1))
        for t in range(1, n):
            result[t] = share @ own
            moved = share[:, None] * self.probability                 # (S, k)
            share = np.bincount(self.after.ravel(), weights=moved.ravel(), minlength=len(own))
        return result

    def next_words(self, text):
        """The grammar's own prediction: dict word -> probability of what comes after `text`, likeliest first.

        text : a string of words or a list of them, with or without "<bos>".
        Raises ValueError where the text leaves the grammar, TypeError for what is no text.
        """
        words = text.split() if isinstance(text, str) else given.listed("text", text, "words")
        state = 0
        for i, word in enumerate(words):
            if word == "<bos>" and i == 0:
                continue
            many = np.count_nonzero(self.probability[state])
            choices = self.word[state, :many].tolist()
            if not isinstance(word, str) or WORD_TO_ID.get(word) not in choices:
                raise ValueError(f"no story goes on with {given.came(word)} after {' '.join(words[:i])!r}; "
                                 f"there it is one of: {', '.join(self._row(state))}")
            state = self.after[state, choices.index(WORD_TO_ID[word])]
        return self._row(state)

    def _row(self, state):
        order = np.argsort(-self.probability[state], kind="stable")
        return {VOCAB[self.word[state, i]]: float(self.probability[state, i])
                for i in order if self.probability[state, i] > 0}


def grammar(held_out=True):
    """The table of the grammar: the whole of it, or with held_out=False without the pairs of HELD_OUT."""
    return _grammar(given.flag("held_out", held_out))


@cache
def _grammar(held_out):
    states = [((), ("start",))]
    number = {states[0]: 0}
    word, share, after, many = [], [], [], []                         # of all ways on; how many a state has
    for loved, phrase in states:                                      # grows while new states are found
        before = len(word)
        for next_word, its_share, loved_after, phrase_after in moves(loved, phrase):
            if not held_out and HELD_OUT & set(loved_after):
                continue
            state = (loved_after, phrase_after)
            after.append(number.setdefault(state, len(number)))
            if after[-1] == len(states):
                states.append(state)
            word.append(WORD_TO_ID[next_word])
            share.append(its_share)
        many.append(len(word) - before)
    there = np.arange(max(many)) < np.array(many)[:, None]            # (S, k)
    tables = [np.zeros(there.shape, dtype) for dtype in (np.int64, float, np.int64)]
    for table, values in zip(tables, (word, share, after), strict=True):
        table[there] = values
    word, probability, after = tables
    probability /= probability.sum(axis=1, keepdims=True)
    kinds = [kind_of_next(*state) for state in states]
    return Grammar(word, probability, after, np.array([KINDS.index(k) if k else -1 for k in kinds], np.int8),
                   np.array([phrase[0] == "loves" and phrase[1] in HELD_OUT_NAMES for _, phrase in states]))

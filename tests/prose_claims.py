"""Sentences with a figure that is measured, each with what must hold for it: `CLAIMS`.

CLAIMS : dict (file, place) -> {phrase: evidence}. The evidence is a piece of a code cell of the same
notebook, the assert that fails when the phrase no longer holds or the setting that it names; or a function
that says whether it holds, from stored outputs (nbval compares them with fresh ones) or from what the course
computes; or a tuple of such.
"""

import functools
import math
import re
from collections import Counter
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement
from prose import ROOT, cells, outputs

from helpers import cost, tiny_model
from helpers.checks.exercises import EXERCISES
from helpers.published_models import PUBLISHED
from helpers.smollm2 import fetch
from helpers.smollm2.functions import WHEN
from helpers.smollm2.weights import Config
from helpers.tiny_model import corpus, measure, sharing, train

NOTEBOOKS = {path.name[:2]: f"notebooks/{path.name}" for path in (ROOT / "notebooks").glob("*.ipynb")}
SOLUTIONS = {path.name[:2]: f"solutions/{path.name}" for path in (ROOT / "solutions").glob("*.ipynb")}
SMOLLM2 = Config(30, 9, 3, 64, 576, 1536, 49152, 8192, 1e5, float(np.float32(1e-5)))
NAMES = ["0.0", "0.1", "0.2", "0.3", "1.0", "1.1", "1.2", "1.3"]          # of the tiny model's heads
STORY = "anna loves apples . ben loves pears ."


# What the notebooks show


def shown(notebook, cell):
    """What a cell shows, as text."""
    return "\n".join(outputs(cells(NOTEBOOKS[notebook])[cell]))


def numbers(text):
    return [float(number.replace("−", "-").replace(",", ""))
            for number in re.findall(r"(?<![\w.])[−-]?\d[\d,]*(?:\.\d+)?(?:[eE][−-]?\d+)?", text)]


def row(notebook, cell, label, after=""):
    """The numbers of the line that begins with the label; of its part behind `after`."""
    (line,) = re.findall(rf"^ *{re.escape(label)}.*?{after} (.*)$", shown(notebook, cell), re.M)
    return numbers(line)


def source(notebook, cell):
    return cells(NOTEBOOKS[notebook])[cell].source


def likelier_than_greedy():
    """How many times as likely the likeliest ending is, of those that notebook 08 lists."""
    listed = shown("08", "greedy-code")
    likeliest, greedy = re.search(r"^([\d.]+) .*\n([\d.]+) .*<- greedy", listed, re.M).groups()
    return float(likeliest) / float(greedy)


def about(value, stated, share=0.2):
    return math.isclose(value, stated, rel_tol=share)


def heads_of_smollm2():
    return SMOLLM2.n_layers * SMOLLM2.n_heads


def sizes_of(name):
    return PUBLISHED[name].n_heads, PUBLISHED[name].d_head, PUBLISHED[name].n_kv_heads


def kept(way):
    """The numbers of a token that a way of sharing keeps in a layer."""
    return sharing.results()[way].numbers


def mebibytes(n_kv_heads):
    return row("10", "kv-code", f"KV heads: {n_kv_heads}")[0]


def longer_than_the_others():
    """How many times as long the first row is as the others, as notebook 10 shows it."""
    _, first, others = numbers(shown("10", "sink-why-code").splitlines()[0])
    return first / others


def exercises(notebook):
    return sum(exercise.notebook == notebook for exercise in EXERCISES)


@functools.cache
def model():
    return tiny_model.load()


def next_words(text):
    return corpus.grammar().next_words(text)


def weights_of(name):
    """The weights in the layers of a published model."""
    m = PUBLISHED[name]
    d = m.n_heads * m.d_head
    attention, mlp = cost.projection_weights(d, m.n_heads, m.n_kv_heads), cost.mlp_weights(d, m.d_ff, m.gated)
    return m.n_layers * (attention + mlp)


# What the course takes of a machine


def on_disk(distribution):
    """The bytes that an installed package takes on a disk that gives out 4,096 at a time."""
    paths = (Path(file.locate()) for file in distribution.files or ())
    return sum(math.ceil(path.stat().st_size / 4096) * 4096 for path in paths if path.is_file())


def installed():
    """The bytes of what requirements.txt installs, and of all that is installed with it."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    wanted, seen = [line.split("#")[0] for line in lines if re.match(r"\w", line)], {}
    while wanted:
        line = Requirement(wanted.pop())
        if line.name.lower() not in seen and (not line.marker or line.marker.evaluate({"extra": ""})):
            seen[line.name.lower()] = metadata.distribution(line.name)
            wanted += seen[line.name.lower()].requires or []
    return sum(map(on_disk, seen.values()))


def weights_in_mb():
    """What the language model's arrays take, in MB; its tokenizer adds a few."""
    return sum(4 * math.prod(shape) for shape in SMOLLM2.shapes_on_disk.values()) / 1e6


def weights_take_540_mb():
    return 535 < weights_in_mb() < 545


def fetched_is_said_alike():
    """Whether the command and its question say of the model's size what README and notebook 10 say."""
    command = (ROOT / "course.py").read_text(encoding="utf-8")
    patterns = r"MODEL_MB = 93\b", r"MODEL_ROOM_MB = 800\b.*\b540 stay"
    return (all(re.search(pattern, command) for pattern in patterns)
            and all(f"{size} MB" in fetch.COST for size in (93, 540, 800)))


def hints_below_each_check():
    hints = [cell.source.count("<details>") for file in SOLUTIONS.values()
             for name, cell in cells(file).items() if name.endswith("-hints")]
    return set(hints) == {3} and len(hints) >= len(EXERCISES)


def ten_lines():
    return len(source("00", "the-model-in-ten-lines").splitlines()) == 10


def ten_words_and_35_others():
    return (len(next_words("i love")), len(model().vocab)) == (10, 45)


def hundreds_of_stories():
    return 200 <= len(measure.fresh_stories().ids) < 1000


def followed_by(word):
    """The words that come right after this one in the fresh stories, a set; never an empty one."""
    ids = measure.fresh_stories().ids
    return {corpus.VOCAB[i] for i in ids[:, 1:][ids[:, :-1] == corpus.WORD_TO_ID[word]]} or {word}


def heads():
    """How many heads the tiny model has, in all layers."""
    return model().n_heads * len(model().layers)


def without(head):
    """For each kind of word, the share that is right without the head, as notebook 04 shows it."""
    return {kind: row("04", "switch-off-code", kind)[NAMES.index(head)] for kind in corpus.KINDS}


def missed_least():
    return sorted(sorted(NAMES, key=lambda head: -min(without(head).values()))[:2])


def work_of_wide_heads():
    """The work of four wide heads over that of one: last and first lines of a table of notebook 04."""
    _, first, *_, last = shown("04", "counting-table").splitlines()
    return numbers(last)[-2] / numbers(first)[-2]


GUIDE = (ROOT / "classroom" / "README.md").read_text(encoding="utf-8")


def words_to_call_out():
    """Whether the words that the guide offers to an audience are words the model knows."""
    offered = re.search(r"can be made of these: `([^`]+)`", " ".join(GUIDE.split()))[1].split()
    return len(model().vocab) == 45 and len(offered) > 12 and set(offered) <= set(model().vocab)


BEST_OF_SMOLLM2 = "assert best == [(16, 0), (14, 3), (18, 6), (18, 8)]"


def one_or_two_mistakes():
    table = GUIDE.partition("## Mistakes to expect\n")[2].partition("\n## ")[0]
    listed = Counter(re.findall(r"^\| [\d.]+ `(\w+)`", table, re.M))
    return len(listed) > 20 and set(listed.values()) <= {1, 2}


def minutes_at_home():
    """Of each of the six weeks, from the table of the plan."""
    weeks = re.findall(r"^\| \d \| [^|]* \| (\d+) \| [^|]* \| (\d+) \|$", GUIDE, re.M)
    return [int(before) + int(after) for before, after in weeks]


def share_of_work():
    """Of the workshop's minutes, without the breaks, those in which learners read and write."""
    plan = GUIDE.partition("### A workshop")[2].partition("### ")[0]
    times = {what: int(minutes) for minutes, what in re.findall(r"^\| (\d+) \| ([^|]*) \|", plan, re.M)}
    work = sum(times[what] for what in times if re.match("notebook 0[23]|exercise", what))
    breaks = sum(int(minutes) for minutes in re.findall(r"^\| (\d+) \| break", plan, re.M))
    return work / (240 - breaks)


def plans():
    return len(re.findall(r"^### A ", GUIDE.partition("## Three plans\n")[2].partition("\n## ")[0], re.M))


CLAIMS = {}


def of(file, place, claims):
    CLAIMS[NOTEBOOKS.get(file, file), place] = claims


# README and the guide for those who teach

of("README.md", "Self-attention, from the first embedding to the next word", {
    'The word "eats" is the query; bars show': (
        lambda: "“eats” gives its largest weight to “apples”" in shown("02", "explore-similarity")),
    'Nearly all of its weight is on "apples"': lambda: row("02", "explore-similarity", "apples")[-1] > 0.95,
})
of("README.md", "Start", {"about half a gigabyte of disk": lambda: 0.3e9 < installed() < 0.65e9})
of("README.md", "The notebooks", {
    "93 MB come over the network, 540 MB stay on the disk": (fetched_is_said_alike, weights_take_540_mb),
})
of("README.md", "How to work", {"Three hints stand below each check": hints_below_each_check})
of("README.md", "Teach", {"three plans to teach from": lambda: plans() == 3})
of("classroom/README.md", "Teaching with this course", {
    "three plans to teach from": lambda: plans() == 3,
    "[Three plans]": lambda: plans() == 3,
})
of("classroom/README.md", "A workshop of half a day", {
    "Half of the time without the breaks they work": lambda: about(share_of_work(), 0.5, 0.1),
})
of("classroom/README.md", "A course of six weeks", {
    "All 270 heads": lambda: heads_of_smollm2() == 270,
    "about two hours in the first week": lambda: about(minutes_at_home()[0], 120),
    "three and a half in the longest": lambda: about(max(minutes_at_home()), 210, 0.1),
})
of("classroom/README.md", "Before you begin", {"the 45 words the little model knows": words_to_call_out})
of("classroom/README.md", "Mistakes to expect", {
    "one or two of each exercise": one_or_two_mistakes,
    "Three hints stand below each check": hints_below_each_check,
})

# The notebooks

of("00", "title", {"in ten lines of code": ten_lines})
of("00", "how-a-check-speaks", {"three hints stand below": hints_below_each_check})
of("00", "the-model", {
    "The large ones have billions": lambda: min(map(weights_of, ("GPT-3", "Llama 2 7B"))) > 2e9,
    "a few tens of thousands": "assert 20_000 < learned < 40_000",
})
of("00", "shares-by-hand", {"a little over a quarter of": "assert 0.25 < a_1 < 0.3"})
of("00", "q-k-v", {"two **layers**": lambda: len(model().layers) == 2})
of("00", "ten-lines", {"All of it in ten lines": ten_lines, "These ten lines": ten_lines})

of("01", "unknown", {"*loves* comes twice": lambda: STORY.split().count("loves") == 2})
of("01", "used-alike", {
    "Every kind holds together": "assert within[name] > across + 0.25",
    "the verbs most of all": "assert within[\"verbs\"] > within[\"animals\"] + 0.15",
    "Three more cases": lambda: len(shown("01", "used-alike-shown").splitlines()) == 3,
})
of("01", "ids-share-nothing", {
    "Women's names go with *she*, not with *he*": 'assert cosine("anna", "she") > cosine("anna", "he") + 0.2',
    "*her* is nearer to *eats* than to *his*": 'assert cosine("her", "eats") > cosine("her", "his") + 0.1',
    "all three come right before a fruit": lambda: all(
        followed_by(word) <= set(corpus.FRUITS) for word in ("her", "his", "eats")),
    "*cats* is no nearer to *cat* than to *dogs*": 'cosine("cats", "dogs") - cosine("cats", "cat")) < 0.2',
})
of("01", "mask-is-not-enough", {
    "four kinds of word": lambda: len(corpus.KINDS) == 4,
    "With positions it nearly always does": "assert min(whole.values()) > 0.98",
})
of("01", "explore", {"Their scores are not the same": "assert S[0, 6, 6] - S[0, 6, 2] > 0.5"})

of("02", "to-matrices", {
    "the whole function is three lines": lambda: source("02", "project-qkv").count("X @ W") == 3,
})
of("02", "conventions", {"Your three lines agree": "np.testing.assert_allclose(mine, theirs[i])"})
of("02", "trained", {"on hundreds of stories": hundreds_of_stories})
of("02", "length", {"half the length, half the score": "assert (k_apples == 2 * k_apple).all()"})
of("02", "rank-code", {"Twelve directions, then nothing": "(strengths > 1e-4).sum() == model.d_k == 12"})

of("03", "slope-width", {
    "the median of a thousand": "n_rows=1000",
    "In the widest heads saturation costs a thousand times more": (
        "assert divided[-1] / math.sqrt(widths[-1]) > 1000 * plain[-1]"),
})
of("03", "exercises", {"all seven functions": lambda: exercises("03") == 7})

of("04", "picture-code", {"Four heads": lambda: model().n_heads == 4})
of("04", "residual", {"two of them are the whole trained model": lambda: len(model().layers) == 2})
of("04", "what-heads-do", {"four kinds of word": lambda: len(corpus.KINDS) == 4})
of("04", "other-jobs", {
    "Each kind has its head": "assert table.max(axis=1).min() > 0.7",
    "Three heads, 0.2, 0.3 and 1.0, score low throughout": "assert table[:, [2, 3, 4]].max() < 0.3",
    "1.2 even looks at the *wrong* fruit": "table[2, 6] < -0.5",
})
of("04", "other-jobs-code", {
    "Heads 0.2 and 0.3 have jobs of their own; 0.0 has a second one": (
        "assert weight[0, 2] > 0.7 and weight[1, 3] > 0.7 and weight[2, 0] > 0.6"),
})
of("04", "two-jobs", {
    "0.0 goes from `buys` to the buyer *and* from a fruit to its owner": (
        'assert [names[b] for b in best] == ["0.0", "1.1", "1.3", "0.1"]', "and weight[2, 0] > 0.6"),
})
of("04", "switch-off", {"each of the eight": lambda: heads() == 8})
of("04", "switch-off-code", {
    "six heads are missed, two are not": 'assert lost == ["0.0", "0.1", "0.2", "0.3", "1.1", "1.3"]',
})
of("04", "switch-off-words", {
    "Agreement fails *completely* without 0.3": lambda: without("0.3")["agreement"] == 0,
    "whose score there is about 0": lambda: abs(row("04", "scores", "agreement")[3]) < 0.05,
    "in 0.0 each fruit reads its owner": "and weight[2, 0] > 0.6",
    "0.2 tells `eats` who eats": "assert weight[0, 2] > 0.7",
    "1.3 brings the two together": lambda: max(
        without(head)["reference"] for head in ("0.0", "0.2", "1.3")) < 0.7,
    "1.0 and 1.2 are hardly missed": lambda: min(*without("1.0").values(), *without("1.2").values()) > 0.98,
})
of("04", "together-box", {
    "`she eats [apples]` survives any one loss": "assert p[2].min() > 0.7",
    "`tom buys his [figs]` hangs on three heads": (
        lambda: sum(p < 0.5 for p in row("04", "single-sentences", "his [figs]")) == 3),
    "the two heads that are missed least": lambda: missed_least() == ["1.0", "1.2"],
})
of("04", "explanation-code", {
    "1.2 and 1.3 look at 'cats' and are not missed": (
        "assert min(on_cats[6:]) > 0.6 and min(needed[6:]) > 0.99"),
    "0.3 hardly looks and is": "assert on_cats[3] < 0.05 and needed[3] < 0.1",
})
of("04", "explanation-words", {
    "Head 0.3 reads `near`": lambda: re.search(r"reads in 0\.3 +'near'", shown("04", "explanation-why")),
    "1.1 finds `cats` one layer later": (
        lambda: re.search(r"reads in 1\.1 +'cats'", shown("04", "explanation-why"))),
    "without it, it reads `dog` itself": "and row.argmax() == len(row) - 1",
    "1.2 and 1.3 could go": lambda: "off: 1.2 and 1.3  the two likeliest words: sleep" in shown(
        "04", "explanation-why"),
})
of("04", "counting-box", {
    "Narrow heads cost what one wide head costs": "assert work == 8 * n * d**2 + 4 * n**2 * d",
    "3 d² in the projections, d² in `W_o`, 8 n d² + 4 n² d of work": (
        "assert (qkv, out, n_scores) == (3 * d**2, d**2, h * n**2)",
        "assert work == 8 * n * d**2 + 4 * n**2 * d"),
    "Four *wide* heads (last line) cost four times as much": lambda: about(work_of_wide_heads(), 4, 0.001),
    "the projections stay 3 d² in all": "assert (qkv, out, n_scores) == (3 * d**2, d**2, h * n**2)",
})
of("04", "exercises", {"the four functions": lambda: exercises("04") == 4})

of("05", "map-box", {
    "head 3 of layer 1, the one that finds the fruit": (
        lambda: row("02", "reference-head", "layer 1")[3] > 0.9),
})
of("05", "who-wrote-fruits", {"the six fruits": lambda: len(corpus.FRUITS) == 6})
of("05", "who-wrote-picture", {
    "Head 3 speaks for the fruit it reads, head 2 against": 'assert read[2:] == ["pears", "apples"]',
})
of("05", "who-reads", {"Head 2 looks at the *other* fruit": 'assert read[2:] == ["pears", "apples"]'})
of("05", "rank", {
    "At most 12": "assert rank == d_v < d_model",
    "all twelve": lambda: model().d_v == 12,
    "Eight heads, the first 14 of 48": lambda: (heads(), model().d_model) == (8, 48),
})
of("05", "rank-code", {"Twelve strengths, then nothing, in all eight heads": "assert (ranks == d_v).all()"})
of("05", "best", {"All twelve, but not alike": "assert (ranks == d_v).all()"})
of("05", "random", {"two hundred times for each r": "for _ in range(200)"})
of("05", "need", {"on hundreds of stories": hundreds_of_stories})
of("05", "need-loss", {
    "Eight of the twelve directions do; four do not": (
        "assert loss[8] - needed < 0.01 < 0.2 < loss[4] - needed", lambda: model().d_v == 12),
})
of("05", "need-read", {
    "The weak third of the directions hardly matters": "assert loss[8] - needed < 0.01",
    "one direction is *worse* than none": "loss[1] > loss[0]",
})
of("05", "saves", {
    "**r < 3d/4**": "assert dict(zip(r_all, shared, strict=True))[even] == apart",
    "even pay a third more": lambda: "1.33 at r = 48" in shown("05", "saves-box-code"),
})
of("05", "costs-loss", {
    "Two thirds of the numbers (r = 24) cost little": "0.02 < loss[24] - needed < 0.05",
    "one third (r = 12) costs much": "assert loss[12] - needed > 0.4",
})
of("05", "recap", {
    "The trained heads have full rank": "assert (ranks == d_v).all()",
    "eight of twelve directions are enough": "assert loss[8] - needed < 0.01",
    "saves below r = 3d/4": "assert dict(zip(r_all, shared, strict=True))[even] == apart",
})
of("05", "traps", {"at r = 1 it was worse than nothing": "loss[1] > loss[0]"})
of("05", "exercises", {"the three functions": lambda: exercises("05") == 3})

of("06", "past-why", {"All zero": "assert masked.max() < 1e-9"})
of("06", "generate-without", {"Try twenty models": "for seed in range(20)"})
of("06", "offset-decode", {
    "Positions one too early give here the very same words": "assert from_zero != right and early == right",
})
of("06", "bytes-int", {"a little above two billion": lambda: about(2**31, 2e9, 0.1)})
of("06", "real", {
    "GPT-3 and Llama 2 7B have as many as query heads": "assert m.n_kv_heads == m.n_heads",
    "the Llama 3 models 8, PaLM one": lambda: [
        PUBLISHED[name].n_kv_heads for name in ("Llama 3 8B", "Llama 3 70B", "PaLM 540B")] == [8, 8, 1],
})
of("06", "calculator", {
    "8 billion of them take 15 GiB at 2 bytes each": lambda: (
        about(weights_of("Llama 3 8B"), 8e9) and round(2 * 8e9 / 2**30) == 15),
})
of("06", "exercises", {"all three functions": lambda: exercises("06") == 3})

of("07", "which-picture", {"All four heads ask": lambda: model().n_heads == 4})
of("07", "breaks", {"four kinds of words": lambda: len(corpus.KINDS) == 4})
of("07", "tune", {
    "A hundred steps, a twentieth of its training": lambda: sharing.STEPS == 100 == train.STEPS / 20,
})
of("07", "tuned", {
    "All four skills are back": "assert min(found[name].right_after.values()) > 0.99",
    "half the cache": lambda: kept("MHA") == 2 * kept("GQA"),
})
of("07", "loss", {
    "the same hundred steps": lambda: sharing.STEPS == 100,
    "2 layers": lambda: len(model().layers) == 2,
})
of("07", "loss-read", {
    "After them they still win, by less": "b.before < a.before and b.after < a.after",
    "r = 48 loses nothing at half the cache": (
        lambda: kept("MHA") == 2 * kept("r = 48"),
        "np.testing.assert_allclose(exact, model.run(story).logits"),
    "d_model = 48 rows, so 48 numbers": lambda: model().d_model == 48,
})
of("07", "exercises", {"both functions": lambda: exercises("07") == 2})

of("08", "logits-model-code", {
    "ten words stand out from the other 35": (
        ten_words_and_35_others, "assert logits[order[9]] - logits[order[10]] > 4"),
})
of("08", "logits-rows", {
    "The ten are all the words that the stories allow here": lambda: set(next_words("i love")) == {
        line.split()[0] for line in shown("08", "logits-model-code").splitlines()[2:12]},
})
of("08", "between-read", {
    "is seldom right by itself": "means[0, 1] < 0.3",
    "at most of these places it is not a fruit": "1:] == 1]].mean() < 0.25",
    "the right word is the likeliest nearly always": "means[2, 1] > 0.99",
})
of("08", "tied-follow", {"A word and itself: near 0": "assert abs(np.diag(cosine).mean()) < 0.1"})
of("08", "tied-read", {
    "worse than one that knows nothing": "< math.log(len(vocab)) <",
})
of("08", "weights-large-code", {
    "In GPT-2 small less than a quarter is attention": (
        lambda: row("08", "weights-large-code", "GPT-2 small ")[2] < 25),
})
of("08", "temperature-model", {
    "The ten words that may come are right; what becomes of the other 35": ten_words_and_35_others,
})
of("08", "top-p", {
    "After `i love` ten words are right, after `the cats near the dog` one": lambda: [
        len(next_words(text)) for text in ("i love", "the cats near the dog")] == [10, 1],
})
of("08", "adapt-read", {
    "Top-p does better on both counts": 'assert cut["top_k = 5"] > cut["top_p = 0.9"] > 0',
})
of("08", "histogram", {
    "Two thousand of them": "N = np.random.default_rng(1), 2000",
    "for no p is more than 1.2 percentage points": "assert np.sqrt(0.25 / N) < 0.012",
})
of("08", "stories-count", {
    "Take a hundred stories of 30 words for each setting": "write_stories(model, 100, 30,",
})
of("08", "stories-count-code", {
    "At T = 2 few stories are sound; greedy knows only one": (
        '80 > 30 > sound["T 2"]', 'assert openings["greedy"] == 1'),
})
of("08", "stories-leak", {
    "At T = 1 `top_p` = 0.9 makes all of them sound": 'assert sound["T 1, top_p 0.9"] ==',
    "A sharper one, 0.5, does": '== sound["T 2, top_p 0.5"] == 100',
    "a story draws 30 times": "(1 - leak) ** 30",
})
of("08", "surprise-entropy", {"over 400 stories": lambda: len(measure.fresh_stories().ids) == 400})
of("08", "surprise-entropy-code", {
    "as unsure as between two words": lambda: all(
        about(row("08", "surprise-entropy-code", name, "perplexity")[0], 2, 0.05)
        for name in ("the tiny model", "the grammar")),
})
of("08", "greedy", {
    "the grammar has `near` ⅔, `sleep` ⅓": lambda: next_words("the cats") == pytest.approx(
        {"near": 2 / 3, "sleep": 1 / 3}),
    "six animals at ⅙ each": "assert sorted(shares.values()) == [1 / 6] * 6",
    "⅔ · 1 · ⅙ · 1 = 1/9": lambda: math.isclose(2 / 3 * 1 / 6, 1 / 9),
    "against ⅓ for": lambda: math.isclose(next_words("the cats")["sleep"], 1 / 3),
    "a chance above one in a thousand": "least=0.001",
})
of("08", "greedy-repeats", {
    "about three times as likely as the one greedy writes": lambda: about(likelier_than_greedy(), 3),
})

of("09", "products", {"six matrix products": lambda: shown("09", "products-all").count("@") == 6})
of("09", "overtakes", {
    "4·n²·d = 8·n·d² at n = 2d": "assert (alone, with_mlp) == (2 * d, 6 * d)",
    "4·n²·d = 24·n·d² at n = 6d": "assert (alone, with_mlp) == (2 * d, 6 * d)",
})
of("09", "overtakes-picture", {
    "at n = 2d, with an MLP all else at 6d": "assert (alone, with_mlp) == (2 * d, 6 * d)",
})
of("09", "dominates", {
    "about n/(12·d) of *their* FLOPs": "assert math.isclose(squared / linear, n / (12 * d), rel_tol=1e-3)",
    "next to nothing for GPT-3 at 2,048 tokens, a multiple at 131,072 with d = 4096": (
        "assert round(2048 / (12 * 12_288), 3) == 0.014 and round(131_072 / (12 * 4096), 1) == 2.7"),
})
of("09", "bytes-large", {
    "S is the larger **from n = d_k on**": 'assert at_crossing["S"] == at_crossing["Q"]',
    "d_k is 128 in many models": lambda: sum(m.d_head == 128 for m in PUBLISHED.values()) >= 4,
    "passes at n = 2·d_k": 'assert twice["S"] == twice["K and V"]',
    "(32 heads of 128, 8 heads of keys and values)": lambda: sizes_of("Llama 3 8B") == (32, 128, 8),
})
of("09", "decode-why", {
    "One FLOP per byte, to the last digit": "decode[-1][0] == decode[-1][1]",
    "does 312·10¹² a second and fetches 1.555·10¹² bytes": "balance = 312e12 / 1.555e12",
})
of("09", "recap", {
    "projections 8·n·d², scores and weighted sum 4·n²·d": (
        "assert attention_flops(*sizes) == sum(flops(*sizes).values())"),
    "equal at n = 2d; with an MLP, at 6d": "assert (alone, with_mlp) == (2 * d, 6 * d)",
    "decode about one": "decode[-1][0] == decode[-1][1]",
})
of("09", "traps", {"below n = 2d": "assert (alone, with_mlp) == (2 * d, 6 * d)"})

of("10", "opening", {
    "135 million weights": lambda: round(row("10", "model-parts-code", "all")[0] / 1e6) == 135,
    "its 270 heads": lambda: heads_of_smollm2() == 270,
    "93 MB come over the network, 540 MB stay": (fetched_is_said_alike, weights_take_540_mb),
})
of("10", "model", {
    "a thousand times as many weights and more": (
        lambda: weights_of("GPT-3") > 1000 * row("10", "model-parts-code", "all")[0]),
})
of("10", "model-sizes", {"One layer of thirty": "c.d_head) == (30, 9, 3, 64)"})
of("10", "model-parts", {"49,152 × 576": "assert (c.d_model, c.d_ff, c.n_vocab) == (576, 1536, 49152)"})
of("10", "model-box", {
    "attention is a fifth": 'assert round(5 * parts["attention"] / total) == 1',
    "three times as many": 'assert parts["MLP"] == 3 * parts["attention"]',
    "the embedding table alone has more": 'parts["embeddings E"] > parts["attention"]',
})
of("10", "tokens", {"49,152 tokens": "assert (c.d_model, c.d_ff, c.n_vocab) == (576, 1536, 49152)"})
of("10", "tokens-box", {"three times as many tokens": 'assert len(tokenizer.encode("我爱苹果")) == 3 *'})
of("10", "rope-whole", {"100,000 here": lambda: SMOLLM2.rope_base == 100_000})
of("10", "distance-code", {
    "Head 16.0 likes the key one place back": 'assert curves["head 16.0"].argmax() == 1',
    "head 18.6 likes no place": 'np.ptp(curves["head 18.6"]) < 0.5',
})
of("10", "swiglu-after", {
    "two thirds as wide, here 1536 for a d_model of 576": lambda: 3 * SMOLLM2.d_ff == 2 * 4 * SMOLLM2.d_model,
})
of("10", "layers", {
    "Thirty layers": lambda: SMOLLM2.n_layers == 30,
    "Three query heads read one key": lambda: SMOLLM2.n_heads == 3 * SMOLLM2.n_kv_heads,
})
of("10", "layers-after", {
    "chose among 45 words": lambda: len(model().vocab) == 45,
    "49,152 tokens compete": lambda: SMOLLM2.n_vocab == 49152,
    "about half of the probability": "0.4 < p.max() < 0.6",
})
of("10", "measure", {
    "the 270 heads": lambda: heads_of_smollm2() == 270,
    "24 tokens drawn at random": "integers(100, c.n_vocab, 24)",
})
of("10", "measure-maps", {"A few heads do each of three jobs": BEST_OF_SMOLLM2})
of("10", "measure-copy", {"16.0, with its peak at distance 1, and 18.6": BEST_OF_SMOLLM2,
                          "18.6, two layers up": BEST_OF_SMOLLM2})
of("10", "sink", {"Nearly half of the heads": "assert 0.4 < share < 0.5"})
of("10", "sink-why", {
    "a hundred times longer than the others": lambda: about(longer_than_the_others(), 100),
    "its *value* is short": 'assert lengths["value"][0] < lengths["value"][1:].min()',
})
of("10", "sink-box", {
    "a weight of 1.00 carries next to nothing": "assert weight > 0.99 and abs(after - before) < 0.02",
})
of("10", "remove", {"four of the others": "choice(len(others), 4", "five times": "for seed in range(1, 6)"})
of("10", "remove-box", {
    "Four draws of five are hardly felt": "max(drawn[:-1]) < whole + 0.2",
    "low in all four kinds": "assert max(M[0, 5] for M in found.values()) < 0.15",
})
of("10", "ranks", {"576 × 576, and of rank at most 64": "assert rank.min() == rank.max() == 64"})
of("10", "ranks-after", {
    "Most heads use nearly all of it": "(used > 50).mean() > 0.95",
    "most of all in layer 0": "assert (used.argsort()[:5] < 9).all()",
})
of("10", "kv", {
    "Three KV heads for nine": lambda: (SMOLLM2.n_kv_heads, SMOLLM2.n_heads) == (3, 9),
    "Three query heads share": lambda: SMOLLM2.n_heads == 3 * SMOLLM2.n_kv_heads,
    "three times smaller": lambda: mebibytes("nine") == 3 * mebibytes("three, as it is"),
})
of("10", "explorer", {"All 270 heads on your text": lambda: heads_of_smollm2() == 270})
of("10", "explorer-after", {"hardly looks at ␣Brand any more": "assert weight_off < weight / 3"})
of("10", "recap", {
    "Thirty of them": lambda: SMOLLM2.n_layers == 30,
    "Nearly half of the heads": "assert 0.4 < share < 0.5",
})

# The exercises

for file in sorted(SOLUTIONS.values()):
    of(file, "intro", {"Three hints stand below each check": hints_below_each_check})
CLAIMS[SOLUTIONS["01"], "intro"]["Write the three functions"] = lambda: exercises("01") == 3
of(SOLUTIONS["04"], "heads-see", {"four times with one head silenced": lambda: model().n_heads == 4})
of(SOLUTIONS["04"], "model-see", {"Two layers of your": lambda: len(model().layers) == 2})
of(SOLUTIONS["05"], "rank-see", {
    "a (48, 48) matrix, made of (48, 12) and (12, 48)": lambda: (model().d_model, model().d_v) == (48, 12),
})
of(SOLUTIONS["05"], "basis-see", {
    "W_q, W_k and W_v of shape (48, 48) each": lambda: {
        W.shape for layer in model().layers for W in (layer.W_q, layer.W_k, layer.W_v)} == {(48, 48)},
})
of(SOLUTIONS["06"], "bytes-see", {
    "The two models called Llama 3 share keys and values": lambda: {
        name for name, m in PUBLISHED.items() if m.n_kv_heads < m.n_heads} >= {"Llama 3 8B", "Llama 3 70B"},
    "the other two do not": lambda: all(
        PUBLISHED[name].n_kv_heads == PUBLISHED[name].n_heads for name in ("GPT-3", "Llama 2 7B")),
})
of(SOLUTIONS["07"], "groups-see", {"four heads": lambda: model().n_heads == 4})
of(SOLUTIONS["07"], "latents-see", {
    "96 numbers a token: 48 of keys, 48 of values": lambda: kept("MHA") == 96 == 48 + 48,
})
of(SOLUTIONS["10"], "my-model-statement", {
    "135 million weights": lambda: round(weights_in_mb() / 4) == 135,
    "eleven in all": lambda: len(WHEN) == 11,
})

"""Figures, explorers, the tiny model and saving, called with what they cannot take: each argument in turn.

As in `test_bad_input`: `GOOD` says how a function is called rightly, the kind of each argument what is tried
in its place. A public function without an entry fails the first test.
"""

import ast
import dataclasses
import json
import pkgutil
from pathlib import Path

import numpy as np
import pytest
from bad_input import (
    CAME,
    EXPECTED,
    Kind,
    array,
    count,
    flag,
    is_tried,
    judge,
    number,
    optional,
    public,
    right,
    thing,
)
from test_explorers_model import Letters
from test_smollm2 import small_model

import helpers.figures
import helpers.tiny_model
from helpers import tiny_model
from helpers.figures.next_word import Line
from helpers.kv_cache import KVCache
from helpers.tiny_model import corpus
from helpers.tiny_model.model import to_arrays
from helpers.tiny_model.sharing import Groups, Latent

ROOT = Path(__file__).resolve().parents[1]
# Explorers are made by the functions of `explorers`; the modules behind it hold what these put together. Bad
# files come to `tiny_model.stored` in a test of its own.
MODULES = ["saving", "explorers", *(f"{package}.{module.name}" for package in ("figures", "tiny_model")
                                    for module in pkgutil.iter_modules([ROOT / "helpers" / package])
                                    if module.name != "stored")]
FUNCTIONS = {name: function for module in MODULES for name, function in public(module).items()}

# What these get has been looked at by the functions that call them.
PARTS = """
figures.arrays: draw_cells write_key draw_shades write_columns cell_size label_room in_lines array_text
    checked labelled checked_marks
figures.cache_sizes: size_text equals
figures.cache_step: counts draw_counters draw_steps
figures.charts: level_bars told_number Axes Axes.crowded Axes.x Axes.y share half_px ticks tick_text mark
    panels spot overlap spread_out told_facts rising
figures.flow: box
figures.head_grid: looked_at small_pattern draw_predictions prediction_table without
figures.head_sum: draw_strip largest
figures.heads: asked draw_steps draw_columns line_height window weights_in columns_in windowed largest
figures.loss_and_cache: plot along
figures.mask_ways: draw_row around part
figures.model_heads: visible isolated draw_map draw_layer draw_predictions cross told
figures.next_word: share
figures.saturation: size draw_plot
figures.style: shade live_css contrast luminance blend rgb
figures.svg: Sheet Sheet.colour Sheet.rect Sheet.path Sheet.line Sheet.arrow Sheet.text Sheet.texts Sheet.note
    Sheet.filled Sheet.stroked Sheet.lettered Sheet.finish px escaped
figures.words: rounded short_number thousands counted large ending em width shorten how_many_fit
    wrap pieces numbered table shape_text
figures.work_curves: draw_curves draw_bars percent
tiny_model.corpus: openings moves kind_of_next
tiny_model.gradients: forward backward word_ids n_layers split merge softmax_ softmax_back_ layer_norm
    layer_norm_back
tiny_model.measure: draw_stories asked keep in_parts one_score places
tiny_model.model: look_at tiny file_name as_stored as_float32
tiny_model.sharing: columns_of known free_weights expanded free_gradients parts_of kept Result.of
    Groups.expand Groups.back Groups.in_groups Latent.expand Latent.back
tiny_model.train: flatten AdamW AdamW.step how_long descend
tiny_model.value_ranks: kept name fingerprint
"""
# They hold what a function has computed.
RECORDS = """
figures.next_word: Line
figures.picture: Picture
tiny_model.corpus: Stories Grammar
tiny_model.measure: Work
tiny_model.model: LayerTrace Trace
tiny_model.sharing: Result
"""
# Commands: what they get comes from the command line, or is the course's own.
COMMANDS = """
tiny_model.sharing: write
tiny_model.train: positive main one_thread
tiny_model.value_ranks: write
"""


def listed(text):
    """The functions in one of the lists above."""
    lines = text.strip().replace("\n    ", " ").splitlines()
    return {f"{module}.{name}" for module, names in (line.split(": ") for line in lines)
            for name in names.split()}


INNER = listed(PARTS) | listed(RECORDS) | listed(COMMANDS)


def text(value="words", **more):
    return thing(value, None, 3, ["a"], b"a", **more)


def title():
    return thing("What to see", None, 3, ["a"], b"a", "", "  ")


def words(*value, free=False, called=None):
    """Right: these words. Wrong: others in number, unless that is `free`, and what is no list of words."""
    wrong = [3, "a" * len(value), {}, [None] * len(value), [["a"]] * len(value), np.array("a")]
    kind = thing(list(value), *wrong, called=called)
    more = {"one more": [*value, "a"], "none": []}
    return Kind(kind.value, kind.wrong, more if free else {}, called) if free else Kind(
        kind.value, kind.wrong | more, {}, called)


def position(n, value=0):
    return count(value, 0, n - 1)


def pairs(*value, n=(2, 4), **more):
    """Right: pairs (layer, head). Wrong: other numbers, and what is no list of pairs."""
    wrong = [3, "1.3", [1], [None], [(1,)], [(1, 2, 3)], [("a", 0)], [(0.0, 1)], [(True, 0)], {(0, 0): 1}]
    return thing(list(value), *wrong, [(n[0], 0)], [(0, n[1])], [(-1, 0)], **more)


def choice(value, *wrong):
    return thing(value, None, "no such", 1.5, [value], np.ones(2), *wrong)


T = ("i", "love", "you")
TOKENS = words(*T, called="tokens|query|weights|patterns|parts|row|M|dots|ways .*")
SQUARE = np.tril(np.full((3, 3), 0.25)) + np.eye(3) * 0.5
FLAT = SQUARE[2]
MODEL = tiny_model.load()
TRACE = MODEL.run("i love you")
NO_MODEL = thing(MODEL, None, 3, {}, tiny_model, to_arrays(MODEL))
NO_RECORDS = (None, 3, "ab", [], [3], [("a",)], [()], {"a": 1})
PREDICTIONS = thing([("tea", 0.5, 0.25)], *NO_RECORDS, [(3, 0.5, 0.5)], [("a", None, 0.5)],
                    [("a", 0.5, np.nan)], [("a", "b", 0.5)])
CURVES = (None, 3, [], {}, {"a": None}, {"a": "no"}, {"a": [1.0]}, {"a": [[1.0, 2.0]]}, {None: [1.0, 2.0]})
FACTS = thing([("a", "1")], *NO_RECORDS, [("a", 1)], [("a", None)])
OUT = (["a"] * 3, np.full(3, "a"))


def cells(**more):
    """A matrix to be drawn: NaN and infinity are shown, a vector is a row."""
    kind = array(2, 3, gaps=True, **more)
    del kind.wrong["one axis less"]
    kind.wrong |= {name: kind.fine.pop(name) for name in ("axis 0 empty", "axis 1 empty")}
    return kind


def inside(kind, put, called):
    """The kind of an argument that holds the other somewhere inside."""
    wrong, fine = ({what: put(bad) for what, bad in bads.items()} for bads in (kind.wrong, kind.fine))
    return Kind(put(kind.value), wrong, fine, called)


def with_(kind, *wrong):
    return Kind(kind.value, kind.wrong | {repr(bad): bad for bad in wrong}, kind.fine, kind.called)


LINE = Line("tea", 1.0, 0.5, 0.5, 0.5, True, "kept", 0.5, 1)
STATES = [("i", "new", "new")]
WAYS = [("MHA", "2 · 3", 6, 1, True)]
KINDS_OF_CACHE = [("shared", [("MHA", 8, 1.0, 0.5), ("MQA", 2, 2.0, 0.75)])]
WAY = ("label", 8, 1.0, 0.5)
ROLE = choice("A", "B")
READING = {"tokens": TOKENS, "query": position(3)}
WORK = [(10, 10), (4, 12)]
NUMBERS = (*NO_RECORDS, [(1, 2.5)], [(1, -1)], [(1, None)])

FIGURES = {
    "figures.arrays.matrix": {
        "M": cells(called="M|rows|columns"), "title": title(), "rows": words("a", "b"),
        "columns": words("a", "b", "c"), "role": ROLE, "digits": count(2, 0, 9),
        "mark": thing((0, 1), "a", 1.0, (0.0, 1), (0, 3), 2, -1, [5], [(1, 2, 3)], np.nan, {}, [None], True)},
    "figures.arrays.matrices": {
        "items": inside(cells(), lambda M: [("first", M, "A")], "items|M of .*|rows"), "title": title(),
        "rows": words("a", "b"), "digits": count(2, 0, 9)},
    "figures.arrays.tokens": {
        "tokens": words(*T), "weights": array(3, gaps=True), "title": title(), "query": optional(position(3)),
        "digits": count(2, 0, 9)},
    "figures.arrays.pipeline": {
        "steps": thing([("X", "(n, d)"), [("Q", "asks"), ("K", None)]], None, 3, "ab", [], [3], [("a",)],
                       [[]], [("a", 3)], [(3, "a")], [("", "a")], {"a": "b"}, [[("a", "b"), 3]]),
        "title": title()},
    "figures.charts.scatter": {
        "points": array(3, 2, called="points|labels"), "labels": words(*T), "title": title(),
        "groups": words(*T), "xlabel": text(), "ylabel": text()},
    "figures.charts.lines": {
        "x": array(2), "series": thing({"y": [1.0, 2.0]}, *CURVES, {"y": [1.0, np.nan]}, {"y": [1.0, np.inf]},
                                       {"y": [0.0, 1.0]}, called="series|the names in series|series .*|logy"),
        "title": title(), "xlabel": text(), "ylabel": text(), "logx": flag(), "logy": flag(True)},
    "figures.charts.bars": {
        "labels": words(*T), "values": array(3), "title": title(), "ylabel": text(),
        "digits": count(2, 0, 9)},
    "figures.words.number": {
        "x": Kind(1.5, {name: bad for name, bad in number(1.5).wrong.items() if name != "NaN"}),
        "digits": count(2, 0, 9)},
    "figures.both_ways.both_ways": {
        "which": position(2), "steps": words("Q", "K", free=True, called="steps|which"), **READING,
        "row": array(3, 3, hides=True), "column": array(3, 3, hides=True), "formulas": words("a", "b"),
        "role": ROLE, "title": title(), "note": text(), "sums": optional(array(3))},
    "figures.cache_sizes.cache_sizes": {
        "ways": thing(WAYS, *NO_RECORDS, [(3, "f", 6, 1, True)], [("a", 3, 6, 1, True)],
                      [("a", "f", 0, 1, True)], [("a", "f", 6, 0.5, True)], [("a", "f", 6, 1, 1)]),
        "title": title(), "note": text()},
    "figures.cache_step.cache_step": {
        "rows": thing(STATES, None, 3, "ab", [3], [("a",)], [("a", "new", "old")], [(3, "new", "new")]),
        "written": thing("tea", 3, ["tea"]), "step": count(1, 0, 2),
        "work": thing(WORK, *NUMBERS, called="work|step"),
        "so_far": thing((14, 22), None, 3, "a", (1,), (1, 2.5), (1, -1)),
        "kept_bytes": thing((8, 0), None, 3, "a", (1,), (1, 2.5), (1, -1)), "title": title(), "note": text()},
    "figures.flow.multi_head": {
        "X": array(3, 4, gaps=True), "n_heads": count(2, 1, 6), "d_k": count(2, 1), "title": title()},
    "figures.head_grid.head_grid": {
        "tokens": TOKENS,
        "patterns": array(2, 4, 3, 3, right=np.tile(SQUARE, (2, 4, 1, 1)), called="patterns|chosen"),
        "chosen": thing((1, 3), None, 3, "13", (1,), (2, 0), (0, 4), (0.0, 1)), "off": pairs((0, 1)),
        "predictions": PREDICTIONS, "title": title()},
    "figures.head_maps.head_maps": {
        "scores": thing({"induction": np.eye(2)}, None, 3, [], {}, {"a": None}, {"a": [1.0]},
                        {None: np.eye(2)}, {"a": np.eye(2), "b": np.eye(3)}, {"a": np.eye(2) * np.nan},
                        {"a": np.ones((0, 2))},
                        called="scores.*"),
        "title": title(), "best": count(1, 0, 4)},
    "figures.head_sum.head_sum": {
        "word": text(), "z": array(2, 2, called="z|W_o"), "W_o": array(4, 3, called="W_o|updates"),
        "updates": array(2, 3), "added": count(1, 0, 2), "running": array(3), "total": array(3),
        "column": position(3), "title": title(), "note": text()},
    "figures.heads.similarity": {
        **READING, "dots": array(3), "scaled": array(3), "weights": array(3), "d_k": count(4, 1)},
    "figures.heads.value_reading": {
        **READING, "weights": array(3), "parts": array(3, 2, called="parts|z"), "z": array(2)},
    "figures.heads.step": {
        "which": position(5), **READING, "M": array(3, 3, hides=True, called="M|columns"), "title": title(),
        "formula": text(), "columns": words(*T), "sums": optional(array(3)), "role": ROLE,
        "note": text()},
    "figures.loss_and_cache.loss_and_cache": {
        "kinds": thing(KINDS_OF_CACHE, *NO_RECORDS, [("a", [])], [("a", 3)], [(3, [WAY])],
                       [("a", [(3, *WAY[1:])])], [("a", [("b", 0, 1.0, 2.0)])],
                       [("a", [("b", 8, np.nan, 2.0)])], [("a", [("b", 8, "c", 2.0)])]),
        "floor": thing(("grammar", 0.5), None, 3, "ab", ("a",), (3, 0.5), ("a", np.inf), ("a", "b")),
        "size_name": text(), "title": title(), "note": text()},
    "figures.mask_ways.mask_ways": {
        **READING, "ways": thing({"off": SQUARE, "on": SQUARE}, None, 3, [], {}, {"off": None},
                                 {"off": SQUARE[:2]}, {"off": "a"}, {None: SQUARE},
                                 called="ways.*|the names in ways"),
        "chosen": choice("off", "other"), "title": title(), "note": text()},
    "figures.model_heads.model_heads": {
        "names": words(*T, called="names|patterns|query"), "patterns": array(
            2, 4, 3, 3, right=np.tile(SQUARE, (2, 4, 1, 1)), called="patterns|scores|chosen"),
        "scores": array(2, 4, gaps=True), "score": text(), "meaning": text(), "n_asked": count(2),
        "chosen": thing((1, 3), None, 3, "13", (1,), (2, 0), (0, 4), (0.0, 1)), "query": position(3),
        "off": pairs((0, 1)), "predictions": PREDICTIONS, "title": title()},
    "figures.next_word.next_word": {
        "lines": thing([LINE], None, 3, "a", [], [3], [("tea", 1.0)]), "temperature": number(1.0, np.inf),
        "draws": count(10), "title": title(), "note": text()},
    "figures.saturation.saturation": {
        "raw": array(3, called="raw|entering"), "entering": array(3), "weights": array(3), "facts": FACTS,
        "widths": thing([1, 4], None, 3, "ab", [], [1.5], [0, 1], [4, 1], [None],
                        called="widths|now|curves.*"),
        "now": choice(4, 5, 4.0),
        "curves": thing({"a": {"way": [1.0, 0.5]}}, None, 3, [], {}, {"a": None}, {"a": {}},
                        {"a": {"way": [1.0]}}, {"a": {"way": [1.0, np.nan]}}, {"a": {"other": [1.0, 0.5]}},
                        called="curves.*|chosen|the names in curves.*"),
        "chosen": choice("way", "other"),
        "title": title(), "note": text()},
    "figures.shared_heads.shared_heads": {
        "ways": thing([("MQA", [0, 0])], *NO_RECORDS, [("a", [])], [("a", [1])], [("a", [0, 2])],
                      [("a", [0.0])], [(3, [0])], [("a", "00")], [("a", 3)], [("a", [-1, 0])]),
        "title": title()},
    "figures.value_rank.value_rank": {
        "r": count(1, 0, 2), "strengths": array(2, called="strengths|r|errors"), "errors": array(3),
        "counts": thing([0, 4, 8], None, 3, "abc", [0, 4], [0, 4, 2.5], [[0, 4, 8]]),
        "curves": thing({"loss": [1.0, 2.0, 3.0]}, *CURVES, {"loss": [1.0, 2.0, np.nan]}, called="curves.*"),
        "title": title(), "note": text()},
    "figures.work_curves.work_curves": {
        "n": choice(2, 3, 2.0), "lengths": thing([1, 2], None, 3, "ab", [], [1.5], [0, 1], [2, 1],
                                                 called="lengths|n|curves.*"),
        "curves": thing({"a": [1, 2], "b": [1, 4]}, *CURVES, {"a": [1, 0]}, {"a": [1, np.inf]},
                        called="curves.*"),
        "overtakes": number(2, 0, -1, np.inf),
        "parts": thing({"a": 3, "b": 2}, None, 3, [], {}, {"a": None}, {"a": np.nan}, called=".*parts.*"),
        "held": thing({"a": 3}, None, 3, [], {}, {"a": None}, {"a": np.nan}, called=".*held.*"),
        "facts": FACTS, "title": title(), "note": text()},
}

SENTENCE = thing("i love", None, 3, 1.5, {}, "appels", ["i", 3], ["i love"], called="text|the tiny model")
LAYER, HEAD = choice(1, 2, -1, True, 1.0), choice(3, 4, -1, True, 3.0)
ASKED = {"text": SENTENCE, "layer": LAYER, "head": HEAD, "query": optional(position(3))}
SMALL = dataclasses.replace(small_model(), tokenizer=Letters())
SEED = count(0)

EXPLORERS = {
    "explorers.similarity": ASKED,
    "explorers.value_reading": ASKED,
    "explorers.step_through": ASKED | {"step": choice(0, 5, -1, False, 0.0)},
    "explorers.heads": {"text": SENTENCE, "layer": LAYER, "head": HEAD, "without": pairs((0, 1))},
    "explorers.concat_or_sum": {"text": SENTENCE, "layer": LAYER, "query": optional(position(3)),
                                "added": optional(choice(4, 5, -1, 4.0)),
                                "column": optional(count(2, 0, 47))},
    "explorers.rank": {"layer": LAYER, "head": HEAD, "r": count(4, 0, 12)},
    "explorers.cache": {"text": SENTENCE, "n_new": count(8, 1), "step": count(2, 0, 8)},
    "explorers.cache_calculator": {
        "model": choice("GPT-3", "GPT-9"), "n_tokens": count(10, 1, 10**8), "batch": count(2, 1, 10**6),
        "bytes_per_value": choice(2, 3, 2.0), "n_kv_heads": optional(choice(8, 5, 8.0))},
    "explorers.sampling": {
        "text": SENTENCE, "temperature": number(1.0, -1.0, np.inf), "top_k": optional(count(2, 1)),
        "top_p": optional(number(0.5, 0, 1.1, np.inf)), "seed": SEED, "draws": count(10, 0, 1000)},
    "explorers.context_cost": {
        "model": choice("GPT-3", "GPT-9"), "n": count(100, 1, 10**8),
        "d_model": optional(count(64, 1, 10**6)), "layers": optional(count(2, 1, 10**4)),
        "n_heads": Kind(4, optional(count(4, 1, 10**6)).wrong | {"no divisor": 5}),
        "mlp": flag(), "causal": flag()},
    "explorers.scale_and_saturation": {
        "d_k": count(8, 1, 4096), "temperature": number(1.0, 0, -1.0, np.inf), "scale": flag(), "seed": SEED},
    "explorers.causal_mask": ASKED | {"mask": choice("off", "on", True), "raised": choice(5, 7, -5, 5.0)},
    "explorers.row_or_column": ASKED | {"step": choice(3, 8, -1, 3.0)},
    "explorers.model_heads": {
        "text": thing("tom", None, 3, ["tom"], "x" * 25, "", called="text|ids|the text"),
        "layer": count(1, 0, 1), "head": choice(3, 6, -1, 3.0), "query": optional(position(3)),
        "score": choice("induction", "best"), "without": pairs((0, 1), n=(2, 6)),
        "model": thing(SMALL, 3, "SmolLM2", MODEL, {})},
}

DRAWN = {"rng": thing(np.random.default_rng(0), 0, "seed", np.random),
         "temperature": number(1.0, -1.0, np.inf), "top_k": optional(count(2, 1)),
         "top_p": optional(number(0.5, 0, 1.1, np.inf))}
WITHOUT = pairs((0, 1))
ARRAYS = to_arrays(MODEL)
WEIGHTS = {name: M for name, M in ARRAYS.items() if name not in ("vocab", "n_heads")}


def spoilt(arrays):
    """The arrays of a model, each in turn missing, of another shape, with NaN, or no array at all."""
    wrong = {"None": None, "a list": [], "none": {}}
    for name, M in arrays.items():
        wrong[f"no {name}"] = {other: part for other, part in arrays.items() if other != name}
        for what, bad in (("text", "text"), ("short", M[..., 1:] if M.ndim else 0), ("None", None),
                          ("NaN", np.full(M.shape, np.nan)), ("tall", M[None])):
            wrong[f"{name}: {what}"] = arrays | {name: bad}
    return wrong


IN_ARRAYS = "arrays|w|vocab|layers|n_heads|ids|[EP]|W_[qkvot]|gamma|beta|gamma of a layer"
FILE = thing("there", None, 3, 1.5, ["a"], b"there")
IDS = np.array([[0, 3, 4], [0, 5, 6]])
NO_IDS = {"floats": IDS + 0.5, "too large": IDS + 45, "negative": IDS - 9, "a vector": IDS[0], "None": None,
          "text": "text", "ragged": [[0], [0, 1]], "longer": IDS[:, [0] * 50], "empty": IDS[:, :0]}
N_HEADS = Kind(4, count(4, 1).wrong | {"no divisor": 5})
PARTS_OF_A_WAY = {"W_k": array(4, 4), "W_v": array(4, 4), "n_heads": N_HEADS}

TINY_MODEL = {
    "tiny_model.corpus.pronoun": {"name": choice("anna", "i", "apples")},
    "tiny_model.corpus.possessive": {"name": choice("ben", "i", "apples")},
    "tiny_model.corpus.grammar": {"held_out": flag()},
    "tiny_model.corpus.Stories.words": {"i": position(2)},
    "tiny_model.corpus.Grammar.stories": {"m": count(2, 1), "n": count(3, 1), "seed": SEED},
    "tiny_model.corpus.Grammar.entropy": {"n": count(3, 1)},
    "tiny_model.corpus.Grammar.next_words": {
        "text": thing("i love", None, 3, {"i": 1}, {"i"}, "you love", ["i", 3],
                      called="text|no story goes on")},
    "tiny_model.gradients.loss_and_gradients": {
        "w": Kind(WEIGHTS, spoilt(WEIGHTS), {}, IN_ARRAYS), "ids": Kind(IDS, NO_IDS),
        "targets": Kind(IDS, NO_IDS),
        "asked": thing(IDS > 0, None, "text", 1, IDS, (IDS > 0)[0], IDS < 0), "n_heads": N_HEADS},
    "tiny_model.measure.fresh_stories": {"m": count(2, 1), "n": count(5, 1), "seed": SEED},
    "tiny_model.measure.predict": {"model": NO_MODEL, "without": WITHOUT},
    "tiny_model.measure.predict_words": {"model": NO_MODEL, "without": WITHOUT},
    "tiny_model.measure.cross_entropy": {"model": NO_MODEL, "without": WITHOUT},
    "tiny_model.measure.accuracy": {"model": NO_MODEL, "without": WITHOUT},
    "tiny_model.measure.head_scores": {"model": NO_MODEL},
    "tiny_model.measure.score": {"model": NO_MODEL, "kind": choice("content", "verbs"),
                                 "heads": with_(pairs((1, 3)), [])},
    "tiny_model.measure.best_heads": {"model": NO_MODEL},
    "tiny_model.measure.shortfalls": {"model": NO_MODEL},
    "tiny_model.measure.report": {"model": NO_MODEL},
    "tiny_model.model.Layer": {
        "W_q": array(4, 6, called="W_[qkvo]|gamma|beta"), "W_k": array(4, 6),
        "W_v": array(4, 8, called="W_[vo]"),
        "W_o": array(8, 4), "gamma": array(4), "beta": array(4)},
    "tiny_model.model.TinyModel": {
        "vocab": words(*MODEL.vocab), "E": array(45, 48, called="[EP]|W_t|gamma|beta|vocab"),
        "P": array(40, 48), "layers": thing(MODEL.layers, None, 3, [], [None], "ab", ARRAYS),
        "gamma": array(48), "beta": array(48), "W_t": array(48, 45), "n_heads": N_HEADS},
    "tiny_model.model.Trace.top": {"k": count(2), "position": count(-1, -4, 3)},
    "tiny_model.model.TinyModel.tokens": {"text": SENTENCE, "n_before": count(3)},
    "tiny_model.model.TinyModel.new_caches": {},
    "tiny_model.model.TinyModel.run": {
        "text": SENTENCE, "without": WITHOUT,
        "caches": thing(None, 3, "ab", [], [3, 3], MODEL.new_caches()[:1], [KVCache(4, 9, 8)] * 2,
                        [KVCache(4, 9, 8), KVCache(4, 9, 8)], [KVCache(4, 1, 12), KVCache(4, 1, 12)],
                        called="caches?|the cache of layer 0")},
    "tiny_model.model.TinyModel.generate": {
        "text": SENTENCE, "n_new": Kind(2, count(2).wrong | {"too many": 38}, {}, "n_new|the tiny model"),
        "cache": flag(), "chunk": optional(count(2, 1)), **DRAWN},
    "tiny_model.model.to_arrays": {"model": NO_MODEL},
    "tiny_model.model.from_arrays": {"arrays": Kind(ARRAYS, spoilt(ARRAYS), {}, IN_ARRAYS)},
    "tiny_model.model.save": {"model": NO_MODEL, "path": FILE},
    "tiny_model.model.load": {"path": FILE},
    "tiny_model.sharing.Groups": {"n_kv_heads": count(2, 1)},
    "tiny_model.sharing.Groups.numbers": {"model": NO_MODEL},
    "tiny_model.sharing.Groups.parts": PARTS_OF_A_WAY,
    "tiny_model.sharing.Latent": {"r": count(2, 1)},
    "tiny_model.sharing.Latent.numbers": {"model": NO_MODEL},
    "tiny_model.sharing.Latent.parts": PARTS_OF_A_WAY,
    "tiny_model.sharing.convert": {"model": NO_MODEL, "way": thing(
        Groups(2), None, 2, "GQA", Groups, Groups(3), Latent(49), called="way|n_kv_heads|r")},
    "tiny_model.sharing.fine_tune": {
        "model": NO_MODEL,
        "way": thing(Groups(2), None, 2, "GQA", Groups, Groups(3), called="way|n_kv_heads"),
        "steps": count(1, 1), "batch": count(1, 1), "show": thing(None, 3, "print")},
    "tiny_model.sharing.results": {},
    "tiny_model.side_by_side.write_stories": {
        "model": NO_MODEL, "m": count(2), "n_new": count(3, 0, 39), **DRAWN},
    "tiny_model.train.initial_weights": {
        "rng": thing(np.random.default_rng(0), None, 0, np.random), "n_max": count(5, 1),
        "d_model": count(8, 1), "n_layers": count(1, 1), "n_heads": count(2, 1), "d_k": count(2, 1)},
    "tiny_model.train.one_cycle": {
        "step": count(3, 0, 9), "steps": Kind(10, count(10, 1).wrong, {}, "steps|step"),
        "peak": number(0.1, 0, -1.0, np.inf), "warm_up": number(0.1, 0, 1, np.inf)},
    "tiny_model.train.train": {"seed": SEED, "steps": count(1, 1), "batch": count(1, 1),
                               "show": thing(None, 3, "print")},
    "tiny_model.value_ranks.value_map": {
        "model": NO_MODEL, "layer": count(1, 0, 1), "head": count(3, 0, 3)},
    "tiny_model.value_ranks.best_map": {"M": array(3, 4, called="M|r"), "r": count(2, 0, 3)},
    "tiny_model.value_ranks.thin_values": {"model": NO_MODEL, "r": count(2, 0, 12), "heads": pairs((0, 1))},
    "tiny_model.value_ranks.measured": {"model": NO_MODEL, "heads": pairs((0, 1))},
    "tiny_model.value_ranks.losses": {"model": NO_MODEL, "head": thing(
        (1, 3), 3, "13", (1,), (2, 0), (0, 4), (0.0, 1), (True, 0))},
    "tiny_model.work.multiply_adds": {"model": NO_MODEL, "m": count(1, 0, 3),
                                      "t": Kind(3, count(3).wrong | {"less than m": 0}, {}, "t|m")},
}

SAVING = {"saving.before_saving": {"model": thing({"type": "file"}, None, 3, "notebook", [])}}

GOOD = FIGURES | EXPLORERS | TINY_MODEL | SAVING
OF = {"tiny_model.corpus.Stories": corpus.grammar().stories(2, 5, 0),
      "tiny_model.corpus.Grammar": corpus.grammar(), "tiny_model.model.Trace": TRACE,
      "tiny_model.model.TinyModel": MODEL, "tiny_model.sharing.Groups": Groups(2),
      "tiny_model.sharing.Latent": Latent(2)}
# Seconds each, and in test_tiny_model.
SLOW = {f"tiny_model.{name}" for name in ("measure.best_heads", "measure.shortfalls", "measure.report",
                                          "value_ranks.measured")}
SAID, NAMED = (f"{EXPECTED}|does not know|at most|goes on with|room for",
               f"{CAME}|does not know '|into \\d|at least one token")


def called(name):
    """A method of a record that is right, or the function as it is."""
    record, _, method = name.rpartition(".")
    return getattr(OF[record], method) if record in OF else FUNCTIONS[name]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder in which there are weights to read and to write over."""
    monkeypatch.chdir(tmp_path)
    helpers.tiny_model.model.save(MODEL, "there")


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in INNER])
def test_every_public_function_is_tried_with_bad_input_for_every_argument(name):
    is_tried(name, FUNCTIONS, GOOD, besides=("self", "_"))


def test_no_entry_is_left_of_a_function_that_is_gone():
    assert set(GOOD) | INNER == set(FUNCTIONS) and not set(GOOD) & INNER


def test_what_a_notebook_calls_is_tried():
    """Only of records, such as a Trace, a notebook may use the name."""
    used = set()
    for path in (*(ROOT / "notebooks").glob("*.ipynb"), *(ROOT / "solutions").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom):
                used |= {f"{node.module}.{name.name}" for name in node.names}
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                used |= {f"helpers.{module}.{node.attr}" for module in MODULES
                         if module.endswith(f".{node.value.id}")}
    assert "helpers.tiny_model.measure.accuracy" in used
    assert not used & {f"helpers.{name}" for name in INNER - listed(RECORDS)}


@pytest.mark.parametrize("name", [name for name in GOOD if name not in SLOW])
@pytest.mark.filterwarnings("error")
def test_what_is_right_is_taken(name):
    called(name)(**right(GOOD[name]))


@pytest.mark.parametrize(("name", "argument"), [(name, argument) for name in GOOD for argument in GOOD[name]])
@pytest.mark.filterwarnings("error")
def test_bad_input_is_named_with_what_was_expected_and_what_came(name, argument):
    judge(called(name), GOOD[name], argument, SAID, NAMED)

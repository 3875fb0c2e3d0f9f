"""Pictures: the numbers in them, their forms, their colours, and what they refuse."""

import base64
import html
import itertools
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import explorers, figures
from helpers.figures import (
    both_ways,
    cache_sizes,
    cache_step,
    flow,
    head_grid,
    head_maps,
    head_sum,
    heads,
    loss_and_cache,
    mask_ways,
    next_word,
    saturation,
    shared_heads,
    style,
    value_rank,
    work_curves,
)
from helpers.figures.charts import COLOURS, ticks
from helpers.figures.words import number, numbered, short_number, shorten, table, width, wrap

SVG = "{http://www.w3.org/2000/svg}"
WORDS = "<bos> anna loves apples . ben loves pears . she eats".split()
MORE = [*WORDS, "pears"]
rng = np.random.default_rng(7)
A = np.tril(rng.dirichlet(np.full(11, 0.3), size=11))
A /= A.sum(axis=1, keepdims=True)
S = rng.normal(size=(11, 11)) * 8
MANY = np.tril(np.ones((33, 33))) / np.arange(1, 34)[:, None]
PARTS = A[-1][:, None] * rng.normal(size=(11, 12))
SUM = (rng.normal(size=(4, 12)), rng.normal(size=(48, 48)), rng.normal(size=(4, 48)))
RANKS = (np.arange(12, 0, -1) / 12, np.arange(12, -1, -1) / 12, [96 * i for i in range(13)],
         {"this head cut": np.linspace(0.8, 0.7, 13), "all heads cut": np.linspace(1.9, 0.7, 13)})
NEXT = [next_word.Line(f"word{i}", -i / 2, 0.5**i, 0.4**i, 1 - 0.4**i, i < 4,
                       "kept" if i < 4 else "cut by top-k", 0.4**i, 100 * i) for i in range(1, 12)]
NEXT.append(next_word.Line("334 others, 20 kept", None, 1, 1, None, True, "partly kept", 1, 1000))

PICTURES = {
    "weights": lambda: figures.matrix(A, "Who reads whom", WORDS, WORDS, mark=[10, (10, 3)]),
    "scores": lambda: figures.matrix(S[:5, :5], "Scores", WORDS[:5], WORDS[:5], role="S", digits=1),
    "wide": lambda: figures.matrix(rng.normal(size=(6, 48)), "Embeddings, a row a word", WORDS[:6], role="X"),
    "tall": lambda: figures.matrix(rng.normal(size=(40, 12)), "Many rows", role="X"),
    "three": lambda: figures.matrices([("Q", S[:5, :4], "Q"), ("K", S[:5, 4:8], "K"), ("V", S[:5, :3], "V")],
                                      "Three projections of the same words", WORDS[:5]),
    "heads": lambda: figures.matrices([(f"head {h}", A, "A") for h in range(4)], "Four heads", WORDS),
    "strip": lambda: figures.tokens(WORDS, A[-1], "Where “eats” looks", query=10),
    "signed strip": lambda: figures.tokens(WORDS * 2, list(range(-11, 11)), "Two lines of words, signed"),
    "pipeline": lambda: figures.pipeline([*((f"step {i}", f"({i}, 48)") for i in range(12)), ("Q", "")], "W"),
    "scatter": lambda: figures.scatter(S[:, :2], WORDS, "Words that do the same stand together",
                                       list("abcdefabcde"), "first", "second"),
    "lines": lambda: figures.lines([4, 16, 64, 256], {"spread": [2, 4, 8, 16], "÷ √d_k": [1, 1, 1, 1]},
                                   "The spread grows", "d_k", "spread", logx=True, logy=True),
    "smooth lines": lambda: figures.lines(range(200), {"n²": np.arange(200) ** 2}, "It bends", "n", "work"),
    "bars": lambda: figures.bars(WORDS, A[-1] - 0.1, "A bar a word", "less 0.1"),
    "cosines": lambda: figures.matrix(np.cos(np.add.outer(range(22), range(22))), "Many columns, named",
                                      WORDS * 2, WORDS * 2, role="S"),
    "far": lambda: figures.lines([1, 2, 4], {"a": [1e-6, 1e-3, 0.1]}, "Far", "x", "y", logy=True),
    "similarity": lambda: heads.similarity(WORDS, 7, S[7], S[7] / 12**0.5, A[7], 12),
    "similarity of a long word": lambda: heads.similarity(WORDS, 2, S[2], S[2] / 12**0.5, A[2], 12),
    "similarity of many words": lambda: heads.similarity(WORDS * 3, 31, MANY[31] * 9, MANY[31], MANY[31],
                                                         12),
    "value reading of many words": lambda: heads.value_reading(WORDS * 3, 32, MANY[32], MANY[:, :12],
                                                               MANY[:, :12].sum(axis=0)),
    "value reading": lambda: heads.value_reading(WORDS, 10, A[10], PARTS, PARTS.sum(axis=0)),
    "step": lambda: heads.step(3, WORDS, 10, A, "Shares", "A = softmax", WORDS, A.sum(axis=1), "A"),
    "flow of four heads": lambda: flow.multi_head(np.zeros((40, 48)), 4, 12, "Four heads side by side"),
    "flow of one head": lambda: flow.multi_head(np.zeros((3, 4)), 1, 2, "One head"),
    "head grid": lambda: head_grid.head_grid(WORDS, [np.stack([A] * 4)] * 2, (1, 3), {(1, 3), (0, 0)},
                                             [("apples", 1, 0.25), ("pears", 0, 0.75)], "Two are off"),
    "head grid of one word": lambda: head_grid.head_grid(
        ["<bos>"], [np.ones((4, 1, 1))] * 2, (0, 0), set(), [("i", 0.2, 0.2)], "All on"),
    "head grid of many words": lambda: head_grid.head_grid(
        WORDS * 3, [np.stack([MANY] * 4)] * 2, (1, 2), set(), [("i", 0.2, 0.2)], "Forty"),
    "head grid, most off": lambda: head_grid.head_grid(
        WORDS, [np.stack([A] * 4)] * 2, (0, 1), {(i, j) for i in (0, 1) for j in range(4)} - {(0, 0)},
        [(word, 0.5, 0.5) for word in WORDS[1:7]], "Seven are off"),
    "head sum": lambda: head_sum.head_sum("eats", *SUM, 2, SUM[2][:2].sum(0), SUM[2].sum(0), 0, "Two of 4"),
    "head sum, last column": lambda: head_sum.head_sum("eats", *SUM, 4, *[SUM[2].sum(0)] * 2, 47, "All"),
    "value rank 0": lambda: value_rank.value_rank(0, *RANKS, "Nothing is left"),
    "value rank 6": lambda: value_rank.value_rank(6, *RANKS, "Half is left", "A note"),
    "value rank 12": lambda: value_rank.value_rank(12, *RANKS, "All is left"),
    "cache before": lambda: cache_step.cache_step([], None, 0, [(5, 5)] * 3, (0, 0), (0, 0), "Not yet"),
    "cache step": lambda: cache_step.cache_step(
        [("loves₂", "kept", "again")] * 11 + [("apples", "new", "new")], "pears", 2, [(10**6, 10**8)] * 30,
        (2 * 10**6, 2 * 10**8), (10**6, 0), "Twice"),
    "cache sizes": lambda: cache_sizes.cache_sizes(
        [("MHA: each head", "2 · 60 layers · 128 KV heads · d_head 128 · 131,072 tokens · 4 bytes · batch 64",
          65970697666560, 7864320, False),
         ("Latent: d_c + d_r", "60 layers · (d_c 512 + d_r 64)", 1159641169920, 138240, True)], "Two", "N"),
    "shared heads": lambda: shared_heads.shared_heads(
        [("all", [0, 1, 2, 3]), ("groups", [0, 0, 1, 1]), ("one for all", [0] * 4)], "Who reads"),
    "loss and cache": lambda: loss_and_cache.loss_and_cache(
        [("shared", [("MHA", 384, 0.7, 0.7), ("GQA", 192, 1.4, 0.71), ("MQA", 96, 1.8, 0.72)]),
         ("latent", [("r = 8", 64, 0.8, 0.7), ("r = 4", 32, 1.5, 0.75)])], ("the grammar", 0.68), "bytes",
        "Smaller costs", "A note"),
    "head maps": lambda: head_maps.head_maps(
        {kind: np.random.default_rng(1).random((30, 9)) for kind in ("previous token", "induction", "sink")},
        "Jobs", best=2),
    "next word": lambda: next_word.next_word(NEXT, 0.7, 1000, "Some words are cut", "A note"),
    "next word, long": lambda: next_word.next_word(
        [next_word.Line("a" * 60, -1000.0, 1, 1, 1.0, True, "kept", 1, 0)], 0, 0, "No draws"),
    "work curves": lambda: work_curves.work_curves(
        2**20, [2**e for e in range(6, 21)],
        {"projections and MLP: grow with n": np.exp2(range(50, 65)), "n²": np.exp2(range(0, 30, 2))}, 10**9,
        {"projections": 1e15, "MLP": 2e15, "scores": 10, "weighted sum": 10},
        {"K and V": 1, "S, formed whole": 10**15, "S, in tiles": 0}, [("n² overtakes at", "1e9")] * 4, "t"),
    "work curves of a short text": lambda: work_curves.work_curves(
        1, [1, 64], {"n": [10, 640], "n²": [1, 4096]}, 10, {"scores": 1, "weighted sum": 1}, {"K and V": 1},
        [("a", "b")], "One token", "A note"),
    "context cost, largest": lambda: explorers.context_cost(
        n=10**8, d_model=10**6, layers=10**4, n_heads=10**6).picture(),
    "context cost, largest with one head": lambda: explorers.context_cost(
        n=10**8, d_model=10**6, layers=10**4, n_heads=1).picture(),
    "cache calculator, largest": lambda: explorers.cache_calculator(
        "PaLM 540B", n_tokens=10**8, batch=10**6, bytes_per_value=4).picture(),
    "cache calculator, most digits": lambda: explorers.cache_calculator(
        "DeepSeek-V2", n_tokens=10**8, batch=630, bytes_per_value=2).picture(),
    "saturation": lambda: saturation.saturation(
        S[0, :6], S[0, :6] / 9, A[5, :6], [("spread of what softmax gets", "1e+05")] * 4, [1, 8, 1024], 1024,
        {"entropy": {"÷": [1.79, 1, 0], "not divided": [0, 0, 0]},
         "size": {"÷": [0.4, 0.1, 0], "not divided": [0.4, 1e-9, 1e-80]}}, "÷", "Two curves", "A note"),
    "mask ways": lambda: mask_ways.mask_ways(
        WORDS, 5, {"no mask": A, "before softmax": A, "after softmax": A, "after, ÷ sum": A * np.nan},
        "no mask", "Four ways", "A note"),
    "mask ways, last of many": lambda: mask_ways.mask_ways(
        WORDS * 3, 32, dict.fromkeys(("no mask", "before softmax", "after softmax", "after, ÷ sum"), MANY),
        "after, ÷ sum", "Four ways"),
    "mask ways, one word": lambda: mask_ways.mask_ways(["<bos>"], 0, {"no mask": np.ones((1, 1))}, "no mask",
                                                       "One way"),
    "both ways": lambda: both_ways.both_ways(
        1, list("XQS"), WORDS[:4], 2, S[:4], S[:4].T, ["Q = X W_q: (4, 48) @ (48, 12) → (4, 12)"] * 2, "Q",
        "Row and column", "A note"),
    "both ways of many words": lambda: both_ways.both_ways(
        2, list("XQA"), MORE, 11, MANY[:12, :12], MANY[:12, :12], ["A = softmax: (12, 12)"] * 2, "A",
        "The same", "A note", np.ones(12)),
    "both ways of many numbers": lambda: both_ways.both_ways(
        0, list("XQA"), MORE, 0, MANY[:12, :30] - 1, MANY[:12, :30].T - 1, ["X: (12, 30)"] * 2, "X",
        "Turned"),
    "flow of six heads": lambda: flow.multi_head(np.zeros((40, 60)), 6, 10, "Six heads"),
}


def words_in(svg, turned=False):
    """Every level text of the drawing, or every turned one, as (x, y, size, anchor, words)."""
    out = []

    def walk(node, size, anchor):
        size, anchor = float(node.get("font-size", size)), node.get("text-anchor", anchor)
        if node.tag == SVG + "text" and ("transform" in node.keys()) == turned:
            out.append((float(node.get("x")), float(node.get("y")), size, anchor, node.text or ""))
        for child in node:
            walk(child, size, anchor)

    walk(ET.fromstring(svg), 16, "start")
    return out


def as_float(text):
    return float(text.replace("−", "-").replace("∞", "inf"))


# --- what every picture is ------------------------------------------------------------------------

@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_well_formed_and_says_what_it_shows(name):
    picture = PICTURES[name]()
    root = ET.fromstring(picture.svg)
    assert root.get("role") == "img" and root.get("aria-label") == picture.title
    assert root.find(SVG + "title").text == picture.title
    assert len(root.find(SVG + "desc").text) > 5
    assert picture.text.startswith(picture.title + "\n") and repr(picture) == picture.text


@pytest.mark.parametrize("name", PICTURES)
def test_nothing_is_cut_off_and_everything_fits_a_notebook(name):
    picture = PICTURES[name]()
    _, _, wide, high = map(float, ET.fromstring(picture.svg).get("viewBox").split())
    assert wide <= 900
    for x, y, size, anchor, words in words_in(picture.svg):
        long = width(words, size)
        left = x - {"start": 0, "middle": long / 2, "end": long}[anchor]
        assert left >= -1 and left + long <= wide + 1, words
        assert 0 < y - 0.7 * size and y + 0.25 * size < high, words
    for x, y, size, anchor, words in words_in(picture.svg, turned=True):       # from below upwards
        long = width(words, size)
        low = y + {"start": 0, "middle": long / 2}[anchor]
        assert low <= high and low - long >= 0 and x - 0.7 * size >= 0 and x <= wide, words


@pytest.mark.parametrize("name", PICTURES)
def test_words_do_not_run_into_each_other(name):
    boxes = []
    for x, y, size, anchor, words in words_in(PICTURES[name]().svg):
        long = 0.85 * width(words, size)                 # `width` is on the wide side
        left = x - {"start": 0, "middle": long / 2, "end": long}[anchor]
        boxes.append((left, left + long, y - 0.7 * size, y, words))
    for a, b in itertools.combinations(boxes, 2):
        across, down = min(a[1], b[1]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[2], b[2])
        assert across <= 0 or down <= 0, (a[4], b[4])


@pytest.mark.parametrize("name", PICTURES)
def test_the_bundle_holds_the_same_picture_in_every_form(name):
    picture = PICTURES[name]()
    bundle = picture._repr_mimebundle_()
    assert set(bundle) == {"text/html", "image/svg+xml", "text/plain"}
    assert bundle["text/plain"] == picture.text and bundle["image/svg+xml"] == picture.svg
    form = r'<img alt="([^"]*)" src="data:image/svg\+xml;base64,([^"]+)">'
    alt, data = re.search(form, bundle["text/html"]).groups()
    assert html.unescape(alt) == picture.title
    assert base64.b64decode(data).decode() == picture.svg
    assert f">{html.escape(picture.text)}</pre></details>" in bundle["text/html"]


@pytest.mark.parametrize("name", PICTURES)
def test_stored_pictures_carry_their_colours_and_live_ones_the_themes(name):
    picture = PICTURES[name]()
    assert "var(" not in picture.svg and f'fill="{style.LIGHT["surface"]}"' in picture.svg
    assert not re.search(r'="#[0-9a-f]{6}"', picture.drawing)
    assert set(re.findall(r"var\(--sa-(\w+)\)", picture.drawing)) <= set(style.DARK)


def test_the_same_arrays_give_the_same_picture():
    for name, make in PICTURES.items():
        if name not in ("wide", "tall"):                 # these draw new numbers
            assert make()._repr_mimebundle_() == make()._repr_mimebundle_(), name


def test_the_last_bits_of_a_number_change_no_picture():
    edges = np.arange(-30, 30).reshape(6, 10) / 2 * 0.01          # every second one sits on a rounding edge
    letters = list("abcdefghij")
    draw = (lambda M: figures.matrix(M, "t", role="S"), lambda M: figures.tokens(letters, M[4], "t"),
            lambda M: figures.bars(letters, M[1], "t"))
    for make, noise in itertools.product(draw, (1e-9, -1e-9)):
        assert make(edges + noise).svg == make(edges).svg
    points = S[:, :2]
    assert figures.scatter(points + 1e-12, WORDS, "t").svg == figures.scatter(points, WORDS, "t").svg


@pytest.mark.parametrize("word", ["<bos>", "a&b", '"', "'", "</svg>", "苹果", "naïve", "a" * 60])
def test_any_word_can_stand_in_a_picture(word):
    for picture in (figures.matrix([[1.0]], word, [word], [word]), figures.pipeline([(word, word)], word),
                    figures.tokens([word], [1.0], word, query=0), figures.bars([word], [1.0], word),
                    figures.scatter([[0, 0]], [word], word)):
        root = ET.fromstring(picture.svg)
        assert root.find(SVG + "title").text == word and word in picture.text
        for x, _, size, anchor, words in words_in(picture.svg):
            if anchor == "end":
                assert x - width(words, size) >= -1


# --- numbers --------------------------------------------------------------------------------------

@given(st.floats(-1e4, 1e4), st.integers(0, 4))
def test_a_number_is_written_to_the_digit(x, digits):
    text = number(x, digits)
    assert abs(as_float(text) - x) <= 0.5 * 10**-digits + 10 ** -(digits + 4)
    assert re.fullmatch(r"−?\d+" + (rf"\.\d{{{digits}}}" if digits else ""), text)
    assert as_float(text) != 0 or not text.startswith("−")


def test_numbers_that_are_not_plain():
    assert [number(x) for x in (np.inf, -np.inf, np.nan, -0.0, -0.001)] == ["∞", "−∞", "NaN", "0.00", "0.00"]
    assert number(2.5e7) == "2.5e+07"
    for x, text in ((1024, "1,024"), (1e6, "1e6"), (0.5, "0.5"), (-0.25, "−0.25"), (0, "0"),
                    (65536, "65,540"), (2e-6, "2e−6"), (3e12, "3e12")):
        assert short_number(x) == text


def test_words_that_come_twice_are_told_apart_and_only_they():
    once = numbered(["a", "b", "a", "."])
    assert once == ["a₁", "b", "a₂", "."] and numbered(once) == once


def test_a_weight_has_the_same_shade_in_every_picture():
    alone, beside = (figures.matrix(M, "t", role="A").svg for M in ([[0.2]], [[0.2, 1.0]]))
    alone, beside = (set(re.findall(r'opacity="([\d.]+)"', svg)) for svg in (alone, beside))
    assert len(alone) == 1 and len(beside) == 2 and alone < beside


def test_two_of_the_same_word_stay_apart_when_shortened():
    short = [shorten(word, 40, 13) for word in ("strawberries₁", "strawberries₂")]
    assert short[0] != short[1] and all(width(words, 13) <= 40 for words in short)
    assert [words[-2:] for words in short] == ["…₁", "…₂"]


def test_text_is_shortened_wrapped_and_aligned():
    assert shorten("apples", 200, 13) == "apples"
    short = shorten("a" * 80, 100, 13)
    assert short.endswith("…") and width(short, 13) <= 100
    lines = wrap("some words that take more than one line", 90, 13)
    assert " ".join(lines) == "some words that take more than one line" and len(lines) > 2
    assert table([["a", "1"], ["bcd", "22"]], ["", "n"]) == "      n\na     1\nbcd  22"


# --- heat maps ------------------------------------------------------------------------------------

@pytest.mark.parametrize("digits", [1, 2, 3])
def test_each_cell_of_a_matrix_shows_its_own_number_in_its_place(digits):
    M = rng.normal(size=(4, 7)) * 5
    rows, columns = [f"r{i}" for i in range(4)], [f"c{j}" for j in range(7)]
    picture = figures.matrix(M, "t", rows, columns, role="S", digits=digits)
    cells = [(y, x, words) for x, y, size, _, words in words_in(picture.svg) if size == style.CELL]
    shown = np.array([as_float(words) for _, _, words in sorted(cells)]).reshape(4, 7)
    np.testing.assert_allclose(shown, M, atol=0.5001 * 10**-digits)
    lines = picture.text.splitlines()
    assert lines[1].split() == columns
    for i, row in enumerate(rows):
        assert lines[2 + i].split() == [row, *(number(v, digits) for v in M[i])]


def cell_fills(svg):
    """{(column px, row px): (fill, opacity)} of the shaded cells."""
    out = {}
    for node in ET.fromstring(svg).iter(SVG + "path"):
        if node.get("fill") != "none":
            for x, y in re.findall(r"M([\d.]+) ([\d.]+)h", node.get("d")):
                out[float(x), float(y)] = (node.get("fill"), float(node.get("fill-opacity", 1)))
    return out


def test_shades_follow_size_and_sign():
    fills = cell_fills(figures.matrix([[1.0, -0.5, 0.0, 0.25]], "t", role="S").svg)
    ordered = [fills[key] for key in sorted(fills)]
    more, less = style.LIGHT["positive"], style.LIGHT["negative"]
    assert ordered == [(more, 0.6), (less, 0.3), (more, 0.15)]
    weights = cell_fills(figures.matrix([[0.2, 0.8]], "t").svg)
    assert [fill for fill, _ in weights.values()] == [style.LIGHT["A"]] * 2


def test_infinite_cells_are_written_and_not_shaded():
    picture = figures.matrix([[1.0, -np.inf]], "t", role="S")
    assert "−∞" in [w for *_, w in words_in(picture.svg)] and len(cell_fills(picture.svg)) == 1


def test_a_matrix_too_wide_for_numbers_keeps_them_in_its_text():
    M = rng.normal(size=(3, 48))
    picture = figures.matrix(M, "t", role="X")
    assert all(words in ("t", "−", "deeper = larger, − = negative") for *_, words in words_in(picture.svg))
    assert [w for *_, w in words_in(picture.svg)].count("−") == (np.round(M, 2) < 0).sum()
    assert [number(v) for v in M[2]] == picture.text.splitlines()[-1].split()[2:]


@pytest.mark.parametrize("M, role, key", [
    (-np.ones((3, 48)), "X", "deeper = larger, − = negative"), (np.ones((3, 48)), "X", "deeper = larger"),
    (-np.ones((3, 90)), "X", "deeper = larger, grey = negative"), (-np.ones((3, 5)), "X", None)])
def test_shades_without_numbers_are_explained_once(M, role, key):
    halves = [("a", M[:, ::2], role), ("b", M[:, 1::2], role)]
    for picture in (figures.matrix(M, "t", role=role), figures.matrices(halves, "t")):
        keys = [words for *_, words in words_in(picture.svg) if words.startswith("deeper")]
        assert keys == ([key] if key else [])


def test_the_shades_of_a_sum_over_heads_are_explained():
    words = " ".join(words for *_, words in words_in(PICTURES["head sum"]().svg))
    assert "Stronger = larger, grey = negative." in words


def test_a_small_picture_makes_room_for_its_title():
    title = "A title that is longer than two columns"
    assert title in [words for *_, words in words_in(figures.matrix(np.eye(2), title).svg)]


def test_marks_outline_what_they_name():
    def thick(mark):
        svg = figures.matrix(np.eye(3), "t", mark=mark).svg
        return [tuple(float(n.get(k)) for k in ("x", "y", "width", "height"))
                for n in ET.fromstring(svg).iter(SVG + "rect") if n.get("stroke-width") == "2.5"]
    (x, y, wide, high), = thick(1)
    (left, top, cell, row), = thick((2, 1))
    assert wide == 3 * cell and high == row and left == x + cell and top == y + row
    assert len(thick([0, (1, 1)])) == 2


def test_matrices_names_each_with_its_shape():
    picture = PICTURES["three"]()
    shown = [words for *_, words in words_in(picture.svg)]
    for name in ("Q (5, 4)", "K (5, 4)", "V (5, 3)"):
        assert name in shown and name in picture.text
    for v in S[:5, :4].flat:
        assert number(v) in shown and number(v) in picture.text


def test_a_strip_shows_each_weight_under_its_word_and_bars_in_proportion():
    weights = [0.1, 0.2, 0.7]
    picture = figures.tokens(["i", "love", "you"], weights, "t", query=2)
    spots = {words: x for x, _, _, _, words in words_in(picture.svg)}
    assert spots["i"] == spots["0.10"] and spots["love"] == spots["0.20"] and spots["you"] == spots["0.70"]
    assert spots["query"] == spots["you"]
    rects = ET.fromstring(picture.svg).iter(SVG + "rect")
    tall = [float(rect.get("height")) for rect in rects if rect.get("width") == "22"]
    np.testing.assert_allclose(np.array(tall) / tall[-1], np.array(weights) / 0.7, atol=0.02)
    assert picture.text.splitlines()[1:] == ["i            0.10", "love         0.20", "you (query)  0.70"]


def test_a_pipeline_keeps_its_order():
    picture = figures.pipeline([("text", ""), ("ids", "(n,)"), ("X", "(n, 48)")], "The way")
    assert [w for *_, w in words_in(picture.svg)] == ["The way", "text", "ids", "(n,)", "X", "(n, 48)"]
    assert picture.text == "The way\ntext\n→ ids: (n,)\n→ X: (n, 48)"


def test_boxes_of_one_step_stand_below_each_other_with_an_arrow_to_each():
    one = figures.pipeline([("X", "(n, 48)"), ("Q", "asks"), ("A", "")], "One of each")
    three = figures.pipeline([("X", "(n, 48)"), [("Q", "asks"), ("K", ""), ("V", "")], ("A", "")], "Three")
    assert three.text.splitlines()[1:] == ["X: (n, 48)", "→ Q: asks; K; V", "→ A"]
    assert one.svg.count("z\"") == 2 and three.svg.count("z\"") == 6                  # heads of arrows
    places = [re.search(rf'x="([\d.]+)" y="([\d.]+)"[^>]*>{name}<', three.svg).groups() for name in "QKV"]
    assert len({x for x, _ in places}) == 1
    assert float(places[0][1]) < float(places[1][1]) < float(places[2][1])


# --- charts ---------------------------------------------------------------------------------------

def test_curves_and_groups_have_none_of_the_colours_of_queries_keys_values_weights_and_signs():
    assert len(set(COLOURS)) == 6 and not {"Q", "K", "V", "A", "positive", "negative"} & set(COLOURS)


def test_a_scatter_keeps_distances_and_angles():
    points = np.array([[0, 0], [3, 0], [0, 4], [-2, 1]], dtype=float)
    svg = figures.scatter(points, list("abcd"), "t").svg
    discs = [tuple(map(float, re.match(r"M([\d.]+) ([\d.]+)a", n.get("d")).groups()))
             for n in ET.fromstring(svg).iter(SVG + "path") if "a4.5" in n.get("d")]
    drawn = np.array(discs)
    unit = (drawn[1, 0] - drawn[0, 0]) / 3
    assert unit > 20
    np.testing.assert_allclose((drawn - drawn[0]) / unit, points * [1, -1], atol=0.02)      # y goes down


def test_lines_pass_through_their_points():
    x, y = np.array([1, 2, 4, 8]), np.array([1.0, 10.0, 100.0, 1000.0])
    svg = figures.lines(x, {"y": y}, "t", "x", "y", logx=True, logy=True).svg
    way = next(n.get("d") for n in ET.fromstring(svg).iter(SVG + "path") if n.get("stroke-width") == "2.2")
    drawn = np.array([[float(v) for v in p.split()] for p in way[1:].split("L")])
    steps = np.diff(drawn, axis=0)
    np.testing.assert_allclose(steps, np.tile(steps[:1], (3, 1)), atol=0.6)        # straight in logarithms
    assert steps[0, 0] > 0 > steps[0, 1]


def test_where_curves_end_together_a_piece_of_each_stands_before_its_name():
    x = np.arange(3)
    svg = figures.lines(x, {"silu": [0, 1, 5], "ReLU": [-1, 0, 5]}, "t", "x", "y").svg
    looks = r'stroke="([^"]+)" [^>]*?(?:dasharray="([^"]+)")?/>'
    pieces = re.findall(r'<path d="M642 ([\d.]+)L672 \1"[^>]* ' + looks, svg)
    names = re.findall(r'<text x="678" y="([\d.]+)"[^>]*>(silu|ReLU)</text>', svg)
    assert [float(y) - 4 for y, _ in names] == [float(y) for y, _, _ in pieces]
    told = {name: piece[1:] for (_, name), piece in zip(names, pieces, strict=True)}
    assert told == {"silu": (style.LIGHT["head0"], ""), "ReLU": (style.LIGHT["head1"], "7 4")}
    apart = figures.lines(x, {"silu": [0, 1, 5], "ReLU": [-1, 0, 4]}, "t", "x", "y").svg
    assert "M642 " not in apart and '<text x="642"' in apart


def test_bars_are_as_long_as_their_values():
    values = [0.5, -0.25, 1.0]
    svg = figures.bars(["a", "b", "c"], values, "t").svg
    bars = [n for n in ET.fromstring(svg).iter(SVG + "rect") if n.get("rx")]
    long = np.array([float(n.get("width")) for n in bars])
    np.testing.assert_allclose(long / long[2], np.abs(values), atol=0.01)
    zero = float(bars[0].get("x"))
    assert float(bars[1].get("x")) + long[1] == zero and bars[1].get("fill") == style.LIGHT["negative"]


def test_the_text_of_a_chart_has_its_numbers():
    assert "\nd_k  spread  ÷ √d_k\n" in PICTURES["lines"]().text
    assert "\n256      16       1" in PICTURES["lines"]().text
    for (x, y), word in zip(S[:, :2], numbered(WORDS), strict=True):
        word = word.replace(".", "“.”")
        line = next(row.split() for row in PICTURES["scatter"]().text.splitlines() if row.split()[0] == word)
        assert line[2:] == [number(x), number(y)]
        assert word in [words for *_, words in words_in(PICTURES["scatter"]().svg)]
    assert len(PICTURES["smooth lines"]().text.splitlines()) == 11


def test_upright_labels_stand_over_their_columns():
    svg = PICTURES["cosines"]().svg
    labels = words_in(svg, turned=True)
    assert [words for *_, words in labels] == numbered(WORDS * 2)
    steps = np.diff([x for x, *_ in labels])
    np.testing.assert_allclose(steps, steps[0], atol=0.2)
    assert [w for *_, w in words_in(PICTURES["far"]().svg) if w.startswith("10")] == [
        "10⁻⁶", "10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²", "10⁻¹"]


@pytest.mark.parametrize("low, high, log, expected", [
    (0, 1, False, [0, 0.2, 0.4, 0.6, 0.8, 1]), (-3, 7, False, [-2, 0, 2, 4, 6]),
    (0, 1040, False, [0, 250, 500, 750, 1000]), (1, 1000, True, [1, 10, 100, 1000]), (2, 2, False, [2])])
def test_ticks_are_round_numbers(low, high, log, expected):
    np.testing.assert_allclose(ticks(low, high, log), expected)


# --- one head at work -----------------------------------------------------------------------------

def test_similarity_shows_three_numbers_a_key_and_masks_what_comes_after():
    picture = PICTURES["similarity"]()
    best = numbered(WORDS)[int(np.argmax(A[7]))]
    assert picture.title == f"“pears” gives its largest weight to “{best}”: {A[7].max():.2f}"
    shown = [words for *_, words in words_in(picture.svg)]
    lines = picture.text.splitlines()[2:]
    for j, line in enumerate(lines):
        expected = [number(S[7, j]), number(S[7, j] / 12**0.5), number(A[7, j]) if j <= 7 else "masked"]
        assert line.split()[-3:] == expected and set(expected) <= set(shown)
    assert shown.count("masked") == 3 and sum("(query)" in line for line in lines) == 1


def test_value_reading_shows_parts_that_add_up_to_z():
    picture = PICTURES["value reading"]()
    lines = picture.text.replace(" (query)", "").replace("sum = z", "sum").splitlines()
    body = [line.split() for line in lines[2:]]
    numbers = np.array([[as_float(c) for c in row[2:]] for row in body])
    np.testing.assert_allclose(numbers[:-1], PARTS, atol=0.0051)
    np.testing.assert_allclose(numbers[-1], PARTS.sum(axis=0), atol=0.0051)
    assert as_float(body[-1][1]) == 1.0
    cells = sorted((y, x, words) for x, y, size, _, words in words_in(picture.svg) if size == style.CELL)
    drawn = np.array([as_float(words) for _, _, words in cells]).reshape(12, 13)
    np.testing.assert_allclose(drawn[:-1, 1:], PARTS, atol=0.0051)
    np.testing.assert_allclose(drawn[:, 0], [*A[10], 1.0], atol=0.0051)
    shades = [float(rect.get("fill-opacity", 1)) for rect in ET.fromstring(picture.svg).iter(SVG + "rect")
              if rect.get("fill") == style.LIGHT["A"]]
    assert shades == [style.shade(round(w, 2), 1) for w in A[10]]


@pytest.mark.parametrize("n, query, first, end", [
    (5, 4, 0, 5), (12, 0, 0, 12), (12, 11, 0, 12), (13, 11, 0, 12), (13, 12, 2, 13), (40, 3, 0, 12),
    (40, 20, 10, 21), (40, 39, 29, 40)])
def test_a_window_has_the_query_and_all_the_weight_of_its_rows(n, query, first, end):
    weights = np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None]
    assert heads.window(n, query) == (first, end) and first <= query < end
    shown = heads.weights_in(weights, first, end)
    labels = heads.columns_in([f"w{i}" for i in range(n)], first, end)
    assert shown.shape == (end - first, len(labels)) and len(labels) <= 12
    np.testing.assert_allclose(shown.sum(axis=1), 1)
    assert shown[query - first, labels.index(f"w{query}")] == 1 / (query + 1)
    said = heads.windowed(n, first, end, summed=True)
    assert (said == "") == (n == end - first) and ("adds up" in said) == (first > 0)


def test_a_word_wider_than_the_room_is_broken():
    for text in ("x" * 300, "a " + "W" * 80 + " b"):
        lines = wrap(text, 200, 13)
        assert "".join(lines).replace(" ", "") == text.replace(" ", "")
        assert all(width(line, 13) <= 200 for line in lines)
    assert wrap("WWW", 1, 13) == ["W", "W", "W"]


@pytest.mark.parametrize("which", range(5))
def test_a_step_says_where_it_is(which):
    picture = heads.step(which, WORDS[:4], 2, S[:4, :4], "t", "formula (4, 4)")
    texts = ET.fromstring(picture.svg).iter(SVG + "text")
    here = [text.text for text in texts if text.get("fill") == style.LIGHT["surface"]]
    assert here == [f"{which + 1} {heads.STEPS[which]}"]
    assert "formula (4, 4)" in picture.text and "loves (query)" in picture.text


def test_a_step_shows_row_sums_when_they_are_given():
    picture = heads.step(3, WORDS[:4], 2, np.eye(4), "t", "f", WORDS[:4], [1, 1, 1, 0.5], "A")
    assert [line.split()[-1] for line in picture.text.splitlines()[3:]] == ["1.00", "1.00", "1.00", "0.50"]


# --- what is refused ------------------------------------------------------------------------------

@pytest.mark.parametrize("call, says", [
    (lambda: figures.matrix(np.ones((2, 2, 2)), "t"), "(2, 2, 2)"),
    (lambda: figures.matrix(np.ones((0, 2)), "t"), "(0, 2)"),
    (lambda: figures.matrix(np.ones((2, 2)), "t", role="B"), "'B'"),
    (lambda: figures.matrix(np.ones((2, 3)), "t", rows=["a"]), "rows must be 2 labels"),
    (lambda: figures.matrix(np.ones((2, 3)), "t", columns=["a"]), "columns must be 3 labels"),
    (lambda: figures.matrix(np.ones((2, 3)), "t", mark=2), "mark must lie in a matrix of"),
    (lambda: figures.matrix(np.ones((2, 3)), "t", mark=(0, 3)), "(0, 3)"),
    (lambda: figures.matrices([], "t"), "at least 1; got 0"),
    (lambda: figures.tokens(["a", "b"], [1.0], "t"), "2 tokens"),
    (lambda: figures.tokens([], [], "t"), "at least 1"),
    (lambda: figures.tokens(["a"], [1.0], "t", query=1), "got 1"),
    (lambda: figures.pipeline([], "t"), "at least one"),
    (lambda: figures.scatter([[1, 2, 3]], ["a"], "t"), "(1, 3)"),
    (lambda: figures.scatter([[1, 2]], ["a", "b"], "t"), "labels must be a list of words, 1 of them, got 2"),
    (lambda: figures.scatter([[1, np.nan]], ["a"], "t"), "finite"),
    (lambda: figures.lines([1, 2], {"y": [1.0]}, "t", "", ""), "x (2,) has 2, series 'y' (1,) has 1"),
    (lambda: figures.lines([2, 1], {"y": [1.0, 2.0]}, "t", "", ""), "rising"),
    (lambda: figures.lines([0, 1], {"y": [1.0, 2.0]}, "t", "", "", logx=True), "logx"),
    (lambda: figures.lines([1, 2], {"y": [0.0, 2.0]}, "t", "", "", logy=True), "logy"),
    (lambda: figures.bars(["a"], [1.0, 2.0], "t"), "1 labels"),
    (lambda: flow.multi_head(np.zeros((3, 4)), 7, 2, "t"), "n_heads must be one of 1 … 6, got 7"),
    (lambda: flow.multi_head(np.zeros((3, 4)), 0, 2, "t"), "n_heads must be one of 1 … 6, got 0"),
])
def test_what_cannot_be_drawn_is_refused_with_a_sentence(call, says):
    with pytest.raises(ValueError) as caught:
        call()
    assert says in str(caught.value)


def test_a_flow_gives_every_head_its_columns_and_every_box_its_shape():
    picture = flow.multi_head(np.zeros((11, 40)), 4, 12, "Four heads")       # h · d_k = 48, d_model = 40
    words = [words for *_, words in words_in(picture.svg)]
    for r, columns in enumerate(("0–11", "12–23", "24–35", "36–47")):
        assert f"head {r}" in words and f"columns {columns}" in words
        assert f"head {r} columns {columns}" in picture.text
    counts = {"Q K V (11, 12)": 4, "(11, 11)": 4, "(11, 12)": 4, "Q (11, 48)": 1, "(11, 48)": 1,
              "(11, 40)": 4}
    assert {shape: words.count(shape) for shape in counts} == counts
    assert "residual: X goes round, unchanged" in words
    assert "→ concat (11, 48)\n→ · W_o (11, 40)" in picture.text


# --- colours --------------------------------------------------------------------------------------

HEADS = ("head0", "head1", "head2", "head3")


def test_contrast_is_the_one_of_wcag():
    assert style.contrast("#000000", "#ffffff") == 21
    assert round(style.contrast("#777777", "#ffffff"), 2) == 4.48


@pytest.mark.parametrize("theme", [style.LIGHT, style.DARK], ids=["light", "dark"])
def test_text_stands_out_in_both_themes(theme):
    for ink in ("ink", "soft", "Q", "K", "V", "A", *HEADS):
        for ground in ("surface", "panel"):
            assert style.contrast(theme[ink], theme[ground]) >= 4.5, (ink, ground)
    for fill in ("A", "positive", "negative"):
        for step in range(style.SHADES + 1):
            ground = style.blend(theme[fill], theme["surface"], style.shade(step, style.SHADES))
            assert style.contrast(theme["ink"], ground) >= 4.5, (fill, step)
    for chosen in ("ink", "Q"):                          # a pressed button
        assert style.contrast(theme["surface"], theme[chosen]) >= 4.5
    for shape in ("A", "positive", "negative", "Q", "K", "V"):
        assert style.contrast(theme[shape], theme["surface"]) >= (3 if theme is style.DARK else 2.1), shape


MACHADO = {                                              # Machado et al. 2009, full severity, linear RGB
    "protan": [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]],
    "deutan": [[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]],
    "tritan": [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]],
}


def lab(colour, seen=None):
    """The colour in CIE L*a*b*, as a given kind of colour vision sees it."""
    c = np.array(style.rgb(colour))
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    if seen:
        linear = np.clip(np.array(MACHADO[seen]) @ linear, 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
    f = np.cbrt(xyz / [0.9505, 1, 1.089])
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("theme", [style.LIGHT, style.DARK], ids=["light", "dark"])
@pytest.mark.parametrize("seen", [None, *MACHADO])
def test_positive_and_negative_differ_for_every_kind_of_colour_vision(theme, seen):
    assert np.linalg.norm(lab(theme["positive"], seen) - lab(theme["negative"], seen)) > 25
    for a, b in (*itertools.combinations("QKVA", 2), *itertools.combinations(HEADS, 2)):
        assert np.linalg.norm(lab(theme[a], seen) - lab(theme[b], seen)) > 10, (a, b)


def test_both_themes_have_the_same_colours():
    assert style.LIGHT.keys() == style.DARK.keys()
    for name in style.LIGHT:
        assert style.live_css().count(f"--sa-{name}:") == 2


def test_head_maps_name_the_best_heads_and_refuse_shapes_that_differ():
    M = np.zeros((5, 3))
    M[4, 1], M[0, 2] = 0.9, 0.5
    picture = head_maps.head_maps({"one": M, "other": M[::-1]}, "Jobs", best=2)
    assert "one: 4.1, 0.2" in picture.svg and "4.1 0.90" in picture.text
    with pytest.raises(ValueError, match=r"one shape \(layers, heads\), .* got \[\(3, 5\), \(5, 3\)\]"):
        head_maps.head_maps({"one": M, "other": M.T}, "Jobs")


def test_what_no_file_can_hold_is_shown_by_a_sign():
    picture = figures.matrix([[1.0]], "a\x00b\x1b\uffff\ud800", rows=["\ud800\x01"])
    title = ET.fromstring(picture.svg).find(SVG + "title").text
    assert title == picture.title == "a\ufffdb\ufffd\ufffd\ufffd"
    assert picture.html.encode() and picture.text.encode() and picture.text.endswith("\n\ufffd\ufffd  1.00")


def test_a_long_word_is_cut_and_broken_in_no_time():
    assert shorten("x" * 10**6, 100, 12).endswith("x…") and len(shorten("x" * 10**6, 100, 12)) < 20
    assert "".join(wrap("x" * 10**4, 100, 12)) == "x" * 10**4
    assert max(width(line, 12) for line in wrap("x" * 10**4, 100.5, 12)) <= 100


def test_a_matrix_that_nobody_can_see_is_refused_before_it_is_drawn():
    with pytest.raises(ValueError, match=r"M must have at most 65,536 cells .*, got \(600, 600\): draw a"):
        figures.matrix(np.zeros((600, 600)), "Large")
    with pytest.raises(ValueError, match="rows must be words or .* of fewer digits, got a number of thous"):
        figures.matrix([[1.0]], "Long", rows=[10**5000])

"""The explorer of row and column form: every control, and both forms computed by hand."""

import itertools
import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from test_explorers import LATE, LONGEST, TEXTS, drawing, numbers

from helpers import explorers, tiny_model
from helpers.explorers.conventions import STEPS
from helpers.figures.words import number

SQUARE = ("S", "mask", "A")
SVG = "{http://www.w3.org/2000/svg}"
MODEL = tiny_model.load()


def by_hand(trace, layer, head, name):
    """The array in row form, one dot product after the other."""
    at, W = trace.layers[layer], MODEL.layers[layer]
    X, n = at.N.tolist(), len(at.N)

    def project(M):
        M = M[:, 12 * head:12 * head + 12].T.tolist()
        return [[sum(a * b for a, b in zip(x, column, strict=True)) for column in M] for x in X]

    Q, K, V = (project(W_own) for W_own in (W.W_q, W.W_k, W.W_v))
    S = [[sum(a * b for a, b in zip(q, k, strict=True)) / math.sqrt(12) for k in K] for q in Q]
    M = [[S[i][j] if j <= i else -math.inf for j in range(n)] for i in range(n)]
    e = [[math.exp(S[i][j] - max(S[i])) if j <= i else 0 for j in range(n)] for i in range(n)]
    A = [[v / sum(row) for v in row] for row in e]
    Z = [[sum(A[i][j] * V[j][c] for j in range(n)) for c in range(12)] for i in range(n)]
    return np.array({"X": X, "Q": Q, "K": K, "S": S, "mask": M, "A": A, "V": V, "Z": Z}[name])


def read(text):
    """(formulas, both arrays, row sums or None) of the text form."""
    lines = text.splitlines()
    second = next(i for i, line in enumerate(lines) if line.startswith("a word is a column: "))
    formulas = [lines[i].split(": ", 1)[1] for i in (1, second)]
    arrays = []
    for start in (2, second + 1):
        count = len(re.split(r" +", lines[start].strip()))
        rows = []
        for line in lines[start + 1:]:
            cells = line.split()[-count:]
            if line.startswith("Row sums") or not all(re.fullmatch(r"−?\d+\.\d+|−∞", cell) for cell in cells):
                break
            rows.append(numbers(cells))
        arrays.append(np.array(rows))
    sums = [numbers(line.split(": ")[1].split()) for line in lines if line.startswith("Row sums in both")]
    return formulas, arrays, sums[0] if sums else None


def shapes(formula):
    return [tuple(map(int, shape)) for shape in re.findall(r"\((\d+), (\d+)\)", formula)]


@pytest.mark.parametrize("text", [*TEXTS, LATE])
def test_every_control_at_its_least_middle_and_greatest(text):
    explorer = explorers.row_or_column(step=0)
    explorer.text.value = text
    trace, n = MODEL.run(text), len(text.split()) + 1
    for layer, head, i, step in itertools.product((0, 1), (0, 3), sorted({0, n // 2, n - 1}), range(8)):
        explorer.layer.value, explorer.head.value = layer, head
        explorer.query.value, explorer.step.value = i, step
        svg, picture, name = drawing(explorer), explorer.picture(), STEPS[step]
        root = ET.fromstring(svg)
        assert svg == picture.drawing and not explorer.complaint
        expected, square = by_hand(trace, layer, head, name), name in SQUARE
        first, end = (0, min(n, 12)) if i < 12 else (i - 10, i + 1)
        part = expected[first:end, first:end] if square else expected[first:end]
        formulas, (row, column), sums = read(picture.text)
        atol = 0.0051 if square else 0.051
        np.testing.assert_allclose(row, part, atol=atol)
        np.testing.assert_allclose(column, part if square else part.T, atol=atol)
        assert (sums is not None) == (name == "A")
        if name == "A":
            np.testing.assert_allclose(sums, 1, atol=0.0051)
        for formula, turned in zip(formulas, (False, not square), strict=True):
            all_shapes = shapes(formula)
            assert all_shapes[-1] == (expected.T.shape if turned else expected.shape)
            if len(all_shapes) == 3:
                (a, b), (c, d), result = all_shapes
                assert b == c and (a, d) == result
        words = [node.text for node in root.iter(SVG + "text")]
        assert {*formulas, "a word is a row", "a word is a column"} <= set(words)
        assert {words.count(word) for word in explorer.names[first:end]} == {4 if square else 2}, words
        assert "0.00" in picture.text.split("Largest difference")[1]
        assert ("are shown" in picture.text) == (n > 12)


def test_each_number_stands_in_its_place_on_both_sides():
    for step, name in list(enumerate(STEPS))[1:]:
        explorer = explorers.row_or_column(step=step)
        root, row_and_column = ET.fromstring(drawing(explorer)), explorer.forms()[name]
        groups = [g for g in root.iter(SVG + "g") if g.get("font-size") == "12" and not g.get("font-weight")]
        cells = sorted((float(n.get("y")), float(n.get("x")), n.text) for g in groups for n in g)
        right, = (float(n.get("x")) for n in root.iter(SVG + "text") if n.text == "a word is a column")
        sides = ([words for _, x, words in cells if (x > right) == there] for there in (False, True))
        for M, side in zip(row_and_column, sides, strict=True):
            assert side == [number(v, 2 if name in SQUARE else 1) for v in M.flat]


@pytest.mark.parametrize("step, square", [(s, s in (3, 4, 5)) for s in range(8)])
def test_the_word_is_outlined_as_row_and_as_column(step, square):
    root = ET.fromstring(drawing(explorers.row_or_column(step=step, query=1)))
    (_, y1, w1, h1), (x2, y2, w2, h2) = [[float(n.get(k)) for k in ("x", "y", "width", "height")]
                                      for n in root.iter(SVG + "rect") if n.get("stroke-width") == "2.5"]
    assert w1 > h1 and (w2 > h2) == square
    words = {n.text: float(n.get("x")) for n in root.iter(SVG + "text")}          # the last of each
    if square:
        assert (w1, h1) == (w2, h2) and y1 == y2
    else:
        assert x2 < words["i"] < x2 + w2 and not x2 < words["love"] < x2 + w2


@pytest.mark.filterwarnings("error")
def test_between_scores_and_weights_the_mask_is_named_in_both_forms():
    explorer = explorers.row_or_column(layer=1, head=3, step=STEPS.index("S"))
    assert "Nothing is hidden yet" in explorer.picture().text
    explorer.on.click()
    picture = explorer.picture()
    formulas, both, _ = read(picture.text)
    assert picture.title.startswith("Mask") and all("−∞ where the mask forbids" in f for f in formulas)
    for M in both:
        assert (np.isneginf(M) == ~np.tri(4, dtype=bool)).all()
    explorer.on.click()
    assert all("softmax of each masked row" in f for f in read(explorer.picture().text)[0])
    e = np.exp(both[0])
    np.testing.assert_allclose(explorer.forms()["A"][0], e / e.sum(axis=1, keepdims=True), atol=0.01)


def test_shades_of_masked_scores_hang_on_those_that_are_left():
    explorer = explorers.row_or_column(LATE, step=STEPS.index("mask"))
    opacities = {float(n.get("fill-opacity", 0)) for n in ET.fromstring(drawing(explorer)).iter(SVG + "path")}
    assert max(opacities) == 0.6


def test_the_column_form_is_computed_in_its_own_convention(monkeypatch):
    explorer = explorers.row_or_column()
    forms = explorer.forms()
    for name, (row, column) in forms.items():
        assert column.shape == (row.shape if name in SQUARE else row.T.shape)
        assert not np.shares_memory(row, column) or name == "X"
        np.testing.assert_allclose(column if name in SQUARE else column.T, row, atol=1e-12)
    seen = explorer.trace.layers[1]
    for name in "QKVSZA":
        np.testing.assert_allclose(forms[name][0], getattr(seen, name)[3], rtol=1e-5, atol=1e-6)
    wrong = {name: (row, column + 0.25) for name, (row, column) in forms.items()}
    monkeypatch.setattr(explorer, "forms", lambda: wrong)
    for step in range(8):
        explorer.step.value = step
        assert "0.25" in explorer.picture().text.split("Largest difference")[1]


def test_forth_and_back_stop_at_the_ends():
    explorer = explorers.row_or_column()
    seen = []
    for button in [explorer.on] * 6 + [explorer.back] * 9:
        button.click()
        seen.append(explorer.step.value)
    assert seen == [4, 5, 6, 7, 7, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0]


@pytest.mark.parametrize("arguments, says", [
    (dict(layer=2), "layer must be one of 0, 1, got 2"), (dict(head=4), "got 4"),
    (dict(query=4), "positions 0 … 3"), (dict(step=8), "step must be one of 0, 1, 2, 3, 4, 5, 6, 7, got 8"),
    (dict(text="appels"), "appels")])
def test_a_state_that_does_not_exist_is_refused(arguments, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        explorers.row_or_column(**arguments)


@pytest.mark.parametrize("typed", ["appels", LONGEST + " .", "<b>"])
def test_a_text_that_cannot_be_read_changes_nothing_but_the_complaint(typed):
    explorer = explorers.row_or_column(query=2)
    before = drawing(explorer)
    explorer.text.value = typed
    assert "alert" in explorer.canvas.value and drawing(explorer) == before and explorer.query.value == 2
    explorer.step.value = 5
    assert "alert" not in explorer.canvas.value


def test_the_state_is_said_and_the_bundle_has_its_picture():
    explorer = explorers.row_or_column(layer=0, head=0)
    said = re.search(r'role="status"[^>]*>(.*?)</p>', explorer.canvas.value).group(1)
    assert said == "layer 0, head 0, query apples, step 4 S"
    bundle, picture = explorer._repr_mimebundle_(), explorer.picture()
    assert bundle[explorers.VIEW]["model_id"] == explorer.box.model_id
    assert bundle["image/svg+xml"] == picture.svg and bundle["text/plain"] == picture.text == repr(explorer)

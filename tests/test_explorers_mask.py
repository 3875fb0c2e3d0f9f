"""The explorer of the causal mask: every control, each way computed by hand, and what holds of them."""

import itertools
import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from test_explorers import LATE, LONGEST, TEXTS, drawing, numbers

from helpers import explorers, tiny_model
from helpers.explorers.masks import WAYS
from helpers.figures.words import number

SVG = "{http://www.w3.org/2000/svg}"
MODEL = tiny_model.load()


def by_hand(S, i, raised):
    """{way: the row of query i}, one number after the other; None stands for 0 / 0."""
    row = [s + (raised if j > i else 0) for j, s in enumerate(S[i].tolist())]
    e = [math.exp(s - max(row)) for s in row]
    off = [v / sum(e) for v in e]
    after = [v if j <= i else 0.0 for j, v in enumerate(off)]
    visible = [math.exp(s - max(row[:i + 1])) for s in row[:i + 1]]
    before = [v / sum(visible) for v in visible] + [0.0] * (len(row) - i - 1)
    divided = [v / sum(after) for v in after] if sum(after) else [math.nan] * len(row)
    return {"no mask": off, "before softmax": before, "after softmax": after, "after, ÷ sum": divided}


def read(picture):
    """({way: numbers of the query's row with its sum}, columns, {word: row sums}, the chosen way)."""
    lines = picture.text.splitlines()
    at = lines.index("Row sums:")
    columns, chosen = re.split(r"  +", lines[2].strip()), None
    rows, sums = {}, {}
    for line in lines[3:at]:
        name = next(way for way in WAYS.values() if line.startswith(way))
        chosen = name if "(chosen)" in line else chosen
        rows[name] = numbers(line.removeprefix(name).replace("(chosen)", "").split())
    for line in lines[at + 2:]:
        if not re.fullmatch(r"\S+( +(\d\.\d\d|NaN)){4}", line):
            break
        word, *cells = line.split()
        sums[word] = numbers(cells)
    return rows, columns, sums, chosen


@pytest.mark.parametrize("text", [*TEXTS, LATE])
def test_every_control_at_its_least_middle_and_greatest(text):
    explorer = explorers.causal_mask("i love milk", query=0)
    explorer.text.value = text
    trace, n = MODEL.run(text), len(text.split()) + 1
    assert explorer.query.value == n // 2
    positions = sorted({0, n // 2, n - 1})
    for layer, head, i, way, raised in itertools.product((0, 1), (0, 3), positions, WAYS, (0, 5, 1000)):
        explorer.layer.value, explorer.head.value, explorer.query.value = layer, head, i
        explorer.mask.value, explorer.raised.value = way, raised
        svg, picture = drawing(explorer), explorer.picture()
        root = ET.fromstring(svg)
        assert svg == picture.drawing and not explorer.complaint
        rows, columns, sums, chosen = read(picture)
        expected = by_hand(trace.layers[layer].S[head], i, raised)
        assert chosen == WAYS[way] and list(rows) == list(expected)
        first = 0 if n <= 12 else min(max(i - 5, 0), n - 10)
        end = min(n, 12) if n <= 12 else first + 10
        for name, row in expected.items():
            cells = [*([sum(row[:first])] if first else []), *row[first:end],
                     *([sum(row[end:])] if end < n else []), sum(row)]
            np.testing.assert_allclose(rows[name], cells, atol=0.0051)
        hidden = [column.endswith("*") for column in columns[:-1]]
        assert hidden == [False] * (i + 1 - first + (first > 0)) + [True] * (end - i - 1 + (end < n))
        assert len(sums) == end - first
        word = explorer.names[i]
        np.testing.assert_allclose(sums[word], [sum(row) for row in expected.values()], atol=0.0051)
        words = [node.text for node in root.iter(SVG + "text")]
        assert words.count("row sum") == 5 and words.count(f"the row of “{word}”") == 1
        assert ("must not be read" in words) == (i < n - 1)
        thick = [node for node in root.iter(SVG + "rect") if node.get("stroke-width") == "2.5"]
        pattern, line = [[float(node.get(k)) for k in ("x", "y", "height")] for node in thick]
        high = thick[0].get("height")
        lefts = {float(node.get("x")) for node in root.iter(SVG + "rect") if node.get("height") == high}
        assert list(WAYS).index(way) == sorted(lefts).index(pattern[0])
        labels = {node.text: float(node.get("y")) for node in root.iter(SVG + "text")}   # the last of each
        assert line[1] < labels[WAYS[way]] < line[1] + line[2]


def test_titles_say_what_holds():
    explorer = explorers.causal_mask(query=2)
    off, after = (by_hand(MODEL.run(explorers.SENTENCE).layers[1].S[3], 2, 0)[way]
                  for way in ("no mask", "after softmax"))
    lost = number(sum(off[3:]))
    best = explorer.names[3 + int(np.argmax(off[3:]))]
    said = {way: f"{explorers.causal_mask(query=2, mask=way)}".splitlines()[0] for way in WAYS}
    assert said["off"] == (f"No mask: “loves₁” gives {lost} of its weight to words it must not read, "
                           f"most of it to “{best}”")
    assert said["after"] == (f"Masked after softmax: the row of “loves₁” adds up to {number(sum(after))}, "
                             f"hidden words took {lost}")
    assert said["divided"].endswith("the weights of masking before (largest difference 0.00)")
    assert explorers.causal_mask(mask="divided", raised=1000).picture().title.endswith("0 / 0 is NaN")
    for way in WAYS:
        last = explorers.causal_mask(query=10, mask=way, raised=1000).picture().title
        assert last == "Nothing is hidden from the last word, “eats”: its row is the same in every way"


@pytest.mark.parametrize("layer, head", [(layer, head) for layer in (0, 1) for head in range(4)])
def test_what_is_said_of_the_four_ways_is_true_of_every_head(layer, head):
    explorer = explorers.causal_mask(layer=layer, head=head)
    plain = explorer.patterns()
    explorer.raised.value = 5
    raised = explorer.patterns()
    np.testing.assert_allclose(plain["divided"], plain["before"], atol=1e-12)
    np.testing.assert_allclose(raised["divided"], plain["before"], atol=1e-9)
    assert (raised["before"] == plain["before"]).all() and not np.triu(plain["after"], 1).any()
    np.testing.assert_allclose(plain["before"].sum(axis=1), 1)
    visible = np.tril(np.ones((11, 11), bool))[:-1] & (plain["after"][:-1] > 0)
    assert (raised["after"][:-1] < plain["after"][:-1])[visible].all()            # the leak
    assert (plain["after"].sum(axis=1)[:-1] < 1).all()
    np.testing.assert_allclose(plain["off"][-1], plain["before"][-1])


def test_the_dashed_stairs_stand_right_of_what_each_row_may_read():
    root = ET.fromstring(drawing(explorers.causal_mask("i love you", query=1)))
    frames = [n for n in root.iter(SVG + "rect") if n.get("height") == "64"]
    stairs = [n.get("d") for n in root.iter(SVG + "path") if n.get("stroke-width") == "1.2"]
    assert len(frames) == len(stairs) == 4
    for frame, way in zip(frames, stairs, strict=True):
        edges = [float(x) for x in re.findall(r"H([\d.]+)", way)]
        cell = float(frame.get("width")) / 4
        expected = [float(frame.get("x")) + (i + 1) * cell for i in range(4)]
        np.testing.assert_allclose(edges, expected, atol=0.11)


@pytest.mark.parametrize("arguments, says", [
    (dict(layer=2), "layer must be one of 0, 1, got 2"), (dict(head=4), "got 4"),
    (dict(query=11), "positions 0 … 10"),
    (dict(mask="both"), "mask must be one of off, before, after, divided"),
    (dict(raised=7), "raised must be one of 0, 5, 1000, got 7"), (dict(text="appels"), "appels")])
def test_a_state_that_does_not_exist_is_refused(arguments, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        explorers.causal_mask(**arguments)


@pytest.mark.parametrize("typed", ["appels", LONGEST + " .", "<b>"])
def test_a_text_that_cannot_be_read_changes_nothing_but_the_complaint(typed):
    explorer = explorers.causal_mask("i love you", query=2)
    before = drawing(explorer)
    explorer.text.value = typed
    assert "alert" in explorer.canvas.value and drawing(explorer) == before and explorer.query.value == 2
    explorer.mask.value = "off"
    assert "alert" not in explorer.canvas.value


def test_the_state_is_said_and_the_bundle_has_its_picture():
    explorer = explorers.causal_mask()
    said = re.search(r'role="status"[^>]*>(.*?)</p>', explorer.canvas.value).group(1)
    assert said == "layer 1, head 3, query ben, mask after softmax, hidden scores as they are"
    bundle, picture = explorer._repr_mimebundle_(), explorer.picture()
    assert bundle[explorers.VIEW]["model_id"] == explorer.box.model_id
    assert bundle["image/svg+xml"] == picture.svg and bundle["text/plain"] == picture.text == repr(explorer)

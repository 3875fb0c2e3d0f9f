"""The explorer of concat · W_o against the sum over heads: every control, and both ways computed by hand."""

import itertools
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from test_explorers import LONGEST, TEXTS, drawing, numbers

from helpers import explorers, tiny_model
from helpers.figures.words import number

MODEL = tiny_model.load()


def shown(explorer):
    """The rows of the text form: {part: (48,)}."""
    lines = explorer.picture().text.splitlines()[3:]
    cells = [line.replace(" (not added)", "*").split() for line in lines]
    return {" ".join(row[:-48]): numbers(row[-48:]) for row in cells}


@pytest.mark.parametrize("text", TEXTS)
def test_every_state_shows_both_ways_as_computed_by_hand(text):
    explorer = explorers.concat_or_sum(added=0, column=0)
    explorer.text.value = text
    trace = MODEL.run(text)
    ends = sorted({0, len(trace.tokens) // 2, len(trace.tokens) - 1})
    for layer, query, added in itertools.product((0, 1), ends, (0, 2, 4)):
        explorer.layer.value, explorer.query.value, explorer.added.value = layer, query, added
        svg = drawing(explorer)
        ET.fromstring(svg)
        assert svg == explorer.picture().drawing and not explorer.complaint
        Z, W_o = trace.layers[layer].Z[:, query], MODEL.layers[layer].W_o
        parts = [sum(Z[r, c] * W_o[12 * r + c] for c in range(12)) for r in range(4)]
        rows = shown(explorer)
        for r in range(4):
            np.testing.assert_allclose(rows[f"head {r}" + ("" if r < added else "*")], parts[r], atol=0.0051)
        np.testing.assert_allclose(rows["sum so far"], sum(parts[:added], np.zeros(48)), atol=0.0051)
        np.testing.assert_allclose(rows["concat · W_o"], trace.layers[layer].update[query], atol=0.0051)
        off = np.abs(sum(parts[added:], np.zeros(48))).max()
        assert number(off) in explorer.picture().title and (off < 1e-9) == (added == 4)


@pytest.mark.parametrize("column", [0, 24, 47])
def test_the_numbers_of_the_chosen_column_are_written_out_and_framed(column):
    explorer = explorers.concat_or_sum(added=3)
    explorer.column.value = column
    rows, root = shown(explorer), ET.fromstring(drawing(explorer))
    words = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    parts = [number(rows[f"head {r}{'*' * (r == 3)}"][column]) for r in range(4)]
    assert all(p in words or f"+{p}" in words for p in parts) and f"column {column}" in words
    assert f"column {column}: {number(rows['concat · W_o'][column])}" in words
    assert number(rows["sum so far"][column]) in words
    rects = [(float(n.get("x", 0)), n.get("width")) for n in root.iter("{http://www.w3.org/2000/svg}rect")]
    frames = [x for x, wide in rects if wide == "8"]
    left = {x for x, wide in rects if wide == "288"}
    assert len(frames) == 7 and {x - 6 * column + 1 for x in frames} == left


def test_heads_are_added_forth_and_back_and_stop_at_the_ends():
    explorer = explorers.concat_or_sum(added=3)
    seen = []
    for button in [explorer.on] * 2 + [explorer.back] * 5:
        button.click()
        seen.append(explorer.added.value)
        assert not explorer.on.disabled and not explorer.back.disabled
    assert seen == [4, 4, 3, 2, 1, 0, 0]
    assert drawing(explorer).count("not added yet") == 4


def test_named_buttons_move_the_column_and_stop_at_the_ends():
    explorer = explorers.concat_or_sum(column=46)
    seen = []
    for button in [explorer.right] * 3 + [explorer.left] * 2:
        button.click()
        seen.append(explorer.column.value)
    assert seen == [47, 47, 47, 46, 45] and explorer.added.value == 4
    assert [b.tooltip for b in (explorer.left, explorer.right)] == ["one column back", "one column on"]


def test_a_word_that_comes_twice_is_told_apart():
    assert "The row of “loves₂”" in explorers.concat_or_sum(query=6).picture().text


def test_it_opens_on_the_column_of_the_largest_result_with_all_heads_added():
    explorer = explorers.concat_or_sum()
    update = MODEL.run(explorers.SENTENCE).layers[1].update[-1]
    assert explorer.column.value == np.argmax(np.abs(update)) and explorer.added.value == 4


@pytest.mark.parametrize("arguments, says", [
    (dict(layer=2), "layer must be one of 0, 1, got 2"), (dict(added=5), "got 5"), (dict(added=-1), "got -1"),
    (dict(column=48), "column must be one of 0 … 47, got 48"), (dict(column=-1), "got -1"),
    (dict(query=11), "positions 0 … 10"), (dict(text="appels"), "appels")])
def test_a_state_that_does_not_exist_is_refused(arguments, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        explorers.concat_or_sum(**arguments)


@pytest.mark.parametrize("typed", ["appels", LONGEST + " .", "<b>"])
def test_a_text_that_cannot_be_read_changes_nothing_but_the_complaint(typed):
    explorer = explorers.concat_or_sum("i love you", query=2)
    before = drawing(explorer)
    explorer.text.value = typed
    assert "alert" in explorer.canvas.value and drawing(explorer) == before and explorer.query.value == 2
    explorer.column.value = 5
    assert "alert" not in explorer.canvas.value


def test_the_state_is_said_and_the_bundle_has_its_picture():
    explorer = explorers.concat_or_sum(added=1, column=7)
    said = re.search(r'role="status"[^>]*>(.*?)</p>', explorer.canvas.value).group(1)
    assert said == "layer 1, query eats, heads added 1, column 7"
    bundle, picture = explorer._repr_mimebundle_(), explorer.picture()
    assert bundle[explorers.VIEW]["model_id"] == explorer.box.model_id
    assert bundle["image/svg+xml"] == picture.svg and bundle["text/plain"] == picture.text == repr(explorer)

"""The explorer of all heads: every switch, what it draws, and what the model then expects."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from test_explorers import LONGEST, TEXTS, drawing

from helpers import explorers, tiny_model
from helpers.attention import softmax
from helpers.figures.words import number, numbered

ALL = [(layer, head) for layer in range(2) for head in range(4)]
SETS = ([], [(0, 0)], [(0, 2), (1, 0)], [(1, 3)], ALL)
MODEL = tiny_model.load()


def by_hand(text, off):
    """The patterns and the shares of the words to come, the updates of the heads added one by one."""
    words = ["<bos>", *text.split()]
    X = MODEL.E[[MODEL.vocab.index(word) for word in words]] + MODEL.P[:len(words)]
    patterns = {}
    for number_of, layer in enumerate(MODEL.layers):
        N = norm(X) * layer.gamma + layer.beta
        for head in range(4):
            own = slice(12 * head, 12 * head + 12)
            S = (N @ layer.W_q[:, own]) @ (N @ layer.W_k[:, own]).T / np.sqrt(12)
            A = softmax(np.where(np.tri(len(words), dtype=bool), S, -np.inf))
            patterns[number_of, head] = A
            if (number_of, head) not in off:
                X = X + A @ (N @ layer.W_v[:, own]) @ layer.W_o[own]
    last = norm(X)[-1] * MODEL.gamma + MODEL.beta
    return patterns, dict(zip(MODEL.vocab, softmax(last @ MODEL.W_t), strict=True))


def norm(X):
    return (X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True) + 1e-5)


def shown(explorer):
    """The text form as {section: lines}: the reading of the heads, the large pattern, the next words."""
    lines = explorer.picture().text.splitlines()
    large = next(i for i, line in enumerate(lines) if re.fullmatch(r"layer \d head \d:", line))
    words = next(i for i, line in enumerate(lines) if line.startswith("next word"))
    last = len(lines) - lines[-1].startswith("Tokens ")
    return lines[2:large], lines[large + 2:words], lines[words + 1:last]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("off", SETS, ids=str)
def test_every_state_shows_what_is_computed_by_hand(text, off):
    explorer = explorers.heads()
    explorer.text.value = text
    for at, switch in explorer.switches.items():
        switch.value = at in off
    assert not explorer.complaint and explorer.off == set(off)
    patterns, after = by_hand(text, off)
    _, before = by_hand(text, [])
    n = len(text.split()) + 1
    first = 0 if n <= 12 else n - 11
    names = numbered(["<bos>", *text.split()])
    for layer, head in ((0, 0), (0, 2), (1, 3)):
        explorer.layer.value, explorer.head.value = layer, head
        svg = drawing(explorer)
        ET.fromstring(svg)
        assert svg == explorer.picture().drawing
        reads, large, words = shown(explorer)
        A = patterns[layer, head][first:]
        cells = np.array([[float(c) for c in line.split()[1:]] for line in large])
        np.testing.assert_allclose(cells[:, first > 0:], A[:, first:], atol=0.0051)
        np.testing.assert_allclose(cells.sum(axis=1), 1, atol=0.0051 * 12)
        if first:
            np.testing.assert_allclose(cells[:, 0], A[:, :first].sum(axis=1), atol=0.0051)
        for (at, pattern), line in zip(patterns.items(), reads, strict=True):
            cell = line.split()
            assert cell[:4] == ["layer", str(at[0]), "head", str(at[1])]
            assert cell[-1] == ("off" if at in off else "on")
            row = pattern[-1]
            assert abs(row[names.index(cell[4])] - row.max()) < 0.0101 and cell[5] == number(row.max())
        drawn = [node.text for node in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
        for line in words:
            word, *shares = line.split()
            assert word in drawn and " → ".join(shares) in drawn
            expected = [before[word], after[word]] if off else [before[word]]
            np.testing.assert_allclose([float(s) for s in shares], expected, atol=0.0051)
        listed = {line.split()[0] for line in words}
        assert max(before, key=before.get) in listed and max(after, key=after.get) in listed


def test_switches_act_one_by_one_and_are_all_put_back_by_one_button():
    explorer = explorers.heads()
    count, at_first = [], drawing(explorer)
    explorer.canvas.observe(count.append, "value")
    for at in ALL:
        explorer.switches[at].value = True
    assert len(count) == 8 and explorer.off == set(ALL)
    explorer.all_on.click()
    assert len(count) == 9 and explorer.off == set() and drawing(explorer) == at_first


def test_a_new_text_is_read_without_the_heads_that_are_off():
    explorer, typed = explorers.heads("i love you", without=[(0, 1), (1, 1)]), "the cats near the dog"
    explorer.text.value = typed
    patterns, after = by_hand(typed, [(0, 1), (1, 1)])
    shares = [line.split() for line in shown(explorer)[2]]
    assert shares and all(abs(float(row[2]) - after[row[0]]) < 0.0051 for row in shares)
    np.testing.assert_allclose(explorer.trace.layers[1].A[3], patterns[1, 3])


def test_the_title_says_what_the_heads_are_worth():
    title = explorers.heads().picture().title
    assert title.startswith("After “… ben loves pears . she eats” the eight heads together expect “apples”")
    title = explorers.heads(without=ALL).picture().title
    _, after = by_hand(explorers.SENTENCE, ALL)
    assert title.startswith("Without 8 heads: “apples” goes from") and max(after, key=after.get) in title


def test_a_head_that_changes_nothing_is_said_to_change_nothing():
    words = "i love apples . i love tea . i drink"
    after = by_hand(words, [(1, 3)])[1]
    assert number(max(after.values())) == number(max(by_hand(words, [])[1].values()))
    assert "“tea” stays at" in explorers.heads(words, without=[(1, 3)]).picture().title


def test_heads_that_do_not_exist_and_texts_that_cannot_be_read_are_refused():
    for arguments, says in ((dict(without=[(2, 0)]), "(2, 0)"), (dict(without=[(0, 4)]), "(0, 4)"),
                            (dict(layer=2), "got 2"), (dict(head=-1), "got -1"),
                            (dict(text="appels"), "appels")):
        with pytest.raises(ValueError, match=re.escape(says)):
            explorers.heads(**arguments)


@pytest.mark.parametrize("typed", ["appels", LONGEST + " .", "<b>"])
def test_a_text_that_cannot_be_read_changes_nothing_but_the_complaint(typed):
    explorer = explorers.heads("i love you", without=[(0, 0)])
    before, traces = drawing(explorer), (explorer.trace, explorer.everything)
    explorer.text.value = typed
    assert "alert" in explorer.canvas.value and drawing(explorer) == before
    assert (explorer.trace, explorer.everything) == traces
    explorer.switches[0, 1].value = True
    assert "alert" not in explorer.canvas.value and explorer.trace.tokens[1:] == ["i", "love", "you"]


def test_the_switched_off_are_said_to_those_who_do_not_see_them():
    explorer = explorers.heads(without=[(1, 3)])
    said = re.search(r'role="status"[^>]*>(.*?)</p>', explorer.canvas.value).group(1)
    assert said == "layer 1, head 3, without 1.3"
    assert all(s.tooltip == f"switch off layer {r}, head {c}" for (r, c), s in explorer.switches.items())
    assert "all heads on" in explorers.heads().canvas.value
    assert "1.3 off" in drawing(explorer) and "1.2 off" not in drawing(explorer)


def test_the_bundle_has_the_live_view_and_the_picture_of_the_state():
    explorer = explorers.heads(without=[(0, 1)])
    bundle, picture = explorer._repr_mimebundle_(), explorer.picture()
    assert bundle[explorers.VIEW]["model_id"] == explorer.box.model_id
    assert bundle["image/svg+xml"] == picture.svg and bundle["text/plain"] == picture.text == repr(explorer)

"""The explorer of all the language model's heads: on a small model of random weights against plain loops, and
on the real one where it is fetched.
"""

import dataclasses
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from test_explorers import drawing
from test_smollm2 import SMALL, by_loops, small_model

from helpers import embeddings, explorers, kv_sharing, smollm2
from helpers.attention import softmax
from helpers.figures.model_heads import isolated, model_heads, visible
from helpers.figures.words import number, numbered
from helpers.smollm2.measure import SCORES, head_scores, n_asked, patterns

ROOT = Path(__file__).resolve().parents[1]
LETTERS = "abcdefghijklmnopqrstuvwxyz .,\n\t<>&\"'éß猫שמ\u0301\ufffd\x07\u200d\u2028ABCD"
TEXTS = ("a", "ab", "abc", "tom and tom", "aaaa", "the cat <the> & the cat", "שמ é猫\x07 <&>", "x" * 24)
OFF = [(0, 2), (1, 5), (1, 0)]
fetched = pytest.mark.skipif(not smollm2.is_fetched(), reason="the language model is not fetched")


class Letters:
    """A tokenizer with a token for every letter."""

    def encode(self, text):
        if not isinstance(text, str):
            raise TypeError(f"text must be a string, got {text!r}")
        return np.array([LETTERS.find(c) for c in text], dtype=np.int64)

    def decode(self, ids):
        return "".join(LETTERS[i] for i in ids)

    def tokens(self, ids):
        return [self.decode([i]) for i in ids]


@pytest.fixture(scope="module")
def model():
    assert len(LETTERS) == len(set(LETTERS)) == SMALL.n_vocab
    return dataclasses.replace(small_model(), tokenizer=Letters())


def made(model, text="tom and tom", layer=1, head=3, **rest):
    return explorers.model_heads(text, layer, head, model=model, **rest)


def patterns_by_loops(model, ids, off=()):
    """A (layers, h, n, n) in float64, head by head and query by query, with rope as complex numbers."""
    c, w, n = model.config, model.weights, len(ids)
    speeds, found = c.rope_base ** (-np.arange(0, c.d_head, 2) / c.d_head), np.zeros((2, 6, n, n))

    def norm(x, gamma):
        return np.array([row / np.sqrt(row @ row / len(row) + c.norm_eps) for row in x]) * gamma

    def turned(x, W):
        return [(row @ W)[0::2] + 1j * (row @ W)[1::2] for row in x]

    X = w.E.astype(np.float64)[ids]
    for i in range(c.n_layers):
        N, out = norm(X, w.attention_norm[i]), np.zeros_like(X)
        for head in range(c.n_heads):
            h = model.head(i, head)
            q, k = turned(N, h.W_q), turned(N, h.W_k)
            for p in range(n):
                s = [(q[p] * np.exp(1j * (p - j) * speeds) @ k[j].conj()).real / np.sqrt(c.d_head)
                     for j in range(p + 1)]
                found[i, head, p, :p + 1] = np.exp(s) / np.exp(s).sum()
                if (i, head) not in off:
                    out[p] += found[i, head, p] @ (N @ h.W_v) @ h.W_o
        X = X + out
        both = norm(X, w.mlp_norm[i]) @ w.W_gate_up[i]
        gate, up = both[:, :c.d_ff], both[:, c.d_ff:]
        X = X + (gate / (1 + np.exp(-gate)) * up) @ w.W_down[i]
    return found


def scores_by_hand(A, ids):
    """dict score -> (layers, h), the weights picked one by one."""
    n, found = len(ids), {}
    read = {"previous token": lambda i: [i - 1] if i > 1 else [],
            "first token": lambda i: [0] if i > 1 else [], "itself": lambda i: [i] if i else [],
            "duplicate token": lambda i: copies(ids, i),
            "induction": lambda i: [j + 1 for j in copies(ids, i) if j + 1 < i]}
    for name, keys in read.items():
        rows = [A[:, :, i, keys(i)].sum(axis=-1) for i in range(n) if keys(i)]
        found[name] = np.mean(rows, axis=0) if rows else np.full(A.shape[:2], np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        nats = -np.nansum(A * np.log(A), axis=-1)
    rows = [nats[:, :, i] / np.log(i + 1) for i in range(1, n)]
    found["entropy"] = np.mean(rows, axis=0) if rows else np.full(A.shape[:2], np.nan)
    return found


def copies(ids, i):
    return [j for j in range(i) if ids[j] == ids[i]]


# What is measured


@pytest.mark.parametrize("off", [[], OFF], ids=str)
def test_patterns_and_shares_are_those_of_plain_loops(model, off):
    ids = model.ids("tom and tom")
    found = patterns(model, "tom and tom", off)
    assert found.A.dtype == found.p.dtype == np.float64 and list(found.ids) == list(ids)
    np.testing.assert_allclose(found.A, patterns_by_loops(model, ids, off), atol=1e-6)
    np.testing.assert_allclose(found.p, softmax(by_loops(model, ids, off)[-1]), atol=1e-6)
    assert (np.abs(found.p - patterns(model, "tom and tom").p).max() > 1e-3) == bool(off)


@pytest.mark.parametrize("text", TEXTS)
def test_scores_are_the_weights_picked_one_by_one(model, text):
    found = patterns(model, text)
    scores, expected = head_scores(found.A, found.ids), scores_by_hand(found.A, found.ids)
    assert list(scores) == list(SCORES) == list(expected)
    for name, score in scores.items():
        np.testing.assert_allclose(score, expected[name], atol=1e-12)
        assert np.isnan(score).all() or (score.min() >= 0 and score.max() <= 1 + 1e-12)
        assert np.isnan(score).any() == (n_asked(name, found.ids) == 0)


def test_each_score_is_1_for_a_head_that_does_nothing_else():
    ids, n = [5, 6, 7, 5, 6, 7], 6
    does = {"previous token": lambda i: max(i - 1, 0), "first token": lambda i: 0, "itself": lambda i: i,
            "duplicate token": lambda i: i - 3 if i > 2 else 0, "induction": lambda i: i - 2 if i > 2 else 0}
    for name, key in does.items():
        A = np.array([[np.eye(n)[[key(i) for i in range(n)]]]])
        scores = head_scores(A, ids)
        assert scores[name] == 1 and all(scores[other] < 0.7 for other in does if other != name)
        assert scores["entropy"] == 0
    even = np.tri(n) / np.arange(1, n + 1)[:, None]
    assert abs(head_scores(even[None, None], ids)["entropy"] - 1) < 1e-12


# The explorer


def shown(explorer):
    """The text form as (scores, what the query reads in each head, the large pattern, the next tokens)."""
    lines = explorer.picture().text.splitlines()
    reads = next(i for i, line in enumerate(lines) if "reads most" in line)
    large = next(i for i, line in enumerate(lines) if re.fullmatch(r"layer \d+ head \d+:", line))
    words = next(i for i, line in enumerate(lines) if line.startswith("next token"))
    return lines[3:reads], lines[reads + 1:large], lines[large + 2:words], lines[words + 1:]


def floats(words):
    return np.array([np.nan if word == "–" else float(word) for word in words])


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("off", [[], OFF], ids=str)
def test_every_control_at_its_least_middle_and_greatest_shows_what_is_computed_by_hand(model, text, off):
    explorer = made(model, without=off)
    explorer.text.value = text
    assert not explorer.complaint
    ids, n = model.ids(text), len(text)
    A = patterns_by_loops(model, ids, off)
    names, scores = numbered(map(visible, text)), scores_by_hand(A, ids)
    after, before = (softmax(by_loops(model, ids, without)[-1]) for without in (off, []))
    seen = set()
    for score in SCORES:
        explorer.score.value = score
        for layer, head, query in ((0, 0, 0), (1, 2, n // 2), (0, 5, n - 1), (1, 5, n - 1)):
            with explorer.together():
                explorer.layer.value, explorer.head.value, explorer.query.value = layer, head, query
            svg = drawing(explorer)
            ET.fromstring(svg)
            assert svg == explorer.picture().drawing
            seen.add(svg)
            table, reads, large, words = shown(explorer)
            told = [floats(line.split()[2:]) for line in table]
            np.testing.assert_allclose(told, scores[score], atol=0.0051)
            first, end = (0, min(n, 12)) if query < 12 else (query - 10, query + 1)
            cells = np.array([floats(line.split()[-(end - first + (first > 0)):]) for line in large])
            rows = A[layer, head, first:end]
            np.testing.assert_allclose(cells[:, first > 0:], rows[:, first:end], atol=0.0051)
            if first:
                np.testing.assert_allclose(cells[:, 0], rows[:, :first].sum(axis=1), atol=0.0051)
            assert " (query)" in large[query - first] and len(reads) == 6
            for s, line in enumerate(reads):
                name, word, weight, state = line.split()
                row = A[layer, s, query]
                assert name == f"{layer}.{s}" and weight == number(row.max())
                assert abs(row[names.index(word)] - row.max()) < 0.0101
                assert state == ("off" if (layer, s) in off else "on")
            words = [line.split() for line in words if re.search(r"\d\.\d\d$", line)]
            assert any(row[0] == visible(LETTERS[after.argmax()]) for row in words)
            assert {row[-1] for row in words} <= {number(p) for p in after}
            assert {row[1] for row in words} <= {number(p) for p in before}
            assert ("this text has none" in explorer.picture().text) == np.isnan(scores[score]).any()
    assert len(seen) >= 4 * (1 if n == 1 else 2)


def test_the_next_tokens_are_the_likeliest_of_both_with_their_shares(model):
    explorer = made(model, without=OFF)
    before, after = (patterns(model, "tom and tom", off).p for off in ([], OFF))
    best = [set(np.argsort(-p)[:4]) for p in (before, after)]
    listed = explorer.predictions()
    assert len(listed) == len(best[0] | best[1])
    assert sorted(p for _, p, _ in listed) == sorted(before[list(best[0] | best[1])])
    assert sorted(q for _, _, q in listed) == sorted(after[list(best[0] | best[1])])
    assert all(p == q for _, p, q in made(model).predictions())


def test_the_model_runs_when_the_text_or_the_switches_change_and_only_then(model):
    counted = model.use(embed=embeddings.embed)
    explorer = made(counted)
    assert counted.functions.calls["embed"] == 1
    for control, value in ((explorer.layer, 0), (explorer.head, 5), (explorer.query, 0),
                           (explorer.score, "entropy"), (explorer.in_words, True), (explorer.larger, True)):
        control.value = value
    explorer.best.click()
    assert counted.functions.calls["embed"] == 1
    explorer.text.value = "a cat"
    assert counted.functions.calls["embed"] == 2
    explorer.switch.click()
    assert counted.functions.calls["embed"] == 3
    explorer.all_on.click()
    assert counted.functions.calls["embed"] == 3


def test_one_drawing_for_each_click(model):
    explorer, drawn = made(model, head=0), []
    assert explorer.scores["induction"].argmax() != 6
    explorer.canvas.observe(drawn.append, "value")
    for step, act in enumerate((explorer.switch.click, explorer.all_on.click, explorer.best.click)):
        act()
        assert len(drawn) == step + 1
    explorer.text.value = "a cat and a cat"
    assert len(drawn) == 4 and explorer.query.value == 14


def test_switching_off_and_on(model):
    explorer = made(model)
    at_first = drawing(explorer)
    assert explorer.switch.description == "switch 1.3 off"
    explorer.switch.click()
    assert explorer.off == {(1, 3)} and explorer.switch.description == "switch 1.3 on"
    assert "1.3 off" in drawing(explorer) and "Head 1.3, switched off" in explorer.picture().title
    explorer.head.value = 0
    assert explorer.switch.description == "switch 1.0 off" and "without 1.3" in explorer.canvas.value
    explorer.layer.value = 0
    explorer.switch.click()
    assert explorer.off == {(1, 3), (0, 0)}
    A = patterns(model, "tom and tom", [(1, 3), (0, 0)]).A
    np.testing.assert_array_equal(explorer.now.A, A)
    np.testing.assert_array_equal(explorer.scores["itself"], head_scores(A, explorer.now.ids)["itself"])
    assert np.abs(explorer.scores["itself"] - made(model).scores["itself"]).max() > 1e-3
    explorer.switch.click()
    assert explorer.off == {(1, 3)}
    explorer.all_on.click()
    explorer.layer.value, explorer.head.value = 1, 3
    assert explorer.off == set() and drawing(explorer) == at_first


def test_the_highest_head_is_found_named_and_gone_to(model):
    explorer = made(model)
    for score in SCORES:
        explorer.score.value = score
        explorer.best.click()
        best = explorer.scores[score]
        assert best[explorer.chosen] == best.max()
        layer, head = explorer.chosen
        assert f"Highest: {layer}.{head} {number(best.max())}," in explorer.picture().text
    explorer.text.value = "abc"
    explorer.score.value, (explorer.layer.value, explorer.head.value) = "induction", (0, 1)
    explorer.best.click()
    assert explorer.chosen == (0, 1) and "Highest" not in explorer.picture().text
    assert "this text has none" in drawing(explorer)


@pytest.mark.parametrize("typed, says", [("x" * 25, "25 tokens"), ("", "at least one token"), ("a!", "0 …")])
def test_a_text_that_cannot_be_read_changes_nothing_but_the_complaint(model, typed, says):
    explorer = made(model, without=[(0, 1)], query=2)
    before, read = drawing(explorer), (explorer.now, explorer.everything)
    explorer.text.value = typed
    assert 'role="alert"' in explorer.canvas.value and says in explorer.complaint
    assert drawing(explorer) == before and (explorer.now, explorer.everything) == read
    acts = (lambda: setattr(explorer.head, "value", 0), explorer.switch.click, explorer.best.click,
            explorer.all_on.click)
    for act in acts:
        act()
        assert 'role="alert"' not in explorer.canvas.value and explorer.text.value == "tom and tom"
        assert explorer.query.value == 2
        explorer.text.value = typed
        assert 'role="alert"' in explorer.canvas.value
    explorer.text.value = "cats"
    assert not explorer.complaint and explorer.names == list("cats")


@pytest.mark.parametrize("wrong, says", [
    (dict(layer=2), "got 2"), (dict(head=6), "got 6"), (dict(query=11), "got 11"), (dict(query=-1), "got -1"),
    (dict(score="best"), "induction"), (dict(without=[(2, 0)]), "got (2, 0)"), (dict(text="x" * 25), "25"),
    (dict(text=""), "at least one")])
def test_what_does_not_exist_is_refused(model, wrong, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        made(model, **wrong)


@pytest.mark.parametrize("wrong", [(1, 0), [1], "1.0", 3], ids=repr)
def test_heads_to_switch_off_must_be_pairs(model, wrong):
    with pytest.raises(TypeError, match=r"without must be a list of .*\(layer, head\), got "):
        made(model, without=wrong)


def test_heads_to_switch_off_may_come_as_any_pairs(model):
    expected = made(model, without=[(1, 0), (0, 2)])
    for pairs in ({(0, 2), (1, 0)}, (pair for pair in OFF if pair != (1, 5)), np.array([[0, 2], [1, 0]])):
        explorer = made(model, without=pairs)
        assert explorer.off == {(0, 2), (1, 0)} and drawing(explorer) == drawing(expected)


def test_a_text_must_be_a_string(model):
    with pytest.raises(TypeError, match="must be a string"):
        made(model, text=[1, 2])


def test_functions_of_the_reader_run_and_one_without_a_pattern_is_refused(model):
    turned = made(model.use(rope=lambda x, positions, base: embeddings.rope(x, positions, base)))
    assert turned.picture().text == made(model).picture().text
    with pytest.raises(ValueError, match="does not hand out its pattern"):
        made(model.use(grouped_query_attention=kv_sharing.grouped_query_attention))


def test_what_cannot_be_seen_gets_a_sign():
    assert visible(" cat") == "␣cat" and visible("\n\t") == "⏎⇥" and visible("\x07") == "U+0007"
    assert visible("猫") == "猫" and visible("\u200d") == "U+200D" and visible("") == "(nothing)"


def test_parts_of_characters_are_explained(model):
    assert "� is part of a" in drawing(made(model, "a\ufffd"))
    assert "part of a" not in drawing(made(model, "ab"))


def test_the_state_is_said_and_the_bundle_holds_the_picture(model):
    explorer = made(model, without=[(0, 1)], score="itself")
    said = re.search(r'role="status"[^>]*>(.*?)</p>', explorer.canvas.value).group(1)
    assert said == "score itself, head 3, query m₂, layer 1, without 0.1"
    bundle, picture = explorer._repr_mimebundle_(), explorer.picture()
    assert bundle[explorers.VIEW]["model_id"] == explorer.box.model_id
    assert bundle["image/svg+xml"] == picture.svg and bundle["text/plain"] == picture.text == repr(explorer)
    controls = [*explorer.choices, *explorer.sliders, explorer.text, explorer.best, explorer.switch]
    assert all(control.description and (getattr(control, "tooltip", None) or control.tooltips)
               for control in controls)


def test_shades_outlines_and_crosses_lie_where_their_head_is():
    A, scores = np.zeros((30, 9, 4, 4)), np.zeros((30, 9))
    A[..., 0], scores[5, 2] = 1, 1
    A[5, 2] = np.eye(4)
    svg = model_heads(list("abcd"), A, scores, "itself", SCORES["itself"], 3, (5, 2), 3, {(7, 3), (5, 8)},
                      [("e", 0.5, 0.5)], "title").svg
    boxes = [{name: node.get(name) for name in ("x", "y", "width", "height", "stroke-width")}
             for node in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}rect")]
    edge = next(box for box in boxes if (box["width"], box["height"]) == ("690", "126"))
    x, y = (float(edge["x"]) + 5 * 23, float(edge["y"]) + 2 * 14)
    outlined = [box for box in boxes if box["stroke-width"] == "2.5"]
    assert [float(outlined[0][name]) for name in ("x", "y", "width", "height")] == [x, y, 23, 14]
    assert f"M{x:g} {y:g}h23v14h-23z" in svg and svg.count("h23v14h-23z") == 1
    assert f"M{x + 2 * 23:g} {y + 14:g}l23 14" in svg
    small = [box for box in boxes if box["width"] == box["height"]]
    assert len(small) == 9 and outlined[1] == small[2]
    side = float(small[0]["width"])
    crossed = f"l{side:g} {side:g}"
    assert f"M{small[8]['x']} {small[8]['y']}{crossed}" in svg and svg.count(crossed) == 1
    cell = f"{round(side / 4, 1):g}"
    found = re.findall(rf"M([\d.]+) ([\d.]+)h{cell}v{cell}h-{cell}z", svg)
    for s, box in enumerate(small):
        left, top = float(box["x"]), float(box["y"])
        inside = {(round((float(py) - top) / side * 4), round((float(px) - left) / side * 4))
                  for px, py in found if left - 1 < float(px) < left + side}
        assert inside == ({(i, i) for i in range(4)} if s == 2 else {(i, 0) for i in range(4)})


@pytest.mark.parametrize("before, after, expected", [
    (0.2, 0.2, [106]), (1, 1, [106]), (0.02, 0.04, [26, 52]), (0.8, 0.6, [52, 39]), (0.001, 0.002, [0, 0])])
def test_the_longest_bar_fills_its_room_and_the_others_keep_their_proportion(before, after, expected):
    one = np.ones((1, 1, 1, 1))
    off, predictions = set() if before == after else {(0, 0)}, [("b", before, after), ("c", 0, 0)]
    svg = model_heads(["a"], one, one[0, 0], "itself", SCORES["itself"], 1, (0, 0), 0, off, predictions,
                      "title").svg
    bars = [float(box.get("width")) for box in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}rect")
            if box.get("height") == "9"]
    assert bars == expected + [0] * len(expected)


def test_a_name_from_right_to_left_is_kept_apart_from_the_sentence_around_it(model):
    assert isolated("␣cat") == "␣cat" and isolated("猫₂") == "猫₂" and isolated("é") == "é"
    assert isolated("ש₂") == "\u2068ש₂\u2069" and isolated("\u0639") == "\u2068\u0639\u2069"
    title = made(model, "ש").picture().title
    assert title == "Head 1.3: “\u2068ש\u2069” gives its largest weight to “\u2068ש\u2069”: 1.00"
    assert not re.search("[\u2066-\u2069]", made(model).picture().svg)


def test_the_fullest_picture_stays_small_and_inside_its_width():
    n = 24
    A = np.tile(np.tri(n) * np.linspace(0.1, 1, n), (30, 9, 1, 1))
    names = [f"long-word-{i}" for i in range(n)]
    off = {(layer, 3) for layer in range(30)}
    picture = model_heads(names, A, A[:, :, -1, -1], "induction", SCORES["induction"], 23, (18, 6), 23, off,
                          [("another-long-word", 0.5, 1.0)] * 8, "title")
    assert len(picture.svg) < 150_000
    for box in ET.fromstring(picture.svg).iter("{http://www.w3.org/2000/svg}rect"):
        assert float(box.get("x", 0)) + float(box.get("width")) <= 861


def test_without_the_model_one_sentence_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_MODEL", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="fetch it with python3 course.py model"):
        explorers.model_heads()


@pytest.mark.parametrize("missing", ["tokenizers", "helpers.smollm2"])
def test_other_explorers_need_no_large_model(missing):
    code = f"import sys; sys.modules[{missing!r}] = None; from helpers import explorers; explorers.heads()"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


# On the real model


@fetched
def test_the_real_model_shows_what_it_computes_in_float32():
    explorer = explorers.model_heads()
    model, text = explorer.model, explorer.text.value
    trace = model.run(text)
    np.testing.assert_allclose(explorer.now.A, [trace.layers[i].A for i in range(30)], atol=1e-4)
    for (token, p, _), (expected, q) in zip(explorer.predictions(), model.next_tokens(text, 4), strict=True):
        assert token == visible(expected) and abs(p - q) < 1e-4
    assert explorer.scores["induction"][18, 6] > 0.7 and explorer.scores["previous token"].argmax() == 16 * 9
    assert "“␣Tom₂” gives its largest weight to “␣Ok”" in explorer.picture().title
    assert len(explorer.picture().svg) < 60_000
    explorer.layer.value, explorer.head.value = 16, 0
    explorer.switch.click()
    was, now = next((p, q) for token, p, q in explorer.predictions() if token == "␣Ok")
    assert was > 0.9 and now < 0.5


@fetched
def test_the_picture_is_the_same_on_another_kind_of_processor():
    code = ("from helpers import explorers; picture = explorers.model_heads().picture(); "
            "print(ascii(picture.svg + picture.text))")
    here, there = (subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, capture_output=True,
                                  env=os.environ | more).stdout
                   for more in ({}, {"OPENBLAS_CORETYPE": "Prescott"}))
    assert here == there and len(here) > 10_000


@fetched
@pytest.mark.parametrize("text", ["Zwei Kühe, 猫 und 🦊 שלום", "<b>&amp;\n\t\u200d", "2024", " "])
def test_any_language_is_read_and_drawn(text):
    explorer = explorers.model_heads(text)
    ET.fromstring(drawing(explorer))
    assert len(explorer.names) == len(explorer.now.ids) <= 24

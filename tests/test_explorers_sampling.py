"""The explorer of sampling: every control, against the shares made one word at a time, and draws."""

import itertools
import math
import re
import xml.etree.ElementTree as ET
from collections import Counter

import numpy as np
import pytest
from test_explorers import LONGEST, TEXTS, drawing

from helpers import explorers, tiny_model
from helpers.figures.words import number
from helpers.sampling import sample_next

MODEL = tiny_model.load()


def by_hand(logits, T, k, top_p):
    """[(word, logit, softmax, at T, sum so far or None, kept, share)], likeliest first, in plain Python."""
    ranked = sorted(zip(MODEL.vocab, logits, strict=True), key=lambda both: -both[1])
    z = [logit for _, logit in ranked]

    def shares(values, T):
        if T == 0:
            return [1.0, *[0.0] * (len(values) - 1)]
        e = [math.exp((v - values[0]) / T) for v in values]
        return [v / sum(e) for v in e]

    plain, warm = shares(z, 1), shares(z, T)
    running, left = list(itertools.accumulate(shares(z[:k], T))), []
    for i in range(len(z)):
        enough = i > 0 and i <= len(running) and running[i - 1] >= top_p - 1e-12 and top_p < 1
        left.append(0.0 if i >= k or enough or (T == 0 and i) else warm[i])
    p = [v / sum(left) for v in left]
    running += [None] * (len(z) - k)
    return [(*ranked[i], plain[i], warm[i], running[i], p[i] > 0, p[i]) for i in range(len(z))]


def shown(explorer):
    """The lines of the text form, each a dict."""
    lines = explorer.picture().text.splitlines()
    header = next(i for i, line in enumerate(lines) if line.startswith("word "))
    out = []
    for line in lines[header + 1:]:
        if not re.search(r"\d\.\d\d\s+\d+$", line):
            break
        word, rest = re.match(r"(\d+ others(?:, \d+ kept)?|\S+)\s+(.*)", line).groups()
        fate = re.search(r"kept|partly kept|cut by top-k or top-p|cut by top-\w|share 0", rest).group()
        before, after = rest.split(fate)
        out.append((word, before.split(), fate, *after.split()))
    return out


@pytest.mark.parametrize("text", TEXTS)
def test_every_control_at_its_least_middle_and_greatest(text):
    explorer = explorers.sampling(seed=7)
    explorer.text.value = text
    logits = MODEL.run(text).logits
    assert explorer.trace.tokens[1:] == text.split()
    for T, k, top_p, draws in itertools.product((0, 1.5, 3), (1, 23, 45), (0.01, 0.5, 1), (0, 500, 1000)):
        explorer.temperature.value, explorer.top_k.value = T, k
        explorer.top_p.value, explorer.draws.value = top_p, draws
        svg, rows = drawing(explorer), by_hand(logits[-1].tolist(), T, k, top_p)
        words = [node.text for node in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
        assert svg == explorer.picture().drawing and not explorer.complaint
        generator = np.random.default_rng(7)
        drawn = Counter(MODEL.vocab[sample_next(logits, generator, T, k, top_p)] for _ in range(draws)) \
            if draws == 500 else None
        lines = shown(explorer)
        assert len(lines) == 12
        for (word, before, fate, p, count), row in zip(lines[:11], rows, strict=False):
            assert word == row[0]
            expected = [number(v) for v in row[1:4]] + ([] if row[4] is None else [number(row[4])])
            assert before == expected and set(before) <= set(words)
            assert p == number(row[6]) and (fate == "kept") == row[5]
            assert drawn is None or int(count) == drawn[word]
            if not row[5]:
                assert fate in words
        name, before, fate, p, count = lines[11]
        rest, kept = rows[11:], sum(row[5] for row in rows[11:])
        assert name == "34 others" + (f", {kept} kept" if 0 < kept < 34 else "")
        assert before[:2] == [number(sum(row[c] for row in rest)) for c in (2, 3)]
        assert p == number(sum(row[6] for row in rest)) and ("kept" in fate) == (kept > 0)
        assert sum(int(line[4]) for line in lines) == draws
        total = sum(row[5] for row in rows)
        how_many = "all 45" if total == 45 else f"{total} of 45"
        assert explorer.picture().title.endswith(f"; {how_many} words can be drawn")


def test_what_cuts_a_word_is_said_of_it():
    fates = [line[2] for line in shown(explorers.sampling(temperature=0.7, top_k=8, top_p=0.8))]
    assert fates == ["kept"] * 5 + ["cut by top-p"] * 3 + ["cut by top-k"] * 4
    assert [line[2] for line in shown(explorers.sampling(temperature=0))][:2] == ["kept", "share 0"]
    assert shown(explorers.sampling(top_k=20, top_p=0.5))[-1][2] == "cut by top-k or top-p"


def test_bars_of_one_line_are_in_proportion_and_cut_ones_are_hollow():
    explorer = explorers.sampling(temperature=0.5, top_k=6, draws=1000)
    root = ET.fromstring(drawing(explorer))
    rects = [(n.get("fill"), float(n.get("y")), float(n.get("width")), n.get("height"))
             for n in list(root.iter("{http://www.w3.org/2000/svg}rect"))[1:]]
    rows = shown(explorer)
    for i, (_, before, fate, p, count) in enumerate(rows[:8]):
        mine = {(fill, high): wide for fill, y, wide, high in rects if 0 <= y - rects[0][1] + 6 - 26 * i < 26}
        unit = float(max(v[3] for v in rows)) / 112                # what one px is worth
        assert abs(mine["var(--sa-negative)", "14"] * unit - float(before[1])) < 0.006
        assert (("var(--sa-positive)", "14") in mine) == (fate == "kept") == (("none", "14") not in mine)
        if fate == "kept":
            assert abs(mine["var(--sa-positive)", "9"] * unit - float(p)) < 0.006
            assert abs(mine["var(--sa-ink)", "6"] * unit - int(count) / 1000) < 0.006


def test_the_same_seed_draws_the_same_and_more_draws_go_on_from_there():
    first, again, other = explorers.sampling(seed=1), explorers.sampling(seed=1), explorers.sampling(seed=2)
    assert drawing(first) == drawing(again) != drawing(other)
    p = np.full(45, 1 / 45)
    few = first.drawn(p)
    first.draws.value = 300
    assert len(few) == 100 and (first.drawn(p)[:100] == few).all()


def test_buttons_draw_more_and_stop_at_the_end():
    explorer = explorers.sampling(draws=0)
    one, hundred = explorer.more
    seen = []
    for button in [one] * 2 + [hundred] * 10 + [one]:
        button.click()
        seen.append(explorer.draws.value)
    assert seen == [1, 2, *range(102, 1000, 100), 1000, 1000]
    assert "drawn of 1000" in drawing(explorer) and not one.disabled


def test_at_the_most_draws_the_buttons_say_why_they_do_nothing():
    explorer = explorers.sampling(draws=950)
    for button in reversed(explorer.more):
        assert "alert" not in explorer.canvas.value
        button.click()
    assert explorer.draws.value == 1000 and "1,000 draws are the most" in explorer.canvas.value
    explorer.draws.value = 999
    assert "alert" not in explorer.canvas.value


@pytest.mark.parametrize("text, said", [
    ("the cats near the dog", "After “the cats near the dog”: “sleep”"), ("", "After “<bos>”"),
    ("i", "After “i”"),
    ("the cats near the dog sleep . the dog near the cats", "After “… sleep . the dog near the cats”")])
def test_the_title_names_the_text_and_says_where_words_are_left_out(text, said):
    assert explorers.sampling(text, temperature=0.5).picture().title.startswith(said)


def test_the_words_drawn_last_are_written_out():
    assert "Drawn" not in explorers.sampling(draws=0).picture().text
    generator, logits = np.random.default_rng(0), MODEL.run("i love").logits
    words = [MODEL.vocab[sample_next(logits, generator)] for _ in range(20)]
    assert f"Drawn: {', '.join(words[:8])}." in explorers.sampling(draws=8).picture().text
    assert f"Drawn last: {', '.join(words[12:])}." in explorers.sampling(draws=20).picture().text


@pytest.mark.parametrize("arguments, says", [
    (dict(temperature=-1), "temperature must be at least 0"), (dict(top_p=0), "top_p must be above 0"),
    (dict(top_p=1.1), "top_p must be above 0 and at most 1"), (dict(top_k=0), "top_k must be at least 1"),
    (dict(draws=1001), "draws must be one of 0 … 1,000, got 1001"), (dict(draws=-1), "got -1"),
    (dict(seed=-1), "seed must be at least 0"), (dict(text="appels"), "appels")])
def test_a_state_that_does_not_exist_is_refused(arguments, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        explorers.sampling(**arguments)


@pytest.mark.parametrize("arguments", [dict(temperature=12.5), dict(top_k=900), dict(top_p=0.123)])
def test_a_state_beyond_the_usual_is_shown_as_asked(arguments):
    explorer = explorers.sampling(**arguments)
    assert explorer.temperature.value == arguments.get("temperature", 1)
    assert explorer.top_k.value == 45 and explorer.top_p.value == arguments.get("top_p", 1)


@pytest.mark.parametrize("typed", ["appels", LONGEST + " .", "<b>"])
def test_a_text_that_cannot_be_read_changes_nothing_but_the_complaint(typed):
    explorer = explorers.sampling(top_k=3)
    before = drawing(explorer)
    explorer.text.value = typed
    assert "alert" in explorer.canvas.value and drawing(explorer) == before
    explorer.top_k.value = 4
    assert "alert" not in explorer.canvas.value and explorer.text.value == "i love"


def test_the_state_is_said_and_the_bundle_has_its_picture():
    explorer = explorers.sampling(temperature=0.5, top_k=3)
    said = re.search(r'role="status"[^>]*>(.*?)</p>', explorer.canvas.value).group(1)
    assert said == "seed 0, temperature 0.5, top-k 3, top-p 1, draws 100"
    bundle, picture = explorer._repr_mimebundle_(), explorer.picture()
    assert bundle[explorers.VIEW]["model_id"] == explorer.box.model_id
    assert bundle["image/svg+xml"] == picture.svg and bundle["text/plain"] == picture.text == repr(explorer)

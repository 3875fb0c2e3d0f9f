"""Explorers: every control at least, middle and greatest, what they refuse, and that they only wire."""

import html
import itertools
import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from helpers import explorers, tiny_model
from helpers.figures import heads
from helpers.figures.words import number

MAKERS = {"similarity": explorers.similarity, "value_reading": explorers.value_reading,
          "step_through": explorers.step_through}
LATE = "anna loves apples . ben loves pears . the cats near the dog sleep . i love tea . she eats"
LONGEST = " ".join(["i love you ."] * 9 + ["i love you"])            # with <bos> all 40 tokens
TEXTS = ("", "i love you", explorers.SENTENCE, "i love apples . i love tea . i drink tea .", LONGEST)


def drawing(explorer):
    """The SVG that the reader sees."""
    return re.search(r"<svg.*</svg>", explorer.canvas.value).group()


def lines(explorer):
    """The text form without its title, as words; the mark of the query taken off."""
    return [line.replace(" (query)", "").replace("sum = z", "sum").split()
            for line in explorer.picture().text.splitlines()[1:]]


def numbers(cells):
    return np.array([float(c.replace("−", "-").replace("∞", "inf")) for c in cells])


def by_hand(explorer):
    """Q K V of the state, its dot products, weights and z, one number after the other."""
    at, head, i = explorer.trace.layers[explorer.layer.value], explorer.head.value, explorer.query.value
    Q, K, V = at.Q[head].tolist(), at.K[head].tolist(), at.V[head].tolist()
    dots = [sum(q * k for q, k in zip(Q[i], key, strict=True)) for key in K]
    scaled = [d / math.sqrt(len(Q[i])) for d in dots]
    top = max(scaled[:i + 1])
    e = [math.exp(s - top) if j <= i else 0.0 for j, s in enumerate(scaled)]
    weights = [v / sum(e) for v in e]
    z = [sum(w * value[c] for w, value in zip(weights, V, strict=True)) for c in range(len(V[0]))]
    return dots, scaled, weights, V, z


def states(explorer):
    """Put the controls through their least, middle and greatest values, one state after another."""
    controls = [c for c in explorer.choices if c is not explorer.query]
    spots = [sorted({0, len(c.options) // 2, len(c.options) - 1}) for c in controls]
    for text in TEXTS:
        explorer.text.value = text
        for chosen in itertools.product(*spots):
            for control, index in zip(controls, chosen, strict=True):
                control.index = index
            count = len(explorer.query.options)
            for index in sorted({0, count // 2, count - 1}):
                explorer.query.index = index
                yield text, explorer


# --- every state --------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", MAKERS)
def test_every_control_at_its_least_middle_and_greatest_draws_its_state(name):
    seen, count = set(), 0
    for text, explorer in states(MAKERS[name]()):
        assert explorer.trace.tokens[1:] == text.split() and not explorer.complaint
        svg = drawing(explorer)
        ET.fromstring(svg)
        assert svg == explorer.picture().drawing
        seen.add((text, *(c.value for c in explorer.choices)))
        count += 1
    assert len(seen) == count >= 6 + 4 * 6 * 3


def test_similarity_shows_what_is_computed_by_hand():
    for _, explorer in states(explorers.similarity("i love you")):
        dots, scaled, weights, _, _ = by_hand(explorer)
        i, shown = explorer.query.value, lines(explorer)[1:]
        assert len(shown) == len(dots)
        for j, row in enumerate(shown):
            np.testing.assert_allclose(numbers(row[1:3]), [dots[j], scaled[j]], atol=0.0051, rtol=1e-5)
            if j > i:
                assert row[3] == "masked"
            else:
                np.testing.assert_allclose(numbers(row[3:]), [weights[j]], atol=0.0051)
        assert explorer.picture().title.endswith(f": {number(max(weights))}")


def test_value_reading_adds_up_to_what_is_computed_by_hand():
    for _, explorer in states(explorers.value_reading("i love you")):
        _, _, weights, V, z = by_hand(explorer)
        d_v, rows = len(V[0]), lines(explorer)[1:]
        np.testing.assert_allclose(numbers(rows[-1][1:]), [1, *z], atol=0.0051)
        parts = np.array([numbers(row[-d_v:]) for row in rows[:-1]])
        np.testing.assert_allclose(parts.sum(axis=0), z, atol=0.0051 * len(rows))
        for row, w, value in zip(rows[:-1], weights, V, strict=True):
            np.testing.assert_allclose(numbers(row[-d_v:]), [w * v for v in value], atol=0.0051)
        assert f"takes {number(max(weights))} of" in explorer.picture().title


def test_step_through_shows_what_is_computed_by_hand():
    for _, explorer in states(explorers.step_through("i love you")):
        dots, scaled, weights, _, z = by_hand(explorer)
        i, step = explorer.query.value, explorer.step.value
        first, end = (0, min(len(dots), 12)) if i < 12 else (i - 10, i + 1)
        earlier = [sum(weights[:first])] if first else []
        masked = [s if j <= i else -math.inf for j, s in enumerate(scaled)]
        expected = [dots[first:end], scaled[first:end], masked[first:end],
                    [*earlier, *weights[first:end], sum(earlier) + sum(weights[first:end])], z][step]
        row = next(line for line in explorer.picture().text.splitlines() if " (query)" in line)
        shown = numbers(row.split("(query)")[1].split())
        np.testing.assert_allclose(shown, expected, atol=0.0051, rtol=1e-5)
        if step == 3:
            rows = [line.split()[-13 if first else first - end - 1:] for line in
                    explorer.picture().text.splitlines()[3:3 + end - first]]
            for row in map(numbers, rows):                    # what is shown adds up to the row sum
                assert row[-1] == 1 and abs(row[:-1].sum() - 1) < 0.0051 * len(row)


def test_forth_and_back_stop_at_the_ends():
    explorer = explorers.step_through("i love you")
    seen = []
    for button in [explorer.on] * 6 + [explorer.back] * 6:
        button.click()
        seen.append(explorer.step.value)
        assert not explorer.on.disabled and not explorer.back.disabled      # the focus stays where it is
    assert seen == [1, 2, 3, 4, 4, 4, 3, 2, 1, 0, 0, 0]
    assert heads.STEPS[0] in drawing(explorer)


# --- what is typed ------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("typed, says", [("anna loves appels", "appels"), (LONGEST + " .", "40"),
                                         ("Anna", "Anna"), ("<b>", "&lt;b&gt;")])
def test_a_text_that_cannot_be_read_changes_nothing_but_the_complaint(name, typed, says):
    explorer = MAKERS[name]("i love you", query=2)
    before, trace = drawing(explorer), explorer.trace
    explorer.text.value = typed
    assert drawing(explorer) == before and explorer.trace is trace and explorer.query.value == 2
    complaint = re.search(r'<p role="alert"[^>]*>(.*?)</p>', explorer.canvas.value).group(1)
    assert says in complaint and explorer.text.value == typed
    assert complaint.endswith(". The picture still shows the last good text.")
    explorer.text.value = "i love apples"
    assert "alert" not in explorer.canvas.value and explorer.trace.tokens[-1] == "apples"


def test_a_complaint_goes_away_with_the_next_choice():
    explorer = explorers.similarity()
    explorer.text.value = "nonsense"
    assert "alert" in explorer.canvas.value
    explorer.query.index = 0
    assert "alert" not in explorer.canvas.value


def test_a_refused_text_gives_way_to_the_one_shown_with_the_next_choice():
    explorer = explorers.similarity("i love you")
    explorer.text.value = "hello world"
    explorer.head.value = 0
    assert explorer.text.value == "i love you" and "alert" not in explorer.canvas.value


def test_new_words_are_offered_as_queries_and_drawn_once():
    explorer = explorers.similarity()
    count = []
    explorer.canvas.observe(count.append, "value")
    explorer.text.value = "ben loves pears . ben eats"
    labels = [label for label, _ in explorer.query.options]
    assert labels == ["<bos>", "ben₁", "loves", "pears", ".", "ben₂", "eats"]
    assert explorer.query.value == 6 and len(count) == 1


@pytest.mark.parametrize("name", MAKERS)
def test_words_that_come_twice_can_be_told_apart(name):
    explorer = MAKERS[name]()
    labels = [label for label, _ in explorer.query.options]
    assert len(set(labels)) == len(labels) and "loves₁" in labels and "loves₂" in labels
    drawn = {node.text for node in ET.fromstring(drawing(explorer)).iter("{http://www.w3.org/2000/svg}text")}
    assert drawn >= set(labels)
    assert len(explorer.query.tooltips) == len(labels)


@pytest.mark.parametrize("name", MAKERS)
def test_every_token_of_a_long_text_can_be_the_query(name):
    explorer = MAKERS[name](LONGEST)
    assert [i for _, i in explorer.query.options] == list(range(40))


@pytest.mark.parametrize("name, says", [
    ("similarity", "“eats” gives its largest weight to “apples”: 0.99"),
    ("value_reading", "“eats” takes 0.99 of the value of “apples”"),
    ("step_through", "“eats” gives its largest weight to “apples”: 0.99")])
def test_what_is_said_of_a_long_text_is_true_of_all_its_words(name, says):
    explorer = MAKERS[name](LATE)
    if name == "step_through":
        explorer.step.value = 3
        assert "Tokens 11 to 21 of 0 to 21 are shown; column 0–10 adds up" in explorer.picture().text
    assert says in explorer.picture().text


# --- what is refused ----------------------------------------------------------------------------------

@pytest.mark.parametrize("arguments, says", [
    (dict(layer=2), "layer must be one of 0, 1, got 2"), (dict(layer=-1), "got -1"),
    (dict(head=4), "0, 1, 2, 3"), (dict(query=11), "positions 0 … 10"),
    (dict(query=-1), "got -1"), (dict(query="she"), "'she'"),
    (dict(text=LONGEST, query=40), "positions 0 … 39"), (dict(text="anna loves appels"), "appels")])
@pytest.mark.parametrize("name", MAKERS)
def test_a_state_that_does_not_exist_is_refused(name, arguments, says):
    with pytest.raises((ValueError, TypeError)) as caught:
        MAKERS[name](**arguments)
    assert says in str(caught.value)


def test_a_step_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="step must be one of 0, 1, 2, 3, 4, got 5"):
        explorers.step_through(step=5)


# --- forms --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", MAKERS)
def test_the_bundle_has_the_live_view_and_the_picture_of_the_state(name):
    explorer = MAKERS[name]()
    explorer.query.index = 3
    bundle, picture = explorer._repr_mimebundle_(), explorer.picture()
    assert bundle[explorers.VIEW]["model_id"] == explorer.box.model_id
    assert bundle["image/svg+xml"] == picture.svg and bundle["text/plain"] == picture.text == repr(explorer)
    assert bundle["text/html"] == picture.html


def test_what_is_drawn_is_shown_without_drawing_it_again(monkeypatch):
    explorer = explorers.similarity()
    bundle, text = explorer._repr_mimebundle_(), repr(explorer)
    monkeypatch.setattr(explorer, "picture", None)
    assert explorer._repr_mimebundle_() == bundle and repr(explorer) == text


def test_the_text_form_can_be_opened_and_the_picture_enlarged():
    explorer = explorers.similarity()
    assert explorer.words.value == "" and "sa-larger" not in explorer.canvas.value
    explorer.in_words.value = True
    assert explorer.words.value == explorer.picture().text_html
    explorer.larger.value = True
    assert "sa-larger" in explorer.canvas.value
    explorer.query.index = 3
    assert explorer.words.value == explorer.picture().text_html


@pytest.mark.parametrize("name", MAKERS)
def test_every_control_has_a_name_and_says_its_state(name):
    explorer = MAKERS[name]()
    assert all(c.description and len(c.tooltips) == len(c.options) for c in explorer.choices)
    assert explorer.text.tooltip and explorer.larger.tooltip and explorer.in_words.tooltip
    status = re.search(r'<p role="status"[^>]*>(.*?)</p>', explorer.canvas.value).group(1)
    assert all(f"{c.description} {html.escape(c.label)}" in status for c in explorer.choices)


def test_explorers_bring_no_script_and_no_address():
    for make in MAKERS.values():
        explorer = make()
        everything = "".join(w.value for w in explorer.box.children if hasattr(w, "value"))
        addresses = set(re.findall(r"https?://[^\"' ]+", everything))
        assert "<script" not in everything and addresses == {"http://www.w3.org/2000/svg"}


def test_the_head_shown_first_is_the_one_that_finds_the_fruit():
    trace = tiny_model.load().run(explorers.SENTENCE)
    on_apples = np.array([layer.A[:, -1, trace.tokens.index("apples")] for layer in trace.layers])
    explorer = explorers.similarity()
    best = np.unravel_index(on_apples.argmax(), on_apples.shape)
    assert (explorer.layer.value, explorer.head.value) == best
    assert f"gives its largest weight to “apples”: {number(on_apples.max())}" in explorer.picture().title

"""The distribution of the next token by hand and in loops, draws against it, and what wrong use is told."""

import math

import numpy as np
import pytest
import slow
from hypothesis import given
from hypothesis import strategies as st

from helpers.sampling import next_probabilities, sample_next, sample_rows


def by_definition(row, temperature=1.0, top_k=None, top_p=None):
    """One token after the other, from the most likely down, smaller ids first among equals."""
    ranked = sorted(range(len(row)), key=lambda i: (-row[i], i))
    if temperature == 0:
        return [float(i == ranked[0]) for i in range(len(row))]
    kept = ranked if top_k is None else ranked[:top_k]
    p = slow.softmax([z / temperature for z in row], [i in kept for i in range(len(row))])
    if top_p is not None:
        nucleus = []
        for i in kept:
            nucleus.append(i)
            if math.fsum(p[j] for j in nucleus) >= top_p - 1e-12 and top_p < 1:
                break
        p = [p[i] if i in nucleus else 0.0 for i in range(len(row))]
    return [share / math.fsum(p) for share in p]


settings_of_all = {
    "temperature": st.sampled_from([0, 0.1, 0.5, 1, 2.0, 30]),
    "top_k": st.none() | st.integers(1, 9),
    "top_p": st.none() | st.sampled_from([1e-9, 0.05, 0.31, 0.5, 0.77, 0.93, 1]),
}


@given(st.lists(st.integers(-6, 6), min_size=1, max_size=7), st.fixed_dictionaries(settings_of_all))
def test_the_distribution_is_the_one_of_the_definition(row, settings):
    p = next_probabilities([row], **settings)               # whole numbers: many ties
    np.testing.assert_allclose(p, by_definition(row, **settings), rtol=1e-9, atol=1e-15)
    assert p.shape == (len(row),) and p.dtype == np.float64 and abs(p.sum() - 1) < 1e-12


@given(st.lists(st.floats(-1e308, 1e308), min_size=1, max_size=7), st.floats(0, 1e300),
       st.none() | st.integers(1, 9), st.none() | st.floats(1e-300, 1))
@pytest.mark.filterwarnings("error")
def test_whatever_the_logits_it_is_a_distribution(row, temperature, top_k, top_p):
    p = next_probabilities([row], temperature, top_k, top_p)
    assert (p >= 0).all() and abs(p.sum() - 1) < 1e-12
    assert p[np.argmax(row)] == p.max()


SHARES = np.array([0.1, 0.4, 0.2, 0.3])                     # ids from the most likely down: 1, 3, 2, 0
ROW = np.log(SHARES)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, SHARES),
        ({"temperature": 0.5}, SHARES**2 / (SHARES**2).sum()),
        ({"temperature": 2}, SHARES**0.5 / (SHARES**0.5).sum()),
        ({"temperature": 0}, [0, 1, 0, 0]),
        ({"temperature": 0, "top_k": 3, "top_p": 0.9}, [0, 1, 0, 0]),
        ({"temperature": 1e-320}, [0, 1, 0, 0]),
        ({"top_k": 1}, [0, 1, 0, 0]),
        ({"top_k": 2}, [0, 4 / 7, 0, 3 / 7]),
        ({"top_k": 9}, SHARES),
        ({"top_p": 0.4}, [0, 1, 0, 0]),                     # reached, up to rounding
        ({"top_p": 0.41}, [0, 4 / 7, 0, 3 / 7]),            # the token that crosses it stays
        ({"top_p": 0.7}, [0, 4 / 7, 0, 3 / 7]),
        ({"top_p": 1e-20}, [0, 1, 0, 0]),
        ({"top_p": 1}, SHARES),
        ({"top_k": 3, "top_p": 0.75}, [0, 4 / 7, 0, 3 / 7]),            # 7/9 of the rest, but 0.7 of all
        ({"temperature": 0.5, "top_p": 0.7}, [0, 16 / 25, 0, 9 / 25]),  # 16/30 + 9/30
        ({"temperature": 2, "top_k": 2}, np.array([0, 2, 0, 3**0.5]) / (2 + 3**0.5)),
    ],
)
def test_by_hand(settings, expected):
    logits = np.stack([ROW[::-1], np.full(4, 50.0), ROW])   # the last row counts
    before = logits.copy()
    for rows in (logits, logits.tolist()):
        np.testing.assert_allclose(next_probabilities(rows, **settings), expected, rtol=1e-9, atol=1e-15)
    np.testing.assert_array_equal(logits, before)


@pytest.mark.parametrize(
    ("row", "settings", "expected"),
    [
        ([1, 2, 2, 2, 0], {"top_k": 2}, [0, 0.5, 0.5, 0, 0]),
        ([2, 2, 2, 2], {"top_k": 3}, [1 / 3, 1 / 3, 1 / 3, 0]),
        ([2, 2, 2, 2], {"top_p": 0.5}, [0.5, 0.5, 0, 0]),
        ([2, 2, 2, 2], {"top_p": 0.51}, [1 / 3, 1 / 3, 1 / 3, 0]),
        ([0] * 10, {"top_p": 0.8}, [1 / 8] * 8 + [0] * 2),  # eight times 0.1 adds up to a little less
        ([0, 3, 3], {"temperature": 0}, [0, 1, 0]),
        ([1e4, 1e4 - 1, -1e4], {}, [math.e / (1 + math.e), 1 / (1 + math.e), 0]),
        ([-1e4, -1e4, -1e4 - 800], {}, [0.5, 0.5, 0]),
        ([-np.inf, 0, -np.inf, 0], {"top_k": 3}, [0, 0.5, 0, 0.5]),
        ([-np.inf, -5], {"temperature": 0}, [0, 1]),
        ([0, -40], {"top_p": 1}, [1, math.exp(-40)]),       # nothing is cut, however small
        ([7], {"top_k": 5, "top_p": 0.1}, [1]),
    ],
)
def test_ties_and_extreme_logits(row, settings, expected):
    for dtype in (float, np.float32):
        logits = np.array([row], dtype)
        np.testing.assert_allclose(next_probabilities(logits, **settings), expected, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"temperature": 0.5},
        {"temperature": 2},
        {"top_k": 3},
        {"top_p": 0.7},
        {"temperature": 1.5, "top_k": 4, "top_p": 0.8},
    ],
)
def test_many_draws_have_the_exact_distribution(settings):
    rng = np.random.default_rng(0)
    logits = 1.5 * rng.normal(size=(3, 6))
    p, n = np.array(by_definition(logits[-1].tolist(), **settings)), 5_000
    drawn = np.bincount([sample_next(logits, rng, **settings) for _ in range(n)], minlength=6) / n
    assert (drawn[p == 0] == 0).all()
    assert (np.abs(drawn - p) <= 4 * np.sqrt(p * (1 - p) / n)).all()


def test_a_draw_is_an_int_and_repeats_with_the_seed():
    first, again = ([sample_next([[0.0, 1.0, 2.0]], rng) for _ in range(50)]
                    for rng in (np.random.default_rng(7), np.random.default_rng(7)))
    assert first == again and len(set(first)) == 3
    assert all(type(token) is int for token in first)
    assert [sample_next([[0, 3, 3]], np.random.default_rng(s), temperature=0) for s in range(20)] == [1] * 20


@given(st.lists(st.lists(st.integers(-6, 6), min_size=9, max_size=9), min_size=1, max_size=5),
       st.fixed_dictionaries(settings_of_all), st.integers(0, 99))
def test_rows_together_draw_what_they_draw_in_turn(rows, settings, seed):
    rng, in_turn = np.random.default_rng(seed), np.random.default_rng(seed)
    drawn = sample_rows(np.array(rows, float), rng, **settings)
    assert drawn.tolist() == [sample_next([row], in_turn, **settings) for row in rows]
    assert rng.random() == in_turn.random()


def call(logits=((0.0, 1.0),), rng=None, **settings):
    return lambda: sample_next(logits, np.random.default_rng(0) if rng is None else rng, **settings)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (call(logits=[0.0, 1.0]), ValueError, r"logits must have shape \(n, V\), got \(2,\)"),
        (call(logits=np.ones((0, 3))), ValueError, r"at least one position and one token, got \(0, 3\)"),
        (call(logits=np.ones((2, 0))), ValueError, r"at least one position and one token, got \(2, 0\)"),
        (call(logits=[[0, np.nan]]), ValueError, "holds NaN"),
        (call(logits=[[0, np.inf]]), ValueError, r"holds \+inf"),
        (call(logits=[[0, 1], [-np.inf, -np.inf]]), ValueError, "no token to choose"),
        (call(logits=[["a", "b"]]), TypeError, "logits must hold real numbers"),
        (call(temperature=-1), ValueError, "temperature must be at least 0 and finite, got -1"),
        (call(temperature=np.nan), ValueError, "temperature must be at least 0 and finite, got nan"),
        (call(temperature=np.inf), ValueError, "temperature must be at least 0 and finite, got inf"),
        (call(temperature="hot"), TypeError, "temperature must be a number, got 'hot'"),
        (call(temperature=True), TypeError, "temperature must be a number, got True"),
        (call(top_k=0), ValueError, "top_k must be at least 1, got 0"),
        (call(top_k=2.0), TypeError, "top_k must be a whole number, got 2.0"),
        (call(top_p=0), ValueError, "top_p must be above 0 and at most 1, got 0"),
        (call(top_p=90), ValueError, "top_p must be above 0 and at most 1, got 90"),
        (call(top_p=[0.9]), TypeError, r"top_p must be a number, got \[0.9\]"),
        (call(rng=5), TypeError, r"rng must be a NumPy generator such as .*, got 5"),
    ],
)
def test_wrong_use_is_named_with_what_was_expected_and_what_came(call, error, words):
    with pytest.raises(error, match=words):
        call()

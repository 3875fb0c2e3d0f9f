"""Ids, embeddings and positions against plain loops, and what they say to bad input."""

import cmath
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import matrix

from helpers.embeddings import embed, rope, rope_attention, sinusoidal_positions, token_ids

VOCAB = {"<bos>": 0, "<unk>": 1, "i": 2, "love": 3, "apples": 4}


@given(st.lists(st.sampled_from(["i", "love", "apples", "Apples", "ap", "", "pears"])))
def test_token_ids_look_every_word_up_and_send_unknown_ones_to_unk(tokens):
    ids = token_ids(tokens, VOCAB)
    assert ids.dtype == np.int64 and ids.shape == (len(tokens),)
    for token, token_id in zip(tokens, ids, strict=True):
        assert token_id == (VOCAB[token] if token in VOCAB else 1)


@pytest.mark.parametrize(
    ("tokens", "vocab", "error", "words"),
    [
        ("i love", VOCAB, TypeError, "one string"),
        (["i", 3], VOCAB, TypeError, "3"),
        (["pears"], {"i": 0}, ValueError, "no '<unk>'"),
    ],
)
def test_token_ids_say_what_is_wrong(tokens, vocab, error, words):
    with pytest.raises(error, match=words):
        token_ids(tokens, vocab)


@given(st.data(), st.integers(1, 6), st.integers(1, 5))
def test_embed_gives_the_row_of_each_id_as_a_copy(data, V, d):
    E = data.draw(matrix(V, d))
    ids = data.draw(st.lists(st.integers(0, V - 1), max_size=6))
    before = E.copy()
    X = embed(ids, E)
    assert X.shape == (len(ids), d)
    for row, i in zip(X, ids, strict=True):
        assert list(row) == list(E[i])
    X += 1
    assert np.array_equal(E, before)


def test_embed_keeps_the_type_of_the_table():
    assert embed([0], np.eye(2, dtype=np.float32)).dtype == np.float32


@pytest.mark.parametrize(
    ("ids", "E", "error", "words"),
    [
        ([0, 3], np.eye(3), ValueError, r"0 … 2 .*got 3"),
        ([-1], np.eye(3), ValueError, "got -1"),
        ([0.0], np.eye(3), TypeError, "integers"),
        ([True], np.eye(3), TypeError, "bool"),
        ([[0]], np.eye(3), ValueError, r"\(n,\)"),
        ([0], np.arange(3), ValueError, r"E must have shape \(V, d\), got \(3,\)"),
        ([0], [[1, 2], [3]], ValueError, "E must have rows of equal length"),
        ([0], [["a"]], TypeError, "E must hold real numbers"),
    ],
)
def test_embed_says_what_is_wrong(ids, E, error, words):
    with pytest.raises(error, match=words):
        embed(ids, E)


@given(st.integers(0, 8), st.integers(0, 9), st.sampled_from([2.0, 100.0, 10000.0]))
def test_sinusoidal_positions_follow_the_formula_entry_by_entry(n, d, base):
    P = sinusoidal_positions(n, d, base)
    assert P.shape == (n, d)
    for p in range(n):
        for j in range(d):
            angle = p / base ** (2 * (j // 2) / d)
            expected = math.sin(angle) if j % 2 == 0 else math.cos(angle)
            assert math.isclose(P[p, j], expected, rel_tol=1e-12, abs_tol=1e-12)


def test_the_dot_product_of_two_positions_depends_on_their_distance_only():
    P = sinusoidal_positions(30, 8)
    D = P @ P.T
    for distance in range(30):
        diagonal = np.diagonal(D, distance)
        assert np.allclose(diagonal, diagonal[0])


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((-1, 4), ValueError),
        ((3, -2), ValueError),
        ((3.0, 4), TypeError),
        ((3, 4, 0), ValueError),
        ((True, 4), TypeError),
    ],
)
def test_sinusoidal_positions_say_what_is_wrong(arguments, error):
    with pytest.raises(error, match="must be"):
        sinusoidal_positions(*arguments)


@given(st.data(), st.integers(0, 5), st.integers(0, 4), st.sampled_from([2.0, 100.0, 10000.0]))
def test_rope_turns_each_pair_like_a_complex_number(data, n, half, base):
    x = data.draw(matrix(n, 2 * half))
    positions = data.draw(st.lists(st.integers(-50, 1000), min_size=n, max_size=n))
    before = x.copy()
    turned = rope(x, positions, base)
    assert turned.shape == x.shape and turned.dtype == x.dtype and np.array_equal(x, before)
    for row, p in enumerate(positions):
        for i in range(half):
            z = complex(x[row, 2 * i], x[row, 2 * i + 1]) * cmath.exp(1j * p * base ** (-2 * i / (2 * half)))
            assert np.allclose([z.real, z.imag], turned[row, 2 * i:2 * i + 2], rtol=1e-9, atol=1e-9)


def test_rope_turns_counter_clockwise():
    assert np.allclose(rope([[1, 0]], [math.pi / 2]), [[0, 1]])


def test_rope_keeps_lengths_and_sees_only_differences_of_positions():
    rng = np.random.default_rng(3)
    Q, K = rng.normal(size=(2, 2, 4, 6))
    turned = [rope(Q, np.arange(4) + shift) @ rope(K, np.arange(4) + shift).swapaxes(-1, -2)
              for shift in (0, 1000)]
    assert np.allclose(*turned)
    assert not np.allclose(turned[0], Q @ K.swapaxes(-1, -2))
    assert np.allclose(np.linalg.norm(rope(Q, np.arange(4)), axis=-1), np.linalg.norm(Q, axis=-1))


def test_rope_keeps_float32_and_is_right_far_out():
    x = np.random.default_rng(0).normal(size=(3, 8))
    narrow = rope(x.astype(np.float32), [100_000, 100_001, 100_002])
    assert narrow.dtype == np.float32
    assert np.allclose(narrow, rope(x, [100_000, 100_001, 100_002]), atol=1e-6)


def test_rope_attention_follows_the_loops():
    rng = np.random.default_rng(4)
    Q, K, V = rng.normal(size=(5, 6)), rng.normal(size=(5, 6)), rng.normal(size=(5, 3))
    positions = np.array([7, 3, 4, 9, 20])
    Z = rope_attention(Q, K, V, positions)
    for i in range(5):
        s = [sum((complex(*Q[i, m:m + 2]) * complex(*K[j, m:m + 2]).conjugate()
                  * cmath.exp(1j * (positions[i] - positions[j]) * 10000 ** (-m / 6))).real
                 for m in (0, 2, 4)) / math.sqrt(6) for j in range(5)]
        a = np.exp(s) / np.exp(s).sum()
        assert np.allclose(Z[i], a @ V)


@pytest.mark.parametrize(
    ("x", "positions", "base", "words"),
    [
        (np.ones((2, 3)), [0, 1], 10.0, r"even.*\(2, 3\)"),
        (np.ones((2, 4)), [0, 1, 2], 10.0, r"x and positions must agree in n: x \(2, 4\)"),
        (np.ones((2, 4)), [[0, 1]], 10.0, r"positions must have shape \(n,\)"),
        (np.ones((2, 4)), [0, 1], 0.0, "base must be positive"),
        (np.ones(4), [0], 10.0, "x must have shape"),
    ],
)
def test_rope_says_what_is_wrong(x, positions, base, words):
    with pytest.raises(ValueError, match=words):
        rope(x, positions, base)


def test_rope_attention_says_which_shapes_do_not_fit():
    with pytest.raises(ValueError, match=r"K and V must agree in n: K \(3, 4\) has 3, V \(2, 4\) has 2"):
        rope_attention(np.ones((3, 4)), np.ones((3, 4)), np.ones((2, 4)), [0, 1, 2])

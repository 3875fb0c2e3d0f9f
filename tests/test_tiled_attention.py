"""`attention` in tiles against the plain way and against PyTorch, its memory, its threads, its edges."""

import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import blas, tiles
from helpers.attention import (
    attend_at_once,
    attention,
    attention_weights,
    causal_mask,
    scaled_scores,
    softmax,
)
from helpers.kv_sharing import grouped_query_attention
from helpers.tiles import attend_in_tiles, attend_tile

TOLERANCE = {np.float16: 4e-3, np.float32: 2e-5, np.float64: 1e-12}


def plain(Q, K, V, causal):
    """One head by the functions of notebook 03, in float64."""
    S = scaled_scores(Q.astype(np.float64), K.astype(np.float64))
    A = attention_weights(S, causal_mask(*S.shape)) if causal else softmax(S)
    return A @ V.astype(np.float64)


def plain_heads(Q, K, V, causal):
    """The same for heads with their keys and values repeated."""
    K, V = (np.repeat(M, len(Q) // len(M), axis=0) for M in (K, V))
    return np.stack([plain(*head, causal) for head in zip(Q, K, V, strict=True)])


def random_heads(seed, n_q, n_k, g=1, group=1, d_k=8, d_v=5, dtype=np.float64, largest=1.0):
    rng = np.random.default_rng(seed)
    shapes = (g * group, n_q, d_k), (g, n_k, d_k), (g, n_k, d_v)
    return [(largest * rng.normal(size=shape)).clip(-largest, largest).astype(dtype) for shape in shapes]


@pytest.fixture(params=[(2, 6), (3, 7), (256, 256 * 512)], ids=["tiles of 2", "tiles of 3", "tiles of 256"])
def small_tiles(request, monkeypatch):
    """Tiles so small that even short inputs take many of them, some not full."""
    monkeypatch.setattr(tiles, "N_QUERIES", request.param[0])
    monkeypatch.setattr(tiles, "N_SCORES", request.param[1])


# Values


@settings(max_examples=60, deadline=None)
@given(st.data())
@pytest.mark.parametrize("way", [attend_at_once, attend_in_tiles, attention])
def test_every_way_equals_one_head_at_a_time(way, data):
    n_q, n_k = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 20))
    g, group = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    d_k, d_v = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9))
    causal, largest = data.draw(st.booleans()), data.draw(st.sampled_from([0.01, 1, 30, 1e4]))
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    inputs = random_heads(data.draw(st.integers(0, 99)), n_q, n_k, g, group, d_k, d_v, dtype, largest)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiles, "N_QUERIES", data.draw(st.integers(1, 8)))
        patch.setattr(tiles, "N_SCORES", data.draw(st.integers(8, 64)))
        Z = way(*inputs, causal)
    assert Z.dtype == dtype and Z.shape == (g * group, n_q, d_v)
    close = 1e-3 if (dtype, largest) == (np.float32, 30) else TOLERANCE[dtype]      # scores near a hundred
    if (dtype, largest) != (np.float32, 1e4):           # there only differences in float32 itself are left
        np.testing.assert_allclose(Z, plain_heads(*inputs, causal), rtol=0, atol=largest * close)
    np.testing.assert_allclose(Z, attend_at_once(*inputs, causal), rtol=0, atol=largest * 10 * close)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("n_q", "n_k"), [(1000, 1000), (700, 1500), (1500, 700), (3, 9000), (1, 40_000), (257, 129)]
)
def test_long_inputs_equal_one_head_at_a_time(n_q, n_k, causal):
    inputs = random_heads(0, n_q, n_k, g=2, group=2, dtype=np.float32)
    np.testing.assert_allclose(attention(*inputs, causal), plain_heads(*inputs, causal), rtol=0, atol=2e-5)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("n", [5, 300])
def test_the_type_stays_and_half_precision_is_computed_in_single(n, dtype):
    inputs = random_heads(0, n, n, dtype=dtype)
    before = [M.copy() for M in inputs]
    Z = attention(*inputs, causal=True)
    assert Z.dtype == dtype
    np.testing.assert_allclose(Z, plain_heads(*inputs, True), rtol=0, atol=TOLERANCE[dtype])
    for M, kept in zip(inputs, before, strict=True):
        np.testing.assert_array_equal(M, kept)
    in_single = attention(*(M.astype(np.float32) for M in inputs), causal=True)
    if dtype == np.float16:
        np.testing.assert_array_equal(Z, in_single.astype(np.float16))
        assert attention(inputs[0], *(M.astype(np.float32) for M in inputs[1:])).dtype == np.float32


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("n", [6, 300])
def test_values_of_ten_thousand_neither_overflow_nor_vanish(n, dtype):
    K = np.array([[1e4], [-1e4]] * (n // 2), dtype)
    V = np.array([[1e4, 1], [-1e4, 2]] * (n // 2), dtype)
    with np.errstate(over="raise", invalid="raise"):
        Z = attention(K, K, V)                          # each row reads the keys of its own sign alone
    np.testing.assert_allclose(Z, V, rtol=2e-3 if dtype == np.float16 else 1e-6)


@pytest.mark.parametrize("n", [40, 400])
def test_a_maximum_that_comes_late_or_early_counts_the_same(n):
    Q, K, V = random_heads(0, n, n)
    for order in (np.argsort(K[0] @ Q[0, 0]), np.argsort(-K[0] @ Q[0, 0])):
        Z = attention(5 * Q, 5 * K[:, order], V[:, order])
        np.testing.assert_allclose(Z, plain_heads(5 * Q, 5 * K, V, False), rtol=0, atol=1e-10)


def test_each_query_reads_up_to_its_own_position_and_no_further(small_tiles):
    Q, K, V = random_heads(0, 9, 13)
    Z = attend_in_tiles(Q, K, V, causal=True)
    for j in range(13):
        K_new, V_new = K.copy(), V.copy()
        K_new[:, j], V_new[:, j] = 3.0, 1e3
        changed = (attend_in_tiles(Q, K_new, V_new, causal=True) != Z).any(axis=(0, 2))
        assert changed.tolist() == [j <= i + 4 for i in range(9)]


def test_groups_are_neighbouring_heads_and_a_batch_is_kept_apart(small_tiles):
    rng = np.random.default_rng(0)
    Q, K, V = (rng.normal(size=shape) for shape in ((2, 6, 9, 4), (2, 3, 11, 4), (2, 3, 11, 5)))
    for way in (attention, lambda *inputs: tiled_batch(*inputs)):
        Z = way(Q, K, V, True)
        for b in range(2):
            np.testing.assert_allclose(Z[b], grouped_query_attention(Q[b], K[b], V[b], True), atol=1e-12)


def tiled_batch(Q, K, V, causal):
    flat = [M.reshape(-1, *M.shape[2:]) for M in (Q, K, V)]
    return attend_in_tiles(*flat, causal).reshape(*Q.shape[:-1], V.shape[-1])


def test_arrays_that_are_not_in_one_piece_give_the_same():
    n = 300
    inputs = random_heads(0, n, n, g=3, dtype=np.float32)
    expected = attention(*inputs, causal=True)
    looks = [
        lambda M: np.asfortranarray(M),
        lambda M: np.ascontiguousarray(M.transpose(1, 0, 2)).transpose(1, 0, 2),        # as split_heads gives
        lambda M: np.repeat(M, 2, axis=-1)[..., ::2],
        lambda M: np.ascontiguousarray(M[:, ::-1, ::-1])[:, ::-1, ::-1],
        lambda M: np.concatenate([M, M], axis=1)[:, :n],                                # as a cache gives
    ]
    for look in looks:
        given = [look(M) for M in inputs]
        assert not all(M.flags.c_contiguous for M in given)
        np.testing.assert_allclose(attention(*given, causal=True), expected, rtol=0, atol=1e-6)
        short = [look(M)[:, -9:] for M in inputs]
        np.testing.assert_allclose(attention(*short), plain_heads(*short, False), rtol=0, atol=2e-5)


def test_read_only_arrays_and_lists_will_do():
    inputs = random_heads(0, 300, 300)
    for M in inputs:
        M.flags.writeable = False
    assert attention(*inputs).shape == (1, 300, 5)
    assert attention([[1, 0]], [[1, 0]], [[7]]).tolist() == [[7]]


# Edges


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shapes", [
    ((2, 0, 4), (2, 0, 4), (2, 0, 3)), ((2, 5, 4), (2, 0, 4), (2, 0, 3)), ((2, 0, 4), (2, 5, 4), (2, 5, 3)),
    ((0, 5, 4), (0, 5, 4), (0, 5, 3)), ((0, 500, 4), (0, 500, 4), (0, 500, 3)), ((5, 4), (0, 4), (0, 3)),
    ((2, 5, 4), (2, 5, 4), (2, 5, 0)), ((0, 3, 300, 4), (0, 3, 300, 4), (0, 3, 300, 2)),
    ((2, 300, 4), (2, 300, 4), (2, 300, 0)),
])
def test_nothing_to_read_gives_zeros_of_the_right_shape(shapes, causal):
    Z = attention(*(np.ones(shape, np.float32) for shape in shapes), causal)
    assert Z.shape == (*shapes[0][:-1], shapes[2][-1]) and Z.dtype == np.float32
    assert shapes[1][-2] or not Z.any()


@pytest.mark.parametrize("n", [3, 300])
def test_scores_of_no_width_read_every_key_alike(n):
    Z = attention(np.zeros((n, 0)), np.zeros((n, 0)), np.arange(n)[:, None])
    np.testing.assert_allclose(Z, (n - 1) / 2)


@pytest.mark.parametrize(("n_q", "n_k"), [(5, 2), (700, 300), (300, 1), (600, 100)])
def test_queries_before_every_key_get_zeros_and_the_others_their_share(n_q, n_k):
    inputs = random_heads(0, n_q, n_k, g=2)
    with np.errstate(all="raise", under="ignore"):
        Z = attention(*inputs, causal=True)
    assert not Z[:, :n_q - n_k].any()
    np.testing.assert_allclose(Z, plain_heads(*inputs, True), rtol=0, atol=1e-12)
    np.testing.assert_allclose(Z[:, n_q - n_k], inputs[2][:, 0], atol=1e-12)        # the first key alone


def test_one_token_takes_its_own_value():
    V = np.array([[3.0, -1.0]])
    assert attention([[2.0]], [[5.0]], V, causal=True).tolist() == V.tolist()
    assert attend_tile(np.ones((1, 1)), np.ones((1, 1)), V, n_past=0).tolist() == V.tolist()


ONES = np.ones((2, 3))


@pytest.mark.parametrize(("inputs", "error", "words"), [
    ((ONES, np.ones((2, 4)), ONES), ValueError,
     r"Q and K must agree in d_k: Q \(2, 3\) has 3, K \(2, 4\) has 4"),
    ((ONES, ONES, np.ones((5, 3))), ValueError,
     r"K and V must agree in n_k: K \(2, 3\) has 2, V \(5, 3\) has 5"),
    ((np.ones((4, 2, 3)), np.ones((3, 2, 3)), np.ones((3, 2, 3))), ValueError,
     r"heads of K must divide those of Q: Q \(4, 2, 3\), K \(3, 2, 3\)"),
    ((np.ones((2, 2, 3)), np.ones((4, 2, 3)), np.ones((4, 2, 3))), ValueError, "must divide"),
    ((np.ones((2, 2, 3)), np.ones((0, 2, 3)), np.ones((0, 2, 3))), ValueError, "must divide"),
    ((np.ones((4, 2, 3)), np.ones((2, 2, 3)), np.ones((1, 2, 3))), ValueError,
     r"K \(2, 2, 3\), V \(1, 2, 3\)"),
    ((np.ones((2, 4, 2, 3)), np.ones((3, 4, 2, 3)), np.ones((3, 4, 2, 3))), ValueError, "the axes before"),
    ((np.ones((4, 2, 3)), ONES, ONES), ValueError, r"Q \(4, 2, 3\), K \(2, 3\)"),
    ((ONES[0], ONES, ONES), ValueError, r"Q must have shape \(…, n_q, d_k\), got \(3,\)"),
    ((ONES, ONES, [["a"], ["b"]]), TypeError, "V must hold real numbers"),
    ((ONES, 1j * ONES, ONES), TypeError, "K .* complex"),
])
def test_bad_input_is_named_with_what_was_expected_and_what_came(inputs, error, words):
    with pytest.raises(error, match=words):
        attention(*inputs)


# PyTorch


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_equal_to_scaled_dot_product_attention(data):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    n_q, n_k = data.draw(st.integers(1, 400)), data.draw(st.integers(1, 400))
    g, group = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    causal = data.draw(st.booleans())
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    Q, K, V = random_heads(data.draw(st.integers(0, 99)), n_q, n_k, g, group, 16, 7, dtype, 3.0)
    mask = torch.tensor(causal_mask(n_q, n_k)) if causal else None
    theirs = torch.nn.functional.scaled_dot_product_attention(
        *(torch.tensor(M)[None] for M in (Q, K, V)), attn_mask=mask, enable_gqa=True
    )[0].numpy()
    if causal:
        theirs[:, :max(n_q - n_k, 0)] = 0                # a row without keys may be NaN there
    np.testing.assert_allclose(attention(Q, K, V, causal), theirs, rtol=0, atol=10 * TOLERANCE[dtype])


# Memory


def extra_memory(n, causal):
    """The peak of what `attention` takes beside its inputs and its result."""
    inputs = random_heads(0, n, n, g=2, d_k=16, d_v=16, dtype=np.float32)
    attention(*inputs, causal)
    tracemalloc.start()
    try:
        Z = attention(*inputs, causal)
        return tracemalloc.get_traced_memory()[1] - Z.nbytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("causal", [False, True])
def test_memory_does_not_grow_with_the_square_of_the_length(causal, monkeypatch):
    monkeypatch.setattr(blas, "openblas", lambda: None)  # one thread: each has a tile of its own
    once, twice, four_times = (extra_memory(n, causal) for n in (1500, 3000, 6000))
    assert twice < 1.3 * once and four_times < 1.6 * once
    assert four_times < 6000**2 * 4 / 40                 # the pattern of one head, in float32


def test_memory_of_the_plain_way_would_be_found():
    Q, K, V = random_heads(0, 1500, 1500, dtype=np.float32)
    tracemalloc.start()
    attend_at_once(Q, K, V)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak >= 1500**2 * 4


# Threads


def test_many_threads_get_the_right_answer_and_give_the_products_their_threads_back():
    functions = blas.openblas()
    before = functions[0]() if functions else None
    jobs = [random_heads(seed, n, n, g=2) for seed, n in enumerate([20, 300, 150, 500] * 4)]
    expected = [plain_heads(*job, seed % 2 == 0) for seed, job in enumerate(jobs)]
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda i: attention(*jobs[i], i % 2 == 0), range(len(jobs))))
    for answer, right in zip(answers, expected, strict=True):
        np.testing.assert_allclose(answer, right, rtol=0, atol=1e-12)
    assert functions is None or functions[0]() == before
    assert blas.one_thread_a_product.inside == 0


@pytest.mark.skipif(blas.openblas() is None, reason="this NumPy does not multiply by OpenBLAS's own threads")
def test_a_product_has_one_thread_inside_and_all_of_them_after():
    get, set_threads = blas.openblas()
    before = get()
    try:
        set_threads(2)
        with blas.one_thread_a_product as n:
            assert (n, get()) == (2, 1)
            with blas.one_thread_a_product as inner:
                assert (inner, get()) == (2, 1)
            assert get() == 1
        assert get() == 2
        with pytest.raises(ZeroDivisionError), blas.one_thread_a_product:
            raise ZeroDivisionError
        assert get() == 2
    finally:
        set_threads(before)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems bring NumPy with other libraries")
def test_openblas_is_found_in_the_numpy_that_pip_installs():
    name = np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"]
    assert "openblas" not in name or blas.openblas()


def test_without_openblas_one_thread_does_it_all(monkeypatch):
    monkeypatch.setattr(blas, "openblas", lambda: None)
    inputs = random_heads(0, 600, 600, g=2)
    with blas.one_thread_a_product as n:
        assert n == 1
    np.testing.assert_allclose(attention(*inputs, True), plain_heads(*inputs, True), rtol=0, atol=1e-12)


def test_what_fails_in_a_thread_is_raised_and_the_rest_is_left(monkeypatch):
    calls = []

    def fail(*_):
        calls.append(1)
        raise MemoryError("no room")

    monkeypatch.setattr(tiles, "attend_tile", fail)
    with pytest.raises(MemoryError, match="no room"):
        attention(*random_heads(0, 20_000, 300))
    assert len(calls) <= os.cpu_count()
    assert blas.one_thread_a_product.inside == 0


@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C is sent as a signal")
def test_ctrl_c_stops_a_long_one_soon(monkeypatch):
    def slow(Q, K, V, n_past):
        time.sleep(0.05)
        return np.zeros((len(Q), V.shape[-1]))

    monkeypatch.setattr(tiles, "attend_tile", slow)
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        attention(*random_heads(0, 256 * 1000, 1))       # 1000 tiles
    assert time.monotonic() - begun < 10


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("n_threads", ["1", "2", "5"])
def test_it_works_in_a_fork_and_with_any_number_of_threads(n_threads):
    program = """
import os
import numpy as np
from helpers.attention import attend_at_once, attention
rng = np.random.default_rng(0)
Q, K, V = rng.normal(size=(3, 3, 600, 8))
right = attend_at_once(Q, K, V, True)
assert np.allclose(attention(Q, K, V, True), right)
child = os.fork()
right_here = np.allclose(attention(Q, K, V, True), right)
if child == 0:
    os._exit(0 if right_here else 1)
assert right_here and os.waitpid(child, 0)[1] == 0
"""
    env = dict(os.environ, OPENBLAS_NUM_THREADS=n_threads)
    run = subprocess.run([sys.executable, "-c", program], env=env, timeout=60, capture_output=True,
                         encoding="utf-8")
    assert run.returncode == 0, run.stderr

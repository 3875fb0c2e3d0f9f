"""What becomes too large on the way: float16 is added up in float32, and what no type holds is said.

A score that overflows to -inf would else be taken for one that is masked, and the answer would be zeros.
"""

import warnings

import numpy as np
import pytest

from helpers.attention import (
    attention,
    attention_weights,
    causal_mask,
    last_query_attention,
    project_qkv,
    scaled_scores,
    scores,
    single_head,
    softmax,
)
from helpers.cost import head_width, projection_weights
from helpers.embeddings import rope, rope_attention, sinusoidal_positions
from helpers.kv_cache import KVCache, cache_bytes, generate_with_cache, kv_cache_step
from helpers.kv_sharing import attend_absorbed, attend_restored, grouped_query_attention, latent_attention
from helpers.low_rank import low_rank_factors, per_head_updates, shared_qkv_basis
from helpers.multi_head import layer_norm, multi_head, pre_norm_residual
from helpers.smollm2.model import rms_norm, swiglu

EYE = np.eye(8)
# name -> a function of queries, keys and values (n, 8)
WAYS = {
    "scaled_scores": lambda Q, K, V: scaled_scores(Q, K),
    "attention": lambda Q, K, V: attention(Q[None], K[None], V[None])[0],
    "grouped_query_attention": lambda Q, K, V: grouped_query_attention(Q[None], K[None], V[None])[0],
    "last_query_attention": lambda Q, K, V: last_query_attention(Q[-1], K, V),
    "rope_attention": lambda Q, K, V: rope_attention(Q, K, V, np.zeros(len(Q))),
    "attend_restored": lambda Q, K, V: attend_restored(Q[None], K, EYE.astype(K.dtype), EYE.astype(K.dtype)),
    "attend_absorbed": lambda Q, K, V: attend_absorbed(Q[None], K, EYE.astype(K.dtype), EYE.astype(K.dtype)),
}
# name -> a function of X (n, 8) and the identity, in which queries are X and keys -X
FROM_X = {
    "single_head": lambda X, one: single_head(X, one, -one, one),
    "multi_head": lambda X, one: multi_head(X, one, -one, one, one, 1),
    "latent_attention": lambda X, one: latent_attention(X, one, one, -one, one, 1)[0],
    "latent_attention, absorbed": lambda X, one: latent_attention(X, one, one, -one, one, 1, False, True)[0],
}


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("name", WAYS)
def test_half_precision_is_added_up_in_single(name):
    Q, K, V = np.random.default_rng(7).uniform(-40, 40, (3, 9, 8)).astype(np.float16)
    result = WAYS[name](Q, K, V)
    assert result.dtype == np.float16
    exact = WAYS[name](*(M.astype(np.float64) for M in (Q, K, V)))
    np.testing.assert_allclose(result, exact, rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("dtype, size", [(np.float16, 6e4), (np.float32, 1e30), (np.float64, 1e200)])
@pytest.mark.parametrize("name", WAYS)
def test_scores_that_are_too_large_are_refused_and_not_taken_for_masked(name, dtype, size, sign):
    Q = np.full((2, 8), size, dtype)
    if dtype == np.float16 and name not in ("scaled_scores", "attend_restored", "attend_absorbed"):
        Z = WAYS[name](Q, sign * Q, Q / size)               # all scores alike, and they fit into float32
        np.testing.assert_allclose(Z, np.ones_like(Z), rtol=1e-3)
        return
    with pytest.raises(ValueError, match="must fit into float"):
        WAYS[name](Q, sign * Q, np.ones_like(Q))


@pytest.mark.parametrize("dtype, size", [(np.float16, 300), (np.float32, 1e30), (np.float64, 1e200)])
@pytest.mark.parametrize("name", FROM_X)
def test_so_they_are_on_the_way_from_tokens(name, dtype, size):
    X, identity = np.full((2, 8), size, dtype), EYE.astype(dtype)
    with pytest.raises(ValueError, match="must fit into float"):
        FROM_X[name](X, identity)


def test_long_texts_say_it_too():
    Q = np.full((300, 2), 1e200)
    for K in (Q, -Q):
        with pytest.raises(ValueError, match="the scores of Q and K must fit into float64, got -?inf"):
            attention(Q, K, np.ones((300, 2)))
    far = np.full((300, 2), 1e153)                          # near the end of the type, not over it
    np.testing.assert_allclose(attention(far, far, np.ones((300, 2))), 1)


def test_raw_scores_projections_and_what_a_cache_keeps():
    half = np.full((1, 8), 300, np.float16)
    with pytest.raises(ValueError, match="the scores of Q and K must fit into float16"):
        scores(half, half)
    with pytest.raises(ValueError, match="X W_k must fit into float16"):
        project_qkv(half, EYE.astype(np.float16), np.full((8, 8), 300, np.float16), EYE.astype(np.float16))
    with pytest.raises(ValueError, match="V must fit into float32, got inf"):
        KVCache(1, 3, 1).append([[[1.0]]], [[[1e300]]])
    with pytest.raises(ValueError, match="the angles of base must fit"):
        sinusoidal_positions(3, 64, base=1e-320)
    with pytest.raises(ValueError, match="the angles of positions and base must fit"):
        rope(np.ones((1, 64)), [1e20], base=1e-300)


@pytest.mark.parametrize("dtype, size, rtol", [(np.float16, 300, 2e-3), (np.float32, 1e18, 1e-6)])
def test_norms_of_large_rows(dtype, size, rtol):
    row = np.array([[size, -size, size / 64, -size / 64]])
    one = np.ones(4, dtype)
    exact = (row - row.mean()) / np.sqrt(np.mean((row - row.mean()) ** 2))
    np.testing.assert_allclose(layer_norm(row.astype(dtype), one, 0 * one), exact, rtol=rtol)
    exact = row / np.sqrt(np.mean(row**2))
    found = rms_norm(row.astype(dtype), one, 1e-5)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, exact, rtol=rtol)


@pytest.mark.parametrize("norm", [lambda x, eps=1e-5: layer_norm(x, [1, 1], [0, 0], eps),
                                  lambda x, eps=1e-5: rms_norm(x, [1, 1], eps)])
def test_norms_say_what_they_cannot_do(norm):
    for x in (np.array([[1e20, -1e20]], np.float32), np.array([[1e200, -1e200]])):
        with pytest.raises(ValueError, match="of x must fit into float"):
            norm(x)
    with pytest.raises(ValueError, match="eps must be above 0"):
        norm([[0.0, 0.0]], eps=0)
    assert np.isfinite(norm(np.array([[1, 1]], np.float16), eps=1e-8)).all()


def test_values_that_differ_by_more_than_a_number_holds_make_no_warning():
    np.testing.assert_array_equal(softmax([1e308, -1e308]), [1, 0])
    for spoilt in (np.inf, np.nan):                         # nor does what is refused
        with pytest.raises(ValueError, match="K must hold finite numbers"):
            attention(np.zeros((2, 2)), np.full((2, 2), spoilt), np.eye(2))
        with pytest.raises(ValueError, match="V must hold finite numbers"):
            grouped_query_attention(*np.zeros((2, 1, 2, 2)), np.full((1, 2, 2), spoilt))


def test_stacked_axes_that_cannot_be_brought_together_are_named():
    with pytest.raises(ValueError, match="Q and K must agree in the axes before the last 2"):
        scores(np.ones((2, 3, 4)), np.ones((3, 3, 4)))
    with pytest.raises(ValueError, match="S and mask must agree"):
        attention_weights(np.ones((2, 2, 3)), np.ones((5, 2, 3), bool))
    with pytest.raises(ValueError, match="V must agree in the axes before the last 2"):
        rope_attention(np.ones((2, 3, 4)), np.ones((2, 3, 4)), np.ones((5, 3, 4)), [0, 1, 2])


@pytest.mark.parametrize("given", [[[1, None]], [["a", "b"]], [[1.0], [1.0, 2.0]], [[1j, 1]], [[np.nan, 1]]])
def test_what_a_sublayer_gives_is_looked_at(given):
    with pytest.raises((TypeError, ValueError), match="what sublayer gives must"):
        pre_norm_residual([[1.0, 2.0]], lambda x: given, [1, 1], [0, 0])


@pytest.mark.parametrize("n_heads", [np.int8(3), np.uint8(3), np.int64(3)])
def test_small_types_of_whole_numbers_do(n_heads):
    assert multi_head(np.ones((2, 300)), *[np.eye(300)] * 4, n_heads).shape == (2, 300)


@pytest.mark.parametrize("dtype", [">f2", ">f4", ">f8", np.longdouble])
def test_other_types_of_numbers_do(dtype):
    np.testing.assert_allclose(softmax(np.zeros((2, 4), dtype)), np.full((2, 4), 0.25))
    assert softmax(np.zeros(2, dtype)).dtype.isnative


HALF, SINGLE, MOST = np.float16, np.float32, np.finfo(float).max
NONE, ONE, ID = np.zeros((1, 2, 1)), np.ones((2, 1)), np.eye(2)
PLAIN_LAYER = {"W_q": [[0.0]], "W_k": [[0.0]], "W_v": [[1.0]], "W_o": [[1.0]]}


def model(E, P, *layers):
    return {"E": [[E]], "P": [[P]] * 3, "layers": layers}


# What is named, a function, and finite numbers for which no type holds what it gives.
TOO_LARGE = [
    ("x turned", rope, np.full((1, 2), HALF(6e4)), [0.7]),
    ("x turned", rope, np.full((1, 2), SINGLE(3e38)), [0.7]),
    ("x turned", rope, np.full((1, 2), 1.7e308), [0.7]),
    ("the norm of x", layer_norm, [[1, 2]], [1e308] * 2, [1.7e308] * 2),
    ("the norm of x", layer_norm, HALF([[1, 2]]), HALF([6e4] * 2), HALF([6e4] * 2)),
    ("the norm of x", rms_norm, [[1, 2]], [1.7e308] * 2, 1e-5),
    ("the norm of x", rms_norm, HALF([[1, 2]]), HALF([6e4] * 2), 1e-5),
    ("eps", layer_norm, SINGLE([[1, 2]]), SINGLE([1, 1]), SINGLE([0, 0]), 1e300),
    ("eps", rms_norm, SINGLE([[1, 2]]), SINGLE([1, 1]), 1e300),
    ("x plus what sublayer gives", pre_norm_residual, HALF([[6e4, 5e4]]), lambda x: 0 * x + HALF(6e4),
     HALF([1, 1]), HALF([0, 0])),
    ("what the MLP gives", swiglu, [[1e200]], [[1e200, 1e200]], [[1.0]]),
    ("what the MLP gives", swiglu, [[1e100]], [[1e100, 1e100]], [[1e100]]),
    ("what the MLP gives", swiglu, HALF([[200]]), HALF([[200, 200]]), HALF([[200]])),
    ("A C W_up_v", attend_absorbed, NONE, np.full((3, 2), 1e200), ONE, [[1e200], [1e200]]),
    ("A C W_up_v", attend_absorbed, NONE, np.full((3, 2), 1e200), ONE, [[1e200], [-1e200]]),
    ("the singular values of W", low_rank_factors, np.full((2, 2), 1e308), 1),
    ("the singular values of W", low_rank_factors, np.full((2, 2), SINGLE(3e38)), 1),
    (r"the singular values of \[W_q W_k W_v\]", shared_qkv_basis, *np.full((3, 2, 2), 1e308), 1),
    ("H W_o", per_head_updates, np.full((2, 1, 1), 1e200), np.full((2, 1), 1e200)),
    ("H W_o", per_head_updates, np.full((2, 1, 1), HALF(1e4)), np.full((2, 1), HALF(1e4))),
    ("the sum of the updates", per_head_updates, np.full((2, 1, 1), HALF(4e4)), np.ones((2, 1), HALF)),
    ("x W_q", kv_cache_step, [1e300], [[1e300]], [[1e300]], [[1.0]], None),
    ("x W_q", kv_cache_step, HALF([1e4]), HALF([[1e4]]), HALF([[1e4]]), HALF([[1e4]]), None),
    ("the sum of E and P", generate_with_cache, [0], 1, model(1e308, 1e308)),
    (r"x E\.T", generate_with_cache, [0], 1, model(1e200, 1e200)),
    ("what leaves a layer", generate_with_cache, [0], 1, model(1e308, 0.0, PLAIN_LAYER)),
]


@pytest.mark.parametrize(("name", "function", "arguments"),
                         [(name, function, given) for name, function, *given in TOO_LARGE])
def test_an_answer_that_no_type_holds_is_refused_by_name(name, function, arguments):
    with pytest.raises(ValueError, match=f"^{name}.* must fit into float"):
        function(*arguments)


@pytest.mark.parametrize("way", [lambda q, K, V: last_query_attention(q[0], K, V), attention])
def test_the_largest_values_of_all_come_back_or_are_refused(way):
    for n in range(1, 60):                                  # rounding decides
        try:
            found = way(np.zeros((1, 2)), np.zeros((n, 2)), np.full((n, 1), MOST))
        except ValueError as err:
            assert str(err).startswith("the weighted sum of V must fit into float64")
        else:
            np.testing.assert_allclose(found, MOST)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [SINGLE, np.float64])
def test_long_texts_of_very_large_values_are_read_in_tiles_all_the_same(dtype, causal):
    Q, K, V = np.random.default_rng(3).normal(size=(3, 300, 4)).astype(dtype)
    large = dtype(np.finfo(dtype).max / 16)                 # 300 of them are more than the type holds
    V /= np.abs(V).max()
    found = attention(Q, K, large * V, causal) / large
    np.testing.assert_allclose(found, attention(Q, K, V, causal), rtol=1e-4, atol=1e-6)


def test_no_array_is_begun_that_has_room_nowhere():
    for call, sizes in ((lambda: causal_mask(200_000), "n_q · n_k"), (lambda: causal_mask(1, 2**31), "n_k"),
                        (lambda: sinusoidal_positions(2**20, 2**11), "n · d"),
                        (lambda: KVCache(1, 2**30, 64), "n_kv_heads · n_max · d_k"),
                        (lambda: KVCache(1, 2**24, 1, 2**10), "n_kv_heads · n_max · d_v")):
        with pytest.raises(ValueError, match=f"^{sizes} must be at most 1,073,741,824"):
            call()


def test_longer_types_are_refused_where_their_numbers_do_not_fit_and_infinity_stays():
    if np.finfo(np.longdouble).max > MOST:
        for far in ("1e4000", "-1e4000"):
            with pytest.raises(ValueError, match="z must fit into float64"):
                softmax(np.array([1, np.longdouble(far)]))
    np.testing.assert_array_equal(softmax(np.array([1, -np.inf], np.longdouble)), [1, 0])


@pytest.mark.parametrize("masked", [[np.ma.masked_array([1.0, 2.0], [0, 1])], [np.ma.masked, 1.0],
                                    (np.ma.masked_array([1.0], [1]),)])
def test_masked_rows_in_a_list_are_refused_too(masked):
    with pytest.raises(TypeError, match="z must be an array without a mask of its own"):
        softmax(masked)


def test_heads_of_no_width_and_no_heads_give_nothing():
    for H, W_o in ((np.zeros((0, 2, 3)), np.zeros((0, 4))), (np.zeros((2, 2, 0)), np.zeros((0, 4)))):
        updates, total = per_head_updates(H, W_o)
        assert updates.shape == (len(H), 2, 4) and total.shape == (2, 4) and not total.any()


@pytest.mark.parametrize("call", [
    lambda n: KVCache(1, 2, 2).need_room(n),
    lambda n: KVCache(1, 2, 2).append(np.ones((1, 1, 2)), np.ones((1, 1, 2)), n),
    lambda n: low_rank_factors(ID, n), lambda n: multi_head(ID, ID, ID, ID, ID, n),
    lambda n: generate_with_cache([n], 1, dict(E=ID, P=ID, layers=[])),
    lambda n: generate_with_cache([0], n, dict(E=ID, P=ID, layers=[])),
    lambda n: cache_bytes(1, 3, n, 2, 2), lambda n: head_width(3, n), lambda n: projection_weights(6, 3, n)])
def test_numbers_longer_than_python_writes_out_are_refused_with_a_sentence_of_ours(call):
    for n in (10**400, 10**5000):
        with pytest.raises(ValueError) as err:
            call(n)
        assert "Exceeds" not in str(err.value) and len(str(err.value)) < 250

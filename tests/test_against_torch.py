"""The maths against PyTorch, where it is installed."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import few, makers, qkv, width

from helpers.attention import attention, attention_weights, causal_mask, scaled_scores, single_head, softmax
from helpers.cost import layer_flops
from helpers.kv_sharing import grouped_query_attention, latent_attention
from helpers.multi_head import layer_norm, multi_head

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


@given(qkv(largest=30.0))
def test_one_head_equals_scaled_dot_product_attention(inputs):
    Q, K, V = inputs
    mask = causal_mask(len(Q), len(K))
    Z = attention_weights(scaled_scores(Q, K), mask) @ V
    theirs = torch.nn.functional.scaled_dot_product_attention(
        *(torch.tensor(M)[None] for M in inputs), attn_mask=torch.tensor(mask)
    )
    np.testing.assert_allclose(Z, theirs[0].numpy(), rtol=1e-7, atol=1e-7)


def theirs(*arrays):
    """Their copies, in one piece and to be written to."""
    return [torch.tensor(np.ascontiguousarray(M)) for M in arrays]


def near(ours, other, make, score, value):
    """An error e in the scores changes each weight by a factor of exp(2e) at most; both sides round."""
    eps, other = np.finfo(make.dtype).eps, other.numpy()
    assert ours.dtype == other.dtype == make.dtype and np.isfinite(ours).all()
    rounding = value * (min(2.0, 2 * math.expm1(min(24 * eps * score, 1.0))) + 24 * eps)
    np.testing.assert_allclose(ours.astype(float), other.astype(float), rtol=0, atol=rounding + 1e-300)


def largest(M):
    return float(abs(M).max(initial=0))


@given(makers(), few, few, st.sampled_from([(1, 1), (2, 1), (4, 2), (3, 3)]), width, st.booleans())
def test_heads_of_every_kind_equal_scaled_dot_product_attention(make, n_q, extra, heads, d, causal):
    (h, g), n_k = heads, n_q + extra
    Q, K, V = make(2, h, n_q, d), make(2, g, n_k, d), make(2, g, n_k, 3)
    mask = torch.tensor(causal_mask(n_q, n_k)) if causal else None
    q, k, v = theirs(Q, K, V)
    Z = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
    score, value = d * largest(Q) * largest(K), largest(V)
    if score < 6e4 or make.dtype != np.float16:             # they add up in half precision, which ends there
        near(attention(Q, K, V, causal), Z, make, score, value)
        near(grouped_query_attention(Q[0], K[0], V[0], causal), Z[0], make, score, value)


@given(makers(), st.integers(1, 4), st.integers(1, 4), width, st.data())
def test_any_mask_equals_theirs(make, n_q, n_k, d, data):
    Q, K, V = make(n_q, d), make(n_k, d), make(n_k, 2)
    bits = data.draw(st.lists(st.booleans(), min_size=n_q * n_k, max_size=n_q * n_k))
    mask = np.array(bits).reshape(n_q, n_k)
    mask[:, data.draw(st.integers(0, n_k - 1))] = True      # theirs makes NaN of a row with nothing to read
    score = d * largest(Q) * largest(K)
    if score < 6e4 or make.dtype != np.float16:
        Z = torch.nn.functional.scaled_dot_product_attention(*theirs(Q, K, V), attn_mask=torch.tensor(mask))
        near(attention_weights(scaled_scores(Q, K), mask) @ V, Z, make, score, largest(V))


@given(makers(dtypes=(np.float32, np.float64)), st.integers(1, 5), st.integers(1, 3), st.integers(1, 3),
       st.booleans())
def test_layers_equal_multi_head_attention(make, n, h, d_k, causal):
    d = h * d_k
    X, *weights = make(n, d), *(make(d, d, most=1.0) for _ in range(4))
    x, W_q, W_k, W_v, W_o = theirs(X, *weights)
    mask = torch.tensor(~causal_mask(n)) if causal else None
    layer = torch.nn.MultiheadAttention(d, h, bias=False, batch_first=True, dtype=x.dtype)
    with torch.no_grad():                                   # PyTorch multiplies by the transpose of each
        layer.in_proj_weight.copy_(torch.cat([W_q.T, W_k.T, W_v.T]))
        layer.out_proj.weight.copy_(W_o.T)
        Z, _ = layer(x[None], x[None], x[None], attn_mask=mask)
    near(multi_head(X, *weights, h, causal), Z[0], make, d_k * (d * largest(X))**2, d**2 * largest(X))


@given(makers(), few, width)
def test_softmax_of_every_type_equals_theirs(make, n, m):
    z = make(n, m)
    score = 0 if make.dtype == np.float16 else largest(z)   # half precision is computed in single
    near(softmax(z), torch.softmax(theirs(z)[0], -1), make, score, 1.0)


@given(makers(dtypes=(np.float32, np.float64)), few, width)
def test_layer_norm_of_every_kind_equals_theirs(make, n, d):
    x, gamma, beta = make(n, d), make(d, most=1.0), make(d, most=1.0)
    y = torch.nn.functional.layer_norm(theirs(x)[0], (d,), *theirs(gamma, beta))
    near(layer_norm(x, gamma, beta), y, make, 0, 1 + largest(x) / math.sqrt(1e-5))


@pytest.mark.parametrize("causal", [False, True])
def test_many_heads_equal_multi_head_attention(causal):
    rng = np.random.default_rng(0)
    n, d, h = 7, 12, 3
    X, (W_q, W_k, W_v, W_o) = rng.normal(size=(n, d)), rng.normal(size=(4, d, d))
    layer = torch.nn.MultiheadAttention(d, h, bias=False, batch_first=True, dtype=torch.float64)
    with torch.no_grad():  # PyTorch multiplies by the transpose of its weights
        layer.in_proj_weight.copy_(torch.tensor(np.concatenate([W_q.T, W_k.T, W_v.T])))
        layer.out_proj.weight.copy_(torch.tensor(W_o.T))
        x = torch.tensor(X)[None]
        theirs, _ = layer(x, x, x, attn_mask=torch.tensor(~causal_mask(n)) if causal else None)
    np.testing.assert_allclose(
        multi_head(X, W_q, W_k, W_v, W_o, h, causal), theirs[0].numpy(), rtol=1e-9, atol=1e-9
    )


def test_softmax_and_layer_norm_equal_theirs():
    rng = np.random.default_rng(0)
    x, gamma, beta = 1e4 * rng.normal(size=(5, 8)), rng.normal(size=8), rng.normal(size=8)
    np.testing.assert_allclose(softmax(x), torch.softmax(torch.tensor(x), -1).numpy(), atol=1e-12)
    theirs = torch.nn.functional.layer_norm(torch.tensor(x), (8,), *map(torch.tensor, (gamma, beta)))
    np.testing.assert_allclose(layer_norm(x, gamma, beta), theirs.numpy(), rtol=1e-9, atol=1e-9)


def test_single_head_equals_theirs_in_float32():
    rng = np.random.default_rng(0)
    X, *W = (rng.normal(size=s).astype(np.float32) for s in ((9, 6), (6, 4), (6, 4), (6, 5)))
    q, k, v = (torch.tensor(X @ w)[None] for w in W)
    theirs = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)[0].numpy()
    np.testing.assert_allclose(single_head(X, *W, causal=True), theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_grouped_heads_equal_theirs(causal):
    rng = np.random.default_rng(0)
    Q, K, V = (rng.normal(size=shape) for shape in ((6, 5, 4), (2, 5, 4), (2, 5, 3)))
    theirs = torch.nn.functional.scaled_dot_product_attention(
        *(torch.tensor(M)[None] for M in (Q, K, V)), is_causal=causal, enable_gqa=True
    )
    np.testing.assert_allclose(grouped_query_attention(Q, K, V, causal), theirs[0].numpy(), rtol=1e-9)


@pytest.mark.parametrize("absorbed", [False, True])
def test_latent_heads_equal_theirs(absorbed):
    rng = np.random.default_rng(0)
    shapes = (7, 5), (5, 3 * 4), (5, 2), (2, 3 * 4), (2, 3 * 6)
    X, W_q, W_down, W_up_k, W_up_v = weights = [rng.normal(size=shape) for shape in shapes]
    q, k, v = (
        torch.tensor(M).unflatten(1, (3, -1)).transpose(0, 1)
        for M in (X @ W_q, X @ W_down @ W_up_k, X @ W_down @ W_up_v)
    )
    theirs = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None])[0]
    Z, _ = latent_attention(*weights, 3, absorbed=absorbed)
    np.testing.assert_allclose(Z, theirs.transpose(0, 1).flatten(1).numpy(), rtol=1e-9)


def test_counted_work_equals_their_counter():
    flop_counter = pytest.importorskip("torch.utils.flop_counter")
    n, n_past, h, g, d_head, d_ff = 7, 4, 6, 2, 5, 11
    d_model = h * d_head
    x, past, inner = torch.ones(n, d_model), torch.ones(g, n_past, d_head), torch.ones(n, d_ff)
    with flop_counter.FlopCounterMode(display=False) as counter:
        q, k, v = (
            (x @ torch.ones(d_model, heads * d_head)).unflatten(1, (heads, d_head)).transpose(0, 1)
            for heads in (h, g, g)
        )
        k, v = (torch.cat([past, new], 1).repeat_interleave(h // g, 0) for new in (k, v))
        z = torch.softmax(q @ k.transpose(1, 2), -1) @ v
        z.transpose(0, 1).flatten(1) @ torch.ones(d_model, d_model)
        (x @ torch.ones(d_model, d_ff) * inner) @ torch.ones(d_ff, d_model)
    assert counter.get_total_flops() == sum(layer_flops(n, d_model, h, g, d_ff, n_past=n_past).values())

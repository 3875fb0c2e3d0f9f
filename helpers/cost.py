"""What a layer of attention costs, counted (notebook 09).

Read `projection_weights` and `mlp_weights`, whose work grows with n, and `pairs`, which grow with n²; then
what they add up to, `attention_flops` and `layer_flops`, and where the one overtakes the other, `crossover`.
A product (m, k) @ (k, n) takes m·k·n multiply-adds, each counted as 2 FLOPs; softmax, norms and residuals are
not counted. Keys and values take `helpers.kv_cache.cache_bytes`; `activation_bytes` adds the arrays beside
them. All counts are exact Python ints, for NumPy integers too.
"""

from helpers.arrays import came, count, flag
from helpers.kv_cache import cache_bytes


def head_width(d_model, n_heads):
    """d_model / n_heads, the width of each head's queries, keys and values; ValueError when not whole."""
    d_model, n_heads = count("d_model", d_model, 1), count("n_heads", n_heads, 1)
    if d_model % n_heads:
        raise ValueError(f"n_heads must divide d_model, got {came(n_heads)} and {came(d_model)}")
    return d_model // n_heads


def projection_weights(d_model, n_heads, n_kv_heads=None):
    """How many numbers W_q, W_k, W_v and W_o hold; n_kv_heads defaults to n_heads.

    A token passes through each of them once, so n tokens take 2·n FLOPs for each.
    Raises ValueError when n_heads does not divide d_model, or n_kv_heads not n_heads.
    """
    d_head = head_width(d_model, n_heads)
    n_kv_heads = n_heads if n_kv_heads is None else count("n_kv_heads", n_kv_heads, 1)
    if n_heads % n_kv_heads:
        raise ValueError(f"n_kv_heads must divide n_heads, got {came(n_kv_heads)} and {came(n_heads)}")
    return 2 * int(d_model) ** 2 + 2 * int(d_model) * int(n_kv_heads) * d_head      # W_q, W_o; W_k, W_v


def mlp_weights(d_model, d_ff=None, gated=False):
    """How many numbers the MLP's matrices hold: up and down, and a third where it is gated.

    d_ff : its inner width, 4·d_model unless given; 0 for a layer without MLP.  Shazeer 2020 (gated).
    """
    d_model = count("d_model", d_model, 1)
    d_ff = 4 * d_model if d_ff is None else count("d_ff", d_ff)
    return (3 if flag("gated", gated) else 2) * d_model * d_ff


def pairs(n, n_past=0, causal=False):
    """How many pairs of query and key there are, for n queries at the end of n_past + n keys.

    causal : only those that may be read, about half where n_past is 0. A plain matrix product computes all of
    them and masks afterwards; code that works in tiles can leave most of the others out.
    """
    n, n_past = count("n", n), count("n_past", n_past)
    return n * n_past + (n * (n + 1) // 2 if flag("causal", causal) else n * n)


def attention_flops(n, d_model, n_heads):
    """FLOPs of one layer of attention over n tokens, d_k = d_v = d_model / h, nothing masked.

    8·n·d_model² for the four projections, 4·n²·d_model for scores and weighted sum. The number of heads does
    not enter: h heads of width d_model / h do the work of one head of width d_model.
    Returns an int.  Raises ValueError when n_heads does not divide d_model.  Vaswani et al. 2017, table 1.
    """
    return sum(layer_flops(n, d_model, n_heads, d_ff=0).values())


def layer_flops(n, d_model, n_heads, n_kv_heads=None, d_ff=None, gated=False, n_past=0, causal=False):
    """FLOPs of one layer, part by part, for n new tokens after n_past whose keys and values are cached.

    n_past = 0 is prefill (or training's way forward), n = 1 a step of decoding. d_ff defaults to 4·d_model, 0
    leaves the MLP out; causal counts the pairs that may be read, see `pairs`.  Kaplan et al. 2020, §2.1.
    Returns a dict: "projections", "scores", "weighted sum", "MLP".  Raises ValueError when n_heads does not
    divide d_model, or n_kv_heads not n_heads.
    """
    n, d_model = count("n", n), count("d_model", d_model, 1)
    each = 2 * pairs(n, n_past, causal) * d_model           # of h heads with d_model / h numbers a row
    return {
        "projections": 2 * n * projection_weights(d_model, n_heads, n_kv_heads),
        "scores": each,                                     # h times (n, d_k) @ (d_k, n_k)
        "weighted sum": each,                               # h times (n, n_k) @ (n_k, d_v)
        "MLP": 2 * n * mlp_weights(d_model, d_ff, gated),
    }


def crossover(d_model, n_heads, n_kv_heads=None, d_ff=None, gated=False, causal=False):
    """The smallest n at which scores and weighted sum take as many FLOPs as all products with weights.

    The sizes are those of `layer_flops`. 2·d_model for attention alone (d_ff = 0), 6·d_model with an MLP of
    width 4·d_model, and about twice as much where only the pairs that may be read are counted (causal).
    """
    weights = projection_weights(d_model, n_heads, n_kv_heads) + mlp_weights(d_model, d_ff, gated)
    d_model = int(d_model)
    if flag("causal", causal):
        return -(-weights // d_model) - 1                   # 2·n·(n + 1)·d_model ≥ 2·n·weights, rounded up
    return -(-weights // (2 * d_model))                     # 4·n²·d_model ≥ 2·n·weights, rounded up


def activation_bytes(n, d_model, n_heads, n_kv_heads=None, n_past=0, bytes_per_value=4, batch=1):
    """Bytes of the arrays between the projections of one layer, for n tokens after n_past cached ones.

    Returns a dict: "Q" and "Z" (h, n, d_head), "K and V" (`cache_bytes` of one layer), and the only one that
    grows with n², "S" (h, n, n_past + n). It is there only where the scores are formed whole; the pattern A
    takes as much again unless it overwrites them.  Raises ValueError as `layer_flops` does.
    """
    d_head = head_width(d_model, n_heads)
    n, n_k = count("n", n), count("n", n) + count("n_past", n_past)
    kept = n_heads if n_kv_heads is None else n_kv_heads
    each = int(n_heads) * n * count("bytes_per_value", bytes_per_value, 1) * count("batch", batch)
    return {
        "Q": each * d_head,
        "K and V": cache_bytes(1, n_heads, kept, d_head, n_k, bytes_per_value, batch),
        "S": each * n_k,
        "Z": each * d_head,
    }

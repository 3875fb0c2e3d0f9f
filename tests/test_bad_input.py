"""Every public function of helpers, called with what it cannot take: each argument in turn, all else right.

Here the maths. `GOOD` says how a function is called rightly and of what kind each argument is; the kind says
what is then tried in its place (`bad_input`). A function without an entry fails the first test.
"""


import numpy as np
import pytest
from bad_input import Kind, array, count, flag, is_tried, judge, number, optional, public, right, thing

from helpers.kv_cache import KVCache

MATHS = ["embeddings", "attention", "multi_head", "low_rank", "kv_cache", "kv_sharing", "sampling", "cost"]

# What these get has been looked at by the functions that call them.
INNER = {
    "attention.attend_at_once", "low_rank.svd", "kv_sharing.up_projections",
    "kv_sharing.pattern", "kv_cache.part_of", "sampling.last_row", "sampling.row_by_row",
    "sampling.sample_rows",
    "multi_head.heads_of", "embeddings.cos_and_sin", "attention.times", "attention.queries_and_keys",
    "attention.products", "attention.surely_fit",
}

SMALL = {"E": np.eye(3), "P": np.ones((5, 3)), "layers": [{f"W_{x}": np.eye(3) for x in "qkvo"}]}


WORDS = "tokens|vocab|vocabulary"
TYPE = thing(np.float32, None, int, bool, object, complex, "foo", 3)


def small(**changes):
    return {name: part for name, part in (SMALL | changes).items() if part is not None}


def layer(**changes):
    return small(layers=[{n: W for n, W in (SMALL["layers"][0] | changes).items() if W is not None}])


SIZES = {"d_model": count(8, 1), "n_heads": count(4, 1), "n_kv_heads": optional(count(2, 1))}
SIZES_AND_MLP = SIZES | {"d_ff": optional(count(3)), "gated": flag()}
HEAD = {"W_q": array(4, 3), "W_k": array(4, 3), "W_v": array(4, 2)}
HOW = {"temperature": number(1.0, -1.0, np.inf), "top_k": optional(count(2, 1)),
       "top_p": optional(number(0.5, 0, 1.1, np.inf))}
LATENT = {"W_up_k": array(2, 6), "W_up_v": array(2, 8)}

GOOD = {
    "embeddings.token_ids": {
        "tokens": thing(["i"], None, "i", 3, [3], ["i", None], ["he"], np.array(0), called=WORDS),
        "vocab": thing({"i": 0}, None, ["i"], "i", {}, {"i": 1.5}, {"i": True}, {"i": -3}, {"i": [1]},
                       {"i": None}, {"i": 2**70}, called=WORDS)},
    "embeddings.embed": {"ids": array(2, integers=True), "E": array(1, 4)},      # of the rows, those taken
    "embeddings.sinusoidal_positions": {"n": count(3), "d": count(4), "base": number(100.0, 0, -1.0, np.inf)},
    "embeddings.rope": {"x": array(2, 4, stacked=True), "positions": array(2),
                        "base": number(100.0, 0, -1.0, np.inf)},
    "embeddings.rope_attention": {"Q": array(2, 4, stacked=True, called="Q|x"),
                                  "K": array(2, 4, stacked=True, called="K|x"),
                                  "V": array(2, 3, stacked=True), "positions": array(2)},
    "attention.project_qkv": {"X": array(2, 4)} | HEAD,
    "attention.scores": {"Q": array(2, 3, stacked=True), "K": array(4, 3, stacked=True)},
    "attention.scaled_scores": {"Q": array(2, 3, stacked=True), "K": array(4, 3, stacked=True)},
    "attention.softmax": {"z": array(3, stacked=True, hides=True)},
    "attention.causal_mask": {"n_q": count(2), "n_k": optional(count(3))},
    "attention.attention_weights": {
        "S": array(2, 3, stacked=True, hides=True),
        "mask": thing(np.ones((2, 3), bool), None, "text", [[True], [True, False]], np.ones(3, bool), True,
                      np.ma.masked_array(np.ones((2, 3), bool), False), np.ones((5, 2, 3), bool),
                      np.full((2, 3), -np.inf), np.full((2, 3), np.nan), np.ones((3, 2), bool), {})},
    "attention.single_head": {"X": array(2, 4)} | HEAD | {"causal": flag()},
    "attention.last_query_attention": {"q": array(3), "K": array(4, 3), "V": array(4, 2)},
    "attention.attention": {"Q": array(2, 4, 3, stacked=True), "K": array(2, 4, 3, stacked=True),
                            "V": array(2, 4, 2, stacked=True), "causal": flag()},
    "multi_head.split_heads": {"X": array(2, 6), "n_heads": count(3, 1)},
    "multi_head.merge_heads": {"H": array(2, 3, 4)},
    "multi_head.multi_head": {"X": array(2, 4), "W_q": array(4, 6), "W_k": array(4, 6), "W_v": array(4, 8),
                              "W_o": array(8, 4), "n_heads": count(2, 1), "causal": flag()},
    "multi_head.layer_norm": {"x": array(2, 4, stacked=True), "gamma": array(4), "beta": array(4),
                              "eps": number(1e-5, -1.0, np.inf)},
    "multi_head.pre_norm_residual": {"x": array(2, 4, stacked=True),
                                     "sublayer": thing(np.sin, None, "sin", np.ones(3), lambda y: y[:1]),
                                     "gamma": array(4), "beta": array(4), "eps": number(1e-5, -1.0, np.inf)},
    "low_rank.low_rank_factors": {"W": array(3, 4), "r": count(2, 1, most=3)},
    "low_rank.per_head_updates": {"H": array(2, 3, 4), "W_o": array(8, 5)},
    "low_rank.shared_qkv_basis": {"W_q": array(3, 4), "W_k": array(3, 4), "W_v": array(3, 2),
                                  "r": count(2, 1, most=3)},
    "kv_cache.kv_cache_step": {"x": array(4)} | HEAD | {"cache": thing(
        None, 3, "KV", (np.ones((2, 3)),), np.ones((2, 3, 2)), (np.ones((2, 3)), np.ones((1, 2))),
        (np.ones((2, 4)), np.ones((2, 2))), (np.ones((2, 3)), None),
        (np.full((2, 3), np.nan), np.ones((2, 2))),
        called="cache|cached [KV]")},
    "kv_cache.generate_with_cache": {
        "prompt_ids": thing([0], None, 3, [], [0.0], "ab", [3], np.array(0), called="prompt_ids|id"),
        "n_new": Kind(1, count(1).wrong | {"too many": 9}, called="n_new|tokens"),
        "model": Kind(SMALL, {
            "None": None, "a list": [], "no E": small(E=None), "no P": small(P=None), "text": layer(W_k="a"),
            "no layers": small(layers=None), "layers": small(layers=3), "layer": small(layers=[3]),
            "no W_o": layer(W_o=None), "wide W_o": layer(W_o=np.eye(4)), "NaN": layer(W_v=np.eye(3) * np.nan),
            "W_q": layer(W_q=np.ones((2, 3))), "W_o's width": layer(W_o=np.ones((3, 4))),
            "narrow P": small(P=np.ones((5, 2))),
        }, called="model|layers?|each layer|[EP]|W_[qkvo]")},
    "kv_cache.cache_bytes": {name: count(2, least) for name, least in (
        ("n_layers", 0), ("n_heads", 1), ("n_kv_heads", 1), ("d_head", 0), ("n_tokens", 0),
        ("bytes_per_value", 1), ("batch", 0))},
    "kv_cache.latent_cache_bytes": {name: count(2, least) for name, least in (
        ("n_layers", 0), ("d_c", 0), ("d_r", 0), ("n_tokens", 0), ("bytes_per_value", 1), ("batch", 0))},
    "kv_cache.KVCache": {"n_kv_heads": count(2, 1), "n_max": count(4, 1), "d_k": count(3, 1),
                         "d_v": optional(count(2, 1)), "dtype": TYPE},
    "kv_cache.KVCache.append": {"K": array(2, 1, 3), "V": array(2, 1, 2), "position": optional(count(0))},
    "kv_cache.KVCache.need_room": {"m": Kind(2, count(2).wrong | {"too many": 9}, called="m|more")},
    "kv_sharing.grouped_query_attention": {"Q": array(4, 2, 3), "K": array(2, 4, 3), "V": array(2, 4, 2),
                                           "causal": flag()},
    "kv_sharing.latent_attention": {"X": array(3, 4), "W_q": array(4, 6), "W_down": array(4, 2)} | LATENT | {
        "n_heads": count(2, 1), "causal": flag(), "absorbed": flag()},
    "kv_sharing.attend_restored": {"Q": array(2, 4, 3), "C": array(5, 2)} | LATENT | {"causal": flag()},
    "kv_sharing.attend_absorbed": {"Q": array(2, 4, 3), "C": array(5, 2)} | LATENT | {"causal": flag()},
    "sampling.next_probabilities": {"logits": array(2, 4, hides=True)} | HOW,
    "sampling.sample_next": {"logits": array(2, 4, hides=True),
                             "rng": thing(np.random.default_rng(0), None, 0, np.random)} | HOW,
    "cost.head_width": {"d_model": count(8, 1), "n_heads": count(4, 1)},
    "cost.projection_weights": SIZES,
    "cost.mlp_weights": {"d_model": count(8, 1), "d_ff": optional(count(3)), "gated": flag()},
    "cost.pairs": {"n": count(3), "n_past": count(2), "causal": flag()},
    "cost.attention_flops": {"n": count(3), "d_model": count(8, 1), "n_heads": count(4, 1)},
    "cost.layer_flops": {"n": count(3)} | SIZES_AND_MLP | {"n_past": count(2), "causal": flag()},
    "cost.crossover": SIZES_AND_MLP | {"causal": flag()},
    "cost.activation_bytes": {"n": count(3)} | SIZES | {"n_past": count(2), "bytes_per_value": count(4, 1),
                                                        "batch": count(1)},
}

FUNCTIONS = {name: function for module in MATHS for name, function in public(module).items()}


def of_a_cache(name):
    """A method of a new KVCache; anything else as it is."""
    if name.startswith("kv_cache.KVCache."):
        return getattr(KVCache(2, 4, 3, 2), name.rpartition(".")[2])
    return FUNCTIONS[name]


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in INNER])
def test_every_public_function_is_tried_with_bad_input_for_every_argument(name):
    is_tried(name, FUNCTIONS, GOOD, besides=("self",))


def test_no_entry_is_left_of_a_function_that_is_gone():
    assert set(GOOD) | INNER <= set(FUNCTIONS)


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.filterwarnings("error")
def test_what_is_right_is_taken(name):
    of_a_cache(name)(**right(GOOD[name]))


@pytest.mark.parametrize(("name", "argument"), [(name, argument) for name in GOOD for argument in GOOD[name]])
@pytest.mark.filterwarnings("error")
def test_bad_input_is_named_with_what_was_expected_and_what_came(name, argument):
    judge(lambda **given: of_a_cache(name)(**given), GOOD[name], argument)


def test_a_bad_message_is_found():
    plain = Kind(1, {"None": None})
    for error in ("bad", "n must be whole", "it must be whole, got None"):
        def pairs(n, causal, error=error):
            raise ValueError(error)

        with pytest.raises(AssertionError, match="does not name|not what"):
            judge(pairs, {"n": plain, "causal": flag()}, "n")
    with pytest.raises(AssertionError, match="was taken"):
        judge(lambda n: 0, {"n": plain}, "n")

"""SmolLM2 writing a token: against reading its weights, transformers on PyTorch, and itself with no cache."""

import numpy as np

from bench.measure import Row, race
from helpers import smollm2

READ = 1 / 0.7                                  # writing goes at 70 % of the rate of reading, or better
CONTEXTS = (64, 256)


def rows(quick=False):
    if not smollm2.is_fetched():
        yield "The language model is not fetched (python3 course.py model): its rows are left out."
        return
    model, seconds = smollm2.load(), 1 if quick else 6
    try:
        other = of_transformers(model)
    except ImportError:
        other = None
        yield "transformers and PyTorch are not both installed: the row against them is left out."
    for n in CONTEXTS[:1 if quick else None]:
        ids = model.ids("Once upon a time, in a small village by the river, " * n)[:n]
        contestants = {"ours": step(model, ids), "reading": lambda: read(model.weights)}
        if other:
            contestants["transformers"] = other(ids)
            difference = np.abs(contestants["ours"]() - contestants["transformers"]()).max()
            assert difference < 1e-3, f"the two differ by {difference}"
        times = race(contestants, seconds)
        what = f"SmolLM2, a token after {n}"
        yield Row(what, times["ours"], "reading its weights once", times["reading"], round(READ, 2))
        if other:
            yield Row(what, times["ours"], "transformers on PyTorch, float32", times["transformers"], 1)
        whole = {"not cached": lambda: model.next_tokens(ids, 1)}               # noqa: B023 (raced at once)
        yield Row(f"{what}, cached", times["ours"], "not cached", race(whole, seconds / 3)["not cached"])


def read(weights):
    """Every weight once, as fast as they come from memory: each array's dot product with itself."""
    total = 0.0
    for name in weights.config.shapes:
        M = getattr(weights, name)
        flat = M.ravel(order="K")                                               # as it lies: no copy
        assert np.shares_memory(flat, M)
        total += float(flat @ flat)
    return total


def step(model, ids):
    """A function that reads the last of the ids, with those before it in the caches, and gives its logits."""
    caches = model.new_caches(len(ids))
    for _ in model.read(ids[:-1], caches):
        pass

    def run():
        for cache in caches:
            cache.n_tokens = len(ids) - 1                                       # the same step, every time
        return model.to_vocabulary(model.forward(ids[-1:], caches))[0]          # (V,)

    return run


def of_transformers(model):
    """The same weights in transformers; gives for some ids the function that makes the step of `step`."""
    import torch
    from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

    c, w = model.config, model.weights
    theirs = LlamaForCausalLM(LlamaConfig(
        vocab_size=c.n_vocab, hidden_size=c.d_model, intermediate_size=c.d_ff, num_hidden_layers=c.n_layers,
        num_attention_heads=c.n_heads, num_key_value_heads=c.n_kv_heads, rms_norm_eps=c.norm_eps,
        rope_theta=c.rope_base, max_position_embeddings=c.n_max, tie_word_embeddings=True)).eval()
    theirs.load_state_dict({name: torch.tensor(M) for name, M in named(c, w)}, strict=False)
    theirs.tie_weights()

    def for_ids(ids):
        cache, ids = DynamicCache(), torch.tensor(ids)[None]
        with torch.inference_mode():
            theirs(ids[:, :-1], past_key_values=cache)

        def run():
            with torch.inference_mode():
                logits = theirs(ids[:, -1:], past_key_values=cache).logits[0, -1].numpy()
            cache.crop(-1)                                                      # the same step, every time
            return logits

        return run

    return for_ids


def named(c, w):
    """(name, array) of every weight as transformers has it: (out, in), and rope's pairs half a head apart."""
    q, kv = c.n_heads * c.d_head, c.n_kv_heads * c.d_head

    def pairs_apart(M):
        """0, 1, 2, 3, … of every head's rows become 0, 2, …, 1, 3, …"""
        return M.reshape(-1, c.d_head // 2, 2, M.shape[1]).swapaxes(1, 2).reshape(M.shape)

    yield "model.embed_tokens.weight", w.E
    yield "model.norm.weight", w.final_norm
    for i in range(c.n_layers):
        Q, K, V = np.split(w.W_qkv[i].T, [q, q + kv])
        gate, up = np.split(w.W_gate_up[i].T, 2)
        for name, M in (
            ("self_attn.q_proj", pairs_apart(Q)), ("self_attn.k_proj", pairs_apart(K)),
            ("self_attn.v_proj", V), ("self_attn.o_proj", w.W_o[i].T), ("mlp.gate_proj", gate),
            ("mlp.up_proj", up), ("mlp.down_proj", w.W_down[i].T),
            ("input_layernorm", w.attention_norm[i]), ("post_attention_layernorm", w.mlp_norm[i]),
        ):
            yield f"model.layers.{i}.{name}.weight", M

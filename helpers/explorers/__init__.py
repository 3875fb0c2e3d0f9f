"""Pictures a reader can take hold of: controls above a picture that a pure function of their state draws.

    explorers.similarity()                       # as the last expression of a cell
    explorers.step_through("i love apples")      # any text of the tiny model's words

`base` holds what all have in common; the other modules hold one kind of explorer each. An explorer only
wires: the model computes, `figures` draws. Without a running kernel its cell shows the picture of its state,
and where no picture can be shown, the numbers as text.
"""

from helpers.explorers import (
    caches,
    conventions,
    costs,
    drawing_words,
    many_heads,
    masks,
    one_head,
    one_layer,
    ranks,
    saturation,
)
from helpers.explorers.base import HEAD, LAYER, SENTENCE, VIEW

__all__ = ["SENTENCE", "VIEW", "cache", "cache_calculator", "causal_mask", "concat_or_sum", "context_cost",
           "heads", "model_heads", "rank", "row_or_column", "sampling", "scale_and_saturation", "similarity",
           "step_through", "value_reading"]


def similarity(text=SENTENCE, layer=LAYER, head=HEAD, query=None):
    """Choose any word as the query; see its dot product, scaled score and weight with every key."""
    return one_head.Similarity(text, layer, head, query)


def value_reading(text=SENTENCE, layer=LAYER, head=HEAD, query=None):
    """Choose a query; see which values it reads, as signed parts that add up to z."""
    return one_head.ValueReading(text, layer, head, query)


def step_through(text=SENTENCE, layer=LAYER, head=HEAD, query=None, step=0):
    """Walk from scores to Z: score, scale, mask, softmax, sum."""
    return one_head.StepThrough(text, layer, head, query, step)


def heads(text=SENTENCE, layer=LAYER, head=HEAD, without=()):
    """See all heads at once, one of them large; switch any off and see what the model then expects.

    without : (layer, head) pairs to switch off to begin with.
    """
    return many_heads.Heads(text, layer, head, without)


def concat_or_sum(text=SENTENCE, layer=LAYER, query=None, added=None, column=None):
    """Add up what each head writes through its rows of W_o; see that it is concat · W_o, column by column.

    added : how many heads have been added to begin with, all by default.  column : the one whose numbers are
    written out, that of the largest result by default.
    """
    return one_layer.ConcatOrSum(text, layer, query, added, column)


def rank(layer=LAYER, head=HEAD, r=4):
    """Slide r, the rank of a head's value map; see its error, the numbers saved, and the model's loss."""
    return ranks.Rank(layer, head, r)


def cache(text=SENTENCE, n_new=8, step=2):
    """Step through a generation, or play it, with and without the cache; see work and bytes counted.

    n_new : how many words to write, step : how many are written to begin with.
    """
    return caches.Cache(text, n_new, step)


def cache_calculator(model="Llama 3 8B", n_tokens=8192, batch=1, bytes_per_value=2, n_kv_heads=None):
    """Bytes of a named model's cache: each head its own (MHA), groups (GQA), one for all (MQA), latents.

    n_kv_heads : of the groups, as published by default.
    """
    return caches.CacheCalculator(model, n_tokens, batch, bytes_per_value, n_kv_heads)


def sampling(text="i love", temperature=1.0, top_k=None, top_p=None, seed=0, draws=100):
    """Logits after the last word through temperature, top-k and top-p, in this order, to seeded draws.

    The settings are those of `helpers.sampling.next_probabilities`; draws : how many to begin with.
    """
    return drawing_words.Sampling(text, temperature, top_k, top_p, seed, draws)


def context_cost(model="GPT-3", n=2048, d_model=None, layers=None, n_heads=None, mlp=True, causal=False):
    """Move n and the sizes; see what grows with n², where it overtakes the rest, and what tiles save.

    d_model, layers, n_heads : sizes of the reader's own, in place of the model's; then the MLP is 4 · d_model
    wide.  mlp : whether it is counted.  causal : whether only the pairs that may be read are.
    """
    return costs.ContextCost(model, n, d_model, layers, n_heads, mlp, causal)


def scale_and_saturation(d_k=64, temperature=1.0, scale=True, seed=0):
    """Move d_k and the temperature for drawn queries and keys; see the weights saturate, and their slope go.

    scale : whether scores are divided by √d_k.
    """
    return saturation.ScaleAndSaturation(d_k, temperature, scale, seed)


def causal_mask(text=SENTENCE, layer=LAYER, head=HEAD, query=None, mask="after", raised=0):
    """Switch the mask off, before softmax, after it, or after it and divided by the row's sum, side by side.

    query : the word in the middle by default.  mask : "off", "before", "after" or "divided".
    raised : 0, 5 or 1000, added to every hidden score, to see which weights depend on them.
    """
    return masks.CausalMask(text, layer, head, query, mask, raised)


def row_or_column(text="i love apples", layer=LAYER, head=HEAD, query=None, step=3):
    """Walk from X to Z with a word as a row and with a word as a column, side by side.

    step : 0 … 7, the scores S to begin with, which are the same in both.
    """
    return conventions.RowOrColumn(text, layer, head, query, step)


def model_heads(text="My friend Tom Okoro sings and my friend Tom", layer=18, head=6, query=None,
                score="induction", without=(), model=None):
    """All 270 heads of the real language model on any text of at most 24 tokens: a map of scores, one large.

    score : "previous token", "first token", "itself", "duplicate token", "induction" or "entropy".
    without : (layer, head) pairs to switch off to begin with.  model : `smollm2.load()` by default, or one
    that runs on your functions.  Raises FileNotFoundError where the model has not been fetched.
    """
    from helpers.explorers import language_model  # and the large model, for notebook 10 alone

    return language_model.ModelHeads(text, layer, head, query, score, without, model)

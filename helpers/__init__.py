"""The small package behind the notebooks: one module a notebook, named after it.

Read in this order: `embeddings`, `attention`, `multi_head`, `low_rank`, `kv_cache`, `kv_sharing`, `sampling`
and `cost`, the mathematics; then `tiny_model` and `smollm2`, which run on it; then `figures` and `explorers`,
which draw what they do; `checks` is behind the exercises. Imports point that way and never back.
"""

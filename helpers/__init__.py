"""The small package behind the notebooks: one module a notebook, named after it.

Read in this order: `embeddings`, `attention`, `multi_head`; then `tiny_model`, which runs on them; then
`figures` and `explorers`, which draw what it does; `checks` is behind the exercises. Imports point that way
and never back.
"""

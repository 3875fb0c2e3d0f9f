"""The exercises, in the order of the course."""

from helpers.checks.exercises import (
    cost,
    embeddings,
    heads,
    kv_cache,
    kv_sharing,
    low_rank,
    many_heads,
    queries_keys_values,
    rope,
    sampling,
    scores,
    softmax_and_masks,
    together,
)

MODULES = (
    embeddings,
    queries_keys_values,
    scores,
    softmax_and_masks,
    heads,
    many_heads,
    low_rank,
    kv_cache,
    kv_sharing,
    sampling,
    cost,
    rope,
    together,
)
EXERCISES = tuple(exercise for module in MODULES for exercise in module.EXERCISES)
BY_NAME = {exercise.name: exercise for exercise in EXERCISES}

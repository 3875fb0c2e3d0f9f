"""The exercises, in the order of the course: one module a notebook, named after it."""

from helpers.checks.exercises import embeddings, queries_keys_values, single_head_attention

EXERCISES = (*embeddings.EXERCISES, *queries_keys_values.EXERCISES, *single_head_attention.EXERCISES)
BY_NAME = {exercise.name: exercise for exercise in EXERCISES}

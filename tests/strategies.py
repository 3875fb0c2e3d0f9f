"""Inputs for the property tests: sizes that differ, values from tiny to large, all three float types."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

sizes = st.integers(1, 6)
floats = st.sampled_from([np.float32, np.float64])


def values(largest=10.0, width=64):
    return st.floats(-largest, largest, allow_subnormal=False, width=width)


def matrix(*shape, largest=10.0, dtype=np.float64):
    """Arrays of a given shape with entries up to `largest`."""
    return arrays.arrays(dtype, shape, elements=values(largest, np.dtype(dtype).itemsize * 8))


@st.composite
def head_inputs(draw, largest=10.0):
    """X, W_q, W_k, W_v of one head, every size drawn on its own."""
    n, d_model, d_k, d_v = (draw(sizes) for _ in range(4))
    return tuple(
        draw(matrix(*shape, largest=largest))
        for shape in ((n, d_model), (d_model, d_k), (d_model, d_k), (d_model, d_v))
    )


@st.composite
def qkv(draw, largest=10.0):
    """Q, K, V of one head with n_q and n_k on their own, n_q at most n_k."""
    n_q, extra, d_k, d_v = draw(sizes), draw(st.integers(0, 4)), draw(sizes), draw(sizes)
    return tuple(
        draw(matrix(*shape, largest=largest))
        for shape in ((n_q, d_k), (n_q + extra, d_k), (n_q + extra, d_v))
    )

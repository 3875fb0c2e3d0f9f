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


# Arrays as programs hand them over: every float type, every way of lying in memory, empty ones too. The
# values come from a generator and not one by one, so that thousands of cases take seconds.

LAYOUTS = [
    np.ascontiguousarray,
    np.asfortranarray,
    lambda M: np.repeat(M, 2, axis=-1)[..., ::2],
    lambda M: np.ascontiguousarray(M[..., ::-1])[..., ::-1],
    lambda M: np.pad(M, 1, constant_values=np.nan)[(slice(1, -1),) * M.ndim],       # a part of a larger one
]
FILLS = [
    lambda rng, shape: rng.normal(size=shape).clip(-3, 3) / 3,
    lambda rng, shape: rng.integers(-1, 2, shape),                                  # ties, zeros, the ends
    lambda rng, shape: np.full(shape, rng.uniform(-1, 1)),
]


@st.composite
def makers(draw, largest=(1.0, 30.0, 1e4), dtypes=(np.float16, np.float32, np.float64)):
    """A function make(*shape, most=…) whose arrays are of one type, with entries of at most `most`."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dtype = draw(st.sampled_from(dtypes))
    default = draw(st.sampled_from(largest))

    def make(*shape, most=default):
        values = most * draw(st.sampled_from(FILLS))(rng, shape)
        M = draw(st.sampled_from(LAYOUTS))(values.astype(dtype))
        M.flags.writeable = False                           # nothing may write to what it is given
        return M

    make.dtype = np.dtype(dtype)
    return make


few = st.integers(0, 4)             # tokens: none, one, some
width = st.integers(1, 4)

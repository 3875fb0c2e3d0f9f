"""What the maths modules say when an argument has the wrong type or shape: one place, one wording.

Every function of the course takes arrays or plain lists. `array` turns either into an array and counts its
axes; `same_size` compares two of them. Both name the argument, what was expected and what came.
"""

import numpy as np


def array(name, x, axes, stacked=False):
    """`x` as a real-valued array with one axis for each name in `axes`, for example ("n", "d_model").

    stacked : allow further axes in front, as for heads (h, n, d_k) or a batch.
    Integers and booleans become float64; float16, float32 and float64 stay as they are.
    Raises TypeError for what is not a table of real numbers, ValueError for the wrong number of axes.
    """
    try:
        x = np.asarray(x)
    except ValueError:
        raise ValueError(f"{name} must have rows of equal length, shape {shape_text(axes, stacked)}; "
                         "its rows differ in length") from None
    if x.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, shape {shape_text(axes, stacked)}; "
                        f"got {'complex numbers' if x.dtype.kind == 'c' else f'dtype {x.dtype}'}")
    if x.ndim < len(axes) or (x.ndim > len(axes) and not stacked):
        raise ValueError(f"{name} must have shape {shape_text(axes, stacked)}, got {x.shape}")
    return x if x.dtype.kind == "f" else x.astype(np.float64)


def shape_text(axes, stacked=False):
    """The shape in words, written as NumPy writes it: ("n", "d") -> "(n, d)", ("n",) -> "(n,)"."""
    if stacked:
        return f"({', '.join(('…', *axes))})"
    return f"({', '.join(axes)}{',' if len(axes) == 1 else ''})"


def same_size(size_name, first, second, axis=(-1, -1)):
    """The size that two arrays share; `first` and `second` are (name, array), `axis` says where it stands.

    Raises ValueError naming both arrays and both shapes when the sizes differ.
    """
    (name_a, a), (name_b, b) = first, second
    if a.shape[axis[0]] != b.shape[axis[1]]:
        raise ValueError(f"{name_a} and {name_b} must agree in {size_name}: {name_a} {a.shape} has "
                         f"{a.shape[axis[0]]}, {name_b} {b.shape} has {b.shape[axis[1]]}")
    return a.shape[axis[0]]


def count(name, value, least=0):
    """`value` as a whole number of at least `least`; TypeError or ValueError otherwise."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    return int(value)

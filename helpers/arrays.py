"""What the maths modules say when an argument is of the wrong kind: one place, one wording.

Every function of the course takes arrays or plain lists. `array` turns either into an array, counts its axes
and looks for NaN and infinity; `same_size` compares two of them; `count`, `number` and `flag` are for single
values. All name the argument, what was expected and what came.
"""

import math

import numpy as np


def array(name, x, axes, stacked=False, holds="finite numbers"):
    """`x` as a real-valued array with one axis for each name in `axes`, for example ("n", "d_model").

    stacked : allow further axes in front, as for heads (h, n, d_k) or a batch.
    holds : "finite numbers", "finite numbers or -inf" (scores that a mask has been through), or None for
    no look at the values.  Integers and booleans become float64; float16, float32 and float64 stay.
    Raises TypeError for what is not a table of real numbers, ValueError for the wrong number of axes and for
    values that it must not hold.
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
    if x.dtype.kind != "f":
        return x.astype(np.float64)
    if holds:
        look_at_values(name, x, holds)
    return x


def look_at_values(name, x, holds="finite numbers"):
    """ValueError that says where x holds NaN or infinity; `holds` as for `array`."""
    fine = np.isfinite(x)
    if not fine.all() and holds.endswith("or -inf"):
        fine |= np.isneginf(x)
    if not fine.all():
        at = tuple(int(i) for i in np.argwhere(~fine)[0])
        raise ValueError(f"{name} must hold {holds}, got {x[at]} at {list(at)}")


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


def number(name, value, positive=False):
    """`value` as a float; TypeError when it is not one real number, ValueError when `positive` and it is not.

    What must be positive must be finite, too.
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if positive and not 0 < value < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {value}")
    return float(value)


def flag(name, value):
    """`value` as a bool; TypeError for anything but True and False (and NumPy's)."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)

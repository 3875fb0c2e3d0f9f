"""What is said when an argument is of the wrong kind: one place, one wording.

Every function of the course takes arrays or plain lists. `array` turns either into an array, counts its axes
and looks for NaN and infinity; `shaped` knows their sizes too, `same_size` and `same_stack` compare two
arrays; `widened`, `fits`, `added` and `room` are for what float16, any type or a machine cannot hold.
`count`, `size`, `number`, `flag`, `text`, `path`, `one_of` and `position` are for single values, `words`,
`records`, `pairs` and `named` for several. All name the argument, what was expected and what came.
"""

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

MOST = 2**30              # numbers in an array: more have room nowhere here


def array(name, x, axes, stacked=False, holds="finite numbers"):
    """`x` as a real-valued array with one axis for each name in `axes`, for example ("n", "d_model").

    stacked : allow further axes in front, as for heads (h, n, d_k) or a batch.
    holds : "finite numbers", "finite numbers or -inf" (scores that a mask has been through), or None for
    no look at the values.  Integers and booleans become float64, as do longer types; float16, float32 and
    float64 stay.
    Raises TypeError for what is not a table of real numbers, and for a masked array, whose mask would be
    lost; ValueError for the wrong number of axes and for values that it must not hold.
    """
    try:
        x = np.asarray(unmasked(name, x))
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
    if x.dtype.itemsize > 8:
        finite = np.isfinite(x)
        with np.errstate(over="ignore"):
            x = x.astype(np.float64)
        fits(name, x[finite])
    elif not x.dtype.isnative:
        x = x.astype(x.dtype.newbyteorder("="))
    if holds:
        look_at_values(name, x, holds)
    return x


def unmasked(name, x):
    """`x`; TypeError for a masked array, or a list of such, whose mask would be lost without a word."""
    if type(x) is np.ndarray:
        return x
    of_rows = isinstance(x, (list, tuple)) and any(isinstance(row, np.ma.MaskedArray) for row in x)
    if of_rows or isinstance(x, np.ndarray) and hasattr(x, "mask"):
        raise TypeError(f"{name} must be an array without a mask of its own, got a masked array")
    return x


def shaped(name, x, axes, shape, holds="finite numbers"):
    """`x` as an array of this shape; `axes` and `holds` as for `array`, None in `shape` for any size.

    Raises what `array` raises, and ValueError for another shape.
    """
    x = array(name, x, axes, holds=holds)
    if any(size not in (None, there) for size, there in zip(shape, x.shape, strict=True)):
        sizes = shape_text([str(size or axis) for axis, size in zip(axes, shape, strict=True)])
        raise ValueError(f"{name} must have shape {shape_text(axes)}, here {sizes}; got {x.shape}")
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


def same_stack(first, second, n_last=2):
    """The axes before the last two that two arrays have together; `first` and `second` are (name, array).

    Raises ValueError naming both when NumPy cannot bring them together.
    """
    (name_a, a), (name_b, b) = first, second
    try:
        return np.broadcast_shapes(a.shape[:-n_last], b.shape[:-n_last])
    except ValueError:
        raise ValueError(f"{name_a} and {name_b} must agree in the axes before the last {n_last}: {name_a} "
                         f"has shape {a.shape}, {name_b} {b.shape}") from None


def widened(x):
    """float16 as float32, as its sums and squares soon exceed what it holds; other types as they are."""
    return x.astype(np.float32) if x.dtype == np.float16 else x


def fits(name, x, dtype=None):
    """`x`, computed from finite numbers, in this dtype (its own by default).

    Raises ValueError when it has become too large for that.
    """
    with np.errstate(over="ignore"):
        x = x if dtype is None else x.astype(dtype, copy=False)
    if not np.isfinite(x).all():
        raise ValueError(f"{name} must fit into {x.dtype}, got {x[~np.isfinite(x)][0]}: the numbers it is "
                         "made of are too large")
    return x


def added(name, X, Y):
    """X + Y; ValueError when the sum, which is called `name`, is too large for their type."""
    with np.errstate(over="ignore"):
        return fits(name, X + Y)


def count(name, value, least=0, most=None):
    """`value` as a whole number of at least `least`, at most `most`; TypeError or ValueError otherwise."""
    if not whole(value):
        raise TypeError(f"{name} must be a whole number, got {came(value)}")
    if most is not None and not least <= value <= most:
        raise ValueError(f"{name} must be one of {least} … {most:,}, got {came(value)}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {came(value)}")
    return int(value)


def size(name, value, least=0):
    """`count` for how many numbers room is made for: at most MOST."""
    value = count(name, value, least)
    if value > MOST:
        raise ValueError(f"{name} must be at most {MOST:,}, got {came(value)}")
    return value


def number(name, value, positive=False, finite=False):
    """`value` as a float; TypeError when it is not one real number, ValueError when `positive` and it is not.

    What must be positive must be finite, too.
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} must be a number, got {came(value)}")
    try:
        value = float(value)
    except OverflowError:
        raise ValueError(f"{name} must be a number that fits into float64, got {came(value)}") from None
    if positive and not 0 < value < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {value}")
    if finite and not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value}")
    return value


def room(**sizes):
    """ValueError when an array of these sizes, called by their names, would hold more than MOST numbers."""
    if math.prod(max(size, 1) for size in sizes.values()) > MOST:
        raise ValueError(f"{' · '.join(sizes)} must be at most {MOST:,} numbers, "
                         f"got {' · '.join(f'{size:,}' for size in sizes.values())}")


def flag(name, value):
    """`value` as a bool; TypeError for anything but True and False (and NumPy's)."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {came(value)}")
    return bool(value)


def generator(name, value):
    """`value`, a NumPy generator; TypeError for anything else."""
    if not isinstance(value, np.random.Generator):
        raise TypeError(f"{name} must be a NumPy generator such as np.random.default_rng(0), "
                        f"got {came(value)}")
    return value


def text(name, value, empty=True):
    """`value`, a string; TypeError for anything else, ValueError when it is empty and must not be."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {came(value)}")
    if not (empty or value.strip()):
        raise ValueError(f"{name} must say something, got {value!r}")
    return value


def path(name, value):
    """`value`, a string or a path, as a Path; TypeError for anything else."""
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name} must be a path, got {came(value)}")
    return Path(value)


def one_of(name, value, values):
    """Which of `values` it is; ValueError for anything else. True is not taken for 1, nor is 1.0."""
    for known in values:
        same_kind = whole(value) if whole(known) else isinstance(value, type(known))
        if same_kind and value == known:
            return known
    raise ValueError(f"{name} must be one of {', '.join(map(str, values))}, got {came(value)}")


def position(name, value, n):
    """`value` as a place among n, counted from 0; TypeError or ValueError otherwise."""
    what = f"{name} must be one of the positions 0 … {n - 1}, got {came(value)}"
    if not whole(value):
        raise TypeError(what)
    if not 0 <= value < n:
        raise ValueError(what)
    return int(value)


def words(name, values, n=None):
    """`values` as a list of strings, n of them if n is given; numbers may stand in place of words.

    Raises TypeError for what is no list of words, ValueError for too few or too many.
    """
    found = listed(name, values, "words")
    for word in found:
        if not isinstance(word, (str, int, float, np.number)):
            raise TypeError(f"{name} must be a list of words, got {came(word)} in it")
    if n is not None and len(found) != n:
        raise ValueError(f"{name} must be a list of words, {n} of them, got {len(found)}")
    try:
        return [str(word) for word in found]
    except ValueError:                                      # Python does not write out so long a number
        raise ValueError(f"{name} must be words or numbers of fewer digits, got {came(found)}") from None


def records(name, values, parts, least=1):
    """`values` as a list of tuples that have the same parts, for example ("name", "M", "role").

    Raises TypeError for what is no list of these, ValueError when there are fewer than `least`.
    """
    what = f"({', '.join(parts)})"
    found = listed(name, values, what)
    for one in found:
        if not isinstance(one, (tuple, list)) or len(one) != len(parts):
            raise TypeError(f"{name} must be a list of {what}, got {came(one)} in it")
    if len(found) < least:
        raise ValueError(f"{name} must be a list of {what}, at least {least}; got {len(found)}")
    return [tuple(one) for one in found]


def pairs(name, values, n_first, n_second, kind="(layer, head)"):
    """`values` as a set of pairs of whole numbers, each below its n; TypeError or ValueError otherwise."""
    found = set()
    values = values.tolist() if isinstance(values, np.ndarray) else values
    for one in listed(name, values, kind, ordered=False):
        if not isinstance(one, (tuple, list)) or len(one) != 2 or not all(map(whole, one)):
            raise TypeError(f"{name} must be a list of pairs {kind}, got {came(one)} in it")
        if not (0 <= one[0] < n_first and 0 <= one[1] < n_second):
            raise ValueError(f"{name} must be pairs {kind} below ({n_first}, {n_second}), counted from 0; "
                             f"got {came(tuple(one))}")
        found.add((int(one[0]), int(one[1])))
    return found


def named(name, values, what, least=1):
    """`values`, a dict with names for keys; TypeError for anything else, ValueError when it has too few."""
    if not isinstance(values, Mapping):
        raise TypeError(f"{name} must be a dict from names to {what}, got {came(values)}")
    if len(values) < least:
        raise ValueError(f"{name} must be a dict from names to {what}, at least {least}; got {len(values)}")
    return dict(zip(words(f"the names in {name}", list(values)), values.values(), strict=True))


def listed(name, values, what, ordered=True):
    """`values` as a list; TypeError for what is none: a string, a dict, a set when it must be `ordered` …"""
    single = isinstance(values, np.ndarray) and values.ndim == 0
    no_list = (str, bytes, Mapping, *([set, frozenset] if ordered else []))
    if isinstance(values, no_list) or not isinstance(values, Iterable) or single:
        raise TypeError(f"{name} must be a list of {what}, got {came(values)}")
    return list(values)


def whole(value):
    """Whether it is a whole number, and neither True nor False."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def came(value, most=80):
    """What came, in one line that is not too long."""
    try:
        shown = " ".join(repr(value).split())
    except ValueError:                                      # Python does not write out so long a number
        shown = "a number of thousands of digits"
    return shown if len(shown) <= most else shown[:most - 1] + "…"

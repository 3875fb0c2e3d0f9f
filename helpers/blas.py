"""NumPy's matrix products, one thread each, so that several can run side by side.

NumPy leaves its matrix products to a library, mostly OpenBLAS, which splits every product over threads of its
own. When several threads of Python multiply at the same time, those threads get in each other's way, and a
product can take a hundred times as long. Inside `with one_thread_a_product as n:` each product keeps to one
thread, and n of them may run at once.
"""

import contextlib
import ctypes
import functools
import threading
from pathlib import Path

import numpy as np

NAMES = ("scipy_openblas_{}64_", "openblas_{}64_", "openblas_{}")     # NumPy 2, NumPy 1.26, Linux systems
OWN_THREADS = 1                                                       # what get_parallel says of them


@functools.cache
def openblas():
    """How to ask for and to set OpenBLAS's number of threads: two functions, or None where it cannot be done.

    Only where OpenBLAS runs threads of its own (not OpenMP's), as in the NumPy that pip installs: there the
    number is read when a product begins, and products under way take no notice of a change.
    """
    shipped = Path(np.__file__).parents[1] / "numpy.libs"
    for path in (np.linalg._umath_linalg.__file__, *shipped.glob("*openblas*")):
        with contextlib.suppress(OSError):
            library = ctypes.CDLL(str(path))
            for name in NAMES:
                with contextlib.suppress(AttributeError):
                    if getattr(library, name.format("get_parallel"))() == OWN_THREADS:
                        return tuple(getattr(library, name.format(f"{what}_num_threads"))
                                     for what in ("get", "set"))
    return None


class OneThreadAProduct:
    """The context; several threads of Python may be inside, and the last to leave gives the threads back."""

    def __init__(self):
        self.lock, self.inside, self.threads = threading.Lock(), 0, 1

    def __enter__(self):
        """How many products may run side by side: as many as one product had threads before."""
        if openblas() is None:
            return 1                    # a library that is left to itself
        get_threads, set_threads = openblas()
        with self.lock:
            if self.inside == 0:
                self.threads = get_threads()
                set_threads(1)
            self.inside += 1
        return self.threads

    def __exit__(self, *_):
        if openblas() is None:
            return
        _, set_threads = openblas()
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                set_threads(self.threads)


one_thread_a_product = OneThreadAProduct()

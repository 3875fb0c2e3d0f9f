"""Notice when somebody has replaced a part of NumPy, and work with the original meanwhile.

`np.exp = my_exp` typed in a notebook changes it for every function there, the checks' own included.
"""

import importlib
from contextlib import contextmanager

MATHS = (
    "math",
    "numpy",
    "numpy.linalg",
    "numpy.random",
    "helpers.arrays",
    "helpers.attention",
    "helpers.embeddings",
    "helpers.multi_head",
    "helpers.low_rank",
    "helpers.kv_cache",
    "helpers.kv_sharing",
    "helpers.sampling",
    "helpers.cost",
)


class Snapshot:
    """The names in some modules and what they stood for when the snapshot was taken."""

    def __init__(self, modules=MATHS):
        self.names = {module: dict(vars(importlib.import_module(module))) for module in modules}

    def replaced(self):
        """[(module, name), …] of everything that is no longer what it was. New names do not count."""
        found = []
        for module, names in self.names.items():
            now = vars(importlib.import_module(module))
            found += [
                (module, name)
                for name, value in names.items()
                if now.get(name) is not value and not (name.startswith("__") or name == "_")
            ]
        return found

    def put_back(self):
        """Put the originals back for good; gives what was replaced, as ["numpy.exp", …]."""
        replaced = self.replaced()
        for module, name in replaced:
            vars(importlib.import_module(module))[name] = self.names[module][name]
        return [f"{module}.{name}" for module, name in replaced]

    @contextmanager
    def in_force(self):
        """Put the originals back for a while; gives what was replaced, as ["numpy.exp", …]."""
        replaced = self.replaced()
        theirs = []
        for module, name in replaced:
            space = vars(importlib.import_module(module))
            theirs.append((space, name, name in space, space.get(name)))
            space[name] = self.names[module][name]
        try:
            yield [f"{module}.{name}" for module, name in replaced]
        finally:
            for space, name, there, value in theirs:
                if there:
                    space[name] = value
                else:
                    space.pop(name, None)

"""Notice when somebody has replaced a part of NumPy, and work with the original meanwhile.

`np.exp = my_exp` typed in a notebook changes it for every function there, the checks' own included.
"""

import importlib
import sys
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
        self.names = {
            module: {
                name: value
                for name, value in names_in(module).items()
                if not (name.startswith("__") or name == "_")
            }
            for module in modules
        }
        self.look()

    def look(self):
        """Remember what is there now, new names and all, for a quick answer."""
        self.seen = {module: list(names_in(module).values()) for module in self.names}

    def looks_untouched(self):
        """Asked after every call, so quick: something that says it equals what it replaces is believed."""
        try:
            return all(list(vars(sys.modules[module]).values()) == seen for module, seen in self.seen.items())
        except Exception:  # a module is gone, or holds an array, which does not say whether it is equal
            return False

    def replaced(self):
        """[(module, name), …] of everything that is no longer what it was. New names do not count."""
        found = []
        for module, names in self.names.items():
            now = names_in(module)
            found += [(module, name) for name, value in names.items() if now.get(name) is not value]
        return found

    def put_back(self):
        """Put the originals back for good; gives what was replaced, as ["numpy.exp", …]."""
        replaced = self.replaced()
        for module, name in replaced:
            names_in(module)[name] = self.names[module][name]
        self.look()
        return [f"{module}.{name}" for module, name in replaced]

    @contextmanager
    def in_force(self):
        """Put the originals back for a while; gives what was replaced, as ["numpy.exp", …]."""
        replaced = self.replaced()
        theirs = []
        for module, name in replaced:
            space = names_in(module)
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


def names_in(module):
    """The names of a module and what they stand for now, to read and to write."""
    return vars(sys.modules.get(module) or importlib.import_module(module))

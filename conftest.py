"""Without the language model, the notebooks that run it are skipped, and it is said why; in CI they run.

nbval writes out every message for a log that nobody reads, pictures and all; here it no longer does.
`helpers` is compiled beforehand, as pip does with packages: else, where Python may not keep what it compiles,
every kernel and every process of a check compiles it anew. The kernels get settings of their own in place of
yours: what you have IPython do at its start changes no test, and no cell is written into its history.
"""

import compileall
import os
import tempfile
from pathlib import Path

import nbval.kernel
import pytest

from helpers.smollm2 import is_fetched
from helpers.smollm2.weights import HOW

ROOT = Path(__file__).resolve().parent
NEED_THE_MODEL = [ROOT / folder / "10_a_real_language_model.ipynb" for folder in ("notebooks", "solutions")]

nbval.kernel.pformat = lambda message: message      # the log itself makes it a text, when it is read


def pytest_configure(config):
    compileall.compile_dir(ROOT / "helpers", quiet=2)           # where it may not write, it is silent
    folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)    # a kernel may still be ending in it
    config.add_cleanup(folder.cleanup)
    settings = Path(folder.name, "profile_default", "ipython_kernel_config.py")
    settings.parent.mkdir()
    settings.write_text("c.HistoryManager.enabled = False\n", encoding="utf-8")
    os.environ["IPYTHONDIR"] = folder.name


def pytest_collection_modifyitems(items):
    if is_fetched() or os.environ.get("CI", "").lower() == "true":
        return
    skip = pytest.mark.skip(reason=f"needs the language model, fetched once with {HOW}")
    for item in items:
        if item.path.resolve() in NEED_THE_MODEL:
            item.add_marker(skip)

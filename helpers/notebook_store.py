"""Run notebooks from the top and store their outputs, the same on every machine.

    python -m helpers.notebook_store notebooks/01_embeddings.ipynb …

Left out of what is stored: widget views and widget state (a saved view hides the picture beside it), times,
and the version of Python. A cell that fails is shown, the file stays as it was, and the exit status is 1.
"""

import argparse
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from helpers import arrays as given

KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
LANGUAGE = {"codemirror_mode": {"name": "ipython", "version": 3}, "file_extension": ".py",
            "mimetype": "text/x-python", "name": "python", "nbconvert_exporter": "python",
            "pygments_lexer": "ipython3", "version": "3"}
WIDGET_KINDS = ("application/vnd.jupyter.widget-view+json", "application/vnd.jupyter.widget-state+json")


def strip(notebook):
    """Take out of a notebook what differs from run to run or from machine to machine. Changes it in place."""
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNELSPEC, "language_info": LANGUAGE})
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", ()):
            for kind in WIDGET_KINDS:
                output.get("data", {}).pop(kind, None)
                output.get("metadata", {}).pop(kind, None)
    return notebook


def store(path, timeout=120):
    """Run the notebook at `path` in its own folder and write it back with its outputs.

    timeout : seconds for a cell.  Raises what nbclient raises, for a cell that fails, takes too long, or
    kills the kernel, and TypeError or ValueError for a path or a time that is none.
    """
    path, timeout = given.path("path", path), given.number("timeout", timeout, positive=True)
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = NotebookClient(notebook, timeout=timeout, kernel_name="python3", coalesce_streams=True,
                            resources={"metadata": {"path": str(path.resolve().parent)}})
    client.execute()
    text = nbformat.writes(strip(notebook))
    path.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8", newline="\n")


def main(arguments=None):
    about = __doc__.split("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m helpers.notebook_store", description=about)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.ipynb")
    failed = False
    for path in parser.parse_args(arguments).files:
        try:
            store(path)
            print(f"{path}: stored")
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as err:
            print(f"{path}: left as it was\n{err}", file=sys.stderr)
            failed = True
        except (OSError, ValueError) as err:
            print(f"{path}: {err}", file=sys.stderr)
            failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

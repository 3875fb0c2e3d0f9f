"""Storing notebooks: outputs without what differs from run to run, and no file touched when a cell fails."""

import json

import nbformat
import pytest

from helpers import notebook_store

CELLS = ["import ipywidgets, sys, time\nfrom helpers import figures\n"
         "print('one', flush=True)\ntime.sleep(0.3)\n"
         "print('aside', file=sys.stderr, flush=True)\ntime.sleep(0.3)\nprint('two')",
         "ipywidgets.IntSlider(description='n')",
         "figures.matrix([[1.0, 0.0], [0.25, 0.75]], 'Who reads whom')"]


def write(path, cells):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
    notebook.metadata["widgets"] = {"state": {}}
    nbformat.write(notebook, path)
    return path


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = write(tmp_path_factory.mktemp("notebooks") / "a.ipynb", CELLS)
    assert notebook_store.main([str(path)]) == 0
    return path


def test_outputs_are_stored_in_order(stored):
    notebook = nbformat.read(stored, as_version=4)
    assert [cell.execution_count for cell in notebook.cells] == [1, 2, 3]
    streams = {output.name: output.text for output in notebook.cells[0].outputs}
    assert streams == {"stdout": "one\ntwo\n", "stderr": "aside\n"} and len(notebook.cells[0].outputs) == 2
    picture = notebook.cells[2].outputs[0].data
    assert set(picture) == {"text/html", "image/svg+xml", "text/plain"}


def test_nothing_is_stored_that_differs_from_run_to_run(stored):
    text = stored.read_text(encoding="utf-8")
    notebook = json.loads(text)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert notebook["metadata"]["language_info"]["version"] == "3"
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}
    assert "application/vnd.jupyter" not in text and "iopub" not in text and "model_id" not in text
    assert all(cell["metadata"] == {} for cell in notebook["cells"])
    assert notebook_store.main([str(stored)]) == 0
    assert stored.read_text(encoding="utf-8") == text


def test_metadata_that_authors_set_is_kept():
    metadata = {"tags": ["keep"], "execution": {"iopub.status.busy": "now"}}
    cell = nbformat.v4.new_code_cell("1", metadata=metadata)
    notebook = notebook_store.strip(nbformat.v4.new_notebook(cells=[cell]))
    assert notebook.cells[0].metadata == {"tags": ["keep"]}


def test_a_cell_that_fails_leaves_the_file_and_the_others_alone(tmp_path, capsys):
    bad, good = write(tmp_path / "bad.ipynb", ["0", "1 / 0"]), write(tmp_path / "good.ipynb", ["1 + 1"])
    before = bad.read_bytes()
    assert notebook_store.main([str(bad), str(good)]) == 1 and bad.read_bytes() == before
    assert notebook_store.main([str(tmp_path / "missing.ipynb")]) == 1
    out, err = capsys.readouterr()
    assert "1 / 0" in err and "ZeroDivisionError" in err and "missing.ipynb" in err
    assert "good.ipynb: stored" in out
    assert nbformat.read(good, as_version=4).cells[0].outputs[0].data["text/plain"] == "2"

"""Every notebook run in JupyterLab, and every explorer in it taken hold of."""

from pathlib import Path

import nbformat
import pytest
import twins
from playwright.sync_api import expect

from helpers import explorers

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
CALLS = [(path.name, number, name) for path in NOTEBOOKS
         for number, (name, _) in enumerate(twins.calls(path))]
ROOM = "what => [...what.querySelectorAll('*'), what].filter(n => n.scrollWidth > n.clientWidth + 1 && " \
       "getComputedStyle(n).display != 'inline' && n.clientWidth > 1).map(n => n.className)"

every_notebook = pytest.mark.parametrize("live", [path.name for path in NOTEBOOKS], indirect=True)
every_explorer = pytest.mark.parametrize(
    "live, number", [(name, number) for name, number, _ in CALLS], indirect=["live"],
    ids=[f"{name[:2]}-{number}-{explorer}" for name, number, explorer in CALLS])


def test_every_explorer_of_the_package_stands_in_a_notebook():
    makers = {name for name in explorers.__all__ if name.islower()}
    assert {name for *_, name in CALLS} == makers and len(makers) >= 14


@every_notebook
def test_run_all_gives_every_explorer(live):
    """That no cell fails, `live` has seen to."""
    expect(live.found).to_have_count(len(list(twins.calls(live.path))))


@every_notebook
def test_before_anything_is_run_every_stored_picture_stands_there_with_its_text(live):
    """The notebook is one that nobody has trusted yet."""
    stored = [output.data for cell in nbformat.read(live.path, as_version=4).cells
              for output in cell.get("outputs", ()) if "image/svg+xml" in output.get("data", {})]
    assert len(live.before) == len(stored) > 0
    for shown, data in zip(live.before, stored, strict=True):
        assert shown["drawn"] and shown["alt"] and shown["text"] == data["text/plain"]


@every_explorer
def test_every_control_least_and_greatest_by_mouse_and_keyboard_shows_its_state(live, number):
    pair = live.pair(number)
    pair.alike("as it is called")
    for what, do, same in pair.acts():
        do()
        same()
        pair.alike(what)

"""Notebooks as web pages, `jupyter nbconvert --to html`, opened without a network."""

import subprocess
import sys
from pathlib import Path

import pytest
from lab import pictures
from twins import same_pictures, stored

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The folder of the pages, and the pictures of each notebook."""
    folder = tmp_path_factory.mktemp("web pages")
    command = [sys.executable, "-m", "nbconvert", "--to", "html", "--output-dir", str(folder)]
    subprocess.run([*command, *map(str, NOTEBOOKS)], check=True, capture_output=True)
    return folder, {path: stored(path) for path in NOTEBOOKS}


@pytest.fixture(scope="module")
def offline(browser):
    context = browser.new_context()
    context.set_offline(True)
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_picture_stands_in_the_page_with_its_text(pages, offline, path):
    folder, expected = pages
    offline.goto((folder / f"{path.stem}.html").as_uri())
    same_pictures(pictures(offline, len(expected[path])), expected[path])
    assert offline.get_by_text("Loading widget").count() == 0

"""Slides: every notebook is marked for them, and what is made needs no network."""

import re
from pathlib import Path

import nbformat
import pytest

from classroom import slides

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
KINDS = {"slide", "subslide", "fragment", "skip", "notes", "-"}
LONGEST = 34  # lines of code and printed text that a slide holds


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request):
    return nbformat.read(request.param, as_version=4)


def test_every_cell_has_a_slide_mark_and_every_section_begins_a_slide(notebook):
    assert slides.kind(notebook.cells[0]) == "slide"
    for cell in notebook.cells:
        assert cell.metadata.get("slideshow", {}).get("slide_type") in KINDS, cell.source[:60]
        if cell.cell_type == "markdown" and re.match("## ", cell.source):
            assert slides.kind(cell) in ("slide", "subslide", "skip"), cell.source[:60]
    shown = [cell for cell in notebook.cells if slides.kind(cell) != "skip"]
    assert len(shown) > len(notebook.cells) / 2


def test_no_slide_is_longer_than_a_screen(notebook):
    lines = 0
    for cell in slides.pictures_apart(notebook).cells:
        if slides.kind(cell) == "skip":
            continue
        if slides.kind(cell) in ("slide", "subslide"):
            lines = 0
        printed = [output.get("text", "") for output in cell.get("outputs", ())]
        lines += len("\n".join([cell.source, *printed]).splitlines())
        assert lines <= LONGEST, cell.source[:60]


def test_every_picture_has_a_slide_of_its_own(notebook):
    cells = slides.pictures_apart(notebook).cells
    pictures = sum(slides.is_picture(o) for c in notebook.cells if slides.kind(c) != "skip"
                   for o in c.get("outputs", ()))
    apart = [cell for cell in cells if slides.PICTURE in cell.metadata.get("tags", ())]
    assert sum(len(cell.outputs) for cell in apart) == pictures > 0
    assert all(slides.kind(cell) == "subslide" and not cell.source for cell in apart)
    for data in (output.data for cell in apart for output in cell.outputs):
        assert re.search('<img [^>]*alt="[^"]', data.get("text/html", "")) or "image/svg+xml" in data
    for before, after in zip(cells, cells[1:], strict=False):
        if before in apart and slides.kind(after) != "skip":
            assert slides.kind(after) != "-", after.source[:60]


def test_slides_load_nothing_from_anywhere(notebook):
    text = slides.as_slides(notebook, "some")
    loaded = re.findall(r'<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)="([^"]*)"', text)
    loaded += re.findall(r"@import\s+(?:url\()?['\"]?([^'\");]+)", text)
    loaded += re.findall(r"import \w+ from '([^']+)'", text)
    assert loaded and all(url.startswith(("parts/", "data:")) for url in loaded), loaded
    needed = {url.partition("?")[0] for url in loaded if url.startswith("parts/")}
    for url in needed:
        package, _, file = url.removeprefix("parts/").partition("/")
        (wanted,) = [wanted for name, wanted in slides.PARTS.items() if name.startswith(f"{package}@")]
        assert file.startswith(wanted), url
    assert "\n## " not in text and "](../" not in text


def test_without_npm_it_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(slides.shutil, "which", lambda name: None)
    assert slides.main([str(tmp_path / "out")]) == 1
    assert "install Node.js" in capsys.readouterr().err


def test_a_folder_with_other_things_is_left_alone(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    assert slides.main([str(tmp_path)]) == 1
    assert "holds other things" in capsys.readouterr().err and len(list(tmp_path.iterdir())) == 1


def test_with_its_parts_there_every_notebook_is_made(tmp_path):
    for package in slides.PARTS:
        (tmp_path / "parts" / package.partition("@")[0]).mkdir(parents=True)
    slides.slides(tmp_path, say=lambda text: None)
    made = {path.name for path in tmp_path.glob("*.html")}
    assert made == {f"{path.stem}.slides.html" for path in NOTEBOOKS} | {"index.html"}
    listed = re.findall('href="([^"]+)"', (tmp_path / "index.html").read_text(encoding="utf-8"))
    assert set(listed) == made - {"index.html"}

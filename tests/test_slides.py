"""Slides: every notebook is marked for them, and what is made needs no network. browser/ looks at each."""

import re
from pathlib import Path

import nbformat
import pytest

from classroom import slides

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
KINDS = {"slide", "subslide", "fragment", "skip", "notes", "-"}


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


def slides_of(notebook):
    """The cells of each slide."""
    groups = []
    for cell in slides.arranged(notebook).cells:
        if slides.kind(cell) in ("slide", "subslide"):
            groups.append([])
        groups[-1].append(cell)
    return groups


def test_what_is_skipped_is_left_out_and_all_else_is_there_once(notebook):
    shown = [cell.source for group in slides_of(notebook) for cell in group if cell.source]
    marked = [cell for cell in notebook.cells if slides.kind(cell) != "skip"]
    assert len([source for source in shown if "class=\"section\"" not in source]) == len(marked)


def test_every_slide_says_what_it_is_about(notebook):
    section = ""
    for first, *_ in slides_of(notebook):
        assert first.cell_type == "markdown"
        heading = re.match("##? (.*)", first.source)
        section = heading[1] if heading else section
        assert heading or first.source == f'<p class="section">{section}</p>'


def test_a_sentence_alone_is_no_slide(notebook):
    for cells in slides_of(notebook):
        words = sum(len(cell.source.split()) for cell in cells if cell.cell_type == "markdown")
        assert any(cell.cell_type == "code" for cell in cells) or words > 20, cells[-1].source


def shown_as_a_picture(output):
    return slides.is_picture(output) or "<img " in output.get("data", {}).get("text/html", "")


def test_a_picture_stands_below_a_line_of_code_or_apart_from_it(notebook):
    pictures = 0
    for cells in slides_of(notebook):
        shown = [cell for cell in cells if any(map(shown_as_a_picture, cell.get("outputs", ())))]
        if not shown:
            continue
        (cell,) = [cell for cell in cells if cell.cell_type == "code"]
        assert shown == [cell] and len(cell.source.splitlines()) <= slides.SHORT
        assert (not cell.source) == (slides.PICTURE in cell.metadata.get("tags", ()))
        for output in filter(shown_as_a_picture, cell.outputs):
            assert re.search('<img [^>]*alt="[^"]', output.data.get("text/html", "")) \
                or "image/svg+xml" in output.data
            pictures += 1
    assert pictures == sum(slides.is_picture(output) for cell in notebook.cells
                           if slides.kind(cell) != "skip" for output in cell.get("outputs", ())) > 0


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

"""Every slide of every notebook in a real browser: whole on the screen, large enough, without a network."""

import json
import shutil
from pathlib import Path

import nbformat
import pytest

from classroom import slides

ROOT = Path(__file__).resolve().parents[2]
PARTS = ROOT / "build" / "slides" / "parts"
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SMALLEST = 0.6          # of the size of letters
LOWEST = 390            # of 720: a picture, unless it is as wide as the slide

# Goes through all slides and says of each: where it is, what it holds, and how large that is.
LOOK = """() => Reveal.getSlides().filter(slide => !slide.classList.contains('stack')).map(slide => {
    const {h, v} = Reveal.getIndices(slide);
    Reveal.slide(h, v);
    const scale = Reveal.getScale(), box = slide.getBoundingClientRect();
    const inside = [...slide.querySelectorAll('p, li, td, pre, h1, h2, h3, img, blockquote')];
    const ends = inside.map(part => part.getBoundingClientRect());
    return {
        place: h + '/' + v,
        text: slide.innerText.trim().slice(0, 60),
        hidden: Math.max(slide.scrollHeight - slide.clientHeight, 0),
        low: Math.max(...ends.map(end => end.bottom)) / window.innerHeight,
        wide: Math.max(...ends.map(end => end.right)) / window.innerWidth,
        cut: inside.filter(part => part.scrollWidth > part.clientWidth + 1 && part.tagName == 'PRE').length,
        size: parseFloat(getComputedStyle(slide).getPropertyValue('--part')),
        pictures: [...slide.querySelectorAll('img')].map(picture => {
            const room = picture.getBoundingClientRect();
            const shape = picture.naturalWidth / picture.naturalHeight;
            const height = Math.min(room.height / scale, room.width / scale / shape);
            return {height, width: height * shape, loaded: picture.complete && picture.naturalWidth > 0};
        }),
    };
})"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if not PARTS.is_dir():
        pytest.skip("`python3 course.py slides` has not been run here: it fetches what shows them")
    made = tmp_path_factory.mktemp("slides")
    shutil.copytree(PARTS, made / "parts")
    return made


def show(page, folder, notebook, name):
    """Open a notebook's slides, with Reveal at hand and all formulas set."""
    path = folder / f"{name}.slides.html"
    path.write_text(slides.as_slides(notebook, name), encoding="utf-8")
    page.goto(path.as_uri())
    page.wait_for_selector(".reveal.ready")
    page.evaluate("""() => new Promise(done => require(['parts/reveal.js/dist/reveal.js'], Reveal => {
        window.Reveal = Reveal;
        MathJax.Hub.Register.StartupHook("End", done);
    }))""")


def faults(found):
    """Sentences about what is not as it must be."""
    for slide in found:
        where = f"{slide['place']} ({slide['text']!r})"
        if slide["hidden"] or slide["low"] > 1:
            yield f"{where}: its end is not on the screen"
        if slide["wide"] > 1 or slide["cut"]:
            yield f"{where}: it is wider than the screen"
        if slide["size"] < SMALLEST:
            yield f"{where}: its letters are too small"
        for picture in slide["pictures"]:
            if not picture["loaded"]:
                yield f"{where}: its picture is not there"
            elif picture["height"] < LOWEST and picture["width"] < slides.SIZE[0] * 0.9:
                yield f"{where}: its picture is small, {picture['width']:.0f} by {picture['height']:.0f}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_slide_is_whole_on_the_screen(offline, folder, path):
    notebook = nbformat.read(path, as_version=4)
    show(offline, folder, notebook, path.stem)
    found = offline.evaluate(LOOK)
    assert len(found) > 20 and list(faults(found)) == []
    offline.evaluate("new Promise(done => MathJax.Hub.Queue(done))")       # each slide sets its own anew
    formulas = any("$" in cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert (offline.locator(".mjx-chtml").count() > 0) == formulas
    assert offline.locator(".mjx-merror, .MathJax_Error").count() == 0


def test_what_does_not_fit_would_be_seen(offline, folder):
    marks = {"slideshow": {"slide_type": "slide"}}
    long = nbformat.v4.new_code_cell("\n".join(["pass"] * 80), metadata=marks)
    wide = nbformat.v4.new_code_cell("x" * 300, metadata=marks)
    fits = nbformat.v4.new_code_cell("\n".join(["pass"] * 30), metadata=marks)
    show(offline, folder, nbformat.v4.new_notebook(cells=[fits, long, wide]), "three")
    assert [text.partition(": ")[2] for text in faults(offline.evaluate(LOOK))] == [
        "its end is not on the screen", "it is wider than the screen"]


def test_keys_lead_through_and_the_speakers_window_shows_the_next_slide(offline, folder):
    path = NOTEBOOKS[0]
    show(offline, folder, nbformat.read(path, as_version=4), path.stem)
    place = "JSON.stringify(Reveal.getIndices())"
    assert json.loads(offline.evaluate(place)) | {"f": 0} == {"h": 0, "v": 0, "f": 0}
    offline.keyboard.press("Space")
    offline.keyboard.press("Space")
    offline.keyboard.press("ArrowRight")
    assert json.loads(offline.evaluate(place))["h"] == 2
    offline.keyboard.press("Escape")
    assert offline.evaluate("Reveal.isOverview()")
    offline.keyboard.press("Escape")
    with offline.expect_popup() as opened:
        offline.keyboard.press("s")
    speakers = opened.value
    speakers.wait_for_selector("#upcoming-slide iframe")
    speakers.close()

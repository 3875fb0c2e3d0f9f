"""Every notebook as slides that open without a network: `python3 course.py slides [OUT]`.

nbconvert makes them; the marks for it are in the notebooks (JupyterLab's property inspector, Slide Type).
What slides need besides, reveal, MathJax, require and jQuery, comes from npm packages, once, into OUT/parts.
"""

import argparse
import copy
import html
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import nbformat

from classroom.command import refused, typed
from classroom.sandbox import ROOT
from helpers.exercise_notebooks import read

PARTS = {  # npm package -> what is needed of it
    "reveal.js@4.6.1": ("dist/", "plugin/notes/"),
    "requirejs@2.3.7": ("require.js",),
    "jquery@3.7.1": ("dist/jquery.min.js",),
    "mathjax@2.7.9": (
        "MathJax.js", "config/TeX-AMS_CHTML-full.js", "config/Safe.js", "extensions/",
        "jax/element/", "jax/input/TeX/", "jax/output/CommonHTML/", "fonts/HTML-CSS/TeX/woff/",
    ),
}
MATHJAX = "parts/mathjax/MathJax.js?config=TeX-AMS_CHTML-full,Safe"
PICTURE = "picture"  # the tag of a cell that is made here for a picture alone
SHORT = 3  # lines of code that stay with their picture
SIZE = 1280, 720  # of a slide; the browser makes it as large as its window
STYLE = """<style>
:root { --part: 1; --room: 0px; --jp-cell-prompt-width: 0px;
    --jp-content-font-size1: calc(27px * var(--part)); --jp-code-font-size: calc(21px * var(--part)) }
.reveal .slides { text-align: left }
.reveal .slides section:not(.stack) { max-height: 720px; overflow-y: auto; box-sizing: border-box; padding: 0;
    --jp-content-font-size1: calc(27px * var(--part)); --jp-code-font-size: calc(21px * var(--part)) }
.reveal .slides .jp-Cell, .reveal .slides .jp-OutputArea-output { padding-top: 0; padding-bottom: 0 }
.reveal .slides .jp-OutputArea img { display: block; width: 100%; max-width: none; height: var(--room);
    max-height: none; object-fit: contain; margin: 0 }
.reveal table { font-size: 20px } .reveal h1 { font-size: 52px } .reveal h2 { font-size: 40px }
.reveal h1, .reveal h2, .reveal h3 { text-transform: none; letter-spacing: normal }
.reveal .controls { font-size: 6px }
.reveal p.section { font-size: 22px; color: #666; margin: 0 }
.reveal pre, .reveal code { font-size: var(--jp-code-font-size); line-height: 1.25 }
.reveal pre { width: 100%; box-shadow: none; margin: 0; max-height: none; overflow: visible }
.reveal p code, .reveal li code { font-size: 0.9em }
.reveal .jp-OutputArea pre { font-size: calc(0.9 * var(--jp-code-font-size)) }
.reveal blockquote { width: auto; margin: 0 0 0.5em; box-shadow: none }
.jp-InputArea, .jp-InputArea-editor, .jp-OutputArea { overflow: visible }
</style>"""
# What a slide holds is made smaller until it fits, whatever letters the machine has, and a picture gets all
# the room that is left. Where even the smallest is too large, the slide scrolls.
FIT = """<script>
require(["parts/reveal.js/dist/reveal.js"], function (Reveal) {
    const HEIGHT = 720, LEAST = 400, SMALLEST = 0.6;
    function fit() {
        const slide = Reveal.getCurrentSlide();
        const pictures = slide.querySelectorAll(".jp-OutputArea img").length;
        let room = 0;
        slide.style.setProperty("--room", "0px");
        for (let part = 1; part >= SMALLEST; part -= 0.04) {
            slide.style.setProperty("--part", part);
            room = HEIGHT - slide.scrollHeight;
            if (room >= LEAST * pictures) break;
        }
        if (pictures) slide.style.setProperty("--room", Math.max(room / pictures, LEAST) - 2 + "px");
    }
    Reveal.configure({center: false, margin: 0.03});
    Reveal.on("slidechanged", fit);
    Reveal.on("ready", () => MathJax.Hub.Register.StartupHook("End", fit));
    if (Reveal.isReady && Reveal.isReady()) MathJax.Hub.Register.StartupHook("End", fit);
});
</script>"""


class Refused(Exception):
    """No slides can be made; the text says why."""


def slides(out, root=ROOT, say=print):
    """Write slides of all notebooks and a page that lists them into `out`. Raises Refused."""
    if out.exists() and (not out.is_dir() or any(out.iterdir()) and not (out / "parts").is_dir()):
        raise Refused(f"{out} is there and holds other things: name a folder that does not exist yet")
    fetch(out / "parts", say)
    titles = []
    for path in sorted((root / "notebooks").glob("*.ipynb")):
        notebook = read(path)
        (out / f"{path.stem}.slides.html").write_text(as_slides(notebook, path.stem), encoding="utf-8")
        titles.append((path.stem, notebook.cells[0].source.partition("\n")[0].lstrip("# ")))
        say(f"{path.stem}.slides.html")
    (out / "index.html").write_text(contents(titles), encoding="utf-8")


def fetch(parts, say):
    """What slides need to be shown, from npm packages, into the folder `parts`, once."""
    for package, wanted in PARTS.items():
        name = package.partition("@")[0]
        if (parts / name).is_dir():
            continue
        npm = shutil.which("npm")
        if npm is None:
            raise Refused("Slides need npm, once, to fetch what shows them: install Node.js, which has it")
        say(f"Fetching {package} ...")
        with tempfile.TemporaryDirectory() as folder:
            heard = {"capture_output": True, "encoding": "utf-8", "errors": "replace"}
            done = subprocess.run([npm, "pack", "--silent", package], cwd=folder, **heard)
            packed = list(Path(folder).glob("*.tgz"))
            if done.returncode or not packed:
                raise Refused(f"npm could not fetch {package}: {done.stderr.strip()[-300:] or 'no answer'}")
            with tarfile.open(packed[0]) as archive:
                archive.extractall(folder, filter="data")
            fresh = Path(folder, "fresh")
            for file in sorted(Path(folder, "package").rglob("*")):
                inside = file.relative_to(Path(folder, "package"))
                if file.is_file() and inside.as_posix().startswith(wanted):
                    (fresh / inside).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(file, fresh / inside)
            parts.mkdir(parents=True, exist_ok=True)
            shutil.copytree(fresh, parts / f"{name}.new", dirs_exist_ok=True)
        (parts / f"{name}.new").rename(parts / name)  # whole or not at all


def as_slides(notebook, name):
    """A notebook as one HTML file."""
    from nbconvert import SlidesExporter
    from traitlets.config import Config

    config = Config({"TagRemovePreprocessor": {"enabled": True, "remove_input_tags": {PICTURE}}})
    exporter = SlidesExporter(
        config=config,
        reveal_url_prefix="parts/reveal.js", reveal_theme="white", reveal_transition="none",
        reveal_number="c/t", reveal_width=str(SIZE[0]), reveal_height=str(SIZE[1]),
        require_js_url="parts/requirejs/require.js", jquery_url="parts/jquery/dist/jquery.min.js",
        mathjax_url=MATHJAX, exclude_input_prompt=True, exclude_output_prompt=True,
    )
    text, _ = exporter.from_notebook_node(arranged(notebook), {"metadata": {"name": name}})
    text = re.sub(r'<script type="module">(?:(?!</script>).)*mermaid.*?</script>', "", text, flags=re.DOTALL)
    return text.replace("</head>", STYLE + "</head>", 1).replace("</html>", FIT + "</html>", 1)


def arranged(notebook):
    """The notebook as it is shown: pictures apart from long code, and on every slide what it is about."""
    notebook, cells, section = copy.deepcopy(notebook), [], ""
    for cell in notebook.cells:
        if kind(cell) == "skip":
            continue
        if cell.cell_type == "markdown":
            cell.source = re.sub(r"\]\((\d\d_\w+)\.ipynb\)", r"](\1.slides.html)", cell.source)
            cell.source = re.sub(r"\[([^]]+)\]\(\.\./[^)]*\)", r"\1", cell.source)
        heading = re.match("##? (.*)", cell.source) if cell.cell_type == "markdown" else None
        if heading:
            section = heading[1]
        elif kind(cell) in ("slide", "subslide"):
            cells.append(about(section, kind(cell)))
            cell.metadata["slideshow"] = {"slide_type": "-"}
        cells.append(cell)
        if cell.cell_type == "code" and any(map(is_picture, cell.outputs)):
            pictures = [alone(output) for output in cell.outputs if is_picture(output)]
            others = [output for output in cell.outputs if not is_picture(output)]
            if len(cell.source.splitlines()) <= SHORT:
                cell.outputs = others + pictures
            else:
                cell.outputs = others
                cells += [about(section, "subslide"), picture_cell(pictures)]
    notebook.cells = cells
    return notebook


def about(section, slide_type):
    """The small line on top of a slide that has no heading: what it is about."""
    marks = {"slideshow": {"slide_type": slide_type}}
    return nbformat.v4.new_markdown_cell(f'<p class="section">{section}</p>', metadata=marks)


def picture_cell(pictures):
    marks = {"slideshow": {"slide_type": "-"}, "tags": [PICTURE]}
    return nbformat.v4.new_code_cell("", outputs=pictures, metadata=marks)


def kind(cell):
    """The slide type of a cell: slide, subslide, fragment, skip, notes, or "-" for what goes on."""
    return cell.metadata.get("slideshow", {}).get("slide_type", "-")


def is_picture(output):
    return any(kind.startswith("image/") for kind in output.get("data", ()))


def alone(output):
    """The output as its picture, with the text that stands for it and without the one below it."""
    data = {mime: value for mime, value in output.data.items() if mime.startswith("image/")}
    form = re.search(r"<img [^>]*>", "".join(output.data.get("text/html", "")))
    return nbformat.from_dict(output | {"data": {"text/html": form[0]} if form else data})


def contents(titles):
    """The page that lists the slides."""
    rows = "".join(
        f'<li><a href="{stem}.slides.html">{html.escape(title)}</a></li>' for stem, title in titles
    )
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Slides</title></head>'
        '<body style="font: 20px/1.8 system-ui, sans-serif; margin: 3em"><h1>Slides</h1>'
        f"<ul>{rows}</ul>"
        "<p>Space goes on, Esc shows all, F fills the screen, S opens the speaker's window.</p>"
        "</body></html>\n"
    )


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="course.py slides", description="Every notebook as slides.")
    parser.add_argument("out", type=typed, nargs="?", default=ROOT / "build" / "slides",
                        help="the folder they go into (default: build/slides)")
    options = parser.parse_args(arguments)
    try:
        slides(options.out)
    except Refused as err:
        print(f"{err}.", file=sys.stderr)
        return 1
    except OSError as err:
        print(f"{refused(options.out, err)}.", file=sys.stderr)
        return 1
    print(f"Open {options.out / 'index.html'} in a browser.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

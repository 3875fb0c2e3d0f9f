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

from classroom.sandbox import ROOT, typed
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
PICTURE = "picture-apart"  # the tag of a cell that is made here
SIZE = 1280, 800  # of a slide; the browser makes it as large as its window
STYLE = """<style>
.reveal .slides { text-align: left }
.reveal .slides .jp-OutputArea img { width: 100% !important; max-width: 100% !important;
    height: auto !important; max-height: 740px !important; object-fit: contain; margin: 0 }
.reveal table { font-size: 20px } .reveal h1 { font-size: 52px } .reveal h2 { font-size: 42px }
.reveal h1, .reveal h2, .reveal h3 { text-transform: none; letter-spacing: normal }
.reveal pre { width: 100%; box-shadow: none; margin: 0 } .jp-InputArea-editor { overflow: visible }
:root { --jp-content-font-size1: 26px; --jp-code-font-size: 20px; --jp-cell-prompt-width: 0px }
</style>"""


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
        reveal_scroll=True, reveal_number="c/t", reveal_width=str(SIZE[0]), reveal_height=str(SIZE[1]),
        require_js_url="parts/requirejs/require.js", jquery_url="parts/jquery/dist/jquery.min.js",
        mathjax_url=MATHJAX, exclude_input_prompt=True, exclude_output_prompt=True,
    )
    text, _ = exporter.from_notebook_node(pictures_apart(notebook), {"metadata": {"name": name}})
    text = re.sub(r'<script type="module">(?:(?!</script>).)*mermaid.*?</script>', "", text, flags=re.DOTALL)
    return text.replace("</head>", STYLE + "</head>", 1)


def pictures_apart(notebook):
    """The notebook with each picture on a slide of its own, after that of its code; links lead to slides."""
    notebook, cells = copy.deepcopy(notebook), []
    for cell in notebook.cells:
        cells.append(cell)
        if cell.cell_type == "markdown":
            cell.source = re.sub(r"\]\((\d\d_\w+)\.ipynb\)", r"](\1.slides.html)", cell.source)
            cell.source = re.sub(r"\[([^]]+)\]\(\.\./[^)]*\)", r"\1", cell.source)
        elif kind(cell) != "skip" and any(is_picture(output) for output in cell.outputs):
            apart = copy.deepcopy(cell)
            apart.id = f"{cell.id}-picture"[-64:]
            apart.source = ""
            apart.outputs = [alone(output) for output in cell.outputs if is_picture(output)]
            apart.metadata = nbformat.from_dict({"slideshow": {"slide_type": "subslide"}, "tags": [PICTURE]})
            cell.outputs = [output for output in cell.outputs if not is_picture(output)]
            cells.append(apart)
    notebook.cells = cells
    return notebook


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
    print(f"Open {options.out / 'index.html'} in a browser.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Every notebook as it is stored: run from the top, the same on every machine, and whole. nbval runs them."""

import base64
import copy
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from helpers.exercise_notebooks import fresh_exercises

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SOLUTIONS = sorted((ROOT / "solutions").glob("*.ipynb"))

OF_ONE_MACHINE = {
    "a path": r"/(home|root|Users|tmp|usr|var|work|opt)/|\b[A-Z]:\\|site-packages|ipykernel_\d|ipython-input",
    "an address in memory": r"\b0x[0-9a-f]{5,}",
    "a time": r"\b\d\d:\d\d:\d\d|\b20\d\d-\d\d-\d\d|\d ?(ms|µs|ns|seconds)\b",
}
WIDGET = "application/vnd.jupyter.widget"
WIDEST = 92          # characters: what fits beside the file list in a window of 1250 px


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]


def texts(output):
    """The output's forms that are text, those that nbval compares among them; drawings in them decoded."""
    if output.output_type == "stream":
        return [output.text]
    forms = [form for kind, form in output.get("data", {}).items() if kind != "image/png"]
    return [re.sub(r"base64,([\w+/=]+)", decoded, form) for form in forms if isinstance(form, str)]


def decoded(match):
    return base64.b64decode(match.group(1)).decode("utf-8", errors="replace")


def minutes(notebook):
    """The minutes that the first cell states."""
    found = re.search(r"\*\*Time\b.*?about (\d+)", notebook.cells[0].source, re.S | re.I)
    return int(found.group(1)) if found else None


def local_links(notebook):
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for link in re.findall(r"\]\(([^)\s#]+)|<img[^>]*src=[\"']([^\"']+)", cell.source):
                target = link[0] or link[1]
                if not re.match(r"https?:|mailto:|attachment:", target):
                    yield target


def faults(notebook, folder):
    """What is wrong with a stored notebook that lies in `folder`: a list of sentences."""
    found = []
    if notebook.metadata.get("kernelspec", {}).get("name") != "python3":
        found.append("no kernelspec python3: JupyterLab would ask for a kernel at every opening")
    if "widgets" in notebook.metadata:
        found.append("widget state in the metadata")
    ids = [cell.get("id") for cell in notebook.cells]
    found += [f"the cell id {name!r} is used twice" for name in sorted({i for i in ids if ids.count(i) > 1})]

    counts = [cell.execution_count for cell in code_cells(notebook)]
    if counts != list(range(1, len(counts) + 1)):
        found.append(f"not run once from the top: {counts}")
    for cell in code_cells(notebook):
        if cell.source.rstrip().endswith(";"):
            found.append(f"cell {cell.id!r} ends in a semicolon, which nbval does not honour")
        for output in cell.outputs:
            if output.output_type == "error":
                found.append(f"cell {cell.id!r} ends in an error")
            if output.output_type == "stream" and output.name == "stderr":
                found.append(f"cell {cell.id!r} writes to stderr: {output.text[:80]!r}")
            kinds = output.get("data", {})
            if any(kind.startswith(WIDGET) for kind in kinds):
                found.append(f"cell {cell.id!r} holds a widget view, which hides the picture beside it")
            if any(kind.startswith("image/") for kind in kinds) or "<img" in kinds.get("text/html", ""):
                text = kinds.get("text/plain", "")
                if not text or text.startswith("<"):
                    found.append(f"the picture of cell {cell.id!r} has no text form")
            for name, pattern in OF_ONE_MACHINE.items():
                for match in re.finditer(pattern, "\n".join(texts(output))):
                    around = match.string[max(match.start() - 15, 0):match.end() + 15].split("\n")[-1]
                    found.append(f"cell {cell.id!r} shows {name}: {around}")
    for target in local_links(notebook):
        if not (folder / target).exists():
            found.append(f"a link to {target}, which is not there")
    return found


def faults_of_form(notebook):
    """What a chapter lacks of its opening and its close: a list of sentences."""
    found = []
    first = notebook.cells[0]
    if first.cell_type != "markdown" or not re.match(r"# \d\d · \S", first.source):
        found.append("the first cell is not a heading like `# 01 · Embeddings`")
    for phrase in ("**What you will do", "**What you need", "**Time"):
        if phrase not in first.source:
            found.append(f"the first cell has no {phrase}**")
    if minutes(notebook) is None:
        found.append("the first cell does not say `**Time.** About N minutes`")
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    if re.findall(r"^## (.*)$", text, re.M)[-3:] != ["Recap", "Common traps", "Exercises"]:
        found.append("the last headings are not Recap, Common traps, Exercises")
    for cell in code_cells(notebook):
        printed_lines = [line for output in cell.outputs for line in output.get("text", "").splitlines()]
        if any(len(line) > WIDEST for line in cell.source.splitlines() + printed_lines):
            found.append(f"cell {cell.id} has a line of more than {WIDEST} characters")
    return found


def read(path):
    return nbformat.read(path, as_version=4)


def name_of(path):
    return f"{path.parent.name}/{path.stem}"


# The notebooks of the course


def test_the_notebooks_are_all_there():
    names = [path.name for path in NOTEBOOKS]
    assert len(names) >= 4
    assert [name[:2] for name in names] == [f"{number:02d}" for number in range(len(names))]
    assert {path.name for path in SOLUTIONS} == set(names[1:])


@pytest.mark.parametrize("path", NOTEBOOKS + SOLUTIONS, ids=name_of)
def test_stored_notebook_is_run_and_the_same_on_every_machine(path):
    notebook = read(path)
    nbformat.validate(notebook)
    assert faults(notebook, path.parent) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_of)
def test_notebook_opens_and_closes_as_a_chapter(path):
    assert faults_of_form(read(path)) == []


@pytest.mark.parametrize("path", NOTEBOOKS[1:], ids=name_of)
def test_notebook_has_an_explorer_and_leads_to_its_exercises(path):
    notebook = read(path)
    assert any("explorers." in cell.source for cell in code_cells(notebook))
    assert f"../exercises/{path.name}" in set(local_links(notebook))


def test_the_map_of_the_first_notebook_has_the_minutes_of_each():
    text = "\n".join(cell.source for cell in read(NOTEBOOKS[0]).cells if cell.id == "map")
    rows = {row[0]: int(row[1]) for row in re.findall(r"^\| \[?(\d\d) .*\| (\d+) \|$", text, re.M)}
    assert rows == {path.name[:2]: minutes(read(path)) for path in NOTEBOOKS}


def test_the_map_of_the_readme_has_the_minutes_of_each():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[.*\]\((notebooks/\S+)\) \| .* \| (\d+) \| (\d*) ?\|$", readme, re.M)
    assert [ROOT / link for link, _, _ in rows] == NOTEBOOKS
    for link, reading, doing in rows:
        solution = ROOT / link.replace("notebooks/", "solutions/")
        assert int(reading) == minutes(read(ROOT / link)), link
        assert int(doing or 0) == (minutes(read(solution)) if solution.exists() else 0), link


@pytest.mark.parametrize("name", [path.name for path in SOLUTIONS])
def test_exercises_as_handed_out_run_to_their_end(name, tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))
    notebook = fresh_exercises(ROOT)[name]
    assert all(not cell.outputs and cell.execution_count is None for cell in code_cells(notebook))
    where = {"metadata": {"path": tmp_path}}
    NotebookClient(notebook, timeout=60, kernel_name="python3", resources=where).execute()
    said = ["\n".join(text for output in cell.outputs for text in texts(output))
            for cell in code_cells(notebook) if cell.source.startswith("check(")]
    assert said and all("not written yet" in text for text in said)


# That the checks above see what they are for


def a_sound_notebook():
    first = "# 01 · Title\n\n**What you will do.** A.\n\n**What you need.** B.\n\n**Time.** About 5 minutes."
    picture = {"image/svg+xml": "<svg/>", "text/plain": "A picture: 1, 2"}
    return new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        cells=[
            new_markdown_cell(first, id="a"),
            new_code_cell("print(1)", id="b", execution_count=1, outputs=output_of("1")),
            new_code_cell("2", id="c", execution_count=2, outputs=[new_output("display_data", picture)]),
            new_code_cell("", id="empty"),
            new_markdown_cell("## Recap\n\n[here](there.txt), [far](https://example.org)", id="d"),
            new_markdown_cell("## Common traps", id="e"),
            new_markdown_cell("## Exercises", id="f"),
        ],
    )


def output_of(text):
    return [new_output("stream", text=text)]


def printed(text, **more):
    return lambda notebook: notebook.cells[1].update(outputs=[new_output("stream", text=text, **more)])


def in_base64(text):
    return f"<img src='data:image/svg+xml;base64,{base64.b64encode(text.encode()).decode()}'>"


def opening(old, new):
    return lambda notebook: notebook.cells[0].update(source=notebook.cells[0].source.replace(old, new))


PLANTED = {
    "no kernelspec": lambda nb: nb.metadata.pop("kernelspec"),
    "widget state": lambda nb: nb.metadata.update(widgets={}),
    "is used twice": lambda nb: nb.cells[1].update(id="a"),
    "not run once from the top: [3, 2]": lambda nb: nb.cells[1].update(execution_count=3),
    "not run once from the top: [1, None]": lambda nb: nb.cells[2].update(execution_count=None),
    "semicolon": lambda nb: nb.cells[1].update(source="1;\n"),
    "ends in an error": lambda nb: nb.cells[1].outputs.append(new_output("error", ename="E", evalue="")),
    "stderr": printed("careful", name="stderr"),
    "widget view": lambda nb: nb.cells[2].outputs[0].data.update({f"{WIDGET}-view+json": {}}),
    "no text form": lambda nb: nb.cells[2].outputs[0].data.update({"text/plain": "<Figure size 640x480>"}),
    "shows a path: /home": printed("/home/anna/x"),
    "shows a path: C:": lambda nb: nb.cells[2].outputs[0].data.update({"text/plain": "C:\\Users"}),
    "shows an address": printed("<object at 0x7f2cb03daf50>"),
    "svg+xml;at /home": lambda nb: nb.cells[2].outputs[0].data.update({"text/html": in_base64("at /home/x")}),
    "shows a time: took": printed("took 3 ms"),
    "shows a time: 12": printed("12:13:14"),
    "a link to there.txt": lambda nb: None,                        # the file is not made for this one
    "not a heading": opening("# 01", "#"),
    "no **What you need": opening("you need", "to know"),
    "does not say": opening("5", "five"),
    "b has a line of more than": lambda nb: nb.cells[1].update(source="x = 1" + " " * 90 + "# far out"),
    "the last headings": lambda nb: nb.cells.append(new_markdown_cell("## One more", id="g")),
}


def test_a_sound_notebook_has_no_faults(tmp_path):
    (tmp_path / "there.txt").touch()
    assert faults(a_sound_notebook(), tmp_path) + faults_of_form(a_sound_notebook()) == []


@pytest.mark.parametrize("sentence", PLANTED)
def test_a_planted_fault_is_found(sentence, tmp_path):
    if "there.txt" not in sentence:
        (tmp_path / "there.txt").touch()
    notebook = copy.deepcopy(a_sound_notebook())
    PLANTED[sentence](notebook)
    found = faults(notebook, tmp_path) + faults_of_form(notebook)
    assert len(found) == 1 and sentence in found[0], found


@pytest.mark.parametrize(("stored", "status"), [("2\n", 0), ("3\n", 1)])
def test_the_settings_compare_stored_outputs_with_fresh_ones(stored, status, tmp_path):
    notebook = a_sound_notebook()
    notebook.cells = [new_code_cell("print(1 + 1)", id="a", execution_count=1, outputs=output_of(stored))]
    nbformat.write(notebook, tmp_path / "one.ipynb")
    settings = ["-c", str(ROOT / "pyproject.toml"), f"--rootdir={tmp_path}"]
    command = [sys.executable, "-m", "pytest", *settings, "one.ipynb"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8")
    assert run.returncode == status, run.stdout

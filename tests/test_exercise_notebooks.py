"""How the exercise notebooks are written from the solutions, and that nobody's work is ever lost."""

import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from helpers import exercise_notebooks
from helpers.exercise_notebooks import BEGIN, END, STUB, Refused, check, exercise, stub, write

SOURCE = f'''def double(x):
    """Twice x."""
    {BEGIN}
    return 2 * x
    {END}'''
BLANK = f'''def double(x):
    """Twice x."""
    {STUB}'''


def a_solution(*sources):
    made = [new_markdown_cell("## Text", id="text")]
    for number, source in enumerate(sources or (SOURCE,), start=1):
        made.append(new_code_cell(source, id=f"answer-{number}", metadata={"tags": ["answer"]},
                                  execution_count=number, outputs=[new_output("stream", text="seen")]))
    made.append(new_code_cell("check(double)", id="check", metadata={"tags": ["check"]}))
    return new_notebook(cells=made)


@pytest.fixture
def course(tmp_path):
    (tmp_path / "solutions").mkdir()
    save(tmp_path / "solutions" / "01.ipynb", a_solution())
    assert write(tmp_path, say=[].append) == 0
    return tmp_path


def save(path, notebook):
    path.write_text(nbformat.writes(notebook), encoding="utf-8")


def edit(path, change):
    notebook = nbformat.read(path, as_version=4)
    change(notebook)
    save(path, notebook)


def said_by(action, root, **options):
    said = []
    return action(root, say=said.append, **options), "\n".join(said)


def answer(source):
    def change(notebook):
        notebook.cells[1].source = source
    return change


def add_a_cell(notebook):
    notebook.cells.append(new_code_cell("double(3)", id="mine"))


def add_outputs(notebook):
    notebook.cells[2].outputs = [new_output("stream", text="not written yet")]
    notebook.cells[2].execution_count = 7


def test_stub_takes_the_place_of_every_block_at_its_indentation():
    assert stub(SOURCE) == BLANK
    block = f"{BEGIN}\n    y = 1\n\n    z = 2\n    {END}"
    two = f"def f(x):\n  if x:\n    {block}\n  {BEGIN}\n  return y\n  {END}\nz = 3"
    assert stub(two) == f"def f(x):\n  if x:\n    {STUB}\n  {STUB}\nz = 3"


def test_exercise_keeps_ids_tags_and_texts_and_clears_outputs():
    given = a_solution()
    made = exercise(given)
    assert [c.id for c in made.cells] == ["text", "answer-1", "check"]
    assert [c.metadata.get("tags") for c in made.cells] == [None, ["answer"], ["check"]]
    assert made.cells[1].source == BLANK and made.cells[0].source == "## Text"
    assert made.cells[1].outputs == [] and made.cells[1].execution_count is None
    assert given.cells[1].source == SOURCE and given.cells[1].outputs       # the solution stays as it is


@pytest.mark.parametrize(("source", "words"), [
    (SOURCE.replace(END, ""), 'no "### END SOLUTION" after it'),
    (SOURCE.replace(BEGIN, ""), 'no "### BEGIN SOLUTION" before it'),
    (f"    {END}\n{SOURCE}", "line 1 has"),
    (SOURCE.replace("return", f"{BEGIN}\n    return"), "line 4 has .* inside the block that begins"),
    (SOURCE.replace(END, f"{END}\n    {END}"), "line 6 has"),
    (SOURCE.replace(BEGIN, "## BEGIN SOLUTION"), "not exactly"),
    (SOURCE.replace(BEGIN, "### begin solution"), "not exactly"),
    (SOURCE.replace(BEGIN, f"x = 1 {BEGIN}"), "not exactly"),
    (SOURCE.replace(f"    {BEGIN}", BEGIN), "outside a function"),
    (SOURCE.replace("def double(x):", f"def double(x):\n{BEGIN}\n{END}\n"), "not Python"),
    ("def double(x):\n    return 2 * x", "no solution is marked"),
])
def test_wrong_marks_are_refused_naming_notebook_and_cell(source, words):
    with pytest.raises(Refused, match=words) as refusal:
        exercise(a_solution(SOURCE, source), "solutions/01.ipynb")
    assert 'solutions/01.ipynb, cell 3 ("answer-2")' in str(refusal.value)


def test_mark_in_a_text_cell_is_refused():
    notebook = a_solution()
    notebook.cells[0].source += f"\n{BEGIN}"
    with pytest.raises(Refused, match=r'cell 1 \("text"\): a solution mark in a cell that is not code'):
        exercise(notebook)


@pytest.mark.parametrize("cell_id", ["text", ""])
def test_ids_must_be_there_and_differ(cell_id):
    notebook = a_solution()
    notebook.cells[1]["id"] = cell_id
    with pytest.raises(Refused, match="used twice|has no id"):
        exercise(notebook)


def test_a_refusal_writes_nothing_and_ends_in_status_1(course, capsys):
    save(course / "solutions" / "00.ipynb", a_solution())
    save(course / "solutions" / "02.ipynb", a_solution(SOURCE.replace(END, "")))
    assert exercise_notebooks.main(["--root", str(course)]) == 1
    assert 'solutions/02.ipynb, cell 2 ("answer-1")' in capsys.readouterr().err
    assert [path.name for path in (course / "exercises").iterdir()] == ["01.ipynb"]


def test_no_solutions_and_a_damaged_solution_are_said(tmp_path, course, capsys):
    (course / "solutions" / "01.ipynb").write_text("{", encoding="utf-8")
    assert exercise_notebooks.main(["--root", str(course)]) == 1
    assert "solutions/01.ipynb: not a readable notebook" in capsys.readouterr().err
    (course / "solutions" / "01.ipynb").unlink()
    assert exercise_notebooks.main(["--root", str(course)]) == 1
    assert "there are no notebooks in" in capsys.readouterr().err


def test_what_is_written_is_up_to_date_and_not_written_again(course):
    before = (course / "exercises" / "01.ipynb").stat().st_mtime_ns
    assert said_by(write, course) == (0, "exercises/01.ipynb: up to date")
    assert said_by(check, course, strict=True) == (0, "exercises/01.ipynb: up to date")
    assert (course / "exercises" / "01.ipynb").stat().st_mtime_ns == before


def test_a_changed_solution_is_written_again(course):
    edit(course / "solutions" / "01.ipynb", answer(SOURCE.replace("Twice x.", "Two times x.")))
    assert said_by(write, course) == (0, "exercises/01.ipynb: written")
    assert "Two times x." in (course / "exercises" / "01.ipynb").read_text(encoding="utf-8")


@pytest.mark.parametrize("change", [
    answer(BLANK.replace(STUB, "return x + x")),
    answer(BLANK.replace(STUB, f"y = x\n    {STUB}")),
    answer(BLANK.replace(STUB, f"# perhaps x + x?\n    {STUB}")),
    answer("def double(x:"),
    add_a_cell,
    lambda notebook: notebook.cells.pop(0),
    lambda notebook: notebook.cells[0].update(source="## My notes"),
    lambda notebook: notebook.cells.reverse(),
    lambda notebook: notebook.metadata.clear(),
], ids=["answer", "half an answer", "a comment", "not Python", "added cell", "removed cell", "notes",
        "moved cells", "metadata gone"])
def test_a_readers_work_is_never_overwritten(course, change):
    path = course / "exercises" / "01.ipynb"
    edit(path, change)
    before = path.read_bytes()
    edit(course / "solutions" / "01.ipynb", answer(SOURCE.replace("Twice x.", "Two times x.")))
    save(course / "solutions" / "02.ipynb", a_solution())
    status, said = said_by(write, course)
    assert path.read_bytes() == before
    assert status == 0 and "rename or delete it" in said
    assert re.search(r"exercises/01.ipynb: left as it is, because it holds your work \(cells \S+", said)
    assert "cells )" not in said
    assert "exercises/02.ipynb: written" in said


def test_a_damaged_exercise_is_left_as_it_is(course):
    path = course / "exercises" / "01.ipynb"
    path.write_text("half a file", encoding="utf-8")
    assert "left as it is, not a readable notebook" in said_by(write, course)[1]
    assert path.read_text(encoding="utf-8") == "half a file"
    assert said_by(check, course, strict=False)[0] == 1


def test_cells_that_have_only_been_run_are_written_again(course):
    edit(course / "exercises" / "01.ipynb", add_outputs)
    assert said_by(write, course) == (0, "exercises/01.ipynb: written")
    assert not nbformat.read(course / "exercises" / "01.ipynb", as_version=4).cells[2].outputs


def test_a_notebook_that_says_the_same_is_written_again_whatever_its_metadata(course):
    edit(course / "exercises" / "01.ipynb", lambda notebook: notebook.metadata.clear())
    assert said_by(write, course) == (0, "exercises/01.ipynb: written")
    assert said_by(check, course, strict=True)[0] == 0


def test_a_file_is_written_whole_or_not_at_all(course, monkeypatch):
    before = (course / "exercises" / "01.ipynb").read_bytes()
    edit(course / "solutions" / "01.ipynb", answer(SOURCE.replace("Twice x.", "Two times x.")))

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(exercise_notebooks.os, "replace", full)
    with pytest.raises(OSError, match="no space left"):
        write(course, say=[].append)
    assert (course / "exercises" / "01.ipynb").read_bytes() == before
    assert [path.name for path in (course / "exercises").iterdir()] == ["01.ipynb"]


def test_a_folder_that_cannot_be_written_is_one_sentence(course, monkeypatch, capsys):
    def read_only(**more):
        raise OSError(30, "Read-only file system", f"{more['dir']}/.01-x.tmp")

    (course / "exercises" / "01.ipynb").unlink()
    monkeypatch.setattr(exercise_notebooks.tempfile, "mkstemp", read_only)
    assert exercise_notebooks.main(["--root", str(course)]) == 1
    file = course / "exercises" / "01.ipynb"
    assert capsys.readouterr().err.startswith(f"{file} cannot be written: Read-only file system. Copy the ")


def test_a_file_in_place_of_the_folder_is_said_and_left_alone(course, capsys):
    (course / "exercises" / "01.ipynb").unlink()
    (course / "exercises").rmdir()
    (course / "exercises").write_text("mine", encoding="utf-8")
    assert exercise_notebooks.main(["--root", str(course)]) == 1
    assert "exercises should be a folder and is a file: move it away. Nothing" in capsys.readouterr().err
    assert (course / "exercises").read_text(encoding="utf-8") == "mine"
    assert exercise_notebooks.main(["--root", str(course), "--check"]) == 1


def test_what_this_prints_into_is_no_notebook(course, monkeypatch):
    def full(root):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(exercise_notebooks, "write", full)
    with pytest.raises(OSError, match="No space"):           # course.py says it
        exercise_notebooks.main(["--root", str(course)])


@pytest.mark.parametrize(("where", "change", "words"), [
    ("solutions", answer(SOURCE.replace("Twice x.", "Two times x.")), 'cell "answer-1" differs'),
    ("exercises", answer(BLANK.replace("Twice x.", "Two times x.")), 'cell "answer-1" differs'),
    ("exercises", lambda notebook: notebook.cells[0].update(source="## Other text"), 'cell "text" differs'),
    ("exercises", lambda notebook: notebook.cells[2].update(source="check(triple)"), 'cell "check" differs'),
    ("exercises", lambda notebook: notebook.cells[2].metadata.update(tags=[]), 'cell "check" has other tags'),
    ("exercises", lambda notebook: notebook.cells.pop(0), 'cell "text" is missing'),
    ("exercises", lambda notebook: notebook.cells.insert(0, notebook.cells.pop()), 'cell "check" has moved'),
], ids=["solution changed", "stub changed", "text", "code", "tags", "missing", "moved"])
def test_drift_is_said_with_file_and_cell_and_ends_in_status_1(course, where, change, words):
    edit(course / where / "01.ipynb", change)
    before = (course / "exercises" / "01.ipynb").read_bytes()
    status, said = said_by(check, course, strict=False)
    assert status == 1 and said.startswith(f"exercises/01.ipynb: {words}, drifted from solutions/01.ipynb")
    assert (course / "exercises" / "01.ipynb").read_bytes() == before           # --check writes nothing


def test_a_readers_notebook_may_be_older_than_the_solution(course):
    edit(course / "exercises" / "01.ipynb", answer(BLANK.replace(STUB, "return x + x")))
    edit(course / "solutions" / "01.ipynb", lambda notebook: notebook.cells[0].update(source="## Better"))
    status, said = said_by(check, course, strict=False)
    assert status == 0 and 'cell "text" differs' in said and 'cell "answer-1" holds an answer' in said
    assert said_by(check, course, strict=True)[0] == 1


def test_a_missing_exercise_is_drift(course):
    (course / "exercises" / "01.ipynb").unlink()
    status, said = said_by(check, course, strict=False)
    assert status == 1 and said.startswith("exercises/01.ipynb: missing")


@pytest.mark.parametrize(("change", "words"), [
    (answer(BLANK.replace(STUB, "return x + x")), 'cell "answer-1" holds an answer'),
    (answer(BLANK.replace(STUB, f"y = x\n    {STUB}")), 'cell "answer-1" holds an answer'),
    (answer(f"{BLANK}\n    return x + x"), 'cell "answer-1" holds an answer'),
    (answer("def double(x:"), 'cell "answer-1" holds an answer'),
    (add_a_cell, 'cell "mine" is added'),
    (add_outputs, "its outputs or its metadata differ"),
], ids=["answer", "half an answer", "below the stub", "not Python", "added cell", "outputs"])
def test_a_readers_work_is_no_drift_but_does_not_belong_in_the_repository(course, change, words, monkeypatch):
    edit(course / "exercises" / "01.ipynb", change)
    monkeypatch.delenv("CI", raising=False)
    status, said = said_by(check, course)
    assert status == 0 and (words in said or change is add_outputs)
    monkeypatch.setenv("CI", "true")
    status, said = said_by(check, course)
    assert status == 1 and words in said


def test_a_notebook_without_a_solution_is_said(course):
    save(course / "exercises" / "scratch.ipynb", a_solution())
    words = "exercises/scratch.ipynb: there is no solutions/scratch.ipynb"
    status, said = said_by(check, course, strict=False)
    assert status == 0 and words in said
    status, said = said_by(check, course, strict=True)
    assert status == 1 and words in said
    assert "scratch" not in said_by(write, course)[1] and (course / "exercises" / "scratch.ipynb").exists()


def test_the_command_writes_or_checks(course, capsys):
    assert exercise_notebooks.main(["--root", str(course), "--check"]) == 0
    edit(course / "solutions" / "01.ipynb", answer(SOURCE.replace("Twice x.", "Two times x.")))
    assert exercise_notebooks.main(["--root", str(course), "--check"]) == 1
    assert exercise_notebooks.main(["--root", str(course)]) == 0
    assert exercise_notebooks.main(["--root", str(course), "--check"]) == 0
    assert "exercises/01.ipynb: written" in capsys.readouterr().out

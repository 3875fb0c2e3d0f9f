"""Whatever learners hand in, and however platforms name it: each file is graded, or it is said why not."""

import io
import json
import zipfile
from pathlib import Path

import made_up_class
import pytest

from classroom import class_folder, handed_in, names, submissions
from classroom.handout import handout
from helpers.checks.exercises import EXERCISES

ROOT = Path(__file__).resolve().parents[1]
COURSE = submissions.course(ROOT)
FILE = made_up_class.FILE
STEM = FILE.removesuffix(".ipynb")
RIGHT = made_up_class.LEARNERS["right-0"][0]
OTHER = made_up_class.LEARNERS["unfinished"][0]
EMPTY = made_up_class.LEARNERS["untouched"][0]
TO_READ = (ROOT / "notebooks" / FILE).read_text(encoding="utf-8")
SECOND = (ROOT / "solutions" / "02_queries_keys_values.ipynb").read_text(encoding="utf-8")


def put(folder, name, content=RIGHT):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def packed(**files):
    """A zip as bytes. Names with what Python does not allow come as {"…": …} by **."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def read(folder):
    """({learner: Submission}, sentences)."""
    found, sentences = class_folder.read_folder(folder, COURSE)
    assert [s.learner for s in found] == sorted((s.learner for s in found), key=str.lower)
    return {submission.learner: submission for submission in found}, sentences


def remarks(submission):
    return " ".join(submission.remarks)


def test_folders_files_and_whole_courses_are_all_found(tmp_path):
    put(tmp_path, f"anna/{FILE}")
    put(tmp_path, f"ben/course/exercises/{FILE}")
    put(tmp_path, f"ben/course/notebooks/{FILE}", TO_READ)
    put(tmp_path, "ben/course/course.py", "")
    put(tmp_path, f"ben/course/exercises/.ipynb_checkpoints/{FILE}", EMPTY)
    put(tmp_path, f"carla_{FILE}")
    put(tmp_path, "dan.ipynb")                                           # no telling name
    put(tmp_path, f"eva/{FILE}", TO_READ)                                # the wrong one
    put(tmp_path, "finn/note.txt", "I am ill")
    put(tmp_path, f"{STEM.title()}_Oskar.IPYNB")                         # as Windows programs write
    (tmp_path / "gina").mkdir()
    found, sentences = read(tmp_path)
    assert list(found) == ["anna", "ben", "carla", "dan", "eva", "finn", "gina", "Oskar"] and not sentences
    assert [len(s.notebooks) for s in found.values()] == [1, 1, 1, 1, 0, 0, 0, 1]
    assert all(s.numbers == {"03"} for s in found.values() if s.notebooks)
    assert not any(found[name].remarks for name in ("anna", "ben", "carla", "dan", "Oskar"))
    assert "a notebook to read" in remarks(found["eva"]) and "but note.txt" in remarks(found["finn"])
    assert remarks(found["gina"]) == "It holds no notebook."


def test_what_grading_has_written_is_no_submission(tmp_path):
    put(tmp_path, f"anna/{FILE}")
    for name in ("grades.csv", "grades-2.csv", "grades.html", "class.html", "feedback/anna.html",
                 f"before-grading/anna/{FILE}", "earlier-grades/2026.csv"):
        put(tmp_path, name, "x")
    found, sentences = read(tmp_path)
    assert list(found) == ["anna"] and not sentences


def test_every_other_file_is_named(tmp_path):
    put(tmp_path, f"anna/{FILE}")
    put(tmp_path, "anna/notes.docx", "x")
    put(tmp_path, "anna/pictures/1.png", "x")
    put(tmp_path, "anna/pictures/2.png", "x")
    put(tmp_path, f"anna/solutions/{FILE}")                  # of the course, though not in a course
    put(tmp_path, "list.xlsx", "x")
    put(tmp_path, "ben.tar.gz", "x")
    put(tmp_path, "carla.zip", "PK")
    put(tmp_path, "dan.zip", packed(**{"a.txt": "x"}))
    put(tmp_path, FILE)
    found, sentences = read(tmp_path)
    assert list(found) == ["anna"]
    for name in ("notes.docx", "pictures/ (2 files)", "solutions/"):
        assert name in remarks(found["anna"])
    for start in ("list.xlsx is left out: it is no notebook", "ben.tar.gz is left out: it is packed in a way",
                  "carla.zip is left out: it is damaged", "dan.zip is left out: it holds no notebook",
                  f"{FILE} is left out: its name does not say whose"):
        assert sum(text.startswith(start) for text in sentences) == 1, (start, sentences)
    assert len(sentences) == 5


# Names


@pytest.mark.parametrize("name, who, number", [
    (STEM, "", ""), (f"{STEM} (2)", "", ""), (f"{STEM}-1", "", ""), (f"{STEM}-Copy1", "", ""),
    (f"anna_{STEM}", "anna", ""), (f"anna_{STEM} (1)", "anna", ""), (f"anna {STEM} - Kopie", "anna", ""),
    (f"{STEM}_Kim Lee", "Kim Lee", ""), (f"anna_{STEM}_final", "anna", ""), ("00_start_here", "", ""),
    (f"ÄNNE_{STEM.upper()}", "ÄNNE", ""), ("dan", "dan", ""), ("dan (1)", "dan", ""), ("ß_" + STEM, "ß", ""),
    (f"mueller_4711_9001_{STEM}-1", "mueller", "4711"), (f"mueller_LATE_4711_9_{STEM}", "mueller", "4711"),
    ("mueller_4711_9001_exercises", "mueller", "4711"),
    ("Anna Müller_12_assignsubmission_file", "Anna Müller", "12"),
    ("Anna Müller_12_assignsubmission_file_", "Anna Müller", "12"),
    (f"Anna_M_12_assignsubmission_file_{STEM}", "Anna_M", "12"),
    ("Anna Müller_12_assignsubmission_onlinetext", "Anna Müller", "12"),
])
def test_whose_a_file_is(name, who, number):
    assert names.whose(name, COURSE.known) == (who, number)


@pytest.mark.parametrize("name, who", [("anna-1", "anna-1"), ("team_3_4", "team_3_4"), ("exercises", ""),
                                       ("anna (1)", "anna"), ("Änne_12_assignsubmission_file", "Änne")])
def test_whose_a_folder_is(name, who):
    assert names.whose(name, COURSE.known, folder=True)[0] == who


def test_names_of_one_learner_come_together_with_a_remark(tmp_path):
    put(tmp_path, f"anna_{FILE}", OTHER)
    put(tmp_path, f"anna_{STEM} (1).ipynb")
    put(tmp_path, "Anna_02_queries_keys_values.ipynb", SECOND)
    put(tmp_path, "Gül Yılmaz_12_assignsubmission_file/a.ipynb")
    put(tmp_path, "Gül Yılmaz_12_assignsubmission_onlinetext/onlinetext.html", "x")
    found, sentences = read(tmp_path)
    assert list(found) == ["Anna", "Gül Yılmaz"] and not sentences
    assert found["Anna"].numbers == {"02", "03"} and found["Anna"].notebooks[-1]["file"].endswith("(1).ipynb")
    assert "Handed in as Anna, anna: taken for one learner" in remarks(found["Anna"])
    assert f"2 notebooks of 03: anna_{FILE}, anna_{STEM} (1).ipynb" in remarks(found["Anna"])
    assert "Not graded" in remarks(found["Gül Yılmaz"]) and "onlinetext.html" in remarks(found["Gül Yılmaz"])
    assert found["Gül Yılmaz"].moodle == "Gül Yılmaz_12_assignsubmission_file"


def test_two_people_of_one_name_stay_two(tmp_path):
    put(tmp_path, f"Hugo Klein_1_assignsubmission_file/{FILE}")
    put(tmp_path, f"Hugo Klein_2_assignsubmission_file/{FILE}", OTHER)
    found, (sentence,) = read(tmp_path)
    assert list(found) == ["Hugo Klein (1)", "Hugo Klein (2)"] and "different people" in sentence
    assert all(len(submission.notebooks) == 1 for submission in found.values())


def test_one_learner_in_two_assignments_is_one(tmp_path):
    put(tmp_path, f"Hugo Klein_1_assignsubmission_file/{FILE}")
    put(tmp_path, "Hugo Klein_2_assignsubmission_file/02_queries_keys_values.ipynb", SECOND)
    found, sentences = read(tmp_path)
    assert found["Hugo Klein"].numbers == {"02", "03"} and not sentences
    assert "Hugo Klein (1), Hugo Klein (2): taken for one" in remarks(found["Hugo Klein"])


def test_the_newest_of_two_notebooks_is_told_by_its_name_before_its_time():
    notebooks = [{"file": f"a ({n}).ipynb", "when": when} for n, when in ((2, 1.0), (1, 9.0))]
    notebooks.append({"file": "a.ipynb", "when": 99.0})
    assert [n["file"] for n in sorted(notebooks, key=class_folder.newest_last)] == [
        "a.ipynb", "a (1).ipynb", "a (2).ipynb"]


# Zips


def test_a_learners_zip_is_read_and_not_unpacked(tmp_path):
    put(tmp_path, "anna.zip", packed(**{f"exercises/{FILE}": RIGHT, "exercises/progress.json": "{}"}))
    put(tmp_path, "ben/all.ZIP", packed(**{"more.zip": packed(**{f"x/{FILE}": RIGHT})}))
    before = sorted(tmp_path.rglob("*"))
    found, sentences = read(tmp_path)
    assert list(found) == ["anna", "ben"] and not sentences
    assert all(s.numbers == {"03"} and not s.remarks for s in found.values())
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("around", ["", "week 3/"])
def test_a_zip_of_the_class_is_the_class(tmp_path, around):
    files = {"Anna_1_assignsubmission_file/" + FILE: RIGHT, "Ben_2_assignsubmission_file/b.ipynb": RIGHT,
             "Cleo_3_assignsubmission_file/c.zip": packed(**{f"exercises/{FILE}": RIGHT})}
    put(tmp_path, "Course-Week 3-77.zip", packed(**{around + name: text for name, text in files.items()}))
    put(tmp_path, "readme.txt", "x")
    put(tmp_path, f"dan_{FILE}")                             # who sent it by mail
    found, sentences = read(tmp_path)
    assert list(found) == ["Anna", "Ben", "Cleo", "dan"] and len(sentences) == 1
    assert all(submission.numbers == {"03"} for submission in found.values())


def test_a_zip_of_folders_alone_is_the_class_too(tmp_path):
    put(tmp_path, "week3.zip", packed(**{f"anna/{FILE}": RIGHT, f"ben/{FILE}": RIGHT}))
    assert list(read(tmp_path)[0]) == ["anna", "ben"]


@pytest.mark.parametrize("name", [f"../{FILE}", f"a/../../{FILE}", f"/etc/{FILE}", f"..\\{FILE}"])
def test_a_way_that_leads_out_of_a_zip_is_not_gone(tmp_path, name):
    put(tmp_path, "anna/all.zip", packed(**{name: RIGHT, FILE: RIGHT}))
    found, _ = read(tmp_path)
    assert len(found["anna"].notebooks) == 1 and "leads out of its zip" in remarks(found["anna"])


def test_a_zip_that_swells_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(handed_in, "LARGEST", 500_000)
    monkeypatch.setattr(handed_in, "TOGETHER", 700_000)
    swollen = io.BytesIO()
    with zipfile.ZipFile(swollen, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, size in (("one.ipynb", 600_000), (FILE, 1000), ("two.ipynb", 400_000)):
            archive.writestr(name, b" " * size)
    assert len(swollen.getvalue()) < 5000
    put(tmp_path, "anna/all.zip", swollen.getvalue())
    put(tmp_path, "anna/large.ipynb", " " * 600_000)
    told = remarks(read(tmp_path)[0]["anna"])
    assert "one.ipynb could not be read (it is larger" in told and "two.ipynb is left out: it is too" in told
    assert "large.ipynb could not be read (it is larger" in told


def test_zips_in_zips_come_to_an_end(tmp_path):
    data = packed(**{FILE: RIGHT})
    for _ in range(5):
        data = packed(**{"a.zip": data})
    put(tmp_path, "anna/a.zip", data)
    assert "too many zips" in remarks(read(tmp_path)[0]["anna"])


def test_a_zip_with_a_password_and_a_damaged_one_are_sentences(tmp_path):
    data = bytearray(packed(**{FILE: "{}"}))
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):           # the bit that says "encrypted"
        data[data.index(mark) + at] |= 1
    put(tmp_path, "anna/secret.zip", bytes(data))
    put(tmp_path, "ben/broken.zip", b"PK\x03\x04" + b"x" * 99)
    found, _ = read(tmp_path)
    assert "needs a password" in remarks(found["anna"]) and "is damaged, or no zip" in remarks(found["ben"])


def test_links_are_not_followed(tmp_path):
    put(tmp_path, f"anna/{FILE}")
    try:
        (tmp_path / "ben").symlink_to(tmp_path / "anna", target_is_directory=True)
        (tmp_path / "anna" / "b.ipynb").symlink_to(tmp_path / "anna" / FILE)
    except OSError:
        pytest.skip("no links here")
    found, (sentence,) = read(tmp_path)
    assert list(found) == ["anna"] and len(found["anna"].notebooks) == 1
    assert "ben is left out: it is a link" in sentence and "b.ipynb is left out" in remarks(found["anna"])


# Folders that hold no class


@pytest.mark.parametrize("part", ["", "exercises"])
def test_the_course_and_one_learners_folder_are_refused(tmp_path, part):
    handout(tmp_path / "ben")
    with pytest.raises(submissions.Refused, match="Give the folder above it"):
        read(tmp_path / "ben" / part)
    for folder in (ROOT, ROOT / "solutions", ROOT / "notebooks"):
        with pytest.raises(submissions.Refused, match="Give the folder above it"):
            read(folder)
    assert list(read(tmp_path)[0]) == ["ben"]


@pytest.mark.parametrize("own", ["course.py", f"exercises/{FILE}"])
def test_one_learners_folder_is_refused_whatever_else_is_in_it(tmp_path, own):
    put(tmp_path, f"my answers/{FILE}")
    assert list(read(tmp_path)[0]) == ["my answers"]         # it might be somebody's name
    put(tmp_path, own)
    with pytest.raises(submissions.Refused, match="like what one learner has"):
        read(tmp_path)


def test_a_folder_without_notebooks_is_refused_and_says_what_is_there(tmp_path):
    put(tmp_path, "all.zip", packed(**{"a.txt": "x"}))
    with pytest.raises(submissions.Refused, match="There are no notebooks in .* all.zip is left out"):
        read(tmp_path)
    with pytest.raises(submissions.Refused, match="is no folder"):
        read(tmp_path / "none")


# What counts


def test_a_notebook_counts_when_somebody_has_begun_it(tmp_path):
    handout(tmp_path / "ben")                                # all of the course, nothing written
    found, _ = class_folder.read_folder(tmp_path, COURSE)
    assert len(found[0].notebooks) == 10 and not found[0].remarks
    with pytest.raises(submissions.Refused, match="No exercise is begun .* --only 01"):
        submissions.asked(found)
    put(tmp_path, f"anna/{FILE}", OTHER)
    found, _ = class_folder.read_folder(tmp_path, COURSE)
    assert {exercise.notebook for exercise in submissions.asked(found)} == {"03"}
    assert {exercise.notebook for exercise in submissions.asked(found, ["02", "09"])} == {"02", "09"}


def test_begun_is_what_has_a_cell_of_its_own():
    for text, begun in ((EMPTY, False), (OTHER, True), (RIGHT, True)):
        assert submissions.sorted_out(FILE, submissions.code_cells(text), COURSE)["begun"] == begun
    assert not submissions.sorted_out(FILE, [*submissions.code_cells(EMPTY), ["", "  "]], COURSE)["begun"]
    assert submissions.sorted_out(FILE, [*submissions.code_cells(EMPTY), ["", "1 + 1"]], COURSE)["begun"]


def test_a_cell_copied_out_of_the_notebook_to_read_is_no_fault():
    cells = submissions.code_cells(RIGHT) + [["", next(iter(COURSE.to_read))]]
    assert submissions.sorted_out(FILE, cells, COURSE)


def test_points_are_those_of_all_exercises():
    assert set(COURSE.points) == {exercise.name for exercise in EXERCISES}


DAMAGED = ["{}", "[]", "null", '{"cells": 3}', '{"cells": [3]}', '{"cells": [{}]}', "\0", "", b"\xff\xfe\x00"]


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_notebook_is_a_sentence(tmp_path, text):
    put(tmp_path, f"anna/{FILE}", text)
    anna = read(tmp_path)[0]["anna"]
    assert not anna.notebooks and "could not be read" in anna.remarks[0] and len(anna.remarks) == 1


def test_a_notebook_may_begin_with_a_mark_of_its_encoding():
    assert json.loads(RIGHT)
    assert submissions.code_cells(("\ufeff" + RIGHT).encode().decode("utf-8-sig"))

"""What `course.py grade` writes: a table, pages, and nothing that can get lost; and how it refuses."""

import csv
import html
import io
import os
import re
from pathlib import Path

import made_up_class
import pytest

from classroom import class_folder, grade, handout, page, results, sandbox, slides, submissions
from classroom.results import Graded, Results
from helpers.checks import submission
from helpers.checks.exercises import BY_NAME, EXERCISES
from helpers.smollm2 import weights

ROOT = Path(__file__).resolve().parents[1]
COURSE = submissions.course(ROOT)
FILE = made_up_class.FILE
RIGHT = made_up_class.LEARNERS["right-0"][0]
NO_MODEL = "○ my_model     not tried: the language model is missing\n\n  The language model is not there."


def verdict(name, state="passed", says="", mistakes=(), message="said"):
    return {"name": name, "state": state, "says": says, "mistakes": list(mistakes), "message": message,
            "remarks": []}


def class_of(**learners):
    """Results of learners whose verdicts are these; an exercise that one lacks is not handed in."""
    names = {v["name"] for verdicts in learners.values() for v in verdicts}
    exercises = [exercise for exercise in EXERCISES if exercise.name in names]
    graded = []
    for learner, verdicts in learners.items():
        there = {v["name"]: v for v in verdicts}
        there = {e.name: there.get(e.name, {"name": e.name} | grade.NOT_HANDED_IN) for e in exercises}
        graded.append(Graded(learner, there))
    return Results(graded, exercises, COURSE.points)


def table(path):
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"))))


@pytest.fixture
def judged(monkeypatch):
    """Has `grade` run without processes: judged["softmax"] is what comes of it; all others are passed."""
    verdicts = {}

    class Judge:
        def __init__(self, root):
            pass

        def judge(self, notebooks, names):
            if "error" in verdicts:
                raise verdicts["error"]
            return {name: verdicts.get(name, verdict(name)) for name in names}, []

        def close(self):
            pass

    class Blind:
        def __init__(self, root, paths):
            pass

        def keep(self, folder):
            return []

    monkeypatch.setattr(grade, "Sandbox", Judge)
    monkeypatch.setattr(grade, "Guard", Blind)                # others may be at work on the course meanwhile
    return verdicts


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "class"
    for name in ("anna", "Ben O'Brien_7_assignsubmission_file"):
        (folder / name).mkdir(parents=True)
        (folder / name / FILE).write_text(RIGHT, encoding="utf-8")
    return folder


def test_table_pages_and_feedback_are_written(folder, judged, capsys):
    assert grade.main([str(folder)]) == 0
    assert (folder / "grades.csv").read_bytes().startswith(b"\xef\xbb\xbflearner,")     # so Excel knows UTF-8
    rows = table(folder / "grades.csv")
    assert [row["learner"] for row in rows] == [results.POSSIBLE, "anna", "Ben O'Brien"]
    assert {row["points"] for row in rows} == {row["of"] for row in rows} == {"12"}
    assert not [row for row in rows if None in row.values()]                    # all are equally long
    assert "anna" in (folder / "grades.html").read_text("utf-8")
    assert "anna" not in (folder / "class.html").read_text("utf-8")
    assert {path.name for path in (folder / "feedback").iterdir()} == {
        "anna.html", "Ben O'Brien_7_assignsubmission_file_feedback.html"}     # as Moodle takes it back
    assert "class.html, one for the projector, without names" in capsys.readouterr().out


def test_the_next_time_earlier_grades_are_kept_and_compared(folder, judged, capsys):
    judged["softmax"] = verdict("softmax", "wrong", "x")
    assert grade.main([str(folder)]) == 0
    del judged["softmax"]
    assert grade.main([str(folder)]) == 0
    (kept,) = (folder / "earlier-grades").iterdir()
    assert f"Earlier grades are kept: {kept}" in capsys.readouterr().out
    assert table(kept)[1]["points"] == "10" and table(folder / "grades.csv")[1]["points"] == "12"
    assert "<td>+2</td>" in (folder / "grades.html").read_text("utf-8")
    os.utime(folder / "grades.csv", (1, 1))
    assert grade.main([str(folder)]) == 0                           # nothing new: nothing to keep
    assert len(list((folder / "earlier-grades").iterdir())) == 1
    assert "since the last time" not in (folder / "grades.html").read_text("utf-8")


@pytest.mark.parametrize("text", ["", "learner;points\nanna;3", "learner,3.1 scores\nanna,x", "\0", "a\n\"b"])
def test_a_table_in_which_somebody_has_worked_is_kept_and_not_compared(folder, judged, text):
    (folder / "grades.csv").write_text(text, encoding="utf-8")
    assert grade.main([str(folder)]) == 0
    (kept,) = (folder / "earlier-grades").iterdir()
    assert kept.read_text(encoding="utf-8") == text


def test_a_table_that_cannot_be_replaced_goes_under_another_name(folder, judged, capsys):
    (folder / "grades.csv").mkdir()                                 # in the way, as one that Excel holds open
    assert grade.main([str(folder)]) == 0
    assert table(folder / "grades-2.csv")[1]["learner"] == "anna"
    assert "grades.csv cannot be replaced: is it open in another program? This time it is grades-2.csv" in (
        capsys.readouterr().out)


def test_results_are_not_lost_when_the_folder_cannot_be_written_any_more(folder, judged, capsys, monkeypatch,
                                                                         tmp_path):
    write, spare = grade.write_text, tmp_path / "spare"
    spare.mkdir()
    monkeypatch.setattr(grade.tempfile, "tempdir", str(spare))

    def full(path, text):
        if path.is_relative_to(folder):
            raise OSError(28, "No space left on device")
        write(path, text)

    monkeypatch.setattr(grade, "write_text", full)
    assert grade.main([str(folder)]) == 0
    said = capsys.readouterr().out
    assert "cannot be written any more: No space left on device" in said
    elsewhere = Path(re.search(r"Written: (.*grades\.csv)", said)[1])
    assert elsewhere.is_relative_to(spare)
    assert table(elsewhere)[1]["points"] == "12"


def test_when_nothing_can_be_written_it_is_said_and_nothing_is_left(folder, judged, capsys, monkeypatch,
                                                                   tmp_path):
    def full(path, text):
        raise OSError(28, "No space left on device")

    spare = tmp_path / "spare"
    spare.mkdir()
    monkeypatch.setattr(grade.tempfile, "tempdir", str(spare))
    monkeypatch.setattr(grade, "write_text", full)
    assert grade.main([str(folder)]) == 1
    said = capsys.readouterr()
    assert "The points stand above" in said.err and said.err.count("No space left on device") == 2
    assert "anna: 12 of 12 points" in said.out and list(spare.iterdir()) == []


def test_the_grades_are_written_though_nobody_reads_what_is_said(folder, judged, monkeypatch):
    def gone(text, stream=None):
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(grade, "print_safely", gone)
    with pytest.raises(BrokenPipeError):                    # course.py passes it over
        grade.main([str(folder)])
    assert table(folder / "grades.csv")[1]["points"] == "12"


HALF = "\ud800"                                            # half a letter, as no file in UTF-8 can hold it


def test_signs_that_no_file_can_hold_cost_nobody_a_grade(folder, judged, capsys):
    theirs = folder / "carla"
    theirs.mkdir()
    (theirs / FILE).write_text(RIGHT.replace('"scores-answer"', '"\\ud800"'), encoding="utf-8")
    judged["softmax"] = verdict("softmax", "wrong", f"ValueError: {HALF}", message=f"ValueError: {HALF}")
    for _ in range(2):                                      # the second time it is compared with the first
        assert grade.main([str(folder)]) == 0
    rows = table(folder / "grades.csv")
    assert [row["learner"] for row in rows] == [results.POSSIBLE, "anna", "Ben O'Brien", "carla"]
    assert {row["points"] for row in rows[1:]} == {"10"}
    assert {row["3.3 softmax: what"] for row in rows[1:]} == {"wrong: ValueError: \\ud800"}
    assert not (folder / "earlier-grades").exists(), "it says the same"
    for name in ("grades.html", "feedback/anna.html"):
        assert "ValueError: \\ud800" in (folder / name).read_text("utf-8")


def test_names_in_another_encoding_are_written_and_stay_apart(judged, monkeypatch, tmp_path):
    names = ["m\udcf6ller", "m\udcfcller"]                  # as Python reads b"m\xf6ller", b"m\xfcller"
    submissions_of = [
        class_folder.Submission(name, [{"numbers": ["03"], "begun": True}], [f"L{name} is left out"])
        for name in names
    ]
    monkeypatch.setattr(grade, "read_folder", lambda folder, course: (submissions_of, [f"{names[0]} is odd"]))
    for _ in range(2):
        assert grade.main([str(tmp_path)]) == 0
    rows = table(tmp_path / "grades.csv")
    assert [row["learner"] for row in rows[1:]] == ["m\\udcf6ller", "m\\udcfcller"]
    assert rows[1]["remarks"] == "Lm\\udcf6ller is left out" and rows[1]["points"] == "12"
    assert "m\\udcf6ller is odd" in (tmp_path / "grades.html").read_text("utf-8")
    assert {path.name for path in (tmp_path / "feedback").iterdir()} == {
        "m_udcf6ller.html", "m_udcfcller.html"}


def test_a_folder_that_cannot_be_written_is_refused_before_grading(folder, judged, capsys, monkeypatch):
    def refuse(**more):
        raise OSError(30, "Read-only file system", str(folder / "x"))

    monkeypatch.setattr(grade.tempfile, "TemporaryFile", refuse)
    judged["error"] = AssertionError("graded all the same")
    assert grade.main([str(folder)]) == 1
    said = capsys.readouterr().err
    assert "cannot be written: Read-only file system." in said and said.count("\n") == 1
    assert not (folder / "grades.csv").exists()


# What could not be judged


def test_what_could_not_be_judged_is_empty_said_loudly_and_not_in_the_total(folder, judged, capsys):
    for name in ("anna", "ben"):
        (folder / name).mkdir(exist_ok=True)
        tenth = (ROOT / "solutions" / "10_a_real_language_model.ipynb").read_text(encoding="utf-8")
        (folder / name / "10_a_real_language_model.ipynb").write_text(tenth, encoding="utf-8")
    says = "The language model is not there."
    judged["my_model"] = verdict("my_model", "not tried", says, message=NO_MODEL)
    assert grade.main([str(folder)]) == 0
    possible, anna, *_ = table(folder / "grades.csv")
    worth = COURSE.points["my_model"]
    assert anna["10.3 my_model"] == "" and anna["10.3 my_model: what"].startswith("not judged: ")
    assert int(possible["of"]) - worth == int(anna["of"]) == int(anna["points"])
    assert int(anna["notebook 10"]) + int(anna["notebook 03"]) == int(anna["points"])
    loud = "NOT JUDGED: 10.3 my_model of 2 learners. The language model is not there."
    assert capsys.readouterr().out.rstrip().splitlines()[-1].startswith(loud)
    for name in ("grades.html", "class.html"):
        text = (folder / name).read_text("utf-8")
        assert loud in text and "<br><small>not judged</small>" in text


def test_that_nothing_of_the_learners_fits_is_no_fault_of_the_machine(judged):
    other = verdict("my_model", "not tried", "In the notebooks …", message="○ my_model     not tried")
    judged["my_model"] = other
    submission = class_folder.Submission("anna", [{"numbers": ["10"], "begun": True}])
    graded, _ = grade.one(grade.Sandbox(ROOT), submission, [BY_NAME["my_model"]])
    assert graded.verdicts["my_model"] == other and results.kind(other) == "not written"


def test_the_check_says_that_the_model_is_missing_in_the_words_that_are_looked_for(tmp_path):
    tenth = (ROOT / "solutions" / "10_a_real_language_model.ipynb").read_text(encoding="utf-8")
    notebook = submissions.sorted_out("10.ipynb", submissions.code_cells(tenth), COURSE)
    judge = sandbox.Sandbox(ROOT)
    judge.model = str(tmp_path / "nowhere")
    submission = class_folder.Submission("anna", [notebook])
    graded, _ = grade.one(judge, submission, [BY_NAME["my_model"]])
    assert graded.verdicts["my_model"]["state"] == "not judged", graded.verdicts["my_model"]["message"]


def test_a_machine_that_gives_up_costs_nobody_a_point(folder, judged, capsys):
    judged["error"] = OSError(12, "Cannot allocate memory")
    assert grade.main([str(folder)]) == 0
    assert {row["of"] for row in table(folder / "grades.csv")[1:]} == {"0"}
    said = capsys.readouterr().out
    assert "NOT JUDGED: 3.1 scores of 2 learners. The grading failed on this machine" in said


# Which notebooks count


def test_only_the_notebooks_that_were_set_are_graded(folder, judged, capsys):
    assert grade.main([str(folder), "--only", "3,02"]) == 0
    (row, *_) = table(folder / "grades.csv")
    assert row["notebook 02"] == "1" and row["notebook 03"] == "12" and row["of"] == "13"
    for wrong in ("00", "3.1", "", "all"):
        with pytest.raises(SystemExit):
            grade.main([str(folder), "--only", wrong])
        assert "have exercises" in capsys.readouterr().err


def test_the_notebooks_of_others_are_not_run_without_need(folder, judged, monkeypatch):
    seen = []

    def judge(self, notebooks, names):
        seen.extend(notebooks)
        return {}, []

    monkeypatch.setattr(grade.Sandbox, "judge", judge)
    second = (ROOT / "solutions" / "02_queries_keys_values.ipynb").read_text(encoding="utf-8")
    (folder / "anna" / "02.ipynb").write_text(second, encoding="utf-8")
    grade.grade(folder, only=["03"], say=str)
    assert {notebook["numbers"][0] for notebook in seen} == {"03"}
    grade.grade(folder, only=["10"], say=str)                       # its last exercise looks at all there are
    assert {notebook["numbers"][0] for notebook in seen} == {"02", "03"}


# The words on the pages


def words(exercise, *verdicts):
    whole = class_of(**{f"l{number}": [v] for number, v in enumerate(verdicts)})
    return whole.mistakes_for_all(BY_NAME[exercise])


def test_the_projector_shows_no_words_of_a_learners():
    def wrong(says, state="wrong", mistakes=()):
        return verdict("softmax", state, says, mistakes)

    known = BY_NAME["softmax"].mistakes[0]
    assert words("softmax", wrong("long text", mistakes=[known.name])) == [(known.what, ["l0"])]
    assert words("softmax", wrong("It gives a text: 'Anna is silly'")) == [(results.OTHER, ["l0"])]
    assert words("softmax", wrong("ValueError: Anna is silly")) == [("ValueError", ["l0"])]
    assert words("softmax", wrong("AnnaIsSilly: x")) == [(results.OTHER, ["l0"])]
    assert words("softmax", wrong("its cell fails in line 1 (NameError: anna)", "broken")) == [
        (results.CANNOT_RUN, ["l0"])]
    assert words("softmax", wrong("anna_03.ipynb cannot be read", "broken")) == [(results.OTHER, ["l0"])]
    shared = "The function does not come to an end."
    assert words("softmax", wrong(shared), wrong(shared)) == [(shared.rstrip("."), ["l0", "l1"])]


def test_neither_list_on_the_projector_has_names_or_words_of_theirs():
    silly = verdict("softmax", "wrong", "ValueError: Anna is silly")
    whole = class_of(anna=[silly], ben=[silly])
    text = page.for_the_class(whole)
    assert text.count("ValueError") == 2                    # of the class, and of the exercise
    assert "silly" not in text and "anna" not in text
    assert page.for_the_teacher(whole).count("Anna is silly") == 2


def test_what_has_no_name_is_no_common_mistake():
    odd, strange = (verdict("softmax", "wrong", says) for says in ("It is odd.", "It is strange."))
    whole = class_of(anna=[odd], ben=[strange])
    top, _, below = page.for_the_class(whole).partition("Exercise by exercise")
    assert results.OTHER not in top and f"2 × {results.OTHER}" in below


def test_two_mistakes_together_count_as_two():
    first, second = BY_NAME["softmax"].mistakes[:2]
    both = verdict("softmax", "wrong", "Two things …", [first.name, second.name])
    assert results.in_words(both) == [first.what, second.what]


def test_why_an_answer_counts_though_it_fails_by_another_is_said():
    whole = class_of(anna=[verdict("softmax", says="right, once <scores> is"), verdict("scores", "wrong")])
    text = page.for_a_learner(whole, whole.graded[0])
    assert "softmax: passed: right, once &lt;scores&gt; is" in text and "scores: wrong<" in text


def test_not_written_and_not_handed_in_have_signs_of_their_own():
    whole = class_of(anna=[verdict("softmax")], ben=[verdict("softmax", "not written")], carla=[])
    assert whole.counts(whole.exercises[0]) == {"solved": 1, "not written": 1, "not handed in": 1}
    text = page.for_the_teacher(whole)
    for name in ("solved", "not written", "not handed in"):
        assert f">{page.MARKS[name]} {name}<" in text and f".{page.css(name)} {{" in text + ".not-handed-in {"
    assert len(set(page.MARKS.values())) == len(page.MARKS)


def test_the_pages_escape_what_comes_from_submissions():
    whole = class_of(**{"<anna>": [verdict("scores", "wrong", "<b>", message="<script>")]})
    whole.graded[0].verdicts["scores"]["remarks"] = ["<i>"]
    whole.graded[0].remarks = ["<u>"]
    whole.sentences, whole.notices = ["<s>"], ["<q>"]
    theirs = ["<script>", "<i>", "<u>", "<anna>"]
    for text, tags in ((page.for_the_teacher(whole), [*theirs, "<b>", "<s>", "<q>"]),
                       (page.for_a_learner(whole, whole.graded[0]), theirs),
                       (page.for_the_class(whole), ["<q>"])):
        for tag in tags:
            assert tag not in text and html.escape(tag) in text


def test_a_formula_is_text():
    assert results.harmless("=1+1") == "'=1+1"
    assert results.harmless(3) == 3 and results.harmless("anna") == "anna"


def test_feedback_has_names_that_every_system_takes():
    graded = [Graded(name, {}) for name in ("a/b:c?", "A b", "a B", "..", "ä" * 300)]
    assert list(grade.feedback_names(graded)) == [
        "a_b_c_.html", "A b.html", "a B_.html", "learner.html", f"{'ä' * 60}.html"]
    long = [Graded("汉" * 82, {}), Graded("汉" * 83, {}), Graded("a" + "汉" * 82, {})]
    names = list(grade.feedback_names(long))
    assert names == [f"{'汉' * 40}.html", f"{'汉' * 40}_.html", f"a{'汉' * 39}.html"]


def test_the_last_exercise_finds_notebooks_under_names_that_can_be_written(tmp_path):
    for name in ("n" * 247, "汉" * 82, "m\udcfcller", 'was: "neu"?'):
        saved = sandbox.saved_name({"numbers": ["03"], "file": f"anna/{name}.ipynb"})
        assert re.fullmatch(r'03_[^<>:"/\\|?*]+\.ipynb', saved) and len(saved.encode()) <= 210


def test_a_folder_for_the_model_below_nobodys_home_stops_no_grading(monkeypatch):
    monkeypatch.setenv("COURSE_MODEL", "~nosuchuser/x")
    assert sandbox.Sandbox(ROOT).model == str(ROOT / "~nosuchuser" / "x") == str(weights.default_folder())


@pytest.mark.parametrize("source", [f"x = {'-' * 50_000}1", "x = '\0'", "x = '\ud800'"])
def test_a_cell_that_python_gives_up_on_is_one_sentence(source):
    said = submission.Cells(FILE, [["a", source]], [], [submission.WHOLE])(0)
    assert said.startswith("is no Python (")


# Refused in one sentence


@pytest.mark.parametrize("command", [grade, handout, slides])
def test_an_empty_name_is_no_folder(command, capsys):
    with pytest.raises(SystemExit):
        command.main([""])
    assert "the name of a folder is expected, and an empty one came" in capsys.readouterr().err


@pytest.mark.parametrize("command", [grade, handout, slides])
def test_a_place_that_cannot_be_written_is_one_sentence(command, tmp_path, capsys, monkeypatch):
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setattr(slides, "fetch", lambda parts, say: parts.mkdir(parents=True))      # without npm
    assert command.main([str(tmp_path / "file" / "out")]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and str(tmp_path / "file") in said and "Errno" not in said


def test_a_file_is_no_folder(tmp_path, capsys):
    (tmp_path / "file").write_text("", encoding="utf-8")
    for command in (grade, handout):
        assert command.main([str(tmp_path / "file")]) == 1
    said = capsys.readouterr().err
    assert "file is no folder" in said and "file is a file" in said and os.listdir(tmp_path) == ["file"]

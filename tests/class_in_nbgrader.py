"""The made-up class in the real nbgrader: generate_assignment, autograde, generate_feedback.

`python tests/class_in_nbgrader.py FOLDER` does it for the whole class (minutes) and says where a grade is not
what it must be. nbgrader adds pages of its own to JupyterLab, so it is no part of the course's environment:
COURSE_CLASSROOM names one that has it, and what the course needs; `.ci/run` makes it.
"""

import html
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]  # for `helpers` and `classroom`, where this is run by hand

import made_up_class  # noqa: E402

from classroom import submissions  # noqa: E402
from helpers.checks.exercises import BY_NAME  # noqa: E402

CONFIG = "load_subconfig({!r})\n"
ASSIGNMENT = "03"
AT_ONCE = 2
OURS = ("helpers", "solutions", "classroom")       # of the course: they run in a copy that all may change
POINTS = submissions.course(ROOT).points
GRADES = """
import json, sys
from nbgrader.api import Gradebook
with Gradebook("sqlite:///gradebook.db") as book:
    print(json.dumps({s.student.id: {g.name: g.score for n in s.notebooks for g in n.grades}
                      for s in book.assignment_submissions(sys.argv[1])}))
"""


def python():
    """The Python that has nbgrader; None where there is none."""
    folder = os.environ.get("COURSE_CLASSROOM")
    if folder:
        return str(Path(folder, "Scripts/python.exe" if os.name == "nt" else "bin/python"))
    return sys.executable if importlib.util.find_spec("nbgrader") else None


@dataclass
class Graded:
    """What nbgrader made of a class.

    grades : {learner: {exercise: points}};  feedback : {learner: its text};  changed : files that are not any
    more what they were before: submissions, sources, the course's own;  released : the notebook handed out;
    said : by nbgrader.
    """

    grades: dict
    feedback: dict
    changed: list
    released: dict
    said: str


def run(folder, *command):
    here = os.pathsep.join([str(Path(python()).parent), os.environ["PATH"]])  # nbgrader calls alembic
    env = dict(os.environ, PATH=here, PYTHONPATH=str(folder / "course"), PYTHONIOENCODING="utf-8")
    how = {"cwd": folder, "env": env, "capture_output": True, "encoding": "utf-8"}
    return subprocess.run([python(), *command], **how)


def nbgrader(folder, *arguments):
    """Run nbgrader in the class's folder; what it said."""
    done = run(folder, "-m", "nbgrader", *arguments)
    return done.stdout + done.stderr


def in_nbgrader(folder, learners, config=CONFIG):
    """What nbgrader makes of some of the class, in a folder that does not exist yet."""
    for part in OURS:
        unwanted = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
        shutil.copytree(ROOT / part, folder / "course" / part, ignore=unwanted)
    (folder / "source" / ASSIGNMENT).mkdir(parents=True)
    shutil.copy(ROOT / "solutions" / made_up_class.FILE, folder / "source" / ASSIGNMENT)
    ours = str(folder / "course" / "classroom" / "nbgrader_config.py")
    (folder / "nbgrader_config.py").write_text(config.format(ours), encoding="utf-8")
    said = nbgrader(folder, "generate_assignment", ASSIGNMENT)
    for learner in learners:
        submission = folder / "submitted" / learner / ASSIGNMENT
        submission.mkdir(parents=True)
        (submission / made_up_class.FILE).write_text(made_up_class.LEARNERS[learner][0], encoding="utf-8")
    before = contents(folder)
    said += nbgrader(folder, "autograde", ASSIGNMENT)
    said += nbgrader(folder, "generate_feedback", ASSIGNMENT)
    answer = run(folder, "-c", GRADES, ASSIGNMENT)
    assert answer.returncode == 0, said + answer.stderr
    grades = {
        learner: {submissions.exercise_of(cell): points for cell, points in cells.items()}
        for learner, cells in json.loads(answer.stdout).items()
    }
    pages = {page.parts[-3]: page.read_text(encoding="utf-8")
             for page in folder.glob(f"feedback/*/{ASSIGNMENT}/*.html")}
    after = contents(folder)
    changed = sorted(str(path) for path in before if after.get(path) != before[path])
    released = json.loads(after[folder / "release" / ASSIGNMENT / made_up_class.FILE])
    feedback = {learner: text_of(page) for learner, page in pages.items()}
    return Graded(grades, feedback, changed, released, said)


def whole_class(folder):
    """What it makes of the whole class, in two rooms at once: nbgrader goes through each one by one."""
    names = list(made_up_class.LEARNERS)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        rooms = [pool.submit(in_nbgrader, folder / str(i), names[i::AT_ONCE]) for i in range(AT_ONCE)]
    whole = Graded({}, {}, [], {}, "")
    for room in (job.result() for job in rooms):
        whole.released = room.released
        whole.grades |= room.grades
        whole.feedback |= room.feedback
        whole.changed += room.changed
        whole.said += room.said
    return whole


def contents(folder):
    """{path: bytes} of what grading may only read."""
    parts = ("source", "release", "submitted", "course")
    return {path: path.read_bytes() for part in parts for path in (folder / part).rglob("*")
            if path.suffix in (".py", ".ipynb", ".npz")}


def text_of(page):
    """What a page of feedback says, in one line."""
    text = re.sub(r"<(style|script)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return in_one_line(html.unescape(re.sub(r"<[^>]*>", "", text)))


def in_one_line(text):
    return re.sub(r"\s+", " ", text).lower()


def differences(learner, graded):
    """Sentences about what is not as it must be for one learner."""
    _, expected, words = made_up_class.LEARNERS[learner]
    feedback, words = graded.feedback.get(learner), [words] if isinstance(words, str) else words
    if "not handed in" in expected.values():
        if feedback or any(graded.grades.get(learner, {}).values()):
            yield f"{learner}: a notebook that cannot be read has feedback or points"
        return
    for exercise, state in expected.items():
        points = graded.grades.get(learner, {}).get(exercise)
        if points != (POINTS[exercise] if state == "passed" else 0):
            yield f"{learner}: {exercise} has {points} points"
        if not isinstance(state, str):
            words = [*words, *(m.what for m in BY_NAME[exercise].mistakes if m.name in state)]
    if feedback is None:
        yield f"{learner}: no feedback"
        return
    for part in words:
        if in_one_line(part) not in feedback:
            yield f"{learner}: the feedback does not say: {part}"


def main(folder):
    folder.mkdir(parents=True)
    graded = whole_class(folder)
    (folder / "said.txt").write_text(graded.said, encoding="utf-8")
    wrong = [text for learner in made_up_class.LEARNERS for text in differences(learner, graded)]
    wrong += [f"changed: {name}" for name in graded.changed]
    print("\n".join(wrong))
    print(f"{len(graded.grades)} graded, {len(graded.feedback)} with feedback, {len(wrong)} things wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))

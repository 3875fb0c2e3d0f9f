"""The made-up class in the real nbgrader: generate_assignment, autograde, generate_feedback.

`python tests/class_in_nbgrader.py FOLDER` does it for the whole class (minutes), in an environment that has
nbgrader and what the course needs, and says where a grade is not what it must be.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import made_up_class

ROOT = Path(__file__).resolve().parents[1]
CONFIG = f'load_subconfig({str(ROOT / "classroom" / "nbgrader_config.py")!r})\n'
ASSIGNMENT = "03"
GRADES = """
import json, sys
from nbgrader.api import Gradebook
with Gradebook("sqlite:///gradebook.db") as book:
    print(json.dumps({s.student.id: {g.name: g.score for n in s.notebooks for g in n.grades}
                      for s in book.assignment_submissions(sys.argv[1])}))
"""


def run(folder, *command):
    here = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # nbgrader calls alembic
    env = dict(os.environ, PATH=here, PYTHONPATH=str(ROOT), PYTHONIOENCODING="utf-8")
    how = {"cwd": folder, "env": env, "capture_output": True, "encoding": "utf-8"}
    return subprocess.run([sys.executable, *command], **how)


def nbgrader(folder, *arguments):
    """Run nbgrader in the class's folder; what it said."""
    done = run(folder, "-m", "nbgrader", *arguments)
    return done.stdout + done.stderr


def in_nbgrader(folder, learners, config=CONFIG):
    """({learner: {exercise: points}}, {learner: feedback as HTML}, what nbgrader said)."""
    (folder / "source" / ASSIGNMENT).mkdir(parents=True)
    shutil.copy(ROOT / "solutions" / made_up_class.FILE, folder / "source" / ASSIGNMENT)
    (folder / "nbgrader_config.py").write_text(config, encoding="utf-8")
    said = nbgrader(folder, "generate_assignment", ASSIGNMENT)
    for learner in learners:
        submission = folder / "submitted" / learner / ASSIGNMENT
        submission.mkdir(parents=True)
        (submission / made_up_class.FILE).write_text(made_up_class.LEARNERS[learner][0], encoding="utf-8")
    said += nbgrader(folder, "autograde", ASSIGNMENT)
    said += nbgrader(folder, "generate_feedback", ASSIGNMENT)
    answer = run(folder, "-c", GRADES, ASSIGNMENT)
    assert answer.returncode == 0, said + answer.stderr
    grades = {
        learner: {cell.removesuffix("-check").replace("-", "_"): points for cell, points in cells.items()}
        for learner, cells in json.loads(answer.stdout).items()
    }
    pages = folder.glob(f"feedback/*/{ASSIGNMENT}/*.html")
    return grades, {page.parts[-3]: page.read_text(encoding="utf-8") for page in pages}, said


def differences(learner, grades, feedback):
    """Sentences about what is not as it must be for one learner."""
    _, expected, words = made_up_class.LEARNERS[learner]
    for exercise, state in expected.items():
        passed = grades.get(learner, {}).get(exercise, 0) > 0
        if passed != (state == "passed"):
            yield f"{learner}: {exercise} has {'points' if passed else 'no points'}"
    text = re.sub(r"<[^>]*>", "", feedback.get(learner, "")).replace("&#39;", "'").lower()
    for part in [words] if isinstance(words, str) else words:
        if learner in feedback and part.lower() not in text:
            yield f"{learner}: the feedback does not say: {part}"


def main(folder):
    folder.mkdir(parents=True)
    grades, feedback, said = in_nbgrader(folder, made_up_class.LEARNERS)
    (folder / "said.txt").write_text(said, encoding="utf-8")
    wrong = [text for learner in made_up_class.LEARNERS for text in differences(learner, grades, feedback)]
    print("\n".join(wrong))
    print(f"{len(grades)} submissions graded, {len(feedback)} with feedback, {len(wrong)} things wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))

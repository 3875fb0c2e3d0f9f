"""Grade a folder of submissions: `python3 course.py grade FOLDER`.

Writes grades.csv and grades.html into the folder. Nothing else there changes.
"""

import argparse
import csv
import io
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from classroom import page, submissions
from classroom.guard import Guard
from classroom.sandbox import ROOT, Sandbox, typed
from classroom.submissions import KEPT
from helpers.checks.report import print_safely
from helpers.exercise_notebooks import write_text

GUARDED = ("helpers", "notebooks", "exercises", "solutions", "classroom", "course.py")
MOST_AT_ONCE = 4
CHANGED = (
    "By the time {} was done, files of the course or of the class had changed or were gone: {}. If that was "
    "not you, it was a submission. How they were before is in {}. No grade depends on them."
)
NOT_HANDED_IN = {
    "state": "not handed in", "says": "its notebook is not there", "mistakes": [], "remarks": [],
    "message": "The notebook of this exercise was not handed in.",
}


@dataclass
class Graded:
    """What came of one submission."""

    learner: str
    verdicts: dict  # exercise -> verdict, as `helpers.checks.submission` has them
    remarks: list

    def points(self, course):
        return sum(course.points[name] for name, v in self.verdicts.items() if v["state"] == "passed")


def grade(folder, root=ROOT, at_once=None, say=print_safely):
    """Grade all submissions in a folder: ([Graded, …], exercises, course, sentences). Raises Refused."""
    course = submissions.course(root)
    handed_in, sentences = submissions.read_folder(folder, course)
    exercises = submissions.asked(handed_in)
    parts = [root / name for name in GUARDED if (root / name).exists()]
    guards = [Guard(root, parts), Guard(folder, [folder])]
    sandbox = Sandbox(root)
    at_once = at_once or min(MOST_AT_ONCE, os.cpu_count() or 1)
    say(f"Grading {len(handed_in)} submissions, {len(exercises)} exercises, {at_once} at once ...")
    total, done = sum(course.points[exercise.name] for exercise in exercises), {}
    with ThreadPoolExecutor(at_once) as pool:
        try:
            waiting = [pool.submit(one, sandbox, submission, exercises) for submission in handed_in]
            for job in as_completed(waiting):
                graded, seconds = job.result()
                done[graded.learner] = graded
                changed = [name for guard in guards for name in guard.keep(folder / KEPT)]
                if changed:
                    sentences.append(CHANGED.format(graded.learner, ", ".join(changed[:5]), folder / KEPT))
                points = f"{graded.points(course)} of {total} points"
                say(f"{len(done):4} of {len(handed_in)}  {graded.learner}: {points}  ({seconds:.0f} s)")
        finally:
            sandbox.close()
    return [done[submission.learner] for submission in handed_in], exercises, course, sentences


def one(sandbox, submission, exercises):
    """(Graded, seconds) for one submission."""
    begun = time.monotonic()
    names = [exercise.name for exercise in exercises if exercise.notebook in submission.numbers]
    verdicts, remarks = sandbox.judge(submission.notebooks, names)
    verdicts = {e.name: verdicts.get(e.name) or {"name": e.name} | NOT_HANDED_IN for e in exercises}
    return Graded(submission.learner, verdicts, submission.remarks + remarks), time.monotonic() - begun


def as_csv(results, exercises, course):
    """A row a learner: points as numbers, then what is to be said, exercise by exercise."""
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n")
    titles = [f"{exercise.number} {exercise.name}" for exercise in exercises]
    write.writerow(["learner", "points", "of", *titles, "remarks", *(f"{title}: what" for title in titles)])
    total = sum(course.points[exercise.name] for exercise in exercises)
    for graded in results:
        verdicts = [graded.verdicts[exercise.name] for exercise in exercises]
        points = [course.points[v["name"]] if v["state"] == "passed" else 0 for v in verdicts]
        says = ["passed" if v["state"] == "passed" else ": ".join(filter(None, (v["state"], v["says"])))
                for v in verdicts]
        row = [graded.learner, sum(points), total, *points, " ".join(graded.remarks), *says]
        write.writerow([harmless(entry) for entry in row])
    return text.getvalue()


def harmless(entry):
    """What a spreadsheet takes for text, not for a formula."""
    return f"'{entry}" if isinstance(entry, str) and entry[:1] in "=+-@\t\r" and entry else entry


def save(path, text):
    """Write a file; one that is there and differs is kept beside it, as NAME.before."""
    if path.exists() and path.read_text(encoding="utf-8", errors="replace") != text:
        path.replace(path.with_name(f"{path.name}.before"))
    write_text(path, text)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="course.py grade", description="Grade a folder of submissions.")
    parser.add_argument("folder", type=typed, help="it holds a folder for each learner, or a file for each")
    parser.add_argument("--at-once", type=int, metavar="N", help="how many submissions run at the same time")
    options = parser.parse_args(arguments)
    if options.at_once is not None and options.at_once < 1:
        parser.error("--at-once needs a number from 1")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    try:
        results, exercises, course, sentences = grade(options.folder, at_once=options.at_once)
    except submissions.Refused as err:
        print(f"{err} Nothing was written.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. Nothing was written.", file=sys.stderr)
        return 130
    folder = options.folder
    save(folder / "grades.csv", as_csv(results, exercises, course))
    save(folder / "grades.html", page.page(results, exercises, course, sentences))
    for text in sentences:
        print_safely(text)
    print_safely(f"Written: {folder / 'grades.csv'} and {folder / 'grades.html'}, a page for your browser.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

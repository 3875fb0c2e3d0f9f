"""Grade a folder of submissions: `python3 course.py grade FOLDER`.

Writes into the folder grades.csv, grades.html for who teaches, class.html for the projector, and a page for
each learner into feedback/. Nothing else there changes.
"""

import argparse
import contextlib
import os
import re
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import datetime
from pathlib import Path

from classroom import page, results, submissions
from classroom.class_folder import EARLIER, FEEDBACK, KEPT, read_folder
from classroom.command import reason, typed
from classroom.guard import Guard
from classroom.names import file_name
from classroom.results import Graded, Results
from classroom.sandbox import ROOT, Sandbox
from classroom.submissions import NUMBERS, Refused
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
MODEL_MISSING = "the language model is missing"  # what the check of the last exercise says of this machine


def tell(text):
    """Print how far it is. Where nobody reads it any more (| head), the grading goes on."""
    with contextlib.suppress(OSError):
        print_safely(text)


def grade(folder, root=ROOT, at_once=None, only=(), say=tell):
    """Grade all submissions in a folder, of the notebooks with the numbers `only` or of all that are begun.

    Raises Refused, and OSError where something cannot be read.
    """
    course = submissions.course(root)
    handed_in, sentences = read_folder(folder, course)
    exercises = submissions.asked(handed_in, only)
    parts = [root / name for name in GUARDED if (root / name).exists()]
    guards = [Guard(root, parts), Guard(folder, [folder])]
    sandbox = Sandbox(root)
    at_once = at_once or min(MOST_AT_ONCE, os.cpu_count() or 1)
    outcome, done = Results([], exercises, course.points, sentences), {}
    which = ", ".join(outcome.notebooks)
    say(f"Grading {len(handed_in)} submissions, {len(exercises)} exercises of {which}, {at_once} at once ...")
    with ThreadPoolExecutor(at_once) as pool:
        try:
            waiting = [pool.submit(one, sandbox, submission, exercises) for submission in handed_in]
            for job in as_completed(waiting):
                graded, seconds = job.result()
                done[graded.learner] = graded
                changed = [name for guard in guards for name in guard.keep(folder / KEPT)]
                if changed:
                    sentences.append(CHANGED.format(graded.learner, ", ".join(changed[:5]), folder / KEPT))
                points = "{} of {} points".format(*outcome.points(graded))
                say(f"{len(done):4} of {len(handed_in)}  {graded.learner}: {points}  ({seconds:.0f} s)")
        finally:
            sandbox.close()
    outcome.graded = [done[submission.learner] for submission in handed_in]
    outcome.notices = list(not_judged(outcome))
    return outcome


def one(sandbox, submission, exercises):
    """(Graded, seconds) for one submission."""
    begun = time.monotonic()
    names = [exercise.name for exercise in exercises if exercise.notebook in submission.numbers]
    asked = {exercise.notebook for exercise in exercises}
    all_of_them = any(exercise.cases is None for exercise in exercises)  # the last looks at every notebook
    notebooks = [
        notebook for notebook in submission.notebooks
        if asked.intersection(notebook["numbers"]) or all_of_them and notebook["begun"]
    ]
    try:
        verdicts, remarks = sandbox.judge(notebooks, names)
    except Exception as err:  # of this machine: no room, no memory, no process
        why = f"The grading failed on this machine ({type(err).__name__}: {reason(err)})."
        verdicts, remarks = {name: unjudged(name, why) for name in names}, []
    verdicts = {e.name: verdicts.get(e.name) or {"name": e.name} | NOT_HANDED_IN for e in exercises}
    for name, verdict in verdicts.items():
        if verdict["state"] == "not tried" and MODEL_MISSING in verdict["message"]:
            verdicts[name] = unjudged(name, verdict["says"])
    graded = Graded(submission.learner, verdicts, submission.remarks + remarks, submission.moodle)
    return graded, time.monotonic() - begun


def unjudged(name, why):
    text = f"? {name}     not judged: this is not the learner's fault\n\n  {why}"
    return {"name": name, "state": "not judged", "says": why, "mistakes": [], "message": text, "remarks": []}


def not_judged(outcome):
    """A sentence for each exercise that could not be judged, and why."""
    for exercise in outcome.exercises:
        verdicts = [graded.verdicts[exercise.name] for graded in outcome.graded]
        why = dict.fromkeys(v["says"] for v in verdicts if v["state"] == "not judged")
        if why:
            learners = page.counted(outcome.counts(exercise)["not judged"], "learner")
            yield (
                f"NOT JUDGED: {exercise.number} {exercise.name} of {learners}. {' '.join(why)} It counts "
                "neither for nor against them, and is no part of their total. Put it right, then grade again."
            )


def try_writing(folder):
    """Raises Refused when the folder cannot be written: better now than when all is done."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return
    except OSError as err:
        raise Refused(
            f"{folder} cannot be written: {reason(err)}. The grades go there: copy the submissions into a "
            "folder of your own."
        ) from None


def write_all(folder, outcome):
    """Write table and pages; gives sentences: where they are, and what went elsewhere."""
    old = folder / "grades.csv"
    table = results.as_csv(outcome)
    said = [f"Earlier grades are kept: {kept}." for kept in keep_earlier(old, table, outcome)]
    files = {
        "grades.csv": "\ufeff" + table,  # the mark by which Excel knows UTF-8
        "grades.html": page.for_the_teacher(outcome),
        "class.html": page.for_the_class(outcome),
    }
    written = {name: write(folder / name, text) for name, text in files.items()}
    said += [
        f"{name} cannot be replaced: is it open in another program? This time it is {path.name}."
        for name, path in written.items() if path.name != name
    ]
    (folder / FEEDBACK).mkdir(exist_ok=True)
    for graded, name in zip(outcome.graded, feedback_names(outcome.graded), strict=True):
        write(folder / FEEDBACK / name, page.for_a_learner(outcome, graded))
    grades, html, wall = written.values()
    return [
        *said,
        f"Written: {grades}; {html.name}, a page for you; {wall.name}, one for the projector, without names; "
        f"{FEEDBACK}/, a page for each learner.",
    ]


def keep_earlier(old, table, outcome):
    """Note what was reached the last time, and put that table aside if it says something else."""
    try:
        before = old.read_text(encoding="utf-8-sig", errors="replace")
        results.earlier(before, outcome)
        if before != table:
            folder = old.parent / EARLIER
            folder.mkdir(exist_ok=True)
            when = datetime.fromtimestamp(old.stat().st_mtime)
            copy = folder / f"{when:%Y-%m-%d %H.%M.%S}.csv"
            copy.write_bytes(old.read_bytes())
            yield copy
    except OSError:
        return


def write(path, text):
    """Write a file, under another name where this one is taken; gives the path."""
    for number in range(2, 10):
        try:
            write_text(path, text)
            return path
        except OSError as err:
            error, path = err, path.with_name(f"{re.sub(r'-[0-9]+$', '', path.stem)}-{number}{path.suffix}")
    raise error


def feedback_names(graded):
    """A file name for each learner, as Moodle wants it where the submission came from there."""
    taken = set()
    for learner in graded:
        stem = f"{learner.moodle}_feedback" if learner.moodle else learner.learner
        stem = file_name(stem) or "learner"
        while stem.lower() in taken:
            stem += "_"
        taken.add(stem.lower())
        yield f"{stem}.html"


def numbers(text):
    """ "3,04" -> ["03", "04"]."""
    found = [part.strip().zfill(2) for part in text.split(",")]
    if not set(found) <= set(NUMBERS):
        raise argparse.ArgumentTypeError(f"{', '.join(NUMBERS)} have exercises, and {text!r} came")
    return found


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="course.py grade", description="Grade a folder of submissions.")
    parser.add_argument("folder", type=typed, help="it holds a folder, a zip or files for each learner")
    parser.add_argument("--only", type=numbers, default=(), metavar="03,04",
                        help="the notebooks that were set (default: all that anybody has begun)")
    parser.add_argument("--at-once", type=int, metavar="N", help="how many submissions run at the same time")
    options = parser.parse_args(arguments)
    if options.at_once is not None and options.at_once < 1:
        parser.error("--at-once needs a number from 1")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    folder = options.folder
    try:
        if folder.is_dir():
            try_writing(folder)
        outcome = grade(folder, at_once=options.at_once, only=options.only)
    except Refused as err:
        print_safely(f"{err} Nothing was written.", sys.stderr)
        return 1
    except OSError as err:
        what = f"{err.filename or folder} cannot be used: {reason(err)}."
        print_safely(f"{what} Nothing was written.", sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. Nothing was written.", file=sys.stderr)
        return 130
    try:
        said = write_all(folder, outcome)
    except OSError as err:
        elsewhere = Path(tempfile.mkdtemp(prefix="grades-"))
        said = [f"{folder} cannot be written any more: {reason(err)}."]
        try:
            said += write_all(elsewhere, outcome)
        except OSError as again:
            with contextlib.suppress(OSError):
                elsewhere.rmdir()                           # unless something has come into it
            where = f"Nor can {elsewhere}: {reason(again)}. The points stand above."
            print_safely(f"{said[0]} {where}", sys.stderr)
            return 1
    remarked = [graded.learner for graded in outcome.graded if graded.remarks]
    if remarked:
        said.insert(0, f"There are remarks, on the page beside the grades, on {', '.join(remarked)}.")
    for sentence in outcome.sentences + said + outcome.notices:
        print_safely(sentence)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What came of grading a class, counted and as a table. Pages are made of it in `page`."""

import builtins
import csv
import io
import re
from collections import Counter
from dataclasses import dataclass, field

from classroom.names import writable
from helpers.checks.exercises import BY_NAME

KINDS = {  # what a state counts as
    "passed": "solved", "wrong": "stuck", "unusable": "stuck", "broken": "stuck",
    "not written": "not written", "not tried": "not written",
    "not handed in": "not handed in", "not judged": "not judged",
}
POSSIBLE = "possible"  # the learner in whose row stands what can be had
SINGLE = "This is what comes out when "
OTHER, CANNOT_RUN = "something else", "its cell cannot be run"
ERROR = re.compile(r"(\w+): ")


@dataclass
class Graded:
    """What came of one submission."""

    learner: str
    verdicts: dict  # exercise -> verdict, as `helpers.checks.submission` has them
    remarks: list = field(default_factory=list)
    moodle: str = ""  # as in Submission
    before: int | None = None  # the points for the same exercises the last time


@dataclass
class Results:
    """What came of a class.

    sentences : on the class as a whole, where learners may be named.  notices : those without a name.
    """

    graded: list
    exercises: list
    points_of: dict  # exercise -> points
    sentences: list = field(default_factory=list)
    notices: list = field(default_factory=list)

    def points(self, graded, exercises=None):
        """(points, how many of those that could be judged) of one learner, of all exercises or of some."""
        verdicts = [graded.verdicts[exercise.name] for exercise in exercises or self.exercises]
        return (
            sum(self.points_of[v["name"]] for v in verdicts if v["state"] == "passed"),
            sum(self.points_of[v["name"]] for v in verdicts if v["state"] != "not judged"),
        )

    @property
    def total(self):
        return sum(self.points_of[exercise.name] for exercise in self.exercises)

    @property
    def notebooks(self):
        """{number of a notebook: its exercises}."""
        numbers = dict.fromkeys(exercise.notebook for exercise in self.exercises)
        return {number: [e for e in self.exercises if e.notebook == number] for number in numbers}

    def counts(self, exercise):
        """How many learners have solved an exercise, are stuck, …"""
        return Counter(kind(graded.verdicts[exercise.name]) for graded in self.graded)

    def mistakes(self, exercise):
        """[(what went wrong, the learners)] of an exercise, the commonest first."""
        found = {}
        for graded in self.graded:
            verdict = graded.verdicts[exercise.name]
            if kind(verdict) == "stuck":
                for what in in_words(verdict):
                    found.setdefault(what, []).append(graded.learner)
        return commonest_first(found)

    def mistakes_for_all(self, exercise):
        """The same as it may stand on a wall, without what only one learner's own code can have said."""
        found = {}
        for what, learners in self.mistakes(exercise):
            found.setdefault(for_all(what, learners, exercise), []).extend(learners)
        return commonest_first(found)


def kind(verdict):
    return KINDS.get(verdict["state"], "stuck")


def commonest_first(found):
    return sorted(found.items(), key=lambda pair: -len(pair[1]))


def in_words(verdict):
    """What went wrong, a text for each mistake: the catalogue's own words for those that have a name."""
    known = {mistake.name: mistake.what for mistake in BY_NAME[verdict["name"]].mistakes}
    named = [known[name] for name in verdict["mistakes"] if name in known]
    return named or [(verdict["says"] or verdict["state"]).removeprefix(SINGLE).rstrip(".")]


def for_all(what, learners, exercise):
    """What went wrong, in words that are the course's and not a learner's."""
    if what in {mistake.what for mistake in exercise.mistakes}:
        return what
    if what.startswith("its cell "):
        return CANNOT_RUN
    error = ERROR.match(what)
    if error:
        return error[1] if hasattr(builtins, error[1]) else OTHER
    return what if len(learners) > 1 else OTHER


def as_csv(results):
    """What can be had, then a row a learner: points as numbers, then what is to be said of each exercise."""
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n")
    titles = {exercise.name: f"{exercise.number} {exercise.name}" for exercise in results.exercises}
    notebooks = results.notebooks if len(results.notebooks) > 1 else {}
    possible = results.points_of
    parts = [f"notebook {number}" for number in notebooks]
    what = [f"{title}: what" for title in titles.values()]
    write.writerow(["learner", "points", "of", *parts, *titles.values(), "remarks", *what])
    sums = [sum(possible[e.name] for e in exercises) for exercises in notebooks.values()]
    each = [possible[name] for name in titles]
    write.writerow([POSSIBLE, results.total, results.total, *sums, *each, "", *[""] * len(each)])
    for graded in results.graded:
        verdicts = [graded.verdicts[name] for name in titles]
        row = [graded.learner, *results.points(graded)]
        row += [results.points(graded, exercises)[0] for exercises in notebooks.values()]
        row += [points_in_words(v, possible[v["name"]]) for v in verdicts]
        row += [" ".join(graded.remarks), *map(in_one_line, verdicts)]
        write.writerow([harmless(entry) for entry in row])
    return writable(text.getvalue())


def points_in_words(verdict, possible):
    """The points for an exercise; nothing where it could not be judged."""
    return "" if verdict["state"] == "not judged" else possible if verdict["state"] == "passed" else 0


def in_one_line(verdict):
    return ": ".join(filter(None, (verdict["state"], verdict["says"])))


def harmless(entry):
    """What a spreadsheet takes for text, not for a formula."""
    return f"'{entry}" if isinstance(entry, str) and entry[:1] in "=+-@\t\r" and entry else entry


def earlier(text, results):
    """Note down the points of an earlier table, for those exercises that it has in common with this one."""
    try:
        rows = {row["learner"]: row for row in csv.DictReader(io.StringIO(text))}
        for graded in results.graded:
            row = rows.get(harmless(writable(graded.learner)))
            titles = [f"{exercise.number} {exercise.name}" for exercise in results.exercises]
            there = [int(row[title] or 0) for title in titles if title in row] if row else []
            graded.before = sum(there) if len(there) == len(titles) else None
    except (KeyError, ValueError, TypeError, AttributeError, csv.Error):
        return  # somebody has worked in it: nothing can be compared

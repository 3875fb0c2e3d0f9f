"""All exercises with checks, also those that are not in the course's list yet, and reports on answers."""

from functools import cache

from helpers.checks import judge
from helpers.checks.exercises import BY_NAME, rope

ALL = BY_NAME | {exercise.name: exercise for exercise in rope.EXERCISES}


def checked(name, function):
    """What the check says, by name as `run` does it."""
    return judge.run(name, function) if name in BY_NAME else judge.judge(ALL[name], function)


@cache
def report_on(name, function):
    """The same, made once for each function."""
    return checked(name, function)

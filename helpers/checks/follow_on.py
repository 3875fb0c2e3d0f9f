"""Judges for points: what an earlier function of the learner's has got wrong counts there, and only there.

An answer that fails and uses earlier ones which fail their own checks is judged once more on the course's own
in their place. If it is right then, it is right; and if not, what it has got wrong itself is what is said.
"""

from helpers.checks import process, together
from helpers.checks.compare import listed
from helpers.checks.earlier import course_in_place_of, missing, others
from helpers.checks.exercises import BY_NAME
from helpers.checks.judge import judge, run, with_more


class Judge:
    """Called with an exercise and a function it gives (report, "" or "right, once your scores (3.1) is").

    It remembers what it has judged: an earlier function comes up again with each that uses it.
    """

    def __init__(self):
        self.known = {}

    def __call__(self, exercise, function):
        try:
            key = exercise.name, process.carry(function)
        except process.CannotCarry:
            return judge(exercise, function), ""
        if key not in self.known:
            fairly = self.with_the_model if exercise.cases is None else self.with_earlier_ones
            self.known[key] = fairly(exercise, function)
        return self.known[key]

    def with_earlier_ones(self, exercise, function):
        report = judge(exercise, function)
        if report.passed:
            return report, ""
        order = list(BY_NAME)
        before = order[: order.index(exercise.name)]  # or two could each be right once the other is
        used = {name: own for name, own in others(exercise, function).items() if name in before}
        reports = {name: self(BY_NAME[name], own)[0] for name, own in used.items()}
        states = {name: report.state for name, report in reports.items()}
        states |= dict.fromkeys(missing(function), "not written")
        faulty = [name for name in before if states.get(name) in ("wrong", "not written")]
        if not faulty:
            doubtful = any(report.remarks for report in reports.values())
            return run(exercise.name, function) if doubtful else report, ""
        with course_in_place_of(function, {name: used.get(name) for name in faulty}):
            second = judge(exercise, function)
        if second.passed:
            return second, once(faulty, all(states[name] == "not written" for name in faulty))
        line = f"Judged with the course's own {numbered(faulty)}: the check of yours does not pass."
        return with_more(second, first=(line,)), ""

    def with_the_model(self, exercise, function):
        """The last exercise, which has a model run on all that a learner has written."""
        report = together.judge(exercise, function)
        if report.passed or not report.at_fault:
            return report, ""
        second = together.judge(exercise, function, without=report.at_fault)
        return (second, once(report.at_fault, False)) if second.passed else (report, "")


def once(names, absent):
    """What is said of an answer that is right but for these earlier ones."""
    return f"right, once your {numbered(names)} {'is' if len(names) == 1 else 'are'}{' written' * absent}"


def numbered(names):
    return listed([f"{name} ({BY_NAME[name].number})" for name in names])

"""Judges the last exercise: does the language model say on a reader's functions what it says anyway?

Read `judge`, then `Trial`: what the process of the checks does. It takes the reader's functions out of their
notebooks, hands them to the reader's my_model, lets the model write, and compares. The words are those of the
transformers library on the same weights, in float32.
"""

import pickle
from functools import cached_property
from pathlib import Path
from textwrap import wrap

import numpy as np

from helpers import smollm2
from helpers.checks import process
from helpers.checks.exercise import Case
from helpers.checks.exercises import BY_NAME
from helpers.checks.notebooks import NOTEBOOKS, running_functions, saved_functions
from helpers.checks.observe import Told, describe, in_words
from helpers.checks.report import Report
from helpers.checks.signature import is_empty
from helpers.checks.words import error_lines, what_next
from helpers.smollm2.functions import INSIDE, WHEN

PROMPT = "The capital of France is"
IDS = [7042, 30, 198]  # " Paris." and a new line
CLOSE = 0.01  # of logits: rounding in float32 is worth 0.0001, a mistake mostly 1 and more
LIMIT, TOTAL = 30, 100  # seconds for the model to write and to read, of which 1 is usual, and for a whole job
PLAN, ALL = "the plan", "all of them"
NOTHING = (
    "In the notebooks of this folder, as they are saved, no function is written that has a place in it.",
)


def judge(exercise, function, without=()):
    """The report on my_model. Raises what `process.run_apart` raises.

    without : names of functions of the reader's that are left out.
    """
    name, missing = exercise.name, why_not()
    trial = Trial(function, not missing, without)
    plan, *run = outcomes(trial, PLAN, ALL)
    idle = is_empty(function) and function(None, None) is None  # a constant is an answer, though a wrong one
    if idle or (plan.error and plan.error.type == "NotImplementedError"):
        return Report(name, "not written", "not written yet")
    if missing:
        return Report(name, "not tried", "not tried: the language model is missing", facts=missing)
    if plan.error or plan.ended or isinstance(plan.value, Told):
        lines = tuple(told(exercise, function, plan))
        return Report(name, "wrong", "no model on your functions", facts=lines)
    fit, left_out = plan.value
    remarks = [f"{numbered(name)} is left out: {why}." for name, why in left_out]
    if not fit:
        return Report(name, "not tried", "not tried: no function of yours", facts=NOTHING, remarks=remarks)
    said, right, calls = result(*run)
    if not right:
        alone = dict(zip(fit, map(result, one_by_one(trial, fit)), strict=True))
        return wrong(name, said, {n: said for n, (said, right, _) in alone.items() if not right}, remarks)
    return Report(
        name,
        "passed",
        PROMPT + said.split("\n")[0],
        facts=tuple(on_whose(fit, calls)),
        why=exercise.passed if len(fit) == len(WHEN) else so_far(len(fit)),
        remarks=remarks,
        next=what_next(exercise),
    )


def rests_on(my_model):
    """What the report on my_model rests on: all functions that run here, and the notebooks as saved."""
    saved = [(path.name, path.stat().st_mtime_ns) for path in sorted(Path().glob(NOTEBOOKS))]
    return process.carry(Trial(my_model, True)), saved


def wrong(name, said, faulty, remarks):
    """The report when the model says something else. faulty : {function: what it says on that one alone}."""
    if faulty:
        outer = {INSIDE[name]: name for name in faulty if INSIDE.get(name) in faulty}
        first = [name for name in faulty if name not in outer]
        which = " and ".join(map(numbered, first))
        diagnosis = f"Your {which} {'is' if len(first) == 1 else 'are'} what fails."
        why = "".join(f"{numbered(name)} fails too, as it must where it calls {inner}. "
                      for name, inner in outer.items())
        why += "Begin there: each has its own check. Put in alone, among the course's functions:"
    else:
        diagnosis = "Each of your functions alone is right, and together they are not."
        why = "What one of them gives back does not fit what another expects: look at its shape and its kind."
    course = smollm2.load().tokenizer.decode(IDS)
    return Report(
        name,
        "wrong",
        "it does not say what it should",
        facts=(f"On your functions: {PROMPT} → {said}", f"On the course's:   {PROMPT} → {course!r}"),
        diagnosis=diagnosis,
        why=why,
        holds=tuple(f"{name} → {text}" for name, text in faulty.items()),
        at_fault=tuple(faulty),
        remarks=remarks,
    )


def why_not():
    """What is missing for the model to run, as lines; () when it runs."""
    try:
        smollm2.load()
        return ()
    except (FileNotFoundError, ModuleNotFoundError, ValueError, OSError) as err:
        what = str(err)
        return (
            f"{what[0].upper()}{what[1:]}.",
            "Type that in a terminal, in the folder of the course. It says first what it costs.",
        )


def outcomes(trial, *steps):
    """What the steps of a trial gave, in a process of their own; the last may be one that was stopped."""
    cases = [Case(step, (step,)) for step in steps]
    return process.run_apart(trial, cases, LIMIT, TOTAL)[0]


def one_by_one(trial, steps):
    """What each step gave, also those that come after one that was stopped."""
    found = []
    while len(found) < len(steps):
        found += outcomes(trial, *steps[len(found):])
    return found


def result(outcome):
    """What a trial of functions gave, whatever happened."""
    if outcome.ended:
        slow = outcome.ended == "time"
        return f"not done after {LIMIT} s" if slow else f"its process ended ({outcome.ended})", False, []
    if outcome.error:
        return in_short(outcome.error), False, []
    return outcome.value


def in_short(problem):
    where = f" (in {problem.place.function})" if problem.place else ""
    return f"{problem.type}: {problem.text}".removesuffix(": ") + where


def told(exercise, function, plan):
    """What went wrong before the model could run, as lines."""
    if plan.error:
        return error_lines(exercise, function, plan.error)
    return [result(plan)[0] if plan.ended else plan.value.sentence]


def numbered(name):
    return f"{name} ({BY_NAME[name].number})" if name in BY_NAME else name


def so_far(count):
    """What it comes to when some of the functions are the course's own."""
    are = "is" if count == 1 else "are"
    return f"{count} of the {len(WHEN)} functions with a place in it {are} yours, the others the course's."


def on_whose(fit, calls):
    """Which functions ran, as lines."""
    count = "one" if len(fit) == 1 else len(fit)
    yield f"So says the language model on {count} of your functions. Calls of each:"
    pairs = ", ".join(f"{name}\xa0{n}" for name, n in calls)
    yield from (line.replace("\xa0", " ") for line in wrap(f"{pairs}.", 88))
    called = [name for name, _ in calls]
    for name in fit:
        if name not in called:
            yield f"{name} is not called: your {INSIDE[name]} does its work."
    others = [numbered(name) for name in WHEN if name not in fit]
    if others:
        yield from wrap(f"On the course's own, for want of yours: {', '.join(others)}.", 88)


class Trial:
    """my_model, with the functions of the notebook it stands in, on the way to the process of the checks.

    Called with PLAN it gives [names that have a place, [[name, why it is left out], …]]; with ALL, or the
    name of one function to put in alone, what `written` gives.
    """

    def __init__(self, my_model, fetched, without=()):
        self.my_model, self.fetched, self.without, self.running = my_model, fetched, without, []
        for name, function in running_functions(getattr(my_model, "__globals__", {})).items():
            try:
                self.running.append((name, process.carry(function)))
            except process.CannotCarry:  # the saved one stands for it
                continue

    @cached_property
    def there(self):
        """(the model, the reader's functions, what is left out), on the other side."""
        mine, left_out = saved_functions()
        mine |= {name: pickle.loads(carried) for name, carried in self.running}
        mine = {name: function for name, function in mine.items() if name not in self.without}
        return smollm2.load() if self.fetched else None, mine, left_out

    def __call__(self, step):
        model, mine, left_out = self.there
        fit = {name: mine[name] for name in WHEN if name in mine}
        if step in fit:
            return written(model.use(**{step: fit[step]}), model)
        own = self.my_model(model, mine)
        if not isinstance(own, smollm2.SmolLM2):
            what = "None" if own is None else in_words(own).what
            return Told(f"my_model gave back {what}, where a model is expected, as model.use(…) gives it.")
        idle = [name for name in fit if own.functions.own.get(name) is not fit[name]]
        if idle:
            return Told(f"These of yours have a place in it and are not put in: {', '.join(idle)}.")
        if step == PLAN:
            return [list(fit), [[name, why] for name, why in left_out.items()]]
        return written(own, model)


def written(own, model):
    """[what own writes, whether that and its logits are as they should be, [[function, calls], …]]."""
    text = np.append(model.ids(PROMPT), IDS)  # (n,)
    right = model.logits(text)  # (n, V)
    try:
        ids, logits = list(own.generate_ids(PROMPT, len(IDS))), own.logits(text)
        later = logits_in_parts(own, text)  # (n, V)
    except Exception as err:
        return [in_short(describe(err)), False, []]
    calls = [[name, own.functions.calls[name]] for name in WHEN if own.functions.calls[name]]
    off = float(np.abs(logits - right).max())
    if ids != IDS:
        return [repr(model.tokenizer.decode(ids)), False, calls]
    if not off <= CLOSE:
        return [f"the same words, but logits are off by up to {off:.2g}", False, calls]
    off = float(np.abs(later - right).max())
    if not off <= CLOSE:
        return [f"the same words, but where a text comes in parts, as in a chat, logits are off by up to "
                f"{off:.2g}", False, calls]
    return [model.tokenizer.decode(ids), True, calls]


def logits_in_parts(own, ids):
    """(n, V), half of the text read first, then the rest, whose queries see more keys than they are.

    The last token comes alone, as each does that is written.
    """
    caches, half = own.new_caches(len(ids)), len(ids) // 2
    parts = [X_out for part in (ids[:half], ids[half:-1], ids[-1:]) for X_out in own.read(part, caches)]
    return np.concatenate([own.to_vocabulary(X_out) for X_out in parts])

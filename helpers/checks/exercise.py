"""What an exercise is, as data: inputs to try, the right answer, and the mistakes people make.

The engine knows nothing of any single exercise. To add one, write an `Exercise` into a module of
`exercises/`; nothing else changes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from itertools import combinations

import numpy as np

from helpers.checks.observe import Outcome, freeze, observe


@dataclass(frozen=True)
class Case:
    """One input on which a function is tried.

    kind : a few words ("integers", "one token").
    says : the line of a verdict that describes the input; made from the sizes when empty.
    options : optional arguments, by name.
    tolerance : in place of the exercise's own.
    raises : an exception is what is wanted.
    edge : careful people differ here, so a wrong result passes with this remark.
    edge_error : the remark for an error there, after its name ("with an odd d it raises IndexError" + this).
    error : (what, why), the diagnosis when an error here is all that is wrong.
    edge_rows : where in the result the difference is allowed; everywhere when None.
    style : what a mistake does here depends on the type of the numbers; it never speaks against a diagnosis.
    call : call(function, *arguments) when one plain call will not do.
    draws : the answer is drawn at random. `call` asks the reader's function this often and gives the share of
        each possible answer; functions of our own give the exact probabilities themselves.
    """

    kind: str
    arguments: tuple
    options: dict = field(default_factory=dict)
    says: str = ""
    tolerance: float | None = None
    raises: bool = False
    edge: str = ""
    edge_error: str = ""
    error: tuple = ()
    style: bool = False
    edge_rows: np.ndarray | None = None
    call: Callable | None = None
    draws: int = 0

    @cached_property
    def size(self):
        """How many numbers or words a reader would have to look at."""
        return sum(map(numbers_in, self.arguments))


def numbers_in(value):
    if isinstance(value, (list, tuple)):
        return sum(map(numbers_in, value))
    return len(value) if isinstance(value, dict) else np.size(value)


@dataclass(frozen=True)
class Mistake:
    """One way to go wrong: which steps are replaced, and what to say about it.

    what : ends the sentence "This is what comes out when …".
    why : one plain sentence; {d_k} and the like stand for the sizes of the input shown.
    read : a heading of the exercise's notebook, or (notebook, heading).
    by_text : where it raises errors only the very same message is a sign of it, for many slips raise such.
    """

    name: str
    steps: dict
    what: str
    why: str
    read: str | tuple
    by_text: bool = False


@dataclass(frozen=True)
class Exercise:
    """Everything the checks know about one function of the course."""

    number: str  # "3.2"
    name: str
    notebook: str  # "03"
    reference: Callable  # the helper of the same name
    arguments: dict  # name -> its axes, for example {"Q": ("n_q", "d_k")}; () for anything else
    returns: dict  # name -> its axes, one entry a part of the answer; a dict for a part that has parts
    cases: Callable | None  # () -> list of Case; None where `together` is the judge
    steps: Callable  # the answer in replaceable steps: steps(*arguments, **replaced)
    mistakes: tuple  # of Mistake, the simplest and most common first
    passed: str  # why it matters, one line, shown on success
    tolerance: float = 1e-5
    whole: bool = False  # the result must be whole numbers
    own_memory: bool = False  # the result may not share memory with an input
    lists: bool = False  # a list is as good as an array
    one_answer: str = ""  # what one answer is, in words, where `returns` does not say it
    free: tuple = ()  # parts whose numbers may differ: of these only the shape counts
    derived: dict = field(default_factory=dict)  # name -> (axes, function(*parts)): what must be right then
    zeros: bool = False  # where 0 is expected, nearly 0 is not enough
    canonical: Callable | None = (
        None  # list of results -> the same list in one form, where several forms are right
    )
    remark: Callable | None = None  # list of results -> a remark on an answer that passes, or ""
    holds: tuple = ()  # (text, test(result, *arguments)): what is true of a right answer
    exact: Callable | None = None  # gives probabilities, where the reference draws
    # (expected, given, *arguments, **options) -> (what, why[, what to read]) or None, when no mistake fits
    explain: Callable | None = None
    does_it_all: tuple = ()  # functions of the course, themselves no exercises, that leave nothing to write

    @cached_property
    def inputs(self):
        return self.cases() if self.cases else []

    @cached_property
    def parts(self):
        """name -> axes of everything that is compared: the parts of the answer, then what is derived."""
        return dict(leaves(self.returns)) | {name: axes for name, (axes, _) in self.derived.items()}

    @cached_property
    def expected(self):
        """The outcomes of the reference, one a case."""
        return self.outcomes(self.exact or self.reference)

    def outcomes(self, function):
        """What a function of our own gives on every case, in the common form."""
        raw = [self.outcome(function, case) for case in self.inputs]
        return self.in_one_form(raw)

    def outcome(self, function, case):
        call = None if case.draws else case.call
        return observe(function, freeze(case.arguments, case.options), call)

    def in_one_form(self, outcomes):
        """The outcomes with `canonical` applied to their values."""
        if self.canonical is None:
            return outcomes
        values = self.canonical([o.value if o.error is None else None for o in outcomes])
        return [Outcome(**{**vars(o), "value": value}) for o, value in zip(outcomes, values, strict=True)]

    @cached_property
    def wrong_outcomes(self):
        """[(mistake, its outcomes)], in the order of `mistakes`."""
        return [(m, self.outcomes(self.with_mistakes(m))) for m in self.mistakes]

    @cached_property
    def pairs(self):
        """[(two mistakes that can be told apart and go together, what they give on input i)].

        Each outcome is found when it is first asked for, and kept: there are a thousand pairs.
        """
        return [
            (pair, cache(partial(self.outcome_at, self.with_mistakes(*pair))))
            for pair in combinations(self.mistakes, 2)
            # Those that replace the same step exclude each other, and an error's words can be put down to
            # one mistake, hardly to one of two.
            if not set(pair[0].steps) & set(pair[1].steps) and not any(mistake.by_text for mistake in pair)
        ]

    def outcome_at(self, function, i):
        return self.outcome(function, self.inputs[i])

    def with_mistakes(self, *mistakes):
        """The function that makes these mistakes."""
        replaced = {name: step for mistake in mistakes for name, step in mistake.steps.items()}
        return lambda *arguments, **options: self.steps(*arguments, **options, **replaced)

    def sizes(self, case):
        """{"n_q": 5, "d_k": 6, …}: the sizes of this input by name."""
        found = {}
        for axes, value in zip(self.arguments.values(), case.arguments, strict=False):
            if axes:
                found |= dict(zip(axes, np.shape(value)[-len(axes) :], strict=False))
        for name, value in [*zip(self.arguments, case.arguments, strict=False), *case.options.items()]:
            if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
                found.setdefault(name, int(value))
        return found


def leaves(returns):
    """(name, axes) of the parts of an answer that have no parts themselves."""
    for name, axes in returns.items():
        if isinstance(axes, dict):
            yield from leaves(axes)
        else:
            yield name, axes


def drawer(seed):
    """A function that draws arrays with two decimals, so that a verdict's numbers are easy to look at."""
    rng = np.random.default_rng(seed)

    def draw(*shape, whole=False, spread=1.0):
        if whole:
            return rng.integers(-4, 5, size=shape)
        return (rng.normal(size=shape) * spread).round(2)

    return draw

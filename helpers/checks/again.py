"""Does an answer depend on anything but its arguments? Then it changes when it is asked for again."""

from helpers.checks import process, wire
from helpers.checks.compare import compare
from helpers.checks.diagnose import Diagnosis
from helpers.checks.signature import bound

LIVES_ON = (
    "A list that stands outside of the function, or as a default value, lives on between calls. All that a "
    "call needs comes in as arguments."
)


def depends_on_more(exercise, function, wrong):
    """The Diagnosis of an answer that changes from call to call, or None.

    wrong : the `Tried` that is shown. The function is asked for it twice more, and nothing else before.
    """
    case, given = wrong.case, wrong.given
    if case.draws or given.ended:
        return None
    twice, _ = process.run_apart(bound(exercise, function), [case, case])
    if any(outcome.ended for outcome in twice):
        return None
    if not exercise.canonical and compare(exercise, case, wrong.expected, twice[0]) is None:
        what = "Asked for this alone it is right: something is kept from the calls before."
    elif len({wire.pack(outcome) for outcome in (given, *twice)}) > 1:
        what = (
            "The same input gives something else when it is asked for again: something is kept from the "
            "calls before, or left to chance."
        )
    else:
        return None
    return Diagnosis((), what, LIVES_ON)

"""Answers that are drawn at random: shares against probabilities, the generator, the type of an id."""

import copy

import numpy as np
import pytest
import right_answers_later
import wrong_answers_later

from helpers.checks import process, run, wire
from helpers.checks.compare import CHANCE, as_often
from helpers.checks.exercises import BY_NAME
from helpers.checks.exercises.sampling import NO_SUCH_ID, OTHER_IDS, drawn
from helpers.checks.observe import Outcome, Told

SAMPLE = BY_NAME["sample_next"]
DRAWN = [case for case in SAMPLE.inputs if not case.edge]


def test_a_right_answer_is_never_taken_for_a_wrong_one_by_chance():
    """Chernoff's bound over every id of every input, both sides, stays below one in a billion."""
    ids = sum(case.arguments[0].shape[1] for case in DRAWN)
    assert 2 * ids * np.exp(-CHANCE) < 1e-9


def test_the_bound_holds_for_draws_that_can_be_counted():
    """Against the binomial distribution itself: what is called a fault is as rare as the bound says."""
    n = 60
    k = np.arange(n + 1)
    log_ways = np.concatenate([[0], np.cumsum(np.log(np.arange(n, 0, -1) / np.arange(1, n + 1)))])
    for p in (0.02, 0.3, 0.5, 0.9):
        chance = np.exp(log_ways + k * np.log(p) + (n - k) * np.log(1 - p))
        assert chance.sum() == pytest.approx(1)
        far = ~as_often(np.full(n + 1, p), k / n, n)
        assert far.any() and chance[far].sum() < 2 * np.exp(-CHANCE)


@pytest.mark.parametrize(("want", "have", "fits"), [
    ([0.5, 0.5], [0.52, 0.48], True), ([0.5, 0.5], [0.7, 0.3], False),
    ([1.0, 0.0], [1.0, 0.0], True), ([1.0, 0.0], [0.999, 0.001], False),
    ([1 - 1e-16, 1e-17], [1.0, 0.0], True), ([0.9, 0.1], [1.0, 0.0], False),
    ([0.5, 0.5], [np.nan, np.nan], False),
])
def test_shares_fit_probabilities(want, have, fits):
    assert as_often(np.array(want), np.array(have), 800).all() == fits


@pytest.mark.parametrize("seed", range(5))
def test_other_seeds_are_accepted_too(seed):
    """The seed of the check is one of many: a right answer must not hang on it."""
    right = right_answers_later.sample_by_hand
    for case in DRAWN:
        given = case.call(right, case.arguments[0], np.random.default_rng(seed), **case.options)
        (outcome,) = (o for c, o in zip(SAMPLE.inputs, SAMPLE.expected, strict=True) if c is case)
        assert as_often(outcome.value, given, case.draws).all(), (seed, case.kind)


def test_an_answer_that_is_off_by_a_little_is_found():
    """One draw in five goes to the likeliest id."""
    def sample_next(logits, rng, temperature=1.0, top_k=None, top_p=None):
        if temperature == 0:
            return int(logits[-1].argmax())
        ids, p = right_answers_later.last_probabilities(logits, temperature, top_k, top_p)
        return ids[0] if rng.random() < 0.2 else int(rng.choice(ids, p=p))
    report = run("sample_next", sample_next)
    assert not report.passed and "% of the draws, and came in" in report.message
    assert "The id that comes most often is the right one." in report.holds
    assert [title for title, *_ in report.pictures] == [
        "share of each id, expected", "share of each id, given"]


@pytest.mark.parametrize(("answer", "says"), [
    (lambda logits, rng, **more: 2.0, "a number with a decimal point"),
    (lambda logits, rng, **more: np.array([1]), "an array of shape (1,)"),
    (lambda logits, rng, **more: [1, 2], "2 things"),
    (lambda logits, rng, **more: True, "True or False"),
    (lambda logits, rng, **more: "word", "gave back a string"),
    (lambda logits, rng, **more: (rng.random(), None)[1], "gave back None"),
    (lambda logits, rng, **more: -1, NO_SUCH_ID),
    (lambda logits, rng, **more: logits.shape[1], NO_SUCH_ID),
])
def test_what_is_no_id_is_told_in_words(answer, says):
    assert says in run("sample_next", answer).message


@pytest.mark.parametrize("answer", [wrong_answers_later.sample_with_numpy_random,
                                    wrong_answers_later.sample_with_a_new_generator])
def test_the_draws_must_come_from_the_generator_given(answer):
    logits = np.array([[0.0, 0.3, 0.1]])
    assert drawn(answer, logits, np.random.default_rng(0), 80) == Told(OTHER_IDS)
    fine = drawn(right_answers_later.sample_by_hand, logits, np.random.default_rng(0), 80)
    assert fine.sum() == pytest.approx(1) and (fine > 0).all()


def test_every_draw_gets_the_logits_as_they_were():
    """A function that spoils its input is told so, and is not judged by what it makes of the ruins."""
    report = run("sample_next", wrong_answers_later.sample_in_place)
    assert report.diagnosis.startswith("The answer is right, but the call changes logits in place")


def test_a_numpy_integer_passes_with_a_remark():
    def sample_next(logits, rng, temperature=1.0, top_k=None, top_p=None):
        return np.int64(right_answers_later.sample_by_hand(logits, rng, temperature, top_k, top_p))
    report = run("sample_next", sample_next)
    assert report.passed and ["NumPy's integers" in remark for remark in report.remarks] == [True]


def test_settings_are_passed_by_place_to_a_function_with_other_names_for_them():
    """Also the third when the first two are not given."""
    report = run("sample_next", right_answers_later.sample_with_other_names)
    assert report.passed, report.message


def test_the_same_answer_gives_the_same_shares():
    one, two = (process.run_apart(right_answers_later.sample_by_gumbel, SAMPLE.inputs[:3])[0] for _ in "12")
    assert all(np.array_equal(a.value, b.value) for a, b in zip(one, two, strict=True))


def test_the_generator_of_an_input_is_not_used_up():
    before = copy.deepcopy([case.arguments[1].bit_generator.state for case in SAMPLE.inputs])
    run("sample_next", SAMPLE.reference)
    assert before == [case.arguments[1].bit_generator.state for case in SAMPLE.inputs]


def test_a_sentence_in_place_of_an_answer_crosses_to_the_notebook():
    outcome, _ = wire.unpack(wire.pack(Outcome(Told("nothing came"))))
    assert outcome.value == Told("nothing came") and outcome.value != Told("something came")

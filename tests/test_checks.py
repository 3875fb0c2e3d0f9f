"""The checks against answers: every known mistake found and named, every right answer accepted."""

import inspect
import json
import linecache
import re
from functools import cache
from pathlib import Path

import nbformat
import numpy as np
import pytest
import right_answers
import right_answers_later  # noqa: F401  (joins right_answers.ANSWERS)
import right_answers_layers  # noqa: F401  (joins right_answers.ANSWERS)
import wrong_answers
import wrong_answers_after_06  # noqa: F401  (joins wrong_answers.ANSWERS)
import wrong_answers_found  # noqa: F401  (joins wrong_answers.ANSWERS)
import wrong_answers_later  # noqa: F401  (joins wrong_answers.ANSWERS)
import wrong_answers_layers  # joins wrong_answers.ANSWERS
import wrong_answers_newcomer  # noqa: F401  (joins wrong_answers.ANSWERS)
from every_exercise import ALL, checked, report_on
from test_checks_report import Nesting

from helpers.checks import judge, run
from helpers.checks.diagnose import diagnose
from helpers.checks.exercises import BY_NAME, EXERCISES
from helpers.checks.source import own_functions
from helpers.checks.words import filled, in_words

DATA = Path(__file__).parent / "data"
NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
WRONG = json.loads((DATA / "wrong_answers.json").read_text(encoding="utf-8"))
RIGHT = json.loads((DATA / "right_answers.json").read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    """A fault of the diagnosis itself fails the test instead of costing the reader a diagnosis."""
    monkeypatch.setattr(judge, "STRICT", True)


def function_of(entry):
    """The function of a catalogue entry, known to linecache as a notebook cell is."""
    code, file = "\n".join(entry["code"]) + "\n", f"<{entry['id']}>"
    linecache.cache[file] = (len(code), None, code.splitlines(True), file)
    names = {"__name__": "__main__"}
    exec(compile(code, file, "exec"), names)
    return names[entry["function"]]


@cache
def report_of(position):
    """The report on an entry of WRONG, made once."""
    return checked(WRONG[position]["function"], function_of(WRONG[position]))


def ids_of(entries):
    return [entry["id"] for entry in entries]


# ---------------------------------------------------------------------------------------------- the catalogue


@pytest.mark.parametrize("position", range(len(WRONG)), ids=ids_of(WRONG))
def test_wrong_answer_of_the_catalogue(position):
    entry, report = WRONG[position], report_of(position)
    if entry["verdict"] == "remark":
        assert report.passed and len(report.remarks) == 1
        return
    assert not report.passed
    assert report.mistakes == tuple(filter(None, [entry["named"]])), report.message
    assert report.diagnosis and report.why and report.read
    assert "on the inputs that fail only" not in report.diagnosis


def test_two_wrong_answers_get_the_same_diagnosis_only_when_they_are_twins():
    """A message that fits two different mistakes says too little."""
    rejected = [(i, entry) for i, entry in enumerate(WRONG) if entry["verdict"] == "reject"]
    said = {(entry["function"], report_of(i).diagnosis) for i, entry in rejected}
    assert len(said) == len({(entry["function"], entry["named"]) for _, entry in rejected})


@pytest.mark.parametrize("entry", RIGHT, ids=ids_of(RIGHT))
def test_right_answer_of_the_catalogue(entry):
    report = checked(entry["function"], function_of(entry))
    assert report.passed, report.message
    expected = bool(entry["skip_kinds"]) or entry["function"] == "embed"       # E[-1] is taken without a word
    expected |= entry["id"] in ("token_ids.right4", "causal_mask.right2")      # floats for []; a mask to add
    expected |= entry["id"] == "causal_mask.right4"                            # a mask of 0 and 1
    expected |= entry["id"] in ("generate_with_cache.right2", "cache_bytes.right2")        # an array; a float
    expected |= entry["id"] in ("attention_flops.right2", "rope.right3")                   # a float; an odd d
    assert len(report.remarks) == expected, report.remarks


# ----------------------------------------------------------------------------------------- answers of our own


@pytest.mark.parametrize(("exercise", "function", "named", "says"), wrong_answers.ANSWERS,
                         ids=[answer[1].__name__ for answer in wrong_answers.ANSWERS])
def test_wrong_answer_of_our_own(exercise, function, named, says):
    report = report_on(exercise, function)
    assert not report.passed
    assert sorted(report.mistakes) == sorted(named), report.message
    for text in says:
        assert text in report.message


@pytest.mark.parametrize(("exercise", "function"), [answer[:2] for answer in wrong_answers.ANSWERS],
                         ids=[answer[1].__name__ for answer in wrong_answers.ANSWERS])
def test_html_says_the_same_as_the_text(exercise, function):
    verdict = report_on(exercise, function)
    words, place = Nesting(verdict._repr_html_()).words, 0
    for word in verdict.message.split():                    # all of it, in its order; HTML adds pictures
        place = words.index(word, place) + 1


@pytest.mark.parametrize(("exercise", "function", "remarks"), right_answers.ANSWERS,
                         ids=[answer[1].__name__ for answer in right_answers.ANSWERS])
def test_right_answer_of_our_own(exercise, function, remarks):
    report = checked(exercise, function)
    assert report.passed, report.message
    assert len(report.remarks) == remarks, report.remarks


@pytest.mark.parametrize(("exercise", "function", "says"), [
    ("token_ids", right_answers.ids_without_a_type, "floats pick no rows"),
    ("embed", right_answers.embed_with_take, "E[-1] is the last row, so a wrong id becomes some other word"),
    ("sinusoidal_positions", right_answers.positions_in_pairs, "with an odd d it raises IndexError, where"),
    ("sinusoidal_positions", lambda n, d, base=1e4: right_answers.positions_in_float32(n, d - d % 2, base),
     "with an odd d it does something else than end in a sine column"),
    ("causal_mask", right_answers.mask_of_minus_1e9, "would read your mask upside down"),
    ("causal_mask", right_answers.mask_of_floats, "but ~mask raises an error"),
    ("causal_mask", right_answers.mask_of_ints, "but ~mask makes -2 of a 1, which counts as True"),
])
def test_a_remark_says_what_happened(exercise, function, says):
    report = run(exercise, function)
    assert report.passed and [says in remark for remark in report.remarks] == [True], report.remarks


def test_a_mistake_is_named_alone_where_the_writer_was_careful_besides():
    """A test of the ids does not make a second mistake of an id that is one too small."""
    report = run("embed", wrong_answers.embed_carefully_off_by_one)
    assert report.mistakes == ("off_by_one",) and "something else" not in report.message


def test_numbers_of_a_verdict_are_those_of_the_input_it_shows():
    """An answer of the right rank that is not the best: what it leaves over, and what could be had."""
    exercise = BY_NAME["low_rank_factors"]
    report = run("low_rank_factors", wrong_answers_layers.factors_of_longest_columns)
    (shown,) = (case.arguments for case in exercise.inputs if in_words(exercise, case) == report.shown)
    W, r = shown
    had, best = (((W - np.matmul(*f(W, r))) ** 2).sum() for f in (
        wrong_answers_layers.factors_of_longest_columns, exercise.reference))
    assert f"add up to {had:.3f}, and {best:.3f} can be had" in report.message


def test_what_holds_is_not_said_where_it_says_nothing():
    """A mask that hides nothing tells nothing about hidden keys; a shape is right only where it is."""
    report = run("attention_weights", lambda S, mask: S / 0.7 if mask.all() else np.tanh(S) * mask)
    assert report.diagnosis == "" and "Hidden keys" not in report.message
    report = run("project_qkv", lambda X, W_q, W_k, W_v: (np.eye(9) + X.mean(), np.tanh(X @ W_k), X @ W_v))
    assert report.diagnosis == "" and "got (9, 9)" in report.message
    assert "V is right." in report.message and "is right and all" not in report.message
    report = run("project_qkv", lambda X, W_q, W_k, W_v: (X @ W_q, np.tanh(X @ W_k) + X.mean(), X @ W_v))
    assert "The shape of K is right and all numbers are finite." in report.message


def test_the_first_notebook_speaks_of_nothing_that_comes_later():
    """Its verdicts are met before queries, keys and softmax are."""
    early = [report_on(name, function) for name, function, *_ in wrong_answers.ANSWERS
             if ALL[name].notebook == "01"]
    early.append(run("sinusoidal_positions", lambda n, d, base=1e4: wrong_answers.right_softmax(
        right_answers.positions_in_float32(n, d, base))))
    for report in early:
        assert not re.search(r"softmax|quer(y|ies)|\bkeys?\b", report.message), report.message


# ---------------------------------------------------------------------------------- the data of the exercises


def tried(exercise, outcomes):
    rows = zip(exercise.inputs, exercise.expected, outcomes, strict=True)
    return [judge.weighed(exercise, *row) for row in rows]


@pytest.mark.parametrize("exercise", ALL.values(), ids=list(ALL))
def test_the_reference_is_right_on_every_input(exercise):
    assert [t.case.kind for t in tried(exercise, exercise.expected) if t.fault] == []


@pytest.mark.parametrize("exercise", ALL.values(), ids=list(ALL))
def test_the_steps_without_a_mistake_are_right(exercise):
    outcomes = exercise.outcomes(exercise.steps)
    assert [t.case.kind for t in tried(exercise, outcomes) if t.fault and not t.case.edge] == []


@pytest.mark.parametrize("exercise", ALL.values(), ids=list(ALL))
def test_every_mistake_shows_and_is_told_from_the_others(exercise):
    assert len({mistake.name for mistake in exercise.mistakes}) == len(exercise.mistakes)
    for mistake, outcomes in exercise.wrong_outcomes:
        found = diagnose(exercise, tried(exercise, outcomes))
        assert found is not None and found.mistakes == (mistake,), mistake.name


@pytest.mark.parametrize("exercise", ALL.values(), ids=list(ALL))
def test_every_input_is_needed_or_says_what_it_is_for(exercise):
    """Inputs differ, are described, and none has a size that makes it slow to look at."""
    kinds = [case.kind for case in exercise.inputs]
    assert len(set(kinds)) == len(kinds)
    assert all(case.size < 200 for case in exercise.inputs)


@pytest.mark.parametrize("exercise", ALL.values(), ids=list(ALL))
def test_names_agree_with_the_helper(exercise):
    signature = inspect.signature(exercise.reference)
    optional = {name for case in exercise.inputs for name in case.options}
    assert exercise.reference.__name__ == exercise.name
    assert list(signature.parameters)[:len(exercise.arguments)] == list(exercise.arguments)
    assert optional <= set(signature.parameters)
    module = inspect.getdoc(inspect.getmodule(exercise.reference))
    assert exercise.notebook in re.findall(r"\d\d", module.partition("notebook")[2])


def headings(number):
    (path,) = NOTEBOOKS.glob(f"{number}_*.ipynb")
    cells = nbformat.read(path, as_version=4).cells
    return {line.removeprefix("## ").strip() for cell in cells if cell.cell_type == "markdown"
            for line in cell.source.splitlines() if line.startswith("## ")}


@pytest.mark.parametrize("exercise", ALL.values(), ids=list(ALL))
def test_every_heading_to_read_again_exists(exercise):
    for mistake in exercise.mistakes:
        read = mistake.read
        notebook, heading = read if isinstance(read, tuple) else (exercise.notebook, read)
        assert heading in headings(notebook), (mistake.name, notebook, heading)


@pytest.mark.parametrize("exercise", ALL.values(), ids=list(ALL))
def test_messages_are_plain_sentences(exercise):
    for mistake in exercise.mistakes:
        assert mistake.what and not mistake.what.endswith("."), mistake.name
        assert mistake.why.endswith((".", "…")), mistake.name
        left = filled(mistake.why + mistake.what, exercise.sizes(exercise.inputs[0]))
        assert not re.search(r"\{[a-z_]+\}", left), mistake.name


def test_exercises_are_in_the_order_of_the_course():
    numbers = [exercise.number for exercise in EXERCISES]
    assert numbers == sorted(numbers, key=lambda n: [int(part) for part in n.split(".")])
    assert all(int(exercise.notebook) == int(exercise.number.split(".")[0]) for exercise in EXERCISES)


# ------------------------------------------------------------------------------------------------- the engine


def test_the_example_of_a_verdict():
    """Not divided at all: the numbers differ by √d_k, the message names it, the heading follows."""
    def scaled_scores(Q, K):
        return Q @ K.T
    message = run("scaled_scores", scaled_scores).message
    assert message.startswith("✗ scaled_scores     right on 1 of 10 inputs\n\n  ")
    d_k, want, have = re.search(r"d_k = (\d+).*\n  at \[0, 0\] expected (\S+), got (\S+)", message).groups()
    assert float(have) / float(want) == pytest.approx(int(d_k) ** 0.5, rel=0.02)
    assert "when the scores are not divided at all" in message
    assert message.endswith('Read again: notebook 03, "How far apart are the scores?"')


def test_a_verdict_is_the_same_every_time():
    steady = [(exercise, function) for exercise, function, named, _ in wrong_answers.ANSWERS
              if "other_generator" not in named]                # those draw anew each time
    for exercise, function in steady[::5]:
        first, second = report_on(exercise, function), checked(exercise, function)
        assert first.message == second.message and first._repr_html_() == second._repr_html_()
        assert not re.search(r"0x[0-9a-f]{4}|/tmp/|\.py\b|seconds? [0-9]", first.message)


def test_an_earlier_function_that_fails_is_named():
    def softmax(z):
        return z / z.sum(axis=-1, keepdims=True)

    def single_head(X, W_q, W_k, W_v, causal=False):
        return softmax(X @ W_q @ W_k.T @ X.T / np.sqrt(W_q.shape[1])) @ X @ W_v
    message = run("single_head", single_head).message
    assert "Your softmax (3.3) is used here, and its own check fails: begin there." in message


def test_an_earlier_function_that_is_all_that_fails_is_said_to_be():
    """The mistake told is that of the function it is in, by its own check."""
    def softmax(z):
        return np.exp(z) / np.exp(z).sum(axis=-1, keepdims=True)

    def attention_weights(S, mask):
        return softmax(np.where(mask, S, -np.inf))

    def single_head(X, W_q, W_k, W_v, causal=False):
        S = X @ W_q @ (X @ W_k).T / np.sqrt(W_k.shape[1])
        return attention_weights(S, np.tri(len(X)) > 0 if causal else S == S) @ X @ W_v
    report = run("single_head", single_head)
    assert report.first == ("Your softmax (3.3) is used here and is what fails: with the course's own in its "
                            "place, single_head is right. Begin there.",)
    assert report.mistakes == ("no_max",) and report.diagnosis.endswith("as they are, large ones too.")
    assert "in line 2 of softmax" in report.message
    assert run("softmax", softmax).mistakes == ("no_max",)                  # it has been put back


def test_two_earlier_functions_that_both_fail_are_named_together():
    def scaled_scores(Q, K):
        return Q @ K.T

    def softmax(z):
        return np.exp(z) / np.exp(z).sum(axis=-1, keepdims=True)

    def last_query_attention(q, K, V):
        return softmax(scaled_scores(q[None], K))[0] @ V
    report = run("last_query_attention", last_query_attention)
    assert report.first[0].startswith("Your scaled_scores (3.2) and softmax (3.3) are used here and are what")
    assert "last_query_attention is right" in report.first[0]


def test_what_is_wrong_beside_an_earlier_function_is_named_without_it():
    def softmax(z):
        return z / z.sum(axis=-1, keepdims=True)

    def single_head(X, W_q, W_k, W_v, causal=False):
        return softmax(X @ W_q @ W_k.T @ X.T / np.sqrt(W_q.shape[1])) @ X @ W_v
    report = run("single_head", single_head)
    assert report.first[1] == "With the course's own in its place single_head is still wrong:"
    assert report.mistakes == ("causal_ignored",)


def test_two_wrongs_that_make_a_right_are_not_told_for_a_third():
    """A mask upside down, used upside down: it is the scale alone that makes single_head wrong."""
    def causal_mask(n_q, n_k=None):
        return np.triu(np.ones((n_q, n_k or n_q), bool), 1)

    def single_head(X, W_q, W_k, W_v, causal=False):
        S = X @ W_q @ (X @ W_k).T
        S = np.where(causal_mask(len(X)), -np.inf, S) if causal else S
        return wrong_answers.right_softmax(S) @ X @ W_v
    report = run("single_head", single_head)
    assert report.mistakes == ("no_scale",) and "wrong way round" not in report.message
    assert report.first == ("Your causal_mask (3.4) is used here, and its own check fails: begin there.",)


def test_an_earlier_function_of_another_form_that_does_not_fit_is_named():
    def causal_mask(n_q, n_k=None):
        n_k = n_k or n_q
        return np.where(np.tri(n_q, n_k, n_k - n_q) > 0, 0, -1e9)

    def single_head(X, W_q, W_k, W_v, causal=False):
        S = X @ W_q @ (X @ W_k).T / np.sqrt(W_k.shape[1])
        return wrong_answers.right_softmax(np.where(causal_mask(len(X)), S, -1e9) if causal else S) @ X @ W_v
    report = run("single_head", single_head)
    assert report.first[0].startswith("Your causal_mask (3.4) is used here and does not fit here")
    assert "would read your mask upside down" in report.message


def test_an_earlier_function_that_is_not_written_is_named():
    def softmax(z):
        raise NotImplementedError

    def single_head(X, W_q, W_k, W_v, causal=False):
        return softmax(X @ W_q)
    report = run("single_head", single_head)
    assert report.state == "not written"
    assert "softmax (3.3) is not written yet" in report.message
    assert "from helpers.attention import softmax" in report.message


def test_the_courses_own_functions_are_not_taken_for_the_readers():
    from helpers.attention import softmax

    def outer(z):
        return inner(softmax(z))

    def inner(z):
        return z
    assert list(own_functions(outer)) == ["outer", "inner"]


def test_an_unknown_exercise_is_an_error_that_helps():
    with pytest.raises(ValueError, match="Did you mean 'softmax'"):
        run("sofmax", len)


def test_a_fault_of_the_diagnosis_costs_no_verdict(monkeypatch):
    monkeypatch.setattr(judge, "STRICT", False)
    monkeypatch.setattr(judge, "diagnose", lambda *_: 1 / 0)
    report = run("scores", lambda Q, K: Q @ K)
    assert not report.passed and report.mistakes == () and "ValueError" in report.message


def test_a_new_exercise_is_data_alone():
    """An exercise with a driver of its own runs through the engine as it is."""
    from helpers.checks.exercise import Case, Exercise, Mistake

    count = right_answers.count_three_times
    exercise = Exercise(
        "9.9", "counter", "03", reference=right_answers.make_counter, arguments={"start": ()},
        returns={"counts": ("n",)}, steps=right_answers.make_counter, passed="It counts.",
        cases=lambda: [Case("low", (3,), call=count), Case("high", (9,), call=count)],
        mistakes=(Mistake("by_two", dict(by=2), "it counts in twos", "It skips.", "One query by hand"),))
    good = judge.judge(exercise, right_answers.make_counter)
    assert good.state == "passed", good.message
    bad = judge.judge(exercise, lambda start: right_answers.make_counter(start, 2))
    assert bad.mistakes == ("by_two",)

"""What is said of wrong answers that no list holds: by kind, by what holds, by the error."""

import numpy as np
import pytest
from every_exercise import ALL

from helpers.checks import judge, run
from helpers.checks.diagnose import complaint, diagnose, same_complaint
from helpers.checks.observe import Outcome, Problem


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    monkeypatch.setattr(judge, "STRICT", True)


def tried(exercise, outcomes):
    rows = zip(exercise.inputs, exercise.expected, outcomes, strict=True)
    return [judge.weighed(exercise, *row) for row in rows]


@pytest.mark.parametrize("exercise", ALL.values(), ids=list(ALL))
@pytest.mark.parametrize("error", ["ValueError", "TypeError", "IndexError", "AxisError", "AssertionError"])
def test_an_error_of_its_own_is_not_taken_for_a_known_mistake(exercise, error):
    """Known mistakes raise errors too; one with another message is none of them."""
    for wrong in (lambda i: True, lambda i: i % 2, lambda i: i in (2, 3)):
        outcomes = [Outcome(error=Problem(error, "my own words")) if wrong(i) else expected
                    for i, expected in enumerate(exercise.expected)]
        found = diagnose(exercise, tried(exercise, outcomes))
        assert found is None or not found.mistakes, [mistake.name for mistake in found.mistakes]


@pytest.mark.parametrize(("one", "other", "same"), [
    ("operands could not be broadcast together with shapes (3,) (4,)",
     "matmul: Input operand 1 has a mismatch in its core dimension 0", True),
    ("index 7 is out of bounds for axis 0 with size 6", "list index out of range", True),
    ("cannot resize this array: it does not own its data", "matmul: Input operand 1 has a mismatch", False),
    ("I want 3 heads", "I want 4 heads", True),
    ("Probabilities contain NaN", "probabilities do not sum to 1", True),
    ("one thing", "another thing", False),
])
def test_errors_say_the_same_when_they_complain_of_the_same(one, other, same):
    assert same_complaint(Problem("ValueError", one), Problem("ValueError", other)) == same
    assert not same_complaint(Problem("ValueError", one), Problem("TypeError", one))
    assert (complaint(one) == complaint(other)) == same


def test_a_key_that_is_missing_is_the_same_error_whatever_the_key():
    assert same_complaint(Problem("KeyError", "'cat'"), Problem("KeyError", "'dog'"))


def test_weights_of_scores_on_another_scale_are_told_by_how_much():
    def attention_weights(S, mask):
        A = ALL["attention_weights"].steps(S, mask) ** 1.5
        return np.nan_to_num(A / A.sum(-1, keepdims=True))
    report = run("attention_weights", attention_weights)
    assert "when the scores are multiplied by 1.500 before softmax" in report.diagnosis
    assert "sharper than they should be" in report.why


def test_one_row_that_is_wrong_is_not_a_division_that_is_wrong():
    def scores(Q, K):
        S = Q @ K.T
        S[0] *= 2
        return S
    report = run("scores", scores)
    assert report.diagnosis == "" and "Right rows: 1, 2 of 0 … 2." in report.holds


def test_of_several_heads_those_that_are_right_are_named_and_the_wrong_one_is_drawn():
    def grouped_query_attention(Q, K, V):
        Z = ALL["grouped_query_attention"].steps(Q, K, V)
        Z[1] = 0.5
        return Z
    report = run("grouped_query_attention", grouped_query_attention)
    assert "Right along the first axis: 0, 2, 3 of 0 … 3." in report.holds
    (_, want, at), (title, given, _) = report.pictures
    assert title == "[1] given" and (given == 0.5).all() and want.shape == given.shape and len(at) == 2


def test_one_number_is_compared_by_its_size():
    report = run("attention_flops", lambda n, d, h: 8 * int(n) * int(d)**2 + 5 * int(n)**2 * int(d) + int(h))
    assert report.holds[-1].startswith("Here it is 1.0") and "finite" not in report.message


def test_a_mistake_in_part_of_the_inputs_is_not_said_to_leave_others_unexplained():
    """All inputs that fail look like one mistake, and on others where it would show the answer is right."""
    def scaled_scores(Q, K):
        return Q @ K.T / (1 if len(Q) == 3 or len(Q) == 5 else np.sqrt(Q.shape[1]))
    report = run("scaled_scores", scaled_scores)
    assert report.mistakes == ("missing",)
    assert "It is so on the inputs that fail only: there are others where it would show" in report.diagnosis


def test_whole_numbers_beyond_64_bits_are_numbers():
    right = ALL["attention_flops"].steps
    report = run("attention_flops", lambda n, d_model, n_heads: 10**12 * right(n, d_model, n_heads))
    assert "no numbers" not in report.message and "times what it should be" in report.diagnosis


def test_an_array_made_longer_in_place_is_named_by_that():
    def kv_cache_step(x, W_q, W_k, W_v, cache):
        q, k, v = x @ W_q, x @ W_k, x @ W_v
        if cache is None:
            K, V = k[None], v[None]
        else:
            K, V = cache
            K.resize((len(K) + 1, len(k)))
            V.resize((len(V) + 1, len(v)))
            K[-1], V[-1] = k, v
        s = np.exp(K @ q / np.sqrt(len(q)))
        return s / s.sum() @ V, (K, V)
    assert run("kv_cache_step", kv_cache_step).mistakes == ("resized",)


@pytest.mark.parametrize(("function", "says"), [
    (lambda Q, K: Q @ K + np.eye(7), "the two inner sizes must be the same"),
    (lambda Q, K: Q[:, None] + np.ones((2, 9)), "Shapes are compared from the last axis backwards"),
    (lambda Q, K: (Q @ K.T).reshape(5, 5, 5), "reshape keeps all numbers"),
    (lambda Q, K: Q @ K.T if Q > 0 else K, "if needs one True or False"),
    (lambda Q, K: Q(0) @ K, "square brackets"),
    (lambda Q, K: Q[len(K) / 2], "// a whole number"),
    (lambda Q, K: np.zeros(3.0), "// a whole number"),
    (lambda Q, K: Q.sort()[0], "Something here is None"),
    (lambda Q, K: [a for a, b in Q], "There are more names, or fewer"),
])
def test_an_error_without_a_known_mistake_is_said_in_other_words(function, says):
    assert says in run("scores", function).message


def test_an_integer_without_room_is_said_to_be_that():
    def attention_flops(n, d_model, n_heads):
        if isinstance(n, np.integer):
            raise OverflowError("Python integer 17179869184 out of bounds for int32")     # as NumPy 2 says it
        return ALL["attention_flops"].steps(n, d_model, n_heads)
    assert "A NumPy integer has no room for this number" in run("attention_flops", attention_flops).message

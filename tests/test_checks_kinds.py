"""What is said of wrong answers that no list holds: by kind, by what holds, by the error."""

import numpy as np
import pytest
from every_exercise import ALL

from helpers.attention import softmax
from helpers.checks import judge, run
from helpers.checks.compare import numbers
from helpers.checks.diagnose import complaint, diagnose, same_complaint
from helpers.checks.exercises.low_rank import not_the_best
from helpers.checks.kinds import how_far_apart, right_and_not, same_order
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
    assert report.diagnosis == "" and "Rows 1 and 2 are right, row 0 is not." in report.holds


def test_of_several_heads_those_that_are_right_are_named_and_the_wrong_one_is_drawn():
    def grouped_query_attention(Q, K, V):
        Z = ALL["grouped_query_attention"].steps(Q, K, V)
        Z[1] = 0.5
        return Z
    report = run("grouped_query_attention", grouped_query_attention)
    assert "Along the first axis places 0, 2 and 3 are right, place 1 is not." in report.holds
    (_, want, at), (title, given, _) = report.pictures
    assert title == "[1] given" and (given == 0.5).all() and want.shape == given.shape and len(at) == 2


@pytest.mark.parametrize(("right", "says"), [
    ("100000", "row 0 is right, rows 1 to 5 are not."),
    ("01", "row 1 is right, row 0 is not."),
    ("1101", "rows 0, 1 and 3 are right, row 2 is not."),
    ("0110111110", "rows 1, 2 and 4 to 8 are right, rows 0, 3 and 9 are not."),
    ("0101010101", "5 of 10 rows are right."),
])
def test_which_rows_are_right_is_said_in_short_lists(right, says):
    assert right_and_not("row", np.array([digit == "1" for digit in right])) == says


@pytest.mark.parametrize(("have", "says"), [
    ([[0.2, 0.3, 0.5], [0.5, 0.3, 0.2]], "right; they are too close together."),
    ([[0.0, 0.1, 0.9], [0.9, 0.1, 0.0]], "right; they are too far apart."),
    ([[0.2, 0.3, 0.5], [0.9, 0.1, 0.0]], "right."),
    ([[1.1, 1.2, 1.7], [2.7, 2.2, 2.1]], "right."),
    ([[0.3, 0.3, 0.4], [0.5, 0.3, 0.2]], None),
    ([[0.3, 0.3, 0.3], [0.5, 0.3, 0.2]], None),
    ([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], None),
    ([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]], None),
])
def test_the_order_of_a_row_is_right_only_where_there_is_one(have, says):
    want, have = np.array([[0.1, 0.2, 0.7], [0.7, 0.2, 0.1]]), np.array(have)
    assert same_order(want, have) == (says is not None)
    assert says is None or f"right{how_far_apart(want, have)}." == says


def test_an_answer_that_is_0_on_the_input_shown_is_said_to_be_that():
    def single_head(X, W_q, W_k, W_v, causal=False):
        Z = ALL["single_head"].steps(X, W_q, W_k, W_v, causal)
        return Z if causal else 0 * Z
    report = run("single_head", single_head)
    assert "Here the answer is 0 throughout." in report.holds and "order" not in report.message
    report = run("project_qkv", lambda X, W_q, W_k, W_v: (X @ W_q, 0 * (X @ W_k) if len(X) > 2 else X @ W_k,
                                                         np.tanh(X @ W_v)))
    assert "Here K is 0 throughout." in report.holds


def test_rounding_noise_beside_a_number_is_0():
    assert numbers(25.61, 2.24e-30) == ("25.610", "0.000")
    assert numbers(2.24e-30, 25.61) == ("0.000", "25.610")
    assert numbers(0.0, 2.24e-30) == ("0.000", "2.24e-30") and numbers(False, True) == ("False", "True")
    W = ALL["low_rank_factors"].inputs[5].arguments[0]
    what, *_ = not_the_best(W, W + np.outer(W[:, 0], np.arange(W.shape[1])), W, 3)
    assert what.endswith("and 0.000 can be had.")


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
    (lambda Q, K: np.array([Q, K[:, 1:]]), "One array holds only things of one shape"),
    (lambda Q, K: softmax(Q @ K.T * np.nan), "Something before this has made a nan"),
])
def test_an_error_without_a_known_mistake_is_said_in_other_words(function, says):
    assert says in run("scores", function).message


def test_the_few_answers_beside_many_errors_are_not_what_is_wrong():
    """Right numbers with an axis too few, where there is one head; everything else is an error."""
    report = run("per_head_updates", lambda H, W_o: 2 * [H.mean(0) @ W_o])
    assert report.diagnosis.startswith("In a product (n, k) @ (k, m)")
    assert "axis of length 1" not in report.message


def test_a_nan_is_not_put_down_to_two_mistakes():
    report = run("attention_weights", lambda S, mask: softmax(S * np.nan))
    assert report.mistakes == () and report.diagnosis.startswith("Something before this has made a nan")


def test_an_integer_without_room_is_said_to_be_that():
    def attention_flops(n, d_model, n_heads):
        if isinstance(n, np.integer):
            raise OverflowError("Python integer 17179869184 out of bounds for int32")     # as NumPy 2 says it
        return ALL["attention_flops"].steps(n, d_model, n_heads)
    assert "A NumPy integer has no room for this number" in run("attention_flops", attention_flops).message

"""Answers with parts: parts that have parts, parts whose numbers are free, what is derived from them."""

import numpy as np
import pytest

from helpers.checks import process, run
from helpers.checks.compare import parts
from helpers.checks.exercise import Case
from helpers.checks.exercises import BY_NAME

STEP = "kv_cache_step gave back {}, where 2 things (z, (K, V)) are expected."
CACHE = "cache is {}, where (K, V) is expected."


@pytest.mark.parametrize(("answer", "says"), [
    (lambda z, K, V: z, STEP.format("one array of shape (3,)")),
    (lambda z, K, V: (z, K, V), STEP.format(
        "3 things (an array of shape (3,), an array of shape (1, 2) and an array of shape (1, 3))")),
    (lambda z, K, V: {"z": z, "cache": (K, V)}, STEP.format("a dict")),
    (lambda z, K, V: None, "kv_cache_step gave back None."),
    (lambda z, K, V: (z, None), CACHE.format("None")),
    (lambda z, K, V: (z, 3.0), CACHE.format("one thing")),
    (lambda z, K, V: (z, (K, V, 4)), CACHE.format(
        "3 things (an array of shape (1, 2), an array of shape (1, 3) and a single number)")),
    (lambda z, K, V: (z, K), CACHE.format("one array of shape (1, 2)")),
    (lambda z, K, V: (z, (K, None)), "V is None."),
    (lambda z, K, V: (None, (K, V)), "z is None."),
    (lambda z, K, V: (z, (K, "V")), "V holds strings"),
    (lambda z, K, V: (z, ([*K, [1]], V)), "K is a list whose rows differ"),
    (lambda z, K, V: (z, (K, V[0])), "V: expected shape (t + 1, d_v) = (1, 3), got (3,)"),
])
def test_what_is_no_z_with_a_cache_is_told_in_words(answer, says):
    def kv_cache_step(x, W_q, W_k, W_v, cache):
        k, v = (x @ W_k)[None], (x @ W_v)[None]
        return answer(v[0], k, v)
    message = run("kv_cache_step", kv_cache_step).message
    assert says in message


def test_a_list_of_lists_is_as_good_a_cache_as_a_tuple():
    value = [np.zeros(3), [[[1, 2]], [[3, 4, 5]]]]
    z, K, V = parts(BY_NAME["kv_cache_step"], value)
    assert (z.shape, K.shape, V.shape) == ((3,), (1, 2), (1, 3))


def factors(A, B):
    return parts(BY_NAME["low_rank_factors"], [np.array(A, float), np.array(B, float)])


def test_of_a_free_part_only_the_shape_is_kept_and_the_product_counts():
    A, B, product = factors([[1], [2]], [[3, 4]])
    assert not A.any() and A.shape == (2, 1) and not B.any() and B.shape == (1, 2)
    assert product.tolist() == [[3, 4], [6, 8]]
    assert factors([[1, 2]], [[3, 4]])[2].size == 0                         # there is no such product


def test_a_free_part_that_holds_nan_is_wrong():
    def low_rank_factors(W, r):
        U, s, Vt = np.linalg.svd(W)
        return U[:, :r] * s[:r], Vt[:r] * np.nan
    report = run("low_rank_factors", low_rank_factors)
    assert not report.passed and "A @ B: at [0, 0]" in report.message and "got nan" in report.message


def test_a_free_part_of_another_shape_is_not_drawn_as_zeros():
    def low_rank_factors(W, r):
        U, s, Vt = np.linalg.svd(W)
        return (U[:, :r] * s[:r]).T, Vt[:r]
    report = run("low_rank_factors", low_rank_factors)
    assert "A: expected shape" in report.message and report.pictures == ()


def test_products_are_drawn_by_name():
    report = run("low_rank_factors", lambda W, r: (W[:, :r], np.eye(W.shape[1])[:r]))
    assert [title for title, *_ in report.pictures] == ["A @ B: expected", "A @ B: given"]


def test_parts_that_are_wrong_in_the_same_way_are_named_together():
    def shared_qkv_basis(W_q, W_k, W_v, r):
        B = np.linalg.svd(np.hstack([W_q, W_k, W_v]))[0][:, :r]
        return B, 2 * B.T @ W_q, 2 * B.T @ W_k, B.T @ W_v
    exercise = BY_NAME["shared_qkv_basis"]
    assert exercise.explain is not None
    report = run("shared_qkv_basis", shared_qkv_basis)
    assert report.diagnosis == "Each of B @ A_q and B @ A_k is twice what it should be."


def test_a_list_of_ids_needs_no_remark_and_a_list_of_rows_does():
    ids = BY_NAME["generate_with_cache"].steps
    report = run("generate_with_cache", lambda prompt_ids, n_new, model: ids(prompt_ids, n_new, model))
    assert report.passed and report.remarks == []
    report = run("merge_heads", lambda H: [list(np.concatenate(rows)) for rows in np.swapaxes(H, 0, 1)])
    assert report.passed and "gives back a list" in report.remarks[0]


def test_parts_that_come_as_lists_are_named():
    step, project = BY_NAME["kv_cache_step"].steps, BY_NAME["project_qkv"].steps

    def kv_cache_step(*arguments):
        z, cache = step(*arguments)
        return z, [M.tolist() for M in cache]
    report = run("kv_cache_step", kv_cache_step)
    assert report.passed
    assert report.remarks == ["K and V come as lists; the functions that come after it expect NumPy arrays."]

    def project_qkv(*arguments):
        Q, K, V = project(*arguments)
        return Q.tolist(), K, V
    report = run("project_qkv", project_qkv)
    assert report.passed and report.remarks[0].startswith("Q comes as a list; the functions")
    assert run("kv_cache_step", step).remarks == []


def test_the_size_of_an_input_counts_what_is_inside():
    model = {"E": np.zeros((3, 2)), "layers": [{}, {}]}
    assert Case("", (np.zeros((2, 3)), (np.zeros(4), np.zeros(1)), ["a", "b"], None, model)).size == 16


def test_an_answer_that_is_overwritten_later_is_kept_as_it_was():
    exercise, room = BY_NAME["merge_heads"], np.zeros(100)

    def merge_heads(H):
        right = exercise.reference(H)
        room[:right.size] = right.ravel()
        return room[:right.size].reshape(right.shape)
    pairs = zip(exercise.outcomes(merge_heads), exercise.expected, strict=True)
    assert all(np.array_equal(given.value, want.value) for given, want in pairs)


def test_a_sublayer_called_token_by_token_is_named():
    def pre_norm_residual(x, sublayer, gamma, beta, eps=1e-5):
        rows = []
        for row in x:
            rows.append(row + sublayer((row - row.mean()) / np.sqrt(row.var() + eps) * gamma + beta))
        return np.array(rows)
    assert run("pre_norm_residual", pre_norm_residual).mistakes == ("row_by_row",)


def test_one_list_in_place_of_two_parts_is_named_whatever_its_length():
    def per_head_updates(H, W_o):
        return [Z @ block for Z, block in zip(H, np.split(W_o, len(H)), strict=True)]
    report = run("per_head_updates", per_head_updates)
    assert report.mistakes == ("no_total",) and "something else" not in report.diagnosis


def test_a_count_of_bytes_is_exact():
    right = BY_NAME["cache_bytes"].steps

    def nearly(*sizes, bytes_per_value=2, batch=1):
        return right(*sizes, bytes_per_value=bytes_per_value, batch=batch) * (1 + 1e-9)
    assert run("cache_bytes", nearly).state == "wrong"


def test_one_number_is_not_said_to_be_right_up_to_a_factor():
    right = BY_NAME["cache_bytes"].steps
    report = run("cache_bytes", lambda *sizes, **more: 1 + right(*sizes, **more))
    assert report.diagnosis == "The answer is 1 too large on every input."


def test_a_cache_that_is_written_to_is_said_though_another_input_is_shown():
    def kv_cache_step(x, W_q, W_k, W_v, cache):
        right = BY_NAME["kv_cache_step"].steps
        if cache is not None:
            cache[0][:] = 0
        return right(x, W_q, W_k, W_v, cache)
    report = run("kv_cache_step", kv_cache_step)
    assert "On other inputs the call changed cache in place." in report.holds


def test_a_missing_part_is_not_a_missing_return():
    report = run("low_rank_factors", lambda W, r: (W[:, :r], None))
    assert "B is None." in report.message and "return it" not in report.message


def test_two_optional_arguments_are_asked_for_together():
    report = run("cache_bytes", lambda n_layers, n_heads, n_kv_heads, d_head, n_tokens: 2)
    assert "has optional arguments bytes_per_value and batch; yours takes" in report.message


def stub(*arguments):
    """As it is handed out."""
    raise NotImplementedError  # your code here


def begun(*arguments):
    if not arguments:
        raise NotImplementedError
    return None


def test_a_stub_is_not_written_and_nothing_is_run_for_it(monkeypatch):
    monkeypatch.setattr(process, "run_apart", lambda *arguments, **options: pytest.fail("it was run"))
    assert run("softmax", stub).message == "○ softmax     not written yet"
    with pytest.raises(pytest.fail.Exception, match="it was run"):
        run("softmax", begun)

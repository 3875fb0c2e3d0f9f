"""Fair verdicts: the course's own answer is no answer, and one mistake is counted once."""

import numpy as np
import pytest

from helpers import attention, cost, kv_sharing, multi_head, sampling
from helpers.checks import run
from helpers.checks.borrowed import found, kept_back, withheld
from helpers.checks.exercises import BY_NAME, EXERCISES
from helpers.checks.follow_on import Judge
from helpers.checks.observe import freeze, observe

COUNTED = [exercise for exercise in EXERCISES if exercise.cases]


def defined(*sources, **more):
    """What cells with these sources leave behind."""
    space = {"__name__": "__main__", "np": np} | more
    for source in sources:
        exec(source, space)
    return space


# The course's own answer


@pytest.mark.parametrize("source", [
    "def softmax(z):\n    from helpers.attention import softmax\n    return softmax(z)",
    "import helpers.attention\ndef softmax(z): return helpers.attention.softmax(z)",
    "from helpers import attention as a\ndef softmax(z): return getattr(a, 'soft' + 'max')(z)",
    "from helpers.attention import softmax as theirs\ndef softmax(z, give=theirs): return give(z)",
    "from helpers.attention import softmax as theirs\nmany = {'s': theirs}\nsoftmax = lambda z: many['s'](z)",
    "from helpers.attention import softmax as s\nfrom functools import partial\nsoftmax = partial(s)",
    "from helpers.multi_head import softmax as theirs\ndef softmax(z): return theirs(z)",
    "def softmax(z):\n    try:\n        from helpers.attention import softmax\n        return softmax(z)\n"
    "    except Exception:\n        return z",
    "def softmax(z):\n    from helpers.sampling import next_probabilities\n"
    "    return next_probabilities(np.atleast_2d(z))",
])
def test_an_answer_that_only_calls_the_courses_own_fails_and_is_told_why(source):
    report = run("softmax", defined(source)["softmax"])
    assert report.state == "wrong"
    what = "It calls helpers.attention.softmax, the course's own answer: write it yourself."
    assert report.diagnosis == what


def test_where_it_is_called_is_said():
    space = defined("from helpers.attention import softmax as s\ndef softmax(z):\n\n    return s(z)")
    assert run("softmax", space["softmax"]).facts == ("in line 3 of softmax",)


def test_a_later_answer_of_the_courses_is_no_answer_either():
    report = run("scores", lambda Q, K: attention.scaled_scores(Q, K) * np.sqrt(Q.shape[1]))
    assert "helpers.attention.scaled_scores, the course's own answer to 3.2:" in report.diagnosis


@pytest.mark.parametrize(("name", "answer"), [
    ("single_head", lambda X, W_q, W_k, W_v, causal=False: attention.attention(
        X @ W_q, X @ W_k, X @ W_v, causal)),
    ("last_query_attention", lambda q, K, V: attention.attention(q[None], K, V)[0]),
    ("split_heads", lambda X, n_heads: multi_head.heads_of("X", X, n_heads)),
    ("pre_norm_residual", lambda x, layer, gamma, beta, eps=1e-5: x + layer(
        multi_head.layer_norm(x, gamma, beta, eps))),
    ("grouped_query_attention", lambda Q, K, V: attention.attention(Q, K, V)),
    ("latent_attention", lambda X, W_q, D, U_k, U_v, h: (multi_head.merge_heads(kv_sharing.attend_restored(
        multi_head.split_heads(X @ W_q, h), X @ D, U_k, U_v)), X @ D)),
    ("sample_next", lambda logits, rng, temperature=1.0, top_k=None, top_p=None: int(rng.choice(
        logits.shape[1], p=sampling.next_probabilities(logits, temperature, top_k, top_p)))),
    ("attention_flops", lambda n, d_model, n_heads: sum(
        cost.layer_flops(n, d_model, n_heads, d_ff=0).values())),
])
def test_a_function_that_is_no_exercise_and_leaves_nothing_to_write_is_no_answer(name, answer):
    assert "in which the course does this work: write it yourself." in run(name, answer).diagnosis


def test_earlier_functions_may_be_the_courses():
    def single_head(X, W_q, W_k, W_v, causal=False):
        from helpers.attention import attention_weights, causal_mask, project_qkv, scaled_scores, softmax
        Q, K, V = project_qkv(X, W_q, W_k, W_v)
        S = scaled_scores(Q, K)
        return (attention_weights(S, causal_mask(len(X))) if causal else softmax(S)) @ V
    assert run("single_head", single_head).passed
    assert run("scaled_scores", lambda Q, K: attention.scores(Q, K) / np.sqrt(Q.shape[1])).passed


@pytest.mark.parametrize("exercise", COUNTED, ids=lambda exercise: exercise.name)
def test_no_earlier_function_needs_what_is_withheld(exercise):
    names = withheld(exercise, lambda: None)
    assert f"{exercise.reference.__module__}.{exercise.name}" in names
    functions = found(names)
    codes = [function.__code__ for function, *_ in functions]
    with kept_back(functions):
        for earlier in COUNTED[:COUNTED.index(exercise)]:
            for case in earlier.inputs[:3]:
                call = None if case.draws else case.call
                outcome = observe(earlier.reference, freeze(case.arguments, case.options), call)
                assert not outcome.error or outcome.error.type != "Borrowed", earlier.name
        case = exercise.inputs[0]
        assert observe(exercise.reference, freeze(case.arguments, case.options)).error.type == "Borrowed"
    assert [function.__code__ for function, *_ in functions] == codes


# One mistake is counted once

ANSWERS = {
    "scores": "def scores(Q, K): return Q @ K.T",
    "scaled_scores": "def scaled_scores(Q, K): return scores(Q, K) / np.sqrt(Q.shape[1])",
    "softmax": "def softmax(z):\n    top = np.max(z, -1, keepdims=True)\n"
               "    e = np.exp(z - np.where(np.isinf(top), 0, top))\n    total = e.sum(-1, keepdims=True)\n"
               "    return e / np.where(total == 0, 1, total)",
    "causal_mask": "def causal_mask(n_q, n_k=None):\n    n_k = n_k or n_q\n"
                   "    return np.tri(n_q, n_k, n_k - n_q, dtype=bool)",
    "attention_weights": "def attention_weights(S, mask): return softmax(np.where(mask, S, -np.inf))",
    "single_head": "def single_head(X, W_q, W_k, W_v, causal=False):\n"
                   "    S = scaled_scores(X @ W_q, X @ W_k)\n"
                   "    A = attention_weights(S, causal_mask(len(X))) if causal else softmax(S)\n"
                   "    return A @ (X @ W_v)",
    "last_query_attention": "def last_query_attention(q, K, V):\n"
                            "    return softmax(K @ q / np.sqrt(len(q))) @ V",
}
KEYS_FIRST = {"scores": "def scores(Q, K): return K @ Q.T"}
UNSAFE = "def softmax(z): return np.exp(z) / np.exp(z).sum(-1, keepdims=True)"


def verdicts(**instead):
    """{exercise: "passed", what is said of it, or its state}, with these answers in place of right ones."""
    space, judge = defined(*filter(None, (ANSWERS | instead).values())), Judge()
    found = {name: judge(BY_NAME[name], space[name]) for name in ANSWERS if name in space}
    return {name: once or report.state for name, (report, once) in found.items()}


def others_pass(**said):
    return dict.fromkeys(ANSWERS, "passed") | said


def test_what_is_right_is_judged_as_it_is():
    assert verdicts() == others_pass()


def test_a_wrong_function_costs_itself_alone():
    once = "right, once your scores (3.1) is"
    assert verdicts(**KEYS_FIRST) == others_pass(scores="wrong", scaled_scores=once, single_head=once)


@pytest.mark.parametrize(("softmax", "state", "is_it"), [
    ("def softmax(z):\n    print(z)\n    exit()", "wrong", "is"),
    ("def softmax(z):\n    raise NotImplementedError", "not written", "is written"),
    ("", None, "is written"),                           # its cell is no Python
    (UNSAFE.replace("(z)", "(z, axis=-1)", 1), "wrong", "is"),
])
def test_what_calls_a_function_that_fails_or_is_not_there_is_right_once_it_is(softmax, state, is_it):
    once = f"right, once your softmax (3.3) {is_it}"
    call = ANSWERS["attention_weights"]
    if "axis" in softmax:
        call = call.replace("-np.inf)", "-np.inf), axis=-1")
    wanted = others_pass(softmax=state, attention_weights=once, single_head=once, last_query_attention=once)
    if state is None:
        del wanted["softmax"]
    assert verdicts(softmax=softmax, attention_weights=call) == wanted


def test_a_mistake_of_its_own_is_what_is_said():
    no_root = "def scaled_scores(Q, K): return scores(Q, K) / len(Q[0])"
    space = defined(*(ANSWERS | KEYS_FIRST).values(), no_root)
    report, once = Judge()(BY_NAME["scaled_scores"], space["scaled_scores"])
    assert report.mistakes == ("d_not_sqrt",) and not once
    assert report.first == ("Judged with the course's own scores (3.1): the check of yours does not pass.",)
    _, once = Judge()(BY_NAME["single_head"], space["single_head"])
    assert once == "right, once your scores (3.1) and scaled_scores (3.2) are"
    assert space["single_head"].__globals__["scores"] is space["scores"]                # as it was before


def test_a_function_that_does_not_fit_though_it_passes_is_named():
    space = defined(*ANSWERS.values(), "right = softmax\ndef softmax(z): return right(z).tolist()",
                    "def attention_weights(S, mask): return softmax(np.where(mask, S, -np.inf)).clip(0)")
    report, once = Judge()(BY_NAME["attention_weights"], space["attention_weights"])
    assert not report.passed and not once
    assert "does not fit here, though it passes its own check" in report.message


def test_two_that_call_each_other_are_not_both_right_once_the_other_is():
    said = verdicts(
        single_head="def single_head(X, W_q, W_k, W_v, causal=False):\n"
                    "    n, Q, K, V = len(X), X @ W_q, X @ W_k, X @ W_v\n"
                    "    ends = [i + 1 if causal else n for i in range(n)]\n"
                    "    return np.array([last_query_attention(q, K[:m], V[:m]) for q, m in zip(Q, ends)])",
        last_query_attention="def last_query_attention(q, K, V):\n    d = len(q)\n"
                             "    X = np.hstack([np.vstack([K[:-1] * 0, q]), K, V])\n"
                             "    W = np.eye(X.shape[1])\n"
                             "    return single_head(X, W[:, :d], W[:, d:2 * d], W[:, 2 * d:])[-1]")
    once = "right, once your single_head (3.6) is"
    assert said == others_pass(single_head="wrong", last_query_attention=once)

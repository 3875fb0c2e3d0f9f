"""The last exercise: a reader's functions out of their notebooks, and a language model on them.

Most tests have a small model of random weights that runs in this process; the last ones have the real one.
"""

import json
import os
import shutil
import time
from pathlib import Path
from string import ascii_letters

import nbformat
import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from test_smollm2 import small_model

from helpers import attention, embeddings, smollm2
from helpers.checks import check, notebooks, process, record, run, together
from helpers.checks.exercise import Case
from helpers.checks.exercises.together import my_model
from helpers.checks.follow_on import Judge
from helpers.checks.observe import Outcome, freeze, observe

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = Path(__file__).parent / "data" / "smollm2_reference.npz"


def write(path, *cells):
    """A notebook of code cells, given as source or as (id, source)."""
    made = [new_code_cell(c) if isinstance(c, str) else new_code_cell(c[1], id=c[0]) for c in cells]
    nbformat.write(new_notebook(cells=[new_markdown_cell("# 03"), *made]), path)


STUB = '''def {}(*arguments):
    """Docstring."""
    raise NotImplementedError  # your code here'''


# The functions in the notebooks


def test_written_functions_are_found_and_stubs_are_not(tmp_path):
    write(tmp_path / "03_single_head_attention.ipynb",
          ("imports", "import numpy as np\nfrom helpers.attention import single_head"),
          "def twice(z):\n    return 2 * z",                                 # a cell of the reader's own
          ("softmax-answer", "def softmax(z):\n    return twice(np.asarray(z))"),
          ("scores-answer", STUB.format("scores")),
          ("causal-mask-answer", "def causal_mask(n_q, n_k=None):\n    pass"),
          ("scaled-scores-answer", "scaled_scores = lambda Q, K: softmax(Q)"),
          ("something", "def something(x):\n    return x"))
    found, left_out = notebooks.saved_functions(tmp_path)
    assert list(found) == ["softmax", "scaled_scores"] and left_out == {}
    assert found["scaled_scores"]([1, 2], None).tolist() == [2, 4]


def test_only_imports_definitions_and_assignments_run(tmp_path):
    touch = f"open({str(tmp_path / 'ran')!r}, 'w')"
    write(tmp_path / "03_a.ipynb", touch, f"if True:\n    {touch}", f"with {touch}:\n    pass",
          "factor = 3\nfrom nowhere import nothing\nexit()\nleft = exit()\nx = undefined",
          "%matplotlib inline\n!ls\nimport numpy as np",
          "%timeit softmax(1)\ndef softmax(z):\n    return np.multiply(factor, z)\nsoftmax(1 / 0)")
    found, left_out = notebooks.saved_functions(tmp_path)
    assert found["softmax"](2) == 6 and left_out == {}
    assert not (tmp_path / "ran").exists()


def test_what_cannot_run_is_told_by_its_name_and_stops_nothing(tmp_path):
    write(tmp_path / "03_a.ipynb", ("softmax-answer", "def softmax(z)\n    return z"), ("own", "def (:"),
          ("scores-answer", "def scores(Q, K=undefined):\n    return Q"),
          ("causal-mask-answer", "def causal_mask(n_q, n_k=None):\n    return n_q"))
    (tmp_path / "04_b.ipynb").write_text("{", encoding="utf-8")
    (tmp_path / "05_c.ipynb").write_text('{"cells": 3}', encoding="utf-8")
    (tmp_path / "06_d.ipynb").mkdir()
    found, left_out = notebooks.saved_functions(tmp_path)
    assert list(found) == ["causal_mask"]
    assert left_out["softmax"].startswith("its cell is no Python (line 1: expected")
    assert left_out["scores"] == "its cell fails (NameError: name 'undefined' is not defined)"
    assert set(left_out) == {"softmax", "scores", "04_b.ipynb", "05_c.ipynb", "06_d.ipynb"}


def test_a_pasted_copy_does_not_take_the_place_of_the_function(tmp_path):
    for name, value in (("02_a", 2), ("03_b", 3), ("08_c", 8)):
        both = (f"def {n}(z):\n    return z + {value}" for n in ("softmax", "embed"))
        write(tmp_path / f"{name}.ipynb", *both)
    found, _ = notebooks.saved_functions(tmp_path)
    assert found["softmax"](0) == 3 and found["embed"](0) == 2


def test_what_has_run_in_this_notebook_comes_before_what_is_saved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(Path("10_a.ipynb"), *(f"def {n}(x):\n    return x + 's'" for n in ("rope", "rope_attention")))
    space = {"my_functions": notebooks.my_functions, "softmax": attention.softmax, "scores": 3}
    exec(f"{STUB.format('rope')}\ndef rope_attention(x):\n    return x + 'r'\nmine = my_functions()", space)
    assert {name: function("") for name, function in space["mine"].items()} == {
        "rope": "s", "rope_attention": "r"}


def test_all_functions_of_the_solutions_are_found():
    found, left_out = notebooks.saved_functions(ROOT / "solutions")
    assert set(found) == set(notebooks.BY_NAME) and left_out == {}


# The verdict, on a small model


class Letters:
    """A tokenizer of one letter a token."""

    def encode(self, text):
        return np.array([ascii_letters.index(letter) for letter in text])

    def decode(self, ids):
        return "".join(ascii_letters[i] for i in ids)

    def id_of(self, mark):
        return -1


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Exercises in a folder of their own, judged on a small model, in this process."""
    model = small_model()
    model = smollm2.SmolLM2(model.weights, Letters(), model.functions)
    monkeypatch.setattr(smollm2, "load", lambda: model)
    monkeypatch.setattr(together, "PROMPT", "dbebf")
    monkeypatch.setattr(together, "IDS", list(model.generate_ids("dbebf", 3, stop=False)))

    def run_here(function, cases, *limits, withheld=()):
        if isinstance(function, together.Trial):            # slower than a call of any other exercise
            assert limits == (together.LIMIT, together.TOTAL) > (process.CASE_LIMIT, process.TOTAL_LIMIT)
        return [observe(function, freeze(case.arguments, case.options)) for case in cases], []
    monkeypatch.setattr(process, "run_apart", run_here)
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))
    monkeypatch.chdir(tmp_path)
    return model


RIGHT = {"03": ("softmax", "def softmax(z):\n    e = np.exp(z - z.max(axis=-1, keepdims=True))\n"
                           "    return e / e.sum(axis=-1, keepdims=True)"),
         "04": ("merge-heads", "def merge_heads(H):\n    return np.concatenate(list(H), axis=1)"),
         "07": ("single-head", "def single_head(X, W_q, W_k, W_v, causal=False):\n    return X")}


def exercises(**instead):
    """Write notebooks with the functions of RIGHT, or others in their place."""
    for number, (name, source) in (RIGHT | instead).items():
        write(Path(f"{number}_a.ipynb"), "import numpy as np", (f"{name}-answer", source))


def test_a_model_on_the_readers_functions_passes_and_says_whose_they_are(small):
    exercises()
    report = run("my_model", my_model)
    assert report.passed, report.message
    said = Letters().decode(together.IDS)
    assert report.message.startswith(f"✓ my_model     dbebf{said}\n  So says the language model on 2 of your")
    assert "  softmax 14, merge_heads 14.\n" in report.message     # 2 layers · (3 steps + 1 + 3 parts)
    assert "On the course's own, for want of yours: embed (1.2), split_heads (4.1), rope" in report.message
    assert report.message.endswith("That was the last one.") and report.remarks == []


def test_a_notebook_that_has_been_saved_since_the_check_is_read_again(small):
    exercises()
    space = {"__name__": "__main__"}
    exec("def my_model(model, mine):\n"
         "    return model.use(softmax=mine['softmax'], merge_heads=mine['merge_heads'])", space)
    check(space["my_model"])
    assert run("my_model", space["my_model"]) is run("my_model", space["my_model"])
    exercises(**{"04": ("merge-heads", "def merge_heads(H):\n    return H")})
    assert run("my_model", space["my_model"]).at_fault == ("merge_heads",)
    exercises()
    check(space["my_model"])
    space["softmax"] = lambda z: z                          # a later cell of the notebook it stands in
    assert not run("my_model", space["my_model"]).passed


@pytest.mark.parametrize(("number", "source", "says"), [
    ("04", "def merge_heads(H):\n    return np.concatenate(list(H[::-1]), axis=1)", "merge_heads → '"),
    ("04", "def merge_heads(H):\n    return H", "merge_heads → ValueError: your merge_heads must give"),
    ("04", "def merge_heads(H):\n    raise IndexError('no')", "merge_heads → IndexError: no (in merge_"),
    ("04", "def merge_heads(H):\n    return np.concatenate(list(H), axis=1) * 1.01",
     "merge_heads → the same words, but logits are off by up to 0.0"),
    ("04", "def merge_heads(H):\n    return np.concatenate(list(H), axis=1) * np.nan", "merge_heads → "),
    ("04", "def merge_heads(H):\n    return np.concatenate(list(H / (1 - (H.shape[1] == 3))), axis=1)",
     "merge_heads → ValueError: your merge_heads must give finite numbers; it gave "),
    ("03", "def softmax(z):\n    z = np.exp(z)\n    raise NotImplementedError('half')",
     "softmax → NotImplementedError: half (in softmax)"),
])
def test_a_function_that_fails_is_named_alone(small, number, source, says):
    exercises(**{number: (RIGHT[number][0], source)})
    report = run("my_model", my_model)
    which = "merge_heads (4.2)" if number == "04" else "softmax (3.3)"
    assert report.state == "wrong" and report.diagnosis == f"Your {which} is what fails."
    assert len(report.holds) == 1 and report.holds[0].startswith(says), report.message
    assert f"On the course's:   dbebf → '{Letters().decode(together.IDS)}'" in report.message


def test_two_functions_that_fail_are_both_named(small):
    exercises(**{"03": ("softmax", "def softmax(z):\n    return z"),
                 "04": ("merge-heads", "def merge_heads(H):\n    return H")})
    report = run("my_model", my_model)
    assert report.diagnosis == "Your softmax (3.3) and merge_heads (4.2) are what fails."
    assert [line.split(" →")[0] for line in report.holds] == ["softmax", "merge_heads"]


def test_a_mask_that_is_right_for_as_many_queries_as_keys_alone_is_found(small):
    """In the next turn of a chat a few new queries read all that was said before."""
    mask = "def causal_mask(n_q, n_k=None):\n    return np.tri(n_q, n_k, dtype=bool)"
    exercises(**{"03": ("causal-mask", mask),
                 "04": ("merge-heads", STUB.format("merge_heads"))})
    report = run("my_model", my_model)
    assert report.diagnosis == "Your causal_mask (3.4) is what fails."
    assert "causal_mask → the same words, but where a text comes in parts, as in a chat" in report.message


def test_what_is_a_little_off_for_one_query_alone_is_found(small):
    """A cached token's logits are compared, too, not only the words that come of them."""
    grouped = ("def grouped_query_attention(Q, K, V):\n    from helpers import kv_sharing\n"
               "    return kv_sharing.grouped_query_attention(Q, K, V) * 1.02")
    exercises(**{"07": ("grouped-query-attention", grouped)})
    report = run("my_model", my_model)
    assert report.at_fault == ("grouped_query_attention",), report.message
    assert "On your functions: dbebf → the same words, but where a text comes in parts" in report.message


def test_of_two_that_fail_the_one_that_the_other_calls_is_named_first(small):
    exercises()
    write(Path("03_a.ipynb"), "import numpy as np", ("softmax-answer", "def softmax(z):\n    return z * 2"),
          ("attention-weights-answer",
           "def attention_weights(S, mask=None):\n    return softmax(np.where(mask, S, -np.inf))"))
    report = run("my_model", my_model)
    assert report.diagnosis == "Your softmax (3.3) is what fails.", report.message
    assert "attention_weights (3.5) fails too, as it must where it calls softmax. Begin" in report.message
    write(Path("03_a.ipynb"), "import numpy as np", RIGHT["03"][1],
          ("attention-weights-answer", "def attention_weights(S, mask=None):\n    return softmax(2 * S)"))
    assert run("my_model", my_model).diagnosis == "Your attention_weights (3.5) is what fails."


def test_functions_that_fail_only_together_are_said_to(small, monkeypatch):
    exercises(**{"04": ("merge-heads", "def merge_heads(H):\n    return H")})
    monkeypatch.setattr(together, "one_by_one", lambda trial, steps: [Outcome(["", True, []]) for _ in steps])
    report = run("my_model", my_model)
    assert report.state == "wrong" and report.diagnosis.startswith("Each of your functions alone is right")


@pytest.mark.parametrize(("answer", "state", "says"), [
    (lambda model, mine: model.functions.own.get("x"), "wrong", "gave back None, where a model is expected"),
    (lambda model, mine: model.use, "wrong", "gave back the function use itself, where a model"),
    (lambda model, mine: model, "wrong", "have a place in it and are not put in: softmax, merge_heads."),
    (lambda model, mine: model.use(softmax=mine["merge_heads"], merge_heads=mine["merge_heads"]), "wrong",
     "not put in: softmax."),
    (lambda model, mine: model.use(**mine), "wrong", "ValueError: single_head is no part of this model"),
    (lambda model, mine: mine.nothing, "wrong", "AttributeError"),
    (lambda model, mine: "The capital", "wrong", "gave back a str, where a model is expected"),
    (lambda model, mine: None, "not written", "not written yet"),
    (lambda mine: mine, "unusable", "my_model is called with 2 arguments (model, mine); yours takes (mine)."),
    (lambda model, mine: (_ for _ in ()).throw(NotImplementedError), "not written", "not written yet"),
])
def test_what_is_no_model_on_the_readers_functions(small, answer, state, says):
    exercises()
    report = run("my_model", answer)
    assert report.state == state and says in report.message


def test_an_empty_one_is_not_written(small):
    def empty(model, mine):
        """Nothing yet."""
    assert run("my_model", empty).state == "not written"


def test_with_no_function_there_is_nothing_to_try(small):
    report = run("my_model", my_model)
    assert report.state == "not tried" and "no function is written that has a place in it" in report.message


def test_what_is_left_out_is_told_also_where_all_is_right(small):
    exercises(**{"03": ("softmax", "def softmax(z)\n    return z")})
    report = run("my_model", my_model)
    assert report.passed and len(report.remarks) == 1
    assert report.remarks[0].startswith("softmax (3.3) is left out: its cell is no Python (line 1")


def test_the_functions_of_the_running_notebook_go_in(small):
    space = {"__name__": "__main__"}
    exec("def embed(ids, E):\n    return E[ids]\n"
         "def my_model(model, mine):\n    return model.use(embed=mine['embed'])", space)
    assert run("my_model", space["my_model"]).passed
    assert run("my_model", my_model).state == "not tried"   # not the one of that notebook


def test_it_is_counted_like_the_others(small):
    space = {"__name__": "__main__"}
    exec("def my_model(model, mine):\n    return model", space)
    exercises()
    check(space["my_model"])
    exec("def my_model(model, mine):\n    return model.use(**{n: f for n, f in mine.items() if n != "
         "'single_head' and n != 'my_model'})", space)
    check(space["my_model"])
    kept = json.loads(Path("progress.json").read_text(encoding="utf-8"))
    assert kept == {"exercises": {"my_model": {"tries": 2, "solved": True}}}
    assert "10.3 my_model" in str(record.Table(list(notebooks.BY_NAME.values()), *record.entries()))
    assert run("rope_attention", embeddings.rope_attention).next == "Next: 10.3 my_model"


@pytest.mark.parametrize("error", [
    FileNotFoundError("the language model is not in /x; fetch it with python3 course.py model"),
    ModuleNotFoundError("the language model needs the package tokenizers; python3 course.py model adds it"),
    ValueError("the language model is damaged: it is short; mend it with python3 course.py model")])
def test_without_the_model_it_is_not_tried_and_not_counted(small, monkeypatch, error, capsys):
    exercises()

    def load():
        raise error
    monkeypatch.setattr(smollm2, "load", load)
    space = {"__name__": "__main__"}
    exec("def my_model(model, mine):\n    return model.use(**mine)", space)
    check(space["my_model"])
    assert "○ my_model     not tried: the language model is missing" in capsys.readouterr().out
    report = run("my_model", my_model)
    assert report.state == "not tried" and "python3 course.py model" in report.message
    assert str(error)[1:] in report.message and "Type that in a terminal" in report.message
    assert not Path("progress.json").exists()
    assert run("my_model", lambda model, mine: None.nothing).state == "not tried"


def test_calls_have_the_time_they_are_given():
    cases = [Case("short", (0.0,)), Case("long", (0.6,)), Case("not reached", (0.0,))]
    assert [o.ended for o in process.run_apart(time.sleep, cases, limit=0.3, total=9)[0]] == ["", "time"]
    assert [o.ended for o in process.run_apart(time.sleep, cases, limit=9, total=0.3)[0]] == ["", "time"]
    assert [o.ended for o in process.run_apart(time.sleep, cases, limit=9, total=9)[0]] == ["", "", ""]


# The real one


@pytest.fixture
def real(tmp_path, monkeypatch):
    if not smollm2.is_fetched():
        pytest.skip("the language model is not fetched: python3 course.py model")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))
    for path in sorted((ROOT / "solutions").glob("0[1-4]*.ipynb")):
        shutil.copy(path, tmp_path)


def test_the_words_are_those_of_transformers():
    with np.load(REFERENCE, allow_pickle=False) as reference:
        assert str(reference["prompt1"]) == together.PROMPT
        assert reference["greedy1"][:len(together.IDS)].tolist() == together.IDS


def test_the_real_model_answers_on_functions_that_are_right(real):
    report = run("my_model", my_model)
    assert report.passed and report.summary == "The capital of France is Paris.", report.message
    assert "scores is not called: your scaled_scores does its work." in report.message


@pytest.mark.parametrize(("body", "says"), [
    ("return x", "rope → ' Paris, Paris"),
    ("import os; os._exit(3)", "rope → its process ended (exit 3)"),
    ("while True: pass", "rope → not done after 6 s"),
])
def test_a_function_that_fails_hurts_nothing_and_is_named(real, monkeypatch, body, says):
    if "while" in body:
        monkeypatch.setattr(together, "LIMIT", 6)
    for path in Path.cwd().glob("0[23]*.ipynb"):
        path.unlink()
    space = {"names": ("embed", "split_heads", "rope", "merge_heads")}
    exec(f"def rope(x, positions, base=10000.0):\n    {body}\n"
         "def my_model(model, mine):\n    return model.use(**{name: mine[name] for name in names})", space)
    report = run("my_model", space["my_model"])
    assert report.diagnosis == "Your rope (10.1) is what fails." and says in report.message
    assert len(report.holds) == 1


def test_a_folder_without_the_model_is_said_to_be_one(real, monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_MODEL", str(tmp_path / "nowhere"))
    report = run("my_model", my_model)
    assert report.state == "not tried" and f"is not in {os.fspath(tmp_path / 'nowhere')}" in report.message


def test_in_grading_a_function_that_fails_costs_the_last_exercise_nothing(small):
    exercises(**{"03": ("softmax", "def softmax(z):\n    return z")})
    report, once = Judge()(notebooks.BY_NAME["my_model"], my_model)
    assert report.passed and once == "right, once your softmax (3.3) is"
    assert "softmax" not in report.message.partition("Calls of each")[2].partition("On the course's")[0]

"""The language model, the checks' public functions and the notebook tools, called with what they cannot take.

As in `test_bad_input`: `GOOD` says how a function is called rightly, the kind of each argument what is tried
in its place. A public function without an entry fails the first test, a module nobody knows the second.
"""

import contextlib
import dataclasses
import inspect
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from bad_input import (
    CAME,
    EXPECTED,
    Kind,
    array,
    count,
    flag,
    is_tried,
    judge,
    number,
    optional,
    public,
    right,
    thing,
)
from test_bad_input import MATHS
from test_bad_input_pictures import MODULES as PICTURES
from test_bad_input_pictures import listed
from test_explorers_model import LETTERS
from test_smollm2 import small_model

import helpers
from helpers import smollm2
from helpers.checks import check, no_such_exercise, run
from helpers.checks.exercises import EXERCISES
from helpers.kv_cache import KVCache
from helpers.smollm2 import weights
from helpers.smollm2.model import Chat
from helpers.smollm2.tokenizer import Tokenizer

ROOT = Path(__file__).resolve().parents[1]
MODULES = ["smollm2.fetch", "smollm2.functions", "smollm2.measure", "smollm2.model",
           "smollm2.side_by_side", "smollm2.tokenizer", "smollm2.weights", "exercise_notebooks",
           "notebook_store", "published_models", "blas", "tiles", "checks", "checks.notebooks"]
FUNCTIONS = {name: function for module in MODULES for name, function in public(module).items()}
FUNCTIONS["checks.judge.run"] = run                         # all else there is of the engine

# What these get has been looked at by the functions that call them, or is what the course has made itself.
PARTS = """
smollm2.fetch: make unpack config_of arrays_of write_array tokenizer_of check look others sentence say
smollm2.functions: Functions.call Functions.embed Functions.split_heads Functions.merge_heads Functions.rope
    Functions.attend Functions.next_token
smollm2.measure: mean_weight entropy n_asked
smollm2.model: normed gated product silu SmolLM2.layer SmolLM2.read pairs settings_of drawer known chat_text
smollm2.tokenizer: Tokenizer Tokenizer.stream open_tokenizer read_once build
smollm2.weights: default_folder read_index index_hash look_at not_readable damaged spot_check large_pages
    sha256
exercise_notebooks: stub exercise fingerprint is_stub differences read text_of write_text fresh_exercises
    write check
notebook_store: strip
blas: openblas OneThreadAProduct
tiles: attend_tile attend_in_tiles
checks: verdict_on progress exercise_named newer_cell functions_in no_such_exercise
checks.notebooks: my_functions running_functions functions_of parsed is_written
"""
RECORDS = """
smollm2.fetch: Trouble
smollm2.measure: Patterns
smollm2.model: Head LayerTrace Trace SmolLM2
smollm2.weights: OneSentence NotFetched NoFolder NotReadable Config Weights
exercise_notebooks: Refused
published_models: Sizes
"""
# Read from the command line, see below.
COMMANDS = """
smollm2.fetch: main
exercise_notebooks: main
notebook_store: main
"""
INNER = listed(PARTS) | listed(RECORDS) | listed(COMMANDS)

def implementation():
    """What the `tokenizers` package has of a tokenizer, as far as it is asked for."""
    def decode(ids, skip_special_tokens):
        return "".join(LETTERS[i] for i in ids)
    return SimpleNamespace(
        get_vocab_size=lambda: N, decode=decode, token_to_id={"<|im_end|>": 3}.get,
        encode=lambda text, add_special_tokens: SimpleNamespace(
            ids=[max(LETTERS.find(c), 0) for c in re.sub(r"<\|\w+\|>", ".", text)]))


N = len(LETTERS)
MODEL = dataclasses.replace(small_model(), tokenizer=Tokenizer(implementation()))      # 2 layers of 6 heads


def text(value="tom", *wrong, **more):
    return thing(value, None, 3, ["a"], b"a", *wrong, **more)


def ids(**more):
    """Right: ids or a text."""
    wrong = [None, 3, 2.5, b"a", {}, [], "", ["a"], [1.0], [None], [True, False], [[1]], [[1, 2], [3]], [-1],
             [N], [10**30], [1] * 65, np.array(1), np.ones((1, 1), int), [np.nan]]
    return thing([1, 2, 3], *wrong, **({"called": "text|tokens"} | more))


def pairs():
    wrong = [None, 3, "1.0", [1], [None], [(1,)], [(1, 2, 3)], (1, 0), [("a", 0)], [(0.0, 1)], [(True, 0)],
             [(2, 0)], [(0, 6)], [(-1, 0)]]
    return thing([(1, 0)], *wrong, called="without|layer|head")


def path(value, *wrong):
    return thing(value, 3, 2.5, [], ["a"], {}, b"a", *wrong)


def model(**more):
    return thing(MODEL, None, "SmolLM2", smollm2, MODEL.weights, **more)


def caches(like=MODEL, n=0):
    found = like.new_caches(64)
    for cache in found:
        cache.append(np.zeros((2, n, 8)), np.zeros((2, n, 8)))
    return found


CACHES = Kind("new", {
    "None": None, "a number": 3, "text": "KV", "none": [], "one": caches()[:1], "others": [None, None],
    "arrays": [np.zeros((2, 1, 8))] * 2, "the same twice": caches()[:1] * 2, "a dict": {},
    "too many": caches() + caches(), "narrow": [KVCache(2, 64, 4) for _ in range(2)],
    "out of step": [caches()[0], caches(n=3)[1]],
})
WRITTEN = {"n_new": count(2), "temperature": number(1.0, -1.0, np.inf), "top_k": optional(count(2, 1)),
           "top_p": optional(number(0.5, 0, 1.1, np.inf)),
           "rng": thing(None, 3, "rng", np.random, [], np.random.RandomState(0))}
RAGGED = [[1.0, 2.0], [3.0]]
LAYERS = thing([1], 3, "ab", [None], [2], [-1], [1.0], [True], {"a": 1}, np.array(1), called="layers")
SEEN = MODEL.run("tom")
MARK = thing("<|im_end|>", None, 3, [], "<|im_end", "")

GOOD = {
    "smollm2.functions.Functions": {"rope": thing(np.sin, None, 3, "rope", [])},
    "smollm2.measure.patterns": {"model": model(), "text": ids(), "without": pairs()},
    "smollm2.measure.head_scores": {"A": array(2, 3, 4, 4), "ids": array(4)},
    "smollm2.measure.asked": {"name": thing("itself", None, 3, [], "self", ["itself"]), "ids": array(4)},
    "smollm2.model.rms_norm": {"x": array(2, 4), "gamma": array(4), "eps": number(1e-5, -1.0, np.inf)},
    "smollm2.model.swiglu": {"x": array(2, 4), "W_gate_up": array(4, 6),
                             "W_down": array(3, 4, gaps=True)},
    "smollm2.model.SmolLM2.use": {"softmax": thing(np.sin, None, 3, "rope", [])},
    "smollm2.model.SmolLM2.head": {"layer": count(1, 0, 1), "head": count(3, 0, 5)},
    "smollm2.model.SmolLM2.forward": {"ids": ids(called="text|tokens"), "caches": CACHES, "without": pairs(),
                                      "keep": thing({1: None}, 3, "a", [None], {2: None}, {"a": None},
                                                    called="layers")},
    "smollm2.model.SmolLM2.to_vocabulary": {"X_out": array(2, 24)},
    "smollm2.model.SmolLM2.new_caches": {"n_max": count(3, 1)},
    "smollm2.model.SmolLM2.ids": {"text": ids()},
    "smollm2.model.SmolLM2.logits": {"text": ids(), "without": pairs()},
    "smollm2.model.SmolLM2.next_tokens": {"text": ids(), "k": count(3, 1), "without": pairs()},
    "smollm2.model.SmolLM2.losses": {"text": ids(), "without": pairs()},
    "smollm2.model.SmolLM2.run": {"text": ids(), "layers": LAYERS, "without": pairs()},
    "smollm2.model.SmolLM2.rerun": {"seen": thing(SEEN, None, "tom", [1, 2, 3], SEEN.layers),
                                    "without": pairs(), "layers": LAYERS},
    "smollm2.model.SmolLM2.generate_ids": {"text": ids()} | WRITTEN | {
        "cache": flag(), "without": pairs(), "stop": flag(False)},
    "smollm2.model.SmolLM2.generate": {"text": ids()} | WRITTEN,
    "smollm2.model.SmolLM2.chat": {"system": text(), "n_max": count(30, 1, 64)},
    "smollm2.model.Chat": {"model": model(), "system": text(), "n_max": count(30, 1, 64)},
    "smollm2.model.Chat.say": {"text": text()} | WRITTEN,
    "smollm2.side_by_side.write_side_by_side": {
        "model": model(), "text": ids(), "n_new": count(2),
        "draws": thing([{"temperature": 1.0}], None, 3, "ab", {}, [None], [3], [{"temp": 1}],
                       [{"temperature": -1}], [{"top_k": 0}], [{"top_p": 2}], [{"rng": 3}],
                       called="draws|temperature|top_k|top_p|rng")},
    "smollm2.model.load": {"folder": path("nowhere")},
    "smollm2.weights.is_fetched": {"folder": path("nowhere")},
    "smollm2.weights.as_folder": {"folder": path("nowhere")},
    "smollm2.weights.open_weights": {"folder": path("nowhere")},
    "smollm2.tokenizer.Tokenizer.encode": {"text": text("tom", "\ud83d")},
    "smollm2.tokenizer.Tokenizer.decode": {"ids": thing([1], None, 3, "ab", {}, [None], ["a"], [1.5], [-1],
                                                        [N], [True], RAGGED, np.array(1))},
    "smollm2.tokenizer.Tokenizer.tokens": {"ids": thing([1], None, 3, "ab", {}, [None], ["a"], [-1], [N])},
    "smollm2.tokenizer.Tokenizer.id_of": {"mark": MARK},
    "notebook_store.store": {"path": path("nowhere.ipynb", None), "timeout": number(9, 0, -1, np.inf)},
    "checks.check": {"function": thing(np.sin)},                                # it says so, see below
    "checks.judge.run": {"name": text("softmax", "softmux", ""), "function": thing(np.sin)},
    "checks.notebooks.saved_functions": {"folder": path(".", None)},
}
SAID, NAMED = (f"{EXPECTED}|at most|counted from 0", f"{CAME}|there is no layer|no single token")
HEARD = (FileNotFoundError,)                                # of a path that is right, and leads nowhere


def called(name):
    """The function, or a method of what is right; what it writes is heard to its end."""
    if name == "smollm2.model.Chat.say":
        function = Chat(MODEL, "", 60).say
    elif name == "smollm2.model.SmolLM2.forward":
        def function(ids, without, keep, **more):
            given = more["caches"]
            return MODEL.forward(ids, caches() if given == "new" else given, without, keep)
    elif ".SmolLM2." in name:
        function = getattr(MODEL, name.rpartition(".")[2])
    elif ".Tokenizer." in name:
        function = getattr(Tokenizer(implementation()), name.rpartition(".")[2])
    else:
        function = FUNCTIONS[name]

    def to_its_end(**arguments):
        found = function(**arguments)
        return list(found) if inspect.isgenerator(found) else found
    return to_its_end


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in INNER])
def test_every_public_function_is_tried_with_bad_input_for_every_argument(name):
    is_tried(name, FUNCTIONS, GOOD)


def test_no_entry_is_left_of_a_function_that_is_gone():
    assert set(GOOD) | INNER == set(FUNCTIONS) and not set(GOOD) & INNER


def test_every_module_is_tried_somewhere():
    """The engine of the checks gets readers' functions, whatever they do: test_checks_hostile. The explorers'
    modules are what `explorers` is made of, `arrays` looks at arguments, `tiny_model.stored` reads files."""
    found = {module.name.removeprefix("helpers.")
             for module in pkgutil.walk_packages(helpers.__path__, "helpers.") if not module.ispkg}
    engine = {name for name in found if name.startswith(("checks.", "explorers."))}
    assert found - engine - {"arrays", "tiny_model.stored"} <= {*MATHS, *PICTURES, *MODULES}


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.filterwarnings("error")
def test_what_is_right_is_taken(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with contextlib.suppress(*HEARD):
        called(name)(**right(GOOD[name]))


@pytest.mark.parametrize(("name", "argument"), [(name, argument) for name in GOOD for argument in GOOD[name]])
@pytest.mark.filterwarnings("error")
def test_bad_input_is_named_with_what_was_expected_and_what_came(name, argument):
    judge(called(name), GOOD[name], argument, SAID, NAMED)


# The checks: what cannot be judged gets a sentence, never an exception


@pytest.mark.parametrize("thing", [None, 3, "softmax", [], {}, np.ones(3), object, b"a", np.sin, len,
                                   lambda: 0], ids=lambda thing: type(thing).__name__)
def test_what_is_no_answer_to_an_exercise_is_said(thing, capsys):
    check(thing)
    said = capsys.readouterr().out
    assert "check" in said and "Traceback" not in said
    assert not no_such_exercise(thing).passed
    for exercise in EXERCISES:
        report = run(exercise.name, thing)
        assert not report.passed and report.message


def test_an_exercise_that_is_none_is_named_with_the_nearest():
    with pytest.raises(ValueError, match="must be that of an exercise, got 'softmux'. Did you mean 'softmax"):
        run("softmux", np.sin)
    with pytest.raises(TypeError, match=r"name must be a string, got \['softmax'\]"):
        run(["softmax"], np.sin)


# The commands


def command(*arguments, cwd=ROOT):
    return subprocess.run([sys.executable, *arguments], cwd=cwd, capture_output=True, encoding="utf-8",
                          env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"})


WRONG_COMMANDS = [
    (["course.py", "fly"], 2, "invalid choice: 'fly'"),
    (["course.py", "--port", "0"], 2, "a port is a number from 1 to 65535, not '0'"),
    (["course.py", "--port", "²"], 2, "a port is a number from 1 to 65535, not '²'"),
    (["course.py", "--port", "1e3"], 2, "a port is a number from 1 to 65535, not '1e3'"),
    (["course.py", "--port"], 2, "expected one argument"),
    (["course.py", "exercises", "--no-browser"], 2, "go with the command start"),
    (["course.py", "start", "--check"], 2, "--check goes with the commands exercises and model"),
    (["course.py", "exercises", "somewhere"], 2, "a folder goes with the command progress"),
    (["course.py", "progress", "nowhere"], 1, "There is no folder nowhere"),
    (["course.py", "progress", "README.md"], 1, "There is no folder README.md"),
    (["course.py", "bench", "--only", "flight"], 2, "invalid choice: 'flight'"),
    (["course.py", "bench", "flight"], 2, "unrecognized arguments: flight"),
    (["-m", "helpers.checks", "nowhere"], 1, "There is no folder or file nowhere"),
    (["-m", "helpers.checks", "a", "b"], 2, "unrecognized arguments: b"),
    (["-m", "helpers.checks", "README.md"], 0, "README.md could not be read"),
    (["-m", "helpers.exercise_notebooks", "--root", "nowhere"], 1, "there are no notebooks in nowhere"),
    (["-m", "helpers.exercise_notebooks", "--check", "--root", "README.md"], 1, "there are no notebooks in"),
    (["-m", "helpers.notebook_store"], 2, "the following arguments are required: FILE.ipynb"),
    (["-m", "helpers.notebook_store", "nowhere.ipynb"], 1, "nowhere.ipynb: "),
    (["-m", "helpers.notebook_store", "helpers"], 1, "helpers: "),
    (["-m", "helpers.notebook_store", "README.md"], 1, "README.md: "),
    (["-m", "helpers.smollm2.fetch"], 2, "the following arguments are required: folder"),
    (["-m", "helpers.smollm2.fetch", "nowhere", "--make"], 1, "There is no wheel in"),
    (["-m", "helpers.smollm2.fetch", "nowhere", "--check"], 1, "is not in nowhere"),
]


@pytest.mark.parametrize(("arguments", "status", "says"), WRONG_COMMANDS, ids=lambda x: str(x)[:60])
def test_a_command_that_makes_no_sense_is_a_sentence(arguments, status, says):
    ran = command(*arguments)
    assert says in ran.stdout + ran.stderr
    assert ran.returncode == status and "Traceback" not in ran.stderr


def test_weights_that_are_not_there_are_said(tmp_path):
    with pytest.raises(FileNotFoundError, match="is not in .*; fetch it with python3 course.py model"):
        weights.open_weights(tmp_path)

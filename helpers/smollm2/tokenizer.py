"""Text to tokens and back, with the vocabulary the language model was trained on.

Read `Tokenizer`. Its tokens are runs of bytes, found by merging frequent pairs (BPE), with every digit on its
own; nothing is lost: every string comes back as it was.  Sennrich et al. 2016; Radford et al. 2019 (bytes).
"""

import functools

import numpy as np

from helpers import arrays as given
from helpers.smollm2.weights import HOW, TOKENIZER, damaged


class Tokenizer:
    """Cuts text into token ids and puts it together again.

    `tokenizer` is one of the `tokenizers` package. Marks such as "<|im_end|>" in a text are one token each.
    """

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer

    def __len__(self):
        return self._tokenizer.get_vocab_size()

    def encode(self, text):
        """The ids of a text, (n,) int64. No token is put in front.  Raises TypeError for anything but str,
        ValueError for half a character (a lone surrogate).
        """
        try:
            given.text("text", text).encode()
        except UnicodeEncodeError as err:
            raise ValueError(f"text must hold whole characters, got {text[err.start]!r} "
                             f"at {err.start}, half of one") from None
        return np.array(self._tokenizer.encode(text, add_special_tokens=False).ids, dtype=np.int64)

    def decode(self, ids):
        """The text of some ids, marks included. Bytes that are no whole character become "\\ufffd".

        Raises TypeError for what is no list of whole numbers, ValueError for an id that is no token's.
        """
        ids = [given.count("every id in ids", i, most=len(self) - 1) for i in given.listed("ids", ids, "ids")]
        return self._tokenizer.decode(ids, skip_special_tokens=False)

    def tokens(self, ids):
        """The text of each id on its own, a list of str."""
        return [self.decode([i]) for i in given.listed("ids", ids, "ids")]

    def id_of(self, mark):
        """The id of a mark such as "<|im_end|>".  Raises ValueError when it is not one token."""
        found = self._tokenizer.token_to_id(given.text("mark", mark))
        if found is None:
            raise ValueError(f"mark must be a single token, such as <|im_end|>; {mark!r} is no single token "
                             "of this model")
        return found

    def stream(self, ids):
        """The text of ids that come one by one, as soon as its characters are whole; yields str.

        A character of several tokens, such as most emoji, is held back until its last byte is there.
        """
        waiting = []
        for i in ids:
            waiting.append(i)
            text = self.decode(waiting)
            if not text.endswith("\ufffd"):
                yield text
                waiting = []
        if waiting:
            yield self.decode(waiting)


def open_tokenizer(folder):
    """The tokenizer in the model's folder.  Raises ModuleNotFoundError or ValueError in one sentence."""
    try:
        from tokenizers import Tokenizer as Implementation
    except ModuleNotFoundError:
        raise ModuleNotFoundError(f"the language model needs the package tokenizers; {HOW} adds it") from None
    path = folder / TOKENIZER
    try:
        return Tokenizer(read_once(Implementation, path, path.stat().st_mtime_ns))
    except Exception as err:                # the package raises plain Exception
        raise damaged(path, str(err)) from None


@functools.lru_cache(maxsize=1)
def read_once(Implementation, path, changed):
    """What the file holds, read no second time as long as it has not changed. changed : when it last has."""
    return Implementation.from_file(str(path))


def build(tokens, kinds, merges):
    """The tokenizer of a .gguf file, as one of the `tokenizers` package.

    tokens : V strings in the byte-level alphabet, kinds : V ints, 3 for a mark, merges : "left right" each.
    """
    from tokenizers import AddedToken, decoders, models, pre_tokenizers
    from tokenizers import Tokenizer as Implementation

    vocab = {token: i for i, token in enumerate(tokens)}
    made = Implementation(models.BPE(vocab=vocab, merges=[tuple(merge.split(" ")) for merge in merges]))
    made.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    made.decoder = decoders.ByteLevel()
    marks = [token for token, kind in zip(tokens, kinds, strict=True) if kind == 3]
    made.add_special_tokens([AddedToken(mark, special=True, normalized=False) for mark in marks])
    return made

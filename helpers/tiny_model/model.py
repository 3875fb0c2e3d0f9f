"""The forward pass of the tiny model, on the functions of `helpers` and nothing else.

Read `TinyModel.run`: embed, two layers of (norm, attend, add), a norm, the vocabulary. What it computes on
the way is kept in a `Trace`, so that a notebook can look at any of it. `TinyModel.generate` writes on, with
the keys and values of the past kept (notebook 06) or everything computed again, always the likeliest word or
one that is drawn (notebook 08).
"""

import os
import re
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from helpers import arrays as given
from helpers.attention import attention_weights, causal_mask, scaled_scores, softmax
from helpers.embeddings import embed, token_ids
from helpers.kv_cache import KVCache, part_of
from helpers.multi_head import layer_norm, merge_heads, split_heads
from helpers.sampling import next_probabilities, sample_next
from helpers.tiny_model.stored import arrays_in, refused

WEIGHTS = Path(__file__).with_name("weights.npz")


def look_at(record, **axes):
    """Turn these parts of a record into arrays; TypeError or ValueError when they do not fit one another."""
    for name, names in axes.items():
        object.__setattr__(record, name, given.array(name, getattr(record, name), names))
    sizes = {}                                              # name of an axis -> (array, which of its axes)
    for name, names in axes.items():
        for at, axis in enumerate(names):
            other, there = sizes.setdefault(axis, (name, at))
            given.same_size(axis, (other, getattr(record, other)), (name, getattr(record, name)), (there, at))


@dataclass(frozen=True)
class Layer:
    """The weights of one layer of attention.  Raises TypeError or ValueError when they do not fit."""

    W_q: np.ndarray       # (d_model, h * d_k)
    W_k: np.ndarray       # (d_model, h * d_k)
    W_v: np.ndarray       # (d_model, h * d_v)
    W_o: np.ndarray       # (h * d_v, d_model)
    gamma: np.ndarray     # (d_model,) the norm in front
    beta: np.ndarray      # (d_model,)

    def __post_init__(self):
        look_at(self, W_q=("d_model", "h·d_k"), W_k=("d_model", "h·d_k"), W_v=("d_model", "h·d_v"),
                W_o=("h·d_v", "d_model"), gamma=("d_model",), beta=("d_model",))


@dataclass(frozen=True)
class LayerTrace:
    """What one layer computed for one text of n tokens.

    With a cache n tokens are new, and K, V and the last axis of S and A hold those of the past in front.
    """

    X: np.ndarray         # (n, d_model)  what comes in
    N: np.ndarray         # (n, d_model)  the same after the norm: what Q, K and V are made from
    Q: np.ndarray         # (h, n, d_k)
    K: np.ndarray         # (h, n, d_k)
    V: np.ndarray         # (h, n, d_v)
    S: np.ndarray         # (h, n, n)     scaled scores, before the mask
    A: np.ndarray         # (h, n, n)     attention pattern, after mask and softmax
    Z: np.ndarray         # (h, n, d_v)   what each head takes away; zeros for a head that is switched off
    update: np.ndarray    # (n, d_model)  what the layer adds to X


@dataclass(frozen=True)
class Trace:
    """Everything the model computed for one text."""

    tokens: list          # n words, "<bos>" first
    ids: np.ndarray       # (n,)
    X: np.ndarray         # (n, d_model)  token and position embeddings, added
    layers: list          # a LayerTrace a layer
    X_out: np.ndarray     # (n, d_model)  after the last layer and the final norm
    logits: np.ndarray    # (n, V)
    vocab: list           # V words

    @property
    def probabilities(self):
        """(n, V): row i holds the shares of every word to come after token i."""
        return softmax(self.logits)

    def top(self, k=5, position=-1):
        """The k likeliest words to come after `position`, as (word, probability), likeliest first.

        position : 0 … n-1, or from the end, -1 … -n.  Raises TypeError or ValueError for any other.
        """
        k, n = given.count("k", k), len(self.logits)
        p = self.probabilities[given.count("position", position, least=-n, most=n - 1)]
        return [(self.vocab[i], float(p[i])) for i in np.argsort(-p, kind="stable")[:k]]


@dataclass(frozen=True)
class TinyModel:
    """The trained weights and the words they know.  Raises TypeError or ValueError when they do not fit."""

    vocab: list           # V words; the id of a word is its place
    E: np.ndarray         # (V, d_model)      token embeddings
    P: np.ndarray         # (n_max, d_model)  position embeddings, learned
    layers: list          # a Layer a layer
    gamma: np.ndarray     # (d_model,) the final norm
    beta: np.ndarray      # (d_model,)
    W_t: np.ndarray       # (d_model, V)      to the vocabulary
    n_heads: int

    def __post_init__(self):
        look_at(self, E=("V", "d_model"), P=("n_max", "d_model"), gamma=("d_model",), beta=("d_model",),
                W_t=("d_model", "V"))
        vocab = given.words("vocab", [given.text("every word in vocab", word)
                                      for word in given.listed("vocab", self.vocab, "words")], len(self.E))
        layers = given.listed("layers", self.layers, "Layer")
        n_heads = given.count("n_heads", self.n_heads, least=1)
        if not layers or not all(isinstance(layer, Layer) for layer in layers):
            raise TypeError(f"layers must be a list of at least one Layer, got {given.came(layers)}")
        for layer in layers:
            given.same_size("d_model", ("E", self.E), ("gamma of a layer", layer.gamma))
            for name, W in (("W_q", layer.W_q), ("W_v", layer.W_v)):
                if W.shape[1] % n_heads or name == "W_q" and not W.size:     # values may be cut to rank 0
                    raise ValueError(f"n_heads must divide the columns of {name}, got {n_heads}, {W.shape}")
        for name, value in (("vocab", vocab), ("n_heads", n_heads), ("layers", layers)):
            object.__setattr__(self, name, value)

    @property
    def word_to_id(self):
        """dict word -> id."""
        return {word: i for i, word in enumerate(self.vocab)}

    @property
    def d_model(self):
        return self.E.shape[1]

    @property
    def d_k(self):
        return self.layers[0].W_q.shape[1] // self.n_heads

    @property
    def d_v(self):
        return self.layers[0].W_v.shape[1] // self.n_heads

    @property
    def n_max(self):
        """The longest text, in tokens."""
        return len(self.P)

    def tokens(self, text, n_before=0):
        """The words of `text` (a string or a list of words) with "<bos>" in front.

        n_before : how many tokens the model has read already; if any, no "<bos>" is put in front.
        Raises TypeError for anything but words, ValueError for a word the model does not know (the message
        names the nearest) or too long a text.
        """
        n_before = given.size("n_before", n_before)
        if not isinstance(text, (str, list, tuple)):
            raise TypeError(f"text must be a string or a list of strings, got {given.came(text)}")
        words = text.split() if isinstance(text, str) else list(text)
        if n_before and (not words or words[0] == "<bos>"):
            raise ValueError(f"after the {n_before} tokens that are kept come the new words only, "
                             f"at least one, and no second '<bos>'; got {text!r}")
        if not n_before and (not words or words[0] != "<bos>"):
            words = ["<bos>", *words]
        for word in words:
            if not isinstance(word, str):
                raise TypeError("text must be a string or a list of strings, "
                                f"got the word {given.came(word)}")
            if word not in self.vocab:
                near = ", ".join(get_close_matches(word.lower(), self.vocab, n=3, cutoff=0.5))
                hint = f"the nearest it knows: {near}" if near else "model.vocab lists its words"
                raise ValueError(f"the tiny model does not know {word!r}; {hint}")
        if n_before + len(words) > self.n_max:
            raise ValueError(f"the tiny model reads at most {self.n_max} tokens, got "
                             + (f"{n_before} + " if n_before else "") + f"{len(words)}")
        return words

    def new_caches(self):
        """An empty KVCache for each layer, with room for the longest text."""
        return [KVCache(self.n_heads, self.n_max, self.d_k, self.d_v, self.E.dtype) for _ in self.layers]

    def run(self, text, without=(), caches=None):
        """Run the model over a text and keep what it computes.

        text : a string of known words, or a list of them.  without : (layer, head) pairs to switch off.
        caches : a KVCache a layer, as `new_caches` makes them. Then `text` is what follows the tokens they
        hold, one word or many; its keys and values are appended to them.
        Returns a Trace, of the new tokens when there are caches.  Raises ValueError for a word it does not
        know, too long a text, a missing head or caches that do not fit; the caches then stay as they were.
        """
        off = given.pairs("without", without, len(self.layers), self.n_heads)
        n_before = self._kept(caches)                                  # 0 without caches
        tokens = self.tokens(text, n_before)
        ids, end = token_ids(tokens, self.word_to_id), n_before + len(tokens)          # (n,)
        for cache in caches or ():
            cache.need_room(len(ids))                                  # all, before anything is written
        X_in = X = embed(ids, self.E) + self.P[n_before:end]           # (n, d_model)
        mask = causal_mask(len(ids), end)                              # (n, n), with caches (n, end)
        traces = []
        for number, layer in enumerate(self.layers):
            N = layer_norm(X, layer.gamma, layer.beta)                 # (n, d_model)
            Q, K, V = (split_heads(N @ W, self.n_heads)                # (n, h·d) -> (h, n, d)
                       for W in (layer.W_q, layer.W_k, layer.W_v))
            if caches is not None:
                K, V = caches[number].append(K, V, position=n_before)  # (h, n, d) -> (h, end, d)
            S = scaled_scores(Q, K)                                    # (h, n, n)
            A = attention_weights(S, mask)                             # (h, n, n)
            Z = A @ V                                                  # (h, n, d_v)
            Z[[head for where, head in off if where == number]] = 0
            update = merge_heads(Z) @ layer.W_o                        # (n, h·d_v) -> (n, d_model)
            traces.append(LayerTrace(X, N, Q, K, V, S, A, Z, update))
            X = X + update
        X_out = layer_norm(X, self.gamma, self.beta)                   # (n, d_model)
        return Trace(tokens, ids, X_in, traces, X_out, X_out @ self.W_t, self.vocab)

    def _kept(self, caches):
        """How many tokens the caches hold; ValueError when they are not this model's, or out of step."""
        if caches is None:
            return 0
        if not isinstance(caches, (list, tuple)) or not all(isinstance(cache, KVCache) for cache in caches):
            raise TypeError("caches must be a list of KVCaches, as new_caches() makes them, "
                            f"got {given.came(caches)}")
        if len(caches) != len(self.layers) or len(set(map(id, caches))) != len(caches):
            raise ValueError(f"caches must be one a layer: each of the {len(self.layers)} layers needs a "
                             f"cache of its own, got {len(set(map(id, caches)))}")
        for number, cache in enumerate(caches):
            if cache.sizes != (self.n_heads, self.d_k, self.d_v):
                raise ValueError(f"the cache of layer {number} must hold (heads, d_k, d_v) = "
                                 f"{(self.n_heads, self.d_k, self.d_v)} a token, got {cache.sizes}")
            if cache.n_tokens != caches[0].n_tokens:
                raise ValueError(f"the caches are out of step: layer 0 holds {caches[0].n_tokens} tokens, "
                                 f"layer {number} holds {cache.n_tokens}")
        return caches[0].n_tokens

    def generate(self, text, n_new, cache=True, chunk=None, rng=None, temperature=1.0, top_k=None,
                 top_p=None):
        """Write on: n_new more words, each the likeliest (greedy) or, with an rng, drawn by `sample_next`.

        text : a string of known words, or a list of them.  cache : keep keys and values; without, every step
        runs over the whole text again.  chunk : how many tokens of `text` the cache reads at a time; all of
        them by default.  rng, temperature, top_k, top_p : as in `sample_next`. "<bos>" is never written: it
        opens a text and does not come again.
        Returns the list of words, "<bos>" and `text` included.  Raises ValueError when text and new words
        exceed n_max, or for a setting without an rng, and what `sample_next` raises.
        """
        next_probabilities(np.zeros((1, 1)), temperature, top_k, top_p)         # refuses what cannot be
        if rng is None and (temperature, top_k, top_p) != (1.0, None, None):
            raise ValueError("temperature, top_k and top_p are for drawing words, which needs a generator: "
                             "rng=np.random.default_rng(0); without it the likeliest word is written")
        words, n_new, cache = self.tokens(text), given.size("n_new", n_new), given.flag("cache", cache)
        chunk = len(words) if chunk is None else given.count("chunk", chunk, least=1)
        if len(words) + n_new > self.n_max:
            raise ValueError(f"the tiny model reads at most {self.n_max} tokens, got {len(words)} + {n_new}")
        caches = self.new_caches() if cache else None
        n_kept = 0
        for _ in range(n_new):
            if cache:
                for start in range(n_kept, len(words), chunk):         # prefill; then one word a step
                    trace = self.run(words[start:start + chunk], caches=caches)
                n_kept = len(words)
            else:
                trace = self.run(words)
            logits = trace.logits[-1:]                                 # (1, V)
            logits[0, self.vocab.index("<bos>")] = -np.inf
            how = temperature, top_k, top_p
            words.append(self.vocab[logits.argmax() if rng is None else sample_next(logits, rng, *how)])
        return words


LAYER_NAMES = ("W_q", "W_k", "W_v", "W_o", "gamma", "beta")


def to_arrays(model):
    """The model as named arrays, the form in which it is saved."""
    tiny(model)
    arrays = {"vocab": np.array(model.vocab), "n_heads": np.array(model.n_heads), "E": model.E, "P": model.P,
              "gamma": model.gamma, "beta": model.beta, "W_t": model.W_t}
    for i, layer in enumerate(model.layers):
        arrays |= {f"layer{i}.{name}": getattr(layer, name) for name in LAYER_NAMES}
    return arrays


def from_arrays(arrays):
    """The model from named arrays, the inverse of `to_arrays`.

    Raises TypeError or ValueError when one is missing, holds NaN or infinity, or does not fit the others.
    """
    own = [part_of("arrays", arrays, name)
           for name in ("vocab", "E", "P", "gamma", "beta", "W_t", "n_heads")]
    numbers = (re.match(r"layer(\d+)\.", str(name)) for name in arrays)
    n_layers = 1 + max((int(number[1]) for number in numbers if number), default=0)
    layers = [Layer(*(part_of("arrays", arrays, f"layer{i}.{name}") for name in LAYER_NAMES))
              for i in range(n_layers)]
    vocab, E, P, gamma, beta, W_t, n_heads = own
    n_heads = n_heads[()] if isinstance(n_heads, np.ndarray) else n_heads       # saved, it is an array
    return TinyModel(vocab, E, P, layers, gamma, beta, W_t, n_heads)


def tiny(model):
    """The model; TypeError when it is no TinyModel."""
    if not isinstance(model, TinyModel):
        raise TypeError(f"model must be a TinyModel, as tiny_model.load() gives it, got {given.came(model)}")
    return model


def save(model, path):
    """Write the model to `path`, an .npz file, as float32."""
    path = file_name(path)
    with open(path, "wb") as file:
        np.savez(file, **as_float32(to_arrays(model)))


def as_float32(arrays):
    """The same dict with weights of float64 as float32; words and the number of heads as they are."""
    return {name: M.astype(np.float32) if M.dtype == np.float64 else M for name, M in arrays.items()}


def load(path=WEIGHTS):
    """The trained model, read from `path` (without pickle).

    The weights are stored as float32 and computed with as float64: what a notebook prints, rounded, is then
    the same on every machine.
    Raises FileNotFoundError when there is no such file, IsADirectoryError or PermissionError when it cannot
    be read, ValueError when it is damaged.
    """
    arrays = arrays_in(file_name(path))
    try:
        return from_arrays({name: as_stored(name, M) for name, M in arrays.items()})
    except (TypeError, ValueError) as err:
        raise refused(path, err) from err


def as_stored(name, M):
    """Words and the number of heads as they are, weights as float64; TypeError unless those are float32."""
    if name in ("vocab", "n_heads"):
        return M
    if M.dtype != np.float32:
        raise TypeError(f"{name} must hold float32, got {M.dtype}")
    return M.astype(np.float64)


def file_name(path):
    """The path; TypeError when it is none."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"path must be the name of a file, got {given.came(path)}")
    return path

"""The forward pass of SmolLM2-135M, on the functions of `helpers` or on yours.

Read `SmolLM2.layer`: norm, attention, add; norm, MLP, add; thirty times. Then `forward` (embed, the layers, a
last norm), `logits`, `generate` and `Chat`. `run` keeps what a notebook wants to look at. New against the
tiny model are `rms_norm`, `swiglu`, and positions that are turned into queries and keys (`rope`).
"""

import math
from dataclasses import dataclass

import numpy as np

from helpers import arrays as given
from helpers.kv_cache import KVCache
from helpers.sampling import next_probabilities
from helpers.smollm2.functions import Functions
from helpers.smollm2.tokenizer import Tokenizer, open_tokenizer
from helpers.smollm2.weights import Weights, as_folder, open_weights

CHUNK = 256                       # how many tokens are read at a time: bounds the memory of scores and logits
FEW = 24                          # rows, or fewer, that are multiplied by a part of a matrix at a time
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
END = "<|im_end|>"                # the mark with which an answer ends


def rms_norm(x, gamma, eps):
    """Each row divided by its root mean square, then scaled by gamma; no mean is subtracted, nothing added.

    x : (n, d), gamma : (d,).  Returns (n, d).  Zhang & Sennrich 2019, eq. 4.
    Raises TypeError or ValueError when they do not fit, or hold NaN or infinity.
    """
    x, gamma = given.array("x", x, ("n", "d")), given.array("gamma", gamma, ("d",))
    given.same_size("d", ("x", x), ("gamma", gamma))
    if x.shape[1] == 0:
        raise ValueError(f"x must have at least one column to take the mean of, got {x.shape}")
    if not 0 <= given.number("eps", eps) < math.inf:
        raise ValueError(f"eps must be at least 0 and finite, got {eps}")
    if eps == 0 and not x.any(axis=1).all():
        raise ValueError(f"eps must be above 0 where a row of x is 0 throughout, got {eps}")
    wide = given.widened(x)
    with np.errstate(over="ignore"):
        given.fits("the mean square of x", (wide * wide).mean(axis=1))
    given.fits("eps", np.float64(eps), wide.dtype)
    with np.errstate(over="ignore"):
        y = normed(wide, given.widened(gamma), eps)
    return given.fits("the norm of x, times gamma,", y, np.result_type(x, gamma))


def normed(x, gamma, eps):
    """`rms_norm` without a look at what comes: inside the model it has been made there."""
    mean_square = (x * x).mean(axis=-1, keepdims=True)      # (n, 1)
    return x / np.sqrt(mean_square + eps) * gamma           # (n, d)


def product(x, W):
    """x @ W, computed as (Wᵀ xᵀ)ᵀ: for W as the weights lie on the disk, BLAS is a quarter faster that way.

    BLAS copies a large matrix before it multiplies, which for few rows takes as long as the product itself.
    Small ones OpenBLAS (on AVX-512) takes as they lie, so few rows get Wᵀ in parts: up to twice as fast. One
    row gets it row by row, in the order in which it lies in memory, which is what it waits for.

    x : (n, d_in), W : (d_in, d_out).  Returns (n, d_out).
    """
    W_t, n = W.T, len(x)                                    # (d_out, d_in)
    part = 1 if n == 1 else FEW
    if n <= FEW and W_t.flags.c_contiguous and len(W_t) % part == 0:
        parts = W_t.reshape(-1, part, W_t.shape[1])         # (d_out / part, part, d_in) a view
        return (parts @ x.T).reshape(len(W_t), n).T         # (…, part, d_in) @ (d_in, n) -> (n, d_out)
    return (W_t @ x.T).T                                    # (d_out, d_in) @ (d_in, n) -> (n, d_out)


def silu(z):
    """z times its logistic sigmoid, element by element; written with tanh, which cannot overflow."""
    return z * (0.5 + 0.5 * np.tanh(0.5 * z))


def swiglu(x, W_gate_up, W_down):
    """The MLP: silu(x W_gate) lets through what it will of x W_up; W_down brings it back.

    x : (n, d), W_gate_up : (d, 2 * d_ff), W_gate and W_up side by side, W_down : (d_ff, d).  Returns (n, d).
    Shazeer 2020, eq. 6.  Raises TypeError or ValueError when they do not fit; the values of the
    weights are looked at only where the result is not finite.
    """
    x = given.array("x", x, ("n", "d"))
    W_gate_up = given.array("W_gate_up", W_gate_up, ("d", "2·d_ff"), holds=None)
    W_down = given.array("W_down", W_down, ("d_ff", "d"), holds=None)
    for W, axis in (("W_gate_up", W_gate_up), 0), (("W_down", W_down), 1):
        given.same_size("d", ("x", x), W, (1, axis))
    if W_gate_up.shape[1] != 2 * len(W_down) or not len(W_down):
        raise ValueError("W_gate_up must have twice as many columns as W_down has rows, at least one, got "
                         f"{W_gate_up.shape} and {W_down.shape}")
    with np.errstate(over="ignore", invalid="ignore"):
        y = gated(x, W_gate_up, W_down)
    if not np.isfinite(y).all():
        given.look_at_values("W_gate_up", W_gate_up)
        given.look_at_values("W_down", W_down)
    return given.fits("what the MLP gives", y)


def gated(x, W_gate_up, W_down):
    """`swiglu` without a look at what comes."""
    both, d_ff = product(x, W_gate_up), len(W_down)         # (n, d) @ (d, 2·d_ff) -> (n, 2·d_ff)
    gate, up = both[:, :d_ff], both[:, d_ff:]               # (n, d_ff) twice
    return product(silu(gate) * up, W_down)                 # (n, d_ff) @ (d_ff, d) -> (n, d)


@dataclass(frozen=True)
class Head:
    """The weights of one head. Heads of a group share W_k and W_v."""

    W_q: np.ndarray       # (d_model, d_k)
    W_k: np.ndarray       # (d_model, d_k)
    W_v: np.ndarray       # (d_model, d_v)
    W_o: np.ndarray       # (d_v, d_model)  the head's rows of W_o


@dataclass(frozen=True)
class LayerTrace:
    """What one layer computed for one text of n tokens."""

    X: np.ndarray         # (n, d_model)  what comes in
    N: np.ndarray         # (n, d_model)  the same after the norm: what Q, K and V are made from
    Q: np.ndarray         # (h, n, d_k)   turned by rope
    K: np.ndarray         # (g, n, d_k)   turned by rope
    V: np.ndarray         # (g, n, d_v)
    A: np.ndarray         # (h, n, n)     attention pattern, after mask and softmax
    Z: np.ndarray         # (h, n, d_v)   what each head takes away; zeros for a head that is switched off
    update: np.ndarray    # (n, d_model)  what attention adds to X
    mlp: np.ndarray       # (n, d_model)  what the MLP adds to that


@dataclass(frozen=True)
class Trace:
    """What the model computed for one text."""

    tokens: list          # n strings, the text of each token
    ids: np.ndarray       # (n,)
    layers: dict          # number of a layer -> its LayerTrace
    X_out: np.ndarray     # (n, d_model)  after the last layer and the final norm
    without: list         # the (layer, head) pairs that were switched off


@dataclass(frozen=True, repr=False)
class SmolLM2:
    """Weights, tokenizer and the functions it runs on."""

    weights: Weights
    tokenizer: Tokenizer
    functions: Functions

    @property
    def config(self):
        return self.weights.config

    def __repr__(self):
        c, own = self.config, ", ".join(self.functions.own)
        return (f"<SmolLM2: {c.n_layers} layers of {c.n_heads} heads, {c.n_kv_heads} of keys and values"
                + f"; on your {own}" * bool(own) + ">")

    def use(self, **functions):
        """The same model on your functions; all weights are shared, this model stays as it is.

        functions : name -> function, for example rope=my_rope. What can be replaced, and when it then runs,
        says `helpers.smollm2.functions`; what was put in before stays in.
        Raises ValueError for a name that cannot be replaced.
        """
        return SmolLM2(self.weights, self.tokenizer, Functions(**self.functions.own | functions))

    def head(self, layer, head):
        """The weights of one head, a `Head` of views."""
        self._switched([(layer, head)])
        c, d = self.config, self.config.d_head
        group = head // (c.n_heads // c.n_kv_heads)
        first = [head, c.n_heads + group, c.n_heads + c.n_kv_heads + group]     # places in W_qkv
        W_qkv = self.weights.W_qkv[layer]
        return Head(*(W_qkv[:, i * d:(i + 1) * d] for i in first),
                    self.weights.W_o[layer, head * d:(head + 1) * d])

    # the forward pass

    def layer(self, i, X, positions, cache, off=(), need_pattern=False):
        """One layer: X (n, d_model) to (n, d_model), and what it computed on the way, a LayerTrace.

        cache : a KVCache, or a list of n where each row is the newest token of a text of its own.
        """
        c, w, f = self.config, self.weights, self.functions
        N = normed(X, w.attention_norm[i], c.norm_eps)                          # (n, d_model)
        all_of_them = np.ascontiguousarray(product(N, w.W_qkv[i]))              # (n, (h + 2g)·d_k)
        heads = f.split_heads(all_of_them, c.n_heads + 2 * c.n_kv_heads)        # (h + 2g, n, d_k)
        V = heads[-c.n_kv_heads:]                                               # (g, n, d_v)
        turned = f.rope(heads[:-c.n_kv_heads], positions, c.rope_base)          # (h + g, n, d_k)
        Q, K = turned[:c.n_heads], turned[c.n_heads:]
        if isinstance(cache, list):
            Z, A = self._attend_each(Q, K, V, positions, cache), None           # (h, n, d_v)
        else:
            K, V = cache.append(K, V, position=positions[0])                    # (g, all so far, d)
            Z, A = f.attend(Q, K, V, need_pattern)                              # (h, n, d_v)
        if off:
            Z = Z.copy()
            Z[list(off)] = 0
        update = product(f.merge_heads(Z), w.W_o[i])                            # (n, h·d_v) -> (n, d_model)
        M = normed(X + update, w.mlp_norm[i], c.norm_eps)                       # (n, d_model)
        mlp = gated(M, w.W_gate_up[i], w.W_down[i])                             # (n, d_model)
        return X + update + mlp, LayerTrace(X, N, Q, K, V, A, Z, update, mlp)

    def _attend_each(self, Q, K, V, positions, caches):
        """Z (h, n, d_v), where each of n queries reads the past in a cache of its own."""
        Z = []
        for j, cache in enumerate(caches):
            q, k, v = (M[:, j:j + 1] for M in (Q, K, V))                        # (h or g, 1, d)
            Z.append(self.functions.attend(q, *cache.append(k, v, position=positions[j]))[0])
        return np.concatenate(Z, axis=1)

    def forward(self, ids, caches, without=(), keep=None):
        """The tokens that follow those in the caches, through all layers and the final norm: (n, d_model).

        keep : a dict that receives the LayerTrace of the layers whose numbers are its keys.
        Raises TypeError or ValueError for ids, caches or numbers of layers that are not the model's.
        """
        ids, off, keep = self.ids(ids), self._switched(without), self._layers(keep)
        start = self._kept(caches)
        positions = np.arange(start, start + len(ids))
        X = self.functions.embed(ids, self.weights.E)                           # (n, d_model)
        return self._through(0, X, positions, caches, off, keep)

    def _through(self, first, X, positions, caches, off, keep):
        """X, which comes into layer `first`, through that and all above and the final norm: (n, d_model)."""
        for i in range(first, self.config.n_layers):
            X, trace = self.layer(i, X, positions, caches[i], off.get(i, ()), need_pattern=i in keep)
            if i in keep:
                keep[i] = trace
        return normed(X, self.weights.final_norm, self.config.norm_eps)

    def read(self, ids, caches, without=()):
        """Read many tokens, some at a time; yields X_out (m, d_model) of each part."""
        step, without = 1 if self.functions.one_query_at_a_time else CHUNK, pairs(without)
        for start in range(0, len(ids), step):
            yield self.forward(ids[start:start + step], caches, without)

    def to_vocabulary(self, X_out):
        """(m, d_model) -> logits (m, V): the embedding matrix again, transposed."""
        X_out = given.shaped("X_out", X_out, ("m", "d_model"), (None, self.config.d_model))
        return product(X_out, self.weights.E.T)

    def new_caches(self, n_max):
        """An empty KVCache for each layer, with room for n_max tokens."""
        c = self.config
        return [KVCache(c.n_kv_heads, n_max, c.d_head) for _ in range(c.n_layers)]

    # what a notebook asks for

    def ids(self, text):
        """The ids of a text, a string or ids already, (n,).

        Raises TypeError or ValueError for what is neither, for no token, an unknown id or too long a text.
        """
        if isinstance(text, str):
            ids = self.tokenizer.encode(text)
        else:
            try:
                ids = np.asarray(text)
            except ValueError:                              # rows that differ in length
                ids = np.array(None)
        if ids.size and (ids.ndim != 1 or ids.dtype.kind not in "iu"):
            raise TypeError(f"text must be a string or whole numbers of shape (n,), got {given.came(text)}")
        if not ids.size:
            raise ValueError('text must hold at least one token, got none; "<|endoftext|>" stands for the '
                             "start of one")
        if ids.min() < 0 or ids.max() >= self.config.n_vocab:
            raise ValueError(f"every id in text must lie in 0 … {self.config.n_vocab - 1}, got "
                             f"{ids.min() if ids.min() < 0 else ids.max()}")
        self._fits(len(ids))
        return ids.astype(np.int64)

    def logits(self, text, without=()):
        """(n, V) float32: row i says what may follow token i."""
        ids = self.ids(text)
        parts = self.read(ids, self.new_caches(len(ids)), without)
        return np.concatenate([self.to_vocabulary(X_out) for X_out in parts])

    def next_tokens(self, text, k=5, without=()):
        """The k likeliest tokens to follow, as (text, probability), likeliest first."""
        ids, k = self.ids(text), given.count("k", k, 1)
        for X_out in self.read(ids, self.new_caches(len(ids)), without):        # noqa: B007  the last counts
            pass
        z = self.to_vocabulary(X_out[-1:])[0].astype(np.float64)                # (V,)
        p = np.exp(z - z.max())
        best = np.argsort(-z, kind="stable")[:k]
        return [(self.tokenizer.decode([i]), float(p[i] / p.sum())) for i in best]

    def losses(self, text, without=()):
        """How surprised the model is by each token but the first, (n - 1,) float64, in nats.

        without : (layer, head) pairs to switch off.
        """
        ids = self.ids(text)
        found, start = [], 0
        for X_out in self.read(ids, self.new_caches(len(ids)), without):
            z = self.to_vocabulary(X_out)                                       # (m, V)
            right = ids[start + 1:start + 1 + len(z)]                           # the last has none to come
            z_right = z[np.arange(len(right)), right].astype(np.float64)        # (m,) or one fewer
            top = z.max(axis=-1, keepdims=True)                                 # (m, 1)
            total = np.exp(z - top).sum(axis=-1, dtype=np.float64)              # (m,)
            found.append((top[:, 0] + np.log(total))[:len(right)] - z_right)
            start += len(z)
        return np.concatenate(found)

    def run(self, text, layers=None, without=()):
        """Run over a text at once and keep what the layers computed, a Trace.

        layers : the numbers of those to keep; all by default, which for n tokens takes about
        30 · (9 n² + 3840 n) · 4 bytes.  without : (layer, head) pairs to switch off.
        """
        ids, without = self.ids(text), pairs(without)
        keep = self._layers(range(self.config.n_layers) if layers is None else layers)
        X_out = self.forward(ids, self.new_caches(len(ids)), without, keep)
        return Trace(self.tokenizer.tokens(ids), ids, keep, X_out, without)

    def rerun(self, seen, without, layers=None):
        """A run of this model once more, with some heads off as well; what `run` gives, and sooner.

        What lies below the first of these heads stays as it was, so it is taken from `seen`, a Trace in which
        that head's layer is kept.  without, layers : as for `run`.
        Raises TypeError when `seen` is no Trace, ValueError when it does not keep a layer that is needed.
        """
        if not isinstance(seen, Trace):
            raise TypeError(f"seen must be a Trace, as run gives it, got {given.came(seen)}")
        L, without = self.config.n_layers, pairs(without)
        keep = self._layers(range(L) if layers is None else layers)
        first = min(self._switched(without), default=L)
        for i in [*keep, first]:
            if i <= first and i < L and i not in seen.layers:
                raise ValueError(f"seen must keep layer {i}, got one that keeps {sorted(seen.layers)}")
        keep.update((i, seen.layers[i]) for i in keep if i < first)
        without, X_out = seen.without + without, seen.X_out
        if first < L:
            X, caches = seen.layers[first].X, self.new_caches(len(seen.ids))
            X_out = self._through(first, X, np.arange(len(X)), caches, self._switched(without), keep)
        return Trace(seen.tokens, seen.ids, keep, X_out, without)

    def generate_ids(self, text, n_new=100, temperature=0.0, top_k=None, top_p=None, rng=None, cache=True,
                     without=(), stop=True):
        """Write on, token by token: yields at most n_new ids, as soon as each is chosen.

        temperature, top_k, top_p, rng : as for `sample_next`; the default is greedy.  cache : keep keys and
        values; without, every step reads the whole text again.  stop : end at the mark <|im_end|>.
        """
        ids, n_new, without = self.ids(text), given.size("n_new", n_new), pairs(without)
        cache, stop = given.flag("cache", cache), given.flag("stop", stop)
        self._fits(len(ids), n_new)
        self._switched(without)                             # what makes no sense is said now, not later
        caches = self.new_caches(len(ids) + n_new)
        return self._continue(ids, n_new, caches, settings_of(temperature, top_k, top_p), drawer(rng), cache,
                              without, stop)

    def _continue(self, ids, n_new, caches, settings, rng, cache=True, without=(), stop=True):
        """The loop behind `generate_ids` and `Chat`: `ids` are read, then each new token is."""
        new, end = list(ids), self.tokenizer.id_of(END) if stop else None
        for _ in range(n_new):
            if not cache:
                caches = self.new_caches(len(new))
            for X_out in self.read(np.array(new), caches, without):             # noqa: B007  the last counts
                pass
            chosen = self.functions.next_token(self.to_vocabulary(X_out[-1:]), rng, *settings)
            if chosen == end:
                return
            yield chosen
            new = [chosen] if cache else [*new, chosen]

    def generate(self, text, n_new=100, **settings):
        """Write on, and yield the new text piece by piece, never part of a character.

        settings : those of `generate_ids`.  `"".join(model.generate(text))` is all of it.
        """
        return self.tokenizer.stream(self.generate_ids(text, n_new, **settings))

    def chat(self, system=SYSTEM, n_max=2048):
        """A conversation, a `Chat`. system : what the model is told first; n_max : its length in tokens."""
        return Chat(self, system, n_max)

    def _kept(self, caches):
        """How many tokens the caches hold; TypeError or ValueError when they are not this model's."""
        c, caches = self.config, given.listed("caches", caches, "KVCache, as new_caches makes them")
        for cache in caches:
            if not isinstance(cache, KVCache):
                raise TypeError(f"caches must be a list of KVCache, got {given.came(cache)} in it")
        sizes, fits = {cache.sizes for cache in caches}, (c.n_kv_heads, c.d_head, c.d_head)
        n_own = len(set(map(id, caches)))
        if not n_own == len(caches) == c.n_layers or sizes != {fits}:
            raise ValueError(f"caches must be one of its own for each of {c.n_layers} layers, with (heads, "
                             f"d_k, d_v) = {fits}; got {n_own}, with {sorted(sizes)}")
        held = [cache.n_tokens for cache in caches]
        if len(set(held)) > 1:
            raise ValueError(f"caches must all hold the same number of tokens, got {held}")
        return held[0]

    def _layers(self, layers):
        """A dict with these numbers of layers for its keys: itself where it is one, {} for None."""
        if layers is None:
            return {}
        known = isinstance(layers, dict)
        numbers = layers if known else given.listed("layers", layers, "whole numbers, such as [16]", False)
        for i in numbers:
            given.count("the number of each of the layers", i, most=self.config.n_layers - 1)
        return layers if known else dict.fromkeys(numbers)

    def _switched(self, without):
        """dict layer -> heads to switch off; ValueError for one that is not there."""
        off = {}
        for layer, head in pairs(without):
            layer, head = given.count("layer", layer, -math.inf), given.count("head", head, -math.inf)
            if not (0 <= layer < self.config.n_layers and 0 <= head < self.config.n_heads):
                raise ValueError(f"there is no layer {layer}, head {head}: {self.config.n_layers} layers of "
                                 f"{self.config.n_heads} heads, counted from 0")
            off.setdefault(layer, []).append(head)
        return off

    def _fits(self, n, n_new=0):
        if n + n_new > self.config.n_max:
            raise ValueError(f"the model reads at most {self.config.n_max} tokens, got {n}"
                             + (f" + {n_new}" if n_new else ""))


def pairs(without):
    """The (layer, head) pairs as a list; TypeError for what are none."""
    try:
        return [(layer, head) for layer, head in without]
    except (TypeError, ValueError):
        raise TypeError("without must be a list of pairs of layer and head, such as [(16, 0)], "
                        f"got {without!r}") from None


def settings_of(temperature, top_k, top_p):
    """The settings of `sample_next`, once looked at: each raises what `next_probabilities` raises."""
    next_probabilities([[0.0]], temperature, top_k, top_p)
    return temperature, top_k, top_p


def drawer(rng):
    """The generator to draw with, a new one of seed 0 for None; TypeError for anything else."""
    return np.random.default_rng(0) if rng is None else given.generator("rng", rng)


def known(model):
    """The model; TypeError when it is none."""
    if not isinstance(model, SmolLM2):
        raise TypeError(f"model must be a SmolLM2, as smollm2.load() gives it, got {given.came(model)}")
    return model


def chat_text(role, text):
    """One turn of a conversation, in the form the model was trained on."""
    return f"<|im_start|>{role}\n{text}{END}\n"


class Chat:
    """A conversation. What has been said stays in the caches: each turn reads only what is new."""

    def __init__(self, model, system=SYSTEM, n_max=2048):
        n_max = given.count("n_max", n_max, 1, most=known(model).config.n_max)
        self.model, self.n_max, self.caches = model, n_max, model.new_caches(n_max)
        system = chat_text("system", given.text("system", system))
        self.ids = list(model.tokenizer.encode(system))     # all that has been said
        self._answering = None

    @property
    def text(self):
        """All that has been said, marks included."""
        return self.model.tokenizer.decode(self.ids)

    def say(self, text, n_new=200, temperature=0.0, top_k=None, top_p=None, rng=None):
        """Say something; yields the answer piece by piece, of n_new tokens at most.

        `"".join(chat.say(text))` is all of it. Nothing has been said until its first piece is asked for.
        Raises ValueError when there is no room left for it and for the answer; nothing has then been said.
        """
        text, settings, rng = given.text("text", text), settings_of(temperature, top_k, top_p), drawer(rng)
        if self._answering:
            self._answering.close()                         # an answer nobody heard out ends here
        new = list(self.model.tokenizer.encode(chat_text("user", text) + "<|im_start|>assistant\n"))
        needed = len(self.ids) + len(new) + given.size("n_new", n_new)
        if needed > self.n_max:
            raise ValueError(f"this conversation holds {self.n_max} tokens; with the answer it would be "
                             f"{needed}: begin a new one, or one with a larger n_max")
        self._answering = self._answer(new, n_new, settings, rng)
        return self._answering

    def _answer(self, new, n_new, settings, rng):
        self.ids += new                                     # one that is never begun leaves no trace
        if len({cache.n_tokens for cache in self.caches}) > 1:
            self.caches = self.model.new_caches(self.n_max) # out of step: it was interrupted between layers
        answer, unread = [], self.ids[self.caches[0].n_tokens:]
        chosen = self.model._continue(unread, n_new, self.caches, settings, rng)
        try:
            yield from self.model.tokenizer.stream(answer.append(i) or i for i in chosen)
        finally:
            self.ids += [*answer, *self.model.tokenizer.encode(f"{END}\n")]


def load(folder=None):
    """The model in `folder`, by default the one that `python3 course.py model` fetches.

    Raises FileNotFoundError when it is not there, ValueError when it is damaged, ModuleNotFoundError without
    the package tokenizers; each in one sentence that says what to do.  TypeError when `folder` is no path.
    """
    folder = as_folder(folder)
    return SmolLM2(open_weights(folder), open_tokenizer(folder), Functions())

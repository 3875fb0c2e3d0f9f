"""Keys and values of the past, kept instead of computed again (notebook 06).

Read `kv_cache_step` (one token of one head), `generate_with_cache` (a whole small model), `KVCache` (the
same with room made beforehand, as the course's models use it), and `cache_bytes` (what it costs; with
latents, `latent_cache_bytes`).
"""

from collections.abc import Mapping

import numpy as np

from helpers.arrays import added, array, came, count, fits, listed, room, same_size, size
from helpers.attention import last_query_attention, times


def kv_cache_step(x, W_q, W_k, W_v, cache):
    """One head, one new token: append its key and value, then let its query read all of them.

    x : (d_model,), W_q, W_k : (d_model, d_k), W_v : (d_model, d_v), cache : None or (K (t, d_k), V (t, d_v)).
    Returns z (d_v,) and the new cache (K (t+1, d_k), V (t+1, d_v)); the cache given is left as it was, so
    that two continuations can grow from it.  Raises ValueError when a shape does not fit.
    """
    x = array("x", x, ("d_model",))
    W_q, W_k = array("W_q", W_q, ("d_model", "d_k")), array("W_k", W_k, ("d_model", "d_k"))
    W_v = array("W_v", W_v, ("d_model", "d_v"))
    for name, W in (("W_q", W_q), ("W_k", W_k), ("W_v", W_v)):
        same_size("d_model", ("x", x), (name, W), axis=(0, 0))
    same_size("d_k", ("W_q", W_q), ("W_k", W_k))
    q, k, v = (times("x", x, name, W) for name, W in (("W_q", W_q), ("W_k", W_k), ("W_v", W_v)))
    K, V = k[None], v[None]                                 # (1, d_k), (1, d_v)
    if cache is not None:
        if not isinstance(cache, (tuple, list)) or len(cache) != 2:
            raise TypeError(f"cache must be None or a pair (K, V), got {type(cache).__name__}")
        K_past, V_past = array("cached K", cache[0], ("t", "d_k")), array("cached V", cache[1], ("t", "d_v"))
        same_size("t", ("cached K", K_past), ("cached V", V_past), axis=(0, 0))
        same_size("d_k", ("cached K", K_past), ("W_k", W_k))
        same_size("d_v", ("cached V", V_past), ("W_v", W_v))
        K, V = np.concatenate([K_past, K]), np.concatenate([V_past, V])     # (t+1, d_k), (t+1, d_v)
    return last_query_attention(q, K, V), (K, V)


def generate_with_cache(prompt_ids, n_new, model):
    """Greedy generation by a small attention-only model, one token at a time, with a cache a layer.

    prompt_ids : at least one id, n_new : how many to add, model : dict with E (V, d), P (n_max, d) and
    layers, a list of dicts W_q, W_k, W_v, W_o (one causal head each, residual, no norm); logits are x @ E.T.
    Returns the list of all ids, prompt included.  Raises ValueError when prompt and new tokens exceed n_max,
    or a part of the model is missing or does not fit.
    """
    E, P, layers = (part_of("model", model, name) for name in ("E", "P", "layers"))
    E, P = array("E", E, ("V", "d")), array("P", P, ("n_max", "d"))
    same_size("d", ("E", E), ("P", P))
    if not isinstance(layers, (list, tuple)):
        raise TypeError(f"layers must be a list of dicts, got {type(layers).__name__}")
    ids = [count("prompt_ids", i) for i in listed("prompt_ids", prompt_ids, "ids")]
    n_new = count("n_new", n_new)
    if not ids:
        raise ValueError("prompt_ids must hold at least one id, got none")
    if max(ids) >= len(E):
        raise ValueError(f"every id must lie in 0 … {len(E) - 1}, got {came(max(ids))}")
    if len(ids) + n_new > len(P):
        raise ValueError(f"{len(ids)} + {came(n_new)} tokens do not fit into P, which has {len(P)} positions")
    layers = [[array(name, part_of("each layer", layer, name), ("·", "·"))
               for name in ("W_q", "W_k", "W_v", "W_o")] for layer in layers]
    for *_, W_v, W_o in layers:
        same_size("d_v", ("W_v", W_v), ("W_o", W_o), axis=(1, 0))
        same_size("d", ("E", E), ("W_o", W_o))
    caches = [None] * len(layers)
    n_prompt = len(ids)
    for position in range(n_prompt + n_new - 1):
        x = added("the sum of E and P", E[ids[position]], P[position])    # (d,)
        for i, (*weights, W_o) in enumerate(layers):
            z, caches[i] = kv_cache_step(x, *weights, caches[i])
            update = times("z", z, "W_o", W_o)              # (d_v,) @ (d_v, d) -> (d,)
            x = added("what leaves a layer", x, update)
        if position >= n_prompt - 1:
            ids.append(int(np.argmax(times("x", x, "E.T", E.T))))         # (d,) @ (d, V) -> (V,)
    return ids


def part_of(name, thing, key):
    """thing[key]; TypeError or ValueError when it is no dict or has no such key."""
    if not isinstance(thing, Mapping):
        raise TypeError(f"{name} must be a dict, got {type(thing).__name__}")
    if key not in thing:
        raise ValueError(f"{name} must have a part {key!r}, it has {', '.join(map(repr, thing)) or 'none'}")
    return thing[key]


class KVCache:
    """Room for the keys and values of one layer, made once and filled from the front.

    Holds at most n_max tokens for n_kv_heads heads. `append` writes new rows where the old ones end and
    gives back all rows so far, without copying them; `np.concatenate` would copy the whole past for every
    token. dtype : float16, float32 or float64, in which they are kept.
    """

    def __init__(self, n_kv_heads, n_max, d_k, d_v=None, dtype=np.float32):
        n_kv_heads, n_max = size("n_kv_heads", n_kv_heads, 1), size("n_max", n_max, 1)
        d_k = size("d_k", d_k, 1)
        d_v = d_k if d_v is None else size("d_v", d_v, 1)
        room(n_kv_heads=n_kv_heads, n_max=n_max, d_k=d_k)
        room(n_kv_heads=n_kv_heads, n_max=n_max, d_v=d_v)
        try:
            kept = np.dtype(dtype)
        except TypeError:
            kept = None
        if kept is None or dtype is None or kept not in (np.float16, np.float32, np.float64):
            raise TypeError(f"dtype must be float16, float32 or float64, got {came(dtype)}")
        self._K = np.empty((n_kv_heads, n_max, d_k), kept)
        self._V = np.empty((n_kv_heads, n_max, d_v), kept)
        self.n_tokens = 0

    @property
    def sizes(self):
        """(n_kv_heads, d_k, d_v): what every token takes."""
        return self._K.shape[0], self._K.shape[2], self._V.shape[2]

    @property
    def n_max(self):
        """The most tokens it can hold."""
        return self._K.shape[1]

    @property
    def nbytes(self):
        """Bytes of the keys and values held so far; the room made for them is larger."""
        return self.K.nbytes + self.V.nbytes

    @property
    def K(self):
        """(n_kv_heads, n_tokens, d_k), to read only."""
        return self._read_only(self._K)

    @property
    def V(self):
        """(n_kv_heads, n_tokens, d_v), to read only."""
        return self._read_only(self._V)

    def _read_only(self, room):
        rows = room[:, :self.n_tokens]
        rows.flags.writeable = False
        return rows

    def need_room(self, m):
        """ValueError when there is no room for m more tokens."""
        m = count("m", m)
        if self.n_tokens + m > self.n_max:
            raise ValueError(f"the cache is full: it holds {self.n_tokens} of {self.n_max} tokens, "
                             f"{came(m)} more came")

    def append(self, K, V, position=None):
        """Keep the keys and values of m new tokens; returns all K and V so far.

        K : (n_kv_heads, m, d_k), V : (n_kv_heads, m, d_v).  position : where the first of them stands in the
        text, if the caller knows; it must be the number of tokens kept so far.
        Raises ValueError when a shape does not fit, the position is out of step, or there is no room left;
        the cache then stays as it was.
        """
        K, V = array("K", K, ("n_kv_heads", "m", "d_k")), array("V", V, ("n_kv_heads", "m", "d_v"))
        m = same_size("m", ("K", K), ("V", V), axis=(1, 1))
        n_kv_heads, d_k, d_v = self.sizes
        for name, new, d in (("K", K, d_k), ("V", V, d_v)):
            if (new.shape[0], new.shape[2]) != (n_kv_heads, d):
                raise ValueError(f"{name} must have shape ({n_kv_heads}, m, {d}) for this cache, "
                                 f"got {new.shape}")
        if position is not None and count("position", position) != self.n_tokens:
            raise ValueError(f"the next position of this cache is {self.n_tokens}, got {came(position)}")
        self.need_room(m)
        if not K.dtype == V.dtype == self._K.dtype:
            K, V = fits("K", K, self._K.dtype), fits("V", V, self._V.dtype)
        end = self.n_tokens + m
        self._K[:, self.n_tokens:end], self._V[:, self.n_tokens:end] = K, V
        self.n_tokens = end
        return self.K, self.V


def cache_bytes(n_layers, n_heads, n_kv_heads, d_head, n_tokens, bytes_per_value=2, batch=1):
    """Bytes of all keys and values: two rows of d_head per layer, per KV head, per token, per sequence.

    n_heads does not enter: queries are not kept. It stands here because tables of models list it beside
    n_kv_heads. Returns an exact int, for NumPy integers too.  Raises ValueError when n_kv_heads does not
    divide n_heads.
    """
    n_layers, n_heads = count("n_layers", n_layers), count("n_heads", n_heads, 1)
    n_kv_heads, d_head = count("n_kv_heads", n_kv_heads, 1), count("d_head", d_head)
    n_tokens, batch = count("n_tokens", n_tokens), count("batch", batch)
    bytes_per_value = count("bytes_per_value", bytes_per_value, 1)
    if n_heads % n_kv_heads:
        raise ValueError(f"n_kv_heads must divide n_heads, got {came(n_kv_heads)} and {came(n_heads)}")
    return 2 * n_layers * n_kv_heads * d_head * n_tokens * bytes_per_value * batch


def latent_cache_bytes(n_layers, d_c, d_r, n_tokens, bytes_per_value=2, batch=1):
    """Bytes of a cache of latents: d_c numbers for all heads, and a rotary key of d_r, per token and layer.

    Returns an exact int.  DeepSeek-AI 2024 (DeepSeek-V2), table 1.
    """
    sizes = {"n_layers": n_layers, "d_c": d_c, "d_r": d_r, "n_tokens": n_tokens, "batch": batch}
    n_layers, d_c, d_r, n_tokens, batch = (count(name, size) for name, size in sizes.items())
    return n_layers * (d_c + d_r) * n_tokens * count("bytes_per_value", bytes_per_value, 1) * batch

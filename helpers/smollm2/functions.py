"""Whose functions the language model runs on: the helpers', or yours in their place.

Read `WHEN` (what can be replaced, what it is called with, and when), then `Functions.attend`, which decides
how your functions for attention work together. What you replace is really what runs: `print(model.functions)`
counts. Your functions get what the exercises say they get, and nothing else.
"""

from collections import Counter

import numpy as np

from helpers import attention, embeddings, kv_sharing, multi_head, sampling

# name: (the helpers' function, what it is called with, and when). Prefill: several queries; decode: one.
WHEN = {
    "embed": (embeddings.embed, "ids (n,), E (V, 576): at the start"),
    "split_heads": (multi_head.split_heads, "(n, 960), 15: all q, k and v of a layer"),
    "rope": (embeddings.rope, "rows (12·n, 64) of q and k, positions, base"),
    "scores": (attention.scores, "a head's (n_q, 64), (n_k, 64): prefill"),
    "scaled_scores": (attention.scaled_scores, "a head's (n_q, 64), (n_k, 64): prefill"),
    "causal_mask": (attention.causal_mask, "n_q, n_k: prefill"),
    "softmax": (attention.softmax, "masked scores (9, n_q, n_k): prefill"),
    "attention_weights": (attention.attention_weights, "scores (9, n_q, n_k), mask: prefill"),
    "grouped_query_attention": (kv_sharing.grouped_query_attention, "(9, 1, 64), twice (3, n_k, 64): decode"),
    "merge_heads": (multi_head.merge_heads, "(9, n, 64): what the heads take away"),
    "sample_next": (sampling.sample_next, "logits (1, V), rng, settings: the choice"),
}
PARTS = ("scores", "scaled_scores", "causal_mask", "softmax", "attention_weights")
INSIDE = {"scores": "scaled_scores", "softmax": "attention_weights"}     # the second calls the first


class Functions:
    """The functions of one model. own : name -> function, in place of the helpers'.

    | what you give | one query (decode) | several queries (prefill) |
    |---|---|---|
    | nothing | the helpers' `grouped_query_attention` | the helpers' `attention`, for patterns their parts |
    | `grouped_query_attention` | yours | yours, one query after the other: it knows no mask |
    | parts: `scaled_scores`, `causal_mask` … | your parts | your parts |
    | both | your `grouped_query_attention` | your parts |

    Raises ValueError for a name that cannot be replaced and TypeError for what is no function.
    """

    def __init__(self, **own):
        for name, function in own.items():
            if name not in WHEN:
                hint = " (its base is fixed at 10000, this model's is 100000)" * (name == "rope_attention")
                raise ValueError(f"{name} is no part of this model{hint}; what can be replaced: "
                                 + ", ".join(WHEN))
            if not callable(function):
                raise TypeError(f"{name} must be a function, got {function!r}")
        self.own, self.calls = own, Counter()
        self._own_parts = [name for name in PARTS if name in own]

    @property
    def one_query_at_a_time(self):
        """Whether the text has to be read token by token, for want of a mask."""
        return "grouped_query_attention" in self.own and not self._own_parts

    def call(self, name, shape, *arguments):
        """What the function gives for the arguments, finite, as float32 of this shape.

        float32 throughout: one float64 array would make all that follows five times as slow.
        Raises ValueError, with the name of your function, when it gives anything else.
        """
        if name not in self.own:
            return WHEN[name][0](*arguments)
        given = self._given(name, shape, arguments).astype(np.float32, copy=False)
        if not np.isfinite(given).all():
            at = tuple(int(i) for i in np.argwhere(~np.isfinite(given))[0])
            raise ValueError(f"your {name} must give finite numbers; it gave {given[at]}"
                             + f" at {list(at)}" * bool(at))
        return given

    def _given(self, name, shape, arguments):
        """What your function gives, an array of numbers of this shape; ValueError when it is none."""
        self.calls[name] += 1
        result = self.own[name](*arguments)
        try:
            given = np.asarray(result)
            if given.dtype.kind in "fiub" and given.shape == shape:
                return given
            came = f"shape {given.shape}, dtype {given.dtype}"
        except ValueError:
            came = "rows that differ in length"
        came = "None" if result is None else came
        if shape == ():
            raise ValueError(f"your {name} must give one number; it gave {came}")
        sizes = ", ".join(str(np.shape(x)) for x in arguments if np.ndim(x))
        raise ValueError(f"your {name} must give numbers of shape {shape}"
                         f"{f' for arrays of shape {sizes}' * bool(sizes)}; it gave {came}")

    def embed(self, ids, E):
        """The rows of E (V, d_model) for the ids (n,)."""
        return self.call("embed", (len(ids), E.shape[1]), ids, E)

    def split_heads(self, X, n_heads):
        """(n, h * d) -> (h, n, d)."""
        return self.call("split_heads", (n_heads, len(X), X.shape[1] // n_heads), X, n_heads)

    def merge_heads(self, H):
        """(h, n, d) -> (n, h * d)."""
        h, n, d = H.shape
        return self.call("merge_heads", (n, h * d), H)

    def rope(self, x, positions, base):
        """Turn the queries and keys x (m, n, d) by their positions (n,).

        The helpers' function takes them as they are; yours gets one row a head and token, (m * n, d).
        """
        if "rope" not in self.own:
            return embeddings.rope(x, positions, base)
        rows = x.reshape(-1, x.shape[-1])                   # (m, n, d) -> (m·n, d)
        turned = self.call("rope", rows.shape, rows, np.tile(positions, len(x)), base)
        return turned.reshape(x.shape)

    def attend(self, Q, K, V, need_pattern=False):
        """Causal attention of grouped heads; the last query sits at the last key.

        Q (h, n_q, d), K, V (g, n_k, d).  Returns Z (h, n_q, d), and A (h, n_q, n_k), or None for A where
        nobody needs it and it was not handed out.
        """
        whole = "grouped_query_attention" in self.own or not self._own_parts
        if whole and Q.shape[1] == 1 and not need_pattern:
            return self.call("grouped_query_attention", Q.shape, Q, K, V), None
        if need_pattern and self.one_query_at_a_time:
            raise ValueError("your grouped_query_attention does not hand out its pattern; to see patterns, "
                             "put in parts: " + ", ".join(PARTS))
        if not need_pattern and not self._own_parts:        # and no grouped_query_attention, which came first
            return attention.attention(Q, K, V, causal=True), None
        groups = (len(K), len(Q) // len(K))                 # g, h/g
        S = self._scaled_scores(Q, K, groups)               # (h, n_q, n_k)
        A = self._weights(S, self._mask(*S.shape[1:]))      # (h, n_q, n_k)
        Z = A.reshape(*groups, *A.shape[1:]) @ V[:, None]   # (g, h/g, n_q, n_k) @ (g, 1, n_k, d)
        return Z.reshape(Q.shape), A

    def _scaled_scores(self, Q, K, groups):
        """S (h, n_q, n_k); your functions see one head at a time, as in notebook 03."""
        shape = (Q.shape[1], K.shape[1])
        heads = [(Q[i], K[i // groups[1]]) for i in range(len(Q))]
        if "scaled_scores" in self.own:
            return np.stack([self.call("scaled_scores", shape, q, k) for q, k in heads])
        if "scores" in self.own:
            return np.stack([self.call("scores", shape, q, k) for q, k in heads]) * Q.shape[-1] ** -0.5
        S = attention.scaled_scores(Q.reshape(*groups, *Q.shape[1:]), K[:, None])    # (g, h/g, n_q, n_k)
        return S.reshape(len(Q), *shape)

    def _mask(self, n_q, n_k):
        """(n_q, n_k) bool; yours may also be of 0 and 1, or of 0 and -inf."""
        if "causal_mask" not in self.own:
            return attention.causal_mask(n_q, n_k)
        mask = self._given("causal_mask", (n_q, n_k), (n_q, n_k))
        if mask.dtype == bool:
            return mask
        return mask == (1 if mask.max() == 1 else 0)

    def _weights(self, S, mask):
        """A (h, n_q, n_k)."""
        if "attention_weights" not in self.own and "softmax" in self.own:
            return self.call("softmax", S.shape, np.where(mask, S, np.float32(-np.inf)))
        return self.call("attention_weights", S.shape, S, mask)

    def next_token(self, logits, rng, temperature, top_k, top_p):
        """The id of the next token, from the last logits (1, V).

        At temperature 0 the helpers' `sample_next` is not called: what it would give, the likeliest, needs no
        sorting of all logits. Yours always is.
        """
        if "sample_next" not in self.own:
            if temperature == 0:
                return int(logits[0].argmax())
            return sampling.sample_next(logits, rng, temperature, top_k, top_p)
        chosen = self.call("sample_next", (), logits, rng, temperature, top_k, top_p)
        if not (0 <= chosen < logits.shape[1] and chosen == int(chosen)):
            raise ValueError(f"your sample_next must give an id in 0 … {logits.shape[1] - 1}; "
                             f"it gave {chosen}")
        return int(chosen)

    def __str__(self):
        rows = []
        for name, (_, when) in WHEN.items():
            whose = "helpers"
            if name in self.own:
                outer = INSIDE.get(name)
                whose = f"in {outer}" if outer in self.own else f"yours, {self.calls[name]} calls"
            rows.append(f"{name:24s} {whose:20s} {when}")
        return "\n".join(rows)

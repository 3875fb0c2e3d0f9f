"""The exercises of notebook 06: kv_cache_step, generate_with_cache, cache_bytes."""

import numpy as np

from helpers import kv_cache as right
from helpers.checks.exercise import Case, Exercise, Mistake, drawer
from helpers.checks.exercises.scores import FAR
from helpers.checks.exercises.softmax_and_masks import (
    CAUSAL,
    NOT_PATTERN,
    OVERFLOW,
    SLIPS,
    WEIGHTS,
    slip,
    softmax_steps,
)
from helpers.checks.observe import Told

BY_HAND, STEP = "By hand: two tokens kept, a third comes", "One step with a cache"
WHOLE, PREFILL = "A whole model with a cache", "Prefill, then decode"
OFFSET = "Chunks: masks and positions with an offset"
BYTES, PAST, ATTENTION = "How many bytes?", "The past does not change", "03"

# ---------------------------------------------------------------------------------------------- kv_cache_step


def step_cases():
    draw = drawer(61)

    def case(kind, tokens, says="", call=None, d_model=4, d_k=2, d_v=3, cache=None, whole=False, large=False,
             **more):
        X = draw(*tokens, d_model, whole=whole)
        weights = [draw(d_model, d, whole=whole) for d in (d_k, d_k, d_v)]
        if large:                                          # whole numbers: exact in float32 too
            X, weights = np.round(16 * X), [np.round(8 * W) for W in weights]
        says = f"{says or kind + in_a_row}; d_model = {d_model}, d_k = {d_k}, d_v = {d_v}"
        return Case(kind, (X, *weights, cache), says=says, call=call, **more)

    in_a_row = ", one after the other; the z of each and the last cache are looked at"
    second = "three tokens, and then from cache = None another two; of these z and the last cache "
    endings = "two tokens, then two others, each from the cache of the first two; z, K and V of both "
    return [
        case("a cache of three tokens", (), "a token and a cache of three", cache=(draw(3, 2), draw(3, 3))),
        case("the first token", (), "the first token: cache = None"),
        case("two tokens", (2,), call=one_after_another),
        case("five tokens", (5,), call=one_after_another),
        case("a second text after the first", (5,), second + "are looked at", call=a_second_text),
        case("two endings from one cache", (4,), endings + "are looked at", call=two_endings),
        case("40 tokens", (40,), call=one_after_another),
        case("three tokens, all sizes equal", (3,), "", one_after_another, 3, 3, 3),
        case("three tokens, d_k and d_v equal", (3,), "", one_after_another, 4, 3, 3),
        case("three large tokens", (3,), call=one_after_another, large=True),
        case("three tokens of integers", (3,), call=one_after_another, whole=True, style=True),
    ]


def is_pair(answer):
    return isinstance(answer, (tuple, list)) and len(answer) == 2


def read(function, X, weights, cache):
    """([z, …], last cache), or the first answer that is no pair or holds no cache."""
    found = []
    for x in X:
        answer = function(x.copy(), *weights, cache)
        if not is_pair(answer) or not any(map(is_pair, answer)):     # no cache to go on from
            return answer
        found.append(answer[0])
        cache = answer[1]
    return found, cache


def one_after_another(function, X, W_q, W_k, W_v, cache):
    return read(function, X, (W_q, W_k, W_v), cache)


def a_second_text(function, X, W_q, W_k, W_v, cache):
    read(function, X[:3], (W_q, W_k, W_v), cache)
    return read(function, X[3:], (W_q, W_k, W_v), cache)


def two_endings(function, X, W_q, W_k, W_v, cache):
    """Two tokens, and then from the same cache once the third and once the fourth."""
    weights = W_q, W_k, W_v
    past = read(function, X[:2], weights, cache)
    if not is_pair(past) or not isinstance(past[0], list):
        return past
    answers = [function(x.copy(), *weights, past[1]) for x in X[2:]]
    for answer in answers:
        if not is_pair(answer) or not is_pair(answer[1]):
            return answer
    both = [np.concatenate([cache[i] for _, cache in answers]) for i in (0, 1)]
    return [z for z, _ in answers], both


def new_rows(cache, k, v):
    if cache is None:
        return k[None], v[None]
    return np.concatenate([cache[0], k[None]]), np.concatenate([cache[1], v[None]])


def cache_the_other_way_round(cache, k, v):
    return new_rows(cache and (cache[1], cache[0]), k, v)


def three_vectors(x, W_q, W_k, W_v):
    return x @ W_q, x @ W_k, x @ W_v


def step_steps(x, W_q, W_k, W_v, cache, vectors=three_vectors, append=new_rows, seen=lambda M: M,
               scale=lambda q, V, K, x: np.sqrt(len(q)), hide=lambda s: s, softmax=softmax_steps,
               mixed=lambda K, V: V, answer=lambda z, K, V, cache: (z, (K, V))):
    with np.errstate(all="ignore"):
        q, k, v = vectors(x, W_q, W_k, W_v)
        K, V = append(cache, k, v)
        keys, values = seen(np.asarray(K)), seen(np.asarray(V))
        s = keys @ q / scale(q, values, keys, x)
        return answer(softmax(hide(s)) @ mixed(keys, values), K, V, cache)


def never_without(cache, k, v):
    return new_rows((cache[0], cache[1]), k, v)


def flat(cache, k, v):
    return new_rows(cache, k, v) if cache is None else (np.append(cache[0], k), np.append(cache[1], v))


def resized(cache, k, v):
    if cache is None:
        return k[None], v[None]
    for M, row in zip(cache, (k, v), strict=True):
        M.resize((len(M) + 1, len(row)))
        M[-1] = row
    return cache


def grown_lists(cache, k, v):
    cache = ([], []) if cache is None else cache
    cache[0].append(k)
    cache[1].append(v)
    return cache


class Buffer:
    """Room for 64 rows, made once; `counted` says whether the next row is a count of its own."""

    def __init__(self, counted):
        self.counted, self.rows, self.t = counted, {}, 0

    def __call__(self, cache, k, v):
        K, V = self.rows.setdefault((len(k), len(v)), (np.zeros((64, len(k))), np.zeros((64, len(v)))))
        if cache is None or not np.may_share_memory(cache[0], K):
            self.t = 0
        t = self.t if self.counted else 0 if self.t == 0 else len(cache[0])
        K[t], V[t] = k, v
        self.t = t + 1
        return K[:t + 1], V[:t + 1]


def windowed(cache, k, v):
    return tuple(M[-16:] for M in new_rows(cache, k, v))


def at_the_front(cache, k, v):
    if cache is None:
        return k[None], v[None]
    return np.concatenate([k[None], cache[0]]), np.concatenate([v[None], cache[1]])


def one_at_the_front(place):
    """The new key (0) or value (1) above the old ones, the other below them."""
    def append(cache, k, v):
        below, above = new_rows(cache, k, v), at_the_front(cache, k, v)
        return tuple((above if i == place else below)[i] for i in (0, 1))
    return append


def past_only(M):
    return M[:-1] if len(M) > 1 else M


def only(place):
    return lambda s: np.where(np.arange(len(s)) == np.arange(len(s))[place], s, -np.inf)


def old_cache(z, K, V, cache):
    return z, (K, V) if cache is None else cache


def cache_before_z(z, K, V, cache):
    """At the next step z comes in as the cache, and whatever reads a row of it fails."""
    if cache is not None:
        len(cache[0])
    return (K, V), z


KV_CACHE_STEP = Exercise(
    "6.1", "kv_cache_step", "06", right.kv_cache_step,
    arguments={"x": ("d_model",), "W_q": ("d_model", "d_k"), "W_k": ("d_model", "d_k"),
               "W_v": ("d_model", "d_v"), "cache": ()},
    returns={"z": ("d_v",), "cache": {"K": ("t + 1", "d_k"), "V": ("t + 1", "d_v")}},
    cases=step_cases, steps=step_steps,
    passed="One token in, one token's work done: the past is looked up, never computed again.",
    mistakes=(
        Mistake("v_before_k", dict(append=cache_the_other_way_round,
                                   answer=lambda z, K, V, cache: (z, (V, K))),
                "the cache is (V, K), not (K, V)",
                "Whoever goes on from the cache expects the keys first.", STEP),
        Mistake("q_k_swapped", dict(vectors=lambda x, W_q, W_k, W_v: (x @ W_k, x @ W_q, x @ W_v)),
                "W_q and W_k have changed places",
                "The new token asks with W_q; what it keeps for later ones to find is made with W_k.", STEP),
        Mistake("replaced", dict(append=lambda cache, k, v: (k[None], v[None])),
                "the new key and value replace the old ones",
                "The past is then gone: a token reads only itself. New rows go below the old ones.", STEP),
        Mistake("old_returned", dict(answer=old_cache), "the old cache is returned, without the new row",
                "The next token could not find this one.", STEP),
        Mistake("attend_before_append", dict(seen=past_only),
                "the query reads before the new key and value are appended",
                "A token reads itself too; append first.", STEP),
        Mistake("none_crash", dict(append=never_without), "the cache is taken apart even when it is None",
                "At the first token there is no past yet: the cache is its one key and one value.", STEP),
        Mistake("flat_append", dict(append=flat),
                "the new key and value do not become one row more, below the old ones",
                "np.append without axis=0 makes one long row of everything, and axis=1 puts the new beside "
                "the old. np.concatenate along axis 0, or np.vstack, makes a new array with one row more.",
                STEP),
        Mistake("resized", dict(append=resized),
                "the old cache's arrays are to be made longer in place, with resize",
                "NumPy refuses where an array is a part of another; where it does not, the old cache is gone "
                "for whoever goes on from it. Make new arrays with one row more.", PAST),
        Mistake("aliased_lists", dict(append=grown_lists), "new rows are appended to the lists of the old "
                "cache", "Whoever goes on from the old cache a second time finds rows of the other ending in "
                "it: make a new cache, and leave the old one alone.", PAST),
        Mistake("shared_buffer", dict(append=Buffer(counted=True)), "all caches are parts of one buffer that "
                "goes on counting", "Two endings of one text then write into the same rows: a second ending "
                "finds what the first one wrote.", "Room made beforehand"),
        Mistake("buffer_overwritten", dict(append=Buffer(counted=False)),
                "a later step writes into the memory of an earlier cache",
                "Two endings of one text then share their last row, and the first one changes when the "
                "second is written.", "Room made beforehand"),
        Mistake("overflow_ring", dict(append=windowed), "only the newest 16 rows are kept",
                "Everything said before that is forgotten without a word.", STEP),
        Mistake("at_the_front", dict(append=at_the_front), "the new row is put above the old ones",
                "z is the same, but row t of the cache must belong to token t.", STEP),
        *(Mistake(f"{name}_at_the_front", dict(append=one_at_the_front(place)),
                  f"the new {name} is put above the old ones, and the new {other} below them",
                  "Row t of K and row t of V must both belong to token t: what a key is found by brings the "
                  "value in its own row.", STEP)
          for place, name, other in ((0, "key", "value"), (1, "value", "key"))),
        Mistake("x_cached", dict(vectors=lambda x, W_q, W_k, W_v: (x @ W_q, x, x)),
                "x itself is kept in place of its key and value",
                "The queries are compared with keys: x W_k and x W_v are what is kept.", BY_HAND),
        Mistake("k_in_v", dict(vectors=lambda x, W_q, W_k, W_v: (x @ W_q, x @ W_k, x @ W_k)),
                "the key is kept as the value too", "A key is for being found, a value for being passed on.",
                BY_HAND),
        Mistake("q_as_k", dict(vectors=lambda x, W_q, W_k, W_v: (x @ W_q, x @ W_q, x @ W_v)),
                "the query is kept in place of the key",
                "A query is used once and never again; what later tokens look for is the key.", BY_HAND),
        Mistake("top_left_mask", dict(hide=only(0)), "only the first key is read",
                "A causal mask for one row, lined up at the top left, lets only the first key through; the "
                "newest token may read all, and needs no mask.", OFFSET),
        Mistake("only_itself", dict(hide=only(-1)), "the new token reads only itself",
                "It may read all keys of the cache; that is what they are kept for.", STEP),
        Mistake("scale_t", dict(scale=lambda q, V, K, x: np.sqrt(len(K))),
                "the scores are divided by √(number of keys)",
                "A score is a sum of d_k products, so d_k sets its spread; len(K) counts tokens, and grows.",
                (ATTENTION, FAR)),
        Mistake("no_scale", dict(scale=lambda q, V, K, x: 1), "the scores are not divided by √d_k",
                "Their spread grows with d_k, and softmax becomes a switch.", (ATTENTION, FAR)),
        Mistake("d_not_sqrt", dict(scale=lambda q, V, K, x: len(q)),
                "the scores are divided by d_k, without the root",
                "The spread grows like √d_k; divided by d_k the scores are too small and softmax too flat.",
                (ATTENTION, FAR)),
        Mistake("scale_d_model", dict(scale=lambda q, V, K, x: np.sqrt(len(x))),
                "the scores are divided by √d_model in place of √d_k",
                "A score is a sum of d_k products, so d_k sets its spread.", (ATTENTION, FAR)),
        Mistake("scale_d_v", dict(scale=lambda q, V, K, x: np.sqrt(V.shape[-1])),
                "the scores are divided by √d_v in place of √d_k",
                "A score is a sum of d_k products, so d_k sets its spread.", (ATTENTION, FAR)),
        Mistake("keys_mixed", dict(mixed=lambda K, V: K), "the weights mix the keys, not the values",
                "A key is for being found, a value for being passed on.", BY_HAND),
        Mistake("no_softmax", dict(softmax=lambda s: s), "the scores are used as weights, without softmax",
                "Scores are not shares: they can be negative and do not add up to 1.",
                (ATTENTION, NOT_PATTERN)),
        Mistake("not_normalised", dict(softmax=slip(SLIPS["not_normalised"])),
                "exp is taken and the division by the sum is missing",
                "Weights are shares: they must add up to 1.", (ATTENTION, WEIGHTS)),
        Mistake("no_max", dict(softmax=slip(SLIPS["no_max"])),
                "softmax takes exp of large scores as they are",
                OVERFLOW, (ATTENTION, WEIGHTS)),
        Mistake("not_returned", dict(answer=lambda z, K, V, cache: z), "the cache is not returned",
                "The next step needs it: return z and the tuple (K, V).", STEP),
        Mistake("three_things", dict(answer=lambda z, K, V, cache: (z, K, V)),
                "z, K and V are returned as three things",
                "The cache is one thing, the tuple (K, V), so that it can be handed on as it is.", STEP),
        Mistake("cache_first", dict(answer=cache_before_z), "the cache comes first",
                "The exercise asks for z first, then the cache.", STEP),
        Mistake("v_k", dict(answer=lambda z, K, V, cache: (z, (V, K))), "the cache comes as (V, K)",
                "Keys and values then swap roles at the next step.", STEP),
        Mistake("row_kept", dict(answer=lambda z, K, V, cache: (z[None], (K, V))),
                "z is a row of a matrix, (1, d_v)",
                "One token, one vector: z has the shape (d_v,), as x has the shape (d_model,).", STEP),
    ))

# ---------------------------------------------------------------------------------------- generate_with_cache

# Seeds and prompts for which no choice of a word is close and hardly a mistake goes unseen.
MODELS = ((664, [2, 5, 1, 3]), (627, [4, 0, 6]), (733, [1, 1, 3, 0, 2]),
          (705, [6, 2, 4]), (742, [0, 3, 5, 1]), (731, [5, 4]))


def small_model(draw, n_layers=2, V=7, d=5, d_k=3, d_v=4):
    """A model whose next word depends on place and past; that takes large weights."""
    def layer():
        return {"W_q": draw(d, d_k), "W_k": draw(d, d_k), "W_v": draw(d, d_v), "W_o": draw(d_v, d)}
    return {"E": draw(V, d), "P": draw(24, d, spread=1.5), "layers": [layer() for _ in range(n_layers)]}


def generate_cases():
    def case(kind, seed, prompt, n_new, n_layers=2, call=None):
        model = small_model(drawer(seed), n_layers)
        V, d = model["E"].shape
        first = f"{[3, 5]} read to its end, then " if call else ""
        new = f"{n_new} new token{'s' if n_new != 1 else ''}"
        says = (f"{first}prompt_ids = {prompt}, {new}; a model with {n_layers} layer"
                f"{'s' if n_layers > 1 else ''}, V = {V}, d = {d}")
        return Case(kind, (prompt, n_new, model), says=says, call=call)
    return [
        *(case(f"model {i + 1}", seed, prompt, 6) for i, (seed, prompt) in enumerate(MODELS)),
        case("a prompt of one token", 639, [3], 6),
        case("one layer", 685, [1, 4, 2], 6, n_layers=1),
        case("three layers", 652, [6, 0, 2], 5, n_layers=3),
        case("one new token", 625, [2, 4, 1], 1),
        case("no new token", 62, [5, 0, 3], 0),
        case("two prompts in a row", 609, [0, 6, 1], 5, call=after_another),
        Case("how much work it is", (MODELS[0][1], 6, small_model(drawer(MODELS[0][0]))), call=not_all_again,
             edge=f"for a prompt of 4 tokens and 6 new ones it puts at least {again(4, 6)} tokens through "
                  "each layer; with a cache each token goes through once, which makes 9."),
    ]


def after_another(function, prompt_ids, n_new, model):
    function([3, 5], 3, model)
    return function(prompt_ids, n_new, model)


def again(n_prompt, n_new):
    """How many tokens go through a layer when the whole text does for each new word."""
    return sum(range(n_prompt, n_prompt + n_new))


class Counted(np.ndarray):
    """A W_k (d, d_k), d > d_k, that counts the rows multiplied by it, as x @ W_k and as W_k.T @ x.

    Made by `counted`. Products made in another way, or with a copy, are not counted.
    """

    rows = None  # [how many], the same list for W_k and W_k.T

    def __array_finalize__(self, source):
        if isinstance(source, Counted) and self.size == source.size and address(self) == address(source):
            self.rows = source.rows

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        if ufunc is np.matmul and len(inputs) == 2:
            self.count(*inputs)
        return getattr(ufunc, method)(*map(plain, inputs), **options)

    def __array_function__(self, function, types, arguments, options):
        if function is np.dot and len(arguments) == 2 and not options:
            self.count(*arguments)
            return np.dot(*map(plain, arguments))
        return super().__array_function__(function, types, arguments, options)

    @property
    def mask(self):
        """What `helpers.arrays.array` asks for before it makes a plain array of it: one row, if not more."""
        if self.rows is not None:
            self.rows[0] += 1
        raise AttributeError("mask")

    def count(self, left, after):
        axis, other = (0, left) if self is after else (1, after)           # of the d numbers that are summed
        if self.rows is not None and self.ndim == 2 and self.shape[axis] > self.shape[1 - axis]:
            self.rows[0] += np.size(other) // self.shape[axis]


def address(array):
    return array.__array_interface__["data"][0]


def plain(thing):
    return np.asarray(thing) if isinstance(thing, Counted) else thing


def counted(W):
    W = np.array(W).view(Counted)
    W.rows = [0]
    return W


def not_all_again(function, prompt_ids, n_new, model):
    """The ids; `Told` in their place when the whole text goes through every layer again for each word."""
    layers = [layer | {"W_k": counted(layer["W_k"])} for layer in model["layers"]]
    try:
        function(list(prompt_ids), n_new, {"E": model["E"].copy(), "P": model["P"].copy(),
                                           "layers": list(map(dict, layers))})
    except Exception:  # it cannot work with such arrays, so nothing is known
        return function(prompt_ids, n_new, model)
    rows = min(layer["W_k"].rows[0] for layer in layers)
    if rows < again(len(prompt_ids), n_new):
        return function(prompt_ids, n_new, model)
    return Told(f"generate_with_cache puts {rows} tokens through each layer.")


def from_the_start(P, begin, n, n_prompt):
    return P[begin:begin + n]


def up_to_itself(n_q, n_k, begin):
    return np.arange(n_k) <= n_k - n_q + np.arange(n_q)[:, None]


def everything(n_q, n_k, begin):
    return np.ones((n_q, n_k), bool)


def generate_steps(prompt_ids, n_new, model, start=list, first=list, rounds=lambda n_new: n_new,
                   positions=from_the_start, embed=lambda E, ids: E[ids], placed=np.add,
                   keep=lambda old, new: new, own=lambda i: i, pieces=lambda todo: [todo],
                   order=lambda layers: layers, fed=lambda x, first: x, prompt_read=lambda caches: caches,
                   scale=lambda Q, K, x: np.sqrt(Q.shape[1]), reads=up_to_itself,
                   residual=lambda x, update: x + update, last=lambda x: x[-1], choose=np.argmax,
                   feed=lambda ids, new: [new], finish=lambda ids, n_prompt, n_new: ids):
    E, P, ids = model["E"], model["P"], start(prompt_ids)
    caches = [None] * len(model["layers"])
    n_prompt, todo = len(ids), first(ids)
    begin = n_prompt - len(todo)
    for word in range(rounds(n_new)):
        for part in pieces(todo):
            x = x0 = placed(embed(E, part), positions(P, begin, len(part), n_prompt))
            for i, layer in enumerate(order(model["layers"])):
                Q, K, V = (fed(x, x0) @ layer[name] for name in ("W_q", "W_k", "W_v"))
                past = caches[own(i)]
                if past is not None:
                    K, V = np.concatenate([past[0], K]), np.concatenate([past[1], V])
                caches[own(i)] = keep(past, (K, V))
                S = np.where(reads(len(Q), len(K), begin), Q @ K.T / scale(Q, K, x), -np.inf)
                x = residual(x, softmax_steps(S) @ V @ layer["W_o"])
            begin += len(part)
        if word == 0:
            caches = prompt_read(caches)
        new = int(choose(last(x) @ E.T))
        todo = feed(ids, new)
        ids.append(new)
    return finish(ids, n_prompt, n_new)


def shifted(by):
    """Positions of all tokens after the prompt moved."""
    return lambda P, begin, n, n_prompt: P[begin + by * (begin > 0):][:n]


def jump(P, begin, n, n_prompt):
    return P[(begin + (n_prompt if begin else 0)) % len(P):][:n]


def frozen(P, begin, n, n_prompt):
    return P[min(begin, n_prompt):][:n]


def stuck(P, begin, n, n_prompt):
    return P[min(begin, n_prompt - 1):][:n]


def none_later(P, begin, n, n_prompt):
    return P[:n] if begin == 0 else 0


def again_from_zero(P, begin, n, n_prompt):
    return P[begin - n_prompt if begin >= n_prompt else begin:][:n]


def end_twice(places):
    """Positions when the last token of the prompt goes in twice; the count then begins at -1."""
    later = places([0])[-1]

    def positions(P, begin, n, n_prompt):
        if begin < 0:
            return P[places(list(range(n_prompt)))]
        return P[begin + later:][:n]
    return positions


def first_word_late(ids, n_prompt, n_new):
    """No word is taken at the prompt's last token, and then there is none to go on with."""
    if n_new > 1:
        raise IndexError("list index out of range")
    return ids[:n_prompt]


def row_itself(E, ids):
    """A single row is a view of E; several are a copy."""
    return E[ids[0]:][:1] if len(ids) == 1 else E[ids]


def in_place(x, update):
    x += update
    return x


def written_into_E():
    """The ways in which x = E[i] and then x += … goes wrong: in which tokens are read one at a time, whether
    also without need, and whether the layers add so, too."""
    what = "E itself is changed: x is a row of it, and what is added with += is written there"
    why = ("E[i] for one id is no copy but a part of E, for several ids it is a copy. x = x + … makes a new "
           "array.")
    single = dict(pieces=lambda todo: [[id_] for id_ in todo])
    cut = dict(finish=lambda ids, n_prompt, n_new: ids[:n_prompt + n_new])
    prompt_anyway = cut | dict(rounds=lambda n_new: max(n_new, 1))
    to_the_end = cut | dict(rounds=lambda n_new: n_new + 1)
    ways = [single | prompt_anyway, single, to_the_end, {}]
    ways += [way | dict(residual=in_place) for way in (*ways, single | to_the_end)]
    for i, way in enumerate(ways):
        yield Mistake(f"written_into_E_{i}", dict(embed=row_itself, placed=in_place) | way, what, why, WHOLE)


def not_the_largest(expected, given, prompt_ids, n_new, model):
    """For ids that are right for the text before them, but for one or two."""
    ids = [int(i) for i in np.ravel(given)]
    begin = len(prompt_ids)
    if len(ids) != begin + n_new or ids[:begin] != list(prompt_ids) or n_new < 3:
        return None
    if not 0 <= min(ids) <= max(ids) < len(model["E"]):
        return None
    best = [int(right.generate_with_cache(ids[:p], 1, model)[-1]) for p in range(begin, len(ids))]
    off = [p for p, id_ in enumerate(best, begin) if ids[p] != id_]
    if not 1 <= len(off) < n_new / 2:
        return None
    places = " and ".join(f"[{p}]" for p in off)
    return (f"At {places} the id taken is not the one with the largest score; all other new ids are right "
            "for the text before them.",
            "Greedy means the largest score each time: nothing is drawn at random. If you do take the "
            "largest, then the scores are off, by a little.", WHOLE)


def no_plain_ints(values):
    """A remark on ids that are NumPy's."""
    asked = "; the exercise asks for a list of plain ints, and "
    if any(isinstance(v, np.ndarray) for v in values):
        return f"it gives back an array{asked}.tolist() makes one."
    if any(isinstance(i, np.ndarray) for v in values if isinstance(v, list) for i in v):
        return f"it gives back NumPy integers{asked}int(…) makes a plain one of each."
    return ""


POSITION = "A token's position counts everything before it, cached or not: prompt and new tokens together."
GENERATE_WITH_CACHE = Exercise(
    "6.2", "generate_with_cache", "06", right.generate_with_cache,
    arguments={"prompt_ids": (), "n_new": (), "model": ()}, returns={"ids": ("n",)}, whole=True, lists=True,
    cases=generate_cases, steps=generate_steps,
    passed="The same words as without a cache; with one, each token need go through the layers only once.",
    remark=no_plain_ints, explain=not_the_largest,
    mistakes=(
        *written_into_E(),
        Mistake("position_zero", dict(positions=lambda P, begin, n, n_prompt: P[:n]),
                "every new token gets position 0", POSITION, OFFSET),
        Mistake("position_plus_one", dict(positions=shifted(1)), "the positions of new tokens are one too "
                "large", POSITION, OFFSET),
        Mistake("position_minus_one", dict(positions=shifted(-1)), "the positions of new tokens are one too "
                "small, so that two tokens share one", POSITION, OFFSET),
        Mistake("position_from_zero_again", dict(positions=again_from_zero), "the positions of new tokens "
                "are counted from 0 again", POSITION, OFFSET),
        Mistake("position_zero_throughout", dict(positions=lambda P, begin, n, n_prompt: P[[0] * n]),
                "every token gets position 0, those of the prompt as well",
                "Without positions of their own the model cannot tell which word came first.", WHOLE),
        Mistake("positions_from_one", dict(positions=lambda P, begin, n, n_prompt: P[begin + 1:][:n]),
                "positions are counted from 1", "The first token of the prompt stands at position 0.", WHOLE),
        Mistake("offset_jump", dict(positions=jump), "the length of the prompt is added to the positions of "
                "new tokens once too often", POSITION, OFFSET),
        Mistake("position_frozen", dict(positions=frozen), "every new token gets the same position, the one "
                "after the prompt", POSITION, OFFSET),
        Mistake("position_stuck", dict(positions=stuck), "every new token gets the position of the prompt's "
                "last token", POSITION, OFFSET),
        Mistake("no_positions_in_decode", dict(positions=none_later), "new tokens get no position",
                POSITION, OFFSET),
        Mistake("no_positions", dict(positions=lambda P, begin, n, n_prompt: 0), "P is not used",
                "Without positions the model cannot tell which word came first.", WHOLE),
        Mistake("full_sequence_with_cache",
                dict(positions=lambda P, begin, n, n_prompt: P[:n], reads=everything,
                     feed=lambda ids, new: [*ids, new]),
                "the whole text goes through the layers again at each step, on top of the cache",
                "Every key is then in the cache several times. With a cache only the new token goes in.",
                PREFILL),
        Mistake("full_sequence_masked",
                dict(positions=lambda P, begin, n, n_prompt: P[:n], feed=lambda ids, new: [*ids, new]),
                "the whole text goes through the layers again at each step, on top of the cache",
                "Every key is then in the cache several times. With a cache only the new token goes in.",
                PREFILL),
        Mistake("cache_not_updated", dict(keep=lambda old, new: new if old is None else old),
                "the keys and values of new tokens are used once and not kept",
                "A later token then finds the prompt and itself, and nothing in between.", PREFILL),
        Mistake("nothing_kept", dict(keep=lambda old, new: None), "nothing is kept",
                "Each new token then reads only itself.", PREFILL),
        Mistake("emptied_after_prompt", dict(prompt_read=lambda caches: [None] * len(caches)),
                "the caches are emptied after the prompt",
                "New tokens then read only each other: they must find the keys and values of the prompt too.",
                PREFILL),
        Mistake("one_cache_for_all", dict(own=lambda i: 0), "all layers share one cache",
                "A layer must find its own keys, made with its own W_k: one cache a layer.", WHOLE),
        Mistake("one_cache_token_by_token", dict(own=lambda i: 0, pieces=lambda todo: [[i] for i in todo]),
                "all layers share one cache, token by token",
                "A layer must find its own keys, made with its own W_k: one cache a layer.", WHOLE),
        *(Mistake(f"prompt_end_twice_{name}", dict(first=lambda ids: [*ids, ids[-1]],
                                                   positions=end_twice(places)),
                  f"the last token of the prompt is fed in twice, {where}",
                  "Its key is then in the cache twice. The scores for the first new word are there as soon "
                  "as the prompt has been read.", PREFILL)
          for name, where, places in (
              ("there", "both times at its own position", lambda ids: [*ids, ids[-1]]),
              ("later", "the second time at the next position", lambda ids: [*ids, len(ids)]))),
        Mistake("no_mask", dict(reads=everything), "the tokens of the prompt read those that come after them",
                "In one go the prompt needs the causal mask; token by token it comes by itself.", PREFILL),
        Mistake("top_left_mask", dict(reads=lambda n_q, n_k, begin: np.tril(np.ones((n_q, n_k), bool))),
                "the causal mask is lined up at the top left, so that a new token reads only the first key",
                "The newest query sits at the newest key: the mask needs the offset.", OFFSET),
        Mistake("prompt_not_read", dict(first=lambda ids: ids[-1:]), "only the last token of the prompt is "
                "read", "The whole prompt must go through the layers: it fills the cache.", PREFILL),
        Mistake("window", dict(keep=lambda old, new: tuple(M[-4:] for M in new)),
                "the cache keeps the newest 4 rows only",
                "Everything before that is forgotten without a word.", WHOLE),
        Mistake("lagging_token", dict(feed=lambda ids, new: [ids[-1]]),
                "the token before the newest one is fed in",
                "The next word follows from the newest: append it first, then feed it.", PREFILL),
        Mistake("mean_pooled", dict(last=lambda x: x.mean(0)), "the mean over all tokens is used for the "
                "scores", "The next word is predicted at the last token, which has read all others.", WHOLE),
        Mistake("first_token", dict(last=lambda x: x[0]), "the scores are taken at the first token, not the "
                "last", "The next word is predicted at the last token, which has read all others.", WHOLE),
        Mistake("one_too_few", dict(rounds=lambda n_new: max(n_new - 1, 0)), "one new token is missing",
                "The last token of the prompt predicts the first new one: n_new predictions in all.",
                PREFILL),
        Mistake("first_word_late", dict(finish=first_word_late),
                "no word is taken at the last token of the prompt, so that there is no token to go on with",
                "The last token of the prompt, at position len(prompt_ids) - 1, predicts the first new one.",
                PREFILL),
        Mistake("one_too_many", dict(rounds=lambda n_new: n_new + 1), "there is one new token too many",
                "The last token of the prompt predicts the first new one: n_new predictions in all.",
                PREFILL),
        Mistake("at_least_one", dict(rounds=lambda n_new: max(n_new, 1)),
                "a new token comes even when n_new is 0",
                "Reading the prompt gives a prediction; with n_new = 0 nobody asked for it.", PREFILL),
        Mistake("prompt_mutated", dict(start=lambda ids: ids), "new ids are appended to the list that was "
                "given", "The caller's prompt is longer afterwards: make a copy with list(prompt_ids).",
                PREFILL),
        Mistake("prompt_left_out", dict(finish=lambda ids, n_prompt, n_new: ids[n_prompt:]),
                "only the new ids are returned", "The exercise asks for all of them, prompt included.",
                PREFILL),
        Mistake("float_ids", dict(finish=lambda ids, n_prompt, n_new: np.array(ids, float)),
                "the ids are put into an array of floats",
                "An id picks a row, and there is no row 2.0: indexing with floats is an error.", WHOLE),
        Mistake("argmin", dict(choose=np.argmin), "the id with the smallest score is taken",
                "np.argsort puts the smallest first; the likeliest word has the largest score.", WHOLE),
        Mistake("layers_reversed", dict(order=lambda layers: layers[::-1]),
                "the layers are gone through in reverse order",
                "Each layer works on what the one before it has made: model[\"layers\"] lists them from the "
                "first to the last.", WHOLE),
        Mistake("first_x_for_all", dict(fed=lambda x, first: first),
                "every layer reads the first x, E[i] + P[p], not what the layer before it has made",
                "x = x + z W_o is what the next layer works on: queries, keys and values come from that.",
                WHOLE),
        Mistake("last_layer_only", dict(order=lambda layers: layers[-1:]), "only the last layer counts",
                "x = x + z W_o in each layer, and that x goes into the next one; where each starts from the "
                "first x again, what the others have added is lost.", WHOLE),
        Mistake("no_residual", dict(residual=lambda x, update: update), "a layer's update replaces x",
                "x = x + z W_o: the word itself must go on to the next layer.", WHOLE),
        Mistake("no_scale", dict(scale=lambda Q, K, x: 1), "the scores are not divided by √d_k",
                "Their spread grows with d_k, and softmax becomes a switch.", (ATTENTION, FAR)),
        Mistake("scale_d_model", dict(scale=lambda Q, K, x: np.sqrt(x.shape[1])),
                "the scores are divided by √d_model in place of √d_k",
                "A score is a sum of d_k products, so d_k sets its spread.", (ATTENTION, FAR)),
        Mistake("itself_not_read", dict(reads=lambda n_q, n_k, begin:
                                        up_to_itself(n_q, n_k, begin) & (np.arange(n_k) != n_k - n_q
                                        + np.arange(n_q)[:, None]) | (np.arange(n_k) == 0)),
                "a token does not read itself", "A token may read itself and what came before it.",
                (ATTENTION, CAUSAL)),
    ))

# ------------------------------------------------------------------------------------------------ cache_bytes


def byte_cases():
    def case(kind, *numbers, **options):
        return Case(kind, numbers, options)
    return [
        case("", 3, 8, 2, 16, 10),
        case("as many key heads as query heads", 2, 4, 4, 12, 7),
        case("several texts at once", 2, 6, 3, 8, 5, bytes_per_value=2, batch=4),
        case("4 bytes a value", 3, 4, 2, 8, 6, bytes_per_value=4),
        case("1 byte a value", 5, 8, 4, 8, 6, bytes_per_value=1),
        case("one token", 4, 9, 3, 16, 1),
        case("one key head", 3, 6, 1, 8, 20),
        case("one layer", 1, 8, 2, 4, 9, bytes_per_value=2, batch=3),
        case("n_tokens = 0", 3, 8, 2, 16, 0),
        case("sizes that a float32 cannot multiply exactly", 61, 40, 5, 80, 131_071),
        case("70B parameters, 131,072 tokens", 80, 64, 8, 128, 131_072),
        case("the same in NumPy integers (int32)", *map(np.int32, (80, 64, 8, 128, 131_072))),
    ]


def byte_steps(n_layers, n_heads, n_kv_heads, d_head, n_tokens, bytes_per_value=2, batch=1, kept=2,
               layers=lambda n_layers: n_layers, heads=lambda n_heads, n_kv_heads: n_kv_heads,
               width=lambda d_head, n_heads: d_head, tokens=lambda n_tokens: n_tokens,
               size=lambda bytes_per_value: bytes_per_value, texts=lambda batch: batch, unit=1,
               cut=False, number=lambda numbers: int):
    """`unit` : what the answer is divided by, `cut` : without the decimals, by //."""
    given = n_layers, n_heads, n_kv_heads, d_head, n_tokens, bytes_per_value, batch
    as_number = number(given)
    n_layers, n_heads, n_kv_heads, d_head, n_tokens, bytes_per_value, batch = map(int, given)
    total = as_number(kept)
    with np.errstate(all="ignore"):
        for factor in (layers(n_layers), heads(n_heads, n_kv_heads), width(d_head, n_heads),
                       tokens(n_tokens), size(bytes_per_value), texts(batch)):
            total = total * as_number(factor)
        return total if unit == 1 else total // unit if cut else total / unit


def int32_always(numbers):
    return np.int32


def int32_if_given(numbers):
    return np.int32 if any(isinstance(n, np.integer) for n in numbers) else int


def no_int(values):
    """A remark on bytes that are floats."""
    if any(isinstance(v, float) or isinstance(v, np.ndarray) and v.dtype.kind == "f" for v in values):
        return "it gives back a float; the exercise asks for an int, which is exact at any size."
    return ""


def number_types(where):
    """The mistakes of counting in numbers that end, for steps with `number`.  where : the heading to read."""
    overflow = ("32-bit integers end at 2,147,483,647 and begin again below zero. int(…) makes a Python "
                "integer of a NumPy one, and a Python integer never overflows.")
    return (
        Mistake("float32", dict(number=lambda numbers: np.float32), "it is computed in float32",
                "A float32 holds whole numbers exactly up to 16,777,216 only; beyond that the last digits "
                "are rounded. Multiply Python integers.", where),
        Mistake("int32", dict(number=int32_always), "it is computed in 32-bit integers", overflow, where),
        Mistake("int32_if_given", dict(number=int32_if_given),
                "NumPy integers are multiplied as they come, in 32 bits", overflow, where),
    )


CACHE_BYTES = Exercise(
    "6.3", "cache_bytes", "06", right.cache_bytes,
    arguments={"n_layers": (), "n_heads": (), "n_kv_heads": (), "d_head": (), "n_tokens": ()},
    returns={"total": ()}, tolerance=1e-12, remark=no_int,
    cases=byte_cases, steps=byte_steps,
    passed="You can say what a conversation costs before you have it.",
    mistakes=(
        Mistake("query_heads", dict(heads=lambda n_heads, n_kv_heads: n_heads),
                "the query heads are counted, n_heads",
                "Queries are not kept: only n_kv_heads heads have keys and values.", BYTES),
        Mistake("both_heads", dict(heads=lambda n_heads, n_kv_heads: n_heads * n_kv_heads),
                "n_heads and n_kv_heads both come in as factors",
                "Queries are not kept: n_heads makes no difference.", BYTES),
        Mistake("no_heads", dict(heads=lambda n_heads, n_kv_heads: 1), "the number of heads is left out",
                "d_head is the width of one head; a layer keeps n_kv_heads of them.", BYTES),
        Mistake("group_size", dict(heads=lambda n_heads, n_kv_heads: n_heads // n_kv_heads),
                "n_heads / n_kv_heads is used in place of n_kv_heads",
                "That is how many query heads share one key head, not how many key heads there are.", BYTES),
        Mistake("heads_times_hidden", dict(heads=lambda n_heads, n_kv_heads: n_heads,
                                           width=lambda d_head, n_heads: n_heads * d_head),
                "the number of heads is counted twice, as heads and in d_model",
                "d_model = n_heads · d_head holds the heads already.", BYTES),
        Mistake("no_batch", dict(texts=lambda batch: 1), "batch is left out",
                "Every text has a cache of its own.", BYTES),
        Mistake("two_bytes_fixed", dict(size=lambda bytes_per_value: 2),
                "2 bytes are counted whatever bytes_per_value says",
                "float32 takes 4 bytes and int8 takes 1.", BYTES),
        Mistake("no_bytes", dict(size=lambda bytes_per_value: 1), "the values are counted, not their bytes",
                "A value takes bytes_per_value bytes.", BYTES),
        Mistake("bits", dict(size=lambda bytes_per_value: 8 * bytes_per_value),
                "bits are counted", "A byte is 8 bits, and the exercise asks for bytes.", BYTES),
        Mistake("one_of_two", dict(kept=1), "only one of keys and values is counted",
                "Both are kept, a row of each for every token.", BYTES),
        Mistake("three", dict(kept=3), "queries are counted beside keys and values",
                "A query is used once, when its token comes, and not kept.", BYTES),
        Mistake("no_layers", dict(layers=lambda n_layers: 1), "the number of layers is left out",
                "Every layer keeps its own keys and values.", BYTES),
        Mistake("no_tokens", dict(tokens=lambda n_tokens: 1), "the number of tokens is left out",
                "Every token has a key and a value of its own.", BYTES),
        Mistake("quadratic", dict(tokens=lambda n_tokens: n_tokens**2),
                "the number of tokens is squared",
                "The scores are n · n numbers, and they are not kept; keys and values are a row a token.",
                "Work, counted"),
        *(Mistake(f"{name.lower()}{how}", dict(unit=unit, cut=bool(how)),
                  f"the answer is in {name}, divided by {text}",
                  "The exercise asks for bytes; divide when you print.", BYTES)
          for how in ("", "_cut")
          for name, unit, text in (("GiB", 1024**3, "1024³"), ("GB", 10**9, "10⁹"), ("MiB", 1024**2, "1024²"),
                                   ("KiB", 1024, "1024"))),
        *number_types(BYTES),
    ))

EXERCISES = (KV_CACHE_STEP, GENERATE_WITH_CACHE, CACHE_BYTES)

"""The exercises of notebook 01: token_ids, embed, sinusoidal_positions."""

import numpy as np

from helpers import embeddings as right
from helpers.checks.exercise import Case, Exercise, Mistake

# -------------------------------------------------------------------------------------------------- token_ids

VOCAB = {"<unk>": 3, "cat": 7, "the": 0, "cats": 5, "sleep": 1, "dog": 6, "near": 2, "sleeps": 4}
IN_ORDER = {"<unk>": 0, "a": 1, "b": 2, "c": 3}
GAPS = {"love": 7, "<unk>": 3, "i": 0, "ice": 300, "ice cream": 3000, "cream": 12, ".": 21}


def token_id_cases():
    def case(kind, words, vocab=VOCAB, edge=""):
        known = ", ".join(f"{word!r}: {i}" for word, i in vocab.items())
        return Case(kind, (words, vocab), says=f"tokens {words}\nvocab {{{known}}}", edge=edge)
    return [
        case("known words", ["cats", "near", "dog", "sleep"]),
        case("ids in the order of the vocabulary", ["b", "a", "c"], IN_ORDER),
        case("an unknown word", ["the", "zebra", "sleeps"]),
        case("another case", ["The", "cat", "DOG"]),
        case("one word inside another", ["catalogue", "cats", "cat", "undog"]),
        case("a word that comes twice", ["the", "cat", "near", "the", "cat"]),
        case("the word with id 0", ["the"]),
        case("one token", ["dog"]),
        case("the unknown word itself", ["<unk>", "cat"]),
        case("an unknown word, id of <unk> 0", ["c", "d", "a"], IN_ORDER),
        case("ids with gaps, larger ones too", ["i", "love", "ice"], GAPS),
        case("a space, a full stop, nothing in a token", ["i", "ice cream", ".", "love.", "", "ice "], GAPS),
        case("no tokens at all", []),
    ]


def look_up(token, vocab):
    return vocab.get(token)


def by_place(token, vocab):
    return list(vocab).index(token) if token in vocab else None


def by_sorted_place(token, vocab):
    return sorted(vocab).index(token) if token in vocab else None


def by_place_among_ids(token, vocab):
    return sorted(vocab, key=vocab.get).index(token) if token in vocab else None


def by_part(token, vocab):
    return next((i for word, i in vocab.items() if word in token), None)


def by_beginning(token, vocab):
    return next((i for word, i in vocab.items() if token.startswith(word)), None)


def the_unknown(token, vocab, find):
    return find("<unk>", vocab) if find in (by_place, by_sorted_place, by_place_among_ids) else vocab["<unk>"]


def raise_key_error(token, vocab, find):
    raise KeyError(token)


def raise_type_error(token, vocab, find):
    raise TypeError("None is no whole number")


def always(number):
    """Unknown words get this, whatever the vocabulary says."""
    return lambda token, vocab, find: number


DROP, NONE = object(), object()


def token_id_steps(tokens, vocab, find=look_up, unknown=the_unknown, shift=0, dtype=np.int64, words=list):
    ids = []
    for token in words(tokens):
        i = find(token, vocab)
        i = unknown(token, vocab, find) if i is None else i
        if i is NONE:
            ids.append(None)
        elif i is not DROP:
            ids.append(i + shift)
    return np.array(ids, dtype=object if None in ids else dtype)


def no_ids_are_floats(values):
    if any(isinstance(v, np.ndarray) and not v.size and v.dtype.kind == "f" for v in values):
        return ("for no tokens at all the ids are an array of floats, and floats pick no rows: np.array([]) "
                "makes floats unless it is told otherwise, as in np.array(ids, dtype=int).")
    return ""


TOKEN_IDS = Exercise(
    "1.1", "token_ids", "01", right.token_ids,
    arguments={"tokens": (), "vocab": ()}, returns={"ids": ("n",)}, whole=True,
    cases=token_id_cases, steps=token_id_steps, remark=no_ids_are_floats,
    passed="Every word has a number now, known or not, and numbers are all a model ever sees.",
    mistakes=(
        Mistake("unk_dropped", dict(unknown=always(DROP)), "words outside the vocabulary are left out",
                "The result is shorter than the text, so every later word slips to another position.",
                "Every token has an id"),
        Mistake("unk_raises", dict(unknown=raise_key_error),
                "a word outside the vocabulary is looked up like any other",
                'Sooner or later a text holds a word nobody foresaw, and it should become "<unk>", not an '
                "error.", "Every token has an id"),
        Mistake("unk_zero", dict(unknown=always(0)), 'unknown words get the id 0, whatever id "<unk>" has',
                "In this vocabulary 0 belongs to a real word, and that is what the model would read.",
                "Every token has an id"),
        Mistake("unk_one", dict(unknown=always(1)), 'unknown words get the id 1, whatever id "<unk>" has',
                "In another vocabulary 1 belongs to a real word; vocab says which id is the right one.",
                "Every token has an id"),
        Mistake("unk_three", dict(unknown=always(3)),
                'unknown words get the id 3 (as in the example), whatever id "<unk>" has',
                "In another vocabulary 3 belongs to a real word; vocab says which id is the right one.",
                "Every token has an id"),
        Mistake("unk_minus_one", dict(unknown=always(-1)), "unknown words get the id -1",
                "-1 raises no error in NumPy: it picks the last row of the embedding matrix.",
                "Every token has an id"),
        Mistake("unk_new_id", dict(unknown=lambda token, vocab, find: len(vocab)),
                "unknown words get an id after the last one",
                'The embedding matrix has no row for that id; "<unk>" has one.', "Every token has an id"),
        Mistake("unk_put_in", dict(unknown=lambda token, vocab, find: vocab.setdefault(token, len(vocab))),
                "unknown words are put into the vocabulary, with a new id",
                "The embedding matrix has no row for that id, and the caller's vocabulary is changed.",
                "Every token has an id"),
        Mistake("unk_none", dict(unknown=always(NONE)),
                "unknown words become None (what vocab.get gives for them)",
                'None is no row of anything; "<unk>" has an id, and that is the one to use.',
                "Every token has an id"),
        Mistake("unk_none_int", dict(unknown=raise_type_error),
                "unknown words become None (what vocab.get gives for them)",
                'None is no row of anything; "<unk>" has an id, and that is the one to use.',
                "Every token has an id"),
        Mistake("one_based", dict(shift=1), "1 is added to every id, as if counting began at 1",
                "Each word would read the embedding of another, and the last id would have no row at all.",
                "An id picks a row"),
        Mistake("float_ids", dict(dtype=float),
                "the ids are put into an array of floats (what np.zeros makes)",
                "An id picks a row, and there is no row 2.0: indexing with floats is an error.",
                "An id picks a row"),
        Mistake("enumerate_vocab", dict(find=by_place),
                "a word's place in the dictionary is taken for its id",
                "The two agree only while a vocabulary happens to be listed in the order of its ids.",
                "Every token has an id"),
        Mistake("sorted_place", dict(find=by_sorted_place),
                "a word's place in the sorted vocabulary is taken for its id",
                "The id is what the vocabulary says, not where a word would stand in an ordered list.",
                "Every token has an id"),
        Mistake("place_among_ids", dict(find=by_place_among_ids),
                "a word's place in the list sorted by id is taken for its id",
                "The two agree only while the ids have no gaps.", "Every token has an id"),
        Mistake("split_again", dict(words=lambda tokens: " ".join(tokens).split()),
                "the tokens are joined and split again",
                "A token stays as it is: it may hold a space, or nothing at all.",
                "A word is not always a token"),
        Mistake("stripped", dict(find=lambda t, v: v.get(t.strip(".,!?;:'\" "))),
                "punctuation and spaces are taken off the tokens",
                "A token stays as it is: with a full stop it is another one, and the vocabulary may hold it.",
                "A word is not always a token"),
        Mistake("zero_is_false", dict(find=lambda t, v: v.get(t) or None),
                "the id 0 is treated as if the word had not been found",
                "0 counts as false in Python (as in `vocab.get(t) or …`), and here it is the id of a real "
                "word.", "Every token has an id"),
        Mistake("lower_case", dict(find=lambda t, v: v.get(t.lower())),
                "words are put into small letters first",
                'In this vocabulary "The" and "the" are two different words, and only one of them is in it.',
                "Every token has an id"),
        Mistake("substring_match", dict(find=by_part),
                "a vocabulary word found inside the token is taken for the token",
                '"catalogue" is not a cat: a token is either in the vocabulary as a whole or it is unknown.',
                "Every token has an id"),
        Mistake("prefix_match", dict(find=by_beginning),
                "a token that begins like a vocabulary word is taken for it",
                '"catalogue" is not a cat: a token is either in the vocabulary as a whole or it is unknown.',
                "Every token has an id"),
        Mistake("each_once", dict(words=lambda tokens: list(dict.fromkeys(tokens))),
                "a word that comes twice is kept once",
                "The ids stand for the text, word by word; without the repeats it is another text.",
                "Every token has an id"),
        Mistake("sorted_tokens", dict(words=sorted), "the tokens are sorted first",
                "The order of the words is half of what a text says.", "Every token has an id"),
    ))

# ------------------------------------------------------------------------------------------------------ embed


def embed_cases():
    rng = np.random.default_rng(12)

    def table(V, d):
        return rng.normal(size=(V, d)).round(2)
    E = table(7, 3)

    def case(kind, ids, E=E):
        return Case(kind, (np.array(ids), E), says=f"ids {ids} and a table of {len(E)} rows ({kind})")
    return [
        case("ids in any order", [4, 0, 5, 2]),
        case("an id that comes twice", [1, 3, 1]),
        case("the first row", [0, 1]),
        case("the last row", [6, 2]),
        case("ids that follow one another", [2, 3, 4]),
        case("a square table", [4, 1, 3], table(5, 5)),
        case("as many tokens as rows and columns", [2, 0, 3, 1], table(4, 4)),
        case("one token", [5]),
        case("more decimals", [2, 0], np.array([[1 / 3, 2 / 3], [1 / 7, -0.12345], [0.001, 2]])),
        Case("ids as a plain list", ([3, 0, 6], E),
             says="ids [3, 0, 6], as a plain list, and a table of 7 rows",
             error=("The ids came as a plain list here, and a list cannot be computed or compared with.",
                    "A list is accepted wherever an array is: np.asarray(ids) makes an array of it, and "
                    "leaves an array as it is.")),
        Case("an id beyond the last row", (np.array([1, 7]), E), raises=True,
             says="ids [1, 7] and a table of 7 rows: there is no row 7"),
        Case("a negative id", (np.array([2, -1]), E), raises=True,
             says="ids [2, -1] and a table of 7 rows",
             edge="the ids [2, -1] raise no error: E[-1] is the last row, so a wrong id becomes some other "
                  "word. The exercise asks for an error when any id is outside 0 … V-1; NumPy raises one for "
                  "V and above only."),
    ]


def rows(ids, E):
    return E[np.asarray(ids)]


def rows_clipped(ids, E):
    return np.take(E, ids, axis=0, mode="clip")


def rows_or_zeros(ids, E):
    return np.stack([E[i] if 0 <= i < len(E) else np.zeros(E.shape[1]) for i in ids])


def embed_steps(ids, E, pick=rows, ids_as=np.asarray, finish=lambda X: X):
    return finish(pick(ids_as(ids), E))


EMBED = Exercise(
    "1.2", "embed", "01", right.embed,
    arguments={"ids": ("n",), "E": ("V", "d")}, returns={"X": ("n", "d")}, own_memory=True,
    cases=embed_cases, steps=embed_steps,
    passed="A word is a vector now: its row of E, and no arithmetic was needed to find it.",
    mistakes=(
        Mistake("columns", dict(pick=lambda ids, E: E[:, ids]), "the ids pick columns of E, not rows",
                "Here a token is a row. Books that write one embedding per column would be right to pick "
                "columns.", "An id picks a row"),
        Mistake("columns_as_rows", dict(pick=lambda ids, E: E.T[ids]), "the ids pick columns of E, not rows",
                "Here a token is a row. Books that write one embedding per column are right to pick columns.",
                "An id picks a row"),
        Mistake("off_by_one", dict(ids_as=lambda ids: np.asarray(ids) - 1),
                "every id is moved down by one before it picks",
                "Ids begin at 0; id 0 would become -1, which reads the last row and raises no error.",
                "An id picks a row"),
        Mistake("off_by_one_up", dict(ids_as=lambda ids: np.asarray(ids) + 1),
                "every id is moved up by one before it picks",
                "Ids begin at 0, so id 0 picks the first row and the last id would pick none.",
                "An id picks a row"),
        Mistake("take_flat", dict(pick=lambda ids, E: np.take(E, ids)),
                "E is flattened before the ids pick (np.take without an axis)",
                "A token needs its whole row of d numbers, not one number out of the table.",
                "An id picks a row"),
        Mistake("slice_range", dict(pick=lambda ids, E: E[min(ids):max(ids) + 1]),
                "one slice is taken from the smallest id to the largest",
                "It looks right only for ids that follow one another, and it is a view: writing to it "
                "changes E.", "An id picks a row"),
        Mistake("slice_first_to_last", dict(pick=lambda ids, E: E[ids[0]:ids[-1] + 1]),
                "one slice is taken from the first id to the last",
                "It looks right only for ids that follow one another, and it is a view: writing changes E.",
                "An id picks a row"),
        Mistake("clip", dict(pick=rows_clipped),
                "an id outside the table is moved to its edge without a word",
                "A wrong id then reads some other word's row, and nobody hears of it.",
                "An id picks a row"),
        Mistake("wrap", dict(pick=lambda ids, E: E[np.asarray(ids) % len(E)]),
                "an id outside the table is wrapped round to its beginning without a word",
                "A wrong id then reads some other word's row, and nobody hears of it.",
                "An id picks a row"),
        Mistake("zeros", dict(pick=rows_or_zeros),
                "an id outside the table gives a row of zeros without a word",
                "A wrong id should be heard of: it means that text and table do not belong together.",
                "An id picks a row"),
        Mistake("normalised", dict(finish=lambda X: X / np.linalg.norm(X, axis=1, keepdims=True)),
                "each row is divided by its length",
                "Looking up changes nothing. The length of an embedding is something the model has learned.",
                "Dot product or cosine?"),
        Mistake("one_hot", dict(pick=lambda ids, E: np.eye(len(E))[ids]),
                "the one-hot rows are returned without E",
                "One-hot rows times E is a way to look up; the product with E is still missing.",
                "An id picks a row"),
        Mistake("sorted_ids", dict(ids_as=np.sort), "the ids are sorted before they pick",
                "Row i must be the embedding of token i.", "An id picks a row"),
        Mistake("each_once", dict(ids_as=np.unique),
                "an id that comes twice is looked up once, and the ids are sorted",
                "Every token of the text has a row of its own, repeats included.", "An id picks a row"),
        Mistake("summed", dict(finish=lambda X: X.sum(axis=0)), "the rows are added up to one vector",
                "Attention compares tokens with each other, so each keeps its own row.", "An id picks a row"),
        Mistake("averaged", dict(finish=lambda X: X.mean(axis=0)), "the rows are averaged to one vector",
                "Attention compares tokens with each other, so each keeps its own row.", "An id picks a row"),
    ))

# --------------------------------------------------------------------------------------- sinusoidal_positions


def position_cases():
    def case(kind, n, d, **more):
        base = more.get("options", {}).get("base")
        return Case(kind, (n, d), says=f"n = {n}, d = {d}" + (f", base = {base:g}" if base else ""), **more)
    return [
        case("", 6, 8),
        case("as many positions as columns", 6, 6),
        case("one pair of columns", 5, 2),
        case("one position", 1, 4),
        case("two pairs of columns", 3, 4),
        case("another base", 5, 6, options={"base": 100.0}),
        case("many positions", 200, 10),
        case("an odd d", 4, 5, edge="with an odd d it does something else than end in a sine "
             "column of its own. Models use even d, so nothing depends on it.",
             edge_error=", where the exercise asks for a last column of sines. "
             "Models use even d, so nothing depends on it."),
    ]


def falling(j, d, base):
    return base ** -(2 * (j // 2) / d)                      # one frequency a pair


def floored(j, d, base):
    return np.exp(2 * (j // 2) * (-np.log(base) / d // 2))


def interleave(sines, cosines):
    return np.where(np.arange(sines.shape[1]) % 2 == 0, sines, cosines)


def halves(sines, cosines):
    return np.concatenate([sines[:, 0::2], cosines[:, 1::2]], axis=1)


def position_steps(n, d, base=10000.0, frequency=falling, base_used=lambda base: base, first=0,
                   functions=(np.sin, np.cos), turn=lambda angle: angle, arrange=interleave,
                   finish=lambda P: P):
    with np.errstate(all="ignore"):
        p = np.arange(first, n + first)[:, None]
        angle = turn(p * frequency(np.arange(d), d, base_used(base)))
        sine, cosine = functions
        return finish(arrange(sine(angle), cosine(angle)))


SINUSOIDAL_POSITIONS = Exercise(
    "1.3", "sinusoidal_positions", "01", right.sinusoidal_positions,
    arguments={"n": (), "d": ()}, returns={"P": ("n", "d")},
    cases=position_cases, steps=position_steps,
    passed="Every position has a row of its own, and one step turns each pair by the same angle everywhere.",
    mistakes=(
        Mistake("two_i_all_columns", dict(frequency=lambda j, d, base: base ** -(2 * j / d)),
                "the exponent is 2j/d with j counting columns in place of pairs",
                "The i of the formula counts pairs: a sine and its cosine share one frequency, and the "
                "slowest pairs get lost.", "A position as sines and cosines"),
        Mistake("cos_own_frequency", dict(frequency=lambda j, d, base: base ** -(j / d)),
                "every column has a frequency of its own, so that a cosine differs from the sine beside it",
                "Sine and cosine of one angle are a point on a circle; with two angles the pair is no "
                "longer a rotation.", "A position as sines and cosines"),
        Mistake("sin_cos_swapped", dict(functions=(np.cos, np.sin)),
                "cosines stand in the even columns and sines in the odd ones",
                "Column 0 is where everybody expects the sine; a table made one way cannot be read the "
                "other way.", "A position as sines and cosines"),
        Mistake("halves", dict(arrange=halves), "all sines come first and all cosines after them",
                "Many libraries do that; this course, like the paper, sets them side by side: sine, cosine, "
                "sine, cosine.", "A position as sines and cosines"),
        Mistake("base_1000", dict(base_used=lambda base: 1000.0 if base == 10000.0 else base),
                "the default base is 1000, not 10000",
                "The slowest wave is then ten times too quick, and far positions begin to look alike.",
                "A position as sines and cosines"),
        Mistake("base_ignored", dict(base_used=lambda base: 10000.0),
                "the base given is ignored and 10000 used always",
                "An argument that changes nothing is worse than none: nobody notices.",
                "A position as sines and cosines"),
        Mistake("base_fixed_1000", dict(base_used=lambda base: 1000.0), "1000 is used whatever base is given",
                "The slowest wave is then ten times too quick, and the base given changes nothing.",
                "A position as sines and cosines"),
        Mistake("multiply", dict(frequency=lambda j, d, base: base ** (2 * (j // 2) / d)),
                "the position is multiplied by base^(2i/d) in place of divided",
                "The waves get quicker instead of slower, and neighbouring positions jump about.",
                "A position as sines and cosines"),
        Mistake("floor_precedence", dict(frequency=floored),
                "the exponent is computed with // where / is meant, and goes to a whole number",
                "In -log(base)/d//2 the // comes last and cuts everything before it; nearly all waves then "
                "stand still.", "A position as sines and cosines"),
        Mistake("power_swapped", dict(frequency=lambda j, d, base: (2 * (j // 2) / d) ** (1 / base)),
                "base and exponent of the power are swapped",
                "A number to the power 1/10000 is nearly 1, so all columns wave at almost the same speed.",
                "A position as sines and cosines"),
        Mistake("one_frequency", dict(frequency=lambda j, d, base: 1.0 + 0 * j),
                "every pair has the same frequency",
                "One wave repeats after six positions; only many waves of different length tell far "
                "positions apart.", "A position as sines and cosines"),
        Mistake("half_exponent", dict(frequency=lambda j, d, base: base ** -((j // 2) / d)),
                "the exponent is i/d in place of 2i/d",
                "The waves get slower only half as fast as they should.", "A position as sines and cosines"),
        Mistake("last_is_base", dict(frequency=lambda j, d, base: base ** -(2 * (j // 2) / max(d - 2, 1))),
                "the exponent is divided by d - 2 (or by the number of pairs less one)",
                "Then the last wave reaches the base itself; the formula divides by d.",
                "A position as sines and cosines"),
        Mistake("from_one", dict(first=1), "the first position is 1 in place of 0",
                "Positions are counted like ids, from 0: the first row is 0, 1, 0, 1, …",
                "A position as sines and cosines"),
        Mistake("sines_only", dict(functions=(np.sin, np.sin)), "sines stand in all columns",
                "Without its cosine a sine cannot tell whether it is on the way up or down.",
                "A position as sines and cosines"),
        Mistake("int_buffer", dict(finish=lambda P: P.astype(int)),
                "the numbers are written into an array of integers",
                "Everything between -1 and 1 becomes 0 (np.zeros_like keeps the type it is given).",
                "A position as sines and cosines"),
        Mistake("degrees", dict(turn=np.radians), "the angle is taken as degrees",
                "np.sin counts in radians: the quickest wave would need 360 positions for one turn.",
                "A position as sines and cosines"),
        Mistake("transposed", dict(finish=lambda P: P.T), "positions stand in columns in place of rows",
                "A token is a row here, and its position is added to that row.",
                "A position as sines and cosines"),
        Mistake("minus", dict(turn=np.negative), "the angle has a minus sign too many",
                "Then every pair turns the wrong way round.", "A position as sines and cosines"),
    ))

EXERCISES = (TOKEN_IDS, EMBED, SINUSOIDAL_POSITIONS)

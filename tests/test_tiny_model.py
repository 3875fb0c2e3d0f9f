"""The tiny model: its grammar, its gradients, and what the shipped weights can do."""

from dataclasses import replace

import numpy as np
import pytest

from helpers import tiny_model
from helpers.kv_cache import KVCache
from helpers.sampling import next_probabilities
from helpers.tiny_model import corpus, measure, train
from helpers.tiny_model.corpus import (
    FRUITS,
    HELD_OUT,
    KINDS,
    MEN,
    NAMES,
    VERB_OF,
    VOCAB,
    WOMEN,
    WORD_TO_ID,
    grammar,
)
from helpers.tiny_model.gradients import forward, loss_and_gradients
from helpers.tiny_model.model import WEIGHTS, from_arrays, load, save, to_arrays
from helpers.tiny_model.side_by_side import write_stories

LINES = ["i love you", "i love apples", "anna loves apples . ben loves pears . she eats",
         "the cats near the dog", "then emma loves figs . the bird sings . emma buys her"]


@pytest.fixture(scope="module")
def model():
    return tiny_model.load()


def small_weights(seed=0):
    """A model of odd sizes in float64, every array random so that no gradient is zero by symmetry."""
    rng = np.random.default_rng(seed)
    w = train.initial_weights(rng, n_max=9, d_model=6, n_layers=2, n_heads=2, d_k=4)
    return {name: x + rng.normal(0, 0.3, x.shape) for name, x in w.items()}


# ---- the grammar

def test_running_sentences_are_in_the_grammar_and_determined():
    g = grammar()
    assert g.next_words("anna loves apples . ben loves pears . she eats") == {"apples": 1.0}
    assert g.next_words("anna loves apples . ben loves pears . he eats") == {"pears": 1.0}
    assert g.next_words("the cats near the dog") == {"sleep": 1.0}
    assert g.next_words("anna loves apples . she buys") == {"her": 1.0}
    assert {"you", "apples"} <= set(g.next_words("i love"))
    assert g.next_words("i love apples . i love tea . i drink") == {"tea": 1.0}


def test_next_words_add_up_to_one_in_every_state():
    for g in (grammar(), grammar(held_out=False)):
        assert np.allclose(g.probability.sum(axis=1), 1)


def test_text_outside_the_grammar_names_the_word_and_what_could_stand_there():
    with pytest.raises(ValueError, match="'sam' after 'i love'.*one of: you, "):
        grammar().next_words("i love sam")


def test_entropy_by_enumeration():
    """Second route: every story of five words, from `moves` itself, with its probability."""
    def stories(loved, phrase, p, n):
        if n == 0:
            yield p
            return
        options = list(corpus.moves(loved, phrase))
        total = sum(share for _, share, _, _ in options)
        for _, share, loved_after, phrase_after in options:
            yield from stories(loved_after, phrase_after, p * share / total, n - 1)

    p = np.array(list(stories((), ("start",), 1.0, 6)))
    assert p.sum() == pytest.approx(1)
    assert grammar().entropy(7).sum() == pytest.approx(-(p @ np.log(p)), abs=1e-10)


def test_entropy_by_drawing():
    """Third route, for whole stories: the mean of -log p over stories drawn, within five standard errors."""
    stories = grammar().stories(10_000, 41, seed=3)
    nats = -stories.log_p.sum(axis=1)
    assert nats.mean() == pytest.approx(grammar().entropy(41).sum(), abs=5 * nats.std() / 100)
    assert 5 * nats.std() / 100 < 0.01 * nats.mean()


def test_stories_carry_the_probability_the_grammar_gives():
    stories = grammar().stories(20, 30, seed=4)
    for i in range(20):
        words = stories.words(i)
        assert words[0] == "<bos>"
        for t in range(1, 30):
            assert stories.log_p[i, t] == pytest.approx(np.log(grammar().next_words(words[:t])[words[t]]))
            assert stories.allowed[i, t] == len(grammar().next_words(words[:t]))


def test_marked_words_follow_from_the_text_alone():
    """Second route to each kind: a reader in plain Python that knows the rules and not the table."""
    stories, counted = grammar().stories(300, 41, seed=5), dict.fromkeys(KINDS, 0)
    for i in range(300):
        words = stories.words(i)
        for t in np.flatnonzero(stories.kind[i] >= 0):
            kind, before = KINDS[stories.kind[i, t]], words[:t]
            loved = {before[j - 1]: before[j + 1] for j in range(1, t - 1) if before[j] == "loves"}
            if kind == "neighbour":
                assert before[-1] == "buys"
                expected = "her" if before[-2] in ("she", *WOMEN) else "his"
            elif kind == "agreement":
                assert before[-3] == "near" and before[-4] != before[-1]
                expected = VERB_OF[before[-4]]
            elif kind == "reference":
                subject = before[-1 if before[-1] in ("her", "his") else -2]
                group = {"she": WOMEN, "her": WOMEN, "he": MEN, "his": MEN}.get(subject, (subject,))
                expected, = (fruit for name, fruit in loved.items() if name in group)
                assert len(loved) == 2
            else:
                mine = [before[j + 1] for j in range(t - 1) if before[j] == "love" and before[j + 1] != "you"]
                expected, = (thing for thing in mine if (thing in FRUITS) == (before[-1] == "eat"))
                assert len(mine) == 2
            assert words[t] == expected
            counted[kind] += 1
    assert min(counted.values()) > 100


def pairs(stories):
    """The name-fruit pairs of some stories, from their words."""
    found = set()
    for i in range(len(stories.ids)):
        words = stories.words(i)
        found |= {(words[t - 1], words[t + 1]) for t in range(1, len(words) - 1) if words[t] == "loves"}
    return found


def test_held_out_pairs_are_never_trained_on_and_all_others_are():
    everything = {(name, fruit) for name in NAMES for fruit in FRUITS}
    stories = grammar(held_out=False).stories(3000, 41, seed=6)
    assert pairs(stories) == everything - HELD_OUT
    assert pairs(measure.fresh_stories()) >= HELD_OUT


def test_the_stories_that_are_kept_are_those_that_are_drawn():
    kept, drawn = vars(measure.fresh_stories()), vars(measure.draw_stories(*measure.DRAWN))
    assert measure.fresh_stories.__defaults__ == measure.DRAWN
    for name, values in drawn.items():
        np.testing.assert_allclose(kept[name], values, rtol=1e-12, err_msg=name)
        assert kept[name].dtype.kind == values.dtype.kind
    other = measure.fresh_stories(5, 12, 3)
    assert other.ids.shape == (5, 12) and (other.ids == measure.draw_stories(5, 12, 3).ids).all()


def test_every_fresh_story_about_people_has_a_held_out_pair():
    stories = measure.fresh_stories()
    assert len(stories.ids) == 400
    for i in range(400):
        words = stories.words(i)
        found = {(words[t - 1], words[t + 1]) for t in range(1, 40) if words[t] == "loves"}
        assert not set(words) & set(NAMES) or found & HELD_OUT


def test_training_does_not_ask_what_people_with_held_out_fruits_love():
    stories = grammar(held_out=False).stories(500, 41, seed=7)
    for i in range(500):
        words = stories.words(i)
        expected = [t >= 2 and words[t - 1] == "loves" and words[t - 2] in ("lily", "sam") for t in range(41)]
        assert stories.new_fruit[i].tolist() == expected


# ---- gradients and training

def test_gradients_against_finite_differences():
    """Every number of every array, in float64; with a repeated word, words not asked for, n < n_max."""
    w, rng = small_weights(), np.random.default_rng(1)
    ids, targets = rng.integers(0, len(VOCAB), (2, 3, 7))
    ids[0, 3] = ids[0, 1]
    asked = rng.random((3, 7)) < 0.8
    _, gradients = loss_and_gradients(w, ids, targets, asked, n_heads=2)
    assert gradients.keys() == w.keys()
    for name, x in w.items():
        numeric = np.zeros_like(x)
        for i in np.ndindex(x.shape):
            old = x[i]
            x[i] = old + 1e-5
            up, _ = loss_and_gradients(w, ids, targets, asked, n_heads=2)
            x[i] = old - 1e-5
            down, _ = loss_and_gradients(w, ids, targets, asked, n_heads=2)
            x[i] = old
            numeric[i] = (up - down) / 2e-5
        assert np.abs(numeric).max() > 1e-4, name
        assert np.allclose(gradients[name], numeric, rtol=1e-5, atol=1e-8), name


def test_forward_in_training_equals_the_run_of_the_helpers(model):
    for text in LINES:
        trace = model.run(text)
        logits, steps = forward(to_arrays(model), np.stack([trace.ids, trace.ids]), model.n_heads)
        assert np.allclose(logits, trace.logits, atol=1e-4)                # both rows of the batch
        for layer, step in zip(trace.layers, steps[:-1], strict=True):
            assert np.allclose(step["A"][0], layer.A, atol=1e-5)


def test_heads_switched_off_agree_too(model):
    for off in ([(0, 1)], [(1, 3)], [(0, 0), (0, 2), (1, 1)]):
        trace = model.run(LINES[2], without=off)
        logits, _ = forward(to_arrays(model), trace.ids[None], model.n_heads, off)
        assert np.allclose(logits[0], trace.logits, atol=1e-4)
        assert not np.allclose(trace.logits, model.run(LINES[2]).logits, atol=1e-2)


def test_a_short_training_run_lowers_the_loss():
    trained, losses = train.train(seed=1, steps=30, batch=16, show=None)
    assert losses[0] == pytest.approx(np.log(len(VOCAB)), abs=0.2)          # it starts by knowing nothing
    assert losses[-1] < losses[0] - 1
    assert trained.n_max == 40 and trained.E.dtype == np.float32


def test_training_reads_some_unknown_words_and_asks_for_none_and_for_no_held_out_fruit(monkeypatch):
    """What the loop hands to the loss, story by story."""
    seen = []
    monkeypatch.setattr(train, "loss_and_gradients",
                        lambda w, *batch: (seen.append(batch[:3]), loss_and_gradients(w, *batch))[1])
    train.train(seed=3, steps=25, batch=40, show=None)
    read, targets, asked = (np.concatenate(arrays) for arrays in zip(*seen, strict=True))
    assert read.shape == targets.shape == asked.shape == (1000, 40)
    unknown, unk = read == WORD_TO_ID["<unk>"], WORD_TO_ID["<unk>"]
    assert 0.008 < unknown[:, 1:].mean() < 0.012 and not unknown[:, 0].any()
    assert not (targets == unk).any()
    assert np.array_equal(np.where(unknown[:, 1:], targets[:, :-1], read[:, 1:]), targets[:, :-1])
    loves = targets[:, 1:-1] == WORD_TO_ID["loves"]                         # the word at t + 1, for t from 0
    whose = np.isin(targets[:, :-2], [WORD_TO_ID["lily"], WORD_TO_ID["sam"]]) & loves
    assert asked[:, :2].all() and np.array_equal(asked[:, 2:], ~whose) and whose.sum() > 300
    fruits = targets[:, 2:][whose]
    assert not {(VOCAB[a], VOCAB[b]) for a, b in zip(targets[:, :-2][whose], fruits, strict=True)} & HELD_OUT


def test_training_shows_how_far_it_is():
    lines = []
    train.train(seed=1, steps=100, batch=2, show=lines.append)
    assert len(lines) == 1 and "step   100 of 100" in lines[0] and "s left" in lines[0]


def test_adamw_against_its_formulas():
    w = {"W": np.array([[1.0, -2.0]]), "gamma": np.array([3.0])}
    row, optimiser = np.array([1.0, -2.0, 3.0]), train.AdamW(w, decay=0.5, beta1=0.9, beta2=0.98)
    m = v = 0
    expected = row.copy()
    for t, gradient in enumerate(([0.1, -3.0, 2.0], [0.4, 1.0, -1.0]), start=1):
        gradient = np.array(gradient)
        m, v = 0.9 * m + 0.1 * gradient, 0.98 * v + 0.02 * gradient**2
        expected -= 0.01 * (m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.98**t)) + 1e-8) + [0.5, 0.5, 0] * expected)
        optimiser.step(row, gradient, 0.01)
    assert np.allclose(row, expected, rtol=1e-12)


def test_one_cycle_rises_falls_and_ends_at_zero():
    rates = np.array([train.one_cycle(step, 1000, peak=0.1, warm_up=0.1) for step in range(1000)])
    assert rates.argmax() == 99 and rates.max() == pytest.approx(0.1)
    assert rates[-1] == pytest.approx(0, abs=1e-12)
    assert (np.diff(rates[:99]) > 0).all() and (np.diff(rates[99:]) < 0).all()


# ---- the shipped weights

def test_predictions_that_are_kept_are_those_of_the_model_as_it_is_now(model):
    measure._predicted.clear()
    first = measure.predict_words(model)
    np.testing.assert_array_equal(first, measure.predict(model)[0])
    assert measure.predict_words(replace(model)) is first                   # another object, the same weights
    without = [measure.predict_words(model, [(layer, 0)]) for layer in (0, 1)]
    np.testing.assert_array_equal(without[1], measure.predict(model, [(1, 0)])[0])
    changing = replace(model, W_t=model.W_t.copy())
    assert measure.predict_words(changing) is first
    changing.W_t[:] = 0                                                     # in place
    assert not measure.predict_words(changing).any()
    assert measure.predict_words(replace(model, E=model.E[::-1])) is not first
    assert len(measure._predicted) == measure.KEPT and measure.predict_words(model) is not first
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 0
    assert measure.predict(model, [(0, 1), (1, 1)])[0] is measure.predict_words(model, [(1, 1), (0, 1)])


def test_predictions_in_float32_are_those_of_the_model_and_no_word_asked_for_is_near_a_tie(model):
    """Second route: `TinyModel.run` in float64. A near tie is what rounding could turn over in `accuracy`."""
    stories, logits = measure.fresh_stories(), measure.predict_words(model)
    assert logits.dtype == np.float32
    for i in range(0, len(stories.ids), 40):
        theirs = model.run(stories.words(i)[:-1]).logits
        np.testing.assert_allclose(logits[i], theirs, atol=2e-5, rtol=0)
    counted = (stories.kind[:, 1:] >= 0) | (stories.allowed[:, 1:] == 1)        # (m, n)
    heads = [(layer, head) for layer in range(2) for head in range(model.n_heads)]
    for without in ([], *([head] for head in heads), [(1, 0), (1, 2)]):
        second, first = np.sort(measure.predict_words(model, without)[counted], axis=-1)[:, -2:].T
        assert (first - second).min() > 5e-5            # where logits differ by 2e-5 at most


def test_cross_entropy_is_within_five_percent_of_the_grammar(model):
    needs, grammar_needs = measure.cross_entropy(model)
    assert grammar_needs * 0.99 < needs < grammar_needs * 1.05


def test_determined_words_are_right(model):
    assert min(measure.accuracy(model).values()) >= 0.99


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_a_head_that_looks_at_the_right_word_and_is_needed(model, kind):
    scores = measure.head_scores(model)[kind]
    layer, head = (int(i) for i in np.unravel_index(scores.argmax(), scores.shape))
    assert scores[layer, head] >= 0.7
    assert measure.score(model, kind, [(layer, head)]) == pytest.approx(scores[layer, head], abs=1e-6)
    assert measure.accuracy(model, without=[(layer, head)])[kind] < measure.accuracy(model)[kind] - 0.05


def test_scores_against_a_loop_over_one_story_at_a_time(model):
    """Second route to `head_scores`: through `TinyModel.run`, word by word."""
    stories, scores = measure.fresh_stories(), {kind: [] for kind in KINDS}
    for i in range(len(stories.ids)):
        words = stories.words(i)
        patterns = np.stack([layer.A for layer in model.run(words[:-1]).layers])        # (L, h, n, n)
        for t in np.flatnonzero(stories.kind[i, 1:] >= 0):
            kind = KINDS[stories.kind[i, t + 1]]
            right = [j for j in range(t + 1) if words[j] == words[t + 1]]
            right = {"neighbour": [t - 1], "agreement": [t - 3]}.get(kind, right)
            on_rivals = {word: np.zeros(patterns.shape[:2]) for word in measure.RIVALS[kind]}
            for j in set(range(t + 1)) - set(right):
                if words[j] in on_rivals:
                    on_rivals[words[j]] += patterns[:, :, t, j]
            on_right = patterns[:, :, t, right].sum(axis=-1)                            # (L, h)
            scores[kind].append(on_right - np.max(list(on_rivals.values()), axis=0))
    for kind, expected in scores.items():
        assert len(expected) > 200
        assert np.allclose(measure.head_scores(model)[kind], np.mean(expected, axis=0), atol=1e-4)


def test_running_sentences_get_the_right_word(model):
    assert model.run("anna loves apples . ben loves pears . she eats").top(1)[0][0] == "apples"
    assert model.run("anna loves apples . ben loves pears . he eats").top(1)[0][0] == "pears"
    assert model.run("lily loves apples . ben loves pears . she eats").top(1)[0][0] == "apples"     # held out
    assert model.run("the cats near the dog").top(1)[0][0] == "sleep"
    assert model.run("the dog near the cats").top(1)[0][0] == "runs"
    assert model.run("i love apples . i love tea . i drink").top(1)[0][0] == "tea"


def test_an_unread_word_is_never_predicted_and_has_a_vector_of_its_own(model):
    p = model.run("anna loves <unk> . ben loves pears . he eats").probabilities
    assert p[:, [WORD_TO_ID["<unk>"], WORD_TO_ID["<bos>"]]].max() < 0.01
    assert VOCAB[p[-1].argmax()] == "pears"
    norms = np.linalg.norm(model.E, axis=1)
    assert 0.2 * np.median(norms) < norms[WORD_TO_ID["<unk>"]] < 5 * np.median(norms)


def test_weights_are_small_plain_and_those_of_the_corpus(model):
    assert WEIGHTS.stat().st_size < 200_000
    with np.load(WEIGHTS, allow_pickle=False) as file:
        assert all(file[name].dtype == np.float32 for name in file if name not in ("vocab", "n_heads"))
    assert model.vocab == VOCAB and model.word_to_id == WORD_TO_ID
    assert model.n_max >= 40 and len(model.layers) == 2


def test_saved_model_comes_back(model, tmp_path):
    save(model, tmp_path / "copy.npz")
    again = load(tmp_path / "copy.npz")
    assert np.array_equal(again.run(LINES[2]).logits, model.run(LINES[2]).logits)
    assert (tmp_path / "copy.npz").stat().st_size == WEIGHTS.stat().st_size
    assert from_arrays(to_arrays(model)).vocab == model.vocab


def test_shipped_model_lacks_nothing_and_an_untrained_one_nearly_everything(model):
    assert measure.shortfalls(model) == []
    _, w = train.flatten(train.initial_weights(np.random.default_rng(0)))
    lacks = measure.shortfalls(from_arrays({**to_arrays(model), **w}))
    assert any("cross-entropy" in lack for lack in lacks)
    for kind in (*KINDS, "determined"):
        assert any(f"of the {kind} words" in lack for lack in lacks)
    for kind in KINDS:
        assert any(f"does the work for {kind}" in lack for lack in lacks)


def test_report_says_what_was_measured(model):
    report = measure.report(model)
    needs, grammar_needs = measure.cross_entropy(model)
    assert f"cross-entropy {needs:.4f}" in report and f"{grammar_needs:.4f}" in report
    for kind, work in measure.best_heads(model).items():
        layer, head = work.heads[0]
        assert f"{kind:10s} {work.right:.1%} right; layer {layer}, head {head}: " in report
        assert f"score {work.score:.2f}; without {work.without:.1%} right" in report


def test_a_pair_is_named_where_no_single_head_does_it_alone(model, monkeypatch):
    single = measure.head_scores(model)["content"]
    monkeypatch.setattr(measure, "ENOUGH", single.max() + 0.05)
    work = measure.best_heads(model)["content"]
    assert len(set(work.heads)) == 2 and work.score > single.max() + 0.05 and work.shown
    assert all(single[layer, head] >= measure.TELLS for layer, head in work.heads)
    assert work.score == pytest.approx(measure.score(model, "content", work.heads), abs=1e-6)
    assert work.without == measure.accuracy(model, without=work.heads)["content"]


def test_a_model_that_lacks_something_never_replaces_the_shipped_one(tmp_path, capsys):
    before = WEIGHTS.read_bytes()
    assert train.main(["--steps", "2", "--tries", "2"]) == 1
    assert WEIGHTS.read_bytes() == before
    said = capsys.readouterr().out
    assert "seed 7\n" in said and "seed 8\n" in said and "stays as it was" in said
    assert train.main(["--steps", "2", "--tries", "1", "--out", str(tmp_path / "poor.npz")]) == 1
    assert load(tmp_path / "poor.npz").vocab == VOCAB


@pytest.mark.parametrize("arguments", [["--steps", "0"], ["--tries", "0"], ["--seed", "x"]])
def test_wrong_arguments_are_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        train.main(arguments)
    assert arguments[0] in capsys.readouterr().err


# ---- generating, with the keys and values of the past kept and without

STARTS = ["", "i love", "anna loves apples . ben loves pears . she eats", "the cats near the dog"]


def state(caches):
    return [(cache.n_tokens, cache.K.copy(), cache.V.copy()) for cache in caches]


def same_state(before, caches):
    return all(n == cache.n_tokens and np.array_equal(K, cache.K) and np.array_equal(V, cache.V)
               for (n, K, V), cache in zip(before, caches, strict=True))


@pytest.mark.parametrize("text", STARTS)
def test_every_cached_step_equals_a_run_over_the_whole_text(model, text):
    caches = model.new_caches()
    new = words = model.tokens(text)
    while len(words) < model.n_max:
        step, whole = model.run(new, caches=caches), model.run(words)
        np.testing.assert_allclose(step.logits, whole.logits[-len(new):], rtol=1e-9, atol=1e-9)
        for cache, one, full in zip(caches, step.layers, whole.layers, strict=True):
            assert cache.n_tokens == len(words) and one.Q.shape[1] == len(new)
            np.testing.assert_allclose(cache.K, full.K, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(cache.V, full.V, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(one.A, full.A[:, -len(new):], rtol=1e-9, atol=1e-9)
        new = [step.top(1)[0][0]]
        words = [*words, *new]


@pytest.mark.parametrize("text", STARTS)
def test_generating_with_a_cache_says_the_same_words(model, text):
    start = model.tokens(text)
    n_new = model.n_max - len(start)
    written = model.generate(text, n_new)
    assert written == model.generate(text, n_new, cache=False)
    assert written[:len(start)] == start and len(written) == model.n_max
    assert model.generate(written[:-1], 1) == written, "each word is the likeliest after those before it"
    assert model.generate(text, 0) == model.generate(text, 0, cache=False) == start


def test_prefill_in_chunks_equals_prefill_in_one_go(model):
    text = STARTS[2]
    words, whole = model.tokens(text), model.run(text)
    for chunk in range(1, len(words) + 2):
        caches = model.new_caches()
        logits = [model.run(words[i:i + chunk], caches=caches).logits for i in range(0, len(words), chunk)]
        np.testing.assert_allclose(np.concatenate(logits), whole.logits, rtol=1e-9, atol=1e-9)
        assert model.generate(text, 9, chunk=chunk) == model.generate(text, 9, cache=False)


def test_the_cache_spares_the_work(model, monkeypatch):
    rows, run = [], type(model).run

    def counted(self, text, **more):
        rows.append(len(text))
        return run(self, text, **more)

    monkeypatch.setattr(type(model), "run", counted)
    model.generate(STARTS[2], 4)
    model.generate(STARTS[2], 4, chunk=4)
    model.generate(STARTS[2], 4, cache=False)
    assert rows == [11, 1, 1, 1] + [4, 4, 3, 1, 1, 1] + [11, 12, 13, 14]


def test_heads_are_switched_off_with_a_cache_too(model):
    off, caches = [(0, 2), (1, 3)], model.new_caches()
    words = model.tokens(STARTS[2])
    model.run(words[:6], without=off, caches=caches)
    logits = model.run(words[6:], without=off, caches=caches).logits
    np.testing.assert_allclose(logits, model.run(words, without=off).logits[6:], rtol=1e-9, atol=1e-9)


def cache_of(n_heads=4, n_max=40, d_k=12, d_v=12):
    return KVCache(n_heads, n_max, d_k, d_v)


ONE_CACHE = cache_of()


@pytest.mark.parametrize(("caches", "message"), [
    ([cache_of(n_max=2), cache_of()], "cache is full: it holds 0 of 2 tokens, 4 more came"),
    ([cache_of(), cache_of(n_max=2)], "cache is full: it holds 0 of 2 tokens, 4 more came"),
    ([cache_of(), cache_of(d_k=8)], r"layer 1 must hold .* \(4, 12, 12\) a token, got \(4, 8, 12\)"),
    ([cache_of(), cache_of(d_v=8)], r"layer 1 must hold .* \(4, 12, 12\) a token, got \(4, 12, 8\)"),
    ([cache_of(n_heads=1), cache_of()], r"layer 0 must hold .* got \(1, 12, 12\)"),
    ([ONE_CACHE], "each of the 2 layers needs a cache of its own, got 1"),
    ([ONE_CACHE, ONE_CACHE], "each of the 2 layers needs a cache of its own, got 1"),
    ([cache_of() for _ in range(3)], "each of the 2 layers needs a cache of its own, got 3"),
])
def test_caches_that_do_not_fit_are_named_and_stay_as_they_were(model, caches, message):
    before = state(caches)
    with pytest.raises(ValueError, match=message):
        model.run("i love you", caches=caches)
    assert same_state(before, caches)


@pytest.mark.parametrize(("text", "error", "message"), [
    ("<bos> i love you", ValueError, "after the 4 tokens that are kept .* no second '<bos>'"),
    ("", ValueError, "after the 4 tokens that are kept come the new words only, at least one"),
    ("appels", ValueError, "does not know 'appels'; the nearest it knows: apples"),
    (7, TypeError, "a string or a list of strings, got 7"),
    ("i love you . " * 9 + ".", ValueError, r"at most 40 tokens, got 4 \+ 37"),
])
def test_text_that_cannot_follow_is_named_and_the_caches_stay_as_they_were(model, text, error, message):
    caches = model.new_caches()
    model.run("i love you", caches=caches)
    before = state(caches)
    with pytest.raises(error, match=message):
        model.run(text, caches=caches)
    assert same_state(before, caches)


def test_caches_out_of_step_are_named_and_stay_as_they_were(model):
    caches = model.new_caches()
    model.run("i love you", caches=caches)
    caches[1] = model.new_caches()[1]
    before = state(caches)
    with pytest.raises(ValueError, match="out of step: layer 0 holds 4 tokens, layer 1 holds 0"):
        model.run(".", caches=caches)
    assert same_state(before, caches)


@pytest.mark.parametrize("cache", [True, False])
def test_generating_too_much_or_too_little_is_named(model, cache):
    with pytest.raises(ValueError, match=r"at most 40 tokens, got 3 \+ 38"):
        model.generate("i love", 38, cache=cache)
    with pytest.raises(ValueError, match="n_new must be at least 0, got -1"):
        model.generate("i love", -1, cache=cache)
    with pytest.raises(ValueError, match="chunk must be at least 1, got 0"):
        model.generate("i love", 1, cache=cache, chunk=0)


# ---- generating, with words drawn

SETTINGS = [{}, {"temperature": 2.0}, {"temperature": 0.7, "top_k": 4}, {"temperature": 1.5, "top_p": 0.8}]


def drawn(model, text, n_new, seed, **how):
    return model.generate(text, n_new, rng=np.random.default_rng(seed), **how)


@pytest.mark.parametrize("how", SETTINGS)
def test_drawn_words_follow_the_distribution_step_by_step(model, how):
    """Two words after "i love": how often each pair comes, against the product of its probabilities."""
    def exact(words):
        logits = model.run(words).logits
        logits[-1, WORD_TO_ID["<bos>"]] = -np.inf
        return next_probabilities(logits, **how)                                        # (V,)

    m, start, rng = 4000, model.tokens("i love"), np.random.default_rng(5)
    p, counts = np.zeros((2, len(VOCAB), len(VOCAB)))
    for i, share in enumerate(exact(start)):
        p[i] = share * exact([*start, VOCAB[i]]) if share else 0
    for _ in range(m):
        one, two = model.generate(start, 2, rng=rng, **how)[-2:]
        counts[WORD_TO_ID[one], WORD_TO_ID[two]] += 1
    assert not counts[p == 0].any()
    common = p * m > 5
    error = (counts - p * m)[common] / np.sqrt(p * m * (1 - p))[common]
    assert common.sum() > 3 and np.abs(error).max() < 4.5 and np.sqrt((error**2).mean()) < 1.5


@pytest.mark.parametrize("how", SETTINGS)
def test_a_seed_draws_the_same_words_with_and_without_the_cache_and_another_seed_others(model, how):
    written = drawn(model, "i love", 30, seed=3, **how)
    assert written == drawn(model, "i love", 30, seed=3, **how)
    assert written == drawn(model, "i love", 30, seed=3, cache=False, **how)
    assert written[:3] == ["<bos>", "i", "love"] and len(written) == 33
    assert written != drawn(model, "i love", 30, seed=4, **how)


def test_temperature_0_and_top_k_1_are_greedy(model):
    for text in STARTS:
        greedy = model.generate(text, 20)
        assert greedy == drawn(model, text, 20, seed=0, temperature=0)
        assert greedy == drawn(model, text, 20, seed=0, temperature=9.0, top_k=1)


def test_the_beginning_of_a_text_is_never_written_again(model):
    """At a great temperature every word is as likely as any other, and "<bos>" would come in one of 45."""
    words = [word for seed in range(20) for word in drawn(model, "", 39, seed, temperature=1e6)[1:]]
    assert "<bos>" not in words and set(words) == set(VOCAB) - {"<bos>"}
    assert "<bos>" not in model.generate("", 39)[1:]
    eager = from_arrays({**to_arrays(model), "W_t": np.zeros_like(model.W_t)})         # all logits 0, a tie
    assert eager.generate("i", 2) == eager.generate("i", 2, cache=False) == ["<bos>", "i", "<unk>", "<unk>"]


@pytest.mark.parametrize(("how", "error", "message"), [
    ({"temperature": 0.5}, ValueError, r"needs a generator: rng=np.random.default_rng\(0\); without it the"),
    ({"top_k": 3}, ValueError, "top_k and top_p are for drawing words, which needs a generator"),
    ({"top_p": 0.9}, ValueError, "top_k and top_p are for drawing words, which needs a generator"),
    ({"rng": 3}, TypeError, "rng must be a NumPy generator .* got 3"),
    ({"rng": np.random.default_rng(0), "temperature": -1}, ValueError, "at least 0 and finite, got -1"),
])
def test_wrong_settings_for_drawing_are_named(model, how, error, message):
    with pytest.raises(error, match=message):
        model.generate("i love", 1, **how)


# ---- bad input

def test_values_may_be_cut_to_rank_0_and_keys_may_not(model):
    layer = model.layers[0]
    cut = replace(model, layers=[replace(layer, W_v=layer.W_v[:, :0], W_o=layer.W_o[:0]), *model.layers[1:]])
    assert not cut.run("i love").layers[0].update.any()
    with pytest.raises(ValueError, match=r"n_heads must divide the columns of W_q, got 4, \(48, 0\)"):
        replace(model, layers=[replace(layer, W_q=layer.W_q[:, :0], W_k=layer.W_k[:, :0])])



@pytest.mark.parametrize(("text", "error", "message"), [
    ("i love appels", ValueError, "does not know 'appels'; the nearest it knows: apples"),
    ("Anna loves apples", ValueError, "does not know 'Anna'; the nearest it knows: anna"),
    ("qqqq", ValueError, "does not know 'qqqq'; model.vocab lists its words"),
    (["i", 3], TypeError, "a string or a list of strings, got the word 3"),
    (7, TypeError, "a string or a list of strings, got 7"),
    ("i love you . " * 20, ValueError, "at most 40 tokens, got 81"),
])
def test_bad_text_is_named(model, text, error, message):
    with pytest.raises(error, match=message):
        model.run(text)


@pytest.mark.parametrize("without", [[(2, 0)], [(0, 4)], [(-1, 0)], [(0, -1)]])
def test_a_head_that_does_not_exist_is_named(model, without):
    with pytest.raises(ValueError, match=r"without must be pairs \(layer, head\) below \(2, 4\), .* got \("):
        model.run("i love you", without=without)


def test_an_empty_text_is_the_beginning_of_a_story(model):
    assert model.run("").tokens == ["<bos>"]
    assert {word for word, _ in model.run("").top(9)} == set(grammar().next_words(""))


# ---- stories side by side

def test_a_story_written_beside_others_is_the_one_written_alone(model):
    assert write_stories(model, 3, 30) == 3 * [model.generate("", 30)]
    for how in ({}, {"temperature": 0.5, "top_k": 9}, {"temperature": 2, "top_p": 0.9}):
        alone = model.generate("", model.n_max - 1, rng=np.random.default_rng(3), **how)
        assert write_stories(model, 1, model.n_max - 1, np.random.default_rng(3), **how) == [alone]


def test_every_story_follows_from_its_own_words(model):
    stories = write_stories(model, 5, 12, np.random.default_rng(1))
    rng = np.random.default_rng(1)
    for t in range(1, 13):                                  # the stories draw in turn
        for story in stories:
            logits = model.run(story[:t]).logits
            logits[-1, 0] = -np.inf                         # "<bos>" is never written
            p = next_probabilities(logits)
            assert VOCAB[rng.choice(len(p), p=p)] == story[t]
    assert len(set(map(tuple, stories))) == 5


def test_no_stories_and_no_words_are_possible_and_too_many_are_refused(model):
    assert write_stories(model, 0, 5) == [] and write_stories(model, 2, 0) == [["<bos>"], ["<bos>"]]
    with pytest.raises(ValueError, match="n_new"):
        write_stories(model, 1, model.n_max)
    with pytest.raises(TypeError, match="m must be a whole number"):
        write_stories(model, 1.5, 3)
    with pytest.raises(TypeError, match="model must be a TinyModel"):
        write_stories(model.vocab, 1, 3)
    with pytest.raises(ValueError, match="top_p must be above 0"):
        write_stories(model, 1, 3, np.random.default_rng(0), top_p=2)
    with pytest.raises(TypeError, match="rng must be a NumPy generator"):
        write_stories(model, 1, 3, 5)

"""The tiny model with shared keys and values: conversion, gradients, fine-tune, and the files it leaves."""

import json

import numpy as np
import pytest

from helpers.kv_sharing import grouped_query_attention, latent_attention
from helpers.multi_head import merge_heads, split_heads
from helpers.tiny_model import corpus, load, measure, sharing
from helpers.tiny_model.gradients import loss_and_gradients
from helpers.tiny_model.model import to_arrays
from helpers.tiny_model.sharing import Groups, Latent
from helpers.tiny_model.value_ranks import fingerprint

MODEL = load()
TEXT = "anna loves apples . ben loves pears . she eats"
AGAIN = "python -m helpers.tiny_model.sharing"


def test_heads_of_a_group_get_the_mean_of_their_own():
    cut = sharing.convert(MODEL, Groups(2))
    for name in ("W_k", "W_v"):
        for layer, old in zip(cut.layers, MODEL.layers, strict=True):
            new, old = (split_heads(getattr(x, name), 4) for x in (layer, old))     # (4, d, 12)
            for head, group in enumerate(((0, 1), (0, 1), (2, 3), (2, 3))):
                np.testing.assert_allclose(new[head], (old[group[0]] + old[group[1]]) / 2)
    assert cut.layers[1].W_q is MODEL.layers[1].W_q and cut.layers[0].W_o is MODEL.layers[0].W_o


@pytest.mark.parametrize("way", [Groups(4), Latent(48)])
def test_what_keeps_everything_changes_nothing(way):
    same = sharing.convert(MODEL, way)
    np.testing.assert_allclose(same.run(TEXT).logits, MODEL.run(TEXT).logits, atol=1e-8)


@pytest.mark.parametrize("r", [1, 4, 24])
def test_latent_weights_are_the_closest_of_their_rank(r):
    for old, new in zip(MODEL.layers, sharing.convert(MODEL, Latent(r)).layers, strict=True):
        both, cut = (np.hstack([layer.W_k, layer.W_v]) for layer in (old, new))
        s = np.linalg.svd(both, compute_uv=False)
        assert np.linalg.matrix_rank(cut, tol=1e-8) == r
        assert np.linalg.norm(both - cut) == pytest.approx(np.sqrt((s[r:] ** 2).sum()))


@pytest.mark.parametrize("g", [1, 2, 4])
def test_a_grouped_model_computes_grouped_query_attention(g):
    way = Groups(g)
    cut = sharing.convert(MODEL, way)
    for layer, old, seen in zip(cut.layers, MODEL.layers, cut.run(TEXT).layers, strict=True):
        parts = way.parts(old.W_k, old.W_v, 4)
        assert parts["W_k"].shape[1] + parts["W_v"].shape[1] == way.numbers(MODEL) == 24 * g
        K, V = (split_heads(seen.N @ parts[name], g) for name in ("W_k", "W_v"))
        Q = split_heads(seen.N @ layer.W_q, 4)
        np.testing.assert_allclose(grouped_query_attention(Q, K, V, causal=True), seen.Z, atol=1e-9)


@pytest.mark.parametrize("absorbed", [False, True])
def test_a_latent_model_computes_latent_attention(absorbed):
    way = Latent(12)
    cut = sharing.convert(MODEL, way)
    for old, seen in zip(MODEL.layers, cut.run(TEXT).layers, strict=True):
        p = way.parts(old.W_k, old.W_v, 4)
        Z, C = latent_attention(seen.N, old.W_q, p["W_down"], p["W_up_k"], p["W_up_v"], 4, causal=True,
                                absorbed=absorbed)
        assert C.shape == (11, way.numbers(MODEL))
        np.testing.assert_allclose(Z, merge_heads(seen.Z), atol=1e-9)


@pytest.mark.parametrize("way", [Groups(1), Groups(2), Latent(5)])
def test_gradients_by_the_free_weights_against_finite_differences(way):
    w = sharing.free_weights(MODEL, way)
    ids = corpus.grammar().stories(3, 13, 5).ids
    words = ids[:, :-1], ids[:, 1:], np.full((3, 12), True)

    def loss(w):
        return loss_and_gradients(sharing.expanded(w, way, MODEL), *words, 4)

    g = sharing.free_gradients(loss(w)[1], w, way, MODEL)
    for name, W in w.items():
        assert g[name].shape == W.shape
        direction = np.random.default_rng(1).normal(size=W.shape)
        up, down = (loss(w | {name: W + step * direction})[0] for step in (1e-5, -1e-5))
        assert (g[name] * direction).sum() == pytest.approx((up - down) / 2e-5, rel=1e-4, abs=1e-7), name


def test_a_fine_tune_lowers_the_loss_keeps_the_form_and_leaves_the_model_alone():
    before = fingerprint(MODEL)
    for way in (Groups(1), Latent(4)):
        cut = sharing.convert(MODEL, way)
        tuned = sharing.fine_tune(MODEL, way, steps=10, batch=16, show=None)
        assert measure.cross_entropy(tuned)[0] < measure.cross_entropy(cut)[0] - 0.2
        for layer in tuned.layers:
            heads = split_heads(layer.W_k, 4)
            if way == Groups(1):
                assert (heads == heads[0]).all()
            else:
                assert np.linalg.matrix_rank(np.hstack([layer.W_k, layer.W_v]), tol=1e-8) == 4
        assert all(M.shape == to_arrays(MODEL)[name].shape for name, M in to_arrays(tuned).items())
    assert fingerprint(MODEL) == before


@pytest.mark.parametrize(("way", "message"), [
    (Groups(3), "n_kv_heads must divide the heads, got 3 and 4"), (Latent(49), "r must be at most 48")])
def test_ways_that_do_not_fit_are_named(way, message):
    with pytest.raises(ValueError, match=message):
        sharing.convert(MODEL, way)


# The files


def test_the_stored_losses_are_of_the_shipped_model_and_of_every_way():
    assert sharing.kept()["weights"] == fingerprint(MODEL), AGAIN
    assert list(sharing.results()) == list(sharing.WAYS)


@pytest.mark.parametrize("name", sharing.WAYS)
def test_the_stored_losses_before_the_fine_tune_are_measured_again(name):
    found, way = sharing.results()[name], sharing.WAYS[name]
    cut = sharing.convert(MODEL, way)
    assert found.numbers == way.numbers(MODEL)
    assert found.before == pytest.approx(measure.cross_entropy(cut)[0], abs=2e-6), AGAIN
    assert found.right_before == pytest.approx(measure.accuracy(cut), abs=1e-3), AGAIN


def test_the_stored_fine_tuned_model_has_its_losses_and_two_kv_heads():
    found, tuned = sharing.results()["GQA"], load(sharing.GROUPED)
    assert found.after == pytest.approx(measure.cross_entropy(tuned)[0], abs=1e-5), AGAIN
    assert found.right_after == pytest.approx(measure.accuracy(tuned), abs=1e-3), AGAIN
    for layer in tuned.layers:
        for W in (layer.W_k, layer.W_v):
            heads = split_heads(W, 4)
            assert (heads[0] == heads[1]).all() and (heads[2] == heads[3]).all()
            assert not np.allclose(heads[1], heads[2])


def test_a_fine_tune_made_anew_gives_the_stored_numbers():
    found, tuned = sharing.Result.of(MODEL, sharing.WAYS["GQA"])
    stored = sharing.results()["GQA"]
    assert (found.before, found.after) == pytest.approx((stored.before, stored.after), abs=1e-4), AGAIN
    for name, M in to_arrays(load(sharing.GROUPED)).items():
        if M.dtype.kind == "f":
            np.testing.assert_allclose(to_arrays(tuned)[name], M, atol=1e-3, err_msg=AGAIN)


def test_the_command_writes_both_files_and_shows_how_far_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(sharing, "WAYS", {name: sharing.WAYS[name] for name in ("GQA", "r = 6")})
    monkeypatch.setattr(sharing, "fine_tune", lambda model, way, show: sharing.convert(model, way))
    lines = []
    sharing.write(tmp_path, lines.append)
    assert lines[0] == "GQA: 48 numbers a token and layer" and lines[-1].startswith("loss 1.517 before")
    ways = json.loads((tmp_path / sharing.KEPT.name).read_text(encoding="utf-8"))["ways"]
    assert [way["numbers"] for way in ways.values()] == [48, 6]
    cut = load(tmp_path / sharing.GROUPED.name)
    np.testing.assert_allclose(cut.run(TEXT).logits, sharing.convert(MODEL, Groups(2)).run(TEXT).logits,
                               atol=1e-3)

"""The explorer of ranks and what stands behind it: thinner value maps, and the losses kept for them."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from test_explorers import drawing

from helpers import explorers, tiny_model
from helpers.figures.words import number
from helpers.tiny_model import measure, value_ranks

MODEL = tiny_model.load()
HEADS = [(layer, head) for layer in range(2) for head in range(4)]


def map_of(model, layer, head):
    W_v, W_o = model.layers[layer].W_v, model.layers[layer].W_o
    return sum(np.outer(W_v[:, 12 * head + c], W_o[12 * head + c]) for c in range(12))


def cut_by_hand(M, r):
    """M less all but its r strongest directions, found among the eigenvectors of M Mᵀ."""
    _, U = np.linalg.eigh(M @ M.T)                            # in rising order
    U = U[:, len(M) - r:]
    return U @ U.T @ M


# --- thinner models and their losses --------------------------------------------------------------

@pytest.mark.parametrize("r", [0, 1, 6, 12])
def test_thin_values_cut_the_heads_that_are_named_and_no_other(r):
    thin = value_ranks.thin_values(MODEL, r, [(0, 2), (1, 3)])
    for at in HEADS:
        M = map_of(MODEL, *at)
        expected = cut_by_hand(M, r) if at in ((0, 2), (1, 3)) else M
        np.testing.assert_allclose(map_of(thin, *at), expected, atol=1e-9)
    every = value_ranks.thin_values(MODEL, r)
    assert all(np.linalg.matrix_rank(map_of(every, *at), tol=1e-9) == r for at in HEADS)


def test_the_losses_kept_are_those_of_the_shipped_weights():
    stored = value_ranks.kept()
    assert stored["weights"] == value_ranks.fingerprint(MODEL), "python -m helpers.tiny_model.value_ranks"
    assert set(stored["losses"]) == {"all", *(f"{layer}.{head}" for layer, head in HEADS)}
    uncut = measure.cross_entropy(MODEL)[0]
    for at, losses in stored["losses"].items():
        assert len(losses) == 13
        np.testing.assert_allclose(losses[12], uncut, atol=1e-7, err_msg=at)
    for i, at in enumerate([None, *HEADS]):
        r = (5 * i + 1) % 12
        thin = value_ranks.thin_values(MODEL, r, at and [at])
        loss = measure.cross_entropy(thin)[0]
        np.testing.assert_allclose(value_ranks.losses(MODEL, at)[r], loss, atol=1e-7)
    for at in HEADS:                                          # rank 0 is a head switched off
        np.testing.assert_allclose(value_ranks.losses(MODEL, at)[0], measure.cross_entropy(MODEL, [at])[0],
                                   atol=1e-7)


def test_other_weights_are_measured_anew(monkeypatch):
    other = replace(MODEL, W_t=MODEL.W_t * 1.01)
    assert value_ranks.fingerprint(other) != value_ranks.fingerprint(MODEL)
    monkeypatch.setattr(value_ranks, "cross_entropy", lambda model: (abs(model.layers[1].W_o).sum(), 0))
    found = value_ranks.losses(other, (1, 3))
    assert len(found) == 13 and found[0] < found[12] < 1e6 and found != value_ranks.losses(MODEL, (1, 3))


# --- the explorer ---------------------------------------------------------------------------------

@pytest.mark.parametrize("at", [(0, 0), (0, 2), (1, 3)])
def test_every_state_shows_error_numbers_and_loss(at):
    explorer, M = explorers.rank(), map_of(MODEL, *at)
    explorer.layer.value, explorer.head.value = at
    for r in (0, 1, 6, 11, 12):
        explorer.r.value = r
        svg, picture = drawing(explorer), explorer.picture()
        root = ET.fromstring(svg)
        assert svg == picture.drawing
        row = next(line for line in picture.text.splitlines() if "(chosen)" in line)
        cells = row.replace(" (chosen)", "").split()
        error = np.linalg.norm(M - cut_by_hand(M, r)) / np.linalg.norm(M)
        assert cells[0] == str(r) and abs(float(cells[-4]) - error) < 0.0051 and cells[-3] == str(96 * r)
        losses = [value_ranks.losses(MODEL, at)[r], value_ranks.losses(MODEL)[r]]
        assert cells[-2:] == [number(loss, 3) for loss in losses]
        words = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
        assert {*cells[-4:], f"of 1152: {1 - r / 12:.0%} saved"} <= set(words)
        filled = [n for n in root.iter("{http://www.w3.org/2000/svg}rect") if n.get("fill") == "var(--sa-V)"]
        assert len(filled) == r
        assert ("nothing is cut" in picture.title) == (r == 12)


def test_the_singular_values_stand_as_bars_of_their_size():
    explorer = explorers.rank(1, 3, 12)
    root = ET.fromstring(drawing(explorer))
    tall = [float(n.get("height")) for n in root.iter("{http://www.w3.org/2000/svg}rect")
            if n.get("fill") == "var(--sa-V)"]
    s = np.linalg.svd(map_of(MODEL, 1, 3), compute_uv=False)[:12]
    np.testing.assert_allclose(np.array(tall) / tall[0], s / s[0], atol=0.01)


def test_the_rank_goes_forth_and_back_and_stops_at_the_ends():
    explorer = explorers.rank(r=11)
    seen = []
    for button in [explorer.on] * 2 + [explorer.back] * 13:
        button.click()
        seen.append(explorer.r.value)
    assert seen == [12, 12, *range(11, -1, -1), 0] and not explorer.back.disabled and not explorer.on.disabled


def test_heads_are_measured_once():
    explorer = explorers.rank()
    first = explorer.measure()
    explorer.r.value = 9
    explorer.head.value = 0
    explorer.head.value = 3
    assert explorer.measure() is first and len(explorer.measures) == 2


@pytest.mark.parametrize("arguments, says", [
    (dict(layer=2), "layer must be one of 0, 1, got 2"), (dict(head=4), "got 4"),
    (dict(r=13), "r must be one of 0 … 12, got 13"), (dict(r=-1), "got -1")])
def test_a_state_that_does_not_exist_is_refused(arguments, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        explorers.rank(**arguments)


def test_the_state_is_said_and_the_bundle_has_its_picture():
    explorer = explorers.rank(0, 1, 3)
    said = re.search(r'role="status"[^>]*>(.*?)</p>', explorer.canvas.value).group(1)
    assert said == "layer 0, head 1, rank r 3"
    bundle, picture = explorer._repr_mimebundle_(), explorer.picture()
    assert bundle[explorers.VIEW]["model_id"] == explorer.box.model_id
    assert bundle["image/svg+xml"] == picture.svg and bundle["text/plain"] == picture.text == repr(explorer)


def test_a_change_that_rounds_to_nothing_is_no_change():
    titles = [str(explorers.rank(layer=layer, head=head, r=r)).splitlines()[0]
              for layer in (0, 1) for head in range(4) for r in range(12)]
    assert not [title for title in titles if "by 0.000" in title]
    assert [title for title in titles if title.endswith("the loss stays the same")]

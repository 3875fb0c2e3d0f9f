"""The explorer of scale and saturation: every control, against scores, weights and slopes made one by one."""

import itertools
import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from test_explorers import drawing, numbers

from helpers import explorers
from helpers.explorers.saturation import KEYS, WAYS, WIDTHS, entropy, slope
from helpers.figures.saturation import size
from helpers.figures.words import number

SVG = "{http://www.w3.org/2000/svg}"


def softmax_by_hand(row):
    e = [math.exp(s - max(row)) for s in row]
    return [v / sum(e) for v in e]


def typical(rows):
    """(entropy, size of the gradient) of a typical row: the medians, from a Jacobian for each row."""
    entropies, sizes = [], []
    for row in rows:
        a = np.array(softmax_by_hand(row.tolist()))
        entropies.append(-sum(v * math.log(v) for v in a if v))
        sizes.append(np.linalg.norm(np.diag(a) - np.outer(a, a)))
    return np.median(entropies), np.median(sizes)


def read(text):
    """(facts, bars, {curve: {d_k: cells}}, d_k that is marked) of the text form."""
    lines = text.splitlines()
    facts = {re.split(r"  +", line)[0]: re.split(r"  +", line)[1] for line in lines[1:5]}
    bars = numbers(" ".join(line[5:] for line in lines[6:6 + KEYS]).split()).reshape(KEYS, 3)
    curves, name, marked = {}, None, set()
    for line in lines[6 + KEYS:]:
        if line.endswith("typical row:"):
            name = line.split(",")[0]
            curves[name] = {}
        elif re.match(r"\d+( \(now\))?  ", line):
            cells = re.split(r"  +", line)
            curves[name][int(cells[0].split()[0])] = cells[1:]
            if "(now)" in line:
                marked.add(int(cells[0].split()[0]))
    return facts, bars, curves, marked


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_control_at_its_least_middle_and_greatest(seed):
    explorer = explorers.scale_and_saturation()
    explorer.seed.value = seed
    for index, T, divided in itertools.product((0, 5, 10), (0.1, 2.5, 5), (True, False)):
        explorer.d_k.index, explorer.temperature.value, explorer.scores.value = index, T, divided
        d_k, svg = WIDTHS[index], drawing(explorer)
        root = ET.fromstring(svg)
        assert svg == explorer.picture().drawing
        facts, bars, curves, marked = read(explorer.picture().text)
        raw = explorer.raw()[d_k]
        into = raw / (math.sqrt(d_k) if divided else 1) / T
        np.testing.assert_allclose(bars[:, 0], raw[0], atol=0.0051)
        np.testing.assert_allclose(bars[:, 1], into[0], atol=0.0051, rtol=1e-5)
        np.testing.assert_allclose(bars[:, 2], softmax_by_hand(into[0].tolist()), atol=0.0051)
        H, g = typical(into)
        assert facts == {"spread of raw scores": number(raw.std()),
                         "entropy, typical row": f"{number(H)} of 1.79",
                         "spread of what softmax gets": number(into.std()), "gradient, typical row": size(g)}
        words = {node.text for node in root.iter(SVG + "text")}
        assert {*facts.values(), *map(number, into[0])} <= words and marked == {d_k}
        column = WAYS.index(WAYS[0] if divided else WAYS[1])
        for (_, cells), value in zip(curves.items(), (H, g), strict=True):
            assert cells[d_k][column] == size(value)
        rings = [n for n in root.iter(SVG + "rect") if n.get("rx") == "8"]
        assert len(rings) == 2


def test_all_widths_of_both_curves_are_those_of_their_rows():
    explorer = explorers.scale_and_saturation(temperature=0.5, seed=3)
    _, _, curves, _ = read(explorer.picture().text)
    for d_k in WIDTHS:
        for c, by in enumerate((math.sqrt(d_k), 1)):
            found = typical(explorer.raw()[d_k] / by / 0.5)
            assert [curve[d_k][c] for curve in curves.values()] == [size(v) for v in found]


def test_what_the_picture_is_for_holds():
    _, _, curves, _ = read(explorers.scale_and_saturation().picture().text)
    H, g = ({d: [float(c.replace("−", "-")) for c in cells] for d, cells in curve.items()} for curve in
            curves.values())
    assert all(1.4 < H[d][0] < 1.7 and 0.37 < g[d][0] < 0.4 for d in WIDTHS)
    assert H[1024][1] < 0.01 and g[1024][1] * math.sqrt(1024) < 0.001 * g[1024][0]
    assert all(H[a][1] > H[b][1] and g[a][1] > g[b][1] for a, b in itertools.pairwise(WIDTHS[3:]))


def test_scores_spread_like_the_root_of_d_k_and_a_wider_query_goes_on_from_a_narrower():
    raw = explorers.scale_and_saturation().raw()
    assert set(raw) == set(WIDTHS) and all(S.shape == (300, KEYS) for S in raw.values())
    for d_k, S in raw.items():
        assert abs(S.var() / d_k - 1) < 0.15 and abs(S.mean()) < 0.15 * math.sqrt(d_k)
    apart = raw[1024] - raw[512]
    assert abs(apart.var() / 512 - 1) < 0.15 and abs(np.corrcoef(apart.ravel(), raw[512].ravel())[0, 1]) < 0.1


def test_entropy_and_slope_at_their_ends_and_without_cancellation():
    even, one = np.full((1, 4), 0.25), np.array([[1.0, 0, 0, 0]])
    np.testing.assert_allclose(entropy(np.concatenate([even, one])), [math.log(4), 0])
    np.testing.assert_allclose(slope(np.concatenate([even, one])), [math.sqrt(3) / 4, 0])
    far = np.array([[1.0, 1e-40, 0.0]])
    np.testing.assert_allclose(slope(far), [2e-40], rtol=1e-6)          # four numbers of 1e-40


def test_drawn_numbers_are_kept_for_each_seed():
    explorer = explorers.scale_and_saturation()
    first = explorer.raw()
    explorer.seed.value = 1
    other = explorer.raw()
    explorer.seed.value = 0
    assert explorer.raw() is first and not np.allclose(first[64], other[64]) and len(explorer.drawn) == 2
    assert drawing(explorer) == drawing(explorers.scale_and_saturation())


@pytest.mark.parametrize("arguments, says", [
    (dict(d_k=0), "d_k must be one of 1 … 4,096, got 0"), (dict(d_k=5000), "got 5000"),
    (dict(seed=-1), "seed must be at least 0"),
    (dict(temperature=0), "temperature must be positive"), (dict(temperature=math.nan), "got nan"),
    (dict(temperature=-2), "got -2")])
def test_a_state_that_does_not_exist_is_refused(arguments, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        explorers.scale_and_saturation(**arguments)


def test_a_state_out_of_the_usual_is_shown_as_asked():
    explorer = explorers.scale_and_saturation(d_k=100, temperature=9, scale=False, seed=12)
    facts, _, curves, marked = read(explorer.picture().text)
    assert marked == {100} and explorer.picture().title.startswith("d_k = 100, not divided, T = 9: entropy ")
    assert number(explorer.raw()[100].std() / 9) == facts["spread of what softmax gets"]
    assert all(len(curve) == len(WIDTHS) + 1 for curve in curves.values())


@pytest.mark.parametrize("x, text", [(0.394, "0.39"), (0.0557, "0.056"), (0.0031, "3.1e−03"),
                                     (2.7e-7, "2.7e−07"), (0, "less than 1e−12"), (1.5, "1.50")])
def test_sizes_are_written_with_two_digits_that_count(x, text):
    assert size(x) == text


def test_the_state_is_said_and_the_bundle_has_its_picture():
    explorer = explorers.scale_and_saturation(scale=False)
    said = re.search(r'role="status"[^>]*>(.*?)</p>', explorer.canvas.value).group(1)
    assert said == "scores not divided, seed 0, d_k 64, temperature 1"
    bundle, picture = explorer._repr_mimebundle_(), explorer.picture()
    assert bundle[explorers.VIEW]["model_id"] == explorer.box.model_id
    assert bundle["image/svg+xml"] == picture.svg and bundle["text/plain"] == picture.text == repr(explorer)
    assert all(c.tooltip for c in explorer.sliders)

"""The explorer of what context costs: every model and control, against products counted one by one."""

import itertools
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from test_explorers import drawing

from helpers import explorers, tiles
from helpers.explorers.costs import MODELS, OWN, tile_numbers, times_less
from helpers.figures.cache_sizes import size_text
from helpers.figures.words import large, thousands
from helpers.figures.work_curves import percent
from helpers.published_models import PUBLISHED

SVG = "{http://www.w3.org/2000/svg}"


def counted(n, d, h, kept, d_ff, gated, causal):
    """FLOPs of each part, as the shapes of its products say."""
    def product(rows, inner, columns):
        return 2 * rows * inner * columns

    wide = d // h
    pairs = sum(range(n + 1)) if causal else n * n
    return {"projections": product(n, d, d) + 2 * product(n, d, kept * wide) + product(n, h * wide, d),
            "MLP": (2 if gated else 1) * product(n, d, d_ff) + product(n, d_ff, d),
            "scores": h * 2 * pairs * wide, "weighted sum": h * 2 * pairs * wide}


def check(explorer, d, h, layers, kept, d_ff, gated):
    """The picture of the state against what is counted here."""
    n, causal = explorer.n.value, explorer.causal.value
    d_ff = d_ff if explorer.mlp.value else 0
    svg, picture = drawing(explorer), explorer.picture()
    assert svg == picture.drawing
    words = {node.text for node in ET.fromstring(svg).iter(SVG + "text")}
    parts = counted(n, d, h, kept, d_ff, gated, causal)
    total, square = sum(parts.values()), parts["scores"] + parts["weighted sum"]
    for name, flops in parts.items():
        if flops:
            assert {name, large(flops), percent(flops / total)} <= words
    assert ("MLP" in words) == bool(d_ff)
    assert {large(layers * total), percent(square / total)} <= words
    whole = h * n * n * 2
    in_tiles = (min(n, 256) * min(n, max(1024, 2**18 // n)) + 2 * min(n, 256)) * 2
    assert {size_text(whole), size_text(in_tiles), size_text(2 * kept * n * (d // h) * 2),
            times_less(whole / in_tiles)} <= words
    grows = {f"projections{' and MLP' if d_ff else ''}: grow with n",
             "scores and weighted sum: grow with n²"}
    assert grows <= words and all(name in picture.text for name in grows)
    assert ("Own sizes" in picture.text) == (explorer.model.value == OWN)
    assert ("4 · d_model" in picture.text) == (explorer.model.value == OWN and bool(d_ff))
    overtakes = int(re.search(r"overtakes at\s+([\d,]+) tokens", picture.text)[1].replace(",", ""))
    for at, more in ((overtakes, True), (overtakes - 1, False)):
        parts = counted(at, d, h, kept, d_ff, gated, causal)
        assert (parts["scores"] * 2 >= parts["projections"] + parts["MLP"]) == more
    tokens = "1 token" if n == 1 else f"{thousands(n)} tokens"
    assert f"at {tokens} n² is {percent(square / total)} of the work" in picture.title
    now, = (line for line in picture.text.splitlines() if "(now)" in line)
    assert now.split("(now)")[1].split() == large(total - square).split() + large(square).split()


@pytest.mark.parametrize("n", [1, 64, 256, 300, 1024, 3000])
def test_tiles_are_as_large_as_those_of_the_attention_that_works_in_them(n, monkeypatch):
    largest = []

    class Watched:
        """NumPy, with a look at the room that is made for scores, maxima and sums."""

        def __getattr__(self, name):
            return getattr(np, name)

        def empty(self, shape, dtype):
            largest.append(shape[0] * shape[1] + 2 * shape[0])
            return np.empty(shape, dtype)

    monkeypatch.setattr(tiles, "np", Watched())
    Q = K = V = np.ones((2, n, 3))
    tiles.attend_in_tiles(Q, K, V)
    assert tile_numbers(n) == max(largest)


def at_ends(explorer, *names):
    """Put these controls at their least, middle and greatest."""
    controls = [getattr(explorer, name) for name in names]
    for chosen in itertools.product(*(sorted({0, len(c.options) // 2, len(c.options) - 1})
                                      for c in controls)):
        for control, index in zip(controls, chosen, strict=True):
            control.index = index
        yield


@pytest.mark.parametrize("name", MODELS)
def test_every_model_at_the_ends_of_the_other_controls(name):
    explorer, m = explorers.context_cost(), PUBLISHED[name]
    explorer.model.value = name
    for _ in at_ends(explorer, "n", "mlp", "causal"):
        check(explorer, m.n_heads * m.d_head, m.n_heads, m.n_layers, m.n_kv_heads, m.d_ff, m.gated)
    assert explorer.model.value == name and m.source in explorer.picture().text


def test_every_size_of_ones_own_at_its_least_middle_and_greatest():
    explorer, seen = explorers.context_cost(), set()
    for _ in at_ends(explorer, "n", "d_model"):
        for i, _ in enumerate(at_ends(explorer, "n_heads", "mlp")):
            explorer.layers.value = layers = (1, 64, 128)[i % 3]
            d, h = explorer.d_model.value, explorer.n_heads.value
            assert explorer.model.value == OWN and d % h == 0
            check(explorer, d, h, layers, h, 4 * d, False)
            seen.add((explorer.n.value, d, h, explorer.mlp.value, layers))
    assert len(seen) == 3 * 3 * 3 * 2


@pytest.mark.parametrize("name, parameters, words, tied", [
    ("GPT-3", 175e9, 50257, True), ("Llama 2 7B", 6.74e9, 32000, False),
    ("Llama 3 8B", 8.03e9, 128256, False), ("Llama 3 70B", 70.6e9, 128256, False),
    ("SmolLM2-135M", 134.5e6, 49152, True)])
def test_published_widths_give_the_published_number_of_parameters(name, parameters, words, tied):
    m = PUBLISHED[name]
    d = m.n_heads * m.d_head
    layer = counted(1, d, m.n_heads, m.n_kv_heads, m.d_ff, m.gated, False)
    weights = m.n_layers * (layer["projections"] + layer["MLP"]) // 2 + words * d * (1 if tied else 2)
    np.testing.assert_allclose(weights, parameters, rtol=4e-3)


def test_the_lines_cross_where_the_dotted_line_stands():
    root = ET.fromstring(drawing(explorers.context_cost("GPT-3")))
    lines = []
    for dash in ("none", "7 4"):
        node = [n for n in root.iter(SVG + "path") if n.get("stroke-width") == "2.2"
                and n.get("stroke-dasharray", "none") == dash][0]
        lines.append(np.array(re.findall(r"([\d.]+) ([\d.]+)", node.get("d")), dtype=float))
    first, second = lines
    x = np.interp(0, (second - first)[::-1, 1], first[::-1, 0])
    dotted, = (n for n in root.iter(SVG + "path") if n.get("stroke-dasharray") == "2 3")
    assert abs(float(re.match(r"M([\d.]+)", dotted.get("d"))[1]) - x) < 1.5


def test_a_model_brings_its_sizes_and_is_drawn_once_and_a_moved_size_is_ones_own():
    explorer = explorers.context_cost()
    count = []
    explorer.canvas.observe(count.append, "value")
    for name, sizes in (("Llama 3 8B", (4096, 32, 32)), ("SmolLM2-135M", (576, 9, 30)),
                        ("GPT-3", (12288, 96, 96))):
        explorer.model.value = name
        assert (explorer.d_model.value, explorer.n_heads.value, explorer.layers.value) == sizes
    assert len(count) == 3
    explorer.d_model.value = 1024
    assert explorer.model.value == OWN and explorer.n_heads.value == 16 and len(count) == 4
    assert [v for _, v in explorer.n_heads.options] == [4, 8, 16, 32, 64, 128]
    explorer.model.value = "SmolLM2-135M"
    explorer.layers.value = 2
    assert explorer.model.value == OWN and (explorer.d_model.value, explorer.n_heads.value) == (576, 9)
    explorer.model.value = "GPT-3"
    explorer.model.value = OWN
    assert explorer.d_model.value == 12288 and "96 heads of 128" in explorer.picture().text


@pytest.mark.parametrize("arguments, d, h, layers", [
    (dict(d_model=48, n_heads=4, layers=2, n=40), 48, 4, 2), (dict(d_model=1000), 1000, 20, 96),
    (dict(d_model=7), 7, 1, 96), (dict(layers=200), 12288, 96, 200), (dict(n_heads=8), 12288, 8, 96),
    (dict(n=1), 12288, 96, 96), (dict(model=OWN), 12288, 96, 96)])
def test_sizes_out_of_the_usual_are_shown_as_asked(arguments, d, h, layers):
    explorer = explorers.context_cost(**arguments)
    assert explorer.n.value == arguments.get("n", 2048)
    assert (explorer.d_model.value, explorer.n_heads.value, explorer.layers.value) == (d, h, layers)
    check(explorer, d, h, layers, h, 4 * d, False)


def test_sizes_that_are_the_models_own_leave_it_the_model():
    m = PUBLISHED["Llama 3 8B"]
    explorer = explorers.context_cost("Llama 3 8B", layers=m.n_layers, n_heads=m.n_heads)
    assert explorer.model.value == "Llama 3 8B"
    assert explorer.picture().text == explorers.context_cost("Llama 3 8B").picture().text
    assert explorers.context_cost("Llama 3 8B", layers=m.n_layers + 1).model.value == OWN


@pytest.mark.parametrize("arguments, says", [
    (dict(model="GPT-9"), "model must be one of GPT-3, Llama 2 7B"),
    (dict(model="PaLM 540B", layers=2), "got 'PaLM 540B'"),
    (dict(n=0), "n must be one of 1 … 100,000,000"), (dict(d_model=0), "d_model must be one of 1 …"),
    (dict(layers=0), "layers must be one of 1 …"), (dict(n_heads=5), "n_heads must divide d_model, got 5"),
    (dict(d_model=64, n_heads=128), "n_heads must divide d_model, got 128 and 64")])
def test_a_state_that_does_not_exist_is_refused(arguments, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        explorers.context_cost(**arguments)


@pytest.mark.parametrize("x, text", [(0, "0"), (999_999, "999,999"), (1e6, "1.00 · 10⁶"),
                                     (9.999e11, "1.00 · 10¹²"), (2.345e15, "2.35 · 10¹⁵")])
def test_flops_are_written_with_a_power_of_ten(x, text):
    assert large(x if x > 1e6 else int(x)) == text


@pytest.mark.parametrize("share, text", [(0, "0.0 %"), (4e-4, "under 0.1 %"), (6e-4, "0.1 %"),
                                         (0.0139, "1.4 %"), (0.1, "10 %"), (0.989, "99 %"),
                                         (0.9972, "99.7 %"), (0.99949, "99.9 %"), (0.9996, "over 99.9 %"),
                                         (1, "100 %")])
def test_shares_are_written_as_percent(share, text):
    assert percent(share) == text


def test_the_state_is_said_and_the_bundle_has_its_picture():
    explorer = explorers.context_cost(causal=True)
    said = re.search(r'role="status"[^>]*>(.*?)</p>', explorer.canvas.value).group(1)
    assert said == ("model GPT-3, counted attention and MLP, pairs those that may be read, n 2,048, "
                    "d_model 12,288, heads 96, layers 96")
    bundle, picture = explorer._repr_mimebundle_(), explorer.picture()
    assert bundle[explorers.VIEW]["model_id"] == explorer.box.model_id
    assert bundle["image/svg+xml"] == picture.svg and bundle["text/plain"] == picture.text == repr(explorer)
    assert all(c.tooltip for c in explorer.sliders)

"""The cache calculator: every model and every control, against keys and values counted as arrays."""

import itertools
import re
import xml.etree.ElementTree as ET

import pytest
from test_explorers import drawing

from helpers import explorers
from helpers.figures.cache_sizes import size_text
from helpers.kv_cache import KVCache, cache_bytes, latent_cache_bytes
from helpers.published_models import PUBLISHED


def shown(explorer):
    """The rows of the text form: [(name, published, bytes, formula)]."""
    lines = explorer.picture().text.splitlines()[2:6]
    out = []
    for line in lines:
        name, formula = line.split("  ")[0], line.split("  ")[-1].strip()
        out.append((name.removesuffix(" (published so)"), "(published so)" in name,
                    int(formula.split(" = ")[1].removesuffix(" bytes").replace(",", "")), formula))
    return out


def product(formula):
    """What the numbers of a formula give: its factors multiplied, a bracket added up."""
    total = 1
    for factor in formula.split(" = ")[0].split(" · "):
        total *= sum(int(n.replace(",", "")) for n in re.findall(r"\d[\d,]*", factor))
    return total


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_control_at_its_least_middle_and_greatest(name):
    explorer, m = explorers.cache_calculator(), PUBLISHED[name]
    explorer.model.value = name
    assert explorer.groups.options[0][1] == 1 and explorer.groups.options[-1][1] == m.n_heads
    controls = [explorer.n_tokens, explorer.batch, explorer.bytes_per_value, explorer.groups]
    spots = [sorted({0, len(c.options) // 2, len(c.options) - 1}) for c in controls]
    for chosen in itertools.product(*spots):
        for control, index in zip(controls, chosen, strict=True):
            control.index = index
        t, b, v, g = (c.value for c in controls)
        svg, rows = drawing(explorer), shown(explorer)
        assert svg == explorer.picture().drawing
        words = [node.text for node in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
        assert [row[2] for row in rows[:3]] == [v * b * t * m.n_layers * n * m.d_head * 2
                                                for n in (m.n_heads, g, 1)]
        d_c, d_r = m.latent or (4 * m.d_head, m.d_head / 2)
        assert rows[3][2] == v * b * t * m.n_layers * (d_c + d_r)
        for _, _, size, formula in rows:
            assert product(formula) == size and {formula, size_text(size)} <= set(words)
        so = [row[0] for row in rows if row[1]]
        kind = 3 if m.latent else 0 if m.n_kv_heads == m.n_heads else 2 if m.n_kv_heads == 1 else 1
        assert so == ([rows[kind][0]] if kind != 1 or g == m.n_kv_heads else [])
        less = rows[0][2] / rows[2][2]
        assert less == 1 or any(word.endswith(f"a token, {less:.1f} times less") for word in words)
        as_published = t * v * b * m.n_layers * (d_c + d_r if m.latent else 2 * m.n_kv_heads * m.d_head)
        assert explorer.picture().title.startswith(f"{name}: {size_text(as_published)} for")
        assert ("It is published with" in explorer.picture().text) == (not so)
        assert ("was released for" in explorer.picture().text) == (t > m.context)


def test_the_bytes_are_those_of_arrays():
    m = PUBLISHED["SmolLM2-135M"]
    cache = KVCache(m.n_kv_heads, 50, m.d_head, dtype="float16")
    cache.append(*([[[1.0] * m.d_head] * 50] * m.n_kv_heads for _ in "KV"))
    rows = shown(explorers.cache_calculator("SmolLM2-135M", n_tokens=50))
    assert rows[1][2] == m.n_layers * cache.nbytes


@pytest.mark.parametrize("name, a_token, d_attention", [
    ("GPT-3", 4608, 12288), ("Llama 2 7B", 512, 4096), ("Llama 3 8B", 128, 4096), ("Llama 3 70B", 320, 8192),
    ("PaLM 540B", 118, 12288), ("SmolLM2-135M", 22.5, 576)])
def test_published_sizes_give_the_kib_a_token_and_the_width_of_all_heads(name, a_token, d_attention):
    m = PUBLISHED[name]
    assert cache_bytes(m.n_layers, m.n_heads, m.n_kv_heads, m.d_head, 1) == a_token * 1024
    assert m.n_heads * m.d_head == d_attention and m.n_heads % m.n_kv_heads == 0


def test_deepseek_v2_keeps_what_its_paper_says():
    m = PUBLISHED["DeepSeek-V2"]
    assert latent_cache_bytes(m.n_layers, *m.latent, 1, bytes_per_value=1) == 34_560
    assert cache_bytes(m.n_layers, m.n_heads, m.n_kv_heads, m.d_head, 1, bytes_per_value=1) == 1_966_080


@pytest.mark.parametrize("size, text", [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1.00 KiB"),
                                        (3 * 2**30, "3.00 GiB"), (5 * 2**50, "5.00 PiB"),
                                        (5 * 2**70, "5120.00 EiB")])
def test_sizes_are_written_in_the_unit_that_suits_them(size, text):
    assert size_text(size) == text


@pytest.mark.parametrize("sizes", [(2, -1, 3, 4), (2.5, 1, 3, 4), (2, 1, 3, 4, 0)])
def test_latent_bytes_refuse_what_is_no_count(sizes):
    with pytest.raises((ValueError, TypeError)):
        latent_cache_bytes(*sizes)


def test_another_model_brings_its_own_groups_and_is_drawn_once():
    explorer = explorers.cache_calculator("PaLM 540B", n_kv_heads=16)
    count = []
    explorer.canvas.observe(count.append, "value")
    for name, groups in (("Llama 3 70B", 8), ("SmolLM2-135M", 3), ("GPT-3", 8)):
        explorer.model.value = name
        assert explorer.groups.value == groups
        assert len(explorer.groups.tooltips) == len(explorer.groups.options)
    assert len(count) == 3


@pytest.mark.parametrize("arguments, says", [
    (dict(model="GPT-9"), "model must be one of GPT-3, Llama 2 7B"), (dict(n_tokens=0), "n_tokens"),
    (dict(batch=0), "batch"), (dict(bytes_per_value=3), "bytes_per_value must be one of 1, 2, 4, got 3"),
    (dict(n_kv_heads=3), "n_kv_heads must be one of 1, 2, 4, 8, 16, 32, got 3")])
def test_a_state_that_does_not_exist_is_refused(arguments, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        explorers.cache_calculator(**arguments)


def test_the_state_is_said_and_the_bundle_has_its_picture():
    explorer = explorers.cache_calculator("Llama 3 8B", n_tokens=1000, batch=3)
    said = re.search(r'role="status"[^>]*>(.*?)</p>', explorer.canvas.value).group(1)
    assert said == "model Llama 3 8B, tokens 1,000, batch 3, bytes a number 2, KV heads (GQA) 8"
    bundle, picture = explorer._repr_mimebundle_(), explorer.picture()
    assert bundle[explorers.VIEW]["model_id"] == explorer.box.model_id
    assert bundle["image/svg+xml"] == picture.svg and bundle["text/plain"] == picture.text == repr(explorer)


def test_heads_that_share_are_counted_by_what_is_kept_not_by_groups():
    explorer = explorers.cache_calculator("Llama 3 8B")
    for value, name in ((8, "GQA: 8 KV heads"), (1, "GQA: 1 KV head")):
        explorer.groups.value = value
        assert shown(explorer)[1][0] == name and "group" not in explorer.picture().text

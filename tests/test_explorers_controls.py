"""What holds for every control of every explorer, at least, middle and greatest."""

import itertools
import re
import xml.etree.ElementTree as ET

import ipywidgets as widgets
import pytest
from test_explorers import drawing
from test_explorers_model import made, model  # noqa: F401 (a fixture)

from helpers import explorers
from helpers.explorers.base import CSS
from helpers.explorers.one_layer import ConcatOrSum

NAMES = sorted(name for name in explorers.__all__ if name.islower())
ENTRIES = (widgets.Dropdown, widgets.BoundedIntText)


@pytest.fixture
def explorer(request, model):  # noqa: F811
    return made(model) if request.param == "model_heads" else getattr(explorers, request.param)()


every_explorer = pytest.mark.parametrize("explorer", NAMES, indirect=True)


def controls_of(explorer):
    rows = [child for child in explorer.box.children if "sa-controls" in child._dom_classes]
    inside = [child for row in rows for child in row.children]
    return [control for child in inside for control in getattr(child, "children", [child])]


def spots(control):
    """What a control can be set to: least, middle, greatest."""
    if hasattr(control, "options"):
        values = [value for _, value in control._options_full]
    elif isinstance(control, widgets.ToggleButton):
        values = [False, True]
    elif hasattr(control, "max") and not isinstance(control, widgets.Play):
        values = range(control.min, control.max + 1)
    else:
        return []
    return list(dict.fromkeys(values[i] for i in (0, len(values) // 2, len(values) - 1)))


def shows_its_state(explorer):
    ET.fromstring(drawing(explorer))
    assert drawing(explorer) == explorer.picture().drawing and "alert" not in explorer.canvas.value
    status = re.search(r'<p role="status"[^>]*>(.*?)</p>', explorer.canvas.value).group(1)
    for control in explorer.sliders:
        assert f"{control.description} {getattr(control, 'label', control.value)}" in status
    assert explorer.words.value == (explorer.picture().text_html if explorer.in_words.value else "")
    for entry, slider in pairs(explorer):
        assert entry.value == slider.value and entry.description and not slider.readout
        assert getattr(entry, "max", None) == getattr(slider, "max", None)


def pairs(explorer):
    """(entry, slider) of each slider."""
    return [both for both in itertools.pairwise(controls_of(explorer)) if both[1] in explorer.sliders]


@every_explorer
def test_every_control_at_its_least_middle_and_greatest_shows_its_state(explorer):
    tried = 0
    for control in controls_of(explorer):
        for value in spots(control):
            control.value = value
            shows_its_state(explorer)
            assert control.value == value
            tried += 1
    assert tried >= 8


@every_explorer
@pytest.mark.parametrize("place", [0, 0.5, 1], ids=["least", "middle", "greatest"])
def test_all_controls_at_their_least_middle_or_greatest_show_their_state(explorer, place):
    for control in controls_of(explorer):
        if found := spots(control):
            control.value = found[round(place * (len(found) - 1))]
    shows_its_state(explorer)


@every_explorer
def test_every_slider_has_an_entry_with_its_name_before_it(explorer):
    found = pairs(explorer)
    assert len(found) == len(explorer.sliders)
    for entry, slider in found:
        assert isinstance(entry, ENTRIES) and entry.description == slider.description


@every_explorer
def test_what_is_typed_beside_a_slider_is_kept_within_its_ends(explorer):
    for entry, slider in pairs(explorer):
        if isinstance(entry, widgets.BoundedIntText):
            for typed, kept in ((10**9, slider.max), (-5, slider.min)):
                entry.value = typed
                assert entry.value == slider.value == kept
                shows_its_state(explorer)
        else:
            with pytest.raises(Exception, match="Invalid selection"):
                entry.value = "no such value"


@every_explorer
def test_every_control_says_what_it_is(explorer):
    for control in controls_of(explorer):
        if isinstance(control, (widgets.ToggleButtons, *ENTRIES, widgets.Text, widgets.Button)):
            assert control.description


@every_explorer
def test_a_slider_and_its_entry_stay_together(explorer):
    rows = [row.children for row in explorer.box.children if "sa-controls" in row._dom_classes]
    held = [box.children for row in rows for box in row if "sa-pair" in box._dom_classes]
    assert held == pairs(explorer) and len(held) == len(explorer.sliders)


@every_explorer
def test_the_query_is_outlined_in_its_colour_and_no_other_colour_of_a_role_is_borrowed(explorer):
    shapes = list(ET.fromstring(drawing(explorer)).iter())
    outlines = [n for n in shapes if n.tag.endswith("rect") and n.get("stroke") == "var(--sa-Q)"]
    assert bool(outlines) == (hasattr(explorer, "query") and not isinstance(explorer, ConcatOrSum))
    curves = {n.get("stroke") for n in shapes if n.get("stroke-width") == "2.2"}
    assert not curves & {f"var(--sa-{role})" for role in ("Q", "K", "V", "A", "positive", "negative")}


@every_explorer
def test_little_room_is_said(explorer):
    assert "close the side bar" in explorer.canvas.value and "sa-hint{display:none" in CSS

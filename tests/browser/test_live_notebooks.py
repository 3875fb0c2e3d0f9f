"""Every notebook run in JupyterLab, and every explorer in it taken hold of."""

import re
from pathlib import Path

import pytest
import twins
from lab import CELL, SLOW, menu, pictures, save
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from playwright.sync_api import expect

from helpers import explorers
from helpers.figures.style import DARK, LIGHT, rgb

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
CALLS = [(path.name, number, name) for path in NOTEBOOKS
         for number, (name, _) in enumerate(twins.calls(path))]
ROOM = "what => [...what.querySelectorAll('*'), what].filter(n => n.scrollWidth > n.clientWidth + 1 && " \
       "getComputedStyle(n).display != 'inline' && n.clientWidth > 1).map(n => n.className)"

every_notebook = pytest.mark.parametrize("live", [path.name for path in NOTEBOOKS], indirect=True)
every_explorer = pytest.mark.parametrize(
    "live, number", [(name, number) for name, number, _ in CALLS], indirect=["live"],
    ids=[f"{name[:2]}-{number}-{explorer}" for name, number, explorer in CALLS])


def test_every_explorer_of_the_package_stands_in_a_notebook():
    makers = {name for name in explorers.__all__ if name.islower()}
    assert {name for *_, name in CALLS} == makers and len(makers) >= 14


@every_notebook
def test_run_all_gives_every_explorer(live):
    """That no cell fails, `live` has seen to."""
    expect(live.found).to_have_count(len(list(twins.calls(live.path))))


@every_notebook
def test_before_anything_is_run_every_stored_picture_stands_there_with_its_text(live):
    """The notebook is one that nobody has trusted yet."""
    twins.same_pictures(live.before, live.stored)


@every_explorer
def test_every_control_least_and_greatest_by_mouse_and_keyboard_shows_its_state(live, number):
    pair = live.pair(number)
    pair.alike("as it is called")
    for what, do, same in pair.acts():
        do()
        same()
        pair.alike(what)


NAMED = re.compile(r"""^\s*- '?(button|textbox|slider|spinbutton|combobox|checkbox)( "(.+?)")?""", re.M)
REACHED = """explorer => explorer.contains(document.activeElement) && document.activeElement.tagName"""


@every_explorer
def test_every_control_has_a_name_and_is_reached_by_tab(live, number):
    pair = live.pair(number)
    expected = sum(map(twins.stops, twins.controls_of(pair.twin)))
    controls = NAMED.findall(pair.live.aria_snapshot())
    assert len(controls) == expected and [kind for kind, _, name in controls if not name] == []
    pair.live.locator(".sa-controls").locator("button, input, select").first.focus()
    reached = []
    while (at := pair.live.evaluate(REACHED)) and len(reached) <= expected:
        reached.append(at)
        live.page.keyboard.press("Tab")
    assert len([tag for tag in reached if tag in ("BUTTON", "INPUT", "SELECT")]) == expected


CUT = """explorer => ['.sa', '.sa-controls', '.sa-picture', '.sa-picture svg', '.sa-controls *'].flatMap(
    what => [...explorer.parentNode.querySelectorAll(what)].filter(node => explorer.contains(node)))
    .filter(node => getComputedStyle(node).visibility != 'hidden' && node.clientWidth > 1
        && !node.closest('.widget-slider') && !node.matches('input'))
    .filter(node => node.scrollWidth > node.clientWidth + 1
        || node.getBoundingClientRect().right > explorer.getBoundingClientRect().right + 1)
    .map(node => [node.className.baseVal ?? node.className, node.scrollWidth, node.clientWidth])"""


def fits(page, explorer, width):
    """Nothing is cut off in a window of this width."""
    page.set_viewport_size({"width": width, "height": 900})
    try:
        page.wait_for_function(f"explorer => innerWidth == {width} && ({CUT})(explorer).length == 0",
                               arg=explorer.element_handle(), timeout=10_000)
    except PlaywrightTimeout:
        assert explorer.evaluate(CUT) == [], f"at {width} px"
        raise


@every_explorer
def test_nothing_is_cut_off_in_a_narrow_window_nor_enlarged(live, number):
    page, explorer = live.page, live.pair(number).live
    larger, svg = explorer.get_by_role("button", name="Larger"), explorer.locator(".sa-picture svg")
    try:
        for width in (900, 1250, 1900):
            fits(page, explorer, width)
        usual = svg.bounding_box()["width"]
        larger.click()
        explorer.locator(".sa-larger").wait_for()
        assert svg.bounding_box()["width"] > 1.2 * usual
        for width in (1250, 900):
            fits(page, explorer, width)
    finally:
        page.set_viewport_size({"width": 1280, "height": 900})
        if explorer.locator(".sa-larger").count():
            larger.click()
            explorer.locator(".sa-larger").wait_for(state="detached")


@pytest.mark.parametrize("live", ["06_kv_cache.ipynb"], indirect=True)
def test_play_moves_the_steps_and_stop_takes_them_back(live):
    explorer = live.found.first
    step, status = explorer.get_by_role("spinbutton", name="step"), explorer.locator("[role=status]")
    step.fill("0")
    step.press("Enter")
    expect(status).to_contain_text("step 0")
    explorer.get_by_role("button", name="play / pause").press("Enter")
    expect(status).to_contain_text(re.compile("step [1-9]"))
    explorer.get_by_role("button", name="play / pause").click()
    explorer.get_by_role("button", name="stop").click()
    expect(status).to_contain_text("step 0")
    expect(step).to_have_value("0")


FAINT = """explorer => {
    const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
    const light = colour => {
        const [r, g, b] = numbers(colour).map(v => v / 255)
            .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = node => {
        const colour = getComputedStyle(node).backgroundColor, [, , , opacity = 1] = numbers(colour);
        return opacity == 1 ? colour : behind(node.parentNode);
    };
    const written = [...explorer.querySelectorAll('*')].filter(node => !node.closest('svg') &&
        node.checkVisibility() && (node.matches('input, select') ||
        [...node.childNodes].some(child => child.nodeType == 3 && child.data.trim())));
    return written.map(node => {
        const pair = [getComputedStyle(node).color, behind(node)];
        const [a, b] = pair.map(light).sort((a, b) => b - a);
        return [node.innerText || node.className, ...pair, (a + 0.05) / (b + 0.05)];
    }).filter(found => found[3] < 4.5);
}"""
COLOURS = """explorer => {
    const svg = explorer.querySelector('.sa-picture svg');
    const fills = [...svg.querySelectorAll('text')].map(node => getComputedStyle(node).fill);
    return [getComputedStyle(svg.querySelector('rect')).fill, [...new Set(fills)]];
}"""


def stands_out(explorer, palette):
    """What is written in and around the picture, in the colours of a theme, can be read."""
    named = {f"rgb({', '.join(str(round(255 * c)) for c in rgb(colour))})" for colour in palette.values()}
    surface, fills = explorer.evaluate(COLOURS)
    assert surface in named and set(fills) <= named
    assert explorer.evaluate(FAINT) == []


@every_explorer
def test_what_is_written_stands_out(live, number):
    stands_out(live.found.nth(number), LIGHT)


@pytest.mark.parametrize("live", ["03_single_head_attention.ipynb", "08_logits_and_sampling.ipynb"],
                         indirect=True)
def test_what_is_written_stands_out_in_the_dark_theme(live):
    page = live.page
    try:
        menu(page, "Settings", "Theme", "JupyterLab Dark")
        page.locator("body[data-jp-theme-light=false]").wait_for(state="attached")
        page.wait_for_function(
            "getComputedStyle(document.body).getPropertyValue('--jp-layout-color0') == '#111'"
        )
        for number in range(live.found.count()):
            explorer = live.found.nth(number)
            explorer.get_by_role("button", name="As text").click()
            explorer.locator("pre").wait_for()
            if explorer.locator("input[type=text]").count():
                explorer.locator("input[type=text]").fill("anna loves aples")
                explorer.locator("input[type=text]").press("Enter")
                explorer.get_by_role("alert").wait_for()
            stands_out(explorer, DARK)
            if explorer.locator("input[type=text]").count():
                explorer.locator("input[type=text]").fill("i love you")
                explorer.locator("input[type=text]").press("Enter")
                explorer.get_by_role("alert").wait_for(state="detached")
            explorer.get_by_role("button", name="As text").click()
            explorer.locator("pre").wait_for(state="detached")
    finally:
        menu(page, "Settings", "Theme", "JupyterLab Light")
        page.locator("body[data-jp-theme-light=true]").wait_for(state="attached")


@pytest.mark.parametrize("live", ["05_low_rank_values.ipynb"], indirect=True)
def test_keys_pressed_in_an_explorer_stay_in_it(live):
    page, explorer = live.page, live.found.first
    cells = "[...document.querySelectorAll('.jp-Notebook .jp-Cell')]"
    kinds = f"{cells}.map(c => c.className.match(/jp-\\w+Cell/)[0])"
    at = f"{cells}.findIndex(c => c.matches('.jp-mod-active'))"
    column = explorer.get_by_role("spinbutton", name="column")
    controls = [explorer.locator(".sa-query button").first, explorer.get_by_role("button", name="next"),
                explorer.get_by_role("button", name="Larger"), column]
    for control in controls:
        control.click()
        control.focus()
        before, position = page.evaluate(kinds), page.evaluate(at)
        for key in "ArrowLeft ArrowRight ArrowUp ArrowDown a b x m y d d z".split():
            page.keyboard.press(key)
        page.wait_for_timeout(300)
        expect(control).to_be_focused()
        assert page.evaluate(kinds) == before and page.evaluate(at) == position
    was = column.input_value()
    column.press("ArrowDown")
    expect(column).not_to_have_value(was)
    explorer.get_by_role("button", name="next").press("Enter")          # the last step: nothing more to come
    expect(explorer.get_by_role("button", name="next")).to_be_focused()

    page.locator(CELL).first.locator(".jp-InputPrompt").click()                  # outside they do their work
    count, position = len(page.evaluate(kinds)), page.evaluate(at)
    page.keyboard.press("b")
    page.wait_for_function(f"{kinds}.length == {count + 1}")
    page.keyboard.press("d")
    page.keyboard.press("d")
    page.wait_for_function(f"{kinds}.length == {count}")
    page.keyboard.press("ArrowUp")
    page.wait_for_function(f"{at} == {position}")


@pytest.mark.parametrize("live", ["00_start_here.ipynb"], indirect=True)
def test_a_notebook_that_was_run_and_saved_shows_its_pictures_without_a_kernel(live, course, page):
    save(live.page)
    saved = twins.stored(live.path)
    assert len(saved) == len(live.stored) and not any(explorers.VIEW in data for data in saved)
    live.found.first.locator(".sa-query button:not(.mod-active)").first.click()         # goes on as it was
    page.goto(course.url(f"notebooks/{live.name}"), timeout=SLOW)
    menu(page, "Kernel", "Shut Down Kernel")
    page.get_by_text("No Kernel").first.wait_for()
    twins.same_pictures(pictures(page, len(saved)), saved)
    assert page.get_by_text(re.compile("(Loading|displaying) widget")).count() == 0

"""The course as a reader meets it in JupyterLab: opened, run, clicked, and solved."""

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import expect

from helpers import explorers

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))
CELL = ".jp-Notebook .jp-CodeCell"
PROMPTS = "[...document.querySelectorAll('.jp-Notebook .jp-CodeCell .jp-InputPrompt')].map(p => p.innerText)"
TROUBLE = "[data-mime-type$='vnd.jupyter.error'], [data-mime-type$='vnd.jupyter.stderr']"

expect.set_options(timeout=20_000)


def open_notebook(page, url):
    """Open and wait for the kernel: Run All before that runs nothing."""
    page.goto(url)
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()


def run_all(page):
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    page.wait_for_function(f"{PROMPTS}.some(text => text.includes('*'))")
    page.wait_for_function(f"{PROMPTS}.every(text => /\\d/.test(text))", timeout=90_000)
    assert page.locator(TROUBLE).all_inner_texts() == []


def cell(page, source):
    """The code cell that holds this text."""
    return page.locator(CELL).filter(has=page.locator(".jp-InputArea", has_text=source)).first


def run(page, source, code=None):
    """Run the cell that holds `source`, with `code` in place of what is there; the cell."""
    found = cell(page, source)
    editor = found.locator(".cm-content")
    editor.click()
    if code is not None:
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(code)
        found = cell(page, code.splitlines()[0])
    page.keyboard.press("Control+Enter")
    expect(found.locator(".jp-InputPrompt")).to_have_text(re.compile(r"\[\d+\]"))
    return found


def words_of(svg):
    """The text of an SVG, each piece in its place."""
    return [text.strip() for text in svg.itertext() if text.strip()]


def drawn(explorer):
    """The words of the live picture on the page."""
    return explorer.locator(".sa-picture svg").evaluate("""svg => {
        const walker = document.createTreeWalker(svg, NodeFilter.SHOW_TEXT), found = [];
        while (walker.nextNode()) found.push(walker.currentNode.data.trim());
        return found.filter(text => text);
    }""")


def chosen(explorer, name):
    """Which button of a row of buttons is pressed."""
    row = explorer.locator(".widget-toggle-buttons").filter(has_text=name).first
    labels = row.locator("button").all_inner_texts()
    return labels.index(row.locator("button.mod-active").inner_text())


def test_the_start_address_opens_the_first_notebook_with_its_pictures(page, course):
    open_notebook(page, course.start_url)
    expect(page.locator(".lm-TabBar-tab.jp-mod-current", has_text="00_start_here.ipynb")).to_be_visible()
    expect(page.get_by_role("heading", name="00 · Start here")).to_be_visible()
    expect(page.locator(".jp-OutputArea-output img[alt]").first).to_be_visible()       # nothing is run yet
    assert page.get_by_text("Loading widget").count() == page.locator(".jp-Dialog").count() == 0
    settings = json.loads(page.locator("#jupyter-config-data").text_content())
    assert settings["news"] == {"disabled": True} and settings["extensionManager"]["name"] == "read-only"


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_run_all_ends_without_an_error_and_every_explorer_answers_a_click(page, course, name):
    open_notebook(page, course.url(f"notebooks/{name}"))
    run_all(page)
    notebook = nbformat.read(course.folder / "notebooks" / name, as_version=4)
    calls = sum(bool(re.search(r"^explorers\.\w+\(", c.source, re.M)) for c in notebook.cells)
    found = page.locator(".jp-OutputArea .sa")
    expect(found).to_have_count(calls)
    for number in range(calls):
        explorer = found.nth(number)
        before, status = drawn(explorer), explorer.locator("[role=status]")
        said, rows = status.inner_text(), explorer.locator(".sa-query, .widget-toggle-buttons")
        rows.last.locator("button:not(.mod-active)").first.click()
        expect(status).not_to_have_text(said)
        assert drawn(explorer) != before


def test_the_picture_is_what_the_pure_function_draws_for_what_was_clicked(page, course):
    open_notebook(page, course.url("notebooks/02_queries_keys_values.ipynb"))
    run_all(page)
    explorer = cell(page, "explorers.similarity").locator(".sa")
    layer, head = chosen(explorer, "layer"), chosen(explorer, "head")
    python = explorers.similarity(layer=layer, head=head)
    for query in (1, 0, 9):
        explorer.locator(".sa-query button").nth(query).click()
        python.query.value = python.query.options[query][1]
        expect(explorer.locator("[role=status]")).to_contain_text(python.query.label)
        assert drawn(explorer) == words_of(ElementTree.fromstring(python.picture().drawing))


def test_an_explorer_is_used_from_the_keyboard_and_refuses_unknown_words(page, course):
    open_notebook(page, course.url("notebooks/03_single_head_attention.ipynb"))
    run_all(page)
    explorer = cell(page, "explorers.step_through").locator(".sa")
    explorer.get_by_role("button", name="next").focus()
    page.keyboard.press("Enter")
    expect(explorer.locator("[role=status]")).to_contain_text("step 2")
    before, text = drawn(explorer), explorer.locator("input[type=text]")
    text.fill("anna loves aples")
    text.press("Enter")
    expect(explorer.get_by_role("alert")).to_contain_text("apples")
    assert drawn(explorer) == before
    text.fill("x" * 300)
    text.press("Enter")
    expect(explorer.get_by_role("alert")).to_contain_text("x" * 300)
    assert explorer.evaluate("node => node.scrollWidth <= node.clientWidth")
    assert explorer.get_by_role("alert").evaluate("node => node.scrollWidth <= node.clientWidth")
    text.fill("i love you")
    text.press("Enter")
    expect(explorer.get_by_role("alert")).to_have_count(0)
    assert explorer.locator(".sa-query button").count() == 4


def test_keys_pressed_in_an_explorer_stay_in_it(page, course):
    open_notebook(page, course.url("notebooks/05_low_rank_values.ipynb"))
    run_all(page)
    explorer = cell(page, "explorers.concat_or_sum").locator(".sa")
    cells = "[...document.querySelectorAll('.jp-Notebook .jp-Cell')]"
    kinds = f"{cells}.map(c => c.className.match(/jp-\\w+Cell/)[0])"
    at = f"{cells}.findIndex(c => c.matches('.jp-mod-active'))"
    slider = explorer.locator(".noUi-handle").first
    controls = [explorer.locator(".sa-query button").first, explorer.get_by_role("button", name="next"),
                explorer.get_by_role("button", name="Larger"), slider]
    for control in controls:
        control.click()
        control.focus()
        before, position = page.evaluate(kinds), page.evaluate(at)
        for key in "ArrowLeft ArrowRight ArrowUp ArrowDown a b x m y d d z".split():
            page.keyboard.press(key)
        page.wait_for_timeout(300)
        expect(control).to_be_focused()
        assert page.evaluate(kinds) == before and page.evaluate(at) == position
    was = slider.get_attribute("aria-valuenow")
    slider.press("ArrowLeft")
    expect(slider).not_to_have_attribute("aria-valuenow", was)
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


def test_a_wrong_answer_is_named_the_right_one_passes_and_progress_shows_it(page, course):
    name = "03_single_head_attention.ipynb"
    open_notebook(page, course.url(f"exercises/{name}"))
    run_all(page)
    check = cell(page, "check(scaled_scores)").locator(".jp-OutputArea")
    expect(check).to_contain_text("not written yet")

    wrong = "def scaled_scores(Q, K):\n    return np.asarray(Q) @ np.asarray(K).T"
    right = f"{wrong} / np.sqrt(np.shape(K)[1])"
    run(page, "def scaled_scores", wrong)
    run(page, "check(scaled_scores)")
    expect(check).to_contain_text("✗")
    expect(check).to_contain_text("not divided at all")
    expect(check).to_contain_text("Read again: notebook 03")

    run(page, "def scaled_scores", right)
    run(page, "check(scaled_scores)")
    expect(check).to_contain_text("✓")
    table = run(page, "progress()").locator(".jp-OutputArea")
    expect(table).to_contain_text(re.compile(r"\b1 of \d+ exercises solved"))

    page.keyboard.press("Control+s")
    expect(page.locator(".lm-TabBar-tab.jp-mod-current.jp-mod-dirty")).to_have_count(0)
    saved = nbformat.read(course.folder / "exercises" / name, as_version=4)
    assert any(c.source == right for c in saved.cells)
    assert "scaled_scores" in (course.folder / "exercises" / "progress.json").read_text(encoding="utf-8")

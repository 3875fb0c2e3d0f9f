"""The course as a reader meets it in JupyterLab: opened, and solved."""

import json
import re

import nbformat
from lab import cell, open_notebook, run, run_all, save
from playwright.sync_api import expect


def test_the_start_address_opens_the_first_notebook_with_its_pictures(page, course):
    open_notebook(page, course.start_url + "&reset")        # a first visit: no tabs of another one
    expect(page.locator(".lm-TabBar-tab.jp-mod-current", has_text="00_start_here.ipynb")).to_be_visible()
    expect(page.get_by_role("heading", name="00 · Start here")).to_be_visible()
    expect(page.locator(".jp-OutputArea-output img[alt]").first).to_be_visible()       # nothing is run yet
    assert page.get_by_text("Loading widget").count() == page.locator(".jp-Dialog").count() == 0
    settings = json.loads(page.locator("#jupyter-config-data").text_content())
    assert settings["news"] == {"disabled": True} and settings["extensionManager"]["name"] == "read-only"


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

    save(page)
    saved = nbformat.read(course.folder / "exercises" / name, as_version=4)
    assert any(c.source == right for c in saved.cells)
    assert "scaled_scores" in (course.folder / "exercises" / "progress.json").read_text(encoding="utf-8")

"""What a reader does in JupyterLab, and what then stands on the page."""

import contextlib
import re

from playwright.sync_api import TimeoutError as PlaywrightTimeout
from playwright.sync_api import expect

CELL = ".jp-Notebook .jp-CodeCell"
PROMPTS = "[...document.querySelectorAll('.jp-Notebook .jp-CodeCell .jp-InputPrompt')].map(p => p.innerText)"
TROUBLE = "[data-mime-type$='vnd.jupyter.error'], [data-mime-type$='vnd.jupyter.stderr']"
PICTURES = """[...document.querySelectorAll('img[src^="data:image/svg"]')].map(image => ({
    alt: image.alt, drawn: image.complete && image.naturalWidth > 0,
    text: image.parentNode.querySelector('details pre')?.textContent}))"""      # stored pictures on a page
NOTE_STARS = f"""() => {{
    window.starred = false
    const look = () => {{ window.starred ||= {PROMPTS}.some(text => text.includes('*')) }}
    new MutationObserver(look).observe(document.body, {{subtree: true, childList: true, characterData: true}})
}}"""              # a quick notebook has run before anybody looks: the page itself notes that it was begun
SLOW = 120_000      # ms: what a busy machine may take where nothing but the end is waited for

expect.set_options(timeout=20_000)


def open_notebook(page, url):
    """Open and wait for the kernel: Run All before that runs nothing."""
    page.goto(url, timeout=SLOW)
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=SLOW)


def run_all(page):
    page.evaluate(NOTE_STARS)
    menu(page, "Run", "Run All Cells")
    page.wait_for_function("window.starred")
    page.wait_for_function(f"{PROMPTS}.every(text => !text.includes('*'))", timeout=SLOW)
    assert page.locator(TROUBLE).all_inner_texts() == []
    assert all(re.search(r"\d", prompt) for prompt in page.evaluate(PROMPTS))


def menu(page, name, *items):
    """Click through a menu."""
    page.get_by_role("menuitem", name=name, exact=True).click()
    for item in items:
        page.locator(".lm-Menu .lm-Menu-itemLabel").get_by_text(item, exact=True).click()


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


def save(page):
    """Save, and wait until the server has written the file."""
    with page.expect_response(lambda got: got.request.method == "PUT" and "/api/contents/" in got.url):
        page.keyboard.press("Control+s")
    expect(page.locator(".lm-TabBar-tab.jp-mod-current.jp-mod-dirty")).to_have_count(0)


def pictures(page, count):
    """The stored pictures on a page: alt text, whether it is drawn, text form; this many are waited for."""
    with contextlib.suppress(PlaywrightTimeout):                # what is missing, the test will say
        page.wait_for_function(f"{PICTURES}.filter(picture => picture.drawn).length == {count}")
    return page.evaluate(PICTURES)

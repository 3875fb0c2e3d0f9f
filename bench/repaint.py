"""From a click in an explorer to the new picture on the screen: JupyterLab in a real browser, 12 tokens."""

import contextlib
import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import quantiles

import nbformat

from bench.measure import Row
from helpers import explorers, smollm2

ROOT = Path(__file__).resolve().parents[1]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--no-first-run")
GOAL = 0.1                                      # seconds, for 90 % of the clicks
TEXT = "anna loves apples . ben loves pears . she eats apples"          # with <bos> 12 tokens
STORY = "My friend Tom Okoro sings and my friend Tom Okoro"             # 12 tokens of the language model
AGAINST = "the goal for 9 of 10 clicks"
WARM = 3                                        # clicks that do not count

# Milliseconds from the next click in an explorer until the frame with the new picture has been painted.
WATCH = """explorer => {
    const canvas = explorer.querySelector('.sa-picture').closest('.widget-html');
    explorer.repainted = new Promise(resolve => {
        let clicked = null;
        explorer.addEventListener('click', event => { clicked = event.timeStamp; },
                                  {capture: true, once: true});
        const observer = new MutationObserver(() => {
            if (clicked === null) return;
            observer.disconnect();
            requestAnimationFrame(() => {
                const channel = new MessageChannel();
                channel.port1.onmessage = () => resolve(performance.now() - clicked);
                channel.port2.postMessage(null);
            });
        });
        observer.observe(canvas, {childList: true, subtree: true});
    });
}"""


def rows(quick=False):
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        yield "Playwright is not installed: the rows from click to repaint are left out."
        return
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        yield "Chromium is not installed: the rows from click to repaint are left out."
        return
    names = [name for name in explorers.__all__ if name.islower()]
    if not smollm2.is_fetched():
        names.remove("model_heads")
        yield "The language model is not fetched (python3 course.py model): its explorer is left out."
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        write(names, Path(folder, "explorers.ipynb"))
        with jupyterlab(folder) as address:
            running = driver.chromium.launch(executable_path=browser, args=QUIET)
            page = running.new_page(viewport={"width": 1280, "height": 900})
            page.set_default_timeout(120_000)
            page.goto(address)
            run_all(page, len(names))
            for number, name in enumerate(names):
                times = clicks(page.locator(".jp-OutputArea .sa").nth(number), 10 if quick else 25)
                yield Row(f"click → repaint, {name}", quantiles(times, n=10)[-1], AGAINST, GOAL, 1)
            running.close()


def write(names, path):
    """A notebook with a cell for each explorer."""
    cells = ["from helpers import explorers"]
    for name in names:
        takes_text = "text" in inspect.signature(getattr(explorers, name)).parameters
        text = repr(STORY if name == "model_heads" else TEXT) if takes_text else ""
        cells.append(f"explorers.{name}({text})")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3 (ipykernel)"}
    nbformat.write(notebook, path)


@contextlib.contextmanager
def jupyterlab(folder):
    """JupyterLab with the course's settings on a folder; the address of the notebook in it."""
    env = os.environ | {"JUPYTER_CONFIG_PATH": str(ROOT / ".jupyter"), "PYTHONPATH": str(ROOT),
                        "JUPYTER_CONFIG_DIR": str(Path(folder, "settings"))}
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--log-level=ERROR",
               f"--ServerApp.root_dir={folder}", "--ServerApp.ip=127.0.0.1"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")
    log = Path(folder, "log.txt")
    with open(log, "w", encoding="utf-8") as file:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=file, stderr=subprocess.STDOUT)
    try:
        while not (found := re.search(r"(http://127\.0\.0\.1:\d+)/\S*token=(\w+)", log.read_text("utf-8"))):
            if process.poll() is not None:
                raise RuntimeError(log.read_text("utf-8"))
            time.sleep(0.2)
        yield f"{found[1]}/lab/tree/explorers.ipynb?reset&token={found[2]}"
    finally:
        process.terminate()
        process.wait(timeout=30)


def run_all(page, count):
    """Run the notebook and wait for all its explorers."""
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    page.locator(".sa-picture svg").nth(count - 1).wait_for()


def clicks(explorer, count):
    """Seconds of each of many clicks, on one of the first and one of the last buttons of a row by turns."""
    row, times = explorer.locator(".sa-query"), []
    if not row.count():
        row = explorer.locator(".widget-toggle-buttons").last
    for number in range(WARM + count):
        explorer.evaluate(WATCH)
        others = row.locator("button:not(.mod-active)")
        (others.last if number % 2 else others.first).click()
        times.append(explorer.evaluate("explorer => explorer.repainted") / 1000)
    return times[WARM:]

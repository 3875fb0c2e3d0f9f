"""JupyterLab in a real browser, on a copy of the course: nothing in the checkout changes.

`course` starts the copy with `course.py`, as a reader does. `page` is a fresh tab; after each test it has
seen no error of ours and has asked nobody outside this machine for anything.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from helpers.exercise_notebooks import fresh_exercises, text_of

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

ROOT = Path(__file__).resolve().parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--no-first-run")


class Course:
    """A running JupyterLab: its folder, its address, and what a test does in it."""

    def __init__(self, folder):
        self.folder = folder
        env = {name: value for name, value in os.environ.items() if name != "COURSE_PROGRESS"}
        env["JUPYTER_CONFIG_DIR"] = str(folder / "of-the-user")      # not the settings of whoever tests
        command = [sys.executable, str(folder / "course.py"), "--no-browser"]
        log = folder / "jupyter.log"
        with open(log, "w", encoding="utf-8") as file:
            self.process = subprocess.Popen(command, env=env, stdout=file, stderr=subprocess.STDOUT)
        while not (found := re.search(r"http://127\.0\.0\.1:\S+", log.read_text(encoding="utf-8"))):
            assert self.process.poll() is None, log.read_text(encoding="utf-8")
            time.sleep(0.2)
        self.start_url = found.group()
        self.address, self.token = re.match(r"(http://[^/]+)/.*token=(\w+)", self.start_url).groups()

    def url(self, path):
        """The address at which a notebook opens alone, in a workspace of its own."""
        return f"{self.address}/lab/tree/{path}?reset&token={self.token}"

    def end_kernels(self):
        for session in json.loads(self.ask("GET", "sessions")):
            self.ask("DELETE", f"sessions/{session['id']}")

    def ask(self, method, path):
        headers = {"Authorization": f"token {self.token}"}
        request = urllib.request.Request(f"{self.address}/api/{path}", method=method, headers=headers)
        with urllib.request.urlopen(request) as answer:
            return answer.read().decode()

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=30)


@pytest.fixture(scope="session")
def course(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser") / "a course"
    unwanted = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
    for name in (".jupyter", "helpers", "notebooks", "solutions"):
        shutil.copytree(ROOT / name, folder / name, ignore=unwanted)
    for name in ("course.py", "pyproject.toml", "requirements.txt"):
        shutil.copy(ROOT / name, folder)
    (folder / "exercises").mkdir()
    for name, notebook in fresh_exercises(ROOT).items():
        (folder / "exercises" / name).write_text(text_of(notebook), encoding="utf-8")
    running = Course(folder)
    yield running
    running.close()


@pytest.fixture(scope="session")
def browser():
    found = [path for path in map(shutil.which, BROWSERS) if path]
    if not found:
        pytest.skip("Chromium is not installed")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=found[0], args=QUIET)
        yield running
        running.close()


@pytest.fixture
def page(browser, course):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    tab = context.new_page()
    tab.set_default_timeout(30_000)
    errors, outside = [], []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    tab.on("request", lambda request: outside.append(request.url) if is_outside(request.url) else None)
    yield tab
    context.close()
    course.end_kernels()
    assert errors == [] and outside == []


def is_outside(url):
    return not re.match(r"(https?|wss?)://127\.0\.0\.1[:/]|data:|blob:|about:", url)

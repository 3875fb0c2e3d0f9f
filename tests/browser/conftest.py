"""JupyterLab in a real browser, on a copy of the course: nothing in the checkout changes.

`course` starts the copy with `course.py`, as a reader does. `page` is a fresh tab. `live` is a notebook that
has been opened and run: all tests of one notebook, which stand one after the other, share its tab and its
kernel. After each test the tab has seen no error and has asked nobody outside this machine for anything.
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

from bench.repaint import BROWSERS, QUIET
from helpers.exercise_notebooks import fresh_exercises, text_of
from helpers.smollm2 import is_fetched
from helpers.smollm2.weights import HOW, default_folder

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

pytest.register_assert_rewrite("lab", "twins")

import lab  # noqa: E402 (they import Playwright)
import twins  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]


class Course:
    """A running JupyterLab: its folder, its address, and what a test does in it."""

    def __init__(self, folder):
        self.folder = folder
        env = {name: value for name, value in os.environ.items() if name != "COURSE_PROGRESS"}
        env["JUPYTER_CONFIG_DIR"] = str(folder / "of-the-user")      # not the settings of whoever tests
        env["COURSE_MODEL"] = str(default_folder())
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


class Tab:
    """A tab of the browser, and what went wrong in it since the last test."""

    def __init__(self, browser, **options):
        self.context = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.wrong = []
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", lambda said: self.wrong.append(said.text) if said.type == "error" else None)
        self.page.on("request", lambda asked: self.wrong.append(asked.url) if outside(asked.url) else None)

    def went_well(self):
        wrong, self.wrong[:] = list(self.wrong), []
        assert wrong == []


def outside(url):
    return not re.match(r"(https?|wss?)://127\.0\.0\.1[:/]|data:|blob:|about:|file:", url)


@pytest.fixture
def page(browser, course):
    tab = Tab(browser)
    yield tab.page
    tab.context.close()
    course.end_kernels()
    tab.went_well()


@pytest.fixture
def offline(browser):
    """A fresh tab that no network reaches, as large as a projector's picture."""
    tab = Tab(browser, offline=True)
    tab.page.set_viewport_size({"width": 1280, "height": 720})
    yield tab.page
    tab.context.close()
    tab.went_well()


class Live(Tab):
    """A notebook opened and run, and what it showed before it was run."""

    def __init__(self, browser, course, name):
        super().__init__(browser)
        self.name, self.path, self.pairs = name, course.folder / "notebooks" / name, {}
        self.stored = twins.stored(self.path)                     # JupyterLab saves of itself, later
        lab.open_notebook(self.page, course.url(f"notebooks/{name}"))
        self.before = lab.pictures(self.page, len(self.stored))
        lab.run_all(self.page)
        self.found = self.page.locator(".jp-OutputArea .sa")
        self.found.nth(len(list(twins.calls(self.path))) - 1).locator(".sa-picture svg").wait_for()

    def pair(self, number):
        """The explorer with this number and its twin, in the state in which the last test left them."""
        if number not in self.pairs:
            calls = list(twins.calls(self.path))
            self.pairs[number] = twins.Pair(self.page, self.found.nth(number), calls[number][1])
        return self.pairs[number]


@pytest.fixture(scope="session")
def opened(browser, course):
    """The last notebook opened: {} or {name: Live or what went wrong}."""
    found = {}
    yield found
    close(found, course)


def close(opened, course):
    for tab in opened.values():
        if isinstance(tab, Live):
            tab.context.close()
    opened.clear()
    course.end_kernels()


@pytest.fixture
def live(request, opened, browser, course):
    name = request.param
    if name.startswith("10") and not is_fetched():
        pytest.skip(f"needs the language model, fetched once with {HOW}")
    if name not in opened:
        close(opened, course)
        try:
            opened[name] = Live(browser, course, name)
        except Exception as err:
            opened[name] = err
    if not isinstance(opened[name], Live):
        raise opened[name]
    yield opened[name]
    opened[name].went_well()


def pytest_collection_modifyitems(items):
    """Tests of one notebook one after the other."""
    spots = [spot for spot, item in enumerate(items) if "live" in getattr(item, "fixturenames", ())]
    chosen = sorted((items[spot] for spot in spots), key=lambda item: item.callspec.params["live"])
    for spot, item in zip(spots, chosen, strict=True):
        items[spot] = item

"""For all tests: a reader's progress is left alone, and in CI nothing is skipped in silence.

The property tests try a few inputs each here and many in CI; how many it were is counted and said at the end.
`python3 course.py test` runs on all cores (pytest-xdist): each of its workers counts, and the run that has
started them adds up.
"""

import functools
import os
import signal
import tempfile

import hypothesis
import pytest

IN_CI = os.environ.get("CI", "").lower() == "true"
CASES = 10_000                  # what the property tests must try in a whole run in CI
tried = pytest.StashKey[int]()

hypothesis.settings.register_profile("here", max_examples=40, deadline=None)
hypothesis.settings.register_profile("ci", max_examples=300, deadline=None, print_blob=True)
hypothesis.settings.load_profile("ci" if IN_CI else "here")


def pytest_configure(config):
    # A shell that starts this in the background has Ctrl-C ignored, here and in every program started from
    # here; the tests of Ctrl-C need it heard.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if is_worker(config) or "COURSE_PROGRESS" not in os.environ:        # `python3 course.py test` has set it
        folder = tempfile.TemporaryDirectory()
        config.add_cleanup(folder.cleanup)
        os.environ["COURSE_PROGRESS"] = os.path.join(folder.name, "progress.json")


def is_worker(config):
    """Whether this is one of several processes that run tests at once."""
    return hasattr(config, "workerinput")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Count how often hypothesis calls the body of a test."""
    properties = getattr(getattr(item, "obj", None), "hypothesis", None)
    if properties is None:
        return (yield)
    body = properties.inner_test

    @functools.wraps(body)
    def counting(*args, **kwargs):
        item.config.stash[tried] = item.config.stash.get(tried, 0) + 1
        return body(*args, **kwargs)

    properties.inner_test = counting
    try:
        return (yield)
    finally:
        properties.inner_test = body


def is_whole(config):
    """Whether this run is one of everything there is."""
    options = config.option
    return config.args_source.name == "TESTPATHS" and not (
        options.keyword or options.markexpr or options.collectonly or getattr(options, "lf", False))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """A worker has ended: what it has counted."""
    config, found = node.config, getattr(node, "workeroutput", {})         # one that died has said nothing
    config.stash[tried] = config.stash.get(tried, 0) + found.get("tried", 0)


def pytest_sessionfinish(session):
    if is_worker(session.config):
        session.config.workeroutput["tried"] = session.config.stash.get(tried, 0)
        return
    enough = session.config.stash.get(tried, 0) >= CASES
    if IN_CI and is_whole(session.config) and not enough and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    if number := config.stash.get(tried, 0):
        short = f", fewer than the {CASES} asked for" if IN_CI and is_whole(config) and number < CASES else ""
        terminalreporter.write_line(f"The property tests tried {number} cases{short}.")


def fail_in_ci(report):
    """A test that would be skipped (no browser, no PyTorch) fails where everything has to be there."""
    if IN_CI and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, and CI allows no skipping: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    return fail_in_ci((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    return fail_in_ci((yield))

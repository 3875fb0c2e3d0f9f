"""For all tests: a reader's progress is left alone, and in CI nothing is skipped in silence."""

import os
import signal
import tempfile

import pytest

IN_CI = os.environ.get("CI", "").lower() == "true"


def pytest_configure(config):
    # A shell that starts this in the background has Ctrl-C ignored, here and in every program started from
    # here; the tests of Ctrl-C need it heard.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if "COURSE_PROGRESS" not in os.environ:         # `python3 course.py test` has set it
        folder = tempfile.TemporaryDirectory()
        config.add_cleanup(folder.cleanup)
        os.environ["COURSE_PROGRESS"] = os.path.join(folder.name, "progress.json")


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

"""JupyterHub for a room: five learners at once, each with a copy of the course, one model, one password.

Only where JupyterHub and its proxy are to be had, as in CI: room.py says how.
"""

import re
import urllib.error
from pathlib import Path

import psutil
import pytest
import room

from classroom import class_folder, submissions
from helpers.smollm2 import is_fetched
from helpers.smollm2.weights import HOW, default_folder

ROOT = Path(__file__).resolve().parents[1]
NAMES = ["anna", "ben", "carla", "dan", "eva"]
VALUES = (ROOT / "classroom" / "kubernetes" / "values.yaml").read_text(encoding="utf-8")
GUIDE = (ROOT / "classroom" / "README.md").read_text(encoding="utf-8")
MODEL = default_folder()
PROMISED = int(re.search(r"guarantee: (\d+)M ", VALUES)[1])          # MiB

pytestmark = pytest.mark.skipif(
    room.environment() is None,
    reason="JupyterHub is not installed: COURSE_CLASSROOM names an environment with it (.ci/run makes one)",
)

only_linux = pytest.mark.skipif(not psutil.LINUX, reason="only Linux says what of the memory is shared")


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hub")
    running = room.Room(folder / "room", MODEL)
    yield running
    if running.hub.poll() is None:
        running.close()


@pytest.fixture(scope="module")
def learners(hub):
    """Five who came at the same time and ran notebook 00; `printed` is what it said to each."""
    five = [room.Learner(hub, name) for name in NAMES]
    room.at_once(five, room.Learner.come)
    for learner, printed in zip(five, room.at_once(five, run_the_first), strict=True):
        learner.printed = printed
    return five


def run_the_first(learner):
    return learner.run(room.notebook("00"))


def test_all_five_run_the_first_notebook_in_a_copy_of_their_own(hub, learners):
    for learner in learners:
        assert "learned numbers" in learner.printed
        folder = hub.folder / learner.name
        assert (folder / "exercises").is_dir() and not (folder / "solutions").exists()
    assert {path.name for path in hub.folder.iterdir()} - {".hub"} == set(NAMES)


def test_all_have_the_same_model_and_the_helpers_that_they_read(hub, learners):
    for learner in learners:
        kernels = [process for process in learner.processes() if "ipykernel_launcher" in process.cmdline()]
        assert kernels
        for kernel in kernels:
            assert kernel.environ()["COURSE_MODEL"] == str(MODEL)
            assert kernel.environ()["PYTHONPATH"] == str(hub.folder / learner.name)


@only_linux
def test_a_learner_takes_the_memory_that_the_guide_says(learners):
    said = int(re.search(r"\| notebook 00 \| (\d+) \|", GUIDE)[1])
    for learner in learners:
        assert abs(learner.memory() / said - 1) < 0.25


def test_nobody_comes_in_without_the_password_or_into_anothers_server(hub, learners):
    stranger = room.Learner(hub, "finn")
    with pytest.raises(urllib.error.HTTPError, match="403"):
        stranger.log_in("who-knows-who")
    for place in ("/user/ben/api/contents", "/hub/api/users/ben"):
        with pytest.raises(urllib.error.HTTPError, match="40[34]"):
            learners[0].ask("GET", place)


def test_the_room_is_a_folder_of_submissions(hub, learners):
    found, _ = class_folder.read_folder(hub.folder, submissions.course(ROOT))
    assert [submission.learner for submission in found] == NAMES
    assert all(len(submission.notebooks) == 10 and not submission.remarks for submission in found)


def test_what_a_learner_wrote_is_there_the_next_time(hub, learners):
    anna = learners[0]
    wrote = {"type": "file", "format": "text", "content": "mine"}
    anna.ask("PUT", "/user/anna/api/contents/notebooks/mine.txt", wrote)
    anna.ask("DELETE", "/hub/api/users/anna/server")
    again = room.Learner(hub, "anna")
    again.come()
    assert again.ask("GET", "/user/anna/api/contents/notebooks/mine.txt")["content"] == "mine"


@only_linux
@pytest.mark.skipif(not is_fetched(), reason=f"needs the language model, fetched once with {HOW}")
def test_with_the_language_model_too_it_is_less_than_each_is_promised(learners):
    others = learners[1:]
    printed = room.at_once(others, lambda learner: learner.run(room.notebook("10")))
    said = int(re.search(r"\| notebooks 00 and 10, without the model's weights \| (\d+) \|", GUIDE)[1])
    for learner, text in zip(others, printed, strict=True):
        assert "tokens" in text
        assert abs(learner.memory(MODEL) / said - 1) < 0.25 and learner.memory(MODEL) < PROMISED


def test_ctrl_c_ends_the_hub_and_all_that_it_has_started(hub, learners):
    assert len(hub.processes()) > 2 * len(NAMES)
    assert hub.close() == []

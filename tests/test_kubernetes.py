"""Zero to JupyterHub: settings that the chart takes, an image with all it starts, homes laid out once."""

import os
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "classroom" / "kubernetes"
SETTINGS = (FOLDER / "values.yaml").read_text(encoding="utf-8")
VALUES = yaml.safe_load(SETTINGS)
STEPS = re.sub(r"(?m)^#.*\n|\\\n", "", (FOLDER / "Dockerfile").read_text(encoding="utf-8")).splitlines()
START = (FOLDER / "start").read_text(encoding="utf-8")

# What version 4 of the chart takes, of what is set here: its schema refuses any other name.
NUMBER, TEXT, SWITCH, ANY = (int, float), str, bool, object
CHART = {
    "hub": {"config": ANY},
    "proxy": {"https": {"enabled": SWITCH, "hosts": list, "letsencrypt": {"contactEmail": TEXT}}},
    "singleuser": {
        "image": {"name": TEXT, "tag": TEXT}, "defaultUrl": TEXT, "extraEnv": ANY,
        "storage": {"capacity": TEXT},
        "memory": {"guarantee": TEXT, "limit": TEXT}, "cpu": {"guarantee": NUMBER, "limit": NUMBER},
    },
    "cull": {"enabled": SWITCH, "timeout": int},
    "scheduling": {"userScheduler": {"enabled": SWITCH}, "podPriority": {"enabled": SWITCH},
                   "userPlaceholder": {"enabled": SWITCH, "replicas": int}},
    "prePuller": {"hook": {"enabled": SWITCH}, "continuous": {"enabled": SWITCH}},
}
HUB_OF_CHART = {"4": "5"}   # first numbers: the chart's, and that of the JupyterHub in it


def strangers(values, known, place=()):
    """The names in values that the chart does not know, and those with a value of another kind."""
    for name, value in values.items():
        kind = known.get(name)
        if isinstance(kind, dict) and isinstance(value, dict):
            yield from strangers(value, kind, (*place, name))
        elif kind is None or isinstance(kind, dict) or not isinstance(value, kind):
            yield ".".join((*place, name))


def steps(word):
    """What stands behind a word of the Dockerfile, once for each time."""
    return [step.removeprefix(word).strip() for step in STEPS if step.startswith(f"{word} ")]


def variables():
    return dict(part.split("=", 1) for step in steps("ENV") for part in shlex.split(step))


def test_the_chart_knows_every_setting():
    assert list(strangers(VALUES, CHART)) == []
    wrong = {"cull": {"timeOut": 5, "timeout": "1h"}}
    assert list(strangers(wrong, CHART)) == ["cull.timeOut", "cull.timeout"]


def test_the_hub_of_the_chart_is_the_one_in_the_image():
    chart = re.search(r"--version (\d+)\.\d+\.\d+ ", SETTINGS)[1]
    first = re.search(r'"jupyterhub>=(\d+),<(\d+)"', "\n".join(STEPS)).groups()
    assert first == (HUB_OF_CHART[chart], str(int(HUB_OF_CHART[chart]) + 1))


def test_the_guide_says_the_version_of_the_chart():
    version = re.search(r"--version ([\d.]+) ", SETTINGS)[1]
    assert f"version {version} of its chart" in (ROOT / "classroom" / "README.md").read_text(encoding="utf-8")


def test_the_password_is_long_enough_for_its_authenticator():
    config = VALUES["hub"]["config"]
    assert config["JupyterHub"]["authenticator_class"] == "shared-password"
    assert len(config["SharedPasswordAuthenticator"]["user_password"]) >= 8


def test_a_learner_may_use_what_notebook_10_takes_with_its_model():
    guide = (ROOT / "classroom" / "README.md").read_text(encoding="utf-8")
    table = guide.partition("| a learner has run | MiB |\n")[2].partition("\n\n")[0]
    *each, weights = [int(n) for n in re.findall(r"(\d+) \|$", table, re.MULTILINE)]
    limit = int(re.fullmatch(r"(\d+)G", VALUES["singleuser"]["memory"]["limit"])[1]) * 1024
    assert 0 < max(each) + weights < limit


def test_placeholders_can_be_driven_out_by_learners():
    scheduling = VALUES["scheduling"]
    assert scheduling["userPlaceholder"]["replicas"] > 0 and scheduling["podPriority"]["enabled"]


def test_the_image_has_a_python_for_the_course_and_the_one_that_binder_takes():
    (image,) = steps("FROM")
    version = re.fullmatch(r"python:(\d+\.\d+)-slim", image)[1]
    assert (ROOT / "binder" / "runtime.txt").read_text(encoding="utf-8").strip() == f"python-{version}"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = project["requires-python"].removeprefix(">=")
    assert [int(n) for n in version.split(".")] >= [int(n) for n in needed.split(".")]


def test_all_that_is_copied_into_the_image_is_there():
    copied = [source for step in steps("COPY") for source in step.split()[:-1]]
    for source in set(copied) - {"start"}:
        assert (ROOT / Path(source).relative_to("course")).exists()
    assert {"course", "course/helpers", "course/requirements.txt", "start"} <= set(copied)


def test_packages_and_model_come_before_what_changes_often():
    order = {step: n for n, step in enumerate(STEPS)}
    whole = order["COPY course ./"]
    assert order["COPY course/helpers helpers"] < order["RUN python course.py model"] < whole
    assert any("pip install" in step and n < whole for step, n in order.items())


def test_the_first_page_is_in_the_folder_that_the_image_lays_out():
    home = VALUES["singleuser"]["defaultUrl"].removeprefix("/lab/tree/")
    course, _, page = home.partition("/")
    assert (ROOT / page).is_file() and variables()["PYTHONPATH"] == f"{steps('WORKDIR')[-1]}/{course}"
    assert f"mv .course-copy {course} " in START and f'"" {course} ' in START
    assert variables()["JUPYTER_CONFIG_PATH"] == f"{steps('WORKDIR')[0]}/.jupyter"


def test_the_server_runs_without_rights_behind_the_start_file():
    (user,), (entry,) = steps("USER"), steps("ENTRYPOINT")
    assert user == "jovyan" and "--uid 1000 jovyan" in "\n".join(STEPS)
    assert entry == '["tini", "--", "sh", "/srv/start"]' and "\r" not in START


# The start file, run


@pytest.fixture
def start(tmp_path):
    """Run the start file in a home of its own: start(COURSE_REPOSITORY=…) gives the finished process."""
    image, home, programs = (tmp_path / name for name in ("image", "home", "bin"))
    for folder in (image / "notebooks", home, programs):
        folder.mkdir(parents=True)
    (image / "notebooks" / "a.ipynb").write_text("{}", encoding="utf-8")
    script = START.replace("/srv/course", shlex.quote(str(image)))

    def run(**env):
        path = os.pathsep.join([str(programs), os.environ["PATH"]])
        return subprocess.run(["sh", "-c", script, "start", "printf", "%s|", "the server", "its argument"],
                              env=dict(os.environ, HOME=str(home), PATH=path) | env,
                              capture_output=True, encoding="utf-8")

    run.home, run.image, run.programs = home, image, programs
    return run


no_sh = os.name == "nt" or shutil.which("sh") is None
needs_sh = pytest.mark.skipif(no_sh, reason="the shell of the image is not here")


@needs_sh
def test_a_learner_finds_the_course_and_the_server_gets_its_arguments(start):
    done = start()
    assert (done.returncode, done.stdout) == (0, "the server|its argument|"), done.stderr
    assert (start.home / "course" / "notebooks" / "a.ipynb").exists()
    assert [path.name for path in start.home.iterdir()] == ["course"]


@needs_sh
def test_what_a_learner_has_written_is_there_at_the_next_start(start):
    start()
    (start.home / "course" / "notebooks" / "a.ipynb").write_text("mine", encoding="utf-8")
    (start.image / "notebooks" / "b.ipynb").write_text("of another version", encoding="utf-8")
    assert start().stdout
    assert (start.home / "course" / "notebooks" / "a.ipynb").read_text(encoding="utf-8") == "mine"
    there = {path.name for path in (start.home / "course").rglob("*")}
    assert there == {"notebooks", "a.ipynb"}                                   # old and new do not mix


@needs_sh
def test_a_copy_that_was_cut_short_is_made_anew(start):
    (start.home / ".course-copy").mkdir()
    (start.home / ".course-copy" / "half").write_text("", encoding="utf-8")
    start()
    assert [path.name for path in (start.home / "course").iterdir()] == ["notebooks"]


def gitpuller(start, code):
    program = start.programs / "gitpuller"
    program.write_text(f'#!/bin/sh\nfor a in "$@"; do echo "[$a]"; done >asked\n{code}\n', encoding="utf-8")
    program.chmod(0o755)


@needs_sh
def test_a_repository_is_pulled_into_the_same_folder(start):
    gitpuller(start, 'mkdir -p "$3"')
    done = start(COURSE_REPOSITORY="https://example.org/a b.git")
    assert done.returncode == 0 and done.stdout.startswith("the server|")
    asked = (start.home / "asked").read_text(encoding="utf-8").splitlines()
    assert asked == ["[https://example.org/a b.git]", "[]", "[course]"]        # its own main branch
    assert list((start.home / "course").iterdir()) == []                       # nothing of the image in it


@needs_sh
@pytest.mark.parametrize("been_here", [True, False])
def test_a_repository_out_of_reach_stops_only_those_who_have_nothing_yet(start, been_here):
    gitpuller(start, "exit 1")
    if been_here:
        (start.home / "course").mkdir()
    done = start(COURSE_REPOSITORY="https://example.org/a.git")
    assert (done.returncode == 0) is been_here and ("the server" in done.stdout) is been_here

"""The guide for those who teach: its plans add up, and every heading, mistake and command in it exists."""

import importlib.util
import math
import os
import re
import tomllib
from pathlib import Path

import nbformat
import pytest

from helpers.checks.exercises import BY_NAME, EXERCISES

ROOT = Path(__file__).resolve().parents[1]
GUIDE = (ROOT / "classroom" / "README.md").read_text(encoding="utf-8")
FLAT = re.sub(r"\s+", " ", GUIDE)
NOTEBOOKS = {path.name[:2]: path for path in sorted((ROOT / "notebooks").glob("*.ipynb"))}


def section(title):
    """What stands below a heading."""
    return re.split(r"(?m)^#+ ", GUIDE.partition(f"# {title}\n")[2])[0]


def rows(text):
    """The rows of the first table, as lists of cells."""
    table = re.search(r"(?m)(^\|.*\n)+", text)[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


def number(cell):
    return int(cell) if cell else 0


def minutes(notebook):
    """(minutes of the notebook, of its exercises), as the notebook itself says them."""
    text = nbformat.read(NOTEBOOKS[notebook], as_version=4).cells[0].source
    found = re.search(r"About (\d+) minutes(?:, and (\d+) for the exercises?)?", text)
    return int(found[1]), int(found[2] or 0)


def minutes_of(exercise):
    (path,) = (ROOT / "solutions").glob(f"{exercise.notebook}_*.ipynb")
    text = "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells)
    return int(re.search(rf"## {exercise.number} · .*about (\d+) minutes", text)[1])


def test_minutes_are_those_of_the_notebooks():
    table = rows(section("Three plans"))
    assert [row[0][:2] for row in table] == list(NOTEBOOKS)
    for title, time, exercises, exercise_time in table:
        assert (number(time), number(exercise_time)) == minutes(title[:2])
        numbers = [exercise.number for exercise in EXERCISES if exercise.notebook == title[:2]]
        assert re.findall(r"[\d.]+", exercises) == ([numbers[0], numbers[-1]] if numbers[1:] else numbers)


PLANS = {"A lecture of 90 minutes": 90, "A workshop of half a day": 240}


@pytest.mark.parametrize(("title", "total"), PLANS.items())
def test_the_minutes_of_a_plan_add_up(title, total):
    assert sum(int(row[0]) for row in rows(section(title))) == total


def test_a_session_of_the_six_weeks_fills_its_90_minutes():
    _, head, session = section("A course of six weeks").partition("| minutes | what | how |")
    assert sum(int(row[0]) for row in rows(head + session)) == 90


def test_the_workshop_gives_exercises_the_minutes_they_say():
    table = {row[1]: int(row[0]) for row in rows(section("A workshop of half a day"))}
    times = {exercise.number: minutes_of(exercise) for exercise in EXERCISES}
    assert table["exercises 3.1 to 3.5"] == sum(times[f"3.{i}"] for i in range(1, 6))
    assert table["exercise 3.6"] == times["3.6"] and table["notebook 00"] == minutes("00")[0]


def test_six_weeks_hold_every_notebook_and_exercise_once():
    seen, solved, loads = [], [], []
    for _, before, time_before, after, time_after in rows(section("A course of six weeks")):
        for cell, given, found, which in ((before, time_before, seen, 0), (after, time_after, solved, 1)):
            numbers = re.findall(r"\d\d", cell)
            found += numbers
            assert number(given) == sum(minutes(n)[which] for n in numbers)
        loads.append(number(time_before) + number(time_after))
    assert seen == list(NOTEBOOKS) and solved == list(NOTEBOOKS)[1:]
    assert 100 <= loads[0] <= 125 and 195 <= max(loads) <= 210      # what the guide says in words


def places():
    """(number of a notebook, heading) wherever the guide names one."""
    found = re.findall(r'notebook (\d\d)(?: to|, from|,) ((?:"[^"]+"(?:,? (?:and|to|then) )?)+)', FLAT)
    return [(n, heading) for n, headings in found for heading in re.findall(r'"([^"]+)"', headings)]


def test_every_heading_exists():
    assert len(places()) >= 30
    for n, heading in places():
        cells = nbformat.read(NOTEBOOKS[n], as_version=4).cells
        headings = [line[3:] for cell in cells for line in cell.source.splitlines() if line.startswith("## ")]
        assert heading in headings, f'{n}: "{heading}"'


def test_where_the_explorer_is_promised_there_is_one():
    for n, heading in re.findall(r'notebook (\d\d), "([^"]+)": the explorer', FLAT):
        inside = False
        cells = nbformat.read(NOTEBOOKS[n], as_version=4).cells
        found = []
        for cell in cells:
            if cell.cell_type == "markdown" and re.search(r"(?m)^## ", cell.source):
                inside = f"## {heading}\n" in cell.source + "\n"
            found += [cell for _ in [0] if inside and "explorers." in cell.source]
        assert found, f'{n}: "{heading}"'


def test_every_mistake_is_one_that_the_checks_know():
    table = rows(section("Mistakes to expect"))
    for name, what, ask in table:
        exercise = BY_NAME[re.search(r"`(\w+)`", name)[1]]
        assert name.startswith(exercise.number) and what in {mistake.what for mistake in exercise.mistakes}
        assert ask.endswith("?")
    assert {re.search(r"`(\w+)`", row[0])[1] for row in table} == {e.name for e in EXERCISES if e.mistakes}


def test_every_command_and_every_link_within_exists():
    for command in re.findall(r"course\.py (\w+)", GUIDE):
        spec = importlib.util.find_spec(f"classroom.{command}")
        assert spec or f'"{command}"' in (ROOT / "course.py").read_text(encoding="utf-8")
    headings = {re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).replace(" ", "-")
                for line in GUIDE.splitlines() if line.startswith("#")}
    for anchor in re.findall(r"\]\(#([^)]+)\)", GUIDE):
        assert anchor in headings
    for path in re.findall(r"classroom/[\w.]+\.py", GUIDE):
        assert (ROOT / path).exists()


# Sizes


def measured():
    """{what: MiB} of the table of measured memory."""
    return {row[0]: int(row[1]) for row in rows(section("One room, one machine"))}


def test_the_machines_are_reckoned_from_the_measured_memory():
    values = (ROOT / "classroom" / "kubernetes" / "values.yaml").read_text(encoding="utf-8")
    promised = int(re.search(r"guarantee: (\d+)M ", values)[1])        # JupyterHub's M is a MiB
    text = " ".join(section("Many machines").split())
    assert f"each learner is promised {promised} MiB" in text
    kept = int(re.search(r"keeps (\d+) GiB", text)[1])
    *each, weights = measured().values()
    assert max(each) < promised and f"take {weights} MiB of it once" in text
    holds = [((size - kept) * 1024 - weights) // promised for size in (16, 32)]
    table = {row[0]: row[1:] for row in rows(section("Many machines"))}
    assert table["one machine holds"] == [str(number) for number in holds]
    for learners in ("100", "1,000"):
        machines = [math.ceil(int(learners.replace(",", "")) / number) for number in holds]
        assert table[learners] == [f"{number} machines" for number in machines]


def test_a_room_of_thirty_fits_where_the_guide_says():
    size = int(re.search(r"a machine with (\d+) GiB takes a room of 30", FLAT)[1])
    *each, weights = measured().values()
    assert 30 * max(each) + weights < (size - 2) * 1024


# What hubs look for


def test_binder_finds_its_files_and_a_python_that_is_new_enough():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = project["requires-python"].removeprefix(">=").split(".")
    found = re.fullmatch(r"python-(\d+)\.(\d+)\s*", (ROOT / "binder" / "runtime.txt").read_text("utf-8"))
    assert [int(part) for part in found.groups()] >= [int(part) for part in wanted]
    lines = (ROOT / "binder" / "requirements.txt").read_text("utf-8").splitlines()
    (line,) = [line for line in lines if not line.startswith("#")]
    assert (ROOT / "binder" / line.removeprefix("-r ")).resolve() == ROOT / "requirements.txt"
    start = ROOT / "binder" / "start"
    text = start.read_text("utf-8")
    assert text.startswith("#!/bin/bash\n") and 'exec "$@"' in text
    assert os.name == "nt" or os.access(start, os.X_OK)


def test_the_hubs_settings_are_sound_and_the_guide_says_the_password():
    path = ROOT / "classroom" / "jupyterhub_config.py"
    source = path.read_text(encoding="utf-8")
    compile(source, str(path), "exec")
    password = re.search(r'COURSE_PASSWORD"\) or "([^"]+)"', source)[1]
    assert f"`{password}`" in GUIDE and len(password) >= 8            # the authenticator takes no shorter one
    assert f":{re.search(r'COURSE_PORT.. or (.*?)[)]', source)[1]}`" in GUIDE


def test_the_names_of_learners_cannot_lead_out_of_the_room():
    source = (ROOT / "classroom" / "jupyterhub_config.py").read_text(encoding="utf-8")
    pattern = re.search(r'username_pattern = r"([^"]+)"', source)[1]
    assert re.match(pattern, "anna") and re.match(pattern, "ben_2")  # JupyterHub calls match, not fullmatch
    for name in ("..", "../x", "/etc", ".hub", "a/b", "anna/../ben", "anna\n", "", "A", "a" * 40):
        assert not re.match(pattern, name)

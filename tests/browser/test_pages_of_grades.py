"""The pages on a class in a real browser: a whole class on a projector, light and dark, with keys alone."""

from pathlib import Path

import pytest

from classroom import page, submissions
from classroom.results import Graded, Results
from helpers.checks.exercises import EXERCISES

LEARNERS = 30
STATES = ("passed", "wrong", "not written", "not handed in", "not judged", "passed", "broken")
CONTRAST = 4.5          # of letters with what is behind them, as WCAG 2 asks for

# The least contrast of all texts of the page with what is behind them, and whether one may not be selected.
LOOK = """() => {
    const light = colour => {
        const [r, g, b] = colour.match(/[\\d.]+/g).map(Number).map(
            c => c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = part => {
        const colour = getComputedStyle(part).backgroundColor;
        return colour == 'rgba(0, 0, 0, 0)' ? behind(part.parentElement) : colour;
    };
    const texts = [...document.querySelectorAll('body *')].filter(
        part => [...part.childNodes].some(node => node.nodeType == 3 && node.data.trim()));
    const contrasts = texts.map(part => {
        const [a, b] = [light(getComputedStyle(part).color), light(behind(part))].sort((a, b) => b - a);
        return (a + 0.05) / (b + 0.05);
    });
    return {
        contrast: Math.min(...contrasts), texts: texts.length,
        closed: texts.filter(part => getComputedStyle(part).userSelect == 'none').length,
        ground: light(getComputedStyle(document.body).backgroundColor),
        wide: Math.max(...[...document.querySelectorAll('.wide')].map(at => at.scrollWidth - at.clientWidth)),
        names: [...document.querySelectorAll('.marks th a')].map(at => at.getBoundingClientRect().height),
    };
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The pages on a class with every exercise of the course and every kind of verdict."""
    graded = []
    for number in range(LEARNERS):
        verdicts = {}
        for at, exercise in enumerate(EXERCISES):
            state = STATES[(number * at + number) % len(STATES)]
            named = exercise.mistakes[number % 2:number % 2 + 1] if state == "wrong" else ()
            verdicts[exercise.name] = {
                "name": exercise.name, "state": state, "says": "it says so", "remarks": [],
                "mistakes": [mistake.name for mistake in named], "message": "a long message " * 20,
            }
        graded.append(Graded(f"Learner {number} O'Long-Double-Name", verdicts, ["a remark"], before=3))
    points = submissions.course(Path(__file__).resolve().parents[2]).points
    results = Results(graded, list(EXERCISES), points, ["a sentence"], ["a notice"])
    folder = tmp_path_factory.mktemp("class")
    (folder / "grades.html").write_text(page.for_the_teacher(results), encoding="utf-8")
    (folder / "class.html").write_text(page.for_the_class(results), encoding="utf-8")
    (folder / "learner.html").write_text(page.for_a_learner(results, graded[0]), encoding="utf-8")
    return folder


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["grades", "class", "learner"])
def test_all_can_be_read_and_selected_and_nothing_is_cut_at_the_side(offline, folder, name, scheme):
    offline.emulate_media(color_scheme=scheme)
    offline.goto((folder / f"{name}.html").as_uri())
    look = offline.evaluate(LOOK)
    assert look["texts"] > 20 and look["contrast"] >= CONTRAST and not look["closed"]
    assert (look["ground"] > 0.5) == (scheme == "light")
    assert offline.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    if name != "learner":
        assert look["wide"] <= 0
    if name == "grades":
        assert len(look["names"]) == LEARNERS and max(look["names"]) < 45       # two lines of letters


def test_the_commonest_mistakes_are_on_the_first_screen(offline, folder):
    for name in ("grades", "class"):
        offline.goto((folder / f"{name}.html").as_uri())
        last = offline.locator("ol li").last
        assert offline.locator("ol li").count() == page.TOP
        assert last.bounding_box()["y"] + last.bounding_box()["height"] < 720


def test_keys_lead_to_what_each_was_told(offline, folder):
    offline.goto((folder / "grades.html").as_uri())
    for _ in range(2):
        offline.keyboard.press("Tab")
    offline.keyboard.press("Enter")
    assert offline.url.endswith("#told")
    offline.goto((folder / "grades.html").as_uri())
    summary = offline.locator(".stand summary").first
    summary.focus()
    offline.keyboard.press("Enter")
    assert offline.locator(".stand details").first.get_attribute("open") is not None
    assert offline.locator(".wide").first.get_attribute("tabindex") == "0"

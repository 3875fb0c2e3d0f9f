"""Every figure in prose is computed anew, or was looked at as it stands. See prose.py and prose_claims.py."""

import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from prose import (
    NOT_FIGURES,
    NOT_TEXT,
    Prose,
    all_prose,
    blank,
    cells,
    found,
    line,
    prose_of_notebook,
    reviewed,
    span,
)
from prose_claims import CLAIMS, SMOLLM2, heads, heads_of_smollm2, shown

from helpers import smollm2
from helpers.explorers import model_heads
from helpers.explorers.language_model import MOST

ADVICE = """
A figure changed, in the prose or in what its section computes. Is it measured (of the model, the stories,
the code, a disk)? Then its sentence belongs into tests/prose_claims.py, with what computes it. Is it given,
cited, or reckoned beside it? Then `python tests/prose.py` writes tests/prose.toml anew; look at the change.
In brackets: what stands in no code and no output of the section."""

PHRASES = [(file, place, phrase) for (file, place), phrases in CLAIMS.items() for phrase in phrases]
PROSE = {(piece.file, piece.place): piece for piece in all_prose()}


def name_of(value):
    return value.removeprefix("notebooks/")[:30]


@pytest.mark.parametrize(("file", "place", "phrase"), PHRASES, ids=name_of)
def test_what_is_claimed_is_said_and_holds(file, place, phrase):
    assert span(phrase, PROSE[file, place].text), f"{place} of {file} no longer says: {phrase}"
    evidence = CLAIMS[file, place][phrase]
    for piece in evidence if isinstance(evidence, tuple) else (evidence,):
        if callable(piece):
            assert piece(), f"{place} of {file}: this no longer holds: {phrase}"
        else:
            code = [cell.source for cell in cells(file).values() if cell.cell_type == "code"]
            assert any(piece in source for source in code), f"{file}: no cell says {piece}. So, {phrase}?"


def test_the_sizes_are_those_of_the_language_model():
    if not smollm2.is_fetched():
        pytest.skip("the language model is not fetched: python3 course.py model")
    pytest.importorskip("tokenizers", reason="the package tokenizers is missing: python3 course.py model")
    assert smollm2.load().config == SMOLLM2


FOUND, REVIEWED = found(PROSE.values(), CLAIMS), reviewed()


@pytest.mark.parametrize("file", sorted(FOUND.keys() | REVIEWED.keys()))
def test_every_other_figure_is_as_it_was_reviewed(file):
    now, then = FOUND.get(file, {}), REVIEWED.get(file, {})
    changed = [f"{place}: now {now.get(place)!r}, reviewed {then.get(place)!r}"
               for place in now.keys() | then.keys() if now.get(place) != then.get(place)]
    assert not changed, "\n".join([file, *sorted(changed), ADVICE])


SUM = re.compile(r"((?:[\d.()·×+−/^ ]|,(?=\d{3}))+) = \**(−?\d[\d,]*(?:\.\d+)?)(?![\w√(²³]| ?[·×/+−^])")
OPERATORS = str.maketrans({"·": "*", "×": "*", "−": "-", "^": "**", ",": ""})


def sums(piece):
    """(left, right) of what is reckoned in it with numbers alone, such as 1·0 + 2·2 = 4."""
    text = piece.text
    for pattern in NOT_FIGURES[:NOT_TEXT]:
        text = pattern.sub(blank, text)
    for match in SUM.finditer(text):
        left, right = match[1].strip(), match[2]
        begins = match[1][0] == " " or not re.search(r"[^\s*(]$", text[:match.start()])
        if begins and re.match(r"[\d(−]", left) and re.search(r"\d\)* ?[·×+−/^]", left):
            yield left, right


def reckoned(text):
    python = text.translate(OPERATORS)
    return eval(python + ")" * (python.count("(") - python.count(")")), {})


@pytest.mark.parametrize("file", sorted({file for file, _ in PROSE}))
def test_sums_in_prose_are_right(file):
    for piece in (piece for piece in PROSE.values() if piece.file == file):
        for left, right in sums(piece):
            assert reckoned(left) == pytest.approx(reckoned(right)), f"{piece.place}: {left} = {right}"


def test_the_explorers_of_heads_say_how_many_there_are():
    assert "the eight heads together expect" in shown("04", "explore-heads") and heads() == 8
    assert f"All {heads_of_smollm2()} heads" in model_heads.__doc__
    assert f"at most {MOST} tokens" in model_heads.__doc__


def test_there_are_sums_in_prose():
    there = {f"{left} = {right.rstrip(',')}" for piece in PROSE.values() for left, right in sums(piece)}
    assert {"12 / 4 = 3", "(1 + 1 + 49 + 49) / 4 = 25", "1·1 + 0·2 + 2·3 = 7", "1 / 100^(2/4) = 0.1",
            "1 + 8·1/4 = 3"} <= there


# That the tests above see what they are for


def prose(text, near=(), file="notebooks/a.ipynb"):
    return Prose(file, "a-cell", text, frozenset(near))


@pytest.mark.parametrize(("text", "figures"), [
    ("Eight of the twelve heads", "(Eight) twelve"),
    ("a 12th part, 12 parts, 12, and 12.5 parts", "12 12 12 (12.5)"),
    ("1,012 tokens, −12 degrees, 48%", "(1,012) −12 (48%)"),
    ("two hundred, ten thousand, a hundred, hundreds", "two hundred (ten thousand) (a hundred) (hundreds)"),
    ("half of it, a third, two thirds, twice", "(half) (a third) (two) (thirds) (twice)"),
    ("⅓ and 3d/4", "(⅓) (3) (4)"),
    ("- one thing, once, first", ""),
    ("In 2017 (Vaswani et al. 2017, §3.2) and `x = 5`, $n = 5$, notebooks 03 and 04, GPT-2: 5", "(5)"),
    ("# 02 · Two heads\n\nas Radford et al.\n2019 had it (notebook 05)", ""),
    ("## Two heads\n\n## 4.1 · `split_heads`  ●●○  about 8 minutes", "(Two)"),
])
def test_figures_are_found_and_references_left_out(text, figures):
    assert line(prose(text, near=(12, 200))) == figures


def test_figures_in_a_claim_are_left_to_it_over_the_ends_of_lines():
    text = "> Eight of\n> twelve heads, not seven"
    assert line(prose(text), ["Eight of twelve heads"]) == "(seven)"
    assert line(prose(text), ["Nine of twelve heads"]) == "(Eight) (twelve) (seven)"


def test_rows_of_tables_are_left_out_in_guides_alone():
    table = "| a | 5 |\n|---|---|"
    assert line(prose(table, file="README.md")) == "" and line(prose(table)) == "(5)"


@pytest.mark.parametrize(("text", "expected"), [
    ("so 12 / 4 = 3; then", [("12 / 4", "3")]),
    ("**3 + 10·2 = 23**, and n + 1 = 5", [("3 + 10·2", "23")]),
    ("√4 = 2, 8·1/4 = 2·n, d = 4, x · 4 = 8", []),
])
def test_sums_of_numbers_alone_are_found(text, expected):
    assert list(sums(prose(text))) == expected


def a_notebook(output, title="Three of four"):
    picture = {"image/svg+xml": "<svg/>", "text/plain": f"{title}\n{output}"}
    return new_notebook(cells=[
        new_markdown_cell("## Heading\n\nFour of 7, after 9", id="words"),
        new_code_cell(f"figures.bars([7], '{title}')  # 9", id="picture",
                      outputs=[new_output("display_data", picture)]),
        new_markdown_cell("## Another\n\n7", id="apart"),
    ])


@pytest.mark.parametrize(("output", "words", "title"), [
    ("heads 4", "Four 7 (9)", "(Three) four"),
    ("heads 5", "(Four) 7 (9)", "(Three) (four)"),
])
def test_a_figure_is_near_only_what_its_section_computes(output, words, title, tmp_path):
    nbformat.write(a_notebook(output), tmp_path / "a.ipynb")
    lines = {piece.place: line(piece) for piece in prose_of_notebook(str(tmp_path / "a.ipynb"))}
    assert lines == {"words": words, "picture": title, "apart": "(7)"}

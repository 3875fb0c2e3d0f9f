"""Reads the figures in prose: numbers, and words such as "twice", in Markdown, picture titles and guides.

`line` says the figures of one piece of prose in one line, as REVIEWED holds it. A figure in brackets stands
in no code and in no output of its section; one without must go on standing there. Left out are references
(years, notebooks, sections), code, and the phrases of `prose_claims.CLAIMS`, which are tested one by one.

`python tests/prose.py` writes REVIEWED anew: look at what it changes before you commit it.
"""

import ast
import functools
import json
import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parents[1]
REVIEWED = Path(__file__).with_name("prose.toml")
FILES = [*sorted((ROOT / "notebooks").glob("*.ipynb")), *sorted((ROOT / "solutions").glob("*.ipynb")),
         ROOT / "README.md", ROOT / "classroom" / "README.md"]

UNITS = dict(zip("two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
                 "sixteen seventeen eighteen nineteen".split(), range(2, 20), strict=True))
UNITS |= {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90}
LARGE = {"hundred": 100, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
PARTS = {"half": 2, "halves": 2, "third": 3, "quarter": 4, "fifth": 5, "tenth": 10, "twentieth": 20}
SIGNS = {"½": 1 / 2, "⅓": 1 / 3, "⅔": 2 / 3, "¼": 1 / 4, "⅙": 1 / 6, "⅛": 1 / 8}
FIGURE = re.compile(
    rf"""\b (?: (?P<many>{"|".join(UNITS)}|a)\s+ )? (?P<large>{"|".join(LARGE)}) \b
    | \b (?P<unit>{"|".join(UNITS)}) \b
    | \b (?P<word>twice|doubled?|doubles|half|halves|quarters?|thirds|tens|{"s|".join(LARGE)}s) \b
    | \b (?:a|one|weak) \s (?P<part>{"|".join(PARTS)}) \b
    | (?P<sign>[{"".join(SIGNS)}])
    | (?:(?<![\w)²³]) [−+-])? (?P<digits>(?<![\w.]) \d+(?:,\d{{3}})*(?:\.\d+)?(?:e\d+)?) %?
    """, re.X | re.I)

NOT_FIGURES = [re.compile(pattern, re.S | re.M) for pattern in (
    r"```.*?```", r"`[^`]*`", r"\$\$.*?\$\$", r"\$[^$\n]*\$", r"<[^<>\n]*>",     # code, formulas, marks
    r"^\*Sources?:\*.*", r"^#+ (?:Exercises )?\d[\d.]* ·.*?$", r"^\d+\. ", r"Hint \d:",
    r"\]\([^)]*\)", r"[\w/]*\d\d_\w+\.ipynb", r"\[\d\d\b", r"https?://\S+",
    r"[Nn]otebooks?\s+\[?\d\d(?:(?:,| and| to)\s+\d\d)*", r"[Ee]xercises?\s+\d+\.\d(?: to \d+\.\d)?",
    r"\([^()]*\b(?:19|20)\d\d\b[^()]*\)", r"(?:et\s+al\.|[A-Z]\w+)\s+(?:19|20)\d\d\b",
    r"§[\d.]+", r"\b(?:table|figure|eq\.)\s+\d+(?:\.\d+)?", r"\barXiv:\S+",
    r"\b(?:Llama\s+\d(?:\s+\d+B)?|GPT-\w+|SmolLM2-135M|PaLM\s+540B|DeepSeek-V2|Python 3\.\d+|SmolLM2)\b",
    r"^\*\*Time\.\*\*.*?$")]
NOT_TEXT = 5          # the first ones: code, formulas, marks
TABLES = re.compile(r"^\|.*$", re.M)          # of minutes and sizes: other tests reckon them


@dataclass(frozen=True)
class Prose:
    """A piece of prose.  place : a cell's id or, in a guide, a heading; near : the numbers around it."""

    file: str
    place: str
    text: str
    near: frozenset


def value(match):
    """The number that a match of FIGURE stands for, without its sign; None for a vague one."""
    if match["large"]:
        many = (match["many"] or "a").lower()
        return LARGE[match["large"].lower()] * UNITS.get(many, 1)
    if match["unit"]:
        return UNITS[match["unit"].lower()]
    if match["part"]:
        return 1 / PARTS[match["part"].lower()]
    if match["sign"]:
        return SIGNS[match["sign"]]
    if match["word"]:
        return 2 if match["word"].lower() in ("twice", "double", "doubled", "doubles") else None
    return float(match["digits"].replace(",", ""))


def blank(match):
    return re.sub(r"\S", " ", match[0])


def span(phrase, text):
    """The match of a phrase in a text, over the ends of lines and the marks of quotations, or None."""
    return re.search(r"(?:\s|^>)+".join(map(re.escape, phrase.split())), text, re.M)


def line(prose, claims=()):
    """The figures of the prose that no claim holds, in their order."""
    text = prose.text
    for phrase in claims:
        found = span(phrase, prose.text)
        if found:
            text = text[:found.start()] + blank(found) + text[found.end():]
    for pattern in NOT_FIGURES:
        text = pattern.sub(blank, text)
    if prose.file.endswith(".md") or prose.place == "map":
        text = TABLES.sub(blank, text)
    figures = ((" ".join(match[0].split()), value(match)) for match in FIGURE.finditer(text))
    return " ".join(words if number is not None and round(number, 9) in prose.near else f"({words})"
                    for words, number in figures)


def numbers(text):
    """The numbers in an output or a string, without their signs."""
    found = re.findall(r"(?<![\w.])\d+(?:[,_]\d{3})*(?:\.\d+)?", text)
    return {round(float(number.replace(",", "").replace("_", "")), 9) for number in found}


def constants(source, title):
    """The numbers in code, those in its strings too, but not those of a picture's title."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value != title:
            found |= numbers(node.value)
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            found.add(round(float(node.value), 9))
    return found


def outputs(cell):
    """The texts that the cell shows, pictures as text."""
    return [output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.outputs]


def title_of(cell):
    """The title of the cell's picture where it is written out in the code, else None."""
    titles = [text.partition("\n")[0] for text in outputs(cell)]
    strings = {node.value for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Constant)}
    return next((title for title in titles if title in strings and " " in title), None)


def near(cell):
    """The numbers in the code and the outputs of a cell, but for its picture's title."""
    title = title_of(cell)
    shown = (text.partition("\n")[2] if text.partition("\n")[0] == title else text for text in outputs(cell))
    return constants(cell.source, title).union(*map(numbers, shown))


@functools.cache
def cells(file):
    """dict: id -> cell of a notebook."""
    return {cell.id: cell for cell in nbformat.read(ROOT / file, as_version=4).cells}


def prose_of_notebook(file):
    section, sections = [], []
    for cell in cells(file).values():
        if cell.cell_type == "markdown" and re.search(r"^## ", cell.source, re.M):
            section = []
            sections.append(section)
        elif not sections:
            sections.append(section)
        section.append(cell)
    for section in sections:
        code = [cell for cell in section if cell.cell_type == "code"]
        around = frozenset().union(*map(near, code))
        for cell in section:
            if cell.cell_type == "markdown":
                examples = numbers(" ".join(re.findall(r"```.*?```", cell.source, re.S)))
                yield Prose(file, cell.id, cell.source, around | examples)
            elif title_of(cell):
                yield Prose(file, cell.id, title_of(cell), around)


def prose_of_guide(file):
    for part in re.split(r"(?m)^(?=#+ )", (ROOT / file).read_text(encoding="utf-8")):
        heading, _, text = part.partition("\n")
        yield Prose(file, heading.strip("# "), text, frozenset())


def all_prose():
    """Every piece of prose of FILES."""
    for path in FILES:
        file = path.relative_to(ROOT).as_posix()
        yield from (prose_of_guide if file.endswith(".md") else prose_of_notebook)(file)


def found(pieces, claims):
    """dict: file -> place -> line, for prose that has figures.  claims : dict (file, place) -> phrases."""
    lines = {}
    for prose in pieces:
        figures = line(prose, claims.get((prose.file, prose.place), ()))
        if figures:
            lines.setdefault(prose.file, {})[prose.place] = figures
    return lines


def reviewed():
    return tomllib.loads(REVIEWED.read_text(encoding="utf-8"))


def write(lines):
    text = ["# The figures in prose that no test reckons anew: given, cited, or reckoned beside them.",
            "# In brackets: those that stand in no code and no output of their section. See tests/prose.py."]
    for file, places in lines.items():
        text += ["", f"[{json.dumps(file)}]"]
        text += [f"{json.dumps(place, ensure_ascii=False)} = {json.dumps(figures, ensure_ascii=False)}"
                 for place, figures in places.items()]
    REVIEWED.write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    from prose_claims import CLAIMS

    write(found(all_prose(), CLAIMS))

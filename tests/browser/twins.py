"""Explorers of the notebooks, each with a twin in Python: the same controls, moved alike, must show the same.

`calls` finds them in the notebooks. `Pair` holds an explorer on a page and its twin; `Pair.acts` puts every
control at its least and its greatest, by mouse and by keyboard.
"""

import ast
import html
import json
import re
import xml.etree.ElementTree as ElementTree

import ipywidgets as widgets
import nbformat

from helpers import explorers

READABLE = " ".join(["i love you ."] * 9 + ["i love you"])      # all that the tiny model reads
END = {0: "the first", -1: "the last"}
SLIDERS = (widgets.IntSlider, widgets.SelectionSlider)
TEXTS = ("", "x" * 300, "anna loves aples", READABLE, "i love you")

CONTROLS = ".sa-controls > :not(.sa-pair), .sa-pair > *"                  # a slider and its entry are a pair
STATE = """explorer => {
    const shown = control => {
        const has = name => control.classList.contains(name), find = what => control.querySelector(what);
        if (has('widget-toggle-buttons')) return find('button.mod-active')?.innerText;
        if (has('widget-toggle-button')) return has('mod-active');
        if (has('widget-dropdown')) return find('select').selectedOptions[0].text;
        if (find('input')) return find('input').value;
        if (find('.noUi-handle')) return +find('.noUi-handle').getAttribute('aria-valuenow');
        return has('widget-button') ? control.innerText : null;
    };
    const texts = what => [...explorer.querySelectorAll(what)].map(node => node.textContent);
    const words = [], svg = explorer.querySelector('.sa-picture svg');
    const walker = document.createTreeWalker(svg, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) words.push(walker.currentNode.data.trim());
    return {
        words: words.filter(word => word), status: texts('[role=status]'), alert: texts('[role=alert]'),
        text: texts('pre'),
        controls: [...explorer.querySelectorAll('CONTROLS')].map(shown),
    };
}""".replace("CONTROLS", CONTROLS)
SAME = f"([explorer, expected]) => JSON.stringify(({STATE})(explorer)) === expected"


def calls(path):
    """(name, call) of every explorer that a cell of the notebook ends in; known names are put in place."""
    known = {}
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type != "code":
            continue
        for line in ast.parse(cell.source).body:
            if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
                known[line.targets[0].id] = line.value
        if re.search(r"^explorers\.\w+\(", cell.source, re.M):
            yield line.value.func.attr, Filled(known).visit(line.value)


class Filled(ast.NodeTransformer):
    """Puts the texts and numbers that names stand for in their places."""

    def __init__(self, known):
        self.known = known

    def visit_Name(self, node):
        value = self.known.get(node.id)
        return value if isinstance(value, ast.Constant) else node


def stored(path):
    """The stored forms of every picture in a notebook."""
    return [output.data for cell in nbformat.read(path, as_version=4).cells
            for output in cell.get("outputs", ()) if "image/svg+xml" in output.get("data", {})]


def same_pictures(found, stored):
    """That these pictures on a page are those of a notebook, drawn and described."""
    assert [picture["text"] for picture in found] == [data["text/plain"] for data in stored] != []
    assert all(picture["drawn"] and picture["alt"] for picture in found)


def twin_of(call, shown):
    """The explorer of a call, in this process; `shown(name)` is the value that a name has in the notebook."""
    def value(node):
        return shown(node.id) if isinstance(node, ast.Name) else ast.literal_eval(node)
    return getattr(explorers, call.func.attr)(*map(value, call.args),
                                              **{word.arg: value(word.value) for word in call.keywords})


def controls_of(explorer):
    """The controls in the order in which they stand on the page."""
    rows = [child for child in explorer.box.children if "sa-controls" in child._dom_classes]
    inside = [child for row in rows for child in row.children]
    return [control for child in inside for control in getattr(child, "children", [child])]


class Pair:
    """An explorer on the page and its twin."""

    def __init__(self, page, live, call):
        self.page, self.live = page, live
        status = live.locator("[role=status]").inner_text()

        def shown(name):
            """The number of a layer or a head that the notebook computes."""
            return int(re.search(rf"\b{name} (\d+)", status).group(1))

        self.twin = twin_of(call, shown)

    def state(self):
        """What the page should show."""
        def said(pattern):
            return [html.unescape(text) for text in re.findall(pattern, self.twin.canvas.value)]
        drawing = re.search(r"<svg.*</svg>", self.twin.canvas.value, re.S).group()
        words = [text.strip() for text in ElementTree.fromstring(drawing).itertext() if text.strip()]
        text = [self.twin.picture().text] if self.twin.in_words.value else []
        return {"words": words, "status": said(r'<p role="status"[^>]*>(.*?)</p>'),
                "alert": said(r'<p role="alert"[^>]*>(.*?)</p>'), "text": text,
                "controls": [shown(control) for control in controls_of(self.twin)]}

    def alike(self, what):
        """Wait until the page shows what the twin shows."""
        expected = self.state()
        handle = self.live.element_handle()
        try:
            self.page.wait_for_function(SAME, arg=[handle, json.dumps(expected, ensure_ascii=False,
                                                                      separators=(",", ":"))], timeout=30_000)
        except Exception:
            assert self.live.evaluate(STATE) == expected, what
            raise

    def on_page(self, control):
        """Where the control stands on the page."""
        return self.live.locator(CONTROLS).nth(controls_of(self.twin).index(control))

    def acts(self):
        """(what is done, the doing on the page, the same in Python), every control least and greatest."""
        controls = controls_of(self.twin)
        controls.sort(key=lambda control: isinstance(control, widgets.Text))        # new texts come last
        for control in controls:
            yield from acts(control, self.on_page(control))


def acts(control, place):
    """What a reader does to one control, and the same in Python."""
    name = control.description
    if isinstance(control, widgets.ToggleButtons):
        for end in (0, -1, 0, -1):
            button = place.locator("button").nth(end)
            how = button.click if end == 0 else lambda button=button: button.press("Enter")
            yield f"{name}: {END[end]}", how, lambda end=end: choose(control, end)
    elif isinstance(control, widgets.Dropdown):
        for end, key in ((0, "Home"), (-1, "End")):
            yield f"{name}: {key}", lambda key=key: place.locator("select").press(key), \
                lambda end=end: choose(control, end)
    elif isinstance(control, SLIDERS):
        for end in (0, -1):
            yield f"{name}: drawn to {END[end]}", lambda end=end: drag(place, end), \
                lambda end=end: choose(control, end)
    elif isinstance(control, widgets.BoundedIntText):
        for typed in ("-7", "", "99999"):
            yield f"{name}: {typed!r} typed", lambda typed=typed: enter(place, typed), \
                lambda typed=typed: setattr(control, "value", int(typed or control.value))
    elif isinstance(control, widgets.Text):
        for typed in TEXTS:
            yield f"{name}: {typed!r} typed", lambda typed=typed: enter(place, typed), \
                lambda typed=typed: setattr(control, "value", typed)
    elif isinstance(control, widgets.ToggleButton):
        for how in (place.click, lambda: place.press("Space")):
            yield f"{name}: pressed", how, lambda: setattr(control, "value", not control.value)
    elif isinstance(control, widgets.Button):
        for how in (place.click, lambda: place.press("Enter")):
            yield f"{name}: pressed", how, control.click


def choose(control, end):
    """Put a control that has options, or a slider, at its first or last value."""
    if hasattr(control, "options"):
        control.index = range(len(control.options))[end]
    else:
        control.value = (control.min, control.max)[end]


def enter(place, typed):
    place.locator("input").fill(typed)
    place.locator("input").press("Enter")


def drag(place, end):
    """Take a slider's handle and draw it past the first or the last spot of its track."""
    handle, track, mouse = place.locator(".noUi-handle"), place.locator(".noUi-base"), place.page.mouse
    track.hover(trial=True)                                   # in view, and where it will stay
    begun, track = handle.bounding_box(), track.bounding_box()
    y = begun["y"] + begun["height"] / 2
    mouse.move(begun["x"] + begun["width"] / 2, y)
    mouse.down()
    mouse.move(track["x"] - 9 if end == 0 else track["x"] + track["width"] + 9, y, steps=3)
    mouse.up()


def shown(control):
    """What a control shows, as STATE reads it from the page."""
    if isinstance(control, widgets.SelectionSlider):
        return control.index
    if isinstance(control, (widgets.ToggleButtons, widgets.Dropdown)):
        return control.label
    if isinstance(control, widgets.BoundedIntText):
        return str(control.value)
    if isinstance(control, (widgets.ToggleButton, widgets.Text, widgets.IntSlider)):
        return control.value
    return control.description if isinstance(control, widgets.Button) else None


def stops(control):
    """How many buttons or boxes a control has for the keyboard. A slider has none: a box is beside it."""
    if isinstance(control, widgets.ToggleButtons):
        return len(control.options)
    if isinstance(control, (widgets.Label, *SLIDERS)):
        return 0
    return 3 if isinstance(control, widgets.Play) else 1

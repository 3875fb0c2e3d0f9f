"""The pages on a class: one for the projector, without names, one for who teaches, one for each learner.

HTML without scripts that opens anywhere, in light and in dark.

Everything that comes from a submission is escaped.
"""

import html

from classroom.names import writable
from classroom.results import OTHER, commonest_first, in_one_line, kind

MARKS = {"solved": "✓", "stuck": "✗", "not written": "○", "not handed in": "–", "not judged": "?"}
SHOWN = 3  # mistakes of an exercise that are seen at once
TOP = 5  # mistakes on top of the page
STYLE = """
:root { color-scheme: light dark; --ink: #222; --ground: #fff; --line: #bbb; --soft: #f3f3f3; --link: #0b5394;
        --solved: #cfe3f5; --stuck: #ffd9b0; --not-written: #e6e6e6; --notice: #fff3c4 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8e8; --ground: #16181b; --line: #555; --soft: #24272b; --link: #8ec5ff;
          --solved: #1d4468; --stuck: #6b3c10; --not-written: #3a3d42; --notice: #4a4011 } }
body { font: 16px/1.45 system-ui, sans-serif; margin: 1.2em auto; max-width: 78em; padding: 0 1em;
       color: var(--ink); background: var(--ground) }
body.wall { font-size: 20px }
h1 { margin: 0 0 0.3em; font-size: 1.6em } h2 { margin: 1.2em 0 0.4em; font-size: 1.25em }
h3 { margin: 0 0 0.4em }
p { margin: 0.4em 0 } a, summary { color: var(--link) } ul, ol { margin: 0; padding-left: 1.3em }
ul.plain { list-style: none; padding: 0 }
table { border-collapse: collapse }
th, td { border: 1px solid var(--line); padding: 3px 8px; text-align: left }
td, th { vertical-align: top } th { background: var(--soft) } td.number { text-align: right }
th.number { text-align: center; line-height: 1.1 } th small { font-weight: normal }
.stand { width: 100% } .stand th:last-child { width: 50% } .stand th:first-child { min-width: 7em }
.wide { overflow-x: auto } .marks { font-size: 0.85em } .marks td, .marks th { padding: 3px 4px }
td.mark { text-align: center }
.marks td.mark { padding: 0 }
td.mark a { display: block; padding: 3px; color: inherit; text-decoration: none }
.marks th:first-child { position: sticky; left: 0; min-width: 11em; max-width: 16em; overflow-wrap: anywhere }
.bar { display: flex; width: 6em; height: 1.1em; border: 1px solid var(--line); margin-top: 0.15em }
.key { padding: 0 0.5em; border: 1px solid var(--line); white-space: nowrap }
.solved { background: var(--solved) } .stuck { background: var(--stuck) }
.not-written { background: var(--not-written) } .not-judged, .notice { background: var(--notice) }
.notice { padding: 0.4em 0.8em } pre { background: var(--soft); padding: 0.6em 1em; white-space: pre-wrap }
section { border-top: 1px solid var(--line); margin-top: 1.2em; padding-top: 0.8em }
:focus-visible { outline: 3px solid var(--link); outline-offset: 1px }
@media print { .wide { overflow: visible } }
"""


def for_the_class(results):
    """The page for the projector: how many, where, and on what; nobody is named."""
    parts = ["<h1>Where we stand</h1>", summary(results), *notices(results.notices)]
    parts += [commonest(results, results.mistakes_for_all)]
    parts += ["<h2>Exercise by exercise</h2>", stuck(results, results.mistakes_for_all, named=False)]
    return document("Where we stand", parts, "wall")


def for_the_teacher(results):
    """The page with everything: the class, who has solved what, and what each was told."""
    parts = ["<h1>Grades</h1>", summary(results), *notices(results.notices + results.sentences)]
    parts += [
        '<p><a href="#who">Who has solved what</a> · <a href="#told">What each was told</a> · For the '
        'projector, without names: <a href="class.html">class.html</a></p>',
        commonest(results, results.mistakes),
        "<h2>Exercise by exercise</h2>",
        stuck(results, results.mistakes, named=True),
        '<h2 id="who">Who has solved what</h2>',
        overview(results),
        '<h2 id="told">What each was told</h2>',
        *(one(results, graded, f"l{number}") for number, graded in enumerate(results.graded)),
    ]
    return document("Grades", parts)


def for_a_learner(results, graded):
    """What one learner gets back."""
    return document(f"Exercises: {graded.learner}", [one(results, graded, "l")])


def document(title, parts, look=""):
    head = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{text(title)}</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<style>{STYLE}</style></head><body class="{look}"><main>'
    )
    return writable("\n".join([head, *parts, "</main></body></html>\n"]))


def text(words):
    return html.escape(words)


def css(name):
    return name.replace(" ", "-")


def kinds_there(results):
    """The kinds of verdicts that there are, the first three always."""
    there = {kind(verdict) for graded in results.graded for verdict in graded.verdicts.values()}
    return [name for number, name in enumerate(MARKS) if number < 3 or name in there]


def summary(results):
    keys = " ".join(
        f'<span class="key {css(name)}">{MARKS[name]} {name}</span>' for name in kinds_there(results)
    )
    learners, exercises = counted(len(results.graded), "learner"), counted(len(results.exercises), "exercise")
    numbers = ", ".join(results.notebooks)
    which = f"notebook{'s' if len(results.notebooks) > 1 else ''} {numbers}"
    return f"<p>{learners}, {exercises} of {which}, {counted(results.total, 'point')} in all. {keys}</p>"


def counted(number, noun):
    return f"{number} {noun}{'' if number == 1 else 's'}"


def notices(sentences):
    return [f'<p class="notice">{text(sentence)}</p>' for sentence in sentences]


def commonest(results, mistakes):
    """The mistakes that most learners have made, of all exercises; those of one learner alone are none."""
    rows = [(e, what, names) for e in results.exercises for what, names in mistakes(e)
            if names[1:] and what != OTHER]
    rows = commonest_first({(e.number, e.name, what): names for e, what, names in rows})[:TOP]
    items = "".join(
        f"<li><b>{len(names)} ×</b> {number} {name}: {text(what)}</li>"
        for (number, name, what), names in rows
    )
    return f"<h2>The commonest mistakes</h2>{f'<ol>{items}</ol>' if items else '<p>None is made twice.</p>'}"


def stuck(results, mistakes, named):
    """Per exercise: how many have solved it, how many are stuck, and on what."""
    kinds, rows = kinds_there(results), []
    for exercise in results.exercises:
        counts = results.counts(exercise)
        bar = "".join(f'<span class="{css(name)}" style="flex: {counts[name]}"></span>' for name in kinds)
        told = [
            f"<details><summary>{len(names)} × {text(what)}</summary>{text(', '.join(names))}</details>"
            if named else f"{len(names)} × {text(what)}"
            for what, names in mistakes(exercise)
        ]
        items = [f"<li>{item}</li>" for item in told]
        first, rest = "".join(items[:SHOWN]), "".join(items[SHOWN:])
        look = ' class="plain"' if named else ""
        told = f"<ul{look}>{first}</ul>" if first else ""
        if rest:
            told += f"<details><summary>{len(items) - SHOWN} more</summary><ul{look}>{rest}</ul></details>"
        numbers = "".join(f'<td class="number">{counts[name]}</td>' for name in kinds)
        rows.append(
            f"<tr><th>{exercise.number} {exercise.name.replace('_', '_<wbr>')}</th>"
            f'<td><div class="bar" aria-hidden="true">{bar}</div></td>{numbers}<td>{told}</td></tr>'
        )
    heads = "".join(f'<th class="number">{MARKS[name]}<br><small>{name}</small></th>' for name in kinds)
    head = f"<tr><th>exercise</th><th></th>{heads}<th>on what</th></tr>"
    return scrolling("Exercise by exercise", f'<table class="stand">{head}{"".join(rows)}</table>')


def overview(results):
    """Learners and exercises as one table of marks."""
    head = "".join(f'<th title="{e.name}">{e.number}</th>' for e in results.exercises)
    before = any(graded.before not in (None, results.points(graded)[0]) for graded in results.graded)
    rows = []
    for number, graded in enumerate(results.graded):
        points, possible = results.points(graded)
        cells = "".join(
            f'<td class="mark {css(kind(v))}"><a href="#l{number}-{name}" '
            f'title="{name}: {text(v["state"])}">{MARKS[kind(v)]}</a></td>'
            for name, v in ((exercise.name, graded.verdicts[exercise.name]) for exercise in results.exercises)
        )
        note = ' <span title="see the remarks">⚑</span>' if graded.remarks else ""
        gained = "" if graded.before in (None, points) else f"{points - graded.before:+}"
        rows.append(
            f'<tr><th><a href="#l{number}">{text(graded.learner)}</a>{note}</th>'
            f'<td class="number">{points}</td><td class="number">{possible}</td>'
            f"{f'<td>{gained}</td>' if before else ''}{cells}</tr>"
        )
    since = '<th title="since the last time">±</th>' if before else ""
    head = f"<tr><th>learner</th><th>points</th><th>of</th>{since}{head}</tr>"
    table = f'<table class="marks">{head}{"".join(rows)}</table>'
    note = "<p>⚑ stands where there is a remark on the submission as a whole"
    return scrolling("Who has solved what", table) + note + (
        "; ± is what has changed since the last time.</p>" if before else ".</p>"
    )


def scrolling(name, table):
    """A table that may be wider than the window, and is reached by the keyboard."""
    return f'<div class="wide" role="region" aria-label="{name}" tabindex="0">{table}</div>'


def one(results, graded, anchor):
    """All verdicts on one submission."""
    remarks = "".join(f"<li>{text(remark)}</li>" for remark in graded.remarks)
    blocks = []
    for exercise in results.exercises:
        verdict = graded.verdicts[exercise.name]
        which = kind(verdict)
        state = in_one_line(verdict) if which == "solved" else verdict["state"]
        blocks.append(
            f'<details id="{anchor}-{exercise.name}"{" open" * (which == "stuck")}><summary>'
            f"{MARKS[which]} {exercise.number} {exercise.name}: {text(state)}</summary>"
            f"<pre>{text(chr(10).join([verdict['message'], *verdict['remarks']]))}</pre></details>"
        )
    points, possible = results.points(graded)
    return (
        f'<section id="{anchor}"><h3>{text(graded.learner)}: {points} of {counted(possible, "point")}</h3>'
        f"{f'<ul>{remarks}</ul>' if remarks else ''}{''.join(blocks)}</section>"
    )

"""The page that says where a class stands: one HTML file, without scripts, that opens anywhere.

Everything that comes from a submission is escaped.
"""

import html
from collections import Counter

MARKS = {"passed": "✓", "wrong": "✗", "unusable": "✗", "broken": "✗"}  # all others: ○
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; color: #222;
       background: #fff }
table { border-collapse: collapse } th, td { border: 1px solid #bbb; padding: 3px 8px; text-align: left }
.wide { overflow-x: auto } td.mark { text-align: center } td.number { text-align: right }
td.bars { white-space: nowrap } ul { margin: 0; padding-left: 1.2em }
a { color: inherit } .passed { background: #cfe3f5 } .wrong { background: #ffd9b0 } .open { background: #fff }
.bar { display: inline-block; height: 0.8em; vertical-align: middle } .bar.passed { background: #1f77b4 }
.bar.wrong { background: #ff7f0e } .bar.open { background: #ccc }
pre { background: #f5f5f5; padding: 0.6em 1em; overflow-x: auto; white-space: pre-wrap }
section { border-top: 1px solid #bbb; margin-top: 1.5em }
"""


def page(results, exercises, course, sentences):
    """The whole page as text."""
    total = sum(course.points[exercise.name] for exercise in exercises)
    parts = [
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Grades</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{STYLE}</style></head><body><h1>Grades</h1>",
        f"<p>{len(results)} submissions, {len(exercises)} exercises, {total} points in all. Blue and ✓ is "
        "solved, orange and ✗ is tried and not right yet, white and ○ is not written.</p>",
        *(f"<p>{html.escape(text)}</p>" for text in sentences),
        "<h2>Where the class is stuck</h2>",
        stuck(results, exercises),
        "<h2>Who has solved what</h2>",
        overview(results, exercises, course, total),
        "<h2>What each was told</h2>",
        *(learner(number, graded, exercises, course, total) for number, graded in enumerate(results)),
        "</body></html>\n",
    ]
    return "\n".join(parts)


def kind(verdict):
    return {"✓": "passed", "✗": "wrong"}.get(mark(verdict), "open")


def mark(verdict):
    return MARKS.get(verdict["state"], "○")


def stuck(results, exercises):
    """Per exercise: how many have solved it, how many are stuck, and on what."""
    rows = []
    for exercise in exercises:
        verdicts = [(graded.learner, graded.verdicts[exercise.name]) for graded in results]
        counts = Counter(kind(verdict) for _, verdict in verdicts)
        bars = "".join(
            f'<span class="bar {which}" style="width: {8 * counts[which] / len(results):.2f}em"></span>'
            for which in ("passed", "wrong", "open")
        )
        on = {}
        for name, verdict in verdicts:
            if kind(verdict) == "wrong":
                on.setdefault(verdict["says"] or verdict["state"], []).append(name)
        told = "".join(
            f"<li>{len(names)} × {html.escape(says)} <small>({html.escape(', '.join(names))})</small></li>"
            for says, names in sorted(on.items(), key=lambda pair: -len(pair[1]))
        )
        rows.append(
            f'<tr><td>{exercise.number} {exercise.name}</td><td class="bars">{bars}</td>'
            + "".join(f'<td class="number">{counts[which]}</td>' for which in ("passed", "wrong", "open"))
            + f"<td>{f'<ul>{told}</ul>' if told else ''}</td></tr>"
        )
    titles = ("exercise", "", "solved", "stuck", "not written", "on what")
    head = f"<tr>{''.join(f'<th>{title}</th>' for title in titles)}</tr>"
    return f'<div class="wide"><table>{head}{"".join(rows)}</table></div>'


def overview(results, exercises, course, total):
    """Learners and exercises as one table of marks."""
    head = "".join(f'<th title="{exercise.name}">{exercise.number}</th>' for exercise in exercises)
    rows = []
    for number, graded in enumerate(results):
        cells = "".join(
            f'<td class="mark {kind(v)}" title="{name}: {html.escape(v["state"])}">'
            f'<a href="#l{number}-{name}">{mark(v)}</a></td>'
            for name, v in ((exercise.name, graded.verdicts[exercise.name]) for exercise in exercises)
        )
        note = ' <span title="see the remarks">⚑</span>' if graded.remarks else ""
        rows.append(
            f'<tr><td><a href="#l{number}">{html.escape(graded.learner)}</a>{note}</td>'
            f'<td class="number">{graded.points(course)}</td>{cells}</tr>'
        )
    head = f"<tr><th>learner</th><th>of {total}</th>{head}</tr>"
    return (
        f'<div class="wide"><table>{head}{"".join(rows)}</table></div>'
        "<p>⚑ stands where there is a remark on the submission as a whole.</p>"
    )


def learner(number, graded, exercises, course, total):
    """All verdicts on one submission."""
    remarks = "".join(f"<li>{html.escape(remark)}</li>" for remark in graded.remarks)
    blocks = []
    for exercise in exercises:
        verdict = graded.verdicts[exercise.name]
        text = "\n".join([verdict["message"], *verdict["remarks"]])
        blocks.append(
            f'<details id="l{number}-{exercise.name}"{" open" * (kind(verdict) == "wrong")}><summary>'
            f'{mark(verdict)} {exercise.number} {exercise.name}: {html.escape(verdict["state"])}</summary>'
            f"<pre>{html.escape(text)}</pre></details>"
        )
    title = f"{html.escape(graded.learner)}: {graded.points(course)} of {total} points"
    return (
        f'<section id="l{number}"><h3>{title}</h3>'
        f"{f'<ul>{remarks}</ul>' if remarks else ''}{''.join(blocks)}</section>"
    )

"""The table: `python3 course.py bench`, or `python -m bench` in the course's folder."""

import argparse
import importlib
import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from bench.measure import Row

COURSE = Path(__file__).parents[1] / "course.py"
GROUPS = ["attention", "decode", "language_model", "imports", "notebooks", "repaint"]
LINE = "{:<38} {:>9}   {:<30} {:>9}   {:>6}   {}"


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="course.py bench", description="Time the course against others, side by side. A ratio of 2: the "
        "course takes twice as long. A few minutes; the machine should do nothing else meanwhile.",
    )
    parser.add_argument("--only", metavar="NAME", choices=GROUPS, action="append",
                        help=f"only this group: {', '.join(GROUPS)} (may be given more than once)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and sizes: a look, not a measure")
    parser.add_argument("--measure", choices=GROUPS, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measure:
        return measure(options.measure, options.quick)
    sys.stdout.reconfigure(errors="replace")        # a terminal that knows no ≤ shows a question mark
    print(machine(), flush=True)
    print(LINE.format("what", "takes", "against", "takes", "ratio", "goal"), flush=True)
    failed = [name for name in options.only or GROUPS if not show(name, options.quick)]
    if failed:
        print(f"Not measured to the end: {', '.join(failed)}.", file=sys.stderr)
    return 1 if failed else 0


def machine():
    """What is measured on, in a line."""
    numpy = importlib.import_module("numpy")
    blas = numpy.show_config(mode="dicts")["Build Dependencies"]["blas"]
    parts = [f"{os.cpu_count()} cores ({platform.machine()})", f"Python {platform.python_version()}",
             f"NumPy {numpy.__version__} on {blas['name']} {blas.get('version', '')}".rstrip()]
    return f"{platform.system()}, {', '.join(parts)}"


def variables():
    """Those of the processes that are measured: no limits, every contestant has the whole machine."""
    limits = ("OPENBLAS_", "OMP_", "MKL_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(limits)}
    return dict(kept, PYTHONIOENCODING="utf-8")


def show(name, quick):
    """Measure a group in a process of its own, print its rows as they come; whether it came to its end."""
    command = [sys.executable, str(COURSE), "--run", "bench", "--measure", name] + ["--quick"] * quick
    if sys.stdout.isatty():
        print(f"... {name}", end="\r", flush=True)
    with subprocess.Popen(command, env=variables(), stdout=subprocess.PIPE, encoding="utf-8") as child:
        for line in child.stdout:
            found = json.loads(line)
            print(text(Row(**found)) if isinstance(found, dict) else found, flush=True)
    return child.returncode == 0


def measure(name, quick):
    """The rows of one group, each a line of JSON."""
    for row in importlib.import_module(f"bench.{name}").rows(quick):
        print(json.dumps(asdict(row) if isinstance(row, Row) else row), flush=True)
    return 0


def text(row):
    ratio = f"{row.ratio:.2f}" if row.ratio >= 0.1 else f"{row.ratio:.1g}"
    goal = "" if row.goal is None else f"≤ {row.goal}"
    return LINE.format(row.what, duration(row.ours), row.against, duration(row.other), ratio, goal).rstrip()


def duration(seconds):
    """0.0123 -> "12.3 ms": three figures."""
    size, unit = (1, "s") if seconds >= 1 else (1e-3, "ms") if seconds >= 1e-3 else (1e-6, "µs")
    return f"{seconds / size:.3g} {unit}"


if __name__ == "__main__":
    sys.exit(main())

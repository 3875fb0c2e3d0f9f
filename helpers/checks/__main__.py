"""Print the table of solved exercises: python -m helpers.checks [progress.json, or a folder]

Of a folder the saved exercise notebooks count, not what has been noted down: their functions are checked now.
"""

import argparse
import contextlib
import io
import os
import sys
from pathlib import Path

from helpers.checks import record, run
from helpers.checks.exercises import EXERCISES
from helpers.checks.notebooks import saved_functions
from helpers.checks.report import print_safely


def judged(folder):
    """The table of a folder of exercise notebooks, and what is wrong with each function not yet right."""
    os.chdir(folder)                            # where the last exercise looks for the others
    with contextlib.redirect_stdout(io.StringIO()):         # what cells print is not asked for
        functions, left_out = saved_functions()
    found, remarks = {}, [f"  {name} is left out: {why}" for name, why in left_out.items()]
    for exercise in EXERCISES:
        if exercise.name in functions:
            report = run(exercise.name, functions[exercise.name])
            found[exercise.name] = {"tries": 0, "solved": report.passed}    # none is noted down
            if not report.passed:
                said = report.diagnosis or report.message.splitlines()[0]
                remarks.append(f"  {exercise.number} {exercise.name}: {said}")
    return "\n".join([str(record.Table(EXERCISES, found)), *remarks])


def main(arguments):
    parser = argparse.ArgumentParser(prog="python -m helpers.checks", description="What has been solved.")
    parser.add_argument("what", nargs="?", type=Path, help="progress.json, or a folder of exercise notebooks")
    what = parser.parse_args(arguments).what
    if what and what.is_dir():
        print_safely(judged(what))
        return 0
    if what and what.suffix != ".json" and not what.exists():  # progress.json comes with the first check
        print(f"There is no folder or file {what}. Give a progress.json, or a folder of exercise notebooks.",
              file=sys.stderr)
        return 1
    here = record.where() or Path("progress.json")
    default = here if here.exists() or not Path("exercises").is_dir() else Path("exercises") / "progress.json"
    path = what or default
    try:
        print_safely(str(record.Table(EXERCISES, *record.entries(path))))
        if sys.stdout is not None:              # as it is when a shell has closed it (>&-)
            sys.stdout.flush()
    except BrokenPipeError:  # whoever reads it (head, less) has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains when it ends
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

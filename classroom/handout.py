"""Write what a learner gets: `python3 course.py handout OUT`.

Everything to read, run and solve, exercises as they are written from the solutions, and nothing that gives
an answer away: no solutions, no tests, nothing for teachers. OUT is a whole course: zip it, share it, or
make it the repository that nbgitpuller and Binder pull.
"""

import argparse
import re
import shutil
import sys

from classroom.command import refused, typed
from classroom.sandbox import ROOT
from helpers.exercise_notebooks import FINGERPRINT, Refused, fingerprint, fresh_exercises, text_of

PARTS = ("notebooks", "helpers", "bench", "docs", "binder", ".jupyter", "course.py", "conftest.py",
         "pyproject.toml", "requirements.txt", "LICENSE", ".gitignore", ".gitattributes")
LEFT_OUT = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", "*.egg-info")
SECTIONS = ("## Test", "## Teach")  # of README.md that are not for learners
CLAUSES = (  # what the texts say of solutions/, as regular expressions, and what is left of it
    (r"; `solutions/` holds [^.]*\.", "."),
    (r",\s+and one good answer to each exercise is in\s+`solutions/`", ""),
    (r"`python3 course\.py exercises`\s+writes[^.]*`solutions/`[^.]*\.\s*", ""),
)


def handout(out, root=ROOT):
    """Write the handout into the folder `out`; gives its files. Raises Refused when that is not empty."""
    if out.is_file():
        raise Refused(f"{out} is a file: name a folder that does not exist yet")
    if out.exists() and any(out.iterdir()):
        raise Refused(f"{out} is there and not empty: name a folder that does not exist yet")
    if out.resolve().is_relative_to(root.resolve()):
        raise Refused(f"{out} lies in the course itself: name a folder outside of it")
    exercises = fresh_exercises(root)  # all are sound before anything is written
    out.mkdir(parents=True, exist_ok=True)
    for name in PARTS:
        if (root / name).is_dir():
            shutil.copytree(root / name, out / name, ignore=LEFT_OUT)
        elif (root / name).exists():
            shutil.copy2(root / name, out / name)
    for name, notebook in exercises.items():
        for cell in notebook.cells:
            cell.source = without_solutions(cell.source)
        notebook.metadata[FINGERPRINT] = fingerprint(notebook)
        write(out / "exercises" / name, text_of(notebook))
    write(out / "README.md", for_learners((root / "README.md").read_text(encoding="utf-8")))
    return sorted(path for path in out.rglob("*") if path.is_file())


def write(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


def without_solutions(text):
    """The text without what it says of the folder solutions/."""
    for clause, rest in CLAUSES:
        text = re.sub(clause, rest, text)
    return text


def for_learners(readme):
    """README.md without the sections for those who teach or work on the course."""
    parts = re.split(r"(?m)^(?=## )", readme)
    kept = [part for part in parts if not part.startswith(SECTIONS)]
    ends = readme.rstrip().rpartition("\n\n")[2]  # the licence, which stands at the end of whichever is last
    text = without_solutions("".join(kept)).rstrip()
    return text + ("" if text.endswith(ends) else f"\n\n{ends}") + "\n"


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="course.py handout", description="Write what a learner gets.")
    parser.add_argument("out", type=typed, help="a folder that does not exist yet, or is empty")
    options = parser.parse_args(arguments)
    try:
        files = handout(options.out)
    except Refused as err:
        print(f"{err}. Nothing was written.", file=sys.stderr)
        return 1
    except OSError as err:
        print(f"{refused(options.out, err)}. No handout is there, or no whole one.", file=sys.stderr)
        return 1
    size = sum(path.stat().st_size for path in files) / 1e6
    print(f"{options.out}: {len(files)} files, {size:.1f} MB, no solutions. Zip it, share it, or make it a "
          "repository.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

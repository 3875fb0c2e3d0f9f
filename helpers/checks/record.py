"""What has been solved, in a small JSON file beside the exercises.

The file is written whole to another name and then moved into place, so it is never half there; two kernels
take turns; a damaged file is put aside, not thrown away. In a folder called `solutions` nothing is written.
"""

import html
import json
import os
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from helpers.checks.words import plural

STATES = {"solved": "✓ solved", "tried": "✗ tried", "": "○ not yet"}
WAIT = 3  # seconds to wait for another kernel that is writing
STALE = 15  # seconds after which its lock is taken to be left behind

_seen = {}  # name -> {"tries", "solved"}: what this kernel has seen …
_unsaved = {}  # … and what of it is not in the file yet


def where():
    """The file: COURSE_PROGRESS if set, else progress.json here; None where nothing is to be written."""
    try:
        here = Path.cwd()
    except OSError:
        here = None
    if here is not None and here.name == "solutions":  # first, so that stored outputs depend on nothing else
        return None
    named = os.environ.get("COURSE_PROGRESS")
    if named:
        return Path(named)
    return here and here / "progress.json"


def is_there():
    """Whether the folder the kernel is in still exists."""
    try:
        return Path.cwd().exists()
    except OSError:
        return False


def note(name, passed):
    """Write down one try. Returns a sentence when it could not be kept, otherwise ""."""
    for known in (_seen, _unsaved):
        add(known, name, 1, passed)
    path = where()
    if path is None:
        return "" if is_there() else "this notebook's folder is gone, so your progress could not be saved"
    try:
        with turn(path):
            found, trouble = read(path)
            if found is None:
                trouble += (
                    f"; it is kept as {put_aside(path)}, and a new one begins with what this notebook "
                    "has checked since it was opened"
                )
                found = {n: dict(entry) for n, entry in _seen.items()}
            else:
                for unsaved, entry in _unsaved.items():
                    add(found, unsaved, entry["tries"], entry["solved"])
            write(path, found)
        _unsaved.clear()
        return trouble
    except OSError as err:
        return f"your progress could not be saved to {path.name} ({err.strerror or 'no access'})"


def add(entries, name, tries, solved):
    """Count further tries; solved stays solved."""
    entry = entries.setdefault(name, {"tries": 0, "solved": False})
    entry["tries"] += tries
    entry["solved"] = entry["solved"] or solved


def read(path):
    """(entries, ""), {} when there is no file yet; (None, a sentence) for a damaged one."""
    try:
        found = json.loads(path.read_text(encoding="utf-8-sig"))["exercises"]
        found = {
            str(name): {"tries": int(e["tries"]), "solved": e["solved"] is True} for name, e in found.items()
        }
        if any(entry["tries"] < 0 for entry in found.values()):
            raise ValueError("fewer tries than none")
        return found, ""
    except FileNotFoundError:
        return {}, ""
    except (ValueError, OverflowError, TypeError, KeyError, AttributeError, RecursionError):
        return None, f"{path.name} could not be read"


def put_aside(path):
    """Move a damaged file out of the way, over an older one; returns its new name."""
    aside = path.with_name(f"{path.name}.bak")
    os.replace(path, aside)
    return aside.name


def write(path, entries):
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with open(fresh, "w", encoding="utf-8") as file:
            json.dump({"exercises": entries}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        for attempt in range(20):
            try:
                os.replace(fresh, path)
                return
            except PermissionError:  # Windows, while somebody reads it
                if attempt == 19:
                    raise
                time.sleep(0.05)
    finally:
        fresh.unlink(missing_ok=True)
        with suppress(OSError):  # what kernels that were ended in the middle have left
            for left in path.parent.glob(f"{path.name}.*.tmp"):
                if time.time() - left.stat().st_mtime > STALE:
                    left.unlink()


@contextmanager
def turn(path):
    """One kernel at a time. A lock left behind by one that died is taken over."""
    lock = path.with_name(path.name + ".lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + WAIT
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            break
        except (FileExistsError, PermissionError) as err:
            if isinstance(err, PermissionError) and not lock.exists():
                raise
            try:
                if time.time() - lock.stat().st_mtime > STALE:
                    lock.unlink(missing_ok=True)
                    continue
            except OSError:
                pass
            if time.monotonic() > end:
                raise OSError(0, "another notebook is writing it") from None
            time.sleep(0.02)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def entries(path=None):
    """(what is known, a sentence if the file cannot be read). Changes nothing and never raises."""
    path = Path(path) if path else where()
    found, trouble = {}, ""
    if path is not None:
        try:
            found, trouble = read(path)
        except OSError as err:
            trouble = f"{path.name} could not be read ({err.strerror or 'no access'})"
    found = {name: dict(entry) for name, entry in (_seen if found is None else found).items()}
    for name, entry in _unsaved.items() if not trouble else ():
        add(found, name, entry["tries"], entry["solved"])
    return found, trouble


class Table:
    """The exercises and how far each of them is."""

    def __init__(self, exercises, found, trouble=""):
        self.trouble = trouble
        self.rows = []
        for exercise in exercises:
            entry = found.get(exercise.name)
            state = STATES["solved" if entry and entry["solved"] else "tried" if entry else ""]
            tries = str(entry["tries"] or "") if entry else ""
            self.rows.append((exercise.number, exercise.name, state, tries))
        self.solved = sum(row[2] == STATES["solved"] for row in self.rows)

    @property
    def title(self):
        return f"{self.solved} of {len(self.rows)} exercises solved"

    def __str__(self):
        width = max(len(row[1]) for row in self.rows)
        lines = [
            f"  {number:<5}{name:<{width}}  {state:<10}  {tries and plural(int(tries), 'try')}".rstrip()
            for number, name, state, tries in self.rows
        ]
        return "\n".join([self.title, *lines, *([f"  {self.trouble}"] if self.trouble else [])])

    __repr__ = __str__

    def _repr_html_(self):
        head = "".join(f'<th style="text-align: left">{h}</th>' for h in ("", "exercise", "state", "tries"))
        body = "".join(
            "<tr>"
            + "".join(f'<td style="text-align: left">{html.escape(cell)}</td>' for cell in row)
            + "</tr>"
            for row in self.rows
        )
        more = f"<p>{html.escape(self.trouble)}</p>" if self.trouble else ""
        return f"<div><b>{self.title}</b><table><tr>{head}</tr>{body}</table>{more}</div>"

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": str(self), "text/html": self._repr_html_()}

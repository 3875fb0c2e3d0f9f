"""The files below a folder, those inside zips among them: these are read and never unpacked."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path, PurePosixPath
from time import mktime
from zipfile import ZipFile

LARGEST = 30_000_000  # bytes of a notebook that is read
LARGEST_INSIDE = 200_000_000  # of a zip in a zip
TOGETHER = 1_000_000_000  # of the notebooks in one zip
DEEPEST = 3  # zips in zips
PACKED = (".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar")
SYSTEMS_OWN = {"__MACOSX", "Thumbs.db", "desktop.ini"}


@dataclass(frozen=True)
class File:
    """One file. parts : its way from the folder, zips like folders: ("anna", "all.zip", "03.ipynb")."""

    parts: tuple
    when: float = 0.0  # when it was changed, in seconds
    read: Callable | None = None  # () -> bytes; raises ValueError, OSError
    trouble: str = ""  # why it cannot be read
    path: Path | None = None  # where it lies, unless in a zip

    @property
    def name(self):
        return self.parts[-1]

    def inside(self, start):
        """Its way from the part with this number on, as one text."""
        return "/".join(self.parts[start:])

    @property
    def is_notebook(self):
        return self.name.lower().endswith(".ipynb")

    @property
    def is_zip(self):
        return self.name.lower().endswith(".zip")


def files(folder, passed_over=()):
    """All files below a folder, but hidden ones and the top entries `passed_over`; zips like folders."""
    found, troubles = [], []
    for where, folders, names in os.walk(folder, onerror=troubles.append):
        where = Path(where)
        parts = where.relative_to(folder).parts
        hidden = set(passed_over) if not parts else set()
        folders[:] = sorted(name for name in folders if shown(name) and name not in hidden)
        links = [name for name in folders if (where / name).is_symlink()]
        for name in links + sorted(name for name in names if shown(name) and name not in hidden):
            found += opened(one(where / name, (*parts, name)))
    for error in troubles:
        parts = Path(error.filename).relative_to(folder).parts or ("",)
        found.append(File(parts, trouble="cannot be opened"))
    return found


def shown(name):
    return not name.startswith((".", "~$")) and name not in SYSTEMS_OWN


def one(path, parts):
    if path.is_symlink():
        return File(parts, trouble="is a link to another place")
    try:
        return File(parts, path.stat().st_mtime, lambda: bytes_of(path), path=path)
    except OSError:
        return File(parts, trouble="cannot be opened")


def bytes_of(path):
    if path.stat().st_size > LARGEST:
        raise ValueError(f"it is larger than {LARGEST // 1_000_000} MB")
    return path.read_bytes()


def opened(file, depth=1):
    """The file; or, in place of a zip, the files inside."""
    if file.name.lower().endswith(PACKED):
        return [File(file.parts, trouble="is packed in a way that is not read: unpack it, or make it a zip")]
    if not file.is_zip or file.trouble:
        return [file]
    if depth > DEEPEST:
        return [File(file.parts, trouble="lies in too many zips")]
    try:
        with archive(file) as packed:
            entries = [entry for entry in packed.infolist() if not entry.is_dir()]
    except ValueError as err:
        return [File(file.parts, trouble=str(err).removeprefix("it "))]
    except Exception:
        return [File(file.parts, trouble="is damaged, or no zip")]
    found, together = [], 0
    for entry in entries:
        way = PurePosixPath(entry.filename.replace("\\", "/"))
        parts = (*file.parts, *(part for part in way.parts if part != "/"))
        if not all(map(shown, parts[len(file.parts):])) and ".." not in way.parts:
            continue
        member = File(parts, seconds(entry), reader(file, entry))
        together += entry.file_size if member.is_notebook else 0
        if way.is_absolute() or ".." in way.parts:
            member = File(parts, trouble="has a name that leads out of its zip")
        elif entry.flag_bits & 1:
            member = File(parts, trouble="needs a password")
        elif together > TOGETHER:
            member = File(parts, trouble="is too much, with what else is in its zip")
        found += opened(member, depth + 1)
    return found or [File(file.parts, trouble="is an empty zip")]


def archive(file):
    return ZipFile(file.path or BytesIO(file.read()))


def reader(file, entry):
    """What reads a member of a zip, no more of it than is allowed."""

    def read():
        most = LARGEST_INSIDE if entry.filename.lower().endswith(".zip") else LARGEST
        if entry.file_size > most:
            raise ValueError(f"it is larger than {most // 1_000_000} MB")
        with archive(file) as packed, packed.open(entry) as member:
            return member.read(most)

    return read


def seconds(entry):
    try:
        return mktime((*entry.date_time, 0, 0, -1))
    except (ValueError, OverflowError):
        return 0.0

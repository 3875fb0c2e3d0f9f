"""Files held in memory, so that nothing is lost of what a submission changes or deletes."""

IGNORED = {"__pycache__", ".ipynb_checkpoints", ".venv", ".git"}
LARGEST = 50_000_000  # bytes of a file that is held


class Guard:
    """Everything in some folders and files below `root`, as it was when the guard was made.

    It never touches them: they may also have been changed by somebody who is at work there.
    """

    def __init__(self, root, paths):
        self.root, self.held = root, {}  # path -> (mark, bytes)
        for path in paths:
            for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
                if IGNORED.isdisjoint(file.parts) and file.is_file() and file.stat().st_size <= LARGEST:
                    self.held[file] = mark(file), file.read_bytes()

    def keep(self, folder):
        """Write what has changed or gone since the last call, as it was, into a folder; gives the names."""
        names = []
        for file, (known, data) in list(self.held.items()):
            now = mark(file)
            if now == known:
                continue
            self.held[file] = now, data
            if now is None or content(file) != data:
                name = file.relative_to(self.root)
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(data)
                names.append(name.as_posix())
        return names


def mark(file):
    """What tells a changed file from an unchanged one without reading it; None where there is none."""
    try:
        status = file.lstat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def content(file):
    """The bytes of a file; None when it cannot be read."""
    try:
        return file.read_bytes()
    except OSError:
        return None

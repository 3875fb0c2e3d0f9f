"""Reads what lies beside the tiny model: weights and stories, without pickle, and figures that took long to
measure.

All carry checksums. Whatever is wrong with a file is said in one sentence, with the command that makes it
anew.
"""

import json
import zipfile
import zlib
from pathlib import Path

import numpy as np

MADE_BY = {"weights_gqa.npz": "sharing", "sharing.json": "sharing", "value_ranks.json": "value_ranks",
           "fresh_stories.npz": "measure"}


def arrays_in(path):
    """The arrays in an .npz file, a dict.

    Raises FileNotFoundError, IsADirectoryError, PermissionError or ValueError, as `refused` says it.
    """
    try:
        with zipfile.ZipFile(path) as file:
            spoilt = file.testzip()                         # NumPy may stop reading before the checksum
        if spoilt:
            raise ValueError(f"{spoilt} in it is not what was saved")
        with np.load(path, allow_pickle=False) as file:
            found = dict(file)
        for name, M in found.items():
            if not isinstance(M, np.ndarray):               # a file of another kind, put in beside them
                raise ValueError(f"{name} in it is no array")
        return found
    except Exception as err:                                # whatever a byte may do in a header
        raise refused(path, err) from err


def figures_in(path):
    """What `save_figures` has written, a dict; raises what `arrays_in` raises."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        if found.pop("checksum") != checksum(found):
            raise ValueError("its content has changed")
        return found
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as err:
        raise refused(path, err) from err


def save_figures(path, figures):
    """Write a dict as .json, with a checksum, so that a change is noticed."""
    text = json.dumps(figures | {"checksum": checksum(figures)}, indent=1)
    path.write_text(text + "\n", encoding="utf-8")


def checksum(figures):
    return zlib.crc32(json.dumps(figures, sort_keys=True).encode())


def refused(path, err):
    """The exception for a file that cannot be used, from the one that said so."""
    path = Path(path)
    make = f"python -m helpers.tiny_model.{MADE_BY.get(path.name, 'train')}"
    if isinstance(err, FileNotFoundError):
        return FileNotFoundError(f"there is no file {path}; make it with {make}")
    if path.is_dir():                                       # Windows calls that a PermissionError
        return IsADirectoryError(f"{path} must be a file and is a folder; move it away, make it with {make}")
    if isinstance(err, PermissionError):
        return PermissionError(f"{path} may not be read; change its permissions, or move it away and make it "
                               f"with {make}")
    return ValueError(f"{path} is damaged ({err}); make it anew with {make}")

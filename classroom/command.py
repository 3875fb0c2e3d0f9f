"""What the commands for those who teach share: the folder that was typed, and a sentence for what fails."""

import argparse
import os
import shutil
from pathlib import Path


def typed(path):
    """The whole path of one that was typed, which begins where `course.py` was called."""
    if not path.strip():
        raise argparse.ArgumentTypeError("the name of a folder is expected, and an empty one came")
    return Path(os.environ.get("COURSE_FROM", "."), path).resolve()


def refused(path, error):
    """The sentence for an OSError on the way to writing into the folder `path`."""
    where = getattr(error, "filename", None) or path
    return f"The system refuses {where}: {reason(error)}. Name a folder of yours, on a disk with room"


def reason(error):
    """An error in a few words, that of an OSError without its number and its file."""
    if isinstance(error, shutil.Error) and error.args and isinstance(error.args[0], list):
        return str(error.args[0][0][-1])  # of all that it could not copy, the first
    return (getattr(error, "strerror", None) or str(error)).strip(". ") or type(error).__name__

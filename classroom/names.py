"""Whose a file is, by its name: learning platforms, browsers and people name what they hand in differently.

    anna_03_single_head_attention (1).ipynb                        a browser, the second time
    Anna Müller_123456_assignsubmission_file                       a folder of Moodle's
    Anna Müller_123456_assignsubmission_file_03_….ipynb            the same without folders
    muelleranna_LATE_4711_9003_03_single_head_attention-1.ipynb    Canvas: person, then hand-in
"""

import re
import unicodedata

MOODLE = re.compile(r"(?P<who>.+)_(?P<id>\d+)_assignsubmission_(file|onlinetext)(_.*)?", re.IGNORECASE)
CANVAS = re.compile(r"(?P<who>.+?)(_late)?_(?P<id>\d+)_\d+(_.*)?", re.IGNORECASE)
COPY = re.compile(r"([ _-]*\(\d+\)|[ _-]+(copy|kopie|copie|copia)[ _-]*\d*)+$", re.IGNORECASE)
AGAIN = re.compile(r"^(-\d+)+$")  # what is left behind a notebook's name: Canvas, the second time
OF_THE_COURSE = {"exercises", "notebooks", "solutions", "helpers"}  # names of folders that are nobody's


def whose(name, stems, folder=False):
    """(learner, number that a platform gave or "") of a folder's name, or of a file's without its extension.

    stems : the names of the course's notebooks.  The learner is "" where the name is the course's own.
    """
    name = unicodedata.normalize("NFC", name)
    found = by_a_platform(name, stems, folder)
    if found:
        return clean(found["who"]), found["id"]
    before, after = without_stem(name, stems)
    who = clean(before) or clean(AGAIN.sub("", after))
    return ("" if who.casefold() in OF_THE_COURSE else who), ""


def by_a_platform(name, stems, folder=False):
    """The match where a platform has named it, so that only a learner's hand-in can be meant; or None."""
    found = MOODLE.fullmatch(name)
    return found or (None if folder else CANVAS.fullmatch(without_stem(name, stems)[0].rstrip("_")))


def without_stem(name, stems):
    """What stands before and behind a notebook's own name; (all of it, "") where there is none in it."""
    for stem in stems:
        found = re.search(re.escape(stem), name, re.IGNORECASE)
        if found:
            return name[:found.start()], name[found.end():]
    return name, ""


def clean(name):
    return COPY.sub("", name.rstrip(" _-.")).strip(" _-.")


def copy_number(name):
    """Which hand-in it is by its name without extension: 2 of "… (2)" and of "…-2", otherwise 0."""
    found = re.search(r"(?:\((\d+)\)|-(\d+))$", name)
    return int(found[1] or found[2]) if found else 0


def same(name):
    """What two spellings of one learner's name have in common."""
    return re.sub(r"[\s_.-]+", " ", unicodedata.normalize("NFC", name).casefold()).strip()


def writable(text):
    """The text as UTF-8 can hold it: what is no letter, as of a name in another encoding, is spelled out.

    So two names that differ in such a sign alone still differ: "m\\udcf6ller", "m\\udcfcller".
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def file_name(text, most=120):
    """The text as the name of a file that every system takes, of so many bytes; "" where nothing is left."""
    text = re.sub(r'[<>:"/\\|?*\x00-\x1f]', "_", writable(text)).strip(" .")
    return text.encode("utf-8")[:most].decode("utf-8", "ignore").strip(" .")


def moodles(name):
    """The beginning by which Moodle knows whom a file of feedback is for; "" where it is not Moodle's."""
    found = MOODLE.fullmatch(name)
    return f"{found['who']}_{found['id']}_assignsubmission_file" if found else ""

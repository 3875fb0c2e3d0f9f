"""What a notebook of the course imports, against the libraries alone, each in a fresh process."""

import subprocess
import sys
from statistics import median

from bench.measure import Row

COURSE = "import numpy, helpers.attention, helpers.tiny_model, helpers.explorers, helpers.checks"
LIBRARIES = "import numpy, matplotlib.pyplot, ipywidgets"
TIMED = "import time; begun = time.perf_counter(); {}; print(time.perf_counter() - begun)"


def rows(quick=False):
    times = {COURSE: [], LIBRARIES: []}
    for code in times:                          # the first time the files may not be in memory
        seconds(code)
    for _ in range(3 if quick else 7):
        for code, found in times.items():
            found.append(seconds(code))
    ours, other = (median(found) for found in times.values())
    yield Row("import of helpers, as notebooks do", ours, "numpy, matplotlib, ipywidgets", other)


def seconds(code):
    command = [sys.executable, "-c", TIMED.format(code)]
    return float(subprocess.run(command, capture_output=True, check=True, encoding="utf-8").stdout)

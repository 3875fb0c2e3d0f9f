"""Two things timed side by side, and the row that tells of it."""

import time
from dataclasses import dataclass
from statistics import median

PAUSE = 0.005       # seconds between two runs, for the threads of the one before to lie down


@dataclass(frozen=True)
class Row:
    """One line of the table: seconds of ours and of the other, and what their ratio should stay below."""

    what: str
    ours: float
    against: str
    other: float
    goal: float | None = None

    @property
    def ratio(self):
        return self.ours / self.other


def race(contestants, seconds, least=3):
    """The median seconds of each of several functions, run in turn so that a busy machine slows all alike.

    contestants : dict name -> function without arguments, seconds : how long to go on, least : rounds at
    least. The first round warms up and does not count.  Returns a dict name -> seconds.
    """
    times = {name: [] for name in contestants}
    for function in contestants.values():
        function()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(next(iter(times.values()))) < least:
        for name, function in contestants.items():
            time.sleep(PAUSE)
            begun = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - begun)
    return {name: median(each) for name, each in times.items()}

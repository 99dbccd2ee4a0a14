"""What grows while nothing should: a straight line through what was measured, and how far it climbs."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Line:
    """A least-squares fit. `slope` is for each second."""

    start: float
    slope: float
    seconds: float
    mean: float

    @property
    def climb(self) -> float:
        """By how much it rises from the first measurement to the last."""
        return self.slope * self.seconds


def fit(points: Sequence[tuple[float, float]]) -> Line:
    """The line through (seconds, value) pairs, of which there must be two different times at least."""
    times, values = [time for time, _ in points], [value for _, value in points]
    middle, mean = sum(times) / len(times), sum(values) / len(values)
    spread = sum((time - middle) ** 2 for time in times)
    slope = sum((time - middle) * (value - mean) for time, value in points) / spread
    return Line(mean - slope * (middle - times[0]), slope, times[-1] - times[0], mean)


def is_flat(line: Line, *, at_most: float) -> bool:
    """Whether it climbs by no more than that. Falling is fine."""
    return line.climb <= at_most


@dataclass(frozen=True)
class Process:
    """What an execution environment holds: Linux only, and {} where /proc is not there."""

    resident_mib: float
    descriptors: int
    threads: int


def measure(pids: Iterable[int]) -> Mapping[int, Process]:
    """Each process that is still there."""
    found: dict[int, Process] = {}
    for pid in pids:
        folder = Path(f"/proc/{pid}")
        try:
            resident = int((folder / "statm").read_text().split()[1]) * _PAGE / 2**20
            found[pid] = Process(resident, len(list((folder / "fd").iterdir())), len(list((folder / "task").iterdir())))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found

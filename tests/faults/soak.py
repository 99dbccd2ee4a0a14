"""`make soak`: the load of the fault tests without any fault, for ten minutes, and what has grown by then.

    python -m tests.faults.soak --minutes 10

Memory, file descriptors and threads of each environment, and keys in the store. Keys with a lifetime go by themselves;
those without one are what users have connected, and must be as many at the end as at the beginning.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.faults.growth import fit, is_flat, measure
from tests.faults.load import End, Load, Tally, doubled
from tests.hostile.laboratory import Laboratory, laboratory

EVERY_SECONDS: Final = 2.0
SETTLED: Final = 0.4
"""The part of a run in which caches fill and pools open: measured, and not judged."""
MIB, DESCRIPTORS, THREADS, KEYS = 6.0, 3.0, 2.0, 4.0
"""How much may come in the rest of the run: a thread that is there for one of four samples is no leak."""
LIFETIME: Final = 3600 + 60
"""Seconds that the longest-lived key with a lifetime has (app/adapters/redis_keys.py)."""


@dataclass
class Samples:
    """What was measured, by what it is of."""

    points: dict[tuple[str, str], list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    pids: dict[str, int] = field(default_factory=dict)
    replaced: list[str] = field(default_factory=list)

    def take(self, lab: Laboratory, at: float) -> None:
        """Measure everything once."""
        there = {each.name: each.pid for each in lab.stack.emulator.environments() if each.pid is not None}
        self.replaced += [name for name, pid in self.pids.items() if there.get(name) != pid]
        self.pids = there
        held = measure(there.values())
        for name, pid in there.items():
            if pid in held:
                self.points[name, "MiB"].append((at, held[pid].resident_mib))
                self.points[name, "descriptors"].append((at, held[pid].descriptors))
                self.points[name, "threads"].append((at, held[pid].threads))
        for kind, count in _keys(lab).items():
            self.points["store", kind].append((at, count))


def _keys(lab: Laboratory) -> Mapping[str, int]:
    """How many keys live for ever, how many do not, and how many live longer than any key of ours may."""
    counted = {"keys for ever": 0, "keys with a lifetime": 0, "keys that live too long": 0}
    admin = lab.store.admin
    for key in admin.scan_iter(count=1000):
        left = admin.ttl(key)
        counted["keys for ever" if left == -1 else "keys with a lifetime"] += 1
        counted["keys that live too long"] += left > LIFETIME
    return counted


LIMITS: Final[Mapping[str, float]] = {
    "MiB": MIB,
    "descriptors": DESCRIPTORS,
    "threads": THREADS,
    "keys for ever": KEYS,
    "keys that live too long": 0,
}


async def _sample(lab: Laboratory, load: Load, seconds: float) -> Samples:
    samples, started = Samples(), time.time()
    while (at := time.time() - started) < seconds:
        await asyncio.to_thread(samples.take, lab, at)
        await asyncio.sleep(EVERY_SECONDS)
    load.stopping = True
    return samples


def soak(lab: Laboratory, *, clients: int, seconds: float) -> tuple[Tally, Samples, list[str]]:
    """Run, and say what is wrong: nothing, if all is well."""
    load = Load(lab)
    load.tally = Tally("soak")

    async def run() -> Samples:
        sampling = asyncio.create_task(_sample(lab, load, seconds))
        await load.run(clients=clients)
        return await sampling

    samples = asyncio.run(run())
    problems = [*load.tally.wrong, *(f"done twice: {each}" for each in doubled(load))]
    problems += [f"{name} was replaced: it died" for name in samples.replaced]
    problems += [f"a flow was {end.value}" for end in (End.TOLD, End.LOST) for _ in range(load.tally.ends[end])]
    for (name, what), points in sorted(samples.points.items()):
        settled = [point for point in points if point[0] >= SETTLED * seconds]
        if len(settled) >= 3 and what in LIMITS:
            line = fit(settled)
            if not is_flat(line, at_most=LIMITS[what]):
                problems.append(
                    f"{name}: {what} grew by {line.climb:.1f} in {line.seconds:.0f} s, from {line.start:.0f}"
                )
    return load.tally, samples, problems


def report(tally: Tally, samples: Samples, seconds: float) -> str:
    """The table."""
    lines = [f"{tally.requests} requests and {tally.pages} pages in {seconds:.0f} s, {tally.ends[End.FINISHED]} flows, "
             f"slowest {tally.slowest * 1000:.0f} ms",
             f"{'':12}{'':24}{'first':>10}{'last':>10}{'most':>10}{'per minute':>12}"]  # fmt: skip
    for (name, what), points in sorted(samples.points.items()):
        settled = [point for point in points if point[0] >= SETTLED * seconds]
        slope = f"{fit(settled).slope * 60:12.2f}" if len(settled) >= 3 else f"{'':12}"
        values = [value for _, value in points]
        lines.append(f"{name:12}{what:24}{values[0]:10.1f}{values[-1]:10.1f}{max(values):10.1f}{slope}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.soak", description="Load without faults.")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--clients", type=int, default=9)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, laboratory(Path(folder), environments=4) as lab:
        seconds = given.minutes * 60
        tally, samples, problems = soak(lab, clients=given.clients, seconds=seconds)
        print(report(tally, samples, seconds))
    if problems:
        sys.exit("\n".join(["What is not as it should be:", *(f"  - {each}" for each in problems[:50])]))
    print("Nothing grew.")


if __name__ == "__main__":
    main()

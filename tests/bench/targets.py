"""What this project promises about its own speed and size, against what was measured side by side."""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.bench.results import Results
from tests.bench.staging import FASTMCP, FLOOR, MCP, OFFICIAL_SDK, TYPESCRIPT_SDK
from tests.bench.store import MAX_ROUND_TRIPS


@dataclass(frozen=True, slots=True)
class Target:
    """A quantity that must not be above its limit."""

    what: str
    measured: float
    limit: float
    unit: str = ""

    @property
    def met(self) -> bool:
        return self.measured <= self.limit


def targets(results: Results) -> Iterator[Target]:
    """Those targets whose peers were measured."""
    cold, warm = results.cold, results.warm
    for other, limit in ((OFFICIAL_SDK, 0.25), (FASTMCP, 0.14), (TYPESCRIPT_SDK, 1.0), (FLOOR, 1.5)):
        if other in cold:
            yield Target(f"cold start, of the {other}", cold[MCP].ratio(cold[other], "wall_ms"), limit)
    for which in ("first", "second"):
        calls = getattr(warm[MCP], which)
        for other, limit in ((OFFICIAL_SDK, 0.25), (FLOOR, 0.9)):
            if other in warm:
                yield Target(
                    f"warm {which} round, p50, of the {other}", calls.ratio(getattr(warm[other], which)), limit
                )
        yield Target(f"warm {which} round, p99, of its own p50", calls.p99_us / calls.p50_us, 3.0)
    yield Target(f"peak memory, of the {FLOOR}", cold[MCP].ratio(cold[FLOOR], "peak_mib"), 1.4)
    if MCP in results.sizes:
        yield Target("artefact, unpacked", results.sizes[MCP].unpacked_mb, 30, " MB")
        yield Target("artefact, packed", results.sizes[MCP].packed_mb, 9, " MB")
    slowest = max(results.url_mode.pending, key=lambda retry: retry.round_trips)
    yield Target("round trips to the store, pending retry", slowest.round_trips, MAX_ROUND_TRIPS)
    yield Target("round trips to the store, connected", results.url_mode.connected.round_trips, MAX_ROUND_TRIPS)

"""The table of a run: what went wrong in each phase, and what it did to requests and flows."""

from collections.abc import Sequence

from tests.faults.load import End, Tally

_COLUMNS = (
    ("phase", 38),
    ("faults", 6),
    ("requests", 8),
    ("pages", 6),
    ("retried", 7),
    ("503", 5),
    ("gateway", 7),
    ("finished", 8),
    ("told", 5),
    ("lost", 5),
    ("slowest", 9),
)


def table(tallies: Sequence[Tally], doubled: int) -> str:
    """As text, with the totals below."""
    rows = [[name for name, _ in _COLUMNS]]
    rows += [_row(tally.name, [tally]) for tally in tallies]
    rows.append(_row("all", tallies))
    widths = [width for _, width in _COLUMNS]
    lines = ["  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
             for row in rows]  # fmt: skip
    said = sorted({each for tally in tallies for each in tally.told})
    return "\n".join([*lines, f"doubled: {doubled}", "clients were told:", *(f"  {each}" for each in said)])


def _row(name: str, tallies: Sequence[Tally]) -> list[str]:
    ends = [sum(tally.ends[end] for tally in tallies) for end in (End.FINISHED, End.TOLD, End.LOST)]
    return [
        name,
        str(sum(tally.faults for tally in tallies)),
        str(sum(tally.requests for tally in tallies)),
        str(sum(tally.pages for tally in tallies)),
        str(sum(tally.retried for tally in tallies)),
        str(sum(tally.unavailable for tally in tallies)),
        str(sum(tally.gateway for tally in tallies)),
        *map(str, ends),
        f"{max(tally.slowest for tally in tallies) * 1000:.0f} ms",
    ]

"""Everything that a deployment stands on fails while people use it. Nothing happens twice, and everybody is told."""

import asyncio
import itertools
import os
from collections import Counter
from pathlib import Path

import pytest

from tests.faults.chaos import new_seed, run_phases
from tests.faults.load import End, Load, Tally, doubled
from tests.faults.report import table
from tests.hostile.laboratory import laboratory

ENVIRONMENTS = 4
CLIENTS = 9
CLOCKS_DIFFER_BY = 25
"""Seconds ahead or behind, in every second environment: 50 between two of them, and within what is forgiven."""
EFFECTS_TAKE = 0.1
"""Seconds in which an environment that has acted may still die before it has said so."""
SLOWEST = 20.0
"""Seconds. A request may wait for an environment to start, on a small computer that starts several at once."""


@pytest.mark.slow
def test_under_every_fault_nothing_happens_twice_and_every_flow_ends_or_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """DESIGN 1.1, 1.5 and section 5. FAULT_SEED repeats a run's choices."""
    seed = int(os.environ.get("FAULT_SEED") or new_seed())
    with laboratory(
        tmp_path, environments=ENVIRONMENTS, clocks_differ_by=CLOCKS_DIFFER_BY, effects_take=EFFECTS_TAKE
    ) as lab:
        load = Load(lab)
        tallies = asyncio.run(run_phases(lab, load, clients=CLIENTS, seed=seed))
        twice = doubled(load)
        with capsys.disabled():
            print(f"\n{table(tallies, len(twice))}\nFAULT_SEED={seed}")
        wrong = [each for tally in tallies for each in tally.wrong]
        assert wrong == []
        assert twice == []
        ends = sum((tally.ends for tally in tallies), Counter[End]())
        assert ends[End.LOST] == 0
        assert ends[End.TOLD] < ends.total() / 10
        # An environment does one thing at a time: a kill costs one request, which the next phase may see.
        for before, tally in itertools.pairwise([Tally("none"), *tallies]):
            assert tally.gateway <= before.kills + tally.kills, (tally.name, tally.gateway_said)
        assert max(tally.slowest for tally in tallies) < SLOWEST
        # The faults have bitten, and the last phase is as good as the first.
        assert sum(tally.unavailable for tally in tallies) > 0
        assert sum(tally.gateway for tally in tallies) > 0
        calm = tallies[-1]
        assert calm.ends[End.FINISHED] > 0
        assert calm.ends[End.TOLD] == 0

"""A short soak, so that the long one works when somebody wants it."""

from pathlib import Path

import pytest

from tests.faults.soak import report, soak
from tests.hostile.laboratory import laboratory


@pytest.mark.slow
def test_a_short_soak_finds_nothing_that_grows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`make soak` does this for ten minutes."""
    with laboratory(tmp_path) as lab:
        tally, samples, problems = soak(lab, clients=3, seconds=10)
        with capsys.disabled():
            print(f"\n{report(tally, samples, 10)}")
        assert problems == []

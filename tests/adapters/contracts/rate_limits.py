"""The contract of ports.RateLimits."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from app.ports import RateLimits

NOW = 1_800_000_000.25


class RateLimitsContract:
    """Subclasses bring `limits` and `advance`."""

    def test_so_many_are_counted_and_then_the_first_one_has_to_leave(self, limits: RateLimits) -> None:
        """A sliding window: exactly `count` in any `seconds`."""
        for number in range(3):
            assert limits.take("n", f"{number}", count=3, seconds=60, now=NOW + 10 * number) is None
        assert limits.take("n", "x", count=3, seconds=60, now=NOW + 30) == NOW + 60
        assert limits.take("n", "x", count=3, seconds=60, now=NOW + 59.5) == NOW + 60
        assert limits.take("n", "x", count=3, seconds=60, now=NOW + 60) is None
        assert limits.take("n", "y", count=3, seconds=60, now=NOW + 60) == NOW + 70

    def test_names_are_counted_apart(self, limits: RateLimits) -> None:
        """ports.RateLimits."""
        assert limits.take("n", "1", count=1, seconds=60, now=NOW) is None
        assert limits.take("m", "2", count=1, seconds=60, now=NOW) is None
        assert limits.take("n", "3", count=1, seconds=60, now=NOW) is not None

    def test_a_refusal_is_not_counted(self, limits: RateLimits) -> None:
        """Who waits as long as was said gets through, however often they tried in between."""
        limits.take("n", "1", count=1, seconds=60, now=NOW)
        for number in range(20):
            assert limits.take("n", f"x{number}", count=1, seconds=60, now=NOW + number) == NOW + 60
        assert limits.take("n", "y", count=1, seconds=60, now=NOW + 60) is None

    def test_one_that_is_sent_twice_counts_once(self, limits: RateLimits) -> None:
        """PLATFORM section 4: a lost reply makes a client send again."""
        for _ in range(3):
            assert limits.take("n", "1", count=2, seconds=60, now=NOW) is None
        assert limits.take("n", "2", count=2, seconds=60, now=NOW) is None
        assert limits.take("n", "2", count=2, seconds=60, now=NOW) is None
        assert limits.take("n", "3", count=2, seconds=60, now=NOW) == NOW + 60

    def test_of_64_in_parallel_the_count_gets_through(self, limits: RateLimits) -> None:
        """One script: nobody slips between counting and adding."""
        with ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(lambda n: limits.take("n", f"{n}", count=10, seconds=60, now=NOW), range(64)))
        assert answers.count(None) == 10

    def test_a_clock_that_was_ahead_stops_its_principal_for_one_window(
        self, limits: RateLimits, advance: Callable[[float], None]
    ) -> None:
        """An instance counted an hour in the future: the store forgets by its own clock."""
        limits.take("n", "1", count=1, seconds=60, now=NOW + 3600)
        assert limits.take("n", "2", count=1, seconds=60, now=NOW) == NOW + 3660
        advance(60.1)
        assert limits.take("n", "2", count=1, seconds=60, now=NOW + 60) is None

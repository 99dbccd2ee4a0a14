"""A value that is fetched when needed: how often, by whom, and for how long it is used while it cannot be fetched."""

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest

from app.adapters.aws_client import AwsRefused
from app.adapters.stale_if_error import COOLDOWN, FRESH, HELD_COOLDOWN, MAX_FRESH, STALE_IF_ERROR, StaleIfError
from app.errors import Unavailable

WAIT = 10.0
"""Seconds after which a thread that should have gone on is taken for stuck."""
DOWN = Unavailable("kms: ReadTimeoutError", retry_after=5)
DENIED = AwsRefused("kms: AccessDeniedException: grant it", retry_after=5)


class Source:
    """Numbers the values that it gives out. `problem` is raised instead, `before` runs first."""

    def __init__(self, *, chance: float = 0.5) -> None:
        self.now = 1_790_000_000.0
        self.fetched = 0
        self.problem: Exception | None = None
        self.before: Callable[[], object] = lambda: None
        self.value = StaleIfError(self._fetch, clock=lambda: self.now, chance=lambda: chance)

    def _fetch(self) -> int:
        self.fetched += 1
        self.before()
        if self.problem is not None:
            raise self.problem
        return self.fetched


def test_nothing_is_fetched_before_it_is_needed_and_then_once() -> None:
    """SECURITY 2.6: lazily, never per token."""
    source = Source()
    assert source.fetched == 0
    assert {source.value.get() for _ in range(100)} == {1}
    assert source.fetched == 1


@pytest.mark.parametrize(("chance", "seconds"), [(0.0, 540), (0.5, 600), (1 - 2**-32, 660)])
def test_a_value_is_fresh_for_ten_minutes_give_or_take_one(chance: float, seconds: int) -> None:
    """SECURITY 2.6: 10 min +-10 %, so that instances which started together do not ask together."""
    source = Source(chance=chance)
    source.value.get()
    source.now += seconds - 1
    assert source.value.get() == 1
    source.now += 1
    assert source.value.get() == 2
    assert seconds <= MAX_FRESH


def test_a_value_is_used_for_an_hour_more_while_it_cannot_be_fetched(caplog: pytest.LogCaptureFixture) -> None:
    """SECURITY 2.6: stale-if-error 1 h. The log says why, since nobody else does."""
    source = Source()
    source.value.get()
    source.problem = DOWN
    source.now += FRESH + STALE_IF_ERROR - 1
    with caplog.at_level(logging.WARNING):
        assert source.value.get() == 1
    assert "ReadTimeoutError" in caplog.text
    source.now += 1
    with pytest.raises(Unavailable, match="ReadTimeoutError"):
        source.value.get()


def test_a_stale_value_is_asked_for_once_a_minute() -> None:
    """An outage is not waited for by every request."""
    source = Source()
    source.value.get()
    source.problem = DOWN
    source.now += FRESH
    assert {source.value.get() for _ in range(50)} == {1}
    assert source.fetched == 2
    source.now += HELD_COOLDOWN
    source.problem = None
    assert source.value.get() == 3


def test_without_a_value_a_failure_is_repeated_for_five_seconds_without_asking() -> None:
    """KMS takes up to seconds to fail: nobody waits for it twice. Retry-After says when it is asked again."""
    source = Source()
    source.problem = DOWN
    with pytest.raises(Unavailable):
        source.value.get()
    source.now += COOLDOWN - 0.5
    with pytest.raises(Unavailable) as caught:
        source.value.get()
    assert (source.fetched, caught.value.retry_after) == (1, 1)
    source.now += 0.5
    source.problem = None
    assert source.value.get() == 2


def test_a_refusal_drops_what_is_held() -> None:
    """A key is disabled, or a grant taken away, for a reason: what was fetched before must not outlive it."""
    source = Source()
    source.value.get()
    source.problem = DENIED
    source.now += FRESH
    with pytest.raises(AwsRefused, match="grant it"):
        source.value.get()
    source.problem = DOWN
    source.now += COOLDOWN
    with pytest.raises(Unavailable, match="ReadTimeoutError"):
        source.value.get()


def test_a_younger_value_can_be_asked_for_but_not_every_time() -> None:
    """The ring is read again for a key id that is not in it, once a minute."""
    source = Source()
    source.value.get()
    source.now += 59
    assert source.value.get(newer=True) == 1
    source.now += 1
    assert {source.value.get(newer=True) for _ in range(50)} == {2}
    source.problem = DOWN
    source.now += 60
    assert {source.value.get(newer=True) for _ in range(50)} == {2}
    assert source.fetched == 3


def test_a_clock_that_is_set_back_does_not_keep_a_value_alive() -> None:
    """A value of tomorrow would be fresh for a day and ten minutes."""
    source = Source()
    source.value.get()
    source.now -= 86_400
    assert source.value.get() == 2


def test_threads_that_need_a_value_at_once_fetch_it_once() -> None:
    """SECURITY 2.6: single-flight."""
    source = Source()
    together = Barrier(8)

    def need(_: int) -> int:
        together.wait(WAIT)
        return source.value.get()

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(need, range(8))) == {1}
    assert source.fetched == 1


def test_nobody_waits_for_a_fetch_while_there_is_a_value() -> None:
    """A stale value will do while another thread fetches."""
    source = Source()
    source.value.get()
    source.now += FRESH
    begun, go_on = Event(), Event()

    def wait() -> None:
        begun.set()
        go_on.wait(WAIT)

    source.before = wait
    with ThreadPoolExecutor(1) as thread:
        slow = thread.submit(source.value.get)
        assert begun.wait(WAIT)
        assert source.value.get() == 1
        go_on.set()
        assert slow.result(WAIT) == 2


def test_a_crash_of_the_fetch_blocks_nobody() -> None:
    """An error of ours is not an outage, and leaves no lock behind."""
    source = Source()
    source.problem = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        source.value.get()
    source.problem = None
    source.now += COOLDOWN
    assert source.value.get() == 2

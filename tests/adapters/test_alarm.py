"""The alarm: it rings in the block, as a whole or not at all, and nowhere else."""

import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from app.adapters import alarm
from app.adapters.alarm import held, ring_at
from app.adapters.redis_connection import connect
from app.errors import OutOfTime
from tests.adapters.contracts.valkey import Server


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Neither a timer nor a handler outlives its block."""
    before = signal.getsignal(signal.SIGALRM)
    yield
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert signal.getsignal(signal.SIGALRM) == before
    assert alarm._held == 0


def spin(seconds: float) -> None:
    until = time.time() + seconds
    while time.time() < until:
        pass


@pytest.mark.parametrize("wait", [time.sleep, spin, lambda seconds: threading.Event().wait(seconds)])
def test_it_ends_what_blocks_and_what_computes(wait: Callable[[float], object]) -> None:
    """A system call, a loop, and a lock."""
    started = time.time()
    with pytest.raises(OutOfTime):
        ring_at(started + 0.05, lambda: wait(10))
    assert 0.04 < time.time() - started < 2


def test_a_time_that_has_passed_rings_at_once() -> None:
    """A timer of zero seconds would never ring."""
    with pytest.raises(OutOfTime):
        ring_at(time.time() - 60, lambda: time.sleep(10))


def test_who_is_done_in_time_is_left_alone() -> None:
    """Also when the time comes."""
    assert ring_at(time.time() + 0.02, lambda: "done") == "done"
    spin(0.1)


def test_no_exception_but_its_own_handler_swallows_it() -> None:
    """A function's `except Exception` must not go on as if nothing had happened."""

    def swallowing() -> None:
        try:
            time.sleep(10)
        except Exception:
            pytest.fail("It was swallowed")

    with pytest.raises(OutOfTime):
        ring_at(time.time() + 0.02, swallowing)


def test_cleaning_up_is_not_ended_again() -> None:
    """It rings once: what a function does in `finally` is done."""
    done: list[str] = []

    def cleaning() -> None:
        try:
            time.sleep(10)
        finally:
            spin(0.2)
            done.append("cleaned up")

    with pytest.raises(OutOfTime):
        ring_at(time.time() + 0.02, cleaning)
    assert done == ["cleaned up"]


def test_what_is_held_is_done_as_a_whole_and_the_alarm_rings_after_it() -> None:
    """Half a command would leave its reply for the next one."""
    done: list[str] = []
    started = time.time()

    def work() -> None:
        with held(), held():
            spin(0.2)
            done.append("whole")
        time.sleep(10)

    with pytest.raises(OutOfTime):
        ring_at(started + 0.02, work)
    assert done == ["whole"]
    assert time.time() - started < 2


def test_work_that_ends_when_it_rings_is_ended_or_not_and_nothing_comes_later() -> None:
    """The race at the edge, many times around it: the exception comes out of the work or not at all."""
    before, ended = signal.getsignal(signal.SIGALRM), 0
    for attempt in range(1500):
        at = time.time() + 0.0011
        until = at + (attempt % 60 - 30) * 0.000005

        def work(until: float = until) -> None:
            while time.time() < until:
                pass

        try:
            ring_at(at, work)
        except OutOfTime:
            ended += 1
        assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
        assert signal.getsignal(signal.SIGALRM) == before
    assert 0 < ended < 1500


def test_an_alarm_that_was_set_before_goes_on_afterwards() -> None:
    """Test runners end tests that hang by the same signal."""
    heard: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: heard.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        ring_at(time.time() + 60, lambda: spin(0.05))
        assert heard == []
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] < 0.16
        spin(0.3)
        assert heard == [signal.SIGALRM]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_in_another_thread_nothing_rings() -> None:
    """Signals are the main thread's."""
    seen: list[str] = []

    def work() -> None:
        with held():
            ring_at(time.time() + 0.01, lambda: spin(0.1))
        seen.append("done")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == ["done"]


def test_a_command_to_the_store_keeps_its_connection(single: Server) -> None:
    """Ended between a command and its reply, a connection would have to be dropped, or would answer for another."""
    redis = connect(single.url)
    waits = "BLPOP", "nothing", "0.3"

    def work() -> None:
        redis.call(*waits)
        time.sleep(10)

    try:
        first = redis.call("CLIENT", "ID")
        with pytest.raises(OutOfTime):
            ring_at(time.time() + 0.05, work)
        assert redis.call("CLIENT", "ID") == first
    finally:
        redis.close()

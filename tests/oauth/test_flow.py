"""The table of flow.py: what may follow what, and that it is complete."""

import pytest

from app.oauth import flow
from app.oauth.flow import LIVE, TABLE, Event, Status, standing, transition
from app.ports import Transition

ALLOWED = {
    ("pending", "open", "opened"),
    ("pending", "begin", "authorizing"),
    ("opened", "begin", "authorizing"),
    ("authorizing", "begin", "authorizing"),
    ("failed", "begin", "authorizing"),
    ("authorizing", "claim", "exchanging"),
    ("pending", "take", "exchanging"),
    ("opened", "take", "exchanging"),
    ("authorizing", "take", "exchanging"),
    ("failed", "take", "exchanging"),
    ("exchanging", "finish", "completed"),
    ("exchanging", "deny", "denied"),
    ("exchanging", "fail", "failed"),
    ("exchanging", "lapse", "failed"),
    ("exchanging", "give_up", "failed_final"),
    *((live, "decline", "declined") for live in ("pending", "opened", "authorizing", "exchanging", "failed")),
    *((live, "expire", "expired") for live in ("pending", "opened", "authorizing", "exchanging", "failed")),
    *((start, "exhaust", "failed_final") for start in ("pending", "opened", "authorizing", "failed")),
}


def test_the_table_allows_these_steps_and_no_other() -> None:
    """SECURITY section 3, steps 1 to 7 and the state machine, written out once more by hand."""
    assert {(str(s), str(e), str(row.target)) for e, row in TABLE.items() for s in row.sources} == ALLOWED


def test_every_event_has_a_row_and_ends_are_final() -> None:
    """Five statuses are ends: nothing leads out of them."""
    assert set(TABLE) == set(Event)
    ends = set(Status) - LIVE
    assert ends == {"completed", "denied", "declined", "failed_final", "expired"}
    assert not any(row.sources & ends for row in TABLE.values())
    assert {row.target for row in TABLE.values()} == set(Status) - {Status.PENDING}


def test_only_claim_and_take_lead_to_an_exchange() -> None:
    """Rule 1 of the theory."""
    assert {event for event, row in TABLE.items() if row.target is Status.EXCHANGING} == {Event.CLAIM, Event.TAKE}


def test_attempts_are_counted_where_the_user_starts_something() -> None:
    """SECURITY section 3, step 6: attempt cap 5."""
    capped = {event for event in Event if event not in _NEVER_SENT and _sent(event).attempt_cap == 5}
    assert capped == {Event.BEGIN, Event.TAKE}


_NEVER_SENT = {Event.LAPSE, Event.EXPIRE, Event.EXHAUST}


def _sent(event: Event) -> Transition:
    return transition(event, step="n", guards=())


@pytest.mark.parametrize("event", sorted(_NEVER_SENT))
def test_what_time_does_alone_is_never_sent(event: Event) -> None:
    """Nobody may expire another's flow."""
    with pytest.raises(ValueError, match="never sent"):
        _sent(event)


def test_an_exchange_stands_at_failed_from_the_second_its_lock_ends() -> None:
    """SECURITY section 3, exchange crash: lock_until (30 s) passes -> the user may start again."""
    fields = {"status": "exchanging", "lock_until": "130"}
    assert standing(fields, now=129.9) is Status.EXCHANGING
    assert standing(fields, now=130) is Status.FAILED
    assert standing(fields, now=float("nan")) is Status.FAILED
    assert standing({"status": "authorizing", "lock_until": "130"}, now=131) is Status.AUTHORIZING


def test_the_lock_outlives_every_request_of_an_exchange() -> None:
    """A token request and an account request of 5 seconds each, and the store's answers."""
    assert flow.EXCHANGE_LOCK >= 2 * 5 + 10

"""The contract of ports.FlowStore."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from app.oauth.flow import LIFETIME, TABLE, Event, Status, standing
from app.ports import Elsewhere, FlowStore, Gone, Mismatch, Moved, Transition

NOW = 1_800_000_000.5
FIELDS = {"status": "pending", "attempts": "0", "principal": "alice", "terms": "sealed"}
SENT = sorted(set(Event) - {Event.LAPSE, Event.EXPIRE, Event.EXHAUST})


def step(event: Event, nonce: str = "n", **changes: object) -> Transition:
    row = TABLE[event]
    return replace(Transition(step=nonce, sources=row.sources, target=row.target), **changes)  # type: ignore[arg-type]


class FlowStoreContract:
    """Subclasses bring `store` and `advance`."""

    def test_a_flow_is_read_as_it_was_created(self, store: FlowStore) -> None:
        """ports.FlowStore."""
        store.create("f", FIELDS, lifetime=900)
        assert store.read("f") == FIELDS

    def test_an_unknown_flow_is_none_and_gone(self, store: FlowStore) -> None:
        """ports.FlowStore."""
        assert store.read("f") is None
        assert store.move("f", step(Event.OPEN), now=NOW) == Gone()

    def test_a_flow_ends_with_its_lifetime(self, store: FlowStore, advance: Callable[[float], None]) -> None:
        """SECURITY section 3: TTL 900 s."""
        store.create("f", FIELDS, lifetime=LIFETIME)
        advance(LIFETIME - 1)
        assert store.read("f") is not None
        advance(1.1)
        assert store.read("f") is None

    def test_no_step_makes_a_flow_live_longer(self, store: FlowStore, advance: Callable[[float], None]) -> None:
        """SECURITY section 3: TTL 900 s, not extended."""
        store.create("f", FIELDS, lifetime=LIFETIME)
        advance(LIFETIME - 1)
        assert isinstance(store.move("f", step(Event.OPEN, writes={"session": "s"}), now=NOW), Moved)
        advance(1.1)
        assert store.move("f", step(Event.BEGIN), now=NOW) == Gone()

    def test_a_deleted_flow_is_gone(self, store: FlowStore) -> None:
        """ports.FlowStore: forget a flow, if there is one."""
        store.create("f", FIELDS, lifetime=900)
        store.delete("f")
        store.delete("f")
        assert store.read("f") is None

    @pytest.mark.parametrize("event", SENT)
    def test_a_step_is_taken_from_the_sources_in_the_table_and_from_no_other(
        self, store: FlowStore, event: Event
    ) -> None:
        """app/oauth/flow.py: every pair of status and event."""
        for status in Status:
            store.create(status, {**FIELDS, "status": status, "lock_until": str(NOW + 1)}, lifetime=900)
            outcome = store.move(status, step(event), now=NOW)
            after = store.read(status)
            assert after is not None
            if status in TABLE[event].sources:
                assert isinstance(outcome, Moved), status
                assert after == outcome.fields
                assert after["status"] == TABLE[event].target
            else:
                assert outcome == Elsewhere(status)
                assert after["status"] == status
                assert "step" not in after

    @pytest.mark.parametrize("event", SENT)
    def test_an_exchange_whose_lock_has_passed_stands_at_failed(self, store: FlowStore, event: Event) -> None:
        """SECURITY section 3: lock_until passes, the user may start again, the old owner's finish is refused."""
        store.create("f", {**FIELDS, "status": "exchanging", "lock_until": str(int(NOW))}, lifetime=900)
        fields = store.read("f")
        assert fields is not None
        assert standing(fields, now=NOW) is Status.FAILED
        outcome = store.move("f", step(event), now=NOW)
        assert isinstance(outcome, Moved) == (Status.FAILED in TABLE[event].sources)

    def test_guards_are_compared_in_their_order_before_the_status(self, store: FlowStore) -> None:
        """SECURITY section 3, step 7: who it is comes before where it stands."""
        store.create("f", {**FIELDS, "status": "completed", "session": "s"}, lifetime=900)
        guards = [("principal", "alice"), ("session", "other"), ("state", "x")]
        assert store.move("f", step(Event.CLAIM, guards=guards), now=NOW) == Mismatch("session", "completed")
        guards = [("principal", "bob"), ("session", "other")]
        assert store.move("f", step(Event.CLAIM, guards=guards), now=NOW) == Mismatch("principal", "completed")
        assert store.read("f") == {**FIELDS, "status": "completed", "session": "s"}

    def test_a_guard_on_a_field_that_is_missing_does_not_hold(self, store: FlowStore) -> None:
        """A callback before any start: there is no state to equal."""
        store.create("f", {**FIELDS, "status": "authorizing"}, lifetime=900)
        assert store.move("f", step(Event.CLAIM, guards=[("state", "")]), now=NOW) == Mismatch("state", "authorizing")

    def test_the_sixth_attempt_ends_the_flow(self, store: FlowStore) -> None:
        """SECURITY section 3, step 6: attempt cap 5."""
        store.create("f", FIELDS, lifetime=900)
        for attempt in range(1, 6):
            outcome = store.move("f", step(Event.BEGIN, f"n{attempt}", attempt_cap=5), now=NOW)
            assert isinstance(outcome, Moved)
            assert outcome.fields["attempts"] == str(attempt)
        assert store.move("f", step(Event.BEGIN, "n6", attempt_cap=5), now=NOW) == Elsewhere("failed_final")
        assert store.move("f", step(Event.BEGIN, "n7", attempt_cap=5), now=NOW) == Elsewhere("failed_final")

    def test_a_step_that_is_sent_twice_counts_once(self, store: FlowStore) -> None:
        """PLATFORM section 4: a lost reply makes a client send again."""
        store.create("f", FIELDS, lifetime=900)
        begin = step(Event.BEGIN, "nonce", attempt_cap=5, writes={"state": "s"})
        first = store.move("f", begin, now=NOW)
        assert store.move("f", begin, now=NOW) == first
        assert isinstance(first, Moved)
        assert first.fields["attempts"] == "1"
        claim = step(Event.CLAIM, "claim", writes={"owner": "o", "lock_until": str(NOW + 30)})
        assert isinstance(store.move("f", claim, now=NOW), Moved)
        assert isinstance(store.move("f", claim, now=NOW), Moved)
        assert store.move("f", replace(claim, step="another"), now=NOW) == Elsewhere("exchanging")

    def test_of_64_parallel_claims_exactly_one_is_granted(self, store: FlowStore) -> None:
        """SECURITY section 1: authorizing -> exchanging once."""
        store.create("f", {**FIELDS, "status": "authorizing", "state": "s"}, lifetime=900)

        def claim(number: int) -> object:
            writes = {"owner": f"o{number}", "lock_until": str(NOW + 30)}
            return store.move("f", step(Event.CLAIM, f"n{number}", guards=[("state", "s")], writes=writes), now=NOW)

        with ThreadPoolExecutor(16) as pool:
            outcomes = list(pool.map(claim, range(64)))
        granted = [each for each in outcomes if isinstance(each, Moved)]
        assert len(granted) == 1
        assert outcomes.count(Elsewhere("exchanging")) == 63
        assert store.read("f") == granted[0].fields

    def test_values_may_hold_any_text(self, store: FlowStore) -> None:
        """Nothing may depend on how a store encodes."""
        odd = {**FIELDS, "reason": 'é"\\\n%s😀', "empty": ""}
        store.create("f", odd, lifetime=900)
        assert store.read("f") == odd
        outcome = store.move("f", step(Event.OPEN, writes={"reason": "😀\x00"}), now=NOW)
        assert isinstance(outcome, Moved)
        assert outcome.fields["reason"] == "😀\x00"

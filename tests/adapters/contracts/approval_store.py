"""The contract of ports.ApprovalStore."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from app.ports import ApprovalStore

NOW = 1_800_000_000
DAY = 86_400


def keep(store: ApprovalStore, name: str = "n", sealed: str = "sealed", **changes: int) -> bool:
    asked_at, expires_at, limit, now = (
        changes.get(each, default)
        for each, default in {"asked_at": NOW, "expires_at": NOW + DAY, "limit": 100, "now": NOW}.items()
    )
    return store.keep("alice", name, sealed, asked_at=asked_at, expires_at=expires_at, limit=limit, now=now + 0.5)


class ApprovalStoreContract:
    """Subclasses bring `store` and `advance`."""

    def test_a_record_is_found_by_user_and_name_alone(self, store: ApprovalStore) -> None:
        """ports.ApprovalStore."""
        assert keep(store)
        assert store.look("alice", "n") == "sealed"
        assert store.look("bob", "n") is None
        assert store.look("alice", "m") is None
        assert store.entries("alice") == {"n": "sealed"}
        assert store.entries("bob") == {}

    def test_a_later_record_replaces_the_earlier_one(self, store: ApprovalStore) -> None:
        """ports.ApprovalStore, also when the same one is sent twice."""
        assert keep(store, limit=1)
        assert keep(store, limit=1)
        assert keep(store, sealed="newer", limit=1)
        assert store.entries("alice") == {"n": "newer"}

    def test_a_withdrawn_record_is_gone(self, store: ApprovalStore) -> None:
        """The connections page."""
        keep(store)
        assert store.withdraw("alice", "n", at=NOW + 5, until=NOW + 3605)
        assert store.look("alice", "n") is None
        assert store.entries("alice") == {}
        assert not store.withdraw("alice", "n", at=NOW + 6, until=NOW + 3606)
        assert not store.withdraw("alice", "m", at=NOW, until=NOW + 3600)
        assert not store.withdraw("bob", "n", at=NOW, until=NOW + 3600)

    def test_a_withdrawal_that_is_sent_twice_is_one(self, store: ApprovalStore) -> None:
        """PLATFORM section 4: a lost reply makes a client send again."""
        keep(store)
        assert store.withdraw("alice", "n", at=NOW + 5, until=NOW + 3605)
        assert store.withdraw("alice", "n", at=NOW + 5, until=NOW + 3605)

    def test_what_was_asked_before_the_withdrawal_is_not_kept_again(
        self, store: ApprovalStore, advance: Callable[[float], None]
    ) -> None:
        """An answered state can be shown again for an hour: it must not undo what its user did since."""
        keep(store)
        store.withdraw("alice", "n", at=NOW + 5, until=NOW + 3665)
        for asked_at in (NOW, NOW + 5):
            assert not keep(store, asked_at=asked_at, now=NOW + 10)
            assert store.look("alice", "n") is None
        advance(3600)
        assert not keep(store, now=NOW + 3600)
        assert keep(store, asked_at=NOW + 6, now=NOW + 3600)
        assert store.look("alice", "n") == "sealed"

    def test_a_withdrawal_is_remembered_longer_than_what_it_ended(
        self, store: ApprovalStore, advance: Callable[[float], None]
    ) -> None:
        """A short yes, withdrawn: its question may come back after it would have run out."""
        keep(store, expires_at=NOW + 60)
        store.withdraw("alice", "n", at=NOW + 5, until=NOW + 3665)
        advance(3000)
        assert not keep(store, now=NOW + 3000)
        advance(661)
        assert keep(store, now=NOW + 3665)

    def test_a_user_has_no_more_than_the_limit(self, store: ApprovalStore) -> None:
        """Live ones count; what was withdrawn or has expired does not."""
        assert keep(store, "a", limit=2)
        assert keep(store, "b", limit=2, expires_at=NOW + 60)
        assert not keep(store, "c", limit=2)
        assert store.entries("alice").keys() == {"a", "b"}
        assert keep(store, "c", limit=2, now=NOW + 60)
        assert store.withdraw("alice", "a", at=NOW + 61, until=NOW + 3661)
        assert keep(store, "d", limit=2, now=NOW + 62)
        assert store.entries("alice").keys() == {"c", "d"}

    def test_the_longest_record_keeps_the_others_company(
        self, store: ApprovalStore, advance: Callable[[float], None]
    ) -> None:
        """A short yes after a long one must not shorten it."""
        keep(store, "long")
        keep(store, "short", expires_at=NOW + 60)
        advance(3600)
        assert store.look("alice", "long") == "sealed"

    def test_of_32_parallel_writers_the_limit_holds(self, store: ApprovalStore) -> None:
        """One script."""
        with ThreadPoolExecutor(16) as pool:
            kept = list(pool.map(lambda n: keep(store, f"n{n}", limit=5), range(32)))
        assert kept.count(True) == 5
        assert len(store.entries("alice")) == 5

    def test_values_may_hold_any_text(self, store: ApprovalStore) -> None:
        """Nothing may depend on how a store encodes."""
        assert keep(store, "é:😀\n", 'a:-:"\\%s\n😀\x00')
        assert store.look("alice", "é:😀\n") == 'a:-:"\\%s\n😀\x00'

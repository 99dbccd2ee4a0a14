"""The contract of ports.VaultStore."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from app.ports import FlowPointer, LockHeld, VaultEntry, VaultStore

NOW = 1_800_000_000.5


def entry(version: str = "v1", sealed: str = "sealed") -> VaultEntry:
    return VaultEntry(version, sealed)


def pointer(flow_id: str, *, expires_in: int = 900) -> FlowPointer:
    return FlowPointer(flow_id, f"sealed-{flow_id}", int(NOW) + expires_in)


class VaultStoreContract:
    """Subclasses bring `store` and `advance`."""

    def test_a_record_is_found_by_user_and_entry_alone(self, store: VaultStore) -> None:
        """ports.VaultStore."""
        assert store.put("alice", "provider:github", entry(), replaces=None)
        assert store.look("alice", "provider:github", "slot") == (entry(), None)
        assert store.look("bob", "provider:github", "slot") == (None, None)
        assert store.look("alice", "provider:google", "slot") == (None, None)
        assert store.entries("alice") == {"provider:github": entry()}
        assert store.entries("bob") == {}

    def test_a_write_replaces_the_version_it_was_made_from_and_no_other(self, store: VaultStore) -> None:
        """SECURITY section 3, vault: compare-and-set by version."""
        assert store.put("alice", "e", entry("v1"), replaces=None)
        assert not store.put("alice", "e", entry("v2"), replaces=None)
        assert not store.put("alice", "e", entry("v2"), replaces="v0")
        assert store.put("alice", "e", entry("v2"), replaces="v1")
        assert store.look("alice", "e", "s")[0] == entry("v2")

    def test_a_slow_writer_does_not_resurrect_what_was_deleted(self, store: VaultStore) -> None:
        """SECURITY section 3: a slow refresher cannot resurrect a disconnected entry."""
        store.put("alice", "e", entry("v1"), replaces=None)
        assert store.delete("alice", "e", version="v1")
        assert not store.put("alice", "e", entry("v2"), replaces="v1")
        assert store.put("alice", "e", entry("v3"), replaces=None)
        assert not store.put("alice", "e", entry("v2"), replaces="v1")

    def test_a_delete_needs_the_version_that_is_there(self, store: VaultStore) -> None:
        """ports.VaultStore."""
        store.put("alice", "e", entry("v1"), replaces=None)
        assert not store.delete("alice", "e", version="v0")
        assert store.delete("alice", "e", version="v1")
        assert not store.delete("alice", "e", version="v1")

    def test_a_write_that_is_sent_twice_counts_once(self, store: VaultStore) -> None:
        """PLATFORM section 4: a lost reply makes a client send again."""
        assert store.put("alice", "e", entry("v1"), replaces=None)
        assert store.put("alice", "e", entry("v1"), replaces=None)
        assert store.lock("alice", "e", "owner", seconds=10) == entry("v1")
        assert store.lock("alice", "e", "owner", seconds=10) == entry("v1")
        assert store.point("alice", "s", pointer("f"), replaces=None, limit=1, now=NOW) == pointer("f")
        assert store.point("alice", "s", pointer("f"), replaces=None, limit=1, now=NOW) == pointer("f")

    def test_of_50_parallel_writers_one_wins(self, store: VaultStore) -> None:
        """ports.VaultStore."""
        with ThreadPoolExecutor(16) as pool:
            won = list(pool.map(lambda n: store.put("alice", "e", entry(f"v{n}"), replaces=None), range(50)))
        assert won.count(True) == 1

    def test_a_lock_is_held_by_one_and_released_by_its_owner(self, store: VaultStore) -> None:
        """SECURITY section 3, refresh: SET lock owner NX, unlock by owner."""
        assert store.lock("alice", "e", "first", seconds=10) is None
        assert store.lock("alice", "e", "second", seconds=10) == LockHeld()
        assert store.lock("alice", "other", "second", seconds=10) is None
        assert store.lock("bob", "e", "second", seconds=10) is None
        store.unlock("alice", "e", "second")
        assert store.lock("alice", "e", "second", seconds=10) == LockHeld()
        store.unlock("alice", "e", "first")
        assert store.lock("alice", "e", "second", seconds=10) is None

    def test_a_lock_ends_by_itself(self, store: VaultStore, advance: Callable[[float], None]) -> None:
        """SECURITY section 3, refresh: PX 10000."""
        store.lock("alice", "e", "first", seconds=10)
        advance(10.1)
        assert store.lock("alice", "e", "second", seconds=10) is None
        store.unlock("alice", "e", "first")
        assert store.lock("alice", "e", "third", seconds=10) == LockHeld()

    def test_the_record_is_read_under_the_lock(self, store: VaultStore) -> None:
        """SECURITY section 3, refresh: read the vault again after acquiring."""
        store.put("alice", "e", entry("v1"), replaces=None)
        assert store.lock("alice", "e", "owner", seconds=10) == entry("v1")

    def test_the_first_pointer_stands_and_the_loser_gets_it(self, store: VaultStore) -> None:
        """SECURITY section 3, step 1: the loser reuses the winner's flow."""
        assert store.point("alice", "s", pointer("f1"), replaces=None, limit=5, now=NOW) == pointer("f1")
        assert store.point("alice", "s", pointer("f2"), replaces=None, limit=5, now=NOW) == pointer("f1")
        assert store.look("alice", "e", "s") == (None, pointer("f1"))
        assert store.look("alice", "e", "other") == (None, None)

    def test_a_pointer_is_replaced_by_whoever_saw_it(self, store: VaultStore) -> None:
        """ports.VaultStore: unless it points to another one than `replaces`."""
        store.point("alice", "s", pointer("f1"), replaces=None, limit=5, now=NOW)
        assert store.point("alice", "s", pointer("f2"), replaces="f1", limit=5, now=NOW) == pointer("f2")
        assert store.point("alice", "s", pointer("f3"), replaces="f1", limit=5, now=NOW) == pointer("f2")

    def test_of_50_parallel_pointers_all_get_the_same(self, store: VaultStore) -> None:
        """SECURITY section 1: one live flow per principal, client and provider."""

        def point(number: int) -> FlowPointer | None:
            return store.point("alice", "s", pointer(f"f{number}"), replaces=None, limit=5, now=NOW)

        with ThreadPoolExecutor(16) as pool:
            assert len(set(pool.map(point, range(50)))) == 1

    def test_the_limit_counts_open_flows_of_one_user(self, store: VaultStore) -> None:
        """SECURITY section 1: 5 per user."""
        for number in range(5):
            assert store.point("alice", f"s{number}", pointer(f"f{number}"), replaces=None, limit=5, now=NOW)
        assert store.point("alice", "s5", pointer("f5"), replaces=None, limit=5, now=NOW) is None
        assert store.look("alice", "e", "s5") == (None, None)
        assert store.point("bob", "s5", pointer("f5"), replaces=None, limit=5, now=NOW) is not None
        assert store.point("alice", "s0", pointer("f6"), replaces="f0", limit=5, now=NOW) == pointer("f6")

    def test_a_settled_flow_stays_visible_and_does_not_count(self, store: VaultStore) -> None:
        """ports.VaultStore."""
        store.point("alice", "s0", pointer("f0"), replaces=None, limit=1, now=NOW)
        store.settle("alice", "s0", "another")
        assert store.point("alice", "s1", pointer("f1"), replaces=None, limit=1, now=NOW) is None
        store.settle("alice", "s0", "f0")
        store.settle("alice", "empty", "f0")
        assert store.point("alice", "s1", pointer("f1"), replaces=None, limit=1, now=NOW) == pointer("f1")
        assert store.look("alice", "e", "s0") == (None, pointer("f0"))

    def test_a_slot_is_emptied_for_the_flow_in_it(self, store: VaultStore) -> None:
        """ports.VaultStore."""
        store.point("alice", "s", pointer("f1"), replaces=None, limit=5, now=NOW)
        store.unpoint("alice", "s", "f0")
        assert store.look("alice", "e", "s") == (None, pointer("f1"))
        store.unpoint("alice", "s", "f1")
        store.unpoint("alice", "s", "f1")
        assert store.look("alice", "e", "s") == (None, None)

    def test_a_pointer_whose_time_has_come_neither_stands_nor_counts(self, store: VaultStore) -> None:
        """The flow it leads to is gone by then."""
        store.point("alice", "s0", pointer("f0"), replaces=None, limit=1, now=NOW)
        late = NOW + 900
        fresh = FlowPointer("f1", "sealed", int(late) + 900)
        assert store.point("alice", "s1", fresh, replaces=None, limit=1, now=late) == fresh
        again = FlowPointer("f2", "sealed", int(late) + 1800)
        assert store.point("alice", "s1", again, replaces=None, limit=1, now=late + 900) == again

    def test_deleting_keeps_what_else_the_user_has(self, store: VaultStore) -> None:
        """ports.VaultStore."""
        store.put("alice", "a", entry("v1"), replaces=None)
        store.put("alice", "b", entry("v2"), replaces=None)
        store.delete("alice", "a", version="v1")
        assert store.entries("alice") == {"b": entry("v2")}

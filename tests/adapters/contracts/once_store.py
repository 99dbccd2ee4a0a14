"""The contract of ports.OnceStore."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from app.ports import Mark, OnceStore

MINE = Mark("request", "owner-1", 1_800_000_030)
THEIRS = Mark("another request", "owner-2", 1_800_000_031)
RESULT = replace(MINE, sealed_result="sealed")


class OnceStoreContract:
    """Subclasses bring `store` and `advance`."""

    def test_the_first_mark_stands(self, store: OnceStore) -> None:
        """SECURITY section 2.5: one go."""
        assert store.claim("n", MINE, lifetime=60) == MINE
        assert store.claim("n", THEIRS, lifetime=60) == MINE
        assert store.claim("other", THEIRS, lifetime=60) == THEIRS

    def test_a_claim_that_is_sent_twice_finds_itself(self, store: OnceStore) -> None:
        """PLATFORM section 4: a lost reply makes a client send again."""
        assert store.claim("n", MINE, lifetime=60) == MINE
        assert store.claim("n", MINE, lifetime=60) == MINE

    def test_only_a_place_that_was_opened_is_taken(self, store: OnceStore) -> None:
        """A store that came back empty: nothing is taken for granted, and nothing is written."""
        assert store.take("n", MINE, lifetime=60) is None
        assert store.take("n", MINE, lifetime=60) is None
        store.open("n", lifetime=60)
        assert store.take("n", MINE, lifetime=60) == MINE
        assert store.take("n", MINE, lifetime=60) == MINE
        assert store.take("n", THEIRS, lifetime=60) == MINE
        assert store.claim("n", THEIRS, lifetime=60) == MINE

    def test_an_open_place_is_free_to_claim_and_to_record(self, store: OnceStore) -> None:
        """Nobody has begun there."""
        store.open("n", lifetime=60)
        assert store.claim("n", MINE, lifetime=60) == MINE
        store.open("m", lifetime=60)
        assert store.record("m", RESULT, lifetime=60)
        assert store.take("m", THEIRS, lifetime=60) == RESULT

    def test_opening_again_changes_nothing(self, store: OnceStore, advance: Callable[[float], None]) -> None:
        """A command that is sent again, or a round that asks again: it frees nothing, and prolongs nothing."""
        store.open("n", lifetime=60)
        store.open("n", lifetime=600)
        store.claim("m", MINE, lifetime=60)
        store.open("m", lifetime=60)
        assert store.take("m", THEIRS, lifetime=60) == MINE
        advance(60.1)
        assert store.take("n", MINE, lifetime=60) is None

    def test_of_64_parallel_claims_one_wins(self, store: OnceStore) -> None:
        """SECURITY section 2.5: 64 parallel completions, 1 go."""

        def claim(number: int) -> bool:
            mark = Mark("request", f"owner-{number}", 1_800_000_030)
            return store.claim("n", mark, lifetime=60) == mark

        with ThreadPoolExecutor(16) as pool:
            won = list(pool.map(claim, range(64)))
        assert won.count(True) == 1

    def test_a_result_is_kept_for_whoever_claims_later(self, store: OnceStore) -> None:
        """SECURITY section 2.5, lost response."""
        store.claim("n", MINE, lifetime=60)
        assert store.record("n", RESULT, lifetime=60)
        assert store.claim("n", THEIRS, lifetime=60) == RESULT

    def test_the_first_result_stays(self, store: OnceStore) -> None:
        """ports.OnceStore, also when the same record is sent twice."""
        store.claim("n", MINE, lifetime=60)
        assert store.record("n", RESULT, lifetime=60)
        assert store.record("n", RESULT, lifetime=60)
        assert store.record("n", replace(RESULT, sealed_result="another"), lifetime=60)
        assert store.claim("n", THEIRS, lifetime=60) == RESULT

    def test_a_result_is_not_written_over_the_mark_of_another_owner(self, store: OnceStore) -> None:
        """The store lost the first owner's mark, and somebody else began."""
        store.claim("n", THEIRS, lifetime=60)
        assert not store.record("n", RESULT, lifetime=60)
        assert store.claim("n", MINE, lifetime=60) == THEIRS

    def test_a_result_whose_mark_was_lost_is_written_anew(
        self, store: OnceStore, advance: Callable[[float], None]
    ) -> None:
        """SECURITY section 2.5: a failover can lose the key. Who finishes closes the gap again."""
        assert store.record("n", RESULT, lifetime=60)
        advance(59)
        assert store.claim("n", THEIRS, lifetime=60) == RESULT
        advance(1.1)
        assert store.claim("n", THEIRS, lifetime=60) == THEIRS

    def test_a_released_name_is_free(self, store: OnceStore) -> None:
        """The tool failed before its effect: a retry may run."""
        store.claim("n", MINE, lifetime=60)
        store.release("n", MINE.owner)
        store.release("n", MINE.owner)
        assert store.claim("n", THEIRS, lifetime=60) == THEIRS

    def test_a_released_place_stays_open_and_no_longer_than_its_mark_would_have_stood(
        self, store: OnceStore, advance: Callable[[float], None]
    ) -> None:
        """The tool asked one more question: the next answer finds the place."""
        for name in ("n", "m"):
            store.open(name, lifetime=600)
            assert store.take(name, MINE, lifetime=60) == MINE
            store.release(name, MINE.owner)
        assert store.take("n", THEIRS, lifetime=60) == THEIRS
        advance(60.1)
        assert store.take("m", THEIRS, lifetime=60) is None

    def test_a_released_name_that_nobody_opened_is_no_open_place(
        self, store: OnceStore, advance: Callable[[float], None]
    ) -> None:
        """Nothing is left of it, whatever was there before."""
        store.open("n", lifetime=60)
        advance(60.1)
        store.claim("n", MINE, lifetime=60)
        store.release("n", MINE.owner)
        assert store.take("n", THEIRS, lifetime=60) is None

    def test_a_mark_is_released_by_its_owner_and_never_with_a_result(self, store: OnceStore) -> None:
        """A release that is sent again must not free what somebody else has begun since, or what is done."""
        store.claim("n", THEIRS, lifetime=60)
        store.release("n", MINE.owner)
        assert store.claim("n", MINE, lifetime=60) == THEIRS
        store.record("m", RESULT, lifetime=60)
        store.release("m", RESULT.owner)
        assert store.claim("m", THEIRS, lifetime=60) == RESULT

    def test_a_mark_ends_with_its_lifetime_which_its_result_does_not_change(
        self, store: OnceStore, advance: Callable[[float], None]
    ) -> None:
        """The runner's clock may have jumped between its claim and its record."""
        store.claim("short", MINE, lifetime=60)
        store.record("short", RESULT, lifetime=600)
        store.claim("long", MINE, lifetime=600)
        store.record("long", RESULT, lifetime=60)
        advance(59)
        assert store.claim("short", THEIRS, lifetime=60) == RESULT
        advance(1.1)
        assert store.claim("short", THEIRS, lifetime=600) == THEIRS
        assert store.claim("long", THEIRS, lifetime=60) == RESULT
        advance(540)
        assert store.claim("long", THEIRS, lifetime=60) == THEIRS

    def test_values_may_hold_any_text(self, store: OnceStore) -> None:
        """Nothing may depend on how a store encodes."""
        odd = replace(RESULT, request='é"\\\n%s😀', sealed_result=":😀\x00")
        store.record("n", odd, lifetime=60)
        assert store.claim("n", THEIRS, lifetime=60) == odd

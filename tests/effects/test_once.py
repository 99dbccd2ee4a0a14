"""Once: who may run an effect, what everybody else gets, and what time and damage change about it."""

import json
from dataclasses import replace
from datetime import date
from typing import Any
from uuid import UUID

import pytest

from app.adapters.memory_effects import MemoryOnceStore
from app.effects.once import (
    LEASE,
    MARGIN,
    Beginning,
    Conflict,
    Done,
    DoneWithoutResult,
    Effect,
    Go,
    Kept,
    Once,
    Running,
    Unknown,
    idempotency_key,
    request_digest,
)
from app.errors import ConfigurationError, Unavailable
from app.ports import Mark
from app.principal import Principal
from app.sealing import MAX_CLAIMS, Key, Keyring
from tests.effects.world import (
    ALICE,
    ALICE_ELSEWHERE,
    ALICE_OF_ANOTHER_ISSUER,
    BOB,
    EFFECT,
    FLOW,
    KEYRING,
    NEW,
    NO,
    OLD,
    RESULT,
    START,
    Clock,
    owners,
)


class World:
    """One store, and as many instances over it as there are calls."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.store = MemoryOnceStore(self.clock)
        self.keyring = KEYRING
        self._owners = owners()

    @property
    def once(self) -> Once:
        return Once(self.store, self.keyring)

    def begin(
        self,
        effect: Effect = EFFECT,
        *,
        owner: bytes | None = None,
        now: float | None = None,
        opened: bool = False,
    ) -> Beginning:
        now = self.clock.now if now is None else now
        return self.once.begin(effect, owner=owner or next(self._owners), now=now, opened=opened)

    def go(self, effect: Effect = EFFECT, *, now: float | None = None) -> Go:
        begun = self.begin(effect, now=now)
        assert isinstance(begun, Go)
        return begun

    def finish(self, go: Go, result: Any = RESULT, *, now: float | None = None) -> Kept:
        return self.once.finish(go, result, now=self.clock.now if now is None else now)


@pytest.fixture
def world() -> World:
    return World()


def test_one_goes_and_the_same_request_waits(world: World) -> None:
    """SECURITY section 2.5: go, running."""
    world.go()
    assert world.begin() == Running()
    assert world.begin() == Running()


def test_an_honest_retry_gets_the_result_of_the_first_run(world: World) -> None:
    """CASES B.9 106: a lost response, the same bytes again."""
    go = world.go()
    assert world.finish(go) is Kept.WHOLE
    for _ in range(2):
        assert world.begin() == Done(RESULT)


def test_what_was_opened_and_is_not_there_was_forgotten_and_is_in_doubt(world: World) -> None:
    """The store came back empty: nobody knows whether it happened before."""
    world.once.open(EFFECT, now=START)
    world.store.__init__(world.clock)  # type: ignore[misc]
    for _ in range(2):
        assert world.begin(opened=True) == Unknown()
    assert world.begin(replace(EFFECT, request_digest=NO), opened=True) == Unknown()
    # The next flow is not in doubt.
    other = replace(EFFECT, flow_id=b"f" * 16)
    world.once.open(other, now=START)
    assert isinstance(world.begin(other, opened=True), Go)


def test_what_was_opened_runs_once_like_anything_else(world: World) -> None:
    """Opened, abandoned for one more question, and done."""
    world.once.open(EFFECT, now=START)
    first = world.begin(opened=True)
    assert isinstance(first, Go)
    assert world.begin(opened=True) == Running()
    world.once.abandon(first)
    world.once.open(EFFECT, now=START)
    second = world.begin(opened=True)
    assert isinstance(second, Go)
    world.finish(second)
    world.once.open(EFFECT, now=START)
    assert world.begin(opened=True) == Done(RESULT)
    assert world.begin(replace(EFFECT, request_digest=NO), opened=True) == Conflict()


def test_an_open_mark_outlives_the_last_state_of_its_flow(world: World) -> None:
    """An answer that still counts finds its mark."""
    world.once.open(EFFECT, now=START)
    world.clock.now = EFFECT.expires_at + MARGIN - 1
    assert isinstance(world.begin(opened=True), Go)


@pytest.mark.parametrize("finished", [False, True])
def test_other_answers_with_the_same_state_are_a_conflict(world: World, finished: bool) -> None:
    """SECURITY section 2.5: not decline after accept."""
    go = world.go()
    if finished:
        world.finish(go)
    assert world.begin(replace(EFFECT, request_digest=NO)) == Conflict()


@pytest.mark.parametrize("other", [BOB, ALICE_ELSEWHERE, ALICE_OF_ANOTHER_ISSUER])
def test_a_result_is_for_its_principal_alone(world: World, other: Principal) -> None:
    """Issuer, subject and client: each makes another request, whatever the digest says."""
    world.finish(world.go())
    assert world.begin(replace(EFFECT, principal=other)) == Conflict()
    assert world.begin() == Done(RESULT)


def test_a_runner_that_died_leaves_the_outcome_unknown_and_nobody_runs_again(world: World) -> None:
    """CASES B.9 107: a clear "in doubt", not a silent second run."""
    world.go()
    world.clock.now += LEASE - 1
    assert world.begin() == Running()
    world.clock.now += 1
    for _ in range(3):
        assert world.begin() == Unknown()
        world.clock.now += 1000
    assert world.begin(replace(EFFECT, request_digest=NO)) == Conflict()


def test_a_runner_that_is_slow_still_brings_its_result(world: World) -> None:
    """The lease passed, and the runner was alive: in doubt becomes done."""
    go = world.go()
    world.clock.now += LEASE + 5
    assert world.begin() == Unknown()
    assert world.finish(go) is Kept.WHOLE
    assert world.begin() == Done(RESULT)


def test_what_has_not_begun_may_be_tried_again(world: World) -> None:
    """The tool asked one more question, or failed before its effect."""
    world.once.abandon(world.go())
    go = world.go(replace(EFFECT, request_digest=NO))
    world.finish(go)
    assert world.begin() == Conflict()


def test_what_is_done_cannot_be_abandoned(world: World) -> None:
    """A caller's mistake must not open the way to a second run."""
    go = world.go()
    world.finish(go)
    world.once.abandon(go)
    assert world.begin() == Done(RESULT)


def test_abandoning_late_does_not_free_what_somebody_else_runs(world: World) -> None:
    """The command was sent again after the next one had begun."""
    first = world.go()
    world.once.abandon(first)
    world.go()
    world.once.abandon(first)
    assert world.begin() == Running()


def test_a_begin_that_is_sent_again_is_go_once_more(world: World) -> None:
    """PLATFORM section 4: the script ran and its reply was lost. The owner recognises its mark."""
    owner = b"o" * 16
    first = world.begin(owner=owner)
    assert isinstance(first, Go)
    assert world.begin(owner=owner) == first
    assert world.begin() == Running()


def test_a_reply_lost_for_good_costs_one_doubtful_answer(world: World) -> None:
    """The caller got Unavailable and refused. A mark stands that nobody runs under: at most once, still."""
    world.go()  # the reply that the caller never saw
    assert world.begin() == Running()
    world.clock.now += LEASE
    assert world.begin() == Unknown()


def test_steps_of_one_flow_are_effects_of_their_own(world: World) -> None:
    """ctx.once(key, fn): one mark for each key, and another one for the whole completion."""
    reserve, charge = replace(EFFECT, step="reserve"), replace(EFFECT, step="charge")
    for effect, result in ((EFFECT, "whole"), (reserve, "reserved"), (charge, "charged")):
        world.finish(world.go(effect), result)
    assert [world.begin(each) for each in (EFFECT, reserve, charge)] == [
        Done("whole"),
        Done("reserved"),
        Done("charged"),
    ]


def test_another_flow_is_another_effect(world: World) -> None:
    """A new call without a state is a new flow, and the user is asked again."""
    world.finish(world.go())
    world.go(replace(EFFECT, flow_id=b"f" * 16))


@pytest.mark.parametrize("result", [None, False, 0, "", [], {}, "é😀", [1, 2.5, {"a": None}]])
def test_every_json_value_is_replayed_as_it_was(world: World, result: Any) -> None:
    """Also those that are false."""
    world.finish(world.go(), result)
    replayed = world.begin()
    assert isinstance(replayed, Done)
    assert json.dumps(replayed.result) == json.dumps(result)


@pytest.mark.parametrize("result", [date(2026, 7, 28), (1, 2), {1: "a"}, float("nan"), {"a": b"b"}, {"a", "b"}])
def test_a_result_that_json_would_change_is_an_error_after_the_fact_is_kept(world: World, result: Any) -> None:
    """The effect has happened: whatever the tool returned, nobody may run it again."""
    with pytest.raises(TypeError, match="isoformat"):
        world.finish(world.go(), result)
    assert world.begin() == DoneWithoutResult()


def test_a_result_without_a_bottom_is_an_error_after_the_fact_is_kept(world: World) -> None:
    """The same for what no encoder comes to the end of."""
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(TypeError, match="must be JSON"):
        world.finish(world.go(), deep)
    assert world.begin() == DoneWithoutResult()


def test_a_result_that_fits_no_seal_is_done_without_it(world: World) -> None:
    """The largest that fits, and one byte more."""
    frame = len('{"r":""}')
    world.finish(world.go(), "x" * (MAX_CLAIMS - frame))
    assert world.begin() == Done("x" * (MAX_CLAIMS - frame))

    other = replace(EFFECT, step="other")
    assert world.finish(world.go(other), "x" * (MAX_CLAIMS - frame + 1)) is Kept.WITHOUT_RESULT
    assert world.begin(other) == DoneWithoutResult()


def test_who_finishes_says_so_when_the_store_lost_the_mark_and_somebody_else_began(world: World) -> None:
    """A failover: the effect may have happened twice, and the log must say it."""
    go = world.go()
    world.store.__init__(world.clock)  # type: ignore[misc]
    world.go()
    assert world.finish(go) is Kept.LOST
    assert world.begin() == Running()


def test_who_finishes_first_after_a_loss_closes_the_gap(world: World) -> None:
    """A failover between begin and finish, and nobody came in between."""
    go = world.go()
    world.store.__init__(world.clock)  # type: ignore[misc]
    assert world.finish(go) is Kept.WHOLE
    assert world.begin() == Done(RESULT)


def test_a_mark_outlives_the_last_state_that_could_repeat_it(world: World) -> None:
    """SECURITY section 2.5: the state's remaining life + 60 s."""
    world.finish(world.go())
    world.clock.now = EFFECT.expires_at + MARGIN - 1
    assert world.begin() == Done(RESULT)
    world.clock.now = EFFECT.expires_at + MARGIN
    assert isinstance(world.begin(), Go)


def test_a_mark_that_begins_at_the_last_moment_lives_through_its_lease(world: World) -> None:
    """The state opened one second before its end."""
    world.clock.now = EFFECT.expires_at - 1
    world.go()
    world.clock.now += LEASE + MARGIN - 1
    assert world.begin() == Unknown()


@pytest.mark.parametrize("jump", [-86_400, -3600, -59, 59, 3600, 86_400])
def test_a_clock_that_jumps_while_a_tool_runs_changes_no_outcome(world: World, jump: int) -> None:
    """A restored snapshot, a bad time server: the mark keeps its lifetime."""
    go = world.go()
    world.finish(go, now=START + jump)
    world.clock.now = EFFECT.expires_at + MARGIN - 1
    assert world.begin() == Done(RESULT)


@pytest.mark.parametrize("jump", [-86_400, -1, 0, 1, LEASE, 86_400])
def test_whoever_looks_with_another_clock_never_runs(world: World, jump: int) -> None:
    """Running or in doubt: whichever a wrong clock takes it for, it is not go."""
    world.go()
    assert world.begin(now=START + jump) == (Running() if jump < LEASE else Unknown())


def test_a_time_that_is_no_number_runs_nothing(world: World) -> None:
    """NaN compares false with everything."""
    with pytest.raises(ValueError, match="NaN"):
        world.begin(now=float("nan"))
    world.go()


def test_results_outlive_a_rotation(world: World) -> None:
    """Keyring: the pepper names the mark, a retired key opens the result."""
    world.finish(world.go())
    world.keyring = Keyring(current=NEW, retired=(OLD,), pepper=OLD)
    assert world.begin() == Done(RESULT)
    world.keyring = Keyring(current=NEW, pepper=OLD)
    assert world.begin() == Unknown()


def test_nothing_begins_without_the_key_that_its_result_needs(world: World) -> None:
    """A ring in a key service that is down: refuse before the effect, for afterwards it would be too late."""

    class Away:
        """The pepper is cached, the sealing key is not."""

        pepper = OLD

        @property
        def current(self) -> Key:
            raise Unavailable("kms: no answer", retry_after=2)

        def get(self, kid: int) -> Key | None:
            raise AssertionError("nothing is opened")

    with pytest.raises(Unavailable):
        Once(world.store, Away()).begin(EFFECT, owner=b"o" * 16, now=START)
    world.go()


@pytest.mark.parametrize(
    "damage", [lambda s: "", lambda s: s[:-2] + ("QQ" if s.endswith("AA") else "AA"), lambda s: "é😀"]
)
def test_a_damaged_result_is_unknown(world: World, damage: Any) -> None:
    """Somebody can write to the store: then it cannot say what happened, and nothing runs."""
    world.finish(world.go())
    overwrite(world, lambda mark: replace(mark, sealed_result=damage(mark.sealed_result)))
    assert world.begin() == Unknown()


def test_a_result_moved_from_another_mark_does_not_open(world: World) -> None:
    """The seal names flow, step, principal and request."""
    world.finish(world.go())
    others = (
        replace(EFFECT, flow_id=b"f" * 16),
        replace(EFFECT, step="s"),
        replace(EFFECT, flow_id=b"g" * 16, principal=BOB),
        replace(EFFECT, flow_id=b"h" * 16, request_digest=NO),
    )
    for effect in others:
        world.finish(world.go(effect))
    foreign = [mark.sealed_result for _, mark in world.store._marks.values() if mark is not None][1:]
    assert len(set(foreign)) == len(others)
    for sealed in foreign:
        overwrite(world, lambda mark, sealed=sealed: replace(mark, sealed_result=sealed))
        assert world.begin() == Unknown()


def overwrite(world: World, change: Any) -> None:
    """What somebody with write access to the store can do to the first mark."""
    name, (expires_at, mark) = next(iter(world.store._marks.items()))
    assert isinstance(mark, Mark)
    world.store._marks[name] = (expires_at, change(mark))


@pytest.mark.parametrize("lease", [0, -1, 1.5, float("inf"), float("nan"), True, "30"])
def test_a_lease_that_is_none_is_refused(lease: Any) -> None:
    """With an endless lease a dead runner would be running for ever."""
    with pytest.raises(ConfigurationError, match="whole seconds"):
        Once(MemoryOnceStore(), KEYRING, lease=lease)


def test_requests_are_the_same_when_the_same_answers_count() -> None:
    """SECURITY section 2.2 and 2.3: canonical, and no field runs into the next."""
    same = request_digest(b"a", b"b", answers={"x": {"n": 1}, "y": 2})
    assert same == request_digest(b"a", b"b", answers={"y": 2.0, "x": {"n": 1.0}})
    others = [
        request_digest(b"ab", answers={"x": {"n": 1}, "y": 2}),
        request_digest(b"a", b"b", answers={"x": {"n": 1}}),
        request_digest(b"a", b"b", answers={"x": {"n": True}, "y": 2}),
        request_digest(b"b", b"a", answers={"x": {"n": 1}, "y": 2}),
    ]
    assert len({same, *others}) == 5
    assert len(same) == 32


def test_an_idempotency_key_is_a_uuid_for_each_flow_and_step() -> None:
    """RFC 9562 section 5.5; stable over deployments, so the values are pinned. It does not show the flow id."""
    key = idempotency_key(FLOW)
    assert key == "56178b86-a57f-5c22-899a-9964185c2cc9"
    assert idempotency_key(FLOW, "charge") == "23160e03-37e4-503d-ba49-b6fffcb0bbfc"
    assert UUID(key).version == 5
    assert idempotency_key(b"f" * 16) != key
    assert FLOW.hex() not in key.replace("-", "")


def test_an_effect_does_not_print_what_it_is_bound_to() -> None:
    """A digest of few possible answers can be guessed from a log."""
    assert repr(EFFECT.request_digest) not in repr(EFFECT)
    assert ALICE.subject in repr(EFFECT)

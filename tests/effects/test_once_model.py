"""Once against a model: whatever happens in whatever order, at most one run, and nobody stays without an answer."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Literal, TypeAlias, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, multiple, rule

from app.adapters.memory_effects import MemoryOnceStore
from app.effects.once import LEASE, Beginning, Conflict, Done, Effect, Go, Kept, Once, Running, Unknown
from app.errors import Unavailable
from app.ports import Mark
from tests.effects.world import ALICE, BOB, EFFECT, KEYRING, NO, YES, Clock, owners

Fault: TypeAlias = Literal["down", "reply_lost"] | None
Key: TypeAlias = tuple[bytes, str | None]
T = TypeVar("T")

EFFECTS = st.builds(
    replace,
    st.just(EFFECT),
    flow_id=st.sampled_from([b"1" * 16, b"2" * 16]),
    step=st.sampled_from([None, "reserve"]),
    request_digest=st.sampled_from([YES, NO]),
    principal=st.sampled_from([ALICE, BOB]),
)
FAULTS = st.sampled_from([None, None, "down", "reply_lost"])
SKEW = st.sampled_from([-30, -1, 0, 1, 30])
"""Seconds by which an instance's clock differs: two of them by no more than the margin."""


class FlakyStore:
    """Loses a command on its way, or the reply on the way back."""

    def __init__(self, store: MemoryOnceStore) -> None:
        self._store = store
        self.fault: Fault = None

    def open(self, name: str, *, lifetime: int) -> None:
        self._send(lambda: self._store.open(name, lifetime=lifetime))

    def claim(self, name: str, mark: Mark, *, lifetime: int) -> Mark:
        return self._send(lambda: self._store.claim(name, mark, lifetime=lifetime))

    def take(self, name: str, mark: Mark, *, lifetime: int) -> Mark | None:
        return self._send(lambda: self._store.take(name, mark, lifetime=lifetime))

    def record(self, name: str, mark: Mark, *, lifetime: int) -> bool:
        return self._send(lambda: self._store.record(name, mark, lifetime=lifetime))

    def release(self, name: str, owner: str) -> None:
        return self._send(lambda: self._store.release(name, owner))

    def _send(self, command: Callable[[], T]) -> T:
        fault, self.fault = self.fault, None
        if fault == "down":
            raise Unavailable("down", retry_after=1)
        answer = command()
        if fault == "reply_lost":
            raise Unavailable("reply lost", retry_after=1)
        return answer


@dataclass
class Standing:
    """What the model knows to be marked."""

    effect: Effect
    lease_until: int
    result: int | None = None


class OnceMachine(RuleBasedStateMachine):
    """Instances with clocks of their own begin, finish, abandon and die over one store that loses messages."""

    gos = Bundle("gos")

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.store = FlakyStore(MemoryOnceStore(self.clock))
        self.once = Once(self.store, KEYRING)
        self.standing: dict[Key, Standing] = {}
        self.opened: set[Key] = set()
        self.runs: dict[Key, int] = {}
        self._owners = owners()
        self._results = count()

    @rule(effect=EFFECTS, fault=FAULTS)
    def open(self, effect: Effect, fault: Fault) -> None:
        """Before a question goes out, in any round."""
        self.store.fault = fault
        try:
            self.once.open(effect, now=self.clock.now)
        except Unavailable:
            assert fault is not None
        if fault != "down" and (effect.flow_id, effect.step) not in self.standing:
            self.opened.add((effect.flow_id, effect.step))

    @rule(target=gos, effect=EFFECTS, skew=SKEW, fault=FAULTS, sent=st.integers(1, 3), opened=st.booleans())
    def begin(self, effect: Effect, skew: int, fault: Fault, sent: int, opened: bool) -> Any:
        now = self.clock.now + skew
        if not now < effect.expires_at:
            return multiple()  # no state of the flow opens any more
        key, owner = (effect.flow_id, effect.step), next(self._owners)
        expected = self._expected(effect, now, opened)
        if fault is not None:
            self.store.fault = fault
            with pytest.raises(Unavailable):
                self.once.begin(effect, owner=owner, now=now, opened=opened)
            if fault == "reply_lost" and expected is Go:
                self.standing[key] = Standing(effect, int(now) + LEASE)
            return multiple()
        answers = [self.once.begin(effect, owner=owner, now=now, opened=opened) for _ in range(sent)]
        assert answers == answers[:1] * sent, "a command that is sent again is answered alike"
        if expected is not Go:
            assert answers[0] == expected
            return multiple()
        assert isinstance(answers[0], Go), "what is free is not stuck"
        self.standing[key] = Standing(effect, int(now) + LEASE)
        self.runs[key] = self.runs.get(key, 0) + 1
        assert self.runs[key] == 1, "at most one run"
        return answers[0]

    def _expected(self, effect: Effect, now: float, opened: bool) -> Beginning | type[Go]:
        key = (effect.flow_id, effect.step)
        standing = self.standing.get(key)
        if standing is None:
            return Unknown() if opened and key not in self.opened else Go
        if standing.effect != effect:
            return Conflict()
        if standing.result is not None:
            return Done(standing.result)
        return Running() if now < standing.lease_until else Unknown()

    @rule(go=consumes(gos), jump=st.sampled_from([-86_400, 0, 86_400]), fault=FAULTS)
    def finish(self, go: Go, jump: int, fault: Fault) -> None:
        result = next(self._results)
        self.store.fault = fault
        try:
            assert self.once.finish(go, result, now=self.clock.now + jump) is Kept.WHOLE
        except Unavailable:
            assert fault is not None
        if fault != "down":
            self.standing[go.effect.flow_id, go.effect.step].result = result

    @rule(go=consumes(gos), fault=FAULTS)
    def abandon(self, go: Go, fault: Fault) -> None:
        key = (go.effect.flow_id, go.effect.step)
        self.store.fault = fault
        try:
            self.once.abandon(go)
        except Unavailable:
            assert fault is not None
        self.runs[key] -= 1
        if fault != "down":
            del self.standing[key]

    @rule(go=consumes(gos))
    def die(self, go: Go) -> None:
        """The environment is killed: neither finish nor abandon."""

    @rule(seconds=st.sampled_from([1, LEASE - 1, LEASE, 600, 3000]))
    def wait(self, seconds: int) -> None:
        # Not past the time when no state opens on any clock: nothing begins after it.
        self.clock.now = min(self.clock.now + seconds, EFFECT.expires_at + 29)


TestOnceModel = OnceMachine.TestCase
TestOnceModel.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)

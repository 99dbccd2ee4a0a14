"""One guarded effect: it runs at most once, and whoever repeats the request gets the first run's result.

Theory. A flow leaves several sealed states with its client, and each of them can be shown again: because a
response was lost, because a user clicked twice, or because somebody tries. So an effect has a mark in a store
under the flow's id (and under a step's name, where one flow has several effects). Whoever begins writes the
mark if there is none, and the store lets one writer win.

    none ──open──> free ──begin──> running ──finish──> done
                     ^              │   └───lapse──> in doubt ──finish──> done
                     └───abandon────┴──────abandon──────┘

    the mark is     the same request gets              another request of this flow gets
    none            Go, or Unknown if it was opened    Go, or Unknown if it was opened
    free            Go: run it, then finish            Go
    running         Running: come again                Conflict
    in doubt        Unknown: never run again           Conflict
    done            Done with the result               Conflict

Four rules carry the safety.
  1. Go is given to one owner, and only that owner finishes or abandons. The owner is a fresh nonce: a begin
     that had to be sent again after a lost reply finds its own mark, and is Go once more.
  2. `lapse` is not written: a mark whose lease has passed without a result is in doubt, whoever looks. Its
     runner died before or after the effect, and nobody can say which. At most once means that nobody tries.
  3. A mark lives until the last state that could repeat its request has expired, and a minute more for clocks
     that disagree. Nothing shortens its life: a runner whose clock has jumped still finishes the same mark.
  4. Who asks the user opens the mark before the question goes out. If it is not there when the answer comes, the
     store has forgotten it, and with it whatever happened since: that is in doubt too.

A store that is down raises Unavailable out of `begin`, and the caller refuses: nothing runs unguarded. If it
was the answer to `begin` that was lost for good, the mark stands, and the next repetition waits for the lease
and then gets Unknown for an effect that never began: the price of never running one twice.

What is left is a store that goes back in time: a failover to a replica that has the open mark and not yet the
running one, or a step, which nobody opens, in a store that forgot it. Against that there are the policy
`noeviction` and `idempotency_key`, which a downstream service checks by itself.

The store learns nothing: mark names and requests are blind indexes, the result is sealed, bound to flow, step,
principal and request. A result that does not open is Unknown.
"""

import hashlib
import json
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from enum import StrEnum
from math import ceil
from typing import Any, Final, TypeAlias
from uuid import UUID, uuid5

from app import strict_json
from app.errors import ConfigurationError, SealRefused
from app.ports import Mark, OnceStore
from app.principal import Principal
from app.sealing import MAX_CLAIMS, BlindIndex, Purpose, Seal, SealingKeys, length_prefixed
from app.strict_json import JsonObject

LEASE: Final = 30
"""Seconds that a runner has. It must be longer than the function's timeout, so that who lapsed is dead."""
MARGIN: Final = 60
"""Seconds that a mark outlives the last state that could repeat it, for clocks that disagree."""

_RESULT: Final = "r"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What must happen once: the completion of a flow or, with a `step`, one effect within it.

    `request_digest` is of everything that decides what the effect will be (see `request_digest`).
    `expires_at` is when the last state of the flow stops to open, in seconds since the epoch.
    """

    flow_id: bytes
    principal: Principal
    request_digest: bytes = field(repr=False)
    expires_at: int
    step: str | None = None


@dataclass(frozen=True, slots=True)
class Go:
    """Run it now: nobody else will. Then `finish`, or `abandon` if it certainly has not begun."""

    effect: Effect
    owner: str


@dataclass(frozen=True, slots=True)
class Running:
    """Another request is running it at this moment. The same request may come again at once."""


@dataclass(frozen=True, slots=True)
class Done:
    """It has happened, with this result."""

    result: Any


@dataclass(frozen=True, slots=True)
class DoneWithoutResult:
    """It has happened. Its result was more than fits under a seal, and was given to the first request only."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Another request of this flow came first: other answers, or another caller. Refuse this one."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Who ran it ended without a word, or the store forgot: it may have happened. Say so, and do not run it."""


Beginning: TypeAlias = Go | Running | Done | DoneWithoutResult | Conflict | Unknown


class Kept(StrEnum):
    """What the store has of a result, for the log."""

    WHOLE = "whole"
    WITHOUT_RESULT = "without_result"
    """It was too large: a repetition gets DoneWithoutResult."""
    LOST = "lost"
    """The store had lost the mark and somebody else has begun: the effect may have happened twice."""


class Once:
    """Guards effects. `lease` is in seconds, and longer than any run can take.

    Raises ConfigurationError for a lease that is none.
    """

    __slots__ = ("_index", "_keyring", "_lease", "_seal", "_store")

    def __init__(self, store: OnceStore, keyring: SealingKeys, *, lease: int = LEASE) -> None:
        if type(lease) is not int or lease < 1:
            raise ConfigurationError(
                [f"The lease of a guarded effect is {lease!r}: give whole seconds, more than the function's timeout."]
            )
        self._store = store
        self._keyring = keyring
        self._index = BlindIndex(keyring, Purpose.ONCE)
        self._seal = Seal(keyring, Purpose.ONCE)
        self._lease = lease

    def open(self, effect: Effect, *, now: float) -> None:
        """It may be begun later, when the user has answered. Raises Unavailable: then do not ask."""
        self._store.open(self._name(effect), lifetime=self._lifetime(effect, now=now))

    def begin(self, effect: Effect, *, owner: bytes, now: float, opened: bool = False) -> Beginning:
        """May it run? `owner` is 16 random bytes of this attempt; `opened` says that `open` was called for it.

        Raises Unavailable: then it must not run.
        """
        # The key of the result must be at hand before the effect: afterwards it would be too late to refuse.
        _ = self._keyring.current
        mine = self._mark(effect, urlsafe_b64encode(owner).rstrip(b"=").decode(), now=now)
        claim = self._store.take if opened else self._store.claim
        standing = claim(self._name(effect), mine, lifetime=self._lifetime(effect, now=now))
        if standing is None:
            return Unknown()
        if standing.owner == mine.owner:
            return Go(effect, mine.owner)
        if standing.request != mine.request:
            return Conflict()
        if standing.sealed_result is not None:
            return self._replay(effect, standing.sealed_result)
        return Running() if now < standing.lease_until else Unknown()

    def finish(self, go: Go, result: Any, *, now: float) -> Kept:
        """It has happened: keep the result, a JSON value, for whoever repeats the request.

        Raises Unavailable when it could not be kept (the result is still true: answer it; a repetition gets
        Unknown), and TypeError, after keeping that it has happened, for a result that JSON would change.
        """
        kept, claims = Kept.WHOLE, {_RESULT: result}
        lossless = _is_json(result)
        if not lossless or len(json.dumps(claims, separators=(",", ":"))) > MAX_CLAIMS:
            kept, claims = Kept.WITHOUT_RESULT, {}
        sealed = self._seal.seal(claims, bound_to=_bound_to(go.effect))
        mark = self._mark(go.effect, go.owner, now=now, sealed_result=sealed)
        lifetime = self._lifetime(go.effect, now=now)
        if not self._store.record(self._name(go.effect), mark, lifetime=lifetime):
            kept = Kept.LOST
        if not lossless:
            raise TypeError(
                "The result of an effect that runs once must be JSON to come back as it is: dicts with string keys, "
                "lists, strings, finite numbers, booleans, None. Return a date as isoformat(), a model as "
                "model_dump(mode='json')."
            )
        return kept

    def abandon(self, go: Go) -> None:
        """It certainly has not begun: the next request may. Raises Unavailable: then the mark stands."""
        self._store.release(self._name(go.effect), go.owner)

    def _name(self, effect: Effect) -> str:
        step = () if effect.step is None else (effect.step,)
        return self._index.of("mark", effect.flow_id.hex(), *step)

    def _mark(self, effect: Effect, owner: str, *, now: float, sealed_result: str | None = None) -> Mark:
        # Blind as well: answers are few, and a plain digest of them could be guessed.
        request = self._index.of("request", *(each.hex() for each in _bound_to(effect)))
        return Mark(request, owner, int(now) + self._lease, sealed_result)

    def _lifetime(self, effect: Effect, *, now: float) -> int:
        return ceil(max(effect.expires_at - now, self._lease)) + MARGIN

    def _replay(self, effect: Effect, sealed_result: str) -> Done | DoneWithoutResult | Unknown:
        try:
            claims = self._seal.open(sealed_result, bound_to=_bound_to(effect))
        except SealRefused:
            return Unknown()
        return Done(claims[_RESULT]) if _RESULT in claims else DoneWithoutResult()


def request_digest(*bound: bytes, answers: JsonObject) -> bytes:
    """What makes two requests of a flow the same: what the state is bound to, and every answer that counts.

    Every answer, those of earlier rounds and those of this one: a retry that carries only a requestState, with
    the answers inside it, is the same request as the one that brought them.
    """
    return hashlib.sha256(length_prefixed(*bound, strict_json.canonical(answers))).digest()


def idempotency_key(flow_id: bytes, step: str | None = None) -> str:
    """A UUID (RFC 9562, version 5) for a downstream service: the same in all rounds and repetitions.

    One for each step: services refuse a key that comes again with another request. It does not lead back to
    the flow id.
    """
    return str(uuid5(UUID(bytes=flow_id), step or ""))


def _bound_to(effect: Effect) -> tuple[bytes, ...]:
    step = () if effect.step is None else (effect.step.encode(),)
    return (
        b"once",
        b"v1",
        effect.flow_id,
        *effect.principal.fields(),
        effect.request_digest,
        *step,
    )


def _is_json(value: Any) -> bool:
    try:
        return bool(json.loads(json.dumps(value, allow_nan=False)) == value)
    except (TypeError, ValueError, RecursionError):
        return False

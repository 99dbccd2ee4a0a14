"""How often one principal may ask its user something, or send them to a browser: a sliding window for each.

At most `count` in any `seconds`, exactly: the store keeps the time of each. A refusal is not counted, so that
waiting as long as it says is enough. Times are the callers': an instance whose clock is ahead delays its own
principals by at most one window, as the store forgets by its own clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from types import MappingProxyType
from typing import Final

from app.errors import ConfigurationError
from app.ports import RateLimits
from app.principal import Principal
from app.sealing import BlindIndex, Purpose, SealingKeys


class Kind(StrEnum):
    ASK = "ask"
    """An `input_required` with questions."""
    FLOW = "flow"
    """A new flow: a link that the user is to open."""


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `count` in any `seconds`. Raises ConfigurationError for a limit that would let nothing through."""

    count: int
    seconds: int

    def __post_init__(self) -> None:
        if min(self.count, self.seconds) < 1:
            raise ConfigurationError([f"A limit of {self.count} in {self.seconds} s stops everything: give 1 or more."])


DEFAULTS: Final[Mapping[Kind, Limit]] = MappingProxyType({Kind.ASK: Limit(60, 600), Kind.FLOW: Limit(20, 3600)})
"""More than a person can answer, and less than one can stand."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """It is counted: go on."""


@dataclass(frozen=True, slots=True)
class Limited:
    """Not now. `retry_after` is in whole seconds, from 1 to the window."""

    retry_after: int


class Limits:
    """Counts what principals do."""

    __slots__ = ("_index", "_limits", "_store")

    def __init__(self, store: RateLimits, keyring: SealingKeys, limits: Mapping[Kind, Limit] = DEFAULTS) -> None:
        self._store = store
        self._index = BlindIndex(keyring, Purpose.ONCE)
        self._limits = dict(limits)

    def take(self, principal: Principal, kind: Kind, *, entropy: bytes, now: float) -> Allowed | Limited:
        """Count one, if the limit allows one more. `entropy` is 16 random bytes of this attempt.

        Raises Unavailable. Let a form pass then: an outage must not stop what needs no store.
        """
        limit = self._limits[kind]
        name = self._index.of("limit", kind, principal.issuer, principal.subject, principal.client_id)
        free_at = self._store.take(name, entropy.hex(), count=limit.count, seconds=limit.seconds, now=now)
        if free_at is None:
            return Allowed()
        return Limited(min(max(1, ceil(free_at - now)), limit.seconds))

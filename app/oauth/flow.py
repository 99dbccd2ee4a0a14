"""The life of one flow, as a table. Everything that decides which step may follow which is here.

Theory. A flow belongs to one user, one MCP client and one vault entry, for 15 minutes. The tool makes it,
the browser moves it, and the tool looks at it again: possibly three instances, so each step is one guarded
compare-and-set in the store, which gets its sources and its target from this table.

    pending ──open──> opened ──begin──> authorizing ──claim──> exchanging ──finish──> completed
       │                 │     (again: the last tab wins)         │  │  │
       └──────take───────┴─────────────take─────────────────────>─┘  │  └──deny──> denied
                                                                     └──fail──> failed ──begin, take──> …
                                                                     └──give_up──> failed_final
    decline: from every live status. expire: from every live status, when the store forgets the flow.

Two rules carry the safety.
  1. Only `claim` and `take` lead to `exchanging`, and the store grants them once: it notes the owner. Only
     that owner finishes, denies or fails. So a code is exchanged once, whatever is sent how often.
  2. Nothing in a flow proves a connection. The vault does, when it opens for this user. A crash between
     writing the vault and `finish` costs nothing.

Time takes two steps alone. An exchange whose lock has passed stands at `failed` (its owner is gone; the
user may start again), and a flow older than `LIFETIME` at `expired`. Neither is written: whoever looks, sees it.

`take` is `claim` for what needs no provider: consent for one more client, or a value typed on our page.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from app.ports import Transition

LIFETIME: Final = 900
"""Seconds from the question to the last step. No step makes it longer."""
EXCHANGE_LOCK: Final = 30
"""Seconds after which an exchange without a result is given up. Twice what its requests may take, and more."""
MAX_ATTEMPTS: Final = 5
MAX_LIVE_FLOWS: Final = 5
"""Live flows of one user at a time."""


class Status(StrEnum):
    PENDING = "pending"
    OPENED = "opened"
    AUTHORIZING = "authorizing"
    EXCHANGING = "exchanging"
    COMPLETED = "completed"
    DENIED = "denied"
    DECLINED = "declined"
    FAILED = "failed"
    FAILED_FINAL = "failed_final"
    EXPIRED = "expired"


class Event(StrEnum):
    OPEN = "open"
    BEGIN = "begin"
    CLAIM = "claim"
    TAKE = "take"
    FINISH = "finish"
    DENY = "deny"
    FAIL = "fail"
    GIVE_UP = "give_up"
    EXHAUST = "exhaust"
    DECLINE = "decline"
    LAPSE = "lapse"
    EXPIRE = "expire"


@dataclass(frozen=True, slots=True)
class Step:
    """Where an event may happen, and where it leads."""

    sources: frozenset[Status]
    target: Status


_STARTABLE: Final = frozenset((Status.PENDING, Status.OPENED, Status.AUTHORIZING, Status.FAILED))
LIVE: Final = _STARTABLE | {Status.EXCHANGING}
"""The statuses in which a flow has a future."""

TABLE: Final[Mapping[Event, Step]] = {
    Event.OPEN: Step(frozenset((Status.PENDING,)), Status.OPENED),
    Event.BEGIN: Step(_STARTABLE, Status.AUTHORIZING),
    Event.CLAIM: Step(frozenset((Status.AUTHORIZING,)), Status.EXCHANGING),
    Event.TAKE: Step(_STARTABLE, Status.EXCHANGING),
    Event.FINISH: Step(frozenset((Status.EXCHANGING,)), Status.COMPLETED),
    Event.DENY: Step(frozenset((Status.EXCHANGING,)), Status.DENIED),
    Event.FAIL: Step(frozenset((Status.EXCHANGING,)), Status.FAILED),
    Event.GIVE_UP: Step(frozenset((Status.EXCHANGING,)), Status.FAILED_FINAL),
    Event.EXHAUST: Step(_STARTABLE, Status.FAILED_FINAL),
    Event.DECLINE: Step(LIVE, Status.DECLINED),
    Event.LAPSE: Step(frozenset((Status.EXCHANGING,)), Status.FAILED),
    Event.EXPIRE: Step(LIVE, Status.EXPIRED),
}

_BY_THE_STORE: Final = frozenset((Event.EXHAUST, Event.LAPSE, Event.EXPIRE))


def transition(
    event: Event, *, step: str, guards: Sequence[tuple[str, str]], writes: Mapping[str, str] | None = None
) -> Transition:
    """An event as the guarded compare-and-set that a store carries out. `step` is a fresh nonce."""
    if event in _BY_THE_STORE:
        raise ValueError(f"{event} is never sent: the store sees it by itself")
    row = TABLE[event]
    return Transition(
        step=step,
        sources=row.sources,
        target=row.target,
        guards=guards,
        writes=writes or {},
        attempt_cap=MAX_ATTEMPTS if event in (Event.BEGIN, Event.TAKE) else None,
    )


def standing(fields: Mapping[str, str], *, now: float) -> Status:
    """Where stored fields stand at this time. The stores apply the same rule inside `move`."""
    status = Status(fields["status"])
    if status is Status.EXCHANGING and not now < float(fields["lock_until"]):
        return TABLE[Event.LAPSE].target
    return status

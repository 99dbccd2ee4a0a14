"""A user's yes that is remembered: ask once, and not again for the same client and tool until it ends.

What a yes covers: one user, through one client, one tool, and the very terms that were shown; with `arguments`,
calls with these arguments alone. What ends it:
  - time. `approval="session"` is twelve hours from the question. MCP 2026-07-28 has no session, and an access
    token names no sign-in that outlives its refresh, so a working day stands for one; `timedelta` is anything
    up to 90 days.
  - the user, on the connections page, where every live yes is listed. A question that was asked before that
    moment cannot bring it back, however often its answer is repeated.
  - new terms: a tool that asks in other words, or for something else, asks again.
  - the loss of the store, or of the sealing key: then the user is asked once more.

Who can make one: a person, in a form that a client showed or on a page of ours. `Source` has no member for a
model that passes an answer on, so no fallback can.

Records are sealed for their user and place: one that is copied to another user, client, tool or argument does
not open, and counts as no yes. Times run from when the question was asked, which its sealed state says: an
answer that is shown again neither renews nor prolongs anything.
"""

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from hmac import compare_digest
from typing import Any, Final

from app import strict_json
from app.errors import ConfigurationError, SealRefused
from app.ports import ApprovalStore
from app.principal import Principal, User
from app.sealing import BlindIndex, Purpose, Seal, SealingKeys
from app.strict_json import JsonObject

SESSION: Final = 12 * 3600
"""Seconds of `approval="session"`."""
MAX_LIFETIME: Final = 90 * 86_400
MAX_PER_USER: Final = 100
"""Live ones of one user. Past it nothing is remembered, and the user is asked each time."""
MAX_AGE: Final = 3600
"""Seconds for which an answer may be shown again: the age of the oldest requestState that opens."""

_MARGIN: Final = 60
_SHOWN: Final = 200


class Source(StrEnum):
    """Where a person said yes."""

    FORM = "form"
    """A form that the client showed, answered under a requestState that verifies."""
    PAGE = "page"
    """A page of ours, in a browser where the user is signed in."""


@dataclass(frozen=True, slots=True)
class Permission:
    """What is asked for: to run a tool on any arguments, or on these.

    `terms` is a digest of what the user was shown about it.
    """

    tool: str
    terms: bytes
    arguments: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Approval:
    """A remembered yes, as its user may see it. `id` names it to withdraw it; times are in seconds."""

    id: str
    tool: str
    client_id: str
    arguments: str | None
    """Canonical JSON of what it is limited to, shortened for a page. None: any arguments."""
    source: Source
    since: int
    until: int
    _terms: str = field(repr=False)


class Approvals:
    """Every method raises Unavailable while the store is down: ask the user then, as if there were none.

    `max_age` is that of the requestState codec: for as long a withdrawal is remembered.
    """

    __slots__ = ("_index", "_max_age", "_seal", "_store")

    def __init__(self, store: ApprovalStore, keyring: SealingKeys, *, max_age: int = MAX_AGE) -> None:
        self._store = store
        self._max_age = max_age
        # The vault's purpose and its name of a user: what belongs to one user is in one place, forgotten at once.
        self._index = BlindIndex(keyring, Purpose.VAULT)
        self._seal = Seal(keyring, Purpose.VAULT)

    def check(self, principal: Principal, permission: Permission, *, now: float) -> Approval | None:
        """The live yes of this user to this, through this client."""
        id = self._id(principal, permission)
        approval = self._open(principal.user, id, self._store.look(self._user(principal.user), id), now=now)
        if approval is None or not compare_digest(approval._terms, _text(permission.terms)):
            return None
        return approval

    def remember(
        self, principal: Principal, permission: Permission, *, source: Source, lifetime: int, asked_at: int, now: float
    ) -> bool:
        """Keep a yes for `lifetime` seconds from `asked_at`, when the question was first asked.

        Take `asked_at` from the verified state. False: it is not kept (withdrawn since, over already, or the
        user has too many), and will be asked for again.
        """
        if not 0 < lifetime <= MAX_LIFETIME:
            raise ValueError(f"A yes is kept for 1 to {MAX_LIFETIME} seconds, not for {lifetime}")
        until = asked_at + lifetime
        if not now < until:
            return False
        id = self._id(principal, permission)
        claims = {
            "tool": permission.tool,
            "client": principal.client_id,
            "args": _shown(permission.arguments),
            "src": source.value,
            "iat": asked_at,
            "exp": until,
            "terms": _text(permission.terms),
        }
        sealed = self._seal.seal(claims, bound_to=_bound_to(principal.user, id))
        return self._store.keep(
            self._user(principal.user),
            id,
            sealed,
            asked_at=asked_at,
            expires_at=until,
            limit=MAX_PER_USER,
            now=now,
        )

    def list(self, user: User, *, now: float) -> list[Approval]:
        """Every live yes of a user, the newest first."""
        found = self._store.entries(self._user(user))
        opened = [self._open(user, id, sealed, now=now) for id, sealed in found.items()]
        return sorted((each for each in opened if each is not None), key=lambda each: (-each.since, each.id))

    def withdraw(self, user: User, id: str, *, now: float) -> bool:
        """End a yes, and keep what was asked before now from making it again. False: there was none."""
        until = int(now) + self._max_age + _MARGIN
        return self._store.withdraw(self._user(user), id, at=int(now), until=until)

    def _user(self, user: User) -> str:
        return self._index.of("user", user.issuer, user.subject)

    def _id(self, principal: Principal, permission: Permission) -> str:
        arguments = () if permission.arguments is None else (_digest(permission.arguments),)
        return self._index.of("approval", principal.client_id, permission.tool, *arguments)

    def _open(self, user: User, id: str, sealed: str | None, *, now: float) -> Approval | None:
        if sealed is None:
            return None
        try:
            approval = _approval(id, self._seal.open(sealed, bound_to=_bound_to(user, id)))
        except (SealRefused, KeyError, ValueError):
            return None
        return approval if now < approval.until else None


def lifetime_of(approval: object) -> int:
    """The seconds of `@tool(approval=...)`: "session" or a timedelta. Raises ConfigurationError for anything else."""
    if approval == "session":
        return SESSION
    if isinstance(approval, timedelta) and timedelta(seconds=1) <= approval <= timedelta(seconds=MAX_LIFETIME):
        return int(approval.total_seconds())
    raise ConfigurationError(
        [f'approval={approval!r} must be "session" or a timedelta of at most {MAX_LIFETIME // 86_400} days: change it.']
    )


def _bound_to(user: User, id: str) -> tuple[bytes, ...]:
    return b"approval", b"v1", user.issuer.encode(), user.subject.encode(), id.encode()


def _approval(id: str, claims: Mapping[str, Any]) -> Approval:
    return Approval(
        id=id,
        tool=claims["tool"],
        client_id=claims["client"],
        arguments=claims["args"],
        source=Source(claims["src"]),
        since=claims["iat"],
        until=claims["exp"],
        _terms=claims["terms"],
    )


def _digest(arguments: JsonObject) -> str:
    return hashlib.sha256(strict_json.canonical(arguments)).hexdigest()


def _shown(arguments: JsonObject | None) -> str | None:
    if arguments is None:
        return None
    text = strict_json.canonical(arguments).decode()
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _text(value: bytes) -> str:
    return urlsafe_b64encode(value).rstrip(b"=").decode()

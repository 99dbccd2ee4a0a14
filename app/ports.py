"""What the cores need from the world, as protocols. Verbs carry guarantees."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from app.http import HttpRequest, HttpResponse, TokenEndpointReply
from app.principal import AccessToken


class ResourceServer(Protocol):
    """Decides who may call (OAuth 2.1 resource server)."""

    def authenticate(self, request: HttpRequest, *, now: float) -> AccessToken:
        """The verified access token of a request. Raises AuthorizationError, or Unavailable while no key
        to verify with can be had.
        """
        ...

    def challenge(self, error: Exception) -> HttpResponse:
        """The response to an AuthorizationError or Unavailable that `authenticate` or a scope check raised."""
        ...


class DocumentSource(Protocol):
    """Fetches small JSON documents of an authorization server."""

    def fetch(self, url: str) -> object:
        """The parsed JSON at `url`, within a few seconds, without redirects, bounded in size.

        Raises Unavailable for anything else.
        """
        ...


class TokenEndpoint(Protocol):
    """Talks to an OAuth provider directly: its token, revocation and user information endpoints.

    Every request takes at most 5 seconds and 64 KiB, follows no redirect (3xx is a reply like any other)
    and uses no proxy settings. Raises Unavailable when there is no whole reply within these bounds.
    """

    def post(self, url: str, form: Mapping[str, str], headers: Mapping[str, str]) -> TokenEndpointReply:
        """POST a form (application/x-www-form-urlencoded, UTF-8). Sent once, never again by itself."""
        ...

    def get(self, url: str, headers: Mapping[str, str]) -> TokenEndpointReply:
        """GET a document, with the credentials that `headers` carry."""
        ...


@dataclass(frozen=True, slots=True)
class Transition:
    """One guarded step of a flow: it happens as a whole and at once, or not at all.

    `step` is a nonce of this attempt: the store that sees it again answers Moved again, so that a command
    which had to be sent twice counts once. `guards` are compared in their order, before the status.
    `attempt_cap` counts this step as an attempt; when that many were made already the status becomes
    `failed_final` instead, and the answer is Elsewhere.
    """

    step: str
    sources: frozenset[str]
    target: str
    guards: Sequence[tuple[str, str]] = ()
    writes: Mapping[str, str] = field(default_factory=dict)
    attempt_cap: int | None = None


@dataclass(frozen=True, slots=True)
class Moved:
    """The step was taken. `fields` is the flow after it."""

    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The step was not taken: this field is not what the caller presented. `status` is where the flow stands."""

    field: str
    status: str


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The step was not taken: the flow is not where the step starts."""

    status: str


@dataclass(frozen=True, slots=True)
class Gone:
    """There is no such flow, or not any more."""


class FlowStore(Protocol):
    """Keeps flows: a few text fields under an id, for a limited time. All of it is hashed or sealed.

    Raises Unavailable.
    """

    def create(self, flow_id: str, fields: Mapping[str, str], *, lifetime: int) -> None:
        """Keep a new flow for `lifetime` seconds. No later step makes it live longer."""
        ...

    def read(self, flow_id: str) -> Mapping[str, str] | None:
        """The fields of a flow, or None when there is none."""
        ...

    def move(self, flow_id: str, transition: Transition, *, now: float) -> Moved | Mismatch | Elsewhere | Gone:
        """Take a step if its guards hold and the flow stands at one of its sources.

        An `exchanging` flow whose `lock_until` is not after `now` stands at `failed`: whoever was
        exchanging is gone.
        """
        ...

    def delete(self, flow_id: str) -> None:
        """Forget a flow, if there is one."""
        ...


@dataclass(frozen=True, slots=True)
class VaultEntry:
    """A sealed record and its version, which no other record ever has."""

    version: str
    sealed: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class FlowPointer:
    """Where a user's flow for one client and one entry is: its id, and its handle under seal."""

    flow_id: str
    sealed_handle: str = field(repr=False)
    expires_at: int


@dataclass(frozen=True, slots=True)
class LockHeld:
    """Somebody else holds the lock."""


class VaultStore(Protocol):
    """Keeps what belongs to one user: sealed records by entry, locks on them, and pointers to open flows.

    `user` is a blind index, `entry` names a record ("provider:github"), `slot` is a blind index of client
    and entry. Raises Unavailable.
    """

    def look(self, user: str, entry: str, slot: str) -> tuple[VaultEntry | None, FlowPointer | None]:
        """A record and a pointer, in one round trip."""
        ...

    def entries(self, user: str) -> Mapping[str, VaultEntry]:
        """Every record of a user, by entry."""
        ...

    def put(self, user: str, entry: str, new: VaultEntry, *, replaces: str | None) -> bool:
        """Write a record if the present one has the version `replaces` (None: if there is none).

        False leaves everything as it is: somebody wrote or deleted in between.
        """
        ...

    def delete(self, user: str, entry: str, *, version: str) -> bool:
        """Delete a record if it still has this version."""
        ...

    def lock(self, user: str, entry: str, owner: str, *, seconds: int) -> VaultEntry | LockHeld | None:
        """Take the lock on an entry, and read the record under it. The lock ends by itself."""
        ...

    def unlock(self, user: str, entry: str, owner: str) -> None:
        """Release the lock, if `owner` still holds it."""
        ...

    def point(
        self, user: str, slot: str, pointer: FlowPointer, *, replaces: str | None, limit: int, now: float
    ) -> FlowPointer | None:
        """Make a slot point to a flow, unless it points to another one than `replaces` (a flow id) already.

        Returns the pointer that stands then: the given one or the winner's. None when the user has `limit`
        other open flows.
        """
        ...

    def settle(self, user: str, slot: str, flow_id: str) -> None:
        """The flow has ended: it stays visible in its slot, and no longer counts as open."""
        ...

    def unpoint(self, user: str, slot: str, flow_id: str) -> None:
        """Empty a slot, if it points to this flow."""
        ...


@dataclass(frozen=True, slots=True)
class Mark:
    """That somebody has begun an effect, and its result once there is one.

    `request` is a blind digest of what was asked for, `owner` a nonce of whoever runs it, until `lease_until`.
    """

    request: str
    owner: str
    lease_until: int
    sealed_result: str | None = field(default=None, repr=False)


class OnceStore(Protocol):
    """Keeps marks under blind names, each for a limited time. Raises Unavailable."""

    def open(self, name: str, *, lifetime: int) -> None:
        """Let there be a place for a mark, for `lifetime` seconds, unless there is one or a mark already."""
        ...

    def claim(self, name: str, mark: Mark, *, lifetime: int) -> Mark:
        """Write a mark for `lifetime` seconds if there is none: of many callers one does.

        Returns the mark that stands then: the given one, or the one that was there.
        """
        ...

    def take(self, name: str, mark: Mark, *, lifetime: int) -> Mark | None:
        """The same for a place that was opened. None, and nothing written, if it is not there (any more)."""
        ...

    def record(self, name: str, mark: Mark, *, lifetime: int) -> bool:
        """Write a mark with its result, unless one of another owner stands. The first result stays.

        A mark that is there keeps its lifetime; one that was lost is written anew. False: another owner's stands.
        """
        ...

    def release(self, name: str, owner: str) -> None:
        """Remove this owner's mark, if it has no result. A place that was opened stays, as long as the mark would."""
        ...


class ApprovalStore(Protocol):
    """Keeps what users allowed, sealed, under blind names of users and of what was allowed. Raises Unavailable."""

    def keep(
        self, user: str, name: str, sealed: str, *, asked_at: int, expires_at: int, limit: int, now: float
    ) -> bool:
        """Write a record until `expires_at`, in place of any that is there.

        False leaves everything as it is: the name was withdrawn at `asked_at` or later, or the user has
        `limit` other live records.
        """
        ...

    def look(self, user: str, name: str) -> str | None:
        """A record, or None when there is none or it was withdrawn. It may have expired."""
        ...

    def entries(self, user: str) -> Mapping[str, str]:
        """Every record of a user, by name. Some may have expired."""
        ...

    def withdraw(self, user: str, name: str, *, at: int, until: int) -> bool:
        """Delete a record, and remember until `until` that it was withdrawn `at` this time. False: there was none."""
        ...


class RateLimits(Protocol):
    """Counts under blind names, in sliding windows. Raises Unavailable."""

    def take(self, name: str, nonce: str, *, count: int, seconds: int, now: float) -> float | None:
        """Count one at `now`, if fewer than `count` were counted in the `seconds` before. None: it is counted.

        Otherwise nothing is counted, and the answer is when the oldest one leaves the window. The same
        `nonce` counts once.
        """
        ...

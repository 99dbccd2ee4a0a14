"""Flows in the store: made, found again, and moved. Sealing and hashing happen here, deciding in flow.py.

What a flow is about (its terms) is sealed once under the flow's id and never changes. Whoever can write to
the store can end a flow, or lose it; they cannot turn it into somebody else's.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import Any, Final, Literal

from app.errors import SealRefused
from app.oauth import flow as rules
from app.oauth import handles
from app.oauth.flow import Event, Status
from app.oauth.handles import Names
from app.ports import Elsewhere, FlowPointer, FlowStore, Gone, Mismatch, Moved, VaultStore
from app.principal import Principal, User
from app.sealing import Purpose, Seal, SealingKeys


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a flow is about. `entry` is the vault entry that it may write, `label` describes a secret."""

    principal: Principal
    entry: str
    scopes: frozenset[str] = frozenset()
    label: str = ""
    created: int

    @property
    def user(self) -> User:
        return self.principal.user


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow as it stands now."""

    flow_id: str
    status: Status
    terms: Terms
    attempts: int
    fields: Mapping[str, str] = field(repr=False)

    @property
    def is_live(self) -> bool:
        return self.status in rules.LIVE


@dataclass(frozen=True, slots=True)
class Standing:
    """A client's flow for an entry, with the handle that leads the user to it."""

    flow: Flow
    handle: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class TooManyFlows:
    """The user has as many open flows as we keep for one user."""


@dataclass(frozen=True, slots=True)
class NotMoved:
    """A step was not taken, and why. `status` is where the flow stands."""

    why: Literal["gone", "other", "stale", "elsewhere"]
    status: Status


_WHOSE: Final = frozenset(("principal", "session"))


class Flows:
    """All flows. Raises Unavailable while the store is down."""

    def __init__(
        self, flows: FlowStore, pointers: VaultStore, keyring: SealingKeys, names: Names, draw: Callable[[], str]
    ) -> None:
        self._flows = flows
        self._pointers = pointers
        self._seal = Seal(keyring, Purpose.FLOW)
        self._names = names
        self._draw = draw

    def start(self, terms: Terms, *, replaces: FlowPointer | None, now: float) -> str | TooManyFlows:
        """The handle of this client's one flow for an entry: a new one, or that of whoever was faster."""
        handle = self._draw()
        flow_id = handles.flow_id(handle)
        user, slot = self._user_and_slot(terms)
        fields = {
            "status": Status.PENDING.value,
            "principal": user,
            "attempts": "0",
            "terms": self._seal.seal(_claims(terms), bound_to=(b"flow", flow_id.encode())),
        }
        # The flow first, then the pointer to it: whoever finds a pointer finds a flow, or one that is over.
        self._flows.create(flow_id, fields, lifetime=rules.LIFETIME)
        sealed_handle = self._seal.seal({"handle": handle}, bound_to=_pointer_binding(user, slot, flow_id))
        standing = self._pointers.point(
            user,
            slot,
            FlowPointer(flow_id, sealed_handle, expires_at=int(now) + rules.LIFETIME),
            replaces=replaces.flow_id if replaces else None,
            limit=rules.MAX_LIVE_FLOWS,
            now=now,
        )
        if standing is not None and standing.flow_id == flow_id:
            if replaces is not None:
                self._flows.delete(replaces.flow_id)
            return handle
        self._flows.delete(flow_id)
        winner = self._handle(standing, user, slot) if standing is not None else None
        return TooManyFlows() if winner is None else winner

    def follow(self, pointer: FlowPointer | None, principal: Principal, entry: str, *, now: float) -> Standing | None:
        """The flow that a pointer leads to, or None: no pointer, no flow, or not this client's for this entry."""
        if pointer is None:
            return None
        slot = self._names.slot(principal.client_id, entry)
        handle = self._handle(pointer, self._names.user(principal.user), slot)
        flow = self.read(pointer.flow_id, now=now) if handle is not None else None
        return None if handle is None or flow is None else Standing(flow, handle)

    def read(self, flow_id: str, *, now: float) -> Flow | None:
        """A flow as it stands, or None: unknown, expired, or not sealed for this id."""
        fields = self._flows.read(flow_id)
        return None if fields is None else self._flow(flow_id, fields, now)

    def belongs_to(self, flow: Flow, user: User) -> bool:
        """Whether a flow was made for this user, whichever client asked."""
        return compare_digest(self._names.user(flow.terms.user), self._names.user(user))

    def move(
        self,
        flow_id: str,
        event: Event,
        *,
        now: float,
        user: User | None = None,
        session_id: str | None = None,
        state: str | None = None,
        owner: str | None = None,
        writes: Mapping[str, str] | None = None,
    ) -> Flow | NotMoved:
        """Take a step, if what the caller presents is what the flow was bound to, compared inside the store."""
        guards = [
            (name, value)
            for name, value in (
                ("principal", None if user is None else self._names.user(user)),
                ("session", None if session_id is None else handles.digest("session", session_id)),
                ("state", None if state is None else handles.digest("state", state)),
                ("owner", owner),
            )
            if value is not None
        ]
        step = rules.transition(event, step=self._draw(), guards=guards, writes=writes)
        match self._flows.move(flow_id, step, now=now):
            case Moved(fields):
                moved = self._flow(flow_id, fields, now)
                return NotMoved("gone", Status.EXPIRED) if moved is None else moved
            case Mismatch(name, status):
                return NotMoved("other" if name in _WHOSE else "stale", Status(status))
            case Elsewhere(status):
                return NotMoved("elsewhere", Status(status))
            case Gone():
                return NotMoved("gone", Status.EXPIRED)

    def begin(self, flow: Flow, user: User, *, session_id: str, now: float) -> tuple[str, str] | NotMoved:
        """Bind a flow to a browser session and to a fresh `state` and verifier, which are returned.

        What an earlier tab was given is worth nothing from here on.
        """
        state, verifier = handles.state(flow.flow_id, self._draw()), self._draw()
        bound_to = _verifier_binding(flow.flow_id, handles.digest("state", state))
        writes = {
            "session": handles.digest("session", session_id),
            "state": handles.digest("state", state),
            "verifier": self._seal.seal({"verifier": verifier}, bound_to=bound_to),
        }
        moved = self.move(flow.flow_id, Event.BEGIN, now=now, user=user, writes=writes)
        return moved if isinstance(moved, NotMoved) else (state, verifier)

    def take(
        self,
        event: Literal[Event.CLAIM, Event.TAKE],
        flow_id: str,
        user: User,
        *,
        now: float,
        session_id: str | None = None,
        state: str | None = None,
    ) -> tuple[Flow, str] | NotMoved:
        """Become the one owner of a flow, for `EXCHANGE_LOCK` seconds. Returns the flow and the owner's nonce."""
        owner = self._draw()
        writes = {"owner": owner, "lock_until": str(int(now) + rules.EXCHANGE_LOCK)}
        moved = self.move(flow_id, event, now=now, user=user, session_id=session_id, state=state, writes=writes)
        return moved if isinstance(moved, NotMoved) else (moved, owner)

    def verifier(self, flow: Flow) -> str:
        """The verifier of the attempt that was claimed. Raises SealRefused."""
        bound_to = _verifier_binding(flow.flow_id, flow.fields.get("state", ""))
        return str(self._seal.open(flow.fields.get("verifier"), bound_to=bound_to)["verifier"])

    def settle(self, flow: Flow) -> None:
        """The flow has ended: it no longer counts as open, and the tool will still find it."""
        user, slot = self._user_and_slot(flow.terms)
        self._pointers.settle(user, slot, flow.flow_id)

    def unpoint(self, flow: Flow) -> None:
        """The flow's end was reported: the next call makes a new one."""
        user, slot = self._user_and_slot(flow.terms)
        self._pointers.unpoint(user, slot, flow.flow_id)

    def _flow(self, flow_id: str, fields: Mapping[str, str], now: float) -> Flow | None:
        try:
            terms = _terms(self._seal.open(fields["terms"], bound_to=(b"flow", flow_id.encode())))
            status, attempts = rules.standing(fields, now=now), int(fields["attempts"])
        except (SealRefused, KeyError, TypeError, ValueError):
            return None
        # The store forgets it in the same second, or nearly: its clock is not ours.
        if not now < terms.created + rules.LIFETIME:
            return None
        return Flow(flow_id, status, terms, attempts, fields)

    def _handle(self, pointer: FlowPointer, user: str, slot: str) -> str | None:
        try:
            binding = _pointer_binding(user, slot, pointer.flow_id)
            return str(self._seal.open(pointer.sealed_handle, bound_to=binding)["handle"])
        except (SealRefused, KeyError):
            return None

    def _user_and_slot(self, terms: Terms) -> tuple[str, str]:
        return self._names.user(terms.user), self._names.slot(terms.principal.client_id, terms.entry)


def _pointer_binding(user: str, slot: str, flow_id: str) -> tuple[bytes, ...]:
    # A pointer moved to another user, client or entry does not open, so what it leads to is theirs.
    return b"pointer", user.encode(), slot.encode(), flow_id.encode()


def _verifier_binding(flow_id: str, state_digest: str) -> tuple[bytes, ...]:
    return b"verifier", flow_id.encode(), state_digest.encode()


def _claims(terms: Terms) -> Mapping[str, Any]:
    return {
        "iss": terms.principal.issuer,
        "sub": terms.principal.subject,
        "client_id": terms.principal.client_id,
        "entry": terms.entry,
        "scopes": sorted(terms.scopes),
        "label": terms.label,
        "created": terms.created,
    }


def _terms(claims: Mapping[str, Any]) -> Terms:
    return Terms(
        principal=Principal(claims["iss"], claims["sub"], claims["client_id"]),
        entry=claims["entry"],
        scopes=frozenset(claims["scopes"]),
        label=claims["label"],
        created=claims["created"],
    )

"""The vault: what users have connected and typed, sealed so that a record opens for its user alone.

The associated data names user and entry: a record copied to another user's key, or to another entry, does
not open, and counts as none. Every write is a compare-and-set on a version that no other record ever has,
so that whoever was slow cannot bring back what was deleted, or undo what is newer.

A record is read under any key of the ring and written under the current one; `reseal` moves what is in use
before an old key leaves. The store's names survive rotation (see `SealingKeys.pepper`).
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias, TypeVar

from app.errors import SealRefused, Unavailable
from app.oauth.handles import Names
from app.ports import FlowPointer, LockHeld, VaultEntry, VaultStore
from app.principal import User
from app.sealing import Purpose, Seal, SealingKeys

GRANTS: Final = "provider:"
TYPED: Final = "secret:"
"""Entries are a kind and a name: a grant of a provider, or a value that the user typed."""
REFRESH_LOCK: Final = 10
"""Seconds that a refresh may take. Its request takes 5 at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a provider granted, and which MCP clients the user lets use how much of it.

    `approved` maps a client to the scopes that the user saw when approving it. `expires_at` is None when
    the provider named no lifetime, `issued` is when the access token was.
    """

    access_token: str = field(repr=False)
    refresh_token: str | None = field(repr=False)
    expires_at: int | None
    scopes: frozenset[str]
    account: str | None
    approved: Mapping[str, frozenset[str]]
    created: int
    issued: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A value that the user typed, what we asked for in asking, and which MCP clients may cause its use."""

    value: str = field(repr=False)
    label: str
    approved: Mapping[str, frozenset[str]]
    created: int


Record: TypeAlias = Grant | Secret
R = TypeVar("R", bound=Record)


@dataclass(frozen=True, slots=True)
class Held:
    """What an entry holds. No version: nothing. A version and no record: something that does not open."""

    version: str | None
    record: Record | None
    sealed_by_current_key: bool = True


NOTHING: Final = Held(None, None)


class Vault:
    """The records of all users, in a store that can read none of them. Raises Unavailable."""

    def __init__(self, store: VaultStore, keyring: SealingKeys, names: Names, draw: Callable[[], str]) -> None:
        self._store = store
        self._seal = Seal(keyring, Purpose.VAULT)
        self._names = names
        self._draw = draw

    def look(self, user: User, entry: str, client_id: str) -> tuple[Held, FlowPointer | None]:
        """What an entry holds, and where this client's flow to it is: one round trip."""
        found, pointer = self._store.look(self._names.user(user), entry, self._names.slot(client_id, entry))
        return self._open(user, entry, found), pointer

    def read(self, user: User, entry: str) -> Held:
        """What an entry holds, whoever asks."""
        return self.look(user, entry, "")[0]

    def all(self, user: User) -> Mapping[str, Held]:
        """Everything that is kept for a user, by entry, in the order of the names."""
        found = self._store.entries(self._names.user(user))
        return {entry: self._open(user, entry, found[entry]) for entry in sorted(found)}

    def put(self, user: User, entry: str, record: Record, *, replaces: str | None) -> bool:
        """Write a record in place of that version. False: somebody was faster, nothing is changed.

        Raises ValueError for a record that is too large to seal.
        """
        sealed = self._seal.seal(_claims(record), bound_to=_bound_to(user, entry))
        new = VaultEntry(version=self._draw(), sealed=sealed)
        return self._store.put(self._names.user(user), entry, new, replaces=replaces)

    def reseal(self, user: User, entry: str, held: Held) -> None:
        """Write what was opened under a retired key once more under the current one. If not now, with the next use."""
        if held.record is not None and not held.sealed_by_current_key:
            with suppress(Unavailable):
                self.put(user, entry, held.record, replaces=held.version)

    def delete(self, user: User, entry: str, *, version: str) -> bool:
        """Delete that version. False: it is not there any more."""
        return self._store.delete(self._names.user(user), entry, version=version)

    def lock(self, user: User, entry: str, owner: str) -> Held | LockHeld:
        """Take the right to refresh an entry, and read it anew: what was read before may be outdated."""
        found = self._store.lock(self._names.user(user), entry, owner, seconds=REFRESH_LOCK)
        return found if isinstance(found, LockHeld) else self._open(user, entry, found)

    def unlock(self, user: User, entry: str, owner: str) -> None:
        self._store.unlock(self._names.user(user), entry, owner)

    def _open(self, user: User, entry: str, found: VaultEntry | None) -> Held:
        if found is None:
            return NOTHING
        try:
            record = _record(entry, self._seal.open(found.sealed, bound_to=_bound_to(user, entry)))
        except (SealRefused, KeyError, TypeError, ValueError, AttributeError):
            # Another user's, another entry's, damaged or of a lost key: all the same as not connected.
            return Held(found.version, None)
        return Held(found.version, record, self._seal.is_current(found.sealed))


def approve(record: R, client_id: str, scopes: frozenset[str]) -> R:
    """The record with one more approval of a client: what the user approved before stays."""
    approved = {**record.approved, client_id: record.approved.get(client_id, frozenset()) | scopes}
    return replace(record, approved=approved)


def is_approved(record: Record, client_id: str, scopes: frozenset[str]) -> bool:
    """Whether the user lets a client use this record for these scopes."""
    approved = record.approved.get(client_id)
    return approved is not None and scopes <= approved


def _bound_to(user: User, entry: str) -> tuple[bytes, ...]:
    return b"vault", b"v1", user.issuer.encode(), user.subject.encode(), entry.encode()


def _claims(record: Record) -> Mapping[str, Any]:
    common = {
        "approved_clients": {client: sorted(scopes) for client, scopes in record.approved.items()},
        "created": record.created,
    }
    match record:
        case Grant():
            return common | {
                "access": record.access_token,
                "refresh": record.refresh_token,
                "exp": record.expires_at,
                "iat": record.issued,
                "scopes": sorted(record.scopes),
                "account": record.account,
            }
        case Secret():
            return common | {"value": record.value, "label": record.label}


def _record(entry: str, claims: Mapping[str, Any]) -> Record:
    approved = {client: frozenset(scopes) for client, scopes in claims["approved_clients"].items()}
    if entry.startswith(TYPED):
        return Secret(value=claims["value"], label=claims["label"], approved=approved, created=claims["created"])
    return Grant(
        access_token=claims["access"],
        refresh_token=claims["refresh"],
        expires_at=claims["exp"],
        scopes=frozenset(claims["scopes"]),
        account=claims["account"],
        approved=approved,
        created=claims["created"],
        issued=claims["iat"],
    )

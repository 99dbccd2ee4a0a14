"""The MCP side of a connection: what a tool gets when it needs a third party, at once and without waiting.

The truth is in the vault: a grant that opens for this user, which this client was approved for. A flow says
only how far the user has come. So the vault is looked at first, and what a retry is answered follows from

    flow of this client          accept, or no answer        decline                  cancel
    live                         Pending, the same URL       declined, flow ends      cancelled, flow stays
    completed, vault opens       Connected                   declined, does not run   cancelled, does not run
    denied, declined, given up   Ended, reported once        declined                 Ended, reported once
    gone                         Pending, a new URL          declined                 cancelled

A pending retry and a connected call with a fresh token each take at most two round trips to the store.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

from app.errors import ConfigurationError
from app.oauth import handles
from app.oauth.disconnect import disconnect
from app.oauth.flow import Event, Status
from app.oauth.flows import Flow, Flows, Standing, Terms, TooManyFlows
from app.oauth.handles import Names
from app.oauth.provider import Provider
from app.oauth.refresh import Refresher, is_usable
from app.oauth.vault import GRANTS, TYPED, Grant, Held, Record, Secret, Vault, is_approved
from app.ports import FlowPointer, FlowStore, TokenEndpoint, VaultStore
from app.principal import Principal, User
from app.sealing import SealingKeys


@dataclass(frozen=True, slots=True)
class Connected:
    """The user is connected and has approved this client. The token is valid for some seconds at least."""

    access_token: str = field(repr=False)
    scopes: frozenset[str]
    account: str | None


@dataclass(frozen=True, slots=True)
class Stored:
    """The value that the user typed on our page."""

    value: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Pending:
    """The user has something to do in a browser, at this URL. It is the same until they have done it."""

    url: str


@dataclass(frozen=True, slots=True)
class Ended:
    """There will be no connection out of this call. `text` says so to the model, without any secret."""

    reason: Literal["declined", "cancelled", "denied", "failed"]
    text: str


Response: TypeAlias = Literal["accept", "decline", "cancel"]
MayStart: TypeAlias = Callable[[Principal, float], int | None]

_REPORTED_ONCE: Final = frozenset((Status.DENIED, Status.DECLINED, Status.FAILED_FINAL))


class Connections:
    """Every method answers at once, from any instance. Raises Unavailable while the store is down.

    `response` is the action of the verified answer to the URL question of an earlier round, or None.
    "accept" means that the user agreed to open the URL, never that they are done (client/elicitation).
    `base_url` is where our pages are; `draw` gives 43 fresh random characters; `may_start` says after how many
    seconds a principal may have another link, or None for now.
    """

    def __init__(
        self,
        flow_store: FlowStore,
        vault_store: VaultStore,
        endpoint: TokenEndpoint,
        *,
        keyring: SealingKeys,
        providers: Mapping[str, Provider],
        base_url: str,
        draw: Callable[[], str] = handles.draw,
        may_start: MayStart = lambda principal, now: None,
    ) -> None:
        names = Names(keyring)
        self._vault = Vault(vault_store, keyring, names, draw)
        self._flows = Flows(flow_store, vault_store, keyring, names, draw)
        self._refresher = Refresher(self._vault, endpoint, draw)
        self._endpoint = endpoint
        self._providers = providers
        self._base_url = base_url
        self._may_start = may_start

    def connect(
        self, principal: Principal, provider_name: str, *, scopes: Sequence[str], response: Response | None, now: float
    ) -> Connected | Pending | Ended:
        """A token for `scopes` of a provider (its configured ones if empty), or what the user has to do first.

        Raises ConfigurationError for a provider that is not configured.
        """
        provider = self._provider(provider_name)
        wanted = frozenset(scopes or provider.scopes)
        entry = GRANTS + provider_name
        held, pointer = self._vault.look(principal.user, entry, principal.client_id)
        if _covers(held.record, principal, wanted):
            if response in ("decline", "cancel"):
                return _ended_by(response, f"connecting {provider.title}")
            held = self._refresher.keep_fresh(principal.user, entry, provider, held, now=now)
        grant = held.record
        if isinstance(grant, Grant) and _covers(grant, principal, wanted):
            if is_usable(grant, now=now):
                self._vault.reseal(principal.user, entry, held)
                return Connected(grant.access_token, grant.scopes, grant.account)
            if grant.refresh_token is not None:
                return Ended("failed", f"The connection to {provider.title} could not be renewed just now. Try again.")
        terms = Terms(principal=principal, entry=entry, scopes=wanted, created=int(now))
        return self._ask(terms, f"connecting {provider.title}", held, pointer, response, now=now)

    def _provider(self, name: str) -> Provider:
        provider = self._providers.get(name)
        if provider is None:
            known = ", ".join(sorted(self._providers)) or "none"
            raise ConfigurationError(
                [
                    f"There is no provider {name!r}; configured here: {known}. Add it to MCP_PROVIDERS, as "
                    "docs/configuration.md shows, and start again."
                ]
            )
        return provider

    def secret(
        self, principal: Principal, name: str, *, label: str, response: Response | None, now: float
    ) -> Stored | Pending | Ended:
        """A value that the user types on our own page, which neither the client nor the model sees.

        `label` tells the user what to type.
        """
        entry = TYPED + name
        held, pointer = self._vault.look(principal.user, entry, principal.client_id)
        if isinstance(held.record, Secret) and is_approved(held.record, principal.client_id, frozenset()):
            if response in ("decline", "cancel"):
                return _ended_by(response, _typing(label))
            self._vault.reseal(principal.user, entry, held)
            return Stored(held.record.value)
        terms = Terms(principal=principal, entry=entry, label=label, created=int(now))
        return self._ask(terms, _typing(label), held, pointer, response, now=now)

    def disconnect(self, user: User, provider_name: str, *, now: float) -> bool:
        """Forget a connection, then revoke it at the provider as best we can. False: there was none."""
        return disconnect(self._vault, self._endpoint, self._providers, user, provider_name)

    def _ask(
        self,
        terms: Terms,
        what: str,
        held: Held,
        pointer: FlowPointer | None,
        response: Response | None,
        *,
        now: float,
    ) -> Pending | Ended:
        """What the user has to do, or did not do: the vault does not give what the tool needs."""
        standing = self._flows.follow(pointer, terms.principal, terms.entry, now=now)
        if response == "decline":
            if standing is not None:
                self._flows.move(standing.flow.flow_id, Event.DECLINE, now=now, user=terms.user)
                self._flows.unpoint(standing.flow)
            return _ended_by(response, what)
        if standing is not None and standing.flow.status in _REPORTED_ONCE:
            self._flows.unpoint(standing.flow)
            return _reported(standing.flow.status, what)
        if response == "cancel":
            return _ended_by(response, what)
        if standing is not None and standing.flow.is_live and _serves(standing.flow, terms):
            return Pending(self._url(standing.handle))
        missing = _not_granted(standing, terms, held.record)
        if standing is not None and missing:
            self._flows.unpoint(standing.flow)
            return Ended(
                "denied",
                f"After {what}, these scopes were not granted: {missing}. Go on without them, or ask the user.",
            )
        wait = self._may_start(terms.principal, now)
        if wait is not None:
            return Ended("failed", f"Too many links were made. Try again in {wait} seconds, before {what}.")
        wider = replace(terms, scopes=terms.scopes | _kept_scopes(standing, terms, held.record))
        handle = self._flows.start(wider, replaces=pointer, now=now)
        if isinstance(handle, TooManyFlows):
            return Ended("failed", f"Too many links wait for the user. They must finish or decline one before {what}.")
        return Pending(self._url(handle))

    def _url(self, handle: str) -> str:
        return f"{self._base_url}/connect/{handle}"


def _covers(record: Record | None, principal: Principal, wanted: frozenset[str]) -> bool:
    return isinstance(record, Grant) and wanted <= record.scopes and is_approved(record, principal.client_id, wanted)


def _serves(flow: Flow, terms: Terms) -> bool:
    """Whether what the user is doing gives what the tool needs. An exchange is left to finish, whatever it gives."""
    return terms.scopes <= flow.terms.scopes or flow.status is Status.EXCHANGING


def _not_granted(standing: Standing | None, terms: Terms, record: Record | None) -> str:
    """The scopes that the user was asked for in this flow and the provider left out, or "".

    Without this a user who unticks a scope would be sent to the provider again and again.
    """
    if standing is None or standing.flow.status is not Status.COMPLETED or not isinstance(record, Grant):
        return ""
    approved = is_approved(record, terms.principal.client_id, terms.scopes)
    return " ".join(sorted(terms.scopes - record.scopes)) if approved else ""


def _kept_scopes(standing: Standing | None, terms: Terms, record: Record | None) -> frozenset[str]:
    """What to ask for besides: a new grant takes the old one's place, and a new link that of an open one."""
    open_link = standing.flow.terms.scopes if standing is not None and standing.flow.is_live else frozenset()
    granted = record.scopes if isinstance(record, Grant) and not terms.scopes <= record.scopes else frozenset()
    return open_link | granted


def _typing(label: str) -> str:
    return f"giving the value asked for with {label!r}"


def _ended_by(response: Literal["decline", "cancel"], what: str) -> Ended:
    if response == "decline":
        return Ended("declined", f"The user declined {what}. Do not ask again unless they want it.")
    return Ended("cancelled", f"The user has not finished {what}. They can use the same link later.")


def _reported(status: Status, what: str) -> Ended:
    match status:
        case Status.DENIED:
            return Ended(
                "denied", f"The user said no to the provider while {what}. Do not ask again unless they want it."
            )
        case Status.DECLINED:
            return _ended_by("decline", what)
        case _:
            return Ended("failed", f"It failed too often: {what}. Call again for a new link.")

"""The browser side of a connection: what the pages show, decide and receive. The pages themselves are app.web's.

Who starts a flow must be who ends it: the user is compared on every page, and the browser session once more
at the callback, where a victim's browser would otherwise finish what an attacker began.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypeVar

from app import errors
from app.errors import SealRefused, Unavailable
from app.oauth import authorization_response, handles, token_response
from app.oauth import provider as requests
from app.oauth.authorization_response import AuthorizationResponse
from app.oauth.disconnect import disconnect
from app.oauth.errors import FlowEnded, FlowNotFound, FlowRefused, WrongUser
from app.oauth.flow import LIVE, MAX_ATTEMPTS, Event, Status
from app.oauth.flows import Flow, Flows, NotMoved
from app.oauth.handles import Names
from app.oauth.provider import Provider
from app.oauth.refresh import is_usable
from app.oauth.token_response import NoTokens, Tokens
from app.oauth.vault import GRANTS, TYPED, Grant, Held, Record, Secret, Vault, approve
from app.ports import FlowStore, TokenEndpoint, VaultStore
from app.principal import User
from app.sealing import SealingKeys

MAX_SECRET: Final = 4096
_MAX_SECRET_AS_JSON: Final = 12_000
T = TypeVar("T", bound=Record | None)

_TRIES: Final = 8
"""Writers of one entry who may be faster than us before we give up. A refresh is one."""


@dataclass(frozen=True, slots=True)
class Interstitial:
    """What the user must see before anything happens (client/elicitation, Phishing; security best practices).

    kind "connect": Approve leads to the provider, at `authorize_origins` (list them in the CSP's form-action).
    kind "consent": the user is connected already; Approve lets one more MCP client use the connection.
    kind "secret": the page has a field for the value, described by `label`; submit it to `store_secret`.
    `approve` serves the first two. `client_id` is what the client calls itself: show it as a claim.
    """

    kind: Literal["connect", "consent", "secret"]
    provider_title: str
    client_id: str
    scopes: tuple[str, ...]
    label: str
    authorize_origins: str


@dataclass(frozen=True, slots=True)
class Completed:
    """Connected. `account` is the provider's name for the account, if it told."""

    provider_title: str
    account: str | None


@dataclass(frozen=True, slots=True)
class Already:
    """This callback did its work before: the user reloaded the page. Nothing was exchanged."""

    provider_title: str


@dataclass(frozen=True, slots=True)
class Denied:
    """The user said no at the provider."""

    provider_title: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The callback proves nothing: answer `status` (400 or 403). `reason` is for the log. The flow is untouched."""

    status: Literal[400, 403]
    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The provider did not give a usable grant. `retryable`: the same link may be opened again."""

    provider_title: str
    retryable: bool
    reason: str
    """For the log."""


CallbackOutcome: TypeAlias = Completed | Already | Denied | Refused | Failed


@dataclass(frozen=True, slots=True)
class ConnectionInfo:
    """One line of the page on which users see and end their connections.

    `provider` is what `disconnect` takes: a provider's name, or "secret:<name>" for a value that the user
    typed. `created` is in seconds since the epoch.
    """

    provider: str
    title: str
    account: str | None
    scopes: tuple[str, ...]
    approved_clients: tuple[str, ...]
    created: int


class BrowserFlow:
    """Every method raises Unavailable while the store is down. `user` is who is signed in, in this browser.

    `view`, `approve`, `decline` and `store_secret` raise FlowNotFound, WrongUser and FlowEnded, in this
    order: who is not the flow's user learns nothing about it. `base_url` is where our pages are; `draw`
    gives 43 fresh random characters.
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
    ) -> None:
        names = Names(keyring)
        self._vault = Vault(vault_store, keyring, names, draw)
        self._flows = Flows(flow_store, vault_store, keyring, names, draw)
        self._endpoint = endpoint
        self._providers = providers
        self._base_url = base_url

    def view(self, handle: str, user: User, *, now: float) -> Interstitial:
        """What to show under /connect/{handle}. Changes nothing that matters: a reload is harmless."""
        flow = self._flow(handle, user, now)
        if flow.status is Status.PENDING:
            self._flows.move(flow.flow_id, Event.OPEN, now=now, user=user)
        consent = self._lacks_only_consent(flow, now)
        provider = self._provider(flow)
        return Interstitial(
            kind="consent" if consent else "connect" if provider else "secret",
            provider_title=provider.title if provider else flow.terms.label,
            client_id=flow.terms.principal.client_id,
            scopes=tuple(sorted(flow.terms.scopes)),
            label=flow.terms.label,
            authorize_origins=provider.authorize_origins if provider else "",
        )

    def approve(self, handle: str, user: User, *, session_id: str, now: float) -> str | Completed:
        """The user approved: the provider's authorization URL to redirect to (303), bound to this browser
        session, or Completed where consent was all that was missing.
        """
        flow = self._flow(handle, user, now)
        if self._lacks_only_consent(flow, now):
            return self._consent(flow, user, now)
        provider = self._provider(flow)
        if provider is None:
            # A secret is typed, not approved: there is nothing to start.
            raise FlowNotFound
        begun = self._flows.begin(flow, user, session_id=session_id, now=now)
        if isinstance(begun, NotMoved):
            if begun.status is Status.FAILED_FINAL:
                self._settle(flow)
            raise _refusal(begun)
        state, verifier = begun
        return requests.authorization_url(
            provider,
            redirect_uri=self._redirect_uri(provider),
            scopes=flow.terms.scopes,
            state=state,
            verifier=verifier,
        )

    def decline(self, handle: str, user: User, *, now: float) -> None:
        """The user said no on our page."""
        flow = self._flow(handle, user, now)
        moved = self._flows.move(flow.flow_id, Event.DECLINE, now=now, user=user)
        if isinstance(moved, NotMoved):
            raise _refusal(moved)
        self._settle(flow)

    def store_secret(self, handle: str, user: User, value: str, *, now: float) -> Completed:
        """Keep the value that the user typed: 1 to 4096 characters, fewer if most of them are not ASCII.

        Raises ValueError for any other length.
        """
        if not (1 <= len(value) <= MAX_SECRET and len(json.dumps(value)) <= _MAX_SECRET_AS_JSON):
            raise ValueError(f"the value must have 1 to {MAX_SECRET} characters: shorten it")
        flow = self._flow(handle, user, now)
        if not flow.terms.entry.startswith(TYPED):
            raise FlowNotFound

        def typed(_: Held) -> Record:
            kept = Secret(value=value, label=flow.terms.label, approved={}, created=int(now))
            return approve(kept, flow.terms.principal.client_id, frozenset())

        return self._complete_here(flow, user, typed, now)

    def callback(
        self,
        provider_name: str,
        query: Sequence[tuple[str, str]],
        user: User | None,
        *,
        session_id: str | None,
        now: float,
    ) -> CallbackOutcome:
        """The provider sent the browser back. `query` is every parameter as it came, duplicates included.

        At most one callback of an approval gets to exchange the code, whatever is sent how often.
        """
        path_provider = self._providers.get(provider_name)
        if path_provider is None:
            return Refused(400, "unknown_provider")
        try:
            response = AuthorizationResponse.read(query)
        except errors.Refused as refused:
            return Refused(400, refused.reason)
        if user is None or session_id is None:
            return Refused(403, "no_session")
        claimed = self._flows.take(
            Event.CLAIM, response.flow_id, user, session_id=session_id, state=response.state, now=now
        )
        if isinstance(claimed, NotMoved):
            if claimed.why == "other":
                return Refused(403, "other_user_or_session")
            if claimed.why == "elsewhere" and claimed.status is Status.COMPLETED:
                return Already(path_provider.title)
            return Refused(400, f"{claimed.why}_{claimed.status}")
        flow, owner = claimed
        if flow.terms.entry != GRANTS + provider_name:
            return self._fail(flow, owner, path_provider, "other_provider", now)
        # Before the error is looked at: an error of another issuer says nothing about this flow.
        if not authorization_response.comes_from(response, path_provider):
            return self._fail(flow, owner, path_provider, "iss", now)
        if response.denied:
            self._flows.move(flow.flow_id, Event.DENY, owner=owner, now=now)
            self._settle(flow)
            return Denied(path_provider.title)
        if response.code is None:
            return self._fail(flow, owner, path_provider, "authorization_error", now)
        return self._exchange(flow, owner, path_provider, response.code, now)

    def connections(self, user: User, *, now: float) -> list[ConnectionInfo]:
        """Everything that is kept for a user and opens."""
        found = self._vault.all(user)
        return [self._info(entry, held.record) for entry, held in found.items() if held.record is not None]

    def disconnect(self, user: User, provider_name: str, *, now: float) -> bool:
        """Forget a connection or a secret, then revoke it at the provider as best we can. False: there was none."""
        return disconnect(self._vault, self._endpoint, self._providers, user, provider_name)

    def _flow(self, handle: str, user: User, now: float) -> Flow:
        """The flow behind a link, if this user may still do something with it."""
        flow = self._flows.read(handles.flow_id(handle), now=now) if handles.is_handle(handle) else None
        if flow is None:
            raise FlowNotFound
        if not self._flows.belongs_to(flow, user):
            raise WrongUser
        if flow.status not in LIVE or flow.status is Status.EXCHANGING:
            raise FlowEnded(flow.status)
        if self._provider(flow) is None and not flow.terms.entry.startswith(TYPED):
            # The provider has left the configuration since.
            raise FlowNotFound
        return flow

    def _provider(self, flow: Flow) -> Provider | None:
        return self._providers.get(flow.terms.entry.removeprefix(GRANTS))

    def _redirect_uri(self, provider: Provider) -> str:
        # One for each provider: a code of one can then not be mistaken for another's (RFC 9700 section 4.4.2.2).
        return f"{self._base_url}/oauth/callback/{provider.name}"

    def _lacks_only_consent(self, flow: Flow, now: float) -> bool:
        match self._vault.read(flow.terms.user, flow.terms.entry).record:
            case Secret():
                return True
            case Grant() as grant:
                alive = grant.refresh_token is not None or is_usable(grant, now=now)
                return alive and flow.terms.scopes <= grant.scopes
            case None:
                return False

    def _consent(self, flow: Flow, user: User, now: float) -> Completed:
        def approved(held: Held) -> Record | None:
            return held.record and approve(held.record, flow.terms.principal.client_id, flow.terms.scopes)

        return self._complete_here(flow, user, approved, now)

    def _complete_here(self, flow: Flow, user: User, change: Callable[[Held], Record | None], now: float) -> Completed:
        """Complete a flow that needs no provider: once, whichever of two clicks comes first."""
        taken = self._flows.take(Event.TAKE, flow.flow_id, user, now=now)
        if isinstance(taken, NotMoved):
            raise _refusal(taken)
        flow, owner = taken
        record = self._write(flow, change)
        if record is None:
            # Disconnected between the page and the click: the link is good for connecting anew.
            self._flows.move(flow.flow_id, Event.FAIL, owner=owner, now=now, writes={"reason": "disconnected"})
            raise FlowEnded(Status.FAILED)
        return self._finish(flow, owner, record, now)

    def _exchange(self, flow: Flow, owner: str, provider: Provider, code: str, now: float) -> Completed | Failed:
        try:
            request = requests.code_request(
                provider, code=code, redirect_uri=self._redirect_uri(provider), verifier=self._flows.verifier(flow)
            )
            reply = self._endpoint.post(request.url, request.form, request.headers)
            tokens = token_response.read(reply, asked=flow.terms.scopes, now=now)
        except Unavailable:
            return self._fail(flow, owner, provider, "no_answer", now)
        except NoTokens as refused:
            return self._fail(flow, owner, provider, refused.reason, now)
        except SealRefused:
            return self._fail(flow, owner, provider, "verifier", now)
        account = self._account(provider, tokens)

        def granted(held: Held) -> Record:
            return _grant(flow, tokens, account, held, now)

        try:
            record = self._write(flow, granted)
        except ValueError:
            return self._fail(flow, owner, provider, "tokens_too_large", now)
        return self._finish(flow, owner, record, now)

    def _account(self, provider: Provider, tokens: Tokens) -> str | None:
        if provider.account_url is None:
            return None
        try:
            reply = self._endpoint.get(provider.account_url, requests.account_headers(tokens.access_token))
        except Unavailable:
            return None
        return token_response.read_account(reply, provider.account_claim)

    def _write(self, flow: Flow, change: Callable[[Held], T]) -> T:
        """Change what the flow's entry holds, on top of whatever is there when we get to write."""
        for _ in range(_TRIES):
            held = self._vault.read(flow.terms.user, flow.terms.entry)
            record = change(held)
            if record is None or self._vault.put(flow.terms.user, flow.terms.entry, record, replaces=held.version):
                return record
        raise Unavailable("the connection changes too quickly to write it", retry_after=5)

    def _finish(self, flow: Flow, owner: str, record: Record, now: float) -> Completed:
        # Not checked: the vault is written, and that is what counts. Time or the user may have been faster.
        self._flows.move(flow.flow_id, Event.FINISH, owner=owner, now=now)
        self._settle(flow)
        provider = self._provider(flow)
        account = record.account if isinstance(record, Grant) else None
        return Completed(provider.title if provider else flow.terms.label, account)

    def _fail(self, flow: Flow, owner: str, provider: Provider, reason: str, now: float) -> Failed:
        event = Event.FAIL if flow.attempts < MAX_ATTEMPTS else Event.GIVE_UP
        moved = self._flows.move(flow.flow_id, event, owner=owner, now=now, writes={"reason": reason})
        retryable = isinstance(moved, Flow) and moved.status is Status.FAILED
        if not retryable:
            self._settle(flow)
        return Failed(provider.title, retryable, reason)

    def _settle(self, flow: Flow) -> None:
        # The pointer ends by itself; what the user did must not look undone because it could not be moved.
        with suppress(Unavailable):
            self._flows.settle(flow)

    def _info(self, entry: str, record: Record) -> ConnectionInfo:
        name = entry.removeprefix(GRANTS)
        match record:
            case Grant():
                provider = self._providers.get(name)
                title, account, scopes = provider.title if provider else name, record.account, record.scopes
            case Secret():
                title, account, scopes = record.label, None, frozenset()
        return ConnectionInfo(
            provider=name,
            title=title,
            account=account,
            scopes=tuple(sorted(scopes)),
            approved_clients=tuple(sorted(record.approved)),
            created=record.created,
        )


def _grant(flow: Flow, tokens: Tokens, account: str | None, held: Held, now: float) -> Grant:
    """The grant to keep. What was approved for another account, or for one we cannot compare, is not carried over."""
    before = held.record
    same = before if isinstance(before, Grant) and account is not None and before.account == account else None
    grant = Grant(
        access_token=tokens.access_token,
        # A provider may send its refresh token with the first consent only.
        refresh_token=tokens.refresh_token or (same.refresh_token if same else None),
        expires_at=tokens.expires_at,
        issued=int(now),
        scopes=tokens.scopes,
        account=account,
        approved=same.approved if same else {},
        created=int(now),
    )
    return approve(grant, flow.terms.principal.client_id, flow.terms.scopes)


def _refusal(not_moved: NotMoved) -> FlowRefused:
    match not_moved.why:
        case "gone" | "stale":
            return FlowNotFound()
        case "other":
            return WrongUser()
        case "elsewhere":
            return FlowEnded(not_moved.status)

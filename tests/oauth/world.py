"""A world for the flow: two users, two clients, a provider that checks what it is given, and time by argument."""

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from app.adapters.memory_store import MemoryFlowStore, MemoryVaultStore
from app.errors import Unavailable
from app.http import TokenEndpointReply
from app.oauth import pkce
from app.oauth.browser import BrowserFlow, CallbackOutcome, Completed
from app.oauth.connections import Connected, Connections, Ended, Pending, Response, Stored
from app.oauth.provider import Provider
from app.ports import FlowStore, VaultStore
from app.principal import Principal
from app.sealing import Key, Keyring

START = 1_800_000_000.0
BASE = "https://mcp.example.com"
ISSUER = "https://login.example.com"
ALICE = Principal(ISSUER, "alice-subject", "https://client-one.example/metadata.json")
ALICE_ELSEWHERE = ALICE._replace(client_id="https://client-two.example/metadata.json")
BOB = Principal(ISSUER, "bob-subject", ALICE.client_id)
KEYRING = Keyring(current=Key(1, bytes(range(32))))

ACME = Provider(
    name="acme",
    title="Acme",
    client_id="roundtrip",
    client_secret="acme-client-secret",
    authorize_url="https://id.acme.example/authorize",
    token_url="https://id.acme.example/token",
    revocation_url="https://id.acme.example/revoke",
    issuer="https://id.acme.example",
    iss_required=True,
    scopes=("read",),
    account_url="https://id.acme.example/userinfo",
    account_claim="email",
)
OTHER = replace(
    ACME,
    name="other",
    title="Other",
    authorize_url="https://other.example/authorize",
    token_url="https://other.example/token",
    issuer="https://other.example",
)
PROVIDERS = {"acme": ACME, "other": OTHER}


def reply(document: Any, status: int = 200) -> TokenEndpointReply:
    return TokenEndpointReply(status, "application/json", json.dumps(document).encode())


@dataclass
class FakeProvider:
    """A provider of the careful kind, and a ports.TokenEndpoint to it. It notes every secret it hands out."""

    expires_in: int | None = 3600
    account: str | None = "alice@acme.example"
    rotates: bool = True
    grants: Callable[[str], str] = lambda asked: asked
    on_token: Callable[[Mapping[str, str]], TokenEndpointReply | None] = lambda form: None
    posts: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)
    _codes: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    _refresh_tokens: dict[str, str] = field(default_factory=dict)
    _count: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def consent(self, url: str, *, error: str | None = None) -> list[tuple[str, str]]:
        """The user follows an authorization URL and approves: the query that comes back."""
        asked = dict(parse_qsl(urlsplit(url).query, strict_parsing=True))
        assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
        issuer = f"https://{urlsplit(url).netloc}"
        if error is not None:
            return [("error", error), ("state", asked["state"]), ("iss", issuer)]
        code = self._new("code")
        with self._lock:
            self._codes[code] = (asked["code_challenge"], asked["redirect_uri"], asked.get("scope", ""))
        self.secrets.append(asked["state"])
        return [("code", code), ("state", asked["state"]), ("iss", issuer)]

    def post(self, url: str, form: Mapping[str, str], headers: Mapping[str, str]) -> TokenEndpointReply:
        with self._lock:
            self.posts.append((url, form))
        if url.endswith("/revoke"):
            self._refresh_tokens.pop(form["token"], None)
            return TokenEndpointReply(200, "", b"")
        special = self.on_token(form)
        if special is not None:
            return special
        if form["grant_type"] == "authorization_code":
            with self._lock:
                found = self._codes.pop(form["code"], None)
            if found is None or (pkce.challenge(form["code_verifier"]), form["redirect_uri"]) != found[:2]:
                return reply({"error": "invalid_grant"}, 400)
            self.secrets.append(form["code_verifier"])
            return self._tokens(found[2])
        with self._lock:
            scope = self._refresh_tokens.get(form["refresh_token"])
            if scope is None:
                return reply({"error": "invalid_grant"}, 400)
            if self.rotates:
                del self._refresh_tokens[form["refresh_token"]]
        return self._tokens(scope)

    def get(self, url: str, headers: Mapping[str, str]) -> TokenEndpointReply:
        known = headers["authorization"].removeprefix("Bearer ") in self.secrets
        return reply({"email": self.account}) if known else reply({"error": "invalid_token"}, 401)

    def forget_everything(self) -> None:
        """The user withdraws the grant at the provider."""
        self._refresh_tokens.clear()

    def requests(self, kind: str) -> int:
        """How many requests of a grant type, or to "revoke", were made."""
        return sum(form.get("grant_type") == kind or url.endswith(f"/{kind}") for url, form in self.posts)

    def _tokens(self, asked: str) -> TokenEndpointReply:
        scope = self.grants(asked)
        tokens: dict[str, Any] = {"access_token": self._new("access"), "token_type": "Bearer", "scope": scope}
        if self.expires_in is not None:
            tokens |= {"refresh_token": self._new("refresh"), "expires_in": self.expires_in}
            self._refresh_tokens[tokens["refresh_token"]] = scope
        return reply(tokens)

    def _new(self, kind: str) -> str:
        with self._lock:
            self._count += 1
            made = f"{kind}-{self._count}-of-the-provider"
            self.secrets.append(made)
        return made


class World:
    """Everything that a story needs. Each call is served by an instance of its own: nothing is kept in one."""

    def __init__(
        self,
        flows: FlowStore | None = None,
        vault: VaultStore | None = None,
        *,
        keyring: Keyring = KEYRING,
        providers: Mapping[str, Provider] = PROVIDERS,
    ) -> None:
        self.now = START
        self.flows: FlowStore = flows or MemoryFlowStore(lambda: self.now)
        self.vault: VaultStore = vault or MemoryVaultStore(lambda: self.now)
        self.keyring = keyring
        self.providers = providers
        self.provider = FakeProvider()

    @property
    def connections(self) -> Connections:
        return Connections(
            self.flows,
            self.vault,
            self.provider,
            keyring=self.keyring,
            providers=self.providers,
            base_url=BASE,
        )

    @property
    def browser(self) -> BrowserFlow:
        return BrowserFlow(
            self.flows,
            self.vault,
            self.provider,
            keyring=self.keyring,
            providers=self.providers,
            base_url=BASE,
        )

    def call(
        self,
        principal: Principal = ALICE,
        *,
        provider: str = "acme",
        scopes: tuple[str, ...] = (),
        response: Response | None = None,
    ) -> Connected | Pending | Ended:
        """A tool call that needs the provider, or its retry."""
        return self.connections.connect(principal, provider, scopes=scopes, response=response, now=self.now)

    def ask(self, name: str = "api_key", principal: Principal = ALICE, **changes: Any) -> Stored | Pending | Ended:
        """A tool call that needs a secret, or its retry."""
        asked: dict[str, Any] = {"label": "Stripe API key", "response": None, **changes}
        return self.connections.secret(principal, name, now=self.now, **asked)

    def handle(self, outcome: object = None, **called: Any) -> str:
        """The handle in a question."""
        outcome = outcome or self.call(**called)
        assert isinstance(outcome, Pending), outcome
        assert outcome.url.startswith(f"{BASE}/connect/")
        return outcome.url.removeprefix(f"{BASE}/connect/")

    def approve(self, handle: str, who: Principal = ALICE, session: str = "session-a") -> str:
        """The user approves on our page: where they are sent."""
        url = self.browser.approve(handle, who.user, session_id=session, now=self.now)
        assert isinstance(url, str), url
        return url

    def back(
        self,
        query: list[tuple[str, str]],
        who: Principal | None = ALICE,
        session: str | None = "session-a",
        provider: str = "acme",
    ) -> CallbackOutcome:
        """The provider sends the browser back."""
        user = who.user if who else None
        return self.browser.callback(provider, query, user, session_id=session, now=self.now)

    def connect(self, principal: Principal = ALICE, **called: Any) -> Connected:
        """The whole loop, to a token."""
        url = self.approve(self.handle(principal=principal, **called), principal)
        outcome = self.back(self.provider.consent(url), principal)
        assert isinstance(outcome, Completed), outcome
        connected = self.call(principal, **called, response="accept")
        assert isinstance(connected, Connected), connected
        return connected

    def status(self, handle: str) -> str:
        """Where the flow of a handle stands in the store."""
        from app.oauth.handles import flow_id

        fields = self.flows.read(flow_id(handle))
        return fields["status"] if fields else "gone"


def no_answer(form: Mapping[str, str]) -> TokenEndpointReply:
    """A provider that does not answer in time."""
    raise Unavailable("timeout", retry_after=5)

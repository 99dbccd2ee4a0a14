"""The browser side in one process: our pages over HTTPS, real services, memory stores, two servers of values."""

import asyncio
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import cycle
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2
from starlette.types import ASGIApp, Receive, Scope, Send

from app.adapters.memory_effects import MemoryApprovalStore
from app.adapters.memory_sessions import MemoryLogins, MemorySessions
from app.adapters.memory_store import MemoryFlowStore, MemoryVaultStore
from app.effects.approvals import SESSION, Approvals, Permission, Source
from app.errors import Unavailable
from app.http import HttpRequest, HttpResponse, TokenEndpointReply
from app.oauth import pkce
from app.oauth.browser import BrowserFlow
from app.oauth.connections import Connected, Connections, Ended, Pending, Stored
from app.oauth.id_token import IdTokenRules
from app.oauth.provider import Provider
from app.oauth.server_metadata import MetadataCache
from app.oauth.sessions import Sessions, SessionStore
from app.oauth.sign_in import LoginStore, OpenIdConnect, SignIn, SignInClient
from app.ports import FlowStore, VaultStore
from app.principal import Principal
from app.sealing import Key, Keyring
from app.strict_json import canonical
from app.web.application import create_app
from app.web.browser_pages import BrowserPages
from tests.oauth.authorization_server import ISSUER, METADATA_URL, TOKEN_URL, AuthorizationServer

NOW = 1_790_000_000.0
ORIGIN = "https://mcp.example.com"
CLIENT_ID = "https://desk.example/client.json"
ALICE = Principal(ISSUER, "alice", CLIENT_ID)
BOB = Principal(ISSUER, "bob", CLIENT_ID)
PROVIDER_ORIGIN = "https://notes.example"
NOTES = Provider(
    name="notes",
    title="Notes",
    client_id="roundtrip",
    client_secret="provider-s3cret",
    authorize_url=f"{PROVIDER_ORIGIN}/authorize",
    token_url=f"{PROVIDER_ORIGIN}/token",
    revocation_url=f"{PROVIDER_ORIGIN}/revoke",
    issuer=PROVIDER_ORIGIN,
    iss_required=True,
    account_url=f"{PROVIDER_ORIGIN}/me",
    account_claim="login",
    scopes=("notes:read",),
)
OTHER = Provider(
    name="other",
    title="Other",
    client_id="roundtrip",
    authorize_url="https://other.example/authorize",
    token_url="https://other.example/token",
)

PROVIDERS = {NOTES.name: NOTES, OTHER.name: OTHER}
KEYRING = Keyring(current=Key(1, bytes(range(32))))


class Clock:
    """Time for everybody."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@dataclass
class NotesProvider:
    """A third party of values. `authorize` is the browser's part: from an authorization URL to the callback's."""

    account: str = "al"
    reply: TokenEndpointReply | None = None
    exchanges: list[Mapping[str, str]] = field(default_factory=list)
    revoked: list[str] = field(default_factory=list)
    access_tokens: list[str] = field(default_factory=list)
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def authorize(self, url: str, **changes: str | None) -> str:
        """Where the browser is sent back to. `changes` replace parameters; None leaves one out."""
        asked = dict(parse_qsl(urlsplit(url).query))
        code = secrets.token_urlsafe(16)
        self._codes[code] = asked
        answer: dict[str, str | None] = {"code": code, "state": asked["state"], "iss": PROVIDER_ORIGIN, **changes}
        query = urlencode({name: value for name, value in answer.items() if value is not None})
        return f"{asked['redirect_uri']}?{query}"

    def post(self, url: str, form: Mapping[str, str], headers: Mapping[str, str]) -> TokenEndpointReply:
        if url.endswith("/revoke"):
            self.revoked.append(form["token"])
            return TokenEndpointReply(200, "", b"")
        self.exchanges.append(form)
        if self.reply is not None:
            return self.reply
        asked = self._codes.pop(form["code"], None)
        if (
            asked is None
            or asked["redirect_uri"] != form["redirect_uri"]
            or asked["code_challenge"] != pkce.challenge(form["code_verifier"])
        ):
            return TokenEndpointReply(400, "application/json", b'{"error":"invalid_grant"}')
        self.access_tokens.append(secrets.token_urlsafe(32))
        tokens = {
            "access_token": self.access_tokens[-1],
            "refresh_token": secrets.token_urlsafe(32),
            "token_type": "bearer",
            "expires_in": 3600,
            "scope": asked.get("scope", ""),
        }
        return TokenEndpointReply(200, "application/json", canonical(tokens))

    def get(self, url: str, headers: Mapping[str, str]) -> TokenEndpointReply:
        return TokenEndpointReply(200, "application/json", canonical({"login": self.account}))


@dataclass(frozen=True)
class Stores:
    """Where everything is kept."""

    sessions: SessionStore
    logins: LoginStore
    flows: FlowStore
    vault: VaultStore


class World:
    """Alice, Bob and Mallory meet here. Every request goes to the next of several instances, which share the
    stores and nothing else.
    """

    def __init__(
        self,
        base_url: str = ORIGIN,
        *,
        instances: int = 2,
        stores: Stores | None = None,
        sign_in: Callable[[LoginStore], SignIn] | None = None,
        now: float = NOW,
    ) -> None:
        self.clock = Clock(now)
        self.issuer = AuthorizationServer(now=NOW)
        self.provider = NotesProvider()
        self.log: list[dict[str, Any]] = []
        self.base_url = base_url
        self.memory = MemorySessions(self.clock), MemoryLogins(self.clock)
        self.stores = stores or Stores(*self.memory, MemoryFlowStore(self.clock), MemoryVaultStore(self.clock))
        self.connections = Connections(
            self.stores.flows, self.stores.vault, self, keyring=KEYRING, providers=PROVIDERS, base_url=base_url
        )
        self.approvals = Approvals(MemoryApprovalStore(), KEYRING)
        self._sign_in = sign_in or self._sign_in_at_values
        self.pages = [self._pages() for _ in range(instances)]
        self._apps = cycle([create_app(self._mcp, self._log, pages, clock=self.clock) for pages in self.pages])

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The next instance, as an ASGI application."""
        await next(self._apps)(scope, receive, send)

    def _sign_in_at_values(self, logins: LoginStore) -> SignIn:
        return SignIn(
            client=SignInClient("web", f"{self.base_url}/auth/callback", "s3cret"),
            metadata=MetadataCache(self.issuer, issuer=ISSUER, locations=[METADATA_URL]),
            tokens=self,
            identification=OpenIdConnect(IdTokenRules(ISSUER, "web"), self.issuer.verified_claims),
            logins=logins,
            keyring=KEYRING,
            random_text=lambda: secrets.token_urlsafe(32),
        )

    def _pages(self) -> BrowserPages:
        return BrowserPages(
            base_url=self.base_url,
            server_name="Example desk",
            flow=BrowserFlow(
                self.stores.flows,
                self.stores.vault,
                self,
                keyring=KEYRING,
                providers=PROVIDERS,
                base_url=self.base_url,
            ),
            sign_in=self._sign_in(self.stores.logins),
            sessions=Sessions(self.stores.sessions, KEYRING),
            approvals=self.approvals,
            keyring=KEYRING,
            scope_descriptions={"notes:read": "Read your notes"},
        )

    def post(self, url: str, form: Mapping[str, str], headers: Mapping[str, str]) -> TokenEndpointReply:
        """Implements ports.TokenEndpoint for both servers."""
        if url == TOKEN_URL:
            return self.issuer.post(url, form, headers)
        return self.provider.post(url, form, headers)

    def get(self, url: str, headers: Mapping[str, str]) -> TokenEndpointReply:
        """Implements ports.TokenEndpoint."""
        return self.provider.get(url, headers)

    def advance(self, seconds: float) -> None:
        """Let time pass, for the issuer too."""
        self.clock.now += seconds
        self.issuer.now = self.clock.now

    def connect(
        self, principal: Principal = ALICE, provider: str = "notes", response: Any = None
    ) -> Connected | Pending | Ended:
        """What a tool gets that needs the provider."""
        return self.connections.connect(principal, provider, scopes=(), response=response, now=self.clock.now)

    def link(self, principal: Principal = ALICE, provider: str = "notes") -> str:
        """The path of a link for a new connection."""
        pending = self.connect(principal, provider)
        assert isinstance(pending, Pending)
        return pending.url.removeprefix(urlsplit(self.base_url)._replace(path="").geturl())

    def allow(self, principal: Principal = ALICE, tool: str = "reply", arguments: Any = None) -> None:
        """Let a user have said yes to a tool, in a form that a client showed."""
        now = self.clock.now
        permission = Permission(tool, b"terms", arguments)
        assert self.approvals.remember(
            principal, permission, source=Source.FORM, lifetime=SESSION, asked_at=int(now), now=now
        )

    def is_allowed(self, principal: Principal = ALICE, tool: str = "reply", arguments: Any = None) -> bool:
        """Whether the tool runs without a question."""
        permission = Permission(tool, b"terms", arguments)
        return self.approvals.check(principal, permission, now=self.clock.now) is not None

    def secret(self, principal: Principal = ALICE) -> Stored | Pending | Ended:
        """What a tool gets that needs a value typed by the user."""
        return self.connections.secret(principal, "api_key", label="Stripe API key", response=None, now=self.clock.now)

    def secret_link(self, principal: Principal = ALICE) -> str:
        """The path of a link for a value to type."""
        pending = self.secret(principal)
        assert isinstance(pending, Pending)
        return pending.url.removeprefix(ORIGIN)

    def browser(self, user: str | None = None) -> "Browser":
        """A new browser profile, in which `user` has signed in."""
        browser = Browser(self)
        if user is not None:
            browser.open("/connections", user=user)
        return browser

    def break_sessions(self) -> None:
        """The store of the sessions is gone from now on."""

        def unavailable(*_: object, **__: object) -> Any:
            raise Unavailable("redis: ConnectionError", retry_after=2)

        self.memory[0].get = unavailable  # type: ignore[method-assign]

    def _mcp(self, request: HttpRequest, **_: object) -> HttpResponse:
        return HttpResponse(404, {"content-type": "application/json"}, b'{"error":"not_found"}')

    def _log(self, response: HttpResponse, **_: object) -> None:
        self.log.append({"status": response.status, **response.facts})


@dataclass
class Form:
    """A form of a page: where it goes, and its hidden fields."""

    action: str
    fields: dict[str, str] = field(default_factory=dict)


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Form] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.found.append(Form(values["action"]))
        elif tag == "input" and values.get("type") == "hidden":
            self.found[-1].fields[values["name"]] = values["value"]


def form_of(page: httpx2.Response, action: str) -> Form:
    """The form of a page whose action ends like this."""
    parser = _Forms()
    parser.feed(page.text)
    return next(form for form in parser.found if form.action.endswith(action))


def heading(page: httpx2.Response) -> str:
    """What the page says first."""
    found = re.search(r"<h1>(.*?)</h1>", page.text, re.DOTALL)
    assert found, page.text
    return found[1].strip()


class _InProcess(httpx2.BaseTransport):
    """Each request on a loop of its own: a tenth of the time that a portal to another thread takes."""

    def __init__(self, app: ASGIApp) -> None:
        self._transport = httpx2.ASGITransport(app=app)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        async def handle() -> httpx2.Response:
            response = await self._transport.handle_async_request(request)
            return httpx2.Response(response.status_code, headers=response.headers.raw, content=await response.aread())

        return asyncio.run(handle())


class Browser:
    """One browser profile, over HTTPS: it sends what browsers send with a navigation and with a form."""

    def __init__(self, world: World) -> None:
        self._world = world
        parts = urlsplit(world.base_url)
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.http = httpx2.Client(transport=_InProcess(world.app), base_url=self.origin)

    def get(self, path: str, **headers: str) -> httpx2.Response:
        """Navigate somewhere at our site, without any redirect."""
        return self.http.get(path, headers=headers)

    def open(self, path: str, *, user: str = "alice") -> httpx2.Response:
        """Navigate, and sign in as `user` when asked to."""
        response = self.get(path)
        if response.headers.get("location", "").startswith(ISSUER):
            query = self._world.issuer.sign_in(response.headers["location"], user)
            response = self.get(f"/auth/callback?{urlencode(query)}")
            assert response.status_code == 303, response.text
            response = self.get(response.headers["location"])
        return response

    def post(self, path: str, data: Mapping[str, str] | None = None, **headers: str) -> httpx2.Response:
        """Send a form like a page of ours would; headers replace or, empty, remove what browsers send."""
        sent = {"origin": self.origin, "sec-fetch-site": "same-origin"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self.http.post(path, data=data or {}, headers={name: value for name, value in sent.items() if value})

    def submit(self, page: httpx2.Response, action: str, **fields: str) -> httpx2.Response:
        """Press the button of a form on a page."""
        form = form_of(page, action)
        return self.post(form.action, {**form.fields, **fields})

    def approve(self, link: str, *, user: str = "alice") -> str:
        """Open a link and approve. Returns the provider's authorization URL."""
        response = self.submit(self.open(link, user=user), "/start")
        assert response.status_code == 303, response.text
        return response.headers["location"]

    def finish(self, link: str, *, user: str = "alice") -> httpx2.Response:
        """Open a link, approve on our page and at the provider. Returns the response to the callback."""
        return self.get(self._world.provider.authorize(self.approve(link, user=user)))

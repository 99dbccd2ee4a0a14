"""For your own tests: the whole MCP function in this process, with users, answers and a clock to move.

    server = Server([delete_report])
    alice = server.client("alice", answers={"confirm": accept(confirm=True)})
    assert alice.call("delete_report", {"target": "Q3"}).text == "The report Q3 is deleted."

Everything between the HTTP request and the tool is the real thing: token verification, the checks, the
seal. Requests go round robin over `instances`, which share nothing but the sealing keys.
"""

import base64
import itertools
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, TypeAlias

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

from app.adapters.alarm import ring_at
from app.adapters.memory_effects import MemoryApprovalStore, MemoryOnceStore, MemoryRateLimits
from app.adapters.memory_store import MemoryFlowStore, MemoryVaultStore
from app.connection_settings import are_asks_limited, read_limits
from app.effects.approvals import Approval, Approvals
from app.effects.effects import Effects
from app.effects.limits import Kind, Limited, Limits
from app.effects.once import Once
from app.errors import ConfigurationError, Unavailable
from app.http import HttpRequest, HttpResponse, TokenEndpointReply
from app.oauth import handles
from app.oauth.connections import Connections
from app.oauth.handles import Names
from app.oauth.provider import Provider
from app.oauth.vault import GRANTS, TYPED, Grant, Secret, Vault
from app.principal import Principal, User
from app.protocol import messages
from app.protocol.features import Features
from app.sealing import Key, Keyring
from app.settings import LOCAL, Settings
from app.strict_json import JsonObject
from app.wiring.mcp import McpFunction

RESOURCE: Final = "https://mcp.example.com/mcp"
ISSUER: Final = "https://login.example.com"
CLIENT_ID: Final = "https://client.example.com/client.json"
FORMS: Final[JsonObject] = {"elicitation": {"form": {}}}
FORMS_AND_URLS: Final[JsonObject] = {"elicitation": {"form": {}, "url": {}}}

OnElicitation: TypeAlias = Callable[[str, JsonObject], JsonObject]


def accept(**content: Any) -> JsonObject:
    """The user submits the form with this content."""
    return {"action": "accept", "content": content}


def encode_header_value(text: str) -> str:
    """A text as the value of `Mcp-Name` or `Mcp-Param-*` (Streamable HTTP, Value Encoding)."""
    plain = text.isascii() and text.isprintable() and text == text.strip() and not text.startswith("=?base64?")
    return text if plain else f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def decline() -> JsonObject:
    """The user says no."""
    return {"action": "decline"}


def cancel() -> JsonObject:
    """The user dismisses the question."""
    return {"action": "cancel"}


class Clock:
    """Seconds since the epoch, as a test wants them."""

    def __init__(self, now: float = 1_790_000_000) -> None:
        self.now = now

    def advance(self, seconds: float) -> None:
        self.now += seconds


class Issuer:
    """An authorization server that is a key, its documents, and a count of how often they were fetched."""

    def __init__(self, clock: Clock, *, issuer: str = ISSUER, audience: str = RESOURCE) -> None:
        self.issuer = issuer
        self.audience = audience
        self.fetched: list[str] = []
        self.documents: dict[str, object] = {}
        self._clock = clock
        self._key = ec.generate_private_key(ec.SECP256R1())
        jwk = json.loads(jwt.get_algorithm_by_name("ES256").to_jwk(self._key.public_key()))
        self.documents[f"{issuer}/.well-known/oauth-authorization-server"] = {
            "issuer": issuer,
            "jwks_uri": f"{issuer}/jwks",
        }
        self.documents[f"{issuer}/jwks"] = {"keys": [{**jwk, "kid": "test", "use": "sig", "alg": "ES256"}]}

    def fetch(self, url: str) -> object:
        """Implements ports.DocumentSource. A document that is an exception is raised."""
        self.fetched.append(url)
        document = self.documents.get(url)
        if isinstance(document, Exception):
            raise document
        return document

    def mint(
        self,
        subject: str = "alice",
        *,
        client_id: str = CLIENT_ID,
        scope: str = "",
        headers: Mapping[str, Any] | None = None,
        **claims: Any,
    ) -> str:
        """An access token. A claim or header given as None is left out."""
        now = int(self._clock.now)
        payload = {
            "iss": self.issuer,
            "sub": subject,
            "aud": self.audience,
            "client_id": client_id,
            "scope": scope,
            "iat": now,
            "exp": now + 3600,
            "jti": f"{subject}-{now}",
            **claims,
        }
        return jwt.encode(
            {claim: value for claim, value in payload.items() if value is not None},
            self._key,
            algorithm="ES256",
            headers={"typ": "at+jwt", "kid": "test", **(headers or {})},
        )


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP response with its JSON-RPC message at hand."""

    http: HttpResponse
    instance: int

    @property
    def status(self) -> int:
        return self.http.status

    @property
    def message(self) -> JsonObject:
        """The response: the last message of an event stream."""
        return self._messages[-1]

    @property
    def notifications(self) -> list[JsonObject]:
        """What was sent before the response: progress and log messages."""
        return self._messages[:-1]

    @property
    def _messages(self) -> list[JsonObject]:
        if self.http.headers.get("content-type") != "text/event-stream":
            return [json.loads(self.http.body)]
        lines = self.http.body.decode().splitlines()
        return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]

    @property
    def result(self) -> JsonObject:
        assert self.status == 200, f"There is no result, the answer is {self.status}: {self.http.body.decode()}"
        result: JsonObject = self.message["result"]
        return result

    @property
    def error(self) -> JsonObject:
        assert self.status >= 400, f"There is no error, the answer is {self.status}: {self.http.body.decode()}"
        error: JsonObject = self.message["error"]
        return error

    @property
    def asked(self) -> JsonObject:
        """The input requests of an `input_required` result, by key; `{}` for any other."""
        return self.message.get("result", {}).get("inputRequests", {})  # type: ignore[no-any-return]

    @property
    def text(self) -> str:
        """The text content of a tool result."""
        assert "content" in self.result, f"The call is not finished, it asks: {self.asked}"
        return "\n".join(block["text"] for block in self.result["content"] if block["type"] == "text")

    @property
    def is_error(self) -> bool:
        """Whether a tool result says that it is an error."""
        return self.result.get("isError", False) is True


class Server:
    """Some instances of the MCP function, with one issuer, one key ring and one clock."""

    def __init__(
        self,
        offered: Features | Iterable[object],
        *,
        instances: int = 2,
        clock: Clock | None = None,
        settings: Mapping[str, str] | None = None,
        keyring: Keyring | None = None,
        providers: Iterable[str] = (),
        timeout: float | None = None,
    ) -> None:
        """`offered` are your tools, prompts and resources; `providers` names the third parties that they may
        connect. Nobody is there, see `connect`. `timeout` is how many seconds an invocation has, like the function's
        Timeout; a tool that runs until it is ended takes them in real time.
        """
        self.features = Features.of(offered)
        for each in self.features.all:
            each.definition()  # what a list would fail over fails here, in your test run
        self.clock = clock or Clock()
        self.keyring = keyring or Keyring(current=Key(1, b"test keys are for tests only----"))
        self.environment = {"MCP_STAGE": LOCAL, "MCP_RESOURCE_URL": RESOURCE, "MCP_ISSUER": ISSUER, **(settings or {})}
        self.issuer = Issuer(
            self.clock, issuer=self.environment["MCP_ISSUER"], audience=self.environment["MCP_RESOURCE_URL"]
        )
        self.timeout = timeout
        problems: list[str] = []
        limits = read_limits(self.environment, problems)
        if problems:
            raise ConfigurationError(problems)
        self._is_store_down = False
        self._stores: list[_Reached] = []
        self._effects = Effects(
            Once(self._reached(lambda: MemoryOnceStore(self._now)), self.keyring),
            Approvals(self._reached(MemoryApprovalStore), self.keyring),
            Limits(self._reached(lambda: MemoryRateLimits(self._now)), self.keyring, limits),
        )
        self._third_parties = _ThirdParties(
            Connections(
                self._reached(lambda: MemoryFlowStore(self._now)),
                vault := self._reached(lambda: MemoryVaultStore(self._now)),
                _Nobody(),
                keyring=self.keyring,
                providers={name: _provider(name) for name in providers},
                base_url=RESOURCE.removesuffix("/mcp"),
                may_start=self._may_start,
            ),
            Vault(vault, self.keyring, Names(self.keyring), handles.draw),
        )
        self._count = instances
        self._served = itertools.count()
        self.restart()

    def restart(self, offered: "Features | Iterable[object] | None" = None) -> None:
        """Replace every instance, as a deployment does, of the same features or of others."""
        if offered is not None:
            self.features = Features.of(offered)
        keys = [self.keyring.current, *self.keyring.retired]
        text = ",".join(f"{key.kid}:{_base64url(key.secret)}" for key in keys)
        self._settings = Settings.read({**self.environment, "MCP_SEALING_KEYS": text})
        self._instances = [self._instance() for _ in range(self._count)]

    def _instance(self) -> McpFunction:
        return McpFunction(
            self._settings,
            self.features,
            self.issuer,
            connections=lambda: self._third_parties.connections,
            effects=lambda: self._effects,
            asks_limited=are_asks_limited(self.environment),
            clock=self._now,
            # The test's clock does not run by itself, and an alarm does.
            interrupt=lambda at, work: ring_at(time.time() + at - self.clock.now, work),
        )

    def kill(self) -> NoReturn:
        """Called by a tool: its instance ends here, as a crash or an outage of a zone would end it.

        The client gets a 500, the store gets nothing more of it, and another instance takes its place.
        """
        _invocation.get().is_dead = True
        raise _Killed

    @contextmanager
    def store_outage(self) -> Iterator[None]:
        """In the block no instance reaches the store. What is in it stays."""
        self._is_store_down = True
        try:
            yield
        finally:
            self._is_store_down = False

    def empty_store(self) -> None:
        """The store comes back with nothing in it, as after a restart of one that keeps nothing."""
        for each in self._stores:
            each.forget()

    def approvals(self, subject: str) -> list[Approval]:
        """What a user sees on the connections page of what they allowed (`@tool(approval=...)`)."""
        return self._effects.approvals.list(User(self.issuer.issuer, subject), now=self.clock.now)

    def withdraw(self, subject: str, tool: str) -> None:
        """Let a user withdraw, on the connections page, what they allowed a tool."""
        for each in self.approvals(subject):
            if each.tool == tool:
                self._effects.approvals.withdraw(User(self.issuer.issuer, subject), each.id, now=self.clock.now)

    def _reached(self, make: Callable[[], object]) -> Any:
        self._stores.append(_Reached(make, self._check_store))
        return self._stores[-1]

    def _now(self) -> float:
        return self.clock.now

    def _check_store(self) -> None:
        invocation = _invocation.get(None)
        if invocation is not None and invocation.is_dead:
            raise _Killed
        if self._is_store_down:
            raise Unavailable("store_outage", retry_after=1)

    def _may_start(self, principal: Principal, now: float) -> int | None:
        taken = self._effects.limits.take(principal, Kind.FLOW, entropy=os.urandom(16), now=now)
        return taken.retry_after if isinstance(taken, Limited) else None

    def connect(
        self,
        subject: str,
        provider: str,
        *,
        scopes: Iterable[str] = (),
        access_token: str = "test-access-token",  # noqa: S107  a test's
        account: str | None = None,
        client_id: str = CLIENT_ID,
    ) -> None:
        """Let a user have connected a third party, in a browser, for one client."""
        granted = frozenset(scopes)
        grant = Grant(
            access_token=access_token,
            refresh_token=None,
            expires_at=None,
            scopes=granted,
            account=account,
            approved={client_id: granted},
            created=int(self.clock.now),
        )
        self._third_parties.keep(User(self.issuer.issuer, subject), GRANTS + provider, grant)

    def type_secret(self, subject: str, name: str, value: str, *, client_id: str = CLIENT_ID) -> None:
        """Let a user have typed a secret on our page, for one client."""
        approved: dict[str, frozenset[str]] = {client_id: frozenset()}
        secret = Secret(value=value, label=name, approved=approved, created=int(self.clock.now))
        self._third_parties.keep(User(self.issuer.issuer, subject), TYPED + name, secret)

    def respond(self, request: HttpRequest, *, entropy: bytes = b"") -> Reply:
        """Answer a request on the next instance."""
        number = next(self._served)
        instance = number % self._count
        entropy = entropy or (number + 1).to_bytes(16, "big")
        if self.timeout is not None:
            request = request._replace(deadline=self.clock.now + self.timeout)
        serving = _invocation.set(_Invocation())
        try:
            response = self._instances[instance].respond(request, now=self.clock.now, entropy=entropy)
        except _Killed:
            self._instances[instance] = self._instance()
            response = HttpResponse(500, {"content-type": "application/json"}, b'{"message":"Internal Server Error"}')
        finally:
            _invocation.reset(serving)
        assert response.facts.get("reason") != "single_round", (
            f"{response.facts.get('tool')} is declared single_round and asked: a view cannot answer it"
        )
        return Reply(response, instance)

    def client(
        self,
        subject: str = "alice",
        *,
        client_id: str = CLIENT_ID,
        scope: str | None = None,
        capabilities: JsonObject | None = None,
        answers: Mapping[str, JsonObject] | None = None,
        on_elicitation: OnElicitation | None = None,
    ) -> "Client":
        """A client of one user. It declares form mode, and has every scope that a tool needs, unless said otherwise."""
        if scope is None:
            scope = " ".join(self.features.scopes)
        return Client(
            self,
            token=self.issuer.mint(subject, client_id=client_id, scope=scope),
            capabilities=FORMS if capabilities is None else capabilities,
            on_elicitation=on_elicitation or _canned(answers or {}),
        )


class _Killed(BaseException):
    """An instance ended while it was serving."""


@dataclass(slots=True)
class _Invocation:
    is_dead: bool = False


_invocation: ContextVar[_Invocation] = ContextVar("invocation")


class _Reached:
    """A store, as far as whoever calls it can reach it."""

    def __init__(self, make: Callable[[], object], check: Callable[[], None]) -> None:
        self._make = make
        self._check = check
        self.forget()

    def forget(self) -> None:
        """Everything that was in it."""
        self._store = self._make()

    def __getattr__(self, verb: str) -> Any:
        def reached(*arguments: Any, **named: Any) -> Any:
            self._check()
            return getattr(self._store, verb)(*arguments, **named)

        return reached


class _ThirdParties:
    """The real connection services over stores in memory, with providers that nobody answers for."""

    def __init__(self, connections: Connections, vault: Vault) -> None:
        self.connections = connections
        self._vault = vault

    def keep(self, user: User, entry: str, record: Grant | Secret) -> None:
        held = self._vault.read(user, entry)
        assert self._vault.put(user, entry, record, replaces=held.version)


def _provider(name: str) -> Provider:
    url = f"https://{name}.example"
    return Provider(
        name=name, title=name.capitalize(), client_id="test", authorize_url=f"{url}/authorize", token_url=f"{url}/token"
    )


class _Nobody:
    """Implements ports.TokenEndpoint for third parties that cannot be reached."""

    def post(self, url: str, form: Mapping[str, str], headers: Mapping[str, str]) -> TokenEndpointReply:
        raise Unavailable("no third party in tests", retry_after=1)

    def get(self, url: str, headers: Mapping[str, str]) -> TokenEndpointReply:
        raise Unavailable("no third party in tests", retry_after=1)


def _canned(answers: Mapping[str, JsonObject]) -> OnElicitation:
    def answer(key: str, request: JsonObject) -> JsonObject:
        if key not in answers:
            raise AssertionError(f"The tool asked {key!r}, and the test has no answer for it: {request}")
        return answers[key]

    return answer


def _base64url(secret: bytes) -> str:
    return base64.urlsafe_b64encode(secret).decode()


@dataclass(slots=True)
class Client:
    """One user's client. `call` answers questions as a host would; `post` sends exactly what you say."""

    server: Server
    token: str
    capabilities: JsonObject
    on_elicitation: OnElicitation
    rounds: list[Reply] = field(default_factory=list)
    """Every reply of the last `call`, in order."""
    _next_id: int = 0
    _last: tuple[str, JsonObject, dict[str, str | None]] | None = None

    def call(self, name: str, arguments: JsonObject | None = None, *, max_rounds: int = 10) -> Reply:
        """Call a tool, answer what it asks with `on_elicitation`, and return the last reply."""
        return self._rounds("tools/call", {"name": name, "arguments": arguments or {}}, max_rounds)

    def get_prompt(self, name: str, arguments: JsonObject | None = None, *, max_rounds: int = 10) -> Reply:
        """Get a prompt, as `call` calls a tool."""
        return self._rounds("prompts/get", {"name": name, "arguments": arguments or {}}, max_rounds)

    def read(self, uri: str, *, max_rounds: int = 10) -> Reply:
        """Read a resource, as `call` calls a tool."""
        return self._rounds("resources/read", {"uri": uri}, max_rounds)

    def _rounds(self, method: str, params: JsonObject, max_rounds: int) -> Reply:
        self.rounds = [self.request(method, params)]
        while self.rounds[-1].status == 200 and self.rounds[-1].result["resultType"] == "input_required":
            what = params.get("name") or params["uri"]
            assert len(self.rounds) <= max_rounds, f"{what} still asks after {max_rounds} rounds"
            last = self.rounds[-1]
            answers = {key: self.on_elicitation(key, request) for key, request in last.asked.items()}
            self.rounds.append(self.retry(last, params, answers, method=method))
        return self.rounds[-1]

    def begin(self, name: str, arguments: JsonObject | None = None) -> Reply:
        """Send the first round of a call and no more: `asked` of the reply is what the user would see."""
        return self.request("tools/call", {"name": name, "arguments": arguments or {}})

    def retry(self, reply: Reply, params: JsonObject, answers: JsonObject, *, method: str = "tools/call") -> Reply:
        """Repeat a request with answers and the state that came with the questions."""
        retried = {**params, "inputResponses": answers, "requestState": reply.result["requestState"]}
        return self.request(method, retried)

    def repeat(self) -> Reply:
        """Send the last request once more, as a client does whose response was lost on the way."""
        assert self._last is not None, "There is no request yet to repeat"
        method, params, headers = self._last
        return self.request(method, params, **headers)

    def request(self, method: str, params: JsonObject | None = None, **headers: str | None) -> Reply:
        """Send one well-formed request. `headers` replace or, given as None, remove single headers."""
        self._next_id += 1
        self._last = method, dict(params or {}), headers
        params = dict(params or {})
        params[messages.META] = {
            messages.META_PROTOCOL_VERSION: messages.PROTOCOL_VERSION,
            messages.META_CLIENT_INFO: {"name": "test", "version": "1"},
            messages.META_CLIENT_CAPABILITIES: self.capabilities,
            **params.get(messages.META, {}),
        }
        message = {"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params}
        name = params.get(messages.NAMED_BY.get(method, ""))
        named = {"mcp-name": encode_header_value(name)} if isinstance(name, str) else {}
        return self.post(
            json.dumps(message).encode(),
            {
                "mcp-protocol-version": messages.PROTOCOL_VERSION,
                "mcp-method": method,
                **named,
                **self._mirrored(method, params),
                **{key.replace("_", "-"): value for key, value in headers.items()},
            },
        )

    def _mirrored(self, method: str, params: JsonObject) -> dict[str, str]:
        """The `Mcp-Param-*` headers that a conforming client sends."""
        if method != "tools/call":
            return {}
        headers: dict[str, str] = {}
        for tool in self.server.features.tools:
            for path, name in tool.headers.items() if tool.name == params.get("name") else ():
                value = params.get("arguments")
                for member in path:
                    value = value.get(member) if isinstance(value, dict) else None
                if value is not None:
                    text = json.dumps(value) if isinstance(value, bool | int) else str(value)
                    headers[f"mcp-param-{name.lower()}"] = encode_header_value(text)
        return headers

    def post(self, body: bytes, headers: Mapping[str, str | None]) -> Reply:
        """Send a body as it is. A header given as None is left out."""
        sent = {
            "authorization": f"Bearer {self.token}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            **headers,
        }
        present = {name: value for name, value in sent.items() if value is not None}
        return self.server.respond(HttpRequest("POST", "/mcp", present, body, request_id=f"test-{self._next_id}"))

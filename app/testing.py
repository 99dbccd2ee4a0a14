"""For your own tests: the whole MCP function in this process, with users, answers and a clock to move.

    server = Server([delete_report])
    alice = server.client("alice", answers={"confirm": accept(confirm=True)})
    assert alice.call("delete_report", {"target": "Q3"}).text == "The report Q3 is deleted."

Everything between the HTTP request and the tool is the real thing: token verification, the checks, the
seal. Requests go round robin over `instances`, which share nothing but the sealing keys.
"""

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

from app.adapters.memory_store import MemoryFlowStore, MemoryVaultStore
from app.errors import Unavailable
from app.http import HttpRequest, HttpResponse
from app.oauth import handles
from app.oauth.connections import Connections
from app.oauth.handles import Names
from app.oauth.provider import Provider
from app.oauth.vault import GRANTS, TYPED, Grant, Secret, Vault
from app.ports import TokenEndpointReply
from app.principal import User
from app.protocol import messages
from app.protocol.dispatch import Tool
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
        parsed: JsonObject = json.loads(self.http.body)
        return parsed

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
        tools: Iterable[Tool],
        *,
        instances: int = 2,
        clock: Clock | None = None,
        settings: Mapping[str, str] | None = None,
        keyring: Keyring | None = None,
        providers: Iterable[str] = (),
    ) -> None:
        """`providers` names the third parties that tools may connect; nobody is there, see `connect`."""
        self.tools = tuple(tools)
        for tool in self.tools:
            tool.definition()  # what tools/list would fail over fails here, in your test run
        self.clock = clock or Clock()
        self.keyring = keyring or Keyring(current=Key(1, b"test keys are for tests only----"))
        self.environment = {"MCP_STAGE": LOCAL, "MCP_RESOURCE_URL": RESOURCE, "MCP_ISSUER": ISSUER, **(settings or {})}
        self.issuer = Issuer(
            self.clock, issuer=self.environment["MCP_ISSUER"], audience=self.environment["MCP_RESOURCE_URL"]
        )
        self._third_parties = _ThirdParties(providers, self.clock, self.keyring)
        self._count = instances
        self._served = 0
        self.restart()

    def restart(self) -> None:
        """Replace every instance, as a deployment does."""
        keys = [self.keyring.current, *self.keyring.retired]
        text = ",".join(f"{key.kid}:{_base64url(key.secret)}" for key in keys)
        settings = Settings.read({**self.environment, "MCP_SEALING_KEYS": text})
        self._instances = [
            McpFunction(settings, self.tools, self.issuer, connections=lambda: self._third_parties.connections)
            for _ in range(self._count)
        ]

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
        instance = self._served % self._count
        self._served += 1
        entropy = entropy or self._served.to_bytes(16, "big")
        response = self._instances[instance].respond(request, now=self.clock.now, entropy=entropy)
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
            scope = " ".join(sorted({each for tool in self.tools for each in tool.scopes}))
        return Client(
            self,
            token=self.issuer.mint(subject, client_id=client_id, scope=scope),
            capabilities=FORMS if capabilities is None else capabilities,
            on_elicitation=on_elicitation or _canned(answers or {}),
        )


class _ThirdParties:
    """The real connection services over stores in memory, with providers that nobody answers for."""

    def __init__(self, names: Iterable[str], clock: Clock, keyring: Keyring) -> None:
        vault_store = MemoryVaultStore(lambda: clock.now)
        self._vault = Vault(vault_store, keyring, Names(keyring), handles.draw)
        self.connections = Connections(
            MemoryFlowStore(lambda: clock.now),
            vault_store,
            _Nobody(),
            keyring=keyring,
            providers={name: _provider(name) for name in names},
            base_url=RESOURCE.removesuffix("/mcp"),
        )

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

    def call(self, name: str, arguments: JsonObject | None = None, *, max_rounds: int = 10) -> Reply:
        """Call a tool, answer what it asks with `on_elicitation`, and return the last reply."""
        params: JsonObject = {"name": name, "arguments": arguments or {}}
        self.rounds = [self.begin(name, arguments)]
        while self.rounds[-1].status == 200 and self.rounds[-1].result["resultType"] == "input_required":
            assert len(self.rounds) <= max_rounds, f"{name} still asks after {max_rounds} rounds"
            last = self.rounds[-1]
            answers = {key: self.on_elicitation(key, request) for key, request in last.asked.items()}
            self.rounds.append(self.retry(last, params, answers))
        return self.rounds[-1]

    def begin(self, name: str, arguments: JsonObject | None = None) -> Reply:
        """Send the first round of a call and no more: `asked` of the reply is what the user would see."""
        return self.request("tools/call", {"name": name, "arguments": arguments or {}})

    def retry(self, reply: Reply, params: JsonObject, answers: JsonObject) -> Reply:
        """Repeat a request with answers and the state that came with the questions."""
        retried = {**params, "inputResponses": answers, "requestState": reply.result["requestState"]}
        return self.request("tools/call", retried)

    def request(self, method: str, params: JsonObject | None = None, **headers: str | None) -> Reply:
        """Send one well-formed request. `headers` replace or, given as None, remove single headers."""
        self._next_id += 1
        params = dict(params or {})
        params[messages.META] = {
            messages.META_PROTOCOL_VERSION: messages.PROTOCOL_VERSION,
            messages.META_CLIENT_INFO: {"name": "test", "version": "1"},
            messages.META_CLIENT_CAPABILITIES: self.capabilities,
            **params.get(messages.META, {}),
        }
        message = {"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params}
        name = params.get(messages.NAMED_BY.get(method, ""))
        named = {"mcp-name": name} if isinstance(name, str) else {}
        return self.post(
            json.dumps(message).encode(),
            {
                "mcp-protocol-version": messages.PROTOCOL_VERSION,
                "mcp-method": method,
                **named,
                **{key.replace("_", "-"): value for key, value in headers.items()},
            },
        )

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

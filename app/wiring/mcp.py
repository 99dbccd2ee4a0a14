"""The MCP function: the endpoint and the metadata that leads clients to log in. The hot path."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from app.adapters import snapstart
from app.adapters.alarm import ring_at
from app.adapters.http_client import HttpDocumentSource
from app.adapters.tracing import Tracing, wanted_tracing
from app.authorization.access_token import TokenRules
from app.authorization.jwks import Jwks
from app.authorization.resource_server import JwtResourceServer
from app.errors import ConfigurationError
from app.http import NO_STORE, HttpRequest, HttpResponse
from app.protocol.dispatch import Implementation, Server
from app.protocol.features import Features, Interrupt, Services
from app.protocol.request_state import RequestStateCodec
from app.protocol.streamable_http import StreamableHttp
from app.protocol.widget_state import WidgetState
from app.sealing import SealingKeys
from app.settings import Settings

if TYPE_CHECKING:
    from app.ports import DocumentSource
    from app.wiring.connections import UrlMode

VERSION = "0.1.0"


class McpFunction:
    """Everything that the MCP function answers: POST /mcp, and the two metadata paths."""

    def __init__(
        self,
        settings: Settings,
        offered: Features | Iterable[object],
        documents: "DocumentSource",
        *,
        connections: Callable[[], object] | None = None,
        effects: Callable[[], object] | None = None,
        asks_limited: bool = False,
        tracing: Tracing | None = None,
        clock: Callable[[], float] = time.time,
        interrupt: Interrupt = ring_at,
    ) -> None:
        features = Features.of(offered)
        unguarded = [tool.name for tool in features.tools if tool.needs_store] if effects is None else []
        if unguarded:
            raise ConfigurationError(
                [
                    f"{', '.join(unguarded)}: once=True and approval=... need a store. Set MCP_REDIS_URL or "
                    "MCP_CONNECTIONS_SECRET, or take them off."
                ]
            )
        if tracing is not None:
            features = tracing.features(features)
        audience = settings.resource_url
        server = Server(
            Implementation(settings.server_name, VERSION),
            features,
            keyring=settings.keyring,
            codec=RequestStateCodec(settings.keyring),
            audience=audience,
            services=Services(
                WidgetState(settings.keyring, audience=audience),
                clock,
                connections,
                effects,
                asks_limited=asks_limited,
                interrupt=interrupt,
            ),
            text_fallback=settings.text_fallback,
        )
        self.keys = Jwks(documents, issuer=settings.issuer, jwks_url=settings.jwks_url)
        resource_server = JwtResourceServer(
            TokenRules(settings.issuer, settings.resource_url, settings.subject_claim),
            self.keys,
            required_scopes=settings.required_scopes,
            scopes_supported=features.scopes,
            name=settings.server_name,
        )
        endpoint = StreamableHttp(server, resource_server, allowed_origins=settings.allowed_origins)
        self._answer = endpoint.respond if tracing is None else tracing.respond(endpoint.respond)
        self._metadata = resource_server.metadata
        own_path = urlsplit(settings.resource_url).path
        # Both spellings are answered: a redirect would make clients drop the body or the token.
        self._mcp_paths = frozenset(("/mcp", "/mcp/", own_path, own_path + "/"))
        self._metadata_paths = frozenset((*resource_server.metadata_paths, "/.well-known/oauth-protected-resource/mcp"))

    def respond(self, request: HttpRequest, *, now: float, entropy: bytes) -> HttpResponse:
        """Answer one request. `now` is in seconds since the epoch, `entropy` 16 fresh random bytes."""
        response = self._respond(request, now=now, entropy=entropy)
        # A body after the headers of a HEAD would be read as the next response (RFC 9110 section 9.3.2).
        return response._replace(body=b"") if request.method == "HEAD" else response

    def _respond(self, request: HttpRequest, *, now: float, entropy: bytes) -> HttpResponse:
        if request.path in self._mcp_paths:
            return self._answer(request, now=now, entropy=entropy)
        if request.path in self._metadata_paths:
            return self._metadata() if request.method in ("GET", "HEAD") else _status(405, {"allow": "GET, HEAD"})
        return _status(404, {})


def _status(status: int, headers: Mapping[str, str]) -> HttpResponse:
    body = b'{"error":"not_found"}' if status == 404 else b'{"error":"method_not_allowed"}'
    return HttpResponse(status, {"content-type": "application/json", **NO_STORE, **headers}, body)


def _wrapped_ring(secret_id: str, kms_key: str, app: str) -> SealingKeys:
    from app.adapters.kms import KmsKeyring

    return KmsKeyring(secret_id, kms_key, app)


def build(environment: Mapping[str, str], offered: Features | Iterable[object]) -> Callable[..., HttpResponse]:
    """The MCP function of a deployment. Raises ConfigurationError, so that a broken one does not start."""
    settings = Settings.read(environment, _wrapped_ring)
    mode: UrlMode | None = None
    of_the_store = ("REDIS_URL", "CONNECTIONS_SECRET", "PROVIDERS", "ASK_LIMIT", "FLOW_LIMIT")
    if any(environment.get(f"MCP_{name}") for name in of_the_store):
        # A function that connects nobody pays nothing for it at start.
        from app.wiring.connections import url_mode

        mode = url_mode(environment, settings)
    documents = HttpDocumentSource()
    function = McpFunction(
        settings,
        offered,
        documents,
        connections=None if mode is None else mode.connections,
        effects=None if mode is None else mode.effects,
        asks_limited=mode is not None and mode.asks_limited,
        tracing=wanted_tracing(environment),
    )
    snapstart.register(settings.keyring, function.keys, documents, mode)
    return function.respond

"""The MCP function: the endpoint and the metadata that leads clients to log in. The hot path."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from app.adapters.http_client import HttpDocumentSource
from app.authorization.access_token import TokenRules
from app.authorization.jwks import Jwks
from app.authorization.resource_server import JwtResourceServer
from app.http import HttpRequest, HttpResponse
from app.ports import DocumentSource
from app.protocol.dispatch import Server, Tool
from app.protocol.request_state import RequestStateCodec
from app.protocol.streamable_http import StreamableHttp
from app.settings import Settings

VERSION = "0.1.0"


class McpFunction:
    """Everything that the MCP function answers: POST /mcp, and the two metadata paths."""

    def __init__(
        self,
        settings: Settings,
        tools: Iterable[Tool],
        documents: DocumentSource,
        *,
        connections: Callable[[], object] | None = None,
    ) -> None:
        server = Server(
            name=settings.server_name,
            version=VERSION,
            tools=tools,
            codec=RequestStateCodec(settings.keyring),
            audience=settings.resource_url,
            connections=connections,
        )
        self.keys = Jwks(documents, issuer=settings.issuer, jwks_url=settings.jwks_url)
        resource_server = JwtResourceServer(
            TokenRules(settings.issuer, settings.resource_url, settings.subject_claim),
            self.keys,
            required_scopes=settings.required_scopes,
            scopes_supported=server.scopes,
            name=settings.server_name,
        )
        endpoint = StreamableHttp(server, resource_server, allowed_origins=settings.allowed_origins)
        self._endpoint = endpoint
        self._metadata = resource_server.metadata
        own_path = urlsplit(settings.resource_url).path
        # Both spellings are answered: a redirect would make clients drop the body or the token.
        self._mcp_paths = frozenset(("/mcp", "/mcp/", own_path, own_path + "/"))
        self._metadata_paths = frozenset((*resource_server.metadata_paths, "/.well-known/oauth-protected-resource/mcp"))

    def respond(self, request: HttpRequest, *, now: float, entropy: bytes) -> HttpResponse:
        """Answer one request. `now` is in seconds since the epoch, `entropy` 16 fresh random bytes."""
        response = self._respond(request, now=now, entropy=entropy)
        # A body after the headers of a HEAD would be read as the next response (RFC 9110 section 9.3.2).
        return replace(response, body=b"") if request.method == "HEAD" else response

    def _respond(self, request: HttpRequest, *, now: float, entropy: bytes) -> HttpResponse:
        if request.path in self._mcp_paths:
            return self._endpoint.respond(request, now=now, entropy=entropy)
        if request.path in self._metadata_paths:
            return self._metadata() if request.method in ("GET", "HEAD") else _status(405, {"allow": "GET, HEAD"})
        return _status(404, {})


def _status(status: int, headers: Mapping[str, str]) -> HttpResponse:
    body = b'{"error":"not_found"}' if status == 404 else b'{"error":"method_not_allowed"}'
    return HttpResponse(status, {"content-type": "application/json", "cache-control": "no-store", **headers}, body)


def build(environment: Mapping[str, str], tools: Iterable[Tool]) -> Callable[..., HttpResponse]:
    """The MCP function of a deployment. Raises ConfigurationError, so that a broken one does not start."""
    settings = Settings.read(environment)
    connections: Callable[[], object] | None = None
    if environment.get("MCP_REDIS_URL") or environment.get("MCP_PROVIDERS"):
        # A function that connects nobody pays nothing for it at start.
        from app.wiring import connections as url_mode

        connections = url_mode.connections(environment, settings)
    return McpFunction(settings, tools, HttpDocumentSource(), connections=connections).respond

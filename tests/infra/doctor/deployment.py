"""The MCP function and an issuer behind a plain HTTP server whose answers a test may spoil."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from app.adapters.http_client import HttpDocumentSource
from app.http import HttpRequest, HttpResponse
from app.settings import Settings
from app.testing import Issuer
from app.wiring.mcp import McpFunction
from infra.doctor.endpoint import check_endpoint
from infra.doctor.finding import Finding, Level
from infra.doctor.http import Http
from infra.local.desk.tools import FEATURES
from tests.handlers.test_mcp import REQUIRED, serving

Spoil = Callable[[HttpRequest, HttpResponse], HttpResponse]


def _as_it_is(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    return response


class Deployment:
    """A running endpoint at `url`. `spoil` changes its answers, `issuer.documents` are what its issuer serves."""

    def __init__(self, issuer: Issuer) -> None:
        self.issuer = issuer
        self.spoil: Spoil = _as_it_is
        self.date = time.time
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}/mcp"
        self.environment = {
            **REQUIRED,
            "MCP_STAGE": "local",
            "MCP_RESOURCE_URL": self.url,
            "MCP_ISSUER": issuer.issuer,
        }
        self._function = McpFunction(Settings.read(self.environment), FEATURES, HttpDocumentSource())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def metadata(self) -> dict[str, Any]:
        """The issuer's metadata, to change."""
        document = self.issuer.documents[f"{self.issuer.issuer}/.well-known/oauth-authorization-server"]
        assert isinstance(document, dict)
        return document

    def findings(self, http: Http | None = None) -> list[Finding]:
        return list(check_endpoint(http or Http(), self.url))

    def wrong(self, http: Http | None = None) -> list[Finding]:
        """What the doctor finds wrong."""
        return [each for each in self.findings(http) if each.level is not Level.OK]

    def _answer(self, request: HttpRequest) -> HttpResponse:
        return self.spoil(request, self._function.respond(request, now=time.time(), entropy=bytes(16)))

    def _handler(deployment) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            def _respond(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                path, _, query = self.path.partition("?")
                headers = {name.lower(): value for name, value in self.headers.items()}
                response = deployment._answer(HttpRequest(self.command, path, headers, body, query))
                self.send_response_only(response.status)
                for name, value in response.headers.items():
                    self.send_header(name, value)
                self.send_header("date", self.date_time_string(int(deployment.date())))
                self.send_header("content-length", str(len(response.body)))
                self.end_headers()
                self.wfile.write(response.body)

            def do_GET(self) -> None:
                self._respond()

            def do_POST(self) -> None:
                self._respond()

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler


@contextmanager
def deployed() -> Iterator[Deployment]:
    """A deployment on free ports of the loopback interface."""
    with serving() as issuer:
        deployment = Deployment(issuer)
        deployment.metadata.update(
            authorization_endpoint=f"{issuer.issuer}/authorize",
            token_endpoint=f"{issuer.issuer}/token",
            code_challenge_methods_supported=["S256"],
            client_id_metadata_document_supported=True,
        )
        try:
            yield deployment
        finally:
            deployment.stop()

"""Fetching a client ID metadata document: limits, and no way into an internal network (SSRF)."""

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from infra.local.identity import DocumentUnavailable
from infra.local.identity.client_document_fetcher import fetch_document


class Publisher(HTTPServer):
    """Publishes one answer under every path, and notes the hosts it was called by."""

    status = 200
    headers: dict[str, str] = {}  # noqa: RUF012  replaced, never changed
    body = b"{}"

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.hosts: list[str] = []

    def url(self, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.server_port}/client.json"


class _Handler(BaseHTTPRequestHandler):
    server: Publisher

    def do_GET(self) -> None:
        self.server.hosts.append(self.headers["Host"])
        self.send_response(self.server.status)
        for name, value in {"Content-Type": "application/json", **self.server.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(self.server.body)
        except OSError:
            self.close_connection = True  # the fetcher stopped reading

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    with Publisher() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_document_on_this_computer_is_fetched(publisher: Publisher, host: str) -> None:
    """A client under development; `localhost` may resolve to ::1 first, where nobody listens."""
    publisher.body = b'{"client_id": "x"}'

    assert fetch_document(publisher.url(host)).body == b'{"client_id": "x"}'
    assert publisher.hosts == [f"{host}:{publisher.server_port}"]


@pytest.mark.parametrize(
    ("cache_control", "max_age"),
    [
        (None, 300),
        ("max-age=60", 60),
        ("public, Max-Age=60, must-revalidate", 60),
        ("max-age=99999999", 86400),
        ("max-age=0", 0),
        ("no-store", 0),
        ("no-cache, max-age=60", 0),
        ("max-age=soon", 300),
    ],
)
def test_cache_control_decides_how_long_a_document_is_reused(
    publisher: Publisher, cache_control: str | None, max_age: int
) -> None:
    """RFC 9111 §5.2.2, with an upper bound (draft-ietf-oauth-client-id-metadata-document §4.4)."""
    publisher.headers = {"Cache-Control": cache_control} if cache_control else {}

    assert fetch_document(publisher.url()).max_age == max_age


@pytest.mark.parametrize("status", [204, 301, 302, 307, 404, 500])
def test_only_a_200_is_a_document(publisher: Publisher, status: int) -> None:
    """draft-ietf-oauth-client-id-metadata-document §4: MUST NOT automatically follow HTTP redirects."""
    publisher.status, publisher.body = status, b""
    publisher.headers = {"Location": "/elsewhere"}

    with pytest.raises(DocumentUnavailable, match=str(status)):
        fetch_document(publisher.url())
    assert len(publisher.hosts) == 1


@pytest.mark.parametrize(
    "media_type", ["text/html", "text/plain", "", "application/jsonp", "text/json+application/json"]
)
def test_only_json_is_a_document(publisher: Publisher, media_type: str) -> None:
    """A page that happens to contain JSON, such as user content, is not the word of its host."""
    publisher.headers = {"Content-Type": media_type}

    with pytest.raises(DocumentUnavailable, match="application/json"):
        fetch_document(publisher.url())


@pytest.mark.parametrize("media_type", ["application/json; charset=utf-8", "application/client-metadata+json"])
def test_json_by_any_of_its_names_is_a_document(publisher: Publisher, media_type: str) -> None:
    """RFC 6839 §3.1."""
    publisher.headers = {"Content-Type": media_type}

    assert fetch_document(publisher.url()).body == b"{}"


def test_a_document_is_at_most_five_kilobytes(publisher: Publisher) -> None:
    """draft-ietf-oauth-client-id-metadata-document §6.6 recommends 5 kilobytes."""
    publisher.body = b" " * 5120
    assert len(fetch_document(publisher.url()).body) == 5120

    publisher.body = b" " * 10_000_000
    with pytest.raises(DocumentUnavailable, match="longer"):
        fetch_document(publisher.url())


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.0.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "::1",
        "fe80::1%eth0",
        "fd00::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
    ],
)
def test_a_name_that_leads_inside_is_never_connected_to(
    publisher: Publisher, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """Draft §6.5 and MCP security considerations: server-side request forgery. One inside address is enough."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    resolved = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.215.14", 443)),
        (family, socket.SOCK_STREAM, 6, "", (address, publisher.server_port)),
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: resolved)

    with pytest.raises(DocumentUnavailable, match="public internet"):
        fetch_document(f"http://inside.example:{publisher.server_port}/client.json")
    assert publisher.hosts == []


def test_a_host_that_does_not_exist_or_answer_is_told_apart(publisher: Publisher) -> None:
    """The page should say what to check."""
    with pytest.raises(DocumentUnavailable, match="no address"):
        fetch_document("https://does-not-exist.invalid/client.json")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(DocumentUnavailable, match="did not answer"):
            fetch_document(f"http://127.0.0.1:{unused.getsockname()[1]}/client.json")


def test_a_server_that_talks_plain_http_on_an_https_url_is_no_answer(publisher: Publisher) -> None:
    """The certificate is what proves the client's host."""
    with pytest.raises(DocumentUnavailable, match="did not answer"):
        fetch_document(publisher.url().replace("http:", "https:"))

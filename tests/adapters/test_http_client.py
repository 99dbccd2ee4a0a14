"""Fetching documents from a real server on the loopback address that does everything wrong."""

import datetime
import gzip
import json
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from threading import Event, Thread
from typing import Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from app.adapters.http_client import MAX_BYTES, TIMEOUT, HttpDocumentSource
from app.errors import Unavailable

SHORT: Final = 0.3
"""Seconds that a fetch may take in these tests."""
BOUND: Final = 5.0
"""Seconds after which it took too long, on a machine that is busy with other things."""


class Server:
    """A socket server: `answer` gets each connection after its request was read, and may do what it likes."""

    def __init__(self, answer: Callable[[socket.socket], object], *, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[bytes] = []
        self.stopping = Event()
        self._answer = answer
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(0.05)
        self._threads = [Thread(target=self._serve)]
        self._threads[0].start()
        scheme = "http" if tls is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._listener.getsockname()[1]}"

    def _serve(self) -> None:
        while not self.stopping.is_set():
            with suppress(TimeoutError):
                connection, _ = self._listener.accept()
                thread = Thread(target=self._handle, args=(connection,))
                self._threads.append(thread)
                thread.start()
        self._listener.close()

    def _handle(self, connection: socket.socket) -> None:
        # A client that hangs up early is what many of these tests are about.
        with suppress(OSError):
            connection.settimeout(BOUND)
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
            request = b""
            while b"\r\n\r\n" not in request:
                received = connection.recv(65536)
                if not received:
                    break
                request += received
            if request:
                self.requests.append(request)
                self._answer(connection)
        connection.close()

    def drip(self, connection: socket.socket, endless: bytes) -> None:
        """Send a byte now and again, for much longer than a fetch may take: no single read ever waits long."""
        position, end = 0, time.perf_counter() + 2 * BOUND
        while not self.stopping.wait(SHORT / 10) and time.perf_counter() < end:
            connection.sendall(endless[position % len(endless)].to_bytes(1, "big"))
            position += 1

    def stop(self) -> None:
        self.stopping.set()
        for thread in self._threads:
            thread.join(BOUND)


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def start(answer: Callable[[socket.socket], object], *, tls: ssl.SSLContext | None = None) -> Server:
        servers.append(Server(answer, tls=tls))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def response(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def saying(*sent: bytes) -> Callable[[socket.socket], None]:
    def answer(connection: socket.socket) -> None:
        for each in sent:
            connection.sendall(each)

    return answer


def refusal(url: str, *, timeout: float = SHORT, max_bytes: int = MAX_BYTES) -> str:
    """Why there is no document. Anything but Unavailable in bounded time fails the test."""
    started = time.perf_counter()
    with pytest.raises(Unavailable) as unavailable:
        HttpDocumentSource(timeout=timeout, max_bytes=max_bytes).fetch(url)
    assert time.perf_counter() - started < BOUND
    assert unavailable.value.retry_after == 30
    return unavailable.value.reason


# What is read


@pytest.mark.parametrize(
    "headers",
    [
        ["Content-Type: application/json"],
        ["Content-Type: application/jwk-set+json; charset=utf-8"],
        ["Content-Type: text/plain"],
        [],
    ],
)
def test_a_document_is_read(serve: Callable[..., Server], headers: list[str]) -> None:
    """RFC 7517 section 8.5: some issuers serve their keys as text, so the type decides nothing."""
    server = serve(saying(response(b'{"keys": [{"kid": "\xc3\xa9"}]}', *headers)))
    assert HttpDocumentSource().fetch(server.url + "/jwks?v=1") == {"keys": [{"kid": "é"}]}
    (request,) = server.requests
    assert request.startswith(b"GET /jwks?v=1 HTTP/1.1\r\n")
    assert b"accept: application/json\r\n" in request.lower()


def test_a_chunked_document_is_read(serve: Callable[..., Server]) -> None:
    """RFC 9112 section 7.1."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    server = serve(saying(head, b'4\r\n{"a"\r\n', b"3\r\n:1}\r\n", b"0\r\n\r\n"))
    assert HttpDocumentSource().fetch(server.url) == {"a": 1}


def test_the_bounds_are_those_of_api_gateways_own_authorizer() -> None:
    """SECURITY 4.2: 3 s and 150,000 bytes."""
    assert (TIMEOUT, MAX_BYTES) == (3.0, 150_000)


def test_a_document_of_the_largest_size_is_read_and_one_byte_more_is_not(serve: Callable[..., Server]) -> None:
    """SECURITY 4.2."""
    server = serve(saying(response(b'"' + b"x" * (MAX_BYTES - 2) + b'"')))
    assert HttpDocumentSource().fetch(server.url) == "x" * (MAX_BYTES - 2)
    server = serve(saying(response(b'"' + b"x" * (MAX_BYTES - 1) + b'"')))
    assert "too large" in refusal(server.url, timeout=TIMEOUT)


def test_nothing_is_carried_from_one_fetch_to_the_next(serve: Callable[..., Server]) -> None:
    """A cookie of one issuer is none of ours."""
    server = serve(saying(response(b"{}", "Set-Cookie: sid=1; Path=/")))
    source = HttpDocumentSource()
    source.fetch(server.url)
    source.fetch(server.url)
    assert not any(b"cookie" in request.lower() for request in server.requests)
    assert not any(b"authorization" in request.lower() for request in server.requests)


def test_proxy_settings_and_netrc_do_not_count(
    serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """SECURITY 3, Step 7, trust_env=False: the environment must not redirect whom we trust."""
    proxy = serve(saying(response(b'{"keys": "of the proxy"}')))
    (tmp_path / "netrc").write_text("default login user password sentinel\n")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, proxy.url)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("NO_PROXY", "")
    server = serve(saying(response(b"{}")))
    assert HttpDocumentSource().fetch(server.url) == {}
    assert proxy.requests == []
    assert b"authorization" not in server.requests[0].lower()


# What is not


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        pytest.param(response(b"{}", status="500 Oops"), "HTTP 500", id="500"),
        pytest.param(response(b"{}", status="404 Not Found"), "HTTP 404", id="404"),
        pytest.param(response(b"{}", status="401 Unauthorized"), "HTTP 401", id="401"),
        pytest.param(response(b"{}", status="201 Created"), "HTTP 201", id="201"),
        pytest.param(b"HTTP/1.1 204 No Content\r\n\r\n", "HTTP 204", id="204"),
        pytest.param(response(b"{}", status="206 Partial Content"), "HTTP 206", id="206"),
        pytest.param(response(b"<!doctype html><title>Login</title>"), "not JSON", id="HTML"),
        pytest.param(response(b""), "not JSON", id="nothing"),
        pytest.param(response(b'{"keys":['), "not JSON", id="half a document"),
        pytest.param(response(b'{"keys":[],"keys":[]}'), "not JSON", id="a duplicate key"),
        pytest.param(response(b'{"keys":NaN}'), "not JSON", id="NaN"),
        pytest.param(response('{"keys":[]}'.encode("utf-16")), "not JSON", id="UTF-16"),
        pytest.param(response(b"\xef\xbb\xbf{}"), "not JSON", id="a byte order mark"),
        pytest.param(response(b"\xff\xff"), "not JSON", id="no UTF-8"),
        pytest.param(response(b"[" * 100_000), "not JSON", id="100,000 brackets"),
        pytest.param(response(b"{}")[:-1], "RemoteProtocolError", id="closed before the end"),
        pytest.param(b"", "RemoteProtocolError", id="closed at once"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-", "RemoteProtocolError", id="closed within the headers"),
        pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "RemoteProtocolError", id="not HTTP"),
        pytest.param(b"\x00" * 1000, "RemoteProtocolError", id="NULs"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000, "RemoteProtocolError", id="an endless header"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "RemoteProtocolError", id="a negative length"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "RemoteProtocolError", id="no chunk"
        ),
    ],
)
def test_what_is_no_json_document_is_unavailable(serve: Callable[..., Server], sent: bytes, reason: str) -> None:
    """SECURITY 0.9 and 1: PyJWKClient let some of these out as a 500."""
    assert reason in refusal(serve(saying(sent)).url, timeout=TIMEOUT)


@pytest.mark.parametrize("status", ["301", "302", "303", "307", "308", "300", "304"])
def test_a_redirect_is_never_followed(serve: Callable[..., Server], status: str) -> None:
    """SECURITY 1, SSRF: not to another host, and not to 169.254.169.254."""
    target = serve(saying(response(b'{"keys": "of the target"}')))
    server = serve(saying(response(b"{}", f"Location: {target.url}/jwks", status=f"{status} Moved")))
    assert refusal(server.url, timeout=TIMEOUT) == f"HTTP {status}"
    assert target.requests == []
    assert len(server.requests) == 1


HEAD: Final = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("first", "endless"),
    [
        pytest.param(b"", b"", id="silence"),
        pytest.param(b"", b"HTTP/1.1 200 OK\r\n", id="a status line that drips"),
        pytest.param(HEAD, b"x-a: b\r\n", id="headers that drip"),
        pytest.param(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n", id="informational responses without end"),
        pytest.param(HEAD + b"Content-Length: 100000\r\n\r\n", b"", id="headers, then silence"),
        pytest.param(HEAD + b"Content-Length: 100000\r\n\r\n", b" ", id="a body that drips"),
        pytest.param(HEAD + b"\r\n", b" ", id="a body without length that drips"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n", id="chunks that drip"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;", b"x", id="a chunk extension that drips"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"x-a: b\r\n", id="trailers that drip"),
    ],
)
def test_a_slow_server_is_unavailable_in_bounded_time(
    serve: Callable[..., Server], first: bytes, endless: bytes
) -> None:
    """SECURITY 1, Malicious AS: each single read is quick, and the whole would never end."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(first)
        if endless:
            server.drip(connection, endless)
        else:
            server.stopping.wait(BOUND)

    server = serve(answer)
    assert refusal(server.url) == "TimeoutError"


def test_an_endless_body_is_cut_off(serve: Callable[..., Server]) -> None:
    """SECURITY 1, JWKS DoS: it is not read to its end, and not held."""
    sent = 0

    def answer(connection: socket.socket) -> None:
        nonlocal sent
        connection.sendall(HEAD + b"\r\n")
        while sent < 1000 * MAX_BYTES:
            connection.sendall(b" " * 65536)
            sent += 65536

    server = serve(answer)
    assert refusal(server.url, timeout=TIMEOUT) == "too large"
    server.stop()
    assert sent < 100 * MAX_BYTES


BOMB: Final = gzip.compress(b" " * 5_000_000)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "x-gzip", "gzip, gzip"])
def test_a_compressed_body_is_not_unpacked(serve: Callable[..., Server], encoding: str) -> None:
    """SECURITY 1, Oversized / bombs: a thousand bytes would become a megabyte before anybody counts."""
    server = serve(saying(response(BOMB, f"Content-Encoding: {encoding}")))
    assert refusal(server.url, timeout=TIMEOUT) == "compressed against our wish"
    (request,) = server.requests
    assert b"accept-encoding: identity\r\n" in request.lower()


def test_a_closed_port_is_unavailable() -> None:
    """SECURITY item 65."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert refusal(f"http://127.0.0.1:{port}/", timeout=TIMEOUT) == "ConnectionRefusedError"


def test_a_server_that_accepts_nothing_is_unavailable() -> None:
    """A listener whose queue is full: the handshake is answered by the kernel, and nobody reads."""
    with socket.create_server(("127.0.0.1", 0), backlog=1) as listener:
        assert refusal(f"http://127.0.0.1:{listener.getsockname()[1]}/") == "TimeoutError"


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://127.0.0.1/",
        "data:application/json,{}",
        "//127.0.0.1/",
        "/jwks",
        "",
        "http://",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1:port/",
        "http://[::1/",
        "http://a b/",
        "http://\x00/",
        "http://" + "a" * 64 + ".invalid./",
        "http://xn--/",
        "https://exa\u2100mple.invalid/",
    ],
)
def test_what_is_no_http_url_is_unavailable(url: str) -> None:
    """A URL may come from a metadata document: it never raises anything else, and never reads a file."""
    refusal(url)


def certificate(directory: Path) -> ssl.SSLContext:
    """A certificate for 127.0.0.1 that nobody signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, SHA256())
    )
    path = directory / "certificate.pem"
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(pem + built.public_bytes(Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


def test_a_certificate_that_nobody_signed_is_unavailable(
    serve: Callable[..., Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SECURITY 1, SSRF: https only, verified, and no variable adds an authority."""
    server = serve(saying(response(b"{}")), tls=certificate(tmp_path))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
    assert refusal(server.url, timeout=TIMEOUT) == "SSLCertVerificationError"
    assert server.requests == []


def test_a_tls_handshake_that_never_ends_is_unavailable() -> None:
    """The bound holds before the first byte of HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert refusal(f"https://127.0.0.1:{listener.getsockname()[1]}/") == "TimeoutError"


def test_a_reason_never_repeats_what_came(serve: Callable[..., Server]) -> None:
    """STYLE 4.14: the reason goes to the log."""
    for sent in (
        response(b"sentinel"),
        response(b"{}", status="500 sentinel"),
        b"sentinel\r\n\r\n",
        response(json.dumps({"a": "sentinel"}).encode()[:-1]),
    ):
        assert "sentinel" not in refusal(serve(saying(sent)).url, timeout=TIMEOUT)

"""The TokenEndpoint port over HTTP: one request, whole or not at all, within the deadline whatever comes back."""

import datetime
import gzip
import ipaddress
import json
import logging
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from app.adapters.oauth_http import MAX_BYTES, TIMEOUT, HttpTokenEndpoint
from app.errors import Unavailable
from app.oauth import provider as requests
from app.oauth import token_response
from app.oauth.provider_config import read_providers
from app.ports import TokenEndpoint
from infra.local.provider import ConfidentialClient, Hub, HubSettings, approve, provider_in_thread
from tests.adapters.raw_server import Conversation, raw_server

SOON = 0.3
REPLY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
REDIRECT_URI = "http://127.0.0.1:9/oauth/callback/local"


def _http_200(body: bytes, *, headers: bytes = b"") -> bytes:
    return b"HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s" % (headers, len(body), body)


@pytest.fixture
def endpoint() -> TokenEndpoint:
    return HttpTokenEndpoint()


@pytest.fixture
def impatient() -> TokenEndpoint:
    return HttpTokenEndpoint(timeout=SOON)


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    client = ConfidentialClient(client_id="app", client_secret="s3cret-x", redirect_uris=(REDIRECT_URI,), name="App")
    with provider_in_thread(HubSettings(clients=(client,))) as running:
        yield running


@pytest.mark.parametrize("authentication", ["client_secret_basic", "client_secret_post"])
def test_a_connection_from_the_code_to_its_revocation(
    endpoint: TokenEndpoint, hub: Hub, authentication: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """RFC 6749 §4.1.3 and §6, RFC 7009 §2, with the requests that we build; no secret is logged at any level."""
    configured = {
        "client_id": "app",
        "client_authentication": authentication,
        "issuer": hub.url,
        "account_url": hub.account_url,
    }
    secret = {"MCP_PROVIDER_LOCAL_SECRET": "s3cret-x"}
    provider = read_providers(json.dumps({"local": configured}), secret, local=True)["local"]
    scopes, verifier = frozenset(("user:read",)), "v" * 43
    url = requests.authorization_url(
        provider, redirect_uri=REDIRECT_URI, scopes=scopes, state="state", verifier=verifier
    )
    code = approve(url, user="alice-hub").partition("code=")[2].partition("&")[0]

    caplog.set_level(logging.DEBUG)
    sent = requests.code_request(provider, code=code, redirect_uri=REDIRECT_URI, verifier=verifier)
    first = token_response.read(endpoint.post(sent.url, sent.form, sent.headers), asked=scopes, now=0)
    account = endpoint.get(hub.account_url, requests.account_headers(first.access_token))
    assert first.refresh_token
    sent = requests.refresh_request(provider, first.refresh_token)
    second = token_response.read(endpoint.post(sent.url, sent.form, sent.headers), asked=scopes, now=0)
    assert second.refresh_token
    sent = requests.revocation_request(provider, second.refresh_token, "refresh_token")
    revoked = endpoint.post(sent.url, sent.form, sent.headers)
    after = endpoint.get(hub.account_url, requests.account_headers(second.access_token))

    assert token_response.read_account(account, "login") == "alice-hub"
    assert (revoked.status, after.status) == (200, 401)
    secrets = ["s3cret-x", code, verifier, first.access_token, first.refresh_token, second.access_token]
    assert [each for each in secrets if each in caplog.text] == []


def test_a_form_arrives_as_it_was_given_and_once(endpoint: TokenEndpoint) -> None:
    """RFC 6749 appendix B: application/x-www-form-urlencoded in UTF-8."""
    with raw_server(REPLY) as server:
        reply = endpoint.post(server.url, {"code": "a+b/ &=ä", "empty": ""}, {"accept": "application/json"})

    assert (reply.status, reply.content_type, reply.body) == (200, "application/json", b"{}")
    head, _, body = server.heard[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /token HTTP/1.1\r\n")
    assert b"content-type: application/x-www-form-urlencoded\r\n" in head
    assert b"accept: application/json\r\n" in head
    assert body == b"code=a%2Bb%2F+%26%3D%C3%A4&empty="
    assert server.connections == 1


@pytest.mark.parametrize("status", [204, 302, 307, 308, 400, 401, 429, 500, 503])
def test_every_status_is_a_reply(endpoint: TokenEndpoint, status: int) -> None:
    """A redirect too: its target is not asked (the Location is this very server)."""
    location = b"Location: /elsewhere\r\n"
    with raw_server(b"HTTP/1.1 %d X\r\n%sContent-Length: 0\r\n\r\n" % (status, location)) as server:
        assert endpoint.post(server.url, {}, {}).status == status
        assert endpoint.get(server.url, {}).status == status

    assert server.connections == 2


def test_nothing_is_kept_from_one_request_to_the_next(endpoint: TokenEndpoint) -> None:
    """A cookie would tie one user's request to another's; a connection does not survive a frozen environment."""
    with raw_server(_http_200(b"{}", headers=b"Set-Cookie: a=b\r\n")) as server:
        endpoint.post(server.url, {}, {})
        endpoint.post(server.url, {}, {})

    assert server.connections == 2
    assert b"connection: close\r\n" in server.heard[0]
    assert b"cookie" not in server.heard[1].lower()


def test_proxy_settings_of_the_environment_are_not_looked_at(
    endpoint: TokenEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens would go to whoever set the variable."""
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with raw_server(REPLY) as server:
        assert endpoint.post(server.url, {}, {}).status == 200


def _drip_head(conversation: Conversation) -> None:
    conversation.say(b"HTTP/1.1 200 OK\r\n")
    conversation.drip(b"x: y\r\n")


def _drip_body(conversation: Conversation) -> None:
    conversation.say(b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n")
    conversation.drip(b" ")


def _drip_chunks(conversation: Conversation) -> None:
    conversation.say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    conversation.drip(b"1\r\n \r\n")


def _drip_interim_responses(conversation: Conversation) -> None:
    conversation.drip(b"HTTP/1.1 103 Early Hints\r\n\r\n")


def _stall_in_the_body(conversation: Conversation) -> None:
    conversation.say(REPLY[:-1])
    conversation.stall()


def _say_nothing(conversation: Conversation) -> None:
    conversation.stall()


@pytest.mark.parametrize(
    "talk",
    [_say_nothing, _stall_in_the_body, _drip_head, _drip_body, _drip_chunks, _drip_interim_responses],
    ids=lambda talk: talk.__name__.strip("_").replace("_", " "),
)
def test_the_deadline_is_for_the_whole_request(impatient: TokenEndpoint, talk: Any) -> None:
    """Each byte comes in time for a timeout that is for each read; together they would take for ever."""
    with raw_server(talk) as server:
        started = time.perf_counter()
        with pytest.raises(Unavailable, match="Timeout"):
            impatient.post(server.url, {"code": "x"}, {})
        took = time.perf_counter() - started

    assert SOON <= took < 10
    assert server.connections == 1


def test_the_deadline_is_for_the_handshake_too(impatient: TokenEndpoint) -> None:
    """A port that accepts and never speaks TLS."""
    with raw_server(_say_nothing, hear=False) as server:
        started = time.perf_counter()
        with pytest.raises(Unavailable, match="Timeout"):
            impatient.post(server.url.replace("http:", "https:"), {}, {})

        assert time.perf_counter() - started < 10


def test_the_deadline_is_for_name_resolution_too(impatient: TokenEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """getaddrinfo takes no timeout: a resolver that does not answer would hold the invocation for half a minute."""
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: over.wait(15) and [])
    started = time.perf_counter()
    try:
        with pytest.raises(Unavailable, match="TimeoutError"):
            impatient.post("http://provider.example.com/token", {}, {})
    finally:
        over.set()

    assert SOON <= time.perf_counter() - started < 10


def _by_name(names: dict[str, list[str]]) -> Any:
    def getaddrinfo(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        found = names.get(host, [host])
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in found]

    return getaddrinfo


def test_the_next_address_is_tried_when_one_refuses(endpoint: TokenEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name may have addresses that do not work from here."""
    with raw_server(REPLY) as server:
        monkeypatch.setattr(socket, "getaddrinfo", _by_name({"provider.example.com": ["127.0.0.3", "127.0.0.1"]}))

        assert endpoint.post(f"http://provider.example.com:{server.port}/token", {}, {}).status == 200


@pytest.mark.skipif(sys.platform != "linux", reason="a full backlog drops connections silently on Linux only")
def test_an_address_that_does_not_answer_leaves_time_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its share of the deadline is not all of it."""
    with raw_server(REPLY) as server, socket.socket() as full, socket.socket() as one, socket.socket() as two:
        full.bind(("127.0.0.3", server.port))
        full.listen(0)
        for each in (one, two):
            each.setblocking(False)
            each.connect_ex(("127.0.0.3", server.port))
        monkeypatch.setattr(socket, "getaddrinfo", _by_name({"provider.example.com": ["127.0.0.3", "127.0.0.1"]}))
        reply = HttpTokenEndpoint(timeout=2).post(f"http://provider.example.com:{server.port}/token", {}, {})

    assert reply.status == 200


@pytest.mark.parametrize(
    "host", ["nowhere.invalid", "a" * 64 + ".example", "a..b"], ids=["unknown", "label too long", "empty label"]
)
def test_a_name_that_does_not_resolve_is_unavailable(
    endpoint: TokenEndpoint, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the resolver raises."""
    real = socket.getaddrinfo

    def getaddrinfo(name: str, *arguments: Any, **more: Any) -> Any:
        if name == "nowhere.invalid":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return real(name, *arguments, **more)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with pytest.raises(Unavailable, match="gaierror"):
        endpoint.post(f"http://{host}/token", {}, {})


def test_64_kib_are_read_and_no_byte_more(endpoint: TokenEndpoint) -> None:
    """The bound is on what is kept, with or without a Content-Length."""
    whole, too_much = b"x" * MAX_BYTES, b"x" * (MAX_BYTES + 1)
    with raw_server(_http_200(whole)) as server:
        assert endpoint.get(server.url, {}).body == whole
    for reply in (_http_200(too_much), b"HTTP/1.1 200 OK\r\n\r\n" + too_much):
        with raw_server(reply) as server, pytest.raises(Unavailable, match="too large"):
            endpoint.get(server.url, {})


def test_a_compressed_body_is_not_unpacked(endpoint: TokenEndpoint) -> None:
    """A thousand bytes on the wire may be a million here; we ask for none, so who sends one is broken."""
    bomb = gzip.compress(b" " * 1_000_000)
    assert len(bomb) < MAX_BYTES
    reply = _http_200(bomb, headers=b"Content-Encoding: gzip\r\n")
    with raw_server(reply) as server, pytest.raises(Unavailable, match="compressed"):
        endpoint.get(server.url, {})

    assert b"accept-encoding: identity\r\n" in server.heard[0]


@pytest.mark.parametrize(
    "talk",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x: " + b"y" * 200_000 + b"\r\n\r\n",
    ],
    ids=["closed", "cut off", "bad chunk", "two lengths", "switched", "not HTTP", "huge header"],
)
def test_half_a_reply_is_none(endpoint: TokenEndpoint, talk: bytes) -> None:
    """And it is not asked for again: a code or a refresh token works once."""
    with raw_server(talk) as server, pytest.raises(Unavailable):
        endpoint.post(server.url, {"code": "x"}, {})

    assert server.connections == 1


def test_nobody_there_is_unavailable(endpoint: TokenEndpoint) -> None:
    """At once, and with a hint when to come back."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/token"
        with pytest.raises(Unavailable, match="ConnectionRefusedError") as refused:
            endpoint.post(url, {"code": "SECRET"}, {"authorization": "Basic SECRET"})

    assert refused.value.retry_after > 0
    assert "SECRET" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://127.0.0.1/token", "not a URL"),
        ("/token", "not a URL"),
        ("token", "not a URL"),
        ("http://127.0.0.1:99999/token", "not a URL"),
        ("http://127.0.0.1:port/token", "not a URL"),
        ("http://[::1/token", "not a URL"),
        ("http://ä.example/token", "not a URL"),
        ("http:///token", "not a URL"),
        ("http://127.0.0.1/to ken", "LocalProtocolError"),
    ],
)
def test_what_is_no_http_url_is_unavailable(endpoint: TokenEndpoint, url: str, reason: str) -> None:
    """Settings check the configured URLs; an authorization server's metadata names others."""
    with pytest.raises(Unavailable, match=reason):
        endpoint.get(url, {})


def test_a_header_cannot_be_smuggled_in(endpoint: TokenEndpoint) -> None:
    """Values with line breaks are refused before anything is sent."""
    with raw_server(REPLY) as server, pytest.raises(Unavailable, match="LocalProtocolError"):
        endpoint.get(server.url, {"authorization": "Bearer a\r\nx-evil: 1"})

    assert server.heard == []


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for 127.0.0.1, with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.IPv4Address("127.0.0.1"))]), False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("certificate") / "both.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
    return path


def test_certificates_are_verified(endpoint: TokenEndpoint, certificate: Path) -> None:
    """RFC 6749 §3.2 and RFC 9700 §2.6; one that is trusted on purpose is enough."""
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(certificate)

    def talk(conversation: Conversation) -> None:
        with own.wrap_socket(conversation.connection, server_side=True) as secured:
            Conversation(secured, conversation.over).hear()
            secured.sendall(REPLY)

    with raw_server(talk, hear=False) as server:
        url = server.url.replace("http:", "https:")
        with pytest.raises(Unavailable, match="SSLCertVerificationError"):
            endpoint.post(url, {}, {})
        trusting = HttpTokenEndpoint(ssl_context=ssl.create_default_context(cafile=str(certificate)))
        assert trusting.post(url, {"code": "x"}, {}).body == b"{}"
        with pytest.raises(Unavailable, match="SSLCertVerificationError"):
            trusting.post(url.replace("127.0.0.1", "localhost"), {}, {})


def test_the_bounds_are_those_of_the_port() -> None:
    """SECURITY §3, step 7: 5 s, 64 KiB."""
    assert (TIMEOUT, MAX_BYTES) == (5.0, 65_536)


def test_the_client_library_waits_for_the_first_request() -> None:
    """The MCP function imports this module on its hot path; most requests never send anything."""
    code = "import sys, app.adapters.oauth_http; sys.exit(bool({'httpx2', 'h11'} & set(sys.modules)))"
    root = Path(__file__).parent.parent.parent

    assert subprocess.run([sys.executable, "-c", code], cwd=root, env=dict(os.environ), check=False).returncode == 0

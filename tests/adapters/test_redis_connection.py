"""The connection to Redis when Redis is not well: bounded in time, and never twice what must happen once."""

import contextlib
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PrivateFormat
from cryptography.x509.oid import NameOID

from app.adapters.redis_connection import MAX_IDLE, Redis, Script, connect
from app.adapters.redis_flows import RedisFlowStore
from app.errors import Unavailable
from app.oauth.flow import TABLE, Event
from app.ports import Moved, Transition
from tests.adapters.contracts.valkey import Server, running

GET = Script("return redis.call('GET', KEYS[1])")
NOW = 1_800_000_000.0


@contextmanager
def opened(url: str, *, cluster: bool = False, clock: Callable[[], float] = time.time) -> Iterator[Redis]:
    connection = connect(url, cluster=cluster, clock=clock)
    try:
        yield connection
    finally:
        connection.close()


@pytest.mark.parametrize("which", ["single", "cluster"])
@pytest.mark.parametrize("used_before", [False, True])
def test_a_hung_server_is_unavailable_within_a_second(
    which: str, used_before: bool, request: pytest.FixtureRequest
) -> None:
    """PLATFORM section 4: redis-py's defaults take about a minute."""
    server: Server = request.getfixturevalue(which)
    with opened(server.url, cluster=server.cluster) as connection:
        if used_before:
            connection.run(GET, ["k"])
        with server.hung():
            started = time.perf_counter()
            with pytest.raises(Unavailable) as refused:
                connection.run(GET, ["k"])
            assert time.perf_counter() - started < 1
        assert refused.value.retry_after > 0
        assert connection.run(GET, ["k"]) is None


@pytest.mark.parametrize("cluster", [False, True])
def test_a_server_that_is_down_is_unavailable_at_once(cluster: bool) -> None:
    """PLATFORM section 4."""
    with (
        running(cluster=cluster) as server,
        opened(server.url, cluster=cluster) as used_before,
        opened(server.url, cluster=cluster) as fresh,
    ):
        used_before.run(GET, ["k"])
        server.stop()
        started = time.perf_counter()
        for connection in (used_before, fresh):
            with pytest.raises(Unavailable):
                connection.run(GET, ["k"])
            with pytest.raises(Unavailable):
                connection.call("GET", "k")
        assert time.perf_counter() - started < 1


def test_an_unreachable_address_is_unavailable_within_a_second() -> None:
    """A listener that takes no more connections stands for a network that drops packets."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        try:
            for each in fillers:
                each.setblocking(False)
                each.connect_ex(full.getsockname())
            with opened(f"redis://127.0.0.1:{full.getsockname()[1]}") as connection:
                started = time.perf_counter()
                with pytest.raises(Unavailable):
                    connection.run(GET, ["k"])
                assert time.perf_counter() - started < 1
        finally:
            for each in fillers:
                each.close()


@pytest.mark.parametrize("which", ["single", "cluster"])
def test_a_script_that_the_server_does_not_know_is_sent_in_full(which: str, request: pytest.FixtureRequest) -> None:
    """CASES B.7 98: EVALSHA answers NOSCRIPT after a restart or a failover."""
    server: Server = request.getfixturevalue(which)
    server.admin.set("k", "v")
    with opened(server.url, cluster=server.cluster) as connection:
        for _ in range(3):
            server.admin.script_flush()
            assert connection.run(GET, ["k"]) == "v"
            assert connection.run(GET, ["k"]) == "v"


def test_a_connection_that_broke_between_two_scripts_costs_nothing(single: Server) -> None:
    """PLATFORM section 4: server restarted between calls."""
    with opened(single.url) as connection:
        connection.run(GET, ["k"])
        single.admin.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        assert connection.run(GET, ["k"]) is None


def test_a_server_that_restarts_empty_is_empty_and_well() -> None:
    """SECURITY section 5, 139."""
    with running() as server, opened(server.url) as connection:
        flows = RedisFlowStore(connection)
        flows.create("f", {"status": "pending"}, lifetime=900)
        server.restart()
        assert flows.read("f") is None
        flows.create("f", {"status": "pending"}, lifetime=900)
        assert flows.read("f") == {"status": "pending"}


def test_an_idle_connection_is_not_trusted(single: Server) -> None:
    """A frozen environment: the network forgot the connection and told nobody."""
    now = NOW
    with opened(single.url, clock=lambda: now) as connection:
        first = connection.call("CLIENT", "ID")
        now += MAX_IDLE
        assert connection.call("CLIENT", "ID") == first
        now += MAX_IDLE + 1
        assert connection.call("CLIENT", "ID") != first


class Proxy:
    """Forwards to a server, and drops a reply by closing the connection when told to."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.drop_next_reply = False
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._listener.getsockname()[1]}"

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(client,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._port)) as server:
            while request := client.recv(65536):
                server.sendall(request)
                reply = server.recv(65536)
                if self.drop_next_reply:
                    self.drop_next_reply = False
                    return
                client.sendall(reply)

    def stop(self) -> None:
        # A listener that is closed under accept() keeps waiting: shut it down first.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._threads:
            each.join(timeout=5)


@pytest.fixture
def proxy(single: Server) -> Iterator[Proxy]:
    running_proxy = Proxy(int(single.url.rpartition(":")[2]))
    yield running_proxy
    running_proxy.stop()


def test_a_step_whose_reply_was_lost_is_taken_once(single: Server, proxy: Proxy) -> None:
    """PLATFORM section 4, at-least-once: sent again, answered again, counted once."""
    with opened(proxy.url) as connection:
        flows = RedisFlowStore(connection)
        flows.create("f", {"status": "pending", "attempts": "0"}, lifetime=900)
        row = TABLE[Event.BEGIN]
        begin = Transition(step="n", sources=row.sources, target=row.target, attempt_cap=5)
        flows.move("f", Transition(step="warm", sources=frozenset(), target="x"), now=NOW)
        proxy.drop_next_reply = True
        outcome = flows.move("f", begin, now=NOW)
        assert isinstance(outcome, Moved)
        assert outcome.fields["attempts"] == "1"
        assert single.admin.hget("mcp:flow:{f}", "attempts") == "1"


def test_a_one_shot_command_is_not_sent_again(single: Server, proxy: Proxy) -> None:
    """PLATFORM section 4: a repeated GETDEL answers None for a code that was there."""
    single.admin.set("k", "v")
    with opened(proxy.url) as connection:
        connection.call("PING")
        proxy.drop_next_reply = True
        with pytest.raises(Unavailable):
            connection.call("GETDEL", "k")
        assert connection.call("GETDEL", "k") is None


def test_a_refusal_by_the_server_is_unavailable_and_quotes_nothing(single: Server) -> None:
    """Out of memory, loading, read-only: all the same to a caller. A message may hold a key or a value."""
    with opened(single.url) as connection, pytest.raises(Unavailable) as refused:
        connection.run(Script("return redis.error_reply('OOM secret-value')"), ["k"])
    assert "secret" not in str(refused.value)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a certificate for 127.0.0.1 that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "cache")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, SHA256())
    )
    directory = tmp_path_factory.mktemp("certificate")
    (directory / "cert.pem").write_bytes(signed.public_bytes(Encoding.PEM))
    (directory / "key.pem").write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return directory


@pytest.fixture(scope="module")
def tls_port(certificate: Path) -> Iterator[int]:
    """Redis that speaks TLS and nothing else. Valkey's wheel is built without it."""
    if shutil.which("redis-server") is None:
        pytest.skip("NO REDIS: TLS was not tested. Debian: apt-get install redis-server")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    options = {
        "bind": "127.0.0.1",
        "port": "0",
        "tls-port": str(port),
        "tls-cert-file": str(certificate / "cert.pem"),
        "tls-key-file": str(certificate / "key.pem"),
        "tls-auth-clients": "no",
        "tls-ca-cert-file": str(certificate / "cert.pem"),
        "save": "",
        "appendonly": "no",
    }
    arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
    process = subprocess.Popen(["redis-server", *arguments], stdout=subprocess.DEVNULL)
    try:
        while True:
            with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
                break
            assert process.poll() is None, "redis-server ended"
            time.sleep(0.01)
        yield port
    finally:
        process.terminate()
        process.wait()


@pytest.mark.parametrize(
    ("host", "trusted", "reached"), [("127.0.0.1", True, True), ("127.0.0.1", False, False), ("localhost", True, False)]
)
def test_tls_verifies_who_answers(
    tls_port: int, certificate: Path, monkeypatch: pytest.MonkeyPatch, host: str, trusted: bool, reached: bool
) -> None:
    """rediss:// means a certificate of a trusted authority, for the host in the URL (RFC 9525)."""
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
    with opened(f"rediss://{host}:{tls_port}") as connection:
        if reached:
            assert connection.call("PING") is True
        else:
            with pytest.raises(Unavailable):
                connection.call("PING")


def test_credentials_are_asked_for_each_connection(single: Server) -> None:
    """ElastiCache with IAM: a token that is valid for 15 minutes."""
    single.admin.execute_command("ACL", "SETUSER", "iam", "on", ">token", "~*", "+@all")
    asked: list[int] = []

    def credentials() -> tuple[str, str]:
        asked.append(1)
        return "iam", "token"

    connection = connect(single.url, credentials=credentials)
    try:
        assert connection.call("ACL", "WHOAMI") == "iam"
        connection.close()
        assert connection.call("ACL", "WHOAMI") == "iam"
        assert len(asked) == 2
    finally:
        connection.close()
        single.admin.execute_command("ACL", "DELUSER", "iam")


def test_the_library_is_imported_by_the_first_command_only() -> None:
    """DESIGN section 1, promise 6."""
    program = (
        "import sys; from app.adapters import redis_flows, redis_vault; "
        "from app.adapters.redis_connection import connect; connect('redis://127.0.0.1:1'); "
        "sys.exit('redis' in sys.modules)"
    )
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", program], check=False, cwd=root).returncode == 0

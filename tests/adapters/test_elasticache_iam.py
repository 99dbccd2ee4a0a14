"""ElastiCache IAM tokens: signed as AWS verifies them, renewed in time, and taken by a server as a password."""

import hashlib
import hmac
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode

import pytest

from app.adapters.aws_client import AwsRefused
from app.adapters.elasticache_iam import KEPT, LIFETIME, ElastiCacheIam
from app.adapters.redis_connection import Script, connect
from app.errors import Unavailable
from tests.adapters.contracts.valkey import Server

USER, CACHE, REGION = "mcp", "roundtrip-cache", "eu-central-1"
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
ACL = "~mcp:* -@all +@read +@write +@scripting +@transaction +@connection -@dangerous +cluster|slots +cluster|shards"
GET = Script("return redis.call('GET', KEYS[1])")


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(autouse=True)
def role(monkeypatch: pytest.MonkeyPatch) -> None:
    """The credentials that Lambda gives a function, in its environment."""
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    use_role(monkeypatch, "AKIDEXAMPLE")


def use_role(monkeypatch: pytest.MonkeyPatch, access_key: str) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", "session/token+==")


def iam(clock: Clock, *, serverless: bool = True) -> ElastiCacheIam:
    return ElastiCacheIam(USER, CACHE, region=REGION, serverless=serverless, clock=clock)


def query_of(token: str) -> dict[str, str]:
    return dict(parse_qsl(token.partition("?")[2], strict_parsing=True))


def signature(token: str) -> str:
    """Signature Version 4 for query strings, written from its description alone."""
    query = query_of(token)
    del query["X-Amz-Signature"]
    day = query["X-Amz-Date"][:8]
    canonical = "\n".join(
        [
            "GET",
            "/",
            urlencode(sorted(query.items()), quote_via=quote, safe="-_.~"),
            f"host:{CACHE}",
            "",
            "host",
            hashlib.sha256(b"").hexdigest(),
        ]
    )
    scope = f"{day}/{REGION}/elasticache/aws4_request"
    hashed = hashlib.sha256(canonical.encode()).hexdigest()
    to_sign = "\n".join(["AWS4-HMAC-SHA256", query["X-Amz-Date"], scope, hashed])
    key = f"AWS4{SECRET}".encode()
    for part in (day, REGION, "elasticache", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.new(key, to_sign.encode(), "sha256").hexdigest()


@pytest.mark.parametrize("serverless", [True, False])
def test_the_token_is_a_presigned_connect_request_without_its_scheme(clock: Clock, serverless: bool) -> None:
    """ElastiCache, Authenticating with IAM; Signature Version 4, Authenticating requests: query parameters."""
    user, token = iam(clock, serverless=serverless)()
    query = query_of(token)
    assert user == USER
    assert token.startswith(f"{CACHE}/?Action=connect&User={USER}&")
    assert query.get("ResourceType") == ("ServerlessCache" if serverless else None)
    assert query["X-Amz-Expires"] == str(LIFETIME)
    assert query["X-Amz-Security-Token"] == "session/token+=="
    assert query["X-Amz-Signature"] == signature(token)


def test_a_token_is_used_again_while_it_is_young_and_then_signed_anew(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token lasts 15 minutes, and no longer than the session that signed it."""
    credentials = iam(clock)
    first = credentials()
    use_role(monkeypatch, "AKIDROTATED")
    clock.now += KEPT - 1
    assert credentials() == first
    clock.now += 1
    assert query_of(credentials()[1])["X-Amz-Credential"].startswith("AKIDROTATED/")


@pytest.mark.parametrize("event", ["restore", "clock set back"])
def test_a_token_from_another_time_is_not_used(clock: Clock, monkeypatch: pytest.MonkeyPatch, event: str) -> None:
    """PLATFORM section 6: what a snapshot holds is dropped; its clock may be anything."""
    credentials = iam(clock)
    credentials()
    use_role(monkeypatch, "AKIDROTATED")
    if event == "restore":
        credentials.forget()
    else:
        clock.now -= 10
    assert query_of(credentials()[1])["X-Amz-Credential"].startswith("AKIDROTATED/")


def let_in(server: Server, token: str) -> None:
    server.admin.execute_command("ACL", "SETUSER", USER, "resetpass", "on", f">{token}", *ACL.split())


@pytest.fixture(params=["single", "cluster"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server that knows the user, and none of the tokens yet."""
    server: Server = request.getfixturevalue(request.param)
    server.admin.execute_command("ACL", "SETUSER", USER, "on", *ACL.split())
    yield server
    server.admin.execute_command("ACL", "DELUSER", USER)


def test_a_connection_after_the_tokens_end_signs_anew(
    server: Server, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ElastiCache cuts a connection after 12 hours at the latest, when its token has long ended."""
    credentials = iam(clock)
    let_in(server, credentials()[1])
    connection = connect(server.url, cluster=server.cluster, credentials=credentials)
    try:
        assert connection.run(GET, ["mcp:k"]) is None
        use_role(monkeypatch, "AKIDROTATED")
        clock.now += LIFETIME
        let_in(server, credentials()[1])
        server.admin.execute_command("CLIENT", "KILL", "USER", USER)
        assert connection.run(GET, ["mcp:k"]) is None
        with pytest.raises(Unavailable):
            connection.run(GET, ["other:k"])
    finally:
        connection.close()


def test_a_token_that_the_server_does_not_take_is_unavailable(server: Server, clock: Clock) -> None:
    """A user without elasticache:Connect, and a clock that is wrong, look the same from here."""
    connection = connect(server.url, cluster=server.cluster, credentials=iam(clock))
    try:
        for _ in range(2):
            with pytest.raises(Unavailable):
                connection.run(GET, ["mcp:k"])
    finally:
        connection.close()


@pytest.mark.parametrize("used_before", [False, True])
def test_without_credentials_the_reason_has_the_remedy_and_no_connection_stays_open(
    server: Server, clock: Clock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, used_before: bool
) -> None:
    """redis-py keeps a connection on which an error that it does not know came up, and nobody signed in."""
    credentials = iam(clock)
    let_in(server, credentials()[1])
    connection = connect(server.url, cluster=server.cluster, credentials=credentials)
    try:
        if used_before:
            assert connection.run(GET, ["mcp:k"]) is None
        clock.now += LIFETIME
        with monkeypatch.context() as patched:
            for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
                patched.delenv(name)
            patched.setenv("AWS_EC2_METADATA_DISABLED", "true")
            patched.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
            patched.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
            server.admin.execute_command("CLIENT", "KILL", "USER", USER)
            with pytest.raises(Unavailable, match="run under a role"):
                connection.run(GET, ["mcp:k"])
            with pytest.raises(AwsRefused):
                credentials()
        let_in(server, credentials()[1])
        assert connection.run(GET, ["mcp:k"]) is None
    finally:
        connection.close()


def test_nothing_of_aws_is_imported_before_the_first_token() -> None:
    """DESIGN section 1, promise 6."""
    program = (
        "import sys; from app.adapters.elasticache_iam import ElastiCacheIam; "
        "ElastiCacheIam('u', 'c', region='eu-central-1', serverless=True); "
        "sys.exit('botocore' in sys.modules)"
    )
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", program], check=False, cwd=root).returncode == 0

"""URL mode between a snapshot and its restores: what is imported, what is asked for, and what is dropped."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from app.adapters import snapstart
from app.connection_settings import ConnectionSettings
from app.effects.limits import Kind, Limit
from app.oauth.connections import Ended, Pending
from app.principal import Principal
from app.settings import Settings
from app.wiring.connections import UrlMode, url_mode
from tests.adapters.contracts.valkey import Server
from tests.handlers.test_mcp import REQUIRED


def environment(url: str, **more: str) -> dict[str, str]:
    return {**REQUIRED, "MCP_REDIS_URL": url, "MCP_OIDC_CLIENT_ID": "web", **more}


def opened(configuration: dict[str, str]) -> UrlMode:
    mode = url_mode(configuration, Settings.read(configuration))
    assert mode is not None
    return mode


def test_a_restore_drops_the_connection_and_the_token(single: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """PLATFORM section 6: drop the client and the IAM token in hooks."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    iam = {"MCP_REDIS_IAM_USER": "app", "MCP_REDIS_CACHE_NAME": "cache", "AWS_REGION": "eu-central-1"}
    single.admin.execute_command("ACL", "SETUSER", "app", "on", "nopass", "~*", "+@all")
    mode = opened(environment(single.url, **iam))
    try:
        redis, credentials = mode.stores.redis, mode._redis[1]
        assert credentials is not None
        first, token = redis.call("CLIENT", "ID"), credentials()
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDROTATED")
        assert (redis.call("CLIENT", "ID"), credentials()) == (first, token)
        snapstart.forget(mode)
        assert redis.call("CLIENT", "ID") != first
        assert "AKIDROTATED" in credentials()[1]
        assert mode.stores.redis is redis
    finally:
        mode.forget()
        single.admin.execute_command("ACL", "DELUSER", "app")


def test_a_snapshot_has_what_a_connection_imports_and_nobody_was_asked() -> None:
    """The first connection after a restore would pay for it otherwise: about a second."""
    program = (
        "import sys; from app.wiring.connections import url_mode; from app.settings import Settings; "
        f"e = {environment('rediss://127.0.0.1:1', MCP_CONNECTIONS_SECRET='s')!r}; "
        "mode = url_mode(e, Settings.read(e)); mode.forget(); "
        "before = {'redis', 'botocore'} & set(sys.modules); mode.prepare(); "
        "sys.exit(before or not {'redis', 'botocore'} <= set(sys.modules) or 'settings' in vars(mode))"
    )
    root = Path(__file__).parents[2]
    process = subprocess.run([sys.executable, "-c", program], check=False, cwd=root, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr


def test_settings_are_read_again_after_a_failure_and_never_after_a_success() -> None:
    """A secret that could not be read is tried again by the next request."""
    configuration = environment("rediss://127.0.0.1:1")
    good = ConnectionSettings.read(configuration, Settings.read(configuration))
    assert good is not None
    outcomes: list[LookupError | ConnectionSettings] = [LookupError(), good]

    def read() -> ConnectionSettings:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    mode = UrlMode(read, is_read=False)
    with pytest.raises(LookupError):
        mode.connections()
    assert mode.connections() is mode.connections()


ALICE = Principal("https://login.example.com", "alice", "https://client.example.com/client.json")
NOW = 1_800_000_000
ACME = {
    "MCP_PROVIDERS": json.dumps({"github": {"client_id": "gh"}}),
    "MCP_PROVIDER_GITHUB_SECRET": "s3cret",
    "MCP_FLOW_LIMIT": "2/60",
}


def test_links_are_counted_when_they_are_made_and_a_retry_still_costs_two_round_trips(single: Server) -> None:
    """MCP_FLOW_LIMIT in Redis. A retry that comes too early is neither counted nor slower."""
    mode = opened(environment(single.url, **ACME))
    try:
        connections = mode.connections()
        first = connections.connect(ALICE, "github", scopes=(), response=None, now=NOW)
        assert isinstance(first, Pending)
        assert connections.connect(ALICE, "github", scopes=(), response="accept", now=NOW) == first
        before = single.commands()
        for _ in range(100):
            assert connections.connect(ALICE, "github", scopes=(), response="accept", now=NOW) == first
        assert single.commands() - before == 200
        assert isinstance(connections.secret(ALICE, "one", label="One", response=None, now=NOW), Pending)
        refused = connections.secret(ALICE, "two", label="Two", response=None, now=NOW)
        assert isinstance(refused, Ended)
        assert "Try again in 60 seconds" in refused.text
        assert isinstance(connections.secret(ALICE, "two", label="Two", response=None, now=NOW + 60), Pending)
        dumped = single.dump()
        assert "mcp:rate:{" in dumped
        assert not [each for each in (ALICE.subject, "client.example", "login.example") if each in dumped]
    finally:
        mode.forget()


def test_a_counted_question_costs_one_round_trip(single: Server) -> None:
    """MCP_ASK_LIMIT: one script, on whatever server."""
    mode = opened(environment(single.url, MCP_ASK_LIMIT="5/60"))
    try:
        assert mode.asks_limited
        limits = mode.effects().limits
        limits.take(ALICE, Kind.ASK, entropy=b"warm" * 4, now=NOW)
        before = single.commands()
        for number in range(4):
            limits.take(ALICE, Kind.ASK, entropy=number.to_bytes(16, "big"), now=NOW)
        limits.take(ALICE, Kind.ASK, entropy=b"full" * 4, now=NOW)
        assert single.commands() - before == 5
        assert mode.settings.limits[Kind.ASK] == Limit(5, 60)
    finally:
        mode.forget()


@pytest.mark.parametrize(("limit", "counted"), [({}, False), ({"MCP_ASK_LIMIT": "5/60"}, True)])
def test_whether_questions_are_counted_is_known_before_the_secret_is_read(limit: dict[str, str], counted: bool) -> None:
    """A form that nobody counts must not wait for Secrets Manager."""
    configuration = environment("rediss://127.0.0.1:1", MCP_CONNECTIONS_SECRET="s", **limit)
    mode = opened(configuration)
    assert mode.asks_limited is counted
    assert "settings" not in vars(mode)

"""URL mode between a snapshot and its restores: what is imported, what is asked for, and what is dropped."""

import subprocess
import sys
from pathlib import Path

import pytest

from app.adapters import snapstart
from app.connection_settings import ConnectionSettings
from app.settings import Settings
from app.wiring.connections import UrlMode, url_mode
from tests.adapters.contracts.valkey import Server
from tests.handlers.test_mcp import ENVIRONMENT


def environment(url: str, **more: str) -> dict[str, str]:
    return {**ENVIRONMENT, "MCP_REDIS_URL": url, "MCP_OIDC_CLIENT_ID": "web", **more}


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

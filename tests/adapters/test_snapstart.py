"""What the functions let go around a SnapStart snapshot, with AWS's own registry of hooks."""

import sys
from collections.abc import Callable

import pytest

from app.adapters import snapstart
from app.adapters.kms import KmsKeyring
from app.authorization.jwks import Jwks
from app.oauth.server_metadata import MetadataCache
from app.wiring import mcp, web
from app.wiring.connections import UrlMode

ENVIRONMENT = {
    "MCP_RESOURCE_URL": "https://mcp.example.com/mcp",
    "MCP_ISSUER": "https://login.example.com",
    "MCP_SEALING_SECRET": "roundtrip-keys",
    "MCP_KMS_KEY": "arn:aws:kms:eu-central-1:111122223333:key/1234abcd",
    "MCP_SEALING_APP": "roundtrip",
    "MCP_REDIS_URL": "rediss://cache.example.com:6379",
    "MCP_OIDC_CLIENT_ID": "web",
}


class Hooks:
    """Runs what was registered, as the runtime does: the hooks before a snapshot in reverse order."""

    def __init__(self) -> None:
        self.before_snapshot: list[tuple[Callable[..., object], tuple[object, ...], dict[str, object]]] = []
        self.after_restore: list[tuple[Callable[..., object], tuple[object, ...], dict[str, object]]] = []

    def snapshot(self) -> None:
        for hook, arguments, options in reversed(self.before_snapshot):
            hook(*arguments, **options)

    def restore(self) -> None:
        for hook, arguments, options in self.after_restore:
            hook(*arguments, **options)


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> Hooks:
    hooks = Hooks()
    monkeypatch.setattr("snapshot_restore_py._before_snapshot_registry", hooks.before_snapshot)
    monkeypatch.setattr("snapshot_restore_py._after_restore_registry", hooks.after_restore)
    return hooks


class Held:
    def __init__(self) -> None:
        self.done: list[str] = []

    def forget(self) -> None:
        self.done.append("forget")

    def prepare(self) -> None:
        self.done.append("prepare")


def test_before_a_snapshot_everything_is_dropped_and_imported_and_after_a_restore_dropped(hooks: Hooks) -> None:
    """Lambda, SnapStart, Runtime hooks. The import is in the snapshot, what it fetches must not be."""
    held = Held()
    snapstart.register(held, None, object())
    assert held.done == []
    hooks.snapshot()
    assert held.done == ["forget", "prepare"]
    hooks.restore()
    assert held.done == ["forget", "prepare", "forget"]


def test_where_there_are_no_snapshots_nothing_is_registered(monkeypatch: pytest.MonkeyPatch, hooks: Hooks) -> None:
    """uvicorn, a test, Python 3.11: the runtime's package is not there."""
    monkeypatch.setitem(sys.modules, "snapshot_restore_py", None)
    snapstart.register(Held())
    assert hooks.before_snapshot == hooks.after_restore == []


@pytest.mark.parametrize(
    ("build", "holders"),
    [
        (mcp.build, [KmsKeyring, Jwks, UrlMode]),
        (web.build, [KmsKeyring, Jwks, MetadataCache, UrlMode]),
    ],
)
def test_a_function_forgets_keys_documents_and_connections(
    monkeypatch: pytest.MonkeyPatch, hooks: Hooks, build: Callable[..., object], holders: list[type]
) -> None:
    """SECURITY 2.6: key cache, JWKS cache, Redis and HTTP connections. HTTP connections are closed by each request."""
    build(ENVIRONMENT, ())
    forgotten: list[type] = []
    for holder in holders:
        monkeypatch.setattr(holder, "forget", lambda self: forgotten.append(type(self)))
    hooks.snapshot()
    assert forgotten == holders
    hooks.restore()
    assert forgotten == holders * 2

"""What URL mode needs of a deployment: all problems at once, each with its remedy, no secret in any message."""

import base64
import json

import pytest

from app.connection_settings import ConnectionSettings
from app.errors import ConfigurationError
from app.settings import Settings

KEY = base64.urlsafe_b64encode(b"1" * 32).decode()
OTHER = base64.urlsafe_b64encode(b"2" * 32).decode()
BASE = {
    "MCP_RESOURCE_URL": "https://mcp.example.com/v1/mcp",
    "MCP_ISSUER": "https://login.example.com",
    "MCP_SEALING_KEYS": f"1:{KEY}",
}
GOOD = {
    "MCP_REDIS_URL": "rediss://user:p4ssw0rd@cache.example.com:6379",
    "MCP_OIDC_CLIENT_ID": "web",
    "MCP_PROVIDERS": json.dumps({"github": {"client_id": "gh"}}),
    "MCP_PROVIDER_GITHUB_SECRET": "gh-s3cret",
}


def read(**changes: str) -> ConnectionSettings | None:
    environment = {**BASE, **GOOD, **changes}
    return ConnectionSettings.read(environment, Settings.read(environment))


def problems(**changes: str) -> tuple[str, ...]:
    with pytest.raises(ConfigurationError) as caught:
        read(**changes)
    return caught.value.problems


def test_a_good_configuration_is_read_and_shows_no_secret() -> None:
    """The pages are where the endpoint is, without /mcp."""
    configured = read()
    assert configured is not None
    assert configured.base_url == "https://mcp.example.com/v1"
    assert configured.providers["github"].client_secret == "gh-s3cret"
    assert configured.openid
    assert "p4ssw0rd" not in repr(configured)
    assert "s3cret" not in repr(configured)


def test_without_a_store_there_is_no_url_mode() -> None:
    """Forms need no store."""
    assert read(MCP_REDIS_URL="", MCP_PROVIDERS="") is None
    assert problems(MCP_REDIS_URL="") == ("MCP_PROVIDERS needs a store: set MCP_REDIS_URL, like rediss://cache:6379.",)


def test_every_problem_is_named_at_once() -> None:
    """A missing setting is not found one deployment at a time."""
    found = problems(
        MCP_REDIS_URL="cache:6379", MCP_OIDC_CLIENT_ID="", MCP_SIGN_IN="saml", MCP_PROVIDERS="{", MCP_SEALING_PEPPER="x"
    )
    assert len(found) == 5
    assert any("https://mcp.example.com/v1/auth/callback" in each for each in found)
    for name in ("REDIS_URL", "OIDC_CLIENT_ID", "SIGN_IN", "PROVIDERS", "SEALING_PEPPER"):
        assert any(each.startswith(f"MCP_{name}") for each in found), name


def test_a_ring_of_several_keys_needs_its_pepper_at_start() -> None:
    """A rotation must not rename what is stored, and the first user must not be the one to find out."""
    two = {"MCP_SEALING_KEYS": f"2:{OTHER},1:{KEY}"}
    assert any("never change it" in each for each in problems(**two))
    rotated = read(**two, MCP_SEALING_PEPPER=f"1:{KEY}")
    alone = read()
    assert rotated is not None
    assert alone is not None
    assert rotated.keyring.pepper.secret == alone.keyring.pepper.secret

"""What a caller decides about Local Hub: its clients, users, lifetimes and clock."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from infra.local.identity.settings import ConfidentialClient, User

SCOPES: Final[Mapping[str, str]] = {
    "user:read": "See your account",
    "repo:read": "See your repositories",
    "repo:write": "Change your repositories",
}
DEFAULT_SCOPE: Final = "user:read"

ALICE_HUB: Final = User(subject="alice-hub", name="Alice at the Hub", email="alice@hub.example.com")
BOB_HUB: Final = User(subject="bob-hub", name="Bob at the Hub", email="bob@hub.example.com")


@dataclass(frozen=True, kw_only=True)
class HubSettings:
    """`skip_remembered_consent` sends a browser that agreed before straight back, without a click.

    Many providers do so, and it is what makes a confused deputy possible (MCP, Security Best Practices).
    """

    clients: tuple[ConfidentialClient, ...] = ()
    issuer: str = "http://127.0.0.1:9500"
    users: tuple[User, ...] = (ALICE_HUB, BOB_HUB)
    clock: Callable[[], float] = time.time
    authorization_code_lifetime: int = 60
    access_token_lifetime: int = 3600
    refresh_token_lifetime: int = 180 * 24 * 3600
    browser_session_lifetime: int = 8 * 3600
    skip_remembered_consent: bool = False

"""Local Hub: a third-party OAuth 2.0 provider with a protected API, which misbehaves on demand. Development only."""

from infra.local.identity.scripted_browser import ScriptedBrowser, SignInFailed
from infra.local.identity.settings import ConfidentialClient, User
from infra.local.provider.application import create_app
from infra.local.provider.authorization_server import HubServer
from infra.local.provider.faults import Fault, Kind
from infra.local.provider.record import Arrival, Record
from infra.local.provider.serving import Hub, provider_in_thread, serve_provider
from infra.local.provider.settings import ALICE_HUB, BOB_HUB, HubSettings

__all__ = [
    "ALICE_HUB",
    "BOB_HUB",
    "Arrival",
    "ConfidentialClient",
    "Fault",
    "Hub",
    "HubServer",
    "HubSettings",
    "Kind",
    "Record",
    "ScriptedBrowser",
    "SignInFailed",
    "User",
    "approve",
    "create_app",
    "provider_in_thread",
    "serve_provider",
]


def approve(authorization_url: str, *, user: str, allow: bool = True) -> str:
    """Sign in as `user` in a new browser, authorize or cancel, and return the URL that the browser is sent to.

    That URL is not opened: it is the client's own. Blocks, so in an event loop call it in a thread.
    """
    with ScriptedBrowser() as browser:
        return browser.sign_in(authorization_url, user=user, approve=allow)

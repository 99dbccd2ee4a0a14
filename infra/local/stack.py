"""Everything that `make run` starts, as one object: the emulator and what the functions need around them."""

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.tools import TOOLS
from infra.local.emulator import Emulator, PortInUse
from infra.local.identity import Identity, IdentitySettings, serve_identity
from infra.local.sealing_keys import ensure_sealing_keys

ROOT: Final = Path(__file__).parent.parent.parent
KEY_FILE: Final = ROOT / ".local" / "sealing-keys"


def _nothing(line: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class LocalStack:
    """A running stack. `mcp_url` is what a client connects to."""

    emulator: Emulator
    identity: Identity

    @property
    def mcp_url(self) -> str:
        return f"{self.emulator.url}/mcp"


@contextlib.asynccontextmanager
async def local_stack(
    *,
    port: int = 0,
    identity_port: int = 0,
    environments: int = 2,
    max_environments: int = 8,
    snapstart: bool = False,
    key_file: Path = KEY_FILE,
    template: Path = ROOT / "template.yaml",
    environment: Mapping[str, str] | None = None,
    log: Callable[[str], None] | None = None,
    progress: Callable[[str], None] = _nothing,
) -> AsyncIterator[LocalStack]:
    """Start the stack on 127.0.0.1, and stop it at the end of the block.

    Port 0 takes a free one. `environment` adds to the functions' variables, `log` gets their log lines,
    `progress` a line for each step. Raises EmulatorError, whose message ends with the remedy.
    """
    ensure_sealing_keys(key_file)
    scopes = {scope: f"Use tools that need {scope}" for tool in TOOLS for scope in tool.scopes}
    async with contextlib.AsyncExitStack() as stack:
        progress("Starting the authorization server ...")
        settings = IdentitySettings(resources=(), scopes=scopes)
        try:
            identity = await stack.enter_async_context(serve_identity(settings, port=identity_port))
        except OSError as error:
            raise PortInUse(
                f"Port {identity_port} on 127.0.0.1 is not free ({error.strerror}). "
                "Choose another with --identity-port."
            ) from error
        progress(f"Starting {environments} execution environments for each function of {template.name} ...")

        def parameters(url: str) -> dict[str, str]:
            return {"Stage": "local", "ResourceUrl": f"{url}/mcp", "Issuer": identity.url, "SealingKeys": ""}

        def variables(url: str) -> dict[str, str]:
            local = {"MCP_SEALING_KEY_FILE": str(key_file), "MCP_ALLOWED_ORIGINS": url}
            return {**local, **(environment or {})}

        emulator = await stack.enter_async_context(
            Emulator(
                template,
                parameters=parameters,
                environment=variables,
                environments=environments,
                max_environments=max_environments,
                port=port,
                snapstart=snapstart,
                log=log,
            )
        )
        identity.server.add_resource(f"{emulator.url}/mcp")
        yield LocalStack(emulator, identity)

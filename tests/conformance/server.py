"""The server under test: the functions in the emulator, behind the proxy that has an access token for them."""

import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx2

from infra.local.emulator import Emulator
from infra.local.identity import IdentitySettings, serve_identity
from infra.local.sealing_keys import ensure_sealing_keys
from tests.conformance.proxy import Proxy, token_proxy
from tests.protocol.official_types import judge

TEMPLATE: Final = Path(__file__).parent / "template.yaml"
ENVIRONMENTS: Final = 3
"""Consecutive rounds never meet the same one, and the suite sends three requests at once."""


@dataclass(frozen=True)
class ServerUnderTest:
    """A running server. `url` is the MCP endpoint behind the proxy."""

    emulator: Emulator
    proxy: Proxy

    @property
    def url(self) -> str:
        return f"{self.proxy.url}/mcp"


@contextlib.asynccontextmanager
async def server_under_test(key_file: Path) -> AsyncIterator[ServerUnderTest]:
    """The everything server with authentication on, warm, with every response that passes judged."""
    ensure_sealing_keys(key_file)
    async with contextlib.AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(token_proxy())
        identity = await stack.enter_async_context(serve_identity(IdentitySettings(resources=())))
        emulator = await stack.enter_async_context(
            Emulator(
                TEMPLATE,
                # The origin of a web page that the server allows is the one which the suite knows it by.
                parameters=lambda url: {
                    "ResourceUrl": f"{url}/mcp",
                    "Issuer": identity.url,
                    "AllowedOrigins": proxy.url,
                },
                environment={"MCP_SEALING_KEY_FILE": str(key_file)},
                environments=ENVIRONMENTS,
                # A new one would need longer to start than some checks of server-stateless wait.
                max_environments=ENVIRONMENTS,
            )
        )
        resource = f"{emulator.url}/mcp"
        identity.server.add_resource(resource)
        proxy.target, proxy.judge = emulator.url, judge
        proxy.token = identity.mint(
            "alice", client_id="conformance", scope="", resource=resource, now=int(time.time()), lifetime=3600
        )
        await _warm(resource, proxy.token)
        yield ServerUnderTest(emulator, proxy)


async def _warm(url: str, token: str) -> None:
    """One request to each environment: the first one fetches the issuer's keys."""
    async with httpx2.AsyncClient(trust_env=False, headers={"authorization": f"Bearer {token}"}) as http:
        for _ in range(ENVIRONMENTS):
            await http.post(url, json={})

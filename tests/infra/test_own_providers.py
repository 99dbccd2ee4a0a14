"""Third parties of one's own with `make run`: the tutorial's second half, with a provider that is here."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from infra.local.__main__ import own_providers
from infra.local.desk import desk_stack
from infra.local.emulator import EmulatorError
from infra.local.identity import ConfidentialClient
from infra.local.on_thread import on_thread
from infra.local.person import Intent, ScriptedBrowser
from infra.local.provider import Hub, HubSettings, serve_provider
from infra.local.stack import LocalStack
from tests.clients.raw import RawClient, mint

URLS: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}}


@contextlib.asynccontextmanager
async def stack_with_a_provider(folder: Path) -> AsyncIterator[tuple[LocalStack, Hub]]:
    async with serve_provider(HubSettings()) as mine:
        entry = {"preset": "local", "title": "Mine", "client_id": "me", "client_secret": "s3cret", "issuer": mine.url}
        async with desk_stack(folder, environments=1, providers={"hub": entry}) as stack:
            redirect_uri = f"{stack.emulator.url}/oauth/callback/hub"
            mine.server.register(
                ConfidentialClient(
                    client_id="me", client_secret="s3cret", redirect_uris=(redirect_uri,), name="Roundtrip"
                )
            )
            yield stack, mine


def test_a_user_connects_a_provider_that_the_stack_does_not_start(tmp_path: Path) -> None:
    """docs/tutorial.md, section 5."""

    async def ask(stack: LocalStack) -> str:
        async with httpx2.AsyncClient(trust_env=False, timeout=30) as http:
            alice = RawClient(http, stack.mcp_url, mint(stack, "alice"), capabilities=URLS)
            asked = (await alice.call("list_repositories", {})).json()["result"]["inputRequests"]
            url: str = asked["connect_hub"]["params"]["url"]
            return url

    with on_thread(lambda: stack_with_a_provider(tmp_path), name="own") as ((stack, mine), _):
        link = asyncio.run(ask(stack))
        with contextlib.closing(ScriptedBrowser()) as browser:
            visited = browser.open(link, Intent(accounts=("alice", "alice-hub")))
        assert visited.pages[-1] == "Mine is connected"
        assert len(mine.record.at("/token")) == 1
        assert len(stack.hub.record.at("/token")) == 0


@pytest.mark.parametrize("text", ["", "{}"])
def test_nobody_has_to_have_one(text: str) -> None:
    assert own_providers({"MCP_PROVIDERS": text}) == own_providers({}) == {}


@pytest.mark.parametrize("text", ["{", "[]", '"github"'])
def test_what_is_no_object_is_said_with_an_example(text: str) -> None:
    with pytest.raises(EmulatorError, match=r'like \{"github": \{"client_id": "\.\.\."\}\}\.$'):
        own_providers({"MCP_PROVIDERS": text})

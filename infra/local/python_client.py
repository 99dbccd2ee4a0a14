"""The official Python client, signed in at the local authorization server as a person would be."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client import Client, ClientRequestContext
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from mcp_types import ElicitRequestParams, ElicitResult

from infra.local.identity import sign_in

Answer = Callable[[ElicitRequestParams], ElicitResult]
OnResponse = Callable[[httpx2.Response], Awaitable[None]]

# The client listens nowhere: the scripted browser hands it the redirect.
_REDIRECT_URI = "http://127.0.0.1:9999/callback"


class _Memory(TokenStorage):
    """Tokens and registration of one client, for as long as it lives."""

    def __init__(self) -> None:
        self._tokens: OAuthToken | None = None
        self._client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


class _Login:
    """Opens the authorization URL in the scripted browser, and keeps what comes back to the client."""

    def __init__(self, user: str) -> None:
        self._user = user
        self._redirected = ""

    async def open(self, authorization_url: str) -> None:
        self._redirected = await asyncio.to_thread(sign_in, authorization_url, user=self._user)

    async def result(self) -> AuthorizationCodeResult:
        query = {name: values[0] for name, values in parse_qs(urlsplit(self._redirected).query).items()}
        return AuthorizationCodeResult(code=query["code"], state=query.get("state"), iss=query.get("iss"))


@contextlib.asynccontextmanager
async def signed_in_client(
    mcp_url: str,
    *,
    user: str,
    answer: Answer,
    on_response: OnResponse | None = None,
    mode: str = "auto",
    client_name: str = "Roundtrip demo",
) -> AsyncIterator[Client]:
    """A connected client: it finds the authorization server, registers, signs `user` in, and answers
    elicitations with `answer`. `on_response` sees every HTTP response, those of the login too.
    """
    login = _Login(user)
    metadata = OAuthClientMetadata.model_validate(
        {
            "redirect_uris": [_REDIRECT_URI],
            "client_name": client_name,
            "grant_types": ["authorization_code", "refresh_token"],
        }
    )
    auth = OAuthClientProvider(mcp_url, metadata, _Memory(), redirect_handler=login.open, callback_handler=login.result)

    one_at_a_time = asyncio.Lock()

    async def elicit(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        # In a thread, since a person or a browser takes its time; one question after the other, in their order.
        async with one_at_a_time:
            return await asyncio.to_thread(answer, params)

    hooks: dict[str, list[Any]] = {"response": [on_response]} if on_response else {}
    async with (
        httpx2.AsyncClient(auth=auth, event_hooks=hooks, timeout=30, trust_env=False) as http_client,
        Client(
            streamable_http_client(mcp_url, http_client=http_client),
            mode=mode,
            elicitation_callback=elicit,
        ) as client,
    ):
        yield client

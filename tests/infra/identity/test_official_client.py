"""The official Python client logs in by itself, from a 401 to an accepted token."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import httpx2
import jwt
import pytest
from anyio.to_thread import run_sync
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from infra.local.identity import FetchedDocument, Identity, IdentitySettings, serve_identity, sign_in

ORIGIN: Final = "http://127.0.0.1:9"
RESOURCE: Final = f"{ORIGIN}/mcp"
REDIRECT_URI: Final = "http://127.0.0.1:3118/callback"
DOCUMENT_URL: Final = "https://app.example/client.json"
SETTINGS: Final = IdentitySettings(
    resources=(RESOURCE,),
    scopes={"tickets:read": "Read your tickets", "tickets:close": "Close your tickets"},
    fetch_client_document=lambda url: FetchedDocument(json.dumps(_document(url)).encode()),
)


@pytest.mark.parametrize(
    ("client_metadata_url", "registered_by"),
    [(None, "POST /register"), (DOCUMENT_URL, "metadata document")],
    ids=["dynamic client registration", "client ID metadata document"],
)
def test_the_official_client_gets_in(client_metadata_url: str | None, registered_by: str) -> None:
    """MCP authorization, Authorization Flow Steps."""

    async def scenario(identity: Identity) -> None:
        login = _Login(user="bob", client_metadata_url=client_metadata_url)
        async with _http(identity, login) as http:
            response = await http.get(RESOURCE)

        assert response.status_code == 200
        claims = response.json()
        assert (claims["sub"], claims["aud"], claims["iss"]) == ("bob", RESOURCE, identity.url)
        assert claims["scope"].split() == ["tickets:read", "offline_access"]
        assert ("POST /register" in identity.requests) is (registered_by == "POST /register")
        if client_metadata_url:
            assert claims["client_id"] == client_metadata_url
        assert identity.requests.count("POST /token") == 1

    _with_identity(scenario)


def test_the_official_client_refreshes_without_a_browser() -> None:
    """MCP authorization, Refresh Tokens."""

    async def scenario(identity: Identity) -> None:
        login = _Login(user="alice")
        async with _http(identity, login) as http:
            first = (await http.get(RESOURCE)).json()
            login.provider.context.token_expiry_time = 1.0
            authorizations = identity.requests.count("GET /authorize")
            second = (await http.get(RESOURCE)).json()

        assert second["jti"] != first["jti"]
        assert second["sub"] == "alice"
        assert identity.requests.count("GET /authorize") == authorizations
        assert identity.requests[-1] == "POST /token"

    _with_identity(scenario)


def test_the_official_client_steps_up_when_a_scope_is_missing() -> None:
    """MCP authorization, Step-Up Authorization Flow: the same client ID, the union of scopes."""

    async def scenario(identity: Identity) -> None:
        login = _Login(user="alice")
        async with _http(identity, login) as http:
            first = (await http.get(RESOURCE)).json()
            second = (await http.get(RESOURCE, headers={"X-Needs": "tickets:close"})).json()

        assert {"tickets:read", "tickets:close"} <= set(second["scope"].split())
        assert first["client_id"] == second["client_id"]

    _with_identity(scenario)


def test_the_official_client_learns_of_a_refusal() -> None:
    """RFC 6749 §4.1.2.1: access_denied reaches the callback, with a valid issuer."""

    async def scenario(identity: Identity) -> None:
        login = _Login(user="alice", approve=False)
        async with _http(identity, login) as http:
            with pytest.raises(_Denied, match="access_denied"):
                await http.get(RESOURCE)
        assert login.answer["iss"] == identity.url

    _with_identity(scenario)


class _Denied(Exception):
    pass


class _Login:
    """The user's side of the client: its browser, its callback, and its memory."""

    def __init__(self, *, user: str, approve: bool = True, client_metadata_url: str | None = None) -> None:
        self.answer: dict[str, str] = {}
        self._browse = partial(sign_in, user=user, approve=approve)
        self._tokens: OAuthToken | None = None
        self._client: OAuthClientInformationFull | None = None
        self.provider = OAuthClientProvider(
            server_url=RESOURCE,
            client_metadata=OAuthClientMetadata.model_validate(_document(DOCUMENT_URL)),
            storage=self,
            redirect_handler=self._open,
            callback_handler=self._callback,
            client_metadata_url=client_metadata_url,
        )

    async def _open(self, authorization_url: str) -> None:
        # The server shares this event loop, so the blocking browser goes to a thread.
        redirect = await run_sync(self._browse, authorization_url)
        assert redirect.startswith(REDIRECT_URI)
        self.answer = {name: value for name, (value,) in parse_qs(urlsplit(redirect).query).items()}

    async def _callback(self) -> AuthorizationCodeResult:
        if "error" in self.answer:
            raise _Denied(self.answer["error"])
        return AuthorizationCodeResult.model_validate(self.answer)

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


def _with_identity(scenario: Callable[[Identity], Awaitable[None]]) -> None:
    async def run() -> None:
        async with serve_identity(SETTINGS) as identity:
            await scenario(identity)

    asyncio.run(run())


def _http(identity: Identity, login: _Login) -> httpx2.AsyncClient:
    """Reaches the protected resource in memory, the authorization server over HTTP."""
    resource = httpx2.ASGITransport(_protected_resource(identity))
    return httpx2.AsyncClient(auth=login.provider, mounts={ORIGIN: resource}, trust_env=False)


def _protected_resource(identity: Identity) -> Starlette:
    """As little of an MCP server as its authorization takes: RFC 9728 metadata, challenges, a verified token."""
    metadata_url = f"{ORIGIN}/.well-known/oauth-protected-resource/mcp"

    async def metadata(request: Request) -> Response:
        return JSONResponse({"resource": RESOURCE, "authorization_servers": [identity.url]})

    async def resource(request: Request) -> Response:
        challenge = f'Bearer resource_metadata="{metadata_url}", scope="tickets:read"'
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme != "Bearer":
            return Response(status_code=401, headers={"WWW-Authenticate": challenge})
        claims = _verified(token, identity)
        needed = request.headers.get("x-needs", "tickets:read")
        if needed not in claims["scope"].split():
            insufficient = f'Bearer error="insufficient_scope", scope="{needed}", resource_metadata="{metadata_url}"'
            return Response(status_code=403, headers={"WWW-Authenticate": insufficient})
        return JSONResponse(claims)

    return Starlette(
        routes=[Route(urlsplit(metadata_url).path, metadata), Route("/mcp", resource)],
    )


def _verified(token: str, identity: Identity) -> dict[str, Any]:
    (jwk,) = identity.server.keys.jwks()["keys"]
    claims: dict[str, Any] = jwt.decode(
        token, jwt.PyJWK(jwk), algorithms=["ES256"], audience=RESOURCE, issuer=identity.url
    )
    return claims


def _document(url: str) -> dict[str, Any]:
    return {
        "client_id": url,
        "client_name": "Official client",
        "redirect_uris": [REDIRECT_URI],
        "grant_types": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_method": "none",
    }

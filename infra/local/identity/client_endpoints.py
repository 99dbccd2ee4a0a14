"""The endpoints that programs call: metadata, keys, registration, token, revocation, userinfo."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from anyio.to_thread import run_sync
from authlib.oauth2 import OAuth2Error
from authlib.oauth2.rfc6749 import InvalidClientError, InvalidRequestError
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from infra.local.identity import metadata
from infra.local.identity.authorization_server import AuthorizationServer
from infra.local.identity.basic_credentials import check_basic_credentials
from infra.local.identity.client_document_fetcher import DocumentUnavailable
from infra.local.identity.forms import read_form
from infra.local.identity.oauth_messages import Answer, OAuthRequest, RegistrationRequest

BODY_LIMIT: Final = 64 * 1024
# No cookie counts here, so any web page may call: MCP clients that live in a browser have to.
_CORS: Final = Middleware(
    CORSMiddleware,
    allow_origins=["*"],
    allow_methods=["GET", "POST"],
    allow_headers=["*"],
    expose_headers=["WWW-Authenticate"],
)


class ClientEndpoints:
    """Turns HTTP into Authlib's requests and back."""

    def __init__(self, server: AuthorizationServer) -> None:
        self._server = server

    def routes(self) -> Sequence[Route]:
        get, post = ["GET"], ["POST"]
        return [
            _route("/.well-known/oauth-authorization-server", self.metadata, get),
            _route("/.well-known/openid-configuration", self.metadata, get),
            _route(metadata.JWKS, self.jwks, get),
            _route(metadata.REGISTER, self.register, post),
            _route(metadata.TOKEN, self.token, post),
            _route(metadata.REVOKE, self.revoke, post),
            _route(metadata.USERINFO, self.userinfo, [*get, *post]),
        ]

    async def metadata(self, request: Request) -> Response:
        return JSONResponse(metadata.server_metadata(self._server.settings))

    async def jwks(self, request: Request) -> Response:
        return JSONResponse(self._server.keys.jwks())

    async def register(self, request: Request) -> Response:
        try:
            data = await request.json()
        except (ValueError, RecursionError):
            return _error(InvalidRequestError("The body is not JSON: send client metadata as a JSON object"))
        registration = RegistrationRequest(self._url(request), data, headers=request.headers)
        return _json(self._server.create_endpoint_response("client_registration", registration))

    async def token(self, request: Request) -> Response:
        try:
            return _json(self._server.create_token_response(await self._oauth_request(request)))
        except OAuth2Error as error:
            return _error(error)

    async def revoke(self, request: Request) -> Response:
        try:
            oauth_request = await self._oauth_request(request)
            return _json(self._server.create_endpoint_response("revocation", oauth_request))
        except OAuth2Error as error:
            return _error(error)

    async def userinfo(self, request: Request) -> Response:
        oauth_request = OAuthRequest("GET", self._url(request), headers=request.headers, parameters=[])
        return _json(self._server.userinfo(oauth_request))

    async def _oauth_request(self, request: Request) -> OAuthRequest:
        check_basic_credentials(request.headers.get("authorization", ""))
        form = await read_form(request)
        oauth_request = OAuthRequest("POST", self._url(request), headers=request.headers, parameters=form)
        # RFC 6749 §3.2; a repeated resource is for RFC 8707 to judge.
        if set(oauth_request.payload.repeated) - {"resource"}:
            raise InvalidRequestError("A parameter is repeated: send each one once")
        if client_id := oauth_request.payload.client_id:
            try:
                await run_sync(self._server.refresh_client, client_id)
            except DocumentUnavailable as error:
                raise InvalidClientError(description=f"The client ID is of no use: {error}") from error
        return oauth_request

    def _url(self, request: Request) -> str:
        # Never from the Host header.
        return self._server.settings.issuer + request.url.path


def _route(path: str, endpoint: Callable[[Request], Awaitable[Response]], methods: list[str]) -> Route:
    # OPTIONS, or the router would refuse a CORS preflight before the middleware sees it.
    return Route(path, endpoint, methods=[*methods, "OPTIONS"], middleware=[_CORS], max_body_size=BODY_LIMIT)


def _json(answer: Answer) -> Response:
    return JSONResponse(answer.body, status_code=answer.status, headers=answer.headers)


def _error(error: OAuth2Error) -> Response:
    return _json(Answer.from_authlib(*error()))

"""The endpoints that programs call: metadata, token, revocation, and the protected API."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from authlib.oauth2 import OAuth2Error
from authlib.oauth2.rfc6749 import InvalidRequestError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from infra.local.identity.basic_credentials import check_basic_credentials
from infra.local.identity.forms import read_form
from infra.local.identity.ledger import IssuedToken
from infra.local.identity.oauth_messages import Answer, OAuthRequest
from infra.local.provider import metadata, repositories
from infra.local.provider.authorization_server import HubServer
from infra.local.provider.faults import Kind
from infra.local.provider.misbehaving import as_json, respond

BODY_LIMIT: Final = 64 * 1024


class ProgramEndpoints:
    """Turns HTTP into Authlib's requests and back, unless there is a fault to show."""

    def __init__(self, server: HubServer) -> None:
        self._server = server

    def routes(self) -> Sequence[Route]:
        return [
            Route(metadata.METADATA, self.metadata, methods=["GET"]),
            Route(metadata.TOKEN, self.token, methods=["POST"], max_body_size=BODY_LIMIT),
            Route(metadata.REVOKE, self.revoke, methods=["POST"], max_body_size=BODY_LIMIT),
            Route(metadata.USER, self.user, methods=["GET"]),
            Route(metadata.REPOSITORIES, self.repositories, methods=["GET"]),
        ]

    async def metadata(self, request: Request) -> Response:
        return JSONResponse(metadata.server_metadata(self._server.settings.issuer))

    async def token(self, request: Request) -> Response:
        async def act() -> Answer:
            answer: Answer = self._server.create_token_response(oauth_request)
            return answer

        try:
            oauth_request = await self._oauth_request(request)
        except OAuth2Error as error:
            return as_json(_error(error))
        kind = Kind.REFRESH if oauth_request.payload.grant_type == "refresh_token" else Kind.CODE
        return await respond(request, self._server.faults.take(kind), act)

    async def revoke(self, request: Request) -> Response:
        async def act() -> Answer:
            answer: Answer = self._server.create_endpoint_response("revocation", oauth_request)
            return answer

        try:
            oauth_request = await self._oauth_request(request)
        except OAuth2Error as error:
            return as_json(_error(error))
        return await respond(request, self._server.faults.take(Kind.REVOCATION), act)

    async def user(self, request: Request) -> Response:
        def account(token: IssuedToken) -> Any:
            user = token.approval.user
            return {"login": user.subject, "name": user.name, "email": user.email}

        return await self._api(request, "user:read", account)

    async def repositories(self, request: Request) -> Response:
        return await self._api(request, "repo:read", lambda token: repositories.of(token.approval.user))

    async def _api(self, request: Request, scope: str, read: Callable[[IssuedToken], Any]) -> Response:
        async def act() -> Answer:
            try:
                token = self._server.authenticate(self._bearer_request(request), scope=scope)
            except OAuth2Error as error:
                return _error(error)
            return Answer(200, read(token))

        return await respond(request, self._server.faults.take(Kind.API), act)

    def _bearer_request(self, request: Request) -> OAuthRequest:
        # RFC 6750 §2.1: a token counts in the header alone.
        return OAuthRequest("GET", self._url(request), headers=request.headers, parameters=[])

    async def _oauth_request(self, request: Request) -> OAuthRequest:
        check_basic_credentials(request.headers.get("authorization", ""))
        form = await read_form(request)
        oauth_request = OAuthRequest("POST", self._url(request), headers=request.headers, parameters=form)
        # RFC 6749 §3.2; more than one resource is RFC 8707's, and nothing to Local Hub.
        if set(oauth_request.payload.repeated) - {"resource"}:
            raise InvalidRequestError("A parameter is repeated: send each one once")
        return oauth_request

    def _url(self, request: Request) -> str:
        # Never from the Host header.
        return self._server.settings.issuer + request.url.path


def _error(error: OAuth2Error) -> Answer:
    return Answer.from_authlib(*error())

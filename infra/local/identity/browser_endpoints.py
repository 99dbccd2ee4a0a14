"""The endpoints that a person's browser calls: authorization, with sign-in and consent on the way."""

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import parse_qsl, urlencode

from anyio.to_thread import run_sync
from authlib.oauth2 import OAuth2Error
from authlib.oauth2.rfc6749 import InvalidRequestError
from authlib.oidc.core.errors import ConsentRequiredError, LoginRequiredError
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from infra.local.identity import metadata
from infra.local.identity.authorization_server import AuthorizationServer
from infra.local.identity.browser_sessions import BrowserSession, BrowserSessions, SignIn
from infra.local.identity.client_document_fetcher import DocumentUnavailable
from infra.local.identity.forms import parse_parameters, read_form
from infra.local.identity.grants import AuthorizationCodeGrant, requested_resource
from infra.local.identity.ledger import Approval
from infra.local.identity.oauth_messages import Answer, OAuthPayload, OAuthRequest
from infra.local.identity.pages import Pages, Refusal, stylesheet

BODY_LIMIT: Final = 8 * 1024
# RFC 6749 appendix A.3. Authlib puts the value into a description that raises for other characters.
_RESPONSE_TYPE: Final = re.compile(r"[A-Za-z0-9_ ]*")


class BrowserEndpoints:
    """Every step carries the authorization request in its query and validates it again.

    A POST counts only with the CSRF token of this browser's session, and from our own page.
    """

    def __init__(self, server: AuthorizationServer, pages: Pages) -> None:
        settings = server.settings
        self._server = server
        self._pages = pages
        self._clock = settings.clock
        self._issuer = settings.issuer
        self._users = {user.subject: user for user in settings.users}
        self._sessions = BrowserSessions(
            issuer=settings.issuer, lifetime=settings.browser_session_lifetime, clock=settings.clock
        )

    def routes(self) -> Sequence[Route]:
        return [
            Route(metadata.AUTHORIZE, self.ask, methods=["GET"]),
            Route(metadata.AUTHORIZE, self.decide, methods=["POST"], max_body_size=BODY_LIMIT),
            Route(metadata.SIGN_IN, self.sign_in, methods=["POST"], max_body_size=BODY_LIMIT),
            Route(metadata.STYLE, _style, methods=["GET"]),
        ]

    async def ask(self, request: Request) -> Response:
        """Show the sign-in or the consent page; never approve without a click, not even the second time."""
        session = self._sessions.read(request)
        oauth_request = await self._oauth_request(request)
        try:
            grant = self._validate(oauth_request, session)
            if oauth_request.payload.data.get("prompt") == "none":
                needed = ConsentRequiredError if self._current_sign_in(grant, session) else LoginRequiredError
                raise needed(state=oauth_request.payload.state, redirect_uri=grant.redirect_uri)
        except OAuth2Error as error:
            return _respond(self._server.authorization_error(oauth_request, error))
        return self._page(request, grant, session)

    async def sign_in(self, request: Request) -> Response:
        """Sign the chosen user in, then go back to the authorization request."""
        session = self._sessions.read(request)
        form = await self._own_form(request, session)
        user = self._users.get(form.get("user", ""))
        if user is None:
            raise Refusal("Unknown account", "Go back and choose one of the accounts.")
        response = RedirectResponse(f"{metadata.AUTHORIZE}?{_once_signed_in(request.url.query)}", 303)
        self._sessions.write(response, self._sessions.sign_in(user, replacing=session))
        return response

    async def decide(self, request: Request) -> Response:
        """Approve or deny, and send the browser back to the client."""
        session = self._sessions.read(request)
        form = await self._own_form(request, session)
        oauth_request = await self._oauth_request(request)
        try:
            grant = self._validate(oauth_request, session)
        except OAuth2Error as error:
            return _respond(self._server.authorization_error(oauth_request, error))
        sign_in = self._current_sign_in(grant, session)
        match form.get("decision"), form.get("subject"):
            case "deny", _:
                approval = None
            # A page that was shown to one user does not approve for another.
            case "approve", subject if sign_in and subject == sign_in.user.subject:
                approval = self._approval(grant, sign_in)
            case _:
                return self._page(request, grant, session)
        return _respond(self._server.create_authorization_response(oauth_request, grant_user=approval, grant=grant))

    def _validate(self, oauth_request: OAuthRequest, session: BrowserSession) -> AuthorizationCodeGrant:
        payload = oauth_request.payload
        if not _RESPONSE_TYPE.fullmatch(payload.response_type or ""):
            raise InvalidRequestError("The response_type is malformed: send code")
        user = session.sign_in.user if session.sign_in else None
        grant: AuthorizationCodeGrant = self._server.get_consent_grant(oauth_request, end_user=user)
        return grant

    def _current_sign_in(self, grant: AuthorizationCodeGrant, session: BrowserSession) -> SignIn | None:
        """The sign-in, unless the client asks for a newer one (OIDC Core §3.1.2.1, prompt and max_age)."""
        if session.sign_in is None or grant.prompt in ("login", "select_account"):
            return None
        max_age = grant.request.payload.data.get("max_age", "")
        if max_age.isdecimal() and not self._clock() - session.sign_in.at <= int(max_age[:9]):
            return None
        return session.sign_in

    def _page(self, request: Request, grant: AuthorizationCodeGrant, session: BrowserSession) -> Response:
        csrf_token = self._sessions.csrf_token(session)
        client, redirect_uri, query = grant.client, grant.redirect_uri, request.url.query
        if sign_in := self._current_sign_in(grant, session):
            response = self._pages.consent(
                client=client,
                redirect_uri=redirect_uri,
                query=query,
                csrf_token=csrf_token,
                user=sign_in.user,
                scope=grant.request.scope,
                resource=requested_resource(grant.request, self._server),
            )
        else:
            response = self._pages.sign_in(client=client, redirect_uri=redirect_uri, query=query, csrf_token=csrf_token)
        self._sessions.write(response, session)
        return response

    def _approval(self, grant: AuthorizationCodeGrant, sign_in: SignIn) -> Approval:
        return Approval(
            user=sign_in.user,
            client_id=grant.client.client_id,
            scope=grant.request.scope,
            resource=requested_resource(grant.request, self._server),
            auth_time=int(sign_in.at),
        )

    async def _oauth_request(self, request: Request) -> OAuthRequest:
        """The authorization request in the query, with its client known if it can be."""
        try:
            parameters = parse_parameters(request.url.query)
        except OAuth2Error as error:
            raise Refusal("Malformed request", f"{error.description}.") from error
        uri = self._issuer + request.url.path
        oauth_request = OAuthRequest("GET", uri, headers=request.headers, parameters=parameters)
        try:
            await run_sync(self._server.refresh_client, oauth_request.payload.client_id or "")
        except DocumentUnavailable as error:
            raise Refusal("The application is unknown", f"Its client ID is of no use. {error}.") from error
        return oauth_request

    async def _own_form(self, request: Request, session: BrowserSession) -> dict[str, str]:
        """The form of a POST that one of our pages made, in this browser's session."""
        try:
            form = OAuthPayload(await read_form(request)).data
        except OAuth2Error as error:
            raise Refusal("Malformed request", f"{error.description}.") from error
        foreign = (
            request.headers.get("origin", self._issuer) != self._issuer
            or request.headers.get("sec-fetch-site", "same-origin") != "same-origin"
        )
        if foreign or not self._sessions.is_csrf_token(session, form.get("csrf_token", "")):
            reason = "It was made by another site, or the page was open for too long. Start again from the application."
            raise Refusal("The form was not accepted", reason, status=403)
        return form


def _respond(answer: Answer) -> Response:
    if answer.location:
        # 303: a 307 or 308 would send the form on to the client (OAuth 2.1 §7.5.3).
        return RedirectResponse(answer.location, status_code=303)
    error = answer.body
    reason = f"{error.get('error_description') or 'The request is not valid'} ({error['error']})."
    raise Refusal("The application made a mistake", reason)


def _once_signed_in(query: str) -> str:
    """The authorization request without the demands that a sign-in just met, or it would be asked for again."""
    met = {"login", "select_account"}
    parameters = []
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name == "prompt":
            value = " ".join(word for word in value.split() if word not in met)
        if name != "max_age" and (name, value) != ("prompt", ""):
            parameters.append((name, value))
    return urlencode(parameters)


async def _style(request: Request) -> Response:
    return PlainTextResponse(stylesheet(), media_type="text/css")

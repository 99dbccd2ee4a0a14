"""The endpoints that a person's browser calls: authorization, with sign-in and consent on the way."""

from collections.abc import Sequence
from typing import Final

from authlib.common.urls import add_params_to_uri
from authlib.oauth2 import OAuth2Error
from authlib.oauth2.rfc6749 import InvalidRequestError
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from infra.local.identity.browser_sessions import BrowserSession, BrowserSessions, SignIn
from infra.local.identity.forms import parse_parameters, read_form
from infra.local.identity.grants import AuthorizationCodeGrant
from infra.local.identity.ledger import Approval
from infra.local.identity.oauth_messages import Answer, OAuthPayload, OAuthRequest
from infra.local.identity.pages import Refusal
from infra.local.provider import metadata
from infra.local.provider.authorization_server import HubServer
from infra.local.provider.faults import Fault, Kind
from infra.local.provider.pages import Pages, stylesheet
from infra.local.provider.remembered_consents import Consent, RememberedConsents
from infra.local.provider.settings import DEFAULT_SCOPE

BODY_LIMIT: Final = 8 * 1024
ANOTHER_ISSUER: Final = "https://other.hub.example.com"


class BrowserEndpoints:
    """Every step carries the authorization request in its query and validates it again.

    A POST counts only with the CSRF token of this browser's session, and from our own page.
    """

    def __init__(self, server: HubServer, pages: Pages) -> None:
        settings = server.settings
        self._server = server
        self._pages = pages
        self._issuer = settings.issuer
        self._skip_remembered = settings.skip_remembered_consent
        self._users = {user.subject: user for user in settings.users}
        self._consents = RememberedConsents(issuer=settings.issuer)
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
        """Show the sign-in or the consent page, or skip it where the settings say so."""
        session = self._sessions.read(request)
        oauth_request = self._oauth_request(request)
        try:
            grant = self._validate(oauth_request, session)
        except OAuth2Error as error:
            return self._respond(self._server.authorization_error(oauth_request, error))
        if self._skip_remembered and session.sign_in and self._is_remembered(request, grant, session.sign_in):
            return self._conclude(oauth_request, grant, session.sign_in)
        return self._page(request, grant, session)

    async def sign_in(self, request: Request) -> Response:
        """Sign the chosen user in, then go back to the authorization request."""
        session = self._sessions.read(request)
        form = await self._own_form(request, session)
        user = self._users.get(form.get("user", ""))
        if user is None:
            raise Refusal("Unknown account", "Go back and choose one of the accounts.")
        response = RedirectResponse(f"{metadata.AUTHORIZE}?{request.url.query}", 303)
        self._sessions.write(response, self._sessions.sign_in(user, replacing=session))
        return response

    async def decide(self, request: Request) -> Response:
        """Authorize or cancel, and send the browser back to the client."""
        session = self._sessions.read(request)
        form = await self._own_form(request, session)
        oauth_request = self._oauth_request(request)
        try:
            grant = self._validate(oauth_request, session)
        except OAuth2Error as error:
            return self._respond(self._server.authorization_error(oauth_request, error))
        sign_in = session.sign_in
        match form.get("decision"), form.get("subject"):
            case "deny", _:
                return self._conclude(oauth_request, grant, None)
            # A page that was shown to one user does not decide for another.
            case "approve", subject if sign_in and subject == sign_in.user.subject:
                response = self._conclude(oauth_request, grant, sign_in)
                self._consents.remember(request, response, _consent(grant, sign_in))
                return response
            case _:
                return self._page(request, grant, session)

    def _validate(self, oauth_request: OAuthRequest, session: BrowserSession) -> AuthorizationCodeGrant:
        if oauth_request.payload.response_type != "code":
            # Authlib would put the value into a description that raises for some characters.
            raise InvalidRequestError("The response_type must be code")
        user = session.sign_in.user if session.sign_in else None
        grant: AuthorizationCodeGrant = self._server.get_consent_grant(oauth_request, end_user=user)
        return grant

    def _conclude(self, oauth_request: OAuthRequest, grant: AuthorizationCodeGrant, sign_in: SignIn | None) -> Response:
        """The authorization response: a code if the user agreed, else `access_denied`."""
        misbehaviour = self._server.faults.take(Kind.AUTHORIZATION)
        fault = misbehaviour.fault if misbehaviour else None
        approval = None if sign_in is None or fault is Fault.DENIED else _approval(grant, sign_in)
        answer = self._server.create_authorization_response(oauth_request, grant_user=approval, grant=grant)
        return self._respond(answer, fault)

    def _respond(self, answer: Answer, fault: Fault | None = None) -> Response:
        if not answer.location:
            error = answer.body
            reason = f"{error.get('error_description') or 'The request is not valid'} ({error['error']})."
            raise Refusal("The application made a mistake", reason)
        location = answer.location
        if fault is not Fault.MISSING_ISS:
            # RFC 9207 §2: in errors as well.
            iss = ANOTHER_ISSUER if fault is Fault.WRONG_ISS else self._issuer
            location = add_params_to_uri(location, {"iss": iss})
        # 303: a 307 or 308 would send the form on to the client (OAuth 2.1 §7.5.3).
        return RedirectResponse(location, status_code=303)

    def _page(self, request: Request, grant: AuthorizationCodeGrant, session: BrowserSession) -> Response:
        csrf_token = self._sessions.csrf_token(session)
        client, redirect_uri, query = grant.client, grant.redirect_uri, request.url.query
        if session.sign_in:
            response = self._pages.consent(
                client=client,
                redirect_uri=redirect_uri,
                query=query,
                csrf_token=csrf_token,
                user=session.sign_in.user,
                scopes=_scope(grant).split(),
                remembered=self._is_remembered(request, grant, session.sign_in),
            )
        else:
            response = self._pages.sign_in(client=client, redirect_uri=redirect_uri, query=query, csrf_token=csrf_token)
        self._sessions.write(response, session)
        return response

    def _is_remembered(self, request: Request, grant: AuthorizationCodeGrant, sign_in: SignIn) -> bool:
        return self._consents.cover(request, _consent(grant, sign_in))

    def _oauth_request(self, request: Request) -> OAuthRequest:
        try:
            parameters = parse_parameters(request.url.query)
        except OAuth2Error as error:
            raise Refusal("Malformed request", f"{error.description}.") from error
        return OAuthRequest("GET", self._issuer + request.url.path, headers=request.headers, parameters=parameters)

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


def _scope(grant: AuthorizationCodeGrant) -> str:
    # RFC 6749 §3.3: a request without a scope gets the default one.
    return grant.request.scope or DEFAULT_SCOPE


def _consent(grant: AuthorizationCodeGrant, sign_in: SignIn) -> Consent:
    return Consent(sign_in.user.subject, grant.client.client_id, frozenset(_scope(grant).split()))


def _approval(grant: AuthorizationCodeGrant, sign_in: SignIn) -> Approval:
    return Approval(
        user=sign_in.user,
        client_id=grant.client.client_id,
        scope=_scope(grant),
        resource=None,
        auth_time=int(sign_in.at),
    )


async def _style(request: Request) -> Response:
    return PlainTextResponse(stylesheet(), media_type="text/css")

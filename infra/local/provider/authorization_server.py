"""Local Hub's OAuth 2.0 server: Authlib's, with clients registered by hand and opaque tokens."""

import logging
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from authlib.oauth2 import OAuth2Error, ResourceProtector, rfc6749
from authlib.oauth2.rfc6750 import BearerTokenGenerator, BearerTokenValidator

from infra.local.identity.clients import Client
from infra.local.identity.grants import AuthorizationCodeGrant, RequiredS256
from infra.local.identity.ledger import Approval, IssuedToken, Ledger, RefreshToken
from infra.local.identity.oauth_messages import Answer, OAuthRequest
from infra.local.identity.revocation import RevocationEndpoint
from infra.local.identity.settings import ConfidentialClient
from infra.local.provider.clients import HubClient, registered
from infra.local.provider.faults import Faults
from infra.local.provider.grants import CountingRefreshTokenGrant
from infra.local.provider.record import Record
from infra.local.provider.settings import SCOPES, HubSettings

# mypy: allow-subclassing-any


class HubServer(rfc6749.AuthorizationServer):
    """Not thread-safe: the web application calls it from one event loop. `faults` may be set from anywhere."""

    def __init__(self, settings: HubSettings) -> None:
        super().__init__(scopes_supported=list(SCOPES))
        # At DEBUG Authlib logs tokens.
        logging.getLogger("authlib").setLevel(logging.INFO)
        self.settings = settings
        self.ledger = Ledger()
        self.faults = Faults()
        self.record = Record()
        self._clients: dict[str, HubClient] = {}
        for client in settings.clients:
            self.register(client)
        self._protector = ResourceProtector()
        self._protector.register_token_validator(_OwnTokens(self))
        self.register_grant(AuthorizationCodeGrant, [RequiredS256()])
        self.register_grant(CountingRefreshTokenGrant)
        self.register_endpoint(RevocationEndpoint)
        self.register_token_generator(
            "default",
            BearerTokenGenerator(
                _access_token,
                refresh_token_generator=_refresh_token,
                expires_generator=settings.access_token_lifetime,
            ),
        )

    def register(self, client: ConfidentialClient) -> None:
        """Register an application, in place of one with the same ID."""
        self._clients[client.client_id] = registered(client)

    def query_client(self, client_id: str) -> HubClient | None:
        return self._clients.get(client_id)

    def authenticate(self, request: OAuthRequest, *, scope: str) -> IssuedToken:
        """The token that an API request carries. Raises OAuth2Error, which is a challenge (RFC 6750 §3)."""
        token: IssuedToken = self._protector.validate_request([scope], request)
        return token

    def authorization_error(self, request: OAuthRequest, error: OAuth2Error) -> Answer:
        """An error response of the authorization endpoint: a redirect where the redirect URI is trusted."""
        answer: Answer = self.handle_error_response(request, error)
        return answer

    def save_token(self, token: Mapping[str, Any], request: OAuthRequest) -> None:
        clock = self.settings.clock
        approval: Approval = request.user
        access, refresh, scope = token["access_token"], token["refresh_token"], token["scope"]
        until = clock() + token["expires_in"]
        self.ledger.access_tokens[access] = IssuedToken(access, approval, scope, until, clock)
        until = clock() + self.settings.refresh_token_lifetime
        # RFC 6749 §6: a narrower access token leaves the scope of the refresh token as it was.
        self.ledger.refresh_tokens[refresh] = RefreshToken(refresh, approval, approval.scope, until, clock)

    def create_oauth2_request(self, request: OAuthRequest) -> OAuthRequest:
        return request

    def handle_response(self, status: int, body: Any, headers: Sequence[tuple[str, str]]) -> Answer:
        return Answer.from_authlib(status, body, headers)

    def send_signal(self, name: str, *args: Any, **kwargs: Any) -> None:
        """Authlib requires it; nobody listens here."""


class _OwnTokens(BearerTokenValidator):
    """Tokens that were issued here, and a count of all others: each is a token of somebody else's passed on."""

    def __init__(self, server: HubServer) -> None:
        super().__init__(realm="local-hub")
        self._server = server

    def authenticate_token(self, token_string: str) -> IssuedToken | None:
        token = self._server.ledger.access_tokens.get(token_string)
        if token is None:
            self._server.record.foreign_tokens += 1
        return token


def _access_token(*, client: Client, grant_type: str, user: Approval, scope: str) -> str:
    return f"hub_at_{secrets.token_urlsafe(32)}"


def _refresh_token(*, client: Client, grant_type: str, user: Approval, scope: str) -> str:
    return f"hub_rt_{secrets.token_urlsafe(32)}"

"""The authorization server itself: Authlib's, with our clients, records, resources and signing keys behind it."""

import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from authlib.oauth2 import OAuth2Error, ResourceProtector, rfc6749
from authlib.oauth2.rfc6750 import BearerTokenGenerator
from authlib.oauth2.rfc9207 import IssuerParameter

from infra.local.identity.client_documents import ClientDocuments, is_url
from infra.local.identity.client_metadata import ClientMetadata
from infra.local.identity.clients import Client, Registration
from infra.local.identity.grants import (
    AuthorizationCodeGrant,
    InvalidTargetError,
    RefreshTokenGrant,
    RequiredS256,
    ResourceIndicators,
)
from infra.local.identity.ledger import Approval, IssuedToken, Ledger, RefreshToken
from infra.local.identity.oauth_messages import Answer, OAuthRequest, RegistrationRequest
from infra.local.identity.openid import IdToken, UserInfoTokenValidator, user_claims
from infra.local.identity.registration import RegistrationEndpoint
from infra.local.identity.revocation import RevocationEndpoint
from infra.local.identity.settings import ConfidentialClient, IdentitySettings
from infra.local.identity.signing_keys import Omit, SigningKeys

# mypy: allow-subclassing-any


class AuthorizationServer(rfc6749.AuthorizationServer):
    """Not thread-safe but for `mint`: the web application calls it from one event loop.

    `query_client` must not block, so the application first calls `refresh_client`, in a thread.
    """

    def __init__(self, settings: IdentitySettings) -> None:
        super().__init__(scopes_supported=list(settings.scope_descriptions))
        self.settings = settings
        self.keys = SigningKeys(settings.signing_keys)
        self.ledger = Ledger()
        self.default_scope = " ".join(settings.scopes)
        self._resources: dict[str, str] = {}
        self._clients: dict[str, Client] = {}
        self._documents = ClientDocuments(
            settings.fetch_client_document, allow_loopback=settings.allow_loopback_client_ids
        )
        self._userinfo_protector = ResourceProtector()
        self._userinfo_protector.register_token_validator(UserInfoTokenValidator(self))
        for resource in settings.resources:
            self.add_resource(resource)
        for client in settings.clients:
            self.register(client)
        self._register_grants_and_endpoints()

    def _register_grants_and_endpoints(self) -> None:
        extensions = [RequiredS256(), ResourceIndicators(), IdToken(self)]
        self.register_grant(AuthorizationCodeGrant, extensions)
        self.register_grant(RefreshTokenGrant)
        self.register_endpoint(RegistrationEndpoint)
        self.register_endpoint(RevocationEndpoint)
        self.register_extension(_Issuer(self.settings.issuer))
        self.register_token_generator(
            "default",
            BearerTokenGenerator(
                self._access_token,
                refresh_token_generator=_refresh_token,
                expires_generator=self.settings.access_token_lifetime,
            ),
        )

    def mint(
        self,
        subject: str | Omit,
        *,
        client_id: str | Omit,
        scope: str | Omit,
        resource: str | Omit,
        now: int,
        lifetime: int = 3600,
        header: Mapping[str, Any] | None = None,
        **overrides: Any,
    ) -> str:
        """Sign an access token (RFC 9068) without any flow, for tests and for `make token`.

        `overrides` adds or replaces claims, `header` does the same for header fields; `OMIT` leaves one out.
        """
        claims = {
            "iss": self.settings.issuer,
            "sub": subject,
            "aud": resource,
            "client_id": client_id,
            "scope": scope,
            "iat": now,
            "exp": now + lifetime,
            "jti": secrets.token_urlsafe(16),
        }
        return self.keys.sign(claims | overrides, header={"typ": "at+jwt", **(header or {})})

    def add_resource(self, resource: str) -> None:
        """From now on issue tokens for this MCP server too; its `aud` is exactly this string."""
        self._resources[_canonical(resource)] = resource

    def find_resource(self, requested: str) -> str:
        """The configured spelling of a resource, or `invalid_target`."""
        try:
            return self._resources[_canonical(requested)]
        except (KeyError, ValueError):
            raise InvalidTargetError("The resource is not known here: send the URL of the MCP server") from None

    def add_client(self, client: Client) -> None:
        self._clients[client.client_id] = client

    def register(self, client: ConfidentialClient) -> None:
        """Register a client with a secret in advance, in place of one with the same ID."""
        metadata = ClientMetadata(
            redirect_uris=list(client.redirect_uris),
            grant_types=["authorization_code", "refresh_token"],
            client_name=client.name,
        )
        self.add_client(
            Client(
                client_id=client.client_id,
                client_secret=client.client_secret,
                metadata=metadata,
                registration=Registration.IN_ADVANCE,
                default_scope=self.default_scope,
            )
        )

    def refresh_client(self, client_id: str) -> None:
        """Fetch the metadata document when the client ID is a URL; raises `DocumentUnavailable`. Blocks."""
        if client_id not in self._clients and is_url(client_id):
            self._documents.refresh(client_id, now=self.settings.clock())

    def query_client(self, client_id: str) -> Client | None:
        if client := self._clients.get(client_id):
            return client
        if metadata := self._documents.get(client_id):
            return Client(
                client_id=client_id,
                metadata=metadata,
                registration=Registration.METADATA_DOCUMENT,
                default_scope=self.default_scope,
            )
        return None

    def save_token(self, token: Mapping[str, Any], request: OAuthRequest) -> None:
        now = self.settings.clock()
        clock = self.settings.clock
        approval: Approval = request.user
        scope = token.get("scope", "")
        access, refresh = token["access_token"], token.get("refresh_token")
        self.ledger.access_tokens[access] = IssuedToken(access, approval, scope, now + token["expires_in"], clock)
        if refresh:
            until = now + self.settings.refresh_token_lifetime
            # RFC 6749 §6: a narrower access token leaves the scope of the refresh token as it was.
            self.ledger.refresh_tokens[refresh] = RefreshToken(refresh, approval, approval.scope, until, clock)

    def userinfo(self, request: OAuthRequest) -> Answer:
        """The claims of the user behind a bearer token (OIDC Core §5.3)."""
        if "authorization" not in request.headers:
            # RFC 6750 §3.1: no error code where no credentials came.
            return Answer(401, {"error": "invalid_token"}, {"WWW-Authenticate": "Bearer"})
        try:
            token: IssuedToken = self._userinfo_protector.validate_request(["openid"], request)
        except OAuth2Error as error:
            return self.handle_response(*error())
        return Answer(200, dict(user_claims(token.approval, token.scope)))

    def authorization_error(self, request: OAuthRequest, error: OAuth2Error) -> Answer:
        """An error response of the authorization endpoint: with `iss` where it is a redirect (RFC 9207 §2)."""
        answer: Answer = self.handle_error_response(request, error)
        self.execute_hook("after_create_authorization_response", answer)
        return answer

    def create_oauth2_request(self, request: OAuthRequest) -> OAuthRequest:
        return request

    def create_json_request(self, request: RegistrationRequest) -> RegistrationRequest:
        return request

    def handle_response(self, status: int, body: Any, headers: list[tuple[str, str]]) -> Answer:
        return Answer.from_authlib(status, body, headers)

    def send_signal(self, name: str, *args: Any, **kwargs: Any) -> None:
        """Authlib requires it; nobody listens here."""

    def _access_token(self, *, client: Client, grant_type: str, user: Approval, scope: str) -> str:
        return self.mint(
            user.user.subject,
            client_id=client.client_id,
            scope=scope,
            # RFC 9068 §3: a request without a resource gets a default one.
            resource=user.resource or f"{self.settings.issuer}/userinfo",
            now=int(self.settings.clock()),
            lifetime=self.settings.access_token_lifetime,
        )


class _Issuer(IssuerParameter):
    """RFC 9207: `iss` in every authorization response."""

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer

    def get_issuer(self) -> str:
        return self._issuer


def _refresh_token(**_: Any) -> str:
    return secrets.token_urlsafe(32)


def _canonical(resource: str) -> str:
    """Scheme and host in lower case (MCP, Canonical Server URI); an empty path is `/` (RFC 3986 §6.2.3)."""
    parts = urlsplit(resource)
    if parts.scheme.lower() not in ("http", "https") or not parts.netloc or "#" in resource:
        raise ValueError(f"{resource!r} is not a resource: give an absolute http or https URL without fragment")
    return urlunsplit((parts.scheme.lower(), parts.netloc.lower(), parts.path or "/", parts.query, ""))

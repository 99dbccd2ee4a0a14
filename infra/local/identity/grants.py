"""The two grants of this server, from Authlib, and what every request must add: PKCE S256, one known resource."""

from typing import TYPE_CHECKING, Any

from authlib.oauth2 import OAuth2Error
from authlib.oauth2.rfc6749 import InvalidRequestError, grants
from authlib.oauth2.rfc7636 import CodeChallenge

from infra.local.identity.clients import Client
from infra.local.identity.ledger import Approval, AuthorizationCode, RefreshToken
from infra.local.identity.oauth_messages import OAuthRequest
from infra.local.identity.settings import IDENTITY_SCOPES

if TYPE_CHECKING:
    from infra.local.identity.authorization_server import AuthorizationServer

# mypy: allow-subclassing-any

AUTH_METHODS = ["client_secret_basic", "client_secret_post", "none"]


class InvalidTargetError(OAuth2Error):
    """RFC 8707 §2: the requested resource is missing, unknown or malformed."""

    error = "invalid_target"


class AuthorizationCodeGrant(grants.AuthorizationCodeGrant):
    """RFC 6749 §4.1. A code that comes back a second time revokes what the first one gave."""

    TOKEN_ENDPOINT_AUTH_METHODS = AUTH_METHODS
    server: "AuthorizationServer"

    @staticmethod
    def validate_authorization_redirect_uri(request: OAuthRequest, client: Client) -> str:
        # Authlib would put the refused URI into the description, and raise ValueError for some characters.
        requested = request.payload.redirect_uri
        if requested and not client.check_redirect_uri(requested):
            raise InvalidRequestError("The redirect_uri is not registered for this client: register it first")
        redirect_uri = requested or client.get_default_redirect_uri()
        if not redirect_uri:
            raise InvalidRequestError("The request has no redirect_uri and the client has several: add it")
        return str(redirect_uri)

    def save_authorization_code(self, code: str, request: OAuthRequest) -> None:
        data = request.payload.data
        self.server.ledger.codes[code] = AuthorizationCode(
            code=code,
            approval=request.user,
            redirect_uri=data.get("redirect_uri"),
            code_challenge=data["code_challenge"],
            code_challenge_method=data["code_challenge_method"],
            nonce=data.get("nonce"),
            expires_at=self.server.settings.clock() + self.server.settings.authorization_code_lifetime,
        )

    def query_authorization_code(self, code: str, client: Client) -> AuthorizationCode | None:
        record = self.server.ledger.codes.get(code)
        if record is None or record.approval.client_id != client.client_id:
            return None
        if record.redeemed:
            record.approval.revoked = True
            return None
        return record if self.server.settings.clock() < record.expires_at else None

    def delete_authorization_code(self, authorization_code: AuthorizationCode) -> None:
        authorization_code.redeemed = True

    def authenticate_user(self, authorization_code: AuthorizationCode) -> Approval:
        return authorization_code.approval


class RefreshTokenGrant(grants.RefreshTokenGrant):
    """RFC 6749 §6 with rotation. A refresh token that comes back a second time revokes the whole family."""

    TOKEN_ENDPOINT_AUTH_METHODS = AUTH_METHODS
    INCLUDE_NEW_REFRESH_TOKEN = True
    server: "AuthorizationServer"

    def validate_token_request(self) -> None:
        super().validate_token_request()
        check_resource_of_token_request(self.request, self.request.refresh_token.approval, self.server)

    def authenticate_refresh_token(self, refresh_token: str) -> RefreshToken | None:
        record = self.server.ledger.refresh_tokens.get(refresh_token)
        if record is None or not record.check_client(self.client):
            return None
        if record.rotated:
            record.approval.revoked = True
        return None if record.is_revoked() or record.is_expired() else record

    def authenticate_user(self, refresh_token: RefreshToken) -> Approval:
        return refresh_token.approval

    def revoke_old_credential(self, refresh_token: RefreshToken) -> None:
        refresh_token.rotated = True


class RequiredS256(CodeChallenge):
    """PKCE for every client, confidential ones too, and never the method `plain` (OAuth 2.1 §4.1.1, §7.5.2)."""

    SUPPORTED_CODE_CHALLENGE_METHOD = ("S256",)

    def validate_code_challenge(self, grant: AuthorizationCodeGrant, redirect_uri: Any) -> None:
        data = grant.request.payload.data
        # An absent method means plain (RFC 7636 §4.3).
        if "code_challenge" not in data or data.get("code_challenge_method") != "S256":
            raise InvalidRequestError("PKCE is required: send code_challenge and code_challenge_method=S256")
        super().validate_code_challenge(grant, redirect_uri)


class ResourceIndicators:
    """RFC 8707: one known resource, named alike in authorization and token request (MCP, Resource Parameter)."""

    def __call__(self, grant: AuthorizationCodeGrant) -> None:
        grant.register_hook("after_validate_authorization_request_payload", self._check_authorization_request)
        grant.register_hook("after_validate_token_request", self._check_token_request)

    def _check_authorization_request(self, grant: AuthorizationCodeGrant, _: Any) -> None:
        requested_resource(grant.request, grant.server)

    def _check_token_request(self, grant: AuthorizationCodeGrant, _: Any) -> None:
        request = grant.request
        check_resource_of_token_request(request, request.authorization_code.approval, grant.server)


def requested_resource(request: OAuthRequest, server: "AuthorizationServer") -> str | None:
    """The resource a token is asked for; None for a sign-in, which asks for identity and for no API."""
    match request.payload.datalist.get("resource", []):
        case [] if _is_sign_in(request.scope):
            return None
        case []:
            raise InvalidTargetError("The resource parameter is missing: send the URL of the MCP server")
        case [value]:
            return server.find_resource(value)
        case _:
            raise InvalidTargetError("A token is for one resource: send one resource parameter")


def check_resource_of_token_request(request: OAuthRequest, approval: Approval, server: "AuthorizationServer") -> None:
    """Refuse a token request for another resource than the user approved."""
    match request.payload.datalist.get("resource", []):
        case [] if approval.resource is None:
            return
        case [value] if server.find_resource(value) == approval.resource:
            return
        case _:
            raise InvalidTargetError("The resource must be the one of the authorization request: send it again")


def _is_sign_in(scope: str | None) -> bool:
    scopes = (scope or "").split()
    return "openid" in scopes and IDENTITY_SCOPES.keys() >= set(scopes)

"""OpenID Connect on top of the code grant: the ID token, and the claims a scope opens (OIDC Core 1.0)."""

from typing import TYPE_CHECKING, Any

from authlib.oauth2.rfc6750 import BearerTokenValidator
from authlib.oidc.core import OpenIDCode, UserInfo
from joserfc.jwk import ECKey

from infra.local.identity.clients import Client
from infra.local.identity.ledger import Approval, IssuedToken
from infra.local.identity.oauth_messages import OAuthRequest
from infra.local.identity.signing_keys import ALGORITHM

if TYPE_CHECKING:
    from infra.local.identity.authorization_server import AuthorizationServer

# mypy: allow-subclassing-any


def user_claims(approval: Approval, scope: str) -> UserInfo:
    """What the granted scopes tell about the user (OIDC Core §5.4)."""
    user = approval.user
    return UserInfo(sub=user.subject, name=user.name, email=user.email, email_verified=True).filter(scope)


class IdToken(OpenIDCode):
    """Adds an ID token to the token response when `openid` was granted."""

    def __init__(self, server: "AuthorizationServer") -> None:
        super().__init__()
        self._server = server

    def exists_nonce(self, nonce: str, request: OAuthRequest) -> bool:
        # The client compares the nonce. Refusing a repeated one here would break the browser's Back button.
        return False

    def generate_user_info(self, user: Approval, scope: str) -> UserInfo:
        return user_claims(user, scope)

    def get_client_claims(self, client: Client) -> dict[str, Any]:
        now = int(self._server.settings.clock())
        return {
            "iss": self._server.settings.issuer,
            "aud": client.client_id,
            "iat": now,
            "exp": now + self._server.settings.access_token_lifetime,
        }

    def get_client_algorithm(self, client: Client) -> str:
        return ALGORITHM

    def get_encode_header(self, client: Client) -> dict[str, Any]:
        return {"alg": ALGORITHM, "kid": self._server.keys.current.kid, "typ": "JWT"}

    def resolve_client_private_key(self, client: Client) -> ECKey:
        return self._server.keys.current


class UserInfoTokenValidator(BearerTokenValidator):
    """Which access tokens open the userinfo endpoint: issued here, unexpired, unrevoked, with `openid`."""

    def __init__(self, server: "AuthorizationServer") -> None:
        super().__init__()
        self._server = server

    def authenticate_token(self, token_string: str) -> IssuedToken | None:
        return self._server.ledger.access_tokens.get(token_string)

"""What was approved, issued, spent and revoked. In memory: it lives as long as the process.

An `Approval` is what a user agreed to once. Its code and all its tokens carry it, so that revoking it
ends the whole family: what RFC 6749 §4.1.2 asks after a code is used twice, and OAuth 2.1 §4.3.1 after
a refresh token is.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from authlib.oauth2.rfc6749 import TokenMixin
from authlib.oidc.core import AuthorizationCodeMixin

from infra.local.identity.clients import Client
from infra.local.identity.settings import User

# mypy: allow-subclassing-any


@dataclass
class Approval:
    """A user's yes to one client, one resource and some scopes. Authlib passes it around as its `user`.

    `resource` is None for a plain OpenID sign-in, whose access token is for the userinfo endpoint only.
    """

    user: User
    client_id: str
    scope: str
    resource: str | None
    auth_time: int
    revoked: bool = False


@dataclass
class AuthorizationCode(AuthorizationCodeMixin):
    """A code with what it is bound to: client (in the approval), redirect URI and PKCE challenge."""

    code: str = field(repr=False)
    approval: Approval
    redirect_uri: str | None
    code_challenge: str
    code_challenge_method: str
    nonce: str | None
    expires_at: float
    redeemed: bool = False

    def get_redirect_uri(self) -> str | None:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.approval.scope

    def get_nonce(self) -> str | None:
        return self.nonce

    def get_auth_time(self) -> int:
        return self.approval.auth_time


@dataclass
class IssuedToken(TokenMixin):
    """An issued token, known by its exact text."""

    text: str = field(repr=False)
    approval: Approval
    scope: str
    expires_at: float
    clock: Callable[[], float] = field(repr=False)

    def check_client(self, client: Client) -> bool:
        return self.approval.client_id == client.client_id

    def get_scope(self) -> str:
        return self.scope

    def is_expired(self) -> bool:
        return not self.clock() < self.expires_at

    def is_revoked(self) -> bool:
        return self.approval.revoked


@dataclass
class RefreshToken(IssuedToken):
    """Good for one use: `rotated` once its successor was issued."""

    rotated: bool = False


@dataclass(frozen=True)
class Ledger:
    """Every record by its exact text. Spent ones stay, or their second use could not be told from a guess."""

    codes: dict[str, AuthorizationCode] = field(default_factory=dict)
    access_tokens: dict[str, IssuedToken] = field(default_factory=dict)
    refresh_tokens: dict[str, RefreshToken] = field(default_factory=dict)

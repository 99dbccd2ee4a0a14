"""Token revocation (RFC 7009): either token of a family ends the family."""

from authlib.oauth2 import rfc7009
from authlib.oauth2.rfc6749 import InvalidRequestError

from infra.local.identity.clients import Client
from infra.local.identity.grants import AUTH_METHODS
from infra.local.identity.ledger import IssuedToken, Ledger
from infra.local.identity.oauth_messages import OAuthRequest

# mypy: allow-subclassing-any


class RevocationEndpoint(rfc7009.RevocationEndpoint):
    """Answers 200 for a token it does not know, as §2.2 asks.

    An access token already out stays good at the MCP server until it expires: it is a JWT, nobody asks here.
    """

    CLIENT_AUTH_METHODS = AUTH_METHODS

    def check_params(self, request: OAuthRequest, client: Client) -> None:
        # §2.2: a hint of an unknown type is ignored; Authlib would refuse it.
        if "token" not in request.form:
            raise InvalidRequestError("The token parameter is missing: send the token to revoke")

    def query_token(self, token_string: str, token_type_hint: str | None) -> IssuedToken | None:
        ledger: Ledger = self.server.ledger
        return ledger.refresh_tokens.get(token_string) or ledger.access_tokens.get(token_string)

    def revoke_token(self, token: IssuedToken, request: OAuthRequest) -> None:
        token.approval.revoked = True

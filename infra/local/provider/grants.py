"""Refresh at Local Hub: as at the authorization server next door, and counted."""

from typing import TYPE_CHECKING

from authlib.oauth2.rfc6749 import grants

from infra.local.identity.grants import RefreshTokenGrant
from infra.local.identity.ledger import RefreshToken

if TYPE_CHECKING:
    from infra.local.provider.authorization_server import HubServer

# mypy: allow-subclassing-any


class CountingRefreshTokenGrant(RefreshTokenGrant):
    """Rotation with reuse detection, and a count of the reuses. `resource` (RFC 8707) is ignored, as elsewhere."""

    server: "HubServer"

    def validate_token_request(self) -> None:
        grants.RefreshTokenGrant.validate_token_request(self)

    def authenticate_refresh_token(self, refresh_token: str) -> RefreshToken | None:
        known = self.server.ledger.refresh_tokens.get(refresh_token)
        if known is not None and known.rotated and known.check_client(self.client):
            self.server.record.refresh_token_reuses += 1
        return super().authenticate_refresh_token(refresh_token)

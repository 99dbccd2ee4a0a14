"""Dynamic client registration (RFC 7591), open to all: a client proves nothing by it."""

import secrets
from typing import Any

from authlib.oauth2.rfc7591 import ClientRegistrationEndpoint

from infra.local.identity.client_metadata import parse_client_metadata
from infra.local.identity.clients import Client, Registration
from infra.local.identity.oauth_messages import RegistrationRequest

# mypy: allow-subclassing-any


class RegistrationEndpoint(ClientRegistrationEndpoint):
    """Gives out a client ID, and a secret only to a client that asks to authenticate with one."""

    def authenticate_token(self, request: RegistrationRequest) -> str:
        return "open registration"

    def extract_client_metadata(self, request: RegistrationRequest) -> dict[str, Any]:
        return parse_client_metadata(request.payload.data).model_dump(exclude_none=True)

    def generate_client_info(self, request: RegistrationRequest) -> dict[str, Any]:
        method = parse_client_metadata(request.payload.data).token_endpoint_auth_method
        info: dict[str, Any] = {
            "client_id": secrets.token_urlsafe(24),
            "client_id_issued_at": int(self.server.settings.clock()),
        }
        if method != "none":
            info |= {"client_secret": secrets.token_urlsafe(32), "client_secret_expires_at": 0}
        return info

    def save_client(
        self, client_info: dict[str, Any], client_metadata: dict[str, Any], request: RegistrationRequest
    ) -> Client:
        client = Client(
            client_id=client_info["client_id"],
            client_secret=client_info.get("client_secret"),
            metadata=parse_client_metadata(client_metadata),
            registration=Registration.DYNAMIC,
            default_scope=self.server.default_scope,
        )
        self.server.add_client(client)
        return client

"""The clients that this server knows: registered in advance, by themselves, or by a metadata document."""

import hmac
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import urlsplit

from authlib.oauth2.rfc6749 import ClientMixin

from infra.local.identity.client_metadata import ClientMetadata
from infra.local.identity.redirect_uris import is_registered

# mypy: allow-subclassing-any


class Registration(Enum):
    """How a client came to be known; the consent page says how far to trust its name."""

    IN_ADVANCE = "in advance"
    DYNAMIC = "dynamic"
    METADATA_DOCUMENT = "metadata document"


@dataclass(frozen=True)
class Client(ClientMixin):
    """Answers what Authlib's grants ask of a client."""

    client_id: str
    metadata: ClientMetadata
    registration: Registration
    default_scope: str
    client_secret: str | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """Self-asserted: never show it without `host`."""
        return self.metadata.client_name or self.client_id

    @property
    def host(self) -> str | None:
        """Who published the client: proved by HTTPS for a metadata document, else unknown."""
        if self.registration is Registration.METADATA_DOCUMENT:
            return urlsplit(self.client_id).netloc
        return None

    def get_client_id(self) -> str:
        return self.client_id

    def get_default_redirect_uri(self) -> str | None:
        # OAuth 2.1 §2.3.1: with several registered the request must say which.
        return self.metadata.redirect_uris[0] if len(self.metadata.redirect_uris) == 1 else None

    def get_allowed_scope(self, scope: str | None) -> str:
        """What was asked for; the scope of the registration is only the default.

        A step-up asks for more than was registered, under the same client_id (MCP, Step-Up Authorization Flow).
        """
        return scope or self.metadata.scope or self.default_scope

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return is_registered(redirect_uri, self.metadata.redirect_uris)

    def check_client_secret(self, client_secret: str) -> bool:
        return self.client_secret is not None and hmac.compare_digest(
            self.client_secret.encode(), client_secret.encode()
        )

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        if self.client_secret is None:
            return method == "none"
        return method in ("client_secret_basic", "client_secret_post")

    def check_response_type(self, response_type: str) -> bool:
        return response_type in self.metadata.response_types

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type in self.metadata.grant_types

"""The applications that were registered at Local Hub by hand, as at any third party."""

from infra.local.identity.client_metadata import ClientMetadata
from infra.local.identity.clients import Client, Registration
from infra.local.identity.settings import ConfidentialClient
from infra.local.provider.settings import DEFAULT_SCOPE


class HubClient(Client):
    """A confidential client whose redirect URIs are compared as strings, loopback ports too (RFC 9700 §4.1.3)."""

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri in self.metadata.redirect_uris


def registered(client: ConfidentialClient) -> HubClient:
    """What the server keeps of a registration."""
    return HubClient(
        client_id=client.client_id,
        client_secret=client.client_secret,
        metadata=ClientMetadata(
            redirect_uris=list(client.redirect_uris),
            grant_types=["authorization_code", "refresh_token"],
            client_name=client.name,
        ),
        registration=Registration.IN_ADVANCE,
        default_scope=DEFAULT_SCOPE,
    )

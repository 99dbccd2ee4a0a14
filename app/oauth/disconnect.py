"""Ending a connection: the vault forgets first, so that no tool can use what the provider may still honour."""

from collections.abc import Mapping
from contextlib import suppress

from app.errors import Unavailable
from app.oauth import provider as requests
from app.oauth.provider import Provider
from app.oauth.vault import GRANTS, TYPED, Grant, Held, Vault
from app.ports import TokenEndpoint
from app.principal import User

_TRIES = 8
"""A refresh may write once between reading and deleting. More than this is no refresh."""


def disconnect(vault: Vault, endpoint: TokenEndpoint, providers: Mapping[str, Provider], user: User, name: str) -> bool:
    """Delete what is kept under a provider's name or "secret:<name>", then revoke a grant at its provider.

    False: there was nothing. The provider's answer does not matter: the connection is gone either way.
    Raises Unavailable when the store cannot say that it is.
    """
    entry = name if name.startswith(TYPED) else GRANTS + name
    deleted = _delete(vault, user, entry)
    if deleted is None:
        return False
    provider = providers.get(name)
    if provider is not None and isinstance(deleted.record, Grant):
        _revoke(endpoint, provider, deleted.record)
    return True


def _delete(vault: Vault, user: User, entry: str) -> Held | None:
    seen: Held | None = None
    for _ in range(_TRIES):
        held = vault.read(user, entry)
        if held.version is None:
            # Seen before and gone now: deleted by us, with the reply lost, or by another tab. Revoke it.
            return seen
        seen = held
        if vault.delete(user, entry, version=held.version):
            return held
    raise Unavailable("the connection changes too quickly to end it", retry_after=5)


def _revoke(endpoint: TokenEndpoint, provider: Provider, grant: Grant) -> None:
    """RFC 7009, as best we can. The refresh token first: most providers end its access tokens with it."""
    if provider.revocation_url is None:
        return
    with suppress(Unavailable):
        if grant.refresh_token is not None:
            request = requests.revocation_request(provider, grant.refresh_token, "refresh_token")
            endpoint.post(request.url, request.form, request.headers)
        request = requests.revocation_request(provider, grant.access_token, "access_token")
        endpoint.post(request.url, request.form, request.headers)

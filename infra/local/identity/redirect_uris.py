"""Which redirect URIs a client may register, and when a requested one counts as a registered one."""

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import SplitResult, urlsplit

from authlib.oauth2.rfc7591 import InvalidRedirectURIError

LOOPBACK_HOSTS: Final = frozenset({"127.0.0.1", "::1", "localhost"})
# RFC 3986 leaves these out of every URI; in a Location or a CSP header they would end the value.
_NOT_IN_A_URI: Final = re.compile(r'[^\x21-\x7e]|["\\<>^`{|}]')


def check_redirect_uri(uri: str) -> None:
    """Refuse what is neither HTTPS nor loopback HTTP (MCP authorization, Communication Security)."""
    parts = _split(uri)
    if parts is None:
        raise InvalidRedirectURIError("A redirect URI is not a URI: percent-encode what RFC 3986 does not allow")
    if parts.scheme == "http" and parts.hostname not in LOOPBACK_HOSTS:
        raise InvalidRedirectURIError("An http redirect URI must be on 127.0.0.1, [::1] or localhost: use https")
    if parts.scheme not in ("http", "https"):
        raise InvalidRedirectURIError("A redirect URI must use https, or http on a loopback address")
    if not parts.hostname or parts.username is not None or parts.password is not None:
        raise InvalidRedirectURIError("A redirect URI needs a host and no user information: remove what is before @")
    if "#" in uri:
        raise InvalidRedirectURIError("A redirect URI must not have a fragment: remove the part from #")


def is_registered(requested: str, registered: Iterable[str]) -> bool:
    """Exact comparison, but for the port of a loopback redirect, which a native app learns late (RFC 8252 §7.3)."""
    return any(requested == uri or _same_but_port(requested, uri) for uri in registered)


def is_loopback(uri: str) -> bool:
    """Whether the browser would be sent back to a program on this computer."""
    parts = _split(uri)
    return parts is not None and parts.scheme == "http" and parts.hostname in LOOPBACK_HOSTS


def origin(uri: str) -> str:
    """Scheme, host and port of a checked redirect URI."""
    parts = urlsplit(uri)
    return f"{parts.scheme}://{parts.netloc}"


def _same_but_port(requested: str, registered: str) -> bool:
    one, other = _split(requested), _split(registered)
    return (
        is_loopback(registered)
        and one is not None
        and other is not None
        and "@" not in one.netloc
        and "#" not in requested
        and (one.scheme, one.hostname, one.path, one.query) == (other.scheme, other.hostname, other.path, other.query)
    )


def _split(uri: str) -> SplitResult | None:
    if _NOT_IN_A_URI.search(uri):
        return None
    try:
        parts = urlsplit(uri)
        _ = parts.port  # reading it is what refuses http://127.0.0.1:99999
    except ValueError:
        return None
    return parts

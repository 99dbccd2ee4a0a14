"""The guard before Authlib's reading of HTTP Basic credentials."""

import base64

from authlib.oauth2.rfc6749 import InvalidClientError


def check_basic_credentials(authorization: str) -> None:
    """Authlib decodes the credentials without a guard and would raise UnicodeDecodeError."""
    scheme, _, credentials = authorization.partition(" ")
    if scheme.lower() != "basic":
        return
    try:
        base64.b64decode(credentials).decode("utf-8")
    except ValueError:
        raise InvalidClientError(
            status_code=401, description="The Basic credentials are not Base64 of UTF-8: see RFC 7617"
        ) from None

"""The certificate authorities that outgoing HTTPS trusts, read once."""

import ssl
from functools import cache

import httpx2


@cache
def trusted_certificates() -> ssl.SSLContext:
    """Reading them takes a tenth of a second; each new HTTP client would do it again."""
    return httpx2.create_ssl_context(trust_env=False)

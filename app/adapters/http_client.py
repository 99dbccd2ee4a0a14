"""Small JSON documents over HTTPS: bounded in time and size, no redirects, no proxy settings."""

from typing import Final

from app import strict_json
from app.adapters.oauth_http import HttpTokenEndpoint
from app.errors import Unavailable

TIMEOUT: Final = 3.0
MAX_BYTES: Final = 150_000
RETRY_AFTER: Final = 30


class HttpDocumentSource:
    """Implements ports.DocumentSource."""

    def __init__(self, *, timeout: float = TIMEOUT, max_bytes: int = MAX_BYTES) -> None:
        self._http = HttpTokenEndpoint(timeout=timeout, max_bytes=max_bytes)

    def prepare(self) -> None:
        """Import what the first fetch needs, for a snapshot."""
        self._http.prepare()

    def fetch(self, url: str) -> object:
        """The parsed JSON at `url`. Raises Unavailable for anything else, within `timeout` seconds."""
        reply = self._http.get(url, {"accept": "application/json"})
        if reply.status != 200:
            raise Unavailable(f"HTTP {reply.status}", retry_after=RETRY_AFTER)
        try:
            return strict_json.parse(reply.body)
        except strict_json.NotStrictJson as error:
            raise Unavailable(f"not JSON: {error}", retry_after=RETRY_AFTER) from error

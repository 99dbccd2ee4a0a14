"""Small JSON documents over HTTPS, with httpx2: bounded in time and size, no redirects, no proxy settings."""

import time
from typing import Final

from app import strict_json
from app.errors import Unavailable

TIMEOUT: Final = 3.0
MAX_BYTES: Final = 150_000


class HttpDocumentSource:
    """Implements ports.DocumentSource. The client library is imported by the first fetch."""

    def __init__(self, *, timeout: float = TIMEOUT, max_bytes: int = MAX_BYTES) -> None:
        self._timeout = timeout
        self._max_bytes = max_bytes

    def fetch(self, url: str) -> object:
        """The parsed JSON at `url`. Raises Unavailable for anything else, within about `timeout` seconds."""
        import httpx2

        # The library's timeout is for each read: a server that drips bytes would never run into it.
        deadline = time.time() + self._timeout
        body = bytearray()
        try:
            with (
                httpx2.Client(timeout=self._timeout, follow_redirects=False, trust_env=False) as client,
                client.stream("GET", url, headers={"accept": "application/json"}) as response,
            ):
                if response.status_code != 200:
                    raise Unavailable(f"HTTP {response.status_code}", retry_after=30)
                for chunk in response.iter_bytes():
                    body += chunk
                    if len(body) > self._max_bytes or time.time() > deadline:
                        raise Unavailable("too large or too slow", retry_after=30)
            return strict_json.parse(bytes(body))
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise Unavailable(type(error).__name__, retry_after=30) from error
        except strict_json.NotStrictJson as error:
            raise Unavailable(f"not JSON: {error}", retry_after=30) from error

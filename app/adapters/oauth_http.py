"""An OAuth provider's endpoints over HTTP, with httpx2's transport: one deadline, bounded, no redirects, no proxy."""

import ssl
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from app.errors import Unavailable
from app.http import TokenEndpointReply

if TYPE_CHECKING:
    from httpcore2 import Response

TIMEOUT: Final = 5.0
MAX_BYTES: Final = 64 * 1024
RETRY_AFTER: Final = 30

_FORM: Final = {"content-type": "application/x-www-form-urlencoded"}
# A compressed body could be small on the wire and huge here; a connection would be dead after a freeze.
_BOUNDED: Final = {"accept-encoding": "identity", "connection": "close", "user-agent": "roundtrip"}


class HttpTokenEndpoint:
    """Implements ports.TokenEndpoint. The client library is imported by the first request.

    httpx2 bounds each read, so that a server which drips bytes would never run into its timeout. Its
    transport, httpcore2, lets the deadline be put under every single operation on the socket; it knows
    neither redirects nor cookies nor proxy settings. `ssl_context` is for a provider with a certificate
    authority of its own.
    """

    def __init__(
        self, *, timeout: float = TIMEOUT, max_bytes: int = MAX_BYTES, ssl_context: ssl.SSLContext | None = None
    ) -> None:
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._ssl_context = ssl_context

    def post(self, url: str, form: Mapping[str, str], headers: Mapping[str, str]) -> TokenEndpointReply:
        """POST a form, once. Raises Unavailable unless the whole reply is here within the bounds."""
        return self._send("POST", url, {**headers, **_FORM}, urlencode(form).encode("ascii"))

    def get(self, url: str, headers: Mapping[str, str]) -> TokenEndpointReply:
        """GET a document. Raises Unavailable unless the whole reply is here within the bounds."""
        return self._send("GET", url, headers, None)

    def _send(self, method: str, url: str, headers: Mapping[str, str], content: bytes | None) -> TokenEndpointReply:
        import httpcore2

        from app.adapters.deadline import DeadlineBackend

        backend = DeadlineBackend(time.time() + self._timeout)
        try:
            target = httpcore2.URL(url)
        except (ValueError, TypeError):
            # Not all URLs are configured: metadata names some. httpcore2 has a TypeError for other than ASCII.
            raise Unavailable("not a URL", retry_after=RETRY_AFTER) from None
        trusted = self._trusted() if target.scheme == b"https" else None
        fields = list({**headers, **_BOUNDED}.items())
        try:
            with (
                httpcore2.ConnectionPool(ssl_context=trusted, network_backend=backend) as pool,
                pool.stream(method, target, headers=fields, content=content) as response,
            ):
                return TokenEndpointReply(response.status, _header(response, b"content-type"), self._body(response))
        except (
            httpcore2.TimeoutException,
            httpcore2.NetworkError,
            httpcore2.ProtocolError,
            httpcore2.UnsupportedProtocol,
        ) as error:
            # The name alone: a message may quote what the other side sent.
            raise Unavailable(type(error).__name__, retry_after=RETRY_AFTER) from error

    def _body(self, response: "Response") -> bytes:
        if _header(response, b"content-encoding").strip().lower() not in ("", "identity"):
            raise Unavailable("compressed against our wish", retry_after=RETRY_AFTER)
        body = bytearray()
        for chunk in response.iter_stream():
            body += chunk
            if len(body) > self._max_bytes:
                raise Unavailable("too large", retry_after=RETRY_AFTER)
        return bytes(body)

    def _trusted(self) -> ssl.SSLContext:
        # Reading the certificate authorities takes longer than a request: once is enough.
        if self._ssl_context is None:
            import httpx2

            self._ssl_context = httpx2.create_ssl_context(trust_env=False)
        return self._ssl_context


def _header(response: "Response", name: bytes) -> str:
    return b", ".join(value for key, value in response.headers if key.lower() == name).decode("latin-1")

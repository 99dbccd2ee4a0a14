"""An OAuth provider's endpoints over HTTP, with h11: one deadline, bounded, no redirects, no proxy, nothing kept."""

import os
import ssl
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode, urlsplit

from app.errors import Unavailable
from app.http import TokenEndpointReply, join_headers

if TYPE_CHECKING:
    import h11

    from app.adapters.deadline import DeadlineStream

TIMEOUT: Final = 5.0
MAX_BYTES: Final = 64 * 1024
RETRY_AFTER: Final = 30

_PORTS: Final = {"http": 80, "https": 443}
_FORM: Final = {"content-type": "application/x-www-form-urlencoded"}
# A compressed body could be small on the wire and huge here; a connection would be dead after a freeze.
_BOUNDED: Final = {"accept-encoding": "identity", "connection": "close", "user-agent": "roundtrip"}


class HttpTokenEndpoint:
    """Implements ports.TokenEndpoint. h11 is imported by the first request.

    Clients of whole libraries bound each read, so that a server which drips bytes would never run into their
    timeout, and take longer to import than everything else that a first call needs. `ssl_context` is for a
    provider with a certificate authority of its own.
    """

    def __init__(
        self, *, timeout: float = TIMEOUT, max_bytes: int = MAX_BYTES, ssl_context: ssl.SSLContext | None = None
    ) -> None:
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._ssl_context = ssl_context

    def prepare(self) -> None:
        """Import what the first request needs, for a snapshot."""
        import h11  # noqa: F401

        import app.adapters.deadline  # noqa: F401

    def post(self, url: str, form: Mapping[str, str], headers: Mapping[str, str]) -> TokenEndpointReply:
        """POST a form, once. Raises Unavailable unless the whole reply is here within the bounds."""
        content = urlencode(form).encode("ascii")
        return self._send("POST", url, {**headers, **_FORM, "content-length": str(len(content))}, content)

    def get(self, url: str, headers: Mapping[str, str]) -> TokenEndpointReply:
        """GET a document. Raises Unavailable unless the whole reply is here within the bounds."""
        return self._send("GET", url, headers, b"")

    def _send(self, method: str, url: str, headers: Mapping[str, str], content: bytes) -> TokenEndpointReply:
        import h11

        from app.adapters.deadline import DeadlineStream

        deadline = time.time() + self._timeout
        scheme, host, port, authority, target = _parts(url)
        http = h11.Connection(h11.CLIENT)
        try:
            fields = {"host": authority, **headers, **_BOUNDED}
            request = http.send(h11.Request(method=method, target=target, headers=list(fields.items())))
            trusted = self._trusted() if scheme == "https" else None
            with DeadlineStream(host, port, deadline=deadline, trusted=trusted) as stream:
                stream.send(b"".join((request or b"", http.send(h11.Data(data=content)) or b"")))
                http.send(h11.EndOfMessage())
                return self._reply(http, stream)
        except (OSError, h11.ProtocolError) as error:
            # The name alone: a message may quote what the other side sent.
            raise Unavailable(type(error).__name__, retry_after=RETRY_AFTER) from error

    def _reply(self, http: "h11.Connection", stream: "DeadlineStream") -> TokenEndpointReply:
        import h11

        status, headers, body = 0, dict[str, str](), bytearray()
        while True:
            match http.next_event():
                case h11.NEED_DATA:
                    http.receive_data(stream.receive())
                case h11.Response() as response:
                    status = response.status_code
                    headers = join_headers(
                        (name.decode("ascii"), value.decode("latin-1")) for name, value in response.headers
                    )
                    if headers.get("content-encoding", "").strip().lower() not in ("", "identity"):
                        raise Unavailable("compressed against our wish", retry_after=RETRY_AFTER)
                case h11.Data(data=data):
                    body += data
                    if len(body) > self._max_bytes:
                        raise Unavailable("too large", retry_after=RETRY_AFTER)
                case h11.EndOfMessage():
                    return TokenEndpointReply(status, headers.get("content-type", ""), bytes(body))
                case h11.InformationalResponse():
                    pass
                case other:
                    raise Unavailable(f"{other} in the place of a response", retry_after=RETRY_AFTER)

    def _trusted(self) -> ssl.SSLContext:
        # Reading the certificate authorities takes longer than a request: once is enough.
        if self._ssl_context is None:
            # OpenSSL's compiled-in file: no variable adds an authority. Where there is none, a library knows more.
            authorities = ssl.get_default_verify_paths().openssl_cafile
            if os.path.isfile(authorities):
                self._ssl_context = ssl.create_default_context(cafile=authorities)
            else:
                import httpx2

                self._ssl_context = httpx2.create_ssl_context(trust_env=False)
        return self._ssl_context


def _parts(url: str) -> tuple[str, str, int, str, str]:
    """Scheme, host, port, authority and request target. Not all URLs are configured: metadata names some."""
    try:
        url.encode("ascii")
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or _PORTS[parts.scheme]
        if not host:
            raise ValueError("It names no host")
    except (ValueError, KeyError):
        raise Unavailable("not a URL", retry_after=RETRY_AFTER) from None
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return parts.scheme, host, port, parts.netloc.rpartition("@")[2], target

"""One HTTP request and one response as values, the same for every front door. No I/O."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

NOSNIFF: Final[Mapping[str, str]] = {"x-content-type-options": "nosniff"}
"""For every answer: a browser that guesses at a media type makes a page of what is none."""
NO_STORE: Final[Mapping[str, str]] = {"cache-control": "no-store", **NOSNIFF}
"""For every answer that is somebody's own."""


class HttpRequest(NamedTuple):
    """A request as the core sees it.

    `headers` has lower-case names; a repeated header is joined with "," as HTTP API does, so that
    a duplicate never hides behind its first value. `path` is decoded once and has no stage in it.
    `request_id` is the front door's own id, for the log. `deadline` is when it kills this invocation, in
    seconds since the epoch, where it does.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""
    query: str = ""
    request_id: str = ""
    deadline: float | None = None


class HttpResponse(NamedTuple):
    """A response as the core gives it. `facts` is what the log line says: never a secret, never a body."""

    status: int
    headers: Mapping[str, str] = MappingProxyType({})
    body: bytes = b""
    facts: Mapping[str, Any] = MappingProxyType({})


def internal_error(error: Exception) -> HttpResponse:
    """The answer where our own code failed. It says nothing of the error, and the log line its type."""
    return HttpResponse(
        500,
        {"content-type": "application/json", **NO_STORE},
        b'{"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal error"}}',
        {"outcome": "crashed", "reason": type(error).__name__},
    )


class TokenEndpointReply(NamedTuple):
    """What a provider answered, whatever its status. `content_type` is the header as it came, or ""."""

    status: int
    content_type: str
    body: bytes

    def __repr__(self) -> str:
        # The body of a good one is a token.
        return f"TokenEndpointReply(status={self.status}, content_type={self.content_type!r})"


def join_headers(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Lower-case names, and join repeated headers with "," (RFC 9110 section 5.3)."""
    joined: dict[str, str] = {}
    for name, value in pairs:
        name = name.lower()
        joined[name] = f"{joined[name]},{value}" if name in joined else value
    return joined

"""What the gateway can show of one request: it and its response as they were on the wire, and who served it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from starlette.types import Receive, Scope, Send

from infra.local.emulator.response import HttpResponse


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """A request and its response, which did not arrive if it was dropped.

    `environment` is empty where the gateway itself answered.
    """

    started: float
    milliseconds: float
    method: str
    path: str
    # Headers hold tokens and cookies, bodies what users typed.
    request_headers: Sequence[tuple[str, str]] = field(repr=False)
    request_body: bytes = field(repr=False)
    response: HttpResponse = field(repr=False)
    environment: str
    dropped: bool


class Page(Protocol):
    """What people see at the root of the gateway: an ASGI application that is told of every exchange."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer `GET /` and everything below `/_emulator/page/`, for this machine only."""

    def observe(self, exchange: Exchange) -> None:
        """Called after the response was made, and before it is sent."""

    def close(self) -> None:
        """End what is still being sent: the server is about to stop."""

"""One HTTP exchange with a server that may be wrong in any way: bounded in time and size, no redirect followed."""

import json
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

TIMEOUT: Final = 10.0
"""Seconds for a whole exchange: a cold start takes some."""
MAX_BYTES: Final = 1024 * 1024
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


class Unreachable(Exception):
    """No whole answer within the bounds. The message says why."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, and when it came."""

    status: int
    headers: httpx2.Headers
    body: bytes
    seconds: float
    skew: float | None
    """By how many seconds the server's clock is ahead of ours, or None if it does not tell. Good to a second."""

    def json(self) -> Any:
        """The body as JSON, or None if it is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    def json_object(self) -> dict[str, Any]:
        """The body as a JSON object, or an empty one."""
        document = self.json()
        return document if isinstance(document, dict) else {}


class Http:
    """Sends requests. `trusted` replaces the certificate authorities, `clock` tells our time."""

    def __init__(self, *, trusted: ssl.SSLContext | None = None, clock: Callable[[], float] = time.time) -> None:
        self._trusted = trusted or httpx2.create_ssl_context()
        self._clock = clock

    def get(self, url: str, headers: Mapping[str, str] | None = None) -> Answer:
        return self.send("GET", url, headers)

    def send(
        self, method: str, url: str, headers: Mapping[str, str] | None = None, content: bytes | None = None
    ) -> Answer:
        """One exchange. Raises Unreachable."""
        # A proxy that is configured for the world is not asked for this machine.
        outside = urlsplit(url).hostname not in LOOPBACK
        began = self._clock()
        started = time.perf_counter()
        try:
            with (
                httpx2.Client(verify=self._trusted, timeout=TIMEOUT / 2, trust_env=outside) as client,
                client.stream(method, url, headers=headers, content=content) as response,
            ):
                date = response.headers.get("date")
                body = bytearray()
                for chunk in response.iter_bytes():
                    body += chunk
                    if len(body) > MAX_BYTES:
                        raise Unreachable(f"the answer is larger than {MAX_BYTES} bytes")
                    if time.perf_counter() - started > TIMEOUT:
                        raise Unreachable(f"the answer took longer than {TIMEOUT:.0f} s")
                seconds = time.perf_counter() - started
                skew = _skew(date, began + seconds / 2)
                return Answer(response.status_code, response.headers, bytes(body), seconds, skew)
        except (httpx2.HTTPError, httpx2.InvalidURL, ssl.SSLError) as error:
            # The name alone: a message may quote a URL with a secret in it.
            raise Unreachable(type(error).__name__) from error


def _skew(date: str | None, now: float) -> float | None:
    try:
        # The header has whole seconds, cut off: half a second more is right on average.
        return parsedate_to_datetime(date or "").timestamp() + 0.5 - now
    except (ValueError, TypeError):
        return None

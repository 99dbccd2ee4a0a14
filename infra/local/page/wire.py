"""An exchange as the page shows it: MCP messages in full, and nothing that lets somebody in."""

import json
import re
from collections.abc import Callable
from typing import Any, Final

from infra.local.emulator.exchange import Exchange

MCP_PATH: Final = "/mcp"

# A handle of a connection is as good as its link: what is this long in a path is no word.
_LONG_SEGMENT: Final = re.compile(r"(?<=/)([A-Za-z0-9_-]{6})[A-Za-z0-9_-]{26,}")
_CUT: Final = frozenset({"authorization", "cookie", "set-cookie"})
_KEPT_OF_A_TOKEN: Final = 12
# The last exchanges stay in memory: what is larger than this is nothing to read.
_MOST_BYTES: Final = 100_000


def encode(exchange: Exchange, number: int) -> str:
    """One exchange as JSON text, whatever a client sent."""
    try:
        return json.dumps(shown(exchange, number, body=_body), allow_nan=False)
    except (ValueError, RecursionError):
        # NaN is no JSON, and nesting has no end: both are shown as they came.
        return json.dumps(shown(exchange, number, body=_text))


def shown(exchange: Exchange, number: int, *, body: Callable[[bytes], Any]) -> dict[str, Any]:
    """One exchange. Queries are left out, and bodies of anything but MCP: they hold codes and typed secrets."""
    is_mcp = exchange.path == MCP_PATH
    return {
        "number": number,
        "started": exchange.started,
        "milliseconds": round(exchange.milliseconds, 1),
        "method": exchange.method,
        "path": _LONG_SEGMENT.sub(r"\1...", exchange.path),
        "status": exchange.response.status,
        "environment": exchange.environment,
        "dropped": exchange.dropped,
        "request": {
            "headers": _headers(exchange.request_headers),
            "body": body(exchange.request_body) if is_mcp else None,
        },
        "response": {
            "headers": _headers(exchange.response.headers),
            "body": body(exchange.response.body) if is_mcp else None,
        },
    }


def _headers(headers: Any) -> list[list[str]]:
    # URLs carry codes, states and handles.
    return [[name, _cut(name, value)] for name, value in headers if name not in ("location", "referer")]


def _cut(name: str, value: str) -> str:
    if name not in _CUT:
        return value
    kept = value.partition("=")[0] + "=" if "cookie" in name else value[:_KEPT_OF_A_TOKEN]
    return f"{kept}... (cut)"


def _text(body: bytes) -> str:
    rest = f"... ({len(body)} bytes)" if len(body) > _MOST_BYTES else ""
    return body[:_MOST_BYTES].decode("utf-8", errors="replace") + rest


def _body(body: bytes) -> Any:
    """JSON as it is, an event stream as the messages in it, anything else as text."""
    text = _text(body)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        events = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    try:
        return [json.loads(event) for event in events] or text
    except (ValueError, RecursionError):
        return text

"""Progress and log notifications of one request, collected and sent with its answer.

A buffered function cannot send them as they happen: they stand before the response in one finished event
stream, and only the kinds that this very request asked for (basic/patterns/progress, server/utilities/logging).
"""

import math
from typing import Any, Final, Literal, TypeAlias, get_args

from app.protocol.jsonrpc import ErrorCode, JSONRPCError
from app.strict_json import JsonObject

LoggingLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LEVELS: Final[tuple[str, ...]] = get_args(LoggingLevel)
MAX_NOTIFICATIONS: Final = 1000
"""How many one request may collect: they are held in memory, and travel at once."""

META_LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"


class Notifications:
    """What was asked for, and what there is to send. `sent` holds whole JSON-RPC notifications."""

    __slots__ = ("_progress", "level", "progress_token", "sent")

    def __init__(self, progress_token: str | int | None = None, level: str | None = None) -> None:
        self.progress_token = progress_token
        self.level = level
        self.sent: list[JsonObject] = []
        self._progress = -math.inf

    @classmethod
    def read(cls, meta: JsonObject) -> "Notifications":
        """What a request's `_meta` asks for. Raises JSONRPCError (-32602) for what is not a token or a level."""
        token, level = meta.get("progressToken"), meta.get(META_LOG_LEVEL)
        if token is not None and (isinstance(token, bool) or not isinstance(token, str | int)):
            raise JSONRPCError(ErrorCode.INVALID_PARAMS, '_meta "progressToken" must be a string or an integer')
        if level is not None and level not in LEVELS:
            raise JSONRPCError(ErrorCode.INVALID_PARAMS, f'_meta "{META_LOG_LEVEL}" must be one of {", ".join(LEVELS)}')
        return cls(token, level)

    def progress(self, progress: float, *, total: float | None = None, message: str | None = None) -> None:
        """Report progress, if it was asked for. Raises ValueError for a value that does not increase."""
        # Accept-conditions are stated positively, so that NaN refuses.
        if not (self._progress < progress < math.inf):
            raise ValueError(f"The progress {progress} does not increase: report numbers that grow")
        self._progress = progress
        if self.progress_token is None:
            return
        params: JsonObject = {"progressToken": self.progress_token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        self._send("notifications/progress", params)

    def log(self, level: str, data: Any, *, logger: str | None = None) -> None:
        """Send a log message, if messages of this level were asked for. Raises ValueError for no level."""
        if level not in LEVELS:
            raise ValueError(f"The level {level!r} must be one of {', '.join(LEVELS)}")
        if self.level is None or LEVELS.index(level) < LEVELS.index(self.level):
            return
        named = {} if logger is None else {"logger": logger}
        self._send("notifications/message", {"level": level, **named, "data": data})

    def _send(self, method: str, params: JsonObject) -> None:
        if len(self.sent) < MAX_NOTIFICATIONS:
            self.sent.append({"jsonrpc": "2.0", "method": method, "params": params})

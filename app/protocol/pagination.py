"""Pages of a list, with cursors that any instance understands (server/utilities/pagination)."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Final

from app.protocol.jsonrpc import ErrorCode, JSONRPCError
from app.strict_json import JsonObject

PAGE_SIZE: Final = 250
"""Entries of one page: some hundred KiB at most, well below what Lambda may answer."""


def page(names: Sequence[str], params: JsonObject) -> tuple[range, JsonObject]:
    """The indices of the page that a request's cursor asks for, and `nextCursor` where there are more.

    A cursor holds the last name of the page before: it stays right when a deployment adds entries to the list.
    Raises JSONRPCError (-32602) for any other cursor.
    """
    start = 0
    cursor = params.get("cursor")
    if cursor is not None:
        try:
            start = names.index(_decoded(cursor)) + 1
        except ValueError:
            raise JSONRPCError(ErrorCode.INVALID_PARAMS, "Unknown cursor: start again without one") from None
    end = min(start + PAGE_SIZE, len(names))
    more: JsonObject = {"nextCursor": _encoded(names[end - 1])} if end < len(names) else {}
    return range(start, end), more


def _encoded(name: str) -> str:
    return urlsafe_b64encode(name.encode()).rstrip(b"=").decode()


def _decoded(cursor: object) -> str:
    if not isinstance(cursor, str) or len(cursor) > 4096:
        raise ValueError("no cursor of ours")
    name = urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4)).decode()
    if _encoded(name) != cursor:
        raise ValueError("not canonical")
    return name

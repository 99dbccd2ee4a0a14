"""One request of a browser and one reply to it as values, so that pages are functions from one to the other."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import parse_qsl

MAX_FORM: Final = 32_768
"""Largest form that is read, in bytes: the longest secret, percent-encoded, and its token."""
MAX_QUERY: Final = 8192
MAX_FIELDS: Final = 32

_COOKIE_VALUE = re.compile(r"[A-Za-z0-9_.-]{1,3000}\Z", re.ASCII)


class MalformedRequest(ValueError):
    """The query or the form cannot be read in one way only. `status` is what to answer."""

    def __init__(self, reason: str, *, status: int = 400) -> None:
        self.reason = reason
        self.status = status
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class Visit:
    """What a browser sent. `form` is the body of a POST, unread; `path` are the parts of the path that vary.

    Nothing here says where we are: links and redirects come from the configuration, never from the Host header.
    """

    method: str
    path: Mapping[str, str]
    headers: Mapping[str, str]
    query: str = ""
    form: bytes = field(default=b"", repr=False)
    now: float = 0.0

    def cookie(self, name: str) -> str | None:
        """The value of a cookie, or None. A name that came twice counts as absent: one of the two was planted."""
        pairs = (each.strip().partition("=") for each in self.headers.get("cookie", "").split(";"))
        values = [value for found, _, value in pairs if found == name]
        return values[0] if len(values) == 1 and _COOKIE_VALUE.match(values[0]) else None

    def query_pairs(self) -> list[tuple[str, str]]:
        """Every query parameter as it came, duplicates included. Raises MalformedRequest."""
        if len(self.query) > MAX_QUERY:
            raise MalformedRequest("query: too long")
        return _pairs(self.query, "query")

    def fields(self) -> dict[str, str]:
        """The fields of the form. Raises MalformedRequest."""
        if len(self.form) > MAX_FORM:
            raise MalformedRequest("form: too large", status=413)
        media_type = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != "application/x-www-form-urlencoded":
            raise MalformedRequest("form: media type", status=415)
        try:
            pairs = _pairs(self.form.decode("ascii"), "form")
        except UnicodeDecodeError:
            raise MalformedRequest("form: not ASCII") from None
        fields = dict(pairs)
        if len(fields) != len(pairs):
            raise MalformedRequest("form: repeated field")
        return fields


def _pairs(text: str, part: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except ValueError:
        raise MalformedRequest(f"{part}: cannot be read") from None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a browser gets. `facts` is what the log line says: never a handle, a code or a value.

    `cookies` are whole Set-Cookie values, each a header of its own.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    cookies: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def with_cookies(self, *cookies: str) -> "Reply":
        """The same, setting some more cookies."""
        return replace(self, cookies=(*self.cookies, *cookies))

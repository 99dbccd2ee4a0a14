"""A well-formed request that a case spoils in one place before it is sent."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from app.http import HttpRequest, HttpResponse, join_headers
from app.protocol import messages
from tests.hostile.wire import Answer
from tests.protocol.official_types import judge

FORMS: Final[dict[str, Any]] = {"elicitation": {"form": {}}}
FORMS_AND_URLS: Final[dict[str, Any]] = {"elicitation": {"form": {}, "url": {}}}

Text: TypeAlias = str | bytes
Change: TypeAlias = Callable[["Draft"], "Draft"]


def _bytes(text: Text) -> bytes:
    return text if isinstance(text, bytes) else text.encode("latin-1")


@dataclass(frozen=True)
class Draft:
    """A request. Each method gives a new one; `message` is the JSON-RPC message unless `body` says otherwise."""

    message: Any
    headers: tuple[tuple[str, Text], ...]
    method: str = "POST"
    target: Text = "/mcp"
    body: bytes | None = None

    def but(self, **changes: Any) -> "Draft":
        """With other fields."""
        return replace(self, **changes)

    def header(self, name: str, value: Text | None) -> "Draft":
        """With a header that has this value and no other, or without it."""
        kept = tuple(each for each in self.headers if each[0].lower() != name.lower())
        return replace(self, headers=kept if value is None else (*kept, (name, value)))

    def also(self, name: str, value: Text) -> "Draft":
        """With one more header, whether or not there is one of that name."""
        return replace(self, headers=(*self.headers, (name, value)))

    def says(self, **members: Any) -> "Draft":
        """With other members of the message; `...` leaves one out."""
        return replace(self, message=_changed(self.message, members))

    def params(self, **members: Any) -> "Draft":
        """With other params; `...` leaves one out."""
        return self.says(params=_changed(self.message["params"], members))

    def meta(self, **members: Any) -> "Draft":
        """With other fields in `_meta`, named without their prefix; `...` leaves one out."""
        prefixed = {f"io.modelcontextprotocol/{name}": value for name, value in members.items()}
        return self.params(_meta=_changed(self.message["params"]["_meta"], prefixed))

    def raw(self, body: Text) -> "Draft":
        """With this body, whatever it is."""
        return replace(self, body=body.encode() if isinstance(body, str) else body)

    def rewritten(self, old: str, new: Text) -> "Draft":
        """With a piece of the body's text replaced by something that no JSON library would write."""
        text = json.dumps(self.message).encode()
        assert text.count(old.encode()) == 1, f"{old} must be there once"
        return self.raw(text.replace(old.encode(), new.encode() if isinstance(new, str) else new))

    @property
    def content(self) -> bytes:
        return json.dumps(self.message).encode() if self.body is None else self.body

    def wire(self, host: str = "127.0.0.1") -> bytes:
        """The bytes on the socket. A framing header of the draft's own takes the place of Content-Length."""
        lines = [_bytes(self.method) + b" " + _bytes(self.target) + b" HTTP/1.1"]
        names = {name.lower() for name, _ in self.headers}
        if "host" not in names:
            lines.append(b"Host: " + host.encode())
        if not names & {"content-length", "transfer-encoding"}:
            lines.append(b"Content-Length: " + str(len(self.content)).encode())
        lines += [name.encode("latin-1") + b": " + _bytes(value) for name, value in self.headers]
        return b"\r\n".join([*lines, b"", b""]) + self.content

    def event(self) -> dict[str, Any]:
        """The same as an event in payload format 2.0."""
        headers = join_headers((name, _bytes(value).decode("latin-1")) for name, value in self.headers)
        path, _, query = _bytes(self.target).decode("latin-1").partition("?")
        return {
            "version": "2.0",
            "routeKey": "ANY /mcp",
            "rawPath": path,
            "rawQueryString": query,
            "headers": {"host": "mcp.example.com", **headers},
            "requestContext": {
                "http": {
                    "method": self.method,
                    "path": path,
                    "protocol": "HTTP/1.1",
                    "sourceIp": "192.0.2.1",
                    "userAgent": "attacker",
                },
                "stage": "$default",
            },
            "body": self.content.decode("utf-8", "surrogateescape"),
            "isBase64Encoded": False,
        }

    def judge(self, answer: Answer) -> None:
        """Raise for a response that the MCP revision of this request does not allow."""
        headers = join_headers((name, _bytes(value).decode("latin-1")) for name, value in self.headers)
        judge(
            HttpRequest(self.method, "/mcp", headers, self.content),
            HttpResponse(answer.status, dict(answer.headers), answer.body),
        )


def _changed(members: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**members, **changes}.items() if value is not ...}


def request(
    token: str | None, method: str, params: Mapping[str, Any], *, capabilities: Mapping[str, Any] = FORMS
) -> Draft:
    """A well-formed request of whoever the token is for."""
    meta = {
        messages.META_PROTOCOL_VERSION: messages.PROTOCOL_VERSION,
        messages.META_CLIENT_INFO: {"name": "attacker", "version": "1"},
        messages.META_CLIENT_CAPABILITIES: dict(capabilities),
    }
    named = params.get(messages.NAMED_BY.get(method, ""))
    headers: list[tuple[str, Text]] = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", messages.PROTOCOL_VERSION),
        ("Mcp-Method", method),
        *([("Mcp-Name", named)] if isinstance(named, str) else []),
        *([("Authorization", f"Bearer {token}")] if token is not None else []),
    ]
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    return Draft(message, tuple(headers))


def call(token: str | None, tool: str, capabilities: Mapping[str, Any] = FORMS, /, **arguments: Any) -> Draft:
    """A well-formed call of a tool."""
    return request(token, "tools/call", {"name": tool, "arguments": arguments}, capabilities=capabilities)


def accept(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}

"""The MCP function in this process, behind the Lambda adapter, with every answer held to what must always be true."""

import base64
import itertools
import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from unittest import mock

from app.adapters.aws_lambda import payload_v2
from app.http import HttpRequest, HttpResponse, join_headers
from app.protocol import messages
from app.testing import FORMS, Server
from app.toolkit import Context, resource
from tests.fuzz.budget import no_hang
from tests.hostile.handlers import CONTEXT
from tests.hostile.tools import JOURNAL, PROBES
from tests.protocol.official_types import judge

_LEAK: Final = re.compile(r"Traceback|File \"|\b[A-Z]\w+(?:Error|Exception)\b")


@resource("fuzz://{owner}/{+path}")
def file(owner: str, path: str, ctx: Context) -> str:
    """A resource whose URI is the caller's words."""
    return f"{owner}: {path}"


class Endpoint:
    """Two instances that share a store. `close` ends it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.journal = Path(self._folder.name) / "journal"
        self._environment = mock.patch.dict("os.environ", {JOURNAL: str(self.journal)})
        self._environment.start()
        self.server = Server([*PROBES, file], providers=["hub"])
        self._handler = payload_v2(self._respond)
        self._exchanged: list[tuple[HttpRequest, HttpResponse]] = []
        self._numbers = itertools.count(1)
        self.token = self.somebody_else()

    def close(self) -> None:
        self._environment.stop()
        self._folder.cleanup()

    def _respond(self, request: HttpRequest, *, now: float, entropy: bytes) -> HttpResponse:
        response = self.server.respond(request, entropy=entropy).http
        self._exchanged.append((request, response))
        return response

    def somebody_else(self) -> str:
        """From now on another user sends: how often one is asked is limited."""
        scope = " ".join(self.server.features.scopes)
        self.token = self.server.issuer.mint(f"user-{next(self._numbers)}", scope=scope)
        return self.token

    @property
    def effects(self) -> list[str]:
        """What the tools have really done."""
        return self.journal.read_text().splitlines() if self.journal.exists() else []

    def message(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """A well-formed message."""
        meta = {
            messages.META_PROTOCOL_VERSION: messages.PROTOCOL_VERSION,
            messages.META_CLIENT_INFO: {"name": "fuzz", "version": "1"},
            messages.META_CLIENT_CAPABILITIES: FORMS,
        }
        return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}

    def headers(self, message: Any = None) -> dict[str, str]:
        """The headers that go with a message: what of it can be said in headers, whatever it is."""
        made = {
            "authorization": f"Bearer {self.token}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": messages.PROTOCOL_VERSION,
        }
        if isinstance(message, dict):
            params = message.get("params")
            params = params if isinstance(params, dict) else {}
            method = message.get("method")
            name = params.get(messages.NAMED_BY.get(method, "") if isinstance(method, str) else "")
            said = {"mcp-method": method, "mcp-name": name}
            made |= {header: value for header, value in said.items() if isinstance(value, str)}
        return made

    def send(self, body: bytes, headers: Mapping[str, str], *, method: str = "POST", path: str = "/mcp") -> Any:
        """Send it as an event; return the answer's JSON, or None for one without a body."""
        event = {
            "version": "2.0",
            "rawPath": path,
            "rawQueryString": "",
            "headers": dict(headers),
            "requestContext": {"http": {"method": method, "path": path}, "stage": "$default"},
            "body": base64.b64encode(body).decode(),
            "isBase64Encoded": True,
        }
        self._exchanged.clear()
        with no_hang():
            answer = self._handler(event, CONTEXT)
        assert answer["statusCode"] < 500, (body, headers, answer)
        # What Lambda sends on is JSON in UTF-8.
        text = json.dumps(answer, ensure_ascii=False).encode().decode()
        assert not _LEAK.search(text), (body, headers, answer)
        assert self.token not in text
        ((request, response),) = self._exchanged
        # A version header without a version: nothing says which revision's rules hold.
        if headers.get("mcp-protocol-version", "-").strip():
            judge(
                HttpRequest(request.method, request.path, join_headers(request.headers.items()), request.body), response
            )
        return json.loads(answer["body"]) if answer["body"] and answer["body"][0] == "{" else None

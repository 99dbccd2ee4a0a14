"""The log line of every request: enough to find out what happened, and nothing that was not ours to tell."""

import json
import logging
from typing import Any

import pytest

from app.adapters.aws_lambda import payload_v2
from app.http import HttpRequest, HttpResponse
from app.testing import Server
from app.toolkit import Context, tool
from tests.handlers.test_mcp import event

TRACEPARENT = f"00-{'a' * 32}-{'b' * 16}-01"


@tool(scopes=["reports:delete"])
def delete(target: str, ctx: Context) -> str:
    """Delete a report."""
    return f"{target} is deleted."


class Invocation:
    aws_request_id = "inv-1"


def line_of(caplog: pytest.LogCaptureFixture, server: Server, sent: Any) -> dict[str, Any]:
    with caplog.at_level(logging.INFO, logger="roundtrip"):

        def respond(request: HttpRequest, *, now: float, entropy: bytes) -> HttpResponse:
            return server.respond(request, entropy=entropy).http

        payload_v2(respond)(sent, Invocation())
    line: dict[str, Any] = json.loads(caplog.messages[-1])
    caplog.clear()
    return line


def request(server: Server, method: str, name: str = "", *, scope: str = "", meta: dict[str, Any] | None = None) -> Any:
    _meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        **(meta or {}),
    }
    params = {"_meta": _meta} | ({"name": name, "arguments": {"target": "hunter2"}} if name else {})
    headers = {
        "content-type": "application/json",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        "authorization": f"Bearer {server.issuer.mint('alice', scope=scope)}",
    }
    named = {"mcp-name": name} if name else {}
    return event(
        headers={**headers, **named}, body=json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    )


def test_every_line_has_its_request_status_duration_and_outcome(caplog: pytest.LogCaptureFixture) -> None:
    """Logs are searched by outcome: a line without one would be found by nobody."""
    server = Server([delete])
    for sent in (
        event("GET", "/.well-known/oauth-protected-resource"),
        event("GET", "/nowhere"),
        event("GET"),
        event("OPTIONS", headers={"origin": "https://evil.example"}),
        event(),
        request(server, "tools/list"),
        request(server, "tools/call", "delete"),
        {"not": "http"},
    ):
        line = line_of(caplog, server, sent)
        assert line["request_id"] == "inv-1"
        assert line["ms"] >= 0
        assert line["outcome"] == ("refused" if line["status"] >= 400 else line["outcome"])
        assert "reason" in line or line["status"] in (200, 404)


def test_the_line_of_a_call_names_method_tool_round_and_outcome(caplog: pytest.LogCaptureFixture) -> None:
    """IDEAS C.1.15."""
    server = Server([delete])
    line = line_of(caplog, server, request(server, "tools/call", "delete", scope="reports:delete"))
    assert (line["method"], line["tool"], line["round"]) == ("tools/call", "delete", 1)
    assert line["outcome"] == "complete"


def test_the_line_has_the_trace_and_not_what_the_trace_carries_for_others(caplog: pytest.LogCaptureFixture) -> None:
    """W3C Baggage, section 4: baggage may be sensitive."""
    server = Server([delete])
    carried = {"traceparent": TRACEPARENT, "tracestate": "rojo=hunter2", "baggage": "user=hunter2"}
    line = line_of(caplog, server, request(server, "tools/list", meta=carried))
    assert line["traceparent"] == TRACEPARENT
    assert "hunter2" not in json.dumps(line)


def test_the_line_of_a_crash_says_what_kind_it_was(caplog: pytest.LogCaptureFixture) -> None:
    """The exception itself is another line, which no filter on outcomes finds."""

    def respond(request: HttpRequest, *, now: float, entropy: bytes) -> HttpResponse:
        raise LookupError("hunter2")

    with caplog.at_level(logging.INFO, logger="roundtrip"):
        payload_v2(respond)(event(), Invocation())
    line = json.loads(caplog.messages[-1])
    assert (line["outcome"], line["reason"], line["status"]) == ("crashed", "LookupError", 500)

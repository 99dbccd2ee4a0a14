"""The endpoint under test: tools of every kind, a server whose every response is judged, and drafts to spoil."""

import json
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, Field

from app.http import HttpRequest
from app.protocol import messages
from app.protocol.features import Call, Completed, Outcome, Tool
from app.strict_json import JsonObject
from app.testing import CLIENT_ID, FORMS, Reply, Server
from app.toolkit import Accepted, Context, InputRequired, Question, tool
from tests.protocol.official_types import judge

SCOPES = ("reports:delete", "reports:read")


class Confirm(BaseModel):
    confirm: bool = Field(description="Tick to delete")


@tool(read_only=True)
def greet(name: str = "world") -> str:
    """Greet somebody."""
    return f"Hello, {name}!"


@tool
def ask(ctx: Context) -> str:
    """Ask one question."""
    match ctx.ask("confirm", "Sure?", Confirm):
        case Accepted(Confirm(confirm=True)):
            return "Done."
        case _:
            return ctx.stop("Not done.")


@tool(scopes=SCOPES)
def delete(target: str, ctx: Context) -> str:
    """Delete a report. Asks first."""
    match ctx.ask("confirm", f"Delete {target}?", Confirm):
        case Accepted(Confirm(confirm=True)):
            return f"{target} is deleted."
        case _:
            return ctx.stop(f"{target} is still there.")


PAGE: JsonObject = {
    "method": "elicitation/create",
    "params": {"mode": "url", "url": "https://mcp.example.com/connect/x", "message": "Open the page."},
}


@tool
def visit(ctx: Context) -> InputRequired:
    """Send the user to a page, in the explicit style."""
    return InputRequired({"page": PAGE})


@tool
def visit_and_ask(ctx: Context) -> InputRequired:
    """Send the user to a page and ask a question, both at once."""
    return InputRequired({"page": PAGE, "confirm": Question("Sure?", Confirm)})


@tool
def sample(ctx: Context) -> InputRequired:
    """Ask the client's model, in the explicit style."""
    prompt = {"role": "user", "content": {"type": "text", "text": "What is the capital of France?"}}
    request: JsonObject = {
        "method": "sampling/createMessage",
        "params": {"messages": [prompt], "maxTokens": 100},
    }
    return InputRequired({"capital": request})


@tool
def roots(ctx: Context) -> InputRequired:
    """Ask for the client's roots, in the explicit style."""
    return InputRequired({"roots": {"method": "roots/list", "params": {}}})


@tool
def wait(ctx: Context) -> InputRequired:
    """Ask nothing, and carry something to the next round."""
    return InputRequired(state={"page": 2})


@tool
def crash() -> str:
    """Raise, with something secret in the exception."""
    raise RuntimeError("hunter2")


def _measure(call: Call) -> Outcome:
    return Completed(messages.complete({"content": [messages.text_content("42 cm")]}))


# The toolkit keeps tool names to ASCII; the protocol does not.
measure = Tool("größe", lambda: {"name": "größe", "inputSchema": {"type": "object"}}, _measure)

TOOLS = (greet, ask, delete, visit, visit_and_ask, sample, roots, wait, crash, measure)


class JudgedServer(Server):
    """app.testing.Server, with every response of the MCP endpoint judged by the official types."""

    def respond(self, request: HttpRequest, *, entropy: bytes = b"") -> Reply:
        reply = super().respond(request, entropy=entropy)
        if not request.path.startswith("/.well-known/"):
            judge(request, reply.http)
        return reply


def served(**settings: str) -> JudgedServer:
    """A server of TOOLS. Settings are environment variables without their prefix."""
    return JudgedServer(TOOLS, settings={f"MCP_{name.upper()}": value for name, value in settings.items()})


@dataclass
class Draft:
    """A well-formed request that a test spoils before it is sent. A header given as None is left out."""

    server: Server
    verb: str = "POST"
    path: str = "/mcp"
    message: Any = None
    body: bytes | None = None
    headers: dict[str, str | None] = field(default_factory=dict)

    def send(self) -> Reply:
        body = json.dumps(self.message).encode() if self.body is None else self.body
        headers = {name: value for name, value in self.headers.items() if value is not None}
        return self.server.respond(HttpRequest(self.verb, self.path, headers, body))


def well_formed(
    method: str, params: JsonObject, *, capabilities: JsonObject = FORMS
) -> tuple[JsonObject, dict[str, str | None]]:
    """A JSON-RPC request, and the headers that go with it but for the access token."""
    meta = {
        messages.META_PROTOCOL_VERSION: messages.PROTOCOL_VERSION,
        messages.META_CLIENT_INFO: {"name": "test", "version": "1"},
        messages.META_CLIENT_CAPABILITIES: capabilities,
    }
    headers: dict[str, str | None] = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": messages.PROTOCOL_VERSION,
        "mcp-method": method,
        "mcp-name": params.get(messages.NAMED_BY.get(method, "")),
    }
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta, **params}}, headers


def draft(
    server: Server,
    method: str = "tools/call",
    params: JsonObject | None = None,
    *,
    scope: str = " ".join(SCOPES),
    capabilities: JsonObject = FORMS,
) -> Draft:
    """A well-formed request of Alice's; without params it calls `greet`."""
    if params is None:
        params = {"name": "greet", "arguments": {}} if method == "tools/call" else {}
    message, headers = well_formed(method, params, capabilities=capabilities)
    headers["authorization"] = f"Bearer {server.issuer.mint('alice', client_id=CLIENT_ID, scope=scope)}"
    return Draft(server, message=message, headers=headers)

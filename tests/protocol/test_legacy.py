"""Clients of 2025-11-25, 2025-06-18 and 2025-03-26 on the same endpoint, without a session to keep."""

import json
import re
from typing import Any

import pytest
from pydantic import BaseModel

from app.protocol.legacy import VERSIONS
from app.testing import CLIENT_ID, Reply, Server
from app.toolkit import Accepted, Context, InputRequired, prompt, tool
from tests.protocol.endpoint import PAGE, Draft, JudgedServer
from tests.protocol.offered import FEATURES, offered

WITH_URLS: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}}


def legacy(
    server: Server,
    method: str,
    params: dict[str, Any] | None = None,
    *,
    version: str | None = VERSIONS[0],
    session: str | None = None,
    user: str = "alice",
    scope: str = "letters:write secrets:read",
) -> Reply:
    """A request as a client of an earlier revision sends it: no `_meta`, no Mcp-Method."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
    headers = {
        "authorization": f"Bearer {server.issuer.mint(user, client_id=CLIENT_ID, scope=scope)}",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": version,
        "mcp-session-id": session,
    }
    return Draft(server, message=message, headers=headers).send()


def initialize(server: Server, version: Any = VERSIONS[0], capabilities: Any = None) -> Reply:
    info = {"name": "old", "version": "1"}
    params = {"protocolVersion": version, "capabilities": capabilities or {}, "clientInfo": info}
    return legacy(server, "initialize", params, version=None)


@tool(read_only=True)
def visit(ctx: Context) -> InputRequired:
    """Send the user to a page."""
    return InputRequired({"page": PAGE})


@pytest.mark.parametrize("version", VERSIONS)
def test_initialize_agrees_on_the_clients_version(version: str) -> None:
    """2025-11-25, basic/lifecycle, Version Negotiation."""
    reply = initialize(offered(), version)
    assert reply.result["protocolVersion"] == version
    assert reply.result["serverInfo"] == {"name": "roundtrip", "version": "0.1.0"}
    assert reply.result["capabilities"]["prompts"] == {}
    assert re.match(r"[\x21-\x7e]{1,400}\Z", reply.http.headers["mcp-session-id"])


@pytest.mark.parametrize("version", ["2024-11-05", "2026-07-28", "", None, 5, {"x": 1}])
def test_initialize_with_any_other_version_is_offered_the_latest_of_its_era(version: Any) -> None:
    """2025-11-25, basic/lifecycle: the server responds with another version that it supports."""
    assert initialize(offered(), version).result["protocolVersion"] == VERSIONS[0]


@pytest.mark.parametrize("version", [*VERSIONS, None])
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("ping", {}),
        ("tools/list", {}),
        ("tools/call", {"name": "greet", "arguments": {"name": "Ada"}}),
        ("prompts/list", {}),
        ("prompts/get", {"name": "trip", "arguments": {"city": "Oslo"}}),
        ("resources/list", {}),
        ("resources/templates/list", {}),
        ("resources/read", {"uri": "notes://today"}),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "trip"}, "argument": {"name": "style", "value": ""}},
        ),
        ("logging/setLevel", {"level": "info"}),
    ],
)
def test_every_feature_is_there_without_initialize_and_on_any_instance(
    version: str | None, method: str, params: dict[str, Any]
) -> None:
    """Each answer is judged by the official types of that era: no resultType, no ttlMs."""
    server = offered()
    results = [legacy(server, method, params, version=version).result for _ in range(3)]
    assert results[0] == results[1] == results[2]


def test_a_request_with_modern_meta_is_modern_whatever_its_header_says() -> None:
    """basic/versioning: a request carrying modern per-request _meta is served according to this revision."""
    client = offered().client()
    assert client.request("tools/list", mcp_protocol_version="2025-11-25").error["code"] == -32020
    assert client.request("initialize").error["code"] == -32601
    assert client.request("ping").error["code"] == -32601


def test_a_modern_header_without_meta_is_told_what_is_missing() -> None:
    """CONFORMANCE 3.1, checks 1 to 6."""
    reply = legacy(offered(), "tools/list", version="2026-07-28")
    assert (reply.status, reply.error["code"]) == (400, -32602)


@pytest.mark.parametrize("method", ["server/discover", "subscriptions/listen", "resources/subscribe", "unknown"])
def test_a_method_of_another_era_is_not_found(method: str) -> None:
    """As a JSON-RPC error in a 200: clients of that era read no body of another status."""
    reply = legacy(offered(), method, {"uri": "notes://today"})
    assert (reply.status, reply.message["error"]["code"]) == (200, -32601)


@pytest.mark.parametrize("params", [{}, {"level": "loud"}, {"level": 5}])
def test_set_level_checks_the_level(params: dict[str, Any]) -> None:
    """2025-11-25, server/utilities/logging, Error Handling."""
    assert legacy(offered(), "logging/setLevel", params).message["error"]["code"] == -32602


def test_log_messages_come_from_info_on_since_no_level_can_be_remembered() -> None:
    reply = legacy(offered(), "tools/call", {"name": "steps", "arguments": {}})
    assert [each["params"]["level"] for each in reply.notifications] == ["warning"]


def test_a_resource_that_does_not_exist_has_the_code_of_that_era() -> None:
    """2025-11-25, server/resources, Error Handling: -32002."""
    reply = legacy(offered(), "resources/read", {"uri": "notes://tomorrow"})
    assert (reply.status, reply.message["error"]["code"]) == (200, -32002)


def test_output_that_is_no_object_goes_as_text_alone() -> None:
    """Before 2026-07-28 an output schema is an object: a client would not read the list at all."""

    @tool(read_only=True)
    def numbers() -> list[int]:
        """Count."""
        return [1, 2]

    server = JudgedServer([numbers])
    (listed,) = legacy(server, "tools/list").result["tools"][:1]
    assert "outputSchema" not in listed
    result = legacy(server, "tools/call", {"name": "numbers"}).result
    assert "structuredContent" not in result
    assert result["content"][0]["text"] == "[1, 2]"


def test_a_client_that_declared_url_mode_gets_the_error_of_its_revision() -> None:
    """2025-11-25, client/elicitation, URL Elicitation Required Error: what it declared travels in the session id."""
    server = JudgedServer([visit])
    session = initialize(server, capabilities=WITH_URLS).http.headers["mcp-session-id"]
    replies = [legacy(server, "tools/call", {"name": "visit"}, session=session) for _ in range(2)]
    first, second = (reply.message["error"] for reply in replies)
    assert first == second
    assert first["code"] == -32042
    assert first["data"]["elicitations"][0]["url"] == PAGE["params"]["url"]
    assert first["data"]["elicitations"][0]["elicitationId"]


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_url_mode_is_of_one_revision_only(version: str) -> None:
    server = JudgedServer([visit])
    session = initialize(server, version, WITH_URLS).http.headers["mcp-session-id"]
    reply = legacy(server, "tools/call", {"name": "visit"}, version=version, session=session)
    assert "https://mcp.example.com/connect/x" in reply.text


@pytest.mark.parametrize("session", [None, "", "x", "rs1.AAAA"])
def test_without_what_it_declared_a_client_gets_the_link_as_text(session: str | None) -> None:
    """DESIGN 4: never an opaque error, and a session id that does not open is none."""
    text = legacy(JudgedServer([visit]), "tools/call", {"name": "visit"}, session=session).text
    assert "https://mcp.example.com/connect/x" in text
    assert 'call the tool "visit" again' in text


def test_a_session_id_is_of_one_user() -> None:
    server = JudgedServer([visit])
    session = initialize(server, capabilities=WITH_URLS).http.headers["mcp-session-id"]
    assert "connect/x" in legacy(server, "tools/call", {"name": "visit"}, session=session, user="bob").text


def test_a_modern_answer_in_a_legacy_request_counts_for_nothing() -> None:
    """Nothing of 2026-07-28 is read: a question is not answered by members that this era does not have."""
    server = offered()
    params = {"name": "summarize", "arguments": {"text": "x"}, "inputResponses": {"summary": {}}, "requestState": "x"}
    reply = legacy(server, "tools/call", params)
    assert reply.is_error
    assert "2026-07-28" in reply.text


def test_what_this_client_cannot_be_asked_is_said_in_words() -> None:
    """DESIGN 4: sampling, and prompts that ask, have no way to a client of that era without a stream."""
    reply = legacy(offered(), "prompts/get", {"name": "letter", "arguments": {"to": "Bob"}})
    assert reply.status == 200
    assert "2026-07-28" in reply.message["error"]["message"]


def test_a_prompt_that_needs_a_link_gets_the_error_with_the_link() -> None:
    @prompt
    def connected(ctx: Context) -> InputRequired:
        """Need a page."""
        return InputRequired({"page": PAGE})

    server = JudgedServer([*FEATURES.all, connected])
    session = initialize(server, capabilities=WITH_URLS).http.headers["mcp-session-id"]
    reply = legacy(server, "prompts/get", {"name": "connected"}, session=session)
    assert reply.message["error"]["code"] == -32042


def test_a_notification_of_that_era_is_accepted() -> None:
    """2025-11-25, basic/lifecycle: notifications/initialized."""
    server = offered()
    draft = Draft(
        server,
        message={"jsonrpc": "2.0", "method": "notifications/initialized"},
        headers={
            "authorization": f"Bearer {server.issuer.mint('alice')}",
            "content-type": "application/json",
            "mcp-protocol-version": "2025-11-25",
        },
    )
    assert draft.send().status == 202


class Sure(BaseModel):
    sure: bool


@pytest.mark.parametrize("declared", [{}, {"elicitation": {}}, WITH_URLS])
def test_a_tool_that_may_destroy_never_asks_such_a_client(declared: dict[str, Any]) -> None:
    """DESIGN 4: a model must not confirm for the user. Who says nothing may destroy (schema, ToolAnnotations)."""
    done: list[str] = []

    @tool
    def erase(ctx: Context) -> str:
        """Erase everything. Asks first."""
        match ctx.ask("sure", "Erase?", Sure):
            case Accepted(Sure(sure=True)):
                done.append("erased")
                return "Gone."
            case _:
                return ctx.stop("Kept.")

    server = JudgedServer([erase])
    session = initialize(server, capabilities=declared).http.headers.get("mcp-session-id")
    assert "answer" not in [each["name"] for each in legacy(server, "tools/list").result["tools"]]
    reply = legacy(server, "tools/call", {"name": "erase"}, session=session)
    assert reply.is_error
    assert "cannot show a server's questions" in reply.text
    assert done == []
    assert "rs1." not in json.dumps(reply.message)

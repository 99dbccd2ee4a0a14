"""What the methods answer: discovery, the list of tools, calls, and what a call may not carry."""

import json
from typing import Any

import pytest

from app.errors import ConfigurationError
from app.protocol import messages
from app.protocol.dispatch import LIST_TTL_MS
from app.protocol.features import Call, Completed, InputNeeded, Outcome, Tool
from app.protocol.request_state import MAX_ROUNDS
from app.strict_json import JsonObject
from app.testing import FORMS, FORMS_AND_URLS, Reply, accept
from tests.protocol.endpoint import SCOPES, TOOLS, JudgedServer, draft, served

ASK: JsonObject = {"name": "ask", "arguments": {}}


def _refused(answer: Reply, code: int, *words: str) -> None:
    assert (answer.status, answer.error["code"]) == (400, code)
    assert all(word in answer.error["message"] for word in words)


def test_discovery_names_versions_and_capabilities_and_may_be_kept() -> None:
    """server/discover; server/utilities/caching."""
    result = draft(served(), "server/discover").send().result
    assert result == {
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}, "logging": {}},
        "ttlMs": LIST_TTL_MS,
        "cacheScope": "public",
        "_meta": {messages.META_SERVER_INFO: {"name": "roundtrip", "version": "0.1.0"}},
    }


def test_the_configured_name_is_in_every_result() -> None:
    """basic/index, per-response protocol fields: SHOULD be on every result."""
    server = served(server_name="Help desk")
    for method, params in (("server/discover", {}), ("tools/list", {}), ("tools/call", ASK)):
        result = draft(server, method, params).send().result
        assert result["_meta"][messages.META_SERVER_INFO]["name"] == "Help desk"


def test_the_list_of_tools_is_the_same_bytes_each_time_on_each_instance_for_each_user() -> None:
    """server/tools: SHOULD be deterministic; `cacheScope: public` says that it is the same for every user."""
    server = served()
    alice = draft(server, "tools/list", scope="")
    answers = [alice.send() for _ in range(4)]
    bob = draft(server, "tools/list")
    bob.headers["authorization"] = f"Bearer {server.issuer.mint('bob')}"
    answers.append(bob.send())
    server.restart()
    answers.append(alice.send())
    assert len({answer.http.body for answer in answers}) == 1
    assert {answer.instance for answer in answers} == {0, 1}
    assert [tool["name"] for tool in answers[0].result["tools"]] == [tool.name for tool in TOOLS]
    assert (answers[0].result["ttlMs"], answers[0].result["cacheScope"]) == (300_000, "public")
    assert "nextCursor" not in answers[0].result


@pytest.mark.parametrize("cursor", ["", "x", 5, [], {}])
def test_a_cursor_that_we_never_gave_is_refused(cursor: Any) -> None:
    """server/utilities/pagination, Error Handling: invalid cursors SHOULD result in -32602."""
    _refused(draft(served(), "tools/list", {"cursor": cursor}).send(), -32602, "cursor")


@pytest.mark.parametrize("method", ["server/discover", "tools/list"])
@pytest.mark.parametrize("member", [{"inputResponses": {}}, {"requestState": "rs1.x"}, {"requestState": None}])
def test_a_method_that_never_asks_takes_no_answers(method: str, member: JsonObject) -> None:
    """patterns/mrtr, Supported Requests; tower-mcp#950: a silent ignore hides a client's mistake."""
    _refused(draft(served(), method, member).send(), -32602, method, next(iter(member)))


@pytest.mark.parametrize(
    "method",
    [
        "unknown/method",
        "tools/List",
        "",
        "x" * 300,
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "notifications/initialized",
    ],
)
def test_a_method_that_this_revision_lacks_is_404_under_the_requests_id(method: str) -> None:
    """streamable-http, Protocol Version Header: 404 and -32601. CONFORMANCE 3.1, checks 17 to 22."""
    answer = draft(served(), method).send()
    assert (answer.status, answer.error["code"], answer.message["id"]) == (404, -32601, 1)
    assert "server/discover" in answer.error["message"]


@pytest.mark.parametrize("name", ["nobody", "", "GREET", "greet ", "x" * 10_000])
def test_an_unknown_tool_is_a_protocol_error(name: str) -> None:
    """server/tools, Error Handling: Unknown tool is -32602, not a tool result."""
    request = draft(served(), params={"name": name})
    if name != name.strip():
        request.headers["mcp-name"] = "=?base64?Z3JlZXQg?="
    answer = request.send()
    _refused(answer, -32602, "Unknown tool")
    assert len(answer.error["message"]) < 200


@pytest.mark.parametrize("name", [None, 5, True, [], {}, ["greet"]], ids=repr)
def test_a_tool_name_that_is_no_string_is_an_invalid_parameter(name: Any) -> None:
    request = draft(served(), params={"name": name})
    request.headers["mcp-name"] = None
    _refused(request.send(), -32602, '"name" must be a string')


def test_a_call_without_a_name_is_an_invalid_parameter() -> None:
    _refused(draft(served(), "tools/call", {"arguments": {}}).send(), -32602, '"name" must be a string')


@pytest.mark.parametrize("arguments", [None, [], 0, "x", "", False, 1.5, [{}]], ids=repr)
def test_arguments_that_are_no_object_are_refused(arguments: Any) -> None:
    """schema.ts, CallToolRequestParams; a reference SDK digests all of these as `{}`."""
    answer = draft(served(), params={"name": "greet", "arguments": arguments}).send()
    _refused(answer, -32602, '"arguments" must be an object')


def test_absent_arguments_are_no_arguments() -> None:
    """schema.ts, CallToolRequestParams: `arguments` is optional. CONFORMANCE: tools-call-simple-text."""
    assert draft(served(), params={"name": "greet"}).send().text == "Hello, world!"


def test_arguments_of_the_wrong_type_are_a_tool_error_that_the_model_can_read() -> None:
    """server/tools, Error Handling: input validation errors are tool execution errors."""
    answer = draft(served(), params={"name": "greet", "arguments": {"name": 5}}).send()
    assert answer.is_error
    assert "name" in answer.text


@pytest.mark.parametrize("granted", ["", "reports:read", "reports:delete", "reports:delete2 reports:rea", "reports"])
def test_a_call_with_too_little_scope_is_told_every_scope_that_it_needs(granted: str) -> None:
    """RFC 6750 section 3.1; authorization, Scope Challenge Handling: all scopes of the operation, in one go."""
    answer = draft(served(), params={"name": "delete", "arguments": {"target": "Q3"}}, scope=granted).send()
    challenge = answer.http.headers["www-authenticate"]
    assert answer.status == 403
    assert challenge.startswith('Bearer error="insufficient_scope", resource_metadata="https://mcp.example.com/')
    assert f'scope="{" ".join(SCOPES)}"' in challenge
    assert answer.http.headers["x-mcp-challenge"] == challenge


def test_the_scopes_that_every_request_needs_are_part_of_the_challenge() -> None:
    server = served(required_scopes="mcp:use")
    answer = draft(server, params={"name": "delete", "arguments": {"target": "Q3"}}, scope="mcp:use").send()
    assert 'scope="mcp:use reports:delete reports:read"' in answer.http.headers["www-authenticate"]


def test_more_scope_than_needed_is_no_obstacle() -> None:
    granted = "x " + " ".join(reversed(SCOPES))
    answer = draft(served(), params={"name": "delete", "arguments": {"target": "Q3"}}, scope=granted).send()
    assert answer.result["resultType"] == "input_required"


# Tool, what the client declares, what the answer says is required.
GATES: list[tuple[str, JsonObject, JsonObject | None]] = [
    ("ask", {"elicitation": {}}, None),
    ("ask", FORMS, None),
    ("ask", FORMS_AND_URLS, None),
    ("ask", {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
    ("ask", {}, {"elicitation": {"form": {}}}),
    ("visit", FORMS_AND_URLS, None),
    ("visit", {"elicitation": {"url": {}}}, None),
    ("visit", {"elicitation": {}}, {"elicitation": {"url": {}}}),
    ("visit", FORMS, {"elicitation": {"url": {}}}),
    ("visit", {"sampling": {}, "roots": {}}, {"elicitation": {"url": {}}}),
    ("visit_and_ask", FORMS_AND_URLS, None),
    ("visit_and_ask", FORMS, {"elicitation": {"url": {}}}),
    ("visit_and_ask", {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
    ("visit_and_ask", {}, FORMS_AND_URLS),
    ("sample", {"sampling": {}}, None),
    ("sample", FORMS_AND_URLS, {"sampling": {}}),
    ("roots", {"roots": {}}, None),
    ("roots", {}, {"roots": {}}),
    ("wait", {}, None),
    ("greet", {}, None),
]


@pytest.mark.parametrize(("name", "declared", "required"), GATES)
def test_a_client_is_asked_only_for_what_it_declared(
    name: str, declared: JsonObject, required: JsonObject | None
) -> None:
    """patterns/mrtr, server requirement 7; dart-lang/ai#588: the error names each mode; hand-built requests too."""
    answer = draft(served(), params={"name": name}, capabilities=declared).send()
    if required is None:
        assert answer.status == 200
    else:
        _refused(answer, -32021, *required)
        assert answer.error["data"] == {"requiredCapabilities": required}


def test_a_capability_that_is_gone_in_the_second_round_is_missed_there() -> None:
    """basic/index, Statelessness: nothing of the first request counts."""
    server = served()
    asked = draft(server, params=ASK).send().result
    wrong = {"confirm": accept(confirm="yes")}
    retry = {**ASK, "inputResponses": wrong, "requestState": asked["requestState"]}
    _refused(draft(server, params=retry, capabilities={}).send(), -32021)
    assert draft(server, params=retry).send().result["resultType"] == "input_required"


def test_a_form_is_asked_with_its_mode_message_and_flat_schema() -> None:
    """client/elicitation, Form Mode; modelcontextprotocol#1863: `mode` is always there."""
    asked = draft(served(), params=ASK).send().asked
    assert asked == {
        "confirm": {
            "method": "elicitation/create",
            "params": {
                "mode": "form",
                "message": "Sure?",
                "requestedSchema": {
                    "type": "object",
                    "properties": {"confirm": {"type": "boolean", "description": "Tick to delete"}},
                    "required": ["confirm"],
                },
            },
        }
    }


@pytest.mark.parametrize("responses", [[], 5, "x", True, 0], ids=repr)
def test_input_responses_that_are_no_object_are_refused(responses: Any) -> None:
    """schema.ts, InputResponses: a map from question key to response."""
    server = served()
    state = draft(server, params=ASK).send().result["requestState"]
    retry = {**ASK, "inputResponses": responses, "requestState": state}
    _refused(draft(server, params=retry).send(), -32602, "inputResponses")


@pytest.mark.parametrize(
    "responses",
    [
        None,
        {},
        {"other": accept(confirm=True)},
        {"confirm": None},
        {"confirm": 5},
        {"confirm": []},
        {"confirm": {}},
        {"confirm": {"action": "ACCEPT", "content": {"confirm": True}}},
        {"confirm": {"action": "yes"}},
        {"confirm": {"action": ["accept"]}},
        {"confirm": {"action": "accept"}},
        {"confirm": {"action": "accept", "content": None}},
        {"confirm": {"action": "accept", "content": []}},
        {"confirm": accept(confirm="true")},
        {"confirm": accept(confirm=1)},
    ],
    ids=json.dumps,
)
def test_an_answer_that_is_none_is_asked_for_again(responses: Any) -> None:
    """patterns/mrtr, Error Handling: missing information is requested again. `"yes"` is not `true`."""
    server = served()
    state = draft(server, params=ASK).send().result["requestState"]
    answer = draft(server, params={**ASK, "inputResponses": responses, "requestState": state}).send()
    assert set(answer.asked) == {"confirm"}


def test_answers_that_nobody_asked_for_are_ignored() -> None:
    """patterns/mrtr, Error Handling: unexpected responses SHOULD be ignored."""
    server = served()
    state = draft(server, params=ASK).send().result["requestState"]
    responses = {"confirm": accept(confirm=True), **{f"extra-{i}": accept(x=i) for i in range(1000)}}
    assert draft(server, params={**ASK, "inputResponses": responses, "requestState": state}).send().text == "Done."


@pytest.mark.parametrize("state", ["", "x", "rs1.", "rs1." + "A" * 40_000, "A" * 1_000_000, 5, True, [], {}])
def test_a_state_that_we_did_not_make_is_refused_with_one_frozen_error(state: Any) -> None:
    """SECURITY 2.7: one message for every reason; tower-mcp#950: of any size."""
    answer = draft(served(), params={**ASK, "requestState": state}).send()
    _refused(answer, -32602)
    assert answer.error["message"] == "Invalid or expired requestState"


def test_a_state_is_verified_on_a_tool_that_never_asks_too() -> None:
    """SECURITY 2.7: an ignored state would be an oracle for which tools ask."""
    _refused(draft(served(), params={"name": "greet", "requestState": "rs1.x"}).send(), -32602, "requestState")


def test_a_null_state_is_no_state() -> None:
    """SECURITY 2.7."""
    answer = draft(served(), params={**ASK, "requestState": None, "inputResponses": {"confirm": accept(confirm=True)}})
    assert set(answer.send().asked) == {"confirm"}


def test_the_round_after_the_last_one_ends_with_a_tool_error_that_names_the_limit() -> None:
    """fugue-labs/gollem#259; the count is sealed, so a client cannot start it anew."""
    server = served()
    answer = draft(server, params=ASK).send()
    for _ in range(MAX_ROUNDS - 1):
        answer = draft(server, params={**ASK, "requestState": answer.result["requestState"]}).send()
        assert set(answer.asked) == {"confirm"}
    answer = draft(server, params={**ASK, "requestState": answer.result["requestState"]}).send()
    assert answer.is_error
    assert str(MAX_ROUNDS) in answer.text


def test_a_tool_that_carries_too_much_ends_with_a_tool_error_that_says_what_to_do() -> None:
    """SECURITY 2.4: 16 KiB of claims."""

    def hoard(call: Call) -> Outcome:
        return InputNeeded(state="x" * 20_000)

    server = JudgedServer([Tool("hoard", dict, hoard)])
    answer = draft(server, params={"name": "hoard"}).send()
    assert answer.is_error
    assert "keep the content in a store" in answer.text


@pytest.mark.parametrize("poison", [float("nan"), float("inf"), {1, 2}], ids=repr)
def test_a_result_that_is_not_json_is_an_internal_error_under_the_requests_id(poison: Any) -> None:
    """basic/index, Error Responses: MUST include the same id; RFC 8259 has no NaN."""

    def broken(call: Call) -> Outcome:
        return Completed(messages.complete({"content": [], "structuredContent": {"x": poison}}))

    answer = draft(JudgedServer([Tool("broken", dict, broken)]), params={"name": "broken"}).send()
    assert (answer.status, answer.error["code"], answer.message["id"]) == (500, -32603, 1)


def test_a_fault_of_ours_is_an_internal_error_without_detail(caplog: pytest.LogCaptureFixture) -> None:
    """The exception is in the log; the wire gets one fixed sentence."""

    def broken(call: Call) -> Outcome:
        raise KeyError("hunter2")

    answer = draft(JudgedServer([Tool("broken", dict, broken)]), params={"name": "broken"}).send()
    assert (answer.status, answer.error["code"], answer.message["id"]) == (500, -32603, 1)
    assert b"hunter2" not in answer.http.body
    assert b"KeyError" not in answer.http.body
    assert "hunter2" in caplog.text
    assert (answer.http.facts["outcome"], answer.http.facts["reason"]) == ("crashed", "KeyError")


def test_a_tool_that_raises_is_a_tool_error_without_detail() -> None:
    answer = draft(served(), params={"name": "crash"}).send()
    assert answer.is_error
    assert b"hunter2" not in answer.http.body


@pytest.mark.parametrize(
    ("params", "outcome"),
    [
        ({"name": "greet"}, "complete"),
        ({"name": "greet", "arguments": {"name": 5}}, "invalid_arguments"),
        ({"name": "ask"}, "input_required"),
        ({"name": "crash"}, "crashed"),
        ({"name": "nobody"}, "refused"),
    ],
)
def test_the_log_line_says_what_became_of_a_call(params: JsonObject, outcome: str) -> None:
    facts = draft(served(), params=params).send().http.facts
    assert (facts["outcome"], facts["method"]) == (outcome, "tools/call")


def test_two_tools_of_one_name_do_not_start() -> None:
    """server/tools: names SHOULD be unique; which of two runs must not be chance."""
    with pytest.raises(ConfigurationError, match="rename one"):
        JudgedServer([TOOLS[0], TOOLS[0]])

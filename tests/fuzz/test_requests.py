"""Messages, headers, arguments and answers that nobody wrote by hand, at the endpoint."""

import copy
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.strict_json import canonical
from app.testing import accept, encode_header_value
from tests.fuzz.budget import tries
from tests.fuzz.endpoint import Endpoint
from tests.fuzz.generated import as_body, bodies, header_names, header_values, json_values, spoiled, spoiled_text, texts

_PROMPT: Final = {"type": "ref/prompt", "name": "erase"}
# One well-formed request of every method.
REQUESTS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("server/discover", {}),
    ("tools/list", {}),
    ("tools/call", {"name": "erase", "arguments": {"target": "x"}}),
    ("tools/call", {"name": "count", "arguments": {"number": 1}}),
    ("tools/call", {"name": "never", "arguments": {}}),
    ("prompts/list", {"cursor": "x"}),
    ("prompts/get", {"name": "erase", "arguments": {"target": "x"}}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "fuzz://alice/a/b"}),
    ("completion/complete", {"ref": _PROMPT, "argument": {"name": "target", "value": ""}}),
    ("subscriptions/listen", {"notifications": {"toolsListChanged": True}}),
    ("notifications/cancelled", {"requestId": 1}),
    ("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}),
)  # fmt: skip
YES: Final = {"confirm": accept(confirm=True)}


@pytest.fixture(autouse=True)
def somebody(endpoint: Endpoint) -> None:
    endpoint.somebody_else()


@tries(150)
@given(st.data())
def test_a_spoiled_message_is_answered_by_the_rules_of_its_revision(endpoint: Endpoint, data: st.DataObject) -> None:
    """No message makes the endpoint fail, hang, act, or answer what its schema does not know."""
    message = data.draw(spoiled(endpoint.message(*data.draw(st.sampled_from(REQUESTS)))))
    headers = endpoint.headers(message)
    if data.draw(st.integers(0, 3)) == 0:
        headers |= data.draw(st.dictionaries(header_names, header_values, max_size=3))
    before = endpoint.effects
    endpoint.send(as_body(message), {name: value for name, value in headers.items() if _is_latin1(value)})
    assert endpoint.effects == before


def _is_latin1(text: str) -> bool:
    return all(ord(character) < 256 for character in text)


@tries(150)
@given(st.data())
def test_a_spoiled_message_of_an_older_client_is_answered_too(endpoint: Endpoint, data: st.DataObject) -> None:
    """The same for the revisions before 2026-07-28: no `_meta`, and perhaps a header that names one."""
    method, params = data.draw(st.sampled_from(REQUESTS))
    message = data.draw(spoiled({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
    headers = endpoint.headers(message)
    version = data.draw(st.sampled_from([None, "2025-11-25", "2025-06-18", "2025-03-26"]))
    del headers["mcp-protocol-version"]
    if version is not None:
        headers["mcp-protocol-version"] = version
    headers |= data.draw(st.dictionaries(st.just("mcp-session-id"), header_values))
    before = endpoint.effects
    endpoint.send(as_body(message), {name: value for name, value in headers.items() if _is_latin1(value)})
    assert endpoint.effects == before


@tries(100)
@given(body=bodies)
def test_any_bytes_as_a_body_are_answered(endpoint: Endpoint, body: bytes) -> None:
    """Bytes that are no message at all."""
    endpoint.send(body, endpoint.headers() | {"mcp-method": "tools/list"})


@tries(100)
@given(headers=st.dictionaries(header_names, header_values, max_size=6), data=st.data())
def test_any_headers_are_answered(endpoint: Endpoint, headers: dict[str, str], data: st.DataObject) -> None:
    """Any byte in any header, with credentials and without; any method and path."""
    message = endpoint.message("tools/call", {"name": "erase", "arguments": {"target": "x"}})
    own = endpoint.headers(message) if data.draw(st.booleans()) else {}
    method = data.draw(st.sampled_from(["POST", "GET", "HEAD", "OPTIONS", "PUT", "", "\0"]))
    endpoint.send(as_body(message), {**own, **headers}, method=method)


@tries(100)
@given(data=st.data())
def test_any_arguments_are_refused_or_asked_about(endpoint: Endpoint, data: st.DataObject) -> None:
    """The arguments that a model made up."""
    tool = data.draw(st.sampled_from(["erase", "rename", "move", "count", "never"]))
    endpoint.somebody_else()
    names = st.one_of(texts, st.sampled_from(["target", "number", "region"]))
    arguments = data.draw(st.dictionaries(names, json_values))
    message = endpoint.message("tools/call", {"name": tool, "arguments": arguments})
    before = endpoint.effects
    endpoint.send(as_body(message), endpoint.headers(message))
    assert endpoint.effects == before


@tries(100)
@given(uri=st.one_of(texts, spoiled_text("fuzz://alice/a%2Fb/c?d#e"), st.text().map(lambda text: f"fuzz://{text}")))
def test_any_uri_is_read_or_not_found(endpoint: Endpoint, uri: str) -> None:
    """A URI template is a pattern, and the URI is the caller's."""
    message = endpoint.message("resources/read", {"uri": uri})
    try:
        named = {"mcp-name": encode_header_value(uri)}
    except UnicodeEncodeError:
        named = {"mcp-name": "x"}
    endpoint.send(as_body(message), endpoint.headers() | {"mcp-method": "resources/read"} | named)


@tries(150)
@given(data=st.data())
def test_nothing_happens_but_what_the_user_agreed_to(endpoint: Endpoint, data: st.DataObject) -> None:
    """The finishing request of a flow, spoiled. If it acts all the same, then what it must have was intact."""
    endpoint.somebody_else()
    arguments = {"target": "thing"}
    first = endpoint.message("tools/call", {"name": "erase", "arguments": arguments})
    asked = endpoint.send(as_body(first), endpoint.headers(first))["result"]
    params = {"inputResponses": YES, "requestState": asked["requestState"], "name": "erase", "arguments": arguments}
    message = data.draw(spoiled(endpoint.message("tools/call", params), most=2))
    before = endpoint.effects
    endpoint.send(as_body(message), endpoint.headers(message))
    if endpoint.effects != before:
        assert endpoint.effects == [*before, "erased thing"]
        assert message["method"] == "tools/call"
        sent = message["params"]
        assert sent["name"] == "erase"
        assert canonical(sent["arguments"]) == canonical(arguments)
        assert sent["requestState"] == asked["requestState"]
        answer = sent["inputResponses"]["confirm"]
        assert answer["action"] == "accept"
        assert answer["content"]["confirm"] is True


@tries(100)
@given(answers=st.one_of(json_values, st.dictionaries(st.sampled_from(["confirm", "x"]), json_values), spoiled(YES)))
def test_any_answer_is_refused_asked_again_or_was_a_yes(endpoint: Endpoint, answers: Any) -> None:
    """What a host made of the user's click."""
    endpoint.somebody_else()
    arguments = {"target": "thing"}
    first = endpoint.message("tools/call", {"name": "erase", "arguments": arguments})
    asked = endpoint.send(as_body(first), endpoint.headers(first))["result"]
    params = {**first["params"], "inputResponses": answers, "requestState": asked["requestState"]}
    before = endpoint.effects
    endpoint.send(as_body({**first, "params": params}), endpoint.headers(first))
    if endpoint.effects != before:
        assert answers["confirm"]["action"] == "accept"
        assert answers["confirm"]["content"]["confirm"] is True


PARTS: Final = (
    ("requestState",),
    ("inputResponses",),
    ("inputResponses", "confirm"),
    ("inputResponses", "confirm", "action"),
    ("inputResponses", "confirm", "content"),
    ("inputResponses", "confirm", "content", "confirm"),
    ("arguments",),
    ("arguments", "target"),
    ("name",),
)


@pytest.mark.parametrize("instead", [..., None, {}, [], True, "yes"], ids=str)
@pytest.mark.parametrize("part", PARTS, ids=".".join)
def test_no_part_of_a_yes_can_be_missing_or_something_else(endpoint: Endpoint, part: Any, instead: Any) -> None:
    """What chance might miss: each part of the finishing request left out, and replaced."""
    if instead is True and part[-1] == "confirm" and len(part) == 4:
        return
    first = endpoint.message("tools/call", {"name": "erase", "arguments": {"target": "part"}})
    asked = endpoint.send(as_body(first), endpoint.headers(first))["result"]
    params = copy.deepcopy({**first["params"], "inputResponses": YES, "requestState": asked["requestState"]})
    holder: Any = params
    for name in part[:-1]:
        holder = holder[name]
    if instead is ...:
        del holder[part[-1]]
    else:
        holder[part[-1]] = instead
    message = {**first, "params": params}
    before = endpoint.effects
    endpoint.send(as_body(message), endpoint.headers(message))
    assert endpoint.effects == before


def test_the_request_that_is_spoiled_here_does_act_when_it_is_not(endpoint: Endpoint) -> None:
    """What the tests above are compared with."""
    first = endpoint.message("tools/call", {"name": "erase", "arguments": {"target": "control"}})
    asked = endpoint.send(as_body(first), endpoint.headers(first))["result"]
    params = {**first["params"], "inputResponses": YES, "requestState": asked["requestState"]}
    endpoint.send(as_body({**first, "params": params}), endpoint.headers(first))
    assert "erased control" in endpoint.effects


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: request[0])
def test_the_messages_that_are_spoiled_here_are_well_formed(endpoint: Endpoint, request_: Any) -> None:
    """Spoiling what is broken already would try nothing."""
    message = endpoint.message(*request_)
    answer = endpoint.send(as_body(message), endpoint.headers(message))
    assert answer is None or answer.get("error", {}).get("code") in (None, -32601, -32602), answer

"""Request metadata, capability checks and the shapes of results and errors."""

from typing import Any

import pytest

from app.protocol import messages
from app.protocol.jsonrpc import ErrorCode, JSONRPCError
from app.protocol.messages import RequestMeta, missing_capability
from app.strict_json import JsonObject
from tests.protocol.endpoint import draft, served

VERSION = messages.META_PROTOCOL_VERSION
CAPABILITIES = messages.META_CLIENT_CAPABILITIES
ABSENT = object()


def _changed(meta: JsonObject, **changes: Any) -> JsonObject:
    changed = {**meta, **{getattr(messages, name): value for name, value in changes.items()}}
    return {name: value for name, value in changed.items() if value is not ABSENT}


@pytest.mark.parametrize("meta", [ABSENT, None, [], "x", 5, {}], ids=repr)
def test_a_request_without_meta_is_told_both_fields_and_the_supported_versions(meta: Any) -> None:
    """basic/index, `_meta`: MUST reject with -32602 and 400. CONFORMANCE 3.1, checks 1 and 2."""
    request = draft(served(), "server/discover")
    request.message["params"]["_meta"] = meta
    if meta is ABSENT:
        del request.message["params"]["_meta"]
    answer = request.send()
    assert (answer.status, answer.error["code"], answer.message["id"]) == (400, -32602, 1)
    assert VERSION in answer.error["message"]
    assert messages.PROTOCOL_VERSION in answer.error["message"]


@pytest.mark.parametrize("value", [ABSENT, None, 5, True, ["2026-07-28"], {}], ids=repr)
def test_a_protocol_version_that_is_no_string_is_named_as_missing(value: Any) -> None:
    """basic/index, per-request protocol fields. CONFORMANCE 3.1, checks 3 and 4; SECURITY 5.43."""
    request = draft(served(), "server/discover")
    meta = request.message["params"]["_meta"]
    request.message["params"]["_meta"] = _changed(meta, META_PROTOCOL_VERSION=value)
    answer = request.send()
    assert (answer.status, answer.error["code"]) == (400, -32602)
    assert VERSION in answer.error["message"]
    assert CAPABILITIES not in answer.error["message"]


@pytest.mark.parametrize("value", [ABSENT, None, [], "form", 1, True], ids=repr)
def test_client_capabilities_that_are_no_object_are_named_as_missing(value: Any) -> None:
    """basic/index, per-request protocol fields. CONFORMANCE 3.1, checks 5 and 6."""
    request = draft(served(), "server/discover")
    meta = request.message["params"]["_meta"]
    request.message["params"]["_meta"] = _changed(meta, META_CLIENT_CAPABILITIES=value)
    answer = request.send()
    assert (answer.status, answer.error["code"]) == (400, -32602)
    assert CAPABILITIES in answer.error["message"]


@pytest.mark.parametrize("value", [ABSENT, None, 5, {"name": 1}], ids=repr)
def test_the_client_info_is_optional_and_nothing_depends_on_it(value: Any) -> None:
    """basic/index: clientInfo is for display only. CONFORMANCE 3.1, check 7."""
    request = draft(served(), "server/discover")
    meta = request.message["params"]["_meta"]
    request.message["params"]["_meta"] = _changed(meta, META_CLIENT_INFO=value)
    assert request.send().status == 200


def test_members_of_meta_that_we_do_not_know_are_ignored() -> None:
    """basic/index, `_meta`: trace context and extensions."""
    request = draft(served())
    request.message["params"]["_meta"] |= {"traceparent": "00-0-0-01", "com.example/x": [1], "progressToken": 7}
    assert request.send().status == 200


def test_capabilities_are_those_of_this_request_and_of_no_other() -> None:
    """basic/index, Statelessness; typescript-sdk#1912: two clients take turns on one instance."""
    server = served()
    for _ in range(2):
        assert draft(server, params={"name": "ask"}).send().status == 200
        assert draft(server, params={"name": "ask"}, capabilities={}).send().error["code"] == -32021


FORM: JsonObject = {"elicitation": {"form": {}}}
URL: JsonObject = {"elicitation": {"url": {}}}
BOTH: JsonObject = {"elicitation": {"form": {}, "url": {}}}
# Input request, what the client declares, what is missing then.
NEEDS: list[tuple[str, JsonObject, JsonObject, JsonObject | None]] = [
    ("elicitation/create", {}, {"elicitation": {}}, None),
    ("elicitation/create", {}, FORM, None),
    ("elicitation/create", {}, BOTH, None),
    ("elicitation/create", {}, URL, FORM),
    ("elicitation/create", {}, {}, FORM),
    ("elicitation/create", {}, {"elicitation": None}, FORM),
    ("elicitation/create", {}, {"elicitation": True}, FORM),
    ("elicitation/create", {}, {"elicitation": []}, FORM),
    ("elicitation/create", {}, {"sampling": {}, "roots": {}}, FORM),
    ("elicitation/create", {"mode": "form"}, {"elicitation": {}}, None),
    ("elicitation/create", {"mode": "form"}, URL, FORM),
    ("elicitation/create", {"mode": "url"}, URL, None),
    ("elicitation/create", {"mode": "url"}, BOTH, None),
    ("elicitation/create", {"mode": "url"}, FORM, URL),
    ("elicitation/create", {"mode": "url"}, {"elicitation": {}}, URL),
    ("elicitation/create", {"mode": "url"}, {}, URL),
    ("sampling/createMessage", {}, {"sampling": {}}, None),
    ("sampling/createMessage", {}, {"sampling": {"tools": {}}}, None),
    ("sampling/createMessage", {}, BOTH, {"sampling": {}}),
    ("roots/list", {}, {"roots": {"listChanged": True}}, None),
    ("roots/list", {}, {"roots": True}, {"roots": {}}),
    ("roots/list", {}, {}, {"roots": {}}),
]


@pytest.mark.parametrize(("method", "params", "declared", "missing"), NEEDS)
def test_an_input_request_needs_the_capability_of_its_mode(
    method: str, params: JsonObject, declared: JsonObject, missing: JsonObject | None
) -> None:
    """client/elicitation, Capabilities: `{}` is form mode only; a request without `mode` is a form."""
    assert missing_capability(method, params, declared) == missing


def test_the_capability_error_names_what_is_missing_as_an_object() -> None:
    """schema.ts, MissingRequiredClientCapabilityError: a ClientCapabilities, not a list of names."""
    error = messages.capability_error(URL)
    assert (error.code, error.data) == (-32021, {"requiredCapabilities": URL})


def test_the_version_error_says_what_was_asked_and_what_would_do() -> None:
    """schema.ts, UnsupportedProtocolVersionError; the message is all that a legacy user may see."""
    error = messages.version_error("1900-01-01")
    assert (error.code, error.data) == (-32022, {"supported": ["2026-07-28"], "requested": "1900-01-01"})
    assert "2026-07-28" in error.message


def test_a_cacheable_result_is_complete_and_has_both_hints() -> None:
    """server/utilities/caching."""
    assert messages.cacheable({"tools": []}, ttl_ms=0) == {
        "resultType": "complete",
        "tools": [],
        "ttlMs": 0,
        "cacheScope": "public",
    }


def test_request_meta_reads_the_two_required_fields() -> None:
    meta = RequestMeta.read({"_meta": {VERSION: "v", CAPABILITIES: FORM, "more": 1}})
    assert meta == RequestMeta(protocol_version="v", client_capabilities=FORM)


def test_a_required_parameter_of_another_type_is_an_invalid_parameter() -> None:
    assert messages.member({"name": "x"}, "name", str, "a string") == "x"
    for params in ({}, {"name": None}, {"name": 5}):
        with pytest.raises(JSONRPCError, match='"name" must be a string') as raised:
            messages.member(params, "name", str, "a string")
        assert raised.value.code is ErrorCode.INVALID_PARAMS

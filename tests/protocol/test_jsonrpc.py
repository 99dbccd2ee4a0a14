"""The JSON-RPC envelope: what is a request, which id comes back, and what an answer looks like as bytes."""

import json
from typing import Any

import pytest

from app.protocol.jsonrpc import (
    HTTP_STATUS,
    MAX_ID,
    ErrorCode,
    JSONRPCError,
    Notification,
    Request,
    error_response,
    parse,
    readable_id,
    result_response,
)
from app.strict_json import MAX_BODY
from tests.protocol.endpoint import Draft, draft, served


def _sent(message: Any) -> Draft:
    request = draft(served(), "tools/list")
    request.message = message
    return request


@pytest.mark.parametrize("request_id", [0, -1, 7, 2**63 - 1, 2**63, 10**30, "", "01", "1", "größe 😀", "x" * MAX_ID])
def test_a_valid_id_comes_back_exactly_as_it_was_sent(request_id: str | int) -> None:
    """basic/index, Requests and Responses: a string or an integer, echoed. fugue-labs/gollem#259: also above int64."""
    request = draft(served(), "tools/list")
    request.message["id"] = request_id
    answer = request.send()
    assert answer.status == 200
    assert answer.message["id"] == request_id
    assert type(answer.message["id"]) is type(request_id)


@pytest.mark.parametrize(
    "request_id", [None, True, False, 1.5, 1.0, [], {}, [1], "x" * (MAX_ID + 1), "x" * 10_000], ids=repr
)
def test_an_id_that_is_neither_a_string_nor_an_integer_is_refused_and_not_echoed(request_id: Any) -> None:
    """basic/index, Requests: MUST include a string or integer id, which MUST NOT be null."""
    request = draft(served(), "tools/list")
    request.message["id"] = request_id
    answer = request.send()
    assert (answer.status, answer.error["code"]) == (400, -32600)
    assert "id" not in answer.message


def test_an_id_of_four_hundred_digits_is_refused_before_it_is_read_as_a_number() -> None:
    """int() of a long digit string is quadratic."""
    request = draft(served(), "tools/list")
    request.body = b'{"jsonrpc":"2.0","id":' + b"9" * 400 + b',"method":"tools/list"}'
    answer = request.send()
    assert (answer.status, answer.error["code"]) == (400, -32700)
    assert "id" not in answer.message


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{", id="cut-off"),
        pytest.param(b'\xef\xbb\xbf{"jsonrpc":"2.0"}', id="byte-order-mark"),
        pytest.param('{"jsonrpc":"2.0"}'.encode("utf-16"), id="utf-16"),
        pytest.param(b'{"a":"\xed\xa0\x80"}', id="encoded-surrogate"),
        pytest.param(b'{"a":"\\ud800"}', id="lone-surrogate"),
        pytest.param(b'{"\\udc00x":1}', id="lone-surrogate-in-a-key"),
        pytest.param(b'{"method":"a","method":"b"}', id="duplicate-key"),
        pytest.param(b'{"a":NaN}', id="nan"),
        pytest.param(b'{"a":-Infinity}', id="infinity"),
        pytest.param(b'{"a":1e400}', id="infinite-float"),
        pytest.param(b'{"a":9223372036854775808}', id="integer-beyond-64-bits"),
        pytest.param(b'{"a":' + b"1" * 5000 + b"}", id="five-thousand-digits"),
        pytest.param(b"[" * 100_000, id="a-hundred-thousand-brackets"),
        pytest.param(b'{"a":' + b"[" * 100 + b"]" * 100 + b"}", id="too-deep"),
        pytest.param(b"[" + b"0," * 30_000 + b"0]", id="too-many-values"),
    ],
)
def test_a_body_that_is_not_strict_json_is_a_parse_error_without_an_id(body: bytes) -> None:
    """JSON-RPC 2.0 section 5.1; RFC 8259 sections 4, 8.1, 8.2: two readings of one body must not come apart."""
    request = draft(served(), "tools/list")
    request.body = body
    answer = request.send()
    assert (answer.status, answer.error["code"]) == (400, -32700)
    assert "id" not in answer.message


def test_a_surrogate_pair_is_a_character_like_any_other() -> None:
    """RFC 8259 section 7."""
    request = draft(served(), params={"name": "greet", "arguments": {"name": "\U0001f600"}})
    assert "\\ud83d\\ude00" in json.dumps(request.message)
    assert request.send().text == "Hello, 😀!"


@pytest.mark.parametrize("batch", [[], [{}], [{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}] * 2])
def test_a_batch_is_refused_with_what_to_do_instead(batch: list[Any]) -> None:
    """streamable-http, Sending Messages 4: the body is a single request or notification."""
    answer = _sent(batch).send()
    assert (answer.status, answer.error["code"]) == (400, -32600)
    assert "one JSON-RPC request in each POST" in answer.error["message"]
    assert "id" not in answer.message


@pytest.mark.parametrize("message", ["tools/list", 5, None, True, 1.5])
def test_a_message_that_is_no_object_is_an_invalid_request(message: Any) -> None:
    answer = _sent(message).send()
    assert (answer.status, answer.error["code"]) == (400, -32600)


@pytest.mark.parametrize("payload", [{"result": {}}, {"error": {"code": -1, "message": "m"}}])
def test_a_posted_response_is_refused_without_its_id(payload: dict[str, Any]) -> None:
    """streamable-http, Sending Messages 4: clients MUST NOT send responses.

    Its id was never one of the client's own requests: an answer under it would settle another request.
    """
    answer = _sent({"jsonrpc": "2.0", "id": 1, **payload}).send()
    assert (answer.status, answer.error["code"]) == (400, -32600)
    assert "id" not in answer.message


@pytest.mark.parametrize(
    "spoilt",
    [
        {"jsonrpc": "1.0"},
        {"jsonrpc": None},
        {"jsonrpc": 2.0},
        {"method": None},
        {"method": 5},
        {"method": ["tools/list"]},
        {"params": []},
        {"params": None},
        {"params": "x"},
        {"params": 0},
    ],
    ids=json.dumps,
)
def test_a_malformed_request_is_refused_under_its_own_id(spoilt: dict[str, Any]) -> None:
    """JSON-RPC 2.0 section 4; basic/index, Error Responses: the same id, where it could be read."""
    request = draft(served(), "tools/list")
    request.message |= spoilt
    answer = request.send()
    assert (answer.status, answer.error["code"], answer.message["id"]) == (400, -32600, 1)


def test_a_request_without_method_is_refused_under_its_own_id() -> None:
    answer = _sent({"jsonrpc": "2.0", "id": "a"}).send()
    assert (answer.status, answer.error["code"], answer.message["id"]) == (400, -32600, "a")


@pytest.mark.parametrize(
    "notification",
    [
        {"method": "notifications/cancelled", "params": {"requestId": 1}},
        {"method": "notifications/initialized"},
        {"method": "notifications/unheard-of", "params": {}},
        {"method": "tools/call", "params": {"name": "crash"}},
    ],
    ids=lambda each: str(each["method"]),
)
def test_a_notification_is_accepted_with_an_empty_202_and_does_nothing(notification: dict[str, Any]) -> None:
    """streamable-http, Sending Messages 5 and its note: header requirements are not defined for notifications."""
    request = _sent({"jsonrpc": "2.0", **notification})
    for name in ("mcp-protocol-version", "mcp-method"):
        request.headers[name] = None
    answer = request.send()
    assert (answer.status, answer.http.body) == (202, b"")


@pytest.mark.parametrize("spoilt", [{"jsonrpc": "1.0"}, {"method": 5}, {"params": []}], ids=json.dumps)
def test_a_malformed_notification_is_refused_without_an_id(spoilt: dict[str, Any]) -> None:
    """streamable-http, Sending Messages 5: an HTTP error status, with an error response that has no id."""
    answer = _sent({"jsonrpc": "2.0", "method": "notifications/cancelled", **spoilt}).send()
    assert (answer.status, answer.error["code"]) == (400, -32600)
    assert "id" not in answer.message


def test_a_body_of_the_largest_size_is_read_and_one_byte_more_is_not() -> None:
    """1 MiB is this project's limit (413)."""
    request = draft(served(), "tools/list")
    body = json.dumps(request.message).encode()
    request.body = body + b" " * (MAX_BODY - len(body))
    assert request.send().status == 200
    request.body += b" "
    assert request.send().status == 413


def test_parse_tells_a_request_from_a_notification_by_the_presence_of_an_id() -> None:
    """JSON-RPC 2.0 section 4.1."""
    assert parse({"jsonrpc": "2.0", "method": "m"}) == Notification("m", {})
    assert parse({"jsonrpc": "2.0", "method": "m", "id": "", "params": {"a": 1}}) == Request("", "m", {"a": 1})
    with pytest.raises(JSONRPCError, match='"id" must be'):
        parse({"jsonrpc": "2.0", "method": "m", "id": None})


@pytest.mark.parametrize("message", [None, [], "x", 5, {}, {"id": None}, {"id": True}, {"id": 1, "result": {}}])
def test_there_is_no_readable_id_where_the_sender_gave_none(message: Any) -> None:
    assert readable_id(message) is None


def test_every_error_code_has_one_http_status() -> None:
    """streamable-http fixes 400 and 404; 500 for our own faults is this project's choice."""
    assert set(HTTP_STATUS) == set(ErrorCode)
    assert {code for code, status in HTTP_STATUS.items() if status != 400} == {
        ErrorCode.METHOD_NOT_FOUND,
        ErrorCode.INTERNAL_ERROR,
    }
    assert (HTTP_STATUS[ErrorCode.METHOD_NOT_FOUND], HTTP_STATUS[ErrorCode.INTERNAL_ERROR]) == (404, 500)


def test_no_error_code_of_an_earlier_revision_is_in_use() -> None:
    """basic/index, Error Codes: MUST NOT emit -32002 and -32042, nor the legacy range."""
    assert not {-32002, -32042}.intersection(ErrorCode)
    assert not any(-32019 <= code <= -32000 for code in ErrorCode)


def test_the_reason_of_an_error_stays_behind() -> None:
    body = error_response(5, JSONRPCError(ErrorCode.INVALID_PARAMS, "No", {"a": 1}, reason="expired at noon"))
    assert json.loads(body) == {"jsonrpc": "2.0", "id": 5, "error": {"code": -32602, "message": "No", "data": {"a": 1}}}


def test_an_answer_is_one_line_of_utf_8_whatever_the_tool_returned() -> None:
    """CONFORMANCE: line-oriented readers take one line as one message."""
    body = result_response("ü", {"text": "a\nb\r\u2028 \U0001f600"})
    assert b"\n" not in body
    assert b"\r" not in body
    assert json.loads(body)["result"]["text"] == "a\nb\r\u2028 \U0001f600"
    assert "ü".encode() in body


def test_a_lone_surrogate_of_a_tool_does_not_break_the_answer() -> None:
    """It has no UTF-8 (volcengine/OpenViking#4238)."""
    assert json.loads(result_response(1, {"text": "a\ud800b"}))["result"]["text"] == "a?b"

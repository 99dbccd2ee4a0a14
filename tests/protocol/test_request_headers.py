"""The headers that mirror the body: Mcp-Name and Mcp-Param-*, plain and in Base64."""

from base64 import b64encode
from typing import Any

import pytest

from app.testing import encode_header_value
from tests.protocol.endpoint import JudgedServer, draft, greet, served
from tests.protocol.offered import error, execute_sql, offered


def call(arguments: dict[str, Any], **headers: str | None) -> Any:
    request = draft(offered(), params={"name": "execute_sql", "arguments": {"query": "select 1", **arguments}})
    request.headers |= {f"mcp-param-{name.replace('_', '-')}": value for name, value in headers.items()}
    return request.send()


def test_a_mirrored_argument_is_listed_with_its_header() -> None:
    """server/tools, x-mcp-header."""
    (tool,) = [
        each for each in offered().client().request("tools/list").result["tools"] if each["name"] == "execute_sql"
    ]
    marked = {name: each["x-mcp-header"] for name, each in tool["inputSchema"]["properties"].items() if name != "query"}
    assert marked == {"region": "Region", "limit": "Limit", "dry_run": "Dry-Run"}


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({}, {}),
        ({"region": "us"}, {"region": "us"}),
        ({"region": "us"}, {"region": "  us\t"}),
        ({"region": "São Paulo"}, {"region": encode_header_value("São Paulo")}),
        ({"region": " us "}, {"region": encode_header_value(" us ")}),
        ({"region": "Hello"}, {"region": "=?base64?SGVsbG8=?="}),
        ({"region": "SGVsbG8="}, {"region": "SGVsbG8="}),
        ({"region": "=?base64?SGVsbG8="}, {"region": "=?base64?SGVsbG8="}),
        ({"region": "=?BASE64?SGVsbG8=?="}, {"region": "=?BASE64?SGVsbG8=?="}),
        ({"region": ""}, {"region": ""}),
        ({"limit": 42}, {"limit": "42"}),
        ({"limit": 42}, {"limit": "42.0"}),
        ({"limit": 42.0}, {"limit": "42"}),
        ({"dry_run": True}, {"dry_run": "true"}),
        ({"dry_run": False}, {"dry_run": "false"}),
    ],
)
def test_a_header_that_says_what_its_argument_says_is_accepted(arguments: Any, headers: dict[str, str]) -> None:
    """streamable-http, Value Encoding and Server Validation; CONFORMANCE 3.3; SECURITY 5, 52."""
    assert call(arguments, **headers).status == 200


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"region": "us"}, {}),
        ({}, {"region": "us"}),
        ({"region": None}, {"region": "us"}),
        ({"region": "us"}, {"region": "eu"}),
        ({"region": "us"}, {"region": "us,us"}),
        ({"region": "us"}, {"region": "US"}),
        ({"region": "é"}, {"region": "é"}),
        ({"region": "Hello"}, {"region": "=?base64?SGVsbG8?="}),
        ({"region": "Hello"}, {"region": "=?base64?SGVs!!!bG8=?="}),
        ({"region": "Hello"}, {"region": "=?base64?SGVsbG9=?="}),
        ({"region": "\ufffd"}, {"region": f"=?base64?{b64encode(bytes([255])).decode()}?="}),
        ({"limit": 42}, {"limit": "43"}),
        ({"limit": 42}, {"limit": "4.2e1"}),
        ({"limit": 42}, {"limit": " "}),
        ({"dry_run": True}, {"dry_run": "True"}),
        ({"dry_run": True}, {"dry_run": "1"}),
        ({"region": ["us"]}, {"region": "us"}),
    ],
)
def test_a_header_that_differs_from_its_argument_is_refused(arguments: Any, headers: dict[str, str]) -> None:
    """streamable-http, Server Behavior for Custom Headers: 400 and -32020."""
    assert error(call(arguments, **headers)) == (400, -32020)


def test_an_unknown_parameter_header_is_ignored() -> None:
    """streamable-http: only recognized headers are compared."""
    assert call({}, colour="red").status == 200


def test_headers_are_compared_before_the_tool_runs_and_for_its_own_call_alone() -> None:
    """A tool without mirrored arguments takes any Mcp-Param header."""
    request = draft(offered())
    request.headers["mcp-param-region"] = "us"
    assert request.send().status == 200


def test_the_test_client_sends_the_headers_as_a_conforming_client_does() -> None:
    reply = offered().client().call("execute_sql", {"query": "q", "region": "Zürich", "limit": 3, "dry_run": True})
    assert reply.text == "q in Zürich, 3, True"


@pytest.mark.parametrize("name", ["größe", "ärger"])
def test_a_name_outside_ascii_comes_in_base64(name: str) -> None:
    """CASES 31: go-sdk#1234, #1246. `größe` exists, `ärger` does not."""
    request = draft(served(), params={"name": name, "arguments": {}})
    request.headers["mcp-name"] = encode_header_value(name)
    reply = request.send()
    assert (reply.status == 200) == (name == "größe")
    request.headers["mcp-name"] = name
    assert error(request.send()) == (400, -32020)


@pytest.mark.parametrize("byte", [0x80, 0x9F, 0xE4, 0xFF])
@pytest.mark.parametrize("header", ["mcp-name", "mcp-method", "mcp-protocol-version"])
def test_a_raw_byte_outside_ascii_is_refused_and_never_crashes(header: str, byte: int) -> None:
    """CASES 33: open-webui#29907, python-sdk#2730."""
    request = draft(served())
    request.headers[header] = f"greet{chr(byte)}"
    assert error(request.send()) == (400, -32020)


@pytest.mark.parametrize("header", ["mcp-name", "mcp-method", "mcp-protocol-version"])
def test_a_header_sent_twice_is_refused(header: str) -> None:
    """CASES 35: a gateway joins duplicates with a comma."""
    request = draft(served())
    request.headers[header] = f"{request.headers[header]},{request.headers[header]}"
    assert error(request.send()) == (400, -32020)


def test_a_preflight_allows_the_parameter_headers_that_it_asks_for_and_nothing_else() -> None:
    """Fetch, CORS-preflight request: browsers ask for each header by name."""
    request = draft(JudgedServer([greet, execute_sql], settings={"MCP_ALLOWED_ORIGINS": "https://app.example"}))
    request.verb, request.body = "OPTIONS", b""
    request.headers |= {
        "origin": "https://app.example",
        "access-control-request-headers": "Mcp-Param-Region, x-evil, mcp-param-bad name, authorization",
    }
    allowed = request.send().http.headers["access-control-allow-headers"].split(", ")
    assert "mcp-param-region" in allowed
    assert "authorization" in allowed
    assert not [name for name in allowed if "evil" in name or " " in name]

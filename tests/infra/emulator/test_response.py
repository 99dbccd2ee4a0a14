"""From a function's output to the HTTP response."""

import json
from typing import Any

import pytest

from infra.local.emulator import response_parameters
from infra.local.emulator.errors import TemplateError
from infra.local.emulator.response import INTERNAL_SERVER_ERROR, HttpResponse, build_response

CHALLENGE = response_parameters.parse(
    {
        status: {"overwrite:header.www-authenticate": "$response.header.x-mcp-challenge"}
        for status in ("400", "401", "403")
    }
)


def respond(output: Any, mappings: response_parameters.Mappings | None = None) -> HttpResponse:
    return build_response(json.dumps(output).encode(), response_parameters=mappings or {})


@pytest.mark.parametrize(
    ("output", "body"),
    [
        ({"message": "hi"}, b'{"message": "hi"}'),
        ("Hello from Lambda!", b"Hello from Lambda!"),
        ([1, 2], b"[1, 2]"),
        (None, b"null"),
        ("🎈", "🎈".encode()),
    ],
)
def test_an_output_without_a_status_code_is_the_body_of_a_200(output: Any, body: bytes) -> None:
    """AWS: "API Gateway makes the following assumptions": application/json, 200, the output is the body."""
    assert respond(output) == HttpResponse(200, [("content-type", "application/json")], body)


def test_an_output_with_a_status_code_is_taken_at_its_word() -> None:
    """AWS: format 2.0 response."""
    output = {
        "statusCode": 201,
        "headers": {"Content-Type": "text/html", "X-Count": 3, "X-Flag": True, "Content-Length": "999"},
        "cookies": ["a=1; Path=/", "b=2"],
        "body": "<p>ё",
    }
    headers = [("content-type", "text/html"), ("x-count", "3"), ("x-flag", "true")]
    cookies = [("set-cookie", "a=1; Path=/"), ("set-cookie", "b=2")]
    assert respond(output) == HttpResponse(201, [*headers, *cookies], "<p>ё".encode())


def test_a_base64_body_is_decoded_whatever_its_type() -> None:
    """AWS: HTTP APIs need no binary media types."""
    response = respond({"statusCode": 200, "isBase64Encoded": True, "body": "//4=", "headers": {"content-type": "a/b"}})
    assert response.body == b"\xff\xfe"


@pytest.mark.parametrize(
    "output",
    [
        {"statusCode": "two hundred"},
        {"statusCode": 99},
        {"statusCode": 101},
        {"statusCode": 600},
        {"statusCode": None},
        {"statusCode": True},
        {"statusCode": 200, "body": {"not": "a string"}},
        {"statusCode": 200, "body": "not base64!", "isBase64Encoded": True},
        {"statusCode": 200, "headers": ["not", "a", "map"]},
        {"statusCode": 200, "headers": {"x-list": ["a"]}},
        {"statusCode": 200, "headers": {"x-null": None}},
        {"statusCode": 200, "headers": {"bad name": "a"}},
        {"statusCode": 200, "headers": {"x-split": "a\r\nset-cookie: b"}},
        {"statusCode": 200, "cookies": "a=1"},
        {"statusCode": 200, "cookies": ["a=1\r\nx: y"]},
    ],
)
def test_an_invalid_output_is_an_internal_server_error(output: Any) -> None:
    """AWS: "Internal Server Error" for a malformed proxy response; a header must not be split in two."""
    assert respond(output) == INTERNAL_SERVER_ERROR


def test_an_output_that_is_not_json_is_an_internal_server_error() -> None:
    """AWS: the output of a handler that returned bytes."""
    assert build_response(b"<html>", response_parameters={}) == INTERNAL_SERVER_ERROR


def test_www_authenticate_is_renamed() -> None:
    """AWS: api-gateway-known-issues; anthropics/claude-ai-mcp#748."""
    response = respond({"statusCode": 401, "headers": {"WWW-Authenticate": "Bearer"}})
    assert response.headers == [("x-amzn-remapped-www-authenticate", "Bearer")]


@pytest.mark.parametrize("status", [400, 401, 403])
def test_the_mapped_challenge_takes_the_place_of_the_renamed_one(status: int) -> None:
    """AWS: http-api-parameter-mapping; RFC 9728, section 5.1 needs WWW-Authenticate."""
    headers = {"WWW-Authenticate": "Bearer a", "x-mcp-challenge": "Bearer a"}
    response = respond({"statusCode": status, "headers": headers}, CHALLENGE)
    assert [value for name, value in response.headers if name == "www-authenticate"] == ["Bearer a"]


def test_a_mapping_is_for_its_own_status_only() -> None:
    """AWS: response parameters are configured for each status code."""
    response = respond({"statusCode": 200, "headers": {"x-mcp-challenge": "Bearer"}}, CHALLENGE)
    assert response.headers == [("x-mcp-challenge", "Bearer")]


def test_a_mapping_from_an_absent_header_changes_nothing() -> None:
    """Emulator-defined: AWS does not document this case."""
    assert respond({"statusCode": 401}, CHALLENGE).headers == []


def test_headers_can_be_appended_overwritten_and_removed() -> None:
    """AWS: http-api-parameter-mapping, "Transforming API responses"."""
    mappings = response_parameters.parse(
        {
            200: {
                "append:header.x-a": "constant",
                "overwrite:header.x-b": "is ${response.header.X-A}!",
                "remove:header.x-c": "''",
            }
        }
    )
    response = respond({"statusCode": 200, "headers": {"x-a": "1", "x-b": "2", "x-c": "3"}}, mappings)
    assert response.headers == [("x-a", "1"), ("x-a", "constant"), ("x-b", "is 1!")]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("overwrite:header.access-control-allow-origin", "*"),
        ("overwrite:header.x-amzn-remapped-www-authenticate", "x"),
        ("overwrite:statuscode", "418"),
        ("overwrite:header.x", "$context.requestId"),
        ("method.response.header.x", "y"),
    ],
)
def test_a_mapping_that_would_not_be_applied_is_refused(key: str, value: str) -> None:
    """AWS: reserved headers fail the deployment; the rest is not emulated and says so."""
    with pytest.raises(TemplateError, match=r"not emulated|reserves"):
        response_parameters.parse({"200": {key: value}})


def test_a_lone_surrogate_in_a_body_does_not_break_the_gateway() -> None:
    """JSON allows it (RFC 8259, section 8.2) and UTF-8 does not."""
    assert build_response(rb'{"statusCode": 200, "body": "\ud83d"}', response_parameters={}).body == b"?"

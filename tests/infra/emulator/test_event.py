"""From an HTTP request to a payload format 2.0 event."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.local.emulator.event import HttpRequest, build_event, decode_path, encode_event
from infra.local.emulator.routes import Match, Route

DEFAULT = Match(Route(key="$default", function="f"), {})


def event(
    *,
    method: str = "POST",
    path: bytes = b"/a",
    query: bytes = b"",
    headers: list[tuple[bytes, bytes]] | None = None,
    body: bytes = b"",
    match: Match = DEFAULT,
) -> dict[str, Any]:
    request = HttpRequest(
        method=method,
        raw_path=path,
        query=query,
        headers=headers or [],
        body=body,
        client="127.0.0.1",
        port=8080,
    )
    built = build_event(
        request,
        match,
        path=decode_path(path),
        stage="$default",
        now=1_796_000_000.25,
        request_id="r",
        trace_id="Root=1-0-0",
    )
    decoded: dict[str, Any] = json.loads(encode_event(built))
    return decoded


def test_an_event_has_the_fields_of_format_2() -> None:
    """AWS: http-api-develop-integrations-lambda, "Payload format structure", 2.0."""
    headers = [(b"host", b"abc.example.com:8080"), (b"user-agent", b"curl/8")]
    match = Match(Route(key="GET /items/{id}", function="f"), {"id": "7"})
    assert event(method="GET", path=b"/items/7", query=b"a=1", headers=headers, match=match) == {
        "version": "2.0",
        "routeKey": "GET /items/{id}",
        "rawPath": "/items/7",
        "rawQueryString": "a=1",
        "queryStringParameters": {"a": "1"},
        "pathParameters": {"id": "7"},
        "headers": {
            "host": "abc.example.com:8080",
            "user-agent": "curl/8",
            "x-amzn-trace-id": "Root=1-0-0",
            "x-forwarded-for": "127.0.0.1",
            "x-forwarded-port": "8080",
            "x-forwarded-proto": "http",
        },
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "local",
            "domainName": "abc.example.com",
            "domainPrefix": "abc",
            "http": {
                "method": "GET",
                "path": "/items/7",
                "protocol": "HTTP/1.1",
                "sourceIp": "127.0.0.1",
                "userAgent": "curl/8",
            },
            "requestId": "r",
            "routeKey": "GET /items/{id}",
            "stage": "$default",
            "time": "30/Nov/2026:00:53:20 +0000",
            "timeEpoch": 1_796_000_000_250,
        },
        "isBase64Encoded": False,
    }


def test_duplicate_headers_and_query_strings_are_joined_with_commas() -> None:
    """AWS: "Duplicate headers are combined with commas"; the same for query strings."""
    seen = event(query=b"a=1&b=&a=2", headers=[(b"x-a", b"1"), (b"x-b", b"2"), (b"x-a", b"3")])
    assert (seen["headers"]["x-a"], seen["headers"]["x-b"]) == ("1,3", "2")
    assert seen["queryStringParameters"] == {"a": "1,2", "b": ""}


def test_cookies_leave_the_headers_for_a_list_of_their_own() -> None:
    """AWS: format 2.0 "includes a new cookies field"."""
    seen = event(headers=[(b"cookie", b"a=1; b=2"), (b"cookie", b"c=3;")])
    assert seen["cookies"] == ["a=1", "b=2", "c=3"]
    assert "cookie" not in seen["headers"]


@pytest.mark.parametrize("content_type", ["text/plain", "application/json; charset=utf-8", "Application/XML"])
def test_a_text_body_is_passed_as_it_is(content_type: str) -> None:
    """Measured on AWS: ministackorg/ministack#766."""
    seen = event(headers=[(b"content-type", content_type.encode())], body="🎈 ё".encode())
    assert (seen["body"], seen["isBase64Encoded"]) == ("🎈 ё", False)


@pytest.mark.parametrize(
    "content_type", [None, "application/x-www-form-urlencoded", "application/problem+json", "multipart/form-data"]
)
def test_any_other_body_is_base64(content_type: str | None) -> None:
    """Measured on AWS: ministackorg/ministack#766, form posts and a missing content type included."""
    headers = [(b"content-type", content_type.encode())] if content_type else []
    seen = event(headers=headers, body=b"a=1")
    assert (seen["body"], seen["isBase64Encoded"]) == ("YT0x", True)


def test_a_text_body_that_is_not_utf_8_is_base64() -> None:
    """Emulator-defined: the event must be valid JSON."""
    seen = event(headers=[(b"content-type", b"text/plain")], body=b"\xff\xfe")
    assert (seen["body"], seen["isBase64Encoded"]) == ("//4=", True)


def test_an_empty_body_is_absent_and_not_base64() -> None:
    """AWS: a GET event has no body and isBase64Encoded false."""
    seen = event(method="GET")
    assert "body" not in seen
    assert seen["isBase64Encoded"] is False


def test_the_path_arrives_decoded_and_the_query_string_as_it_was_sent() -> None:
    """fastify/aws-lambda-fastify#169 (path); ministackorg/ministack#1035 (query string)."""
    seen = event(path=b"/a%2Fb%20%F0%9F%8E%88", query=b"q=x%20y%2Bz")
    assert seen["rawPath"] == seen["requestContext"]["http"]["path"] == "/a/b 🎈"
    assert seen["rawQueryString"] == "q=x%20y%2Bz"
    assert seen["queryStringParameters"] == {"q": "x y+z"}


def test_the_path_ends_at_a_decoded_question_mark() -> None:
    """middleapi/standard-server#93: an HTTP API cuts there, before it invokes the function."""
    seen = event(path=b"/a%3Fadmin=true", query=b"q=1")
    assert (seen["rawPath"], seen["rawQueryString"]) == ("/a", "q=1")


def test_a_client_cannot_choose_its_source_ip_or_trace_id() -> None:
    """AWS: x-forwarded-for is appended to; requestContext.http.sourceIp is the peer."""
    headers = [(b"x-forwarded-for", b"6.6.6.6"), (b"x-forwarded-proto", b"https"), (b"x-amzn-trace-id", b"Root=mine")]
    seen = event(headers=headers)
    assert seen["requestContext"]["http"]["sourceIp"] == "127.0.0.1"
    assert seen["headers"]["x-forwarded-for"] == "6.6.6.6, 127.0.0.1"
    assert seen["headers"]["x-forwarded-proto"] == "http"
    assert seen["headers"]["x-amzn-trace-id"] == "Root=1-0-0"


def test_hop_by_hop_headers_stay_at_the_gateway() -> None:
    """RFC 9110, section 7.6.1; a chunked request gets the length that it turned out to have."""
    headers = [(b"connection", b"keep-alive"), (b"transfer-encoding", b"chunked"), (b"te", b"trailers")]
    seen = event(headers=headers, body=b"12345")
    assert not {"connection", "transfer-encoding", "te"} & seen["headers"].keys()
    assert seen["headers"]["content-length"] == "5"


@given(
    path=st.binary(max_size=40),
    query=st.binary(max_size=40),
    value=st.binary(max_size=40),
    content_type=st.sampled_from([b"text/plain", b"application/json", b"image/png", b"\xff"]),
    body=st.binary(max_size=40),
)
def test_whatever_the_bytes_the_event_is_json(
    path: bytes, query: bytes, value: bytes, content_type: bytes, body: bytes
) -> None:
    """Lambda accepts only JSON, and only UTF-8."""
    headers = [(b"x-any", value), (b"cookie", value), (b"host", value), (b"content-type", content_type)]
    seen = event(path=b"/" + path, query=query, headers=headers, body=body)
    assert seen["headers"]["x-any"] == value.decode("latin-1")

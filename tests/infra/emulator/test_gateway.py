"""The HTTP API over real HTTP: mapping, limits, quirks, and the local-only control endpoints."""

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from infra.local.emulator import RunningEmulator
from tests.infra.emulator.client import act, returning, send

SIX_MEGABYTES = 6_291_556


def seen(gateway: RunningEmulator, method: str, target: str, **request: Any) -> dict[str, Any]:
    """The event that the function received."""
    reply = send(gateway.url, method, target, **request)
    assert reply.status == 200
    event: dict[str, Any] = reply.json["event"]
    return event


def test_a_request_becomes_an_event_and_an_output_becomes_a_response(gateway: RunningEmulator) -> None:
    """AWS: http-api-develop-integrations-lambda."""
    headers: list[tuple[str, str | bytes]] = [
        ("Content-Type", "text/plain"),
        ("X-Twice", "1"),
        ("X-Twice", "2"),
        ("Cookie", "a=1; b=2"),
        ("X-Bytes", b"\x80\xe9\xff"),
    ]
    event = seen(gateway, "PUT", "/files/a%20b/%F0%9F%8E%88?x=1&x=2", headers=headers, body="🎈".encode())
    assert event["routeKey"] == "ANY /files/{proxy+}"
    assert event["rawPath"] == "/files/a b/🎈"
    assert event["pathParameters"] == {"proxy": "a b/🎈"}
    assert event["queryStringParameters"] == {"x": "1,2"}
    assert event["headers"]["x-twice"] == "1,2"
    assert event["headers"]["x-bytes"] == "\x80\xe9\xff"
    assert event["headers"]["host"] == urlsplit(gateway.url).netloc
    assert event["cookies"] == ["a=1", "b=2"]
    assert (event["body"], event["isBase64Encoded"]) == ("🎈", False)
    assert event["requestContext"]["http"] == {
        "method": "PUT",
        "path": "/files/a b/🎈",
        "protocol": "HTTP/1.1",
        "sourceIp": "127.0.0.1",
        "userAgent": "",
    }


def test_a_chunked_form_post_arrives_in_base64_with_its_length(gateway: RunningEmulator) -> None:
    """Measured on AWS: ministackorg/ministack#766 (form posts)."""
    connection = http.client.HTTPConnection(urlsplit(gateway.url).netloc)
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    connection.request("POST", "/echo", iter([b"a=", b"1"]), headers, encode_chunked=True)
    event = json.loads(connection.getresponse().read())["event"]
    connection.close()
    assert (event["body"], event["isBase64Encoded"]) == ("YT0x", True)
    assert event["headers"]["content-length"] == "3"
    assert "transfer-encoding" not in event["headers"]


def test_cookies_become_one_set_cookie_header_each(gateway: RunningEmulator) -> None:
    """AWS: "each cookie becomes a set-cookie header"."""
    reply = returning(gateway.url, {"statusCode": 200, "cookies": ["a=1; Path=/", "b=2"], "body": "ok"})
    assert reply.all("set-cookie") == ["a=1; Path=/", "b=2"]
    assert reply.body == b"ok"


def test_the_challenge_is_renamed_and_mapped_back(gateway: RunningEmulator) -> None:
    """RFC 9728, section 5.1: a client looks for WWW-Authenticate, which API Gateway renames."""
    challenge = 'Bearer resource_metadata="https://a/"'
    headers = {"WWW-Authenticate": challenge, "x-mcp-challenge": challenge}
    reply = returning(gateway.url, {"statusCode": 401, "headers": headers})
    assert reply.header("www-authenticate") == challenge
    assert reply.header("x-amzn-remapped-www-authenticate") == challenge


@pytest.mark.parametrize("status", [204, 304])
def test_a_response_without_content_has_no_body(gateway: RunningEmulator, status: int) -> None:
    """RFC 9110, sections 15.3.5 and 15.4.5."""
    reply = returning(gateway.url, {"statusCode": status, "body": "dropped"})
    assert (reply.status, reply.body, reply.all("content-length")) == (status, b"", [])


def test_a_head_request_gets_headers_only(gateway: RunningEmulator) -> None:
    """RFC 9110, section 9.3.2."""
    reply = send(gateway.url, "HEAD", "/echo")
    assert (reply.status, reply.body) == (200, b"")
    assert int(reply.header("content-length")) > 0


def test_an_invalid_output_is_an_internal_server_error(gateway: RunningEmulator) -> None:
    """AWS: {"message":"Internal Server Error"}."""
    reply = returning(gateway.url, {"statusCode": "many"})
    assert (reply.status, reply.json) == (500, {"message": "Internal Server Error"})


def test_a_body_over_ten_megabytes_is_refused(gateway: RunningEmulator) -> None:
    """AWS: http-api-quotas, "Payload size: 10 MB"."""
    reply = send(gateway.url, "POST", "/echo", body=b"x" * (10 * 1024 * 1024 + 1))
    assert (reply.status, reply.json) == (413, {"message": "Request Too Long"})
    assert reply.all("x-emulator-environment") == []


def test_a_binary_body_under_the_limit_may_be_over_it_in_base64(gateway: RunningEmulator) -> None:
    """AWS Lambda: 6 MB for each invocation request; base64 adds a third."""
    body = b"x" * (5 * 1024 * 1024)
    assert send(gateway.url, "POST", "/echo", body=body).status == 413
    assert act(gateway.url, "number", number=1, padding="x" * len(body)).body == b"1"


def test_an_output_over_six_megabytes_is_an_internal_server_error(gateway: RunningEmulator) -> None:
    """AWS Lambda: 6 MB for each invocation response, Function.ResponseSizeTooLarge."""
    assert act(gateway.url, "fill", size=SIX_MEGABYTES).status == 500
    assert len(act(gateway.url, "fill", size=SIX_MEGABYTES - 100).body) == SIX_MEGABYTES - 100


def test_headers_over_ten_kilobytes_are_refused(gateway: RunningEmulator) -> None:
    """AWS: http-api-quotas, "Total combined size of request line and header values: 10,240 bytes"."""
    assert send(gateway.url, "GET", "/echo", headers=[("X-Long", "x" * 10_000)]).status == 200
    for size in (10_240, 100_000):
        reply = send(gateway.url, "GET", "/echo", headers=[("X-Long", "x" * size)])
        assert (reply.status, reply.json) == (431, {"message": "Request Header Fields Too Large"})


@pytest.mark.parametrize("path", ["/ping", "/sping"])
def test_the_health_check_paths_never_reach_a_function(gateway: RunningEmulator, path: str) -> None:
    """AWS: api-gateway-known-issues, "The /ping and /sping paths are reserved"."""
    reply = send(gateway.url, "GET", path)
    assert (reply.status, reply.all("x-emulator-environment")) == (200, [])


def test_a_path_without_a_route_is_not_found(gateway: RunningEmulator) -> None:
    """AWS: {"message":"Not Found"} from an API without $default."""
    reply = send(gateway.url, "GET", "/nowhere")
    assert (reply.status, reply.json) == (404, {"message": "Not Found"})


@pytest.mark.parametrize("target", ["*", "http://other.example/echo"])
def test_a_target_without_a_path_is_a_bad_request(gateway: RunningEmulator, target: str) -> None:
    """RFC 9112, section 3.2: asterisk-form and absolute-form."""
    assert send(gateway.url, "OPTIONS", target).status == 400


def test_an_integration_that_takes_too_long_is_unavailable_but_runs_to_its_end(gateway: RunningEmulator) -> None:
    """AWS: http-api-quotas, "Maximum integration timeout"; Lambda does not stop for a gateway that left."""
    before = {info.pid for info in gateway.environments()}
    reply = act(gateway.url, "sleep", target="/soon", seconds=0.5)
    assert (reply.status, reply.json) == (503, {"message": "Service Unavailable"})
    assert act(gateway.url, "number", number=7).body == b"7"
    assert {info.pid for info in gateway.environments()} == before


def test_a_client_that_leaves_does_not_disturb_the_next_one(gateway: RunningEmulator) -> None:
    """The invocation ends with nobody listening."""
    connection = http.client.HTTPConnection(urlsplit(gateway.url).netloc)
    body = json.dumps({"do": "sleep", "seconds": 0.3})
    connection.request("POST", "/act", body, {"Content-Type": "application/json"})
    connection.close()
    assert act(gateway.url, "number", number=8).body == b"8"


def test_each_response_says_who_served_it_and_how_long_it_took(gateway: RunningEmulator) -> None:
    """Emulator-defined."""
    reply = send(gateway.url, "GET", "/echo")
    assert reply.environment in [info.name for info in gateway.environments()]
    assert 0 < float(reply.header("x-emulator-duration-ms")) < 10_000
    assert reply.header("apigw-requestid") == reply.json["event"]["requestContext"]["requestId"]


def test_environments_are_listed_for_local_tools(gateway: RunningEmulator) -> None:
    """Emulator-defined: GET /_emulator/environments."""
    reply = send(gateway.url, "GET", "/_emulator/environments")
    assert {item["function"] for item in reply.json} == {"act", "echo"}
    assert all(item.keys() == {"name", "function", "pid", "invocations", "state"} for item in reply.json)


def test_a_restart_of_one_function_leaves_the_other_alone(gateway: RunningEmulator) -> None:
    """Emulator-defined: POST /_emulator/restart?function=."""
    before = {info.function: info.pid for info in gateway.environments()}
    assert send(gateway.url, "POST", "/_emulator/restart?function=echo").status == 200
    after = {info.function: info.pid for info in gateway.environments()}
    assert after["act"] == before["act"]
    assert after["echo"] != before["echo"]


def test_a_restart_of_an_unknown_function_names_the_known_ones(gateway: RunningEmulator) -> None:
    """Emulator-defined."""
    reply = send(gateway.url, "POST", "/_emulator/restart?function=nobody")
    assert (reply.status, reply.json["message"]) == (404, "There is no function nobody. Use one of: act, echo.")


@pytest.mark.parametrize(
    ("method", "target"),
    [("GET", "/_emulator/environments"), ("POST", "/_emulator/restart"), ("GET", "/%5Femulator/x")],
)
def test_a_web_page_cannot_use_the_control_endpoints(gateway: RunningEmulator, method: str, target: str) -> None:
    """Fetch standard: cross-origin requests carry Origin; DNS rebinding shows in Host."""
    before = {info.pid for info in gateway.environments()}
    assert send(gateway.url, method, target, headers=[("Origin", "https://evil.example")]).status == 403
    assert send(gateway.url, method, target, host="evil.example").status == 403
    assert {info.pid for info in gateway.environments()} == before

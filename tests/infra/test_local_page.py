"""The local page over HTTP: who may see it, what it tells of an exchange, and how a response gets lost."""

import asyncio
import http.client
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import closing
from typing import Any

import pytest

from infra.local.emulator.exchange import Exchange
from infra.local.emulator.response import HttpResponse
from infra.local.page.feed import Feed
from infra.local.page.wire import encode
from tests.conftest import RunningStack


def send(
    stack: RunningStack, method: str, target: str, headers: Mapping[str, str] | None = None
) -> tuple[int, dict[str, str], str]:
    host = stack.stack.emulator.url.removeprefix("http://")
    with closing(http.client.HTTPConnection(host, timeout=30)) as connection:
        connection.request(method, target, headers={"host": host, **(headers or {})})
        response = connection.getresponse()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read().decode()


def test_the_page_is_at_the_root_under_a_policy_that_names_every_source(stack: RunningStack) -> None:
    """CSP Level 3. The one other origin is the authorization server's."""
    status, headers, text = send(stack, "GET", "/")
    assert status == 200
    assert "<script" in text
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self'",
        "connect-src": f"'self' {stack.stack.identity.url}",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
    }
    assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff")
    assert send(stack, "HEAD", "/")[0] == 200
    assert send(stack, "POST", "/")[0] == 404, "the rest of the root is the web function's"


def test_it_has_one_address(stack: RunningStack) -> None:
    """Tokens are for one URL, and the server allows one origin: both say 127.0.0.1."""
    port = stack.stack.emulator.port
    status, headers, _ = send(stack, "GET", "/", {"host": f"localhost:{port}"})
    assert (status, headers["location"]) == (307, stack.stack.emulator.url)


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "127.0.0.1.evil.example:80"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
    ids=str,
)
@pytest.mark.parametrize("target", ["keys", "exchanges"])
def test_another_site_gets_nothing(stack: RunningStack, target: str, headers: dict[str, str]) -> None:
    """Fetch: cross-origin requests carry Origin or Sec-Fetch-Site; DNS rebinding shows in Host."""
    status, _, text = send(stack, "GET", f"/_emulator/page/{target}", headers)
    assert status == 403
    assert "mcp:" not in text


def test_the_page_may_use_the_controls_and_another_site_may_not(stack: RunningStack) -> None:
    own, evil = {"origin": stack.stack.emulator.url}, {"origin": "https://evil.example"}
    assert send(stack, "POST", "/_emulator/drop-response", evil)[0] == 403
    assert send(stack, "POST", "/mcp")[0] == 401
    assert send(stack, "POST", "/_emulator/drop-response", own)[0] == 200
    with pytest.raises(http.client.IncompleteRead):
        send(stack, "POST", "/mcp")
    assert send(stack, "POST", "/mcp")[0] == 401, "one response was dropped, and no more"


def exchange(**changes: Any) -> Exchange:
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    values: dict[str, Any] = {
        "started": 1_790_000_000.0,
        "milliseconds": 12.34,
        "method": "POST",
        "path": "/mcp",
        "request_headers": [("authorization", "Bearer eyJhbGciOiJFUzI1NiJ9.payload.signature"), ("host", "x")],
        "request_body": json.dumps(request).encode(),
        "response": HttpResponse(200, [("content-type", "application/json")], b'{"result": {}}'),
        "environment": "mcp-1",
        "dropped": False,
    }
    return Exchange(**{**values, **changes})


def test_a_message_is_shown_in_full_and_its_token_cut() -> None:
    seen = json.loads(encode(exchange(), 7))
    assert (seen["number"], seen["environment"], seen["milliseconds"], seen["status"]) == (7, "mcp-1", 12.3, 200)
    assert seen["request"]["body"]["method"] == "tools/list"
    assert seen["request"]["headers"] == [["authorization", "Bearer eyJhb... (cut)"], ["host", "x"]]
    assert seen["response"]["body"] == {"result": {}}


def test_what_users_and_browsers_send_to_pages_is_not_shown() -> None:
    """A typed secret, a session cookie, an authorization code, the handle of a link."""
    handle = "Zk3x9_-" + "a" * 36
    response = HttpResponse(303, [("location", "https://x/?code=c0de"), ("set-cookie", "sid=s3ssion; Secure")], b"page")
    headers = [("cookie", "sid=s3ssion"), ("referer", "https://x/?code=c0de")]
    posted = exchange(
        path=f"/connect/{handle}/secret", request_headers=headers, request_body=b"value=sk_live_1", response=response
    )
    seen = encode(posted, 1)
    assert "/connect/Zk3x9_.../secret" in seen
    for secret in ("s3ssion", "sk_live_1", "c0de", handle, "page"):
        assert secret not in seen


def test_an_event_stream_is_shown_as_its_messages() -> None:
    """Streamable HTTP: progress and the result in one body."""
    body = b'event: message\ndata: {"method": "notifications/progress"}\n\ndata: {"result": {}}\n\n'
    seen = json.loads(encode(exchange(response=HttpResponse(200, [], body)), 1))
    assert seen["response"]["body"] == [{"method": "notifications/progress"}, {"result": {}}]


@pytest.mark.parametrize(
    "body", [b"no json", b"[" * 100_000, b'{"a":' * 100_000, b"[NaN]", b"\xff\xfe", b'"\\ud800"', b""], ids=range(7)
)
def test_whatever_a_client_sends_is_shown_and_breaks_nothing(body: bytes) -> None:
    """A page that watches must not be what fails. The result is JSON for a browser: RFC 8259 has no NaN."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    seen = json.loads(encode(exchange(request_body=body), 1), parse_constant=refuse)
    assert "body" in seen["request"]


def test_a_large_body_is_cut() -> None:
    """Two hundred exchanges are kept, and a body may have ten megabytes."""
    seen = json.loads(encode(exchange(request_body=b'["' + b"x" * 10_000_000 + b'"]'), 1))
    assert len(seen["request"]["body"]) < 100_100
    assert seen["request"]["body"].endswith("... (10000004 bytes)")


async def read(stream: AsyncIterator[str], count: int) -> list[str]:
    return [await anext(stream) for _ in range(count)]


def test_a_browser_that_comes_back_gets_what_it_has_missed() -> None:
    """HTML, Server-sent events, Last-Event-ID."""

    async def scenario() -> None:
        feed = Feed(kept=3)
        for number in range(5):
            feed.publish(f'{{"item": {number}}}')
        first = feed.follow(0)
        events = await read(first, 4)
        assert events[0] == "retry: 1000\n\n"
        assert [json.loads(event.split("data: ")[1])["item"] for event in events[1:]] == [2, 3, 4], "the last three"
        again = feed.follow(4)
        assert (await read(again, 2))[1].startswith("id: 5\n")
        other_stack = feed.follow(99)
        assert (await read(other_stack, 2))[1].startswith("id: 3\n")

        waiting = asyncio.create_task(read(first, 1))
        await asyncio.sleep(0)
        feed.publish('{"item": 5}')
        assert (await waiting)[0].startswith("id: 6\n")
        feed.close()
        assert [event async for event in first] == []

    asyncio.run(asyncio.wait_for(scenario(), timeout=10))

"""Methods, origins, hosts, paths, media types and sizes that no honest client sends."""

import json
from typing import Final

import pytest

from app.strict_json import MAX_BODY
from tests.hostile.draft import Draft, request
from tests.hostile.laboratory import Laboratory
from tests.hostile.refusals import Refusal, assert_refused, assert_tells_nothing, erasure
from tests.hostile.rows import each, shows
from tests.hostile.wire import exchange


def _chunked(draft: Draft, body: bytes, size: int = 65_536) -> Draft:
    chunks = [body[start : start + size] for start in range(0, len(body), size)]
    framed = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in (*chunks, b""))
    return draft.header("Transfer-Encoding", "chunked").raw(framed)


def _too_large(draft: Draft) -> bytes:
    return json.dumps({**draft.message, "padding": "x" * MAX_BODY}).encode()


TRANSPORT: Final = (
    Refusal(1, "GET", lambda draft: draft.but(method="GET"), 405, -32600),
    Refusal(1, "PUT", lambda draft: draft.but(method="PUT"), 405, -32600),
    Refusal(2, "DELETE of a session", lambda draft: draft.but(method="DELETE").header("Mcp-Session-Id", "1"), 405),
    Refusal(4, "another site", lambda draft: draft.header("Origin", "https://evil.example"), 403, -32600),
    Refusal(4, "two sites", lambda draft: draft.header("Origin", "http://127.0.0.1").also("Origin", "http://a"), 403),
    Refusal(5, "no site", lambda draft: draft.header("Origin", "null"), 403, -32600),
    Refusal(7, "chunks over the limit", lambda draft: _chunked(draft, _too_large(draft)), 413, -32600),
    Refusal(7, "a length over the limit", lambda draft: draft.raw(_too_large(draft)), 413, -32600),
    Refusal(8, "text/plain", lambda draft: draft.header("Content-Type", "text/plain"), 415, -32600),
    Refusal(8, "no media type", lambda draft: draft.header("Content-Type", None), 415, -32600),
    Refusal(8, "a form", lambda draft: draft.header("Content-Type", "application/x-www-form-urlencoded"), 415, -32600),
    Refusal(8, "Latin-1", lambda draft: draft.header("Content-Type", "application/json; charset=latin-1"), 415, -32600),
    Refusal(8, "gzip", lambda draft: draft.header("Content-Encoding", "gzip"), 415, -32600),
    Refusal(8, "two media types", lambda draft: draft.also("Content-Type", "text/plain"), 415, -32600),
    Refusal(10, "text/html", lambda draft: draft.header("Accept", "text/html"), 406, -32600),
    Refusal(10, "JSON with weight 0", lambda draft: draft.header("Accept", "application/json;q=0"), 406, -32600),
)


@each(TRANSPORT)
def test_what_is_wrong_with_the_transport_is_refused_and_uses_nothing_up(
    lab: Laboratory, alice: str, case: Refusal
) -> None:
    """Streamable HTTP; RFC 9110. The request would have erased something."""
    flow = erasure(lab, alice)
    answer = assert_refused(lab, case, case.change(flow.finish))
    if answer.status == 405:
        assert answer.header("allow") == "POST"
    flow.finishes()


@shows(7)
def test_a_chunked_body_within_the_limit_is_read(lab: Laboratory, alice: str) -> None:
    """RFC 9112 section 7.1: it is the size that is refused, and not the framing."""
    flow = erasure(lab, alice)
    answer = exchange(lab.port, _chunked(flow.finish, flow.finish.content, size=10).wire())
    assert "is erased" in answer.result["content"][0]["text"]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "a:b:c", "[::1]:80", "evil.example/x", ""])
@pytest.mark.parametrize("path", ["/mcp", "/connections", "/.well-known/oauth-protected-resource/mcp", "/nothing"])
@shows(11, 13)
def test_no_answer_is_built_from_the_host_header(lab: Laboratory, path: str, host: str) -> None:
    """Rows 11 and 13. Links, redirects and challenges come from the configuration."""
    draft = request(None, "tools/list", {}).header("Host", host).header("X-Forwarded-Host", "evil.example")
    draft = draft.but(target=path, method="POST" if path == "/mcp" else "GET").raw(b"")
    answer = exchange(lab.port, draft.wire())
    # 400 is the adapter's of the web function, for a Host that it cannot split.
    assert answer.status in ((401,) if path == "/mcp" else (200, 303, 400, 404)), answer.text
    assert "evil.example" not in answer.text
    assert_tells_nothing(lab, answer)


@pytest.mark.parametrize(
    "path",
    [
        "/mcp/../mcp",
        "/mcp/%2e%2e/mcp",
        "/mcp%00",
        "/mcp%0a",
        "//mcp",
        "/mcp/x",
        "/MCP",
        "/connect/%2e%2e%2fadmin",
        "/connect/%252e",
        "/connect/../mcp",
        "/static/../handlers/mcp.py",
        "/.well-known/oauth-protected-resource/other",
        "/_emulator",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
@shows(14)
def test_a_path_that_is_not_ours_is_not_found(lab: Laboratory, alice: str, method: str, path: str) -> None:
    """Row 14: nothing is normalised, so that no path means two things."""
    flow = erasure(lab, alice)
    answer = exchange(lab.port, flow.finish.but(method=method, target=path).wire())
    assert answer.status in (404, 405), answer.text
    assert_tells_nothing(lab, answer, flow.state)
    flow.finishes()


@pytest.mark.parametrize("method", ["PROPFIND", "TRACE", "CONNECT", "OPTIONS", "x", "GETGET", "get"])
@pytest.mark.parametrize("path", ["/mcp", "/connections", "/connect/done", "/auth/callback", "/nothing"])
def test_a_method_that_nobody_listed_is_refused_like_any_other(lab: Laboratory, method: str, path: str) -> None:
    """RFC 9110 section 15.5.6: 405 with Allow, and with every header that the other answers have."""
    answer = exchange(lab.port, request(None, "tools/list", {}).but(method=method, target=path).wire())
    assert answer.status == (404 if path == "/nothing" else 405), answer.text
    assert answer.header("cache-control") == "no-store"
    if answer.status == 405:
        assert answer.header("allow")
        assert answer.header("x-content-type-options") == "nosniff"
    assert_tells_nothing(lab, answer)


def test_an_absolute_target_is_refused_by_the_gateway(lab: Laboratory, alice: str) -> None:
    """RFC 9112 section 3.2.2: only a proxy is asked for another server's resources."""
    flow = erasure(lab, alice)
    for target in ("http://evil.example/mcp", "*"):
        answer = exchange(lab.port, flow.finish.but(target=target).wire())
        assert answer.status == 400, answer.text
        assert "evil.example" not in answer.text
    flow.finishes()


def test_two_lengths_are_one_request_or_none(lab: Laboratory, alice: str) -> None:
    """RFC 9112 section 6.3: what a smuggled request hides in."""
    flow = erasure(lab, alice)
    body = flow.finish.content
    for draft in (
        flow.finish.header("Content-Length", str(len(body))).also("Content-Length", "5"),
        flow.finish.header("Content-Length", f"+{len(body)}"),
    ):
        answer = exchange(lab.port, draft.wire())
        assert 400 <= answer.status < 500, answer.text
    flow.finishes()


@shows(16)
def test_a_notification_is_accepted_and_changes_nothing(lab: Laboratory, alice: str) -> None:
    """Streamable HTTP, Sending Messages: 202 without a body. Whoever cancels, nothing of anybody's is cancelled."""
    flow = erasure(lab, alice)
    bob = lab.mint("bob")
    cancelled = request(bob, "notifications/cancelled", {"requestId": 1}).says(id=...)
    for draft in (cancelled, cancelled.says(method="notifications/made-up"), flow.finish.says(id=...)):
        answer = exchange(lab.port, draft.wire())
        assert (answer.status, answer.body) == (202, b""), answer.text
        draft.judge(answer)
    flow.finishes()

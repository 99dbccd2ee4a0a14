"""The endpoint over HTTP: the order of checks, the headers, media types, origins, paths and methods."""

import base64
import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from app.http import HttpRequest
from app.protocol.request_headers import decode_header_value
from app.strict_json import MAX_BODY
from app.testing import Reply, accept
from tests.protocol.endpoint import Draft, JudgedServer, draft, served

APP = "https://app.example.com"


def _sentinel(text: str) -> str:
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def _code(answer: Reply) -> tuple[int, int]:
    return answer.status, answer.error["code"]


@dataclass(frozen=True)
class Check:
    """One check of the ladder: how a request fails it, and the answer that this check alone gives."""

    name: str
    spoil: Callable[[Draft], object]
    status: int
    code: int | str
    says: str = ""

    def answers(self, reply: Reply) -> bool:
        error = reply.message["error"]
        if isinstance(error, str):
            return (reply.status, error) == (self.status, self.code)
        return (reply.status, error["code"]) == (self.status, self.code) and self.says in error["message"]


def _header(name: str, value: str | None) -> Callable[[Draft], object]:
    return lambda request: request.headers.update({name: value})


def _params(**members: Any) -> Callable[[Draft], object]:
    return lambda request: request.message["params"].update(members)


def _unknown_tool(request: Draft) -> None:
    request.message["params"]["name"] = request.headers["mcp-name"] = "nobody"


def _unknown_method(request: Draft) -> None:
    request.message["method"] = request.headers["mcp-method"] = "unknown/method"


def _other_version(request: Draft) -> None:
    meta = request.message["params"]["_meta"]
    meta["io.modelcontextprotocol/protocolVersion"] = request.headers["mcp-protocol-version"] = "1900-01-01"


def _no_capabilities(request: Draft) -> None:
    request.message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = {}


def _cut(request: Draft) -> None:
    request.body = json.dumps(request.message).encode()[:-1]


def _pad(request: Draft) -> None:
    request.body = (request.body or json.dumps(request.message).encode()) + b" " * MAX_BODY


def _narrow(request: Draft) -> None:
    request.headers["authorization"] = f"Bearer {request.server.issuer.mint('alice', scope='reports:read')}"


def _no_meta(request: Draft) -> None:
    del request.message["params"]["_meta"]


LADDER = (
    Check("path", lambda request: setattr(request, "path", "/other"), 404, "not_found"),
    Check("origin", _header("origin", "https://evil.example"), 403, -32600, "Origin"),
    Check("method", lambda request: setattr(request, "verb", "PUT"), 405, -32600, "POST"),
    Check("size", _pad, 413, -32600, "larger"),
    Check("access token", _header("authorization", "Bearer x.y.z"), 401, "invalid_token"),
    Check("content type", _header("content-type", "text/plain"), 415, -32600, "Content-Type"),
    Check("accept", _header("accept", "text/html"), 406, -32600, "Accept"),
    Check("JSON", _cut, 400, -32700),
    Check("envelope", lambda request: request.message.update(jsonrpc="1.0"), 400, -32600, "jsonrpc"),
    Check("_meta", _no_meta, 400, -32602, "_meta"),
    Check("headers", _header("mcp-method", "tools/list"), 400, -32020, "Mcp-Method"),
    Check("version", _other_version, 400, -32022),
    Check("rpc method", _unknown_method, 404, -32601),
    Check("tool", _unknown_tool, 400, -32602, "Unknown tool"),
    Check("arguments", _params(arguments=[]), 400, -32602, "arguments"),
    Check("scope", _narrow, 403, "insufficient_scope"),
    Check("requestState", _params(requestState="rs1.x"), 400, -32602, "Invalid or expired requestState"),
    Check("inputResponses", _params(inputResponses=[]), 400, -32602, "inputResponses"),
    Check("capability", _no_capabilities, 400, -32021),
)


def _spoilt(*checks: Check) -> Draft:
    request = draft(served(), params={"name": "delete", "arguments": {"target": "Q3"}})
    # The later check first: some faults of earlier ones are made of the finished message.
    for check in sorted(checks, key=LADDER.index, reverse=True):
        check.spoil(request)
    return request


def test_a_request_that_passes_every_check_is_served() -> None:
    assert _spoilt().send().result["resultType"] == "input_required"


@pytest.mark.parametrize("check", LADDER, ids=lambda check: check.name)
def test_each_check_has_its_own_answer(check: Check) -> None:
    """The status table of DESIGN section 4."""
    reply = _spoilt(check).send()
    assert check.answers(reply)
    assert [other.name for other in LADDER if other.answers(reply)] == [check.name]


@pytest.mark.parametrize(
    ("earlier", "later"), list(itertools.combinations(LADDER, 2)), ids=lambda check: check.name.replace(" ", "-")
)
def test_a_request_with_two_faults_gets_the_answer_of_the_earlier_check(earlier: Check, later: Check) -> None:
    """DESIGN section 4: the order is part of the contract."""
    assert earlier.answers(_spoilt(earlier, later).send())


def test_bytes_of_an_unauthenticated_caller_never_reach_the_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """SECURITY section 0."""
    request = draft(served(), "tools/list")
    assert request.send().status == 200  # the keys are parsed JSON as well, and are fetched now

    def parse(body: bytes) -> Any:
        raise AssertionError("parsed")

    monkeypatch.setattr("app.protocol.streamable_http.strict_json.parse", parse)
    request.headers["authorization"] = None
    assert request.send().status == 401


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mcp-protocol-version", None),
        ("mcp-protocol-version", ""),
        ("mcp-protocol-version", "2025-11-25"),
        ("mcp-protocol-version", "2026-07-28,2026-07-28"),
        ("mcp-protocol-version", "2026-07-28, 2026-07-28"),
        ("mcp-protocol-version", _sentinel("2026-07-28")),
        ("mcp-protocol-version", "v2026-07-28"),
        ("mcp-method", None),
        ("mcp-method", ""),
        ("mcp-method", "TOOLS/CALL"),
        ("mcp-method", "Tools/call"),
        ("mcp-method", "tools/list"),
        ("mcp-method", "tools/call,tools/call"),
        ("mcp-method", "tools/call,tools/list"),
        ("mcp-method", _sentinel("tools/call")),
        ("mcp-name", None),
        ("mcp-name", ""),
        ("mcp-name", "GREET"),
        ("mcp-name", "delete"),
        ("mcp-name", "greet,greet"),
        ("mcp-name", '"greet"'),
        ("mcp-name", "gr%65et"),
        ("mcp-name", "=?base64?Z3JlZXQ?="),
        ("mcp-name", "=?base64?Z3JlZXR=?="),
        ("mcp-name", "=?base64?Z3Jl ZXQ=?="),
        ("mcp-name", "=?base64?Z3JlZXQ=\t?="),
        ("mcp-name", "=?base64?Z3Jl!!!ZXQ=?="),
        ("mcp-name", "=?base64?Z3JlZXQ==?="),
        ("mcp-name", "=?base64?Z3_l?="),
        ("mcp-name", "=?base64?/w==?="),
        ("mcp-name", "=?base64?7aCA?="),
        ("mcp-name", "=?base64??="),
        ("mcp-name", "=?base64?Z3JlZXQ=?=,=?base64?Z3JlZXQ=?="),
        ("mcp-name", "=?BASE64?Z3JlZXQ=?="),
        ("mcp-name", "=?Base64?Z3JlZXQ=?="),
        ("mcp-name", "=?base64?Z3JlZXQ="),
        ("mcp-name", "base64?Z3JlZXQ=?="),
        ("mcp-name", _sentinel(" greet")),
        ("mcp-name", _sentinel("greet\n")),
    ],
)
def test_a_header_that_does_not_say_what_the_body_says_is_a_mismatch(name: str, value: str | None) -> None:
    """streamable-http, Server Validation and Value Encoding; a gateway joins duplicates with a comma."""
    request = draft(served())
    request.headers[name] = value
    answer = request.send()
    assert _code(answer) == (400, -32020)
    assert name in answer.error["message"].lower()


@pytest.mark.parametrize("name", ["mcp-protocol-version", "mcp-method", "mcp-name"])
def test_bytes_that_no_header_may_have_are_a_mismatch_and_never_a_crash(name: str) -> None:
    """streamable-http, Value Encoding: visible ASCII, space and tab. python-sdk#2730: a crash."""
    request = draft(served())
    good = request.headers[name]
    for byte in (*range(0x09), *range(0x0A, 0x20), *range(0x7F, 0x100)):
        request.headers[name] = f"{good}{chr(byte)}x"
        assert _code(request.send()) == (400, -32020), f"byte {byte:#04x}"


@pytest.mark.parametrize("padding", ["{}  ", "  {}", " \t{}\t ", "{}\t"])
@pytest.mark.parametrize("name", ["mcp-protocol-version", "mcp-method", "mcp-name"])
def test_white_space_around_a_header_value_is_not_part_of_it(name: str, padding: str) -> None:
    """RFC 9110 section 5.5. CONFORMANCE 3.3: Mcp-Name with two spaces on either side."""
    request = draft(served())
    request.headers[name] = padding.format(request.headers[name])
    assert request.send().status == 200


def test_a_name_may_be_encoded_although_it_need_not_be() -> None:
    """streamable-http, Value Encoding: servers MUST decode before comparing."""
    request = draft(served())
    request.headers["mcp-name"] = "=?base64?Z3JlZXQ=?="
    assert request.send().text == "Hello, world!"


def test_a_name_outside_ascii_comes_encoded_and_only_so() -> None:
    """streamable-http, Value Encoding; go-sdk#1234: not decoded; OniMods#24: raw bytes accepted."""
    request = draft(served(), params={"name": "größe"})
    request.headers["mcp-name"] = _sentinel("größe")
    assert request.send().text == "42 cm"
    request.headers["mcp-name"] = "größe"
    assert _code(request.send()) == (400, -32020)
    request.headers["mcp-name"] = "größe".encode().decode("latin-1")
    assert _code(request.send()) == (400, -32020)
    request.headers["mcp-name"] = _sentinel("gro\u0308ße")
    assert _code(request.send()) == (400, -32020)


@pytest.mark.parametrize(
    ("encoded", "value"),
    [
        ("us-west1", "us-west1"),
        ("=?base64?SGVsbG8sIOS4lueVjA==?=", "Hello, 世界"),
        ("=?base64?IHBhZGRlZCA=?=", " padded "),
        ("=?base64?bGluZTEKbGluZTI=?=", "line1\nline2"),
        ("=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=", "=?base64?literal?="),
        ("=?base64??=", ""),
        ("=?base64?=", "=?base64?="),
        ("=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
        ("SGVsbG8=?=", "SGVsbG8=?="),
    ],
)
def test_the_encoding_examples_of_the_specification_decode(encoded: str, value: str) -> None:
    """streamable-http, Value Encoding, the table of examples; what is no sentinel is literal."""
    assert decode_header_value(encoded, "Mcp-Name") == value


def test_headers_that_mirror_nothing_are_ignored() -> None:
    """streamable-http, Earlier Revisions: ignore Mcp-Session-Id and Last-Event-ID, and mint neither."""
    request = draft(served(), "tools/list")
    request.headers |= {"mcp-session-id": "1868a90c", "last-event-id": "5", "mcp-name": "x", "mcp-param-x": "y"}
    answer = request.send()
    assert answer.status == 200
    assert not {"mcp-session-id", "last-event-id"}.intersection(answer.http.headers)


@pytest.mark.parametrize("version", ["1900-01-01", "2025-11-25", "2026-07-29", "v999.0.0", "", "2026-07-28 x"])
def test_a_version_that_header_and_body_agree_on_and_we_lack_is_unsupported(version: str) -> None:
    """basic/versioning. CONFORMANCE 3.1, checks 12 and 13."""
    request = draft(served(), "server/discover")
    request.message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = version
    request.headers["mcp-protocol-version"] = version
    answer = request.send()
    assert _code(answer) == (400, -32022)
    assert answer.error["data"] == {"supported": ["2026-07-28"], "requested": version}
    supported = draft(served(), "server/discover").send().result["supportedVersions"]
    assert answer.error["data"]["supported"] == supported


def test_a_version_in_the_body_alone_is_a_mismatch_before_it_is_unsupported() -> None:
    """streamable-http, Protocol Version Header. CONFORMANCE 3.1, check 14."""
    request = draft(served(), "server/discover")
    request.message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "v999.0.0"
    assert _code(request.send()) == (400, -32020)


ACCEPT: list[tuple[str | None, str | None]] = [
    # Accept, what the answer is then: JSON where the client takes it, else one finished event, else 406.
    (None, "application/json"),
    ("application/json, text/event-stream", "application/json"),
    ("text/event-stream, application/json", "application/json"),
    ("application/json,text/event-stream", "application/json"),
    ("application/json", "application/json"),
    ("*/*", "application/json"),
    ("application/*", "application/json"),
    ("APPLICATION/JSON", "application/json"),
    ("application/json; charset=utf-8", "application/json"),
    ("application/json;q=0.1, text/event-stream;q=1", "application/json"),
    ("text/html, */*;q=0.1", "application/json"),
    ("text/event-stream", "text/event-stream"),
    ("text/*", "text/event-stream"),
    ("text/event-stream, application/json;q=0", "text/event-stream"),
    ("text/event-stream, application/json; q=0.000", "text/event-stream"),
    ("application/json;q=0, */*", "text/event-stream"),
    ("*/*, application/*;q=0", "text/event-stream"),
    ("text/html", None),
    ("", None),
    ("application/xml, text/html", None),
    ("application/jsonp", None),
    ("*/*;q=0", None),
    ("application/json;q=0, text/event-stream;q=0.00", None),
]


@pytest.mark.parametrize(("header", "content_type"), ACCEPT)
def test_the_accept_header_chooses_between_json_and_one_finished_event(
    header: str | None, content_type: str | None
) -> None:
    """streamable-http, Sending Messages 2; RFC 9110 section 12.5.1; mcp-remote#242: 406 where `*/*` would do."""
    request = draft(served())
    request.headers["accept"] = header
    answer = request.send()
    if content_type is None:
        assert _code(answer) == (406, -32600)
    else:
        assert (answer.status, answer.http.headers["content-type"]) == (200, content_type)


@pytest.mark.parametrize("verdict", ["result", "error"])
def test_an_event_stream_is_one_event_with_the_whole_answer(verdict: str) -> None:
    """streamable-http, Sending Messages 6 and Receiving Messages: X-Accel-Buffering: no."""
    request = draft(served(), params={"name": "greet" if verdict == "result" else "nobody"})
    request.headers["accept"] = "text/event-stream"
    answer = request.send()
    event, data, *rest = answer.http.body.decode().split("\n")
    assert (event, rest) == ("event: message", ["", ""])
    assert verdict in json.loads(data.removeprefix("data: "))
    assert answer.http.headers["x-accel-buffering"] == "no"


@pytest.mark.parametrize(
    ("header", "taken"),
    [
        ("application/json", True),
        ("application/json; charset=utf-8", True),
        ('application/json;charset="UTF-8"', True),
        ("Application/JSON ; Charset=UTF8", True),
        ("application/json; charset=utf-8; version=1", True),
        ("application/json;", True),
        (None, False),
        ("", False),
        ("text/plain", False),
        ("application/json5", False),
        ("application/x-www-form-urlencoded", False),
        ("multipart/form-data; boundary=application/json", False),
        ("application/json,application/json", False),
        ("application/json; charset=utf-16", False),
        ("application/json; version=1; charset=iso-8859-1", False),
        ("text/plain; application/json", False),
    ],
)
def test_the_content_type_is_json_in_utf_8_or_the_answer_is_415(header: str | None, taken: bool) -> None:
    """RFC 8259 section 8.1; a browser sends text/plain and forms across origins without a preflight."""
    request = draft(served())
    request.headers["content-type"] = header
    answer = request.send()
    assert answer.status == (200 if taken else 415)


@pytest.mark.parametrize(
    ("coding", "taken"), [("identity", True), ("Identity ", True), ("gzip", False), ("identity, br", False)]
)
def test_an_encoded_body_is_415(coding: str, taken: bool) -> None:
    """RFC 9110 section 15.5.16: a small body could be a large one."""
    request = draft(served())
    request.headers["content-encoding"] = coding
    assert request.send().status == (200 if taken else 415)


@pytest.mark.parametrize("verb", ["GET", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS", "TRACE", "post", ""])
def test_every_method_but_post_is_405_with_allow(verb: str) -> None:
    """streamable-http, Earlier Revisions; RFC 9110 section 15.5.6. A GET may have a body: it is not read."""
    request = draft(served())
    request.verb = verb
    request.headers |= {"mcp-session-id": "x", "authorization": None}
    answer = request.send()
    assert (answer.status, answer.http.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("resource", "path", "served_there"),
    [
        ("https://mcp.example.com/mcp", "/mcp", True),
        ("https://mcp.example.com/mcp", "/mcp/", True),
        ("https://mcp.example.com/v1/mcp", "/v1/mcp", True),
        ("https://mcp.example.com/v1/mcp", "/v1/mcp/", True),
        ("https://mcp.example.com/v1/mcp", "/mcp", True),
        ("https://mcp.example.com/mcp", "/", False),
        ("https://mcp.example.com/mcp", "", False),
        ("https://mcp.example.com/mcp", "/mcp//", False),
        ("https://mcp.example.com/mcp", "//mcp", False),
        ("https://mcp.example.com/mcp", "/MCP", False),
        ("https://mcp.example.com/mcp", "/mcp/../mcp", False),
        ("https://mcp.example.com/mcp", "/mcp/x", False),
        ("https://mcp.example.com/mcp", "/mcp%2f", False),
        ("https://mcp.example.com/mcp", "/v1/mcp", False),
    ],
)
def test_both_spellings_of_the_path_are_served_without_a_redirect(resource: str, path: str, served_there: bool) -> None:
    """python-sdk#1168: after a 307 clients drop the body or the token."""
    server = served(resource_url=resource)
    request = draft(server)
    request.path = path
    request.headers["authorization"] = f"Bearer {server.issuer.mint('alice', aud=resource)}"
    answer = request.send()
    assert answer.status == (200 if served_there else 404)
    assert "location" not in answer.http.headers


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "",
        "https://mcp.example.com",
        "http://app.example.com",
        f"{APP}.evil.example",
        f"{APP}:8443",
        f"{APP}/",
        f"{APP},{APP}",
        f"{APP}, https://evil.example",
        APP.upper(),
        "https://\u0430pp.example.com",
    ],
)
@pytest.mark.parametrize("verb", ["POST", "GET", "OPTIONS", "DELETE"])
def test_an_origin_that_is_not_allowed_is_403_whatever_the_method(origin: str, verb: str) -> None:
    """streamable-http, Security 1: MUST validate Origin on all incoming connections."""
    request = draft(served(allowed_origins=APP))
    request.verb = verb
    request.headers["origin"] = origin
    answer = request.send()
    assert _code(answer) == (403, -32600)
    assert not [name for name in answer.http.headers if name.startswith("access-control-")]


def test_no_origin_is_allowed_unless_configured() -> None:
    request = draft(served())
    request.headers["origin"] = APP
    assert request.send().status == 403


def test_a_client_that_is_no_browser_sends_no_origin_and_gets_no_cors_headers() -> None:
    answer = draft(served(allowed_origins=APP)).send()
    assert answer.status == 200
    assert not [name for name in answer.http.headers if name.startswith("access-control-")]


@pytest.mark.parametrize(
    ("spoil", "status"),
    [
        (lambda request: None, 200),
        (_header("authorization", None), 401),
        (_header("accept", "text/html"), 406),
        (_cut, 400),
        (_unknown_method, 404),
        (lambda request: setattr(request, "verb", "GET"), 405),
        (_pad, 413),
    ],
)
def test_an_allowed_origin_may_read_every_answer_and_the_challenge(
    spoil: Callable[[Draft], object], status: int
) -> None:
    """Fetch, CORS protocol: what is not exposed a browser client cannot see, the challenge above all."""
    request = draft(served(allowed_origins=f"https://other.example.com,{APP}"))
    request.headers["origin"] = APP
    spoil(request)
    answer = request.send()
    headers = answer.http.headers
    assert answer.status == status
    assert headers["access-control-allow-origin"] == APP
    assert headers["vary"] == "origin"
    assert "www-authenticate" in headers["access-control-expose-headers"]
    assert "access-control-allow-credentials" not in headers


def test_a_preflight_allows_the_headers_that_every_request_needs() -> None:
    """Fetch, CORS-preflight; it carries no token, so it comes before the access token."""
    request = draft(served(allowed_origins=APP))
    request.verb = "OPTIONS"
    request.body = b""
    request.headers = {
        "origin": APP,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type,mcp-method,mcp-name,mcp-protocol-version",
    }
    headers = request.send().http.headers
    allowed = {name.strip() for name in headers["access-control-allow-headers"].split(",")}
    assert {"authorization", "content-type", "mcp-method", "mcp-name", "mcp-protocol-version"} <= allowed
    assert (headers["access-control-allow-methods"], headers["access-control-allow-origin"]) == ("POST", APP)


MARK = "hunter2"


@pytest.mark.parametrize("scope", ["", "reports:delete reports:read"])
@pytest.mark.parametrize("verb", ["POST", "GET", "OPTIONS"])
@pytest.mark.parametrize("path", ["/mcp", f"/{MARK}", "/.well-known/oauth-protected-resource/mcp"])
def test_nothing_that_came_in_goes_out_in_a_header(path: str, verb: str, scope: str) -> None:
    """SECURITY 5.11: Host, X-Forwarded-Host and the rest never become part of a URL or a header."""
    request = draft(served(), params={"name": "delete", "arguments": {"target": MARK}}, scope=scope)
    request.verb, request.path = verb, path
    request.message["id"] = MARK
    request.headers |= {
        "host": f"{MARK}.example",
        "x-forwarded-host": f"{MARK}.example",
        "x-forwarded-proto": MARK,
        "forwarded": f"host={MARK}.example",
        "referer": f"https://{MARK}.example/",
        "x-request-id": MARK,
        "mcp-session-id": MARK,
        "cookie": f"a={MARK}",
    }
    for headers in ({}, {"authorization": f"Bearer {MARK}"}, {"origin": f"https://{MARK}.example"}):
        request.headers |= headers
        answer = request.send()
        assert not [name for name, value in answer.http.headers.items() if MARK in name + value]


def test_a_host_that_cannot_be_split_changes_nothing() -> None:
    """SECURITY section 0, finding 7: an adapter of others raises."""
    request = draft(served())
    request.headers |= {"host": "a:b:c", "x-forwarded-port": "abc", "x-forwarded-proto": "gopher"}
    assert request.send().status == 200


def test_a_token_in_the_url_is_no_token() -> None:
    """OAuth 2.1: access tokens MUST NOT be sent in the URI."""
    server = served()
    token = server.issuer.mint("alice")
    request = draft(server, "tools/list")
    headers = {name: value for name, value in request.headers.items() if value is not None and name != "authorization"}
    body = json.dumps(request.message).encode()
    assert server.respond(HttpRequest("POST", "/mcp", headers, body, query=f"access_token={token}")).status == 401


@pytest.mark.parametrize("path", ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"])
def test_the_metadata_is_public_and_may_be_kept(path: str) -> None:
    """RFC 9728 section 3.1; python-sdk#1049: at both paths, without a token, and `resource` exactly ours."""
    server = served()
    answer = server.respond(HttpRequest("GET", path, {"host": "evil.example"}))
    assert answer.status == 200
    assert answer.message["resource"] == "https://mcp.example.com/mcp"
    assert answer.http.headers["access-control-allow-origin"] == "*"
    head = server.respond(HttpRequest("HEAD", path, {}))
    assert (head.status, head.http.body, head.http.headers) == (200, b"", answer.http.headers)
    refused = server.respond(HttpRequest("POST", path, {}))
    assert (refused.status, refused.http.headers["allow"]) == (405, "GET, HEAD")


def test_a_whole_call_gives_the_front_doors_request_id_to_the_tool_and_to_the_log() -> None:
    """awslabs/mcp#1011; a failed tool's message names the id under which the log has the reason."""
    server = served()
    request = draft(server, params={"name": "crash"})
    headers = {name: value for name, value in request.headers.items() if value is not None}
    sent = HttpRequest("POST", "/mcp", headers, json.dumps(request.message).encode(), request_id="req-7")
    answer = server.respond(sent)
    assert "req-7" in answer.text
    assert answer.http.facts["request_id"] == "req-7"


def test_what_the_log_is_told_has_no_token_no_body_and_no_state() -> None:
    """DESIGN, promise 3. The facts of a response are all that its log line says."""
    server = JudgedServer(served().features)
    request = draft(server, params={"name": "delete", "arguments": {"target": MARK}})
    token = str(request.headers["authorization"]).removeprefix("Bearer ")
    first = request.send()
    state = first.result["requestState"]
    request.message["params"] |= {"requestState": state, "inputResponses": {"confirm": accept(confirm=True, x=MARK)}}
    second = request.send()
    request.message["params"]["requestState"] = state + MARK
    third = request.send()
    request.body = f'{{"{MARK}'.encode()
    fourth = request.send()
    request.headers["authorization"] = f"Bearer {MARK}"
    fifth = request.send()
    assert [reply.status for reply in (first, second, third, fourth, fifth)] == [200, 200, 400, 400, 401]
    logged = json.dumps([dict(reply.http.facts) for reply in (first, second, third, fourth, fifth)])
    assert not [secret for secret in (MARK, token, state, state[4:40]) if secret in logged]
    assert "client.example.com" in logged

"""Events that no gateway makes, at the real handlers: an answer of ours, and never an exception."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from app.testing import ISSUER, RESOURCE
from infra.local.sealing_keys import ensure_sealing_keys
from tests.hostile.draft import call
from tests.hostile.handlers import CONTEXT, Handlers, loaded_handlers
from tests.hostile.refusals import LEAK
from tests.hostile.rows import shows

# A store that nobody listens at: what is refused before it is needed never finds out.
NOWHERE: Final = "redis://127.0.0.1:9"


@pytest.fixture(scope="module")
def handlers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Handlers]:
    key_file = ensure_sealing_keys(tmp_path_factory.mktemp("keys") / "sealing-keys")
    environment = {
        "MCP_STAGE": "local",
        "MCP_RESOURCE_URL": RESOURCE,
        "MCP_ISSUER": ISSUER,
        # Where nobody listens either: no event here may lead to a look at a key.
        "MCP_JWKS_URL": "http://127.0.0.1:9/jwks",
        "MCP_SEALING_KEY_FILE": str(key_file),
        "MCP_REDIS_URL": NOWHERE,
        "MCP_OIDC_CLIENT_ID": "web",
    }
    with loaded_handlers(environment) as loaded:
        yield loaded


def event(**changes: Any) -> dict[str, Any]:
    """The event of a well-formed call without a token, with members replaced; `...` leaves one out."""
    made = {**call(None, "delete_report", target="Q3").event(), **changes}
    return {name: value for name, value in made.items() if value is not ...}


def _headers(**changes: Any) -> dict[str, Any]:
    made = {**event()["headers"], **{name.replace("_", "-"): value for name, value in changes.items()}}
    return event(headers=made)


def _http(**changes: Any) -> dict[str, Any]:
    given = event()["requestContext"]
    return event(requestContext={**given, "http": {**given["http"], **changes}})


EVENTS: Final[dict[str, Any]] = {
    "nothing": None,
    "an empty object": {},
    "a list": [],
    "a text": "POST /mcp",
    "a number": 5,
    "a timer's": {"source": "aws.events", "detail-type": "Scheduled Event"},
    "a queue's": {"Records": [{"body": "{}"}]},
    "no headers": event(headers=...),
    "headers null": event(headers=None),
    "headers as a list": event(headers=[["host", "x"]]),
    "headers as text": event(headers="host: x"),
    "a header null": _headers(x_null=None),
    "a header as a number": _headers(x_number=5),
    "a header as a list": _headers(x_list=["a", "b"]),
    "a header with a line break": _headers(authorization="Bearer a\r\nx-injected: 1"),
    "a header with a surrogate": _headers(mcp_name="\ud800"),
    "a host of three parts": _headers(host="a:b:c"),
    "a host that is an address": _headers(host="[::1]:80"),
    "a host with a surrogate": _headers(host="\ud800"),
    "a port in letters": _headers(x_forwarded_port="abc"),
    "a port beyond ports": _headers(x_forwarded_port="99999999999"),
    "a scheme of its own": _headers(x_forwarded_proto="gopher://x"),
    "bad Base64": event(body="!!!", isBase64Encoded=True),
    "Base64 with a newline": event(body="e30=\n", isBase64Encoded=True),
    "Base64 of bytes": event(body="//79", isBase64Encoded=True),
    "a body with a lone surrogate": event(body='{"a":"\ud800"}'),
    "a body as an object": event(body={"jsonrpc": "2.0"}),
    "a body as a number": event(body=5),
    "no body": event(body=...),
    "body null": event(body=None),
    "Base64 as text": event(isBase64Encoded="yes"),
    "no context": event(requestContext=...),
    "context null": event(requestContext=None),
    "context as text": event(requestContext="x"),
    "no http": event(requestContext={"stage": "$default"}),
    "http null": event(requestContext={"http": None}),
    "method null": _http(method=None),
    "method as a number": _http(method=5),
    "a method with a line break": _http(method="POST\r\nx: y"),
    "no path": {**_http(path=None), "rawPath": None},
    "a path as a list": event(rawPath=["/mcp"]),
    "a path with a surrogate": event(rawPath="/\ud800"),
    "a path with a zero byte": event(rawPath="/connect/\0"),
    "a stage as a number": event(requestContext={**event()["requestContext"], "stage": 5}),
    "a stage that is the path": event(requestContext={**event()["requestContext"], "stage": "mcp"}),
    "query as a list": event(rawQueryString=["a=b"]),
    "query with a surrogate": event(rawQueryString="a=\ud800"),
    "cookies as text": event(cookies="a=b"),
    "cookies null": event(cookies=None),
    "cookies of numbers": event(cookies=[5]),
    "cookies with a surrogate": event(cookies=["a=\ud800"]),
    "another version": event(version="9.0"),
    "version 1.0, in part": {"version": "1.0", "httpMethod": "POST", "path": "/mcp", "headers": None, "body": None},
    "a load balancer's, in part": {"requestContext": {"elb": {}}, "httpMethod": "POST", "path": "/mcp"},
}


@pytest.mark.parametrize("function", ["mcp", "web"])
@pytest.mark.parametrize("sent", EVENTS.values(), ids=EVENTS.keys())
@shows(13)
def test_whatever_event_comes_the_answer_is_a_response_and_no_exception(
    handlers: Handlers, function: str, sent: Any
) -> None:
    """Row 13. An exception out of a handler is a 502 with a stack trace in the log."""
    answer = handlers.all[function](sent, CONTEXT)
    assert 400 <= answer["statusCode"] < 500, answer
    body = answer["body"]
    assert isinstance(body, str)
    assert isinstance(answer["isBase64Encoded"], bool)
    for name, value in answer["headers"].items():
        assert isinstance(name, str)
        assert isinstance(value, str)
        assert not set("\r\n\0") & set(name + value)
    # What Lambda sends on is JSON in UTF-8.
    text = json.dumps(answer, ensure_ascii=False).encode()
    assert not LEAK.search(text.decode()), text
    assert answer["headers"]["cache-control"] == "no-store"
    assert answer["headers"]["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("function", ["mcp", "web"])
@pytest.mark.parametrize("context", [None, object(), "x"], ids=["none", "an object", "a text"])
@shows(13)
def test_whatever_context_comes_the_answer_is_a_response(handlers: Handlers, function: str, context: Any) -> None:
    """A test event in the console, and a local tool, have contexts of their own."""
    assert handlers.all[function](event(), context)["statusCode"] == 401


@pytest.mark.parametrize("function", ["mcp", "web"])
@pytest.mark.parametrize("token", ["a.b.c\n", "a.b.c.d.e", "A" * 100_000, "a.b.c, Bearer a.b.c", "\ud800", "é.é.é"])
@shows(80)
def test_a_token_that_no_gateway_would_let_through_is_refused(handlers: Handlers, function: str, token: str) -> None:
    """Row 80: line breaks and 100 KB do not come over HTTP, and may come from elsewhere."""
    answer = handlers.all[function](_headers(authorization=f"Bearer {token}"), CONTEXT)
    assert answer["statusCode"] in (400, 401), answer
    assert token not in json.dumps(answer)


@shows(14)
@pytest.mark.parametrize("function", ["mcp", "web"])
@pytest.mark.parametrize("path", ["/mcp/../mcp", "/connect/../admin", "//mcp", "/mcp\0", "mcp", "", "*"])
def test_a_path_that_no_gateway_would_route_here_is_not_found(handlers: Handlers, function: str, path: str) -> None:
    """Row 14, decoded as the gateway decodes it."""
    answer = handlers.all[function]({**_http(path=path), "rawPath": path}, CONTEXT)
    assert answer["statusCode"] in (400, 404, 405), answer

"""What every answer of both functions has, whatever was asked and whatever goes wrong."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from app.authorization.resource_server import JwtResourceServer
from tests.handlers.test_mcp import ENVIRONMENT, event
from tests.hostile.handlers import CONTEXT, Handlers, loaded_handlers

ORIGIN: Final = "https://host.example.com"
METADATA: Final = "/.well-known/oauth-protected-resource/mcp"
ASKED: Final[dict[str, tuple[int, Any]]] = {
    "the metadata": (200, event("GET", METADATA)),
    "the metadata's headers": (200, event("HEAD", METADATA)),
    "the metadata by another method": (405, event("POST", METADATA)),
    "a call without a token": (401, event()),
    "a call by another method": (405, event("GET")),
    "a call from a page of ours": (401, event(headers={"origin": ORIGIN})),
    "leave to call from a page of ours": (204, event("OPTIONS", headers={"origin": ORIGIN})),
    "a call from a foreign page": (403, event(headers={"origin": "https://evil.example"})),
    "a call that is too long": (413, event(body="x" * (1024 * 1024 + 1))),
    "something else": (404, event("GET", "/nowhere")),
    "nothing over HTTP": (400, {}),
}
PAGES: Final[dict[str, tuple[int, Any]]] = {
    "the style sheet": (200, event("GET", "/static/style.css")),
    "a page by another method": (405, event("PUT", "/connections")),
    "a link that is none": (404, event("GET", "/connect/none")),
}
EVERYWHERE: Final = [
    *(pytest.param("mcp", *each, id=f"mcp: {name}") for name, each in ASKED.items()),
    *(pytest.param("web", *each, id=f"web: {name}") for name, each in (ASKED | PAGES).items()),
]


@pytest.fixture(scope="module")
def handlers() -> Iterator[Handlers]:
    with loaded_handlers({**ENVIRONMENT, "MCP_ALLOWED_ORIGINS": ORIGIN}) as loaded:
        yield loaded


@pytest.mark.parametrize(("function", "status", "asked"), EVERYWHERE)
def test_no_browser_guesses_what_an_answer_is(handlers: Handlers, function: str, status: int, asked: Any) -> None:
    """WHATWG Fetch, X-Content-Type-Options. Stranger events are in tests/hostile/test_lambda_events.py."""
    answer = handlers.all[function](asked, CONTEXT)
    assert answer["statusCode"] == status
    assert answer["headers"]["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("function", ["mcp", "web"])
def test_a_crash_is_an_answer_like_others(
    handlers: Handlers, function: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither the framework nor the gateway answers for us: theirs would have none of our headers."""

    def broken(*_: object, **__: object) -> None:
        raise KeyError("secret detail")

    monkeypatch.setattr(JwtResourceServer, "authenticate", broken)
    answer = handlers.all[function](event(), CONTEXT)
    assert answer["statusCode"] == 500
    assert json.loads(answer["body"])["error"] == {"code": -32603, "message": "Internal error"}
    assert answer["headers"]["cache-control"] == "no-store"
    assert answer["headers"]["x-content-type-options"] == "nosniff"
    line = json.loads(caplog.records[-1].getMessage())
    assert (line["outcome"], line["reason"]) == ("crashed", "KeyError")

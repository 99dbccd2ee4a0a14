"""What a tool may return, and how it goes on the wire."""

from base64 import b64decode
from collections.abc import Callable
from typing import Any

import pytest

from app.testing import Server
from app.toolkit import (
    Annotations,
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    Icon,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    tool,
)
from tests.protocol.endpoint import JudgedServer

PNG = b"\x89PNG\r\n"


def called(returns: Any, result: Any) -> Any:
    """The result of a tool whose function is annotated with `returns`."""

    def function() -> Any:
        """Return something."""
        return result

    function.__annotations__["return"] = returns
    server = JudgedServer([tool(function)])
    (listed,) = server.client().request("tools/list").result["tools"][:1]
    assert "outputSchema" not in listed
    return server.client().call("function").result


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (TextContent("hi"), {"type": "text", "text": "hi"}),
        (
            TextContent("hi", Annotations(["user"], 0.5, "2026-11-30T10:00:00Z"), {"x": 1}),
            {
                "type": "text",
                "text": "hi",
                "annotations": {"audience": ["user"], "priority": 0.5, "lastModified": "2026-11-30T10:00:00Z"},
                "_meta": {"x": 1},
            },
        ),
        (ResourceLink("a://x", "x"), {"type": "resource_link", "uri": "a://x", "name": "x"}),
        (
            ResourceLink(
                "a://x", "x", "X", "An x", "text/plain", 0, [Icon("https://e.com/i.svg", None, ["any"], "dark")]
            ),
            {
                "type": "resource_link",
                "uri": "a://x",
                "name": "x",
                "title": "X",
                "description": "An x",
                "mimeType": "text/plain",
                "size": 0,
                "icons": [{"src": "https://e.com/i.svg", "sizes": ["any"], "theme": "dark"}],
            },
        ),
        (
            EmbeddedResource(TextResourceContents("a://x", "", "text/plain")),
            {"type": "resource", "resource": {"uri": "a://x", "mimeType": "text/plain", "text": ""}},
        ),
    ],
)
def test_a_content_block_goes_as_the_schema_has_it(content: Any, expected: Any) -> None:
    """schema, ContentBlock: judged by the official types."""
    assert called(type(content), content)["content"] == [expected]


@pytest.mark.parametrize(
    ("content", "encoded"),
    [
        (ImageContent(PNG, "image/png"), lambda block: block["data"]),
        (AudioContent(PNG, "audio/wav"), lambda block: block["data"]),
        (EmbeddedResource(BlobResourceContents("a://x", PNG)), lambda block: block["resource"]["blob"]),
    ],
)
def test_bytes_go_as_base64(content: Any, encoded: Callable[[Any], str]) -> None:
    """schema, @format byte."""
    (block,) = called(type(content), content)["content"]
    assert b64decode(encoded(block), validate=True) == PNG


def test_a_list_of_content_is_as_many_blocks() -> None:
    blocks = called(list[str | ImageContent], ["Here:", ImageContent(PNG, "image/png")])["content"]
    assert [each["type"] for each in blocks] == ["text", "image"]


def test_a_list_of_plain_values_stays_a_value() -> None:
    """Only content blocks make a list content: text alone is data, with a schema."""

    @tool
    def words() -> list[str]:
        """List words."""
        return ["a", "b"]

    assert Server([words]).client().call("words").result["structuredContent"] == ["a", "b"]


def test_a_full_result_says_everything_itself() -> None:
    """schema, CallToolResult."""
    result = called(CallToolResult, CallToolResult(["no"], {"code": 7}, is_error=True, meta={"x": 1}))
    assert result["content"] == [{"type": "text", "text": "no"}]
    assert (result["structuredContent"], result["isError"], result["_meta"]["x"]) == ({"code": 7}, True, 1)


def test_icons_and_meta_are_listed() -> None:
    """schema, Tool."""

    @tool(icons=[Icon("data:image/png;base64,AAAA", "image/png")], meta={"ui": "x"})
    def drawn() -> str:
        """Have an icon."""
        return ""

    (listed,) = JudgedServer([drawn]).client().request("tools/list").result["tools"]
    assert listed["icons"] == [{"src": "data:image/png;base64,AAAA", "mimeType": "image/png"}]
    assert listed["_meta"] == {"ui": "x"}

"""Lists in pages, with cursors that any instance and any deployment understands."""

from base64 import urlsafe_b64encode
from typing import Any

import pytest

from app.protocol.pagination import PAGE_SIZE
from app.testing import Client
from app.toolkit import Tool, tool
from tests.protocol.endpoint import JudgedServer
from tests.protocol.offered import error


def tools(count: int) -> list[Tool]:
    def each(number: int) -> Tool:
        @tool(name=f"tool_{number:04}")
        def function() -> str:
            """Do nothing."""
            return ""

        return function

    return [each(number) for number in range(count)]


def names(client: Client) -> list[list[str]]:
    pages: list[list[str]] = []
    cursor: dict[str, Any] = {}
    while True:
        result = client.request("tools/list", cursor).result
        pages.append([each["name"] for each in result["tools"]])
        if "nextCursor" not in result:
            return pages
        cursor = {"cursor": result["nextCursor"]}


@pytest.mark.parametrize("count", [1, PAGE_SIZE, PAGE_SIZE + 1, 2 * PAGE_SIZE + 3])
def test_every_tool_is_listed_once_and_in_order(count: int) -> None:
    """server/utilities/pagination. The pages come from two instances in turn."""
    pages = names(JudgedServer(tools(count)).client())
    assert [name for page in pages for name in page] == [f"tool_{number:04}" for number in range(count)]
    assert all(len(page) <= PAGE_SIZE for page in pages)


def test_a_cursor_outlives_a_deployment_that_adds_tools() -> None:
    """server/utilities/pagination: SHOULD provide stable cursors."""
    offered = tools(PAGE_SIZE + 10)
    server = JudgedServer(offered[5:])
    client = server.client()
    first = client.request("tools/list").result
    server.restart(offered)
    second = client.request("tools/list", {"cursor": first["nextCursor"]}).result
    listed = [each["name"] for each in (*first["tools"], *second["tools"])]
    assert listed == [each.name for each in offered[5:]]


@pytest.mark.parametrize(
    "cursor", ["", "x", "dG9vbF8wMDAw=", urlsafe_b64encode(b"tool_9999").decode(), "é", "A" * 5000, 5]
)
def test_a_cursor_that_we_never_gave_is_refused(cursor: Any) -> None:
    """server/utilities/pagination, Error Handling."""
    assert error(JudgedServer(tools(2)).client().request("tools/list", {"cursor": cursor})) == (400, -32602)

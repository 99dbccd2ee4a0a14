"""The list of tools: what is imported in app/tools/__init__.py is served."""

import json

from mcp_types._v2026_07_28 import Tool as WireTool

from app.testing import Server
from app.tools import TOOLS


def test_every_tool_is_a_valid_tool_and_says_what_it_does() -> None:
    """server/tools: judged by the official types."""
    listed = Server(TOOLS).client().request("tools/list").result["tools"]
    assert [each["name"] for each in listed] == [each.name for each in TOOLS]
    for each in listed:
        WireTool.model_validate_json(json.dumps(each), strict=True, by_name=False)
        assert each["description"]

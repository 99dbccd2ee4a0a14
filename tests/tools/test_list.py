"""The list of tools: what is imported in app/tools/__init__.py is served."""

import json
import pkgutil
from importlib import import_module

from mcp_types._v2026_07_28 import Tool as WireTool

import app.tools
from app.testing import Server
from app.toolkit import Features
from app.tools import FEATURES, TOOLS


def test_every_tool_is_a_valid_tool_and_says_what_it_does() -> None:
    """server/tools: judged by the official types."""
    listed = Server(TOOLS).client().request("tools/list").result["tools"]
    assert [each["name"] for each in listed] == [each.name for each in TOOLS]
    for each in listed:
        WireTool.model_validate_json(json.dumps(each), strict=True, by_name=False)
        assert each["description"]


def test_whatever_a_module_here_offers_is_served() -> None:
    """README, Your own tools. A module may offer nothing, and only help the others."""
    for module in pkgutil.iter_modules(app.tools.__path__):
        offered = Features.of(vars(import_module(f"app.tools.{module.name}")).values()).all
        forgotten = [each for each in offered if each not in FEATURES.all]
        assert not forgotten, f"import it from {module.name} in app/tools/__init__.py"

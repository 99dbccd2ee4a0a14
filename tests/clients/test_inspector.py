"""The MCP Inspector's command line against the local stack, in both eras.

It declares no capability and can answer no question: what matters is that each tool tells it, in words, what to do.
"""

import json
import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from infra.local.desk.tools import TOOLS
from tests.clients.nodejs import required
from tests.clients.raw import mint
from tests.clients.scenarios import accept
from tests.conftest import RunningStack

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parent / "inspector"
TOOL_IS_ERROR = 5
"""Its exit status for a result with isError."""


@dataclass(frozen=True)
class Printed:
    """What a person sees."""

    status: int
    result: dict[str, Any]
    error: str

    @property
    def text(self) -> str:
        return "\n".join(block["text"] for block in self.result["content"])


Inspect = Callable[..., Printed]


@pytest.fixture
def inspect(stack: RunningStack, tmp_path: Path) -> Inspect:
    """Runs the Inspector once, as Alice, with a home of its own."""
    node, packages = required(FOLDER)
    program = packages / "node_modules" / ".bin" / "mcp-inspector"
    token = mint(stack.stack, "alice", client_id="inspector")

    def run(era: str, method: str, tool: str = "", arguments: dict[str, Any] | None = None) -> Printed:
        called = ["--tool-name", tool, "--tool-args-json", json.dumps(arguments or {})] if tool else []
        done = subprocess.run(
            [
                *(str(node), str(program), "--cli", stack.mcp_url, "--transport", "http"),
                *("--protocol-era", era, "--format", "json", "--header", f"Authorization: Bearer {token}"),
                *("--method", method, *called),
            ],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Printed(done.returncode, json.loads(done.stdout or "{}").get("result", {}), done.stderr)

    return run


@pytest.mark.parametrize("era", ["legacy", "modern", "auto"])
def test_the_tools_are_listed(inspect: Inspect, era: str) -> None:
    printed = inspect(era, "tools/list")
    assert (printed.status, printed.error) == (0, "")
    names = [tool["name"] for tool in printed.result["tools"]]
    assert [name for name in names if name != "answer"] == [tool.name for tool in TOOLS]


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_call_that_needs_no_question_is_answered(inspect: Inspect, stack: RunningStack, era: str) -> None:
    before = stack.effects()
    printed = inspect(era, "tools/call", "assign_ticket", {"id": "T-2", "agent": "ben"})
    assert (printed.status, printed.text) == (0, "ben takes T-2.")
    assert stack.effects()[len(before) :] == ["assigned T-2 to ben"]


def test_a_question_is_put_as_text_and_the_next_command_answers_it(inspect: Inspect, stack: RunningStack) -> None:
    """DESIGN 4: the call of a legacy client never fails with an opaque error."""
    before = stack.effects()
    asked = inspect("legacy", "tools/call", "assign_ticket", {"id": "T-2"})
    assert asked.status == TOOL_IS_ERROR
    assert "Who takes T-2" in asked.text
    found = re.search(r"with the handle (\S+) and", asked.text)
    assert found
    given = {"handle": found[1], "answers": {"agent": accept(agent="ana")}}
    answered = inspect("legacy", "tools/call", "answer", given)
    assert (answered.status, answered.text) == (0, "ana takes T-2.")
    assert stack.effects()[len(before) :] == ["assigned T-2 to ana"]


def test_a_question_for_a_destructive_tool_is_refused_in_words(inspect: Inspect, stack: RunningStack) -> None:
    before = stack.effects()
    printed = inspect("legacy", "tools/call", "delete_report", {"target": "Q3"})
    assert printed.status == TOOL_IS_ERROR
    assert "use a client that speaks MCP 2026-07-28 with elicitation" in printed.text
    assert stack.effects() == before


@pytest.mark.parametrize("tool", ["delete_report", "assign_ticket"])
def test_a_modern_client_without_the_capability_is_told_which_one(inspect: Inspect, tool: str) -> None:
    """2026-07-28, basic/index, MissingRequiredClientCapabilityError; the Inspector shows the message alone."""
    printed = inspect("modern", "tools/call", tool, {"target": "Q3"} if tool == "delete_report" else {"id": "T-2"})
    assert printed.status != 0
    assert "elicitation" in printed.error


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_link_is_put_as_text(inspect: Inspect, era: str) -> None:
    printed = inspect(era, "tools/call", "list_repositories")
    assert printed.status == TOOL_IS_ERROR
    assert "/connect/" in printed.text
    assert 'call the tool "list_repositories" again' in printed.text

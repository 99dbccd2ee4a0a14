"""The official TypeScript client against the local stack, through a small driver of our own."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.tools import TOOLS
from infra.local.identity import sign_in
from tests.clients.scenarios import SCENARIOS, Scenario, accept
from tests.conftest import RunningStack

FOLDER = Path(__file__).parent / "typescript"

pytestmark = pytest.mark.skipif(
    shutil.which("npm") is None or shutil.which("node") is None,
    reason="the official TypeScript client needs Node.js 20 and npm: install them to run these tests",
)


class Driver:
    """The driver process, one JSON line each way."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def send(self, command: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the driver ended"
        reply: dict[str, Any] = json.loads(line)
        return reply

    def command(self, **command: Any) -> dict[str, Any]:
        self.send(command)
        return self.receive()


@pytest.fixture(scope="module")
def installed() -> None:
    """The locked client, from the npm registry."""
    if not (FOLDER / "node_modules").exists():
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=FOLDER, check=True, capture_output=True)


@pytest.fixture(scope="module")
def driver(stack: RunningStack, installed: None) -> Iterator[Driver]:
    """A client of Alice's: it found the authorization server, registered and signed in by itself."""
    with subprocess.Popen(
        ["node", "driver.mjs"], cwd=FOLDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        driver = Driver(process)
        asked = driver.command(connect=stack.mcp_url)
        connected = driver.command(redirect=sign_in(asked["authorize"], user="alice"))
        assert connected["connected"] == [tool.name for tool in TOOLS]
        yield driver
        driver.send({})
        process.wait(timeout=10)


def text(reply: dict[str, Any]) -> str:
    return "\n".join(block["text"] for block in reply["result"]["content"])


@pytest.fixture(scope="module", autouse=True)
def forgotten(stack: RunningStack) -> None:
    """The scenarios find every report and ticket as at a start, whatever ran before."""
    stack.restart()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_each_example_tool_completes_over_several_environments(
    stack: RunningStack, driver: Driver, scenario: Scenario
) -> None:
    """MCP basic/patterns/mrtr: a retry is independent of the instance that asked."""
    before = stack.effects()
    reply = driver.command(call=scenario.tool, arguments=scenario.arguments, answers=scenario.answers)
    assert scenario.text in text(reply)
    assert reply["result"].get("isError", False) is scenario.is_error
    assert reply["unused"] == 0
    assert stack.effects()[len(before) :] == list(scenario.effects)
    assert len(reply["servedBy"]) == scenario.rounds
    assert len(set(reply["servedBy"])) >= scenario.served_by


def test_a_flow_goes_on_after_every_environment_was_replaced(fresh_stack: RunningStack, driver: Driver) -> None:
    """CASES B.2 25, 27: no flow is lost to a restart between rounds."""
    scenario = next(each for each in SCENARIOS if each.name == "visit planned")
    before = fresh_stack.effects()
    driver.command(pause=True)
    driver.send({"call": scenario.tool, "arguments": scenario.arguments, "answers": scenario.answers})
    while (reply := driver.receive()).get("paused"):
        fresh_stack.restart()
        driver.send({"go": True})
    driver.command(pause=False)
    assert scenario.text in text(reply)
    assert fresh_stack.effects()[len(before) :] == list(scenario.effects)
    assert len(set(reply["servedBy"])) == scenario.rounds


def test_answers_to_other_arguments_are_refused_and_nothing_is_done(stack: RunningStack, driver: Driver) -> None:
    """SECURITY 1: confirm X, execute Y."""
    before = stack.effects()
    asked = driver.command(ask="delete_report", arguments={"target": "Q1"})["result"]
    refused = driver.command(
        retry={
            "name": "delete_report",
            "arguments": {"target": "Q2"},
            "inputResponses": {"confirm": accept(confirm=True)},
            "requestState": asked["requestState"],
        }
    )
    assert refused["error"]["code"] == -32602
    assert "Invalid or expired requestState" in refused["error"]["message"]
    assert stack.effects() == before

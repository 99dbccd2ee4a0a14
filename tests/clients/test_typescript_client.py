"""The official TypeScript client against the local stack, through a small driver of our own."""

from collections.abc import Iterator
from typing import Any

import pytest

from infra.local.desk.tools import TOOLS
from tests.clients.driver import Driver, typescript_client
from tests.clients.scenarios import SCENARIOS, Scenario, accept
from tests.conftest import RunningStack


@pytest.fixture(scope="module")
def driver(stack: RunningStack) -> Iterator[Driver]:
    """A client of Alice's."""
    with typescript_client(stack.mcp_url, user="alice") as (driver, listed):
        assert listed == [tool.name for tool in TOOLS]
        yield driver


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

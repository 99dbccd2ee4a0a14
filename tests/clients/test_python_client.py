"""The official Python client against the local stack, logged in by OAuth like any client."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from mcp import MCPError
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, InputRequiredResult, TextContent

from infra.local.desk.tools import TOOLS
from infra.local.python_client import signed_in_client
from tests.clients.scenarios import SCENARIOS, Scenario, accept
from tests.conftest import RunningStack


class Wire:
    """Which environments served the calls of tools."""

    def __init__(self) -> None:
        self.served_by: list[str] = []

    async def __call__(self, response: httpx2.Response) -> None:
        if response.request.headers.get("mcp-method") == "tools/call":
            self.served_by.append(response.headers["x-emulator-environment"])


def answering(
    answers: Iterator[dict[str, Any]], before: Callable[[], None]
) -> Callable[[ElicitRequestParams], ElicitResult]:
    def answer(params: ElicitRequestParams) -> ElicitResult:
        before()
        return ElicitResult.model_validate(next(answers))

    return answer


def text(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


async def play(stack: RunningStack, scenario: Scenario, *, between: Callable[[], None]) -> tuple[CallToolResult, Wire]:
    wire, answers = Wire(), iter(scenario.answers)
    async with signed_in_client(
        stack.mcp_url, user="alice", answer=answering(answers, between), on_response=wire
    ) as client:
        result = await client.call_tool(scenario.tool, scenario.arguments)
    assert next(answers, None) is None, "the tool asked less than it must"
    return result, wire


@pytest.fixture(scope="module", autouse=True)
def forgotten(stack: RunningStack) -> None:
    """The scenarios find every report and ticket as at a start, whatever ran before."""
    stack.restart()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_each_example_tool_completes_over_several_environments(stack: RunningStack, scenario: Scenario) -> None:
    """MCP basic/patterns/mrtr: a retry is independent of the instance that asked."""
    before = stack.effects()
    result, wire = asyncio.run(play(stack, scenario, between=lambda: None))
    assert scenario.text in text(result)
    assert result.is_error is scenario.is_error
    assert stack.effects()[len(before) :] == list(scenario.effects)
    assert len(wire.served_by) == scenario.rounds
    assert len(set(wire.served_by)) >= scenario.served_by


@pytest.mark.parametrize("name", ["delete accepted", "deploy accepted", "visit planned"])
def test_a_flow_goes_on_after_every_environment_was_replaced(fresh_stack: RunningStack, name: str) -> None:
    """CASES B.2 25, 27: no flow is lost to a restart between rounds."""
    scenario = next(each for each in SCENARIOS if each.name == name)
    before = fresh_stack.effects()
    # Restarted from another thread: the client's loop must not wait for the stack's.
    result, wire = asyncio.run(play(fresh_stack, scenario, between=fresh_stack.restart))
    assert scenario.text in text(result)
    assert fresh_stack.effects()[len(before) :] == list(scenario.effects)
    assert len(set(wire.served_by)) == scenario.rounds


def test_answers_to_other_arguments_are_refused_and_nothing_is_done(stack: RunningStack) -> None:
    """SECURITY 1: confirm X, execute Y."""

    async def attempt() -> MCPError:
        async with signed_in_client(
            stack.mcp_url, user="alice", answer=lambda params: ElicitResult(action="cancel")
        ) as client:
            asked = await client.session.call_tool("delete_report", {"target": "Q1"}, allow_input_required=True)
            assert isinstance(asked, InputRequiredResult)
            answers: Any = {"confirm": ElicitResult.model_validate(accept(confirm=True))}
            with pytest.raises(MCPError) as caught:
                await client.session.call_tool(
                    "delete_report",
                    {"target": "Q2"},
                    input_responses=answers,
                    request_state=asked.request_state,
                    allow_input_required=True,
                )
            return caught.value

    before = stack.effects()
    error = asyncio.run(attempt())
    assert error.error.code == -32602
    assert error.error.message == "Invalid or expired requestState"
    assert stack.effects() == before


def test_the_client_lists_the_tools_with_their_schemas(stack: RunningStack) -> None:
    """MCP server/tools."""

    async def names() -> list[str]:
        async with signed_in_client(
            stack.mcp_url, user="bob", answer=lambda params: ElicitResult(action="cancel")
        ) as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    assert asyncio.run(names()) == [tool.name for tool in TOOLS]

"""The official clients as hosts use them today: with the handshake of 2025-11-25, on the same endpoint.

Such a client cannot be asked in the middle of a call. So a question goes to the model as text, or to the client as
the error -32042 with a link, and nothing ends in an error that says nothing.
"""

import asyncio
import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import httpx2
import pytest
from mcp import MCPError
from mcp.client import Client
from mcp_types import ElicitResult, TextContent

from infra.local.desk.tools import TOOLS
from infra.local.on_thread import Run, on_thread
from infra.local.person import Intent, ScriptedBrowser
from infra.local.python_client import signed_in_client
from tests.clients.driver import Driver, typescript_client
from tests.clients.raw import mint
from tests.clients.scenarios import CANCEL, DECLINE, accept
from tests.conftest import RunningStack

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26")
URL_REQUIRED = -32042


@dataclass(frozen=True)
class Reply:
    """What a client gave back to its host: a result as text, or an error."""

    text: str
    is_error: bool
    code: int | None = None
    data: Any = None


class LegacyClient(Protocol):
    """One connected client, whichever it is."""

    tools: list[str]

    def call(self, name: str, arguments: dict[str, Any]) -> Reply: ...


class PythonClient:
    """The official Python client: it declares elicitation in both modes."""

    def __init__(self, client: Client, run: Run) -> None:
        self._client, self._run = client, run
        self.tools = [tool.name for tool in run(client.list_tools()).tools]

    def call(self, name: str, arguments: dict[str, Any]) -> Reply:
        try:
            result = self._run(self._client.call_tool(name, arguments))
        except MCPError as error:
            return Reply(error.error.message, is_error=True, code=error.error.code, data=error.error.data)
        texts = [block.text for block in result.content if isinstance(block, TextContent)]
        return Reply("\n".join(texts), is_error=bool(result.is_error))


class TypeScriptClient:
    """The official TypeScript client, declaring elicitation in both modes."""

    def __init__(self, driver: Driver, tools: list[str]) -> None:
        self._driver = driver
        self.tools = tools

    def call(self, name: str, arguments: dict[str, Any]) -> Reply:
        reply = self._driver.command(call=name, arguments=arguments, answers=[])
        if "error" in reply:
            error = reply["error"]
            return Reply(error["message"], is_error=True, code=error["code"], data=error["data"])
        texts = [block["text"] for block in reply["result"]["content"]]
        return Reply("\n".join(texts), is_error=reply["result"].get("isError", False))


@pytest.fixture(scope="module", params=["python", "typescript"])
def client(request: pytest.FixtureRequest, stack: RunningStack) -> Iterator[LegacyClient]:
    """A client of Alice's that speaks 2025-11-25."""
    stack.restart()
    if request.param == "python":

        def never(params: object) -> ElicitResult:
            raise AssertionError("nobody can be asked during a call")

        opened = signed_in_client(stack.mcp_url, user="alice", answer=never, mode="legacy")
        with on_thread(lambda: opened, name="python-client") as (connected, run):
            yield PythonClient(connected, run)
    else:
        both: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}}
        with typescript_client(stack.mcp_url, user="alice", mode="legacy", capabilities=both) as (driver, tools):
            yield TypeScriptClient(driver, tools)


def handle_in(text: str) -> str:
    """The handle of a question that was put as text."""
    found = re.search(r"with the handle (\S+) and", text)
    assert found, text
    return found[1]


def answers(reply: Reply, **given: dict[str, Any]) -> dict[str, Any]:
    return {"handle": handle_in(reply.text), "answers": given}


def test_the_tools_are_listed_with_the_one_that_takes_answers(client: LegacyClient) -> None:
    """DESIGN 4: a model can pass on an answer only with a tool for it."""
    assert client.tools == [*(tool.name for tool in TOOLS), "answer"]


def test_a_call_that_needs_no_question_is_answered(client: LegacyClient, stack: RunningStack) -> None:
    before = stack.effects()
    reply = client.call("assign_ticket", {"id": "T-2", "agent": "chioma"})
    assert reply == Reply("chioma takes T-2.", is_error=False)
    assert stack.effects()[len(before) :] == ["assigned T-2 to chioma"]


def test_a_form_comes_as_text_and_its_answer_finishes_the_call(client: LegacyClient, stack: RunningStack) -> None:
    """DESIGN 4: a form falls back to text with a sealed handle, which any instance opens."""
    before = stack.effects()
    asked = client.call("assign_ticket", {"id": "T-2"})
    assert "Who takes T-2" in asked.text
    assert stack.effects() == before
    stack.restart()
    finished = client.call("answer", answers(asked, agent=accept(agent="ana")))
    assert finished == Reply("ana takes T-2.", is_error=False)
    assert stack.effects()[len(before) :] == ["assigned T-2 to ana"]


def test_several_rounds_of_questions_and_a_wrong_answer_end_in_one_effect(
    client: LegacyClient, stack: RunningStack
) -> None:
    before = stack.effects()
    day, bring = accept(day="2026-12-24"), accept(items=["laptop", "cables"])
    asked = client.call("plan_visit", {"site": "Lisbon"})
    wrong = client.call("answer", answers(asked, when=day, equipment=accept(items=["rocket"])))
    crew = client.call("answer", answers(wrong, equipment=bring))
    assert "how many technicians?" in crew.text
    planned = client.call("answer", answers(crew, crew=accept(people=2)))
    assert planned.is_error is False
    assert '"people": 2' in planned.text
    assert stack.effects()[len(before) :] == ["planned Lisbon on 2026-12-24"]


@pytest.mark.parametrize("answer", [DECLINE, CANCEL], ids=["decline", "cancel"])
def test_the_user_may_say_no(client: LegacyClient, stack: RunningStack, answer: dict[str, Any]) -> None:
    before = stack.effects()
    asked = client.call("assign_ticket", {"id": "T-2"})
    refused = client.call("answer", answers(asked, agent=answer))
    assert refused.is_error
    assert "not assigned" in refused.text
    assert stack.effects() == before


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("delete_report", {"target": "Q3"}), ("close_ticket", {"id": "T-1"}), ("deploy", {"service": "billing"})],
)
def test_a_destructive_tool_says_why_it_cannot_go_on_and_gives_no_handle(
    client: LegacyClient, stack: RunningStack, tool: str, arguments: dict[str, Any]
) -> None:
    """DESIGN 4: a model must not confirm for the user."""
    before = stack.effects()
    refused = client.call(tool, arguments)
    assert refused.is_error
    assert refused.code is None, "a tool error, which the model reads"
    assert "cannot show" in refused.text
    assert "handle" not in refused.text
    assert stack.effects() == before


def test_a_link_comes_as_the_error_that_the_client_knows_and_the_next_call_finishes(
    client: LegacyClient, stack: RunningStack
) -> None:
    """2025-11-25, client/elicitation, URL Elicitation Required Error."""
    client.call("disconnect", {})
    asked = client.call("list_repositories", {})
    assert asked.code == URL_REQUIRED
    (elicitation,) = asked.data["elicitations"]
    assert elicitation["mode"] == "url"
    assert "/connect/" in elicitation["url"]
    again = client.call("list_repositories", {})
    assert again.data["elicitations"][0]["url"] == elicitation["url"]
    with contextlib.closing(ScriptedBrowser()) as browser:
        visited = browser.open(elicitation["url"], Intent(accounts=("alice", "alice-hub")))
    assert visited.pages[-1] == "Local Hub is connected"
    listed = client.call("list_repositories", {})
    assert listed.is_error is False
    assert "garden-plans" in listed.text


def test_an_unknown_tool_is_an_error_with_its_message(client: LegacyClient) -> None:
    """Clients of this era read the body of a 200 only."""
    reply = client.call("no_such_tool", {})
    assert reply.is_error
    assert "no_such_tool" in reply.text


@dataclass
class Handshake:
    """A client of an earlier revision by hand, for versions that the official clients no longer offer."""

    http: httpx2.AsyncClient
    url: str
    version: str

    async def send(self, method: str, params: dict[str, Any], **headers: str) -> httpx2.Response:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await self.http.post(self.url, json=message, headers=headers)

    async def initialize(self, capabilities: dict[str, Any]) -> dict[str, Any]:
        client = {"name": "handshake", "version": "1"}
        params = {"protocolVersion": self.version, "capabilities": capabilities, "clientInfo": client}
        response = await self.send("initialize", params)
        assert response.status_code == 200, response.text
        result: dict[str, Any] = response.json()["result"]
        return result

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        # Before 2025-06-18 there is no header for the version.
        headers = {} if self.version == "2025-03-26" else {"mcp-protocol-version": self.version}
        response = await self.send("tools/call", {"name": name, "arguments": arguments}, **headers)
        assert response.status_code == 200, response.text
        result: dict[str, Any] = response.json()["result"]
        return result


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_that_declares_nothing_gets_every_question_as_text(stack: RunningStack, version: str) -> None:
    """2025-03-26 has neither elicitation nor the version's header; 2025-06-18 has no URL mode."""
    token = mint(stack.stack, f"nobody-{version}")

    async def run() -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        headers = {"authorization": f"Bearer {token}", "accept": "application/json, text/event-stream"}
        async with httpx2.AsyncClient(trust_env=False, timeout=30, headers=headers) as http:
            client = Handshake(http, stack.mcp_url, version)
            started = await client.initialize({})
            link = await client.call("list_repositories", {})
            form = await client.call("assign_ticket", {"id": "T-1"})
            given = {"handle": handle_in(form["content"][0]["text"]), "answers": {"agent": accept(agent="ben")}}
            return started, link, await client.call("answer", given)

    started, link, assigned = asyncio.run(run())
    assert started["protocolVersion"] == version
    assert "/connect/" in link["content"][0]["text"]
    assert assigned["content"][0]["text"] == "ben takes T-1."

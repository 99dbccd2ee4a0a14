"""Over real HTTP and real processes: whose state opens for whom, and many flows at once."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from infra.local.desk import desk_stack
from infra.local.on_thread import on_thread
from tests.clients.raw import RawClient, mint
from tests.clients.scenarios import accept
from tests.conftest import RunningStack

FROZEN = {
    "code": -32602,
    "message": "Invalid or expired requestState",
    "data": {"reason": "invalid_request_state"},
}
YES = {"confirm": accept(confirm=True)}


@pytest.fixture(scope="module")
def wide_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """Four environments for each function."""
    folder = tmp_path_factory.mktemp("wide")
    with on_thread(lambda: desk_stack(folder, environments=4, max_environments=4), name="wide") as running:
        yield RunningStack(*running)


@pytest.mark.parametrize(
    ("whose", "subject", "claims", "tool", "arguments"),
    [
        ("another user's token", "bob", {}, "delete_report", {"target": "Q2"}),
        ("another client's token", "alice", {"client_id": "other-client"}, "delete_report", {"target": "Q2"}),
        ("other arguments", "alice", {}, "delete_report", {"target": "Q1"}),
        ("one more argument", "alice", {}, "delete_report", {"target": "Q2", "force": True}),
        ("another tool", "alice", {}, "deploy", {"target": "Q2"}),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value else "",
)
def test_a_state_opens_for_its_own_request_only_and_its_owner_still_finishes(
    stack: RunningStack, whose: str, subject: str, claims: dict[str, Any], tool: str, arguments: dict[str, Any]
) -> None:
    """MUST: mrtr, server requirements 4 and 5. The effects in all environments' logs are the counter."""

    async def attempt() -> None:
        async with httpx2.AsyncClient(trust_env=False) as http:
            alice = RawClient(http, stack.mcp_url, mint(stack.stack, "alice"))
            asked = (await alice.call("delete_report", {"target": "Q2"})).json()["result"]
            before = stack.effects()
            thief = RawClient(http, stack.mcp_url, mint(stack.stack, subject, **claims))
            refused = await thief.call(tool, arguments, inputResponses=YES, requestState=asked["requestState"])
            assert refused.status_code == 400
            assert refused.json()["error"] == FROZEN
            assert stack.effects() == before
            # Not "confirmed": the report stays for the next case.
            finished = await alice.call(
                "delete_report",
                {"target": "Q2"},
                inputResponses={"confirm": {"action": "decline"}},
                requestState=asked["requestState"],
            )
            assert "declined" in finished.json()["result"]["content"][0]["text"]

    asyncio.run(attempt())


def test_a_token_for_another_audience_is_refused_before_the_state_is_looked_at(stack: RunningStack) -> None:
    """MUST: basic/authorization, Token Handling."""

    async def attempt() -> httpx2.Response:
        async with httpx2.AsyncClient(trust_env=False) as http:
            alice = RawClient(http, stack.mcp_url, mint(stack.stack, "alice"))
            asked = (await alice.call("delete_report", {"target": "Q2"})).json()["result"]
            other = RawClient(http, stack.mcp_url, mint(stack.stack, "alice", aud="https://other.example.com/mcp"))
            return await other.call(
                "delete_report", {"target": "Q2"}, inputResponses=YES, requestState=asked["requestState"]
            )

    before = stack.effects()
    response = asyncio.run(attempt())
    assert response.status_code == 401
    assert 'error="invalid_token"' in response.headers["www-authenticate"]
    assert stack.effects() == before


def test_answers_without_the_state_that_asked_for_them_are_asked_again(stack: RunningStack) -> None:
    """SECURITY 1: a client that drops the state does not skip the question."""

    async def attempt() -> dict[str, Any]:
        async with httpx2.AsyncClient(trust_env=False) as http:
            alice = RawClient(http, stack.mcp_url, mint(stack.stack, "alice"))
            response = await alice.call("delete_report", {"target": "Q2"}, inputResponses=YES)
            result: dict[str, Any] = response.json()["result"]
            return result

    before = stack.effects()
    result = asyncio.run(attempt())
    assert result["resultType"] == "input_required"
    assert "confirm" in result["inputRequests"]
    assert stack.effects() == before


@pytest.mark.slow
def test_two_hundred_flows_at_once_are_neither_lost_nor_crossed(wide_stack: RunningStack) -> None:
    """200 users, each with three questions over three rounds, on four environments that share nothing."""
    stack = wide_stack.stack

    async def flow(http: httpx2.AsyncClient, number: int) -> tuple[dict[str, Any], set[str]]:
        client = RawClient(http, stack.mcp_url, mint(stack, f"user-{number}"))
        arguments, site = {"site": f"site-{number}"}, number
        rounds: list[httpx2.Response] = [await client.call("plan_visit", arguments)]
        answers: dict[str, Any] = {
            "when": accept(day=f"2026-12-{1 + site % 28:02}"),
            "equipment": accept(items=["laptop"] if site % 2 else ["printer", "cables"]),
        }
        for given in (answers, {"crew": accept(people=1 + site % 4)}):
            state = rounds[-1].json()["result"]["requestState"]
            rounds.append(await client.call("plan_visit", arguments, inputResponses=given, requestState=state))
        return rounds[-1].json()["result"], {each.headers["x-emulator-environment"] for each in rounds}

    async def all_flows() -> list[tuple[dict[str, Any], set[str]]]:
        limits = httpx2.Limits(max_connections=200)
        async with httpx2.AsyncClient(trust_env=False, timeout=60, limits=limits) as http:
            return await asyncio.gather(*(flow(http, number) for number in range(200)))

    results = asyncio.run(all_flows())
    for number, (result, _) in enumerate(results):
        assert result["structuredContent"] == {
            "site": f"site-{number}",
            "day": f"2026-12-{1 + number % 28:02}",
            "items": ["laptop"] if number % 2 else ["printer", "cables"],
            "people": 1 + number % 4,
        }
    assert {name for _, served_by in results for name in served_by} == {"mcp-1", "mcp-2", "mcp-3", "mcp-4"}
    assert len(wide_stack.effects()) == 200


def test_nothing_secret_reaches_the_log(stack: RunningStack) -> None:
    """SECURITY 1, leaked log: no token, no state, no answer, no user."""

    async def attempt() -> list[str]:
        async with httpx2.AsyncClient(trust_env=False) as http:
            token = mint(stack.stack, "carol-the-unmistakable")
            carol = RawClient(http, stack.mcp_url, token)
            asked = (await carol.call("close_ticket", {"id": "T-1"})).json()["result"]
            answer = {"close": accept(resolution="fixed", note="a very private remark")}
            await carol.call("close_ticket", {"id": "T-1"}, inputResponses=answer, requestState=asked["requestState"])
            tampered = asked["requestState"][:-4] + "AAAA"
            await carol.call("close_ticket", {"id": "T-1"}, inputResponses=answer, requestState=tampered)
            return [token, token.rpartition(".")[2], asked["requestState"], tampered]

    secrets = asyncio.run(attempt())
    log = "\n".join(stack.stack.emulator.logs())
    assert "requestState refused: tag" in log, "the reason is for the log"
    for secret in [*secrets, "a very private remark", "carol-the-unmistakable"]:
        assert secret not in log
    assert json.dumps(secrets)[2:40] not in log

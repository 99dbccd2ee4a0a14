"""`make demo`: one tool, one question, two instances, with the official Python client."""

import argparse
import asyncio
import json
import sys
import textwrap
from typing import Any

import httpx2
from mcp_types import CallToolResult, ElicitRequestFormParams, ElicitRequestParams, ElicitResult, TextContent

from infra.local.emulator import EmulatorError
from infra.local.python_client import signed_in_client
from infra.local.stack import LocalStack, local_stack


def _say(line: str = "") -> None:
    print(line, flush=True)


class _Wire:
    """Prints the MCP exchanges as they happen, and remembers which environments served them."""

    def __init__(self) -> None:
        self.served_by: list[str] = []

    async def show(self, response: httpx2.Response) -> None:
        request = response.request
        if request.url.path != "/mcp" or request.headers.get("mcp-method") != "tools/call":
            return
        await response.aread()
        sent, received = json.loads(request.content), response.json()
        environment, milliseconds = (response.headers[f"x-emulator-{name}"] for name in ("environment", "duration-ms"))
        self.served_by.append(environment)
        result: dict[str, Any] = received.get("result", {})
        _say(f"  round {len(self.served_by)}   served by {environment} in {milliseconds} ms")
        _say(f"    client -> tools/call {sent['params']['name']} {json.dumps(sent['params']['arguments'])}")
        for key, answer in sent["params"].get("inputResponses", {}).items():
            _say(f"              answer {key}: {json.dumps(answer)}")
        if "requestState" in sent["params"]:
            _say(f"              requestState {_short(sent['params']['requestState'])}")
        _say(f"    server -> {result.get('resultType', received.get('error'))}")
        for key, asked in result.get("inputRequests", {}).items():
            _say(f"              asks {key}: {asked['params']['message']}")
        if "requestState" in result:
            _say(f"              requestState {_short(result['requestState'])}")


def _short(state: str) -> str:
    return f"{state[:24]}...  ({len(state)} characters, sealed)"


def _answer(params: ElicitRequestParams) -> ElicitResult:
    assert isinstance(params, ElicitRequestFormParams)
    _say(f"    user   -> ticks the box under: {params.message}")
    return ElicitResult(action="accept", content={"confirm": True})


def _text(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


async def demonstrate(stack: LocalStack) -> None:
    """Show a deletion that asks first. Fails if one environment served both rounds."""
    wire = _Wire()
    _say(f"\nAlice's client connects to {stack.mcp_url}, signs in, and calls a tool that must ask.\n")
    async with signed_in_client(stack.mcp_url, user="alice", answer=_answer, on_response=wire.show) as client:
        result = await client.call_tool("delete_report", {"target": "Q3"})
        _say(f"\n  result: {_text(result)}\n")
        if len(set(wire.served_by)) < 2:
            raise AssertionError(f"One environment served all rounds: {wire.served_by}")
    _say(
        textwrap.dedent(
            """\
            No instance kept anything between the rounds: what the second one needed came back with the
            request, sealed, and opens only for this user, this client, this tool and these arguments.
            """
        )
    )


async def _main(environments: int) -> None:
    async with local_stack(environments=environments, progress=_say) as stack:
        await demonstrate(stack)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m infra.local.demo", description="A round trip, readably.")
    parser.add_argument("--environments", type=int, default=2, help="execution environments for each function (2)")
    try:
        asyncio.run(_main(parser.parse_args().environments))
    except EmulatorError as error:
        sys.exit(f"\nIt does not start: {error}")


if __name__ == "__main__":
    main()

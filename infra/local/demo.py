"""`make demo`: a question and a connection, each over several instances, with the official Python client."""

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx2
from mcp_types import CallToolResult, ElicitRequestFormParams, ElicitRequestParams, ElicitResult, TextContent

from infra.local.desk import desk_stack
from infra.local.emulator import EmulatorError
from infra.local.person import Browser, Intent, new_browser
from infra.local.python_client import signed_in_client
from infra.local.stack import LocalStack


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
            if "url" in asked["params"]:
                _say(f"              at {asked['params']['url'][:-33]}...")
        if "requestState" in result:
            _say(f"              requestState {_short(result['requestState'])}")


def _short(state: str) -> str:
    return f"{state[:24]}...  ({len(state)} characters, sealed)"


class _User:
    """Answers for Alice: ticks the box, and connects in a browser when the same link comes a second time."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._links: list[str] = []

    def __call__(self, params: ElicitRequestParams) -> ElicitResult:
        if isinstance(params, ElicitRequestFormParams):
            _say(f"    user   -> ticks the box under: {params.message}")
            return ElicitResult(action="accept", content={"confirm": True})
        self._links.append(params.url)
        if len(self._links) == 1:
            _say("    user   -> agrees to open the link, and the client retries at once: too early")
        else:
            assert params.url == self._links[0], "an early retry must get the same link"
            _say(f"    user   -> opens the same link in {self._browser.name}:")
            visited = self._browser.open(params.url, Intent(accounts=("alice", "alice-hub")))
            for page in visited.pages:
                _say(f"              {page}")
        return ElicitResult(action="accept")


def _text(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


async def demonstrate(stack: LocalStack, browser: Browser) -> None:
    """Show a deletion that asks first, and a connection. Fails if one environment served all rounds of a call."""
    wire = _Wire()
    _say(f"\nAlice's client connects to {stack.mcp_url}, signs in, and calls a tool that must ask.\n")
    async with signed_in_client(stack.mcp_url, user="alice", answer=_User(browser), on_response=wire.show) as client:
        for tool, arguments, epilogue in (
            ("delete_report", {"target": "Q3"}, _SEALED),
            ("list_repositories", {}, _CONNECTED),
        ):
            wire.served_by.clear()
            result = await client.call_tool(tool, arguments)
            _say(f"\n  result: {_text(result)}\n\n{epilogue}")
            if result.is_error or len(set(wire.served_by)) < 2:
                raise AssertionError(f"{tool} did not finish over two environments: {wire.served_by}")


_SEALED = """\
No instance kept anything between the rounds: what the second one needed came back with the
request, sealed, and opens only for this user, this client, this tool and these arguments.
"""
_CONNECTED = """\
The early retry was answered at once with the same link. Who opened it had to be Alice, at the start
and at the end; her token for Local Hub stays in the vault, and never passed the client.
"""


async def _main(environments: int) -> None:
    with tempfile.TemporaryDirectory() as folder, new_browser() as browser:
        async with desk_stack(Path(folder), environments=environments, progress=_say) as stack:
            await demonstrate(stack, browser)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m infra.local.demo", description="A round trip, readably.")
    parser.add_argument("--environments", type=int, default=2, help="execution environments for each function (2)")
    try:
        asyncio.run(_main(parser.parse_args().environments))
    except EmulatorError as error:
        sys.exit(f"\nIt does not start: {error}")


if __name__ == "__main__":
    main()

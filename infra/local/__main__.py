"""`make run`: starts the local stack, says what to do next, and stays until it is stopped."""

import argparse
import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Mapping

from app.tools import TOOLS
from infra.local.emulator import EmulatorError
from infra.local.stack import LocalStack, local_stack


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m infra.local", description="Run the functions of template.yaml here."
    )
    parser.add_argument("--port", type=int, default=8000, help="port of the gateway (default 8000, 0 for a free one)")
    parser.add_argument("--identity-port", type=int, default=8001, help="port of the authorization server (8001)")
    parser.add_argument("--hub-port", type=int, default=8002, help="port of Local Hub, the third party (8002)")
    parser.add_argument("--environments", type=int, default=2, help="execution environments for each function (2)")
    parser.add_argument("--snapstart", action="store_true", help="start environments as restored from a snapshot")
    parser.add_argument("--quiet", action="store_true", help="leave out the functions' log lines")
    return parser.parse_args()


def own_providers(environment: Mapping[str, str]) -> dict[str, object]:
    """Third parties of the shell's, as a deployment has them. What is wrong with one is for the functions to say."""
    try:
        providers = json.loads(environment.get("MCP_PROVIDERS") or "{}")
    except ValueError as error:
        raise EmulatorError(
            f'MCP_PROVIDERS is no JSON ({error}): write it like {{"github": {{"client_id": "..."}}}}.'
        ) from None
    if not isinstance(providers, dict):
        raise EmulatorError('MCP_PROVIDERS must be a JSON object, like {"github": {"client_id": "..."}}.')
    return providers


def _next_steps(stack: LocalStack, providers: Mapping[str, object]) -> str:
    callbacks = "".join(
        f"\n  Redirect URI          {stack.emulator.url}/oauth/callback/{name}   "
        f"(register it at {_title(name, provider)})"
        for name, provider in providers.items()
    )
    return f"""
Ready.

  MCP endpoint          {stack.mcp_url}
  Authorization server  {stack.identity.url}   (sign in as Alice or Bob, there is no password)
  Local Hub             {stack.hub.url}   (a third party to connect, with an API)
  Your connections      {stack.emulator.url}/connections{callbacks}

Open {stack.emulator.url}/ to call a tool, answer its question, and watch the rounds on the wire.
Connect any MCP client to the endpoint: it finds the authorization server and opens the sign-in page.
{_by_hand(stack)}

Replace every instance, and see that a state sealed before still opens:

  curl -X POST {stack.emulator.url}/_emulator/restart

Ctrl-C stops everything.
"""


def _title(name: str, provider: object) -> str:
    return str(provider.get("title", name)) if isinstance(provider, dict) else name


def _by_hand(stack: LocalStack) -> str:
    names = [tool.name for tool in TOOLS]
    if not names:
        return "No tool is served yet. Make one, and start again:\n\n  make new-tool NAME=archive_report KIND=form"
    example = "delete_report" in names
    call = """delete_report ARGUMENTS='{"target": "Q3"}'""" if example else f"{names[0]} ARGUMENTS='{{}}'"
    elsewhere = "" if stack.mcp_url.endswith(":8000/mcp") else f" CALL='--url {stack.mcp_url}'"
    return f"Or call one at the terminal, as Alice:\n\n  make call TOOL={call}{elsewhere}"


async def _run(arguments: argparse.Namespace) -> None:
    stop = asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)

    providers = own_providers(os.environ)
    secrets = {name: value for name, value in os.environ.items() if re.fullmatch(r"MCP_PROVIDER_\w+_SECRET", name)}

    async def serve() -> None:
        async with local_stack(
            providers=providers,
            environment=secrets,
            port=arguments.port,
            identity_port=arguments.identity_port,
            hub_port=arguments.hub_port,
            environments=arguments.environments,
            snapstart=arguments.snapstart,
            log=None if arguments.quiet else _say,
            progress=_say,
        ) as stack:
            _say(_next_steps(stack, providers))
            await asyncio.Event().wait()

    serving, stopping = asyncio.create_task(serve()), asyncio.create_task(stop.wait())
    await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if serving.done():
        serving.result()
    _say("Stopping ...")
    serving.cancel()
    await asyncio.wait({serving})


def _say(line: str) -> None:
    print(line, flush=True)


def main() -> None:
    try:
        asyncio.run(_run(_arguments()))
    except EmulatorError as error:
        sys.exit(f"\nIt does not start: {error}")


if __name__ == "__main__":
    main()

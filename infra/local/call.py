"""`make call`: call a tool of the running stack as Alice, and answer its questions at the terminal."""

import argparse
import asyncio
import contextlib
import json
import sys
from typing import Any, Final

import httpx2
from mcp import MCPError
from mcp_types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult, TextContent

from infra.local.python_client import signed_in_client

# An empty line leaves the tick out, as a form does.
_TICKS: Final = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False, "": False}


def _ask(params: ElicitRequestParams) -> ElicitResult:
    print(f"\n{params.message}")
    if not isinstance(params, ElicitRequestFormParams):
        print(f"Open {params.url}")
        _typed("Press Enter when you have finished there. ")
        return ElicitResult(action="accept")
    choice = _typed("[a]nswer, [d]ecline, or anything else to dismiss: ").lower()
    if choice != "a":
        return ElicitResult(action="decline" if choice == "d" else "cancel")
    content = {}
    for name, schema in params.requested_schema["properties"].items():
        text = _typed(f"  {_label(name, schema)}: ")
        while schema["type"] == "boolean" and text.lower() not in _TICKS:
            text = _typed("  Type y or n: ")
        if text:
            content[name] = _value(text, schema)
    return ElicitResult(action="accept", content=content)


def _typed(prompt: str) -> str:
    """A line of the terminal's; an empty one at its end, which dismisses the question."""
    try:
        return input(prompt).strip()
    except EOFError:
        print()
        return ""


def _label(name: str, schema: dict[str, Any]) -> str:
    items = schema.get("items", schema)
    options = items.get("enum") or [each["const"] for each in items.get("oneOf", items.get("anyOf", []))]
    kind = " | ".join(options) if options else {"boolean": "y or n"}.get(schema["type"], schema["type"])
    several = ", several with commas" if schema["type"] == "array" else ""
    return f"{schema.get('description', name)} ({kind}{several})"


def _value(text: str, schema: dict[str, Any]) -> Any:
    """What a form would make of the text; the server says what does not fit."""
    match schema["type"]:
        case "boolean":
            return _TICKS[text.lower()]
        case "array":
            return [each.strip() for each in text.split(",")]
        case "integer" | "number":
            try:
                return json.loads(text)
            except ValueError:
                return text
        case _:
            return text


def _json_object(text: str) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        if isinstance(value := json.loads(text), dict):
            return value
    raise argparse.ArgumentTypeError(f"""{text} is no JSON object. Write it like ARGUMENTS='{{"target": "Q3"}}'.""")


async def _call(url: str, user: str, tool: str, arguments: dict[str, Any]) -> int:
    async with signed_in_client(url, user=user, answer=_ask, client_name="Roundtrip call") as client:
        try:
            result = await client.call_tool(tool, arguments)
        except MCPError as error:
            served = ", ".join(each.name for each in (await client.list_tools()).tools)
            print(f"\n{error}\nThe tools are: {served or 'none yet. Make one with make new-tool'}.")
            print(
                "A new one is served when app/tools/__init__.py imports it, and every environment was replaced: "
                f"curl -X POST {url.removesuffix('/mcp')}/_emulator/restart"
            )
            return 1
    print("\n" + "\n".join(block.text for block in result.content if isinstance(block, TextContent)))
    return 1 if result.is_error else 0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m infra.local.call", description="Call a tool of the running stack.")
    parser.add_argument("tool")
    parser.add_argument("arguments", type=_json_object, help="a JSON object")
    parser.add_argument("--url", default="http://127.0.0.1:8000/mcp")
    parser.add_argument("--user", default="alice", choices=["alice", "bob"])
    given = parser.parse_args()
    if not given.tool:
        parser.error('name a tool: make call TOOL=archive_report ARGUMENTS=\'{"name": "Q3"}\'')
    try:
        status = asyncio.run(_call(given.url, given.user, given.tool, given.arguments))
    except* httpx2.ConnectError:
        sys.exit(
            f"Nothing answers at {given.url}: start the stack in another terminal with `make run`, or say where it "
            "runs: make call CALL='--url http://127.0.0.1:PORT/mcp' TOOL=..."
        )
    sys.exit(status)


if __name__ == "__main__":
    main()

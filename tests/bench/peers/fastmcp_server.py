"""FastMCP on Lambda, behind Mangum, with its lifespan held open: quicker than to run it once in every call."""

import asyncio
import base64
import json
import os
from typing import Annotated, Any

from fastmcp import Context, FastMCP  # type: ignore[import-not-found]  # installed by the benchmark alone
from fastmcp.exceptions import ToolError  # type: ignore[import-not-found]
from fastmcp.server.auth.providers.jwt import JWTVerifier  # type: ignore[import-not-found]
from mangum import Mangum
from mcp.server.request_state import RequestStateSecurity
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from pydantic import BaseModel, Field

RESOURCE = os.environ["MCP_RESOURCE_URL"]
ISSUER = os.environ["MCP_ISSUER"]

_in_process = "BENCH_PUBLIC_KEY" in os.environ
server = FastMCP(
    "bench",
    auth=JWTVerifier(
        public_key=os.environ["BENCH_PUBLIC_KEY"] if _in_process else None,
        jwks_uri=None if _in_process else os.environ["MCP_JWKS_URL"],
        issuer=ISSUER,
        audience=RESOURCE,
        algorithm="ES256",
    ),
    request_state_security=RequestStateSecurity(
        keys=[base64.urlsafe_b64decode(os.environ["MCP_SEALING_KEYS"].partition(":")[2])]
    ),
)


class Confirm(BaseModel):
    confirm: bool = Field(description="Tick to delete the report for good")


def question(message: str, state: str) -> InputRequiredResult:
    params = ElicitRequestFormParams(message=message, requested_schema=Confirm.model_json_schema())
    return InputRequiredResult(input_requests={"confirm": ElicitRequest(params=params)}, request_state=state)


def answered(ctx: Any) -> ElicitResult | None:
    # Without a state that was verified, an answer is something that anybody may send.
    responses = ctx.input_responses if ctx.request_state is not None else None
    return ElicitResult.model_validate(responses["confirm"], from_attributes=True) if responses else None


@server.tool  # type: ignore[untyped-decorator]
async def delete_report(
    target: Annotated[str, Field(description="Report name, like Q3")], ctx: Context
) -> str | InputRequiredResult:
    """Delete a quarterly report for good. Asks the user first."""
    answer = answered(ctx)
    if answer is None:
        return question(f"Delete the report {target}? This cannot be undone.", "asked")
    if answer.action == "accept" and Confirm.model_validate(answer.content, strict=True).confirm:
        return f"{target} is deleted."
    raise ToolError("The user declined. The report is still there.")


async def another(
    target: Annotated[str, Field(description="Report name, like Q3")],
    count: Annotated[int, Field(description="How often", ge=1)] = 1,
) -> str:
    """Stand in a long list of tools."""
    return f"{target} {count}"


for number in range(1, int(os.environ.get("BENCH_TOOLS", "1"))):
    server.tool(another, name=f"tool_{number:04}")

if "BENCH_CARRY" in os.environ:

    @server.tool  # type: ignore[untyped-decorator]
    async def carry(size: int, ctx: Context) -> str | InputRequiredResult:
        """Carry so many bytes from one round to the next."""
        if answered(ctx) is None:
            return question("Carry on?", json.dumps("x" * size))
        return f"{len(json.loads(ctx.request_state))} bytes came back."


app = server.http_app(path="/mcp", json_response=True, stateless_http=True)
loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)


async def hold_open(started: asyncio.Event) -> None:
    async with app.router.lifespan_context(app):
        started.set()
        await asyncio.Event().wait()


async def start() -> "asyncio.Task[None]":
    started = asyncio.Event()
    task = asyncio.create_task(hold_open(started))
    await started.wait()
    return task


held = loop.run_until_complete(start())
handler = Mangum(app, lifespan="off")

"""The official Python SDK on Lambda: MCPServer behind Mangum, with the least change that survives a warm call.

Under Mangum's own lifespan handling every call after the first raises: the session manager runs once per instance.
So one event loop lives as long as the process, and a task on it holds the session manager open.
"""

import asyncio
import base64
import json
import os
from typing import Annotated, Any

import jwt
from mangum import Mangum
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.server.request_state import RequestStateSecurity
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult
from pydantic import AnyHttpUrl, BaseModel, Field

RESOURCE = os.environ["MCP_RESOURCE_URL"]
ISSUER = os.environ["MCP_ISSUER"]

if "BENCH_JWKS" in os.environ:
    _keys = {key["kid"]: jwt.PyJWK(key) for key in json.loads(os.environ["BENCH_JWKS"])["keys"]}

    def signing_key(token: str) -> jwt.PyJWK:
        return _keys[jwt.get_unverified_header(token)["kid"]]
else:
    signing_key = jwt.PyJWKClient(os.environ["MCP_JWKS_URL"]).get_signing_key_from_jwt  # noqa: TID251  what people use


class Verifier:
    async def verify_token(self, token: str) -> AccessToken | None:
        try:
            claims = jwt.decode(token, signing_key(token), algorithms=["ES256"], audience=RESOURCE, issuer=ISSUER)
        except (KeyError, jwt.PyJWTError):
            return None
        return AccessToken(
            token=token,
            client_id=claims["client_id"],
            scopes=claims["scope"].split(),
            expires_at=claims["exp"],
            resource=RESOURCE,
            subject=claims["sub"],
        )


server = MCPServer(
    "bench",
    token_verifier=Verifier(),
    auth=AuthSettings(issuer_url=AnyHttpUrl(ISSUER), resource_server_url=AnyHttpUrl(RESOURCE)),
    request_state_security=RequestStateSecurity(
        keys=[base64.urlsafe_b64decode(os.environ["MCP_SEALING_KEYS"].partition(":")[2])]
    ),
)


class Confirm(BaseModel):
    confirm: bool = Field(description="Tick to delete the report for good")


async def confirmation(target: str) -> Elicit[Confirm]:
    return Elicit(f"Delete the report {target}? This cannot be undone.", Confirm)


@server.tool()
async def delete_report(
    target: Annotated[str, Field(description="Report name, like Q3")],
    answer: Annotated[ElicitationResult[Confirm], Resolve(confirmation)],
) -> str:
    """Delete a quarterly report for good. Asks the user first."""
    if isinstance(answer, AcceptedElicitation) and answer.data.confirm:
        return f"{target} is deleted."
    raise ToolError("The user declined. The report is still there.")


async def another(
    target: Annotated[str, Field(description="Report name, like Q3")],
    count: Annotated[int, Field(description="How often", ge=1)] = 1,
) -> str:
    """Stand in a long list of tools."""
    return f"{target} {count}"


for number in range(1, int(os.environ.get("BENCH_TOOLS", "1"))):
    server.tool(name=f"tool_{number:04}")(another)

if "BENCH_CARRY" in os.environ:

    @server.tool()
    async def carry(size: int, ctx: Context[Any, Any]) -> str | InputRequiredResult:
        """Carry so many bytes from one round to the next."""
        if ctx.input_responses is None or ctx.request_state is None:
            schema = Confirm.model_json_schema()
            params = ElicitRequestFormParams(message="Carry on?", requested_schema=schema)
            return InputRequiredResult(
                input_requests={"confirm": ElicitRequest(params=params)}, request_state=json.dumps("x" * size)
            )
        return f"{len(json.loads(ctx.request_state))} bytes came back."


app = server.streamable_http_app(
    json_response=True,
    stateless_http=True,
    transport_security=TransportSecuritySettings(allowed_hosts=["mcp.example.com"]),
)
loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)


async def hold_open(started: asyncio.Event) -> None:
    async with server.session_manager.run():
        started.set()
        await asyncio.Event().wait()


async def start() -> "asyncio.Task[None]":
    started = asyncio.Event()
    task = asyncio.create_task(hold_open(started))
    await started.wait()
    return task


held = loop.run_until_complete(start())
handler = Mangum(app, lifespan="off")

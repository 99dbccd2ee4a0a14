"""The benchmark's tools for this project: takes the place of app/tools in the copy that is measured."""

import os
from typing import Annotated

from pydantic import BaseModel, Field

from app.toolkit import Accepted, Context, Features, InputRequired, Missing, Question, tool


class Confirm(BaseModel):
    confirm: bool = Field(description="Tick to delete the report for good")


@tool
def delete_report(target: Annotated[str, Field(description="Report name, like Q3")], ctx: Context) -> str:
    """Delete a quarterly report for good. Asks the user first."""
    match ctx.ask("confirm", f"Delete the report {target}? This cannot be undone.", Confirm):
        case Accepted(Confirm(confirm=True)):
            return f"{target} is deleted."
        case _:
            return ctx.stop("The user declined. The report is still there.")


def another(
    target: Annotated[str, Field(description="Report name, like Q3")],
    count: Annotated[int, Field(description="How often", ge=1)] = 1,
) -> str:
    """Stand in a long list of tools."""
    return f"{target} {count}"


@tool
def carry(size: int, ctx: Context) -> str | InputRequired:
    """Carry so many bytes from one round to the next."""
    match ctx.responses.get("confirm", Confirm):
        case Missing():
            return InputRequired({"confirm": Question("Carry on?", Confirm)}, state="x" * size)
        case _:
            return f"{len(ctx.state)} bytes came back."


@tool
def whoami(ctx: Context) -> str:
    """Say who the user is at the third party."""
    return f"Connected as {ctx.connect('hub', scopes=['repo:read']).account}."


FEATURES = Features.of(
    (
        delete_report,
        *(tool(name=f"tool_{number:04}")(another) for number in range(1, int(os.environ.get("BENCH_TOOLS", "1")))),
        *((carry,) if "BENCH_CARRY" in os.environ else ()),
        *((whoami,) if "MCP_REDIS_URL" in os.environ else ()),
    )
)

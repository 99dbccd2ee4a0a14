"""New tool: asks its user before it acts."""

from typing import Annotated

from pydantic import BaseModel, Field

from app.toolkit import Accepted, Cancelled, Context, Declined, tool


class Confirm(BaseModel):
    confirm: bool = Field(description="Tick to go on")


@tool(title="New tool", destructive=True)
def new_tool(target: Annotated[str, Field(description="What to do it to")], ctx: Context) -> str:
    """Say in one sentence what this does: the model chooses it by that. Asks the user first."""
    match ctx.ask("confirm", f"Go on with {target}?", Confirm):
        case Accepted(Confirm(confirm=True)):
            # The effect belongs here, after the last question: what stands above runs again in every round.
            return f"{target}: done."
        case Accepted() | Declined():
            return ctx.stop("The user declined. Nothing has changed.")
        case Cancelled():
            return ctx.stop("The user dismissed the question. Nothing has changed.")

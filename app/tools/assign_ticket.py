"""Example: a tool that asks only for what the model left out."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from app.toolkit import Accepted, Context, tool
from app.tools.desk import AGENTS, desk


class Assign(BaseModel):
    agent: Literal["ana", "ben", "chioma"] = Field(description="Who takes it")


@tool(title="Assign a ticket", destructive=False)
def assign_ticket(
    id: Annotated[str, Field(description="Ticket id, like T-1")],
    ctx: Context,
    agent: Annotated[str | None, Field(description="Who takes it; the user is asked if this is left out")] = None,
) -> str:
    """Assign a support ticket to an agent."""
    ticket = desk.tickets.get(id) or ctx.fail(f"There is no ticket {id}.")
    if agent is None:
        match ctx.ask("agent", f"Who takes {id} ({ticket.title})?", Assign):
            case Accepted(Assign(agent=chosen)):
                agent = chosen
            case _:
                return ctx.stop(f"The user did not choose an agent. The ticket {id} is not assigned.")
    if agent not in AGENTS:
        ctx.fail(f"There is no agent {agent}. There are: {', '.join(AGENTS)}.")
    ticket.agent = agent
    desk.record(f"assigned {id} to {agent}")
    return f"{agent} takes {id}."

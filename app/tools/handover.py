"""Example: a prompt with a choice, and a question where the choice was left out."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from app.toolkit import Accepted, Context, prompt
from app.tools.desk import desk


class Colleague(BaseModel):
    agent: Literal["ana", "ben", "chioma"] = Field(description="Whose tickets")


@prompt(title="Hand over the open tickets")
def handover(
    ctx: Context, agent: Annotated[Literal["ana", "ben", "chioma", ""], Field(description="Whose tickets")] = ""
) -> str:
    """Write a handover note for the open tickets of one agent."""
    name: str = agent
    if not name:
        match ctx.ask("agent", "Whose tickets shall be handed over?", Colleague):
            case Accepted(Colleague(agent=chosen)):
                name = chosen
            case _:
                ctx.stop("The user did not say whose tickets.")
    tickets = [f"- {each.id}: {each.title}" for each in desk.tickets.values() if each.agent == name]
    return "\n".join([f"Write a short handover note for {name}'s open tickets:", *(tickets or ["(none)"])])

"""Example: a question with a choice, a structured result, and an effect that happens once."""

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, Field

from app.toolkit import Accepted, Cancelled, Context, Declined, tool
from app.tools.desk import desk


class Resolution(StrEnum):
    FIXED = "fixed"
    DUPLICATE = "duplicate"
    WONT_FIX = "wont-fix"


class Close(BaseModel):
    resolution: Resolution = Field(description="Why the ticket is closed")
    note: str = Field(default="", max_length=500, description="What the customer should know")


class ClosedTicket(BaseModel):
    id: str
    resolution: Resolution
    note: str


@tool(title="Close a ticket", destructive=True, once=True)
def close_ticket(id: Annotated[str, Field(description="Ticket id, like T-1")], ctx: Context) -> ClosedTicket:
    """Close a support ticket and email the customer. Asks the user for the resolution first."""
    ticket = desk.tickets.get(id) or ctx.fail(f"There is no ticket {id}.")
    match ctx.ask("close", f"Close {id} ({ticket.title})?", Close):
        case Accepted(Close(resolution=resolution, note=note)):
            ticket.status = "closed"
            desk.record(f"closed {id} as {resolution}")
            return ClosedTicket(id=id, resolution=resolution, note=note)
        case Declined():
            return ctx.stop(f"The user declined. Leave the ticket {id} open.")
        case Cancelled():
            return ctx.stop(f"The user dismissed the question. The ticket {id} is still open.")

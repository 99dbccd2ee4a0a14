"""Example: a tool that the user allows once, and may then be called again without a question."""

from typing import Annotated

from pydantic import Field

from app.toolkit import Context, tool
from app.tools.desk import desk


@tool(title="Reply to a customer", open_world=True, once=True, approval="session", approval_for=["id"])
def reply_to_customer(
    id: Annotated[str, Field(description="Ticket id, like T-1")],
    text: Annotated[str, Field(description="What the customer gets to read", max_length=2000)],
    ctx: Context,
) -> str:
    """Send a reply to the customer of a ticket. The user allows it once for each ticket."""
    ticket = desk.tickets.get(id) or ctx.fail(f"There is no ticket {id}.")
    desk.record(f"replied to {ticket.id}")
    return f"The customer of {ticket.id} has the reply."

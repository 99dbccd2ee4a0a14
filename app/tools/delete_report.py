"""Example: a destructive tool that asks before it deletes."""

from typing import Annotated

from pydantic import BaseModel, Field

from app.toolkit import Accepted, Cancelled, Context, Declined, tool
from app.tools.desk import desk


class Confirm(BaseModel):
    confirm: bool = Field(description="Tick to delete the report for good")


@tool(title="Delete a report", destructive=True, scopes=["reports:delete"])
def delete_report(target: Annotated[str, Field(description="Report name, like Q3")], ctx: Context) -> str:
    """Delete a quarterly report for good. Asks the user first."""
    if target not in desk.reports:
        ctx.fail(f"There is no report {target}. There are: {', '.join(sorted(desk.reports))}.")
    match ctx.ask("confirm", f"Delete the report {target}? This cannot be undone.", Confirm):
        case Accepted(Confirm(confirm=True)):
            desk.reports.discard(target)
            desk.record(f"deleted {target}")
            return f"The report {target} is deleted."
        case Accepted() | Declined():
            return ctx.stop(f"The user declined. The report {target} is still there.")
        case Cancelled():
            return ctx.stop(f"The user dismissed the question. The report {target} is still there.")

"""Example: three questions over two rounds, with a date, a multiple choice and a number."""

from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from app.toolkit import Accepted, Context, Question, tool
from app.tools.desk import desk


class When(BaseModel):
    day: date = Field(description="Day of the visit")


class Equipment(BaseModel):
    items: list[Literal["laptop", "printer", "router", "cables"]] = Field(min_length=1, description="What to bring")


class Crew(BaseModel):
    people: int = Field(default=1, ge=1, le=4, description="How many technicians")


class Visit(BaseModel):
    site: str
    day: date
    items: list[str]
    people: int


@tool(title="Plan an on-site visit", destructive=False)
def plan_visit(site: Annotated[str, Field(description="Customer site, like Lisbon")], ctx: Context) -> Visit:
    """Plan a technician's visit to a customer site. Asks for the day, the equipment and the crew."""
    first = ctx.ask_all(
        {
            "when": Question(f"When shall we visit {site}?", When),
            "equipment": Question(f"What shall we bring to {site}?", Equipment),
        }
    )
    match first["when"], first["equipment"]:
        case Accepted(When(day=day)), Accepted(Equipment(items=items)):
            pass
        case _:
            return ctx.stop("The user did not answer. No visit is planned.")
    match ctx.ask("crew", f"{site} on {day:%d %B %Y}, with {', '.join(items)}: how many technicians?", Crew):
        case Accepted(Crew(people=people)):
            desk.record(f"planned {site} on {day}")
            return Visit(site=site, day=day, items=list(items), people=people)
        case _:
            return ctx.stop("The user did not confirm. No visit is planned.")

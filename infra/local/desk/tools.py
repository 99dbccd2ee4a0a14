"""The desk's tools, one for each way to ask. Imports nothing but the toolkit, as a tool of yours does.

Each environment has tickets and reports of its own. What was really done is in the log.
"""

import hashlib
import logging
import os
from datetime import date
from enum import Enum, StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from app.toolkit import (
    Accepted,
    Cancelled,
    Context,
    Declined,
    Features,
    InputRequired,
    Invalid,
    Missing,
    Question,
    tool,
)

AGENTS: Final = ("ana", "ben", "chioma")
TICKETS: Final = {"T-1": "Printer on fire", "T-2": "VPN drops every hour"}

_REPOSITORIES: Final = TypeAdapter(list[dict[str, Any]])

_reports = {"Q1", "Q2", "Q3"}
_log = logging.getLogger("roundtrip.desk")


def _done(effect: str) -> None:
    _log.info("effect: %s", effect)


class Confirm(BaseModel):
    confirm: bool = Field(description="Tick to delete the report for good")


@tool(title="Delete a report", destructive=True, scopes=["reports:delete"])
def delete_report(target: Annotated[str, Field(description="Report name, like Q3")], ctx: Context) -> str:
    """Delete a quarterly report for good. Asks the user first."""
    if target not in _reports:
        ctx.fail(f"There is no report {target}. There are: {', '.join(sorted(_reports))}.")
    match ctx.ask("confirm", f"Delete the report {target}? This cannot be undone.", Confirm):
        case Accepted(Confirm(confirm=True)):
            _reports.discard(target)
            _done(f"deleted {target}")
            return f"The report {target} is deleted."
        case Accepted() | Declined():
            return ctx.stop(f"The user declined. The report {target} is still there.")
        case Cancelled():
            return ctx.stop(f"The user dismissed the question. The report {target} is still there.")


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


@tool(title="Close a ticket", destructive=True)
def close_ticket(id: Annotated[str, Field(description="Ticket id, like T-1")], ctx: Context) -> ClosedTicket:
    """Close a support ticket. Asks the user for the resolution first."""
    match ctx.ask("close", f"Close {id} ({_title(id, ctx)})?", Close):
        case Accepted(Close(resolution=resolution, note=note)):
            _done(f"closed {id} as {resolution}")
            return ClosedTicket(id=id, resolution=resolution, note=note)
        case Declined():
            return ctx.stop(f"The user declined. Leave the ticket {id} open.")
        case Cancelled():
            return ctx.stop(f"The user dismissed the question. The ticket {id} is still open.")


def _title(id: str, ctx: Context) -> str:
    return TICKETS.get(id) or ctx.fail(f"There is no ticket {id}.")


class Assign(BaseModel):
    agent: Literal["ana", "ben", "chioma"] = Field(description="Who takes it")


@tool(title="Assign a ticket", destructive=False)
def assign_ticket(
    id: Annotated[str, Field(description="Ticket id, like T-1")],
    ctx: Context,
    agent: Annotated[str | None, Field(description="Who takes it; the user is asked if this is left out")] = None,
) -> str:
    """Assign a support ticket to an agent. Asks only for what the model left out."""
    title = _title(id, ctx)
    if agent is None:
        match ctx.ask("agent", f"Who takes {id} ({title})?", Assign):
            case Accepted(Assign(agent=chosen)):
                agent = chosen
            case _:
                return ctx.stop(f"The user did not choose an agent. The ticket {id} is not assigned.")
    if agent not in AGENTS:
        ctx.fail(f"There is no agent {agent}. There are: {', '.join(AGENTS)}.")
    _done(f"assigned {id} to {agent}")
    return f"{agent} takes {id}."


class Stage(Enum):
    STAGING = "staging"
    CANARY = "prod-canary"
    PRODUCTION = "prod"


class Release(BaseModel):
    stage: Stage = Field(default=Stage.STAGING, description="Where to")
    note: str | None = Field(default=None, max_length=200, description="For the release log")


@tool(title="Deploy a service", destructive=True, scopes=["deployments:write"])
async def deploy(
    service: Annotated[str, Field(description="Service name, like billing")], ctx: Context
) -> str | InputRequired:
    """Deploy the newest build of a service. An async tool in the explicit style."""
    match ctx.responses.get("release", Release):
        case Missing():
            question = Question(f"Deploy {service}: where to?", Release)
            return InputRequired({"release": question}, state={"service": service})
        case Invalid(reason):
            question = Question(f"That does not work: {reason}. Deploy {service}: where to?", Release)
            return InputRequired({"release": question}, state=ctx.state)
        case Accepted(Release(stage=stage, note=note)):
            _done(f"deployed {ctx.state['service']} to {stage.value}")
            return f"{service} is on its way to {stage.value}{f': {note}' if note else ''}."
        case Declined():
            return ctx.stop(f"The user declined. {service} is not deployed.")
        case Cancelled():
            return ctx.stop(f"The user dismissed the question. {service} is not deployed.")


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
    """Plan a technician's visit. Asks three questions in two rounds."""
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
            _done(f"planned {site} on {day}")
            return Visit(site=site, day=day, items=list(items), people=people)
        case _:
            return ctx.stop("The user did not confirm. No visit is planned.")


class Charge(BaseModel):
    confirm: bool = Field(description="Tick to charge the card")


@tool(title="Charge a card", destructive=True, text_fallback=True)
def charge_card(cents: Annotated[int, Field(ge=1, le=100_000, description="Amount in cents")], ctx: Context) -> str:
    """Charge the customer's card with the user's API key, which is typed on our own page. Asks to confirm."""
    message = "Enter your payments API key on our page, to charge the card."
    api_key = ctx.secret("payments_api_key", message, label="Payments API key")
    match ctx.ask("charge", f"Charge {cents / 100:.2f} to the customer's card?", Charge):
        case Accepted(Charge(confirm=True)):
            _done(f"charged {cents} with the key {hashlib.sha256(api_key.encode()).hexdigest()[:8]}")
            return f"{cents / 100:.2f} are charged."
        case _:
            return ctx.stop("The user did not confirm. Nothing is charged.")


@tool(title="List my repositories", read_only=True, text_fallback=True)
def list_repositories(ctx: Context) -> Any:
    """List the user's repositories at Local Hub. The user connects their account in a browser first."""
    import httpx2

    message = "Connect your Local Hub account to list your repositories."
    hub = ctx.connect("hub", scopes=["repo:read", "user:read"], message=message)
    headers = {"authorization": f"Bearer {hub.access_token}"}
    with httpx2.Client(timeout=3, follow_redirects=False, trust_env=False) as client:
        response = client.get(f"{os.environ['HUB_API_URL']}/repositories", headers=headers)
    try:
        return _REPOSITORIES.validate_json(response.content)
    except ValidationError:
        return ctx.stop("Local Hub answered something unexpected. Try again later.")


@tool(title="Disconnect Local Hub", idempotent=True)
def disconnect(ctx: Context) -> str:
    """Forget the user's Local Hub connection, and revoke it there."""
    return "Local Hub is disconnected." if ctx.disconnect("hub") else "Local Hub was not connected."


FEATURES = Features.of(tuple(globals().values()))
TOOLS = FEATURES.tools

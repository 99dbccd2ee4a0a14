"""What every official client must manage with each tool of the desk: one table, several clients."""

from dataclasses import dataclass, field
from typing import Any

Content = dict[str, Any]


@dataclass(frozen=True)
class Scenario:
    """A call, the user's answers in the order of the questions, and what must come of it."""

    name: str
    tool: str
    arguments: dict[str, Any]
    answers: tuple[dict[str, Any], ...]
    text: str
    """What the result's text contains."""
    is_error: bool = False
    effects: tuple[str, ...] = ()
    rounds: int = 2
    served_by: int = field(default=2, repr=False)
    """How many environments must have taken part at least."""


def accept(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


DECLINE: dict[str, Any] = {"action": "decline"}
CANCEL: dict[str, Any] = {"action": "cancel"}
DAY, BRING, CREW = accept(day="2026-12-24"), accept(items=["laptop", "cables"]), accept(people=2)

SCENARIOS = (
    Scenario(
        "delete accepted",
        "delete_report",
        {"target": "Q3"},
        (accept(confirm=True),),
        "The report Q3 is deleted.",
        effects=("deleted Q3",),
    ),
    Scenario("delete unticked", "delete_report", {"target": "Q1"}, (accept(confirm=False),), "declined", is_error=True),
    Scenario("delete declined", "delete_report", {"target": "Q1"}, (DECLINE,), "declined", is_error=True),
    Scenario("delete cancelled", "delete_report", {"target": "Q1"}, (CANCEL,), "dismissed", is_error=True),
    Scenario(
        "delete nothing", "delete_report", {"target": "Q9"}, (), "no report Q9", is_error=True, rounds=1, served_by=1
    ),
    Scenario(
        "close accepted",
        "close_ticket",
        {"id": "T-1"},
        (accept(resolution="duplicate", note="Größe 😀"),),
        "Größe 😀",
        effects=("closed T-1 as duplicate",),
    ),
    Scenario("close declined", "close_ticket", {"id": "T-2"}, (DECLINE,), "declined", is_error=True),
    Scenario("close cancelled", "close_ticket", {"id": "T-2"}, (CANCEL,), "dismissed", is_error=True),
    Scenario(
        "close answered wrongly first",
        "close_ticket",
        {"id": "T-1"},
        (accept(resolution="lost"), accept(resolution="fixed", note="")),
        '"fixed"',
        effects=("closed T-1 as fixed",),
        rounds=3,
    ),
    Scenario(
        "assign asked",
        "assign_ticket",
        {"id": "T-2"},
        (accept(agent="ana"),),
        "ana takes T-2.",
        effects=("assigned T-2 to ana",),
    ),
    Scenario(
        "assign not asked",
        "assign_ticket",
        {"id": "T-2", "agent": "chioma"},
        (),
        "chioma takes T-2.",
        effects=("assigned T-2 to chioma",),
        rounds=1,
        served_by=1,
    ),
    Scenario("assign declined", "assign_ticket", {"id": "T-2"}, (DECLINE,), "not assigned", is_error=True),
    Scenario(
        "deploy accepted",
        "deploy",
        {"service": "billing"},
        (accept(stage="prod-canary", note="second try"),),
        "billing is on its way to prod-canary: second try.",
        effects=("deployed billing to prod-canary",),
    ),
    Scenario(
        "deploy answered wrongly first",
        "deploy",
        {"service": "billing"},
        (accept(stage="moon"), accept(stage="staging")),
        "billing is on its way to staging.",
        effects=("deployed billing to staging",),
        rounds=3,
    ),
    Scenario("deploy declined", "deploy", {"service": "billing"}, (DECLINE,), "declined", is_error=True),
    Scenario("deploy cancelled", "deploy", {"service": "billing"}, (CANCEL,), "dismissed", is_error=True),
    Scenario(
        "visit planned",
        "plan_visit",
        {"site": "Lisbon"},
        (DAY, BRING, CREW),
        '"people": 2',
        effects=("planned Lisbon on 2026-12-24",),
        rounds=3,
    ),
    Scenario(
        "visit answered wrongly once",
        "plan_visit",
        {"site": "Porto"},
        (DAY, accept(items=["rocket"]), BRING, accept(people=9), CREW),
        '"people": 2',
        effects=("planned Porto on 2026-12-24",),
        rounds=5,
    ),
    Scenario("visit declined", "plan_visit", {"site": "Faro"}, (DAY, DECLINE), "No visit", is_error=True),
    Scenario(
        "visit cancelled", "plan_visit", {"site": "Faro"}, (DAY, BRING, CANCEL), "No visit", is_error=True, rounds=3
    ),
)

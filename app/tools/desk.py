"""The help desk behind the example tools, in memory. Yours is a database or an API.

Each execution environment has its own copy, so an effect is visible where it happened, and in the log.
"""

import logging
from dataclasses import dataclass, field

_log = logging.getLogger("roundtrip.desk")

AGENTS = ("ana", "ben", "chioma")
PRICES = {"fuser": 8900, "toner": 4200}
"""Cents for each spare part."""


@dataclass
class Ticket:
    id: str
    title: str
    status: str = "open"
    agent: str | None = None


@dataclass
class Desk:
    """Tickets, reports and releases, and a journal of everything that was really done."""

    tickets: dict[str, Ticket] = field(
        default_factory=lambda: {
            "T-1": Ticket("T-1", "Printer on fire"),
            "T-2": Ticket("T-2", "VPN drops every hour", agent="ben"),
        }
    )
    reports: set[str] = field(default_factory=lambda: {"Q1", "Q2", "Q3"})
    journal: list[str] = field(default_factory=list)

    def record(self, effect: str) -> None:
        """Note an effect, in the journal and in the log."""
        self.journal.append(effect)
        _log.info("effect: %s", effect)


desk = Desk()


async def start_pipeline(service: str, stage: str) -> None:
    """Stands for an API that is called asynchronously."""
    desk.record(f"deployed {service} to {stage}")

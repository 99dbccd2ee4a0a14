"""assign_ticket: asks for the agent only if the model left it out."""

import pytest

from app.strict_json import JsonObject
from app.testing import Server, accept, cancel, decline
from app.tools.assign_ticket import assign_ticket
from app.tools.desk import Desk


def test_an_agent_that_the_model_names_is_not_asked_for(desk: Desk) -> None:
    alice = Server([assign_ticket]).client()
    assert alice.call("assign_ticket", {"id": "T-1", "agent": "ben"}).text == "ben takes T-1."
    assert len(alice.rounds) == 1
    assert desk.tickets["T-1"].agent == "ben"


@pytest.mark.parametrize("left_out", [{}, {"agent": None}], ids=["absent", "null"])
def test_an_agent_that_was_left_out_is_asked_for(desk: Desk, left_out: JsonObject) -> None:
    alice = Server([assign_ticket]).client(answers={"agent": accept(agent="chioma")})
    assert alice.call("assign_ticket", {"id": "T-1", **left_out}).text == "chioma takes T-1."
    assert desk.journal == ["assigned T-1 to chioma"]


@pytest.mark.parametrize("answer", [decline(), cancel()], ids=["declined", "dismissed"])
def test_without_an_answer_nobody_takes_it(desk: Desk, answer: JsonObject) -> None:
    stopped = Server([assign_ticket]).client(answers={"agent": answer}).call("assign_ticket", {"id": "T-1"})
    assert (stopped.is_error, stopped.text) == (
        True,
        "The user did not choose an agent. The ticket T-1 is not assigned.",
    )
    assert desk.tickets["T-1"].agent is None


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"id": "T-9", "agent": "ben"}, "There is no ticket T-9."),
        ({"id": "T-9"}, "There is no ticket T-9."),
        ({"id": "T-1", "agent": "zoe"}, "There is no agent zoe. There are: ana, ben, chioma."),
    ],
)
def test_what_is_not_there_is_named(desk: Desk, arguments: JsonObject, text: str) -> None:
    failed = Server([assign_ticket]).client().call("assign_ticket", arguments)
    assert (failed.is_error, failed.text) == (True, text)
    assert desk.journal == []


def test_the_form_offers_every_agent_of_the_desk(desk: Desk) -> None:
    asked = Server([assign_ticket]).client().begin("assign_ticket", {"id": "T-1"})
    schema = asked.asked["agent"]["params"]["requestedSchema"]
    assert schema["properties"]["agent"]["enum"] == ["ana", "ben", "chioma"]

"""close_ticket: a choice and a note from the user, a structured result, and one effect."""

import pytest

from app.strict_json import JsonObject
from app.testing import Server, accept, cancel, decline
from app.tools.close_ticket import close_ticket
from app.tools.desk import Desk


def test_the_ticket_is_closed_as_the_user_chose(desk: Desk) -> None:
    alice = Server([close_ticket]).client(answers={"close": accept(resolution="wont-fix", note="Sorry.")})
    closed = alice.call("close_ticket", {"id": "T-1"})
    assert closed.result["structuredContent"] == {"id": "T-1", "resolution": "wont-fix", "note": "Sorry."}
    assert desk.tickets["T-1"].status == "closed"
    assert desk.journal == ["closed T-1 as wont-fix"]


@pytest.mark.parametrize("left_blank", [{}, {"note": ""}, {"note": None}], ids=str)
def test_the_note_may_be_left_blank(desk: Desk, left_blank: JsonObject) -> None:
    alice = Server([close_ticket]).client(answers={"close": accept(resolution="fixed", **left_blank)})
    assert alice.call("close_ticket", {"id": "T-1"}).result["structuredContent"]["note"] == ""


def test_the_form_shows_each_resolution_with_a_title(desk: Desk) -> None:
    asked = Server([close_ticket]).client().begin("close_ticket", {"id": "T-1"})
    params = asked.asked["close"]["params"]
    assert params["message"] == "Close T-1 (Printer on fire)?"
    assert params["requestedSchema"]["properties"]["resolution"]["oneOf"] == [
        {"const": "fixed", "title": "Fixed"},
        {"const": "duplicate", "title": "Duplicate"},
        {"const": "wont-fix", "title": "Wont fix"},
    ]
    assert params["requestedSchema"]["required"] == ["resolution"]


@pytest.mark.parametrize(
    "wrong",
    [accept(), accept(resolution="lost"), accept(resolution="FIXED"), accept(resolution="fixed", note="x" * 501)],
)
def test_an_answer_that_does_not_fit_is_asked_again(desk: Desk, wrong: JsonObject) -> None:
    given = iter([wrong, accept(resolution="fixed")])
    alice = Server([close_ticket]).client(on_elicitation=lambda key, request: next(given))
    assert alice.call("close_ticket", {"id": "T-1"}).result["structuredContent"]["resolution"] == "fixed"
    assert len(alice.rounds) == 3


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (decline(), "The user declined. Leave the ticket T-1 open."),
        (cancel(), "The user dismissed the question. The ticket T-1 is still open."),
    ],
    ids=["declined", "dismissed"],
)
def test_a_ticket_stays_open_without_an_answer(desk: Desk, answer: JsonObject, text: str) -> None:
    stopped = Server([close_ticket]).client(answers={"close": answer}).call("close_ticket", {"id": "T-1"})
    assert (stopped.is_error, stopped.text) == (True, text)
    assert desk.tickets["T-1"].status == "open"
    assert desk.journal == []


def test_a_ticket_that_is_not_there_is_not_asked_about(desk: Desk) -> None:
    failed = Server([close_ticket]).client().call("close_ticket", {"id": "T-9"})
    assert (failed.is_error, failed.text) == (True, "There is no ticket T-9.")


def test_a_lost_response_closes_it_once_and_another_answer_is_refused(desk: Desk) -> None:
    params: JsonObject = {"name": "close_ticket", "arguments": {"id": "T-1"}}
    alice = Server([close_ticket]).client()
    asked = alice.begin("close_ticket", {"id": "T-1"})
    closed = alice.retry(asked, params, {"close": accept(resolution="fixed")})
    again = alice.repeat()
    assert again.instance != closed.instance
    assert again.result == closed.result
    assert alice.retry(asked, params, {"close": accept(resolution="duplicate")}).status == 400
    assert desk.journal == ["closed T-1 as fixed"]

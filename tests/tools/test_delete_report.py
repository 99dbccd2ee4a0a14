"""delete_report: nothing is deleted unless its user ticked the box."""

import pytest

from app.strict_json import JsonObject
from app.testing import Server, accept, cancel, decline
from app.tools.delete_report import delete_report
from app.tools.desk import Desk
from tests.test_readme import COMMANDS, running, shell

TICKED, UNTICKED = accept(confirm=True), accept(confirm=False)


def test_a_ticked_box_deletes_the_report(desk: Desk) -> None:
    alice = Server([delete_report]).client(answers={"confirm": TICKED})
    assert alice.call("delete_report", {"target": "Q3"}).text == "The report Q3 is deleted."
    assert desk.reports == {"Q1", "Q2"}
    assert desk.journal == ["deleted Q3"]


def test_the_question_names_the_report(desk: Desk) -> None:
    asked = Server([delete_report]).client().begin("delete_report", {"target": "Q3"})
    assert asked.asked["confirm"]["params"]["message"] == "Delete the report Q3? This cannot be undone."
    assert desk.journal == []


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (UNTICKED, "The user declined. The report Q3 is still there."),
        (decline(), "The user declined. The report Q3 is still there."),
        (cancel(), "The user dismissed the question. The report Q3 is still there."),
    ],
    ids=["box not ticked", "declined", "dismissed"],
)
def test_anything_else_deletes_nothing_and_says_why(desk: Desk, answer: JsonObject, text: str) -> None:
    alice = Server([delete_report]).client(answers={"confirm": answer})
    stopped = alice.call("delete_report", {"target": "Q3"})
    assert (stopped.is_error, stopped.text) == (True, text)
    assert "Q3" in desk.reports
    assert desk.journal == []


@pytest.mark.parametrize("answer", ["yes", "true", 1, None])
def test_what_is_not_true_is_asked_again(desk: Desk, answer: object) -> None:
    given = iter([accept(confirm=answer), TICKED])
    alice = Server([delete_report]).client(on_elicitation=lambda key, request: next(given))
    assert alice.call("delete_report", {"target": "Q3"}).text == "The report Q3 is deleted."
    assert len(alice.rounds) == 3


def test_a_report_that_is_not_there_is_not_asked_about(desk: Desk) -> None:
    failed = Server([delete_report]).client().call("delete_report", {"target": "Q9"})
    assert (failed.is_error, failed.text) == (True, "There is no report Q9. There are: Q1, Q2, Q3.")


def test_another_user_cannot_answer_for_alice(desk: Desk) -> None:
    server = Server([delete_report])
    alice, bob = server.client("alice"), server.client("bob")
    params: JsonObject = {"name": "delete_report", "arguments": {"target": "Q3"}}
    asked = alice.request("tools/call", params)
    assert bob.retry(asked, params, {"confirm": TICKED}).status == 400
    assert desk.journal == []
    assert alice.retry(asked, params, {"confirm": TICKED}).text == "The report Q3 is deleted."


def test_it_needs_its_scope(desk: Desk) -> None:
    refused = Server([delete_report]).client(scope="reports:read").call("delete_report", {"target": "Q3"})
    assert refused.status == 403
    assert 'scope="reports:delete"' in refused.http.headers["www-authenticate"]


@pytest.mark.slow
def test_it_can_be_called_at_the_terminal_on_any_instance() -> None:
    """README, Two commands: `make call`, before and after every instance is replaced."""
    _, _, call, restart, _ = COMMANDS
    with running("--quiet") as (url, _):
        called = shell(f"{call} CALL='--url {url}/mcp'", typed="a\nyes\n")
        assert "The report Q3 is deleted." in called.stdout, called
        shell(restart.replace("http://127.0.0.1:8000", url))
        again = shell(f"{call} CALL='--url {url}/mcp'", typed="d\n")
        assert "declined" in again.stdout, again

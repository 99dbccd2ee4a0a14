"""plan_visit: three questions over two rounds."""

import pytest

from app.strict_json import JsonObject
from app.testing import Server, accept, cancel, decline
from app.tools.desk import Desk
from app.tools.plan_visit import plan_visit

ANSWERS: dict[str, JsonObject] = {
    "when": accept(day="2026-12-24"),
    "equipment": accept(items=["laptop", "cables"]),
    "crew": accept(people=2),
}


def test_a_visit_is_planned_with_everything_that_the_user_said(desk: Desk) -> None:
    alice = Server([plan_visit], instances=3).client(answers=ANSWERS)
    planned = alice.call("plan_visit", {"site": "Lisbon"})
    assert planned.result["structuredContent"] == {
        "site": "Lisbon",
        "day": "2026-12-24",
        "items": ["laptop", "cables"],
        "people": 2,
    }
    assert [list(reply.asked) for reply in alice.rounds] == [["when", "equipment"], ["crew"], []]
    assert [reply.instance for reply in alice.rounds] == [0, 1, 2]
    assert desk.journal == ["planned Lisbon on 2026-12-24"]


def test_the_last_question_sums_up_the_answers_before_it(desk: Desk) -> None:
    alice = Server([plan_visit]).client(answers=ANSWERS)
    alice.call("plan_visit", {"site": "Lisbon"})
    message = alice.rounds[1].asked["crew"]["params"]["message"]
    assert message == "Lisbon on 24 December 2026, with laptop, cables: how many technicians?"


def test_a_restart_between_the_rounds_loses_no_answer(desk: Desk) -> None:
    server = Server([plan_visit])

    def answer(key: str, request: JsonObject) -> JsonObject:
        server.restart()
        return ANSWERS[key]

    alice = server.client(on_elicitation=answer)
    assert alice.call("plan_visit", {"site": "Lisbon"}).result["structuredContent"]["people"] == 2


@pytest.mark.parametrize("key", ANSWERS)
@pytest.mark.parametrize("answer", [decline(), cancel()], ids=["declined", "dismissed"])
def test_without_one_of_the_answers_nothing_is_planned(desk: Desk, key: str, answer: JsonObject) -> None:
    alice = Server([plan_visit]).client(answers={**ANSWERS, key: answer})
    stopped = alice.call("plan_visit", {"site": "Lisbon"})
    assert stopped.is_error
    assert stopped.text.endswith("No visit is planned.")
    assert desk.journal == []


@pytest.mark.parametrize(
    ("key", "wrong", "reason"),
    [
        ("when", accept(day="Christmas Eve"), "day: Input should be a valid date"),
        ("equipment", accept(items=[]), "items: List should have at least 1 item"),
        ("equipment", accept(items=["crane"]), "items.0: Input should be 'laptop', 'printer', 'router' or 'cables'"),
        ("crew", accept(people=5), "people: Input should be less than or equal to 4"),
    ],
)
def test_only_what_does_not_fit_is_asked_again(desk: Desk, key: str, wrong: JsonObject, reason: str) -> None:
    asked: list[tuple[str, str]] = []

    def answer(question: str, request: JsonObject) -> JsonObject:
        asked.append((question, request["params"]["message"]))
        first_time = [each for each, _ in asked].count(question) == 1
        return wrong if question == key and first_time else ANSWERS[question]

    alice = Server([plan_visit]).client(on_elicitation=answer)
    assert not alice.call("plan_visit", {"site": "Lisbon"}).is_error
    assert [each for each, _ in asked].count(key) == 2
    assert len(asked) == 4
    assert any(message.startswith(f"The last answer did not fit: {reason}") for _, message in asked)

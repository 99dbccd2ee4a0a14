"""new_tool: acts only on a yes."""

import pytest

from app.strict_json import JsonObject
from app.testing import Server, accept, cancel, decline
from infra.scaffold.kinds.form import new_tool


def test_it_asks_one_instance_and_finishes_on_another() -> None:
    alice = Server([new_tool]).client("alice", answers={"confirm": accept(confirm=True)})
    assert alice.call("new_tool", {"target": "Q3"}).text == "Q3: done."
    assert [reply.instance for reply in alice.rounds] == [0, 1]


@pytest.mark.parametrize("answer", [accept(confirm=False), decline(), cancel()])
def test_without_a_yes_nothing_happens(answer: JsonObject) -> None:
    alice = Server([new_tool]).client("alice", answers={"confirm": answer})
    stopped = alice.call("new_tool", {"target": "Q3"})
    assert stopped.is_error
    assert stopped.text.endswith("Nothing has changed.")


def test_the_question_says_what_it_is_about() -> None:
    asked = Server([new_tool]).client().begin("new_tool", {"target": "Q3"}).asked
    assert asked["confirm"]["params"]["message"] == "Go on with Q3?"

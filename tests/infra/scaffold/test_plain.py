"""new_tool: its result, and what it says to arguments that do not fit."""

from app.testing import Server
from infra.scaffold.kinds.plain import new_tool


def test_it_answers_in_one_round() -> None:
    alice = Server([new_tool]).client("alice")
    reply = alice.call("new_tool", {"text": "two words"})
    assert reply.result["structuredContent"] == {"words": 2, "characters": 9}
    assert len(alice.rounds) == 1


def test_arguments_that_do_not_fit_are_for_the_model_to_correct() -> None:
    reply = Server([new_tool]).client("alice").call("new_tool", {"text": 3})
    assert reply.is_error
    assert reply.text.startswith("Invalid arguments: text")

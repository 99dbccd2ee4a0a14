"""order_part: an effect before the question and one after it, each once."""

import pytest

from app.strict_json import JsonObject
from app.testing import Server, accept, cancel, decline
from app.tools.desk import Desk
from app.tools.order_part import order_part

PARAMS: JsonObject = {"name": "order_part", "arguments": {"part": "fuser"}}
YES = {"order": accept(confirm=True)}


def effects(desk: Desk) -> list[str]:
    """What was done, without the keys."""
    return [each.partition(" with ")[0] for each in desk.journal]


def test_the_part_is_held_once_and_ordered_once_whatever_is_repeated(desk: Desk) -> None:
    alice = Server([order_part]).client()
    asked = alice.begin("order_part", {"part": "fuser"})
    assert asked.asked["order"]["params"]["message"] == "Order fuser for 89.00? It is held for you."
    assert effects(desk) == ["held fuser"]
    ordered = alice.retry(asked, PARAMS, YES)
    assert ordered.text == "fuser is ordered."
    assert alice.repeat().text == "fuser is ordered."
    assert effects(desk) == ["held fuser", "ordered fuser"]


def test_the_supplier_gets_a_key_for_each_of_the_two(desk: Desk) -> None:
    Server([order_part]).client(answers=YES).call("order_part", {"part": "toner"})
    keys = {each.partition(" with ")[2] for each in desk.journal}
    assert len(keys) == 2


@pytest.mark.parametrize(
    "answer", [accept(confirm=False), decline(), cancel()], ids=["unticked", "declined", "dismissed"]
)
def test_without_a_yes_it_is_not_ordered(desk: Desk, answer: JsonObject) -> None:
    stopped = Server([order_part]).client(answers={"order": answer}).call("order_part", {"part": "fuser"})
    assert (stopped.is_error, stopped.text) == (True, "The user did not confirm. fuser is not ordered.")
    assert effects(desk) == ["held fuser"]


def test_a_part_that_is_not_there_is_not_held(desk: Desk) -> None:
    failed = Server([order_part]).client().call("order_part", {"part": "wheel"})
    assert failed.text == "There is no part wheel. There are: fuser, toner."
    assert desk.journal == []

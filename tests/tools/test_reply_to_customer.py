"""reply_to_customer: allowed once for each ticket, and sent once for each call."""

import pytest

from app.strict_json import JsonObject
from app.testing import Server, accept, decline
from app.tools.desk import Desk
from app.tools.reply_to_customer import reply_to_customer

ALLOW = {"_approval": accept(allow=True)}
T1 = {"id": "T-1", "text": "A technician is on the way."}


def test_the_user_is_asked_once_for_each_ticket(desk: Desk) -> None:
    server = Server([reply_to_customer])
    alice = server.client(answers=ALLOW)
    assert alice.call("reply_to_customer", T1).text == "The customer of T-1 has the reply."
    assert [len(each.asked) for each in alice.rounds] == [1, 0]
    assert not alice.begin("reply_to_customer", {**T1, "text": "He is at your door."}).asked
    assert alice.begin("reply_to_customer", {**T1, "id": "T-2"}).asked
    assert desk.journal == ["replied to T-1", "replied to T-1"]


def test_after_it_is_withdrawn_the_user_is_asked_again(desk: Desk) -> None:
    server = Server([reply_to_customer])
    alice = server.client(answers=ALLOW)
    alice.call("reply_to_customer", T1)
    server.withdraw("alice", "reply_to_customer")
    assert alice.begin("reply_to_customer", T1).asked


def test_a_lost_response_sends_no_second_reply(desk: Desk) -> None:
    alice = Server([reply_to_customer]).client(answers=ALLOW)
    sent = alice.call("reply_to_customer", T1)
    assert alice.repeat().text == sent.text
    assert desk.journal == ["replied to T-1"]


@pytest.mark.parametrize("answer", [decline(), accept(allow=False)], ids=["declined", "unticked"])
def test_without_a_yes_nothing_is_sent(desk: Desk, answer: JsonObject) -> None:
    refused = Server([reply_to_customer]).client(answers={"_approval": answer}).call("reply_to_customer", T1)
    assert refused.is_error
    assert desk.journal == []

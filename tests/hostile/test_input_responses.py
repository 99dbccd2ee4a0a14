"""Answers that no form gave, and clients that say other things about themselves in every round."""

from typing import Any, Final

import pytest

from tests.hostile.draft import FORMS, FORMS_AND_URLS, accept, call
from tests.hostile.laboratory import Laboratory
from tests.hostile.refusals import assert_tells_nothing, erasure
from tests.hostile.rows import shows
from tests.hostile.wire import exchange

ANSWERS: Final[dict[str, Any]] = {
    "null": None,
    "a list": [],
    "a number": 5,
    "a text": "accept",
    "a number as the answer": {"confirm": 5},
    "a list as the answer": {"confirm": [accept(confirm=True)]},
    "no action": {"confirm": {"content": {"confirm": True}}},
    "an action in capitals": {"confirm": {"action": "ACCEPT", "content": {"confirm": True}}},
    "yes": {"confirm": {"action": "yes", "content": {"confirm": True}}},
    "true as the action": {"confirm": {"action": True, "content": {"confirm": True}}},
    "no content": {"confirm": {"action": "accept"}},
    "content null": {"confirm": {"action": "accept", "content": None}},
    "content as a list": {"confirm": {"action": "accept", "content": [["confirm", True]]}},
    "yes as text": {"confirm": accept(confirm="true")},
    "1": {"confirm": accept(confirm=1)},
    "1.0": {"confirm": accept(confirm=1.0)},
    "a list with true": {"confirm": accept(confirm=[True])},
    "another field": {"confirm": accept(Confirm=True)},
    "nothing": {},
    "another key": {"Confirm": accept(confirm=True)},
}


@pytest.mark.parametrize("answers", ANSWERS.values(), ids=ANSWERS.keys())
@shows(107)
def test_an_answer_that_is_none_is_refused_or_asked_again_and_never_taken(
    lab: Laboratory, alice: str, answers: Any
) -> None:
    """Row 107: "yes" is not true, and only "accept" accepts."""
    flow = erasure(lab, alice)
    draft = flow.finish.params(inputResponses=answers)
    answer = exchange(lab.port, draft.wire())
    if answer.status == 400:
        assert answer.error["code"] == -32602
    else:
        assert answer.result["resultType"] == "input_required", answer.text
        assert "confirm" in answer.result["inputRequests"]
    draft.judge(answer)
    assert_tells_nothing(lab, answer, flow.state)
    flow.finishes()


@pytest.mark.parametrize("content", [..., None, {"confirm": True}], ids=["no content", "null", "content that says yes"])
@pytest.mark.parametrize("action", ["decline", "cancel"])
@shows(109)
def test_no_is_no_whatever_comes_with_it(lab: Laboratory, alice: str, action: str, content: Any) -> None:
    """Row 109; client/elicitation, Response Actions."""
    flow = erasure(lab, alice)
    said = {"action": action} if content is ... else {"action": action, "content": content}
    draft = flow.finish.params(inputResponses={"confirm": said})
    answer = exchange(lab.port, draft.wire())
    assert answer.result["isError"] is True
    assert "still there" in answer.result["content"][0]["text"]
    draft.judge(answer)
    assert flow.done == 0


@pytest.mark.parametrize("count", [1, 1000])
@shows(110)
def test_answers_to_questions_that_nobody_asked_are_dropped(lab: Laboratory, alice: str, count: int) -> None:
    """Row 110: they reach neither the tool nor the next state."""
    flow = erasure(lab, alice)
    extra = {f"key-{number}": accept(confirm=True, name="x" * 50) for number in range(count)}
    draft = flow.finish.params(inputResponses=extra)
    answer = exchange(lab.port, draft.wire())
    assert answer.result["resultType"] == "input_required"
    assert len(answer.result["requestState"]) <= len(flow.state) + 128
    assert answer.milliseconds < 5000
    draft = flow.finish.params(inputResponses={**extra, "confirm": accept(confirm=True)})
    assert exchange(lab.port, draft.wire()).result["content"][0]["text"] == f"{flow.target} is erased."


DECLARED: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"elicitation": {"url": {}}},
    {"elicitation": None},
    {"elicitation": True},
    {"elicitation": ["form"]},
    {"sampling": {}},
)


@pytest.mark.parametrize("capabilities", DECLARED, ids=str)
@shows(112)
def test_a_client_that_cannot_show_the_question_is_told_what_it_lacks(
    lab: Laboratory, alice: str, capabilities: dict[str, Any]
) -> None:
    """MUST NOT: mrtr, server requirement 7; MissingRequiredClientCapabilityError."""
    draft = call(alice, "erase", capabilities, target="x")
    answer = exchange(lab.port, draft.wire())
    assert (answer.status, answer.error["code"]) == (400, -32021), answer.text
    assert answer.error["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}
    draft.judge(answer)


@shows(112)
def test_a_client_without_url_mode_never_gets_a_link_as_a_question(lab: Laboratory, alice: str) -> None:
    """Row 112: `elicitation: {}` is form mode. This tool allows the link as text."""
    without: tuple[dict[str, Any], ...] = ({}, {"elicitation": {}}, FORMS)
    for capabilities in without:
        answer = exchange(lab.port, call(alice, "list_repositories", capabilities).wire())
        assert answer.result["resultType"] == "complete"
        assert "/connect/" in answer.result["content"][0]["text"]
    asked = exchange(lab.port, call(alice, "list_repositories", FORMS_AND_URLS).wire())
    assert asked.result["resultType"] == "input_required"


@shows(113)
def test_a_client_that_takes_its_declaration_back_is_asked_nothing_more(lab: Laboratory, alice: str) -> None:
    """Row 113: what an earlier request declared says nothing about this one."""
    draft = call(alice, "move", target="crate")
    asked = exchange(lab.port, draft.wire()).result
    answers = {"confirm": accept(confirm=True)}
    second = draft.params(inputResponses=answers, requestState=asked["requestState"])
    bare = second.meta(clientCapabilities={})
    answer = exchange(lab.port, bare.wire())
    assert (answer.status, answer.error["code"]) == (400, -32021)
    assert exchange(lab.port, second.wire()).result["resultType"] == "input_required"
    assert not [effect for effect in lab.effects() if "crate" in effect]

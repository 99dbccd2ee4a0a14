"""deploy: the explicit style, async, with labels and a default."""

import pytest

from app.strict_json import JsonObject
from app.testing import Server, accept, cancel, decline
from app.tools.deploy import deploy
from app.tools.desk import Desk

PARAMS: JsonObject = {"name": "deploy", "arguments": {"service": "billing"}}


@pytest.mark.parametrize(
    ("content", "text", "effect"),
    [
        ({"stage": "prod", "note": "v2"}, "billing is on its way to prod: v2.", "deployed billing to prod"),
        ({"stage": "prod-canary"}, "billing is on its way to prod-canary.", "deployed billing to prod-canary"),
        ({"stage": "", "note": ""}, "billing is on its way to staging.", "deployed billing to staging"),
        ({}, "billing is on its way to staging.", "deployed billing to staging"),
    ],
    ids=["with a note", "without", "left blank", "empty"],
)
def test_it_goes_where_the_user_said(desk: Desk, content: JsonObject, text: str, effect: str) -> None:
    alice = Server([deploy]).client(answers={"release": accept(**content)})
    assert alice.call("deploy", {"service": "billing"}).text == text
    assert desk.journal == [effect]


def test_the_form_shows_labels_and_the_default(desk: Desk) -> None:
    asked = Server([deploy]).client().request("tools/call", PARAMS)
    assert asked.asked["release"]["params"]["requestedSchema"]["properties"]["stage"] == {
        "type": "string",
        "oneOf": [
            {"const": "staging", "title": "Staging"},
            {"const": "prod-canary", "title": "Production, 5 % of users"},
            {"const": "prod", "title": "Production"},
        ],
        "description": "Where to",
        "default": "staging",
    }


def test_an_answer_that_does_not_fit_is_asked_again_with_the_reason(desk: Desk) -> None:
    alice = Server([deploy]).client()
    asked = alice.request("tools/call", PARAMS)
    again = alice.retry(asked, PARAMS, {"release": accept(stage="moon")})
    message = again.asked["release"]["params"]["message"]
    assert message.startswith("That does not work: stage: Input should be 'staging', 'prod-canary' or 'prod'.")
    assert desk.journal == []
    done = alice.retry(again, PARAMS, {"release": accept(stage="prod")})
    assert done.text == "billing is on its way to prod."


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (decline(), "The user declined. billing is not deployed."),
        (cancel(), "The user dismissed the question. billing is not deployed."),
    ],
    ids=["declined", "dismissed"],
)
def test_without_an_answer_nothing_is_deployed(desk: Desk, answer: JsonObject, text: str) -> None:
    stopped = Server([deploy]).client(answers={"release": answer}).call("deploy", {"service": "billing"})
    assert (stopped.is_error, stopped.text) == (True, text)
    assert desk.journal == []


def test_it_needs_its_scope(desk: Desk) -> None:
    assert Server([deploy]).client(scope="").call("deploy", {"service": "billing"}).status == 403

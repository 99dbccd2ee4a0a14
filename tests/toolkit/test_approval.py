"""`@tool(approval=...)`: the user is asked once, and what they said is remembered until they withdraw it."""

from datetime import timedelta
from typing import Any

import pytest

from app.effects.approvals import SESSION, Source
from app.errors import ConfigurationError
from app.testing import Client, Server, accept, cancel, decline
from app.toolkit import Accepted, Context, InputRequired, Missing, Question, Tool, tool
from tests.protocol.endpoint import JudgedServer
from tests.protocol.test_legacy import legacy
from tests.protocol.test_text_fallback import call
from tests.toolkit.shop import YES, Confirm, Shop, params

ALLOW = {"_approval": accept(allow=True)}


@pytest.fixture
def shop() -> Shop:
    return Shop()


def restarting(shop: Shop, **parameters: Any) -> Tool:
    """A tool that needs the user's approval for what it does, and has no question of its own."""

    @tool(**{"name": "restart", "title": "Restart a service", "approval": "session", **parameters})
    def restart(service: str, ctx: Context, force: bool = False) -> str:
        """Restart a service."""
        return f"{service} is restarted: {shop.sell(service)}."

    return restart


@pytest.fixture
def server(shop: Shop) -> Server:
    return JudgedServer([restarting(shop)])


@pytest.fixture
def alice(server: Server) -> Client:
    return server.client(answers=ALLOW)


RESTART = {"service": "billing"}


def test_the_user_is_asked_once_and_then_not_again(shop: Shop, server: Server, alice: Client) -> None:
    """Ask once, remember the user's yes: by another instance, with other arguments, after a deployment."""
    assert alice.call("restart", RESTART).text == "billing is restarted: receipt 1."
    assert len(alice.rounds) == 2
    assert alice.rounds[1].http.facts["approval"] == "kept"
    server.restart()
    for service in ("billing", "search"):
        again = alice.begin("restart", {"service": service})
        assert again.text.startswith(f"{service} is restarted")
    assert shop.done == ["billing", "billing", "search"]


def test_the_form_says_what_a_yes_covers_and_for_how_long(shop: Shop) -> None:
    """What the user agrees to is what they are shown."""
    whole = Server([restarting(shop)]).client().begin("restart", RESTART).asked["_approval"]["params"]
    assert whole["message"] == (
        'Allow "Restart a service" with whatever arguments? A yes holds for 12 hours, for this client.'
    )
    assert whole["requestedSchema"] == {
        "type": "object",
        "properties": {"allow": {"type": "boolean", "description": "Tick to allow it"}},
        "required": ["allow"],
    }
    limited = restarting(shop, approval=timedelta(days=30), approval_for=["service", "force"])
    message = Server([limited]).client().begin("restart", RESTART).asked["_approval"]["params"]["message"]
    assert message == (
        'Allow "Restart a service" with service "billing", force false? A yes holds for 30 days, for this client.'
    )


def test_a_long_argument_is_shortened_for_the_form_and_compared_whole(shop: Shop) -> None:
    """Nobody reads a hundred thousand characters, and nobody gets away with changing the last one."""
    server = Server([restarting(shop, approval_for=["service"])])
    alice = server.client(answers=ALLOW)
    alice.call("restart", {"service": "x" * 100_000})
    assert len(alice.rounds[0].asked["_approval"]["params"]["message"]) < 400
    assert "content" in alice.begin("restart", {"service": "x" * 100_000}).result
    assert alice.begin("restart", {"service": "x" * 99_999 + "y"}).asked


def test_with_approval_for_a_yes_is_limited_to_the_values_of_these_arguments(shop: Shop) -> None:
    """Per principal, client, tool and argument. A default is the value that it stands for."""
    server = Server([restarting(shop, approval_for=["service", "force"])])
    alice = server.client(answers=ALLOW)
    alice.call("restart", RESTART)
    assert not alice.begin("restart", {**RESTART, "force": False}).asked
    assert alice.begin("restart", {**RESTART, "force": True}).asked
    assert alice.begin("restart", {"service": "search"}).asked


@pytest.mark.parametrize(
    "other", [{"subject": "bob"}, {"client_id": "https://other.example/client.json"}], ids=["user", "client"]
)
def test_a_yes_is_for_one_user_and_one_client(server: Server, alice: Client, other: dict[str, str]) -> None:
    """Nobody restarts on Alice's word but Alice's client."""
    alice.call("restart", RESTART)
    assert server.client(**other).begin("restart", RESTART).asked  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "said"),
    [(decline(), "does not allow"), (accept(allow=False), "does not allow"), (cancel(), "dismissed")],
    ids=["decline", "unticked", "cancel"],
)
def test_anything_but_a_yes_runs_nothing_and_is_not_remembered(
    shop: Shop, server: Server, answer: dict[str, Any], said: str
) -> None:
    """DESIGN 1.4: accept, decline and cancel are three things."""
    alice = server.client(answers={"_approval": answer})
    refused = alice.call("restart", RESTART)
    assert refused.is_error
    assert said in refused.text
    assert alice.begin("restart", RESTART).asked
    assert server.approvals("alice") == []
    assert shop.done == []


@pytest.mark.parametrize("wrong", [accept(allow="yes"), accept(), {"action": "yes"}, accept(allow=1)], ids=str)
def test_an_answer_that_does_not_fit_is_asked_again(shop: Shop, server: Server, wrong: dict[str, Any]) -> None:
    """ "yes" is not true."""
    alice = server.client()
    again = alice.retry(alice.begin("restart", RESTART), params("restart", **RESTART), {"_approval": wrong})
    assert "did not fit" in again.asked["_approval"]["params"]["message"]
    assert shop.done == []
    assert alice.retry(again, params("restart", **RESTART), ALLOW).text.startswith("billing is restarted")


def test_an_answer_without_the_state_that_asked_is_none(shop: Shop, server: Server) -> None:
    """SECURITY 98: nobody allows it by saying so first."""
    reply = server.client().request("tools/call", {**params("restart", **RESTART), "inputResponses": ALLOW})
    assert reply.asked
    assert shop.done == []


def test_a_yes_ends_with_its_time(server: Server, alice: Client) -> None:
    """ "session" is twelve hours from the question."""
    alice.call("restart", RESTART)
    server.clock.advance(SESSION - 1)
    alice = server.client(answers=ALLOW)  # with an access token of now
    assert not alice.begin("restart", RESTART).asked
    server.clock.advance(1)
    assert alice.begin("restart", RESTART).asked


def test_a_withdrawn_yes_is_asked_for_again_and_no_old_answer_brings_it_back(server: Server, alice: Client) -> None:
    """The connections page; a state opens for ten minutes after its question."""
    alice.call("restart", RESTART)
    (approval,) = server.approvals("alice")
    assert (approval.tool, approval.source) == ("restart", Source.FORM)
    server.withdraw("alice", "restart")
    assert server.approvals("alice") == []
    assert alice.begin("restart", RESTART).asked
    server.clock.advance(1)
    question = alice.rounds[0]
    assert alice.retry(question, params("restart", **RESTART), ALLOW).http.facts["approval"] == "not_kept"
    assert alice.begin("restart", RESTART).asked
    alice.call("restart", RESTART)
    assert not alice.begin("restart", RESTART).asked


@pytest.mark.parametrize(
    "changed",
    [{"title": "Stop a service"}, {"approval": timedelta(hours=1)}, {"approval_for": ["service"]}],
    ids=lambda changed: next(iter(changed)),
)
def test_a_tool_that_asks_for_something_else_asks_again(
    shop: Shop, server: Server, alice: Client, changed: dict[str, Any]
) -> None:
    """New terms: the user agreed to what they were shown."""
    alice.call("restart", RESTART)
    server.restart([restarting(shop, **changed)])
    assert alice.begin("restart", RESTART).asked


def test_during_an_outage_the_user_is_asked_and_the_tool_runs(shop: Shop, server: Server, alice: Client) -> None:
    """A yes that cannot be looked up is none, and one that cannot be kept is good for this once."""
    alice.call("restart", RESTART)
    with server.store_outage():
        assert alice.call("restart", RESTART).text.startswith("billing is restarted")
        assert len(alice.rounds) == 2
        assert alice.rounds[1].http.facts["approval"] == "not_kept"


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_no_model_and_no_fallback_makes_a_yes(shop: Shop, era: str) -> None:
    """A client that shows no forms gets no form as text, whatever the tool says of itself."""
    server = JudgedServer([restarting(shop, destructive=False, read_only=True, text_fallback=era == "modern")])
    reply = call(server, era, "restart", RESTART)
    if era == "legacy":
        assert "cannot show" in reply.text
    else:
        assert reply.error["code"] == -32021
    names = [each["name"] for each in server.client(capabilities={}).request("tools/list").result["tools"]]
    assert names == ["restart"], "there is no tool that takes an answer"
    assert server.approvals("alice") == []
    assert shop.done == []


def test_a_remembered_yes_counts_for_a_client_of_an_earlier_revision_too(shop: Shop, server: Server) -> None:
    """The user gave it in a form, under the same client id."""
    server.client(answers=ALLOW).call("restart", RESTART)
    assert legacy(server, "tools/call", params("restart", **RESTART)).text.startswith("billing is restarted")


def test_an_approval_comes_before_the_tools_own_questions_and_effects(shop: Shop) -> None:
    """With once=True: asked, remembered, and the effect once."""
    server = JudgedServer([shop.tool(approval="session")])
    alice = server.client(answers={**ALLOW, **YES})
    first = alice.call("buy", {"item": "tea"})
    assert [list(each.asked) for each in alice.rounds] == [["_approval"], ["confirm"], []]
    assert alice.repeat().result == first.result
    assert alice.call("buy", {"item": "tea"}).text == "tea is bought: receipt 2."
    assert [list(each.asked) for each in alice.rounds] == [["confirm"], []]
    assert shop.done == ["tea", "tea"]


def test_a_lost_response_to_the_yes_costs_nothing(shop: Shop) -> None:
    """once=True and no question of its own: the approval's round is the one that is repeated."""
    server = JudgedServer([restarting(shop, once=True)])
    alice = server.client(answers=ALLOW)
    first = alice.call("restart", RESTART)
    assert alice.repeat().result == first.result
    assert shop.done == ["billing"]


def test_a_yes_that_ends_between_two_rounds_costs_a_question_and_no_state(shop: Shop) -> None:
    """The explicit style: what it carries comes back after the approval, with the answer that was given."""

    @tool(approval="session")
    def order(ctx: Context) -> str | InputRequired:
        """Order in the explicit style."""
        match ctx.responses.get("confirm", Confirm):
            case Missing():
                return InputRequired({"confirm": Question("Sure?", Confirm)}, state={"item": "tea"})
            case Accepted(Confirm(confirm=True)):
                return shop.sell(ctx.state["item"])
            case _:
                return ctx.stop("no")

    server = Server([order])
    alice = server.client(answers={**ALLOW, **YES})
    alice.call("order")
    question = alice.begin("order")
    server.withdraw("alice", "order")
    server.clock.advance(1)
    again = alice.retry(question, params("order"), YES)
    assert list(again.asked) == ["_approval"]
    assert alice.retry(again, params("order"), ALLOW).text == "receipt 2"


def test_invalid_arguments_are_told_before_anybody_is_asked(server: Server) -> None:
    """The model corrects its own mistakes; the user is not bothered with them."""
    refused = server.client().begin("restart", {"service": 5})
    assert refused.is_error
    assert "Invalid arguments" in refused.text


@pytest.mark.parametrize(
    ("parameters", "remedy"),
    [
        ({"approval": "always"}, "session"),
        ({"approval": timedelta(days=91)}, "90 days"),
        ({"approval_for": ["services"]}, "approval_for names services, which is no argument: rename it"),
        ({"approval_for": "service"}, r"write approval_for=\['service'\]"),
        ({"approval": None, "approval_for": ["service"]}, "asks for no approval"),
        ({"single_round": True}, "single_round"),
        ({"stateless": True}, "stateless"),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, dict) else "",
)
def test_what_cannot_work_is_refused_when_the_module_is_imported(
    shop: Shop, parameters: dict[str, Any], remedy: str
) -> None:
    """DESIGN 3: with the remedy."""
    with pytest.raises(ConfigurationError, match=remedy):
        restarting(shop, **parameters)


def test_an_argument_of_a_hand_written_schema_can_limit_a_yes(shop: Shop) -> None:
    """input_schema: the function has no parameters, and its schema has."""
    schema = {"type": "object", "properties": {"service": {"type": "string"}}, "required": ["service"]}

    @tool(input_schema=schema, approval="session", approval_for=["service"])
    def restart(ctx: Context) -> str:
        """Restart a service."""
        return shop.sell(ctx.arguments["service"])

    alice = Server([restart]).client(answers=ALLOW)
    alice.call("restart", RESTART)
    assert not alice.begin("restart", RESTART).asked
    assert alice.begin("restart", {"service": "search"}).asked
    with pytest.raises(ConfigurationError, match="approval_for names name"):
        tool(input_schema=schema, approval="session", approval_for=["name"])(restart_function)


def restart_function(ctx: Context) -> str:
    """Restart a service."""
    return str(ctx.arguments)

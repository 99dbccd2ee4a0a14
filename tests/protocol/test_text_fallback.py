"""Questions as text, for clients that cannot show them, and the tool that takes the answers."""

import re
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from app.errors import ConfigurationError
from app.testing import FORMS, Client, Reply, Server
from app.toolkit import Accepted, Context, Declined, Tool, tool
from tests.protocol.endpoint import JudgedServer
from tests.protocol.test_legacy import legacy


class Choice(BaseModel):
    size: Literal["s", "m", "l"]


class Colour(BaseModel):
    colour: str


@tool(destructive=False, text_fallback=True)
def order(item: str, ctx: Context) -> str:
    """Order something. Asks for the size and, after that, for the colour."""
    match ctx.ask("size", f"Which size of {item}?", Choice):
        case Accepted(Choice(size=size)):
            pass
        case Declined():
            return ctx.stop("The user wants none.")
        case _:
            return ctx.stop("The user dismissed it.")
    match ctx.ask("colour", f"Which colour, in {size}?", Colour):
        case Accepted(Colour(colour=colour)):
            return f"{item}, {size}, {colour}"
        case _:
            return ctx.stop("No colour.")


@tool(read_only=True)
def quiet(ctx: Context) -> str:
    """Ask, without saying that text would do."""
    match ctx.ask("size", "Which size?", Choice):
        case Accepted(Choice(size=size)):
            return size
        case _:
            return ctx.stop("None.")


def handle_in(reply: Reply) -> str:
    found = re.search(r"rs1\.[A-Za-z0-9_-]+", reply.text)
    assert found, reply.text
    return found[0]


def call(server: Server, era: str, name: str, arguments: dict[str, Any], *, user: str = "alice") -> Reply:
    """A tool call of a client that cannot show forms, of either era."""
    params = {"name": name, "arguments": arguments}
    if era == "legacy":
        return legacy(server, "tools/call", params, user=user)
    return server.client(user, capabilities={}).request("tools/call", params)


def answer(server: Server, era: str, handle: str, answers: Any, *, user: str = "alice") -> Reply:
    return call(server, era, "answer", {"handle": handle, "answers": answers}, user=user)


ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])


@ERAS
def test_a_question_goes_as_text_and_its_answer_goes_on_anywhere(era: str) -> None:
    """DESIGN 4; CASES 38: claude-code#96043. Two questions, each answered on another instance."""
    server = JudgedServer([order])
    first = call(server, era, "order", {"item": "shirt"})
    assert first.is_error
    assert "Which size of shirt?" in first.text
    assert '"enum": ["s", "m", "l"]' in first.text
    second = answer(server, era, handle_in(first), {"size": {"action": "accept", "content": {"size": "m"}}})
    assert "Which colour, in m?" in second.text
    server.restart()
    third = answer(server, era, handle_in(second), {"colour": {"action": "accept", "content": {"colour": "red"}}})
    assert third.text == "shirt, m, red"


@ERAS
def test_a_no_is_a_no(era: str) -> None:
    server = JudgedServer([order])
    handle = handle_in(call(server, era, "order", {"item": "shirt"}))
    assert answer(server, era, handle, {"size": {"action": "decline"}}).text == "The user wants none."
    assert answer(server, era, handle, {"size": {"action": "cancel"}}).text == "The user dismissed it."


@ERAS
@pytest.mark.parametrize(
    "answers",
    [
        None,
        [],
        {},
        {"size": "m"},
        {"size": {"action": "accept"}},
        {"colour": {"action": "accept"}},
        {"size": {"action": "accept", "content": {"size": "xxl"}}},
    ],
)
def test_an_answer_that_does_not_fit_is_asked_again(era: str, answers: Any) -> None:
    """kotlin-sdk#895: what a model passes on is read as strictly as what a form sends."""
    server = JudgedServer([order])
    handle = handle_in(call(server, era, "order", {"item": "shirt"}))
    again = answer(server, era, handle, answers)
    assert "Which size of shirt?" in again.text
    assert handle_in(again)


@ERAS
@pytest.mark.parametrize(
    "spoil", [lambda handle: handle + "A", lambda handle: handle[:-9], lambda handle: "", lambda _: None]
)
def test_a_handle_that_does_not_open_is_no_longer_open(era: str, spoil: Any) -> None:
    """One sentence for the model, which calls the tool again."""
    server = JudgedServer([order])
    handle = handle_in(call(server, era, "order", {"item": "shirt"}))
    reply = answer(server, era, spoil(handle), {"size": {"action": "accept", "content": {"size": "m"}}})
    assert reply.is_error
    assert reply.text == "This question is no longer open. Call the tool that asked it again."


@ERAS
def test_a_handle_is_of_one_user_and_of_one_hour_at_most(era: str) -> None:
    """SECURITY 5, 86 and 95, for handles as for states."""
    server = JudgedServer([order])
    handle = handle_in(call(server, era, "order", {"item": "shirt"}))
    yes = {"size": {"action": "accept", "content": {"size": "m"}}}
    assert "no longer open" in answer(server, era, handle, yes, user="bob").text
    server.clock.advance(601)
    assert "no longer open" in answer(server, era, handle, yes).text


def test_a_handle_is_no_state_and_a_state_is_no_handle() -> None:
    """DESIGN 5: purposes never mix."""
    server = JudgedServer([order])
    handle = handle_in(call(server, "modern", "order", {"item": "shirt"}))
    shown = server.client(capabilities=FORMS)
    reply = shown.request("tools/call", {"name": "order", "arguments": {"item": "shirt"}, "requestState": handle})
    assert reply.error["message"] == "Invalid or expired requestState"
    state = shown.begin("order", {"item": "shirt"}).result["requestState"]
    assert "no longer open" in answer(server, "modern", state, {}).text


def test_the_rounds_of_a_handle_are_counted_too() -> None:
    server = JudgedServer([order])
    reply = call(server, "modern", "order", {"item": "shirt"})
    for _ in range(8):
        assert "rs1." in reply.text
        reply = answer(server, "modern", handle_in(reply), {})
    assert "8 rounds" in reply.text


def names(client: Client) -> list[str]:
    return [each["name"] for each in client.request("tools/list").result["tools"]]


@pytest.mark.parametrize(
    ("tools", "capabilities", "listed"),
    [
        ([order], {}, True),
        ([order], {"elicitation": {"url": {}}}, True),
        ([order], FORMS, False),
        ([quiet], {}, False),
    ],
)
def test_the_answer_tool_is_there_for_whom_it_helps(
    tools: list[Tool], capabilities: dict[str, Any], listed: bool
) -> None:
    """It is a tool like others to the model: no client sees it that shows forms."""
    server = JudgedServer(tools)
    client = server.client(capabilities=capabilities)
    assert ("answer" in names(client)) is listed
    if not listed:
        assert client.request("tools/call", {"name": "answer", "arguments": {}}).error["code"] == -32602
    assert "answer" in [each["name"] for each in legacy(server, "tools/list").result["tools"]]


def test_a_modern_client_gets_the_missing_capability_unless_the_tool_says_otherwise() -> None:
    """DESIGN 4: -32021 by default."""
    reply = JudgedServer([quiet]).client(capabilities={}).begin("quiet")
    assert reply.error["code"] == -32021


def test_a_list_with_the_answer_tool_is_not_kept_for_other_clients() -> None:
    """server/utilities/caching: it depends on what this client declared."""
    server = JudgedServer([order])
    assert server.client(capabilities={}).request("tools/list").result["cacheScope"] == "private"
    assert server.client().request("tools/list").result["cacheScope"] == "public"


def test_forms_as_text_can_be_switched_off() -> None:
    server = JudgedServer([order], settings={"MCP_TEXT_FALLBACK": "off"})
    assert server.client(capabilities={}).begin("order", {"item": "x"}).error["code"] == -32021
    assert "cannot show" in legacy(server, "tools/call", {"name": "order", "arguments": {"item": "x"}}).text
    assert "answer" not in [each["name"] for each in legacy(server, "tools/list").result["tools"]]


def test_a_tool_of_the_same_name_is_refused_at_start() -> None:
    @tool(name="answer")
    def taken() -> str:
        """Answer something else."""
        return ""

    with pytest.raises(ConfigurationError, match="rename it"):
        Server([taken])
    assert Server([taken], settings={"MCP_TEXT_FALLBACK": "off"}).client().call("answer").text == ""

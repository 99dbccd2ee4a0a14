"""Multi round-trip requests over the endpoint: who may answer, what, when, on which instance, how often."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from pydantic import BaseModel, Field

from app.principal import Principal
from app.protocol import mrtr, request_state
from app.protocol.features import Tool
from app.protocol.jsonrpc import ErrorCode, JSONRPCError
from app.protocol.mrtr import Round
from app.protocol.request_state import LIFETIME, MAX_ROUNDS, Binding, RequestStateCodec
from app.sealing import Key, Keyring
from app.strict_json import JsonObject
from app.testing import FORMS, FORMS_AND_URLS, Client, Reply, Server, accept, cancel, decline
from app.toolkit import Accepted, Cancelled, Context, Declined, InputRequired, Question, tool
from tests.protocol.official_types import judge_result


class Confirm(BaseModel):
    confirm: bool


class Reason(BaseModel):
    reason: str = Field(min_length=3)


@dataclass
class Desk:
    """A destructive tool, and how often its body ran and its effect happened."""

    runs: int = 0
    effects: list[str] = field(default_factory=list)

    def tool(self, name: str = "delete", message: str = "Delete {}?", key: str = "confirm") -> Tool:
        @tool(name=name, destructive=True)
        def any_function_name(target: str, ctx: Context, count: int = 1, force: bool = False) -> str:
            """Delete something. Asks first."""
            self.runs += 1
            match ctx.ask(key, message.format(target), Confirm):
                case Accepted(Confirm(confirm=True)):
                    self.effects.append(target)
                    return f"{target} is gone."
                case Accepted() | Declined():
                    return ctx.stop("The user declined.")
                case Cancelled():
                    return ctx.stop("The user dismissed the question.")

        return any_function_name


PARAMS: Final[JsonObject] = {"name": "delete", "arguments": {"target": "Q3"}}
YES: Final = {"confirm": accept(confirm=True)}


def retry(client: Client, asked: Reply, params: JsonObject = PARAMS, answers: Any = YES) -> Reply:
    return client.retry(asked, params, answers)


def asks_again(reply: Reply) -> bool:
    return reply.status == 200 and reply.result["resultType"] == "input_required" and bool(reply.asked)


def frozen(reply: Reply) -> JsonObject:
    """The response to a state that does not verify, without the id: it must always be the same."""
    assert reply.status == 400
    return {name: value for name, value in reply.message.items() if name != "id"}


FROZEN: Final[JsonObject] = {
    "jsonrpc": "2.0",
    "error": {
        "code": -32602,
        "message": "Invalid or expired requestState",
        "data": {"reason": "invalid_request_state"},
    },
}


def test_a_tool_that_needs_the_user_ends_at_once_with_questions_and_a_sealed_state() -> None:
    """patterns/mrtr, InputRequiredResult; rust-sdk#1098: no `content`; conformance#442: never `{}`."""
    desk = Desk()
    asked = Server([desk.tool()]).client().request("tools/call", PARAMS).result
    judge_result("tools/call", asked)
    assert set(asked) == {"resultType", "inputRequests", "requestState", "_meta"}
    assert asked["inputRequests"]["confirm"]["params"]["message"] == "Delete Q3?"
    assert asked["requestState"].startswith("rs1.")
    assert desk.effects == []


def test_the_question_says_nothing_of_modules_and_functions() -> None:
    """CASES 59: the key is the tool's own, and the state shows nothing."""
    asked = Server([Desk().tool()]).client().request("tools/call", PARAMS)
    assert list(asked.asked) == ["confirm"]
    assert "any_function_name" not in asked.http.body.decode()
    assert __name__ not in asked.http.body.decode()


@pytest.mark.parametrize("instances", [1, 2, 3])
def test_the_retry_is_finished_by_whichever_instance_it_reaches(instances: int) -> None:
    """CASES 25; SECURITY 97."""
    desk = Desk()
    alice = Server([desk.tool()], instances=instances).client(answers=YES)
    assert alice.call("delete", {"target": "Q3"}).text == "Q3 is gone."
    assert [reply.instance for reply in alice.rounds] == [0, 1 % instances]
    assert desk.effects == ["Q3"]


def test_a_restart_between_the_rounds_loses_nothing() -> None:
    """CASES 25, 27."""
    desk = Desk()
    server = Server([desk.tool()])
    alice = server.client()
    asked = alice.request("tools/call", PARAMS)
    server.restart()
    assert retry(alice, asked).text == "Q3 is gone."


OLD, NEW = Key(1, b"1" * 32), Key(2, b"2" * 32)


def test_a_rotation_of_the_key_loses_no_open_question() -> None:
    """SECURITY 2.6, 92: the new key is retired first, then current, then the old one goes."""
    desk = Desk()
    server = Server([desk.tool()], keyring=Keyring(current=OLD))
    alice = server.client()
    asked = alice.request("tools/call", PARAMS)
    for ring in (Keyring(current=OLD, retired=[NEW]), Keyring(current=NEW, retired=[OLD])):
        server.keyring = ring
        server.restart()
        assert retry(alice, asked).text == "Q3 is gone."
    server.keyring = Keyring(current=NEW)
    server.restart()
    assert frozen(retry(alice, asked)) == FROZEN


def test_a_renamed_function_with_the_same_tool_name_and_key_resumes() -> None:
    """CASES 30: nothing in the state or the key comes from a function or a module."""
    first, second = Desk(), Desk()
    server = Server([first.tool()])
    alice = server.client()
    asked = alice.request("tools/call", PARAMS)

    @tool(name="delete")
    def erase_for_good(target: str, ctx: Context) -> str:
        """Delete something, rewritten."""
        match ctx.ask("confirm", f"Delete {target}?", Confirm):
            case Accepted(Confirm(confirm=True)):
                second.effects.append(target)
                return "Rewritten."
            case _:
                return ctx.stop("No.")

    server.restart([erase_for_good])
    assert retry(alice, asked).text == "Rewritten."
    assert (first.effects, second.effects) == ([], ["Q3"])


def test_a_renamed_server_resumes() -> None:
    """CASES 29: the audience is the configured resource, not the server's name."""
    desk = Desk()
    server = Server([desk.tool()])
    alice = server.client()
    asked = alice.request("tools/call", PARAMS)
    server.environment["MCP_SERVER_NAME"] = "another name"
    server.restart()
    assert retry(alice, asked).text == "Q3 is gone."


class Rephrased(BaseModel):
    confirm: bool = Field(description="Tick to delete it for good, with its history")


@pytest.mark.parametrize("change", ["message", "form", "key"])
def test_a_question_that_changed_since_it_was_shown_is_asked_again(change: str) -> None:
    """An answer is consent to what the user read, and to nothing else."""
    desk = Desk()
    server = Server([desk.tool()])
    alice = server.client(answers={**YES, "sure": accept(confirm=True)})
    asked = alice.request("tools/call", PARAMS)
    model = Rephrased if change == "form" else Confirm

    @tool(name="delete")
    def changed(target: str, ctx: Context) -> str:
        """Delete something. Asks first."""
        message = f"Delete {target} and everybody's copies?" if change == "message" else f"Delete {target}?"
        match ctx.ask("sure" if change == "key" else "confirm", message, model):
            case Accepted(value) if value.confirm:  # type: ignore[attr-defined]
                desk.effects.append(target)
                return "Gone."
            case _:
                return ctx.stop("No.")

    server.restart([changed])
    again = retry(alice, asked)
    assert asks_again(again)
    assert desk.effects == []
    assert retry(alice, again, answers={key: accept(confirm=True) for key in again.asked}).text == "Gone."


NO_STATE: Final = object()


@pytest.mark.parametrize("state", [NO_STATE, None], ids=["absent", "null"])
def test_answers_without_the_state_that_asked_are_asked_for(state: object) -> None:
    """SECURITY 98, CASES 66: a client cannot confirm what the user has not seen."""
    desk = Desk()
    params = {**PARAMS, "inputResponses": YES} | ({} if state is NO_STATE else {"requestState": state})
    assert asks_again(Server([desk.tool()]).client().request("tools/call", params))
    assert desk.effects == []


def test_a_confirmation_that_the_model_passes_as_an_argument_is_no_confirmation() -> None:
    """CASES 77: the consent is not in the input schema, and passing it changes nothing."""
    desk = Desk()
    alice = Server([desk.tool()]).client(answers={"confirm": decline()})
    (listed,) = alice.request("tools/list").result["tools"]
    assert "confirm" not in listed["inputSchema"]["properties"]
    assert alice.call("delete", {"target": "Q3", "confirm": True}).text == "The user declined."
    assert desk.effects == []


@dataclass
class Scene:
    """Alice was asked, by a server with a second tool. `other` is that tool's desk."""

    desk: Desk
    other: Desk
    server: Server
    alice: Client
    asked: Reply

    @property
    def state(self) -> str:
        return str(self.asked.result["requestState"])

    def retry(self, client: Client | None = None, **params: Any) -> Reply:
        return retry(client or self.alice, self.asked, {**PARAMS, **params})

    def present(self, state: Any) -> Reply:
        return self.alice.request("tools/call", {**PARAMS, "inputResponses": YES, "requestState": state})

    def deployment(self, **settings: str) -> Server:
        """Another deployment of the same tools with the same key."""
        return Server(self.server.features, keyring=self.server.keyring, settings=settings, clock=self.server.clock)


@pytest.fixture
def scene() -> Scene:
    desk, other = Desk(), Desk()
    server = Server([desk.tool(), other.tool("erase")])
    alice = server.client("alice")
    return Scene(desk, other, server, alice, alice.request("tools/call", PARAMS))


def state_of(client: Client, name: str = "delete") -> str:
    return str(client.request("tools/call", {**PARAMS, "name": name}).result["requestState"])


OTHER_CLIENT: Final = "https://other.example.com/client.json"
STAGING: Final = "https://staging.example.com/mcp"
STRANGERS: Final[dict[str, Callable[[Scene], Client]]] = {
    "another user": lambda scene: scene.server.client("bob"),
    "nearly the same user": lambda scene: scene.server.client("Alice"),
    "another client of the same user": lambda scene: scene.server.client("alice", client_id=OTHER_CLIENT),
    "the same subject at another issuer": lambda scene: scene.deployment(MCP_ISSUER="https://other.example.com").client(
        "alice"
    ),
    "a letter moved from the issuer to the subject": lambda scene: scene.deployment(
        MCP_ISSUER="https://login.example.co"
    ).client("malice"),
    "another audience": lambda scene: scene.deployment(MCP_RESOURCE_URL=STAGING).client("alice"),
}
THEFTS: Final[dict[str, Callable[[Scene], Reply]]] = {
    **{name: lambda scene, who=who: scene.retry(who(scene)) for name, who in STRANGERS.items()},  # type: ignore[misc]
    "another tool": lambda scene: scene.retry(name="erase"),
    "another argument": lambda scene: scene.retry(arguments={"target": "Q1"}),
    "one argument more": lambda scene: scene.retry(arguments={"target": "Q3", "count": 1}),
    "an argument that the tool does not know": lambda scene: scene.retry(arguments={"target": "Q3", "x": 1}),
    "an argument in capitals": lambda scene: scene.retry(arguments={"Target": "Q3"}),
    "no arguments": lambda scene: scene.retry(arguments={}),
    "a suffix": lambda scene: scene.present(scene.state + "-TAMPERED"),
    "padding": lambda scene: scene.present(scene.state + "=="),
    "a line end": lambda scene: scene.present(scene.state + "\n"),
    "one character less": lambda scene: scene.present(scene.state[:-1]),
    "another character": lambda scene: scene.present(scene.state.swapcase()),
    "nothing but the prefix": lambda scene: scene.present("rs1."),
    "an empty text": lambda scene: scene.present(""),
    "a number": lambda scene: scene.present(5),
    "an object": lambda scene: scene.present({"confirm": True}),
    "claims without a seal": lambda scene: scene.present(json.dumps({"v": 1, "n": 1, "q": {"confirm": "x"}})),
    "40 KB of A": lambda scene: scene.present("rs1." + "A" * 40_000),
    "a key that we never had": lambda scene: scene.present(
        state_of(Server([Desk().tool()], keyring=Keyring(current=NEW)).client())
    ),
    "the question of another tool": lambda scene: scene.present(state_of(scene.alice, "erase")),
}


@pytest.mark.parametrize("theft", THEFTS.values(), ids=THEFTS.keys())
def test_a_state_in_the_wrong_hands_gets_one_frozen_error_and_nothing_runs(
    scene: Scene, theft: Callable[[Scene], Reply]
) -> None:
    """MUST, patterns/mrtr, server requirements 4 and 5; SECURITY 83-95 and 106: the same bytes apart from the id."""
    runs = scene.desk.runs
    refused = theft(scene)
    assert frozen(refused) == FROZEN
    assert (scene.desk.runs, scene.desk.effects, scene.other.effects) == (runs, [], [])
    assert scene.retry().text == "Q3 is gone."


def test_an_expired_state_gets_the_same_error_and_a_new_call_begins_anew(scene: Scene) -> None:
    """patterns/mrtr, server requirement 5: a short expiry; CASES 82: the way on is to call again."""
    scene.server.clock.advance(LIFETIME - 1)
    kept = scene.state
    assert scene.retry().text == "Q3 is gone."
    scene.server.clock.advance(1)
    assert frozen(scene.present(kept)) == FROZEN
    assert asks_again(scene.alice.request("tools/call", PARAMS))
    assert scene.desk.effects == ["Q3"]


def test_no_chain_of_fresh_states_outlives_the_cap_on_its_age(scene: Scene) -> None:
    """SECURITY 2.2, 95: `fst` is kept by every round, so that nobody can keep a question open for ever."""
    clock, asked, began = scene.server.clock, scene.asked, scene.server.clock.now
    while clock.now + LIFETIME - 1 <= began + request_state.MAX_AGE:
        clock.advance(LIFETIME - 1)
        asked = retry(scene.server.client("alice"), asked, answers={"confirm": accept()})
        assert asks_again(asked)
    clock.advance(LIFETIME - 1)
    assert frozen(retry(scene.server.client("alice"), asked)) == FROZEN
    assert scene.desk.effects == []


def test_the_round_after_the_cap_says_so_and_does_nothing(scene: Scene) -> None:
    """CASES 67, SECURITY 95: the count is in the seal, where no client resets it."""
    asked = scene.asked
    for _ in range(MAX_ROUNDS - 1):
        asked = retry(scene.alice, asked, answers={"confirm": accept(confirm="yes")})
        assert asks_again(asked)
    last = retry(scene.alice, asked, answers={"confirm": accept(confirm="yes")})
    assert last.is_error
    assert f"more than {MAX_ROUNDS} rounds" in last.text
    assert last.text.endswith("Call the tool again.")
    assert scene.desk.effects == []
    assert retry(scene.alice, asked).text == "Q3 is gone.", "the right answer in the last round still counts"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ('{"target":"Q3","count":1}', '{"count":1,"target":"Q3"}'),
        ('{"target":"Q3","count":1}', '{ "target" : "Q3", "count" : 1.0 }'),
        ('{"target":"Q3","count":1}', '{"target":"\\u00513","count":1e0}'),
        ('{"target":"Q3","count":0}', '{"target":"Q3","count":-0.0}'),
    ],
)
def test_the_same_arguments_in_another_spelling_are_the_same(first: str, second: str) -> None:
    """SECURITY 89: clients in JavaScript write their retries anew."""
    desk = Desk()
    alice = Server([desk.tool()]).client()
    asked = alice.request("tools/call", {"name": "delete", "arguments": json.loads(first)})
    assert resend(alice, second, asked).text == "Q3 is gone."


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ('{"target":"1","count":1}', '{"target":1,"count":1}'),
        ('{"target":"Q3","force":true}', '{"target":"Q3","force":1}'),
        ('{"target":"Q3","count":1}', '{"target":"Q3","count":"1"}'),
        ('{"target":"Q3","count":1}', '{"target":"Q3","count":null}'),
        ('{"target":"Q3","count":9007199254740993}', '{"target":"Q3","count":9007199254740992}'),
    ],
)
def test_other_arguments_are_others_however_alike(first: str, second: str) -> None:
    """SECURITY 89."""
    desk = Desk()
    alice = Server([desk.tool()]).client()
    asked = alice.request("tools/call", {"name": "delete", "arguments": json.loads(first)})
    assert frozen(resend(alice, second, asked)) == FROZEN
    assert desk.effects == []


def resend(alice: Client, arguments: str, asked: Reply) -> Reply:
    """A retry whose arguments are sent exactly as they are written here."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": FORMS,
    }
    rest = {"name": "delete", "inputResponses": YES, "_meta": meta, "requestState": asked.result["requestState"]}
    text = json.dumps({"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": rest})
    body = text.replace('"params": {', f'"params": {{"arguments": {arguments}, ')
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "delete"}
    return alice.post(body.encode(), headers)


def test_a_refreshed_access_token_of_the_same_user_goes_on(scene: Scene) -> None:
    """CASES 90: bound to the principal, not to the token."""
    scene.server.clock.advance(60)
    assert scene.retry(scene.server.client("alice")).text == "Q3 is gone."


@pytest.mark.parametrize(
    "answers",
    [
        {"confirm": None},
        {"confirm": 5},
        {"confirm": True},
        {"confirm": "accept"},
        {"confirm": []},
        {"confirm": {}},
        {"confirm": {"content": {"confirm": True}}},
        {"confirm": {"action": "ACCEPT", "content": {"confirm": True}}},
        {"confirm": {"action": "yes", "content": {"confirm": True}}},
        {"confirm": {"action": True, "content": {"confirm": True}}},
        {"confirm": accept(confirm="true")},
        {"confirm": accept(confirm="yes")},
        {"confirm": accept(confirm=1)},
        {"confirm": accept(confirm=None)},
        {"confirm": accept(confirm="")},
        {"confirm": accept(confirm=[True])},
        {"confirm": {"action": "accept"}},
        {"confirm": {"action": "accept", "content": None}},
        {"confirm": {"action": "accept", "content": ["confirm"]}},
        {"confirm": {"action": "accept", "content": {}}},
        {},
        {"Confirm": accept(confirm=True)},
        {"confirm ": accept(confirm=True)},
        None,
    ],
    ids=repr,
)
def test_what_is_no_consent_is_asked_again(scene: Scene, answers: Any) -> None:
    """SECURITY 107, patterns/mrtr, Error Handling: an incomplete answer is asked for again, never taken."""
    again = retry(scene.alice, scene.asked, answers=answers)
    assert asks_again(again)
    assert scene.desk.effects == []
    assert retry(scene.alice, again).text == "Q3 is gone."


@pytest.mark.parametrize("answers", [[], [YES], "confirm", 5, True], ids=repr)
def test_input_responses_that_are_no_object_are_a_protocol_error(scene: Scene, answers: Any) -> None:
    refused = retry(scene.alice, scene.asked, answers=answers)
    assert (refused.status, refused.error["code"]) == (400, -32602)
    assert scene.desk.effects == []


def test_an_invalid_answer_is_asked_again_with_the_reason_and_then_accepted() -> None:
    """CASES 53: the same question under the same key, with what was wrong before it."""
    seen: list[str] = []

    @tool
    def close(ctx: Context) -> str:
        """Ask for a reason."""
        match ctx.ask("why", "Why?", Reason):
            case Accepted(Reason(reason=reason)):
                return reason
            case _:
                return ctx.stop("No.")

    answers = iter([accept(reason=5), accept(reason="no"), accept(), accept(reason="spam")])

    def on_elicitation(key: str, request: JsonObject) -> JsonObject:
        seen.append(request["params"]["message"])
        return next(answers)

    alice = Server([close]).client(on_elicitation=on_elicitation)
    assert alice.call("close").text == "spam"
    assert seen[0] == "Why?"
    for message, wrong in zip(seen[1:], ("valid string", "at least 3 characters", "Field required"), strict=True):
        assert message.startswith("The last answer did not fit: reason: ")
        assert wrong in message
        assert message.endswith("\n\nWhy?")


@pytest.mark.parametrize(("response", "said"), [(decline(), "declined"), (cancel(), "dismissed")])
@pytest.mark.parametrize("content", [{}, {"content": {"confirm": True}}, {"content": None}], ids=repr)
def test_decline_and_cancel_end_the_call_in_the_same_round(
    scene: Scene, response: JsonObject, said: str, content: JsonObject
) -> None:
    """CASES 50, 51, 69; SECURITY 109: never the same question again, never consent."""
    ended = retry(scene.alice, scene.asked, answers={"confirm": response | content})
    assert ended.is_error
    assert said in ended.text
    assert scene.desk.effects == []


def test_answers_that_nobody_asked_for_are_ignored(scene: Scene) -> None:
    """patterns/mrtr, Error Handling; SECURITY 110."""
    noise = {f"key{number}": accept(confirm=True) for number in range(1000)}
    assert retry(scene.alice, scene.asked, answers=noise | YES).text == "Q3 is gone."


def test_what_nobody_asked_for_is_not_carried_to_the_next_round() -> None:
    """It would fill the state: a client must not make our answers too large for itself to send back."""
    alice = Server([three_steps]).client()
    noise = {f"key{number}": accept(text="x" * 100) for number in range(1000)}
    asked = retry(alice, alice.begin("wizard"), {"name": "wizard"}, noise | {"one": accept(reason="first")})
    assert list(asked.asked) == ["two"]
    assert len(asked.result["requestState"]) < 1000


def test_a_repeated_request_runs_again_under_the_same_flow_id() -> None:
    """README, What travels: the flow id is what a tool guards its effect with."""
    flows: list[str] = []

    @tool
    def pay(ctx: Context) -> str:
        """Pay something. Asks first."""
        ctx.ask("confirm", "Pay?", Confirm)
        flows.append(ctx.flow_id)
        return "Paid."

    alice = Server([pay]).client()
    params: JsonObject = {"name": "pay", "arguments": {}}
    for asked in (alice.request("tools/call", params), alice.request("tools/call", params)):
        retry(alice, asked, params)
        retry(alice, asked, params)
    first, again, other, other_again = flows
    assert first == again != other == other_again


@tool(name="wizard")
def three_steps(ctx: Context) -> str:
    """Ask three questions, one after another."""
    answers = [ctx.ask(key, f"Step {key}?", Reason) for key in ("one", "two", "three")]
    return ", ".join(each.value.reason if isinstance(each, Accepted) else "-" for each in answers)


def test_each_of_several_rounds_asks_one_question_and_keeps_the_answers_before_it() -> None:
    """Answers of earlier rounds ride in the seal: the client sends each once, and is asked each once."""
    alice = Server([three_steps], instances=3).client(
        answers={"one": accept(reason="first"), "two": decline(), "three": accept(reason="third")}
    )
    assert alice.call("wizard").text == "first, -, third"
    assert [list(reply.asked) for reply in alice.rounds] == [["one"], ["two"], ["three"], []]
    assert len({reply.result.get("requestState") for reply in alice.rounds}) == 4


def test_an_answer_that_counts_is_not_replaced_by_a_later_one() -> None:
    """What the user said when asked is what counts, not what a client sends along afterwards."""
    alice = Server([three_steps]).client()
    params: JsonObject = {"name": "wizard", "arguments": {}}
    asked = alice.request("tools/call", params)
    asked = retry(alice, asked, params, {"one": accept(reason="first")})
    asked = retry(alice, asked, params, {"two": accept(reason="second"), "one": accept(reason="changed")})
    assert retry(alice, asked, params, {"three": accept(reason="third")}).text == "first, second, third"


def test_answers_to_questions_that_come_later_are_not_taken_in_advance() -> None:
    """SECURITY 1, malicious client: an answer counts only for a question that a verified state says was asked."""
    alice = Server([three_steps]).client()
    params: JsonObject = {"name": "wizard", "arguments": {}}
    asked = alice.request("tools/call", params)
    everything = {key: accept(reason=key) for key in ("one", "two", "three")}
    asked = retry(alice, asked, params, everything)
    assert list(asked.asked) == ["two"]
    asked = retry(alice, asked, params, everything)
    assert list(asked.asked) == ["three"]


@pytest.mark.parametrize("first", ["left", "right"])
def test_of_several_questions_only_the_unanswered_are_asked_again(first: str) -> None:
    """patterns/mrtr, Error Handling: ask for the missing information again."""

    @tool
    def both(ctx: Context) -> str:
        """Ask two things at once."""
        given = ctx.ask_all({"left": Question("Left?", Reason), "right": Question("Right?", Reason)})
        return ", ".join(f"{key} {each.value.reason}" for key, each in given.items() if isinstance(each, Accepted))

    second = {"left": "right", "right": "left"}[first]
    alice = Server([both]).client()
    params: JsonObject = {"name": "both", "arguments": {}}
    asked = alice.request("tools/call", params)
    assert list(asked.asked) == ["left", "right"]
    asked = retry(alice, asked, params, {first: accept(reason="aaa")})
    assert list(asked.asked) == [second]
    asked = retry(alice, asked, params, {second: accept(reason=""), first: accept(reason="changed")})
    assert list(asked.asked) == [second]
    expected = {first: "aaa", second: "bbb"}
    done = retry(alice, asked, params, {second: accept(reason="bbb")})
    assert done.text == f"left {expected['left']}, right {expected['right']}"


def test_a_changed_question_of_an_earlier_round_is_asked_again_and_the_others_are_kept() -> None:
    wording = {"one": "Step one?"}

    @tool
    def wizard(ctx: Context) -> str:
        """Ask two questions, one after another."""
        given = [ctx.ask("one", wording["one"], Reason), ctx.ask("two", "Step two?", Reason)]
        return ", ".join(each.value.reason for each in given if isinstance(each, Accepted))

    alice = Server([wizard]).client()
    params: JsonObject = {"name": "wizard", "arguments": {}}
    asked = retry(alice, alice.request("tools/call", params), params, {"one": accept(reason="old")})
    wording["one"] = "Step one, in other words?"
    asked = retry(alice, asked, params, {"two": accept(reason="second"), "one": accept(reason="sneaked in")})
    assert list(asked.asked) == ["one"]
    assert retry(alice, asked, params, {"one": accept(reason="new")}).text == "new, second"


def test_two_clients_with_different_capabilities_alternate() -> None:
    """CASES 26: what a client can show is read from each request, and nothing of it is kept."""
    desk = Desk()
    server = Server([desk.tool()], instances=1)
    shows, shows_not = server.client(capabilities={"elicitation": {}}), server.client(capabilities={})
    for _ in range(2):
        asked = shows.request("tools/call", PARAMS)
        assert asks_again(asked)
        refused = shows_not.request("tools/call", PARAMS)
        assert (refused.status, refused.error["code"]) == (400, -32021)
        assert refused.error["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}
    assert retry(shows_not, asked).text == "Q3 is gone.", "nothing more is asked, so nothing is missing"


def test_every_capability_that_is_missing_is_named_at_once() -> None:
    """-32021, data.requiredCapabilities: a client that adds what is named must not be refused again."""
    visit = {"method": "elicitation/create", "params": {"mode": "url", "url": "https://example.com/", "message": "Go"}}

    @tool
    def survey(ctx: Context) -> str | InputRequired:
        """Ask in every way there is."""
        return InputRequired({"form": Question("Sure?", Confirm), "url": visit, "roots": {"method": "roots/list"}})

    for capabilities, missing in (
        ({}, {"elicitation": {"form": {}, "url": {}}, "roots": {}}),
        ({"roots": {}}, {"elicitation": {"form": {}, "url": {}}}),
        (FORMS, {"elicitation": {"url": {}}, "roots": {}}),
        (FORMS_AND_URLS, {"roots": {}}),
    ):
        refused = Server([survey]).client(capabilities=capabilities).request("tools/call", {"name": "survey"})
        assert refused.error["data"] == {"requiredCapabilities": missing}
    asked = (
        Server([survey]).client(capabilities={**FORMS_AND_URLS, "roots": {}}).request("tools/call", {"name": "survey"})
    )
    assert list(asked.asked) == ["form", "url", "roots"]


@pytest.mark.parametrize(("capabilities", "status"), [(FORMS, 200), ({}, 400)], ids=["can be shown", "cannot be shown"])
def test_a_tool_that_catches_every_exception_swallows_no_question(capabilities: JsonObject, status: int) -> None:
    """Neither the question nor the -32021 may end as the tool's own result."""

    @tool
    def careful(ctx: Context) -> str:
        """Ask inside a try."""
        try:
            ctx.ask("confirm", "Sure?", Confirm)
        except Exception:
            return "swallowed"
        return "answered"

    reply = Server([careful]).client(capabilities=capabilities).request("tools/call", {"name": "careful"})
    assert reply.status == status
    assert "swallowed" not in reply.http.body.decode()


def test_a_question_without_a_mode_is_a_form() -> None:
    """CASES 41; client/elicitation: clients MUST treat requests without a mode as form mode."""

    @tool
    def bare(ctx: Context) -> str | InputRequired:
        """Ask without a mode."""
        schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
        return InputRequired(
            {"ok": {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": schema}}}
        )

    assert asks_again(Server([bare]).client(capabilities=FORMS).request("tools/call", {"name": "bare"}))
    refused = Server([bare]).client(capabilities={"elicitation": {"url": {}}}).request("tools/call", {"name": "bare"})
    assert refused.error["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}


@pytest.mark.parametrize(
    "where",
    ["arguments", "a key of the arguments", "an answer", "a key of the answers", "the state"],
)
def test_a_lone_surrogate_is_refused_before_anything_runs(scene: Scene, where: str) -> None:
    """CASES 34: it crashes hashing, logging and stores one after another."""
    runs = scene.desk.runs
    lone = "x\ud800"
    members: dict[str, JsonObject] = {
        "arguments": {"arguments": {"target": lone}},
        "a key of the arguments": {"arguments": {"target": "Q3", lone: 1}},
        "an answer": {"inputResponses": {"confirm": accept(confirm=lone)}},
        "a key of the answers": {"inputResponses": {lone: accept(confirm=True)}},
        "the state": {"requestState": lone},
    }
    retried = {**PARAMS, "inputResponses": YES, "requestState": scene.state, **members[where]}
    refused = scene.alice.request("tools/call", retried)
    assert (refused.status, refused.error["code"]) == (400, -32700)
    assert (scene.desk.runs, scene.desk.effects) == (runs, [])


def test_a_lone_surrogate_of_our_own_survives_the_state() -> None:
    @tool
    def odd(ctx: Context) -> str | InputRequired:
        """Carry what no UTF-8 can say."""
        if ctx.state is None:
            return InputRequired({"confirm": Question("Sure \ud800?", Confirm)}, state={"\ud800": "\udc00x"})
        return ascii(ctx.state)

    assert Server([odd]).client(answers=YES).call("odd").text == r"{'\ud800': '\udc00x'}"


def test_an_answer_that_is_too_large_to_carry_ends_with_a_clear_error() -> None:
    """SECURITY 2.4: at most 16 KiB travel; what does not fit is said, not cut."""
    alice = Server([three_steps]).client(answers={"one": accept(reason="x" * 17_000)})
    ended = alice.call("wizard")
    assert ended.is_error
    assert ended.text.endswith("Carry an id, and keep the content in a store.")


@tool(stateless=True)
def greet(ctx: Context) -> str:
    """Ask for a name; nothing is changed by it."""
    match ctx.ask("user_name", "What is your name?", Reason):
        case Accepted(Reason(reason=name)):
            return f"Hello, {name}!"
        case _:
            return "Hello!"


NAME: Final = {"user_name": accept(reason="Alice")}


@pytest.mark.parametrize(
    ("responses", "text"),
    [
        (NAME, "Hello, Alice!"),
        ({**NAME, "unknown": 1, "other": accept(confirm=True)}, "Hello, Alice!"),
        ({"user_name": decline()}, "Hello!"),
        ({"user_name": 12345}, None),
        ({"user_name": accept()}, None),
        ({"wrong_key": accept(reason="Alice")}, None),
        ({}, None),
        (None, None),
    ],
    ids=repr,
)
def test_a_stateless_tool_takes_answers_without_a_state(responses: Any, text: str | None) -> None:
    """Conformance, input-required-result-ignore-extra-params, -validate-input and -missing-input-response."""
    reply = Server([greet]).client().request("tools/call", {"name": "greet", "inputResponses": responses})
    assert asks_again(reply) if text is None else reply.text == text


def test_a_stateless_tool_still_refuses_a_state_that_does_not_verify() -> None:
    """SECURITY 2.7: a state is verified wherever it comes; conformance, tampered-state."""
    params: JsonObject = {"name": "greet", "arguments": {}}
    alice = Server([greet]).client(answers=NAME)
    assert alice.call("greet").text == "Hello, Alice!"
    state = alice.rounds[0].result["requestState"]
    tampered = {**params, "inputResponses": NAME, "requestState": state + "-TAMPERED"}
    assert frozen(alice.request("tools/call", tampered)) == FROZEN


@pytest.mark.parametrize("method", ["tools/list", "server/discover"])
@pytest.mark.parametrize(
    "member", [{"inputResponses": YES}, {"requestState": "rs1.x"}], ids=lambda each: next(iter(each))
)
def test_a_method_that_never_asks_takes_no_answers(method: str, member: JsonObject) -> None:
    """patterns/mrtr, Supported Requests; CASES 81."""
    refused = Server([greet]).client().request(method, member)
    assert (refused.status, refused.error["code"]) == (400, -32602)
    assert refused.error["message"].endswith("it never asks for input")


ASK: Final[JsonObject] = {"method": "elicitation/create", "params": {"mode": "form", "message": "?"}}


def a_round(past: request_state.RequestState | None = None, **given: Any) -> Round:
    past = past or request_state.begin(now=0, entropy=bytes(16))
    return Round(**{"past": past, "responses": {}, "capabilities": FORMS_AND_URLS, **given})


@pytest.mark.parametrize("key", ["", "a:b", "app.tools.close", "a b", "x" * 65])
def test_a_question_under_a_key_that_gateways_rewrite_is_a_fault_of_the_tool(key: str) -> None:
    """CASES 58."""
    with pytest.raises(ValueError, match="1 to 64 of A-Z a-z 0-9 _ -: rename it"):
        a_round().ask(key, ASK)


@pytest.mark.parametrize("request_", [{}, {"method": "ping"}, {"method": "tools/call"}, {"method": None}], ids=repr)
def test_a_question_that_is_no_input_request_is_a_fault_of_the_tool(request_: JsonObject) -> None:
    """patterns/mrtr, server requirement 2: one of three requests."""
    with pytest.raises(ValueError, match="must be one of elicitation/create, sampling/createMessage, roots/list"):
        a_round().ask("key", request_)


def test_a_question_that_is_no_json_is_a_fault_of_the_tool() -> None:
    with pytest.raises(TypeError):
        a_round().ask("key", {**ASK, "params": {"message": object()}})


def test_a_round_that_only_waits_has_a_state_and_no_questions() -> None:
    """patterns/mrtr, server requirement 6: at least one of the two; CASES 74: never an empty map."""
    binding = Binding("https://mcp.example.com/mcp", Principal("i", "s", "c"), "tools/call", "wait", b"{}")
    codec = RequestStateCodec(Keyring(current=OLD))
    waiting = a_round().input_required(codec, binding, now=0, state={"step": 1})
    assert set(waiting) == {"resultType", "requestState"}
    assert codec.open(waiting["requestState"], binding, now=1).state == {"step": 1}


def test_rounds_that_only_waited_are_counted_until_one_does_something_else() -> None:
    """SECURITY 2.5: after three of them in a row a client is not told to come again."""
    binding = Binding("https://mcp.example.com/mcp", Principal("i", "s", "c"), "tools/call", "wait", b"{}")
    codec = RequestStateCodec(Keyring(current=OLD))
    current, seen = a_round(), []
    for waiting in (True, True, False, True):
        result = current.input_required(codec, binding, now=0, waiting=waiting)
        current = a_round(codec.open(result["requestState"], binding, now=0))
        seen.append(current.waits)
    assert seen == [1, 2, 0, 1]
    assert current.number == 5


def test_the_number_of_a_round_counts_from_one_and_the_flow_keeps_its_id() -> None:
    binding = Binding("https://mcp.example.com/mcp", Principal("i", "s", "c"), "tools/call", "wait", b"{}")
    codec = RequestStateCodec(Keyring(current=OLD))
    first = a_round()
    second = a_round(codec.open(first.input_required(codec, binding, now=0)["requestState"], binding, now=0))
    assert (first.number, second.number) == (1, 2)
    assert first.flow_id == second.flow_id


@pytest.mark.parametrize("params", [{}, {"inputResponses": None}, {"inputResponses": {}}], ids=repr)
def test_no_input_responses_are_none(params: JsonObject) -> None:
    assert mrtr.read_responses(params) == {}


def test_input_responses_of_another_type_are_an_invalid_parameter() -> None:
    with pytest.raises(JSONRPCError) as refused:
        mrtr.read_responses({"inputResponses": []})
    assert refused.value.code is ErrorCode.INVALID_PARAMS

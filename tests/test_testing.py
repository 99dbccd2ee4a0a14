"""The kit for a template user's own tests: clients, answers, a clock, and replies that say what went wrong."""

import json
from typing import Any

import jwt
import pytest
from pydantic import BaseModel

from app.errors import ConfigurationError
from app.sealing import Key, Keyring
from app.strict_json import JsonObject
from app.testing import (
    CLIENT_ID,
    FORMS,
    FORMS_AND_URLS,
    ISSUER,
    RESOURCE,
    Clock,
    Issuer,
    Server,
    accept,
    cancel,
    decline,
)
from app.toolkit import Accepted, Context, tool


class Confirm(BaseModel):
    confirm: bool


@tool(scopes=["pets:write"])
def adopt(pet: str, ctx: Context) -> str:
    """Adopt a pet. Asks first."""
    match ctx.ask("confirm", f"Adopt {pet}?", Confirm):
        case Accepted(Confirm(confirm=True)):
            return f"{ctx.principal.subject} adopts {pet}."
        case _:
            return ctx.stop("Not now.")


@tool
def ping() -> str:
    """Answer."""
    return "pong"


YES = {"confirm": accept(confirm=True)}


def test_the_three_answers_are_elicit_results() -> None:
    """client/elicitation, Response Actions."""
    assert accept(a=1, b="x") == {"action": "accept", "content": {"a": 1, "b": "x"}}
    assert accept() == {"action": "accept", "content": {}}
    assert (decline(), cancel()) == ({"action": "decline"}, {"action": "cancel"})


def test_a_call_answers_what_is_asked_and_keeps_every_round() -> None:
    alice = Server([adopt]).client("alice", answers=YES)
    assert alice.call("adopt", {"pet": "Rex"}).text == "alice adopts Rex."
    assert [reply.status for reply in alice.rounds] == [200, 200]
    assert alice.rounds[0].asked["confirm"]["params"]["message"] == "Adopt Rex?"
    assert alice.rounds[1].asked == {}
    alice.call("adopt", {"pet": "Tom"})
    assert len(alice.rounds) == 2, "the rounds of the last call only"


def test_answers_may_depend_on_the_question() -> None:
    def answer(key: str, request: JsonObject) -> JsonObject:
        return accept(confirm="Rex" in request["params"]["message"])

    alice = Server([adopt]).client(on_elicitation=answer)
    assert not alice.call("adopt", {"pet": "Rex"}).is_error
    assert alice.call("adopt", {"pet": "Tom"}).is_error


def test_a_question_without_an_answer_fails_the_test_and_names_it() -> None:
    with pytest.raises(
        AssertionError, match=r"The tool asked 'confirm', and the test has no answer for it: .*Adopt Rex"
    ):
        Server([adopt]).client().call("adopt", {"pet": "Rex"})


def test_a_tool_that_never_stops_asking_fails_the_test() -> None:
    alice = Server([adopt]).client(answers={"confirm": accept(confirm="yes")})
    with pytest.raises(AssertionError, match="adopt still asks after 3 rounds"):
        alice.call("adopt", {"pet": "Rex"}, max_rounds=3)


def test_a_begun_call_shows_its_questions_and_a_retry_answers_them() -> None:
    alice = Server([adopt]).client()
    asked = alice.begin("adopt", {"pet": "Rex"})
    assert list(asked.asked) == ["confirm"]
    params: JsonObject = {"name": "adopt", "arguments": {"pet": "Rex"}}
    assert alice.retry(asked, params, YES).text == "alice adopts Rex."
    assert alice.retry(asked, params, {"confirm": decline()}).text == "Not now."


def test_a_reply_that_is_not_what_the_test_expects_says_what_it_is() -> None:
    """Not a KeyError: whoever wrote the test wants to read the answer."""
    alice = Server([adopt, ping]).client()
    refused = alice.begin("nobody")
    with pytest.raises(AssertionError, match=r"There is no result, the answer is 400: .*Unknown tool: nobody"):
        _ = refused.result
    with pytest.raises(AssertionError, match="the answer is 400"):
        _ = refused.text
    assert refused.error["code"] == -32602
    with pytest.raises(AssertionError, match=r"There is no error, the answer is 200: .*pong"):
        _ = alice.call("ping").error
    with pytest.raises(AssertionError, match=r"The call is not finished, it asks: .*Adopt Rex"):
        _ = alice.begin("adopt", {"pet": "Rex"}).text


def test_a_tool_error_is_told_from_a_result() -> None:
    alice = Server([adopt, ping]).client(answers={"confirm": decline()})
    assert not alice.call("ping").is_error
    assert alice.call("adopt", {"pet": "Rex"}).is_error
    assert alice.call("ping", {}).text == "pong"


@pytest.mark.parametrize("instances", [1, 2, 3])
def test_requests_go_round_robin(instances: int) -> None:
    alice = Server([ping], instances=instances).client()
    assert [alice.call("ping").instance for _ in range(6)] == [number % instances for number in range(6)]


def test_instances_share_the_keys_and_nothing_else_even_after_a_restart() -> None:
    server = Server([adopt])
    alice = server.client()
    asked = alice.begin("adopt", {"pet": "Rex"})
    server.restart()
    assert alice.retry(asked, {"name": "adopt", "arguments": {"pet": "Rex"}}, YES).text == "alice adopts Rex."


def test_another_key_ring_opens_nothing() -> None:
    asked = Server([adopt]).client().begin("adopt", {"pet": "Rex"})
    other = Server([adopt], keyring=Keyring(current=Key(7, b"7" * 32))).client()
    assert other.retry(asked, {"name": "adopt", "arguments": {"pet": "Rex"}}, YES).status == 400


def test_time_passes_when_the_test_says_so() -> None:
    clock = Clock(now=1_000_000)
    server = Server([adopt], clock=clock)
    alice = server.client()
    asked = alice.begin("adopt", {"pet": "Rex"})
    clock.advance(601)
    assert alice.retry(asked, {"name": "adopt", "arguments": {"pet": "Rex"}}, YES).status == 400
    clock.advance(3600)
    assert alice.begin("adopt", {"pet": "Rex"}).status == 401, "the access token has expired as well"
    assert server.client().begin("adopt", {"pet": "Rex"}).status == 200


def test_a_client_has_the_scopes_that_the_tools_need_unless_said_otherwise() -> None:
    server = Server([adopt, ping])
    assert server.client().begin("adopt", {"pet": "Rex"}).status == 200
    assert server.client(scope="pets:read").begin("adopt", {"pet": "Rex"}).status == 403
    assert server.client(scope="").call("ping").text == "pong"


@pytest.mark.parametrize(
    ("capabilities", "status"),
    [(None, 200), (FORMS, 200), (FORMS_AND_URLS, 200), ({}, 400), ({"elicitation": {"url": {}}}, 400)],
)
def test_a_client_declares_forms_unless_said_otherwise(capabilities: Any, status: int) -> None:
    assert Server([adopt]).client(capabilities=capabilities).begin("adopt", {"pet": "Rex"}).status == status


def test_another_user_and_another_client_are_others() -> None:
    server = Server([adopt])
    assert server.client("bob", answers=YES).call("adopt", {"pet": "Rex"}).text == "bob adopts Rex."
    claims = jwt.decode(server.client("bob", client_id="other").token, options={"verify_signature": False})
    assert (claims["sub"], claims["client_id"], claims["iss"], claims["aud"]) == ("bob", "other", ISSUER, RESOURCE)


@pytest.mark.parametrize(
    "settings",
    [
        {"MCP_ISSUER": "https://sso.corp.example"},
        {"MCP_RESOURCE_URL": "https://tools.corp.example/v1/mcp"},
        {"MCP_SERVER_NAME": "pets"},
        {"MCP_SUBJECT_CLAIM": "sub", "MCP_REQUIRED_SCOPES": "pets:write"},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_a_server_with_your_own_settings_still_knows_its_clients(settings: dict[str, str]) -> None:
    assert Server([adopt], settings=settings).client(answers=YES).call("adopt", {"pet": "Rex"}).status == 200


def test_settings_that_cannot_work_are_refused_as_in_a_deployment() -> None:
    with pytest.raises(ConfigurationError, match="MCP_RESOURCE_URL"):
        Server([ping], settings={"MCP_RESOURCE_URL": "http://mcp.example.com/mcp"})


def test_an_access_token_can_be_made_wrong_in_every_way() -> None:
    issuer = Issuer(Clock())
    token = issuer.mint("alice", scope="a b", headers={"typ": None, "kid": "other"}, jti=None, nbf=5)
    claims, header = jwt.decode(token, options={"verify_signature": False}), jwt.get_unverified_header(token)
    assert (claims["scope"], claims["nbf"], claims["client_id"]) == ("a b", 5, CLIENT_ID)
    assert "jti" not in claims
    assert header["kid"] == "other"


def test_the_issuer_counts_what_was_fetched_and_can_be_down() -> None:
    server = Server([ping], instances=1)
    alice = server.client()
    alice.call("ping")
    alice.call("ping")
    assert server.issuer.fetched == [f"{ISSUER}/.well-known/oauth-authorization-server", f"{ISSUER}/jwks"]
    down = Server([ping], instances=1)
    down.issuer.documents.clear()
    assert down.client().begin("ping").status == 503


def test_headers_can_be_replaced_and_left_out() -> None:
    alice = Server([ping]).client()
    params: JsonObject = {"name": "ping", "arguments": {}}
    assert alice.request("tools/call", params).status == 200
    assert alice.request("tools/call", params, mcp_name="pong").error["code"] == -32020
    assert alice.request("tools/call", params, mcp_method=None).error["code"] == -32020
    assert alice.request("tools/call", params, authorization=None).status == 401


def test_a_body_can_be_sent_as_it_is() -> None:
    alice = Server([ping]).client()
    assert alice.post(b"{", {}).error["code"] == -32700
    assert alice.post(json.dumps([]).encode(), {}).error["code"] == -32600


def test_each_request_has_an_id_of_its_own_for_the_log() -> None:
    alice = Server([ping]).client()
    assert [alice.call("ping").http.facts["request_id"] for _ in range(2)] == ["test-1", "test-2"]

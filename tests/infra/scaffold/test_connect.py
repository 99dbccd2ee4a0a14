"""new_tool: sends its user to our page first, and never shows the token."""

import pytest

from app.strict_json import JsonObject
from app.testing import FORMS_AND_URLS, Server, cancel, decline
from infra.scaffold.kinds.connect import PROVIDER, SCOPES, new_tool

KEY = f"connect_{PROVIDER}"


@pytest.fixture
def server() -> Server:
    return Server([new_tool], providers=[PROVIDER])


def test_it_sends_the_user_to_our_page_and_always_to_the_same(server: Server) -> None:
    alice = server.client("alice", capabilities=FORMS_AND_URLS)
    first = alice.begin("new_tool")
    url = first.asked[KEY]["params"]["url"]
    assert url.startswith("https://mcp.example.com/connect/")
    too_early = alice.retry(first, {"name": "new_tool", "arguments": {}}, {KEY: {"action": "accept"}})
    assert too_early.asked[KEY]["params"]["url"] == url


def test_a_connected_user_gets_the_result_and_nobody_the_token(server: Server) -> None:
    server.connect("alice", PROVIDER, scopes=SCOPES, access_token="for-the-provider-only", account="alice-hub")
    reply = server.client("alice").call("new_tool")
    assert reply.text == "Connected as alice-hub."
    assert "for-the-provider-only" not in reply.http.body.decode()


@pytest.mark.parametrize("answer", [decline(), cancel()])
def test_a_user_who_does_not_want_to_ends_it(server: Server, answer: JsonObject) -> None:
    alice = server.client("alice", capabilities=FORMS_AND_URLS, answers={KEY: answer})
    assert alice.call("new_tool").is_error


def test_a_connection_of_one_user_is_not_anothers(server: Server) -> None:
    server.connect("alice", PROVIDER, scopes=SCOPES)
    assert server.client("bob", capabilities=FORMS_AND_URLS).begin("new_tool").asked

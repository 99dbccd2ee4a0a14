"""list_repositories: connects first, never shows the token, and says why it cannot go on."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from app.testing import FORMS_AND_URLS, Server, cancel, decline
from app.tools.list_repositories import list_repositories

SCOPES = ["repo:read", "user:read"]


@pytest.fixture
def server() -> Server:
    return Server([list_repositories], providers=["hub"])


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """An API that notes how it was authorized."""
    seen: list[str] = []

    class Api(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers["authorization"])
            self.send_response(200)
            self.end_headers()
            repository = {"owner": "alice-hub", "name": "diary", "private": True, "description": ""}
            self.wfile.write(json.dumps([repository]).encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Api) as api:
        Thread(target=api.serve_forever, daemon=True).start()
        monkeypatch.setenv("HUB_API_URL", f"http://127.0.0.1:{api.server_port}")
        yield seen
        api.shutdown()


def test_it_sends_the_user_to_our_page_and_always_to_the_same(server: Server) -> None:
    """MCP client/elicitation, URL mode: the link reveals nothing and is not the third party's."""
    alice = server.client("alice", capabilities=FORMS_AND_URLS)
    first = alice.begin("list_repositories")
    params = first.asked["connect_hub"]["params"]
    assert params["mode"] == "url"
    assert params["url"].startswith("https://mcp.example.com/connect/")
    again = alice.retry(first, {"name": "list_repositories", "arguments": {}}, {"connect_hub": {"action": "accept"}})
    assert again.asked["connect_hub"]["params"]["url"] == params["url"]


def test_it_lists_what_the_connection_gives(server: Server, hub: list[str]) -> None:
    """The token is the connection's: never the one that the client sent."""
    server.connect("alice", "hub", scopes=SCOPES, access_token="the-hubs-token")
    reply = server.client("alice").call("list_repositories")
    assert reply.result["structuredContent"][0]["name"] == "diary"
    assert hub == ["Bearer the-hubs-token"]
    assert "the-hubs-token" not in reply.http.body.decode()


@pytest.mark.parametrize(("answer", "said"), [(decline(), "declined"), (cancel(), "not finished")])
def test_a_user_who_does_not_want_to_ends_it(server: Server, answer: dict[str, str], said: str) -> None:
    """Decline and cancel are two things."""
    alice = server.client("alice", capabilities=FORMS_AND_URLS, answers={"connect_hub": answer})
    reply = alice.call("list_repositories")
    assert reply.is_error
    assert said in reply.text


def test_a_client_without_url_mode_gets_the_link_as_text(server: Server) -> None:
    """`link_as_text=True`: many hosts declare form mode only."""
    reply = server.client("alice").call("list_repositories")
    assert reply.is_error
    assert "https://mcp.example.com/connect/" in reply.text


def test_another_client_of_the_same_user_has_to_be_approved_first(server: Server) -> None:
    """SECURITY 1: the user connected for one client, not for all."""
    server.connect("alice", "hub", scopes=SCOPES)
    other = server.client("alice", client_id="another-client", capabilities=FORMS_AND_URLS)
    assert other.begin("list_repositories").asked


def test_an_api_that_does_not_answer_is_said_without_detail(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model gets a sentence that it can act on."""
    monkeypatch.setenv("HUB_API_URL", "http://127.0.0.1:1")
    server.connect("alice", "hub", scopes=SCOPES)
    reply = server.client("alice").call("list_repositories")
    assert reply.is_error
    assert "Try again later" in reply.text

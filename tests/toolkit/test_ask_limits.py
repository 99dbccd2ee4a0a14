"""How often a principal's user may be asked, and sent to a browser: limits that the deployment sets."""

from typing import Any

import pytest

from app.errors import ConfigurationError
from app.strict_json import JsonObject
from app.testing import FORMS_AND_URLS, Client, Server, accept
from app.toolkit import Context, InputRequired, Question, prompt, resource, tool
from tests.protocol.endpoint import JudgedServer
from tests.toolkit.shop import BUY, YES, Confirm, Shop, asked, params

TWICE = {"MCP_ASK_LIMIT": "2/60"}


@tool
def ask(ctx: Context) -> str:
    """Ask one question."""
    ctx.ask("confirm", "Sure?", Confirm)
    return "done"


@tool
def explicit(ctx: Context) -> InputRequired:
    """Ask in the explicit style."""
    return InputRequired({"confirm": Question("Sure?", Confirm)})


@tool(approval="session")
def approved(ctx: Context) -> str:
    """Ask for an approval."""
    return "done"


@prompt
def letter(ctx: Context) -> str:
    """Ask, for a prompt."""
    ctx.ask("confirm", "Sure?", Confirm)
    return "done"


@resource("shop://letters")
def letters(ctx: Context) -> str:
    """Ask, for a resource."""
    ctx.ask("confirm", "Sure?", Confirm)
    return "done"


@tool
def login(ctx: Context) -> str:
    """Connect a third party."""
    return ctx.connect("hub").access_token


@tool
def secret(name: str, ctx: Context) -> str:
    """Ask for a secret."""
    return ctx.secret(name, "Type it.")


@pytest.fixture
def server() -> Server:
    offered = [ask, explicit, approved, letter, letters, login, secret]
    return JudgedServer(offered, settings=TWICE, providers=["hub"])


def use_up(client: Client) -> None:
    for _ in range(2):
        assert client.begin("ask").asked


def test_who_asks_too_often_is_told_when_to_come_back(server: Server) -> None:
    """SECURITY 1, elicitation spam. Waiting as long as was said is enough."""
    alice = server.client()
    use_up(alice)
    refused = alice.begin("ask")
    assert refused.is_error
    assert refused.text == "The user is asked too often. Try again in 60 seconds."
    assert refused.http.facts["outcome"] == "limited"
    server.clock.advance(60)
    assert alice.begin("ask").asked


@pytest.mark.parametrize("name", ["explicit", "approved"])
def test_every_way_of_asking_counts(server: Server, name: str) -> None:
    """In the explicit style, and for an approval."""
    alice = server.client()
    for _ in range(2):
        assert alice.begin(name).asked
    assert alice.begin(name).is_error
    assert alice.begin("ask").is_error


@pytest.mark.parametrize(
    ("method", "what"), [("prompts/get", {"name": "letter"}), ("resources/read", {"uri": "shop://letters"})]
)
def test_prompts_and_resources_count_and_are_refused_with_an_error(
    server: Server, method: str, what: JsonObject
) -> None:
    """They have no other way to say it."""
    alice = server.client()
    for _ in range(2):
        assert alice.request(method, what).asked
    refused = alice.request(method, what)
    assert refused.error["code"] == -32602
    assert "too often" in refused.error["message"]


@pytest.mark.parametrize(
    "other", [{"subject": "bob"}, {"client_id": "https://other.example/client.json"}], ids=["user", "client"]
)
def test_principals_are_counted_apart(server: Server, other: dict[str, str]) -> None:
    """A client that asks too much stops itself, and no other one of the same user."""
    use_up(server.client())
    assert server.client(**other).begin("ask").asked  # type: ignore[arg-type]


def test_what_does_not_ask_is_not_counted(server: Server) -> None:
    """An answer that completes a call, and a refusal."""
    alice = server.client(answers=YES)
    first, second = alice.begin("ask"), alice.begin("ask")
    for question in (first, second):
        assert alice.retry(question, params("ask"), YES).text == "done"
    assert alice.begin("ask").is_error


def test_during_an_outage_forms_go_on(server: Server) -> None:
    """DESIGN 5: form-mode tools that need no store go on working."""
    alice = server.client()
    use_up(alice)
    with server.store_outage():
        assert alice.begin("ask").asked
    assert alice.begin("ask").is_error


def test_without_a_limit_nobody_counts_and_no_store_is_asked() -> None:
    """Off by default: it costs a round trip for each form."""
    server = JudgedServer([ask])
    with server.store_outage():
        alice = server.client()
        assert all(alice.begin("ask").asked for _ in range(100))


def test_a_question_that_is_refused_leaves_a_guarded_flow_as_it_was() -> None:
    """once=True: what was too often now may be asked later, in the same flow."""
    shop = Shop()

    @tool(once=True)
    def order(ctx: Context) -> str:
        """Ask twice, and order."""
        ctx.ask("one", "One?", Confirm)
        ctx.ask("confirm", "Sure?", Confirm)
        return shop.sell("it")

    server = JudgedServer([order], settings={"MCP_ASK_LIMIT": "1/60"})
    alice = server.client()
    first = alice.begin("order")
    one = {"one": accept(confirm=True)}
    assert "too often" in alice.retry(first, params("order"), one).text
    server.clock.advance(60)
    second = alice.retry(first, params("order"), one)
    assert alice.retry(second, params("order"), YES).text == "receipt 1"


def test_the_same_link_again_is_no_new_question(server: Server) -> None:
    """DESIGN 1.1: a retry that comes too early gets the same URL, as often as it comes."""
    alice = server.client(capabilities=FORMS_AND_URLS)
    question = alice.begin("login")
    for _ in range(10):
        again = alice.retry(question, params("login"), {"connect_hub": {"action": "accept"}})
        assert again.asked == question.asked
    assert alice.begin("ask").asked


def test_links_have_a_limit_of_their_own() -> None:
    """MCP_FLOW_LIMIT: new links, by any tool. One that is open is shown again."""
    server = JudgedServer([login, secret], providers=["hub"], settings={"MCP_FLOW_LIMIT": "2/3600"})
    alice = server.client(capabilities=FORMS_AND_URLS)
    link = alice.begin("login")
    assert link.asked
    assert alice.begin("secret", {"name": "key"}).asked
    refused = alice.begin("secret", {"name": "other"})
    assert refused.is_error
    assert "Too many links were made. Try again in 3600 seconds" in refused.text
    assert alice.begin("login").asked == link.asked
    assert server.client("bob", capabilities=FORMS_AND_URLS).begin("login").asked
    server.clock.advance(3600)
    assert server.client(capabilities=FORMS_AND_URLS).begin("secret", {"name": "other"}).asked


def test_what_is_stored_about_an_ask_is_not_the_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    """SECURITY 1, stolen dump: in the first round the request's randomness is the flow id."""
    server = JudgedServer([Shop().tool()], settings=TWICE)
    nonces: list[str] = []
    limits = server._effects.limits
    take = type(limits).take

    def watch(self: Any, *arguments: Any, entropy: bytes, **named: Any) -> Any:
        nonces.append(entropy.hex())
        return take(self, *arguments, entropy=entropy, **named)

    monkeypatch.setattr(type(limits), "take", watch)
    assert asked(server.client(), BUY).asked
    assert len(nonces) == 1
    assert nonces[0] != (1).to_bytes(16, "big").hex()


def test_a_limit_that_is_none_stops_the_tests_as_it_stops_a_function() -> None:
    """The same reader as in a deployment."""
    with pytest.raises(ConfigurationError, match="MCP_ASK_LIMIT is 'often'"):
        Server([ask], settings={"MCP_ASK_LIMIT": "often"})

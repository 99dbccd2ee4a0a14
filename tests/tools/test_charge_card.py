"""charge_card: a secret typed on our page, a question, and an effect."""

import pytest

from app.testing import FORMS_AND_URLS, Server, accept, decline
from app.tools.charge_card import charge_card
from app.tools.desk import desk


@pytest.fixture
def server() -> Server:
    desk.journal.clear()
    return Server([charge_card])


def test_it_asks_for_the_secret_on_our_page_before_anything_else(server: Server) -> None:
    """MCP client/elicitation: secrets must not pass through the client."""
    asked = server.client("alice", capabilities=FORMS_AND_URLS).begin("charge_card", {"cents": 500}).asked
    assert list(asked) == ["secret_payments_api_key"]
    assert asked["secret_payments_api_key"]["params"]["mode"] == "url"


def test_it_charges_when_the_user_has_typed_it_and_ticks_the_box(server: Server) -> None:
    """One answer is the vault's, the other the user's."""
    server.type_secret("alice", "payments_api_key", "sk_live_alice")
    reply = server.client("alice", answers={"charge": accept(confirm=True)}).call("charge_card", {"cents": 500})
    assert reply.text == "5.00 are charged."
    assert len(desk.journal) == 1
    assert "sk_live_alice" not in desk.journal[0]


@pytest.mark.parametrize("answer", [accept(confirm=False), decline()])
def test_it_charges_nothing_without_a_yes(server: Server, answer: dict[str, object]) -> None:
    """Consent is strict."""
    server.type_secret("alice", "payments_api_key", "sk_live_alice")
    reply = server.client("alice", answers={"charge": answer}).call("charge_card", {"cents": 500})
    assert reply.is_error
    assert desk.journal == []


def test_one_users_secret_is_not_anothers(server: Server) -> None:
    """The vault is bound to the user."""
    server.type_secret("alice", "payments_api_key", "sk_live_alice")
    assert server.client("bob", capabilities=FORMS_AND_URLS).begin("charge_card", {"cents": 500}).asked

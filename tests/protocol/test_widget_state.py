"""Widget state: sealed for a view, opened for the same user, client and name only."""

from typing import Any

import pytest

from app.testing import Server
from app.toolkit import CallToolResult, Context, tool
from tests.protocol.endpoint import JudgedServer


@tool(read_only=True)
def show_cart(ctx: Context) -> CallToolResult:
    """Show the cart in a view."""
    return CallToolResult(["1 item"], meta={"state": ctx.seal("cart", {"items": [7]}, lifetime=100)})


@tool(single_round=True, destructive=False)
def checkout(state: str, ctx: Context) -> str:
    """Pay for the cart. The view calls it."""
    return f"Paid for {ctx.open('cart', state)['items']}."


@tool(single_round=True, destructive=False)
def rename(state: str, ctx: Context) -> str:
    """Read the state under another name."""
    return str(ctx.open("basket", state))


def test_a_view_gives_back_what_a_tool_sealed_for_it() -> None:
    """IDEAS C.1.5: purpose and name in the seal. The second call reaches another instance."""
    alice = JudgedServer([show_cart, checkout]).client()
    state = alice.call("show_cart").result["_meta"]["state"]
    assert state.startswith("rs1.")
    assert alice.call("checkout", {"state": state}).text == "Paid for [7]."


@pytest.mark.parametrize(
    "spoil", [lambda state: state + "A", lambda state: state[:-1], lambda _: "", lambda _: "rs1.AAAA"]
)
def test_a_state_that_was_changed_ends_the_call_with_a_clear_text(spoil: Any) -> None:
    alice = JudgedServer([show_cart, checkout]).client()
    state = alice.call("show_cart").result["_meta"]["state"]
    reply = alice.call("checkout", {"state": spoil(state)})
    assert reply.is_error
    assert reply.text == "This view is out of date. Load it again."


def test_a_state_is_of_one_user_client_name_and_time() -> None:
    server = JudgedServer([show_cart, checkout, rename])
    alice, bob = server.client("alice"), server.client("bob")
    other = server.client("alice", client_id="https://other.example/client.json")
    state = alice.call("show_cart").result["_meta"]["state"]
    for reply in (
        bob.call("checkout", {"state": state}),
        other.call("checkout", {"state": state}),
        alice.call("rename", {"state": state}),
    ):
        assert reply.is_error
    server.clock.advance(99)
    assert not alice.call("checkout", {"state": state}).is_error
    server.clock.advance(1)
    assert alice.call("checkout", {"state": state}).is_error


def test_a_single_round_tool_that_asks_fails_its_test() -> None:
    """IDEAS C.1.11: a view cannot answer. In production the model is told so."""

    @tool(single_round=True)
    def ask(ctx: Context) -> str:
        """Ask after all."""
        return ctx.sample("x", ["y"], max_tokens=1).text

    with pytest.raises(AssertionError, match="ask is declared single_round"):
        Server([ask]).client(capabilities={"sampling": {}}).call("ask")

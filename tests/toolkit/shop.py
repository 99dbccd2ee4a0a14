"""A shop outside of the server whose effects are counted, and tools that sell in it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from app.protocol.features import Tool
from app.strict_json import JsonObject
from app.testing import Client, Reply, accept
from app.toolkit import Accepted, Context, InputRequired, Invalid, Missing, Question, tool


class Confirm(BaseModel):
    confirm: bool


class Address(BaseModel):
    city: str


YES: JsonObject = {"confirm": accept(confirm=True)}
NO: JsonObject = {"confirm": {"action": "decline"}}
LISBON: JsonObject = {"address": accept(city="Lisbon")}
PORTO: JsonObject = {"address": accept(city="Porto")}

INVALID_STATE: JsonObject = {
    "code": -32602,
    "message": "Invalid or expired requestState",
    "data": {"reason": "invalid_request_state"},
}


@dataclass
class Shop:
    """Everything that was really done. `in_the_middle` runs during the next effect, once it has happened."""

    done: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    in_the_middle: Callable[[], Any] | None = None

    def sell(self, what: str, key: str = "") -> str:
        self.done.append(what)
        self.keys.append(key)
        hook, self.in_the_middle = self.in_the_middle, None
        if hook is not None:
            hook()
        return f"receipt {len(self.done)}"

    def tool(self, **parameters: Any) -> Tool:
        """A tool that asks and then sells, with once=True unless said otherwise."""

        @tool(name="buy", **{"once": True, **parameters})
        def buy(item: str, ctx: Context) -> str:
            """Buy something. Asks first."""
            match ctx.ask("confirm", f"Buy {item}?", Confirm):
                case Accepted(Confirm(confirm=True)):
                    return f"{item} is bought: {self.sell(item, ctx.idempotency_key)}."
                case _:
                    return ctx.stop("The user said no.")

        return buy

    def explicit(self) -> Tool:
        """The same in the explicit style: what is bought comes from the state."""

        @tool(name="order", once=True)
        def order(item: str, ctx: Context) -> str | InputRequired:
            """Order something, in the explicit style."""
            match ctx.responses.get("confirm", Confirm):
                case Accepted(Confirm(confirm=True)):
                    return self.sell(ctx.state["item"])
                case Missing() | Invalid():
                    return InputRequired({"confirm": Question(f"Order {item}?", Confirm)}, state={"item": item})
                case _:
                    return ctx.stop("No.")

        return order

    def delivery(self) -> Tool:
        """A tool that reserves between two questions, and orders after them: both once."""

        @tool(name="deliver")
        def deliver(item: str, ctx: Context) -> str:
            """Deliver something. Asks where to and, when it is reserved, whether really."""
            match ctx.ask("address", f"Where to with {item}?", Address):
                case Accepted(Address(city=city)):
                    pass
                case _:
                    return ctx.stop("No address.")
            receipt = ctx.once("reserve", lambda: self.sell(f"reserve {item} for {city}", ctx.idempotency_key))
            match ctx.ask("confirm", f"Deliver {item} to {city} on {receipt}?", Confirm):
                case Accepted(Confirm(confirm=True)):
                    return ctx.once("order", lambda: self.sell(f"order {item}", ctx.idempotency_key))
                case _:
                    return ctx.stop(f"Not delivered; {receipt} stands.")

        return deliver


def params(name: str, **arguments: Any) -> JsonObject:
    """The parameters of a call."""
    return {"name": name, "arguments": arguments}


BUY = params("buy", item="tea")
DELIVER = params("deliver", item="tea")


def asked(client: Client, what: JsonObject = BUY) -> Reply:
    """The first round."""
    return client.request("tools/call", what)


def is_waiting(reply: Reply) -> bool:
    """Whether the client is told to come again at once: `input_required` with a state and no questions."""
    result = reply.result
    return result["resultType"] == "input_required" and "inputRequests" not in result and "requestState" in result

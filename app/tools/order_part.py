"""Example: an effect before a question and one after it, each of which happens once across all rounds."""

from typing import Annotated

from pydantic import BaseModel, Field

from app.toolkit import Accepted, Context, tool
from app.tools.desk import PRICES, desk


class Order(BaseModel):
    confirm: bool = Field(description="Tick to order it")


@tool(title="Order a spare part", destructive=True)
def order_part(part: Annotated[str, Field(description="Part name, like fuser")], ctx: Context) -> str:
    """Order a spare part. It is held at today's price first, and the user confirms that price."""
    if part not in PRICES:
        ctx.fail(f"There is no part {part}. There are: {', '.join(PRICES)}.")

    def hold() -> dict[str, int]:
        # A supplier's API gets the key too: it answers a repeated request by itself.
        desk.record(f"held {part} with {ctx.idempotency_key}")
        return {"cents": PRICES[part]}

    def order() -> str:
        desk.record(f"ordered {part} with {ctx.idempotency_key}")
        return f"{part} is ordered."

    price = ctx.once("hold", hold)["cents"]
    match ctx.ask("order", f"Order {part} for {price / 100:.2f}? It is held for you.", Order):
        case Accepted(Order(confirm=True)):
            return ctx.once("order", order)
        case _:
            return ctx.stop(f"The user did not confirm. {part} is not ordered.")

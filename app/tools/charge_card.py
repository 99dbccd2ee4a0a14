"""Example: a tool that needs a secret, typed by the user on our own page and never seen by the client."""

import hashlib
from typing import Annotated

from pydantic import BaseModel, Field

from app.toolkit import Accepted, Context, tool
from app.tools.desk import desk


class Charge(BaseModel):
    confirm: bool = Field(description="Tick to charge the card")


@tool(title="Charge a card", destructive=True, text_fallback=True)
def charge_card(cents: Annotated[int, Field(ge=1, le=100_000, description="Amount in cents")], ctx: Context) -> str:
    """Charge the customer's card through the user's payment account. Asks the user to confirm."""
    message = "Enter your payments API key on our page, to charge the card."
    api_key = ctx.secret("payments_api_key", message, label="Payments API key")
    match ctx.ask("charge", f"Charge {cents / 100:.2f} to the customer's card?", Charge):
        case Accepted(Charge(confirm=True)):
            # Here your payment provider is called with the key; the example shows that it arrived.
            fingerprint = hashlib.sha256(api_key.encode()).hexdigest()[:8]
            desk.record(f"charged {cents} with the key {fingerprint}")
            return f"{cents / 100:.2f} are charged."
        case _:
            return ctx.stop("The user did not confirm. Nothing is charged.")

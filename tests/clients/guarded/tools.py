"""Tools that sell in the shop: once as a whole, once in steps, after an approval, and not guarded at all."""

import json
import os
import urllib.request

from pydantic import BaseModel

from app.toolkit import Accepted, Context, Features, tool


class Confirm(BaseModel):
    confirm: bool


def sell(what: str, key: str) -> str:
    """An effect that the shop counts. It answers when it wants to."""
    request = urllib.request.Request(os.environ["SHOP_URL"], json.dumps({"what": what, "key": key}).encode())
    # Not through a proxy of the developer's.
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as response:
        return str(json.load(response)["receipt"])


@tool(once=True)
def buy(item: str, ctx: Context) -> str:
    """Buy something. Asks first."""
    match ctx.ask("confirm", f"Buy {item}?", Confirm):
        case Accepted(Confirm(confirm=True)):
            return f"{item} is bought: {sell(item, ctx.idempotency_key)}."
        case _:
            return ctx.stop("The user said no.")


@tool
def deliver(item: str, ctx: Context) -> str:
    """Deliver something. It is reserved before the question and ordered after it."""
    receipt = ctx.once("reserve", lambda: sell(f"reserve {item}", ctx.idempotency_key))
    match ctx.ask("confirm", f"Deliver {item} on {receipt}?", Confirm):
        case Accepted(Confirm(confirm=True)):
            return ctx.once("order", lambda: sell(f"order {item}", ctx.idempotency_key))
        case _:
            return ctx.stop("The user said no.")


@tool(approval="session", approval_for=["service"])
def restart(service: str, ctx: Context) -> str:
    """Restart a service."""
    return f"{service} is restarted: {sell(service, ctx.idempotency_key)}."


FEATURES = Features.of(tuple(globals().values()))

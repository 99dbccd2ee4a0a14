"""Example: a tool that ends a connection."""

from app.toolkit import Context, tool


@tool(title="Disconnect Local Hub", idempotent=True)
def disconnect(ctx: Context) -> str:
    """Forget the user's Local Hub connection, and revoke it there."""
    return "Local Hub is disconnected." if ctx.disconnect("hub") else "Local Hub was not connected."

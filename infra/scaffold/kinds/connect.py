"""New tool: needs the user's account at a third party."""

from app.toolkit import Context, tool

# Local Hub is what `make run` starts; yours is a name in MCP_PROVIDERS, with the scopes that it calls so.
PROVIDER = "hub"
SCOPES = ["user:read"]


@tool(title="New tool", read_only=True, text_fallback=True)
def new_tool(ctx: Context) -> str:
    """Say in one sentence what this does: the model chooses it by that. The user connects an account first."""
    connection = ctx.connect(PROVIDER, scopes=SCOPES, message="Connect your Local Hub account to go on.")
    # Call the third party here. connection.access_token is for its API alone: never return it, never log it.
    return f"Connected as {connection.account}."

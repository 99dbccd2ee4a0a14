"""Example: a tool that needs the user's account at a third party."""

import os

from app.toolkit import Context, tool
from app.tools.hub import HubApi, HubFailed, Repository

_MESSAGE = "Connect your Local Hub account to list your repositories."


@tool(title="List my repositories", read_only=True, text_fallback=True)
def list_repositories(ctx: Context) -> list[Repository]:
    """List the user's repositories at Local Hub. The user connects their account in a browser first."""
    hub = ctx.connect("hub", scopes=["repo:read", "user:read"], message=_MESSAGE)
    try:
        return HubApi(os.environ.get("HUB_API_URL", "")).repositories(hub.access_token)
    except HubFailed as error:
        return ctx.fail(str(error))

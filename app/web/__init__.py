"""The web function's ASGI application: browser pages, and the MCP endpoint for one-function set-ups."""

from app.web.application import create_app

__all__ = ["create_app"]

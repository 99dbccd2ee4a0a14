"""The web function: the FastAPI application, with the MCP endpoint in it."""

from collections.abc import Iterable, Mapping

from fastapi import FastAPI

from app.adapters.aws_lambda import log_request
from app.protocol.dispatch import Tool
from app.web import create_app
from app.wiring import mcp


def build(environment: Mapping[str, str], tools: Iterable[Tool]) -> FastAPI:
    """The web application of a deployment. Raises ConfigurationError, so that a broken one does not start."""
    return create_app(mcp.build(environment, tools), log_request)

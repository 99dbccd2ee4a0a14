"""A well-formed MCP request without parameters, as the doctor sends it."""

import json
from collections.abc import Mapping

from app.protocol import messages
from infra.doctor.http import Answer, Http


def post(http: Http, url: str, method: str = messages.DISCOVER, headers: Mapping[str, str] | None = None) -> Answer:
    """POST one request. Raises Unreachable."""
    meta = {messages.META_PROTOCOL_VERSION: messages.PROTOCOL_VERSION, messages.META_CLIENT_CAPABILITIES: {}}
    message = {"jsonrpc": "2.0", "id": "doctor", "method": method, "params": {messages.META: meta}}
    sent = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": messages.PROTOCOL_VERSION,
        "mcp-method": method,
        **(headers or {}),
    }
    return http.send("POST", url, sent, json.dumps(message).encode())

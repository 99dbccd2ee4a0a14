"""Requests as they stand on the wire, for what an official client would never send."""

import itertools
import json
import time
from dataclasses import dataclass, field
from typing import Any

import httpx2

from infra.local.stack import LocalStack

CLIENT_ID = "https://client.example.com/client.json"
SCOPES = "reports:delete deployments:write"
VERSION = "2026-07-28"


def mint(stack: LocalStack, subject: str, *, client_id: str = CLIENT_ID, scope: str = SCOPES, **overrides: Any) -> str:
    """An access token of the local authorization server."""
    return stack.identity.mint(
        subject, client_id=client_id, scope=scope, resource=stack.mcp_url, now=int(time.time()), **overrides
    )


@dataclass
class RawClient:
    """One token, one HTTP client; each call is one POST."""

    http: httpx2.AsyncClient
    url: str
    token: str
    capabilities: dict[str, Any] = field(default_factory=lambda: {"elicitation": {}})
    ids: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    async def call(self, name: str, arguments: dict[str, Any], **retry: Any) -> httpx2.Response:
        """One round of tools/call; `retry` gives inputResponses and requestState."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        }
        params = {"name": name, "arguments": arguments, "_meta": meta, **retry}
        message = {"jsonrpc": "2.0", "id": next(self.ids), "method": "tools/call", "params": params}
        headers = {
            "authorization": f"Bearer {self.token}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": VERSION,
            "mcp-method": "tools/call",
            "mcp-name": name,
        }
        return await self.http.post(self.url, content=json.dumps(message), headers=headers)

"""handlers/web.py over real HTTP: the endpoint answers there as it does in the MCP function."""

import json
from typing import Any

import httpx2
import pytest

from tests.clients.raw import VERSION, mint
from tests.conftest import RunningStack

DISCOVER = {
    "jsonrpc": "2.0",
    "id": "d",
    "method": "server/discover",
    "params": {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    },
}
HEADERS = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": VERSION,
    "mcp-method": "server/discover",
}


def post(stack: RunningStack, path: str, body: bytes, **headers: str) -> httpx2.Response:
    token = mint(stack.stack, "alice")
    sent = {**HEADERS, "authorization": f"Bearer {token}", **headers}
    return httpx2.post(stack.stack.emulator.url + path, content=body, headers=sent, trust_env=False)


def comparable(response: httpx2.Response) -> dict[str, Any]:
    kept = ("content-type", "cache-control", "www-authenticate", "allow", "retry-after", "x-content-type-options")
    return {
        "status": response.status_code,
        "headers": {name: response.headers[name] for name in kept if name in response.headers},
        "body": response.text,
    }


@pytest.mark.parametrize(
    ("what", "body", "headers"),
    [
        ("a request", json.dumps(DISCOVER).encode(), {}),
        ("no token", json.dumps(DISCOVER).encode(), {"authorization": ""}),
        ("a bad token", json.dumps(DISCOVER).encode(), {"authorization": "Bearer x.y.z"}),
        ("not JSON", b"{", {}),
        ("another method header", json.dumps(DISCOVER).encode(), {"mcp-method": "tools/list"}),
        ("another media type", b"x", {"content-type": "text/plain"}),
        ("a foreign origin", json.dumps(DISCOVER).encode(), {"origin": "https://evil.example"}),
        ("emoji", json.dumps({**DISCOVER, "id": "😀"}, ensure_ascii=False).encode(), {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_both_functions_give_the_same_answer(
    stack: RunningStack, what: str, body: bytes, headers: dict[str, str]
) -> None:
    """DESIGN 2: /mcp there too. `/mcp/` is routed to the web function, `/mcp` to the MCP function."""
    hot, web = post(stack, "/mcp", body, **headers), post(stack, "/mcp/", body, **headers)
    assert hot.headers["x-emulator-environment"].startswith("mcp-")
    assert web.headers["x-emulator-environment"].startswith("web-")
    assert comparable(web) == comparable(hot)


def test_a_body_over_the_limit_is_refused_by_both(stack: RunningStack) -> None:
    """SECURITY 5.7: 413 before anything is parsed."""
    body = b'"' + b"x" * (1024 * 1024) + b'"'
    assert post(stack, "/mcp", body).status_code == 413
    assert post(stack, "/mcp/", body).status_code == 413


@pytest.mark.parametrize("path", ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"])
def test_the_metadata_needs_no_token(stack: RunningStack, path: str) -> None:
    """RFC 9728 section 3; CASES B.8 103."""
    response = httpx2.get(stack.stack.emulator.url + path, trust_env=False)
    assert response.status_code == 200
    assert response.json()["resource"] == stack.mcp_url
    assert response.json()["authorization_servers"] == [stack.stack.identity.url]


def test_unknown_paths_and_methods_are_answered_without_a_token(stack: RunningStack) -> None:
    """SECURITY 5.1, 2, 14."""
    url = stack.stack.emulator.url
    get = httpx2.get(f"{url}/mcp", trust_env=False)
    assert (get.status_code, get.headers["allow"]) == (405, "POST")
    delete = httpx2.delete(f"{url}/mcp", headers={"mcp-session-id": "s"}, trust_env=False)
    assert delete.status_code == 405
    assert httpx2.get(f"{url}/nowhere", trust_env=False).status_code == 404

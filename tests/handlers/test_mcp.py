"""handlers/mcp.py as Lambda loads it: in a fresh interpreter, from environment variables alone."""

import base64
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from app.errors import ConfigurationError
from app.strict_json import JsonObject
from app.testing import Clock, Issuer
from app.toolkit import tool
from app.wiring.mcp import build
from tests.protocol.endpoint import well_formed

ROOT = Path(__file__).parent.parent.parent
RESOURCE = "https://mcp.example.com/mcp"
REQUIRED = {
    "MCP_RESOURCE_URL": RESOURCE,
    "MCP_ISSUER": "https://login.example.com",
    "MCP_SEALING_KEYS": "1:" + base64.urlsafe_b64encode(b"test keys are for tests only----").decode(),
}
# A tool in app/tools may need a store. Nobody is at this address, and nobody is asked for a form.
ENVIRONMENT = {**REQUIRED, "MCP_REDIS_URL": "rediss://127.0.0.1:1", "MCP_OIDC_CLIENT_ID": "web"}
# Reads events from stdin, and writes what the named module's handler answered and what is imported by then.
INVOKE = """
import importlib, json, sys
events = json.load(sys.stdin)
handler = importlib.import_module(sys.argv[1]).handler
loaded = lambda: sorted({name.partition(".")[0] for name in sys.modules})
record = {"imported": loaded(), "answers": [handler(event, None) for event in events]}
json.dump(record | {"loaded": loaded()}, sys.stdout)
"""


def run(
    events: list[JsonObject], environment: Mapping[str, str], *, module: str = "handlers.mcp"
) -> "subprocess.CompletedProcess[str]":
    """Load a handler in an interpreter of its own, and invoke it with these events."""
    # No inherited settings: the runtime's environment is not this machine's.
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MCP_", "PYTHON"))}
    return subprocess.run(
        [sys.executable, "-X", "utf8", "-W", "error", "-c", INVOKE, module],
        input=json.dumps(events),
        env={**kept, **environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def invoke(events: list[JsonObject], environment: Mapping[str, str] = ENVIRONMENT) -> dict[str, Any]:
    process = run(events, environment)
    assert process.returncode == 0, process.stderr
    record: dict[str, Any] = json.loads(process.stdout)
    return record


def event(method: str = "POST", path: str = "/mcp", headers: Mapping[str, str] | None = None, body: str = "") -> Any:
    """A payload format 2.0 event."""
    return {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"host": "mcp.example.com", **(headers or {})},
        "requestContext": {
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1"},
            "stage": "$default",
        },
        "body": body,
        "isBase64Encoded": False,
    }


def request(method: str, token: str) -> Any:
    """A well-formed request of no parameters."""
    message, headers = well_formed(method, {})
    kept = {name: value for name, value in headers.items() if value is not None}
    return event(headers={**kept, "authorization": f"Bearer {token}"}, body=json.dumps(message))


@contextmanager
def serving() -> Iterator[Issuer]:
    """An issuer whose documents are really served, on a free port of the loopback interface."""

    class Documents(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            document = issuer.documents.get(f"http://127.0.0.1:{server.server_port}{self.path}")
            body = json.dumps(document).encode()
            self.send_response(200 if document else 404)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Documents) as server:
        issuer = Issuer(Clock(time.time()), issuer=f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield issuer
        finally:
            server.shutdown()
            thread.join()


def test_importing_the_hot_path_loads_no_framework_no_store_and_no_http_client() -> None:
    """DESIGN, promise 6: neither FastAPI, boto3 nor Redis until a request needs them."""
    heavy = {"fastapi", "starlette", "mangum", "boto3", "botocore", "redis", "httpx2", "jinja2", "mcp"}
    record = invoke([event(), event("GET"), event("GET", "/.well-known/oauth-protected-resource/mcp"), {}])
    assert heavy.isdisjoint(record["imported"])
    assert heavy.isdisjoint(record["loaded"])
    assert [answer["statusCode"] for answer in record["answers"]] == [401, 405, 200, 400]


def test_three_calls_with_a_real_token_are_answered_and_load_the_http_client_for_the_keys() -> None:
    """python-sdk#3121. Everything is real here: the file, the settings, the keys over HTTP, the signature."""
    with serving() as issuer:
        environment = {**ENVIRONMENT, "MCP_STAGE": "local", "MCP_ISSUER": issuer.issuer}
        token = issuer.mint("alice", aud=RESOURCE)
        record = invoke([request(method, token) for method in ("server/discover", "tools/list", "ping")], environment)
    assert [answer["statusCode"] for answer in record["answers"]] == [200, 200, 404]
    discovered, listed, unknown = (json.loads(answer["body"]) for answer in record["answers"])
    assert discovered["result"]["supportedVersions"] == ["2026-07-28"]
    assert listed["result"]["ttlMs"] > 0
    assert unknown["error"]["code"] == -32601
    assert "h11" not in record["imported"]
    assert "h11" in record["loaded"]
    assert not {"fastapi", "boto3", "redis"}.intersection(record["loaded"])


def test_an_unreachable_issuer_is_a_503_and_not_a_login() -> None:
    """SECURITY section 4: a 401 would send every client into a login that cannot succeed now."""
    with serving() as issuer:
        token = issuer.mint("alice", aud=RESOURCE)
    environment = {**ENVIRONMENT, "MCP_STAGE": "local", "MCP_ISSUER": issuer.issuer}
    (answer,) = invoke([request("tools/list", token)], environment)["answers"]
    assert answer["statusCode"] == 503
    assert int(answer["headers"]["retry-after"]) > 0
    assert "www-authenticate" not in answer["headers"]


def test_a_function_without_configuration_does_not_start_and_names_all_that_is_missing() -> None:
    """DESIGN section 5: no key configured outside local mode, and the function refuses to start."""
    process = run([], {})
    assert process.returncode != 0
    assert process.stdout == ""
    assert not [name for name in REQUIRED if name not in process.stderr]


def test_a_function_whose_tools_need_a_store_does_not_start_without_one() -> None:
    """`@tool(once=True)` and approvals: the promise could not be kept, and nobody would know."""

    @tool(once=True)
    def refund() -> str:
        """Refund an order."""
        return "Refunded."

    remedy = r"refund: .* Set MCP_REDIS_URL or MCP_CONNECTIONS_SECRET, or take them off\."
    with pytest.raises(ConfigurationError, match=remedy):
        build(REQUIRED, [refund])


@pytest.mark.parametrize("keys", ["1:hunter2hunter2", "x:aHVudGVyMg"])
def test_a_sealing_key_that_will_not_do_is_not_printed(keys: str) -> None:
    """CWE-532: the log of a failed start is read by more people than the key is for."""
    process = run([], {**ENVIRONMENT, "MCP_SEALING_KEYS": keys})
    assert process.returncode != 0
    assert "Make one: python3 -c" in process.stderr
    assert not [word for word in ("hunter2", "aHVudGVyMg") if word in process.stderr]

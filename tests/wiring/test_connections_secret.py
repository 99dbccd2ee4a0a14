"""MCP_CONNECTIONS_SECRET in both functions as Lambda loads them: when it is read, and what if it cannot be."""

import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from app.testing import Issuer
from tests.adapters.contracts.valkey import Server
from tests.handlers import test_mcp
from tests.handlers.test_mcp import REQUIRED, RESOURCE, event, serving

SECRET_ID = "roundtrip/connections"
WEB = {"module": "infra.local.desk.web", "path": "/mcp/"}
MCP = {"module": "infra.local.desk.mcp", "path": "/mcp"}


class SecretsManager:
    """AWS Secrets Manager with one secret, over HTTP on a free port. Counts how often it is read."""

    def __init__(self) -> None:
        self.text: str | None = None
        self.reads = 0
        service = self

        class Api(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                service.reads += 1
                known = asked["SecretId"] == SECRET_ID and self.headers["x-amz-target"].endswith(".GetSecretValue")
                if service.text is None or not known:
                    status, answer = 400, {"__type": "AccessDeniedException", "message": "no"}
                else:
                    status, answer = 200, {"Name": SECRET_ID, "SecretString": service.text}
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-type", "application/x-amz-json-1.1")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def secrets() -> Iterator[SecretsManager]:
    running = SecretsManager()
    yield running
    running.stop()


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with serving() as issuer:
        metadata = issuer.documents[f"{issuer.issuer}/.well-known/oauth-authorization-server"]
        assert isinstance(metadata, dict)
        metadata.update(
            authorization_endpoint=f"{issuer.issuer}/authorize",
            token_endpoint=f"{issuer.issuer}/token",
            code_challenge_methods_supported=["S256"],
        )
        yield issuer


@pytest.fixture
def good(single: Server) -> str:
    """What a good secret says."""
    hub = {"preset": "local", "client_id": "roundtrip", "issuer": "http://127.0.0.1:9"}
    return json.dumps(
        {
            "REDIS_URL": single.url,
            "PROVIDERS": {"hub": hub},
            "PROVIDER_HUB_SECRET": "hub-s3cret",
            "OIDC_CLIENT_ID": "roundtrip-web",
            "OIDC_CLIENT_SECRET": "oidc-s3cret",
        }
    )


@pytest.fixture
def environment(issuer: Issuer, secrets: SecretsManager) -> dict[str, str]:
    return {
        **REQUIRED,
        "MCP_STAGE": "local",
        "MCP_ISSUER": issuer.issuer,
        "MCP_CONNECTIONS_SECRET": SECRET_ID,
        "AWS_REGION": "eu-central-1",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "aws-s3cret",
        "AWS_ENDPOINT_URL": secrets.url,
    }


def run(function: Mapping[str, str], events: list[Any], environment: Mapping[str, str]) -> tuple[list[Any], str]:
    """The answers of a function in an interpreter of its own, and its log."""
    process = test_mcp.run(events, environment, module=function["module"])
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)["answers"], process.stderr


def message(issuer: Issuer, path: str, method: str, name: str = "") -> Any:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}, "url": {}}},
    }
    params = {"_meta": meta} | ({"name": name, "arguments": {}} if name else {})
    headers = {
        "content-type": "application/json",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        "authorization": f"Bearer {issuer.mint('alice', aud=RESOURCE)}",
        **({"mcp-name": name} if name else {}),
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return event(path=path, headers=headers, body=json.dumps(body))


@pytest.mark.parametrize("function", [MCP, WEB], ids=["mcp", "web"])
def test_who_connects_nobody_reads_no_secret(
    function: dict[str, str],
    environment: dict[str, str],
    issuer: Issuer,
    secrets: SecretsManager,
) -> None:
    """PLATFORM section 6: what is read while a function starts is in its snapshot, and in every copy of it."""
    path = function["path"]
    events = [message(issuer, path, "tools/list"), message(issuer, path, "tools/call", "plan_visit")]
    answers, _ = run(function, events, environment)
    assert [answer["statusCode"] for answer in answers] == [200, 200]
    assert secrets.reads == 0


@pytest.mark.parametrize("function", [MCP, WEB], ids=["mcp", "web"])
def test_the_first_tool_that_connects_reads_it_once(
    function: dict[str, str],
    environment: dict[str, str],
    issuer: Issuer,
    secrets: SecretsManager,
    good: str,
) -> None:
    """One reading for each environment."""
    secrets.text = good
    call = message(issuer, function["path"], "tools/call", "list_repositories")
    answers, _ = run(function, [call, call], environment)
    for answer in answers:
        result = json.loads(answer["body"])["result"]
        assert result["inputRequests"]["connect_hub"]["params"]["url"].startswith("https://mcp.example.com/connect/")
    assert secrets.reads == 1


def test_the_first_page_reads_it_once_and_signs_in_with_what_it_says(
    environment: dict[str, str], secrets: SecretsManager, good: str
) -> None:
    """The pages know their paths before they know their store."""
    secrets.text = good
    answers, _ = run(WEB, [event("GET", "/connections")] * 2, environment)
    assert [answer["statusCode"] for answer in answers] == [303, 303]
    assert "client_id=roundtrip-web" in answers[0]["headers"]["location"]
    assert secrets.reads == 1


def test_a_secret_that_cannot_be_read_is_a_503_that_is_tried_again_and_forms_go_on(
    environment: dict[str, str], issuer: Issuer, secrets: SecretsManager
) -> None:
    """DESIGN section 5: 503 and Retry-After for what needs the store, while forms that need none go on working."""
    events = [
        event("GET", "/connections"),
        message(issuer, "/mcp/", "tools/call", "list_repositories"),
        message(issuer, "/mcp/", "tools/call", "plan_visit"),
    ]
    answers, _ = run(WEB, events, environment)
    assert [answer["statusCode"] for answer in answers] == [503, 503, 200]
    assert all(int(answer["headers"]["retry-after"]) > 0 for answer in answers[:2])
    assert "text/html" in answers[0]["headers"]["content-type"]
    assert "AccessDenied" not in answers[0]["body"]
    assert secrets.reads == 2


def test_a_secret_with_mistakes_fails_the_call_and_the_log_names_all_of_them_and_no_value(
    environment: dict[str, str],
    issuer: Issuer,
    secrets: SecretsManager,
) -> None:
    """The operator corrects it in one go; the caller learns nothing of it."""
    secrets.text = json.dumps(
        {"REDIS_URL": "rediss://:redis-s3cret@cache/x", "PROVIDERS": {"hub": {"client_secret": "hub-s3cret"}}}
    )
    (answer,), log = run(MCP, [message(issuer, "/mcp", "tools/call", "list_repositories")], environment)
    assert json.loads(answer["body"])["result"]["isError"] is True
    assert "MCP_" not in answer["body"]
    for name in ("MCP_REDIS_URL", "MCP_OIDC_CLIENT_ID", "MCP_PROVIDERS 'hub'"):
        assert name in log
    assert "s3cret" not in log


def test_what_is_wrong_beside_the_secret_stops_the_function_at_start(
    environment: dict[str, str], secrets: SecretsManager
) -> None:
    """A function whose configuration cannot work does not start."""
    process = test_mcp.run([], {**environment, "MCP_SIGN_IN": "saml"})
    assert process.returncode != 0
    assert "MCP_SIGN_IN" in process.stderr
    assert secrets.reads == 0

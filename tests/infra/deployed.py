"""The MCP function in the emulator with its keys at AWS, an issuer on loopback, and one clock that a test moves."""

import contextlib
import http.client
import itertools
import json
import os
import queue
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from botocore.session import get_session

from app.protocol import messages
from app.testing import Clock, Issuer
from infra import keys
from infra.local.emulator import RunningEmulator, emulator_in_thread
from tests.infra.aws_server import REGION, AwsServer

ROOT = Path(__file__).parent.parent.parent
APP = "roundtrip"
ASKS: dict[str, Any] = {"name": "delete_report", "arguments": {"target": "Q3"}}
TOKEN_LIFETIME = 43_200

_TEMPLATE = f"""
Transform: AWS::Serverless-2016-10-31
Resources:
  McpFunction:
    Type: AWS::Serverless::Function
    Properties:
      Runtime: python3.13
      CodeUri: {ROOT}
      Handler: HANDLER
      Timeout: 25
      SnapStart: {{ApplyOn: PublishedVersions}}
      LoggingConfig: {{LogFormat: JSON, ApplicationLogLevel: INFO}}
      Events:
        Mcp: {{Type: HttpApi, Properties: {{Path: $default, Method: ANY}}}}
"""


class MovedClock:
    """The real time, and what a test added to it: here, and in every process that has `variables`."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._offset = 0.0
        self.advance(0)

    @property
    def now(self) -> float:
        return time.time() + self._offset

    @property
    def variables(self) -> dict[str, str]:
        path = os.pathsep.join((str(Path(__file__).with_name("in_environment")), str(ROOT)))
        return {"MOVED_CLOCK": str(self._file), "PYTHONPATH": path}

    def advance(self, seconds: float) -> None:
        self._offset += seconds
        whole = self._file.with_suffix(".new")
        whole.write_text(str(self._offset))
        # Renamed and not rewritten: a process must not read half a number.
        whole.replace(self._file)


def post(method: str, params: dict[str, Any], *, token: str, number: int = 1) -> tuple[str, dict[str, str]]:
    """Body and headers of a well-formed request."""
    meta = {
        messages.META_PROTOCOL_VERSION: messages.PROTOCOL_VERSION,
        messages.META_CLIENT_INFO: {"name": "test", "version": "1"},
        messages.META_CLIENT_CAPABILITIES: {"elicitation": {"form": {}}},
    }
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": meta}}
    headers = {
        "authorization": f"Bearer {token}",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": messages.PROTOCOL_VERSION,
        "mcp-method": method,
        **({"mcp-name": params["name"]} if "name" in params else {}),
    }
    return json.dumps(message), headers


@dataclass
class Answer:
    """An HTTP response, with its JSON."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def state(self) -> str:
        """The requestState of a call that asks."""
        assert self.status == 200, self.body
        state: str = self.json["result"]["requestState"]
        return state


@dataclass
class Deployed:
    """A running deployment, its operator, and one user's client. `client` may be used by many threads."""

    emulator: RunningEmulator
    aws: AwsServer
    clock: MovedClock
    secret_id: str
    kms_key: str
    issuer: Issuer
    token: str
    _ids: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    _connections: "queue.SimpleQueue[http.client.HTTPConnection]" = field(default_factory=queue.SimpleQueue)

    def keys(self, *words: object) -> None:
        """`python -m infra.keys`, at this moment of the clock."""
        _operator(*words, secret_id=self.secret_id, now=self.clock.now)

    def create_ring(self) -> None:
        self.keys("create", "--app", APP, "--kms-key", self.kms_key, "--apply")

    def begin(self, target: str = "Q3") -> Answer:
        """The first round of a call that asks."""
        return self.request("tools/call", {**ASKS, "arguments": {"target": target}})

    def finish(self, state: str, target: str = "Q3") -> Answer:
        """The second round: the user declines, so that the report is there for the next one."""
        params = {**ASKS, "arguments": {"target": target}, "requestState": state}
        return self.request("tools/call", {**params, "inputResponses": {"confirm": {"action": "decline"}}})

    def request(self, method: str, params: dict[str, Any]) -> Answer:
        body, headers = post(method, params, token=self.token, number=next(self._ids))
        return self.send("POST", "/mcp", body, headers)

    def send(self, verb: str, path: str, body: str = "", headers: dict[str, str] | None = None) -> Answer:
        try:
            connection = self._connections.get_nowait()
        except queue.Empty:
            connection = http.client.HTTPConnection("127.0.0.1", self.emulator.port, timeout=30)
        connection.request(verb, path, body, headers or {})
        response = connection.getresponse()
        fields = {name.lower(): value for name, value in response.getheaders()}
        answer = Answer(response.status, fields, response.read())
        self._connections.put(connection)
        return answer

    def close(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                self._connections.get_nowait().close()


@contextlib.contextmanager
def deployed(
    directory: Path,
    aws: AwsServer,
    *,
    environments: int = 2,
    snapstart: bool = False,
    ring: bool = True,
    primed: bool = False,
) -> Iterator[Deployed]:
    """Deploy the MCP function, with a ring or with an empty secret, and undo it after the block.

    `primed` answers a request that asks in INIT already.
    """
    clock = MovedClock(directory / "clock")
    template = directory / "template.yaml"
    template.write_text(_TEMPLATE.replace("HANDLER", "primed.handler" if primed else "infra.local.desk.mcp.handler"))
    with pytest.MonkeyPatch.context() as patch, _issuer() as issuer:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "operator")
        patch.setenv("AWS_DEFAULT_REGION", REGION)
        patch.setenv("AWS_ENDPOINT_URL", aws.url)
        session = get_session()
        secret_id = f"{APP}-{secrets.token_hex(4)}"
        with closing(session.create_client("kms")) as kms:
            kms_key = kms.create_key()["KeyMetadata"]["Arn"]
        with closing(session.create_client("secretsmanager")) as manager:
            manager.create_secret(Name=secret_id, SecretString="{}")

        if ring:
            _operator("create", "--app", APP, "--kms-key", kms_key, "--apply", secret_id=secret_id, now=clock.now)

        def token() -> str:
            return issuer.mint(scope="reports:delete", exp=int(time.time()) + TOKEN_LIFETIME)

        def variables(url: str) -> dict[str, str]:
            issuer.audience = f"{url}/mcp"
            body, headers = post("tools/call", ASKS, token=token())
            http = {"method": "POST", "path": "/mcp"}
            event = {"version": "2.0", "rawPath": "/mcp", "headers": headers, "requestContext": {"http": http}}
            (directory / "event.json").write_text(json.dumps({**event, "body": body}))
            return {
                **clock.variables,
                "PRIMED_WITH": str(directory / "event.json"),
                "AWS_ENDPOINT_URL": aws.url,
                "MCP_STAGE": "local",
                "MCP_RESOURCE_URL": f"{url}/mcp",
                "MCP_ISSUER": issuer.issuer,
                "MCP_SEALING_SECRET": secret_id,
                "MCP_KMS_KEY": kms_key,
                "MCP_SEALING_APP": APP,
            }

        started = emulator_in_thread(
            template,
            parameters={},
            environment=variables,
            environments=environments,
            max_environments=environments,
            snapstart=snapstart,
        )
        aws.asked.clear()
        with started as emulator:
            running = Deployed(emulator, aws, clock, secret_id, kms_key, issuer, token())
            try:
                yield running
            finally:
                running.close()


def _operator(*words: object, secret_id: str, now: float) -> None:
    assert keys.main([*map(str, words), "--secret", secret_id], now=int(now)) == 0


@contextlib.contextmanager
def _issuer() -> Iterator[Issuer]:
    """The issuer's documents on loopback, as app.testing makes them."""
    served: list[Issuer] = []

    class Documents(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            document = served[0].fetch(f"{url}{self.path}")
            body = json.dumps(document).encode()
            self.send_response(200 if document else 404)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Documents)
    url = f"http://127.0.0.1:{server.server_port}"
    served.append(Issuer(Clock(time.time()), issuer=url))
    thread = threading.Thread(target=server.serve_forever, name="issuer")
    thread.start()
    try:
        yield served[0]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

"""The work that every peer does: the requests, the token, the environment variables, and what a right answer is."""

import base64
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from app.protocol import messages
from app.strict_json import JsonObject
from app.testing import CLIENT_ID, FORMS_AND_URLS, RESOURCE, Clock, Issuer

ACCEPT: Final[JsonObject] = {"confirm": {"action": "accept", "content": {"confirm": True}}}
DECLINE: Final[JsonObject] = {"confirm": {"action": "decline"}}
SEALING_KEY: Final = b"the benchmark seals nothing true"


@dataclass(frozen=True, slots=True)
class Request:
    """A payload format 2.0 event without its body, and the JSON-RPC message that becomes the body."""

    event: JsonObject
    message: JsonObject

    def command(self) -> JsonObject:
        """The request as the workers read it."""
        return {"event": self.event, "message": self.message}


class Workload:
    """One issuer and its users, for all peers of a run."""

    def __init__(self, issuer: Issuer, stranger: Issuer) -> None:
        self._issuer = issuer
        self._stranger = stranger
        self._tokens: dict[str, str] = {}

    @property
    def issuer(self) -> str:
        return self._issuer.issuer

    def environment(self, *, keys_in_process: bool = False) -> dict[str, str]:
        """What a peer is configured with. The issuer's keys are fetched over loopback, or in the process."""
        variables = {
            "MCP_STAGE": "local",
            "MCP_RESOURCE_URL": RESOURCE,
            "MCP_ISSUER": self.issuer,
            "MCP_JWKS_URL": f"{self.issuer}/jwks",
            "MCP_SEALING_KEYS": "1:" + base64.urlsafe_b64encode(SEALING_KEY).decode(),
        }
        if keys_in_process:
            key_set: Any = self._issuer.documents[f"{self.issuer}/jwks"]
            key = jwt.PyJWK(key_set["keys"][0]).key
            variables["BENCH_JWKS"] = json.dumps(key_set)
            variables["BENCH_PUBLIC_KEY"] = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
        return variables

    def token(self, subject: str) -> str:
        """An access token of this user, the same in every request, with the scope that the example tool needs."""
        if subject not in self._tokens:
            self._tokens[subject] = self._issuer.mint(subject, client_id=CLIENT_ID, scope="reports:delete")
        return self._tokens[subject]

    def forged_token(self) -> str:
        """Alice's token, but for a key that is not the issuer's."""
        return self._stranger.mint("alice", client_id=CLIENT_ID)

    def request(self, method: str, params: JsonObject, *, token: str | None) -> Request:
        """A well-formed request of MCP 2026-07-28, as API Gateway hands it over."""
        meta = {
            messages.META_PROTOCOL_VERSION: messages.PROTOCOL_VERSION,
            messages.META_CLIENT_INFO: {"name": "bench", "version": "1"},
            messages.META_CLIENT_CAPABILITIES: FORMS_AND_URLS,
        }
        headers = {
            "host": "mcp.example.com",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "user-agent": "bench/1",
            "x-forwarded-for": "198.51.100.7",
            "x-forwarded-port": "443",
            "x-forwarded-proto": "https",
            "mcp-protocol-version": messages.PROTOCOL_VERSION,
            "mcp-method": method,
        }
        if "name" in params:
            headers["mcp-name"] = params["name"]
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        event: JsonObject = {
            "version": "2.0",
            "routeKey": "ANY /mcp",
            "rawPath": "/mcp",
            "rawQueryString": "",
            "headers": headers,
            "requestContext": {
                "accountId": "123456789012",
                "apiId": "bench",
                "domainName": "mcp.example.com",
                "http": {
                    "method": "POST",
                    "path": "/mcp",
                    "protocol": "HTTP/1.1",
                    "sourceIp": "198.51.100.7",
                    "userAgent": "bench/1",
                },
                "requestId": "bench",
                "routeKey": "ANY /mcp",
                "stage": "$default",
            },
            "isBase64Encoded": False,
        }
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, messages.META: meta}}
        return Request(event, message)

    def call(
        self, tool: str, arguments: JsonObject, *, subject: str = "alice", token: str | None = None, **more: Any
    ) -> Request:
        """A tools/call; `more` are the members of a retry."""
        params = {"name": tool, "arguments": arguments, **more}
        return self.request("tools/call", params, token=token or self.token(subject))

    def delete_report(self, target: str = "Q3", **more: Any) -> Request:
        """The call that is measured: a tool that asks one question and then says that it is done."""
        return self.call("delete_report", {"target": target}, **more)


@contextmanager
def workload() -> Iterator[Workload]:
    """A workload whose issuer serves its keys on a free port of the loopback interface."""

    class Documents(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            document = issuer.documents.get(f"{issuer.issuer}{self.path}")
            body = json.dumps(document).encode()
            self.send_response(200 if document else 404)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Documents) as server:
        clock = Clock(time.time())
        url = f"http://127.0.0.1:{server.server_port}"
        issuer = Issuer(clock, issuer=url)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, name="issuer")
        thread.start()
        try:
            yield Workload(issuer, Issuer(clock, issuer=url))
        finally:
            server.shutdown()
            thread.join()


def result(answer: Mapping[str, Any]) -> JsonObject:
    """The JSON-RPC result of a Lambda response, `{}` where there is none."""
    if answer.get("statusCode") != 200:
        return {}
    body = base64.b64decode(answer["body"]) if answer.get("isBase64Encoded") else answer["body"]
    found: JsonObject = json.loads(body).get("result", {})
    return found

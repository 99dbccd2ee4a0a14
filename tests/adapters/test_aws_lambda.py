"""The Lambda adapter: documented events, hostile events, threads, loops, and the one line in the log."""

import asyncio
import base64
import json
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.adapters.aws_lambda import Handler, NotAnHttpEvent, payload_v2, read_event, write_response
from app.http import HttpRequest, HttpResponse
from app.settings import Settings
from app.strict_json import JsonObject
from app.testing import ISSUER, RESOURCE, Clock, Issuer, accept
from app.toolkit import Context, tool
from app.wiring.mcp import McpFunction
from tests.protocol import endpoint
from tests.protocol.official_types import judge

EVENTS = Path(__file__).parent / "events"
CONTEXT = SimpleNamespace(aws_request_id="8f507cfc-example")


@tool
async def nap(ctx: Context) -> str:
    """Wait for the event loop once."""
    await asyncio.sleep(0)
    return f"Rested in {ctx.request_id}."


class Deployment:
    """A cold function with its issuer. `call` sends an event and has the answer judged."""

    def __init__(self, resource: str = RESOURCE) -> None:
        self.issuer = Issuer(Clock(time.time()))
        self.resource = resource
        environment = {
            "MCP_RESOURCE_URL": resource,
            "MCP_ISSUER": ISSUER,
            "MCP_SEALING_KEYS": "1:" + base64.urlsafe_b64encode(b"test keys are for tests only----").decode(),
        }
        function = McpFunction(Settings.read(environment), (*endpoint.TOOLS, nap), self.issuer)
        self.handler = payload_v2(function.respond)

    def event(self, name: str = "greet", arguments: JsonObject | None = None, **retry: Any) -> JsonObject:
        """A well-formed tools/call of Alice's, in the documented envelope of an HTTP API."""
        message, headers = endpoint.well_formed("tools/call", {"name": name, "arguments": arguments or {}, **retry})
        token = self.issuer.mint("alice", scope=" ".join(endpoint.SCOPES), aud=self.resource)
        return documented("http_api") | {
            "rawPath": "/mcp",
            "headers": {**headers, "authorization": f"Bearer {token}"},
            "body": json.dumps(message, ensure_ascii=False),
        }

    def call(self, event: Any, context: Any = CONTEXT) -> "Answer":
        answer = Answer(self.handler(event, context))
        try:
            request = read_event(event, request_id="")
        except NotAnHttpEvent:
            request = HttpRequest("POST", "/mcp", {})
        judge(request, HttpResponse(answer.status, answer.payload["headers"], answer.payload["body"].encode()))
        return answer


class Answer:
    """A payload format 2.0 response, with its message at hand."""

    def __init__(self, payload: dict[str, Any]) -> None:
        assert json.loads(json.dumps(payload)) == payload
        assert set(payload) == {"statusCode", "headers", "body", "isBase64Encoded"}
        assert all(isinstance(value, str) for value in payload["headers"].values())
        self.payload = payload
        self.status: int = payload["statusCode"]

    @property
    def message(self) -> JsonObject:
        message: JsonObject = json.loads(self.payload["body"])
        return message

    @property
    def text(self) -> str:
        text: str = self.message["result"]["content"][0]["text"]
        return text


def documented(name: str) -> JsonObject:
    """An event as the AWS documentation shows it."""
    event: JsonObject = json.loads((EVENTS / f"{name}.json").read_text())
    return event


@pytest.fixture(scope="module")
def deployment() -> Deployment:
    return Deployment()


@pytest.mark.parametrize(
    ("name", "body"), [("http_api", b"Hello from Lambda"), ("function_url", b"Hello from client!")]
)
def test_a_documented_event_becomes_the_request_that_it_stands_for(name: str, body: bytes) -> None:
    """API Gateway developer guide, payload format 2.0; Lambda developer guide, function URL request payload."""
    assert read_event(documented(name), request_id="r-1") == HttpRequest(
        method="POST",
        path="/my/path",
        headers={"header1": "value1", "header2": "value1,value2"},
        body=body,
        query="parameter1=value1&parameter1=value2&parameter2=value",
        request_id="r-1",
    )


def test_a_base64_body_is_the_bytes_that_were_sent(deployment: Deployment) -> None:
    """floci-io/floci#2172: a flag ignored or binary mangled; a real HTTP API encodes what it takes for binary."""
    event = deployment.event(arguments={"name": "größe 😀 世界"})
    encoded = {**event, "body": base64.b64encode(event["body"].encode()).decode(), "isBase64Encoded": True}
    assert deployment.call(event).text == deployment.call(encoded).text == "Hello, größe 😀 世界!"


@pytest.mark.parametrize(
    ("stage", "raw_path", "path"),
    [
        ("$default", "/mcp", "/mcp"),
        ("$default", "/mcp/", "/mcp/"),
        ("dev", "/dev/mcp", "/mcp"),
        ("dev", "/dev/mcp/", "/mcp/"),
        ("dev", "/dev/v1/mcp", "/v1/mcp"),
        ("dev", "/dev/dev/mcp", "/dev/mcp"),
        ("dev", "/mcp", "/mcp"),
        ("dev", "/developer/mcp", "/developer/mcp"),
        ("dev", "/dev", "/dev"),
        ("mcp", "/mcp/mcp", "/mcp"),
        (None, "/None/mcp", "/None/mcp"),
        ("", "/mcp", "/mcp"),
        ("", "//mcp", "//mcp"),
    ],
)
def test_a_named_stage_is_no_part_of_the_path(stage: str | None, raw_path: str, path: str) -> None:
    """slank/awsgi#18: rawPath starts with a named stage on the default domain, and does not on a custom one."""
    event = documented("http_api")
    event["rawPath"] = raw_path
    event["requestContext"]["stage"] = stage
    assert read_event(event, request_id="").path == path


@pytest.mark.parametrize("raw_path", ["/dev/mcp", "/dev/mcp/", "/dev/v1/mcp", "/v1/mcp", "/v1/mcp/", "/mcp", "/mcp/"])
def test_a_stage_a_base_path_and_a_final_slash_are_served_without_a_redirect(raw_path: str) -> None:
    """python-sdk#1168; DESIGN section 4."""
    deployment = Deployment("https://mcp.example.com/v1/mcp")
    event = deployment.event()
    event["rawPath"] = raw_path
    event["requestContext"]["stage"] = "dev"
    assert deployment.call(event).text == "Hello, world!"


def test_headers_that_differ_in_case_only_are_one_header() -> None:
    """RFC 9110 section 5.1 and 5.3: a duplicate must not hide behind the first value."""
    event = documented("http_api") | {"headers": {"Mcp-Method": "a", "mcp-method": "b", "MCP-METHOD": "c"}}
    assert read_event(event, request_id="").headers == {"mcp-method": "a,b,c"}


def test_a_get_with_a_body_is_405(deployment: Deployment) -> None:
    """serverless/examples, mcp/server.mjs: such an event crashed the Request of the Fetch API."""
    event = deployment.event()
    event["requestContext"]["http"]["method"] = "GET"
    answer = deployment.call(event)
    assert (answer.status, answer.payload["headers"]["allow"]) == (405, "POST")


def _changed(*path: str, value: Any) -> JsonObject:
    event = documented("http_api") | {"rawPath": "/mcp"}
    *parents, last = path
    node = event
    for parent in parents:
        node = node[parent]
    node[last] = value
    return event


def _without(*path: str) -> JsonObject:
    event = _changed(*path, value=None)
    *parents, last = path
    node = event
    for parent in parents:
        node = node[parent]
    del node[last]
    return event


NOT_HTTP: dict[str, Any] = {
    "empty": {},
    "null": None,
    "list": [],
    "string": "x",
    "number": 5,
    "true": True,
    "nested list": [[]],
    "warmer": {"warmer": True},
    "REST API": documented("rest_api"),
    "load balancer": documented("load_balancer"),
    "schedule": documented("scheduled"),
    "queue": {"Records": [{"eventSource": "aws:sqs", "body": "x"}]},
    "web socket": {"requestContext": {"routeKey": "$connect", "connectionId": "c"}, "isBase64Encoded": False},
    "no request context": _without("requestContext"),
    "request context is a list": _changed("requestContext", value=[]),
    "request context is null": _changed("requestContext", value=None),
    "no http": _without("requestContext", "http"),
    "http is a string": _changed("requestContext", "http", value="POST /mcp"),
    "http is null": _changed("requestContext", "http", value=None),
    "no method": _without("requestContext", "http", "method"),
    "method is a number": _changed("requestContext", "http", "method", value=5),
    "path is a number": _changed("rawPath", value=5),
    "path is a list": _changed("rawPath", value=["/mcp"]),
    "headers is a list": _changed("headers", value=["a"]),
    "headers is a string": _changed("headers", value="a: b"),
    "body is a number": _changed("body", value=5),
    "body is an object": _changed("body", value={"jsonrpc": "2.0"}),
    "base64 with a wrong letter": _changed("body", value="e30*") | {"isBase64Encoded": True},
    "base64 with a wrong letter that some skip": _changed("body", value="e3*0=") | {"isBase64Encoded": True},
    "base64 without padding": _changed("body", value="e30") | {"isBase64Encoded": True},
    "base64 beyond ASCII": _changed("body", value="é") | {"isBase64Encoded": True},
    "base64 is a number": _changed("body", value=1) | {"isBase64Encoded": True},
}


@pytest.mark.parametrize("event", NOT_HTTP.values(), ids=NOT_HTTP)
def test_an_event_that_is_no_http_request_is_a_400_and_never_an_exception(
    event: Any, deployment: Deployment, caplog: pytest.LogCaptureFixture
) -> None:
    """SECURITY section 0, finding 7: each exception out of a handler is a 502 and a stack trace."""
    caplog.set_level(logging.INFO, "roundtrip")
    answer = deployment.call(event)
    assert (answer.status, list(answer.message)) == (400, ["error"])
    assert _line(caplog)["reason"] == "event"


ODD = {
    "headers null": (_changed("headers", value=None), 401),
    "no headers": (_without("headers"), 401),
    "body null": (_changed("body", value=None), 401),
    "no body": (_without("body"), 401),
    "body null, flagged": (_changed("body", value=None) | {"isBase64Encoded": True}, 401),
    "no raw path": (_without("rawPath"), 404),
    "raw path empty": (_changed("rawPath", value=""), 404),
    "no stage": (_without("requestContext", "stage"), 401),
    "stage is a list": (_changed("requestContext", "stage", value=[]), 401),
    "query null": (_changed("rawQueryString", value=None), 401),
    "surrogate in the path": (_changed("rawPath", value="/\ud800"), 404),
    "surrogate in a header": (_changed("headers", value={"origin": "\ud800"}), 403),
    "surrogate in the token": (_changed("headers", value={"authorization": "Bearer \ud800"}), 401),
    "surrogate in the body": (_changed("body", value="\ud800"), 401),
    "encoded dots": (_changed("rawPath", value="/mcp/%2e%2e/mcp"), 404),
    "header names of other types": (_changed("headers", value={5: "x"}), 401),
    "header values null": (_changed("headers", value={"origin": None, "content-type": None}), 401),
}


@pytest.mark.parametrize(("event", "status"), ODD.values(), ids=ODD)
def test_an_odd_event_is_answered_as_the_request_that_it_is(event: Any, status: int, deployment: Deployment) -> None:
    """SECURITY 5.13: a 4xx with JSON, never an exception out of the handler."""
    assert deployment.call(event).status == status


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "a:b:c"},
        {"host": "[::1]:80"},
        {"host": ""},
        {"host": None},
        {"host": 5},
        {"x-forwarded-port": "abc"},
        {"x-forwarded-port": 443},
        {"x-forwarded-proto": "gopher"},
        {"x-forwarded-for": "\ud800"},
        {"content-length": -1},
        {"content-length": "1e3"},
        {"x": True, "y": 1.5, "z": [1], "w": {"a": 1}},
    ],
    ids=repr,
)
def test_headers_that_we_do_not_read_cannot_break_a_request(headers: JsonObject, deployment: Deployment) -> None:
    """SECURITY section 0, finding 7: a Host or a port that an adapter cannot split."""
    event = deployment.event()
    event["headers"] |= headers
    assert deployment.call(event).text == "Hello, world!"


def test_a_lone_surrogate_in_the_body_is_a_parse_error(deployment: Deployment) -> None:
    """It has no UTF-8: encoding it would raise, replacing it would change what was said."""
    event = deployment.event()
    event["body"] = event["body"].replace("greet", "\ud800")
    answer = deployment.call(event)
    assert (answer.status, answer.message["error"]["code"]) == (400, -32700)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=8), children, max_size=3),
    max_leaves=8,
)
MEMBERS = ("requestContext", "rawPath", "headers", "body", "isBase64Encoded", "rawQueryString")


@settings(max_examples=60, deadline=None)
@given(overrides=st.dictionaries(st.sampled_from(MEMBERS), JSON), http=JSON, stage=JSON)
def test_no_event_at_all_raises_out_of_the_handler(overrides: JsonObject, http: Any, stage: Any) -> None:
    """DESIGN section 2: whatever comes in, what goes out is an answer."""
    event = documented("http_api") | {"requestContext": {"http": http, "stage": stage}} | overrides
    answer = Answer(payload_v2(lambda request, **_: HttpResponse(200, {}, b""))(event, None))
    assert answer.status in (200, 400)


def test_three_calls_in_one_process_are_three_answers(deployment: Deployment) -> None:
    """python-sdk#3121: behind Mangum the second warm call fails with "run() can only be called once"."""
    assert [deployment.call(deployment.event()).text for _ in range(3)] == ["Hello, world!"] * 3


def test_two_functions_in_one_process_do_not_meet() -> None:
    """agno-agi/agno#5334: an application built twice."""
    first, second = Deployment(), Deployment()
    assert first.call(first.event()).status == 200
    assert second.call(first.event()).status == 401
    assert second.call(second.event()).status == 200


def test_twenty_threads_on_a_cold_function_are_all_answered_and_fetch_the_keys_once() -> None:
    """BerriAI/litellm#13651: two first calls at once."""
    deployment = Deployment()
    events = [deployment.event(name) for name in ("greet", "nap", "ask", "größe")] * 5
    for event in events:
        if event["headers"]["mcp-name"] == "größe":
            event["headers"]["mcp-name"] = "=?base64?Z3LDtsOfZQ==?="
    together = Barrier(20)

    def call(event: JsonObject) -> int:
        together.wait(timeout=5)
        return deployment.call(event).status

    with ThreadPoolExecutor(max_workers=20) as threads:
        assert list(threads.map(call, events)) == [200] * 20
    assert len(deployment.issuer.fetched) == 2  # the metadata and the key set


@pytest.mark.parametrize("name", ["greet", "nap"])
def test_the_handler_can_be_called_while_an_event_loop_runs(name: str, deployment: Deployment) -> None:
    """Kludex/mangum#260. An async tool has a loop of its own."""

    async def invoke() -> list[int]:
        return [deployment.call(deployment.event(name)).status for _ in range(2)]

    assert asyncio.run(invoke()) == [200, 200]
    assert asyncio.run(invoke()) == [200, 200]
    assert deployment.call(deployment.event(name)).status == 200


def test_a_question_and_its_answer_go_through_the_adapter(deployment: Deployment) -> None:
    asked = deployment.call(deployment.event("delete", {"target": "Q3"})).message["result"]
    responses = {"confirm": accept(confirm=True)}
    retry = deployment.event("delete", {"target": "Q3"}, requestState=asked["requestState"], inputResponses=responses)
    assert deployment.call(retry).text == "Q3 is deleted."


def test_a_tool_and_the_log_have_the_id_of_the_invocation(
    deployment: Deployment, caplog: pytest.LogCaptureFixture
) -> None:
    """awslabs/mcp#1011."""
    caplog.set_level(logging.INFO, "roundtrip")
    assert deployment.call(deployment.event("nap")).text == "Rested in 8f507cfc-example."
    assert _line(caplog)["request_id"] == "8f507cfc-example"


@pytest.mark.parametrize("context", [None, object(), {}, SimpleNamespace(aws_request_id=None)], ids=repr)
def test_a_context_without_a_request_id_is_no_obstacle(context: Any, deployment: Deployment) -> None:
    """Test consoles and other runtimes have none."""
    assert deployment.call(deployment.event(), context).status == 200


def _line(caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    """The one line that the adapter logged."""
    lines = [record.getMessage() for record in caplog.records if record.name == "roundtrip"]
    assert len(lines) == 1
    assert "\n" not in lines[0]
    line: dict[str, Any] = json.loads(lines[0])
    return line


def _broken(request: HttpRequest, *, now: float, entropy: bytes) -> HttpResponse:
    raise RuntimeError("hunter2")


def _speechless(request: HttpRequest, *, now: float, entropy: bytes) -> HttpResponse:
    raise RecursionError


@pytest.mark.parametrize("respond", [_broken, _speechless])
def test_an_internal_error_is_a_500_without_detail(
    respond: Callable[..., HttpResponse], caplog: pytest.LogCaptureFixture
) -> None:
    """The exception is in the log under the request's id; the wire gets one fixed sentence."""
    answer = Answer(payload_v2(respond)(documented("http_api"), CONTEXT))
    assert answer.status == 500
    assert answer.message == {"jsonrpc": "2.0", "error": {"code": -32603, "message": "Internal error"}}
    assert answer.payload["headers"]["cache-control"] == "no-store"
    trace, line = (record for record in caplog.records if record.name == "roundtrip")
    assert trace.exc_info is not None
    assert "8f507cfc-example" in trace.getMessage()
    assert line.levelno == logging.ERROR
    assert json.loads(line.getMessage())["outcome"] == "crashed"


def test_the_log_line_of_a_request_has_neither_its_token_nor_its_body_nor_its_state(
    deployment: Deployment, caplog: pytest.LogCaptureFixture
) -> None:
    """DESIGN, promise 3: no secret reaches a log."""
    caplog.set_level(logging.DEBUG)
    event = deployment.event("delete", {"target": "hunter2"})
    token = event["headers"]["authorization"].removeprefix("Bearer ")
    state = deployment.call(event).message["result"]["requestState"]
    responses = {"confirm": accept(confirm=True, note="hunter3")}
    retry = deployment.event("delete", {"target": "hunter2"}, requestState=state, inputResponses=responses)
    assert deployment.call(retry).text == "hunter2 is deleted."
    replayed = deployment.event("delete", {"target": "hunter4"}, requestState=state)
    assert deployment.call(replayed).status == 400
    lines = [json.loads(record.getMessage()) for record in caplog.records if record.name == "roundtrip"]
    assert [line["outcome"] for line in lines] == ["input_required", "complete", "refused"]
    assert [line["status"] for line in lines] == [200, 200, 400]
    assert {line["tool"] for line in lines} == {"delete"}
    secrets = [token, token.split(".")[1], state, state[4:44], "hunter", "largest"]
    assert not [secret for secret in secrets if secret in caplog.text]


def test_control_characters_of_a_caller_do_not_make_a_second_line(
    deployment: Deployment, caplog: pytest.LogCaptureFixture
) -> None:
    """CWE-117: a method name with a line feed in it would forge an entry."""
    caplog.set_level(logging.INFO, "roundtrip")
    event = deployment.event()
    event["body"] = event["body"].replace("tools/call", 'a\\n{\\"outcome\\":\\"complete\\"}\\u2028')
    assert deployment.call(event).status == 400
    assert _line(caplog)["outcome"] == "refused"


def test_the_log_line_has_the_duration_and_is_info_for_what_the_caller_did_wrong(
    deployment: Deployment, caplog: pytest.LogCaptureFixture
) -> None:
    """Alarms count errors: a caller's fault is none of ours."""
    caplog.set_level(logging.INFO, "roundtrip")
    deployment.call(documented("http_api"))
    line = _line(caplog)
    assert line["status"] == 404
    assert 0 <= line["ms"] < 10_000
    assert caplog.records[0].levelno == logging.INFO


def test_a_body_that_is_no_text_leaves_as_base64() -> None:
    """API Gateway developer guide, payload format 2.0, Lambda function response."""
    assert write_response(HttpResponse(200, {"content-type": "image/png"}, b"\x89PNG\xff")) == {
        "statusCode": 200,
        "headers": {"content-type": "image/png"},
        "body": base64.b64encode(b"\x89PNG\xff").decode(),
        "isBase64Encoded": True,
    }


def test_time_and_entropy_are_fresh_in_every_invocation() -> None:
    """SnapStart: what was drawn before the snapshot is drawn again by every instance."""
    drawn: list[tuple[float, bytes]] = []

    def respond(request: HttpRequest, *, now: float, entropy: bytes) -> HttpResponse:
        drawn.append((now, entropy))
        return HttpResponse(204)

    handler: Handler = payload_v2(respond)
    for _ in range(3):
        handler(documented("http_api"), CONTEXT)
    assert len({entropy for _, entropy in drawn}) == 3
    assert all(len(entropy) == 16 and abs(time.time() - now) < 60 for now, entropy in drawn)

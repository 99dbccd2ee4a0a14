"""Spans of MCP messages: named and parented as the conventions say, and nothing in them that is not for everybody."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from pydantic import BaseModel

from app.adapters.tracing import Tracing, is_wanted, wanted_tracing
from app.settings import Settings
from app.strict_json import JsonObject
from app.testing import Server, accept, decline
from app.toolkit import Accepted, Context, tool
from app.wiring.mcp import McpFunction
from tests.handlers.test_mcp import ENVIRONMENT, event, invoke

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"
PROVIDER = TracerProvider()


class Confirm(BaseModel):
    confirm: bool


@tool(destructive=True, scopes=["reports:delete"])
def delete(target: str, ctx: Context) -> str:
    """Delete a report. Asks first."""
    match ctx.ask("confirm", f"Delete {target}?", Confirm):
        case Accepted(Confirm(confirm=True)):
            return "Deleted."
        case _:
            return ctx.stop("The user said no.")


@tool
def crash() -> str:
    """Raise, with something secret in the exception."""
    raise RuntimeError("hunter2")


@tool
def look_up() -> str:
    """Do something that is traced by itself, as instrumented clients are."""
    with PROVIDER.get_tracer("client").start_as_current_span("GET"):
        return "Found."


class TracedServer(Server):
    """app.testing.Server with one instance that is traced."""

    def __init__(self, tools: Sequence[object], tracing: Tracing) -> None:
        super().__init__(tools, instances=1)
        settings = Settings.read({**self.environment, "MCP_SEALING_KEYS": ENVIRONMENT["MCP_SEALING_KEYS"]})
        self._instances = [McpFunction(settings, self.features, self.issuer, tracing=tracing)]


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    processor = SimpleSpanProcessor(exporter)
    PROVIDER._active_span_processor._span_processors = (processor,)
    yield exporter
    PROVIDER._active_span_processor._span_processors = ()


@pytest.fixture
def server(exporter: InMemorySpanExporter) -> TracedServer:
    return TracedServer([delete, crash, look_up], Tracing(PROVIDER))


def only(exporter: InMemorySpanExporter) -> ReadableSpan:
    (span,) = exporter.get_finished_spans()
    exporter.clear()
    return span


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def call(server: Server, name: str, *, meta: JsonObject | None = None, scope: str = "", **headers: str) -> Any:
    client = server.client("alice", scope=scope)
    params = {"name": name, "arguments": {"target": "hunter2"} if name == "delete" else {}, "_meta": meta or {}}
    return client.request("tools/call", params, **headers)


def test_each_round_is_one_span_with_its_round_and_outcome(
    server: TracedServer, exporter: InMemorySpanExporter
) -> None:
    """OpenTelemetry semantic conventions for MCP, Server; IDEAS C.1.15."""
    client = server.client("alice", scope="reports:delete", answers={"confirm": accept(confirm=True)})
    client.call("delete", {"target": "hunter2"})
    first, second = exporter.get_finished_spans()
    for span, number, outcome in ((first, 1, "input_required"), (second, 2, "complete")):
        assert span.name == "tools/call delete"
        assert span.kind is SpanKind.SERVER
        assert span.status.status_code is StatusCode.UNSET
        found = attributes(span)
        assert found["mcp.method.name"] == "tools/call"
        assert found["gen_ai.tool.name"] == "delete"
        assert found["gen_ai.operation.name"] == "execute_tool"
        assert found["mcp.protocol.version"] == "2026-07-28"
        assert found["network.transport"] == "tcp"
        assert found["http.response.status_code"] == 200
        assert (found["roundtrip.round"], found["roundtrip.outcome"]) == (number, outcome)
        assert "error.type" not in found


def test_a_message_that_runs_no_feature_has_its_span_too(server: TracedServer, exporter: InMemorySpanExporter) -> None:
    """One span for each message."""
    server.client("alice").request("tools/list")
    assert only(exporter).name == "tools/list"


def test_a_request_without_a_token_is_no_message(server: TracedServer, exporter: InMemorySpanExporter) -> None:
    """Nothing of it is read, so there is no method to name: the log and the gateway have it."""
    assert server.client("alice").request("tools/list", authorization=None).status == 401
    assert exporter.get_finished_spans() == ()


def test_the_parent_comes_from_the_message_whatever_the_headers_say(
    server: TracedServer, exporter: InMemorySpanExporter
) -> None:
    """MCP basic/index, OpenTelemetry trace context (SEP-414): the client's span is the parent over any transport."""
    other = f"00-{'b' * 32}-{'c' * 16}-01"
    call(server, "look_up", meta={"traceparent": TRACEPARENT, "tracestate": "rojo=1"}, traceparent=other)
    child, span = exporter.get_finished_spans()
    assert span.parent is not None
    assert span.context is not None
    assert (f"{span.parent.trace_id:032x}", f"{span.parent.span_id:016x}") == (TRACE, PARENT)
    assert span.parent.trace_state.get("rojo") == "1"
    assert child.parent is not None
    assert child.parent.span_id == span.context.span_id


@pytest.mark.parametrize("inside", [False, True])
def test_without_one_in_the_message_the_parent_is_around_us_or_in_the_headers(
    server: TracedServer, exporter: InMemorySpanExporter, inside: bool
) -> None:
    """What instruments Lambda has read the headers already, and its span is nearer."""
    if not inside:
        call(server, "look_up", traceparent=TRACEPARENT)
        expected = PARENT
    else:
        with PROVIDER.get_tracer("lambda").start_as_current_span("invocation") as around:
            call(server, "look_up", traceparent=TRACEPARENT)
        expected = f"{around.get_span_context().span_id:016x}"
    span = next(each for each in exporter.get_finished_spans() if each.name.startswith("tools/call"))
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == expected


def test_the_span_around_us_is_linked_when_the_message_names_another_parent(
    server: TracedServer, exporter: InMemorySpanExporter
) -> None:
    """Semantic conventions for MCP, Context propagation: SHOULD link current ambient context."""
    with PROVIDER.get_tracer("lambda").start_as_current_span("invocation") as around:
        call(server, "look_up", meta={"traceparent": TRACEPARENT})
    span = next(each for each in exporter.get_finished_spans() if each.name.startswith("tools/call"))
    assert [link.context.span_id for link in span.links] == [around.get_span_context().span_id]


@pytest.mark.parametrize("traceparent", ["", "x", f"00-{'0' * 32}-{PARENT}-01", f"00-{TRACE}-{PARENT}-01-more", 7])
def test_a_malformed_parent_begins_a_trace_of_its_own(
    server: TracedServer, exporter: InMemorySpanExporter, traceparent: object
) -> None:
    """W3C Trace Context, section 2.2.1: vendors MUST ignore an invalid traceparent."""
    call(server, "crash", meta={"traceparent": traceparent})
    assert only(exporter).parent is None


@pytest.mark.parametrize(
    ("name", "scope", "error", "code"),
    [
        ("crash", "", "tool_error", None),
        ("delete", "", "403", None),
        ("hunter", "", "-32602", "-32602"),
    ],
)
def test_what_failed_is_an_error_of_its_kind(
    server: TracedServer, exporter: InMemorySpanExporter, name: str, scope: str, error: str, code: str | None
) -> None:
    """Semantic conventions for MCP, error.type: the JSON-RPC code, or tool_error for isError."""
    call(server, name, scope=scope)
    span = only(exporter)
    assert span.status.status_code is StatusCode.ERROR
    assert attributes(span)["error.type"] == error
    assert attributes(span).get("rpc.response.status_code") == code


def test_a_method_that_mcp_does_not_have_names_no_span(server: TracedServer, exporter: InMemorySpanExporter) -> None:
    """Span names are of low cardinality: a client could send a new one each time."""
    server.client("alice").request("tools/hunter2")
    span = only(exporter)
    assert span.name == attributes(span)["mcp.method.name"] == "_OTHER"


def test_no_argument_answer_token_or_exception_is_in_a_span(
    server: TracedServer, exporter: InMemorySpanExporter
) -> None:
    """CWE-532: traces are read by more people than the data is for."""
    answers = {"confirm": decline()}
    client = server.client("alice", scope="reports:delete", answers=answers)
    client.call("delete", {"target": "hunter2"})
    call(server, "crash", meta={"traceparent": TRACEPARENT, "baggage": "user=hunter2"})
    spans = exporter.get_finished_spans()
    assert len(spans) == 3
    for span in spans:
        text = span.to_json()
        assert not [word for word in ("hunter2", "rs1.", "eyJ", "alice") if word in text]
        assert not span.events


def test_baggage_is_not_passed_on(server: TracedServer, exporter: InMemorySpanExporter) -> None:
    """W3C Baggage, section 4: it may be sensitive, and instrumented clients send it to every host."""
    from opentelemetry import baggage

    seen: list[object] = []

    @tool
    def peek() -> str:
        """Look at what would be sent on."""
        seen.append(dict(baggage.get_all()))
        return "Looked."

    call(TracedServer([peek], Tracing(PROVIDER)), "peek", meta={"traceparent": TRACEPARENT, "baggage": "user=alice"})
    assert seen == [{}]
    assert not trace.get_current_span().get_span_context().is_valid


@pytest.mark.parametrize(
    ("environment", "sdk", "wanted"),
    [
        ({}, False, False),
        ({}, True, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, False, True),
        ({"OTEL_TRACES_EXPORTER": "none"}, True, False),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "true"}, True, False),
    ],
)
def test_tracing_is_on_where_somebody_asked_for_it(environment: dict[str, str], sdk: bool, wanted: bool) -> None:
    """OpenTelemetry specification, Environment Variables."""
    assert is_wanted(environment, {"opentelemetry.sdk.trace": trace} if sdk else {}) is wanted
    if not wanted and not sdk:
        assert wanted_tracing({**environment, "OTEL_SDK_DISABLED": "true"}) is None


@pytest.mark.parametrize("asked", [False, True])
def test_the_hot_path_imports_opentelemetry_only_where_it_is_asked_for(asked: bool) -> None:
    """DESIGN section 1, promise 6. FastAPI brings the API along, so it is there to be imported."""
    record = invoke([event()], {**ENVIRONMENT, **({"OTEL_TRACES_EXPORTER": "otlp"} if asked else {})})
    assert ("opentelemetry" in record["imported"]) is asked
    assert record["answers"][0]["statusCode"] == 401


def test_a_function_whose_traces_are_wanted_starts_without_the_library_and_says_so() -> None:
    """A missing layer is no reason to answer nobody."""
    program = (
        "import sys; sys.modules['opentelemetry'] = None; "
        "from app.adapters.tracing import wanted_tracing; "
        "sys.exit(wanted_tracing({'OTEL_TRACES_EXPORTER': 'otlp'}) is not None)"
    )
    root = Path(__file__).parents[2]
    process = subprocess.run(
        [sys.executable, "-c", program], check=False, cwd=root, capture_output=True, text=True, env=dict(os.environ)
    )
    assert process.returncode == 0, process.stderr
    assert "install opentelemetry-api" in process.stderr

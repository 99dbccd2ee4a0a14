"""One OpenTelemetry span for each MCP message, after the semantic conventions for MCP. Nothing where nobody asked.

Tracing is on where OTEL_TRACES_EXPORTER names an exporter, as AWS's layer for Lambda sets it, or where an SDK is
loaded already. Everywhere else nothing of OpenTelemetry is imported, although FastAPI brings its API along.

The parent is the context in the message's own `_meta`, which is W3C's (basic/index, OpenTelemetry trace context); the
core passes it on only for a caller whose token it has verified, as a parent decides what is sampled and paid for.
Without it the parent is the span around us, if there is one, or the context in the HTTP headers. Baggage is not taken:
instrumented clients would send it on to third parties.
"""

import logging
import re
import sys
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, TypeVar

from app.http import HttpRequest, HttpResponse
from app.protocol.features import Call, Features, Outcome, Prompt, Resource, Run, Tool

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, TracerProvider

F = TypeVar("F", Tool, Prompt, Resource)

METHODS: Final = frozenset(
    {
        *("server/discover", "initialize", "ping", "logging/setLevel", "completion/complete", "subscriptions/listen"),
        *("tools/list", "tools/call", "prompts/list", "prompts/get"),
        *("resources/list", "resources/templates/list", "resources/read"),
        *("resources/subscribe", "resources/unsubscribe"),
        *("notifications/initialized", "notifications/cancelled", "notifications/progress"),
        *("notifications/roots/list_changed",),
    }
)
"""Methods that a span may be named after. A caller may send any other text."""
_FINE: Final = frozenset({"complete", "accepted", "input_required", "asked_as_text", "link"})
_VERSION = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")

_log = logging.getLogger("roundtrip")


class _Message:
    """One message on its way through us. It has a span once somebody needed one."""

    __slots__ = ("headers", "span", "started")

    def __init__(self, headers: Mapping[str, str]) -> None:
        self.headers = headers
        self.started = time.time_ns()
        self.span: Span | None = None


def is_wanted(environment: Mapping[str, str], modules: Mapping[str, Any] = sys.modules) -> bool:
    """Whether a deployment asks for traces, by the variables of the OpenTelemetry specification or by an SDK."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip()
    return exporter != "none" if exporter else "opentelemetry.sdk.trace" in modules


def wanted_tracing(environment: Mapping[str, str]) -> "Tracing | None":
    """What makes the spans, or None where they are not wanted or the API is not installed."""
    if not is_wanted(environment):
        return None
    try:
        return Tracing()
    except ImportError:
        _log.warning(
            "OTEL_TRACES_EXPORTER is set, and there is no OpenTelemetry: install opentelemetry-api and an SDK."
        )
        return None


class Tracing:
    """Makes the spans of one function, with the provider that is set globally or the given one.

    Raises ImportError without the package opentelemetry-api.
    """

    def __init__(self, provider: "TracerProvider | None" = None) -> None:
        from opentelemetry import trace

        self._tracer = trace.get_tracer("roundtrip", tracer_provider=provider)
        self._message: ContextVar[_Message | None] = ContextVar("message", default=None)

    def respond(self, answer: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        """The same answers, and a span for every message that was read."""

        def traced(request: HttpRequest, *, now: float, entropy: bytes) -> HttpResponse:
            message = _Message(request.headers)
            token = self._message.set(message)
            try:
                response = answer(request, now=now, entropy=entropy)
            except BaseException:
                if message.span is not None:
                    message.span.end()
                raise
            finally:
                self._message.reset(token)
            # What was refused before it was read is no message: the log has it.
            if "method" in response.facts:
                self._end(message, request, response)
            return response

        return traced

    def features(self, offered: Features) -> Features:
        """The same features, run with their message's span as the current one: spans of their own become children."""
        return offered._replace(
            tools=tuple(self._traced(each) for each in offered.tools),
            prompts=tuple(self._traced(each) for each in offered.prompts),
            resources=tuple(self._traced(each) for each in offered.resources),
        )

    def _traced(self, feature: F) -> F:
        from opentelemetry.trace import use_span

        run: Run = feature.run

        def traced(call: Call) -> Outcome:
            message = self._message.get()
            if message is None:
                return run(call)
            span = self._span(message, call.facts)
            # An exception's text may hold what nobody else should read.
            with use_span(span, record_exception=False, set_status_on_exception=False):
                return run(call)

        return feature._replace(run=traced)

    def _span(self, message: _Message, facts: Mapping[str, Any]) -> "Span":
        """The span of a message, started at its first byte with what is known of it by now."""
        from opentelemetry.trace import Link, SpanKind, get_current_span

        if message.span is None:
            ambient = get_current_span().get_span_context()
            parent, from_meta = self._parent(message, facts)
            message.span = self._tracer.start_span(
                _name(facts),
                context=parent,
                kind=SpanKind.SERVER,
                attributes=_attributes(facts),
                links=[Link(ambient)] if from_meta and ambient.is_valid else [],
                start_time=message.started,
            )
        return message.span

    def _parent(self, message: _Message, facts: Mapping[str, Any]) -> "tuple[Context | None, bool]":
        from opentelemetry.propagate import extract
        from opentelemetry.trace import get_current_span
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        if "traceparent" in facts:
            # Named by MCP, whatever propagators are configured for HTTP.
            return TraceContextTextMapPropagator().extract(dict(facts)), True
        return (None if get_current_span().get_span_context().is_valid else extract(dict(message.headers))), False

    def _end(self, message: _Message, request: HttpRequest, response: HttpResponse) -> None:
        from opentelemetry.trace import Status, StatusCode

        facts = response.facts
        span = self._span(message, facts)
        span.update_name(_name(facts))
        span.set_attributes({**_attributes(facts), "http.response.status_code": response.status})
        version = facts.get("protocol_version") or request.headers.get("mcp-protocol-version", "")
        if _VERSION.match(version):
            span.set_attribute("mcp.protocol.version", version)
        error = _error_type(response)
        if error is not None:
            span.set_attribute("error.type", error)
            span.set_status(Status(StatusCode.ERROR))
        span.end()


def _method(facts: Mapping[str, Any]) -> str:
    method = str(facts["method"])
    return method if method in METHODS else "_OTHER"


def _name(facts: Mapping[str, Any]) -> str:
    target = facts.get("tool") or facts.get("prompt")
    return f"{_method(facts)} {target}" if target else _method(facts)


def _attributes(facts: Mapping[str, Any]) -> dict[str, str | int]:
    """What the conventions name, and under `roundtrip.` what they have no name for. Nothing that a caller typed."""
    attributes: dict[str, str | int] = {
        "mcp.method.name": _method(facts),
        "network.protocol.name": "http",
        "network.transport": "tcp",
    }
    named = {
        "gen_ai.tool.name": "tool",
        "gen_ai.prompt.name": "prompt",
        "faas.invocation_id": "request_id",
        "rpc.response.status_code": "code",
        "roundtrip.outcome": "outcome",
        "roundtrip.reason": "reason",
    }
    attributes |= {name: str(facts[fact]) for name, fact in named.items() if facts.get(fact)}
    if "round" in facts:
        attributes["roundtrip.round"] = facts["round"]
    if facts["method"] == "tools/call":
        attributes["gen_ai.operation.name"] = "execute_tool"
    return attributes


def _error_type(response: HttpResponse) -> str | None:
    if "code" in response.facts:
        return str(response.facts["code"])
    if response.status >= 400:
        return str(response.status)
    return None if response.facts.get("outcome") in _FINE else "tool_error"

"""API Gateway payload format 2.0 (HTTP API, Function URL): an event to an HttpRequest, a response back.

Nothing raises out of the handler, whatever the event: an exception would be a 502 with a stack trace in
the log instead of an answer that says what to do.
"""

import base64
import binascii
import json
import logging
import os
import time
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from app.http import NO_STORE, HttpRequest, HttpResponse, internal_error, join_headers

Respond: TypeAlias = Callable[..., HttpResponse]
Event: TypeAlias = Any
Handler: TypeAlias = Callable[[Event, Any], dict[str, Any]]

_log = logging.getLogger("roundtrip")


class NotAnHttpEvent(ValueError):
    """The event is not a request in payload format 2.0."""


def read_event(event: Event, *, request_id: str, deadline: float | None = None) -> HttpRequest:
    """The request of an event. Raises NotAnHttpEvent for anything that is not one."""
    try:
        http = event["requestContext"]["http"]
        method, path = http["method"], event.get("rawPath") or http["path"]
        headers = event.get("headers") or {}
        body = event.get("body") or ""
        stage = event["requestContext"].get("stage", "$default")
        if not (isinstance(method, str) and isinstance(path, str) and isinstance(body, str)):
            raise NotAnHttpEvent("method, path or body")
        if event.get("isBase64Encoded"):
            content = base64.b64decode(body, validate=True)
        else:
            # A lone surrogate cannot be encoded: it becomes bytes that no JSON parser takes.
            content = body.encode("utf-8", "surrogatepass")
        return HttpRequest(
            method=method,
            path=_without_stage(path, stage),
            headers=_headers(headers),
            body=content,
            query=str(event.get("rawQueryString") or ""),
            request_id=request_id,
            deadline=deadline,
        )
    except NotAnHttpEvent:
        raise
    except (KeyError, TypeError, AttributeError, binascii.Error, ValueError) as error:
        raise NotAnHttpEvent(type(error).__name__) from error


def _headers(headers: dict[Any, Any]) -> dict[str, str]:
    # API Gateway has joined and lower-cased them; another front door, or a test, may not.
    joined = {str(name).lower(): str(value) for name, value in headers.items() if value is not None}
    if len(joined) == len(headers):
        return joined
    return join_headers((str(name), str(value)) for name, value in headers.items() if value is not None)


def _without_stage(path: str, stage: object) -> str:
    """A named stage is the first segment of rawPath; `$default` is not in it."""
    prefix = f"/{stage}/"
    return path[len(prefix) - 1 :] if path.startswith(prefix) and stage not in ("$default", "", None) else path


def write_response(response: HttpResponse) -> dict[str, Any]:
    """The response in payload format 2.0."""
    result: dict[str, Any] = {
        "statusCode": response.status,
        "headers": dict(response.headers),
        "isBase64Encoded": False,
        "body": "",
    }
    try:
        result["body"] = response.body.decode("utf-8")
    except UnicodeDecodeError:
        result.update(body=base64.b64encode(response.body).decode(), isBase64Encoded=True)
    return result


_NOT_HTTP: Final = HttpResponse(
    400,
    {"content-type": "application/json", **NO_STORE},
    b'{"error":"This function answers HTTP requests in payload format 2.0"}',
    {"outcome": "refused", "reason": "event"},
)


def payload_v2(respond: Respond) -> Handler:
    """A Lambda handler around `respond(request, now=..., entropy=...)`. It never raises."""

    def handler(event: Event, context: Any) -> dict[str, Any]:
        started = time.time()
        request_id = str(getattr(context, "aws_request_id", ""))
        try:
            request = read_event(event, request_id=request_id, deadline=_deadline(context, now=started))
            response = respond(request, now=started, entropy=os.urandom(16))
        except NotAnHttpEvent:
            response = _NOT_HTTP
        except Exception as error:
            _log.exception("Request %s failed", request_id)
            response = internal_error(error)
        log_request(response, request_id=request_id, seconds=time.time() - started)
        return write_response(response)

    return handler


def _deadline(context: Any, *, now: float) -> float | None:
    """When Lambda kills this invocation, in seconds since the epoch."""
    remaining = getattr(context, "get_remaining_time_in_millis", None)
    return None if remaining is None else now + remaining() / 1000


_AS_TEXT: Final = json.JSONEncoder(default=str)


class LogLine(dict[str, Any]):
    """A log message with members: Lambda's JSON format keeps them apart, any other format gets JSON text."""

    def __str__(self) -> str:
        return _AS_TEXT.encode(self)


# What a caller's tracing carries along for others. The trace's id is enough to find it.
_NOT_OURS: Final = frozenset(("tracestate", "baggage"))


def log_request(response: HttpResponse, *, request_id: str, seconds: float) -> None:
    """One line for each request: facts that the core chose to tell, never an event or a body.

    Always with request_id, status, ms and outcome; method, tool, round and reason where there are any.
    """
    facts = {
        "request_id": request_id,
        "status": response.status,
        "ms": round(seconds * 1000, 1),
        "outcome": "served" if response.status < 400 else "refused",
        **{name: fact for name, fact in response.facts.items() if name not in _NOT_OURS},
    }
    _log.log(logging.ERROR if response.status >= 500 else logging.INFO, LogLine(facts))

"""The Lambda Runtime API of one execution environment, on a loopback port of its own.

One port per environment: were it shared, the pending `next` of a killed runtime would swallow the next event.
https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
"""

import asyncio
import json
import re
import time
from typing import Protocol

import h11

from infra.local.emulator.invocation import MAX_PAYLOAD_BYTES, Failed, Invocation, Outcome, Succeeded

_PREFIX = "/2018-06-01/runtime"
_INVOCATION = re.compile(rf"{_PREFIX}/invocation/([^/]+)/(response|error)")
_READ_BYTES = 2**18


class Runtime(Protocol):
    """What the runtime process tells its environment."""

    timeout: float
    function_arn: str

    async def next_invocation(self) -> Invocation:
        """Wait for work. The runtime has finished INIT, or its previous invocation."""

    def finish(self, request_id: str, outcome: Outcome) -> bool:
        """Settle the invocation, or return False if it is not the current one."""

    def fail_init(self, failure: Failed) -> None:
        """The handler could not be loaded, or a snapshot hook raised."""


class _Answer:
    def __init__(
        self, status: int, body: bytes = b'{"status":"OK"}', headers: list[tuple[str, str]] | None = None
    ) -> None:
        self.status = status
        self.body = body
        self.headers = headers or []


class RuntimeApi:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def open(self) -> str:
        """Listen, and return the address for AWS_LAMBDA_RUNTIME_API."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=_READ_BYTES)
        host, port = self._server.sockets[0].getsockname()
        return f"{host}:{port}"

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # awslambdaric sends an X-Ray cause of up to 1 MB in a header of its error reports.
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=2**21)
        try:
            while (received := await _receive(connection, reader, writer)) is not None:
                request, body = received
                answer = await self._answer(request.method.decode(), request.target.decode(), body)
                _send(connection, writer, answer)
                await writer.drain()
                if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                    return
                connection.start_next_cycle()
        except (ConnectionError, h11.RemoteProtocolError):
            # The runtime died in mid-sentence; its environment learns that from the process.
            return
        finally:
            writer.close()

    async def _answer(self, method: str, target: str, body: bytes) -> _Answer:
        if (method, target) == ("GET", f"{_PREFIX}/invocation/next"):
            return self._event(await self._runtime.next_invocation())
        if (method, target) == ("GET", f"{_PREFIX}/restore/next"):
            return _Answer(200, b"")
        if method == "POST" and target in (f"{_PREFIX}/init/error", f"{_PREFIX}/restore/error"):
            self._runtime.fail_init(_failure(body))
            return _Answer(202)
        if method == "POST" and (match := _INVOCATION.fullmatch(target)):
            return self._settle(match[1], match[2], body)
        return _Answer(404, b'{"errorType":"NotFound","errorMessage":"no such Runtime API path"}')

    def _event(self, invocation: Invocation) -> _Answer:
        deadline = int((time.time() + self._runtime.timeout) * 1000)
        headers = [
            ("lambda-runtime-aws-request-id", invocation.request_id),
            ("lambda-runtime-deadline-ms", str(deadline)),
            ("lambda-runtime-invoked-function-arn", self._runtime.function_arn),
            ("lambda-runtime-trace-id", invocation.trace_id),
        ]
        return _Answer(200, invocation.payload, headers)

    def _settle(self, request_id: str, kind: str, body: bytes) -> _Answer:
        if len(body) > MAX_PAYLOAD_BYTES:
            size = f"Response payload size exceeded maximum allowed payload size ({MAX_PAYLOAD_BYTES} bytes)."
            self._runtime.finish(request_id, Failed("Function.ResponseSizeTooLarge", size))
            return _Answer(413, b'{"errorType":"RequestEntityTooLarge","errorMessage":"Exceeded maximum payload size"}')
        if self._runtime.finish(request_id, Succeeded(body) if kind == "response" else _failure(body)):
            return _Answer(202)
        return _Answer(400, b'{"errorType":"InvalidRequestID","errorMessage":"Invalid request ID"}')


async def _receive(
    connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> tuple[h11.Request, bytes] | None:
    """The next request with its body, or None when the runtime has closed the connection."""
    request: h11.Request | None = None
    body = bytearray()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            if connection.they_are_waiting_for_100_continue:
                writer.write(connection.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
            connection.receive_data(await reader.read(_READ_BYTES))
        elif isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage) and request is not None:
            return request, bytes(body)
        else:
            return None


def _send(connection: h11.Connection, writer: asyncio.StreamWriter, answer: _Answer) -> None:
    headers = [("content-type", "application/json"), ("content-length", str(len(answer.body))), *answer.headers]
    parts = [
        connection.send(h11.Response(status_code=answer.status, headers=headers)),
        connection.send(h11.Data(data=answer.body)),
        connection.send(h11.EndOfMessage()),
    ]
    writer.write(b"".join(part for part in parts if part))


def _failure(body: bytes) -> Failed:
    try:
        error = json.loads(body)
        stack_trace = [str(entry) for entry in error.get("stackTrace") or ()]
        return Failed(str(error["errorType"]), str(error["errorMessage"]), stack_trace)
    except (ValueError, KeyError, TypeError, AttributeError):
        return Failed("Unhandled", body.decode("utf-8", errors="replace"))

"""KMS and Secrets Manager on loopback: moto behind a server that notes every operation, and can refuse it."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

REGION = "us-east-1"
"""The emulator's."""


@dataclass
class AwsServer:
    """`asked` has the operations in order; `refuses` the error code that an operation gets in place of an answer."""

    url: str
    asked: list[str] = field(default_factory=list)
    refuses: dict[str, str] = field(default_factory=dict)


class _Quiet(WSGIRequestHandler):
    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass


@contextlib.contextmanager
def aws_server() -> Iterator[AwsServer]:
    """Serve while the block runs. moto keeps what it has for the process: use names of your own."""
    moto = DomainDispatcherApplication(create_backend_app)

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        operation = environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2]
        aws.asked.append(operation)
        if operation in aws.refuses:
            start_response("400 Bad Request", [("content-type", "application/x-amz-json-1.1")])
            return [json.dumps({"__type": aws.refuses[operation], "message": "refused"}).encode()]
        answer: Iterable[bytes] = moto(environ, start_response)
        return answer

    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=_Quiet)
    aws = AwsServer(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, name="aws")
    thread.start()
    try:
        yield aws
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

"""An ASGI application as a Lambda handler, with Mangum: payload 1.0 and 2.0, ALB and Function URL events.

Mangum runs on the thread's event loop, and raises out of the handler for a Host it cannot split, a body
that is no Base64 or an event that is no request. All calls run on one private thread with a loop of its
own: what other code does to its event loop does not break the next call, and a caller inside a running
loop can call too.
"""

import asyncio
import logging
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from mangum import Mangum

from app.adapters.aws_lambda import Event, Handler
from app.http import NO_STORE

_log = logging.getLogger("roundtrip")


def asgi_handler(app: Any) -> Handler:
    """A Lambda handler around an ASGI application. It never raises."""
    # Its line has the path, and a path of ours has a handle in it.
    logging.getLogger("mangum.http").setLevel(logging.WARNING)
    thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="asgi")
    adapters: list[Mangum] = []

    def call(event: Event, context: Any) -> dict[str, Any]:
        if not adapters:
            loop = asyncio.new_event_loop()
            asyncio.set_event_loop(loop)
            weakref.finalize(handler, loop.close)
            # With lifespan on, start-up and shutdown would run in every invocation.
            adapters.append(Mangum(app, lifespan="off"))
        return adapters[0](event, context)

    def handler(event: Event, context: Any) -> dict[str, Any]:
        try:
            return thread.submit(call, event, context).result()
        except Exception as error:
            _log.warning("Not an HTTP event that this function can read: %s", type(error).__name__)
            return {
                "statusCode": 400,
                "headers": {"content-type": "application/json", **NO_STORE},
                "body": '{"error":"This function answers HTTP requests"}',
                "isBase64Encoded": False,
            }

    return handler

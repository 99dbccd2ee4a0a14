"""Answers with the event and the context that it was given, and with what its process looks like."""

import json
import logging
import os
import sys
import time
from typing import Any

INITIALIZED_AT = time.time()


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    logging.getLogger().warning("warning from %s", event["rawPath"])
    print("printed", event["rawPath"])
    seen = {
        "event": event,
        "context": {
            "aws_request_id": context.aws_request_id,
            "function_name": context.function_name,
            "function_version": context.function_version,
            "invoked_function_arn": context.invoked_function_arn,
            "log_group_name": context.log_group_name,
            "log_stream_name": context.log_stream_name,
            "memory_limit_in_mb": context.memory_limit_in_mb,
            "remaining_ms": context.get_remaining_time_in_millis(),
        },
        "environ": dict(os.environ),
        "cwd": os.getcwd(),
        "path": sys.path,
        "pid": os.getpid(),
        "initialized_at": INITIALIZED_AT,
    }
    return {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": json.dumps(seen)}

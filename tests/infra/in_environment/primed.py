"""The MCP function with one request answered in INIT: priming, as functions do it to have a warm snapshot."""

import json
import os
from types import SimpleNamespace

from infra.local.desk.mcp import handler

with open(os.environ["PRIMED_WITH"]) as file:
    answer = handler(json.load(file), SimpleNamespace(aws_request_id="primed"))
assert answer["statusCode"] == 200, answer

"""The MCP function with the probes besides the desk's tools, in an environment whose clock may be wrong."""

import os
from typing import Any

import tests.hostile.wrong_clock  # before anything reads the clock
from app.adapters.aws_lambda import payload_v2
from app.wiring.mcp import build
from infra.local.desk.tools import FEATURES
from tests.hostile.tools import PROBES

_handler = payload_v2(build(os.environ, (*FEATURES.all, *PROBES)))


def handler(event: Any, context: Any) -> dict[str, Any]:
    return _handler(event, tests.hostile.wrong_clock.OwnTime(context))

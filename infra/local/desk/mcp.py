"""handlers/mcp.py, with the desk's tools."""

import os

from app.adapters.aws_lambda import payload_v2
from app.wiring.mcp import build
from infra.local.desk.tools import FEATURES

handler = payload_v2(build(os.environ, FEATURES))

"""POST /mcp and the resource metadata, without an ASGI framework in between: the hot path."""

import os

from app.adapters.aws_lambda import payload_v2
from app.tools import FEATURES
from app.wiring.mcp import build

handler = payload_v2(build(os.environ, FEATURES))

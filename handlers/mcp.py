"""POST /mcp and the resource metadata, without an ASGI framework in between: the hot path."""

import gc
import os

# What an import makes is no garbage: to look for some while importing finds nothing.
gc.disable()

from app.adapters.aws_lambda import payload_v2
from app.tools import FEATURES
from app.wiring.mcp import build

handler = payload_v2(build(os.environ, FEATURES))
# What is built here lives as long as the process: collections need not look at it.
gc.freeze()
gc.enable()

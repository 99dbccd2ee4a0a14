"""The Lambda function: the deployed composition root, with the tools of this folder."""

import os

from app.adapters.aws_lambda import payload_v2
from app.wiring.mcp import build
from tests.clients.guarded.tools import FEATURES

handler = payload_v2(build(os.environ, FEATURES))

"""The Lambda function of the server that the conformance suite tests."""

import os

from app.adapters.aws_lambda import payload_v2
from app.wiring.mcp import build
from tests.conformance.everything import FEATURES

handler = payload_v2(build(os.environ, FEATURES))

"""handlers/mcp.py with the issuer's keys in the process: the composition root takes any source of documents."""

import json
import os

from app.adapters.aws_lambda import payload_v2
from app.settings import Settings
from app.tools import FEATURES
from app.wiring.mcp import McpFunction


class KeysInProcess:
    """Implements ports.DocumentSource."""

    def fetch(self, url: str) -> object:
        return json.loads(os.environ["BENCH_JWKS"])


handler = payload_v2(McpFunction(Settings.read(os.environ), FEATURES, KeysInProcess()).respond)

"""Both handlers, loaded from their files as Lambda loads them, in this process."""

import importlib
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from unittest import mock

from app.adapters.aws_lambda import Handler

_MODULES: Final = ("handlers.mcp", "handlers.web")


@dataclass(frozen=True)
class Handlers:
    """What Lambda would call."""

    mcp: Handler
    web: Handler

    @property
    def all(self) -> Mapping[str, Handler]:
        return {"mcp": self.mcp, "web": self.web}


@dataclass(frozen=True)
class InvocationContext:
    """What the runtime hands over besides the event."""

    aws_request_id: str = "c0ffee00-0000-4000-8000-000000000000"

    def get_remaining_time_in_millis(self) -> int:
        return 25_000


CONTEXT: Final[Any] = InvocationContext()


@contextmanager
def loaded_handlers(environment: Mapping[str, str]) -> Iterator[Handlers]:
    """The handlers of a deployment with these variables. They stay loaded for the block only."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MCP_")}
    with mock.patch.dict(os.environ, {**kept, **environment}, clear=True):
        for name in _MODULES:
            assert name not in sys.modules, f"{name} is loaded already, with somebody else's configuration"
        mcp, web = (importlib.import_module(name) for name in _MODULES)
        try:
            yield Handlers(mcp.handler, web.handler)
        finally:
            for name in _MODULES:
                del sys.modules[name]

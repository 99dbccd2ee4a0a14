"""One invocation of a function and the ways it can end."""

from collections.abc import Sequence
from dataclasses import dataclass

# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html: 6 MB each way, and a little slack.
MAX_PAYLOAD_BYTES = 6_291_556


@dataclass(frozen=True, kw_only=True)
class Invocation:
    request_id: str
    trace_id: str
    payload: bytes


@dataclass(frozen=True)
class Succeeded:
    payload: bytes


@dataclass(frozen=True)
class Failed:
    """The handler raised, or the runtime ended: API Gateway answers 500."""

    error_type: str
    error_message: str
    stack_trace: Sequence[str] = ()


@dataclass(frozen=True)
class TimedOut:
    """The function's Timeout passed and the environment was killed: API Gateway answers 503."""


Outcome = Succeeded | Failed | TimedOut

"""What can go wrong, by whose fault it is. A reason is for the log; the wire gets one fixed sentence.

RoundtripError
├── ConfigurationError      the operator's: the function refuses to start, the message ends with the remedy
├── Refused                 the caller's: what came in does not prove what it must; `reason` is for the log
│   ├── SealRefused         a sealed token does not open
│   ├── RequestStateRefused a requestState does not open, or is not valid now
│   └── WidgetStateRefused  the state that a view gives back does not open, or is not valid now
├── AuthorizationError      the caller's: answered with a challenge (RFC 6750 section 3)
│   ├── MissingCredentials
│   ├── InvalidRequest
│   ├── InvalidToken
│   └── InsufficientScope
└── Unavailable             a dependency's: answered with 503 and Retry-After

OutOfTime, a BaseException, ends a function that would be killed with its invocation.
"""

from collections.abc import Sequence


class RoundtripError(Exception):
    """The root of every error that this project raises on purpose."""


class ConfigurationError(RoundtripError):
    """The deployment cannot work as configured. Lists every problem at once, each with its remedy."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(["This cannot work as it is:", *(f"  - {p}" for p in self.problems)]))


class Refused(RoundtripError):
    """Something attacker-controlled failed verification. `reason` goes to the log and nowhere else."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class SealRefused(Refused):
    """A sealed token did not open: its shape, key, commitment, tag or binding is wrong."""


class RequestStateRefused(Refused):
    """A `requestState` did not open for this request, or is no longer valid."""


class WidgetStateRefused(Refused):
    """The state that a view gave back did not open for this user, client and name, or is no longer valid."""


class AuthorizationError(RoundtripError):
    """The request is not authorized. `reason` goes to the log; the response is a challenge."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class MissingCredentials(AuthorizationError):
    """No access token was presented: 401 without an error code (RFC 6750 section 3.1)."""


class InvalidRequest(AuthorizationError):
    """The Authorization header is malformed or repeated: 400 `invalid_request`."""


class InvalidToken(AuthorizationError):
    """The access token is not valid here and now: 401 `invalid_token`."""


class InsufficientScope(AuthorizationError):
    """The access token lacks a scope: 403 `insufficient_scope` with all scopes that the operation needs."""

    def __init__(self, required: Sequence[str]) -> None:
        self.required = tuple(required)
        super().__init__("insufficient_scope")


class Unavailable(RoundtripError):
    """Something that this request needs cannot be reached now. `retry_after` is in whole seconds."""

    def __init__(self, reason: str, *, retry_after: int) -> None:
        self.reason = reason
        self.retry_after = retry_after
        super().__init__(reason)


class OutOfTime(BaseException):
    """The invocation is about to be killed. Not an Exception: a function's `except Exception` must not swallow it."""

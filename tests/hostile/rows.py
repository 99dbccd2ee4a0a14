"""What a hostile client may send, numbered, and which tests send it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import pytest

T = TypeVar("T", bound=Callable[..., Any])

# R stands for the one error of every requestState that does not open: -32602, and nothing else.
ROWS: Final[Mapping[int, str]] = {
    1: "GET /mcp",
    2: "DELETE /mcp with a session id",
    4: "a foreign Origin",
    5: "Origin: null",
    7: "a chunked body over the limit",
    8: "a body that is called plain text",
    10: "Accept: text/html",
    11: "a foreign Host",
    13: "a Lambda event that no gateway makes",
    14: "a path with dots, encoded once or twice",
    16: "a notification, and one that cancels somebody else's request",
    17: "an empty body",
    19: "a byte order mark",
    20: "UTF-16",
    22: "surrogates as bytes",
    23: "a member twice",
    25: "NaN and Infinity",
    26: "1e400",
    28: "a lone surrogate, and a pair",
    29: "100,000 brackets",
    31: "an integer of 5,000 digits",
    32: "an integer of 65 bits",
    34: "a batch",
    35: "a response",
    37: "an id of 400 digits",
    38: "an id of 10 KB",
    40: "params that are a list",
    41: "no _meta",
    43: "a protocol version that is a number",
    44: "no version header",
    46: "a version of 1900",
    47: "a method header that is absent, or another's",
    49: "a name in Base64",
    50: "a name in bad Base64",
    52: "a parameter header that disagrees with its argument",
    53: "an unknown method",
    55: "an unknown tool",
    56: "arguments that are no object",
    58: "a token in the query",
    59: "two credentials",
    61: "a token signed with the public key as a secret",
    62: "an algorithm that is not its key's",
    64: "200 unknown key ids at once",
    65: "the same, while there are no keys to be had",
    67: "a symmetric key in the key set",
    68: "a weak key in the key set",
    70: "a key id that is none",
    71: "a critical extension",
    73: "an expired token, to the second",
    74: "a token from the future, to the second",
    76: "another issuer's token",
    77: "a token about nobody",
    79: "a token that is no access token",
    80: "a token that is no compact JWS",
    82: "a token without the scope",
    83: "a state with any character changed",
    85: "a state of 40 KB",
    86: "another user's state",
    88: "a state of another issuer, and one whose fields are shifted",
    89: "a state of another call",
    91: "a state under an unknown key",
    92: "a state under a retired key",
    94: "a state of another deployment",
    95: "a state that is too old, in each of three ways",
    97: "a state on another environment, and after a restart",
    98: "answers without a state",
    100: "a finished call again, one after the other and all at once",
    101: "a finished call with other answers",
    103: "a guarded call while the store is down",
    104: "a state of an earlier round, after the last",
    106: "whether the refusals of states can be told apart",
    107: "answers that are none",
    109: "decline and cancel",
    110: "answers to questions that nobody asked",
    112: "a client that declared no elicitation, or another mode",
    113: "a client that takes its declaration back",
    115: "a second call while a link is open",
    116: "a link that is none",
    118: "somebody else at the link",
    119: "a form that is not ours",
    121: "a callback in another browser",
    122: "a callback again and again",
    124: "a callback at another provider's path",
    125: "a callback with its parameters doubled, missing or huge",
    127: "a callback with an error, and with a script in it",
    128: "a page that is told where to send people",
    130: "the URL that leads to the third party",
    131: "secrets in answers, links and logs",
    133: "a connected user who cancels",
    134: "a sealed record in another place",
    136: "a disconnection in the middle of a refresh",
    137: "a second client of a connected user",
    139: "a store that has lost everything",
    140: "a store that has forgotten the scripts",
    142: "a store in cluster mode",
    143: "a sixth link for one user",
}


class Case(Protocol):
    @property
    def row(self) -> int: ...


def shows(*rows: int) -> Callable[[T], T]:
    """Say which rows a test shows."""

    def mark(test: T) -> T:
        assert set(rows) <= ROWS.keys()
        test.__dict__["rows"] = frozenset(rows)
        return test

    return mark


def each(cases: Sequence[Case]) -> Callable[[T], T]:
    """Run a test for each case of a table."""

    def mark(test: T) -> T:
        parametrized: T = pytest.mark.parametrize("case", cases, ids=str)(test)
        return shows(*(case.row for case in cases))(parametrized)

    return mark


def shown() -> Iterator[tuple[int, str]]:
    """Every row that some test here shows, with the test's name."""
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        module = import_module(f"{__package__}.{path.stem}")
        for name, test in vars(module).items():
            if name.startswith("test_"):
                for row in getattr(test, "rows", ()):
                    yield row, name

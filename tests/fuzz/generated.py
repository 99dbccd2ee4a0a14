"""What hypothesis makes up: JSON of every shape, well-formed messages with something changed, text for headers."""

import copy
import json
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st

Path: TypeAlias = tuple[str | int, ...]

# Where bugs live: borders of number types, text that is no Unicode, names that mean something to Python.
_NUMBERS: Final = (0, -1, 2**31, 2**53, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 10**30, 10**400, 1e400, 5e-324, -0.0)
_TEXTS: Final = (
    "", " ", "\0", "\n", "\r\n", "\ud800", "\udc00x", "é", "😀", "\u2028", "a" * 300, "__class__", "constructor",
    "../..", "%2e%2e", "{}", "null", "true", "=?base64?ZXJhc2U=?=", "=?base64?!?=", "rs1.", "tools/call", "erase",
    "form", "url", "accept", "2026-07-28", "2025-11-25", "io.modelcontextprotocol/protocolVersion",
)  # fmt: skip

texts = st.one_of(st.sampled_from(_TEXTS), st.text(max_size=20))
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from(_NUMBERS),
    st.floats(),
    texts,
)
json_values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=12,
)


def _paths(value: Any, here: Path = ()) -> list[Path]:
    inner: Sequence[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [here, *(path for key, each in inner for path in _paths(each, (*here, key)))]


@st.composite
def spoiled(draw: st.DrawFn, value: Any, *, most: int = 3) -> Any:
    """A JSON value with up to `most` of its parts replaced, removed, wrapped or joined by others."""
    value = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, most))):
        path = draw(st.sampled_from(_paths(value)))
        if not path:
            if draw(st.integers(0, 9)) == 0:
                value = draw(json_values)
            continue
        parent = value
        for key in path[:-1]:
            parent = parent[key]
        key = path[-1]
        match draw(st.integers(0, 4)):
            case 0:
                del parent[key]
            case 1:
                parent[key] = [parent[key]]
            case 2 if isinstance(parent, dict):
                parent[draw(texts)] = parent[key]
            case 3 if isinstance(parent[key], str):
                parent[key] = draw(spoiled_text(parent[key]))
            case _:
                parent[key] = draw(json_values)
    return value


@st.composite
def spoiled_text(draw: st.DrawFn, text: str) -> str:
    """A text with something cut out of it or put into it."""
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, min(len(text), start + 8)))
    return text[:start] + draw(st.one_of(st.just(""), texts)) + text[end:]


def as_body(value: Any) -> bytes:
    """JSON as a careless client writes it: NaN, infinities and lone surrogates included."""
    return json.dumps(value).encode()


bodies = st.one_of(
    st.binary(max_size=200),
    json_values.map(as_body),
    st.text(alphabet='{}[]",:.-+eE0123456789truefalsn \\u/\x00\ufeff', max_size=80).map(lambda text: text.encode()),
)
header_values = st.one_of(
    texts.filter(lambda text: all(ord(character) < 256 for character in text)),
    st.text(alphabet=[chr(code) for code in range(256)], max_size=40),
)
header_names = st.one_of(
    st.sampled_from(
        ["authorization", "content-type", "accept", "mcp-protocol-version", "mcp-method", "mcp-name", "origin",
         "mcp-session-id", "mcp-param-region", "mcp-param-size", "content-encoding", "content-length", "cookie", "host"]
    ),
    st.text(alphabet="abcdefghijklmnopqrstuvwxyz-0123456789", min_size=1, max_size=12),
)  # fmt: skip

Builder: TypeAlias = Callable[[], Any]

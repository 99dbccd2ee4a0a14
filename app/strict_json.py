"""JSON as the wire may carry it: one reading only, bounded, and a canonical form to digest.

`json.loads` takes duplicate keys, NaN, 1e400, a byte order mark, UTF-16 and lone surrogates, and fails
with three different exceptions on hostile depth and digits. Two parsers that read one body differently
are how a checked value and a used value come apart (RFC 8259 sections 4, 8.1, 8.2).
"""

import json
import math
import re
from typing import Any, Final, NoReturn, TypeAlias

JsonObject: TypeAlias = dict[str, Any]

MAX_BODY: Final = 1024 * 1024
MAX_DEPTH: Final = 64
MAX_NODES: Final = 20_000

_INT64 = range(-(2**63), 2**63)
_MAX_DIGITS: Final = 64
_SAFE_INTEGER: Final = 2**53
# Everything but brackets outside strings. Possessive, and with an optional closing quote: no input makes it
# look at a byte twice.
_NO_STRUCTURE = re.compile(rb'(?:[^"\[\]{}]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"?)++', re.DOTALL)
_SURROGATE = re.compile(rb"\\u[dD][89abAB]|\\u[dD][c-fC-F]")


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


class NotStrictJson(ValueError):
    """The text is not JSON in the strict reading. The message says what is wrong, for the log."""


class _BigInteger(Exception):
    """An integer beyond 64 bits was met; only a JSON-RPC id may be one."""


def parse(body: bytes) -> Any:
    """Parse one JSON text. Raises NotStrictJson.

    Integers are 64-bit, except the value of a top-level `id`: it is echoed, never computed with.
    """
    if len(body) > MAX_BODY:
        raise NotStrictJson("too large")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise NotStrictJson("not UTF-8") from None
    # Counting bytes gives upper bounds that settle nearly every body without a walk.
    openers = body.count(b"[") + body.count(b"{")
    if openers > MAX_DEPTH:
        _check_structure(body)
    try:
        value = _decode(text)
    except ValueError as error:
        raise NotStrictJson(str(error)) from None
    if 1 + openers + body.count(b",") > MAX_NODES:
        _check_nodes(value)
    if _SURROGATE.search(body):
        _check_surrogates(value)
    return value


def canonical(value: Any) -> bytes:
    """The bytes that stand for a parsed JSON value, equal for equal values.

    Keys are sorted by code point, and an integral number up to 2^53 has one spelling (1, 1.0, 1e0, -0.0),
    so a re-serialisation by JavaScript survives; larger integers stay exact, unlike RFC 8785, where
    9007199254740993 and ...992 would collide while a Python tool sees two values.
    """
    return _CANONICAL.encode(_one_spelling(value)).encode()


def _one_spelling(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= _SAFE_INTEGER else value
    if isinstance(value, dict):
        return {key: _one_spelling(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_one_spelling(each) for each in value]
    return value


def _unique(pairs: list[tuple[str, Any]]) -> JsonObject:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise NotStrictJson("duplicate key")
    return members


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise NotStrictJson("number out of range")
    return number


def _bounded(digits: str) -> int:
    # int() of a long digit string is quadratic, and raises a plain ValueError past 4300.
    if len(digits) > _MAX_DIGITS:
        raise NotStrictJson("integer out of range")
    number = int(digits)
    if number not in _INT64:
        raise _BigInteger
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise NotStrictJson(f"{name} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=_finite, parse_int=_bounded, parse_constant=_refuse_constant
)


def _decode(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except _BigInteger:
        return _decode_with_big_id(text)


def _decode_with_big_id(text: str) -> Any:
    big: list[int] = []

    def collect(digits: str) -> int:
        try:
            return _bounded(digits)
        except _BigInteger:
            big.append(int(digits))
            return big[-1]

    value = json.JSONDecoder(
        object_pairs_hook=_unique, parse_float=_finite, parse_int=collect, parse_constant=_refuse_constant
    ).decode(text)
    if len(big) != 1 or not isinstance(value, dict) or value.get("id") is not big[0]:
        raise NotStrictJson("integer out of range")
    return value


def _check_structure(body: bytes) -> None:
    """Before decoding: the decoder recurses, and where that overflows depends on the interpreter."""
    brackets = _NO_STRUCTURE.sub(b"", body)
    if brackets.count(b"[") + brackets.count(b"{") > MAX_NODES:
        raise NotStrictJson("too many values")
    depth = 0
    for bracket in brackets:
        depth += 1 if bracket in b"[{" else -1
        if depth > MAX_DEPTH:
            raise NotStrictJson("too deep")


def _check_nodes(value: Any) -> None:
    nodes = 0
    level = [value]
    while level:
        nodes += len(level)
        if nodes > MAX_NODES:
            raise NotStrictJson("too many values")
        level = [
            each
            for node in level
            if isinstance(node, dict | list)
            for each in (node.values() if isinstance(node, dict) else node)
        ]


def _check_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise NotStrictJson("lone surrogate") from None

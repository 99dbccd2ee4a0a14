"""Strict JSON: every hostile text is refused in one way, every valid one reads as `json.loads` reads it."""

import inspect
import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.protocol.jsonrpc import ErrorCode
from app.strict_json import MAX_BODY, MAX_DEPTH, MAX_NODES, NotStrictJson, canonical, parse
from app.testing import Client, Server

BIG = 10**30


def refusal(body: bytes) -> str:
    """Why a body is refused. Anything but NotStrictJson fails the test."""
    try:
        value = parse(body)
    except NotStrictJson as refused:
        return str(refused)
    raise AssertionError(f"{body[:80]!r} was read as {str(value)[:80]}")


# What is refused

HOSTILE = [
    pytest.param(b"", "Expecting value", id="17: nothing"),
    pytest.param(b" \n", "Expecting value", id="17: nothing but whitespace"),
    pytest.param(b"\xef\xbb\xbf{}", "Expecting value", id="19: byte order mark"),
    pytest.param("{}".encode("utf-16"), "not UTF-8", id="20: UTF-16 with a mark"),
    pytest.param('{"a":1}'.encode("utf-16-le"), "property name", id="20: UTF-16, little endian"),
    pytest.param('{"a":1}'.encode("utf-16-be"), "Expecting value", id="20: UTF-16, big endian"),
    pytest.param('{"a":1}'.encode("utf-32"), "not UTF-8", id="20: UTF-32"),
    pytest.param(b'{"a":"\xff"}', "not UTF-8", id="no UTF-8"),
    pytest.param(b'{"a":"\xc0\xaf"}', "not UTF-8", id="overlong UTF-8"),
    pytest.param(b'{"a":"\xed\xa0\x80"}', "not UTF-8", id="22: CESU surrogate bytes"),
    pytest.param(b'{"method":"a","method":"b"}', "duplicate key", id="23: duplicate key"),
    pytest.param(b'{"a":1,"a":1}', "duplicate key", id="23: duplicate key with equal values"),
    pytest.param(b'{"a":1,"\\u0061":2}', "duplicate key", id="23: duplicate key in two spellings"),
    pytest.param(b'[{"x":{"a":1,"a":2}}]', "duplicate key", id="23: duplicate key deep inside"),
    pytest.param(b'{"a":NaN}', "NaN", id="25: NaN"),
    pytest.param(b'{"a":Infinity}', "Infinity", id="25: Infinity"),
    pytest.param(b'{"a":-Infinity}', "-Infinity", id="25: negative Infinity"),
    pytest.param(b'{"a":1e400}', "out of range", id="26: a float beyond range"),
    pytest.param(b'{"a":-1E+400}', "out of range", id="26: a negative float beyond range"),
    pytest.param(b'{"a":' + b"9" * 400 + b".5}", "out of range", id="26: a float of many digits"),
    pytest.param(b'{"a":"\\ud800"}', "surrogate", id="27: lone high surrogate"),
    pytest.param(b'{"a":"\\uDC00x"}', "surrogate", id="27: lone low surrogate"),
    pytest.param(b'{"a":"\\udc00\\ud800"}', "surrogate", id="27: a pair in the wrong order"),
    pytest.param(b'{"a":"\\ud800\\ud800\\udc00"}', "surrogate", id="27: one too many before a pair"),
    pytest.param(b'{"\\ud800":1}', "surrogate", id="28: lone surrogate in a key"),
    pytest.param(b'[["\\uD83D"]]', "surrogate", id="27: lone surrogate inside a list"),
    pytest.param(b"[" * 100_000, "too many values", id="29: 100,000 brackets"),
    pytest.param(b'{"a":' * 100_000, "too many values", id="29: 100,000 objects"),
    pytest.param(b"[" * 30_000 + b"]", "too many values", id="29: brackets beyond the bound on values"),
    pytest.param(b"[" + b"[]," * 30_000 + b"0]", "too many values", id="29: as many, side by side"),
    pytest.param(b"]" * 30_000, "Expecting value", id="29: closing brackets"),
    pytest.param(b"]" * 500 + b"[" * 500, "Expecting value", id="29: closing brackets before opening ones"),
    pytest.param(b"[" * 65 + b"]" * 65, "too deep", id="29: one level too many"),
    pytest.param(b'{"a":[' * 33 + b"]}" * 33, "too deep", id="29: lists in objects"),
    pytest.param(b"9" * 5000, "integer out of range", id="31: 5000 digits"),
    pytest.param(b'{"a":-' + b"9" * 5000 + b"}", "integer out of range", id="31: 5000 negative digits"),
    pytest.param(b"9223372036854775808", "integer out of range", id="32: 2^63"),
    pytest.param(b'{"a":9223372036854775808}', "integer out of range", id="32: 2^63 as a member"),
    pytest.param(b'{"a":-9223372036854775809}', "integer out of range", id="32: -2^63-1"),
    pytest.param(b'{"id":' + b"1" * 400 + b"}", "integer out of range", id="37: an id of 400 digits"),
    pytest.param(b"{} {}", "Extra data", id="two texts"),
    pytest.param(b"{}\x00", "Extra data", id="NUL after the text"),
    pytest.param(b'{"a":"\x00"}', "control character", id="NUL in a string"),
    pytest.param(b'{"a":"x\ny"}', "control character", id="line break in a string"),
    # From Python 3.13 on the decoder has words of its own for these two.
    pytest.param(b'{"a":1,}', "line 1 column", id="comma before the brace"),
    pytest.param(b"[1,]", "line 1 column", id="comma before the bracket"),
    pytest.param(b"{'a':1}", "property name", id="single quotes"),
    pytest.param(b"{a:1}", "property name", id="key without quotes"),
    pytest.param(b'{"a":01}', "delimiter", id="leading zero"),
    pytest.param(b'{"a":+1}', "Expecting value", id="leading plus"),
    pytest.param(b'{"a":.5}', "Expecting value", id="no digit before the point"),
    pytest.param(b'{"a":5.}', "delimiter", id="no digit after the point"),
    pytest.param(b'{"a":0x10}', "delimiter", id="hexadecimal"),
    pytest.param('{"a":\u0661}'.encode(), "Expecting value", id="an Arabic digit"),
    pytest.param(b'{"a":True}', "Expecting value", id="a Python constant"),
    pytest.param(b'{"a":1}//', "Extra data", id="a comment"),
    pytest.param(b'{"a":"\\x41"}', "escape", id="an escape that JSON lacks"),
    pytest.param(b'{"a":"\\u12"}', "escape", id="a short escape"),
    pytest.param(b"\xc2\xa0{}", "Expecting value", id="a no-break space in front"),
    pytest.param(b"\x0b{}", "Expecting value", id="a vertical tab in front"),
    pytest.param(b'{"a":1', "delimiter", id="no end"),
    pytest.param(b'"' + b'\\"' * 10_000, "Unterminated", id="a string without end"),
    pytest.param(b'"' + b"[" * 10_000, "Unterminated", id="brackets in a string without end"),
    pytest.param(b'["' + b'\\\\" "' * 10_000, "delimiter", id="many short strings"),
]


@pytest.mark.parametrize(("body", "reason"), HOSTILE)
def test_hostile_json_is_refused_with_its_reason(body: bytes, reason: str) -> None:
    """SECURITY 5, items 17 to 37; RFC 8259 sections 4, 6, 7 and 8."""
    assert reason in refusal(body)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param(b"[%d, " % BIG, "Expecting value", id="no end"),
        pytest.param(b"[%d, NaN]" % BIG, "NaN", id="NaN"),
        pytest.param(b'{"id":%d,"a":{"b":1,"b":1}}' % BIG, "duplicate key", id="duplicate key"),
        pytest.param(b'{"id":%d,"a":1e999}' % BIG, "out of range", id="a float beyond range"),
        pytest.param(b'{"id":%d,"a":%s}' % (BIG, b"9" * 400), "out of range", id="400 digits"),
        pytest.param(b'{"id":%d,"a":"\\ud800"}' % BIG, "surrogate", id="lone surrogate"),
        pytest.param(b'{"id":%d,"a":%s' % (BIG, b"[" * 10_000), "too deep", id="10,000 brackets"),
        pytest.param(b'{"id":%d,"a":%s}' % (BIG, b"[" * 64 + b"]" * 64), "too deep", id="one level too many"),
        pytest.param(b'{"id":%d} x' % BIG, "Extra data", id="more text"),
    ],
)
def test_a_big_id_opens_no_way_around_a_check(body: bytes, reason: str) -> None:
    """CASES 22: what else is wrong with the text is refused as without the big integer."""
    assert reason in refusal(body)


def test_a_reason_never_repeats_the_text() -> None:
    """STYLE 4.14: the reason goes to the log, the text may hold a secret."""
    for body in (
        b'{"a":sentinel}',
        b'["sentinel\n"]',
        b'{"sentinel":1,"sentinel":2}',
        b"sentinel",
        b'["\\ud800sentinel"]',
    ):
        assert "sentinel" not in refusal(body)


# Bounds


@contextmanager
def little_stack() -> Iterator[None]:
    """Leave room for the depth that is allowed and for nothing more."""
    depth = len(inspect.stack(0))
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + 2 * MAX_DEPTH + 60)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize("opener", [b"[", b'{"a":', b'[{"":', b'["\\"",['])
def test_hostile_depth_is_refused_before_anything_recurses(opener: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """SECURITY 5, item 29: not by the stack's overflow, which is an accident of the interpreter."""

    def decode(text: str) -> None:
        raise AssertionError("a text of this depth must not reach the recursive decoder")

    monkeypatch.setattr("app.strict_json._DECODER.decode", decode)
    assert refusal(opener * 9_000) == "too deep"
    assert refusal(opener * 100_000) == "too many values"
    assert refusal(b'"' + b"[" * 500 + b'"' + opener * 500) == "too deep"


def test_the_depth_that_is_allowed_needs_little_stack() -> None:
    """The bound is low enough that no caller's depth matters."""
    deepest = b'{"a":[' * 32 + b"1.0" + b"]}" * 32
    with little_stack():
        value = parse(deepest)
        assert canonical(value) == b'{"a":[' * 32 + b"1" + b"]}" * 32


@pytest.mark.parametrize("depth", [1, 2, MAX_DEPTH - 1, MAX_DEPTH])
def test_depth_up_to_the_bound_is_read(depth: int) -> None:
    """SECURITY 1, Oversized: depth 64."""
    assert parse(b"[" * depth + b"]" * depth) == json.loads("[" * depth + "]" * depth)


def test_brackets_in_strings_are_no_depth() -> None:
    """The bound is on the structure, not on a count of bytes."""
    text = "[{" * 500 + '"' + "\\" + "[" * 100
    assert parse(json.dumps([text, {text: text}]).encode()) == [text, {text: text}]


def test_many_brackets_side_by_side_are_no_depth() -> None:
    """The bound is on the structure, not on a count of bytes."""
    assert parse(b"[" + b"[],{}," * 2000 + b"0]") == [*[[], {}] * 2000, 0]


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        pytest.param("[" + ",".join(["0"] * (MAX_NODES - 1)) + "]", MAX_NODES, id="one flat list"),
        pytest.param("[" + ",".join(["[]"] * (MAX_NODES - 1)) + "]", MAX_NODES, id="a list of lists"),
        pytest.param(json.dumps({str(i): i for i in range(MAX_NODES - 1)}), MAX_NODES, id="one object"),
    ],
)
def test_the_bound_on_values_is_exact(text: str, nodes: int) -> None:
    """SECURITY 1, Oversized: 20,000 nodes, the outermost counted."""
    assert parse(text.encode()) == json.loads(text)
    more = text[:1] + ('"one more":0,' if text[0] == "{" else "0,") + text[1:]
    assert refusal(more.encode()) == "too many values"


def test_two_hundred_thousand_keys_are_refused() -> None:
    """SECURITY 1, Oversized."""
    body = b"{" + b",".join(b'"%x":0' % i for i in range(100_000)) + b"}"
    assert len(body) < MAX_BODY
    assert refusal(body) == "too many values"


def test_a_mebibyte_is_read_and_one_byte_more_is_not() -> None:
    """SECURITY 1, Oversized: 1 MiB."""
    assert len(parse(b'"' + b"x" * (MAX_BODY - 2) + b'"')) == MAX_BODY - 2
    assert refusal(b'"' + b"x" * (MAX_BODY - 1) + b'"') == "too large"
    assert refusal(b" " * (MAX_BODY + 1)) == "too large"


# What is read


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'{"a":"\\ud83d\\ude00"}', {"a": "😀"}),
        (b'{"\\uD83D\\uDE00":1}', {"😀": 1}),
        (b'{"a":"\\\\ud800"}', {"a": "\\ud800"}),
        ('{"a":"\ufeff😀\uffff"}'.encode(), {"a": "\ufeff😀\uffff"}),
        (b'"\\u0000"', "\x00"),
        (b"9223372036854775807", 2**63 - 1),
        (b"-9223372036854775808", -(2**63)),
        (b" \t\r\n1 \t\r\n", 1),
        (b"1e308", 1e308),
        (b"1e-400", 0.0),
        (b"-0", 0),
        (b'{"":{"":[]}}', {"": {"": []}}),
        (b"null", None),
    ],
)
def test_valid_json_is_read(body: bytes, value: object) -> None:
    """SECURITY 5, item 28; RFC 8259."""
    assert parse(body) == value


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda children: st.lists(children, max_size=5) | st.dictionaries(st.text(), children, max_size=5),
    max_leaves=25,
)


def same(one: Any, other: Any) -> bool:
    """Equal in value and in kind: 1, 1.0 and true are three values, and 0.0 is not -0.0."""
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.copysign(1, one) == math.copysign(1, other) and one == other
    return type(one) is type(other) and bool(one == other)


@settings(deadline=None, max_examples=200)
@given(value=VALUES, ascii_only=st.booleans(), indent=st.sampled_from([None, 0, 3, "\t"]))
def test_a_valid_document_reads_as_json_loads_reads_it(value: Any, ascii_only: bool, indent: int | str | None) -> None:
    """RFC 8259: strict is narrower, never different."""
    body = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    assert same(parse(body), json.loads(body))


@settings(deadline=None, max_examples=300)
@given(body=st.binary(max_size=40) | st.text(alphabet='{}[]",:\\ud8dc0019eE+-.tfn \n', max_size=40).map(str.encode))
def test_any_bytes_are_read_or_refused_and_nothing_else(body: bytes) -> None:
    """One exception for everything that is wrong; what is accepted, `json.loads` accepts too."""
    try:
        value = parse(body)
    except NotStrictJson:
        return
    assert same(value, json.loads(body))


# Big integers


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, BIG, -BIG, 10**62])
def test_a_big_integer_may_be_a_top_level_id(number: int) -> None:
    """CASES 22: an id is echoed, never computed with."""
    assert parse(b'{"id":%d,"params":{"id":1}}' % number) == {"id": number, "params": {"id": 1}}
    assert parse(b'{"params":[],"\\u0069d": %d }' % number) == {"params": [], "id": number}


@pytest.mark.parametrize(
    "body",
    [
        b"%d",
        b"[%d]",
        b'[{"id":%d}]',
        b'{"params":{"id":%d}}',
        b'{"id":[%d]}',
        b'{"id":{"id":%d}}',
        b'{"ID":%d}',
        b'{"id ":%d}',
        b'{"a":%d,"id":1}',
        b'{"id":"x","a":%d}',
    ],
)
def test_a_big_integer_is_refused_anywhere_else(body: bytes) -> None:
    """SECURITY 5, item 32."""
    assert refusal(body % BIG) == "integer out of range"


def test_a_big_id_allows_no_second_big_integer() -> None:
    """SECURITY 5, item 32: also not the same one again."""
    for other in (BIG, BIG + 1):
        assert refusal(b'{"id":%d,"a":%d}' % (BIG, other)) == "integer out of range"
        assert refusal(b'{"a":%d,"id":%d}' % (other, BIG)) == "integer out of range"


@pytest.fixture(scope="module")
def alice() -> Client:
    return Server([], instances=1).client("alice")


def request_with_id(written: bytes) -> bytes:
    return (
        b'{"jsonrpc":"2.0","id":' + written + b',"method":"server/discover","params":{"_meta":{'
        b'"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
        b'"io.modelcontextprotocol/clientCapabilities":{}}}}'
    )


HEADERS = {"mcp-protocol-version": "2026-07-28", "mcp-method": "server/discover"}


@pytest.mark.parametrize("written", [b"1" + b"0" * 30, b"-" + b"9" * 40, b'"01"', b"0", b'"\\u00e9"'])
def test_an_id_comes_back_exactly(alice: Client, written: bytes) -> None:
    """CASES 22, through the endpoint."""
    reply = alice.post(request_with_id(written), HEADERS)
    assert reply.status == 200
    assert reply.message["id"] == json.loads(written)
    assert b'"id":' + json.dumps(json.loads(written), ensure_ascii=False).encode() in reply.http.body


@pytest.mark.parametrize(("body", "reason"), HOSTILE)
def test_the_endpoint_answers_hostile_json_with_a_parse_error(alice: Client, body: bytes, reason: str) -> None:
    """SECURITY 0, status table: -32700 with 400, no id, and nothing of the body."""
    reply = alice.post(body, HEADERS)
    assert (reply.status, reply.message) == (
        400,
        {"jsonrpc": "2.0", "error": {"code": ErrorCode.PARSE_ERROR, "message": "The body is not valid JSON"}},
    )
    assert reason in reply.http.facts["reason"]


# The canonical form


@pytest.mark.parametrize(
    "spellings",
    [
        pytest.param([b"1", b"1.0", b"1e0", b"1E+0", b"10e-1", b"0.1e1", b" 1 "], id="one"),
        pytest.param([b"0", b"-0", b"0.0", b"-0.0", b"0e5", b"1e-400"], id="zero"),
        pytest.param([b"9007199254740992", b"9007199254740992.0", b"9.007199254740992e15"], id="2^53"),
        pytest.param([b"-9007199254740992", b"-9007199254740992.0"], id="-2^53"),
        pytest.param([b"0.1", b"1e-1", b"0.10", b"0.1000000000000000055511151231257827"], id="a tenth"),
        pytest.param([b"1e300", b"1.0e+300", b"10e299"], id="a large float"),
        pytest.param([b'{"a":1,"b":2}', b'{ "b" : 2.0 , "a" : 1e0 }'], id="key order and whitespace"),
        pytest.param([b'"\\u00e9/"', '"é/"'.encode(), b'"\\u00E9\\/"'], id="escapes"),
        pytest.param([b'"\\ud83d\\ude00"', '"😀"'.encode()], id="a pair of surrogates"),
        pytest.param([b'{"a":{"c":[1,{}],"b":null}}', b'{"a":{"b":null,"c":[1.0,{}]}}'], id="nested order"),
    ],
)
def test_equal_values_have_one_canonical_form(spellings: list[bytes]) -> None:
    """SECURITY 2.3: a re-serialisation by another language survives."""
    assert len({canonical(parse(each)) for each in spellings}) == 1


DISTINCT = [
    b"1",
    b'"1"',
    b"true",
    b'"true"',
    b"[1]",
    b'{"a":1}',
    b'{"a":1,"b":null}',
    b'{"A":1}',
    b'{"a":"1"}',
    b'{"a":true}',
    b'{"a":[1]}',
    b"0",
    b'""',
    b"false",
    b"null",
    b"[]",
    b"{}",
    b"[[]]",
    b"[null]",
    b'{"":null}',
    b"9007199254740991",
    b"9007199254740992",
    b"9007199254740993",
    b"9007199254740994",
    b"9223372036854775807",
    b"9.007199254740994e15",
    b"-1",
    b"1.5",
    b"0.1",
    b"0.30000000000000004",
    b"0.3",
    b"1e300",
    b"5e-324",
    b'"a"',
    b'"a "',
    b'"A"',
    '"é"'.encode(),
    '"e\u0301"'.encode(),
    b'"\\u0000"',
    b'"\\\\u0000"',
    b"[1,2]",
    b"[2,1]",
    b'["1,2"]',
]


def test_different_values_have_different_canonical_forms() -> None:
    """SECURITY 2.3: no two of these may share a digest, or an answer to one confirms the other."""
    forms = {canonical(parse(each)): each for each in DISTINCT}
    assert len(forms) == len(DISTINCT)


def test_keys_are_sorted_by_code_point() -> None:
    """SECURITY 2.3: RFC 8785 sorts by UTF-16 unit, where an emoji comes before U+FFFF."""
    body = '{"😀":1,"\uffff":2,"€":3,"z":4,"Z":5,"":6,"10":7,"9":8}'.encode()
    assert canonical(parse(body)) == (b'{"":6,"10":7,"9":8,"Z":5,"z":4,"\\u20ac":3,"\\uffff":2,"\\ud83d\\ude00":1}')


def test_the_canonical_form_is_the_published_one() -> None:
    """SECURITY 2.8, V2."""
    body = '{"z":1.0,"a":[0.1,-0.0,9007199254740993,"€😀"],"\uffff":null,"😀":true}'.encode()
    assert canonical(parse(body)) == (
        rb'{"a":[0.1,0,9007199254740993,"\u20ac\ud83d\ude00"],"z":1,"\uffff":null,"\ud83d\ude00":true}'
    )


@settings(deadline=None, max_examples=150)
@given(value=VALUES)
def test_the_canonical_form_is_a_fixed_point(value: Any) -> None:
    """Digesting what was read from the canonical form gives the same digest, and the same value."""
    form = canonical(value)
    assert canonical(parse(form)) == form
    assert parse(form) == value


@settings(deadline=None, max_examples=100)
@given(one=VALUES, other=VALUES)
def test_two_values_share_a_form_only_if_they_are_equal(one: Any, other: Any) -> None:
    """SECURITY 2.3: the digest binds."""
    if canonical(one) == canonical(other):
        assert one == other


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_json_has_no_canonical_form(number: float) -> None:
    """RFC 8259 section 6."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical({"a": number})

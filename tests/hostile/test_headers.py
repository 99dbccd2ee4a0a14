"""Headers that say something else than the body, and names that do not exist."""

from base64 import b64encode
from typing import Final

import pytest

from tests.hostile.draft import Change, Draft, call
from tests.hostile.laboratory import Laboratory
from tests.hostile.refusals import Refusal, assert_refused, erasure
from tests.hostile.rows import each, shows
from tests.hostile.wire import exchange

MISMATCH, VERSION, UNKNOWN, PARAMS = -32020, -32022, -32601, -32602


def _sentinel(text: str) -> str:
    return f"=?base64?{b64encode(text.encode()).decode()}?="


def _with(name: str, value: str | bytes | None) -> Change:
    return lambda draft: draft.header(name, value)


def _both(version: str) -> Change:
    return lambda draft: draft.header("MCP-Protocol-Version", version).meta(protocolVersion=version)


def _method(name: str) -> Change:
    return lambda draft: draft.says(method=name).header("Mcp-Method", name)


HEADERS: Final = (
    Refusal(44, "absent", _with("MCP-Protocol-Version", None), 400, MISMATCH),
    Refusal(44, "empty", _with("MCP-Protocol-Version", ""), 400, MISMATCH),
    Refusal(44, "another", _with("MCP-Protocol-Version", "2025-11-25"), 400, MISMATCH),
    Refusal(44, "twice", lambda draft: draft.also("MCP-Protocol-Version", "2026-07-28"), 400, MISMATCH),
    Refusal(46, "1900", _both("1900-01-01"), 400, VERSION),
    Refusal(46, "an old one", _both("2025-11-25"), 400, VERSION),
    Refusal(46, "a long one", _both("2" * 5000), 400, VERSION),
    Refusal(47, "absent", _with("Mcp-Method", None), 400, MISMATCH),
    Refusal(47, "in capitals", _with("Mcp-Method", "TOOLS/CALL"), 400, MISMATCH),
    Refusal(47, "another", _with("Mcp-Method", "tools/list"), 400, MISMATCH),
    Refusal(47, "twice", lambda draft: draft.also("Mcp-Method", "tools/call"), 400, MISMATCH),
    Refusal(47, "name absent", _with("Mcp-Name", None), 400, MISMATCH),
    Refusal(47, "name in capitals", _with("Mcp-Name", "ERASE"), 400, MISMATCH),
    Refusal(47, "name twice", lambda draft: draft.also("Mcp-Name", "erase"), 400, MISMATCH),
    Refusal(50, "not Base64", _with("Mcp-Name", "=?base64?ZXJh!2U=?="), 400, MISMATCH),
    Refusal(50, "without its padding", _with("Mcp-Name", "=?base64?" + "ZXJhc2" + "?="), 400, MISMATCH),
    Refusal(50, "with stray bits", _with("Mcp-Name", "=?base64?ZXJhc2V=?="), 400, MISMATCH),
    Refusal(50, "not UTF-8", _with("Mcp-Name", "=?base64?/////w==?="), 400, MISMATCH),
    Refusal(50, "in capitals", _with("Mcp-Name", _sentinel("erase").replace("base64", "BASE64")), 400, MISMATCH),
    Refusal(50, "empty", _with("Mcp-Name", "=?base64??="), 400, MISMATCH),
    Refusal(50, "raw bytes", _with("Mcp-Name", "er\u00e4se".encode()), 400, MISMATCH),
    Refusal(50, "every byte above ASCII", _with("Mcp-Name", bytes(range(0x80, 0x100))), 400, MISMATCH),
    Refusal(53, "made up", _method("tools/erase"), 404, UNKNOWN),
    Refusal(53, "empty", _method(""), (400, 404), (MISMATCH, UNKNOWN)),
    Refusal(53, "of an older client", _method("ping"), 404, UNKNOWN),
    Refusal(53, "initialize", _method("initialize"), 404, UNKNOWN),
    Refusal(55, "made up", lambda draft: draft.params(name="eraser").header("Mcp-Name", "eraser"), 400, PARAMS),
    Refusal(55, "a dunder", lambda draft: draft.params(name="__class__").header("Mcp-Name", "__class__"), 400, PARAMS),
    Refusal(55, "a number", lambda draft: draft.params(name=5).header("Mcp-Name", "5"), 400, PARAMS),
    Refusal(55, "absent", lambda draft: draft.params(name=...).header("Mcp-Name", None), 400, PARAMS),
    Refusal(56, "null", lambda draft: draft.params(arguments=None), 400, PARAMS),
    Refusal(56, "a list", lambda draft: draft.params(arguments=[]), 400, PARAMS),
    Refusal(56, "0", lambda draft: draft.params(arguments=0), 400, PARAMS),
    Refusal(56, "a text", lambda draft: draft.params(arguments="target"), 400, PARAMS),
    Refusal(56, "false", lambda draft: draft.params(arguments=False), 400, PARAMS),
)


@each(HEADERS)
def test_what_disagrees_or_does_not_exist_is_refused_and_uses_nothing_up(
    lab: Laboratory, alice: str, case: Refusal
) -> None:
    """Streamable HTTP, Server Validation; basic/versioning. The request would have erased something."""
    flow = erasure(lab, alice)
    answer = assert_refused(lab, case, case.change(flow.finish), flow.state)
    if case.code == VERSION:
        assert answer.error["data"]["supported"] == ["2026-07-28"]
    flow.finishes()


@shows(49)
def test_a_name_in_base64_is_the_name(lab: Laboratory, alice: str) -> None:
    """Streamable HTTP, Value Encoding."""
    flow = erasure(lab, alice)
    answer = exchange(lab.port, flow.finish.header("Mcp-Name", _sentinel("erase")).wire())
    assert answer.result["content"][0]["text"] == f"{flow.target} is erased."


PARAMETERS: Final = (
    Refusal(52, "no argument", lambda draft: draft.params(arguments={"number": 1}), 400, MISMATCH),
    Refusal(52, "another text", _with("Mcp-Param-Region", "us"), 400, MISMATCH),
    Refusal(52, "in capitals", _with("Mcp-Param-Region", "EU"), 400, MISMATCH),
    Refusal(52, "absent", _with("Mcp-Param-Region", None), 400, MISMATCH),
    Refusal(52, "twice", lambda draft: draft.also("Mcp-Param-Region", "eu"), 400, MISMATCH),
    Refusal(52, "another number", _with("Mcp-Param-Size", "43"), 400, MISMATCH),
    Refusal(52, "a number in words", _with("Mcp-Param-Size", "4.2e1"), 400, MISMATCH),
    Refusal(52, "a half", _with("Mcp-Param-Size", "42.5"), 400, MISMATCH),
    Refusal(52, "a number of a million digits", _with("Mcp-Param-Size", "9" * 8000), 400, MISMATCH),
    Refusal(52, "other digits", _with("Mcp-Param-Size", _sentinel("٤٢")), 400, MISMATCH),
)


def _parameters(token: str) -> Draft:
    draft = call(token, "count", number=1, region="eu", size=42)
    return draft.header("Mcp-Param-Region", "eu").header("Mcp-Param-Size", "42")


@each(PARAMETERS)
def test_a_parameter_header_that_disagrees_is_refused(lab: Laboratory, alice: str, case: Refusal) -> None:
    """x-mcp-header: a gateway routes by what the header says, and the tool runs with what the body says."""
    assert_refused(lab, case, case.change(_parameters(alice)))


@pytest.mark.parametrize(
    "change",
    [
        lambda draft: draft,
        _with("Mcp-Param-Size", "42.0"),
        _with("Mcp-Param-Region", _sentinel("eu")),
        lambda draft: draft.also("Mcp-Param-Unknown", "x"),
    ],
    ids=["as it is", "42.0", "Base64", "one that nobody asked for"],
)
@shows(52)
def test_a_parameter_header_that_agrees_is_accepted(lab: Laboratory, alice: str, change: Change) -> None:
    """Row 52: 42.0 is 42, and what no argument mirrors is nobody's business."""
    answer = exchange(lab.port, change(_parameters(alice)).wire())
    assert answer.result["content"][0]["text"] == "1 in eu, size 42"

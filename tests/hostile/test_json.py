"""Bodies that two parsers would read in two ways, or that cost more to read than to send."""

import json
from typing import Any, Final

from tests.hostile.draft import Draft, accept, call
from tests.hostile.laboratory import Laboratory
from tests.hostile.refusals import Refusal, assert_refused, erasure
from tests.hostile.rows import each, shows
from tests.hostile.wire import exchange

PARSE, REQUEST, PARAMS, HEADER = -32700, -32600, -32602, -32020
AT_MOST_MS: Final = 5000
"""On a computer that does other things too. What it takes by itself is in tests/fuzz, by the processor's clock."""


def _argument(text: str) -> "Any":
    """A change of the body that puts this text where the answer's `true` was."""
    return lambda draft: draft.rewritten("true", text)


def _doubled(name: str, first: Any) -> "Any":
    return lambda draft: draft.raw(f"{{{json.dumps(name)}: {json.dumps(first)}, ".encode() + draft.content[1:])


JSON: Final = (
    Refusal(17, "nothing", lambda draft: draft.raw(b""), 400, PARSE),
    Refusal(17, "a space", lambda draft: draft.raw(b" "), 400, PARSE),
    Refusal(17, "two messages", lambda draft: draft.raw(draft.content * 2), 400, PARSE),
    Refusal(17, "half of it", lambda draft: draft.raw(draft.content[: len(draft.content) // 2]), 400, PARSE),
    Refusal(17, "no JSON", lambda draft: draft.raw(b"jsonrpc=2.0&method=tools/call"), 400, PARSE),
    Refusal(19, "UTF-8 with a mark", lambda draft: draft.raw(b"\xef\xbb\xbf" + draft.content), 400, PARSE),
    Refusal(20, "UTF-16 with a mark", lambda draft: draft.raw(draft.content.decode().encode("utf-16")), 400, PARSE),
    Refusal(20, "UTF-16", lambda draft: draft.raw(draft.content.decode().encode("utf-16-be")), 400, PARSE),
    Refusal(20, "UTF-32", lambda draft: draft.raw(draft.content.decode().encode("utf-32")), 400, PARSE),
    Refusal(22, "a surrogate as three bytes", lambda draft: draft.rewritten("thing", b"\xed\xa0\x80"), 400, PARSE),
    Refusal(22, "a pair of them", lambda draft: draft.rewritten("thing", b"\xed\xa0\xbd\xed\xb8\x80"), 400, PARSE),
    Refusal(22, "an overlong slash", lambda draft: draft.rewritten("thing", b"\xc0\xaf"), 400, PARSE),
    Refusal(22, "beyond Unicode", lambda draft: draft.rewritten("thing", b"\xf4\x90\x80\x80"), 400, PARSE),
    Refusal(23, "method, the harmless one first", _doubled("method", "tools/list"), 400, PARSE),
    Refusal(23, "id", _doubled("id", 2), 400, PARSE),
    Refusal(23, "params, empty first", _doubled("params", {}), 400, PARSE),
    Refusal(23, "escaped", lambda d: d.rewritten('"target": ', '"t\\u0061rget": "a", "target": '), 400, PARSE),
    Refusal(25, "NaN", _argument("NaN"), 400, PARSE),
    Refusal(25, "Infinity", _argument("Infinity"), 400, PARSE),
    Refusal(25, "-Infinity", _argument("-Infinity"), 400, PARSE),
    Refusal(26, "1e400", _argument("1e400"), 400, PARSE),
    Refusal(28, "in a value", _argument('"\\ud800"'), 400, PARSE),
    Refusal(28, "in a key", lambda draft: draft.rewritten('"target"', '"\\udc00x"'), 400, PARSE),
    Refusal(28, "the pair the wrong way round", _argument('"\\ude00\\ud83d"'), 400, PARSE),
    Refusal(29, "brackets", lambda draft: draft.raw(b"[" * 100_000), 400, PARSE),
    Refusal(29, "braces", lambda draft: draft.raw(b'{"a":' * 100_000), 400, PARSE),
    Refusal(29, "65 levels", _argument("[" * 65 + "]" * 65), 400, PARSE),
    Refusal(29, "20,000 members", _argument(json.dumps(dict.fromkeys(map(str, range(20_000))))), 400, PARSE),
    Refusal(29, "500,000 values", _argument("[" + "0," * 499_999 + "0]"), 400, PARSE),
    Refusal(29, "an open string", lambda draft: draft.raw(b'"' + b"\\" * 999_999), 400, PARSE),
    Refusal(31, "digits", _argument("9" * 5000), 400, PARSE),
    Refusal(31, "a million digits", _argument("9" * 1_000_000), 400, PARSE),
    Refusal(32, "one too many", _argument(str(2**63)), 400, PARSE),
    Refusal(32, "one too few", _argument(str(-(2**63) - 1)), 400, PARSE),
    Refusal(34, "of one", lambda draft: draft.but(message=[draft.message]), 400, REQUEST),
    Refusal(34, "of none", lambda draft: draft.but(message=[]), 400, REQUEST),
    Refusal(35, "a result", lambda d: d.but(message={"jsonrpc": "2.0", "id": 1, "result": {}}), 400, REQUEST),
    Refusal(35, "an error", lambda d: d.but(message={"jsonrpc": "2.0", "id": 1, "error": {"code": 1}}), 400, REQUEST),
    Refusal(35, "a text", lambda draft: draft.but(message="tools/call"), 400, REQUEST),
    Refusal(35, "null", lambda draft: draft.but(message=None), 400, REQUEST),
    Refusal(35, "another version", lambda draft: draft.says(jsonrpc="1.0"), 400, REQUEST),
    Refusal(35, "a version as a number", lambda draft: draft.says(jsonrpc=2.0), 400, REQUEST),
    Refusal(35, "a method as a list", lambda draft: draft.says(method=["tools/call"]), 400, REQUEST),
    Refusal(37, "digits", lambda draft: draft.rewritten('"id": 1', '"id": ' + "1" * 400), 400, PARSE),
    Refusal(38, "10 KB", lambda draft: draft.says(id="x" * 10_240), 400, REQUEST),
    Refusal(38, "null", lambda draft: draft.says(id=None), 400, REQUEST),
    Refusal(38, "true", lambda draft: draft.says(id=True), 400, REQUEST),
    Refusal(38, "1.5", lambda draft: draft.says(id=1.5), 400, REQUEST),
    Refusal(38, "a list", lambda draft: draft.says(id=[1]), 400, REQUEST),
    Refusal(40, "a list", lambda draft: draft.says(params=[draft.message["params"]]), 400, (REQUEST, PARAMS)),
    Refusal(40, "null", lambda draft: draft.says(params=None), 400, (REQUEST, PARAMS)),
    Refusal(41, "absent", lambda draft: draft.params(_meta=...), 400, PARAMS),
    Refusal(41, "null", lambda draft: draft.params(_meta=None), 400, PARAMS),
    Refusal(41, "a list", lambda draft: draft.params(_meta=[]), 400, PARAMS),
    Refusal(41, "without capabilities", lambda draft: draft.meta(clientCapabilities=...), 400, PARAMS),
    Refusal(41, "capabilities as a list", lambda draft: draft.meta(clientCapabilities=["elicitation"]), 400, PARAMS),
    Refusal(43, "5", lambda draft: draft.meta(protocolVersion=5), 400, (HEADER, PARAMS)),
    Refusal(43, "null", lambda draft: draft.meta(protocolVersion=None), 400, (HEADER, PARAMS)),
)


@each(JSON)
def test_what_is_wrong_with_the_body_is_refused_quickly_and_uses_nothing_up(
    lab: Laboratory, alice: str, case: Refusal
) -> None:
    """RFC 8259; JSON-RPC 2.0; MCP basic. The request would have erased something."""
    flow = erasure(lab, alice)
    answer = assert_refused(lab, case, case.change(flow.finish), flow.state)
    assert answer.milliseconds < AT_MOST_MS
    flow.finishes()


@shows(28)
def test_a_pair_of_surrogates_is_the_character_that_it_means(lab: Laboratory, alice: str) -> None:
    """RFC 8259 section 7."""
    draft = call(alice, "rename", target="😀")
    asked = exchange(lab.port, draft.wire())
    assert "\\ud83d\\ude00" in draft.content.decode()
    finish = draft.params(inputResponses={"name": accept(name="😀")}, requestState=asked.result["requestState"])
    answer = exchange(lab.port, finish.wire())
    finish.judge(answer)
    assert answer.result["content"][0]["text"] == "😀 is called 😀."


@shows(32, 37)
def test_the_largest_numbers_that_are_allowed_come_back_exactly(lab: Laboratory, alice: str) -> None:
    """A 64-bit argument, and an id beyond it, which is echoed and never computed with."""
    for number, request_id in ((2**63 - 1, 10**30), (-(2**63), -(10**30)), (0, "01")):
        draft: Draft = call(alice, "count", number=number).says(id=request_id)
        answer = exchange(lab.port, draft.wire())
        draft.judge(answer)
        assert answer.json["id"] == request_id
        assert answer.result["content"][0]["text"].startswith(f"{number} in")

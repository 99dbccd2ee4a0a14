"""A request that would erase something, spoiled: it must be refused, and its owner must still be able to finish."""

import itertools
import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from tests.hostile.draft import Change, Draft, accept, call
from tests.hostile.laboratory import Laboratory
from tests.hostile.wire import Answer, exchange

# What would tell an attacker how we are made: stack traces, paths, exceptions by name.
LEAK: Final = re.compile(r"Traceback|File \"|\.py\b|\b[A-Z]\w+(?:Error|Exception)\b|pydantic|starlette|asyncio")
_numbers: Final = itertools.count(1)

FROZEN: Final = {
    "code": -32602,
    "message": "Invalid or expired requestState",
    "data": {"reason": "invalid_request_state"},
}


@dataclass(frozen=True)
class Refusal:
    """A way to spoil a request, and its answer: the HTTP status and the JSON-RPC code, if it has one."""

    row: int
    name: str
    change: Change
    status: int | tuple[int, ...]
    code: int | tuple[int, ...] | None = None

    def __str__(self) -> str:
        return f"{self.row}: {self.name}"


@dataclass(frozen=True)
class Erasure:
    """A flow that has asked. `finish` is the request that erases; sent as it is, it does so once."""

    lab: Laboratory
    target: str
    finish: Draft

    @property
    def done(self) -> int:
        """How often it has happened."""
        return self.lab.effects().count(f"erased {self.target}")

    @property
    def claims(self) -> dict[str, Any]:
        """What the owner's access token says."""
        payload = str(dict(self.finish.headers)["Authorization"]).split(".")[1]
        claims: dict[str, Any] = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return claims

    @property
    def state(self) -> str:
        state: str = self.finish.message["params"]["requestState"]
        return state

    def finishes(self) -> None:
        """The owner finishes: nothing was done yet, and nothing was used up."""
        assert self.done == 0
        answer = exchange(self.lab.port, self.finish.wire())
        assert answer.result["content"][0]["text"] == f"{self.target} is erased.", answer.text
        assert self.done == 1


def erasure(lab: Laboratory, token: str) -> Erasure:
    """Ask for something new to be erased, and agree."""
    target = f"thing-{next(_numbers)}"
    first = call(token, "erase", target=target)
    asked = exchange(lab.port, first.wire()).result
    assert asked["resultType"] == "input_required"
    finish = first.params(inputResponses={"confirm": accept(confirm=True)}, requestState=asked["requestState"])
    return Erasure(lab, target, finish)


def assert_tells_nothing(lab: Laboratory, answer: Answer, *more: str) -> None:
    """No stack trace, no token and no exception in an answer."""
    assert not LEAK.search(answer.text), answer.text
    for secret in (*lab.tokens, *more):
        assert secret not in answer.text


def assert_refused(lab: Laboratory, case: Refusal, draft: Draft, *secrets: str) -> Answer:
    """Send a draft, and hold the answer to a case."""
    answer = exchange(lab.port, draft.wire())
    statuses = (case.status,) if isinstance(case.status, int) else case.status
    assert answer.status in statuses, answer.text
    assert_tells_nothing(lab, answer, *secrets)
    if answer.from_gateway:
        assert case.code is None
        return answer
    if case.code is not None:
        assert answer.error["code"] in ((case.code,) if isinstance(case.code, int) else case.code), answer.text
    draft.judge(answer)
    return answer


def every_spoiled(text: str) -> Iterator[str]:
    """A text with each of its characters changed in turn, cut at each length, and with something added."""
    for place, character in enumerate(text):
        yield text[:place] + ("A" if character != "A" else "B") + text[place + 1 :]
    for length in range(0, len(text), 7):
        yield text[:length]
    for added in ("-TAMPERED", "=", "==", " ", "\u0000", "\n", "A"):
        yield text + added
    yield from (f" {text}", text.upper(), text.replace("rs1.", "rs2."), text.replace("rs1.", ""), text[4:] + text[:4])

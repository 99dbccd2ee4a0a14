"""requestState in every hand but the right one, and in the right one twice."""

import base64
import itertools
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import pytest

from app.protocol import request_state
from app.protocol.request_state import CLOCK_SKEW, LIFETIME, MAX_AGE, MAX_ROUNDS, Binding, RequestState
from tests.hostile.draft import Draft, accept, call, request
from tests.hostile.laboratory import CLIENT_ID, CURRENT, DROPPED, RETIRED, SCOPES, Laboratory
from tests.hostile.refusals import FROZEN, Erasure, assert_tells_nothing, erasure, every_spoiled
from tests.hostile.rows import each, shows
from tests.hostile.store_door import Door
from tests.hostile.wire import Answer, exchange, wire

YES: Final = {"confirm": accept(confirm=True)}
_numbers = itertools.count(1)


def assert_frozen(lab: Laboratory, answer: Answer, *secrets: str) -> None:
    """R: the one error of every state that does not open."""
    assert answer.status == 400, answer.text
    assert answer.error == FROZEN
    assert_tells_nothing(lab, answer, *secrets)


@pytest.fixture
def flow(lab: Laboratory, alice: str) -> Erasure:
    return erasure(lab, alice)


@pytest.fixture
def owner() -> str:
    """Somebody of this test's own."""
    return f"owner-{next(_numbers)}"


@shows(83, 106)
def test_every_spoiled_state_gets_the_same_bytes_and_the_owner_still_finishes(lab: Laboratory, flow: Erasure) -> None:
    """Each character changed, each seventh length, and what copying adds. The refusals cannot be told apart."""
    bodies: set[bytes] = set()
    with wire(lab.port) as connected:
        for spoiled in every_spoiled(flow.state):
            answer = connected.send(flow.finish.params(requestState=spoiled).wire())
            assert_frozen(lab, answer)
            bodies.add(answer.body)
    assert len(bodies) == 1
    assert flow.done == 0
    flow.finishes()


@pytest.mark.parametrize(
    "state", ["A" * 40_000, "rs1." + "A" * 40_000, "rs1." + "A" * 32_764, "rs1.", "", 5, True, [], {}, "rs1.AAAA"]
)
@shows(85)
def test_what_is_no_state_at_all_is_refused_in_no_time(lab: Laboratory, flow: Erasure, state: Any) -> None:
    """Row 85: nothing is decrypted that is too long to be ours."""
    answer = exchange(lab.port, flow.finish.params(requestState=state).wire())
    assert_frozen(lab, answer)
    assert answer.milliseconds < 5000
    flow.finishes()


@dataclass(frozen=True)
class Theft:
    """A state under another request than its own: what of the request is changed."""

    row: int
    name: str
    change: Callable[[Laboratory, Erasure], Draft]

    def __str__(self) -> str:
        return f"{self.row}: {self.name}"


def _as(**claims: Any) -> Callable[[Laboratory, Erasure], Draft]:
    def change(lab: Laboratory, flow: Erasure) -> Draft:
        token = lab.mint(**{"subject": flow.claims["sub"], **claims})
        return flow.finish.header("Authorization", f"Bearer {token}")

    return change


def _arguments(change: Callable[[dict[str, Any]], Any]) -> Callable[[Laboratory, Erasure], Draft]:
    return lambda lab, flow: flow.finish.params(arguments=change(dict(flow.finish.message["params"]["arguments"])))


def _tool(name: str) -> Callable[[Laboratory, Erasure], Draft]:
    return lambda lab, flow: flow.finish.params(name=name).header("Mcp-Name", name)


def _prompt(lab: Laboratory, flow: Erasure) -> Draft:
    return flow.finish.says(method="prompts/get").header("Mcp-Method", "prompts/get")


THEFTS: Final = (
    Theft(86, "another user", _as(subject="bob")),
    Theft(86, "another client of the same user", _as(client_id="https://evil.example/client.json")),
    Theft(89, "another tool", _tool("move")),
    Theft(89, "a prompt of the same name", _prompt),
    Theft(89, "another argument", _arguments(lambda given: {"target": "everything"})),
    Theft(89, "another case", _arguments(lambda given: {"Target": given["target"]})),
    Theft(89, "an argument more", _arguments(lambda given: {**given, "force": True})),
    Theft(89, "an argument as a list", _arguments(lambda given: {"target": [given["target"]]})),
    Theft(89, "no arguments", _arguments(lambda given: {})),
    Theft(89, "a blank more", _arguments(lambda given: {"target": given["target"] + " "})),
)


@each(THEFTS)
def test_a_state_opens_for_its_own_request_only(lab: Laboratory, flow: Erasure, case: Theft) -> None:
    """MUST: mrtr, server requirements 4 and 5. Its owner still finishes."""
    draft = case.change(lab, flow)
    answer = exchange(lab.port, draft.wire())
    assert_frozen(lab, answer, flow.state)
    draft.judge(answer)
    flow.finishes()


NUMBERS: Final = (
    ("1", "1.0", True),
    ("1", "1e0", True),
    ("0", "-0.0", True),
    ("1", '"1"', False),
    ("1", "true", False),
)


@pytest.mark.parametrize(("asked", "repeated", "same"), NUMBERS)
@shows(89)
def test_a_number_is_the_same_however_it_is_written_and_nothing_else_is(
    lab: Laboratory, alice: str, owner: str, asked: str, repeated: str, same: bool
) -> None:
    """What JavaScript may write differently is the same; what a tool would take for something else is not."""
    draft = call(alice, "rename", target="x", number="NUMBER")
    first = exchange(lab.port, draft.rewritten('"NUMBER"', asked).wire())
    answers = {"name": accept(name=owner)}
    second = draft.params(inputResponses=answers, requestState=first.result["requestState"])
    answer = exchange(lab.port, second.rewritten('"NUMBER"', repeated).wire())
    if same:
        assert answer.result["resultType"] == "complete", answer.text
    else:
        assert_frozen(lab, answer)


@shows(89)
def test_the_order_of_arguments_and_their_spelling_do_not_matter(lab: Laboratory, flow: Erasure) -> None:
    """RFC 8259 section 4: an object is unordered, and an escape is the character."""
    escaped = flow.finish.rewritten(f'"{flow.target}"', f'"\\u0074{flow.target[1:]}"   ')
    answer = exchange(lab.port, escaped.wire())
    assert answer.result["content"][0]["text"] == f"{flow.target} is erased."


def _seal(lab: Laboratory, binding: Binding, *kids: int, past: RequestState | None = None, age: int = 0) -> str:
    """A state as our own code seals it: `age` seconds ago, with these keys."""
    at = int(time.time()) - age
    state = past or request_state.begin(now=at, entropy=next(_numbers).to_bytes(16, "big"))
    return lab.codec(*kids).seal(state, binding, now=at)


def _bound(lab: Laboratory, subject: str, **changes: Any) -> tuple[Draft, Binding]:
    """A call that asks, and what its state is bound to, but for the changes."""
    arguments = {"target": "sealed"}
    draft = call(lab.mint(subject), "rename", **arguments)
    return draft, lab.binding("rename", arguments, subject=subject, **changes)


def _presented(lab: Laboratory, draft: Draft, state: str) -> Answer:
    return exchange(lab.port, draft.params(inputResponses={}, requestState=state).wire())


@pytest.mark.parametrize(
    ("kids", "opens"),
    [((CURRENT,), True), ((RETIRED,), True), ((DROPPED,), False)],
    ids=["current", "retired", "dropped"],
)
@shows(91, 92)
def test_a_state_under_a_retired_key_opens_and_one_under_a_dropped_key_does_not(
    lab: Laboratory, owner: str, kids: tuple[int, ...], opens: bool
) -> None:
    """Rows 91 and 92: the ring decides. What is issued is sealed with the current key."""
    draft, binding = _bound(lab, owner)
    answer = _presented(lab, draft, _seal(lab, binding, *kids))
    if not opens:
        assert_frozen(lab, answer)
        return
    assert answer.result["resultType"] == "input_required"
    issued = base64.urlsafe_b64decode(answer.result["requestState"][4:12])
    assert int.from_bytes(issued[:4], "big") == CURRENT


@pytest.mark.parametrize("kid", [RETIRED, DROPPED, 0, 2**32 - 1])
@shows(91)
def test_a_state_whose_key_id_was_swapped_is_refused(lab: Laboratory, flow: Erasure, kid: int) -> None:
    """Row 91: the key id is looked up and never tried out, and it is in what the seal commits to."""
    body = base64.urlsafe_b64decode(flow.state[4:] + "=" * (-len(flow.state[4:]) % 4))
    swapped = "rs1." + base64.urlsafe_b64encode(kid.to_bytes(4, "big") + body[4:]).decode().rstrip("=")
    assert_frozen(lab, exchange(lab.port, flow.finish.params(requestState=swapped).wire()))
    flow.finishes()


@pytest.mark.parametrize(
    "changes",
    [
        {"issuer": "https://other.example"},
        {"audience": "https://staging.example.com/mcp"},
        {"client_id": "https://evil.example/client.json"},
        {"method": "prompts/get"},
    ],
    ids=["another issuer", "another deployment", "another client", "another method"],
)
@shows(88, 94)
def test_a_state_of_elsewhere_is_refused_though_the_key_is_ours(
    lab: Laboratory, owner: str, changes: dict[str, Any]
) -> None:
    """Rows 88 and 94: the same key, the same user's name, and another place."""
    draft, ours = _bound(lab, owner)
    _, elsewhere = _bound(lab, owner, **changes)
    assert_frozen(lab, _presented(lab, draft, _seal(lab, elsewhere)))
    assert _presented(lab, draft, _seal(lab, ours)).status == 200


@shows(88)
def test_no_character_can_move_from_one_bound_field_to_the_next(lab: Laboratory, owner: str) -> None:
    """Row 88: issuer "…x" and user "ab" are not issuer "…" and user "xab"."""
    draft, binding = _bound(lab, owner)
    issuer, who = lab.stack.identity.url, binding.principal
    shifted = who._replace(issuer=issuer[:-1], subject=issuer[-1] + owner)
    assert_frozen(lab, _presented(lab, draft, _seal(lab, binding._replace(principal=shifted))))
    joined = who._replace(subject=owner + CLIENT_ID[0], client_id=CLIENT_ID[1:])
    assert_frozen(lab, _presented(lab, draft, _seal(lab, binding._replace(principal=joined))))


@pytest.mark.parametrize(
    ("age", "first", "rounds", "opens"),
    [
        (0, 0, 0, True),
        (LIFETIME - 5, 0, 0, True),
        (LIFETIME + 1, 0, 0, False),
        (-CLOCK_SKEW + 5, 0, 0, True),
        (-CLOCK_SKEW - 5, 0, 0, False),
        (0, MAX_AGE - 5, 0, True),
        (0, MAX_AGE + 1, 0, False),
        (0, 0, MAX_ROUNDS, False),
        (0, 0, -1, False),
    ],
)
@shows(95)
def test_a_state_is_good_for_ten_minutes_in_a_flow_of_one_hour_and_eight_rounds(
    lab: Laboratory, owner: str, age: int, first: int, rounds: int, opens: bool
) -> None:
    """Row 95: every limit stands inside the seal, where no client resets it."""
    draft, binding = _bound(lab, owner)
    past = RequestState(
        flow_id=next(_numbers).to_bytes(16, "big"), first_issued_at=int(time.time()) - first, rounds=rounds
    )
    answer = _presented(lab, draft, _seal(lab, binding, past=past, age=age))
    if opens:
        assert answer.result["resultType"] == "input_required", answer.text
    else:
        assert_frozen(lab, answer)


@shows(95)
def test_the_ninth_round_of_questions_ends_the_call(lab: Laboratory, alice: str) -> None:
    """The cap of rounds over the wire: a tool that never has enough, and a client that plays along."""
    draft = call(alice, "never")
    answer = exchange(lab.port, draft.wire())
    rounds = 1
    while answer.result["resultType"] == "input_required":
        assert rounds <= MAX_ROUNDS
        (key,) = answer.result["inputRequests"]
        retry = draft.params(inputResponses={key: accept(confirm=True)}, requestState=answer.result["requestState"])
        answer = exchange(lab.port, retry.wire())
        rounds += 1
    assert rounds == MAX_ROUNDS + 1
    assert answer.result["isError"] is True
    assert "8 rounds" in answer.result["content"][0]["text"]


@shows(97)
def test_a_state_goes_on_at_the_other_environment_and_after_a_restart(lab: Laboratory, alice: str) -> None:
    """DESIGN 1.1. The environments share the key and nothing else."""
    draft = call(alice, "move", target="t")
    first = exchange(lab.port, draft.wire())
    second = exchange(lab.port, draft.params(inputResponses=YES, requestState=first.result["requestState"]).wire())
    assert second.environment != first.environment
    lab.restart()
    answers = {"name": accept(name="the attic")}
    third = exchange(lab.port, draft.params(inputResponses=answers, requestState=second.result["requestState"]).wire())
    assert third.environment not in (first.environment, second.environment)
    assert third.result["content"][0]["text"] == "t is at the attic."


@pytest.mark.parametrize("state", [..., None], ids=["absent", "null"])
@shows(98)
def test_answers_without_a_state_are_asked_again(lab: Laboratory, flow: Erasure, state: Any) -> None:
    """MUST: mrtr, server requirement 4. A client that drops the state does not skip the question."""
    answer = exchange(lab.port, flow.finish.params(requestState=state).wire())
    assert answer.result["resultType"] == "input_required"
    flow.finishes()


@shows(100, 101)
def test_a_finished_call_again_is_the_same_result_and_with_other_answers_an_error(
    lab: Laboratory, flow: Erasure
) -> None:
    """Rows 100 and 101: once, twice, and fifty times at once, on both environments."""
    with ThreadPoolExecutor(16) as threads:
        numbered = [flow.finish.says(id=number).wire() for number in range(50)]
        answers = list(threads.map(lambda raw: exchange(lab.port, raw), numbered))
    assert flow.done == 1
    complete = [answer.result for answer in answers if answer.result["resultType"] == "complete"]
    texts = [each["content"][0]["text"] for each in complete if not each.get("isError")]
    assert texts
    assert set(texts) == {f"{flow.target} is erased."}
    for waiting in (answer.result for answer in answers if answer.result["resultType"] == "input_required"):
        assert "inputRequests" not in waiting
    assert {answer.json["id"] for answer in answers} == set(range(50))
    no = flow.finish.params(inputResponses={"confirm": {"action": "decline"}})
    assert_frozen(lab, exchange(lab.port, no.wire()))
    again = exchange(lab.port, flow.finish.wire())
    assert again.result["content"][0]["text"] == f"{flow.target} is erased."
    assert flow.done == 1


@shows(104)
def test_the_state_of_an_earlier_round_does_nothing_after_the_last(lab: Laboratory, alice: str) -> None:
    """Row 104: a replayed first round must not fork a second execution."""
    draft = call(alice, "move", target="box")
    first = exchange(lab.port, draft.wire()).result["requestState"]
    early = draft.params(inputResponses=YES, requestState=first)
    second = exchange(lab.port, early.wire()).result["requestState"]
    finish = draft.params(inputResponses={"name": accept(name="the cellar")}, requestState=second)
    done = exchange(lab.port, finish.wire())
    assert done.result["content"][0]["text"] == "box is at the cellar."
    forked = exchange(lab.port, early.wire())
    other = draft.params(inputResponses={"name": accept(name="the roof")}, requestState=second)
    assert_frozen(lab, exchange(lab.port, other.wire()))
    if forked.status == 200 and forked.result["resultType"] == "input_required":
        fork = draft.params(
            inputResponses={"name": accept(name="the roof")}, requestState=forked.result["requestState"]
        )
        assert_frozen(lab, exchange(lab.port, fork.wire()))
    assert [effect for effect in lab.effects() if effect.startswith("moved box")] == ["moved box to the cellar"]


@pytest.mark.parametrize("door", [Door.SHUT, Door.SILENT, Door.NO_REPLY])
@shows(103)
def test_a_guarded_call_is_refused_while_the_store_is_down_and_forms_go_on(
    lab: Laboratory, flow: Erasure, alice: str, door: Door
) -> None:
    """Row 103: nothing runs unguarded. What needs no store is asked and answered as always."""
    with lab.door(door):
        refused = exchange(lab.port, flow.finish.wire())
        assert refused.status == 503, refused.text
        assert int(str(refused.header("retry-after"))) > 0
        assert refused.milliseconds < 5000
        flow.finish.judge(refused)
        draft = call(alice, "rename", target="y")
        asked = exchange(lab.port, draft.wire())
        answers = {"name": accept(name="z")}
        renamed = draft.params(inputResponses=answers, requestState=asked.result["requestState"])
        assert exchange(lab.port, renamed.wire()).result["content"][0]["text"] == "y is called z."
    assert flow.done == 0


@shows(106)
def test_no_refusal_says_why(lab: Laboratory, flow: Erasure, owner: str) -> None:
    """Row 106: one body for every reason, apart from the id of the request."""
    draft, binding = _bound(lab, owner)
    _, elsewhere = _bound(lab, owner, audience="https://staging.example.com/mcp")
    states = [
        _seal(lab, elsewhere),
        _seal(lab, binding, DROPPED),
        _seal(lab, binding, age=LIFETIME + 1),
        flow.state,
        flow.state[:-1],
        "x",
        "",
    ]
    bodies = {_presented(lab, draft, state).body for state in states}
    assert len(bodies) == 1
    assert json.loads(bodies.pop())["error"] == FROZEN


def test_a_state_on_a_method_that_never_asks_is_refused(lab: Laboratory, flow: Erasure) -> None:
    """A retry of what takes one round only is a client's mistake, or somebody looking for a way in."""
    draft = request(lab.mint("alice", scope=SCOPES), "tools/list", {"requestState": flow.state})
    answer = exchange(lab.port, draft.wire())
    assert (answer.status, answer.error["code"]) == (400, -32602)
    flow.finishes()

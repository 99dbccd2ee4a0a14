"""Flows against a model: rounds, retries, replays, kills, outages and clock jumps in any order.

At most one effect for each flow and step, the same answer for the same request, and no flow without an answer.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from app.effects.once import LEASE
from app.protocol.request_state import CLOCK_SKEW, LIFETIME, MAX_AGE, MAX_ROUNDS
from app.strict_json import JsonObject
from app.testing import Reply, Server
from app.toolkit.guard import IN_DOUBT, MAX_WAITS, STILL_RUNNING
from tests.toolkit.shop import BUY, DELIVER, INVALID_STATE, LISBON, NO, PORTO, YES, Shop, is_waiting

Fault: TypeAlias = Literal["killed", "store lost", "store down"] | None
Answers: TypeAlias = tuple[str, ...]
"""What was answered so far, in order: it decides what an effect will be."""

ANSWERS: dict[str, JsonObject] = {"lisbon": LISBON, "porto": PORTO, "yes": YES, "no": NO}
FAULTS = st.sampled_from([None, None, None, "killed", "store lost", "store down"])


@dataclass
class Mark:
    """What the model knows of one guarded effect: who began it, until when it runs, and what came of it."""

    answers: Answers
    lease_until: float
    result: str | None = None


@dataclass
class Flow:
    what: JsonObject
    first_at: int
    store: int
    """Which store it began in: one that came back empty is another."""
    marks: dict[str, Mark] = field(default_factory=dict)


@dataclass(frozen=True)
class Question:
    """A state that a client holds, with what it may answer to it."""

    flow: Flow
    reply: Reply
    answered: Answers
    options: tuple[str, ...]
    """None for one that only has to come again."""
    issued_at: int
    rounds: int
    waits: int = 0


class Flows(RuleBasedStateMachine):
    """Clients of one user hold states of many flows, and send any of them at any time to any instance."""

    questions = Bundle("questions")

    def __init__(self) -> None:
        super().__init__()
        self.shop = Shop()
        self.server = Server([self.shop.tool(), self.shop.delivery()], instances=3)
        self.expected_effects = 0
        self.store = 0

    @property
    def now(self) -> int:
        return int(self.server.clock.now)

    @rule(target=questions, what=st.sampled_from([BUY, DELIVER]))
    def call(self, what: JsonObject) -> Question:
        reply = self.server.client().request("tools/call", what)
        options = ("yes", "no") if what is BUY else ("lisbon", "porto")
        return Question(Flow(what, self.now, self.store), reply, (), options, self.now, 1)

    @rule(target=questions, question=questions, choice=st.sampled_from([0, 0, 1]), fault=FAULTS)
    def answer(self, question: Question, choice: int, fault: Fault) -> Any:
        return self._send(question, choice, fault)

    @rule(target=questions, question=consumes(questions), choice=st.sampled_from([0, 1]), times=st.integers(2, 4))
    def repeat(self, question: Question, choice: int, times: int) -> Any:
        """The client does not hear, and sends the same thing again and again."""
        return multiple(
            *[each for _ in range(times) if isinstance(each := self._send(question, choice, None), Question)]
        )

    @rule(seconds=st.sampled_from([-20, 1, LEASE - 1, LEASE, LIFETIME - 1, LIFETIME, 1800]))
    def wait(self, seconds: int) -> None:
        self.server.clock.advance(seconds)

    @rule()
    def deploy(self) -> None:
        self.server.restart()

    @rule()
    def forget(self) -> None:
        """The store comes back with nothing in it."""
        self.server.empty_store()
        self.store += 1

    @rule(question=questions, fault=FAULTS)
    def pester(self, question: Question, fault: Fault) -> None:
        """A client that comes again as fast as it is told to."""
        self._send(question, 0, fault)
        for _ in range(MAX_WAITS + 2):
            found = self._send(question, 0, None)
            if not isinstance(found, Question) or found.options:
                return
            question = found
        raise AssertionError("it is told to come again without an end")

    @rule(question=questions)
    def insist(self, question: Question) -> None:
        """No flow is stuck: whoever waits as long as a runner may run, and comes again, gets an answer."""
        self.server.clock.advance(LEASE)
        for _ in range(MAX_WAITS + 1):
            found = self._send(question, 0, None)
            if not isinstance(found, Question) or found.options:
                return
            question = found
        raise AssertionError("it only ever waits")

    @invariant()
    def no_effect_happened_twice(self) -> None:
        # The key is that of flow and step: see ctx.idempotency_key.
        assert not [key for key, times in Counter(self.shop.keys).items() if times > 1]
        assert len(self.shop.done) == self.expected_effects

    def _send(self, question: Question, choice: int, fault: Fault) -> Any:
        """Send one request, compare what comes back with the model, and return the next state, if there is one."""
        if question.flow.what is DELIVER and question.flow.store != self.store:
            return multiple()  # steps are not opened: see app.effects.once
        picked = question.options[choice : choice + 1]
        answers = (*question.answered, *picked)
        given = {key: each for name in picked for key, each in ANSWERS[name].items()}
        client = self.server.client()
        outage = self.server.store_outage()
        if fault == "killed":
            self.shop.in_the_middle = self.server.kill
        elif fault == "store lost":
            self.shop.in_the_middle = outage.__enter__
        elif fault == "store down":
            outage.__enter__()
        try:
            reply = client.retry(question.reply, question.flow.what, given)
        finally:
            if self.server._is_store_down:
                outage.__exit__(None, None, None)
            self.shop.in_the_middle = None
        return self._judge(question, answers, reply, fault)

    def _judge(self, question: Question, answers: Answers, reply: Reply, fault: Fault) -> Any:
        flow = question.flow
        if not self._opens(question):
            assert reply.error == INVALID_STATE
            return multiple()
        if flow.what is BUY:
            # The completion is guarded: a no as much as a yes.
            bought = answers == ("yes",)
            ended = self._judge_mark("buy", question, answers, answers, reply, fault, has_effect=bought)
            if ended is None:
                assert reply.text == (f"tea is bought: {flow.marks['buy'].result}." if bought else "The user said no.")
            return multiple() if ended is None else ended
        ended = self._judge_mark("reserve", question, answers, answers[:1], reply, fault)
        if ended is not None:
            return ended
        receipt = flow.marks["reserve"].result
        if len(answers) == 1:
            assert f"on {receipt}?" in reply.asked["confirm"]["params"]["message"]
            return Question(flow, reply, answers, ("yes", "no"), self.now, question.rounds + 1)
        if answers[1] == "no":
            assert reply.text == f"Not delivered; {receipt} stands."
            return multiple()
        ended = self._judge_mark("order", question, answers, answers, reply, fault)
        if ended is None:
            assert reply.text == flow.marks["order"].result
        return multiple() if ended is None else ended

    def _opens(self, question: Question) -> bool:
        return (
            question.issued_at - CLOCK_SKEW <= self.now < question.issued_at + LIFETIME
            and self.now - question.flow.first_at <= MAX_AGE
        )

    def _judge_mark(
        self,
        name: str,
        question: Question,
        answers: Answers,
        decisive: Answers,
        reply: Reply,
        fault: Fault,
        *,
        has_effect: bool = True,
    ) -> Any:
        """What one guarded effect makes of a request. None: the function has its result, and went on.

        `decisive` are the answers that came before the effect, of all that the request has.
        """
        if fault == "store down":
            assert reply.status == 503
            return multiple()
        if question.flow.store != self.store:
            assert reply.text == IN_DOUBT
            return multiple()
        standing = question.flow.marks.get(name)
        if standing is None:
            return self._judge_run(name, question, answers, decisive, reply, fault if has_effect else None, has_effect)
        if standing.answers != decisive:
            assert reply.error == INVALID_STATE
        elif standing.result is not None:
            return None
        elif self.now >= standing.lease_until:
            assert reply.text.endswith(IN_DOUBT)
            assert reply.is_error
        elif question.waits == MAX_WAITS:
            assert reply.text == STILL_RUNNING
        else:
            assert question.rounds < MAX_ROUNDS
            assert is_waiting(reply)
            return Question(question.flow, reply, answers, (), self.now, question.rounds + 1, question.waits + 1)
        return multiple()

    def _judge_run(
        self,
        name: str,
        question: Question,
        answers: Answers,
        decisive: Answers,
        reply: Reply,
        fault: Fault,
        has_effect: bool,
    ) -> Any:
        """The first request of all: it runs the effect."""
        standing = question.flow.marks[name] = Mark(decisive, self.now + LEASE)
        self.expected_effects += has_effect
        receipt = f"receipt {self.expected_effects}"
        if fault is None:
            standing.result = receipt
            return None
        if fault == "killed":
            assert reply.status == 500
        elif name != "reserve":
            assert receipt in reply.text
        else:
            # Its result is good for this round: the function asks on.
            assert f"on {receipt}?" in reply.asked["confirm"]["params"]["message"]
            return Question(question.flow, reply, answers, ("yes", "no"), self.now, question.rounds + 1)
        return multiple()


TestFlows = Flows.TestCase
TestFlows.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)

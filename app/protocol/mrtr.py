"""Multi round-trip requests: what was asked, what came back, and what travels to the next round.

A round is one request. The tool runs from the top in every round; `Round.answer` gives back what the
user answered earlier or now, and `Round.ask` collects what is still open. Whatever leaves the tool, the
round turns it into an `InputRequiredResult` (basic/patterns/mrtr): capability-gated, counted and sealed.

An answer counts only if
  - a requestState that verifies for this very request says that its question was asked (unless the
    tool is declared stateless), and
  - the question is still the same: its digest equals the one that was sealed when it was shown.
"""

from collections.abc import Mapping
from typing import Any, Final

from app.protocol import messages, request_state
from app.protocol.elicitation import KEY
from app.protocol.jsonrpc import ErrorCode, JSONRPCError
from app.protocol.request_state import Binding, RequestState, RequestStateCodec
from app.strict_json import JsonObject

_INPUT_REQUESTS: Final = ("elicitation/create", "sampling/createMessage", "roots/list")


class RoundsExceeded(Exception):
    """The tool asked for one more round than the `cap` allows."""

    def __init__(self, cap: int) -> None:
        super().__init__(cap)
        self.cap = cap


class StateTooLarge(Exception):
    """What the tool wants to carry to the next round does not fit in a requestState."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Round:
    """One round of a request: the verified past, the responses at hand, and the questions that are open.

    `capabilities` are what the client declared in this very request. `state` is what an explicit
    InputRequired carried here from the round before.
    """

    __slots__ = ("_digests", "_past", "_responses", "_stateless", "asked", "capabilities")

    def __init__(
        self,
        *,
        past: RequestState,
        responses: Mapping[str, Any],
        capabilities: JsonObject,
        stateless: bool = False,
    ) -> None:
        self._past = past
        self._responses = responses
        self.capabilities = capabilities
        self._stateless = stateless
        self.asked: dict[str, JsonObject] = {}
        self._digests: dict[str, str] = {}

    @property
    def state(self) -> Any:
        return self._past.state

    @property
    def number(self) -> int:
        """1 for the first request, one more for each retry."""
        return self._past.rounds + 1

    @property
    def flow_id(self) -> bytes:
        """16 bytes that are the same in all rounds of this flow and in no other."""
        return self._past.flow_id

    @property
    def first_asked_at(self) -> int:
        """When the first round of this flow was, in seconds since the epoch."""
        return self._past.first_issued_at

    @property
    def waits(self) -> int:
        """How many rounds before this one only waited."""
        return self._past.waits

    @property
    def answers(self) -> dict[str, Any]:
        """Every response that counts, of this round and of earlier ones, by key."""
        answers = dict(self._past.answers)
        for key, response in self._responses.items():
            if key in self._past.questions:
                answers.setdefault(key, response)
        return answers

    def response(self, key: str, request: JsonObject | None = None, *, digest: str | None = None) -> Any | None:
        """The response that counts for a question, or None: never asked, asked otherwise, or unanswered.

        Give `request`, or its `digest` where it is at hand, to require that exactly this question was shown.
        """
        if key in self._past.answers:
            return self._past.answers[key] if self._was_asked(key, request, digest) else None
        if key in self._responses and (self._stateless or self._was_asked(key, request, digest)):
            return self._responses[key]
        return None

    def _was_asked(self, key: str, request: JsonObject | None, digest: str | None) -> bool:
        shown = self._past.questions.get(key)
        if shown is None or (request is None and digest is None):
            return shown is not None
        return shown == (digest or request_state.digest(request or {}))

    def ask(self, key: str, request: JsonObject, *, digest: str | None = None) -> None:
        """Put a question into the answer to this request. `digest` is the request's, where it is at hand.

        Raises ValueError for a key that clients or gateways may not carry, and for what is no input request,
        and TypeError for what is no JSON.
        """
        if not KEY.match(key):
            raise ValueError(f"The question key {key!r} must be 1 to 64 of A-Z a-z 0-9 _ -: rename it")
        if request.get("method") not in _INPUT_REQUESTS:
            raise ValueError(f"The method of the question {key!r} must be one of {', '.join(_INPUT_REQUESTS)}")
        self._digests[key] = digest or request_state.digest(request)
        self.asked[key] = request

    @property
    def missing_capabilities(self) -> JsonObject:
        """What the client did not declare, in this very request, and the questions of this round need."""
        missing: JsonObject = {}
        for request in self.asked.values():
            needed = messages.missing_capability(request["method"], request.get("params", {}), self.capabilities)
            for capability, modes in (needed or {}).items():
                missing.setdefault(capability, {}).update(modes)
        return missing

    def following(self, state: Any = None, *, max_rounds: int, waiting: bool = False) -> RequestState:
        """What the next round needs to know of this one. Raises RoundsExceeded."""
        if self._past.rounds >= max_rounds:
            raise RoundsExceeded(max_rounds)
        kept = {key: each for key, each in self.answers.items() if key not in self.asked}
        questions = {key: self._past.questions[key] for key in kept if key in self._past.questions}
        questions |= self._digests
        waits = self._past.waits + 1 if waiting else 0
        return self._past._replace(questions=questions, answers=kept, state=state, waits=waits)

    def questions(self, notes: Mapping[str, str]) -> dict[str, JsonObject]:
        """What was asked in this round, each with its note: a sentence before the message (what was wrong before).

        The seal keeps the question without the note, so that the tool finds its own question again.
        """
        return {key: _with_note(request, notes.get(key)) for key, request in self.asked.items()}

    def input_required(
        self,
        codec: RequestStateCodec,
        binding: Binding,
        *,
        now: int,
        notes: Mapping[str, str] | None = None,
        state: Any = None,
        waiting: bool = False,
    ) -> JsonObject:
        """The InputRequiredResult for the questions asked in this round, or with none of them where it only waits.

        Raises RoundsExceeded and StateTooLarge, and JSONRPCError (-32021) naming every capability that the
        client lacks for one of the questions: after the tool, whose own `except` must not swallow it.
        """
        missing = self.missing_capabilities
        if missing:
            raise messages.capability_error(missing)
        following = self.following(state, max_rounds=codec.max_rounds, waiting=waiting)
        try:
            token = codec.seal(following, binding, now=now)
        except ValueError as error:
            raise StateTooLarge(str(error)) from None
        result: JsonObject = {"resultType": "input_required"}
        if self.asked:
            result["inputRequests"] = self.questions(notes or {})
        return result | {"requestState": token}


def _with_note(request: JsonObject, note: str | None) -> JsonObject:
    if note is None:
        return request
    params = request["params"]
    return {**request, "params": {**params, "message": f"{note}\n\n{params['message']}"}}


def read_responses(params: JsonObject) -> JsonObject:
    """The `inputResponses` of a request, `{}` when it has none. Raises JSONRPCError (-32602)."""
    responses = params.get("inputResponses")
    if responses is None:
        return {}
    if not isinstance(responses, dict):
        raise JSONRPCError(
            ErrorCode.INVALID_PARAMS, 'The parameter "inputResponses" must map question keys to responses'
        )
    return responses


def refuse_on(method: str, params: JsonObject) -> None:
    """Refuse the members of a retry on a method that takes one round only. Raises JSONRPCError (-32602)."""
    for name in ("inputResponses", "requestState"):
        if name in params:
            raise JSONRPCError(ErrorCode.INVALID_PARAMS, f'{method} takes no "{name}": it never asks for input')

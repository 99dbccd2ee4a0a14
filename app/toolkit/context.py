"""What a tool holds while it runs: the Context, and the explicit style of asking."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NoReturn, TypeVar, overload

from pydantic import BaseModel

from app.principal import Principal
from app.protocol import elicitation, messages
from app.protocol.dispatch import Call, Completed, InputNeeded, Outcome
from app.protocol.elicitation import (
    Accepted,
    Answer,
    AnyAnswer,
    Cancelled,
    Declined,
    Invalid,
    Missing,
    form_of,
)
from app.strict_json import JsonObject

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Question(Generic[M]):
    """A form with the sentence above it."""

    message: str
    model: type[M]


@dataclass(frozen=True, slots=True)
class InputRequired:
    """Return this to ask in the explicit style: `requests` by key, and `state` to get back as `ctx.state`.

    `state` is a JSON value; it travels sealed through the client and counts against 16 KiB, so carry ids,
    not content, and no credentials. Most tools want `Context.ask`.
    """

    requests: Mapping[str, "Question[Any] | JsonObject"] = field(default_factory=dict)
    state: Any = None


class Ended(BaseException):
    """Unwinds a tool. Not an Exception: a tool's own `except Exception` must not swallow a question."""

    def __init__(self, outcome: Outcome, fact: str) -> None:
        self.outcome = outcome
        self.fact = fact


class Responses:
    """What came back for the keys that an `InputRequired` asked, for the explicit style."""

    def __init__(self, call: Call) -> None:
        self._call = call

    @overload
    def get(self, key: str) -> AnyAnswer[JsonObject]: ...
    @overload
    def get(self, key: str, model: type[M]) -> AnyAnswer[M]: ...
    def get(self, key: str, model: type[M] | None = None) -> AnyAnswer[Any]:
        """The answer under a key. Missing unless a verified earlier round asked it.

        With a `model` the content is validated as strictly as in `Context.ask`; without, `Accepted.value`
        is the content as it came.
        """
        response = self._call.round.response(key)
        if response is None:
            return Missing()
        if model is not None:
            return form_of(model).read(response)
        match elicitation.read_action(response):
            case "accept" if isinstance(response.get("content", {}), dict):
                return Accepted(response.get("content", {}))
            case "decline":
                return Declined()
            case "cancel":
                return Cancelled()
            case _:
                return Invalid("the answer is not an ElicitResult")


class Context:
    """One round of one call: who calls, what was answered, and the ways to end."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._notes: dict[str, str] = {}
        self._used: dict[str, JsonObject] = {}
        self.responses: Final = Responses(call)

    @property
    def principal(self) -> Principal:
        """The verified caller. Check ownership of whatever an argument names against it."""
        return self._call.access_token.principal

    @property
    def scopes(self) -> frozenset[str]:
        """What the access token grants."""
        return self._call.access_token.scopes

    @property
    def request_id(self) -> str:
        """The front door's id of this invocation (`aws_request_id` on Lambda), as in the log."""
        return str(self._call.facts.get("request_id", ""))

    @property
    def flow_id(self) -> str:
        """The same in all rounds of this flow and in no other: 32 hexadecimal digits."""
        return self._call.round.flow_id.hex()

    @property
    def state(self) -> Any:
        """What the `InputRequired` of the round before carried, or None."""
        return self._call.round.state

    def ask(self, key: str, message: str, model: type[M]) -> Answer[M]:
        """Ask the user, or return what the user answered.

        `key` names the question across rounds and deployments (1 to 64 of A-Z a-z 0-9 _ -). An answer
        counts for exactly the question that was shown: change the message or the form and it is asked
        again. An answer that does not fit the form is asked again with what was wrong.
        """
        return self.ask_all({key: Question(message, model)})[key]

    def ask_all(self, questions: Mapping[str, Question[Any]]) -> dict[str, Answer[Any]]:
        """Ask several questions at once, and return when all are answered. For one, use `ask`."""
        answers: dict[str, Answer[Any]] = {}
        for key, question in questions.items():
            form = form_of(question.model)
            request = form.request(question.message)
            if self._used.setdefault(key, request) != request:
                raise ValueError(f"Two questions have the key {key!r}: give each its own")
            response = self._call.round.response(key, request)
            answer = Missing() if response is None else form.read(response)
            match answer:
                case Missing():
                    self._call.round.ask(key, request)
                case Invalid(reason):
                    self._call.round.ask(key, request)
                    self._notes[key] = f"The last answer did not fit: {reason}."
                case _:
                    answers[key] = answer
        if len(answers) < len(questions):
            raise Ended(InputNeeded(notes=self._notes), "input_required")
        return answers

    def fail(self, text: str) -> NoReturn:
        """End the call with a tool error that the model can act on: `tickets.get(id) or ctx.fail("…")`."""
        raise Ended(Completed(messages.tool_error(text)), "failed")

    def stop(self, text: str) -> NoReturn:
        """End the call because the user does not want it. The text tells the model which answer it was."""
        raise Ended(Completed(messages.tool_error(text)), "stopped")

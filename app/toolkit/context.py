"""What a tool holds while it runs: the Context, and the explicit style of asking."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, TypeVar, overload

from pydantic import BaseModel

from app.errors import ConfigurationError
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

if TYPE_CHECKING:  # imported by the first tool that connects: the others need none of it
    from app.oauth.connections import Connected, Connections, Pending, Response
    from app.oauth.connections import Ended as FlowEnded

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

    def __post_init__(self) -> None:
        # A date, a tuple or a number as a key would come back as something else in the next round.
        try:
            same = json.loads(json.dumps(self.state, allow_nan=False)) == self.state
        except (TypeError, ValueError):
            same = False
        if not same:
            raise TypeError(
                "InputRequired.state must be JSON to come back as it is: dicts with string keys, lists, strings, "
                "finite numbers, booleans, None. Carry a date as isoformat(), a model as model_dump(mode='json')."
            )


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

    def raw(self, key: str) -> Any | None:
        """What came back under a key, unread: for `sampling/createMessage` and `roots/list`, whose results have
        no action. None unless a verified earlier round asked it. Most tools want `get`.
        """
        return self._call.round.response(key)


class Context:
    """One round of one call: who calls, what was answered, and the ways to end."""

    def __init__(self, call: Call, *, link_as_text: bool = False) -> None:
        self._call = call
        self._link_as_text = link_as_text
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
    def client_capabilities(self) -> JsonObject:
        """What the client declared in this very request. A question that it cannot show ends in an error."""
        return self._call.round.capabilities

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

    def connect(
        self, provider: str, *, scopes: Sequence[str] = (), message: str | None = None, key: str | None = None
    ) -> "Connected":
        """A connection of the user's to a third party, with a fresh access token for `scopes`.

        Until the user has connected, it ends the invocation with a URL-mode question: the same URL in every
        round, at once, whether or not they have opened it yet. Neither the client nor the model ever sees
        the token. Ends the call with a clear text when the user or the provider said no.
        """
        from app.oauth.connections import Connected

        service = self._connection_service()
        key = key or f"connect_{provider}"
        outcome = service.connect(
            self.principal, provider, scopes=scopes, response=self._action(key), now=self._call.now
        )
        if isinstance(outcome, Connected):
            return outcome
        raise self._ended(outcome, key, message or f"Connect your {provider} account to continue.")

    def secret(self, name: str, message: str, *, label: str | None = None, key: str | None = None) -> str:
        """A value that the user types on our own page, such as an API key: never through the client.

        Asked once and kept in the vault under `name`; until it is there, it ends the invocation as
        `connect` does. The client shows `message`, the page has `label` at the field.
        """
        from app.oauth.connections import Stored

        service = self._connection_service()
        key = key or f"secret_{name}"
        label = label or name.replace("_", " ").capitalize()
        outcome = service.secret(self.principal, name, label=label, response=self._action(key), now=self._call.now)
        if isinstance(outcome, Stored):
            return outcome.value
        raise self._ended(outcome, key, message)

    def disconnect(self, provider: str) -> bool:
        """Forget the user's connection to a third party and revoke it there. False if there was none."""
        return self._connection_service().disconnect(self.principal.user, provider, now=self._call.now)

    def _connection_service(self) -> "Connections":
        from app.oauth.connections import Connections

        service = self._call.connections() if self._call.connections else None
        if not isinstance(service, Connections):
            raise ConfigurationError(["This tool connects a third party, which needs a store: set MCP_REDIS_URL."])
        return service

    def _action(self, key: str) -> "Response | None":
        """What the user did with the URL question, where a verified earlier round asked it."""
        return elicitation.read_action(self._call.round.response(key))

    def _ended(self, outcome: "Pending | FlowEnded", key: str, message: str) -> Ended:
        from app.oauth.connections import Pending

        if not isinstance(outcome, Pending):
            self.stop(outcome.text)
        request = {
            "method": "elicitation/create",
            "params": {"mode": "url", "url": outcome.url, "message": message},
        }
        if self._link_as_text and not self._call.round.can_show(request):
            # Many hosts declare form mode only: the model passes the link on, and calls again.
            text = f"{message} The user has to open {outcome.url} in a browser. Call this tool again after that."
            return Ended(Completed(messages.tool_error(text)), "link")
        self._call.round.ask(key, request)
        return Ended(InputNeeded(notes=self._notes), "input_required")

    def fail(self, text: str) -> NoReturn:
        """End the call with a tool error that the model can act on: `tickets.get(id) or ctx.fail("…")`."""
        raise Ended(Completed(messages.tool_error(text)), "failed")

    def stop(self, text: str) -> NoReturn:
        """End the call because the user does not want it. The text tells the model which answer it was."""
        raise Ended(Completed(messages.tool_error(text)), "stopped")

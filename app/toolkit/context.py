"""What a tool holds while it runs: the Context, and the explicit style of asking."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, NoReturn, TypeAlias, TypeVar, overload

from pydantic import BaseModel

from app.errors import ConfigurationError, WidgetStateRefused
from app.principal import Principal
from app.protocol import elicitation
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
from app.protocol.features import Call, InputNeeded, Outcome, Stopped
from app.protocol.notifications import LoggingLevel
from app.protocol.widget_state import LIFETIME
from app.strict_json import JsonObject

if TYPE_CHECKING:  # imported by the first tool that uses it: the others need none of it
    from app.oauth.connections import Connected, Connections, Pending, Response
    from app.oauth.connections import Ended as FlowEnded
    from app.toolkit.guard import Steps
    from app.toolkit.model_requests import CreateMessage, CreateMessageResult, ListRoots, Root

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


class Question(NamedTuple, Generic[M]):
    """A form with the sentence above it."""

    message: str
    model: type[M]

    def request(self) -> JsonObject:
        """The input request that shows it."""
        return form_of(self.model).request(self.message)


Request: TypeAlias = "Question[Any] | CreateMessage | ListRoots | JsonObject"


def as_request(request: Request) -> JsonObject:
    """An input request as JSON."""
    return request if isinstance(request, dict) else request.request()


class InputRequired:
    """Return this to ask in the explicit style: `requests` by key, and `state` to get back as `ctx.state`.

    `state` is a JSON value; it travels sealed through the client and counts against 16 KiB, so carry ids,
    not content, and no credentials. Most tools want `Context.ask`.
    """

    __slots__ = ("requests", "state")

    def __init__(self, requests: Mapping[str, Request] = MappingProxyType({}), state: Any = None) -> None:
        self.requests = requests
        self.state = state
        # A date, a tuple or a number as a key would come back as something else in the next round.
        try:
            same = json.loads(json.dumps(state, allow_nan=False)) == state
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

    def __init__(self, call: Call, answered: dict[str, Any]) -> None:
        self._call = call
        self._answered = answered

    @overload
    def get(self, key: str) -> AnyAnswer[JsonObject]: ...
    @overload
    def get(self, key: str, model: type[M]) -> AnyAnswer[M]: ...
    def get(self, key: str, model: type[M] | None = None) -> AnyAnswer[Any]:
        """The answer under a key. Missing unless a verified earlier round asked it.

        With a `model` the content is validated as strictly as in `Context.ask`; without, `Accepted.value`
        is the content as it came.
        """
        response = self.raw(key)
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
        response = self._call.round.response(key)
        if response is not None:
            self._answered[key] = response
        return response


class Context:
    """One round of one call: who calls, what was answered, and the ways to end."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._notes: dict[str, str] = {}
        self._answered: dict[str, Any] = {}
        """The answers that the function has seen: what it does next may depend on them."""
        self._steps: Steps | None = None
        self._used: dict[str, JsonObject] = {}
        self.responses: Final = Responses(call, self._answered)

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
    def arguments(self) -> JsonObject:
        """The arguments as they came, before the types of the signature."""
        return self._call.arguments

    @property
    def trace_context(self) -> Mapping[str, str]:
        """The W3C trace context of this request, for requests to other services: `traceparent` and the like."""
        return self._call.trace_context

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
            digest = form.digest(question.message)
            response = self._response(key, request, digest)
            answer = Missing() if response is None else form.read(response)
            match answer:
                case Missing():
                    self._call.round.ask(key, request, digest=digest)
                case Invalid(reason):
                    self._call.round.ask(key, request, digest=digest)
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

    def sample(
        self,
        key: str,
        messages: Sequence[str | JsonObject],
        *,
        max_tokens: int,
        system_prompt: str | None = None,
        temperature: float | None = None,
        stop_sequences: Sequence[str] = (),
    ) -> "CreateMessageResult":
        """Let the client's model write something, or return what it wrote (client/sampling).

        Sampling is deprecated as of 2026-07-28 (SEP-2577), and few clients declare it: prefer an API of a model.
        What comes back is the client's word. It counts for exactly these messages, as an answer to `ask` does.
        """
        from app.toolkit.model_requests import CreateMessage, CreateMessageResult

        request = CreateMessage(messages, max_tokens, system_prompt, temperature, stop_sequences).request()
        found = CreateMessageResult.read(self._response(key, request))
        return found if found is not None else self._ask_again(key, request)

    def roots(self, key: str = "roots") -> "list[Root]":
        """The file system roots that the client offers (client/roots). Deprecated as of 2026-07-28 (SEP-2577)."""
        from app.toolkit.model_requests import ListRoots

        request = ListRoots().request()
        found = ListRoots.read(self._response(key, request))
        return found if found is not None else self._ask_again(key, request)

    def _response(self, key: str, request: JsonObject, digest: str | None = None) -> Any | None:
        if self._used.setdefault(key, request) != request:
            raise ValueError(f"Two questions have the key {key!r}: give each its own")
        response = self._call.round.response(key, request, digest=digest)
        if response is not None:
            self._answered[key] = response
        return response

    def once(self, key: str, function: Callable[[], T]) -> T:
        """Run an effect before or between questions, once for all rounds, and return its result in each.

        `key` names it as a question's key does. The result must be JSON, and what is more than 16 KiB is not kept
        for later rounds. It counts for the answers that came before it: another answer in a repeated round is
        refused. If the function raised, or its instance died, nobody knows whether it happened: later rounds end
        with that, and never run it again. `fail` and `stop` in it end later rounds in the same words; it may not
        ask. Needs a store.
        """
        return self._once.run(key, self._answered, function)

    async def once_async(self, key: str, function: Callable[[], Awaitable[T]]) -> T:
        """`once` for a coroutine function, in an `async def` tool."""
        return await self._once.run_async(key, self._answered, function)

    @property
    def _once(self) -> "Steps":
        if self._steps is None:
            from app.toolkit.guard import Steps

            self._steps = Steps(self._call)
        return self._steps

    @property
    def idempotency_key(self) -> str:
        """A UUID for a service that takes one: the same in all rounds and repetitions of this flow.

        Within the function of `once` it is that effect's own: services refuse one key for two requests.
        """
        from app.effects.once import idempotency_key

        return idempotency_key(self._call.round.flow_id, self._steps.current if self._steps else None)

    @property
    def time_left(self) -> float | None:
        """Seconds until this invocation is killed, or None where nobody kills it."""
        deadline = self._call.deadline
        return None if deadline is None else max(0.0, deadline - self._call.services.clock())

    def need_time(self, seconds: float) -> None:
        """End this round, before an effect, if fewer seconds are left: the client comes again at once, to a whole
        invocation. For what may take nearly as long as the function's timeout.
        """
        from app.toolkit.guard import need_time

        need_time(self._call, seconds)

    def _ask_again(self, key: str, request: JsonObject) -> NoReturn:
        self._call.round.ask(key, request)
        raise Ended(InputNeeded(notes=self._notes), "input_required")

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress, where the client asked for it. A buffered function sends it with the answer.

        Raises ValueError for a value that does not increase.
        """
        self._call.notifications.progress(progress, total=total, message=message)

    def log(self, level: LoggingLevel, data: Any, *, logger: str | None = None) -> None:
        """Send a log message to the client, where it asked for this level. Never credentials or personal data.

        Deprecated as of 2026-07-28 (SEP-2577): for your own eyes, use `logging`.
        """
        self._call.notifications.log(level, data, logger=logger)

    def seal(self, name: str, value: Any, *, lifetime: int = LIFETIME) -> str:
        """Seal a JSON value for the view of this tool's result, which gives it back in a later call.

        Only `open` with the same name, for the same user and client, reads it, for `lifetime` seconds.
        """
        return self._call.services.widget_state.seal(self.principal, name, value, now=self._call.now, lifetime=lifetime)

    def open(self, name: str, token: str) -> Any:
        """What `seal` sealed under this name. Ends the call with a clear text for anything else."""
        try:
            return self._call.services.widget_state.open(self.principal, name, token, now=self._call.now)
        except WidgetStateRefused as error:
            self._call.facts["reason"] = f"widget state: {error.reason}"
            self.fail("This view is out of date. Load it again.")

    def _connection_service(self) -> "Connections":
        from app.oauth.connections import Connections

        opened = self._call.services.connections
        service = opened() if opened else None
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
        self._call.round.ask(key, request)
        return Ended(InputNeeded(notes=self._notes), "input_required")

    def fail(self, text: str) -> NoReturn:
        """End the call with a tool error that the model can act on: `tickets.get(id) or ctx.fail("…")`."""
        raise Ended(Stopped(text), "failed")

    def stop(self, text: str) -> NoReturn:
        """End the call because the user does not want it. The text tells the model which answer it was."""
        raise Ended(Stopped(text), "stopped")

"""What stands around a function's effects: that they happen once, that time is left, that nobody is asked too often."""

import hashlib
import inspect
import logging
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Final, NoReturn, TypeVar

from app.effects.approvals import Permission, Source
from app.effects.effects import Effects
from app.effects.limits import Kind, Limited
from app.effects.once import Conflict, Done, DoneWithoutResult, Effect, Go, Kept, Running, Unknown, request_digest
from app.errors import ConfigurationError, RequestStateRefused, Unavailable
from app.protocol import messages
from app.protocol.features import Call, Completed, InputNeeded, Outcome, Stopped
from app.protocol.jsonrpc import JSONRPCError
from app.protocol.request_state import invalid_request_state
from app.strict_json import JsonObject
from app.toolkit.context import Ended

T = TypeVar("T")

MAX_WAITS: Final = 3
"""How often a client is told to come again at once, one time after the other."""
LEAST_TIME: Final = 3.0
"""Seconds below which an effect is not begun."""

STILL_RUNNING: Final = "It is still running. Do not start it again: check its outcome later."
NO_TIME: Final = "It was not begun: too little time was left for it. Try again later."
IN_DOUBT: Final = "The outcome is unknown: it may have happened. Check before repeating it."
NOT_KEPT: Final = "It is done. Its result could not be kept to be shown again."

_RUNNING: Final = "running"
_SHORT: Final = "short_of_time"

_step: ContextVar[str | None] = ContextVar("step", default=None)
_log = logging.getLogger("roundtrip.tools")


def effects_of(call: Call) -> Effects:
    """What guards effects. Raises ConfigurationError without a store, and Unavailable while it cannot be opened."""
    opened = call.services.effects
    effects = opened() if opened else None
    if not isinstance(effects, Effects):
        raise ConfigurationError(["This happens once or asks for approval, which needs a store: set MCP_REDIS_URL."])
    return effects


def completed_once(call: Call, run: Callable[[], Outcome]) -> Outcome:
    """Run a tool so that what it completes happens once in its flow, and a repetition gets the same result.

    It counts from the second round: before the first one nobody has a state that could be shown twice. A round that
    ends with a question, or for want of the store, has completed nothing, and the next one may.
    `expect_completion` was called for the first one.
    """
    if call.round.number == 1:
        return run()
    if short_of_time(call, LEAST_TIME):
        return come_again(call, _SHORT)
    once = effects_of(call).once
    effect = _effect(call, call.round.answers)
    beginning = once.begin(effect, owner=_nonce(call), now=call.services.clock(), opened=True)
    match beginning:
        case Done(result):
            call.facts["once"] = "replayed"
            return Completed(result)
        case DoneWithoutResult():
            call.facts["once"] = "replayed"
            return Completed(messages.complete({"content": [messages.text_content(NOT_KEPT)]}))
        case Running():
            return come_again(call, _RUNNING)
        case Conflict():
            refuse()
        case Unknown():
            call.facts.update(outcome="in_doubt", once="in_doubt")
            return Stopped(IN_DOUBT)
        case Go():
            pass
    try:
        outcome = run()
    except (JSONRPCError, Unavailable):
        with suppress(Unavailable):
            once.abandon(beginning)
        raise
    if isinstance(outcome, InputNeeded) or call.facts.get("once") in (_RUNNING, _SHORT):
        # Not suppressed: with a mark that stands, the answer to this question could never be taken.
        once.abandon(beginning)
        return outcome
    result = messages.tool_error(outcome.text) if isinstance(outcome, Stopped) else outcome.result
    if call.facts.get("outcome") in ("crashed", "out_of_time"):
        result = {**result, "content": [*result["content"], messages.text_content(IN_DOUBT)]}
    _finish(call, beginning, result)
    return Completed(result)


def expect_completion(call: Call, outcome: Outcome) -> Outcome:
    """The outcome of a round. If it is the first question, the store knows of the flow before the user does."""
    if call.round.number == 1 and isinstance(outcome, InputNeeded):
        effects_of(call).once.open(_effect(call, {}), now=call.services.clock())
    return outcome


class Steps:
    """The effects of one call that happen once across its rounds, each under its key."""

    __slots__ = ("_begun", "_call")

    def __init__(self, call: Call) -> None:
        self._call = call
        self._begun: set[str] = set()

    @property
    def current(self) -> str | None:
        """The key of the effect whose function is running: in this task, where several run at once."""
        return _step.get()

    def run(self, key: str, answers: JsonObject, function: Callable[[], T]) -> T:
        """The result of `function`, from this round or from an earlier one."""
        is_async = TypeError(f"The effect {key!r} is a coroutine function: use `await ctx.once_async({key!r}, ...)`")
        if inspect.iscoroutinefunction(function):
            raise is_async
        with self._step(key, answers) as step:
            if isinstance(step, Go):
                value = function()
                if inspect.iscoroutine(value):
                    value.close()
                    raise is_async
                return self._keep(step, value)
        return step  # type: ignore[no-any-return]

    async def run_async(self, key: str, answers: JsonObject, function: Callable[[], Awaitable[T]]) -> T:
        """The same for a coroutine function."""
        with self._step(key, answers) as step:
            if isinstance(step, Go):
                return self._keep(step, await function())
        return step  # type: ignore[no-any-return]

    @contextmanager
    def _step(self, key: str, answers: JsonObject) -> Generator[Any]:
        """A Go, or the result that there is. Raises what ends the call."""
        if key in self._begun:
            raise ValueError(f"Two effects have the key {key!r}: give each its own")
        self._begun.add(key)
        call, once = self._call, effects_of(self._call).once
        if short_of_time(call, LEAST_TIME):
            raise _ended(come_again(call, _SHORT))
        beginning = once.begin(_effect(call, answers, step=key), owner=_nonce(call), now=call.services.clock())
        match beginning:
            case Done({"value": value}):
                yield value
                return
            case Done({"stopped": str(text)}):
                raise Ended(Stopped(text), "stopped")
            case DoneWithoutResult():
                raise Ended(Stopped(f"{key}: {NOT_KEPT}"), "failed")
            case Done() | Unknown():
                call.facts["once"] = "in_doubt"
                raise Ended(Stopped(f"{key}: {IN_DOUBT}"), "in_doubt")
            case Running():
                raise _ended(come_again(call, _RUNNING))
            case Conflict():
                refuse()
            case Go():
                pass
        outer = _step.get()
        _step.set(key)
        try:
            yield beginning
        except BaseException as error:
            stopped = error.outcome.text if isinstance(error, Ended) and isinstance(error.outcome, Stopped) else None
            # It may have happened. What a repetition must not do is try again.
            with suppress(Unavailable):
                result = {"failed": True} if stopped is None else {"stopped": stopped}
                once.finish(beginning, result, now=call.services.clock())
            if isinstance(error, Ended) and stopped is None:
                raise RuntimeError(f"The effect {key!r} asked: ask before it, and use the answer in it") from error
            raise
        finally:
            _step.set(outer)

    def _keep(self, go: Go, value: T) -> T:
        _finish(self._call, go, {"value": value}, strict=True)
        return value


def come_again(call: Call, why: str) -> Outcome:
    """Let the client repeat its request at once or, where it has done so often, say why there is no result."""
    call.facts["once"] = why
    if call.round.waits >= MAX_WAITS:
        return Stopped(STILL_RUNNING if why == _RUNNING else NO_TIME)
    return InputNeeded(state=call.round.state, waiting=True)


def short_of_time(call: Call, seconds: float) -> bool:
    """Whether fewer seconds are left before this invocation is killed."""
    return call.deadline is not None and call.deadline - call.services.clock() < seconds


def need_time(call: Call, seconds: float) -> None:
    """End the round if fewer seconds are left."""
    if short_of_time(call, seconds):
        raise _ended(come_again(call, _SHORT))


def refuse() -> NoReturn:
    """Another request of this flow came first: the same error as for a state that does not open."""
    raise invalid_request_state(RequestStateRefused("once: conflict"))


def limited(call: Call, outcome: InputNeeded) -> Outcome:
    """A round's questions, or a refusal for who is asked too often. An outage lets them through.

    Links are not counted here: the same one is shown again in every round until the user is done with it, and new
    ones have a limit of their own.
    """
    if all(each["params"].get("mode") == "url" for each in call.round.asked.values()):
        return outcome
    try:
        limits = effects_of(call).limits
        taken = limits.take(call.access_token.principal, Kind.ASK, entropy=_nonce(call), now=call.services.clock())
    except Unavailable:
        return outcome
    if isinstance(taken, Limited):
        call.facts["outcome"] = "limited"
        return Stopped(f"The user is asked too often. Try again in {taken.retry_after} seconds.")
    return outcome


def is_approved(call: Call, permission: Permission) -> bool:
    """Whether the user said yes before. An outage means no: then the user is asked."""
    try:
        return effects_of(call).approvals.check(call.access_token.principal, permission, now=call.now) is not None
    except Unavailable:
        return False


def remember_approval(call: Call, permission: Permission, *, lifetime: int) -> None:
    """Keep the yes that a client's form brought. Where it cannot be kept, the user is asked again next time."""
    try:
        kept = effects_of(call).approvals.remember(
            call.access_token.principal,
            permission,
            source=Source.FORM,
            lifetime=lifetime,
            asked_at=call.round.first_asked_at,
            now=call.now,
        )
    except Unavailable:
        kept = False
    call.facts["approval"] = "kept" if kept else "not_kept"


def _ended(outcome: Outcome) -> Ended:
    return Ended(outcome, "input_required" if isinstance(outcome, InputNeeded) else "failed")


def _finish(call: Call, go: Go, result: JsonObject, *, strict: bool = False) -> None:
    """Keep the result of what has happened, as far as it can be kept. `strict` raises TypeError for what is no JSON."""
    try:
        kept = effects_of(call).once.finish(go, result, now=call.services.clock())
    except Unavailable as error:
        # It is true all the same. A repetition gets IN_DOUBT.
        call.facts["once"] = "not_kept"
        _log.error("The result of %s is not kept: %s", call.target, error.reason)
    except TypeError:
        if strict:
            raise
        call.facts["once"] = Kept.WITHOUT_RESULT.value
    else:
        call.facts["once"] = kept.value
        if kept is Kept.LOST:
            _log.error("The store had forgotten that %s was running: it may have happened twice", call.target)


def _effect(call: Call, answers: Mapping[str, Any], *, step: str | None = None) -> Effect:
    return Effect(
        flow_id=call.round.flow_id,
        principal=call.access_token.principal,
        request_digest=request_digest(*call.bound_to(), answers=dict(answers)),
        expires_at=call.expires_at,
        step=step,
    )


def _nonce(call: Call) -> bytes:
    # The first round's randomness is the flow id, which the store must not learn.
    return hashlib.sha256(b"nonce" + call.entropy).digest()[:16]

"""Runs a function for one round, and turns each way in which it can end into an outcome."""

import inspect
import logging
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from app.errors import OutOfTime, Unavailable
from app.protocol.features import Call, InputNeeded, Outcome
from app.protocol.jsonrpc import JSONRPCError
from app.toolkit.context import Context, Ended, InputRequired, as_request
from app.toolkit.signature import Signature

_RESERVE: Final = 1.5
"""Seconds before the end of an invocation at which its function is ended, to answer in time."""

_log = logging.getLogger("roundtrip.tools")

Guard: TypeAlias = Callable[[Callable[[], Outcome]], Outcome]


def run(
    signature: Signature,
    call: Call,
    arguments: dict[str, Any],
    *,
    completed: Callable[[Any], Outcome],
    crashed: Callable[[str], Outcome],
    guarded: Guard = lambda function: function(),
) -> Outcome:
    """One round of a function: `completed` gets its result, `crashed` a sentence without the exception's text.

    `guarded` runs it, or answers without it.
    """
    outcome = guarded(lambda: _run(signature, call, arguments, completed, crashed))
    if isinstance(outcome, InputNeeded) and call.services.asks_limited:
        from app.toolkit.guard import limited

        return limited(call, outcome)
    return outcome


def _run(
    signature: Signature,
    call: Call,
    arguments: dict[str, Any],
    completed: Callable[[Any], Outcome],
    crashed: Callable[[str], Outcome],
) -> Outcome:
    if signature.context is not None:
        arguments = {**arguments, signature.context: Context(call)}
    try:
        result = _in_time(call, lambda: _result(signature, arguments))
        return _explicit(result, call) if isinstance(result, InputRequired) else completed(result)
    except OutOfTime:
        call.facts.update(outcome="out_of_time")
        return crashed(f"{signature.name} ran out of time and was ended in the middle. Try again with less to do.")
    except Ended as ended:
        call.facts["outcome"] = ended.fact
        return ended.outcome
    except (JSONRPCError, Unavailable):
        raise
    except BaseExceptionGroup as group:
        # What a TaskGroup makes of a task that asked, or was refused.
        ours, failed = group.split((Ended, JSONRPCError, Unavailable))
        if ours is None or failed is not None:
            return crashed(_crash(signature.name, group, call))
        refused, _ = ours.split((JSONRPCError, Unavailable))
        first = _first(refused or ours)
        if not isinstance(first, Ended):
            raise first from None
        call.facts["outcome"] = first.fact
        return first.outcome
    except (Exception, SystemExit) as error:
        return crashed(_crash(signature.name, error, call))


def _in_time(call: Call, work: Callable[[], Any]) -> Any:
    return work() if call.deadline is None else call.services.interrupt(call.deadline - _RESERVE, work)


def _result(signature: Signature, arguments: dict[str, Any]) -> Any:
    result = signature.function(**arguments)
    if inspect.iscoroutine(result):
        from app.toolkit.async_tools import run_async

        return run_async(result)
    return result


def _crash(name: str, error: BaseException, call: Call) -> str:
    request_id = str(call.facts.get("request_id", ""))
    call.facts.update(outcome="crashed", reason=type(error).__name__)
    _log.error("The function %s raised", name, exc_info=error, extra={"request_id": request_id})
    under = f" under {request_id}" if request_id else ""
    # The exception's text may hold anything: it stays in the log.
    return f"{name} failed. The server's log has the reason{under}."


def _explicit(result: InputRequired, call: Call) -> InputNeeded:
    for key, request in result.requests.items():
        call.round.ask(key, as_request(request))
    return InputNeeded(state=result.state)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    leaf: BaseException = group
    while isinstance(leaf, BaseExceptionGroup):
        leaf = leaf.exceptions[0]
    return leaf

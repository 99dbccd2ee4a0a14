"""What every peer must answer before anything of it is counted: the same work, done right."""

import json
from collections.abc import Mapping

from app.strict_json import JsonObject
from tests.bench.peer import Peer, Worker, running
from tests.bench.workload import ACCEPT, DECLINE, Request, Workload, result


class WrongAnswer(Exception):
    """A peer does not do the work. Its time would mean nothing."""

    def __init__(self, peer: Peer, what: str, answer: object, log: str = "") -> None:
        super().__init__(
            f"{peer.name}: {what}, but it answered {json.dumps(answer, default=str)[:1000]}\n{log}".strip()
        )


def is_question(answer: JsonObject) -> bool:
    """Whether an answer is round 1 as it must be: one form with one yes or no in it, and a state to return."""
    found = result(answer)
    try:
        (request,) = found["inputRequests"].values()
        schema = request["params"]["requestedSchema"]
        return (
            found["resultType"] == "input_required"
            and request["method"] == "elicitation/create"
            and request["params"]["message"] == "Delete the report Q3? This cannot be undone."
            and schema["properties"]["confirm"]["type"] == "boolean"
            and schema["required"] == ["confirm"]
            and bool(found["requestState"])
        )
    except (KeyError, TypeError, ValueError):
        return False


def responses_to(answer: JsonObject, responses: JsonObject) -> JsonObject:
    """The responses under the key that the server gave its question."""
    (key,) = result(answer)["inputRequests"]
    (response,) = responses.values()
    return {key: response}


def is_done(answer: JsonObject) -> bool:
    """Whether an answer says that the report is deleted."""
    found = result(answer)
    return found.get("resultType") == "complete" and not found.get("isError") and "is deleted" in json.dumps(found)


def check(peer: Peer, environment: Mapping[str, str], work: Workload) -> str:
    """Put a peer through all of it, and return the key of its question. Raises WrongAnswer and WorkerEnded."""
    with running(peer, environment) as worker:
        first = _answer(worker, work.delete_report())
        if not is_question(first):
            raise WrongAnswer(peer, "round 1 must ask whether to delete the report", first, worker.log())
        state = result(first)["requestState"]
        accepted, declined = responses_to(first, ACCEPT), responses_to(first, DECLINE)

        done = _answer(worker, work.delete_report(requestState=state, inputResponses=accepted))
        if not is_done(done):
            raise WrongAnswer(peer, "round 2 must delete the report", done, worker.log())
        again = _answer(worker, work.delete_report())
        if not is_question(again):
            raise WrongAnswer(peer, "a warm call must ask like the first one", again, worker.log())

        altered = state[:-8] + ("A" if state[-8] != "A" else "B") + state[-7:]
        retry = {"requestState": state, "inputResponses": accepted}
        must_not_delete: dict[str, Request] = {
            "the user declined": work.delete_report(requestState=state, inputResponses=declined),
            "the state is altered": work.delete_report(requestState=altered, inputResponses=accepted),
            "there is no state": work.delete_report(inputResponses=accepted),
            "the state is another user's": work.delete_report(subject="bob", **retry),
            "the state is of other arguments": work.delete_report("Q2", **retry),
        }
        for why, request in must_not_delete.items():
            answer = _answer(worker, request)
            if is_done(answer):
                raise WrongAnswer(peer, f"nothing may be deleted when {why}", answer, worker.log())

        without_token = work.request("tools/call", {"name": "delete_report", "arguments": {"target": "Q3"}}, token=None)
        for refused in (without_token, work.delete_report(token=work.forged_token())):
            answer = _answer(worker, refused)
            if answer["statusCode"] != 401:
                raise WrongAnswer(peer, "a caller without a token that verifies must get 401", answer, worker.log())
    (key,) = accepted
    return key


def _answer(worker: Worker, request: Request) -> JsonObject:
    answer: JsonObject = worker.send("call", **request.command())["answer"]
    return answer

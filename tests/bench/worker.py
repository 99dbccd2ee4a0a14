"""One peer in a process of its own, as a Lambda environment holds it: loads its handler, calls it, says how long.

Run as `python worker.py MODULE`; one JSON command a line comes in, one JSON reply a line goes out. Imports only what
the Lambda runtime has imported too, so that no peer's own import looks shorter, and nothing of this project.
"""

import base64
import json
import logging
import os
import sys
import time
from typing import Any

_clock = time.perf_counter_ns


class LambdaContext:
    function_name = "bench"
    function_version = "$LATEST"
    invoked_function_arn = "arn:aws:lambda:eu-west-1:123456789012:function:bench"
    memory_limit_in_mb = "1024"
    aws_request_id = "00000000-0000-4000-8000-000000000000"

    def get_remaining_time_in_millis(self) -> int:
        return 25_000


CONTEXT = LambdaContext()


def call(handler: Any, event: dict[str, Any], message: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """The nanoseconds of one call, and its answer. To put the message into the event is not part of it."""
    event = {**event, "body": json.dumps(message)}
    started = _clock()
    answer = handler(event, CONTEXT)
    return _clock() - started, answer


def result(answer: dict[str, Any]) -> dict[str, Any]:
    """The JSON-RPC result of an answer, `{}` where there is none."""
    body = base64.b64decode(answer["body"]) if answer.get("isBase64Encoded") else answer["body"]
    members: dict[str, Any] = json.loads(body).get("result", {}) if answer["statusCode"] == 200 else {}
    return members


def rounds(handler: Any, event: dict[str, Any], message: dict[str, Any], **command: Any) -> dict[str, Any]:
    """Many flows of two rounds each. Every answer is looked at, outside the time that is taken."""
    first_ns, second_ns, wrong = [], [], []
    for number in range(command["times"]):
        spent, answer = call(handler, event, {**message, "id": 2 * number + 1})
        first_ns.append(spent)
        asked = result(answer)
        if asked.get("resultType") != "input_required":
            wrong.append(answer)
            break
        retry = {"inputResponses": command["responses"], "requestState": asked["requestState"]}
        second = {**message, "id": 2 * number + 2, "params": {**message["params"], **retry}}
        spent, answer = call(handler, event, second)
        second_ns.append(spent)
        if not is_right(result(answer), command):
            wrong.append(answer)
            break
    return {"first_ns": first_ns, "second_ns": second_ns, "wrong": wrong}


def repeat(handler: Any, event: dict[str, Any], message: dict[str, Any], **command: Any) -> dict[str, Any]:
    """The same request many times."""
    ns, wrong = [], []
    for number in range(command["times"]):
        spent, answer = call(handler, event, {**message, "id": number + 1})
        ns.append(spent)
        if not is_right(result(answer), command):
            wrong.append(answer)
            break
    return {"ns": ns, "wrong": wrong, "bytes": len(answer["body"])}


def is_right(found: dict[str, Any], command: dict[str, Any]) -> bool:
    return (
        found.get("resultType") == command["result_type"]
        and not found.get("isError")
        and command["contains"] in json.dumps(found)
    )


def memory() -> dict[str, int]:
    """KiB of resident memory, now and at most. getrusage would count what the process was forked from."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            sizes = dict(line.split(":", 1) for line in status if line.startswith("Vm"))
        return {"peak_kib": int(sizes["VmHWM"].split()[0]), "rss_kib": int(sizes["VmRSS"].split()[0])}
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "darwin" else 1)
        return {"peak_kib": peak, "rss_kib": peak}


def main() -> None:
    # What a peer prints must not stand between the replies.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    # As in Lambda: a handler at the root before the function is imported, at the level that template.yaml sets.
    logging.getLogger().addHandler(logging.StreamHandler())
    logging.getLogger().setLevel(logging.INFO)
    started = _clock()
    handler = __import__(sys.argv[1], fromlist=["handler"]).handler
    import_ns = _clock() - started
    for line in sys.stdin:
        command = json.loads(line)
        match command.pop("do"):
            case "call":
                ns, answer = call(handler, command["event"], command["message"])
                reply: dict[str, Any] = {"ns": ns, "answer": answer}
            case "rounds":
                reply = rounds(handler, **command)
            case "repeat":
                reply = repeat(handler, **command)
            case unknown:
                raise ValueError(f"There is no command {unknown!r}")
        replies.write(json.dumps({**reply, **memory(), "import_ns": import_ns, "modules": len(sys.modules)}) + "\n")
        replies.flush()
    # Lambda freezes and kills an environment: what happens at the exit of an interpreter is no part of it.
    os._exit(0)


if __name__ == "__main__":
    main()

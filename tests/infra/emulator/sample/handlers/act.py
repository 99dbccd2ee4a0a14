"""Does what the request's JSON body asks for: {"do": "exit"} and the like."""

import json
import os
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import snapshot_restore_py

PHASES: list[str] = []


snapshot_restore_py.register_before_snapshot(PHASES.append, "before: first registered")
snapshot_restore_py.register_before_snapshot(PHASES.append, "before: second registered")
snapshot_restore_py.register_after_restore(PHASES.append, "after: first registered")
snapshot_restore_py.register_after_restore(PHASES.append, "after: second registered")


def handler(event: dict[str, Any], context: Any) -> Any:
    order = json.loads(event["body"])
    match order["do"]:
        case "return":
            return order["output"]
        case "bytes":
            return order["text"].encode()
        case "decimal":
            return Decimal("1.5")
        case "object":
            return object()
        case "fill":
            return {"statusCode": 200, "body": "x" * order["size"]}
        case "raise":
            raise ValueError(order["text"])
        case "exit":
            os._exit(3)
        case "sys.exit":
            sys.exit(4)
        case "sleep":
            time.sleep(order["seconds"])
            return {"statusCode": 200, "body": "slept"}
        case "hang":
            time.sleep(600)
        case "child":
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            print(f"child {child.pid}", flush=True)
            time.sleep(600)
        case "phases":
            return PHASES
        case "touch":
            mark = Path(os.environ["TMPDIR"], "mark")
            existed = mark.exists()
            mark.touch()
            return {"existed": existed, "folder": str(mark.parent)}
        case "number":
            return {"statusCode": 200, "body": str(order["number"])}
    return None

"""How the process of an execution environment is started: its command line, and all of its variables."""

import os
import sys
import uuid
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from infra.local.emulator.function import Function
from infra.local.emulator.intrinsics import REGION

RuntimeClient = Literal["awslambdaric", "fallback"]


def available_runtime_client() -> RuntimeClient:
    """The real client where its wheel is installed (Linux), and the fallback elsewhere."""
    # The C extension of awslambdaric is a top-level module, and an sdist built without its tools lacks it.
    installed = find_spec("awslambdaric") is not None and find_spec("runtime_client") is not None
    return "awslambdaric" if installed else "fallback"


def runtime_command(client: RuntimeClient, interpreter: Path | None = None) -> Sequence[str]:
    """The command line, of the running Python unless another interpreter is given."""
    python = str(interpreter or sys.executable)
    if client == "awslambdaric":
        return (python, "-m", "awslambdaric")
    # -P: the script's folder must not be importable, its file names would shadow other people's modules.
    return (python, "-P", str(Path(__file__).with_name("runtime_client.py")))


def process_variables(function: Function, *, address: str, scratch: str, snapstart: bool) -> dict[str, str]:
    """What Lambda gives, what the template says, and nothing of the developer's own shell but PATH."""
    lambda_variables = {
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{function.runtime}",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory_size),
        "AWS_LAMBDA_FUNCTION_NAME": function.function_name,
        "AWS_LAMBDA_FUNCTION_VERSION": "1",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "snap-start" if snapstart else "on-demand",
        "AWS_LAMBDA_LOG_FORMAT": function.log_format,
        "AWS_LAMBDA_LOG_GROUP_NAME": function.log_group,
        "AWS_LAMBDA_LOG_STREAM_NAME": f"[1]{uuid.uuid4().hex}",
        "AWS_REGION": REGION,
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_SESSION_TOKEN": "local",
        "LAMBDA_RUNTIME_DIR": str(Path(__file__).parent),
        "LAMBDA_TASK_ROOT": str(function.code),
        "LANG": "en_US.UTF-8",
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": str(function.code),
        # Each environment has its own /tmp; a shared one would hide state that is lost on AWS.
        "HOME": scratch,
        "TMPDIR": scratch,
        "TZ": ":UTC",
        "_HANDLER": function.handler,
    }
    if function.log_level:
        lambda_variables["AWS_LAMBDA_LOG_LEVEL"] = function.log_level
    return {**lambda_variables, **function.variables, "AWS_LAMBDA_RUNTIME_API": address}

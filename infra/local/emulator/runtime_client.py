"""A pure Python Lambda runtime for where awslambdaric has no wheel: same Runtime API, same logs, same errors.

Run as a script, `python runtime_client.py module.handler`. It imports nothing of this project, because its process is
the function's.
"""

import decimal
import http.client
import importlib
import json
import logging
import os
import sys
import time
import traceback
import types
from collections.abc import Callable
from typing import Any

_PREFIX = "/2018-06-01/runtime"
_request_id = ""

Hook = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


class Fault(Exception):
    """The runtime, not the handler, found something wrong."""

    def __init__(self, error_type: str, text: str, trace: list[str] | None = None) -> None:
        super().__init__(text)
        self.error_type = error_type
        self.trace = trace or []


class Context:
    """The second argument of a handler: https://docs.aws.amazon.com/lambda/latest/dg/python-context.html."""

    def __init__(self, headers: http.client.HTTPMessage) -> None:
        self.aws_request_id = headers["Lambda-Runtime-Aws-Request-Id"]
        self.invoked_function_arn = headers["Lambda-Runtime-Invoked-Function-Arn"]
        self.function_name = os.environ.get("AWS_LAMBDA_FUNCTION_NAME")
        self.function_version = os.environ.get("AWS_LAMBDA_FUNCTION_VERSION")
        self.memory_limit_in_mb = os.environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE")
        self.log_group_name = os.environ.get("AWS_LAMBDA_LOG_GROUP_NAME")
        self.log_stream_name = os.environ.get("AWS_LAMBDA_LOG_STREAM_NAME")
        self.client_context = None
        self.tenant_id = None
        self.identity = types.SimpleNamespace(cognito_identity_id=None, cognito_identity_pool_id=None)
        self._deadline_ms = int(headers["Lambda-Runtime-Deadline-Ms"])

    def get_remaining_time_in_millis(self) -> int:
        return max(0, self._deadline_ms - int(time.time() * 1000))

    def log(self, text: object) -> None:
        sys.stdout.write(str(text))


class RuntimeApi:
    """One kept-alive connection to the Runtime API."""

    def __init__(self, address: str) -> None:
        self._connection = http.client.HTTPConnection(address)

    def get(self, path: str) -> tuple[http.client.HTTPMessage, bytes]:
        return self._exchange("GET", path, None, {})

    def post(self, path: str, body: bytes, headers: dict[str, str] | None = None) -> None:
        self._exchange("POST", path, body, {"Content-Type": "application/json", **(headers or {})})

    def _exchange(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[http.client.HTTPMessage, bytes]:
        self._connection.request(method, _PREFIX + path, body, headers)
        response = self._connection.getresponse()
        content = response.read()
        if response.status >= 300:
            raise RuntimeError(f"Runtime API {path} answered {response.status}: {content!r}")
        return response.headers, content


class _RequestIdFilter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        record.aws_request_id = _request_id
        return True


class _JsonFormatter(logging.Formatter):
    """Lambda's JSON log format: what a record carries by `extra` becomes a field."""

    _KNOWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "aws_request_id", "taskName"}

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname,
            "message": record.msg if isinstance(record.msg, dict) and not record.args else record.getMessage(),
            "logger": record.name,
            "requestId": _request_id,
        }
        if record.exc_info and record.exc_info[0] is not None:
            fields["stackTrace"] = traceback.format_tb(record.exc_info[2])
            fields["errorType"] = record.exc_info[0].__name__
            fields["errorMessage"] = str(record.exc_info[1])
            fields["location"] = f"{record.pathname}:{record.funcName}:{record.lineno}"
        fields |= {key: value for key, value in vars(record).items() if key not in self._KNOWN and key not in fields}
        return json.dumps(fields, ensure_ascii=False, default=str)


def set_up_logging() -> None:
    handler = logging.StreamHandler(sys.stdout)
    handler.addFilter(_RequestIdFilter())
    if _logs_json():
        handler.setFormatter(_JsonFormatter())
    else:
        text = "[%(levelname)s]\t%(asctime)s.%(msecs)03dZ\t%(aws_request_id)s\t%(message)s"
        formatter = logging.Formatter(text, "%Y-%m-%dT%H:%M:%S")
        formatter.converter = time.gmtime
        handler.setFormatter(formatter)
    root = logging.getLogger()
    root.addHandler(handler)
    level = os.environ.get("AWS_LAMBDA_LOG_LEVEL", "").upper().replace("TRACE", "DEBUG")
    if level in logging.getLevelNamesMapping():
        root.setLevel(level)


def _logs_json() -> bool:
    return os.environ.get("AWS_LAMBDA_LOG_FORMAT", "").upper() == "JSON"


def log_error(error: dict[str, Any]) -> None:
    if _logs_json():
        timestamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        sys.stdout.write(json.dumps({"timestamp": timestamp, "level": "ERROR", **error}, ensure_ascii=False) + "\n")
        return
    lines = [f"[ERROR] {error['errorType']}: {error['errorMessage']}", "Traceback (most recent call last):"]
    for entry in error["stackTrace"]:
        lines += entry.splitlines()
    sys.stdout.write("\r".join(lines) + "\n")


def make_error(error: BaseException, request_id: str = "") -> dict[str, Any]:
    if isinstance(error, Fault):
        error_type, trace = error.error_type, error.trace
    else:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if frame.filename != __file__]
        error_type, trace = type(error).__name__, traceback.format_list(own)
    return {"errorMessage": str(error), "errorType": error_type, "requestId": request_id, "stackTrace": trace}


def load_handler(name: str) -> Callable[[Any, Context], Any]:
    module_name, dot, function_name = name.rpartition(".")
    if not dot:
        raise Fault("Runtime.MalformedHandlerName", f"Bad handler '{name}': not enough values to unpack")
    if module_name.split(".")[0] in sys.builtin_module_names:
        raise Fault("Runtime.BuiltInModuleConflict", f"Cannot use built-in module {module_name} as a handler module")
    try:
        module = importlib.import_module(module_name.replace("/", "."))
    except ImportError as error:
        raise Fault("Runtime.ImportModuleError", f"Unable to import module '{module_name}': {error}") from error
    except SyntaxError as error:
        trace = [f'  File "{error.filename}" Line {error.lineno}\n    {error.text}']
        raise Fault("Runtime.UserCodeSyntaxError", f"Syntax error in module '{module_name}': {error}", trace) from error
    try:
        handler: Callable[[Any, Context], Any] = getattr(module, function_name)
    except AttributeError as error:
        text = f"Handler '{function_name}' missing on module '{module_name}'"
        raise Fault("Runtime.HandlerNotFound", text) from error
    return handler


def provide_snapshot_hooks() -> Any:
    """snapshot_restore_py, which belongs to the runtime: functions import it without installing it."""
    try:
        return importlib.import_module("snapshot_restore_py")
    except ImportError:
        pass
    before: list[Hook] = []
    after: list[Hook] = []

    def registrar(hooks: list[Hook]) -> Callable[..., Any]:
        def register(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
            hooks.append((function, args, kwargs))
            return function

        return register

    module = types.ModuleType("snapshot_restore_py")
    vars(module).update(
        register_before_snapshot=registrar(before),
        register_after_restore=registrar(after),
        get_before_snapshot=lambda: before,
        get_after_restore=lambda: after,
    )
    sys.modules[module.__name__] = module
    return module


def run_snapshot_hooks(api: RuntimeApi, hooks: Any) -> None:
    """The SnapStart phases: hooks before the snapshot in reverse order, the restore, hooks after it in order."""
    try:
        for function, args, kwargs in reversed(hooks.get_before_snapshot()):
            function(*args, **kwargs)
        api.get("/restore/next")
    except BaseException as raised:
        report(api, "/init/error", raised, "Runtime.BeforeSnapshotError")
        sys.exit(64)
    try:
        for function, args, kwargs in hooks.get_after_restore():
            function(*args, **kwargs)
    except BaseException as raised:
        report(api, "/restore/error", raised, "Runtime.AfterRestoreError")
        sys.exit(65)


def report(api: RuntimeApi, path: str, raised: BaseException, error_type: str = "", request_id: str = "") -> None:
    error = make_error(raised, request_id)
    log_error(error)
    header = {"Lambda-Runtime-Function-Error-Type": error_type or error["errorType"]}
    api.post(path, json.dumps(error, ensure_ascii=False).encode("utf-8", errors="replace"), header)


def encode(result: Any) -> bytes:
    if isinstance(result, bytes):
        return result
    try:
        return json.dumps(result, ensure_ascii=False, default=_encode_decimal).encode()
    except Exception as error:
        raise Fault("Runtime.MarshalError", f"Unable to marshal response: {error}") from error


def _encode_decimal(value: Any) -> float:
    if isinstance(value, decimal.Decimal):
        return float(value)
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def serve(api: RuntimeApi, handler: Callable[[Any, Context], Any]) -> None:
    global _request_id
    while True:
        headers, payload = api.get("/invocation/next")
        _request_id = headers["Lambda-Runtime-Aws-Request-Id"]
        os.environ["_X_AMZN_TRACE_ID"] = headers.get("Lambda-Runtime-Trace-Id", "")
        try:
            result = encode(handler(json.loads(payload), Context(headers)))
        except Exception as raised:
            report(api, f"/invocation/{_request_id}/error", raised, request_id=_request_id)
        else:
            api.post(f"/invocation/{_request_id}/response", result)


def main() -> None:
    # A pipe is block-buffered by default, and a killed process would take its last lines with it.
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, write_through=True)  # type: ignore[union-attr]
    set_up_logging()
    api = RuntimeApi(os.environ["AWS_LAMBDA_RUNTIME_API"])
    hooks = provide_snapshot_hooks()
    try:
        handler = load_handler(sys.argv[1])
    except Exception as raised:
        report(api, "/init/error", raised)
        sys.exit(1)
    if os.environ.get("AWS_LAMBDA_INITIALIZATION_TYPE") == "snap-start":
        run_snapshot_hooks(api, hooks)
    serve(api, handler)


if __name__ == "__main__":
    main()

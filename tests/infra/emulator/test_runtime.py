"""What a function sees of Lambda, with awslambdaric and with the fallback alike."""

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from infra.local.emulator import InitError, RunningEmulator, emulator_in_thread
from infra.local.emulator.process import RuntimeClient
from tests.infra.emulator.client import act, returning, send
from tests.infra.emulator.processes import alive

Project = Callable[..., Path]


def look(emulator: RunningEmulator) -> dict[str, Any]:
    """What sample/handlers/echo.py tells of its own process."""
    told: dict[str, Any] = send(emulator.url, "GET", "/echo").json
    return told


def test_the_context_describes_the_invocation(emulator: RunningEmulator) -> None:
    """AWS Lambda: python-context."""
    context = look(emulator)["context"]
    assert len(context.pop("aws_request_id")) == 36
    assert context.pop("log_stream_name").startswith("[1]")
    assert 9_000 < context.pop("remaining_ms") <= 10_000
    assert context == {
        "function_name": "local-EchoFunction",
        "function_version": "1",
        "invoked_function_arn": "arn:aws:lambda:us-east-1:123456789012:function:local-EchoFunction:live",
        "log_group_name": "/aws/lambda/local-EchoFunction",
        "memory_limit_in_mb": "256",
    }


def test_the_process_has_the_variables_of_lambda_and_none_of_the_developer(
    emulator: RunningEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AWS Lambda: configuration-envvars; what a shell exports must not make local code work by accident."""
    monkeypatch.setenv("LEAKED_SECRET", "leaked")
    emulator.restart("echo")
    told = look(emulator)
    environ = told["environ"]
    assert environ.pop("AWS_LAMBDA_RUNTIME_API").startswith("127.0.0.1:")
    assert environ.pop("AWS_LAMBDA_LOG_STREAM_NAME") == told["context"]["log_stream_name"]
    assert environ.pop("_X_AMZN_TRACE_ID").startswith("Root=1-")
    assert environ.pop("HOME") == environ.pop("TMPDIR")
    assert environ.pop("PATH") == os.environ["PATH"]
    assert environ.pop("LAMBDA_RUNTIME_DIR")
    # Python sets this one where the C library has no such locale (PEP 538).
    environ.pop("LC_CTYPE", None)
    sample = str(Path(__file__).with_name("sample"))
    assert environ == {
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EXECUTION_ENV": "AWS_Lambda_python3.13",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256",
        "AWS_LAMBDA_FUNCTION_NAME": "local-EchoFunction",
        "AWS_LAMBDA_FUNCTION_VERSION": "1",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_LAMBDA_LOG_FORMAT": "Text",
        "AWS_LAMBDA_LOG_GROUP_NAME": "/aws/lambda/local-EchoFunction",
        "AWS_REGION": "us-east-1",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_SESSION_TOKEN": "local",
        "GREETING": "hello",
        "LAMBDA_TASK_ROOT": sample,
        "LANG": "en_US.UTF-8",
        "PYTHONPATH": sample,
        "TZ": ":UTC",
        "_HANDLER": "handlers.echo.handler",
    }
    assert told["cwd"] == sample
    assert not [entry for entry in told["path"] if entry.endswith("emulator")]


def test_environments_do_not_share_a_temporary_folder(emulator: RunningEmulator) -> None:
    """AWS Lambda: each execution environment has its own /tmp, which lives as long as it does."""
    emulator.restart("act")
    told = [act(emulator.url, "touch").json for _ in range(4)]
    assert [item["existed"] for item in told] == [False, False, True, True]
    assert len({item["folder"] for item in told}) == 2
    emulator.restart("act")
    assert not any(Path(item["folder"]).exists() for item in told)


def test_init_happens_once_per_environment(emulator: RunningEmulator) -> None:
    """AWS Lambda: lambda-runtime-environment, the INIT phase."""
    emulator.restart("echo")
    told = [look(emulator) for _ in range(4)]
    assert len({item["pid"] for item in told}) == 2
    assert len({item["initialized_at"] for item in told}) == 2


@pytest.mark.parametrize("output", ["🎈 ё", {"a": [1, 2.5, None, True]}, "\u2028\x00"])
def test_outputs_survive_the_way_back(emulator: RunningEmulator, output: Any) -> None:
    """AWS Lambda: python-handler, the output is serialized to JSON."""
    reply = returning(emulator.url, {"statusCode": 200, "body": json.dumps(output)})
    assert reply.json == output


def test_a_decimal_is_a_number_in_the_output(emulator: RunningEmulator) -> None:
    """awslambdaric: LambdaMarshaller."""
    assert act(emulator.url, "decimal").json == 1.5


def test_bytes_are_passed_through(emulator: RunningEmulator) -> None:
    """awslambdaric: LambdaMarshaller, application/unknown."""
    assert act(emulator.url, "bytes", text='{"statusCode": 202}').status == 202


def test_an_output_that_is_not_json_is_an_error(
    emulator: RunningEmulator, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    """awslambdaric: Runtime.MarshalError."""
    assert act(emulator.url, "object").status == 500
    eventually(lambda: any("[ERROR] Runtime.MarshalError: Unable to marshal" in line for line in emulator.logs()))


def test_an_exception_is_logged_with_its_traceback_and_the_environment_lives_on(
    emulator: RunningEmulator, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    """AWS Lambda: python-exceptions; API Gateway answers 500."""
    before = {info.name for info in emulator.environments()}
    reply = act(emulator.url, "raise", text="at 10:00 ё")
    assert (reply.status, reply.json) == (500, {"message": "Internal Server Error"})
    eventually(lambda: f"{reply.environment} | [ERROR] ValueError: at 10:00 ё" in emulator.logs())
    eventually(lambda: any("handlers/act.py" in line and ", in handler" in line for line in emulator.logs()))
    assert {info.name for info in emulator.environments()} == before


def test_print_and_logging_go_to_the_log_of_the_environment(
    emulator: RunningEmulator, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    """AWS Lambda: python-logging, text format."""
    reply = send(emulator.url, "GET", "/echo")
    request_id = reply.json["context"]["aws_request_id"]
    eventually(lambda: f"{reply.environment} | printed /echo" in emulator.logs())
    eventually(
        lambda: any(
            line.startswith(f"{reply.environment} | [WARNING]\t")
            and line.endswith(f"Z\t{request_id}\twarning from /echo")
            for line in emulator.logs()
        )
    )


def test_json_logs_are_one_object_per_line(runtime_client: RuntimeClient, project: Project) -> None:
    """AWS Lambda: python-logging, JSON format, ApplicationLogLevel."""
    template = project("""
        import logging
        def handler(event, context):
            logging.info("first", extra={"count": 3})
            try:
                1 / 0
            except ZeroDivisionError:
                logging.exception("second")
            logging.debug("too fine")
            raise KeyError("third")
    """)
    text = template.read_text().replace(
        "Timeout: 5", "Timeout: 5\n      LoggingConfig: {LogFormat: JSON, ApplicationLogLevel: INFO}"
    )
    template.write_text(text)
    with emulator_in_thread(template, parameters={}, environments=1, runtime_client=runtime_client) as running:
        send(running.url, "GET", "/")
    first, second, third = [json.loads(line.partition(" | ")[2]) for line in running.logs()]
    assert (first["level"], first["message"], first["count"]) == ("INFO", "first", 3)
    assert (second["errorType"], second["errorMessage"]) == ("ZeroDivisionError", "division by zero")
    assert (third["level"], third["errorType"]) == ("ERROR", "KeyError")
    assert first["requestId"] == second["requestId"] == third["requestId"]


@pytest.mark.parametrize(
    ("source", "handler", "message"),
    [
        ("import nowhere", "main.handler", "Runtime.ImportModuleError: Unable to import module 'main': No module"),
        ("def handler(:", "main.handler", "Runtime.UserCodeSyntaxError: Syntax error in module 'main'"),
        ("x = 1", "main.handler", "Runtime.HandlerNotFound: Handler 'handler' missing on module 'main'"),
        ("x = 1", "handler", "Runtime.MalformedHandlerName: Bad handler 'handler'"),
        ("x = 1", "sys.exit", "Runtime.BuiltInModuleConflict: Cannot use built-in module sys"),
        ("raise ValueError('no key')", "main.handler", "ValueError: no key"),
        ("import os; os._exit(9)", "main.handler", "the process ended with exit status 9"),
    ],
)
def test_a_function_that_fails_in_init_is_explained(
    runtime_client: RuntimeClient, project: Project, source: str, handler: str, message: str
) -> None:
    """AWS Lambda: the INIT errors of the Python runtime."""
    template = project(source)
    template.write_text(template.read_text().replace("main.handler", handler))
    started = emulator_in_thread(template, parameters={}, environments=1, runtime_client=runtime_client)
    with pytest.raises(InitError) as raised, started:
        pass
    assert f"main-1 failed in INIT of {handler}: {message}" in str(raised.value)
    assert str(raised.value).splitlines()[-1].startswith("Fix it and start again.")


def test_what_an_init_error_says_to_run_shows_the_same_error(
    runtime_client: RuntimeClient, project: Project, tmp_path: Path
) -> None:
    """In any shell: its `python` may be another one, and have nothing of what is installed here."""
    project("import pydantic; raise ValueError('no key')")
    template = tmp_path / "my code" / "template.yaml"
    template.parent.mkdir()
    for name in ("main.py", template.name):
        (tmp_path / name).rename(template.parent / name)
    with pytest.raises(InitError) as raised, emulator_in_thread(template, parameters={}, runtime_client=runtime_client):
        pass
    command = str(raised.value).rpartition("variables: ")[2]
    ended = subprocess.run(
        ["sh", "-c", command], env={"PATH": os.defpath}, capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.stderr.splitlines()[-1] == "ValueError: no key"


def test_an_init_error_shows_where_it_was_raised(runtime_client: RuntimeClient, project: Project) -> None:
    """A traceback says more than its last line, and the frames of importlib say nothing."""
    template = project("raise RuntimeError('no settings')")
    with pytest.raises(InitError) as raised, emulator_in_thread(template, parameters={}, runtime_client=runtime_client):
        pass
    _, where, code, _ = str(raised.value).split("\n")
    assert where.endswith('main.py", line 1, in <module>')
    assert code.strip() == "raise RuntimeError('no settings')"


def test_a_silent_death_in_init_shows_the_last_lines(runtime_client: RuntimeClient, project: Project) -> None:
    """A crash of a C extension leaves no traceback."""
    template = project("""
        import os
        print("about to fail", flush=True)
        os.abort()
    """)
    with pytest.raises(InitError) as raised, emulator_in_thread(template, parameters={}, runtime_client=runtime_client):
        pass
    assert "the process ended with signal: SIGABRT\n  about to fail\n" in str(raised.value)


def test_snapstart_runs_the_hooks_around_the_restore(runtime_client: RuntimeClient) -> None:
    """AWS Lambda: snapstart-runtime-hooks-python: before in reverse order, after in order."""
    sample = Path(__file__).with_name("sample") / "template.yaml"
    with emulator_in_thread(
        sample, parameters={"Greeting": ""}, environments=1, snapstart=True, runtime_client=runtime_client
    ) as running:
        assert act(running.url, "phases").json == [
            "before: second registered",
            "before: first registered",
            "after: first registered",
            "after: second registered",
        ]


def test_without_snapstart_no_hook_runs(emulator: RunningEmulator) -> None:
    """AWS Lambda: hooks belong to SnapStart."""
    assert act(emulator.url, "phases").json == []


@pytest.mark.parametrize("when", ["before_snapshot", "after_restore"])
def test_a_hook_that_raises_fails_init(runtime_client: RuntimeClient, project: Project, when: str) -> None:
    """AWS Lambda: snapstart-runtime-hooks-python."""
    template = project(f"""
        import snapshot_restore_py
        @snapshot_restore_py.register_{when}
        def hook():
            raise OSError("hook failed")
        def handler(event, context): ...
    """)
    started = emulator_in_thread(template, parameters={}, snapstart=True, runtime_client=runtime_client)
    with pytest.raises(InitError, match="OSError: hook failed"), started:
        pass


def test_the_fallback_brings_the_snapshot_hooks_where_they_are_not_installed(project: Project) -> None:
    """On Lambda snapshot_restore_py belongs to the runtime; its package comes with awslambdaric only."""
    template = project("""
        import snapshot_restore_py
        phases = []
        snapshot_restore_py.register_before_snapshot(phases.append, "before")
        @snapshot_restore_py.register_after_restore
        def hook():
            phases.append("after")
        def handler(event, context):
            return phases
    """)
    # A module that cannot be imported stands for one that is not installed.
    (template.parent / "snapshot_restore_py.py").write_text("raise ImportError")
    with emulator_in_thread(
        template, parameters={}, environments=1, snapstart=True, runtime_client="fallback"
    ) as running:
        assert send(running.url, "GET", "/").json == ["before", "after"]


@pytest.mark.parametrize(("do", "status"), [("exit", 3), ("sys.exit", 4)])
def test_a_runtime_that_ends_in_an_invocation_fails_it_and_is_replaced(
    emulator: RunningEmulator, do: str, status: int, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    """AWS Lambda: Runtime.ExitError; API Gateway answers 500."""
    reply = act(emulator.url, do)
    assert (reply.status, reply.json) == (500, {"message": "Internal Server Error"})
    assert reply.environment not in [info.name for info in emulator.environments()]
    assert any(f"Runtime exited with error: exit status {status}" in line for line in emulator.logs())
    assert act(emulator.url, "number", number=5).body == b"5"
    eventually(lambda: sum(info.function == "act" and info.state == "idle" for info in emulator.environments()) == 2)


def test_an_environment_is_killed_when_the_timeout_of_its_function_passes(
    emulator: RunningEmulator, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    """AWS Lambda: Timeout; API Gateway answers 503."""
    pids = {info.name: info.pid for info in emulator.environments()}
    began = time.time()
    reply = act(emulator.url, "hang")
    assert 2 <= time.time() - began < 4
    assert (reply.status, reply.json) == (503, {"message": "Service Unavailable"})
    assert any(f"{reply.environment} | " in line and "Task timed out after 2.00 s" in line for line in emulator.logs())
    eventually(lambda: not alive(pids[reply.environment]))
    assert act(emulator.url, "number", number=6).environment != reply.environment

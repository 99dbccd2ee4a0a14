"""Execution environments over time: spread, scale-out, death, restart, start and stop."""

import asyncio
import http.client
import json
import socket
import statistics
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from infra.local.emulator import Emulator, EmulatorError, InitError, PortInUse, RunningEmulator, emulator_in_thread
from tests.infra.emulator.client import Reply, act, send
from tests.infra.emulator.conftest import PARAMETERS, SAMPLE
from tests.infra.emulator.processes import alive

Project = Callable[..., Path]
Eventually = Callable[[Callable[[], bool]], None]


def pids(running: RunningEmulator, function: str = "act") -> set[int | None]:
    return {info.pid for info in running.environments() if info.function == function}


def states(running: RunningEmulator, function: str = "act") -> Counter[str]:
    return Counter(info.state for info in running.environments() if info.function == function)


def test_consecutive_requests_meet_different_environments(emulator: RunningEmulator, eventually: Eventually) -> None:
    """DESIGN, section 8: requests are spread, so that state in memory is noticed."""
    names = []
    for _ in range(6):
        names.append(act(emulator.url, "number", number=1).environment)
        eventually(lambda: states(emulator) == {"idle": 2})
    assert names[:2] * 3 == names
    assert len(set(names)) == 2


def test_environments_are_added_on_demand_up_to_the_maximum_and_kept(eventually: Eventually) -> None:
    """AWS Lambda: one environment serves one request at a time; more requests, more environments."""
    with (
        emulator_in_thread(SAMPLE, parameters=PARAMETERS, environments=1, max_environments=3) as running,
        ThreadPoolExecutor(5) as threads,
    ):
        replies = list(threads.map(lambda _: act(running.url, "sleep", seconds=0.4), range(5)))
        assert [reply.status for reply in replies] == [200] * 5
        eventually(lambda: states(running) == {"idle": 3})
        assert len({act(running.url, "number", number=1).environment for _ in range(3)}) == 3


def test_requests_one_after_the_other_need_no_more_environments(project: Project) -> None:
    """An environment that has answered is as good as idle, however slow it is to ask for more."""
    template = project("""
        import time
        class Slow(dict):
            def __del__(self):
                time.sleep(0.2)  # after the response was posted, before the next invocation is asked for
        def handler(event, context):
            return Slow(statusCode=200, body="up")
    """)
    with emulator_in_thread(template, parameters={}, environments=1) as running:
        assert {send(running.url, "GET", "/").environment for _ in range(3)} == {"main-1"}
        assert len(running.environments()) == 1


def test_no_parallel_request_is_lost_or_answered_with_another_ones_answer() -> None:
    """One Runtime API port per environment: a shared one loses events."""
    with (
        emulator_in_thread(SAMPLE, parameters=PARAMETERS, environments=4, max_environments=4) as running,
        ThreadPoolExecutor(20) as threads,
    ):

        def ask(number: int) -> Reply:
            return act(running.url, "number", number=number)

        replies = list(threads.map(ask, range(200)))
        assert [int(reply.body) for reply in replies] == list(range(200))
        assert len({reply.environment for reply in replies}) == 4
        assert sum(info.invocations for info in running.environments()) == 200


def test_a_killed_environment_is_replaced(emulator: RunningEmulator, eventually: Eventually) -> None:
    """A crash between two requests."""
    victim = act(emulator.url, "number", number=1).environment
    pid = next(info.pid for info in emulator.environments() if info.name == victim)
    emulator.kill(victim)
    assert not alive(pid)
    assert {act(emulator.url, "number", number=n).status for n in range(4)} == {200}
    eventually(lambda: states(emulator) == {"idle": 2})
    assert victim not in [info.name for info in emulator.environments()]


def test_an_environment_killed_in_an_invocation_fails_that_one_only(
    emulator: RunningEmulator, eventually: Eventually
) -> None:
    """AWS Lambda: Runtime.ExitError, signal: killed."""
    with ThreadPoolExecutor(1) as thread:
        pending = thread.submit(act, emulator.url, "sleep", seconds=1.5)
        eventually(lambda: states(emulator)["busy"] == 1)
        emulator.kill(next(info.name for info in emulator.environments() if info.state == "busy"))
        assert pending.result().status == 500
    assert any("signal: SIGKILL" in line for line in emulator.logs())
    assert act(emulator.url, "number", number=2).body == b"2"


def test_killing_an_environment_takes_its_children_along(emulator: RunningEmulator, eventually: Eventually) -> None:
    """AWS Lambda: the sandbox ends as a whole."""
    with ThreadPoolExecutor(1) as thread:
        pending = thread.submit(act, emulator.url, "child")
        eventually(lambda: any("| child " in line for line in emulator.logs()))
        child = int(next(line for line in reversed(emulator.logs()) if "| child " in line).rpartition(" ")[2])
        assert alive(child)
        emulator.kill(next(info.name for info in emulator.environments() if info.state == "busy"))
        assert pending.result().status == 500
    eventually(lambda: not alive(child))


def test_an_unknown_environment_cannot_be_killed(emulator: RunningEmulator) -> None:
    """Emulator-defined."""
    with pytest.raises(EmulatorError, match=r"no environment nobody-1\. Use one of: act-"):
        emulator.kill("nobody-1")


def test_a_restart_replaces_every_environment(emulator: RunningEmulator) -> None:
    """A deploy: what was in memory is gone."""
    before = pids(emulator) | pids(emulator, "echo")
    emulator.restart()
    assert not before & (pids(emulator) | pids(emulator, "echo"))
    assert not any(alive(pid) for pid in before)
    assert states(emulator) == states(emulator, "echo") == {"idle": 2}


def test_a_restart_lets_a_running_invocation_finish(emulator: RunningEmulator, eventually: Eventually) -> None:
    """AWS Lambda: an update of the alias does not end what is running."""
    before = pids(emulator)
    with ThreadPoolExecutor(1) as thread:
        pending = thread.submit(act, emulator.url, "sleep", seconds=1)
        eventually(lambda: states(emulator)["busy"] == 1)
        emulator.restart("act")
        assert not pending.done()
        assert act(emulator.url, "number", number=3).body == b"3"
        assert pending.result().body == b"slept"
    eventually(lambda: states(emulator) == {"idle": 2})
    assert not before & pids(emulator)


def test_a_restart_loads_the_code_anew(project: Project) -> None:
    """A deploy."""
    template = project("def handler(event, context): return 'old'")
    with emulator_in_thread(template, parameters={}) as running:
        assert send(running.url, "GET", "/").body == b"old"
        (template.parent / "main.py").write_text("def handler(event, context): return 'brand new'")
        running.restart()
        assert {send(running.url, "GET", "/").body for _ in range(4)} == {b"brand new"}


def test_a_restart_with_broken_code_leaves_the_old_environments_serving(project: Project) -> None:
    """AWS: a version that fails INIT does not get the alias."""
    template = project("def handler(event, context): return 'old'")
    with emulator_in_thread(template, parameters={}) as running:
        before = pids(running, "main")
        (template.parent / "main.py").write_text("import nowhere")
        with pytest.raises(InitError, match="nowhere"):
            running.restart()
        reply = send(running.url, "POST", "/_emulator/restart")
        assert (reply.status, "nowhere" in reply.json["message"]) == (500, True)
        assert send(running.url, "GET", "/").body == b"old"
        assert pids(running, "main") == before


def test_an_environment_that_cannot_be_replaced_answers_500_until_it_can(project: Project) -> None:
    """AWS Lambda: INIT is tried again with the next invocation."""
    template = project("def handler(event, context): return 'up'")
    with emulator_in_thread(template, parameters={}, environments=1) as running:
        (template.parent / "main.py").write_text("import nowhere")
        running.kill("main-1")
        assert [send(running.url, "GET", "/").status for _ in range(2)] == [500, 500]
        (template.parent / "main.py").write_text("def handler(event, context): return 'up again'")
        assert send(running.url, "GET", "/").body == b"up again"


def test_many_waiting_requests_all_learn_that_init_fails(project: Project) -> None:
    """Nobody waits for an environment that will not come."""
    template = project("def handler(event, context): return 'up'")
    with (
        emulator_in_thread(template, parameters={}, environments=1, max_environments=2) as running,
        ThreadPoolExecutor(5) as threads,
    ):
        (template.parent / "main.py").write_text("import nowhere")
        running.kill("main-1")
        assert {reply.status for reply in threads.map(lambda _: send(running.url, "GET", "/"), range(5))} == {500}


def test_a_process_that_dies_between_invocations_is_not_the_next_ones_problem(
    project: Project, eventually: Eventually
) -> None:
    """The death of an idle environment is no invocation error."""
    template = project("""
        import os, threading
        def handler(event, context):
            if event["rawPath"] == "/bomb":
                threading.Timer(0.05, os._exit, [7]).start()
            return "up"
    """)
    with emulator_in_thread(template, parameters={}, environments=1) as running:
        before = pids(running, "main")
        assert send(running.url, "GET", "/bomb").body == b"up"
        eventually(lambda: not before & pids(running, "main"))
        assert send(running.url, "GET", "/").body == b"up"


def test_a_port_in_use_is_an_error_with_a_remedy() -> None:
    """Emulator-defined."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        started = emulator_in_thread(SAMPLE, parameters=PARAMETERS, port=port)
        with pytest.raises(PortInUse, match=rf"Port {port} on 127\.0\.0\.1 is not free.*--port"), started:
            pass


def test_the_same_port_can_be_used_again_at_once(project: Project) -> None:
    """Ctrl-C and up again: TIME_WAIT must not get in the way."""
    template = project("def handler(event, context): return 'up'")
    with emulator_in_thread(template, parameters={}, environments=1) as running:
        # The side that closes first has to wait, so this connection outlives the server.
        connection = http.client.HTTPConnection("127.0.0.1", running.port)
        connection.request("GET", "/")
        connection.getresponse().read()
    connection.close()
    with emulator_in_thread(template, parameters={}, environments=1, port=running.port) as again:
        assert send(again.url, "GET", "/").body == b"up"


def test_the_emulator_needs_an_environment() -> None:
    """Emulator-defined."""
    with pytest.raises(EmulatorError, match="at least one environment"):
        Emulator(SAMPLE, parameters=PARAMETERS, environments=0)


def test_the_async_api_serves_and_leaves_nothing_behind() -> None:
    """Two emulators on one loop, with values that contain their own URL."""

    async def both() -> list[int | None]:
        async with (
            Emulator(SAMPLE, parameters=lambda url: {"Greeting": f"{url}/mcp"}, environments=1) as one,
            Emulator(
                SAMPLE, parameters=PARAMETERS, environment=lambda url: {"GREETING": f"at {url}"}, environments=1
            ) as other,
        ):
            first, second = await asyncio.gather(
                *(asyncio.to_thread(send, emulator.url, "GET", "/echo") for emulator in (one, other))
            )
            assert first.json["environ"]["GREETING"] == f"{one.url}/mcp"
            assert second.json["environ"]["GREETING"] == f"at {other.url}"
            await one.restart("echo")
            await other.kill("echo-1")
            running = [*one.environments(), *other.environments()]
            return [info.pid for info in running if info.state != "starting"]

    processes = asyncio.run(both())
    assert len(processes) == 3
    assert not any(alive(pid) for pid in processes)


def test_a_start_that_is_cancelled_leaves_no_process(project: Project, eventually: Eventually) -> None:
    """Ctrl-C while a slow handler is being imported."""
    template = project("""
        import pathlib, os, time
        pathlib.Path("pid").write_text(str(os.getpid()))
        time.sleep(600)
    """)
    mark = template.parent / "pid"

    async def cancelled() -> None:
        async def enter() -> None:
            async with Emulator(template, parameters={}, environments=1):
                pass

        task = asyncio.create_task(enter())
        while not (mark.exists() and mark.read_text()):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert not alive(int(mark.read_text()))


def test_leaving_does_not_wait_for_requests_in_flight(caplog: pytest.LogCaptureFixture) -> None:
    """Ctrl-C while a handler hangs: its clients get an answer, the terminal gets no traceback."""
    with emulator_in_thread(SAMPLE, parameters=PARAMETERS, environments=1, max_environments=1) as running:
        connections = [http.client.HTTPConnection("127.0.0.1", running.port) for _ in range(3)]
        for connection in connections:
            body = json.dumps({"do": "sleep", "seconds": 1.9})
            connection.request("POST", "/act", body, {"Content-Type": "application/json"})
        leaving = time.time()
    assert time.time() - leaving < 1
    assert [connection.getresponse().status for connection in connections] == [500, 500, 500]
    for connection in connections:
        connection.close()
    assert not caplog.records


def test_an_init_that_takes_too_long_is_given_up(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS Lambda limits INIT too."""
    monkeypatch.setattr("infra.local.emulator.environment.INIT_TIMEOUT_SECONDS", 0.3)
    template = project("import time; time.sleep(600)")
    started = emulator_in_thread(template, parameters={}, environments=1)
    with pytest.raises(InitError, match=r"main-1 did not finish INIT.*main\.handler does at import time"), started:
        pass


def test_the_emulator_adds_little_to_each_request(emulator: RunningEmulator) -> None:
    """One segment held back by Nagle's algorithm would cost 40 ms on every request."""
    connection = http.client.HTTPConnection("127.0.0.1", emulator.port)
    durations = []
    for _ in range(30):
        began = time.perf_counter()
        connection.request("GET", "/echo")
        connection.getresponse().read()
        durations.append(time.perf_counter() - began)
    connection.close()
    assert statistics.median(durations) < 0.03


def test_the_log_callback_gets_each_line_with_the_name_of_its_environment(project: Project) -> None:
    """Emulator-defined; a last line without a newline counts."""
    template = project("""
        import sys
        def handler(event, context):
            sys.stderr.write("to stderr\\nunfinished")
            return "up"
    """)
    lines: list[str] = []
    with emulator_in_thread(template, parameters={}, environments=1, log=lines.append) as running:
        send(running.url, "GET", "/")
    assert lines == running.logs() == ["main-1 | to stderr", "main-1 | unfinished"]

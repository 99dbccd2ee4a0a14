"""`make call` at a terminal: what is typed, what is not, and where nothing answers."""

import socket
import subprocess
import sys

from tests.conftest import RunningStack


def call(*arguments: str, typed: str = "") -> "subprocess.CompletedProcess[str]":
    """Run the command with these lines at its terminal, which ends after them."""
    command = (sys.executable, "-m", "infra.local.call", *arguments)
    return subprocess.run(command, input=typed, capture_output=True, text=True, timeout=60, check=False)


def test_a_terminal_that_ends_dismisses_the_question(stack: RunningStack) -> None:
    """client/elicitation, Response Actions: cancel is to dismiss without an explicit choice."""
    done = call("delete_report", '{"target": "Q1"}', "--url", stack.mcp_url)
    assert "The user dismissed the question. The report Q1 is still there." in done.stdout
    assert "Traceback" not in done.stderr


def test_a_tick_is_yes_or_no_and_nothing_in_between(stack: RunningStack) -> None:
    """`maybe` would silently be a no."""
    done = call("delete_report", '{"target": "Q1"}', "--url", stack.mcp_url, typed="a\nmaybe\nn\n")
    assert "(y or n): " in done.stdout
    assert "Type y or n: " in done.stdout
    assert "The user declined. The report Q1 is still there." in done.stdout


def test_a_tool_that_is_not_served_gets_the_list_and_the_way_into_it(stack: RunningStack) -> None:
    done = call("archive_report", "{}", "--url", stack.mcp_url)
    assert done.returncode == 1
    assert "The tools are: delete_report" in done.stdout
    assert done.stdout.rstrip().endswith(f"curl -X POST {stack.stack.emulator.url}/_emulator/restart")


def test_no_tool_and_nobody_there_are_told_with_the_remedy() -> None:
    unnamed = call("", "{}")
    assert unnamed.returncode == 2
    assert "make call TOOL=archive_report" in unnamed.stderr
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/mcp"
        nobody = call("delete_report", "{}", "--url", url)
    assert nobody.stderr.startswith(f"Nothing answers at {url}: start the stack")
    assert "CALL='--url http://127.0.0.1:PORT/mcp'" in nobody.stderr

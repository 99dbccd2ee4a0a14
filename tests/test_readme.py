"""The README: every block of code is run, every command is given to a shell, every claim of a figure is checked."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from app import strict_json
from app.principal import Principal
from app.protocol.request_state import Binding, digest
from app.sealing import Purpose, Seal
from app.testing import CLIENT_ID, ISSUER, RESOURCE, Client, Server
from app.tools import TOOLS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def namespace() -> dict[str, Any]:
    """What the Python blocks define, run in their order."""
    namespace: dict[str, Any] = {"__name__": "readme"}
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), namespace)  # noqa: S102
    return namespace


def test_the_example_tool_and_its_test_run_as_they_stand(namespace: dict[str, Any]) -> None:
    """README, A tool."""
    assert isinstance(namespace["alice"], Client)
    assert len(blocks("python")) == 3
    assert namespace["my_login"].definition()["annotations"] == {"readOnlyHint": True}


def test_what_travels_is_what_the_server_sends(namespace: dict[str, Any]) -> None:
    """README, What travels: the result as it is, but for salt and server info."""
    shown, claims = (json.loads(block) for block in blocks("json"))
    sent = namespace["alice"].rounds[0].result
    del sent["_meta"]
    assert {**sent, "requestState": shown["requestState"]} == shown
    assert len(sent["requestState"]) == len(shown["requestState"])

    server: Server = namespace["server"]
    arguments = strict_json.canonical({"target": "Q3"})
    binding = Binding(RESOURCE, Principal(ISSUER, "alice", CLIENT_ID), "tools/call", "delete_report", arguments)
    opened = Seal(server.keyring, Purpose.REQUEST_STATE).open(shown["requestState"], bound_to=binding.fields())
    assert opened == {**claims, "q": {"confirm": digest(shown["inputRequests"]["confirm"])}}


def test_every_variable_of_the_table_is_read_and_none_is_missing() -> None:
    """README, Deploying."""
    listed = set(re.findall(r"^\| `(MCP_\w+)`", README, re.MULTILINE))
    sources = "".join((ROOT / f"app/{name}.py").read_text() for name in ("settings", "connection_settings"))
    read = {f"MCP_{name}" for name in re.findall(r'value\("(\w+)"', sources)}
    assert listed == read - {"MCP_STAGE", "MCP_SEALING_KEY_FILE"}


def test_every_runtime_dependency_has_its_reason() -> None:
    """README, Dependencies."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = {re.split(r"[<>=]", each)[0] for each in project["project"]["dependencies"]} | {"boto3"}
    rows = README.split("## Dependencies")[1]
    named = {name for row in re.findall(r"^\| ([a-z0-9, -]+) \|", rows, re.MULTILINE) for name in row.split(", ")}
    assert named == wanted


def test_the_map_names_what_is_there() -> None:
    """README, The map."""
    (shown,) = blocks("text")
    for path in re.findall(r"^(\S+)", shown, re.MULTILINE):
        assert (ROOT / path).exists(), path


@contextmanager
def running(*arguments: str) -> Iterator[tuple[str, str]]:
    """`make run` on free ports: the URL of the gateway, and everything that was printed until it was ready."""
    command = ["make", "run", f"RUN=--port 0 --identity-port 0 --hub-port 0 {' '.join(arguments)}"]
    # A group of its own: make passes no signal on to what it started.
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        printed = ""
        try:
            for line in process.stdout:
                printed += line
                if line.startswith("Ctrl-C"):
                    break
            url = re.search(r"http://127\.0\.0\.1:\d+(?=/mcp)", printed)
            assert url is not None, printed
            yield url[0], printed
        finally:
            os.killpg(process.pid, signal.SIGINT)
            process.stdout.read()


def shell(command: str, *, typed: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command], cwd=ROOT, input=typed, text=True, capture_output=True, timeout=120, check=False
    )


@pytest.mark.slow
def test_the_commands_do_what_the_readme_says() -> None:
    """README, Two commands. `make test` is what runs this test."""
    commands = [line for block in blocks("sh") for line in block.splitlines()]
    run, demo, call, restart, test = commands
    assert (run, demo, test) == ("make run", "make demo", "make test")
    with running("--quiet") as (url, printed):
        assert f"{url}/mcp" in printed
        called = shell(f"{call} CALL='--url {url}/mcp'", typed="a\nyes\n")
        assert "The report Q3 is deleted." in called.stdout, called
        restarted = shell(restart.replace("http://127.0.0.1:8000", url))
        assert restarted.returncode == 0, restarted
        again = shell(f"{call} CALL='--url {url}/mcp'", typed="d\n")
        assert "declined" in again.stdout, again
    shown = shell(demo)
    assert shown.returncode == 0, shown
    assert re.search(r"round 1 +served by mcp-\d", shown.stdout)
    assert re.search(r"round 2 +served by mcp-\d", shown.stdout)
    assert "The report Q3 is deleted." in shown.stdout


def test_a_port_in_use_gets_a_sentence_with_the_remedy() -> None:
    """Bad input gets a clear error that says what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = ("--port", "--identity-port", "--hub-port")
        for option in options:
            other = " ".join(f"{each} 0" for each in options if each != option)
            refused = shell(f"{sys.executable} -m infra.local {option} {port} {other}")
            assert refused.returncode == 1
            assert f"Port {port} on 127.0.0.1 is not free" in refused.stderr
            assert refused.stderr.rstrip().endswith(f"with {option}.")
            assert "Traceback" not in refused.stderr


def test_the_example_tools_are_the_ones_that_are_served() -> None:
    """README, Your own tools: a tool is served when app/tools/__init__.py imports it."""
    files = {path.stem for path in (ROOT / "app/tools").glob("*.py")} - {"__init__", "desk", "hub"}
    assert {tool.name for tool in TOOLS} == files

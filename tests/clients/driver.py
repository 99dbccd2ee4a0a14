"""The official TypeScript client in a process of its own, driven over JSON lines."""

import contextlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from infra.local.identity import sign_in
from tests.clients.nodejs import required

FOLDER: Final = Path(__file__).parent / "typescript"


class Driver:
    """The driver process, one JSON line each way."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def send(self, command: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the driver ended"
        reply: dict[str, Any] = json.loads(line)
        return reply

    def command(self, **command: Any) -> dict[str, Any]:
        self.send(command)
        return self.receive()


@contextlib.contextmanager
def typescript_client(mcp_url: str, *, user: str, **options: Any) -> Iterator[tuple[Driver, list[str]]]:
    """A connected client and the tools that it lists. It found the authorization server and registered by itself.

    `options` are `mode` and `capabilities`. Skips the test where there is no Node.js.
    """
    node, packages = required(FOLDER)
    # A module finds its packages from where it lies.
    script = shutil.copy(FOLDER / "driver.mjs", packages)
    with subprocess.Popen([node, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        driver = Driver(process)
        try:
            asked = driver.command(connect=mcp_url, **options)
            connected = driver.command(redirect=sign_in(asked["authorize"], user=user))
            yield driver, connected["connected"]
            driver.send({})
            process.wait(timeout=10)
        finally:
            process.kill()

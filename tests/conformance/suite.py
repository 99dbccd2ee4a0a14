"""The official conformance suite's command line: run within a time limit, and its checks read from its files."""

import json
import re
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.clients.nodejs import required

FOLDER: Final = Path(__file__).parent / "npm"

_ENTRY: Final = Path("node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
_RESULTS: Final = re.compile(r"(?P<name>.+)-\d{4}-\d\d-\d\dT[\d-]+Z$")
_LISTED: Final = re.compile(r"^ +- (\S+)", re.MULTILINE)
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
# Warnings are fatal only where there is a list of expected failures: an empty one.
_NO_EXPECTED_FAILURES: Final = "server: []\n"


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a scenario. `status` is SUCCESS, FAILURE, WARNING, SKIPPED or INFO."""

    id: str
    status: str
    message: str

    @property
    def is_problem(self) -> bool:
        return self.status not in ("SUCCESS", "SKIPPED", "INFO")

    def __str__(self) -> str:
        return f"{self.status} {self.id}: {self.message}"


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of the suite said."""

    exit_code: int
    output: str
    checks: Mapping[str, Sequence[Check]]
    """By scenario."""

    def problems(self, scenario: str) -> list[str]:
        """Every failure and warning of a scenario, with its message."""
        return [str(check) for check in self.checks[scenario] if check.is_problem]

    def all_problems(self) -> list[str]:
        return [f"{scenario}: {problem}" for scenario in self.checks for problem in self.problems(scenario)]

    def count(self, status: str) -> int:
        """How many checks ended so, over all scenarios."""
        return sum(check.status == status for checks in self.checks.values() for check in checks)


@dataclass(frozen=True, slots=True)
class Suite:
    """The suite, installed."""

    command: tuple[str, ...]

    @classmethod
    def installed(cls) -> "Suite":
        """Skips the test where it cannot be installed."""
        node, packages = required(FOLDER)
        return cls((str(node), str(packages / _ENTRY)))

    def server(self, url: str, *options: str, output: Path, seconds: float = 240) -> Run:
        """Test a server. `output` is a folder of its own for this run."""
        baseline = output / "expected-failures.yml"
        output.mkdir(parents=True)
        baseline.write_text(_NO_EXPECTED_FAILURES)
        # The scenarios that a revision requires are judged against nothing but themselves.
        strict = () if "--requirements" in options else ("--expected-failures", str(baseline))
        done = subprocess.run(
            [*self.command, "server", "--url", url, *options, *strict, "-o", str(output)],
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        return Run(done.returncode, _COLOUR.sub("", done.stdout + done.stderr), read_checks(output, command="server"))

    def authorization(
        self, url: str, *options: str, sign_in: Callable[[str], None], output: Path, seconds: float = 60
    ) -> Run:
        """Test an authorization server. `sign_in` is what the person does with the link that the suite prints."""
        command = [*self.command, "authorization", "--url", url, *options, "-o", str(output)]
        lines: list[str] = []
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            # Without its callback the suite waits for five minutes.
            deadline = threading.Timer(seconds, process.kill)
            deadline.start()
            try:
                assert process.stdout is not None
                for line in process.stdout:
                    lines.append(line)
                    if line.startswith(url):
                        sign_in(line.strip())
                process.wait()
            finally:
                deadline.cancel()
                process.kill()
        return Run(
            process.returncode, _COLOUR.sub("", "".join(lines)), read_checks(output, command="authorization-server")
        )

    def listed(self, *options: str) -> list[str]:
        """The names of the scenarios that the suite has, for `options` of its `list` command."""
        done = subprocess.run([*self.command, "list", *options], capture_output=True, text=True, timeout=60, check=True)
        return _LISTED.findall(_COLOUR.sub("", done.stdout))


def read_checks(folder: Path, *, command: str) -> dict[str, list[Check]]:
    """The checks of each scenario of a run that wrote to `folder`."""
    return dict(_each_scenario(folder, f"{command}-"))


def _each_scenario(folder: Path, prefix: str) -> Iterator[tuple[str, list[Check]]]:
    for path in sorted(folder.glob("*/checks.json")):
        found = _RESULTS.match(path.parent.name)
        if found is None or not found["name"].startswith(prefix):
            raise ValueError(f"{path.parent.name} is no scenario's folder: the suite names them differently now")
        checks = json.loads(path.read_text(encoding="utf-8"))
        yield found["name"].removeprefix(prefix), [_check(each) for each in checks]


def _check(check: Mapping[str, Any]) -> Check:
    said = check.get("errorMessage") or check.get("details", {}).get("message") or check["description"]
    return Check(check["id"], check["status"], str(said))

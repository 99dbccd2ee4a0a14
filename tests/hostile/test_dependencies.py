"""Known vulnerabilities of what uv.lock installs: `uv audit`, which asks the advisory database osv.dev."""

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parent.parent.parent
_FOUND, _FAILED = 1, 2
_NOT_REACHED: Final = ("error sending request", "Request failed", "HTTP status", "error decoding response")


class NotReached(Exception):
    """The database did not answer. The message says why, as far as uv does."""


def audit(service: str | None = None) -> str:
    """What is known against the locked packages, or "". Raises NotReached."""
    command = [sys.executable, "-m", "uv", "audit", "--frozen", "--preview-features", "audit-command"]
    if service is not None:
        command += ["--service-url", service]
    variables = {**os.environ, "UV_HTTP_TIMEOUT": "10", "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode == _FAILED and any(each in done.stderr for each in _NOT_REACHED):
        raise NotReached(done.stderr.strip().splitlines()[-1])
    assert done.returncode in (0, _FOUND), f"uv audit did not work:\n{done.stderr}"
    return done.stdout if done.returncode == _FOUND else ""


def test_no_locked_package_has_a_known_vulnerability() -> None:
    """Upgrade what is named here: `uv lock --upgrade-package NAME`. Where it cannot matter, ignore it in
    [tool.uv.audit] with the reason beside it.
    """
    try:
        known = audit()
    except NotReached as error:
        pytest.skip(f"NO AUDIT: osv.dev could not be asked about uv.lock ({error}). Run this test where it can be.")
    assert known == ""


@contextlib.contextmanager
def database(vulnerable: str | None, *, status: int = 200) -> Iterator[str]:
    """A small osv.dev on this machine, which knows of one package or of none."""
    advisory = {"id": "GHSA-0000-0000-0000", "modified": "2026-01-01T00:00:00Z", "summary": "bad", "affected": []}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))["queries"]
            known = {"vulns": [{"id": advisory["id"], "modified": advisory["modified"]}]}
            self._answer({"results": [known if each["package"]["name"] == vulnerable else {} for each in asked]})

        def do_GET(self) -> None:
            self._answer(advisory)

        def _answer(self, document: object) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("package", ["pyjwt", "pytest"])
def test_an_advisory_about_any_locked_package_is_found(package: str) -> None:
    """What runs in production, and what runs on developers' machines only."""
    with database(package) as service:
        assert package in audit(service)


def test_without_advisories_nothing_is_found() -> None:
    """The other half of the one above."""
    with database(None) as service:
        assert audit(service) == ""


def test_a_database_that_fails_is_not_taken_for_one_that_knows_nothing() -> None:
    """A skipped audit must not look like one that found nothing."""
    with database(None, status=403) as service, pytest.raises(NotReached):
        audit(service)

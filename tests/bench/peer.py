"""A peer: what is started, with what on its path; and a peer that runs."""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from app.strict_json import JsonObject


@dataclass(frozen=True, slots=True)
class Peer:
    """Something that serves the workload. `artefact` is every folder or file that it needs, but the interpreter."""

    name: str
    command: tuple[str, ...]
    artefact: tuple[Path, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    def configured(self, **environment: str) -> "Peer":
        return replace(self, environment={**self.environment, **environment})


class WorkerEnded(Exception):
    """A peer's process ended instead of answering. The message is the end of what it wrote."""


@dataclass(frozen=True, slots=True)
class Start:
    """One cold start: a whole process, from its start to its first answer."""

    wall_ms: float
    cpu_ms: float
    import_ms: float
    first_call_ms: float
    peak_mib: float
    modules: int
    answer: JsonObject


class Worker:
    """A peer's process. Every method waits for the reply."""

    def __init__(self, peer: Peer, environment: Mapping[str, str]) -> None:
        self.peer = peer
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed by `close`
        self._process = subprocess.Popen(
            peer.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={"PATH": os.defpath, **environment, **peer.environment},
        )

    def send(self, do: str, **command: Any) -> JsonObject:
        """One command to the worker, and its reply. Raises WorkerEnded."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **command}).encode() + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = b""
        if not line:
            raise WorkerEnded(f"{self.peer.name}: {self.log()}")
        reply: JsonObject = json.loads(line)
        return reply

    def log(self) -> str:
        """The end of what the process has logged."""
        self._errors.seek(0)
        return self._errors.read()[-2000:].decode(errors="replace")

    def close(self) -> float:
        """End the process. Returns the seconds of CPU that it took, in all."""
        if self._process.returncode is not None:
            return 0.0
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        _, status, usage = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        self._process.stdout.close()
        self._errors.close()
        return usage.ru_utime + usage.ru_stime


@contextmanager
def running(peer: Peer, environment: Mapping[str, str]) -> Iterator[Worker]:
    """A warm peer: its process, as long as the block runs."""
    worker = Worker(peer, environment)
    try:
        yield worker
    finally:
        worker.close()


def cold_start(peer: Peer, environment: Mapping[str, str], command: JsonObject) -> Start:
    """Start a process, let it answer one request, and end it. Raises WorkerEnded."""
    started = time.perf_counter()
    worker = Worker(peer, environment)
    try:
        reply = worker.send("call", **command)
        wall = time.perf_counter() - started
    finally:
        cpu = worker.close()
    return Start(
        wall_ms=wall * 1000,
        cpu_ms=cpu * 1000,
        import_ms=reply["import_ns"] / 1e6,
        first_call_ms=reply["ns"] / 1e6,
        peak_mib=reply["peak_kib"] / 1024,
        modules=reply["modules"],
        answer=reply["answer"],
    )

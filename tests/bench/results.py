"""Everything that one run found, and on what it ran. No path and no name of the machine."""

import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tests.bench.cold import Cold
from tests.bench.growth import CarriedState, ManyTools
from tests.bench.peer import Peer
from tests.bench.size import Size
from tests.bench.staging import deployed_python, version_of
from tests.bench.store import UrlMode
from tests.bench.warm import Warm


@dataclass(frozen=True, slots=True)
class Results:
    """What was measured, by the name of the peer. What a short run leaves out is empty."""

    started: datetime
    seed: int
    machine: str
    load: float
    """What else ran when it began, in processes: above a half, times are worth less."""
    versions: Mapping[str, str]
    skipped: Mapping[str, str]
    cold: Mapping[str, Cold]
    cold_keys_in_process: Mapping[str, Cold]
    warm: Mapping[str, Warm]
    tools: Mapping[str, Sequence[ManyTools]]
    state: Mapping[str, Sequence[CarriedState]]
    url_mode: UrlMode
    sizes: Mapping[str, Size]


def machine() -> str:
    """The processor, the cores and the operating system."""
    return f"{_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.release().split('-')[0]}"


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else platform.machine()


def versions(peers: Iterable[Peer], node: str | None, npm: Mapping[str, str]) -> dict[str, str]:
    """The interpreters, and of each peer what it is made of, from its artefact."""
    named = ("mcp", "fastmcp", "fastapi", "mangum", "pydantic", "starlette", "pyjwt", "cryptography", "redis")
    found = {"Python": version_of(deployed_python()).removeprefix("Python ")}
    if node is not None:
        found["Node.js"] = node.removeprefix("v")
    for peer in peers:
        for folder in peer.artefact:
            for each in folder.glob("*.dist-info"):
                name, _, version = each.name.removesuffix(".dist-info").partition("-")
                if name in named:
                    found[name] = version
    return {**found, **npm}

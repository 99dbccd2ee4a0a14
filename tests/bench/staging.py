"""What each peer needs, laid out as its deployment would be: .bench/<peer> with the locked dependencies and the code.

Every Python peer runs on the same bare interpreter, finds nothing but its own folders, and has its bytecode compiled:
a folder that imports from this machine by accident fails here, and not in a comparison.
"""

import hashlib
import json
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

from infra.build import BuildError, find_python, locked_requirements, targets
from tests.bench.peer import Peer

ROOT: Final = Path(__file__).parent.parent.parent
HERE: Final = Path(__file__).parent
PEERS: Final = HERE / "peers"
STAGE: Final = ROOT / ".bench"
TYPESCRIPT: Final = PEERS / "typescript"

FLOOR: Final = "floor"
MCP: Final = "handlers/mcp.py"
WEB: Final = "handlers/web.py"
DESK: Final = "handlers/mcp.py, 8 tools"
OFFICIAL_SDK: Final = "official SDK"
FASTMCP: Final = "FastMCP"
TYPESCRIPT_SDK: Final = "TypeScript SDK"

ONE_TOOL: Final = PEERS / "roundtrip_tools.py"
DESK_TOOLS: Final = ROOT / "infra" / "local" / "desk" / "tools.py"


class NotAvailable(Exception):
    """A peer cannot be had on this machine. The message says why, and what would help."""


def bare_python() -> str:
    """The interpreter under the virtual environment that runs this."""
    return getattr(sys, "_base_executable", sys.executable)


@cache
def deployed_python() -> str:
    """The interpreter of the peers: the Python of template.yaml, or the one that runs this where it is not here."""
    version = targets()["McpFunction"].python
    if platform.python_version().startswith(f"{version}."):
        return bare_python()
    found = find_python(version)
    if found is None:
        print(f"*** NO PYTHON {version} HERE: the peers run on {platform.python_version()} ***", file=sys.stderr)
    return str(found.resolve()) if found else bare_python()


def python_peer(name: str, module: str, artefact: Iterable[Path], worker: Path, *, python: str | None = None) -> Peer:
    """A peer whose handler is in a Python module, found in `artefact` and nowhere else."""
    folders = tuple(artefact)
    return Peer(
        name=name,
        # -S and -P: nothing of this machine's site-packages, nothing beside the worker.
        command=(python or deployed_python(), "-S", "-P", str(worker), module),
        artefact=folders,
        environment={"PYTHONPATH": ":".join(map(str, folders)), "LANG": "C.UTF-8"},
    )


def compiled_worker() -> Path:
    """worker.py as bytecode: a script would be compiled anew in every cold start."""
    compiled = STAGE / "worker.pyc"
    source = "import py_compile, sys; py_compile.compile(sys.argv[1], cfile=sys.argv[2], doraise=True)"
    subprocess.run((deployed_python(), "-c", source, str(HERE / "worker.py"), str(compiled)), check=True)
    return compiled


def copy_of_project(target: Path, *, tools: Path) -> Path:
    """Our code as it is deployed, with the tools of this file in place of app/tools, which may serve anything."""
    shutil.rmtree(target, ignore_errors=True)
    for package in ("app", "handlers"):
        shutil.copytree(ROOT / package, target / package, ignore=shutil.ignore_patterns("__pycache__"))
    (target / "app" / "testing.py").unlink()
    shutil.rmtree(target / "app" / "tools")
    (target / "app" / "tools").mkdir()
    shutil.copy2(tools, target / "app" / "tools" / "__init__.py")
    shutil.copy2(PEERS / "roundtrip_in_process.py", target)
    return target


def python_peers() -> list[Peer]:
    """The peers in Python, ready to start. The floor comes first: the others are compared with it."""
    worker = compiled_worker()
    ours = installed("roundtrip", _locked())
    with_pages = installed("roundtrip-web", _locked("web"))
    one_tool = compiled(copy_of_project(STAGE / "roundtrip-code", tools=ONE_TOOL))
    desk = compiled(copy_of_project(STAGE / "roundtrip-desk-code", tools=DESK_TOOLS))
    floor = installed("floor", _only(_locked("dev"), ("cffi", "cryptography", "pycparser", "pyjwt")))
    sdk = installed("official-sdk", (PEERS / "official_sdk.txt").read_text())
    fastmcp = installed("fastmcp", (PEERS / "fastmcp.txt").read_text())
    return [
        python_peer(FLOOR, "floor", (_code("floor"), floor), worker),
        python_peer(MCP, "handlers.mcp", (one_tool, ours), worker),
        python_peer(DESK, "handlers.mcp", (desk, ours), worker),
        python_peer(WEB, "handlers.web", (one_tool, with_pages), worker),
        python_peer(OFFICIAL_SDK, "official_sdk", (_code("official_sdk"), sdk), worker),
        python_peer(FASTMCP, "fastmcp_server", (_code("fastmcp_server"), fastmcp), worker),
    ]


def keys_in_process(peer: Peer) -> Peer:
    """The same peer, where its key set is in its environment: ours takes another source of documents for that."""
    *command, module = peer.command
    return Peer(
        name=peer.name,
        command=(*command, "roundtrip_in_process" if module == "handlers.mcp" else module),
        artefact=peer.artefact,
        environment=peer.environment,
    )


def typescript_peer() -> Peer:
    """The peer in TypeScript: one bundled file. Raises NotAvailable."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise NotAvailable("there is no Node.js here: install Node.js 20 or newer with npm")
    folder = STAGE / "typescript"
    bundle = folder / "bundle.cjs"
    sources = [TYPESCRIPT / name for name in ("package.json", "package-lock.json", "server.mjs")]
    stamp = _stamp(*(each.read_text() for each in sources), version_of(node))
    if not _is_fresh(folder, stamp):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for each in sources:
            shutil.copy2(each, folder)
        for command in (("ci", "--no-audit", "--no-fund", "--ignore-scripts"), ("run", "--silent", "bundle")):
            run = subprocess.run((npm, *command), cwd=folder, capture_output=True, text=True, check=False)
            if run.returncode:
                raise NotAvailable(f"npm {command[0]} failed, is the registry reachable? {run.stderr[-500:].strip()}")
        _mark(folder, stamp)
    alone = folder / "deployed" / "bundle.cjs"
    alone.parent.mkdir(exist_ok=True)
    shutil.copy2(bundle, alone)
    return Peer(TYPESCRIPT_SDK, (node, str(HERE / "worker.mjs"), str(alone)), (alone.parent,))


def chart_converter() -> Path:
    """A folder with the package that makes PNG of SVG. Raises NotAvailable."""
    return installed("charts", (PEERS / "charts.txt").read_text())


def installed(name: str, requirements: str) -> Path:
    """A folder with exactly these distributions, hashes checked, and their bytecode. Raises NotAvailable."""
    folder = STAGE / name
    stamp = _stamp(requirements, deployed_python(), version_of(deployed_python()))
    if _is_fresh(folder, stamp):
        return folder
    print(f"Installing {name} into .bench ...", file=sys.stderr)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    listed = STAGE / f"{name}.txt"
    listed.write_text(requirements)
    # Copied: what is compiled here must not appear in the cache that other environments link to.
    install = ("pip", "install", "--quiet", "--require-hashes", "--link-mode", "copy", "--python", deployed_python())
    run = _uv(*install, "--target", str(folder), "-r", str(listed))
    if run.returncode:
        raise NotAvailable(f"{name} cannot be installed, is the registry reachable? {run.stderr[-500:].strip()}")
    # Commands, which no deployment needs.
    shutil.rmtree(folder / "bin", ignore_errors=True)
    compiled(folder)
    _mark(folder, stamp)
    return folder


def compiled(folder: Path) -> Path:
    """The folder, with the bytecode of everything in it."""
    # Not checked: some packages bring templates and files for other versions that do not compile.
    subprocess.run((deployed_python(), "-m", "compileall", "-q", "-q", str(folder)), check=False)
    return folder


def _code(module: str) -> Path:
    folder = STAGE / f"{module.replace('_', '-')}-code"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy2(PEERS / f"{module}.py", folder)
    return compiled(folder)


def _locked(*groups: str) -> str:
    """uv.lock as requirements with hashes, as the artefacts are built from it."""
    try:
        return locked_requirements(groups)
    except BuildError as error:
        raise NotAvailable(str(error)) from error


def _only(requirements: str, names: Iterable[str]) -> str:
    """The entries of a requirements file that name one of these distributions, with their hashes."""
    entries = requirements.replace("\\\n", "\\").splitlines()
    kept = [entry for entry in entries if entry.split("==")[0] in set(names)]
    return "\n".join(kept).replace("\\", "\\\n") + "\n"


def _uv(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run((sys.executable, "-m", "uv", *arguments), capture_output=True, text=True, check=False)


def version_of(program: str) -> str:
    return subprocess.run((program, "--version"), capture_output=True, text=True, check=True).stdout.strip()


def _stamp(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _is_fresh(folder: Path, stamp: str) -> bool:
    marker = folder.with_suffix(".stamp")
    return marker.exists() and marker.read_text() == stamp


def _mark(folder: Path, stamp: str) -> None:
    folder.with_suffix(".stamp").write_text(stamp)

"""Builds what Lambda runs: locked dependencies for its platform, app/ and handlers/, compiled for its Python.

    python -m infra.build                             both functions into build/, with their zips
    python -m infra.build McpFunction --into FOLDER   one function, as `sam build` asks for it (Makefile)

The packages are the locked ones, verified by hash: those of `[project] dependencies`, and those of the dependency
group that is named as the handler's file, if there is one. boto3 is Lambda's own.
"""

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from infra.local.emulator.errors import TemplateError
from infra.local.emulator.intrinsics import parse

ROOT: Final = Path(__file__).parent.parent
OURS: Final = ("app", "handlers")

PLATFORMS: Final = {"arm64": "aarch64-unknown-linux-gnu", "x86_64": "x86_64-unknown-linux-gnu"}

# Lambda takes 250 MB. Far below that a package that nobody meant to add is noticed on the day it comes.
MAX_UNPACKED_MB: Final = 60
MAX_ZIPPED_MB: Final = 20

# In the runtime already; a second copy would be 24 MB, and the one that is imported.
_IN_THE_RUNTIME: Final = ("boto3", "botocore", "awslambdaric")

# What `pip install --target` leaves and no import reads.
_NOT_NEEDED: Final = ("bin", ".lock")
_ZIP_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_MB: Final = 1_000_000


class BuildError(Exception):
    """The artefact cannot be built. The message ends with the remedy."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """What one function runs on, and which locked packages it gets."""

    function: str
    group: str
    architecture: str
    python: str

    @property
    def platform(self) -> str:
        return PLATFORMS[self.architecture]


@dataclass(frozen=True, kw_only=True)
class Artefact:
    """A built function: its folder, and its size in bytes."""

    folder: Path
    unpacked: int
    compiled: bool


def targets(template: Path = ROOT / "template.yaml") -> dict[str, Target]:
    """The functions of the template by logical id: its Architectures and its Runtime decide what is built."""
    document = parse(template.read_text(encoding="utf-8"))
    shared = document.get("Globals", {}).get("Function", {})
    found: dict[str, Target] = {}
    for name, resource in document["Resources"].items():
        if resource["Type"] != "AWS::Serverless::Function":
            continue
        properties = {**shared, **resource.get("Properties", {})}
        runtime, architecture = str(properties.get("Runtime")), properties.get("Architectures", ["x86_64"])[0]
        if not runtime.startswith("python3.") or architecture not in PLATFORMS:
            raise BuildError(f"{name} has {runtime} on {architecture}: use python3.x on one of {', '.join(PLATFORMS)}.")
        found[name] = Target(
            function=name,
            group=str(properties["Handler"]).split(".")[-2],
            architecture=architecture,
            python=runtime.removeprefix("python"),
        )
    return found


def build(target: Target, folder: Path, *, root: Path = ROOT) -> Artefact:
    """Build into the folder, which is emptied first. Raises BuildError, and says loudly what it left out."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _install(target, folder, root)
    for name in OURS:
        shutil.copytree(root / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    # What a template's user tests with has no business in a function.
    (folder / "app" / "testing.py").unlink(missing_ok=True)
    for name in _NOT_NEEDED:
        _remove(folder / name)
    if unwanted := [name for name in _IN_THE_RUNTIME if (folder / name).exists()]:
        raise BuildError(
            f"{', '.join(unwanted)} came along, and the Lambda runtime has it. Find out for what with "
            f"`uv tree --invert --package {unwanted[0]}`, and move that to a dependency group."
        )
    compiled = _compile(folder, target.python)
    return Artefact(folder=folder, unpacked=_checked_size(folder), compiled=compiled)


def pack(artefact: Artefact, archive: Path) -> int:
    """Zip the artefact, the same bytes for the same content; returns the size. Raises BuildError if it is too big."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in _files(artefact.folder):
            entry = zipfile.ZipInfo(path.relative_to(artefact.folder).as_posix(), _ZIP_EPOCH)
            entry.external_attr = (0o755 if os.access(path, os.X_OK) else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(entry, path.read_bytes())
    size = archive.stat().st_size
    if size > MAX_ZIPPED_MB * _MB:
        raise BuildError(_too_big(archive.name, size, MAX_ZIPPED_MB, "MAX_ZIPPED_MB"))
    return size


def find_python(version: str) -> Path | None:
    """An interpreter of this version, like "3.13": this one, one on PATH, or one of pyenv's. None if there is none."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    on_path = shutil.which(f"python{version}")
    candidates = [sys.executable, *([on_path] if on_path else [])]
    candidates += [str(path) for path in sorted(pyenv.glob(f"versions/{version}*/bin/python{version}"), reverse=True)]
    for candidate in candidates:
        # pyenv puts commands on PATH that only say that they are not there.
        asked = subprocess.run(
            [candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=False,
        )
        if asked.returncode == 0 and asked.stdout.strip() == version:
            return Path(candidate)
    return None


def run_uv(*arguments: str | Path, root: Path = ROOT) -> str:
    """What uv prints. Raises BuildError with what it complained about."""
    uv = Path(sysconfig.get_path("scripts")) / "uv"
    command = [str(uv) if uv.exists() else "uv", *map(str, arguments)]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise BuildError("uv is not installed. Install it with `pip install uv`.") from None
    if done.returncode:
        raise BuildError(f"`uv {arguments[0]}` failed. What it said:\n{done.stderr.strip()}")
    return done.stdout


def locked_requirements(groups: Iterable[str] = (), *, only: bool = False, root: Path = ROOT) -> str:
    """The locked packages of the project and of dependency groups, with their hashes; `only` the groups'."""
    options = [option for group in groups for option in ("--only-group" if only else "--group", group)]
    exported = ("--frozen", "--no-default-groups", "--no-emit-project", "--no-header", "--no-annotate")
    return run_uv("export", *exported, *options, "--format", "requirements.txt", root=root)


def _install(target: Target, folder: Path, root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    groups = [target.group] if target.group in project.get("dependency-groups", {}) else []
    requirements = folder / "requirements.txt"
    requirements.write_text(locked_requirements(groups, root=root), encoding="utf-8")
    on = ("--target", folder, "--python-version", target.python, "--python-platform", target.platform)
    # A source distribution would be built for this machine.
    strict = ("--require-hashes", "--only-binary", ":all:", "--no-deps", "--link-mode", "copy")
    run_uv("pip", "install", "--quiet", *on, *strict, "-r", requirements, root=root)
    requirements.unlink()


def _compile(folder: Path, version: str) -> bool:
    python = find_python(version)
    if python is None:
        print(
            f"NOT COMPILED: there is no Python {version} here, and the artefact goes without bytecode; each start "
            f"compiles anew. Install it (pyenv install {version}, or uv python install {version}) and build again.",
            file=sys.stderr,
            flush=True,
        )
        return False
    # unchecked-hash: a zip does not keep the time that the usual check compares, and /var/task cannot be written to.
    # The trade: a source file that is edited in the deployed function changes nothing.
    options = ("-q", "-f", "-j", "0", "-s", str(folder), "-p", "/var/task", "--invalidation-mode", "unchecked-hash")
    compiled = subprocess.run(
        [str(python), "-m", "compileall", *options, str(folder)], capture_output=True, text=True, check=False
    )
    if compiled.returncode:
        raise BuildError(f"Python {version} cannot compile the artefact. Correct this:\n{compiled.stdout.strip()}")
    return True


def _checked_size(folder: Path) -> int:
    size = sum(path.stat().st_size for path in _files(folder))
    if size > MAX_UNPACKED_MB * _MB:
        raise BuildError(_too_big(folder.name, size, MAX_UNPACKED_MB, "MAX_UNPACKED_MB"))
    return size


def _too_big(name: str, size: int, limit: int, constant: str) -> str:
    return (
        f"{name} has {size / _MB:.1f} MB, and {limit} is the limit. See what came in with `uv tree`, "
        f"or raise {constant} in infra/build.py."
    )


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m infra.build", description="Build what Lambda runs.")
    parser.add_argument("function", nargs="*", help="logical ids of the template (default: all)")
    parser.add_argument("--into", type=Path, help="folder for one function, without a zip (default: build/)")
    parser.add_argument("--architecture", choices=PLATFORMS, help="in place of the template's")
    given = parser.parse_args(arguments)
    if given.into and len(given.function) != 1:
        parser.error("--into takes exactly one function")
    try:
        known = targets()
        for name in given.function or known:
            if name not in known:
                raise BuildError(f"The template has no function {name}. Use one of: {', '.join(known)}.")
            target = known[name]
            if given.architecture:
                target = replace(target, architecture=given.architecture)
            folder = given.into or ROOT / "build" / name
            artefact = build(target, folder)
            zipped = "" if given.into else f", {pack(artefact, folder.with_suffix('.zip')) / _MB:.1f} MB zipped"
            print(f"{name}: {artefact.unpacked / _MB:.1f} MB{zipped}, Python {target.python} on {target.architecture}")
    except (BuildError, TemplateError) as error:
        sys.exit(f"\nIt does not build: {error}")


if __name__ == "__main__":
    main()

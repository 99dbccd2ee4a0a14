"""Node.js, and packages of the npm registry, for the official clients and suites: locked, and installed once.

What is installed stays in `.node/`, a folder for each lock file, so that a changed lock installs anew.
"""

import hashlib
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parent.parent.parent
CACHE: Final = ROOT / ".node"
MINIMUM: Final = (22, 19)
"""What the Inspector needs; the conformance suite does not even start below 22."""

_INSTALL_SECONDS: Final = 300
_ERROR_CODE: Final = re.compile(r"^npm (?:error|ERR!) code (\w+)", re.MULTILINE)
# The lock file is wrong, or what came is not what was locked: nothing that a skipped test may hide.
_OURS: Final = frozenset(("EINTEGRITY", "EUSAGE", "EBADPLATFORM", "EJSONPARSE"))


class NodeUnavailable(Exception):
    """This machine can neither run nor install it. The message ends with the remedy."""


def required(folder: Path) -> tuple[Path, Path]:
    """Node.js, and where the packages of the folder's lock file are installed. Skips the test where there are none."""
    try:
        return node(), installed(folder)
    except NodeUnavailable as error:
        pytest.skip(f"NO NODE: {error}")


@cache
def node() -> Path:
    """Node.js: this machine's where it is new enough, else one from the npm registry."""
    found = shutil.which("node")
    if found is not None and _version(found) >= MINIMUM:
        return Path(found)
    return installed(Path(__file__).parent / "node") / "node_modules" / ".bin" / "node"


def _version(command: str) -> tuple[int, ...]:
    answer = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
    found = re.match(r"v(\d+)\.(\d+)", answer)
    return tuple(map(int, found.groups())) if found else ()


@cache
def installed(folder: Path) -> Path:
    """A folder with the `node_modules` of the lock file in `folder`."""
    npm = shutil.which("npm")
    lock = (folder / "package-lock.json").read_bytes()
    target = CACHE / f"{folder.name}-{hashlib.sha256(lock).hexdigest()[:12]}"
    if target.exists():
        return target
    if npm is None:
        raise NodeUnavailable("these tests need npm. Install Node.js 20 or newer; Debian: apt-get install npm")
    CACHE.mkdir(exist_ok=True)
    (CACHE / ".gitignore").write_text("*\n")
    with tempfile.TemporaryDirectory(dir=CACHE, prefix=f"{folder.name}-", ignore_cleanup_errors=True) as scratch:
        draft = Path(scratch) / "install"
        draft.mkdir()
        for name in ("package.json", "package-lock.json"):
            shutil.copy(folder / name, draft / name)
        _install(npm, draft)
        try:
            # Another run may have installed the same in the meantime: whoever renames first has done it for both.
            draft.rename(target)
        except OSError:
            if not target.exists():
                raise
    return target


def _install(npm: str, folder: Path) -> None:
    # Nothing here needs its install scripts, and they would run whatever the registry sends.
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    command += ["--fetch-retries=1", "--fetch-retry-mintimeout=1000"]
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise NodeUnavailable(
            f"npm ci took more than {_INSTALL_SECONDS} seconds. Run the tests again with a faster network"
        ) from error
    if done.returncode == 0:
        return
    found = _ERROR_CODE.search(done.stderr)
    code = found[1] if found else f"exit code {done.returncode}"
    if code in _OURS:
        raise RuntimeError(f"npm ci refused the lock file ({code}). Make it anew with `npm install`.\n{done.stderr}")
    raise NodeUnavailable(f"npm could not install them ({code}). Run the tests where a package registry answers")

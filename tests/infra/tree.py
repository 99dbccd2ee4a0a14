"""A copy of this tree to change, and programs that run in it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

_NOT_OURS = shutil.ignore_patterns("__pycache__", "node_modules", ".*", "build")
_HIDDEN = (".ci", ".gitignore")


def copy_of_tree(target: Path) -> Path:
    """What git has, without the virtual environment and what tools leave behind."""
    shutil.copytree(ROOT, target, ignore=_NOT_OURS, dirs_exist_ok=True)
    for name in _HIDDEN:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name)
        else:
            shutil.copy2(source, target / name)
    return target


def run_in(tree: Path, *arguments: str, timeout: float = 120) -> "subprocess.CompletedProcess[str]":
    """Run a module of this Python in a tree, with its code and not with ours."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MCP_", "PYTEST_"))}
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=tree,
        env={**environment, "PYTHONPATH": str(tree)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
        check=False,
    )


def succeed_in(tree: Path, *arguments: str, timeout: float = 120) -> str:
    """Run a module that must end well, and return what it printed."""
    ended = run_in(tree, *arguments, timeout=timeout)
    assert ended.returncode == 0, f"{' '.join(arguments)} ended with {ended.returncode}:\n{ended.stdout[-8000:]}"
    return ended.stdout

"""Writes a tool, its test, and the line that lists it: the kind's own code under another name."""

import keyword
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from app.protocol.text_fallback import ANSWER
from infra.scaffold.errors import ScaffoldError

KINDS: Final = ("form", "connect", "plain")
# Longer ones would break lines of the kinds' code.
MOST_CHARACTERS: Final = 40

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


def new_tool(root: Path, name: str, kind: str) -> Sequence[Path]:
    """Write the tool and its test into the tree at `root`, list the tool, and return the changed files.

    Raises ScaffoldError, and then nothing was written.
    """
    tool, test = root / "app" / "tools" / f"{name}.py", root / "tests" / "tools" / f"test_{name}.py"
    listing = root / "app" / "tools" / "__init__.py"
    if kind not in KINDS:
        raise ScaffoldError(f"There is no kind {kind!r}. Use one of: KIND={', KIND='.join(KINDS)}.")
    _check_name(name)
    for taken in (tool, test):
        if taken.exists():
            raise ScaffoldError(f"{taken.relative_to(root)} exists already. Choose another NAME, or delete it.")
    listed = _listed(listing.read_text(), name)
    sources = (
        (root / "infra" / "scaffold" / "kinds" / f"{kind}.py", tool),
        (root / "tests" / "infra" / "scaffold" / f"test_{kind}.py", test),
    )
    for source, target in sources:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_renamed(source.read_text(), name, kind))
    listing.write_text(listed)
    changed = [tool, test, listing]
    _tidy(root, changed)
    return changed


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or len(name) > MOST_CHARACTERS:
        raise ScaffoldError(
            f"{name!r} is no name for a tool here. Use a verb and a noun like NAME=archive_report: "
            f"lower case, words joined by _, at most {MOST_CHARACTERS} characters."
        )
    if keyword.iskeyword(name) or keyword.issoftkeyword(name):
        raise ScaffoldError(f"{name} is a word of Python. Add a noun, like NAME={name}_report.")
    if name in (ANSWER, "tool", "tools"):
        raise ScaffoldError(f"{name} has a meaning here already. Add a noun, like NAME={name}_report.")


def _renamed(source: str, name: str, kind: str) -> str:
    title = name.replace("_", " ").capitalize()
    source = source.replace(f"infra.scaffold.kinds.{kind}", f"app.tools.{name}")
    return source.replace("new_tool", name).replace("New tool", title)


def _listed(listing: str, name: str) -> str:
    """The listing with one more import, before the line that collects them."""
    if re.search(rf"^from .* import .*\b{name}\b", listing, re.MULTILINE):
        raise ScaffoldError(f"app/tools/__init__.py imports {name} already. Choose another NAME, or delete that line.")
    found = list(re.finditer(r"^from app\.(toolkit|tools).*\n", listing, re.MULTILINE))
    if not found:
        raise ScaffoldError(
            "app/tools/__init__.py has no line `from app.toolkit import Features`. Put it back: it is where tools "
            "are listed."
        )
    end = found[-1].end()
    return f"{listing[:end]}from app.tools.{name} import {name}\n{listing[end:]}"


def _tidy(root: Path, files: Sequence[Path]) -> None:
    """Imports in order and lines in shape, whatever the length of the name."""
    for command in (("check", "--quiet", "--select", "I", "--fix"), ("format", "--quiet")):
        subprocess.run([sys.executable, "-m", "ruff", *command, *map(str, files)], cwd=root, check=True)

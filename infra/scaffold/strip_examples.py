"""`make strip-examples`: takes the example tools away, with their tests and all that names them, itself included.

What is left serves nothing yet and passes every test. The demo and our own tests have tools of their own, in
infra/local/desk.
"""

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from infra.scaffold.errors import ScaffoldError

ROOT: Final = Path(__file__).parent.parent.parent

# An example says so in its first line; these two are what the examples use.
_EXAMPLE: Final = '"""Example:'
_USED_BY_EXAMPLES: Final = ("desk", "hub")
_TESTS_OF_EXAMPLES: Final = ("conftest.py",)
_ITSELF: Final = ("infra/scaffold/strip_examples.py", "tests/infra/test_strip_examples.py")

_CALL: Final = re.compile(r"""TOOL=delete_report ARGUMENTS='\{+"target": "Q3"\}+'""")
_REWRITTEN: Final = {
    "Makefile": (
        (re.compile(r"^strip-examples:.*\n(\t.*\n)*\n?", re.MULTILINE), ""),
        (re.compile(r" strip-examples\b"), ""),
        (re.compile(r"^TOOL \?= .*$", re.MULTILINE), "TOOL ?="),
        (re.compile(r"^ARGUMENTS \?= .*$", re.MULTILINE), "ARGUMENTS ?= {}"),
        (_CALL, "TOOL=your_tool ARGUMENTS='{}'"),
    ),
    "README.md": (
        (_CALL, "TOOL=your_tool ARGUMENTS='{}'"),
        (re.compile(r",? and\s`make strip-examples`[^.]*(?=\.)"), ""),
        (re.compile(r", as in `app/tools/hub\.py`"), ""),
    ),
    "app/tools/__init__.py": ((re.compile(r"\n\nThese are examples .*?(?=\"\"\")", re.DOTALL), ""),),
}


def strip_examples(root: Path) -> Sequence[Path]:
    """Delete the examples from the tree at `root`, and return what is gone. Your own tools stay.

    Raises ScaffoldError if there are none, or if a tool of yours imports one.
    """
    tools, tests = root / "app" / "tools", root / "tests" / "tools"
    examples = [path for path in sorted(tools.glob("*.py")) if _is_example(path)]
    if not examples:
        raise ScaffoldError("There are no examples in app/tools any more. Make a tool of your own with make new-tool.")
    names = {path.stem for path in examples}
    gone = [
        *examples,
        *(path for name in sorted(names) if (path := tests / f"test_{name}.py").exists()),
        *(path for name in _TESTS_OF_EXAMPLES if (path := tests / name).exists()),
        *(root / each for each in _ITSELF),
    ]
    _check_unused(root, names, gone)
    for path in gone:
        path.unlink(missing_ok=True)
    _unlist(tools / "__init__.py", names)
    for name, rewrites in _REWRITTEN.items():
        path = root / name
        text = path.read_text()
        for pattern, replacement in rewrites:
            text = pattern.sub(replacement, text)
        path.write_text(text)
    return gone


def _is_example(path: Path) -> bool:
    return path.stem in _USED_BY_EXAMPLES or path.read_text().startswith(_EXAMPLE)


def _check_unused(root: Path, names: set[str], gone: Sequence[Path]) -> None:
    """Nothing that stays may import what goes, but the list of tools."""
    imported = re.compile(rf"^\s*(?:from|import) app\.tools(?:\.| import )({'|'.join(sorted(names))})\b", re.MULTILINE)
    for path in _sources(root):
        if path in gone or path == root / "app" / "tools" / "__init__.py":
            continue
        if found := imported.search(path.read_text()):
            raise ScaffoldError(
                f"{path.relative_to(root)} imports the example {found[1]}. Change that first, or delete the file."
            )


def _sources(root: Path) -> Iterator[Path]:
    for folder in ("app", "handlers", "infra", "tests"):
        yield from (path for path in sorted((root / folder).rglob("*.py")) if "node_modules" not in path.parts)


def _unlist(listing: Path, names: set[str]) -> None:
    lines = listing.read_text().splitlines(keepends=True)
    of_an_example = re.compile(rf"from app\.tools\.({'|'.join(sorted(names))}) import ")
    listing.write_text("".join(line for line in lines if not of_an_example.match(line)))


def main() -> None:
    try:
        gone = strip_examples(ROOT)
    except ScaffoldError as error:
        sys.exit(str(error))
    for path in gone:
        print(f"  {path.relative_to(ROOT)}")
    subprocess.run([sys.executable, "-m", "ruff", "check", "--quiet", "--fix", "app/tools"], cwd=ROOT, check=False)
    print("\nThe examples are gone. Make a tool of your own:\n\n  make new-tool NAME=archive_report KIND=form")


if __name__ == "__main__":
    main()

"""SECURITY.md: every promise is linked to a test that exists, in a file that exists."""

import ast
import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parent.parent
TEXT: Final = (ROOT / "SECURITY.md").read_text()
_TEST: Final = re.compile(r"\[`(test_\w+)`\]\(([\w/.]+)\)")
_LINK: Final = re.compile(r"\]\(([^)#]+)\)")
TESTS: Final = _TEST.findall(TEXT)


def promises() -> list[str]:
    """The rows of the tables under "What is promised"."""
    part = TEXT.split("\n## What is promised")[1].split("\n## ")[0]
    rows = [line for line in part.splitlines() if line.startswith("| ")]
    return [row for row in rows if not row.startswith("| Promise |")]


@pytest.mark.parametrize(("name", "path"), TESTS, ids=[name for name, _ in TESTS])
def test_a_test_that_is_named_exists(name: str, path: str) -> None:
    """A renamed test would leave a promise that nothing shows."""
    tree = ast.parse((ROOT / path).read_text())
    defined = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    assert defined.count(name) == 1


@pytest.mark.parametrize("promise", promises())
def test_every_promise_names_its_tests(promise: str) -> None:
    """A promise without a test is a wish."""
    assert _TEST.search(promise)


@pytest.mark.parametrize("target", sorted(set(_LINK.findall(TEXT))))
def test_every_link_leads_somewhere(target: str) -> None:
    """Within the repository: nothing here depends on another site."""
    assert (ROOT / target).exists()


def test_there_are_promises() -> None:
    """What the tests above are worth without any."""
    assert len(promises()) > 25
    assert len(TESTS) >= len(promises())

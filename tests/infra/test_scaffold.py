"""`make new-tool`: what it writes passes at once, and what it cannot do it refuses with the remedy."""

from pathlib import Path

import pytest

from app.protocol.text_fallback import ANSWER
from infra.scaffold.errors import ScaffoldError
from infra.scaffold.new_tool import KINDS, MOST_CHARACTERS, new_tool
from tests.infra.tree import copy_of_tree, run_in, succeed_in

LONGEST = "reconcile_every_quarterly_report_at_once"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_tree(tmp_path_factory.mktemp("tree"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_tool_passes_its_test_and_is_served(tree: Path, kind: str) -> None:
    """The tutorial's first step: a tool that works, to be changed."""
    name = f"archive_{kind}"
    printed = succeed_in(tree, "infra.scaffold", name, kind)
    assert f"app/tools/{name}.py" in printed
    assert "passed" in succeed_in(tree, "pytest", "-q", "-p", "no:cacheprovider", f"tests/tools/test_{name}.py")
    files = [f"app/tools/{name}.py", f"tests/tools/test_{name}.py", "app/tools/__init__.py"]
    succeed_in(tree, "ruff", "check", *files)
    succeed_in(tree, "ruff", "format", "--check", *files)
    served = f"import app.tools; assert '{name}' in [each.name for each in app.tools.TOOLS]"
    (tree / "served.py").write_text(served)
    succeed_in(tree, "served")
    for path in files[:2]:
        assert "new_tool" not in (tree / path).read_text()
        assert "New tool" not in (tree / path).read_text()


def test_the_longest_name_breaks_no_line(tree: Path) -> None:
    assert len(LONGEST) == MOST_CHARACTERS
    for kind in KINDS:
        succeed_in(tree, "infra.scaffold", f"{LONGEST[: -len(kind) - 1]}_{kind}", kind)
    succeed_in(tree, "ruff", "check", "app/tools", "tests/tools")
    succeed_in(tree, "ruff", "format", "--check", "app/tools", "tests/tools")


@pytest.mark.slow
def test_types_and_layers_hold_with_a_tool_of_each_kind(tree: Path) -> None:
    for kind in KINDS:
        succeed_in(tree, "infra.scaffold", f"check_{kind}", kind)
    written = [f"{folder}check_{kind}.py" for kind in KINDS for folder in ("app/tools/", "tests/tools/test_")]
    succeed_in(tree, "mypy", *written, timeout=600)
    (tree / "layers.py").write_text("from importlinter.cli import lint_imports_command\nlint_imports_command()")
    succeed_in(tree, "layers", "--no-logo", "--no-cache")


@pytest.mark.parametrize(
    ("name", "kind", "remedy"),
    [
        ("", "form", "Use a verb and a noun like NAME=archive_report"),
        ("ArchiveReport", "form", "lower case, words joined by _"),
        ("archive-report", "form", "lower case, words joined by _"),
        ("archive__report", "form", "lower case, words joined by _"),
        ("../escape", "form", "lower case, words joined by _"),
        ("a" * (MOST_CHARACTERS + 1), "form", f"at most {MOST_CHARACTERS} characters"),
        ("class", "form", "class is a word of Python. Add a noun"),
        ("match", "form", "match is a word of Python. Add a noun"),
        (ANSWER, "form", "has a meaning here already. Add a noun"),
        ("archive_report", "wizard", "Use one of: KIND=form, KIND=connect, KIND=plain"),
    ],
)
def test_a_name_that_cannot_be_a_tools_is_refused(tmp_path: Path, name: str, kind: str, remedy: str) -> None:
    (tmp_path / "app" / "tools").mkdir(parents=True)
    (tmp_path / "app" / "tools" / "__init__.py").write_text("from app.toolkit import Features\n")
    with pytest.raises(ScaffoldError) as refused:
        new_tool(tmp_path, name, kind)
    assert remedy in str(refused.value)


def test_what_is_there_is_never_overwritten(tree: Path) -> None:
    succeed_in(tree, "infra.scaffold", "keep_this", "plain")
    before = {path: path.read_text() for path in (tree / "app" / "tools").glob("*.py")}
    again = run_in(tree, "infra.scaffold", "keep_this", "form")
    assert again.returncode == 1
    assert again.stdout == "app/tools/keep_this.py exists already. Choose another NAME, or delete it.\n"
    (tree / "app" / "tools" / "keep_this.py").unlink()
    test_is_there = run_in(tree, "infra.scaffold", "keep_this", "form")
    assert "tests/tools/test_keep_this.py exists already" in test_is_there.stdout
    (tree / "tests" / "tools" / "test_keep_this.py").unlink()
    listed = run_in(tree, "infra.scaffold", "keep_this", "form")
    assert "app/tools/__init__.py imports keep_this already. Choose another NAME, or delete that line." in listed.stdout
    after = {path: path.read_text() for path in (tree / "app" / "tools").glob("*.py")}
    assert after == {path: text for path, text in before.items() if path.stem != "keep_this"}


def test_a_list_of_tools_that_is_not_as_we_left_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "app" / "tools").mkdir(parents=True)
    (tmp_path / "app" / "tools" / "__init__.py").write_text("TOOLS = ()\n")
    with pytest.raises(ScaffoldError, match="Put it back"):
        new_tool(tmp_path, "archive_report", "form")
    assert [path.name for path in (tmp_path / "app" / "tools").iterdir()] == ["__init__.py"]

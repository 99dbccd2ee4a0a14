"""`make strip-examples`: what is left is a server without tools on which everything still holds."""

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.infra.tree import ROOT, copy_of_tree, run_in, succeed_in

STRIP = ("infra.scaffold.strip_examples",)
# Where tests load our handlers, start a stack, copy the project or read what is rewritten. The rest names no tool.
CALLERS = (
    "tests/bench",
    "tests/clients/test_python_client.py",
    "tests/handlers",
    "tests/hostile/test_lambda_events.py",
    "tests/hostile/test_request_state.py",
    "tests/infra/doctor",
    "tests/infra/test_template.py",
    "tests/test_docs.py",
    "tests/test_readme.py",
    "tests/tools",
    "tests/wiring",
)


@pytest.fixture(scope="module")
def stripped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = copy_of_tree(tmp_path_factory.mktemp("tree"))
    printed = succeed_in(tree, *STRIP)
    assert "make new-tool NAME=archive_report KIND=form" in printed
    return tree


def test_nothing_of_the_examples_is_left(stripped: Path) -> None:
    assert [path.name for path in (stripped / "app" / "tools").glob("*.py")] == ["__init__.py"]
    tests = {path.name for path in (stripped / "tests" / "tools").glob("*.py")}
    assert tests == {"__init__.py", "test_list.py"}
    assert "example" not in (stripped / "app" / "tools" / "__init__.py").read_text()
    for name in ("Makefile", "README.md"):
        text = (stripped / name).read_text()
        assert "TOOL=delete_report" not in text
        assert "strip-examples" not in text
        assert "app/tools/hub.py" not in text


def test_style_holds_without_them(stripped: Path) -> None:
    succeed_in(stripped, "ruff", "check", ".")
    succeed_in(stripped, "ruff", "format", "--check", ".")


def test_your_own_tools_stay(tmp_path: Path) -> None:
    tree = copy_of_tree(tmp_path)
    succeed_in(tree, "infra.scaffold", "archive_report", "form")
    succeed_in(tree, *STRIP)
    assert "from app.tools.archive_report import archive_report" in (tree / "app" / "tools" / "__init__.py").read_text()
    assert "passed" in succeed_in(tree, "pytest", "-q", "-p", "no:cacheprovider", "tests/tools")


def test_a_tool_that_uses_an_example_is_named_and_nothing_is_gone(tmp_path: Path) -> None:
    tree = copy_of_tree(tmp_path)
    (tree / "app" / "tools" / "mine.py").write_text("from app.tools.desk import desk\n")
    refused = run_in(tree, *STRIP)
    assert refused.returncode == 1
    assert refused.stdout == "app/tools/mine.py imports the example desk. Change that first, or delete the file.\n"
    assert (tree / "app" / "tools" / "delete_report.py").exists()


@pytest.mark.slow
def test_types_hold_without_them(stripped: Path) -> None:
    # What mypy knows of all that is as it was, it need not find out again. There is none if nobody ever ran it.
    if (known := ROOT / ".mypy_cache").exists():
        shutil.copytree(known, stripped / known.name)
    succeed_in(stripped, "mypy", timeout=600)


@pytest.mark.slow
def test_our_own_tests_pass_without_them(stripped: Path) -> None:
    """Whoever makes a server of this keeps them. Those that take long call the same tools as these do."""
    passed = succeed_in(stripped, "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *CALLERS, timeout=600)
    assert int(re.findall(r"(\d+) passed", passed)[-1]) > 400


@pytest.mark.slow
def test_what_is_left_starts(stripped: Path) -> None:
    """`make run`, without a tool."""
    assert "make new-tool NAME=archive_report KIND=form" in _first_lines_of_make_run(stripped)


def _first_lines_of_make_run(tree: Path) -> str:
    command = [sys.executable, "-m", "infra.local", "--port", "0", "--identity-port", "0", "--hub-port", "0"]
    with subprocess.Popen(command, cwd=tree, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        printed = ""
        try:
            for line in process.stdout:
                printed += line
                if line.startswith("Ctrl-C"):
                    break
            assert re.search(r"http://127\.0\.0\.1:\d+/mcp", printed), printed
        finally:
            process.send_signal(signal.SIGINT)
            process.stdout.read()
    return printed

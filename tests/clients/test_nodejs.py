"""Where Node.js comes from, and what a machine that cannot have it is told."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients import nodejs


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Nothing is installed or remembered yet, and nothing is remembered after."""
    remembering = (nodejs.installed, nodejs.node)
    for each in remembering:
        each.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(nodejs, "CACHE", tmp_path / "cache")
        yield
    for each in remembering:
        each.cache_clear()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A package that depends on nothing but what its lock file says."""
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "package.json").write_text('{"name": "a", "dependencies": {"b": "1.0.0"}}')
    (folder / "package-lock.json").write_text(
        '{"name": "a", "lockfileVersion": 3, "requires": true, "packages": {"": {"name": "a", "dependencies":'
        ' {"b": "1.0.0"}}, "node_modules/b": {"version": "1.0.0", "integrity": "sha512-AAAA"}}}'
    )
    return folder


def test_without_npm_the_tests_are_skipped_with_the_remedy(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(shutil, "which", lambda command: None)
    with pytest.raises(pytest.skip.Exception, match=r"^NO NODE: .*apt-get install npm$"):
        nodejs.required(folder)


@pytest.mark.skipif(shutil.which("npm") is None, reason="NO NODE: this test needs npm")
def test_without_a_registry_the_tests_are_skipped_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    # Port 9 is discard: nothing listens there.
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9")
    monkeypatch.setenv("npm_config_cache", str(folder / "npm-cache"))
    with pytest.raises(nodejs.NodeUnavailable, match="ECONNREFUSED"):
        nodejs.installed(folder)
    assert [path.name for path in nodejs.CACHE.iterdir()] == [".gitignore"]


@pytest.mark.skipif(shutil.which("npm") is None, reason="NO NODE: this test needs npm")
def test_a_lock_file_that_does_not_match_is_an_error_and_no_skipped_test(folder: Path) -> None:
    (folder / "package.json").write_text('{"name": "a", "dependencies": {"b": "2.0.0"}}')
    with pytest.raises(RuntimeError, match="EUSAGE"):
        nodejs.installed(folder)


@pytest.mark.parametrize(
    ("version", "taken"), [("v20.20.2", False), ("v22.18.0", False), ("v22.19.0", True), ("v24.0.0", True)]
)
def test_an_old_node_is_not_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, taken: bool) -> None:
    """The conformance suite dies at import below Node.js 22."""
    program = tmp_path / "node"
    program.write_text(f"#!/bin/sh\necho {version}\n")
    program.chmod(0o700)
    monkeypatch.setattr(shutil, "which", lambda command: str(program))
    monkeypatch.setattr(nodejs, "installed", lambda folder: tmp_path / "from-npm")
    assert (nodejs.node() == program) is taken

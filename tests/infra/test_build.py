"""The build: what the template asks for, what stops it, and what it says when something is missing."""

import subprocess
import sys
from pathlib import Path

import pytest

from infra import build
from infra.build import Artefact, BuildError

ROOT = Path(__file__).parent.parent.parent
AARCH64 = 183  # ELF, e_machine


def artefact(folder: Path, **files: bytes) -> Artefact:
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return Artefact(folder=folder, unpacked=0, compiled=True)


def fake_python(folder: Path, name: str, script: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_the_template_decides_what_is_built() -> None:
    """template.yaml: Runtime, Architectures and Handler."""
    targets = build.targets()
    assert {name: (each.group, each.python, each.platform) for name, each in targets.items()} == {
        "McpFunction": ("mcp", "3.13", "aarch64-unknown-linux-gnu"),
        "WebFunction": ("web", "3.13", "aarch64-unknown-linux-gnu"),
    }


def test_a_runtime_that_cannot_be_built_for_is_refused(tmp_path: Path) -> None:
    """Emulator-defined: better no artefact than one that does not start."""
    template = tmp_path / "template.yaml"
    template.write_text(
        "Resources:\n  F: {Type: 'AWS::Serverless::Function', Properties: {Runtime: nodejs22.x, Handler: h.m.f}}\n"
    )
    with pytest.raises(BuildError, match=r"F has nodejs22.x on x86_64: use python3.x on one of arm64, x86_64\."):
        build.targets(template)


def test_a_python_that_only_says_that_it_is_missing_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pyenv: a shim for a version that is not selected ends with status 127."""
    fake_python(tmp_path / "bin", "python3.99", "exit 127")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    assert build.find_python("3.99") is None
    real = fake_python(tmp_path / "pyenv" / "versions" / "3.99.1" / "bin", "python3.99", "echo 3.99")
    assert build.find_python("3.99") == real
    assert build.find_python(f"{sys.version_info.major}.{sys.version_info.minor}") == Path(sys.executable)


def test_without_the_templates_python_it_builds_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The functions start without bytecode too, only later."""
    monkeypatch.setattr(build, "find_python", lambda version: None)
    assert not build._compile(tmp_path, "3.13")
    assert "NOT COMPILED: there is no Python 3.13 here" in capsys.readouterr().err


def test_a_file_that_is_no_python_stops_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would stop the function's start."""
    monkeypatch.setattr(build, "find_python", lambda version: Path(sys.executable))
    (tmp_path / "broken.py").write_text("def")
    with pytest.raises(BuildError, match=r"cannot compile the artefact. Correct this:\n[\s\S]*broken\.py"):
        build._compile(tmp_path, "3.13")


def test_an_artefact_that_has_grown_stops_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS Lambda takes 250 MB; what nobody meant to add is noticed long before."""
    folder = artefact(tmp_path / "big", a=b"x" * 2_000_000).folder
    monkeypatch.setattr(build, "MAX_UNPACKED_MB", 1)
    with pytest.raises(BuildError, match=r"big has 2.0 MB, and 1 is the limit.*raise MAX_UNPACKED_MB"):
        build._checked_size(folder)


def test_a_zip_that_has_grown_stops_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As above."""
    monkeypatch.setattr(build, "MAX_ZIPPED_MB", 0)
    with pytest.raises(BuildError, match="raise MAX_ZIPPED_MB"):
        build.pack(artefact(tmp_path / "big", a=b"x"), tmp_path / "big.zip")


def test_the_lock_gives_every_package_with_its_hash() -> None:
    """uv: --require-hashes refuses anything else."""
    locked = build.locked_requirements()
    packages = [line for line in locked.splitlines() if line and not line.startswith((" ", "#"))]
    assert "cryptography" in locked
    assert locked.count("--hash=sha256:") >= len(packages)
    assert not [line for line in packages if line.startswith(("boto", "mcp=", "pytest"))]


def test_an_unknown_function_is_named() -> None:
    """Bad input gets a clear error that says what to do."""
    command = [sys.executable, "-m", "infra.build", "ApiFunction"]
    refused = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "The template has no function ApiFunction. Use one of: McpFunction, WebFunction." in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.slow
def test_sam_build_gets_what_the_template_says(tmp_path: Path) -> None:
    """AWS SAM: BuildMethod makefile runs `make build-<logical id>` with ARTIFACTS_DIR."""
    into = tmp_path / "artefact"
    made = subprocess.run(
        ["make", "build-McpFunction", f"ARTIFACTS_DIR={into}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    assert "Python 3.13 on arm64" in made.stdout
    libraries = list(into.rglob("*.so"))
    assert libraries
    assert {int.from_bytes(path.read_bytes()[18:20], "little") for path in libraries} == {AARCH64}

"""docs/: every command is given, every file of the tutorial is written and tested, every message is one of ours."""

import ast
import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from app.oauth.provider import Provider
from app.oauth.provider_config import read_providers
from app.testing import Server, accept, decline
from tests.infra.tree import ROOT, copy_of_tree

DOCS = ROOT / "docs"
PAGES = ("architecture", "comparison", "promises", "troubleshooting", "tutorial")


def page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text()


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the file that it is, and its text."""

    language: str
    path: str
    text: str


def blocks(text: str) -> list[Block]:
    return [Block(*found) for found in re.findall(r"^```(\w+) ?(\S*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)]


@pytest.mark.parametrize("name", PAGES)
def test_every_link_leads_somewhere(name: str) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page(name)):
        assert "://" not in target, f"{target} leads out of the repository: nobody checks it"
        assert (DOCS / target).exists(), target
    for anchor in re.findall(r"\]\(#([^)]+)\)", page(name)):
        headings = re.findall(r"^#+ (.*)$", page(name), re.MULTILINE)
        assert anchor in [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]


@pytest.mark.parametrize("name", ["promises", "comparison"])
def test_every_claim_has_its_test(name: str) -> None:
    claimed = re.findall(r"\[(test_\w+)\]\((\S+?)\)", page(name))
    assert claimed
    for test, file in claimed:
        tree = ast.parse((DOCS / file).read_text())
        functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        assert test in functions, f"{test} is not in {file}: correct the page, or what it promises"


def test_every_promise_has_a_claim() -> None:
    """A section without a test would be prose."""
    _, *sections = page("promises").split("\n## ")
    assert len(sections) == 6
    for section in sections:
        claims = re.findall(r"^\* .*?(?=^\* |^$|\Z)", section, re.MULTILINE | re.DOTALL)
        assert claims
        assert all("](../tests/" in claim for claim in claims), section.splitlines()[0]


@pytest.mark.parametrize("name", PAGES)
def test_every_make_target_is_there(name: str) -> None:
    targets = set(re.findall(r"^([a-zA-Z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:`|^|\s)make ([a-z-]+)(?=[\s`'])", _code(page(name)), re.MULTILINE)) <= targets


def _code(text: str) -> str:
    """What stands in code, inline or in blocks."""
    return "\n".join([*re.findall(r"`[^`\n]+`", text), *(block.text for block in blocks(text))])


def test_the_layers_are_the_ones_that_are_checked() -> None:
    """docs/architecture.md, Layers."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract,) = project["tool"]["importlinter"]["contracts"]
    rows = re.findall(r"^\| (`.*?) \| .* \|$", page("architecture"), re.MULTILINE)
    shown = [re.findall(r"`([\w.]+)`", row) for row in rows]
    assert [sorted(layer) for layer in shown] == [sorted(layer.split(" | ")) for layer in contract["layers"]]


def test_the_picture_stands_alone_and_has_two_looks() -> None:
    """SVG 2: in an image nothing else is loaded; WCAG 1.1.1: it has a text of its own."""
    text = (DOCS / "architecture.svg").read_text()
    root = ElementTree.fromstring(text)  # noqa: S314  our own file
    names = {element.get("id"): element for element in root.iter()}
    for reference in re.findall(r"url\(#([\w-]+)\)", text) + (root.get("aria-labelledby") or "").split():
        assert reference in names, reference
    assert not re.search(r"<script|<image|<foreignObject|href=|@import|https?://(?!www\.w3\.org/2000/svg)", text)
    assert "@media (prefers-color-scheme: dark)" in text
    # Every colour of one look has its counterpart in the other.
    light, dark = text.split("@media (prefers-color-scheme: dark)")
    styled = re.compile(r"(\.[\w-]+|text) \{[^}]*#[0-9a-f]{6}")
    assert set(styled.findall(dark)) <= set(styled.findall(light)) != set()
    colours = re.compile(r"(?:fill|stroke): (#[0-9a-f]{6})")
    assert len(colours.findall(light.split("</style>")[0])) == len(colours.findall(dark.split("</style>")[0]))


# docs/troubleshooting.md


Part = str | None
"""Text that stands in the code, or None for a value."""


@cache
def messages() -> Sequence[Sequence[Part]]:
    """Every text in our code that could be a message."""
    found: list[Sequence[Part]] = []
    for package in ("app", "handlers", "infra"):
        for path in sorted((ROOT / package).rglob("*.py")):
            tree = ast.parse(path.read_text())
            inner = {id(value) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for value in node.values}
            found += [parts for node in ast.walk(tree) if id(node) not in inner and (parts := _parts(node))]
    return found


def _parts(node: ast.AST) -> Sequence[Part]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.JoinedStr):
        return [str(each.value) if isinstance(each, ast.Constant) else None for each in node.values]
    return []


def is_ours(message: str) -> bool:
    """Whether our code says this, or begins like this where it ends in "..."."""
    text = message.removesuffix("...").rstrip()
    candidates = _beginnings(text) if text != message else messages()
    for parts in candidates:
        if sum(map(len, filter(None, parts))) >= 12 and all(part in text for part in parts if part):
            found = re.fullmatch("".join("(.*?)" if part is None else re.escape(part) for part in parts), text)
            if found and all(map(_is_value, found.groups())):
                return True
    return False


def _beginnings(text: str) -> Iterator[Sequence[Part]]:
    """The messages, cut off where the text ends."""
    for parts in messages():
        for last, part in enumerate(parts):
            ends = range(len(part), 0, -1) if part else [0]
            here = next((end for end in ends if text.endswith((part or "")[:end])), None)
            if here is not None:
                yield [*parts[:last], part and part[:here]]


def _is_value(text: str) -> bool:
    """What may stand for a value. A sentence must be a message of ours as well."""
    return text.count(" ") < 4 or is_ours(text) or is_ours(f"{text}...")


def shown_messages() -> list[str]:
    return re.findall(r"^`(.+)`$", page("troubleshooting"), re.MULTILINE)


@pytest.mark.parametrize("message", shown_messages())
def test_every_message_is_one_that_our_code_says(message: str) -> None:
    """docs/troubleshooting.md: a message that was reworded is found here."""
    assert is_ours(message)


def test_a_message_that_nobody_says_is_found_out() -> None:
    """The check itself."""
    assert not is_ours("There is no such thing as this message. Do something about it.")
    assert not is_ours("MCP_RESOURCE_URL must end in /mcp, the route of the endpoint.")
    assert not is_ours("Archive.options cannot be asked in a form: it is a sentence that nobody ever wrote here.")
    assert len(shown_messages()) > 40


# docs/tutorial.md


def test_the_effect_that_happens_once_does(tmp_path: Path) -> None:
    """docs/tutorial.md, An effect that happens once."""
    (source,) = [block.text for block in blocks(page("tutorial")) if block.language == "python" and not block.path]
    namespace: dict[str, Any] = {"__name__": "tutorial"}
    exec(compile(source, "tutorial.md", "exec"), namespace)  # noqa: S102
    server = Server([namespace["pay_invoice"]])
    params = {"name": "pay_invoice", "arguments": {"number": "2026-17"}}
    alice = server.client("alice")
    asked = alice.request("tools/call", params)
    paid = alice.retry(asked, params, {"pay": accept(confirm=True)})
    assert paid.text == "The invoice 2026-17 is paid."
    assert alice.retry(asked, params, {"pay": accept(confirm=True)}).text == paid.text
    assert alice.retry(asked, params, {"pay": decline()}).status == 400


def test_every_member_of_a_provider_is_explained() -> None:
    """docs/configuration.md: what MCP_PROVIDERS may say of each."""
    table = page("configuration").partition("| Member | Meaning |")[2].partition("\n\n")[0]
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    explained = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert explained == {each.name for each in fields(Provider)} - {"name"} | {"preset"}


def test_the_provider_of_the_tutorial_can_be_configured() -> None:
    """docs/tutorial.md, A tool that connects a third party."""
    (text,) = [block.text for block in blocks(page("tutorial")) if block.language == "json"]
    secrets = {"MCP_PROVIDER_ACME_SECRET": "s", "MCP_PROVIDER_GITHUB_SECRET": "s"}
    assert read_providers(text, secrets, local=True)["acme"].title == "Acme"
    inline = re.search(r"MCP_PROVIDERS='(\{.*?\})' MCP_PROVIDER_GITHUB_SECRET=\S+ make run", page("tutorial"))
    assert inline is not None
    assert json.loads(inline[1]).keys() == {"github"}
    assert read_providers(inline[1], secrets, local=True)["github"].title == "GitHub"


TYPED = {"make call": "a\n7\nTax audit\n"}


@dataclass
class Reader:
    """Does what the tutorial says, in a tree of its own: writes files, gives commands, reads what they print."""

    tree: Path
    running: "subprocess.Popen[str] | None" = None
    url: str = ""
    printed: str = ""
    environment: dict[str, str] = field(default_factory=dict)

    def do(self, block: Block) -> None:
        match block.language:
            case "sh":
                self.printed = "".join(map(self._give, block.text.splitlines()))
            case "text":
                for line in block.text.splitlines():
                    assert self._as_shown(line) in self.printed, f"{line!r} was not printed, but:\n{self.printed}"
            case "python" if block.path:
                (self.tree / block.path).write_text(block.text)

    def stop(self) -> None:
        if self.running is not None:
            os.killpg(self.running.pid, signal.SIGINT)
            self.running.communicate()
            self.running = None

    def _give(self, command: str) -> str:
        if command.endswith("make run"):
            return self._run(f"{command} RUN='--port 0 --identity-port 0 --hub-port 0'")
        if command.startswith("make call"):
            command += f" CALL='--url {self.url}/mcp'"
            subprocess.run(["curl", "-sSfX", "POST", f"{self.url}/_emulator/restart"], check=True, capture_output=True)
        typed = next((text for beginning, text in TYPED.items() if command.startswith(beginning)), "")
        ended = subprocess.run(
            ["bash", "-c", command],
            cwd=self.tree,
            env=self.environment,
            input=typed,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=600,
            check=False,
        )
        assert ended.returncode == 0, f"{command} ended with {ended.returncode}:\n{ended.stdout[-8000:]}"
        return ended.stdout

    def _run(self, command: str) -> str:
        self.stop()
        # A group of its own: make passes no signal on to what it started.
        self.running = subprocess.Popen(
            ["bash", "-c", command],
            cwd=self.tree,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        assert self.running.stdout is not None
        printed = ""
        for line in self.running.stdout:
            printed += line
            if line.startswith("Ctrl-C"):
                break
        found = re.search(r"http://127\.0\.0\.1:\d+(?=/mcp)", printed)
        assert found is not None, printed
        self.url = found[0]
        return printed

    def _as_shown(self, line: str) -> str:
        return line.strip().replace("http://127.0.0.1:8000", self.url)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    tree = copy_of_tree(tmp_path / "tree")
    (tree / ".venv").symlink_to(sys.prefix, target_is_directory=True)
    # What is installed is installed: make compares times.
    for name in ("pyproject.toml", "uv.lock"):
        os.utime(tree / name, (0, 0))
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("MCP_", "PYTEST_", "MAKE", "VENV"))
    }
    reader = Reader(tree, environment=kept)
    yield reader
    reader.stop()


@pytest.mark.slow
def test_the_tutorial_works_from_its_first_line_to_its_last(reader: Reader) -> None:
    """docs/tutorial.md, as its reader does it, but for GitHub itself."""
    for block in blocks(page("tutorial")):
        if block.text.strip() != "make lint":
            reader.do(block)
    written = [block.path for block in blocks(page("tutorial")) if block.path]
    assert len(written) == 4
    for command in ("check", "format --check"):
        reader.do(Block("sh", "", f".venv/bin/ruff {command} {' '.join(written)}"))
    reader.do(Block("sh", "", f".venv/bin/mypy {' '.join(written)}"))

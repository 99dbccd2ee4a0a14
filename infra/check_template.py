"""`make check-template`: template.yaml expanded as SAM expands it, linted, and held to our own rules. Offline.

cfn-lint does not expand SAM templates by itself: it sees neither a timeout of 901 s nor a runtime that does not exist.
"""

import argparse
import json
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from infra.local.emulator.errors import TemplateError
from infra.template_rules import RULES, Deployment

ROOT: Final = Path(__file__).parent.parent
REGION: Final = "us-east-1"

_EXPANDED: Final = "expanded.json"
# The local paths of nested templates are what `package` replaces.
_EXPECTED: Final = {"cfn-lint": {"config": {"ignore_checks": ["W3002"]}}}


def broken_rules(deployment: Deployment) -> Iterator[str]:
    """One sentence for each fault, in the order of the rules."""
    for rule in RULES:
        yield from rule(deployment)


def lint(deployment: Deployment) -> str:
    """What cfn-lint says about the templates as written, and about the expansion; empty if nothing."""
    program = Path(sysconfig.get_path("scripts")) / "cfn-lint"
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for path, text in deployment.texts.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        expanded = {**deployment.expanded, "Metadata": _EXPECTED}
        (folder / _EXPANDED).write_text(json.dumps(expanded, indent=1), encoding="utf-8")
        done = subprocess.run(
            [str(program), "--regions", REGION, "--", *deployment.texts, _EXPANDED],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    return done.stdout + done.stderr


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m infra.check_template", description="Check template.yaml.")
    parser.add_argument("template", type=Path, nargs="?", default=ROOT / "template.yaml")
    template: Path = parser.parse_args().template
    try:
        deployment = Deployment.read(template.resolve())
    except TemplateError as error:
        sys.exit(str(error))
    except OSError as error:
        sys.exit(f"Cannot read {error.filename}: {error.strerror}. Pass the path of a SAM template.")
    problems = list(broken_rules(deployment))
    if problems:
        print("\n".join(problems))
        sys.exit(1)
    if complaints := lint(deployment).strip():
        print(complaints)
        sys.exit(1)
    nested = sum(len(each["Resources"]) for each in deployment.nested.values())
    own = len(deployment.expanded["Resources"])
    print(f"{template.name}: {own} resources and {nested} in nested templates, {len(RULES)} rules kept")


if __name__ == "__main__":
    main()

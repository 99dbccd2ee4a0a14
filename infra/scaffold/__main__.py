"""`make new-tool`: a tool that works, its test that passes, and what to do next."""

import argparse
import sys
from pathlib import Path
from typing import Final

from infra.scaffold.errors import ScaffoldError
from infra.scaffold.new_tool import KINDS, new_tool

ROOT: Final = Path(__file__).parent.parent.parent

_NEXT: Final = {
    "form": "Change the question and what happens after it; then run the test again:",
    "connect": "Name your provider and its scopes, and call its API; then run the test again:",
    "plain": "Change what it returns; then run the test again:",
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m infra.scaffold", description="Write a tool and its test.")
    parser.add_argument("name", metavar="NAME", help="like archive_report")
    parser.add_argument("kind", metavar="KIND", nargs="?", default="form", help=f"{', '.join(KINDS)} (default form)")
    given = parser.parse_args()
    try:
        changed = new_tool(ROOT, given.name, given.kind)
    except ScaffoldError as error:
        sys.exit(str(error))
    for path in changed:
        print(f"  {path.relative_to(ROOT)}")
    print(f"\n{_NEXT[given.kind]}\n\n  .venv/bin/python -m pytest tests/tools/test_{given.name}.py")
    print("\nA `make run` that is running serves it after: curl -X POST http://127.0.0.1:8000/_emulator/restart")


if __name__ == "__main__":
    main()

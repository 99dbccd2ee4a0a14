"""`make fuzz`: every target under libFuzzer, which keeps what reaches new code. Needs the package atheris.

    python -m tests.fuzz.coverage_guided --seconds 60 json_text
    python -m tests.fuzz.coverage_guided --seconds 10            # each target, one after the other

Starts from tests/fuzz/corpus/<target>. What it finds on the way stays in build/fuzz, for the next run; an input that
breaks a promise is printed and kept there too: put it into the corpus, and `make test` tries it from then on.
"""

import argparse
import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

CORPUS: Final = Path(__file__).parent / "corpus"
FOUND: Final = Path(__file__).parent.parent.parent / "build" / "fuzz"
MAX_LENGTH: Final = 4096


def fuzz(target: str, seconds: int) -> None:
    """Run one target in this process. Never returns: libFuzzer ends the process."""
    try:
        atheris: Any = importlib.import_module("atheris")
    except ImportError:
        sys.exit("The package atheris is not installed here: `uv pip install atheris` (Linux, Python 3.11 to 3.13).")
    with atheris.instrument_imports(include=["app"]):
        from tests.fuzz.targets import TARGETS
    found = FOUND / target
    found.mkdir(parents=True, exist_ok=True)
    limits = [f"-max_total_time={seconds}", f"-max_len={MAX_LENGTH}", "-timeout=5"]
    told = ["-print_final_stats=1", "-verbosity=0", f"-artifact_prefix={found}/"]
    atheris.Setup([sys.argv[0], *limits, *told, str(found), str(CORPUS / target)], TARGETS[target])
    atheris.Fuzz()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.coverage_guided", description=__doc__)
    parser.add_argument("target", nargs="?", help="all of them, one after the other, unless given")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    given = parser.parse_args()
    if given.target is not None:
        fuzz(given.target, given.seconds)
        return
    from tests.fuzz.targets import TARGETS

    broken = []
    for target in TARGETS:
        print(f"\n=== {target}", flush=True)
        command = [sys.executable, "-m", "tests.fuzz.coverage_guided", "--seconds", str(given.seconds), target]
        if subprocess.run(command, check=False).returncode:
            broken.append(target)
    if broken:
        sys.exit(f"\nBroken: {', '.join(broken)}. The inputs are in {FOUND}: put them into {CORPUS}.")


if __name__ == "__main__":
    main()

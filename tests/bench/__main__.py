"""`python -m tests.bench`: install the peers, check them, measure them, and write the results. Fails on a wrong
answer, never on a time.
"""

import argparse
import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tests.bench import cold, growth, report, size, staging, store, warm
from tests.bench.correctness import WrongAnswer, check
from tests.bench.order import Order
from tests.bench.peer import Peer, WorkerEnded
from tests.bench.results import Results, machine, versions
from tests.bench.staging import DESK, FASTMCP, FLOOR, MCP, OFFICIAL_SDK, TYPESCRIPT_SDK, WEB, NotAvailable
from tests.bench.workload import workload


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured."""

    cold_rounds: int
    cold_rounds_in_process: int
    blocks: int
    flows_per_block: int
    tool_peers: Sequence[str]
    tool_counts: Sequence[int]
    tool_starts: int
    tool_times: int
    state_times: int
    live_flows: Sequence[int]
    retries: int
    sized: Sequence[str]


FULL: Final = Effort(
    cold_rounds=25,
    cold_rounds_in_process=15,
    blocks=50,
    flows_per_block=40,
    tool_peers=(FLOOR, MCP, WEB, OFFICIAL_SDK, FASTMCP, TYPESCRIPT_SDK),
    tool_counts=(1, 100, 1_000),
    tool_starts=3,
    tool_times=15,
    state_times=200,
    live_flows=(1, 100, 1_000, 10_000, 100_000),
    retries=500,
    sized=(FLOOR, MCP, WEB, OFFICIAL_SDK, FASTMCP, TYPESCRIPT_SDK),
)
QUICK: Final = Effort(
    cold_rounds=3,
    cold_rounds_in_process=0,
    blocks=8,
    flows_per_block=15,
    tool_peers=(FLOOR, MCP, OFFICIAL_SDK),
    tool_counts=(1, 100),
    tool_starts=1,
    tool_times=5,
    state_times=20,
    live_flows=(1, 1_000),
    retries=100,
    sized=(FLOOR, MCP),
)


def available_peers() -> tuple[list[Peer], dict[str, str]]:
    """Every peer that can be had here, and of the others why not."""
    peers = staging.python_peers()
    try:
        return [*peers, staging.typescript_peer()], {}
    except NotAvailable as why:
        print(f"\n*** {TYPESCRIPT_SDK} IS NOT MEASURED: {why} ***\n", file=sys.stderr)
        return peers, {TYPESCRIPT_SDK: str(why)}


def run(effort: Effort, seed: int) -> Results:
    """Raises WrongAnswer, WorkerEnded and NotAvailable."""
    started, load = datetime.now(UTC), os.getloadavg()[0]
    order = Order(seed)
    peers, skipped = available_peers()
    node = _node_version() if TYPESCRIPT_SDK not in skipped else None
    npm = _npm_versions() if TYPESCRIPT_SDK not in skipped else {}
    # With a tool that has no effect: the example's report can be deleted once.
    repeatable = [peer for peer in peers if peer.name != DESK]
    in_process = [staging.keys_in_process(peer) for peer in repeatable if peer.name != WEB]
    with workload() as work:
        environment, own_keys = work.environment(), work.environment(keys_in_process=True)
        _say("Checking that every peer does the work ...")
        question_keys = {peer.name: check(peer, environment, work) for peer in repeatable}
        if effort.cold_rounds_in_process:
            for peer in in_process:
                check(peer, own_keys, work)
        _say("Cold starts ...")
        cold_starts = cold.measure(peers, environment, work, rounds=effort.cold_rounds, order=order)
        rounds = effort.cold_rounds_in_process
        with_own_keys = cold.measure(in_process, own_keys, work, rounds=rounds, order=order) if rounds else {}
        _say("Warm calls ...")
        calls = warm.measure(
            repeatable,
            environment,
            work,
            question_keys,
            blocks=effort.blocks,
            flows=effort.flows_per_block,
            order=order,
        )
        _say("Many tools, and large states ...")
        tools = growth.with_tools(
            [peer for peer in repeatable if peer.name in effort.tool_peers],
            environment,
            work,
            question_keys,
            counts=effort.tool_counts,
            starts=effort.tool_starts,
            times=effort.tool_times,
            order=order,
        )
        state = growth.with_state(
            repeatable, environment, work, sizes=growth.STATE_BYTES, times=effort.state_times, order=order
        )
        _say("Flows in the store ...")
        (ours,) = (peer for peer in peers if peer.name == MCP)
        url_mode = store.measure(ours, environment, work, live_flows=effort.live_flows, times=effort.retries)
    _say("Sizes ...")
    return Results(
        started=started,
        seed=seed,
        machine=machine(),
        load=load,
        versions=versions(peers, node, npm),
        skipped=skipped,
        cold=cold_starts,
        cold_keys_in_process=with_own_keys,
        warm=calls,
        tools=tools,
        state=state,
        url_mode=url_mode,
        sizes={peer.name: size.measure(peer) for peer in peers if peer.name in effort.sized},
    )


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def _node_version() -> str:
    node = shutil.which("node")
    assert node is not None
    return subprocess.run((node, "--version"), capture_output=True, text=True, check=True).stdout.strip()


def _npm_versions() -> dict[str, str]:
    package: dict[str, dict[str, str]] = json.loads((staging.TYPESCRIPT / "package.json").read_text())
    return {**package["dependencies"], **package["devDependencies"]}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="under a minute, for a first look; results in .bench/quick"
    )
    parser.add_argument("--seed", type=int, default=None, help="the order of the peers, as an earlier run had it")
    arguments = parser.parse_args()
    folder: Path = staging.STAGE / "quick" if arguments.quick else staging.HERE / "results"
    seed = secrets.randbelow(1_000_000) if arguments.seed is None else arguments.seed
    _say(f"The seed of the order is {seed}.")
    try:
        results = run(QUICK if arguments.quick else FULL, seed)
    except (WrongAnswer, WorkerEnded) as error:
        _say(f"\nWRONG: {error}")
        return 1
    except NotAvailable as why:
        _say(f"\nNothing is measured: {why}")
        return 1
    print(report.write(results, folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Warm calls: one process for each peer, blocks of flows of two rounds, interleaved in shuffled order."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median

from app.strict_json import JsonObject
from tests.bench.correctness import WrongAnswer
from tests.bench.order import Order
from tests.bench.peer import Peer, Worker, running
from tests.bench.quantities import paired_ratio, percentile
from tests.bench.workload import ACCEPT, Request, Workload


@dataclass(slots=True)
class Calls:
    """One round's calls of one peer, block by block, in nanoseconds."""

    blocks: list[list[int]] = field(default_factory=list)

    @property
    def p50_us(self) -> float:
        return median(self._all()) / 1000

    @property
    def p99_us(self) -> float:
        return percentile(self._all(), 0.99) / 1000

    def ratio(self, base: "Calls") -> float:
        return paired_ratio([median(each) for each in self.blocks], [median(each) for each in base.blocks])

    def _all(self) -> list[int]:
        return [each for block in self.blocks for each in block]


@dataclass(slots=True)
class Warm:
    """What one peer took for both rounds."""

    first: Calls = field(default_factory=Calls)
    second: Calls = field(default_factory=Calls)
    rss_mib: float = 0.0

    @property
    def requests_per_second(self) -> float:
        """Of one process that is never idle."""
        spent = [sum(block) for block in (*self.first.blocks, *self.second.blocks)]
        calls = sum(len(block) for block in (*self.first.blocks, *self.second.blocks))
        return calls / (sum(spent) / 1e9)


def measure(
    peers: Sequence[Peer],
    environment: Mapping[str, str],
    work: Workload,
    question_keys: Mapping[str, str],
    *,
    blocks: int,
    flows: int,
    order: Order,
) -> dict[str, Warm]:
    """`blocks` rounds over all peers, `flows` flows in each block. Raises WrongAnswer."""
    found = {peer.name: Warm() for peer in peers}
    with ExitStack() as stack:
        workers = [stack.enter_context(running(peer, environment)) for peer in peers]

        def block(worker: Worker, times: int) -> JsonObject:
            responses = {question_keys[worker.peer.name]: ACCEPT["confirm"]}
            return run_flows(worker, work.delete_report(), responses, contains="is deleted", times=times)

        for worker in workers:
            block(worker, flows)
        for _ in range(blocks):
            for worker in order.of(workers):
                reply = block(worker, flows)
                warm = found[worker.peer.name]
                warm.first.blocks.append(reply["first_ns"])
                warm.second.blocks.append(reply["second_ns"])
                warm.rss_mib = reply["rss_kib"] / 1024
    return found


def run_flows(worker: Worker, request: Request, responses: JsonObject, *, contains: str, times: int) -> JsonObject:
    """A block of flows of two rounds. Raises WrongAnswer unless every one of them ends as it must."""
    command = {"responses": responses, "result_type": "complete", "contains": contains, "times": times}
    return _right(worker, worker.send("rounds", **request.command(), **command))


def run_repeated(worker: Worker, request: Request, *, result_type: str, contains: str, times: int) -> JsonObject:
    """The same request over and over. Raises WrongAnswer unless every answer is as it must be."""
    command = {"result_type": result_type, "contains": contains, "times": times}
    return _right(worker, worker.send("repeat", **request.command(), **command))


def _right(worker: Worker, reply: JsonObject) -> JsonObject:
    if reply["wrong"]:
        raise WrongAnswer(worker.peer, "a warm call must be answered like the first one", reply["wrong"][0])
    return reply

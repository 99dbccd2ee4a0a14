"""What grows: the number of tools, and what travels from one round to the next."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from app.strict_json import JsonObject
from tests.bench.correctness import WrongAnswer
from tests.bench.order import Order
from tests.bench.peer import Peer, Worker, running
from tests.bench.warm import run_flows, run_repeated
from tests.bench.workload import ACCEPT, Request, Workload, result

STATE_BYTES: Final = (100, 1_000, 16_000)
"""What a tool carries. The whole of a requestState of ours holds 16,384 bytes of claims."""


@dataclass(frozen=True, slots=True)
class ManyTools:
    """A peer with so many tools."""

    tools: int
    cold_list_ms: float
    list_us: float
    list_bytes: int
    call_us: float
    peak_mib: float


@dataclass(frozen=True, slots=True)
class CarriedState:
    """A peer whose tool carries so many bytes."""

    carried: int
    first_us: float
    second_us: float


def with_tools(
    peers: Sequence[Peer],
    environment: Mapping[str, str],
    work: Workload,
    question_keys: Mapping[str, str],
    *,
    counts: Sequence[int],
    starts: int,
    times: int,
    order: Order,
) -> dict[str, list[ManyTools]]:
    """Each peer with each number of tools: its start until all are listed, and warm lists and calls."""
    found: dict[str, list[ManyTools]] = {peer.name: [] for peer in peers}
    for count in counts:
        configured = [peer.configured(BENCH_TOOLS=str(count)) for peer in peers]
        cold: dict[str, list[float]] = {peer.name: [] for peer in peers}
        for _ in range(starts):
            for peer in order.of(configured):
                cold[peer.name].append(_cold_list(peer, environment, work, count))
        for peer in order.of(configured):
            with running(peer, environment) as worker:
                pages = [
                    run_repeated(worker, request, result_type="complete", contains='"tools"', times=times)
                    for request, _ in _pages(worker, work)
                ]
                responses = {question_keys[peer.name]: ACCEPT["confirm"]}
                flows = run_flows(worker, work.delete_report(), responses, contains="is deleted", times=times)
            found[peer.name].append(
                ManyTools(
                    tools=count,
                    cold_list_ms=median(cold[peer.name]),
                    list_us=sum(median(page["ns"]) for page in pages) / 1000,
                    list_bytes=sum(page["bytes"] for page in pages),
                    call_us=median(flows["first_ns"]) / 1000,
                    peak_mib=flows["peak_kib"] / 1024,
                )
            )
    return found


def _cold_list(peer: Peer, environment: Mapping[str, str], work: Workload, count: int) -> float:
    """The milliseconds from the start of a process until every tool is listed. Raises WrongAnswer."""
    started = time.perf_counter()
    with running(peer, environment) as worker:
        pages = list(_pages(worker, work))
        spent = time.perf_counter() - started
    listed = [tool["name"] for _, answer in pages for tool in result(answer).get("tools", ())]
    if sorted(listed) != sorted(("delete_report", *(f"tool_{each:04}" for each in range(1, count)))):
        raise WrongAnswer(peer, f"tools/list must have exactly the {count} tools", pages[-1][1])
    return spent * 1000


def _pages(worker: Worker, work: Workload) -> Iterator[tuple[Request, JsonObject]]:
    """The requests that it takes to list every tool, with their answers."""
    params: JsonObject = {}
    while True:
        request = work.request("tools/list", params, token=work.token("alice"))
        answer = worker.send("call", **request.command())["answer"]
        yield request, answer
        cursor = result(answer).get("nextCursor")
        if cursor is None:
            return
        params = {"cursor": cursor}


def with_state(
    peers: Sequence[Peer],
    environment: Mapping[str, str],
    work: Workload,
    *,
    sizes: Sequence[int],
    times: int,
    order: Order,
) -> dict[str, list[CarriedState]]:
    """Each peer with a tool that carries something from round 1 to round 2."""
    found: dict[str, list[CarriedState]] = {peer.name: [] for peer in peers}
    for peer in order.of(peers):
        with running(peer.configured(BENCH_CARRY="1"), environment) as worker:
            for size in sizes:
                request = work.call("carry", {"size": size})
                flows = run_flows(worker, request, ACCEPT, contains=f"{size} bytes came back", times=times)
                found[peer.name].append(
                    CarriedState(size, median(flows["first_ns"]) / 1000, median(flows["second_ns"]) / 1000)
                )
    return found

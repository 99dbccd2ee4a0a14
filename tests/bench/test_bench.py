"""The benchmark itself: it starts what it measures, looks at every answer, and draws what it found."""

import importlib.util
import platform
import sysconfig
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.bench import chart, cold, growth, report, size, staging, store, warm
from tests.bench.chart import Bar, Dots, Line
from tests.bench.cold import Cold
from tests.bench.correctness import WrongAnswer, check, is_question
from tests.bench.growth import CarriedState, ManyTools
from tests.bench.order import Order
from tests.bench.peer import Peer, Start, WorkerEnded, cold_start, running
from tests.bench.quantities import paired_ratio, percentile
from tests.bench.results import Results
from tests.bench.size import Size
from tests.bench.staging import DESK, FASTMCP, FLOOR, MCP, OFFICIAL_SDK, TYPESCRIPT_SDK, WEB, NotAvailable
from tests.bench.store import Retry, UrlMode
from tests.bench.targets import Target
from tests.bench.warm import Calls, Warm
from tests.bench.workload import ACCEPT, Workload, workload

INSTALLED = Path(sysconfig.get_paths()["purelib"])
WORKER = staging.HERE / "worker.py"


@pytest.fixture(scope="module")
def work() -> Iterator[Workload]:
    with workload() as work:
        yield work


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Our code with the benchmark's tool."""
    return staging.copy_of_project(tmp_path_factory.mktemp("code"), tools=staging.ONE_TOOL)


def peer(name: str, module: str, *code: Path) -> Peer:
    """A peer on what this virtual environment has installed."""
    return staging.python_peer(name, module, (*code, INSTALLED), WORKER, python=staging.bare_python())


@pytest.fixture(scope="module")
def floor() -> Peer:
    return peer(FLOOR, "floor", staging.PEERS)


@pytest.fixture(scope="module")
def ours(project: Path) -> Peer:
    return peer(MCP, "handlers.mcp", project)


@pytest.mark.parametrize("module", ["floor", "official_sdk", "fastmcp_server"])
def test_a_peer_that_is_installed_does_the_work(module: str, work: Workload) -> None:
    """The peers' own files, through every check."""
    if module == "fastmcp_server" and importlib.util.find_spec("fastmcp") is None:
        pytest.skip("FastMCP is installed by `make bench` alone")
    assert check(peer(module, module, staging.PEERS), work.environment(), work)
    assert check(peer(module, module, staging.PEERS), work.environment(keys_in_process=True), work)


@pytest.mark.parametrize("module", ["handlers.mcp", "handlers.web"])
def test_our_handlers_do_the_work(module: str, work: Workload, project: Path) -> None:
    """The files that Lambda loads, with the benchmark's tool in place of the examples."""
    assert check(peer(module, module, project), work.environment(), work) == "confirm"


def test_our_handler_does_the_work_with_the_key_in_the_process(work: Workload, ours: Peer) -> None:
    assert check(staging.keys_in_process(ours), work.environment(keys_in_process=True), work) == "confirm"


def test_the_desk_asks_the_same_question(work: Workload, tmp_path: Path) -> None:
    """The project with more tools than one is a peer too."""
    desk = peer(DESK, "handlers.mcp", staging.copy_of_project(tmp_path, tools=staging.DESK_TOOLS))
    (found,) = cold.measure([desk], work.environment(), work, rounds=1, order=Order(1)).values()
    assert is_question(found.starts[0].answer)


def test_a_cold_start_is_told_in_its_parts(work: Workload, floor: Peer) -> None:
    start = cold_start(floor, work.environment(), work.delete_report().command())
    assert 0 < start.import_ms + start.first_call_ms < start.wall_ms
    assert start.cpu_ms > 0
    assert 5 < start.peak_mib < 500


def test_warm_blocks_count_every_call(work: Workload, floor: Peer) -> None:
    found = warm.measure([floor], work.environment(), work, {FLOOR: "confirm"}, blocks=2, flows=3, order=Order(1))
    assert [len(block) for block in (*found[FLOOR].first.blocks, *found[FLOOR].second.blocks)] == [3, 3, 3, 3]
    assert found[FLOOR].requests_per_second > 0


WRONG = {
    "the state is altered": 'floor.opened = lambda state, bound_to: {"carried": ""}',
    "another user's": "floor.sealed = lambda claims, bound_to, sealed=floor.sealed: sealed(claims, b'')\n"
    "floor.opened = lambda state, bound_to, opened=floor.opened: opened(state, b'')",
    "round 1 must ask": "floor.FORM = {'type': 'object', 'properties': {}}",
    "the user declined": "floor.answer = lambda *members, answer=floor.answer: "
    "{**(found := answer(*members)), 'body': found['body'].replace(',\"isError\":true', '').replace('still there', "
    "'gone: it is deleted')}",
    "without a token that verifies": "floor.jwt.decode = lambda token, *_, decode=floor.jwt.decode, **__: "
    "decode(token, options={'verify_signature': False})",
}


@pytest.mark.parametrize("what", WRONG)
def test_a_peer_that_does_not_do_the_work_is_no_figure(what: str, work: Workload, tmp_path: Path) -> None:
    """A peer that leaves out a check is quicker, and proves nothing."""
    (tmp_path / "wrong.py").write_text(f"import floor\n{WRONG[what]}\nhandler = floor.handler\n")
    wrong = peer("wrong", "wrong", tmp_path, staging.PEERS)
    with pytest.raises(WrongAnswer, match=what):
        check(wrong, work.environment(), work)


def test_a_peer_that_fails_on_its_second_call_is_told_with_its_own_words(work: Workload, tmp_path: Path) -> None:
    """Mangum's own lifespan handling under the official SDK: LifespanFailure on every later call."""
    (tmp_path / "wrong.py").write_text(
        "import floor\ncalls = []\n"
        "def handler(event, context):\n"
        "    calls.append(event)\n"
        "    if len(calls) > 2: raise RuntimeError('.run() can only be called once')\n"
        "    return floor.handler(event, context)\n"
    )
    wrong = peer("wrong", "wrong", tmp_path, staging.PEERS)
    with pytest.raises(WorkerEnded, match="can only be called once"):
        check(wrong, work.environment(), work)


def test_a_block_with_a_wrong_answer_in_it_is_no_figure(work: Workload, floor: Peer) -> None:
    with running(floor, work.environment()) as worker:
        warm.run_flows(worker, work.delete_report(), ACCEPT, contains="is deleted", times=2)
        with pytest.raises(WrongAnswer):
            warm.run_flows(worker, work.delete_report(), ACCEPT, contains="is archived", times=2)
        with pytest.raises(WrongAnswer):
            warm.run_repeated(worker, work.delete_report(), result_type="complete", contains="", times=2)


def test_a_retry_takes_at_most_two_round_trips_however_many_flows_are_alive(work: Workload, ours: Peer) -> None:
    """app/oauth/connections.py: a pending retry and a connected call each take at most two."""
    found = store.measure(ours, work.environment(), work, live_flows=(1, 300), times=3)
    assert [(each.live_flows, each.round_trips) for each in found.pending] == [(1, 2), (300, 2)]
    assert found.connected.round_trips == 1


def test_every_page_of_a_long_list_is_counted(work: Workload, floor: Peer, ours: Peer) -> None:
    """server/utilities/pagination: ours comes in pages, the floor's at once."""
    found = growth.with_tools(
        [floor, ours],
        work.environment(),
        work,
        {FLOOR: "confirm", MCP: "confirm"},
        counts=(300,),
        starts=1,
        times=1,
        order=Order(1),
    )
    assert [len(growth_of_one) for growth_of_one in found.values()] == [1, 1]
    assert all(each.list_bytes > 300 * 200 for (each,) in found.values())


def test_ratios_are_taken_pair_by_pair() -> None:
    """A slow minute of the machine is in both members of a pair."""
    assert paired_ratio([2, 20, 6], [1, 10, 2]) == 2
    assert percentile([4, 1, 3, 2], 0.99) == 4
    assert percentile([4, 1, 3, 2], 0.25) == 1


def test_an_order_can_be_repeated_and_misses_nobody() -> None:
    turns = ["a", "b", "c", "d"]
    one, other = Order(7), Order(7)
    orders = [one.of(turns) for _ in range(20)]
    assert orders == [other.of(turns) for _ in range(20)]
    assert all(sorted(each) == turns for each in orders)
    assert len(set(map(tuple, orders))) > 1


def test_without_node_the_typescript_peer_is_left_out_and_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda program: None)
    with pytest.raises(NotAvailable, match="install Node"):
        staging.typescript_peer()


def test_an_artefact_is_weighed_with_its_bytecode_apart(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "module.py").write_bytes(b"#" * 1_000_000)
    (tmp_path / "package" / "module.pyc").write_bytes(b"0" * 2_000_000)
    found = size.measure(Peer("one", (), (tmp_path,)))
    assert (found.unpacked_mb, found.bytecode_mb, found.files) == (1, 2, 1)
    assert 0 < found.packed_mb < 0.01


NAMES = (FLOOR, MCP, DESK, WEB, OFFICIAL_SDK, FASTMCP, TYPESCRIPT_SDK)


def results(*, skipped: bool = False) -> Results:
    """Made-up results: each peer is as slow as its place in the list."""
    names = NAMES[:-1] if skipped else NAMES
    starts = {
        name: Cold(
            [Start(100.0 * place * (1 + each), 90.0 * place, 80.0, 3.0, 30.0 + place, 200, {}) for each in range(3)]
        )
        for place, name in enumerate(names, start=1)
    }
    calls = {
        name: Warm(Calls([[100_000 * place, 150_000 * place]]), Calls([[90_000 * place]]), 40.0)
        for place, name in enumerate(names, start=1)
    }
    return Results(
        started=datetime(2026, 11, 30, 12, tzinfo=UTC),
        seed=7,
        machine="a machine",
        load=0.1,
        versions={"Python": "3.11.7"},
        skipped={TYPESCRIPT_SDK: "there is no Node.js here"} if skipped else {},
        cold=starts,
        cold_keys_in_process={} if skipped else starts,
        warm=calls,
        tools={name: [ManyTools(n, 100.0 + n, 300.0, 400, 500.0, 60.0) for n in (1, 100)] for name in names},
        state={name: [CarriedState(100, 300.0, 310.0)] for name in names},
        url_mode=UrlMode([Retry(1, 500.0, 900.0, 2.0), Retry(1000, 501.0, 901.0, 2.0)], Retry(1000, 300.0, 400.0, 1.0)),
        sizes={MCP: Size(29.5, 9.5, 10.0, 4.0, 900)},
    )


def test_the_page_says_of_every_target_whether_it_is_met() -> None:
    page = "\n".join(report._page(results()))
    assert "| cold start, of the floor | 2.00 | 1.5 | **not met** |" in page
    assert "| artefact, unpacked | 29.50 MB | 30 MB | met |" in page
    assert "| artefact, packed | 9.50 MB | 9 MB | **not met** |" in page
    assert not Target("", float("nan"), 1.0).met


def test_a_peer_that_could_not_be_had_is_named_and_its_targets_are_left_out() -> None:
    page = "\n".join(report._page(results(skipped=True)))
    assert "**Not measured: TypeScript SDK, because there is no Node.js here.**" in page
    assert "of the TypeScript SDK" not in page


def test_a_page_that_was_made_while_other_work_ran_says_so() -> None:
    warning = "Other work was running"
    assert warning not in "\n".join(report._page(results()))
    assert warning in "\n".join(report._page(replace(results(), load=3.0)))


def test_the_page_and_the_charts_name_no_path_and_no_host() -> None:
    """They are committed."""
    found = results()
    for text in ("\n".join(report._page(found)), *report.charts(found).values()):
        assert str(staging.ROOT) not in text
        assert platform.node() not in text


def test_every_chart_is_well_formed_and_inside_its_frame() -> None:
    for svg in report.charts(results()).values():
        root = ElementTree.fromstring(svg)  # noqa: S314  our own
        _, _, width, height = map(float, root.attrib["viewBox"].split())
        for circle in root.iter("{http://www.w3.org/2000/svg}circle"):
            assert 0 < float(circle.attrib["cx"]) < width
            assert 0 < float(circle.attrib["cy"]) < height
        texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
        assert len(texts) == len(list(filter(None, texts))) > 4


def test_a_bar_is_as_long_as_its_value_and_a_label_is_only_text() -> None:
    svg = chart.bar_chart("<&>", 'a "b"', [Bar("<one>", 50, 40, 60, "red"), Bar("two", 100, 90, 110, "red")], unit="ms")
    root = ElementTree.fromstring(svg)  # noqa: S314  our own
    bars = [each for each in root.iter("{http://www.w3.org/2000/svg}rect") if each.attrib["fill"] == "red"]
    one, two = (float(each.attrib["width"]) for each in bars)
    assert two == pytest.approx(2 * one, abs=0.2)
    assert "<one>" in [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]


def test_ten_times_as_much_is_as_far_anywhere_on_a_logarithmic_axis() -> None:
    rows = [Dots("a", [(10, 100)], "red"), Dots("b", [(100, 1000)], "red")]
    root = ElementTree.fromstring(chart.dot_chart("", "", rows, unit="µs"))  # noqa: S314  our own
    xs = [float(each.attrib["cx"]) for each in root.iter("{http://www.w3.org/2000/svg}circle")]
    tails = [float(each.attrib["x2"]) for each in root.iter("{http://www.w3.org/2000/svg}line")]
    assert xs[1] in tails  # the tail of the first ends where the second is
    lines = [Line("x", [(1, 10), (10, 100), (100, 1000)], "red")]
    root = ElementTree.fromstring(chart.line_chart("", "", lines, x_unit="", y_unit=""))  # noqa: S314  our own
    ys = [float(each.attrib["cy"]) for each in root.iter("{http://www.w3.org/2000/svg}circle")]
    assert ys[0] - ys[1] == pytest.approx(ys[1] - ys[2], abs=0.2)


def test_labels_of_lines_that_end_together_do_not_overlap() -> None:
    lines = [Line(name, [(1, 100), (10, 100 + place)], "red") for place, name in enumerate("abc")]
    root = ElementTree.fromstring(chart.line_chart("", "", lines, x_unit="", y_unit=""))  # noqa: S314  our own
    labels = {each.text: float(each.attrib["y"]) for each in root.iter("{http://www.w3.org/2000/svg}text")}
    heights = sorted(labels[name] for name in "abc")
    assert min(heights[1] - heights[0], heights[2] - heights[1]) >= 16

"""The results as a page of Markdown with charts beside it."""

import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.bench import chart
from tests.bench.chart import Bar, Dots, Line
from tests.bench.cold import Cold
from tests.bench.quantities import percentile
from tests.bench.results import Results
from tests.bench.staging import (
    DESK,
    FASTMCP,
    FLOOR,
    MCP,
    OFFICIAL_SDK,
    TYPESCRIPT_SDK,
    WEB,
    NotAvailable,
    chart_converter,
    deployed_python,
)
from tests.bench.targets import targets
from tests.bench.warm import Warm

COLOURS: Final = {
    FLOOR: "#8c959f",
    MCP: "#0969da",
    DESK: "#54aeff",
    WEB: "#8250df",
    OFFICIAL_SDK: "#bc4c00",
    FASTMCP: "#cf222e",
    TYPESCRIPT_SDK: "#1a7f37",
}
BUSY: Final = 0.7
"""Load from which the peers no longer have the machine to themselves: one of them runs at a time."""
_TO_PNG: Final = """
import pathlib, sys
import resvg_py
for name in sys.argv[1:]:
    svg = pathlib.Path(name)
    svg.with_suffix(".png").write_bytes(bytes(resvg_py.svg_to_bytes(svg_string=svg.read_text(), zoom=2)))
"""


def write(results: Results, folder: Path) -> str:
    """Write results.md and its charts into `folder`. Returns the page."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {folder / f"{name}.svg": svg for name, svg in charts(results).items()}
    for path, svg in drawn.items():
        path.write_text(svg, encoding="utf-8")
    page = "\n".join(_page(results))
    (folder / "results.md").write_text(page, encoding="utf-8")
    _to_png(drawn)
    return page


def _to_png(paths: Iterable[Path]) -> None:
    try:
        converter = chart_converter()
    except NotAvailable as why:
        print(f"NO PNG: {why}. The charts are there as SVG.")
        return
    command = (deployed_python(), "-S", "-c", _TO_PNG, *map(str, paths))
    subprocess.run(command, env={"PYTHONPATH": str(converter)}, check=True)


def charts(results: Results) -> dict[str, str]:
    """The charts, by name."""
    cold = [
        Bar(
            name,
            each.middle("wall_ms"),
            percentile(each.values("wall_ms"), 0.25),
            percentile(each.values("wall_ms"), 0.75),
            COLOURS[name],
        )
        for name, each in results.cold.items()
    ]
    warm = [
        Dots(name, [(calls.p50_us, calls.p99_us) for calls in (each.first, each.second)], COLOURS[name])
        for name, each in results.warm.items()
    ]
    tools = [
        Line(name, [(each.tools, each.cold_list_ms) for each in found], COLOURS[name])
        for name, found in results.tools.items()
    ]
    state = [
        Line(name, [(each.carried, each.second_us) for each in found], COLOURS[name])
        for name, found in results.state.items()
    ]
    pending = results.url_mode.pending
    flows = [
        Line("p50", [(each.live_flows, each.p50_us) for each in pending], COLOURS[MCP]),
        Line("p99", [(each.live_flows, each.p99_us) for each in pending], COLOURS[MCP], dashed=True),
    ]
    return {
        "cold": chart.bar_chart(
            "Cold start: a whole process, to its first question",
            "Median of all starts, with the middle half of them. The issuer's key is fetched over loopback.",
            cold,
            unit="ms",
        ),
        "warm": chart.dot_chart(
            "Warm call: round 1 (full) and round 2 (hollow)",
            "Dot: median. Tail: 99th percentile. Logarithmic.",
            warm,
            unit="µs",
        ),
        "tools": chart.line_chart(
            "Cold start to tools/list, by the number of tools",
            "Median of all starts. Logarithmic.",
            tools,
            x_unit="tools",
            y_unit="ms",
        ),
        "state": chart.line_chart(
            "Warm call, round 2, by what a tool carries in requestState",
            "Median. Logarithmic.",
            state,
            x_unit="bytes",
            y_unit="µs",
        ),
        "flows": chart.line_chart(
            "A retry while the user is in the browser, by the live flows in the store",
            f"handlers/mcp.py and a Valkey on loopback, {pending[0].round_trips:g} round trips. Logarithmic.",
            flows,
            x_unit="live flows",
            y_unit="µs",
        ),
    }


def _page(results: Results) -> Iterator[str]:
    yield "# Benchmark"
    yield ""
    yield f"{results.started:%d %B %Y, %H:%M} UTC. {results.machine}, load {results.load:.1f}. Seed {results.seed}."
    yield ", ".join(f"{name} {version}" for name, version in results.versions.items()) + "."
    yield ""
    yield "`make bench` made this page; tests/bench/README.md says what is compared, and what is alike and what is not."
    if results.load > BUSY:
        yield ""
        yield "**Other work was running when this began: its times are worth little. Run it again on a quiet machine.**"
    for name, why in results.skipped.items():
        yield ""
        yield f"**Not measured: {name}, because {why}.**"
    yield from _section("Targets", "what | measured | at most | verdict", _targets(results))
    yield "\n![Cold start](cold.svg)"
    heading = "Cold start: whole process, to the first question"
    yield from _section(heading, _COLD_HEAD, _cold(results.cold))
    if results.cold_keys_in_process:
        yield from _section(
            "The same, with the issuer's key in the process", _COLD_HEAD, _cold(results.cold_keys_in_process)
        )
    yield "\n![Warm call](warm.svg)"
    yield from _section("Warm call: one process each, interleaved blocks", _WARM_HEAD, _warm(results.warm))
    yield "\n![Tools](tools.svg)"
    yield from _section("By the number of tools", _TOOLS_HEAD, _tools(results))
    yield "\n![Carried state](state.svg)"
    yield from _section(
        "By what a tool carries in requestState", "peer | bytes | round 1 µs | round 2 µs", _state(results)
    )
    yield "\n![Live flows](flows.svg)"
    yield from _section(
        "URL mode on Valkey: a retry", "retry | live flows | p50 µs | p99 µs | round trips", _url_mode(results)
    )
    if results.sizes:
        head = "artefact | unpacked MB | packed MB | bytecode MB | bytecode packed MB | files"
        yield from _section("Artefact: everything but the interpreter", head, _sizes(results))
    yield ""


def _section(title: str, head: str, rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield from ("", f"## {title}", "")
    yield f"| {head} |"
    yield "|---|" + "---:|" * head.count("|")
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _targets(results: Results) -> Iterator[Sequence[str]]:
    for each in targets(results):
        verdict = "met" if each.met else "**not met**"
        yield each.what, f"{each.measured:.2f}{each.unit}", f"{each.limit:g}{each.unit}", verdict


_COLD_HEAD: Final = (
    "peer | wall ms | from | to | CPU ms | import ms | first call ms | peak MiB | modules"
    " | wall / floor | wall / SDK | CPU / floor | memory / floor"
)


def _cold(cold: Mapping[str, Cold]) -> Iterator[Sequence[str]]:
    for name, each in cold.items():
        walls = each.values("wall_ms")
        yield (
            name,
            f"{each.middle('wall_ms'):.0f}",
            f"{min(walls):.0f}",
            f"{max(walls):.0f}",
            f"{each.middle('cpu_ms'):.0f}",
            f"{each.middle('import_ms'):.0f}",
            f"{each.middle('first_call_ms'):.1f}",
            f"{each.middle('peak_mib'):.0f}",
            f"{each.middle('modules'):.0f}",
            f"{each.ratio(cold[FLOOR], 'wall_ms'):.2f}",
            f"{each.ratio(cold[OFFICIAL_SDK], 'wall_ms'):.2f}",
            f"{each.ratio(cold[FLOOR], 'cpu_ms'):.2f}",
            f"{each.ratio(cold[FLOOR], 'peak_mib'):.2f}",
        )


_WARM_HEAD: Final = (
    "peer | round 1 p50 µs | p99 | / floor | / SDK | round 2 p50 µs | p99 | / floor | / SDK | requests/s | RSS MiB"
)


def _warm(warm: Mapping[str, Warm]) -> Iterator[Sequence[str]]:
    for name, each in warm.items():
        row = [name]
        for which in ("first", "second"):
            calls = getattr(each, which)
            row += [
                f"{calls.p50_us:.0f}",
                f"{calls.p99_us:.0f}",
                f"{calls.ratio(getattr(warm[FLOOR], which)):.2f}",
                f"{calls.ratio(getattr(warm[OFFICIAL_SDK], which)):.2f}",
            ]
        yield *row, f"{each.requests_per_second:.0f}", f"{each.rss_mib:.0f}"


_TOOLS_HEAD: Final = "peer | tools | start to list ms | warm list µs | list bytes | warm call µs | peak MiB"


def _tools(results: Results) -> Iterator[Sequence[str]]:
    for name, found in results.tools.items():
        for each in found:
            yield (
                name,
                f"{each.tools:,}",
                f"{each.cold_list_ms:.0f}",
                f"{each.list_us:,.0f}",
                f"{each.list_bytes:,}",
                f"{each.call_us:,.0f}",
                f"{each.peak_mib:.0f}",
            )


def _state(results: Results) -> Iterator[Sequence[str]]:
    for name, found in results.state.items():
        for each in found:
            yield name, f"{each.carried:,}", f"{each.first_us:.0f}", f"{each.second_us:.0f}"


def _url_mode(results: Results) -> Iterator[Sequence[str]]:
    rows = [("pending", each) for each in results.url_mode.pending] + [("connected", results.url_mode.connected)]
    for what, each in rows:
        yield what, f"{each.live_flows:,}", f"{each.p50_us:.0f}", f"{each.p99_us:.0f}", f"{each.round_trips:g}"


def _sizes(results: Results) -> Iterator[Sequence[str]]:
    for name, each in results.sizes.items():
        yield (
            name,
            f"{each.unpacked_mb:.1f}",
            f"{each.packed_mb:.1f}",
            f"{each.bytecode_mb:.1f}",
            f"{each.packed_bytecode_mb:.1f}",
            f"{each.files:,}",
        )

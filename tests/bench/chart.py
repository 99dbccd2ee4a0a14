"""Charts as SVG, written by hand: bars, dots with a range on a logarithmic axis, and lines on two of them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape, quoteattr

WIDTH: Final = 820
_LEFT: Final = 190
_RIGHT: Final = 90
_TOP: Final = 84
_ROW: Final = 38
_INK: Final = "#1f2328"
_MUTED: Final = "#59636e"
_GRID: Final = "#d8dee4"
_FONT: Final = "DejaVu Sans, Helvetica, Arial, sans-serif"


@dataclass(frozen=True, slots=True)
class Bar:
    """A value from zero, with the lowest and the highest that were seen."""

    label: str
    value: float
    low: float
    high: float
    colour: str


@dataclass(frozen=True, slots=True)
class Dots:
    """Some values in one row, each with a tail up to a higher one."""

    label: str
    values: Sequence[tuple[float, float]]
    colour: str


@dataclass(frozen=True, slots=True)
class Line:
    label: str
    points: Sequence[tuple[float, float]]
    colour: str
    dashed: bool = False


def bar_chart(title: str, subtitle: str, bars: Sequence[Bar], *, unit: str) -> str:
    """Horizontal bars on a linear axis that begins at zero."""
    highest = max(bar.high for bar in bars)
    ticks = _linear_ticks(highest)
    scale = (WIDTH - _LEFT - _RIGHT) / max(highest, ticks[-1])
    height = _TOP + _ROW * len(bars) + 44
    parts = [*_grid([(_LEFT + tick * scale, f"{_number(tick)} {unit}") for tick in ticks], height)]
    for row, bar in enumerate(bars):
        middle = _TOP + _ROW * (row + 0.5)
        end, low, high = (_LEFT + each * scale for each in (bar.value, bar.low, bar.high))
        parts += [
            _text(_LEFT - 10, middle + 4, bar.label, anchor="end"),
            f'<rect x="{_LEFT}" y="{middle - 11:.1f}" width="{end - _LEFT:.1f}" height="22" rx="2" '
            f'fill="{bar.colour}"/>',
            _stroke(low, middle, high, middle, _INK, 1.2),
            _stroke(low, middle - 4, low, middle + 4, _INK, 1.2),
            _stroke(high, middle - 4, high, middle + 4, _INK, 1.2),
            _text(high + 8, middle + 4, f"{_number(bar.value)} {unit}", weight="bold"),
        ]
    return _document(title, subtitle, height, parts)


def dot_chart(title: str, subtitle: str, rows: Sequence[Dots], *, unit: str) -> str:
    """Values over several powers of ten: position on a logarithmic axis, where bars would have no beginning."""
    every = [each for row in rows for pair in row.values for each in pair]
    ticks = _logarithmic_ticks(min(every), max(every))
    place = _logarithmic(ticks[0], ticks[-1], _LEFT, WIDTH - _RIGHT)
    height = _TOP + _ROW * len(rows) + 44
    parts = [*_grid([(place(tick), f"{_number(tick)} {unit}") for tick in ticks], height)]
    for row, dots in enumerate(rows):
        parts.append(_text(_LEFT - 10, _TOP + _ROW * (row + 0.5) + 4, dots.label, anchor="end"))
        for position, (value, tail) in enumerate(dots.values):
            y = _TOP + _ROW * (row + (position + 1) / (len(dots.values) + 1))
            parts.append(_stroke(place(value), y, place(tail), y, dots.colour, 2))
            parts.append(_stroke(place(tail), y - 4, place(tail), y + 4, dots.colour, 2))
            fill = dots.colour if position == 0 else "#ffffff"
            parts.append(
                f'<circle cx="{place(value):.1f}" cy="{y:.1f}" r="5" fill="{fill}" stroke="{dots.colour}" '
                'stroke-width="2"/>'
            )
    return _document(title, subtitle, height, parts)


def line_chart(title: str, subtitle: str, lines: Sequence[Line], *, x_unit: str, y_unit: str) -> str:
    """Lines on two logarithmic axes, each with its name at its end."""
    left, right, bottom = 80, WIDTH - 190, 440
    xs = sorted({x for line in lines for x, _ in line.points})
    ys = [y for line in lines for _, y in line.points]
    # Some room around: a line that is flat must look flat.
    y_ticks = _logarithmic_ticks(min(ys) / 2, max(ys) * 2)
    across = _logarithmic(xs[0], xs[-1], left, right) if len(xs) > 1 else (lambda x: (left + right) / 2)
    up = _logarithmic(y_ticks[0], y_ticks[-1], bottom, _TOP)
    parts = [_stroke(left, up(tick), right, up(tick), _GRID, 1) for tick in y_ticks]
    parts += [_text(left - 8, up(tick) + 4, f"{_number(tick)} {y_unit}", anchor="end", muted=True) for tick in y_ticks]
    parts += [_text(across(x), bottom + 22, f"{x:,.0f}", anchor="middle", muted=True) for x in xs]
    parts.append(_text((left + right) / 2, bottom + 46, x_unit, anchor="middle", muted=True))
    for line in lines:
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in line.points)
        dashes = ' stroke-dasharray="6 5"' if line.dashed else ""
        parts.append(f'<polyline points="{path}" fill="none" stroke="{line.colour}" stroke-width="2.5"{dashes}/>')
        parts += [f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="4" fill="{line.colour}"/>' for x, y in line.points]
    ends = _apart({line.label: up(line.points[-1][1]) for line in lines}, least=17)
    parts += [_text(right + 12, ends[line.label] + 4, line.label, colour=line.colour, weight="bold") for line in lines]
    return _document(title, subtitle, bottom + 66, parts)


def _apart(heights: Mapping[str, float], *, least: float) -> dict[str, float]:
    """The same heights, moved down where two labels would overlap."""
    placed: dict[str, float] = {}
    last = -math.inf
    for label, height in sorted(heights.items(), key=lambda each: each[1]):
        last = placed[label] = max(height, last + least)
    return placed


def _logarithmic(low: float, high: float, start: float, end: float) -> "_Scale":
    return _Scale(math.log10(low), math.log10(high), start, end)


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (math.log10(value) - self.low) / (self.high - self.low) * (self.end - self.start)


def _linear_ticks(highest: float) -> list[float]:
    rough = highest / 5
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    return [step * number for number in range(math.ceil(highest / step) + 1)]


def _logarithmic_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 in each power of ten, from at most the lowest to at least the highest."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
    first = max(index for index, tick in enumerate(ticks) if tick <= low)
    last = min(index for index, tick in enumerate(ticks) if tick >= high and index > first)
    return ticks[first : last + 1]


def _grid(marks: Iterable[tuple[float, str]], height: float) -> Iterable[str]:
    for x, label in marks:
        yield _stroke(x, _TOP - 4, x, height - 36, _GRID, 1)
        yield _text(x, height - 16, label, anchor="middle", muted=True)


def _number(value: float) -> str:
    """Three significant digits, without an exponent."""
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _stroke(x1: float, y1: float, x2: float, y2: float, colour: str, width: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width:g}"/>'


def _text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    weight: str = "normal",
    muted: bool = False,
    colour: str = "",
    size: int = 13,
) -> str:
    fill = colour or (_MUTED if muted else _INK)
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" '
        f'fill="{fill}">{escape(text)}</text>'
    )


def _document(title: str, subtitle: str, height: float, parts: Iterable[str]) -> str:
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
            f'height="{height:.0f}" font-family={quoteattr(_FONT)} role="img" aria-label={quoteattr(title)}>',
            f"<title>{escape(title)}</title>",
            f'<rect width="{WIDTH}" height="{height:.0f}" fill="#ffffff"/>',
            _text(20, 34, title, size=18, weight="bold"),
            _text(20, 56, subtitle, muted=True),
            *parts,
            "</svg>",
            "",
        )
    )

"""Draw a report's charts as inline SVG: means with intervals, means over time."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

_WIDTH, _ROW = 460, 26  # of the plot and of one arm in it, in pixels
_TOP, _BOTTOM, _CHARACTER = (
    28,
    40,
    6.6,
)  # margins; width of a letter of 11 px, a little more than it takes
_TICKS = 5


@dataclass(frozen=True, slots=True)
class Point:
    """One arm in a chart."""

    arm: str
    mean: float
    low: float
    high: float
    p50_ms: float


@dataclass(frozen=True, slots=True)
class Scale:
    """From values to pixels along one side of a plot."""

    low: float
    high: float
    pixels: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the distance from the side's start in pixels; the middle if all equal."""
        low, high, at = (math.log(v) if self.log else v for v in (self.low, self.high, value))
        return (at - low) / (high - low) * self.pixels if high > low else self.pixels / 2

    def ticks(self) -> list[float]:
        """Return the values that are written at the side."""
        if self.high <= self.low:
            return [self.low]
        steps = [step / (_TICKS - 1) for step in range(_TICKS)]
        if self.log:
            return [self.low * (self.high / self.low) ** step for step in steps]
        return [self.low + (self.high - self.low) * step for step in steps]


def quality(points: Sequence[Point], measure: str) -> str:
    """Return a chart of means with 95 % intervals, one row per arm, in order."""
    left = max(len(point.arm) for point in points) * _CHARACTER + 12
    height = _ROW * len(points)
    x = Scale(min(p.low for p in points), max(p.high for p in points), _WIDTH)
    parts = [_bottom_axis(x, height, measure)]
    for row, point in enumerate(points):
        y = _ROW * (row + 0.5)
        parts += [
            _text(-8, y + 4, point.arm, "end"),
            f'<line x1="{x(point.low):.1f}" x2="{x(point.high):.1f}" y1="{y}" y2="{y}"'
            ' stroke="#1c2330"/>',
            _dot(
                x(point.mean),
                y,
                f"{point.arm}: {point.mean:.4f} ({point.low:.4f} to {point.high:.4f})",
            ),
        ]
    return _svg("Quality, 95 % intervals", left, 30, height, parts)


def quality_by_time(points: Sequence[Point], measure: str) -> str:
    """Return a chart of means over median search time, a point per arm, log scale."""
    height = _ROW * max(len(points), 4)
    times = [max(point.p50_ms, 0.01) for point in points]
    x = Scale(min(times), max(times), _WIDTH, log=True)
    y = Scale(min(p.mean for p in points), max(p.mean for p in points), height)
    parts = [_bottom_axis(x, height, "median search time, ms")]
    parts += [_text(-8, height - y(value) + 4, _number(value), "end") for value in y.ticks()]
    parts.append(_text(-8, -10, measure, "end"))
    for point, time in zip(points, times, strict=True):
        at = height - y(point.mean)
        parts += [
            _dot(x(time), at, f"{point.arm}: {point.mean:.4f} in {time:.1f} ms"),
            _text(x(time) + 8, at + 4, point.arm),
        ]
    labels = max(len(point.arm) for point in points) * _CHARACTER + 12
    return _svg(
        "Quality against time", max(60, len(measure) * _CHARACTER + 12), labels, height, parts
    )


def _svg(title: str, left: float, right: float, height: float, parts: Sequence[str]) -> str:
    width, tall = left + _WIDTH + right, _TOP + height + _BOTTOM
    return (
        f'<svg role="img" width="{width:.0f}" height="{tall:.0f}" viewBox="0 0 {width:.0f}'
        f' {tall:.0f}"'
        ' font-family="sans-serif" font-size="11"'
        f' fill="#1c2330"><title>{html.escape(title)}</title>'
        f'<text x="{left + _WIDTH / 2:.0f}" y="12" text-anchor="middle"'
        f' font-weight="bold">{html.escape(title)}</text>'
        f'<g transform="translate({left:.0f},{_TOP})"><rect width="{_WIDTH}" height="{height}"'
        ' fill="none" stroke="#d8dde6"/>'
        f"{''.join(parts)}</g></svg>"
    )


def _bottom_axis(scale: Scale, height: float, label: str) -> str:
    """Return ticks with their values, and the label, below the plot."""
    ticks = "".join(
        f'<line x1="{scale(value):.1f}" x2="{scale(value):.1f}" y1="{height}" y2="{height + 4}"'
        ' stroke="#5a6475"/>' + _text(scale(value), height + 16, _number(value), "middle")
        for value in scale.ticks()
    )
    return ticks + _text(_WIDTH / 2, height + 32, label, "middle")


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(text)}</text>'


def _dot(x: float, y: float, said: str) -> str:
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"'
        f' fill="#4c78a8"><title>{html.escape(said)}</title></circle>'
    )


def _number(value: float) -> str:
    return f"{value:.3g}"

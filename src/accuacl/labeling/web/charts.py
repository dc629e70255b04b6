"""Plots as inline SVG without scripts or style attributes; colours come from CSS classes, and all text stays text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

WIDTH, HEIGHT = 520, 260
LEFT, RIGHT, TOP, BOTTOM = 46, 70, 14, 40
LINES = 4  # grid lines above the lowest
TICKS = 12  # labels on the x axis, at most


@dataclass(frozen=True)
class Point:
    """A value and its interval, at tick number `x` of the x axis."""

    x: int
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Series:
    """A line of the plot; its name is drawn at its end."""

    name: str
    points: Sequence[Point]


@dataclass(frozen=True)
class _Scale:
    """From values to pixels."""

    ticks: int
    low: float
    high: float

    def across(self, x: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (x + 0.5) / self.ticks

    def up(self, value: float) -> float:
        inside = min(max(value, self.low), self.high)
        return TOP + (HEIGHT - TOP - BOTTOM) * (self.high - inside) / (self.high - self.low)


def plot(
    series: Sequence[Series],
    ticks: Sequence[str],
    x: str,
    alt: str,
    low: float = 0.0,
    high: float = 100.0,
    joined: bool = True,
) -> Markup:
    """Lines (or points, if not `joined`) with a vertical bar for each interval.

    >>> str(plot([Series("task 1", [Point(0, 80.0, 70.0, 90.0)])], ["1.1"], "after", "Accuracy"))[:18]
    '<svg class="plot" '
    """
    scale, ends = _Scale(len(ticks), low, high), list[float]()
    head = Markup('<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}">').format(WIDTH, HEIGHT, alt)
    elements = [head, *_axes(scale, ticks, x)]
    for i, line in enumerate(series):
        shift = 4.0 * (i - (len(series) - 1) / 2)  # so that the intervals of two lines do not cover each other
        dots = [(scale.across(p.x) + shift, scale.up(p.value)) for p in line.points]
        elements.append(Markup('<g class="s{}">').format(i % 6))
        if joined:
            path = " ".join(f"{a:.1f},{b:.1f}" for a, b in dots)
            elements.append(Markup('<polyline points="{}"/>').format(path))
        for point, (a, b) in zip(line.points, dots, strict=True):
            title = f"{line.name} {x} {ticks[point.x]}: {point.value:.0f} ({point.low:.0f} to {point.high:.0f})".strip()
            elements.append(_line("bar", a, a, scale.up(point.low), scale.up(point.high)))
            dot = Markup('<circle cx="{:.1f}" cy="{:.1f}" r="4"><title>{}</title></circle>')
            elements.append(dot.format(a, b, title))
        if line.name and dots:
            elements.append(_text(dots[-1][0] + 10, _free(dots[-1][1], ends) + 4, line.name, "start"))
        elements.append(Markup("</g>"))
    return Markup("").join([*elements, Markup("</svg>")])


def _axes(scale: _Scale, ticks: Sequence[str], x: str) -> Iterator[Markup]:
    right = WIDTH - RIGHT
    for step in range(LINES + 1):
        value = scale.low + (scale.high - scale.low) * step / LINES
        y = scale.up(value)
        yield _line("axis" if value == max(scale.low, 0.0) else "grid", LEFT, right, y, y)
        yield _text(LEFT - 8, y + 4, f"{value:.0f}", "end")
    every = -(-len(ticks) // TICKS)
    for i in range(0, len(ticks), every):
        yield _text(scale.across(i), HEIGHT - BOTTOM + 18, ticks[i], "middle")
    yield _text((LEFT + right) / 2, HEIGHT - 5, x, "middle")


def _line(kind: str, x1: float, x2: float, y1: float, y2: float) -> Markup:
    return Markup(f'<line class="{kind}" x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y2:.1f}"/>')


def _text(x: float, y: float, text: str, anchor: str) -> Markup:
    return Markup(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>')


def _free(wanted: float, taken: list[float]) -> float:
    """The height nearest to the wanted one at which a name does not cover another."""
    candidates = (wanted + sign * step for step in range(0, HEIGHT, 2) for sign in (1, -1))
    height = next((y for y in candidates if all(abs(y - other) >= 14 for other in taken)), wanted)
    taken.append(height)
    return height

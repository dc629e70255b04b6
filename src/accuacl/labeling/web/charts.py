"""Plots as inline SVG: no script, no style attribute, colours by class, all of their text readable as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

WIDTH, HEIGHT = 520, 260
LEFT, RIGHT, TOP, BOTTOM = 46, 70, 14, 40
LINES = 4  # of the grid, besides the lowest
TICKS = 12  # names on the x axis, at most


@dataclass(frozen=True)
class Point:
    """A value and its interval, at the so-manieth tick of the x axis."""

    x: int
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Series:
    """A line of the plot, named at its end."""

    name: str
    points: Sequence[Point]


@dataclass(frozen=True)
class _Scale:
    """From values to places in the picture."""

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
    """Lines, or only their points, with a bar for each interval.

    >>> str(plot([Series("task 1", [Point(0, 80.0, 70.0, 90.0)])], ["1.1"], "after", "Accuracy"))[:18]
    '<svg class="plot" '
    """
    scale, ends = _Scale(len(ticks), low, high), list[float]()
    head = Markup('<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}">').format(WIDTH, HEIGHT, alt)
    parts = [head, *_axes(scale, ticks, x)]
    for i, one in enumerate(series):
        shift = 4.0 * (i - (len(series) - 1) / 2)  # intervals beside each other, not on top
        places = [(scale.across(p.x) + shift, scale.up(p.value)) for p in one.points]
        parts.append(Markup('<g class="s{}">').format(i % 6))
        if joined:
            line = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
            parts.append(Markup('<polyline points="{}"/>').format(line))
        for point, (a, b) in zip(one.points, places, strict=True):
            said = f"{one.name} {x} {ticks[point.x]}: {point.value:.0f} ({point.low:.0f} to {point.high:.0f})".strip()
            parts.append(_line("bar", a, a, scale.up(point.low), scale.up(point.high)))
            dot = Markup('<circle cx="{:.1f}" cy="{:.1f}" r="4"><title>{}</title></circle>')
            parts.append(dot.format(a, b, said))
        if one.name and places:
            parts.append(_text(places[-1][0] + 10, _free(places[-1][1], ends) + 4, one.name, "start"))
        parts.append(Markup("</g>"))
    return Markup("").join([*parts, Markup("</svg>")])


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
    """A height for a name near the wanted one, where it does not cover another."""
    tries = (wanted + sign * step for step in range(0, HEIGHT, 2) for sign in (1, -1))
    found = next((y for y in tries if all(abs(y - other) >= 14 for other in taken)), wanted)
    taken.append(found)
    return found

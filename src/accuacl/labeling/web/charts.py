"""Plots as inline SVG without scripts or style attributes; colours come from CSS classes, and all text stays text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from accuacl.labeling.project import Estimate

WIDTH, HEIGHT = 520, 260
LEFT, RIGHT, TOP, BOTTOM = 46, 70, 14, 40
LINES = 5  # grid lines, about
TICKS = 12  # labels on the x axis, at most
APART = 24  # pixels between the names of lines


@dataclass(frozen=True)
class Point:
    """A value and its interval, at a place of the x axis."""

    x: float
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Series:
    """A line of the plot; its name is drawn at its end. to: the address of what it is measured on."""

    name: str
    points: Sequence[Point]
    to: str


@dataclass(frozen=True)
class PlotArea:
    """From values to pixels; the x axis goes from `left` to `right`."""

    left: float
    right: float
    low: float
    high: float

    def across(self, x: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (x - self.left) / (self.right - self.left)

    def up(self, value: float) -> float:
        inside = min(max(value, self.low), self.high)
        return TOP + (HEIGHT - TOP - BOTTOM) * (self.high - inside) / (self.high - self.low)

    def path(self, points: Iterable[tuple[float, float]], shift: float = 0.0) -> str:
        """The attribute `points` of a line."""
        return " ".join(f"{self.across(x) + shift:.1f},{self.up(value):.1f}" for x, value in points)


def plot(series: Sequence[Series], ticks: Sequence[str], x: str, alt: str, low: float, high: float) -> Markup:
    """Lines with a vertical bar for each interval, between round numbers.

    >>> line = Series("task 1", [Point(0, 80.0, 70.0, 90.0)], "/review")
    >>> str(plot([line], ["1.1"], "after", "Accuracy", 0, 100))[:18]
    '<svg class="plot" '
    """
    levels, ends = round_ticks(low, high), list[float]()
    area = PlotArea(-0.5, len(ticks) - 0.5, levels[0], levels[-1])
    drawn: list[Markup] = []
    for i, line in enumerate(series):
        shift = 4.0 * (i - (len(series) - 1) / 2)  # so that the intervals of two lines do not cover each other
        path = area.path([(p.x, p.value) for p in line.points], shift)
        drawn.append(Markup('<g class="s{}"><polyline points="{}"/>').format(i % 6, path))
        titles = [f"{line.name} {x} {ticks[int(p.x)]}: {_range(p)}" for p in line.points]
        for point, title in zip(line.points, titles, strict=True):
            drawn += _dot(area, point, title, shift)
        end = line.points[-1]
        height = _free(area.up(end.value), ends)
        drawn.append(_linked_name(line, titles[-1], area.across(end.x) + shift + 6, height))
        drawn.append(Markup("</g>"))
    named = {float(i): ticks[i] for i in range(0, len(ticks), -(-len(ticks) // TICKS))}
    return _drawing(drawn, area, levels, named, x, alt, "group")


def curve(points: Sequence[Point], band: Sequence[Point], x: str, alt: str) -> Markup:
    """Measured values with their intervals over a number, and how they are expected to continue: a line within a band.

    >>> "band" in curve([Point(20, 50, 30, 70)], [Point(20, 50, 40, 60), Point(80, 90, 70, 95)], "labels", "A curve")
    True
    """
    places = [point.x for point in (*points, *band)]
    ticks = round_ticks(0, max(places))
    area = PlotArea(0, max(ticks[-1], *places), 0, 100)
    drawn: list[Markup] = []
    if band:
        around = area.path([*((p.x, p.high) for p in band), *((p.x, p.low) for p in reversed(band))])
        middle = area.path([(p.x, p.value) for p in band])
        drawn.append(Markup('<polygon class="band" points="{}"/>').format(around))
        drawn.append(Markup('<polyline class="foreseen" points="{}"/>').format(middle))
    drawn.append(Markup('<g class="s0">'))
    for point in points:
        title = f"{point.x:g} {x}: {point.value:.0f} % ({point.low:.0f} to {point.high:.0f})"
        drawn += _dot(area, point, title)
    drawn.append(Markup("</g>"))
    return _drawing(drawn, area, round_ticks(0, 100), {tick: f"{tick:g}" for tick in ticks}, x, alt, "img")


def round_ticks(low: float, high: float) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten, from one at or below `low` to one at or above `high`.

    >>> round_ticks(-19.8, 19.8), round_ticks(0, 100), round_ticks(0, 0)
    ([-20.0, -10.0, 0.0, 10.0, 20.0], [0.0, 20.0, 40.0, 60.0, 80.0, 100.0], [0.0, 0.2])
    """
    span = high - low if high > low else 1.0
    unit = 10.0 ** math.floor(math.log10(span / LINES))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor * LINES >= span * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [step * i + 0.0 for i in range(first, max(last, first + 1) + 1)]


def strip(estimate: Estimate) -> Markup:
    """A percentage and its interval between 0 and 100, to stand beside the numbers in a row of a table.

    >>> strip(Estimate(80.0, 49.0, 94.0, 10)).count("<line")
    4
    """
    grid = [_line("grid", x, x, 0, 16) for x in (6, 56, 106)]
    bar = _line("bar", 6 + estimate.low, 6 + estimate.high, 8, 8)
    dot = Markup('<circle cx="{:.1f}" cy="8" r="4"/>').format(6 + estimate.value)
    begin = Markup('<svg class="strip" viewBox="0 0 112 16" aria-hidden="true">')
    return Markup("").join([begin, *grid, bar, dot, Markup("</svg>")])


def signed(value: float, form: str = ".0f") -> str:
    """A number as text, with a minus sign that is as wide as a plus.

    >>> signed(-19.8), signed(-0.2), signed(0.5, "g")
    ('−20', '0', '0.5')
    """
    return f"{value:z{form}}".replace("-", "\N{MINUS SIGN}")


def with_interval(estimate: Estimate | None) -> str:
    """An estimate as text: the value and its interval.

    >>> from accuacl.labeling.project import Estimate
    >>> with_interval(Estimate(80.0, 49.01, 94.3, 10)), with_interval(None)
    ('80 (49 to 94)', '–')
    >>> with_interval(Estimate(57.0, -0.3, 89.0, 7)), with_interval(Estimate(0.0, -20.0, 20.0, 12))
    ('57 (0 to 89)', '0 (−20 to 20)')
    """
    return "\N{EN DASH}" if estimate is None else _range(estimate)


def _range(value: Estimate | Point) -> str:
    return f"{signed(value.value)} ({signed(value.low)} to {signed(value.high)})"


def _drawing(
    drawn: Iterable[Markup],
    area: PlotArea,
    levels: Sequence[float],
    ticks: Mapping[float, str],
    x: str,
    alt: str,
    role: str,
) -> Markup:
    """The whole plot. role: links inside of an image are hidden from screen readers, but not those of a group."""
    begin = Markup('<svg class="plot" viewBox="0 0 {} {}" role="{}" aria-label="{}">').format(WIDTH, HEIGHT, role, alt)
    return Markup("").join([begin, *_axes(area, levels, ticks, x), *drawn, Markup("</svg>")])


def _axes(area: PlotArea, levels: Sequence[float], ticks: Mapping[float, str], x: str) -> Iterator[Markup]:
    """A line for each level, that of zero stronger, and what the x axis says at its ticks and as a whole."""
    right = WIDTH - RIGHT
    for value in levels:
        y = area.up(value)
        yield _line("axis" if value == 0 else "grid", LEFT, right, y, y)
        yield _text(LEFT - 8, y + 4, signed(value, "g"), "end")
    for value, text in ticks.items():
        yield _text(area.across(value), HEIGHT - BOTTOM + 18, text, "middle")
    yield _text((LEFT + right) / 2, HEIGHT - 5, x, "middle")


def _dot(area: PlotArea, point: Point, title: str, shift: float = 0.0) -> list[Markup]:
    """A value with its interval."""
    a, b = area.across(point.x) + shift, area.up(point.value)
    dot = Markup('<circle cx="{:.1f}" cy="{:.1f}" r="4"><title>{}</title></circle>').format(a, b, title)
    return [_line("bar", a, a, area.up(point.low), area.up(point.high)), dot]


def _linked_name(line: Series, title: str, left: float, middle: float) -> Markup:
    """The name of a line, as a link with room for a finger."""
    begin = Markup('<a href="{}" aria-label="{}">').format(line.to, title)
    top, width = middle - APART / 2, WIDTH - left
    room = f'<rect class="room" x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{APART}"/>'
    name = _text(left + 4, middle + 4, line.name, "start")
    return Markup("").join([begin, Markup(room), name, Markup("</a>")])


def _line(kind: str, x1: float, x2: float, y1: float, y2: float) -> Markup:
    return Markup(f'<line class="{kind}" x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y2:.1f}"/>')


def _text(x: float, y: float, text: str, anchor: str) -> Markup:
    return Markup(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>')


def _free(wanted: float, taken: list[float]) -> float:
    """The height nearest to the wanted one at which a name does not cover another."""
    candidates = (wanted + sign * step for step in range(0, HEIGHT, 2) for sign in (1, -1))
    height = next((y for y in candidates if all(abs(y - other) >= APART for other in taken)), wanted)
    taken.append(height)
    return height

"""How strategies are drawn: colours that the colour-blind can tell apart, and markers and dashes for print."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle

from accuacl.report.formats.document import INK, LineStyle

ORANGE, SKY, GREEN, BLUE, RED, PURPLE = "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7"

SOLID, DASHED, DOTTED, MIXED = "-", (0, (4, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5))

BY_STRATEGY = {
    "uniform": LineStyle(INK, "s", DASHED),
    "entropy": LineStyle(SKY, "v", DOTTED),
    "least-confidence": LineStyle(BLUE, "^", MIXED),
    "kcenter": LineStyle(GREEN, "D", DASHED),
    "badge": LineStyle(PURPLE, "P", DOTTED),
    "bait": LineStyle(ORANGE, "X", MIXED),
    "accuacl": LineStyle(RED, "o", SOLID),
    "margin": LineStyle(GREEN, "<", DOTTED),
    "kcenter+memory": LineStyle(GREEN, "d", SOLID),
    "badge+memory": LineStyle(PURPLE, "p", SOLID),
    "accuacl-magnitude": LineStyle(ORANGE, ">", DASHED),
    "accuacl-distribution": LineStyle(BLUE, "h", DASHED),
    "accuacl-full": LineStyle(BLUE, "*", DOTTED),
    "full": LineStyle(INK, "x", DOTTED),
}
COLORS, MARKERS, DASHES = (SKY, ORANGE, PURPLE, GREEN, BLUE), "Hv8^>Dp*<hXs", (SOLID, DASHED, MIXED, DOTTED)
OTHERS = [LineStyle(COLORS[i % 5], MARKERS[i % 12], DASHES[i % 4]) for i in range(60)]  # neighbours differ in all three


def styles(labels: Iterable[str]) -> dict[str, LineStyle]:
    """A style for each label: a strategy's own, or for any other label the next that is free.

    >>> styles(["accuacl", "mine", "accuacl"])["mine"].marker
    'H'
    """
    others = cycle(OTHERS)
    return {label: BY_STRATEGY[label] if label in BY_STRATEGY else next(others) for label in dict.fromkeys(labels)}

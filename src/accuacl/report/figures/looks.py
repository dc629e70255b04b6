"""How strategies look in plots: colours that the colour-blind can tell apart, and markers and dashes for print."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import cycle
from typing import Any

INK = "#010203"  # stands for the page's text colour, light or dark
FAINT = "#040506"  # and for its lines
ORANGE, SKY, GREEN, BLUE, RED, PURPLE = "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7"

SOLID, DASHED, DOTTED, MIXED = "-", (0, (4, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5))


@dataclass(frozen=True)
class Look:
    color: str
    marker: str
    dash: Any

    def line(self) -> dict[str, Any]:
        """As matplotlib's arguments."""
        return {"color": self.color, "marker": self.marker, "linestyle": self.dash, "markersize": 4.5, "linewidth": 1.5}


KNOWN = {
    "uniform": Look(INK, "s", DASHED),
    "entropy": Look(SKY, "v", DOTTED),
    "least-confidence": Look(BLUE, "^", MIXED),
    "kcenter": Look(GREEN, "D", DASHED),
    "badge": Look(PURPLE, "P", DOTTED),
    "bait": Look(ORANGE, "X", MIXED),
    "accuacl": Look(RED, "o", SOLID),
    "margin": Look(GREEN, "<", DOTTED),
    "kcenter+memory": Look(GREEN, "d", SOLID),
    "badge+memory": Look(PURPLE, "p", SOLID),
    "accuacl-magnitude": Look(ORANGE, ">", DASHED),
    "accuacl-distribution": Look(BLUE, "h", DASHED),
    "accuacl-full": Look(BLUE, "*", DOTTED),
    "full": Look(INK, "x", DOTTED),
}
COLORS, MARKERS, DASHES = (SKY, ORANGE, PURPLE, GREEN, BLUE), "Hv8^>Dp*<hXs", (SOLID, DASHED, MIXED, DOTTED)
MORE = [Look(COLORS[i % 5], MARKERS[i % 12], DASHES[i % 4]) for i in range(60)]  # all three differ from one to the next


def looks(labels: Iterable[str]) -> dict[str, Look]:
    """A look for each label; those of strategies that are not known are taken in turn.

    >>> looks(["accuacl", "mine", "accuacl"])["mine"].marker
    'H'
    """
    more = cycle(MORE)
    return {label: KNOWN[label] if label in KNOWN else next(more) for label in dict.fromkeys(labels)}

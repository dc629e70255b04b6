"""A report as a list of blocks. All text is plain; each format escapes it and lays it out in its own way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#010203"  # stands for the page's text colour, which depends on the light or dark theme
FAINT = "#040506"  # stands for the colour of the page's thin lines

Rank = Literal["", "best", "second"]


@dataclass(frozen=True)
class Heading:
    text: str
    level: int = 2


@dataclass(frozen=True)
class Text:
    """A paragraph; notice: set apart, because the reader must know it first."""

    text: str
    notice: bool = False


@dataclass(frozen=True)
class Points:
    """A list of sentences."""

    texts: Sequence[str]


@dataclass(frozen=True)
class Code:
    """Shell commands to copy."""

    title: str
    lines: Sequence[str]


@dataclass(frozen=True)
class TableCell:
    """A value, smaller text beside it, and whether it is the best or second best among those it is compared with."""

    text: str
    small: str = ""
    rank: Rank = ""


@dataclass(frozen=True)
class TableColumn:
    """A column's name and the header that it shares with its neighbours.

    muted: in grey, there for comparison only; text: holds words, so it is aligned to the left.
    """

    name: str
    shared: str = ""
    muted: bool = False
    text: bool = False


@dataclass(frozen=True)
class TableRow:
    """The subject of a row, and its cells; apart: the row is not ranked with the others, such as that of `full`."""

    heads: Sequence[str]
    cells: Sequence[TableCell]
    apart: bool = False


@dataclass(frozen=True)
class TableGroup:
    """Rows that are compared with each other, under one title (none: empty)."""

    title: str
    rows: Sequence[TableRow]


@dataclass(frozen=True)
class Table:
    """Groups of rows under columns; grouped_by: what the groups' titles are, for formats that make it a column."""

    caption: str
    heads: Sequence[str]
    columns: Sequence[TableColumn]
    groups: Sequence[TableGroup]
    note: str = ""
    grouped_by: str = "learner"

    def headers(self) -> Iterator[tuple[str, list[TableColumn]]]:
        """Yield each shared header with the neighbouring columns below it; columns that share none have ""."""
        for shared, columns in groupby(self.columns, key=lambda column: column.shared):
            yield shared, list(columns)


@dataclass(frozen=True)
class LineStyle:
    """How a curve is drawn."""

    color: str
    marker: str
    dash: Any

    def arguments(self) -> dict[str, Any]:
        """Return the style as arguments of matplotlib's lines."""
        return {"color": self.color, "marker": self.marker, "linestyle": self.dash, "markersize": 4.5, "linewidth": 1.5}


@dataclass(frozen=True)
class Panel:
    """One plot: how to draw it, its description for people who cannot see it, and its size in inches.

    On a page it may be drawn wider, so that the figure is as wide as the page.
    """

    title: str
    draw: Callable[[Axes], None]
    alt: str
    size: tuple[float, float] = (3.0, 2.3)


@dataclass(frozen=True)
class Figure:
    """Panels with one caption and one legend; columns: at most this many side by side; file: a copy on disk, if any."""

    caption: str
    panels: Sequence[Panel]
    legend: Mapping[str, LineStyle] = field(default_factory=dict)
    columns: int = 4
    file: Path | None = None


@dataclass(frozen=True)
class Picture:
    """A PNG image with its title and description; file: a copy on disk, if any."""

    title: str
    png: bytes
    alt: str
    file: Path | None = None


Block = Heading | Text | Points | Code | Table | Figure | Picture


@dataclass(frozen=True)
class Document:
    title: str
    blocks: list[Block] = field(default_factory=list)


FORMATS = {  # {format: the suffixes of its files, the usual one first}
    "html": ("html", "htm"),
    "md": ("md", "markdown"),
    "latex": ("tex",),
    "csv": ("csv",),
}

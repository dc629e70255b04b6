"""A report as a list of blocks. All text is plain; each format escapes and lays it out in its own way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from accuacl.report.figures.looks import Look

if TYPE_CHECKING:  # drawing is slow to load, and only HTML needs it
    from matplotlib.axes import Axes

Mark = Literal["", "best", "second"]


@dataclass(frozen=True)
class Heading:
    text: str
    level: int = 2


@dataclass(frozen=True)
class Text:
    """A paragraph; a notice stands out."""

    text: str
    notice: bool = False


@dataclass(frozen=True)
class Points:
    """A list of sentences."""

    texts: Sequence[str]


@dataclass(frozen=True)
class Code:
    """Commands to copy; long ones are folded under their title."""

    title: str
    lines: Sequence[str]


@dataclass(frozen=True)
class Cell:
    """A value, what is said smaller beside it, and whether it is the best or second best."""

    text: str
    small: str = ""
    mark: Mark = ""


@dataclass(frozen=True)
class Column:
    """Its name, and the name over it that it shares with its neighbours; muted: for comparison; text: of words."""

    name: str
    over: str = ""
    muted: bool = False
    text: bool = False


@dataclass(frozen=True)
class Line:
    """A row of a table: what it is about, and its cells; apart: not in competition with the others."""

    heads: Sequence[str]
    cells: Sequence[Cell]
    apart: bool = False


@dataclass(frozen=True)
class Block:
    """Rows that are compared with each other."""

    title: str
    lines: Sequence[Line]


@dataclass(frozen=True)
class Table:
    """Blocks of rows under columns; `by`: what the blocks' titles are."""

    caption: str
    heads: Sequence[str]
    columns: Sequence[Column]
    blocks: Sequence[Block]
    note: str = ""
    by: str = "learner"


@dataclass(frozen=True)
class Panel:
    """A plot: how to draw it, what it says to those who do not see it, and its size in inches."""

    title: str
    draw: Callable[[Axes], None]
    alt: str
    size: tuple[float, float] = (3.0, 2.3)


@dataclass(frozen=True)
class Figure:
    """Panels with one caption and one legend, at most so many side by side; file: where it also stands alone."""

    caption: str
    panels: Sequence[Panel]
    legend: Mapping[str, Look] = field(default_factory=dict)
    columns: int = 4
    file: Path | None = None


@dataclass(frozen=True)
class Picture:
    """A PNG image and its description; file: where it also stands alone."""

    title: str
    png: bytes
    alt: str
    file: Path | None = None


@dataclass(frozen=True)
class Document:
    title: str
    blocks: list[Heading | Text | Points | Code | Table | Figure | Picture] = field(default_factory=list)

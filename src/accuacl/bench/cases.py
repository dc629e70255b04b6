"""The cases that are measured, and their measurements."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from accuacl.strategies import NAMES


@dataclass(frozen=True)
class Case:
    """A strategy and the size of its problem: pool n, embedding width d, classes K, budget b, memory m, labelled l."""

    strategy: str
    n: int
    d: int
    K: int
    b: int
    m: int = 1000
    labelled: int = 0


@dataclass(frozen=True)
class Measurement:
    """Seconds and bytes (beyond the inputs) of one case; None where it was not or could not be measured."""

    case: Case
    cpu: float | None = None
    wall: float | None = None
    memory: int | None = None
    floor_cpu: float | None = None
    dense_cpu: float | None = None
    dense_memory: int | None = None
    needs: int | None = None  # bytes, if the strategy refused for lack of memory

    @property
    def over_floor(self) -> float | None:
        return self.cpu / self.floor_cpu if self.cpu and self.floor_cpu else None

    @property
    def memory_ratio(self) -> float | None:
        return self.dense_memory / max(self.memory, 1 << 20) if self.memory is not None and self.dense_memory else None

    @property
    def speedup(self) -> float | None:
        return self.dense_cpu / self.cpu if self.cpu and self.dense_cpu else None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {
            "over_floor": self.over_floor,
            "speedup": self.speedup,
            "memory_ratio": self.memory_ratio,
        }


@dataclass(frozen=True)
class Threads:
    """Seconds of one case with one thread and with as many as it takes by itself; `busy`: beside a busy process."""

    case: Case
    busy: bool
    one_cpu: float
    one_wall: float
    cpu: float
    wall: float

    @property
    def cpu_ratio(self) -> float:
        return self.cpu / self.one_cpu

    @property
    def wall_ratio(self) -> float:
        return self.wall / self.one_wall

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"cpu_ratio": self.cpu_ratio, "wall_ratio": self.wall_ratio}


def standard(full: bool = False) -> list[Case]:
    """The cases of the README's table; `full` adds a pool of a million and BAIT's largest: 15 minutes more."""
    cases = [Case(name, 5_000, 512, 100, 200) for name in NAMES]
    cases += [
        Case("badge", 20_000, 512, 100, 100),
        Case("kcenter", 50_000, 512, 100, 1_000, labelled=100),
        Case("bait", 2_000, 64, 10, 20, labelled=100),
        Case("coverage", 20_000, 512, 100, 1_000),
        Case("fisher-ratio", 50_000, 512, 100, 1_000),
    ]
    if full:
        cases += [Case("accuacl", 1_000_000, 512, 100, 1_000), Case("bait", 5_000, 160, 100, 10, labelled=200)]
    return cases


def grid(
    strategies: Iterable[str], n: list[int], d: list[int], K: list[int], b: list[int], m: int, labelled: int
) -> list[Case]:
    """Every combination of these sizes."""
    return [Case(*size, m=m, labelled=labelled) for size in itertools.product(strategies, n, d, K, b)]

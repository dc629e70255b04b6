"""Cells of a study, by seed: means, deviations, differences paired by seed, and where their tables go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from accuacl.base.files import write_text
from accuacl.experiments.report.comparison import holm, sign_flip_test

Cells = dict[str, dict[int, dict[str, float]]]  # cell: seed: metric: value
DRAWS = 2000  # of seeds, with replacement, for an interval


def summary(by_seed: dict[int, dict[str, float]], metrics: Sequence[str]) -> str:
    """Mean and standard deviation of each metric, as cells of a table; one seed has no deviation."""
    cells = []
    for metric in metrics:
        spread = f" ± {deviation(by_seed, metric):.1f}" if len(by_seed) > 1 else ""
        cells.append(f"{mean(by_seed, metric):.1f}{spread}")
    return " | ".join(cells)


def comparisons(cells: Cells, ours: str, baselines: Sequence[str], metrics: Sequence[str]) -> dict[str, str]:
    """OURS minus each baseline that shares seeds with it, as cells of a table: each metric, its p, then the pairs.

    p is two-sided by sign flips, and corrected by Holm's method over the baselines. No baselines: all other cells.
    """
    others = [other for other in baselines or cells if other != ours and _seeds(cells, ours, other)]
    ps = {m: holm([sign_flip_test(differences(cells, ours, other, m)) for other in others]) for m in metrics}
    rows = {}
    for i, other in enumerate(others):
        numbers = []
        for metric in metrics:
            p, change = ps[metric][i], np.mean(differences(cells, ours, other, metric))
            numbers.append(f"{signed(change)} | {'< 0.001' if p < 0.001 else f'{p:.3f}'}")
        rows[other] = f"{' | '.join(numbers)} | {len(_seeds(cells, ours, other))}"
    return rows


def differences(cells: Cells, ours: str, other: str, metric: str) -> list[float]:
    return [cells[ours][seed][metric] - cells[other][seed][metric] for seed in _seeds(cells, ours, other)]


def _seeds(cells: Cells, ours: str, other: str) -> list[int]:
    return sorted(cells[ours].keys() & cells[other].keys()) if ours in cells and other in cells else []


def pooled(regimes: Iterable[Cells], ours: str, other: str, metric: str) -> list[float]:
    """One difference for each seed, the mean over the regimes that have both: those of a seed are not independent."""
    by_seed: dict[int, list[float]] = {}
    for cells in regimes:
        for seed in _seeds(cells, ours, other):
            by_seed.setdefault(seed, []).append(cells[ours][seed][metric] - cells[other][seed][metric])
    return [float(np.mean(by_seed[seed])) for seed in sorted(by_seed)]


def crossing(reached: dict[int, dict[int, float]], goal: dict[int, float], seeds: Sequence[int]) -> float:
    """How many labels the line through the means needs to reach the mean of the goal; infinite: it never does.

    reached: accuracy by labels and seed; goal: accuracy by seed.
    """
    wanted = np.mean([goal[seed] for seed in seeds])
    points = [(labels, np.mean([reached[labels][seed] for seed in seeds])) for labels in sorted(reached)]
    if points[0][1] >= wanted:
        return float(points[0][0])
    for (fewer, low), (more, high) in pairwise(points):
        if low < wanted <= high:
            return float(fewer + (more - fewer) * (wanted - low) / (high - low))
    return float("inf")


def crossing_interval(
    reached: dict[int, dict[int, float]], goal: dict[int, float], seeds: Sequence[int]
) -> tuple[float, float, float]:
    """`crossing`, and the numbers between which it is with 95 %, by drawing the seeds with replacement."""
    rng = np.random.default_rng(0)
    drawn = [crossing(reached, goal, rng.choice(seeds, len(seeds)).tolist()) for _ in range(DRAWS)]
    low, high = np.quantile(drawn, (0.025, 0.975), method="nearest")
    return crossing(reached, goal, seeds), float(low), float(high)


def signed(change: float) -> str:
    """
    >>> signed(-0.04), signed(-0.06), signed(2)
    ('+0.0', '-0.1', '+2.0')
    """
    return f"{round(float(change), 1) + 0.0:+.1f}"


def mean(by_seed: dict[int, dict[str, float]], metric: str) -> float:
    return float(np.mean([row[metric] for row in by_seed.values()]))


def deviation(by_seed: dict[int, dict[str, float]], metric: str) -> float:
    return float(np.std([row[metric] for row in by_seed.values()], ddof=1)) if len(by_seed) > 1 else 0.0


def show(text: str, page: Path | None, start: str, end: str) -> None:
    """Print the text, or write it into a page between two marks."""
    if page is None:
        print(text)
        return
    whole = page.read_text()
    before, after = whole[: whole.index(start) + len(start)], whole[whole.index(end) :]
    write_text(page, f"{before}\n\n{text}\n\n{after}")

"""Whether a difference between strategies is more than chance: paired by seed and cell, tested by sign flips."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accuacl.base.errors import InputError
from accuacl.base.randomness import numpy_generator
from accuacl.experiments.report.document import Table, TableCell, TableColumn, TableGroup, TableRow
from accuacl.experiments.report.groups import (
    Group,
    accuacl_names,
    by_scale,
    has_default_length,
    mixes_settings,
    pairs,
    with_scale,
)
from accuacl.experiments.report.metrics import MAIN_METRICS, METRICS, number

FLIPS = 100_000  # random sign flips; up to 16 pairs have no more than this, and all of them are tried
EXACT_PAIRS = int(np.log2(FLIPS))
LEVEL = 0.05
WORDS = {
    "better": "significantly better than",
    "worse": "significantly worse than",
    "": "not significantly different from",
}


def sign_flip_test(differences: ArrayLike, seed: int = 0) -> float:
    """Two-sided p: how often |mean| is at least as large when the sign of every difference is chance.

    >>> sign_flip_test([1.0, 2.0, 3.0])  # the smallest that three pairs can give
    0.25
    """
    from scipy.stats import permutation_test

    d = np.asarray(differences, np.float64)
    if d.ndim != 1 or not len(d):
        raise InputError(f"differences have the shape {d.shape}; give a sequence of at least one.")
    if len(d) == 1:  # which permutation_test does not take
        return 1.0
    test = permutation_test(
        (d,),
        _absolute_sum,
        permutation_type="samples",
        alternative="greater",
        vectorized=True,
        n_resamples=FLIPS,
        batch=10_000,
        rng=numpy_generator(seed),
    )
    return float(test.pvalue)


def _absolute_sum(differences: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
    return np.round(np.abs(np.sum(differences, axis)), 9)  # sums that are equal but for rounding count as equal


def holm(ps: Sequence[float]) -> list[float]:
    """p-values corrected for their number: the smallest times n, the next times n - 1, and so on, never falling.

    >>> [round(p, 3) for p in holm([0.03, 0.01, 0.2])]
    [0.06, 0.03, 0.2]
    """
    corrected, worst = [0.0] * len(ps), 0.0
    for rank, i in enumerate(np.argsort(ps, kind="stable").tolist()):
        worst = max(worst, min(1.0, (len(ps) - rank) * ps[i]))
        corrected[i] = worst
    return corrected


@dataclass(frozen=True)
class Differences:
    """Ours minus the other's, from so many cells and so many different seeds."""

    values: list[float]
    cells: int
    seeds: int


def differences(groups: Sequence[Group], ours: str, other: str, metric: str) -> Differences:
    """One for every cell and seed that both strategies have; the same pair of runs once."""
    cells = pairs(groups, ours, other, metric)
    values = [mine - theirs for by_seed in cells.values() for mine, theirs in by_seed.values()]
    return Differences(values, len(cells), len({seed for by_seed in cells.values() for seed in by_seed}))


@dataclass(frozen=True)
class MetricTest:
    """The mean difference of a metric, its p, and whether it is significant: "better", "worse" or ""."""

    mean: float
    p: float
    verdict: str


@dataclass(frozen=True)
class Opponent:
    """AccuACL against one other strategy, by metric."""

    strategy: str
    tests: dict[str, MetricTest]
    pairs: int
    cells: int
    seeds: int


@dataclass(frozen=True)
class Comparison:
    """AccuACL against all others at one scale, which is "" if there is no other scale.

    pooled: over cells with different settings. summarized: the summary is about it. cut: runs that stop early or go on
    longer than usual were left out.
    """

    ours: str
    scale: str
    opponents: list[Opponent]
    pooled: bool
    summarized: bool
    cut: bool


def compare(groups: Sequence[Group]) -> list[Comparison]:
    """AccuACL against every other strategy: in the groups that the summary is about, then in all settings pooled."""
    compared = by_scale(groups)
    comparisons = []
    for scale, chosen in compared.items():
        name = scale if len(compared) > 1 else ""
        at_scale = [group for group in groups if group["scale"] == scale]
        whole = [group for group in at_scale if has_default_length(group)]
        cut = len(whole) < len(at_scale) and all(map(has_default_length, chosen))
        for ours in accuacl_names(chosen):
            opponents = _opponents(chosen, ours)
            if not opponents:
                continue
            comparisons.append(Comparison(ours, name, opponents, mixes_settings(chosen), True, cut))
            pooled = _opponents(whole, ours) if len(whole) > len(chosen) else []
            if pooled and pooled != opponents:
                comparisons.append(Comparison(ours, name, pooled, True, False, cut))
    return comparisons


def _opponents(groups: Sequence[Group], ours: str) -> list[Opponent]:
    """Every other strategy that there are pairs with."""
    opponents = []
    for other in dict.fromkeys(g.strategy for g in groups if g["strategy"] not in ("accuacl", "full")):
        by_metric = {metric: differences(groups, ours, other, metric) for metric in MAIN_METRICS}
        if all(paired.values for paired in by_metric.values()):
            tests = {metric: _test(paired, metric) for metric, paired in by_metric.items()}
            paired = by_metric["forgetting"]
            opponents.append(Opponent(other, tests, len(paired.values), paired.cells, paired.seeds))
    return opponents


def _test(paired: Differences, metric: str) -> MetricTest:
    """A difference is significant if p is below the level and there are two seeds or more."""
    mean, p = float(np.mean(paired.values)), sign_flip_test(paired.values)
    verdict = "better" if (mean > 0) == METRICS[metric].larger else "worse"
    return MetricTest(mean, p, verdict if p < LEVEL and paired.seeds > 1 else "")


def sentences(comparisons: Sequence[Comparison]) -> list[str]:
    """What is significant and what is not, for the comparisons that the summary is about."""
    return [
        with_scale(sentence, comparison.scale)
        for comparison in comparisons
        if comparison.summarized
        for sentence in _sentences(comparison)
    ]


def _sentences(comparison: Comparison) -> list[str]:
    ours, opponents = comparison.ours, comparison.opponents
    if max(opponent.seeds for opponent in opponents) < 2:
        return [f"All runs of {ours} that can be compared share one seed, which is too few to test a difference."]
    said = []
    for metric in MAIN_METRICS:
        phrases = []
        for verdict, words in WORDS.items():
            names = [opponent.strategy for opponent in opponents if opponent.tests[metric].verdict == verdict]
            if names:
                phrases.append(f"{words} {', '.join(names)}")
        where = f"cell{', with different settings' if comparison.pooled else ''}"
        name = METRICS[metric].plain_name
        said.append(f"In {name}, {ours} is {'; '.join(phrases)} (at p < {LEVEL}, paired by seed and {where}).")
    return said


NOTE = (
    "Differences in points, paired by seed within each cell (the same benchmark, memory, learner and other settings); "
    "runs with identical accuracies count once. Pairs that share a seed are treated as independent. Two-sided p from a "
    f"sign-flip test: all flips for up to {EXACT_PAIRS} pairs, {FLIPS:,} random flips for more; not corrected for the "
    "number of comparisons. With n pairs p is at least 2 / 2^n, so five pairs or fewer never reach 0.05. Bold: better "
    f"with p < {LEVEL}, from at least two seeds."
)


def significance_table(comparisons: Sequence[Comparison]) -> Table:
    """A group of rows for each comparison, a row for each opponent."""
    columns = []
    for metric in MAIN_METRICS:
        columns += [TableColumn("difference", METRICS[metric].short), TableColumn("p", METRICS[metric].short)]
    columns += [TableColumn("pairs"), TableColumn("cells")]
    row_groups = [TableGroup(_title(comparison), list(map(_row, comparison.opponents))) for comparison in comparisons]
    cut = any(comparison.cut for comparison in comparisons)
    note = f"{NOTE}{' Runs that stop early or go on longer than usual are left out.' if cut else ''}"
    return Table("Significance of the differences", ["strategy"], columns, row_groups, note, grouped_by="difference")


def p_value(p: float) -> str:
    """
    >>> p_value(0.125), p_value(0.03125), p_value(0.00001)
    ('0.125', '0.031', '< 0.001')
    """
    return "< 0.001" if p < 0.001 else number(p, 3)


def _title(comparison: Comparison) -> str:
    scale = f" at {comparison.scale} scale" if comparison.scale else ""
    return f"{comparison.ours}{scale}{', all settings pooled,' if comparison.pooled else ''} minus"


def _row(opponent: Opponent) -> TableRow:
    cells = []
    for test in opponent.tests.values():
        mean = f"{round(test.mean, 2) + 0.0:+.2f}"
        cells += [TableCell(mean, rank="best" if test.verdict == "better" else ""), TableCell(p_value(test.p))]
    return TableRow([opponent.strategy], [*cells, TableCell(str(opponent.pairs)), TableCell(str(opponent.cells))])

"""Paired comparisons with a baseline: any strategy, learner, memory policy or setting against the same runs without it.

Two runs are a pair if they have the same seed and all settings in common but the one that is compared. Pairs that share
a seed share its network and order of data, so each seed counts once: the mean of its differences over cells. These are
tested by flipping their signs, and p is corrected by Holm's method for the number of comparisons.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accuacl.base.errors import InputError, alternatives, near
from accuacl.base.randomness import numpy_generator
from accuacl.experiments import ALIASES, Config, learners
from accuacl.experiments.report.document import Table, TableCell, TableColumn, TableGroup, TableRow
from accuacl.experiments.report.groups import LEARNER_OPTIONS, LEARNER_SETTINGS, SOURCE, STRATEGY_SETTINGS, Group, show
from accuacl.experiments.report.measures import MAIN_METRICS, METRICS, number

FLIPS = 100_000  # random sign flips; up to 16 differences have fewer possible flips, so that all are tried
LEVEL = 0.05
BOUNDS = ("lower bound", "upper bound")
USUAL = {"strategy": "uniform", "learner": "er", "memory_policy": "paper"}  # settings and their usual baselines
BY_NAME = ("strategy", "learner", "memory_policy", SOURCE)  # settings whose values `--baseline` may name alone
Labels = tuple[str, ...]  # the values of a run in the settings of a baseline, as text


@dataclass(frozen=True)
class Baseline:
    """The runs that all others are compared with: those that have these labels in these settings."""

    settings: tuple[str, ...]
    labels: Labels

    def of(self, group: Group) -> Labels:
        """Return the group's labels in these settings."""
        return labels_of(group, self.settings)

    def ignored(self, group: Group) -> set[str]:
        """Return the settings in which the group and its baseline may differ."""
        ignored = set(self.settings)
        if "strategy" in self.settings:
            ignored |= {name for name in STRATEGY_SETTINGS if name != SOURCE}
        if "learner" in self.settings:
            entry = learners.REGISTRY.get(group["learner"])
            ignored |= {*LEARNER_OPTIONS, *(entry.fixed if entry else ())}
        return ignored | ({"lam_from"} if "lam" in self.settings else set())

    def cell(self, group: Group) -> str:
        """Return a phrase that names the settings which the group has in common with its baseline."""
        ignored = self.ignored(group)
        words = [group.title_without(ignored)]
        for name, options in (("learner", LEARNER_SETTINGS), ("strategy", STRATEGY_SETTINGS)):
            words += [str(group[name])] if name not in ignored else []
            words += group.changed(option for option in options if option not in ignored)
        return ", ".join(words)

    def row(self, labels: Labels) -> str:
        """Return labels as tables show them, with "memory policy" before policies, as strategies have the same names.

        >>> Baseline(("strategy", "memory_policy"), ("coverage", "paper")).row(("uniform", "coverage"))
        'uniform / memory policy coverage'
        """
        kinds = ("memory policy " if setting == "memory_policy" else "" for setting in self.settings)
        return " / ".join(f"{kind}{label}" for kind, label in zip(kinds, labels, strict=True))

    def __str__(self) -> str:
        if set(self.settings) <= set(BY_NAME):
            return self.row(self.labels)
        pairs = zip(self.settings, self.labels, strict=True)
        return ", ".join(f"{setting.replace('_', ' ')} {label}" for setting, label in pairs)

    def with_options(self, groups: Sequence[Group]) -> Baseline:
        """Return the baseline with those options added that all runs of its strategy or learner have.

        `coverage` is `coverage, sample 5000` if no run has another label that begins so.
        """
        labels = []
        for i, label in enumerate(self.labels):
            known = {self.of(group)[i] for group in groups}
            longer = [each for each in known if each.startswith(f"{label}, ")]
            labels.append(longer[0] if label not in known and len(longer) == 1 else label)
        return Baseline(self.settings, tuple(labels))


def labels_of(group: Group, settings: Sequence[str]) -> Labels:
    """Return the group's values of these settings; the labels of strategies and learners include their options."""
    apart = {SOURCE, "memory_policy", "sampling", *settings}
    return tuple(
        group.name_of(setting, apart) if setting in ("strategy", "learner") else show(group[setting])
        for setting in settings
    )


def known_labels(settings: Sequence[str], groups: Sequence[Group]) -> list[Labels]:
    """Return all labels that groups have in these settings, each once."""
    return list(dict.fromkeys(labels_of(group, settings) for group in groups))


def find_baseline(given: str | Baseline, groups: Sequence[Group], usual: Baseline | None = None) -> Baseline | None:
    """Return the baseline that was given; for "" the usual one, or None if all runs have the same labels.

    The usual one is the first of these that some runs can be compared with: `usual`; uniform or the first strategy; the
    first learner; the first memory policy.
    """
    if given:
        return named_baseline(given, groups)
    candidates = [usual.with_options(groups)] if usual else []
    candidates = [candidate for candidate in candidates if candidate.labels in known_labels(candidate.settings, groups)]
    for setting, usual_label in USUAL.items():
        labels = [label for (label,) in known_labels((setting,), groups) if label != "full"]
        if len(labels) > 1:
            candidates.append(Baseline((setting,), (usual_label if usual_label in labels else labels[0],)))
    return next((baseline for baseline in candidates if compare(groups, baseline)), next(iter(candidates), None))


def named_baseline(given: str | Baseline, groups: Sequence[Group]) -> Baseline:
    """Return the given baseline, or the one meant by a name, by setting=value, or by several of these with commas."""
    candidates = [given] if isinstance(given, Baseline) else _meant(given.strip().rstrip(", "))
    known = {baseline.settings: known_labels(baseline.settings, groups) for baseline in candidates}
    candidates = [baseline.with_options(groups) for baseline in candidates]
    found = [
        baseline for baseline in candidates if any(baseline.labels) and baseline.labels in known[baseline.settings]
    ]
    compared = [baseline for baseline in found if len(known[baseline.settings]) > 1]
    if len(compared) > 1:
        kinds = " and ".join(f"a {baseline.settings[0].replace('_', ' ')}" for baseline in compared)
        spellings = " or ".join(f"{baseline.settings[0]}={baseline.labels[0]}" for baseline in compared)
        raise InputError(f"the baseline {str(given)!r} is {kinds} of these runs; give {spellings}.")
    if found:
        return (compared or found)[0]
    texts = [
        f"{' / '.join(settings).replace('_', ' ')} {', '.join(' / '.join(each) for each in labels)}"
        for settings, labels in known.items()
        if any(map(any, labels))
    ]
    raise InputError(f"no run has the baseline {str(given)!r}; the runs have {'; '.join(texts)}.")


def _meant(given: str) -> list[Baseline]:
    """Return the baselines that a name, or settings with their values, may mean."""
    if "=" not in given:
        return [Baseline((setting,), (given,)) for setting in BY_NAME]
    settings, labels = [], []
    for part in re.split(r",\s*(?=[\w -]*=)", given):  # a comma without a `name=` behind it belongs to a label
        setting, _, label = part.partition("=")
        settings.append(_setting(setting, given))
        labels.append(label.strip())
    return [Baseline(tuple(settings), tuple(labels))]


def _setting(name: str, given: str) -> str:
    name = name.strip().replace("-", "_")
    if not name:
        raise InputError(f"{given!r} names no setting; give its name before the equals sign, as in labels=100.")
    name = ALIASES.get(name, name)
    if name not in (*Config.model_fields, SOURCE):
        meant = near(name, Config.model_fields)
        raise InputError(f"there is no setting {name!r}; {f'did you mean {meant}?' if meant else 'give another.'}")
    return name


def why_nothing(groups: Sequence[Group]) -> str:
    """Return a sentence that says why no runs are compared."""
    differing = tuple(name for name in Config.model_fields if name != "seed" and len({g[name] for g in groups}) > 1)
    text = "Nothing is compared: no two runs with the same seed differ only in strategy, learner or memory policy"
    if compare(groups, Baseline(differing, labels_of(groups[0], differing))):
        words = ",".join(f"{name}={show(groups[0][name])}" for name in differing)
        text += f"; --baseline {words} compares everything that differs"
    return f"{text}."


@dataclass(eq=False)
class Compared:
    """The differences from the baseline of runs with these labels: by metric and seed, a difference for each cell."""

    labels: tuple[str, ...]
    differences: dict[str, dict[int, list[float]]] = field(default_factory=lambda: {m: {} for m in MAIN_METRICS})
    cells: dict[str, str] = field(default_factory=dict)  # {cell: a phrase for its number of labels per task}

    def add(self, cell: str, labels_a_task: str, seed: int, differences: Mapping[str, float]) -> None:
        self.cells[cell] = labels_a_task
        for metric, difference in differences.items():
            self.differences[metric].setdefault(seed, []).append(difference)

    def by_seed(self, metric: str) -> list[float]:
        """Return a difference for each seed: the mean over its cells."""
        return [float(np.mean(of_cells)) for of_cells in self.differences[metric].values()]

    @property
    def seeds(self) -> int:
        return len(self.differences[MAIN_METRICS[0]])

    @property
    def pairs(self) -> int:
        return sum(map(len, self.differences[MAIN_METRICS[0]].values()))

    @property
    def least_p(self) -> float:
        """The smallest p that this number of seeds can give, when all differences have the same sign."""
        return 2 / 2**self.seeds


def compare(groups: Sequence[Group], baseline: Baseline, by_cell: bool = False) -> dict[str, list[Compared]]:
    """Return the differences from the baseline, by scale or by cell, over all cells that have both sides of a pair.

    `full` is left out. Runs with the same accuracies count as one run; otherwise a setting that made no difference,
    such as the size of a memory that was never full, would make a pair count twice.
    """
    bases = [group for group in groups if baseline.of(group) == baseline.labels]
    comparisons: dict[str, dict[tuple[str, ...], Compared]] = {}
    known: set[tuple[object, ...]] = set()
    for group, base in ((group, base) for group in groups for base in bases if _match(group, base, baseline)):
        if group in bases or ("strategy" in baseline.settings and group["strategy"] == "full"):
            continue
        common = min(group, base, key=lambda of_pair: len(baseline.ignored(of_pair)))
        cell, labels = baseline.cell(common), baseline.of(group)
        where = cell if by_cell else f"{group['scale']} scale"
        by_metric = {metric: (group.values(metric), base.values(metric)) for metric in MAIN_METRICS}
        for seed in sorted(set.intersection(*(set(values) for pair in by_metric.values() for values in pair))):
            runs = (labels, _identity(group, seed), _identity(base, seed))
            if all(runs) and runs in known:
                continue
            known.add(runs)
            differences = {metric: ours[seed] - theirs[seed] for metric, (ours, theirs) in by_metric.items()}
            compared = comparisons.setdefault(where, {}).setdefault(labels, Compared(labels))
            compared.add(cell, "" if "labels" in baseline.settings else common.labels, seed, differences)
    return {where: list(by_labels.values()) for where, by_labels in comparisons.items()}


def _match(group: Group, base: Group, baseline: Baseline) -> bool:
    ignored = {"seed", *baseline.ignored(group), *baseline.ignored(base)}
    return all(group[name] == base[name] for name in (*Config.model_fields, SOURCE) if name not in ignored)


def _identity(group: Group, seed: int) -> str:
    """Return a run's benchmark, learner, seed and accuracies as text; "" if the accuracies were not recorded."""
    matrix = next(row.get("accuracy_matrix") for row in group.rows if row["seed"] == seed)
    return json.dumps([group["benchmark"], group["learner"], seed, matrix]) if matrix else ""


def difference_tables(groups: Sequence[Group], baseline: Baseline) -> list[Table]:
    """Return tables of the differences over all cells and, where its seeds suffice for a test, in each cell.

    Runs that stop early or continue longer begin like the others, so they are left out if there are others. Bounds are
    left out of the table over all cells, unless learners or memories are compared: whatever is labelled, they forget
    everything or nothing.
    """
    whole = [group for group in groups if not group.changed(("tasks", "last_rounds"))]
    groups = whole if compare(whole, baseline) else groups
    pooled, by_cell = compare(groups, baseline), compare(groups, baseline, by_cell=True)
    if not by_cell:
        return []
    several = any(len(compared.cells) > 1 for rows in pooled.values() for compared in rows)
    if not {"learner", "memory"} & set(baseline.settings):
        pooled |= compare([group for group in groups if group.bound not in BOUNDS], baseline)
    labels = {labels for rows in by_cell.values() for compared in rows for labels in compared.cells.values() if labels}
    over = ", over all cells" if several else f": {next(iter(by_cell))}" if len(by_cell) == 1 else ""
    note = NOTE
    if labels and len(by_cell) > 1:
        note = f"The cells have {alternatives(sorted(labels, key=lambda text: (len(text), text)))}. {NOTE}"
    tables = [_table(f"Differences from {baseline}{over}", pooled, len(pooled) > 1, note, baseline)]
    if several and any(compared.seeds > 5 for rows in by_cell.values() for compared in rows):
        caption = f"Differences from {baseline}, in each cell"
        tables.append(_table(caption, by_cell, True, "Tested as above, in each cell.", baseline))
    return tables


def _table(caption: str, by_cell: dict[str, list[Compared]], titled: bool, note: str, baseline: Baseline) -> Table:
    columns = []
    for metric in MAIN_METRICS:
        columns += [TableColumn("difference", METRICS[metric].head), TableColumn("p", METRICS[metric].head)]
    columns += [TableColumn("pairs"), TableColumn("cells"), TableColumn("seeds")]
    row_groups = [TableGroup(where if titled else "", _rows(rows, baseline)) for where, rows in by_cell.items()]
    return Table(caption, ["runs"], columns, row_groups, note, grouped_by="cell")


def _rows(group: Sequence[Compared], baseline: Baseline) -> list[TableRow]:
    """Return a row for each label; p is corrected for the number of labels that can be tested.

    A number of seeds that is enough for a single comparison may be too small with this correction.
    """
    able = [compared for compared in group if compared.least_p <= LEVEL]
    least = dict(zip(able, holm([compared.least_p for compared in able]), strict=True))
    ps = {
        metric: dict(zip(able, holm([sign_flip_test(compared.by_seed(metric)) for compared in able]), strict=True))
        for metric in MAIN_METRICS
    }
    rows = []
    for compared in group:
        cells = []
        for metric in MAIN_METRICS:
            mean = float(np.mean(compared.by_seed(metric)))
            cells.append(TableCell(f"{round(mean, 2) + 0.0:+.2f}"))
            p = ps[metric].get(compared)
            shown = "" if p is None else p_value(p)
            if p is None or least[compared] > LEVEL:
                cells.append(TableCell(shown, f"{compared.seeds} seed{'s' * (compared.seeds > 1)} cannot tell"))
            elif p >= LEVEL:
                cells.append(TableCell(shown))
            elif (mean > 0) == METRICS[metric].larger:
                cells.append(TableCell(shown, "better", "best"))
            else:
                cells.append(TableCell(shown, "worse"))
        counts = (compared.pairs, len(compared.cells), compared.seeds)
        rows.append(TableRow([baseline.row(compared.labels)], [*cells, *(TableCell(str(count)) for count in counts)]))
    return rows


NOTE = (
    "Differences in points from the baseline, between runs with the same seed and all other settings in common; runs "
    "with identical accuracies count once. Each seed counts once, with its mean over the cells that have it, because "
    "cells that share a seed are not independent. p: two-sided, from a sign-flip test over seeds (all flips for up to "
    f"{int(np.log2(FLIPS))} seeds, {FLIPS:,} random ones for more), corrected by Holm's method for the number of rows "
    f"with enough seeds. Seeds cannot tell if even the smallest p that so many can give is not below {LEVEL}. Bold: "
    f"better with p < {LEVEL}. Runs that stop early or go on longer are left out if there are others; so are lower and "
    "upper bounds over all cells, unless learners or memories are compared."
)


def sign_flip_test(differences: ArrayLike) -> float:
    """Return the two-sided p of a mean: how often |mean| is at least as large if all signs are drawn at random.

    >>> sign_flip_test([1.0, 2.0, 3.0])  # the smallest that three pairs can give
    0.25
    """
    from scipy.stats import permutation_test

    d = np.asarray(differences, np.float64)
    if d.ndim != 1 or not len(d):
        raise InputError(f"differences have the shape {d.shape}; give a sequence of at least one.")
    if len(d) == 1:  # permutation_test refuses a single difference
        return 1.0
    test = permutation_test(
        (d,),
        _absolute_sum,
        permutation_type="samples",
        alternative="greater",
        vectorized=True,
        n_resamples=FLIPS,
        batch=10_000,
        rng=numpy_generator(0),
    )
    return float(test.pvalue)


def _absolute_sum(differences: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
    return np.round(np.abs(np.sum(differences, axis)), 9)  # sums that differ by rounding alone become equal


def holm(ps: Sequence[float]) -> list[float]:
    """Return the p-values corrected by Holm's method: the smallest times n, the next times n - 1, ..., never falling.

    >>> [round(p, 3) for p in holm([0.03, 0.01, 0.2])]
    [0.06, 0.03, 0.2]
    """
    corrected, worst = [0.0] * len(ps), 0.0
    for rank, i in enumerate(np.argsort(ps, kind="stable").tolist()):
        worst = max(worst, min(1.0, (len(ps) - rank) * ps[i]))
        corrected[i] = worst
    return corrected


def p_value(p: float) -> str:
    """
    >>> p_value(0.125), p_value(0.03125), p_value(0.00001)
    ('0.125', '0.031', '< 0.001')
    """
    return "< 0.001" if p < 0.001 else number(p, 3)

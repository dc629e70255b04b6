"""Means as CSV: a line for each group of runs and metric, for other programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from accuacl.experiment.config import Config
from accuacl.report.statistics import paper
from accuacl.report.statistics.collect import Row
from accuacl.report.statistics.groups import METRICS, make_groups

TABLES = ("main", "learning-accuracy", "memory-baselines", "scores", "full-past")


def render(rows: Sequence[Row]) -> str:
    """All settings but the seed, then metric, mean, std, n, and the paper's mean and std where it has them."""
    settings = [name for name in Config.model_fields if name != "seed"]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*settings, "metric", "mean", "std", "n", "paper_mean", "paper_std"])
    for group in make_groups(rows):
        what = [group[name] for name in settings]
        for metric in METRICS:
            ours, theirs = group.stat(metric), paper.value(TABLES, group, metric)
            if ours:
                found = [ours.mean, ours.std, ours.n, theirs and theirs.mean, theirs and theirs.std]
                writer.writerow([*what, metric, *found])
    return text.getvalue()

"""Means as CSV for other programs: a line for each group of runs and metric."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from accuacl.experiment import Config
from accuacl.report.statistics import paper
from accuacl.report.statistics.groups import Group
from accuacl.report.statistics.metrics import METRICS

PAPERS_TABLES = ("main", "learning-accuracy", "memory-baselines", "scores", "full-past")


def means_csv(groups: Sequence[Group]) -> str:
    """All settings but the seed, then metric, mean, std, n, and the paper's mean and std where it has them."""
    settings = [name for name in Config.model_fields if name != "seed"]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*settings, "metric", "mean", "std", "n", "paper_mean", "paper_std"])
    for group in groups:
        values = [group[name] for name in settings]
        for metric in METRICS:
            ours, papers = group.mean_std(metric), paper.value(PAPERS_TABLES, group, metric)
            if ours:
                of_paper = [papers.mean, papers.std] if papers else [None, None]
                writer.writerow([*values, metric, ours.mean, ours.std, ours.n, *of_paper])
    return text.getvalue()

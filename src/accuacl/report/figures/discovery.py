"""How soon classes are found: against the labels spent, by strategy."""

from __future__ import annotations

from collections.abc import Sequence

from accuacl.experiment import is_tidy
from accuacl.report.figures.curves import Curve, line_panel, pointwise, y_limits
from accuacl.report.figures.styles import styles
from accuacl.report.formats.document import Figure
from accuacl.report.statistics.groups import Group
from accuacl.report.statistics.over_time import labels_spent

SHOWN = {"found": "classes found (%)", "rarest_labels": "labels of the rarest class"}
ALL = 102  # where the axis of a share in percent ends: a deviation above the mean may reach farther


def discovery(groups: Sequence[Group]) -> Figure | None:
    """The share of classes with a label, and the labels of the rarest class.

    There is none where the stream is tidy and all classes are found at once.
    """
    asked = [group for group in groups if group["strategy"] != "full"]
    known = [group for group in asked if all(row.get("found") for row in group.rows)]
    shares = [share for group in known for row in group.rows for task in row["found"] for share in task]
    if all(share == 100 for share in shares) and all(is_tidy(group.rows[0]) for group in known):
        return None
    panels, legend = [], styles(group.strategy for group in known)
    for name, ylabel in SHOWN.items():
        curves = {group: _curve(group, name) for group in known}
        low, high = y_limits(mean for points in curves.values() for _, mean in points)
        limits = (low, min(high, ALL) if name == "found" else high)
        for learner in dict.fromkeys(group.learner for group in known):
            lines = {group.strategy: points for group, points in curves.items() if group.learner == learner}
            panels.append(line_panel(learner, ylabel, "against labels spent", "labels", lines, legend, limits))
    caption = (
        "How soon classes are found: of those that have arrived, the share with at least one label, and the labels of "
        f"the class with the fewest examples: {groups[0].title}."
    )
    caption += " Bands: standard deviation over seeds." if any(len(group.rows) > 1 for group in known) else ""
    return Figure(caption, panels, legend, columns=max(2, len({group.learner for group in known})))


def _curve(group: Group, name: str) -> Curve:
    """After each round, at the number of labels spent by then, mean over the seeds."""
    spent = [x.mean for _, x in pointwise([labels_spent(row) for row in group.rows], 0)]
    means = pointwise([[value for task in row[name] for value in task] for row in group.rows], 0)
    return [(x, mean) for x, (_, mean) in zip(spent, means, strict=False)]

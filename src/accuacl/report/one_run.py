"""The report of a single run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accuacl.experiment import CLASS_METRICS, Config, is_tidy, read_result, read_steps, stream_words
from accuacl.report import provenance
from accuacl.report.figures import class_figures, contact_sheet, run_figures
from accuacl.report.figures.discovery import discovery
from accuacl.report.figures.stream_map import stream_map
from accuacl.report.formats.document import (
    Document,
    Heading,
    Points,
    Table,
    TableCell,
    TableColumn,
    TableGroup,
    TableRow,
    Text,
)
from accuacl.report.statistics import paper
from accuacl.report.statistics.groups import Group, Row, make_groups
from accuacl.report.statistics.metrics import METRICS, number
from accuacl.report.statistics.settings import show

SHOWN = ("average_accuracy", "forgetting", "forgetting_max", "learning_accuracy", *CLASS_METRICS, "calibration_error")
SECONDS = {"cpu": "CPU time of all steps"}  # the others are called as they are


def document(run: Path, row: Row, title: str = "", data_dir: Path | None = None, source: str = "") -> Document:
    """The report of the run in this directory. data_dir: where its images lie. source: a sentence on its origin."""
    (group,) = make_groups([row])
    what = f"{group['benchmark']}, {group.learner} with {group.strategy}"
    stream = f", {words}" if (words := stream_words(row)) else ""
    report = Document(title or f"{what}, memory {group['memory']}{stream}, seed {group['seed']}")
    add = report.blocks.append
    report.blocks.extend(provenance.notices([row]))
    add(Heading("Result"))
    add(Points([_metric(group, metric) for metric in SHOWN if row.get(metric) is not None]))
    if paper.value(("main",), group, "average_accuracy") and paper.protocol(group):
        add(Text(paper.protocol(group)))
    if row.get("accuracy_matrix"):
        report.blocks.extend([run_figures.heat_map(row["accuracy_matrix"]), *run_figures.curves(row)])
    result = read_result(run)
    if not is_tidy(row) and "stream" in result:
        add(Heading("The stream"))
        add(stream_map(result["stream"]["pools"], _class_names(run, result)))
    recall = result["recall"]
    if recall:
        add(Heading("Recall of each class"))
        add(Text(_extremes(recall)))
        add(run_figures.recall(recall, len(row.get("accuracy_matrix") or [0]) if is_tidy(row) else 1))
    if result.get("recall_by_task"):
        add(class_figures.recall_by_task(result["recall_by_task"]))
    if result.get("forgetting_by_class") and not is_tidy(row):
        add(class_figures.forgetting(result["forgetting_by_class"]))
    report.blocks.extend(_class_findings(result))
    found = discovery([group])
    report.blocks.extend([found] if found else [])
    if row.get("picked"):
        add(Heading("What was picked"))
        add(run_figures.picks(row["picked"]))
    pictures, problem = contact_sheet.contact_sheets(run, data_dir)
    report.blocks.extend([Heading("Picked images", 3), *pictures] if pictures else [])
    if problem:
        add(Text(f"No picked images are shown: {problem}"))
    add(Heading("Time"))
    add(_seconds(row))
    add(Heading("Settings"))
    add(_settings(row))
    add(Heading("Where these results come from"))
    add(Points([*([source] if source else []), *provenance.facts([row])]))
    add(provenance.commands("To reproduce this run", [group]))
    return report


def _metric(group: Group, metric: str) -> str:
    ours, papers = group.mean_std(metric), paper.value(("main", "learning-accuracy"), group, metric)
    text = f"{METRICS[metric].name.capitalize()}: {number(ours.mean, 2) if ours else '-'}"
    return f"{text} (paper: {papers})" if papers else text


def _class_names(run: Path, result: dict[str, Any]) -> list[str]:
    """The names of the stream's classes, in their order."""
    (data,) = [step.result for step in read_steps(run / "journal.sqlite", "data")]
    return [str(data["classes"][c]) for c in result["stream"]["order"]]


def _class_findings(result: dict[str, Any]) -> list[Points]:
    """What was forgotten most, and how many labels the rarest class got; results of older versions do not say it."""
    if "forgetting_by_class" not in result:
        return []
    fallen = sorted(result["forgetting_by_class"].items(), key=lambda item: -item[1])[:5]
    most = ", ".join(f"{name} ({fall:.0f})" for name, fall in fallen)
    points = [f"Forgotten most, in points: {most}."] if fallen else []
    labels, found = result["rarest_labels"][-1][-1], result["found"][-1][-1]
    points.append(f"Classes with at least one label at the end: {found:.0f} %.")
    points.append(f"Labels of the rarest class, {result['rarest_class']}: {labels}.")
    return [Points(points)]


def _extremes(recall: dict[str, float]) -> str:
    ranking = sorted(recall.items(), key=lambda item: item[1])
    if len(ranking) <= 10:
        return f"From lowest to highest: {_classes(ranking)}."
    return f"Lowest: {_classes(ranking[:5])}. Highest: {_classes(ranking[:-6:-1])}."


def _classes(ranking: Sequence[tuple[str, float]]) -> str:
    return ", ".join(f"{name} ({value:.0f} %)" for name, value in ranking)


def _seconds(row: Row) -> Table:
    rows = []
    for name in ("query", "train", "evaluate", "load", "other", "cpu"):
        seconds = row.get(f"seconds_{name}")
        cell = TableCell("-" if seconds is None else f"{seconds:,.2f}")
        rows.append(TableRow([SECONDS.get(name, name)], [cell]))
    return Table("Wall-clock time of each step", ["step"], [TableColumn("seconds")], [TableGroup("", rows)])


def _settings(row: Row) -> Table:
    rows = [
        TableRow([name], [TableCell(show(row.get(name))), TableCell(field.description or "")])
        for name, field in Config.model_fields.items()
    ]
    columns = [TableColumn("value"), TableColumn("meaning", text=True)]
    return Table("All settings", ["setting"], columns, [TableGroup("", rows)])

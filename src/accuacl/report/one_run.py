"""The report of a single run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accuacl.experiment.config import Config
from accuacl.report.figures import matrix, sheet
from accuacl.report.formats.document import Block, Cell, Code, Column, Document, Heading, Line, Points, Table, Text
from accuacl.report.statistics import origin, paper
from accuacl.report.statistics.collect import Row
from accuacl.report.statistics.groups import METRICS, Group, make_groups, show
from accuacl.report.tables.tables import number

SHOWN = ("average_accuracy", "forgetting", "forgetting_max", "learning_accuracy", "calibration_error")


def document(run: Path, row: Row, title: str = "", data_dir: Path | None = None) -> Document:
    """What the run in this directory came to, step by step."""
    group = make_groups([row])[0]
    name = (
        f"{group['benchmark']}, {group.learner} with {group.strategy}, memory {group['memory']}, seed {group['seed']}"
    )
    report = Document(title or name)
    add = report.blocks.append
    for note in origin.notes([row]):
        add(Text(note, notice=True))
    add(Heading("Result"))
    add(Points([_metric(group, name) for name in SHOWN if row.get(name) is not None]))
    if paper.value(("main",), group, "average_accuracy") and paper.protocol(group):
        add(Text(paper.protocol(group)))
    if row.get("accuracy_matrix"):
        report.blocks.extend([matrix.heat_map(row["accuracy_matrix"]), *matrix.curves(row)])
    recall = _recall(run)
    if recall:
        add(Heading("Recall of each class"))
        ranking = sorted(recall.items(), key=lambda item: item[1])
        few = f"From lowest to highest: {_classes(ranking)}."
        add(
            Text(
                few if len(ranking) <= 10 else f"Lowest: {_classes(ranking[:5])}. Highest: {_classes(ranking[:-6:-1])}."
            )
        )
        add(matrix.recall(recall, len(row.get("accuracy_matrix") or [0])))
    if row.get("picked"):
        add(Heading("What was picked"))
        report.blocks.extend([matrix.picks(row["picked"])])
    pictures, problem = sheet.contact_sheet(run, data_dir)
    report.blocks.extend([Heading("Picked images", 3), *pictures] if pictures else [])
    if problem:
        add(Text(f"No picked images are shown: {problem}"))
    add(Heading("Time"))
    add(_seconds(row))
    add(Heading("Settings"))
    add(_settings(row))
    add(Heading("Where this comes from"))
    add(Points(origin.facts([row])))
    add(Code(origin.again("The same again", [group]), [origin.command(group)]))
    return report


def _metric(group: Group, name: str) -> str:
    found, theirs = group.stat(name), paper.value(("main", "learning-accuracy"), group, name)
    text = f"{METRICS[name].name.capitalize()}: {number(found.mean, 2) if found else '-'}"
    if theirs:
        text += f" (paper: {number(theirs.mean)}{'' if theirs.std is None else f' ± {number(theirs.std)}'})"
    return text


def _recall(run: Path) -> dict[str, float]:
    recall = json.loads((run / "result.json").read_text()).get("recall", {})
    return {str(name): float(value) for name, value in recall.items()}


def _classes(ranking: Sequence[tuple[str, float]]) -> str:
    return ", ".join(f"{name} ({value:.0f} %)" for name, value in ranking)


def _seconds(row: Row) -> Table:
    lines = []
    for name in ("query", "train", "evaluate", "load", "other", "cpu"):
        seconds = row.get(f"seconds_{name}")
        what = "CPU time of all steps" if name == "cpu" else name
        lines.append(Line([what], [Cell("-" if seconds is None else f"{seconds:,.2f}")]))
    return Table("Where the time went, by the clock", ["step"], [Column("seconds")], [Block("", lines)])


def _settings(row: Row) -> Table:
    lines = []
    for name, field in Config.model_fields.items():
        value: Any = row.get(name)
        lines.append(Line([name], [Cell(show(value)), Cell(field.description or "")]))
    columns = [Column("value"), Column("meaning", text=True)]
    return Table("All settings", ["setting"], columns, [Block("", lines)])

"""The two documents: the report of many runs, from the summary to the commands, and the report of a single run."""

from __future__ import annotations

import hashlib
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accuacl.base.errors import InputError, counted
from accuacl.experiments import (
    BUILT_IN,
    CLASS_METRICS,
    OPTIONS,
    Config,
    Row,
    describe_stream,
    is_class_incremental,
    looks_at_sample,
    models,
    read_result,
    read_steps,
)
from accuacl.experiments.report import bars, curves, paper, run_figures
from accuacl.experiments.report.comparison import Baseline, difference_tables, find_baseline, why_nothing
from accuacl.experiments.report.document import (
    Block,
    Code,
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
from accuacl.experiments.report.groups import Group, defaults, grouped, make_groups, show
from accuacl.experiments.report.measures import METRICS, number
from accuacl.experiments.report.tables import comparison_tables, order_tables, setting_tables, varied_settings

FEW = 3  # a setup with fewer strategies has no section of its own if it is in a table of varied settings
SHOWN = ("average_accuracy", "forgetting", "forgetting_max", "learning_accuracy", *CLASS_METRICS, "calibration_error")
SECONDS = {"cpu": "CPU time of all steps"}  # kinds of seconds whose own name does not explain them
MOST = 24  # the most classes that the confusion matrix and the table of a single run show
WORST = 5  # the most classes that the table of each of several groups of runs shows
ALWAYS = ("benchmark", "learner", "strategy", "scale", "memory")  # settings that every command names


def many_runs(
    rows: Sequence[Row],
    title: str = "",
    command: str = "",
    notices: Sequence[str] = (),
    source: str = "",
    query_times: Sequence[Row] = (),
    baseline: str | Baseline = "",
    usual: Baseline | None = None,
) -> Document:
    """Return the report of these rows.

    command: the command that made all rows, if there is one. notices: sentences to begin with. source: a sentence on
    where the rows were read. query_times: rows of query times. baseline, usual: arguments of `find_baseline`.
    """
    if not rows:
        report = Document(title or bars.TITLE, data_notices([], notices))
        report.blocks.extend([*bars.cost_blocks(query_times), Points([source])])
        report.blocks.extend([Code("To reproduce all of it", [command])] if command else [])
        return report
    groups = make_groups(rows)
    report = Document(title or f"Results: {', '.join(dict.fromkeys(str(group['benchmark']) for group in groups))}")
    add = report.blocks.append
    seeds = sorted({row["seed"] for row in rows})
    add(Text(f"{counted(len(rows), 'run')}, seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}."))
    report.blocks.extend(data_notices(rows, notices))
    compared = find_baseline(baseline, groups, usual)
    differences = difference_tables(groups, compared) if compared else []
    if baseline and not differences:
        raise InputError(
            f"no run has a pair with the baseline {str(baseline)!r}, all other settings and the seed the same."
        )
    if len(groups) > 1 and not differences:
        add(Text(why_nothing(groups)))
    _section(report, "Summary", [*differences, paper.gain_table(groups)])
    for setup, bounds in _setups(groups):
        figures = [draw(setup) for draw in (curves.tasks, curves.lam, curves.rounds, bars.picks, curves.discovery)]
        _section(report, setup[0].title, [*comparison_tables(setup, bounds), *figures, *_confusions(setup)])
    _section(report, "Agreement with the paper", [paper.agreement_table(groups)])
    _section(report, "Task orders", order_tables(groups))
    fixed_order = [group for group in groups if group["order"] != "tasks"]
    _section(report, "Varied settings", [*setting_tables(groups), *curves.labels(fixed_order)])
    _section(report, bars.TITLE, bars.cost_blocks(query_times))
    _section(report, "Where these results come from", [provenance(rows, source)])
    if command:
        add(Code("To reproduce all runs", [command]))
    add(commands("To reproduce single runs" if command else "To reproduce all runs", groups))
    return report


def _setups(groups: Sequence[Group]) -> list[tuple[list[Group], list[Group]]]:
    """Return the groups and the bounds of each setup that has a section; permuted orders have a section elsewhere."""
    varied = {group for alike, _ in varied_settings(groups) for group in alike}
    groups = [group for group in groups if group["order"] != "tasks"]
    of_all_memories = grouped(groups, lambda group: group.setup_without(("memory",)))
    sections = []
    for setup in grouped(groups, lambda group: group.setup).values():
        alike = of_all_memories[setup[0].setup_without(("memory",))]
        if all(group.bound for group in setup) and not all(group.bound for group in alike):
            continue  # these groups are shown in the tables of the other memories
        if not set(setup) <= varied or len({group.strategy for group in setup}) >= FEW:
            sections.append((setup, [group for group in alike if group.bound and group not in setup]))
    return sections


def _section(report: Document, title: str, blocks: Sequence[Block | None]) -> None:
    """Add a section with those blocks that are not None."""
    if present := [block for block in blocks if block]:
        report.blocks.extend([Heading(title), *present])


def one_run(run: Path, row: Row, title: str = "", data_dir: Path | None = None, source: str = "") -> Document:
    """Return the report of a run. data_dir: the directory of its images. source: a sentence on where it was read."""
    (group,) = make_groups([row])
    what = f"{group['benchmark']}, {group.learner} with {group.strategy}"
    stream = f", {words}" if (words := describe_stream(row)) else ""
    size = f"memory {group['memory']}, {group.labels}"
    report = Document(title or f"{what}, {size}{stream}, seed {group['seed']}")
    result, regular, matrix = read_result(run), is_class_incremental(row), row.get("accuracy_matrix")
    report.blocks.extend(data_notices([row]))
    metrics = Points([_metric(group, metric) for metric in SHOWN if row.get(metric) is not None])
    protocol = paper.protocol(group) if paper.value(("main",), group, "average_accuracy") else ""
    accuracies = [run_figures.heat_map(matrix), *run_figures.curves(row)] if matrix else []
    _section(report, "Result", [metrics, Text(protocol) if protocol else None, *accuracies])
    if not regular:
        _section(report, "The stream", [run_figures.stream_map(result["stream"]["pools"], _class_names(run, result))])
    by_class: list[Block | None] = []
    if result["recall"]:
        by_class.append(run_figures.recall(result["recall"], len(matrix or [0]) if regular else 1))
        by_class += _confusion_blocks({"": result.get("confusion") or {}}, list(result["recall"]), MOST)
    if result.get("recall_by_task"):
        by_class.append(run_figures.recall_by_task(result["recall_by_task"]))
    if result["forgetting_by_class"] and not regular:
        by_class.append(run_figures.forgetting(result["forgetting_by_class"]))
    _section(report, "Classes", [*by_class, _class_findings(result), curves.discovery([group])])
    if row.get("picked"):
        _section(report, "What was picked", [run_figures.picks(row["picked"])])
    pictures, problem = run_figures.contact_sheets(run, data_dir)
    report.blocks.extend([Heading("Picked images", 3), *pictures] if pictures else [])
    if problem:
        report.blocks.append(Text(f"No picked images are shown: {problem}"))
    _section(report, "Time", [_seconds(row)])
    _section(report, "Settings", [_settings(row)])
    _section(report, "Where these results come from", [provenance([row], source)])
    report.blocks.append(commands("To reproduce this run", [group]))
    return report


def _metric(group: Group, metric: str) -> str:
    ours, papers = group.mean_std(metric), paper.value(("main", "learning-accuracy"), group, metric)
    text = f"{METRICS[metric].name.capitalize()}: {number(ours.mean, 2) if ours else '-'}"
    return f"{text} (paper: {papers})" if papers else text


def _class_names(run: Path, result: dict[str, Any]) -> list[str]:
    """Return the names of the stream's classes, in their order."""
    (data,) = [step.result for step in read_steps(run / "journal.sqlite", "data")]
    return [str(data["classes"][c]) for c in result["stream"]["order"]]


def _class_findings(result: dict[str, Any]) -> Points:
    """Return sentences on what was forgotten most, and on how many labels the rarest class got."""
    fallen = sorted(result["forgetting_by_class"].items(), key=lambda item: -item[1])[:5]
    most = ", ".join(f"{name} ({fall:.0f})" for name, fall in fallen)
    points = [f"Forgotten most, in points: {most}."] if fallen else []
    labels, found = result["rarest_labels"][-1][-1], result["found"][-1][-1]
    points.append(f"Classes with at least one label at the end: {found:.0f} %.")
    points.append(f"Labels of the rarest class, {result['rarest_class']}: {labels}.")
    return Points(points)


def _confusions(groups: Sequence[Group]) -> list[Block]:
    """Return blocks on the confusions over all seeds, for each group of runs whose directories were read."""
    by_group: dict[str, dict[str, Counter[str]]] = {}
    for group in groups:
        for confusion in (row["confusion"] for row in group.rows if row.get("confusion")):
            counts = by_group.setdefault(f"{group.learner}, {group.strategy}", {})
            for name, predicted in confusion.items():
                counts.setdefault(name, Counter()).update(predicted)
    classes = list(dict.fromkeys(name for counts in by_group.values() for name in counts))
    return _confusion_blocks(by_group, classes, WORST, "Over all seeds whose directories were read.")


def _confusion_blocks(
    by_name: Mapping[str, run_figures.Counts], classes: Sequence[str], most: int, note: str = ""
) -> list[Block]:
    """Return confusion matrices if there are few classes, and tables of the classes with the lowest recall."""
    if not any(by_name.values()):
        return []
    tables = [TableGroup(name, _taken_for(counts, classes)[:most]) for name, counts in by_name.items()]
    which = f"The {most} classes with the lowest recall" if most < len(classes) else "Recall of each class"
    caption = f"{which} at the end, and the classes that its test examples were most often taken for"
    columns = [TableColumn("recall (%)"), TableColumn("taken for", text=True)]
    figures = [run_figures.confusions(by_name, classes)] if len(classes) <= MOST else []
    return [*figures, Table(caption, ["class"], columns, tables, note, grouped_by="runs")]


def _taken_for(confusion: run_figures.Counts, classes: Sequence[str]) -> list[TableRow]:
    """Return a row for each class with the classes it was taken for, the lowest recall first."""
    rows = []
    for name in classes:
        counts = confusion.get(name, {})
        total = max(1, sum(counts.values()))
        wrong = sorted((-count, other) for other, count in counts.items() if other != name)
        others = ", ".join(f"{other} ({-100 * count / total:.0f} %)" for count, other in wrong[:3])
        rows.append((100 * counts.get(name, 0) / total, name, others or "-"))
    rows.sort(key=lambda row: row[0])
    return [TableRow([name], [TableCell(number(recall)), TableCell(others)]) for recall, name, others in rows]


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


def commands(title: str, groups: Sequence[Group]) -> Code:
    """Return the commands that reproduce the groups; the title names groups that also need a plugin's file."""
    own = dict.fromkeys(str(g[setting]) for g in groups for setting in BUILT_IN if g[setting] not in BUILT_IN[setting])
    if own:
        title += f" (add --plugin FILE with the file that defines {', '.join(own)})"
    return Code(title, [command(group) for group in groups])


def command(group: Group) -> str:
    """Return a shell command that repeats all runs of the group."""
    default = defaults(group["benchmark"], group["scale"], group["learner"])
    words = ["accuacl", "run"]
    # On a pretrained network, the default of the first round follows the strategy.
    always = (*ALWAYS, "first_round") if group["model"] == models.PRETRAINED else ALWAYS
    for name in (*always, *(name for name in Config.model_fields if name not in (*always, "seed"))):
        if name == OPTIONS:
            words += [word for option in shlex.split(group[OPTIONS]) for word in ("--option", option)]
        elif name in always or group[name] != default[name] or (name == "sample" and looks_at_sample(group.rows[0])):
            words += [f"--{name.replace('_', '-')}", str(group[name])]
    digest = hashlib.sha256(shlex.join(words).encode()).hexdigest()[:6]  # different runs need different directories
    out = f"runs/{digest}-"
    seeds = [str(row["seed"]) for row in group.rows]
    if len(seeds) == 1:
        return shlex.join([*words, "--seed", seeds[0], "--out", out + seeds[0]])
    return f"for seed in {' '.join(seeds)}; do {shlex.join(words)} --seed $seed --out {out}$seed; done"


def provenance(rows: Sequence[Row], source: str = "") -> Points:
    """Return sentences on where the rows were read, and on the hours, versions and machines of the runs."""
    recorded = [row["seconds_cpu"] for row in rows if row.get("seconds_cpu")]
    total = sum(recorded)
    hours = f"{total / 3600:,.2f} CPU hours" if total > 360 else f"{total:,.0f} CPU seconds"
    if len(recorded) < len(rows):
        hours = (
            f"{hours} in the {counted(len(recorded), 'run')} that recorded it" if recorded else "CPU time not recorded"
        )
    facts = [*([source] if source else []), f"{counted(len(rows), 'run')}, {hours}."]
    for what, name in (("Versions of accuacl", "version"), ("Machines", "machine")):
        counts = Counter(str(row.get(name) or "not recorded") for row in rows)
        texts = [f"{text} ({counted(n, 'run')})" if len(counts) > 1 else text for text, n in counts.most_common()]
        facts.append(f"{what}: {'; '.join(texts)}.")
    if finished := sorted(str(row["finished"]) for row in rows if row.get("finished")):
        several = finished[0] != finished[-1]
        facts.append(f"Finished between {finished[0]} and {finished[-1]}." if several else f"Finished {finished[0]}.")
    return Points(facts)


def data_notices(rows: Sequence[Row], others: Sequence[str] = ()) -> list[Block]:
    """Return the notices that a reader must know first: `others`, and the notes of the rows, each once."""
    texts = dict.fromkeys([*others, *(str(row.get("note") or "").strip() for row in rows)])
    return [Text(text if text.endswith(".") else f"{text}.", notice=True) for text in texts if text]

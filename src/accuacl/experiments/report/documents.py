"""The two documents: the report of many runs, from the summary to the commands, and the report of a single run."""

from __future__ import annotations

import hashlib
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accuacl.base.errors import InputError
from accuacl.experiments import (
    BUILT_IN,
    CLASS_METRICS,
    OPTIONS,
    Config,
    describe_stream,
    is_class_incremental,
    looks_at_sample,
    models,
    read_result,
    read_steps,
)
from accuacl.experiments.report import bars, curves, paper, run_figures
from accuacl.experiments.report.comparison import difference_tables, find_baseline, why_nothing
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
from accuacl.experiments.report.groups import (
    METRICS,
    SETUP_SETTINGS,
    SOURCE,
    Group,
    Row,
    defaults,
    make_groups,
    number,
    show,
)
from accuacl.experiments.report.tables import comparison_tables, order_tables, setting_tables, varied_settings

FEW = 3  # a setup with fewer strategies has no section of its own if it is in a table of varied settings
SHOWN = ("average_accuracy", "forgetting", "forgetting_max", "learning_accuracy", *CLASS_METRICS, "calibration_error")
SECONDS = {"cpu": "CPU time of all steps"}  # the others are called as they are
CLASSES = 24  # classes that a table of confusions has: all of them, or those with the lowest recall
WORST = 5  # classes that such a table has of each of several groups of runs
TAKEN_FOR = "the classes that its test examples were most often taken for"
TAKEN_COLUMNS = [TableColumn("recall (%)"), TableColumn("taken for", text=True)]
ALWAYS = ("benchmark", "learner", "strategy", "scale", "memory")  # settings that every command names


def many_runs(
    rows: Sequence[Row],
    title: str = "",
    command: str = "",
    unfinished: int = 0,
    notices: Sequence[str] = (),
    source: str = "",
    query_times: Sequence[Row] = (),
    baseline: str = "",
    usual: str = "",
) -> Document:
    """The report of these rows.

    command: the one that made them all, if there is one. unfinished: how many runs are not there yet. notices:
    sentences to begin with. source: a sentence on where the rows were read. query_times: what queries cost. baseline:
    what all else is compared with, a name or setting=value; "": the usual one. usual: what that is, where the
    paths say it.
    """
    if not rows:
        return Document(title or bars.TITLE, [*bars.cost_blocks(query_times), Points([source])])
    groups = make_groups(rows)
    report = Document(title or f"Results: {', '.join(dict.fromkeys(str(group['benchmark']) for group in groups))}")
    add = report.blocks.append
    add(Text(overview(rows)))
    if unfinished:
        is_left = "unfinished run is" if unfinished == 1 else "unfinished runs are"
        add(Text(f"{unfinished} {is_left} left out.", notice=True))
    report.blocks.extend(data_notices(rows, notices))
    first_source = f"{SOURCE}={rows[0][SOURCE]}" if rows[0].get(SOURCE) else ""
    compared = find_baseline(baseline or first_source, groups, usual)
    differences = difference_tables(groups, compared) if compared else []
    if baseline and not differences:
        raise InputError(f"no run has a pair with the baseline {baseline!r}, all other settings and the seed the same.")
    if len(groups) > 1 and not differences:
        add(Text(why_nothing(groups, compared)))
    _section(report, "Summary", [*differences, *([gains] if (gains := paper.gain_table(groups)) else [])])
    for setup, bounds in _setups(groups):
        figures = [curves.tasks(setup), curves.lam(setup), curves.rounds(setup), bars.picks(setup)]
        figures.append(curves.discovery(setup))
        tables = comparison_tables(setup, bounds)
        _section(report, setup[0].title, [*tables, *(figure for figure in figures if figure), *_confusions(setup)])
    _section(report, "Task orders", order_tables(groups))
    fixed_order = [group for group in groups if group["order"] != "tasks"]
    _section(report, "Varied settings", [*setting_tables(groups), *curves.labels(fixed_order)])
    if cells := paper.cells_of_paper(groups):
        _section(report, "Agreement with the paper", [paper.agreement_table(cells)])
    _section(report, bars.TITLE, bars.cost_blocks(query_times))
    facts = [*([source] if source else []), *provenance(rows)]
    _section(report, "Where these results come from", [Points(facts)])
    if command:
        add(Code("To reproduce all runs", [command]))
    add(commands("To reproduce single runs" if command else "To reproduce all runs", groups))
    return report


def _setups(groups: Sequence[Group]) -> list[tuple[list[Group], list[Group]]]:
    """The groups of each setup that has a section of its own, and its bounds; permuted orders have another section."""
    varied = {group for alike, _ in varied_settings(groups) for group in alike}
    setups: dict[object, list[Group]] = {}
    for group in groups:
        if group["order"] != "tasks":
            setups.setdefault(group.setup, []).append(group)
    sections = []
    for setup in setups.values():
        alike = [g for g in groups if g["order"] != "tasks" and _without_memory(g) == _without_memory(setup[0])]
        if all(group.bound for group in setup) and not all(group.bound for group in alike):
            continue  # in the tables of the other memories
        if not set(setup) <= varied or len({group.strategy for group in setup}) >= FEW:
            sections.append((setup, [group for group in alike if group.bound and group not in setup]))
    return sections


def _without_memory(group: Group) -> list[object]:
    return [group[name] for name in SETUP_SETTINGS if name != "memory"]


def _section(report: Document, title: str, blocks: Sequence[Block]) -> None:
    if blocks:
        report.blocks.extend([Heading(title), *blocks])


def one_run(run: Path, row: Row, title: str = "", data_dir: Path | None = None, source: str = "") -> Document:
    """The report of the run in this directory. data_dir: where its images lie. source: a sentence on its origin."""
    (group,) = make_groups([row])
    what = f"{group['benchmark']}, {group.learner} with {group.strategy}"
    stream = f", {words}" if (words := describe_stream(row)) else ""
    size = f"memory {group['memory']}, {group.labels}"
    report = Document(title or f"{what}, {size}{stream}, seed {group['seed']}")
    add = report.blocks.append
    report.blocks.extend(data_notices([row]))
    result, regular = read_result(run), is_class_incremental(row)
    add(Heading("Result"))
    add(Points([_metric(group, metric) for metric in SHOWN if row.get(metric) is not None]))
    if paper.value(("main",), group, "average_accuracy") and paper.protocol(group):
        add(Text(paper.protocol(group)))
    if row.get("accuracy_matrix"):
        report.blocks.extend([run_figures.heat_map(row["accuracy_matrix"]), *run_figures.curves(row)])
    if not regular and "stream" in result:
        _section(report, "The stream", [run_figures.stream_map(result["stream"]["pools"], _class_names(run, result))])
    if result["recall"]:
        add(Heading("Classes"))
        add(run_figures.recall(result["recall"], len(row.get("accuracy_matrix") or [0]) if regular else 1))
        if result.get("confusion"):
            report.blocks.extend(_confusion(result["confusion"], result["recall"]))
    if result.get("recall_by_task"):
        add(run_figures.recall_by_task(result["recall_by_task"]))
    if result.get("forgetting_by_class") and not regular:
        add(run_figures.forgetting(result["forgetting_by_class"]))
    report.blocks.extend(_class_findings(result))
    found = curves.discovery([group])
    report.blocks.extend([found] if found else [])
    if row.get("picked"):
        _section(report, "What was picked", [run_figures.picks(row["picked"])])
    pictures, problem = run_figures.contact_sheets(run, data_dir)
    report.blocks.extend([Heading("Picked images", 3), *pictures] if pictures else [])
    if problem:
        add(Text(f"No picked images are shown: {problem}"))
    _section(report, "Time", [_seconds(row)])
    _section(report, "Settings", [_settings(row)])
    _section(report, "Where these results come from", [Points([*([source] if source else []), *provenance([row])])])
    add(commands("To reproduce this run", [group]))
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
    """What was forgotten most, and how many labels the rarest class got; tables of older results lack it."""
    if "forgetting_by_class" not in result:
        return []
    fallen = sorted(result["forgetting_by_class"].items(), key=lambda item: -item[1])[:5]
    most = ", ".join(f"{name} ({fall:.0f})" for name, fall in fallen)
    points = [f"Forgotten most, in points: {most}."] if fallen else []
    labels, found = result["rarest_labels"][-1][-1], result["found"][-1][-1]
    points.append(f"Classes with at least one label at the end: {found:.0f} %.")
    points.append(f"Labels of the rarest class, {result['rarest_class']}: {labels}.")
    return [Points(points)]


def _confusion(confusion: Mapping[str, Mapping[str, int]], recall: Mapping[str, float]) -> list[Block]:
    """The confusion matrix of few classes, and by which others the worst classes are swallowed."""
    figures: list[Block] = [run_figures.confusion(confusion, list(recall))] if len(recall) <= CLASSES else []
    few = f" of the {CLASSES} classes with the lowest recall" if len(recall) > CLASSES else " of each class"
    rows = [TableGroup("", _swallowed(confusion, recall)[:CLASSES])]
    return [*figures, Table(f"Recall at the end{few}, and {TAKEN_FOR}", ["class"], TAKEN_COLUMNS, rows)]


def _confusions(groups: Sequence[Group]) -> list[Block]:
    """The same for each group of runs whose directories were read, over all its seeds."""
    by_group: dict[str, dict[str, Counter[str]]] = {}
    for group in groups:
        for confusion in (row["confusion"] for row in group.rows if row.get("confusion")):
            counts = by_group.setdefault(f"{group.learner}, {group.strategy}", {})
            for name, predicted in confusion.items():
                counts.setdefault(name, Counter()).update(predicted)
    classes = list(dict.fromkeys(name for counts in by_group.values() for name in counts))
    if not classes:
        return []
    tables = []
    for name, counts in by_group.items():
        recall = {true: 100 * of_class[true] / max(1, of_class.total()) for true, of_class in counts.items()}
        tables.append(TableGroup(name, _swallowed(counts, recall)[:WORST]))
    caption = f"The {min(WORST, len(classes))} classes with the lowest recall at the end, and {TAKEN_FOR}"
    figures = [run_figures.confusions(by_group, classes)] if len(classes) <= CLASSES else []
    note = "Over all seeds whose directories were read."
    return [*figures, Table(caption, ["class"], TAKEN_COLUMNS, tables, note, grouped_by="runs")]


def _swallowed(confusion: Mapping[str, Mapping[str, int]], recall: Mapping[str, float]) -> list[TableRow]:
    """A row for each class, the lowest recall first."""
    rows = []
    for name in sorted(recall, key=lambda name: recall[name]):
        counts = confusion.get(name, {})
        wrong = sorted(
            ((count, other) for other, count in counts.items() if other != name), key=lambda w: (-w[0], w[1])
        )
        total = max(1, sum(counts.values()))
        swallowed = ", ".join(f"{other} ({100 * count / total:.0f} %)" for count, other in wrong[:3])
        rows.append(TableRow([name], [TableCell(number(recall[name])), TableCell(swallowed or "-")]))
    return rows


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
    """The commands that reproduce the groups; the title names what also needs a plugin's file."""
    own = dict.fromkeys(str(g[setting]) for g in groups for setting in BUILT_IN if g[setting] not in BUILT_IN[setting])
    if own:
        title += f" (add --plugin FILE with the file that defines {', '.join(own)})"
    return Code(title, [command(group) for group in groups])


def command(group: Group) -> str:
    """One line of shell that does all runs of the group again."""
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


def overview(rows: Sequence[Row]) -> str:
    """How many runs, which seeds and which versions, in one line."""
    versions = ", ".join(dict.fromkeys(str(row.get("version") or "unknown") for row in rows))
    seeds = _seeds(rows)
    return f"{_runs(len(rows))}, seed{'s' * (len(seeds) > 1)} {', '.join(seeds)}, accuacl {versions}."


def provenance(rows: Sequence[Row]) -> list[str]:
    """Runs, hours, versions and machines, as sentences."""
    recorded = [row["seconds_cpu"] for row in rows if row.get("seconds_cpu")]
    total = sum(recorded)
    hours = f"{total / 3600:,.2f} CPU hours" if total > 360 else f"{total:,.0f} CPU seconds"
    if len(recorded) < len(rows):
        hours = f"{hours} in the {_runs(len(recorded))} that recorded it" if recorded else "CPU time not recorded"
    facts = [
        f"{_runs(len(rows))}, {hours}.",
        f"Versions of accuacl: {_counted(rows, 'version')}.",
        f"Machines: {_counted(rows, 'machine')}.",
    ]
    finished = sorted(str(row["finished"]) for row in rows if row.get("finished"))
    if finished:
        several = finished[0] != finished[-1]
        facts.append(f"Finished between {finished[0]} and {finished[-1]}." if several else f"Finished {finished[0]}.")
    return facts


def data_notices(rows: Sequence[Row], others: Sequence[str] = ()) -> list[Text]:
    """What must be known before anything else: the others, and the notes of the rows, each once."""
    texts = dict.fromkeys([*others, *(str(row.get("note") or "").strip() for row in rows)])
    return [Text(text if text.endswith(".") else f"{text}.", notice=True) for text in texts if text]


def _seeds(rows: Sequence[Row]) -> list[str]:
    return [str(seed) for seed in sorted({row["seed"] for row in rows})]


def _counted(rows: Sequence[Row], name: str) -> str:
    counts = Counter(str(row.get(name) or "not recorded") for row in rows)
    return "; ".join(f"{value} ({_runs(n)})" if len(counts) > 1 else value for value, n in counts.most_common())


def _runs(n: int) -> str:
    return f"{n} run{'' if n == 1 else 's'}"

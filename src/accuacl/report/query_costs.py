"""What queries cost: CPU seconds and memory of each strategy, as a table and two plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accuacl.base.files import write_text
from accuacl.report.figures.bars import log_panel, short
from accuacl.report.figures.styles import styles
from accuacl.report.formats import page
from accuacl.report.formats.document import (
    Block,
    Code,
    Document,
    Figure,
    Panel,
    Points,
    Table,
    TableCell,
    TableColumn,
    TableGroup,
    TableRow,
    Text,
)

OURS = "accuacl"
TITLE = "Time and memory of queries"
PAPER = "In the paper BAIT takes 462.1 times AccuACL's time and 85.5 times its memory, both in their authors' own code."
RANDOM = "Features are random and have the sizes of the benchmark's"

Costs = Mapping[str, tuple[float, float]]  # CPU seconds of all queries and bytes of the largest, by strategy


def write_efficiency(costs: Costs, out: Path, title: str, about: str, command: str, machine: str) -> Path:
    """Write the page of `accuacl paper efficiency`."""
    what = "Time of all queries, and memory of the largest beyond its inputs"
    blocks = [
        Text(f"{about[0].upper()}{about[1:]}."),
        *_table_and_plots(costs, what),
        Text(f"{RANDOM}; {machine}; seed 0. {PAPER}"),
        Code("To reproduce all of it", [command]),
    ]
    write_text(out, page.render(Document(title, blocks)))
    return out


def cost_blocks(rows: Sequence[Mapping[str, Any]]) -> list[Block]:
    """Tables of query times as blocks of a report: a table and two plots for each size of pool.

    rows: as `read_query_times` gives them. A strategy that lacks one of the sizes that others have is named, and left
    out: its sum would say too little.
    """
    blocks: list[Block] = []
    for (n, d, b), alike in _by_pool(rows).items():
        sizes = list(dict.fromkeys((row["K"], row["m"], row["labelled"]) for row in alike))
        costs, lacking = _costs(alike, len(sizes))
        classes = ", ".join(dict.fromkeys(str(K) for K, _, _ in sizes))
        what = f"{b:,} picks of {n:,} examples, {d} wide, one query for each number of classes ({classes})"
        blocks += (
            _table_and_plots(costs, f"{what}: time of all, memory of the largest beyond its inputs") if costs else []
        )
        machines = "; ".join(dict.fromkeys(row["machine"] for row in alike))
        notes = [f"{RANDOM}; measured on {machines}.", PAPER]
        if lacking:
            notes.insert(0, f"Not measured at all sizes, and left out: {', '.join(lacking)}.")
        blocks.append(Points(notes))
    return blocks


def _by_pool(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[int, int, int], list[Mapping[str, Any]]]:
    pools: dict[tuple[int, int, int], list[Mapping[str, Any]]] = {}
    for row in rows:
        pools.setdefault((row["n"], row["d"], row["b"]), []).append(row)
    return pools


def _costs(rows: Sequence[Mapping[str, Any]], sizes: int) -> tuple[dict[str, tuple[float, float]], list[str]]:
    """What the strategies cost that were measured at so many sizes, and the names of the others."""
    by_strategy: dict[str, dict[Any, Mapping[str, Any]]] = {}
    for row in rows:  # of a size that was measured twice the last counts
        by_strategy.setdefault(row["strategy"], {})[row["K"], row["m"], row["labelled"]] = row
    costs = {
        name: (
            sum(row["cpu_seconds"] for row in measured.values()),
            max(row["extra_bytes"] for row in measured.values()),
        )
        for name, measured in by_strategy.items()
        if len(measured) == sizes
    }
    return costs, [name for name in by_strategy if name not in costs]


def _table_and_plots(costs: Costs, caption: str) -> list[Block]:
    columns = [TableColumn("CPU s"), TableColumn("x accuacl"), TableColumn("MiB"), TableColumn("x accuacl")]
    ours = costs.get(OURS)
    rows = []
    for strategy, (seconds, size) in costs.items():
        cells = [TableCell(short(seconds)), TableCell(_times(seconds, ours and ours[0]))]
        cells += [TableCell(short(size / 2**20)), TableCell(_times(size, ours and ours[1]))]
        rows.append(TableRow([strategy], cells))
    panels = [
        _panel("CPU seconds", {name: max(seconds, 1e-3) for name, (seconds, _) in costs.items()}),
        _panel("memory, MiB", {name: max(size / 2**20, 0.1) for name, (_, size) in costs.items()}),
    ]
    plots = Figure("Time of all queries and memory of the largest, on logarithmic axes.", panels, columns=2)
    return [Table(caption, ["strategy"], columns, [TableGroup("", rows)]), plots]


def _times(value: float, base: float | None) -> str:
    return f"{value / base:,.2f}" if base else ""


def _panel(what: str, values: Mapping[str, float]) -> Panel:
    limits = min(values.values()), max(values.values())
    return log_panel(what, what, what, values, limits, styles(values), (3.4, 0.75 + 0.2 * len(values)))

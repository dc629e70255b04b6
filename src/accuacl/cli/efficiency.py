"""`accuacl paper efficiency`: time and memory of queries at the sizes of split-cifar10."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.progress import MofNCompleteColumn
from rich.table import Table

from accuacl import bench, report
from accuacl.base.errors import InputError
from accuacl.base.files import write_text
from accuacl.bench import Case
from accuacl.cli.screen import console, progress_bar

SIZES = ("strategy", "n", "d", "K", "b", "m", "labelled")
EACH = 3.0  # seconds that a short query takes to be measured, most of them to start a process
MEASURED = ("cpu_seconds", "wall_seconds", "extra_bytes", "machine")


def measure(recipe: dict[str, Any], scale: str, out: Path, only: Sequence[str]) -> None:
    """Measure what the table does not have yet: one query a task, its middle one, which stands for the others."""
    chosen = [text.removeprefix("strategy=").split(",") for text in only]
    if any(not text.startswith("strategy=") for text in only):
        raise InputError("efficiency can be narrowed by strategy only: --only strategy=bait,accuacl.")
    for name in (name for names in chosen for name in names):
        if name not in recipe["strategy"]:
            raise InputError(f"there is no strategy {name} here, only {', '.join(recipe['strategy'])}.")
    strategies = [name for name in recipe["strategy"] if all(name in names for names in chosen)]
    if not strategies:
        raise InputError(f"--only {' --only '.join(only)} leaves nothing to measure; give less.")
    cases = [
        Case(
            name, recipe["pool"][scale], recipe["width"][scale], classes, recipe["budget"],
            m=recipe["memory"] if task else 0, labelled=recipe["budget"] * recipe["rounds"] // 2,
        )
        for name in strategies
        for task, classes in enumerate(recipe["classes"])
    ]  # fmt: skip
    path = out / "efficiency.csv"
    out.mkdir(parents=True, exist_ok=True)
    rows = _read(path) if path.exists() else []
    known = {tuple(str(row[name]) for name in SIZES) for row in rows}
    missing = [case for case in cases if tuple(str(getattr(case, name)) for name in SIZES) not in known]
    with progress_bar(MofNCompleteColumn()) as bar:
        job = bar.add_task("", total=len(missing))
        measured = bench.run(missing, dense_limit=0)
        for case in missing:
            bar.update(job, description=f"{case.strategy} K={case.K}")
            result = next(measured)
            numbers = (result.cpu, result.wall, result.memory, bench.machine())
            rows.append({name: getattr(case, name) for name in SIZES} | dict(zip(MEASURED, numbers, strict=True)))
            _write(path, rows)
            bar.advance(job)
    wanted = {tuple(str(getattr(case, name)) for name in SIZES) for case in cases}
    mine = [row for row in _read(path) if tuple(str(row[name]) for name in SIZES) in wanted]
    console.print(_table(mine, recipe))
    machines = "; ".join(dict.fromkeys(row["machine"] for row in mine))
    console.print(f"[dim]{escape(machines)}; seed 0; in {escape(str(path))}[/dim]")
    found = totals(mine, recipe["rounds"] - 1)
    again = shlex.join(["accuacl", "paper", "efficiency", "--scale", scale, *(f"--only={text}" for text in only)])
    page = report.write_efficiency(found, out / "efficiency.html", recipe["title"], recipe["about"], again, machines)
    console.print(f"report: {escape(str(page))}")


def totals(rows: Sequence[dict[str, str]], queries: int) -> dict[str, tuple[float, float]]:
    """By strategy: CPU seconds for `queries` queries in every task, and the most bytes that one of them took."""
    found: dict[str, tuple[float, float]] = {}
    for row in rows:
        seconds, most = found.get(row["strategy"], (0.0, 0.0))
        found[row["strategy"]] = seconds + queries * float(row["cpu_seconds"]), max(most, float(row["extra_bytes"]))
    return found


def _table(rows: Sequence[dict[str, str]], recipe: dict[str, Any]) -> Table:
    table = Table("strategy", "CPU s, all tasks", "x accuacl", "extra MiB, most", "x accuacl", title=recipe["title"])
    found = totals(rows, recipe["rounds"] - 1)
    ours = found.get("accuacl")
    for name, (seconds, most) in found.items():
        ratios = (
            [f"{mine / max(theirs, 1e-9):,.2f}" for mine, theirs in zip((seconds, most), ours, strict=True)]
            if ours
            else ["", ""]
        )
        table.add_row(name, f"{seconds:,.2f}", ratios[0], f"{most / 2**20:,.1f}", ratios[1])
    return table


def _read(path: Path) -> list[dict[str, Any]]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    if any(not {*SIZES, *MEASURED} <= set(row) for row in rows):
        raise InputError(f"{path} is not a table of query times; remove it or give another --out.")
    return rows


def _write(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, (*SIZES, *MEASURED), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())

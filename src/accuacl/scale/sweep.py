"""Sweeps: a grid of runs, only what is missing, in parallel, into one table.

A run is skipped when its row is in the table or its directory is finished; one that was interrupted goes on where it
was. A run that fails is reported and does not stop the others.
"""

from __future__ import annotations

import fcntl
import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accuacl.data import BENCHMARKS
from accuacl.experiment import Config, make, run
from accuacl.experiment.plugins import load_plugins
from accuacl.experiment.record import Row, read_csv, row, settings, write_csv
from accuacl.experiment.setting import open_stream
from accuacl.scale.work import Engine

ALIASES = {"seeds": "seed", "budget": "labels", "lambda": "lam"}
WORDS = ("title", "about", "grids")  # of a sweep file that are no settings
SCALES = {"smoke", "cpu", "paper"}
PUBLISHED = {"split-cifar10": 50_000, "split-cifar100": 50_000, "split-tiny-imagenet": 100_000}
NAMED = ("benchmark", "learner", "strategy", "memory", "seed")


@dataclass(frozen=True)
class Cell:
    """One run of a sweep and what its directory is called."""

    name: str
    config: Config


@dataclass
class Outcome:
    """What a sweep came to: the table's rows of its cells, and why others have none."""

    rows: list[Row] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)  # by benchmark: what is not as published


def cells(spec: dict[str, Any], given: dict[str, Any] | None = None, data_dir: Path | None = None) -> list[Cell]:
    """The runs of a sweep file: every combination of the settings that are lists, in each of its grids.

    `given` overrides settings. A setting may differ by scale: {smoke: ..., cpu: ..., paper: ...}.

    >>> [cell.name for cell in cells({"learner": ["er", "gss"], "seeds": [0, 1], "strategy": "entropy"})]
    ['split-digits-er-entropy-m20-s0', 'split-digits-er-entropy-m20-s1', 'split-digits-gss-entropy-m20-s0', \
'split-digits-gss-entropy-m20-s1']
    """
    grids = spec.get("grids", [{}])
    if not isinstance(grids, list) or not all(isinstance(grid, dict) for grid in grids):
        raise ValueError("grids must be a list of settings, each like 'benchmark: split-cifar10'.")
    shared = {key: value for key, value in spec.items() if key not in WORDS}
    found: dict[str, Cell] = {}
    for grid in grids:
        chosen = _renamed(shared) | _renamed(grid) | _renamed(given or {})
        scale = chosen.get("scale", "smoke")
        axes = {key: _values(value, scale) for key, value in chosen.items()}
        for values in itertools.product(*axes.values()):
            cell = _cell(make(dict(zip(axes, values, strict=True)), data_dir), data_dir)
            found[cell.name] = cell
    return list(found.values())


def _renamed(settings: dict[str, Any]) -> dict[str, Any]:
    return {ALIASES.get(key, key): value for key, value in settings.items()}


def _values(value: Any, scale: str) -> list[Any]:
    if isinstance(value, dict):
        if not value or not set(value) <= SCALES:
            raise ValueError(f"{value!r} is no setting; give a value, a list, or one for each of smoke, cpu and paper.")
        if scale not in value:
            raise ValueError(f"{value!r} has nothing for --scale {scale}; add it.")
        value = value[scale]
    values = value if isinstance(value, list) else [value]
    if not values:
        raise ValueError("a setting is an empty list; give at least one value.")
    return values


def _cell(config: Config, data_dir: Path | None) -> Cell:
    """Named by what was chosen: the five that matter most, then all that differ from the scale's defaults."""
    chosen = config.model_dump()
    given = {key: chosen[key] for key in (*NAMED, "scale", "classes_per_task")}
    usual = make(given, data_dir).model_dump()
    more = [f"-{key}={value}" for key, value in chosen.items() if value != usual[key]]
    own = "" if config.benchmark in BENCHMARKS else f"-classes_per_task={config.classes_per_task}"
    name = f"{Path(config.benchmark).name}-{config.learner}-{config.strategy}-m{config.memory}-s{config.seed}"
    return Cell(re.sub(r"[^\w.,+=-]", "_", name + own + "".join(more)), config)


def sweep(
    wanted: Sequence[Cell],
    out: Path,
    table: Path,
    engine: Engine,
    *,
    data_dir: Path | None = None,
    plugins: Sequence[Path] = (),
    tell: Callable[[float, str], None] | None = None,
    done: Callable[[Cell, Row | None, str], None] | None = None,
) -> Outcome:
    """Do the cells that `table` does not have; each new row is in it as soon as its run is finished.

    tell(cells finished and parts of cells, what is going on), done(cell, its row or None, why it failed).
    """
    out.mkdir(parents=True, exist_ok=True)
    with (out / "sweep.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ValueError(f"another sweep is working in {out}; wait for it or choose another --out.") from None
        return _sweep(wanted, out, table, engine, data_dir, plugins, tell, done)


def _sweep(
    wanted: Sequence[Cell],
    out: Path,
    table: Path,
    engine: Engine,
    data_dir: Path | None,
    plugins: Sequence[Path],
    tell: Callable[[float, str], None] | None,
    done: Callable[[Cell, Row | None, str], None] | None,
) -> Outcome:
    rows = read_csv(table) if table.exists() else []
    known = {_key(settings(one)): one for one in rows}
    outcome = Outcome()
    missing = []
    for cell in wanted:
        if (one := known.get(_key(cell.config.model_dump()))) is not None:
            outcome.rows.append(one)
        else:
            missing.append(cell)
    missing, absent, outcome.notes = _with_data(missing, data_dir, tell)
    outcome.failed |= {cell.name: why for cell, why in absent}
    for cell, why in absent:
        if done:
            done(cell, None, why)
    finished, parts = len(outcome.rows) + len(absent), dict.fromkeys(range(len(missing)), 0.0)

    def progress(index: int, part: float, text: str) -> None:
        parts[index] = part
        if tell:
            tell(finished + sum(parts.values()), f"{missing[index].name}: {text}")

    items = [(cell.config.model_dump(), out / cell.name, data_dir, tuple(plugins)) for cell in missing]
    for end in engine.map(run_cell, items, progress):
        cell = missing[end.index]
        parts[end.index] = 1.0
        if end.error:
            outcome.failed[cell.name] = end.error
        else:
            one = end.value | {"note": outcome.notes.get(cell.config.benchmark, "")}
            outcome.rows.append(one)
            rows.append(one)
            write_csv(table, rows)
        if tell:
            tell(finished + sum(parts.values()), f"{cell.name}: done")
        if done:
            done(cell, None if end.error else one, end.error)
    return outcome


def _key(config: dict[str, Any]) -> tuple[str, ...]:
    """What a result depends on, as text: numbers in a table are what they were."""
    return tuple(f"{name}={config[name]!r}" for name in sorted(config))


def _with_data(
    cells: Sequence[Cell], data_dir: Path | None, tell: Callable[[float, str], None] | None
) -> tuple[list[Cell], list[tuple[Cell, str]], dict[str, str]]:
    """Decode each benchmark's images once, here, before the workers start.

    The cells whose data are there, those whose are not and why, and what is to be known about the data.
    """
    problems: dict[tuple[str, int], str] = {}
    notes: dict[str, str] = {}
    for config in (cell.config for cell in cells):
        source = config.benchmark, config.image_size
        if source in problems:
            continue
        problems[source] = ""
        try:
            stream = open_stream(
                config, data_dir, False, lambda what, i, n: tell(0.0, f"{what} {i}/{n}") if tell else None
            )
        except (ValueError, OSError) as error:
            problems[source] = str(error)
            continue
        has, published = len(stream.dataset.train.labels), PUBLISHED.get(config.benchmark, 0)
        if has < published:
            notes[config.benchmark] = f"{config.benchmark}: {has:,} of the {published:,} published training images"
    why = [problems[cell.config.benchmark, cell.config.image_size] for cell in cells]
    there = [cell for cell, problem in zip(cells, why, strict=True) if not problem]
    return there, [(cell, problem) for cell, problem in zip(cells, why, strict=True) if problem], notes


def run_cell(
    item: tuple[dict[str, Any], Path, Path | None, tuple[Path, ...]], tell: Callable[[float, str], None]
) -> Row:
    """One cell, in a worker: do the run or go on with it."""
    config, out, data_dir, plugins = item
    load_plugins(plugins)
    run(Config(**config), out, data_dir=data_dir, progress=lambda event: tell(event.done, event.text))
    return row(out)

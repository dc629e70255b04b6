"""Sweeps: a grid of runs, only what is missing, in parallel, into one table.

A run is skipped when its row is in the table or its directory is finished; one that was interrupted goes on where it
was. A run that fails is reported and does not stop the others.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accuacl.base.errors import InputError
from accuacl.base.files import Lock, write_text
from accuacl.base.progress import OnProgress, Progress
from accuacl.data import BENCHMARKS, dataset_of, load
from accuacl.engines import Engine
from accuacl.experiment import Config, make, run
from accuacl.experiment.config import canonical
from accuacl.experiment.plugins import load_plugins
from accuacl.experiment.record import Row, add_to_csv, key, note, read_csv, row, settings
from accuacl.sweeps.cost import work

ALIASES = {"seeds": "seed", "budget": "labels", "lambda": "lam"}
WORDS = ("title", "about", "grids")  # of a sweep file that are no settings
SCALES = {"smoke", "cpu", "paper"}
LONGEST = 180  # characters of a directory's name
ERROR = "error.txt"  # in a run's directory: the traceback of its failure
NAMED = ("benchmark", "learner", "strategy", "memory", "seed")


Item = tuple[dict[str, Any], Path, Path | None, tuple[Path, ...]]  # settings, directory, data, plugins


@dataclass(frozen=True)
class Cell:
    """One run of a sweep and what its directory is called."""

    name: str
    config: Config

    @property
    def key(self) -> tuple[str, ...]:
        return key(canonical(self.config.model_dump()))

    @property
    def source(self) -> tuple[str, int]:
        """The data it needs."""
        return self.config.benchmark, self.config.image_size


@dataclass
class Outcome:
    """What a sweep came to: the table's rows of its cells, and why others have none."""

    rows: list[Row] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


def cells(spec: dict[str, Any], given: dict[str, Any] | None = None, data_dir: Path | None = None) -> list[Cell]:
    """The runs of a sweep file: every combination of the settings that are lists, in each of its grids.

    `given` overrides settings. A setting may differ by scale: {smoke: ..., cpu: ..., paper: ...}. Runs that differ only
    in what their strategy or learner does not look at are one.

    >>> [cell.name for cell in cells({"learner": ["er", "gss"], "seeds": [0, 1], "strategy": "entropy"})]
    ['split-digits-er-entropy-m20-s0', 'split-digits-er-entropy-m20-s1', 'split-digits-gss-entropy-m20-s0', \
'split-digits-gss-entropy-m20-s1']
    """
    grids = spec.get("grids", [{}])
    if not isinstance(grids, list) or not grids or not all(isinstance(grid, dict) for grid in grids):
        raise InputError("grids must be a list of settings, each like 'benchmark: split-cifar10'.")
    shared = {name: value for name, value in spec.items() if name not in WORDS}
    found: dict[str, Cell] = {}
    for grid in grids:
        chosen = _renamed(shared) | _renamed(grid) | _renamed(given or {})
        for scale in _values("scale", chosen.get("scale", "smoke"), ""):
            axes = {name: _values(name, value, scale) for name, value in (chosen | {"scale": scale}).items()}
            for values in itertools.product(*axes.values()):
                made = canonical(make(dict(zip(axes, values, strict=True)), data_dir).model_dump())
                cell = _cell(Config(**made), data_dir)
                if found.setdefault(cell.name, cell).config != cell.config:  # folders of the same name
                    digest = hashlib.sha256(repr(key(cell.config.model_dump())).encode()).hexdigest()[:8]
                    cell = Cell(f"{cell.name}-{digest}", cell.config)
                found[cell.name] = cell
    return list(found.values())


def _renamed(settings: dict[str, Any]) -> dict[str, Any]:
    for other, name in ALIASES.items():
        if other in settings and name in settings:
            raise InputError(f"{other} and {name} are the same setting; give one of them.")
    return {ALIASES.get(name, name): value for name, value in settings.items()}


def _values(name: str, value: Any, scale: str) -> list[Any]:
    if isinstance(value, dict):
        if not value or not set(value) <= SCALES or name == "scale":
            raise InputError(
                f"{name} is {value!r}; give a value, a list, or one for each of the scales smoke, cpu and paper."
            )
        if scale not in value:
            raise InputError(f"{name} is {value!r}, which has nothing for --scale {scale}; add it.")
        value = value[scale]
    values = value if isinstance(value, list) else [value]
    if not values:
        raise InputError(f"{name} is an empty list; give at least one value.")
    field = Config.model_fields.get(name)
    for one in values:
        if field and field.annotation is int and isinstance(one, str) and not one.isdigit():
            raise InputError(f"{name} is {one!r}; give a number, or a list of numbers like [0, 1, 2].")
    return values


def _cell(config: Config, data_dir: Path | None) -> Cell:
    """Named by what was chosen: the five that matter most, then all that differ from the scale's defaults."""
    chosen = config.model_dump()
    given = {name: chosen[name] for name in (*NAMED, "scale", "classes_per_task")}
    usual = make(given, data_dir).model_dump()
    more = [f"-{name}={value}" for name, value in chosen.items() if value != usual[name]]
    own = "" if config.benchmark in BENCHMARKS else f"-classes_per_task={config.classes_per_task}"
    name = f"{Path(config.benchmark).name}-{config.learner}-{config.strategy}-m{config.memory}-s{config.seed}"
    name = re.sub(r"[^\w.,+=-]", "_", name + own + "".join(more))
    if len(name) > LONGEST:
        name = f"{name[:LONGEST]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return Cell(name, config)


def labels(cells: Sequence[Cell]) -> dict[str, str]:
    """By name, what tells a cell from the others in words.

    >>> list(labels(cells({"strategy": ["uniform", "bait"], "seeds": [0, 1], "memory": 7})).values())
    ['uniform, seed 0', 'uniform, seed 1', 'bait, seed 0', 'bait, seed 1']
    """
    every = {cell.name: cell.config.model_dump() for cell in cells}
    differ = [name for name in Config.model_fields if len({config[name] for config in every.values()}) > 1]
    names = sorted(differ, key=lambda name: name == "seed")
    found = {}
    for cell, config in every.items():
        found[cell] = ", ".join(_said(name, config[name]) for name in names if config[name] is not None) or cell
    return found


def _said(name: str, value: Any) -> str:
    shown = f"{value:.4g}" if isinstance(value, float) else str(value)
    return shown if name in ("benchmark", "learner", "strategy", "scale", "model") else f"{name} {shown}"


def sweep(
    wanted: Sequence[Cell],
    out: Path,
    table: Path,
    engine: Engine,
    *,
    data_dir: Path | None = None,
    plugins: Sequence[Path] = (),
    tell: OnProgress | None = None,
    done: Callable[[Cell, Row | None, str], None] | None = None,
    warn: Callable[[str], None] | None = None,
) -> Outcome:
    """Do the cells that `table` does not have; each new row is in it as soon as its run is finished.

    tell: called with the runs done, of how many, and in `work` the share of this start's work. done: called with a
    cell, its row or None, and why it failed. warn: called with what is to be known about the data. A run that fails
    leaves its traceback in error.txt in its directory.
    """
    out.mkdir(parents=True, exist_ok=True)
    table.parent.mkdir(parents=True, exist_ok=True)
    busy = f"another sweep (process {{holder}}) is working in {out}; wait for it or choose another --out."
    with Lock(out / "sweep.lock", busy):
        if not os.access(table.parent, os.W_OK) or table.is_dir():
            raise InputError(f"{table} cannot be written; give another --results.")
        known = by_key(table)
        outcome = Outcome([known[cell.key] for cell in wanted if cell.key in known])
        missing = [cell for cell in wanted if cell.key not in known]
        if tell:
            tell(Progress(len(outcome.rows), len(wanted), work=0.0))
        problems, notes = _look(missing, data_dir, len(outcome.rows), tell)
        for text in dict.fromkeys([*notes, *(str(one.get("note") or "") for one in outcome.rows)]):
            if warn and text:
                warn(text)
        for cell in missing:
            if why := problems[cell.source]:
                outcome.failed[cell.name] = why
                if done:
                    done(cell, None, why)
        doable = [cell for cell in missing if cell.name not in outcome.failed]
        items = [_item(cell, out, data_dir, plugins) for cell in doable]
        _do(doable, items, table, engine, outcome, tell, done)
    return outcome


def by_key(table: Path) -> dict[tuple[str, ...], Row]:
    """The rows of the table, if there is one, by the keys of their cells."""
    return {key(canonical(settings(one))): one for one in (read_csv(table) if table.exists() else [])}


def _do(
    cells: Sequence[Cell],
    items: Sequence[Item],
    table: Path,
    engine: Engine,
    outcome: Outcome,
    tell: OnProgress | None,
    done: Callable[[Cell, Row | None, str], None] | None,
) -> None:
    """Run the cells and record their ends."""
    before, parts = len(outcome.rows) + len(outcome.failed), dict.fromkeys(range(len(cells)), 0.0)
    costs = [work(cell.config) for cell in cells]
    found = {i: 1.0 for i, item in enumerate(items) if (item[1] / "result.json").exists()}  # not done in this start

    def progress(index: int, run: Progress) -> None:
        part = parts[index] = run.share
        if not tell:
            return
        found.setdefault(index, part if part < 1 else 0.0)  # one that goes on begins where it was
        whole = sum(cost * (1 - found.get(i, 0.0)) for i, cost in enumerate(costs))
        now = sum(costs[i] * max(parts[i] - start, 0.0) for i, start in found.items())
        share = now / whole if whole else 1.0
        done_cells, all_cells = before + sum(parts.values()), before + len(cells)
        tell(Progress(done_cells, all_cells, run.text, run.stage, item=cells[index].name, work=share))

    for end in engine.map(run_cell, items, progress if tell else None):
        cell = cells[end.index]
        why = end.failure.message if end.failure else ""
        if end.failure:
            found[end.index] = 1.0  # it says nothing about how fast it goes
            outcome.failed[cell.name] = why
        else:
            outcome.rows.append(end.value)
            add_to_csv(table, [end.value])
        progress(end.index, Progress(1.0, text="done"))
        if done:
            done(cell, end.value, why)


def _item(cell: Cell, out: Path, data_dir: Path | None, plugins: Sequence[Path]) -> Item:
    """What a worker needs, which may be in another folder and know nothing of this environment."""
    named = os.environ.get("ACCUACL_DATA")
    place = data_dir or (Path(named) if named else None)
    if cell.config.benchmark not in BENCHMARKS and Path(cell.config.benchmark).is_dir():
        place = Path()  # a folder of one's own that is here and not in data_dir
    return (
        cell.config.model_dump(),
        out.resolve() / cell.name,
        place.resolve() if place else None,
        tuple(path.resolve() for path in plugins),
    )


def _look(
    cells: Sequence[Cell], data_dir: Path | None, before: int, tell: OnProgress | None
) -> tuple[dict[tuple[str, int], str], list[str]]:
    """Decode each data set's images once, here, before the workers start.

    By data set, why it cannot be read; and what is to be known about those that can.
    """
    problems: dict[tuple[str, int], str] = {}
    notes = []
    for name, size in dict.fromkeys(cell.source for cell in cells):
        problems[name, size] = ""
        try:
            data = load(
                dataset_of(name),
                data_dir,
                image_size=size or None,
                progress=lambda images: _tell_decoding(images, before, tell),
            )
            notes.append(note(name, len(data.train.labels)))
        except (ValueError, OSError) as error:
            problems[name, size] = str(error)
    return problems, notes


def _tell_decoding(images: Progress, done: int, tell: OnProgress | None) -> None:
    if tell:
        text = f"{images.text} {images.done:.0f}/{images.total:.0f}"
        tell(Progress(done, max(done, 1), text, images.stage, work=0.0))


def run_cell(item: Item, tell: OnProgress) -> Row:
    """One cell, in a worker: do the run or go on with it."""
    config, out, data_dir, plugins = item
    (out / ERROR).unlink(missing_ok=True)
    try:
        load_plugins(plugins)
        run(Config(**config), out, data_dir=data_dir, progress=tell)
        return row(out)
    except Exception as error:
        if out.is_dir() or not isinstance(error, ValueError | OSError):  # wrong input leaves no trace
            out.mkdir(parents=True, exist_ok=True)
            write_text(out / ERROR, traceback.format_exc())
        raise

"""The runs of a sweep file: every combination of the settings that are lists, each with a name for its directory."""

from __future__ import annotations

import hashlib
import itertools
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, get_args

from accuacl.base.errors import InputError
from accuacl.experiments import (
    OPTIONS,
    Config,
    Row,
    Scale,
    canonical,
    make,
    read_csv,
    renamed,
    row_settings,
    settings_key,
    usual_sample_of,
    without_foreign_options,
)
from accuacl.experiments.data import BENCHMARKS

ERROR_FILE = "error.txt"  # in a run's directory: the traceback of its failure
NO_SETTINGS = ("title", "about", "grids")  # keys of a sweep file that are not settings
SCALES: tuple[str, ...] = get_args(Scale)
LONGEST = 180  # characters of a directory's name
STREAM = ("classes_per_task", "arrival", "domains")  # settings without which one's own data make no stream
NAMED = ("benchmark", "learner", "strategy", "memory", "seed")  # settings that every directory's name has


class DataKey(NamedTuple):
    """What says which data a run reads."""

    benchmark: str
    image_size: int
    label_column: str
    task_column: str


@dataclass(frozen=True)
class SweepRun:
    """One run of a sweep, and the name of its directory."""

    name: str
    config: Config

    @property
    def key(self) -> tuple[str, ...]:
        """What its result depends on; rows of results tables have the same keys."""
        return settings_key(canonical(self.config.model_dump()))

    @property
    def data(self) -> DataKey:
        """The benchmark, the size of its images and the columns with its classes and tasks."""
        c = self.config
        return DataKey(c.benchmark, c.image_size, c.label_column or "", c.task_column or "")


def runs_of(spec: dict[str, Any], given: dict[str, Any] | None = None, data_dir: Path | None = None) -> list[SweepRun]:
    """The runs of a sweep file: every combination of the settings that are lists, in each of its grids.

    `given` overrides settings. A setting may differ by scale: {smoke: ..., cpu: ..., paper: ...}. Runs that differ only
    in settings which their strategy or learner does not use are one run.

    >>> [run.name for run in runs_of({"learner": ["er", "gss"], "seeds": [0, 1], "strategy": "entropy"})]
    ['split-digits-er-entropy-m20-s0', 'split-digits-er-entropy-m20-s1', 'split-digits-gss-entropy-m20-s0', \
'split-digits-gss-entropy-m20-s1']
    """
    grids = spec.get("grids", [{}])
    if not isinstance(grids, list) or not grids or not all(isinstance(grid, dict) for grid in grids):
        raise InputError("grids must be a list of settings, each like 'benchmark: split-cifar10'.")
    shared = {name: value for name, value in spec.items() if name not in NO_SETTINGS}
    runs: dict[str, SweepRun] = {}
    for grid in grids:
        chosen = renamed(shared) | renamed(grid) | renamed(given or {})
        for scale in _values("scale", chosen.get("scale", "smoke"), ""):
            axes = {name: _values(name, value, scale) for name, value in (chosen | {"scale": scale}).items()}
            for values in itertools.product(*axes.values()):
                chosen_here = dict(zip(axes, values, strict=True))
                settings = without_foreign_options(chosen_here, map(str, axes.get("strategy", ())))
                config = Config(**canonical(make(settings, data_dir).model_dump()))
                run = SweepRun(run_name(config, data_dir), config)
                if runs.setdefault(run.name, run).config != config:  # folders of data that have the same name
                    run = SweepRun(f"{run.name}-{_digest(repr(settings_key(config.model_dump())))}", config)
                runs[run.name] = run
    return list(runs.values())


@dataclass
class Outcome:
    """The rows of the runs that finished and, by name, why the others failed; `bugs` are those of them with a bug."""

    rows: list[Row] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    bugs: list[str] = field(default_factory=list)


def rows_by_key(table: Path) -> dict[tuple[str, ...], Row]:
    """The rows of a results table, if there is one, by the keys of their runs."""
    return {settings_key(canonical(row_settings(row))): row for row in (read_csv(table) if table.exists() else [])}


def _values(name: str, value: Any, scale: str) -> list[Any]:
    """The values of a setting, one after the other."""
    if isinstance(value, dict):
        if not value or not set(value) <= set(SCALES) or name == "scale":
            raise InputError(
                f"{name} is {value!r}; give a value, a list, or one for each of the scales smoke, cpu and paper."
            )
        if scale not in value:
            raise InputError(f"{name} is {value!r}, which has no value for --scale {scale}; add it.")
        value = value[scale]
    values = value if isinstance(value, list) else [value]
    if not values:
        raise InputError(f"{name} is an empty list; give at least one value.")
    field = Config.model_fields.get(name)
    for each in values:
        if isinstance(each, list):
            raise InputError(f"{name} is {value!r}; give one list of values, without lists inside it.")
        if field and field.annotation is int and isinstance(each, str) and not each.isdigit():
            raise InputError(f"{name} is {each!r}; give a number, or a list of numbers like [0, 1, 2].")
    return values


def run_name(config: Config, data_dir: Path | None) -> str:
    """A name for the directory: the five settings that matter most, then all that differ from the scale's defaults."""
    config = Config(**canonical(config.model_dump()))
    chosen = config.model_dump()
    given = {name: chosen[name] for name in (*NAMED, *STREAM, "scale")} | {"first_round": "uniform"}
    usual = make(given, data_dir).model_dump() | {"sample": usual_sample_of(config)}
    chosen |= {"model": Path(config.model).name, "model_digest": None}  # of one's own network without its folder
    options = chosen.pop(OPTIONS, {})
    more = [f"-{name}={value}" for name, value in chosen.items() if value != usual[name]]
    more += [f"-{name}={value}" for name, value in options.items()]
    shown = STREAM[1:] if config.benchmark in BENCHMARKS else STREAM
    own = "".join(f"-{name}={chosen[name]}" for name in shown if chosen[name] != Config.model_fields[name].default)
    name = f"{Path(config.benchmark).name}-{config.learner}-{config.strategy}-m{config.memory}-s{config.seed}"
    name = re.sub(r"[^\w.,+=-]", "_", name + own + "".join(more))
    return name if len(name) <= LONGEST else f"{name[:LONGEST]}-{_digest(name)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]

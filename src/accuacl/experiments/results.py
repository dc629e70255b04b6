"""Results of finished runs: result.json, and tables of them in CSV, one row per run."""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, get_args

import pydantic

from accuacl.base.errors import InputError
from accuacl.base.files import Lock, reading, write_text
from accuacl.experiments.config import Config, default_settings
from accuacl.experiments.data import BENCHMARKS
from accuacl.experiments.defaults import canonical
from accuacl.experiments.journal import Step, read_steps
from accuacl.experiments.strategy_options import OPTIONS
from accuacl.experiments.stream_settings import is_class_incremental

RUN_METRICS = ("average_accuracy", "forgetting", "forgetting_max", "learning_accuracy", "calibration_error")
CLASS_METRICS = ("class_accuracy", "example_accuracy", "class_forgetting")  # tables of earlier versions may lack them
BY_ROUND = ("found", "rarest_labels")  # by task and round
SECONDS = ("query", "train", "evaluate", "load", "other", "cpu")
NESTED = ("accuracy_matrix", "picked", "round_accuracy", *BY_ROUND, OPTIONS)  # JSON in the table
FIRST = ("benchmark", "memory", "learner", "strategy")  # rows are sorted by these, then by all other settings
TRAINING_IMAGES = {"split-cifar10": 50_000, "split-cifar100": 50_000, "split-tiny-imagenet": 100_000}  # as published
ABSENT = object()

Row = dict[str, Any]  # a finished run: its settings, metrics, seconds and origin


class _Settings(pydantic.BaseModel, strict=True):
    benchmark: str
    classes_per_task: int | None


class _Stream(pydantic.BaseModel, strict=True):
    order: list[int]
    pools: list[list[int]]


class _Result(pydantic.BaseModel, strict=True):
    """What result.json has; the fields with a default may be missing."""

    average_accuracy: float
    forgetting: float
    forgetting_max: float
    learning_accuracy: float
    calibration_error: float
    accuracy_matrix: list[list[float | None]] = pydantic.Field(min_length=1)
    recall: dict[str, float]
    config: _Settings
    seconds: dict[str, float]
    version: str
    forgetting_by_class: dict[str, float]
    found: list[list[float]] = pydantic.Field(min_length=1)
    rarest_class: str
    rarest_labels: list[list[int]] = pydantic.Field(min_length=1)
    stream: _Stream
    recall_by_task: list[dict[str, float]] | None = None
    class_accuracy: float | None = None
    example_accuracy: float | None = None
    class_forgetting: float | None = None


def read_result(run: Path) -> dict[str, Any]:
    """The result of the run in this directory, checked."""
    path = run / "result.json"
    if not path.exists():
        raise InputError(f"{run} has no result.json; finish the run first.")
    with reading(path):
        text = path.read_bytes()
    try:
        result = json.loads(text)
        _Result.model_validate(result)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        field = "/".join(str(part) for part in first["loc"])
        wrong = f"{field}: {first['msg']}" if field else "it is not an object"
        raise InputError(f"{path} is not a run's result ({wrong}); run the same command again.") from None
    except ValueError as error:
        raise InputError(f"{path} is not JSON ({error}); run the same command again.") from None
    assert isinstance(result, dict)
    return result


def run_row(run: Path) -> Row:
    """The results row of the run in this directory."""
    result = read_result(run)
    steps = read_steps(run / "journal.sqlite", "environment", "data", "label", "test", "result")
    of_run = {step.kind: step for step in steps if step.task is None}
    missing = [kind for kind in ("environment", "data", "result") if kind not in of_run]
    if missing:
        raise InputError(
            f"{run / 'journal.sqlite'} lacks what a finished run has recorded ({', '.join(missing)}); "
            "restore it, or run the same command again with --fresh."
        )
    environment, data = of_run["environment"].result, of_run["data"].result
    return {
        **result["config"],
        **{name: result[name] for name in RUN_METRICS},
        **{name: result.get(name) for name in (*CLASS_METRICS, *BY_ROUND)},
        **{f"seconds_{name}": result["seconds"].get(name) for name in SECONDS},
        "version": result["version"],
        "machine": _machine(environment),
        "finished": of_run["result"].finished,
        "accuracy_matrix": result["accuracy_matrix"],
        "picked": _picked(result, [step for step in steps if step.kind == "label"]),
        "round_accuracy": _round_accuracy([step for step in steps if step.kind == "test"]),
        "note": data_note(result["config"]["benchmark"], data["train"]["shape"][0]),
    }


def _machine(environment: dict[str, Any]) -> str:
    """The machine and libraries in one line."""
    parts = [environment[key] for key in ("processor", "machine", "cpu", "device")]
    return ", ".join([*parts, f"torch {environment['torch']}", f"numpy {environment['numpy']}"])


def data_note(benchmark: str, examples: int) -> str:
    """What must be known about the data, if they are not all that was published.

    >>> data_note("split-tiny-imagenet", 40_000)
    'split-tiny-imagenet: 40,000 of the 100,000 published training images'
    """
    published = TRAINING_IMAGES.get(benchmark, 0)
    return f"{benchmark}: {examples:,} of the {published:,} published training images" if examples < published else ""


def _picked(result: dict[str, Any], labelled: Sequence[Step]) -> list[list[int]]:
    """How many labels each class got, by task, for the classes in its pool and those named in it by mistake."""
    config, stream = result["config"], result["stream"]
    counts: list[Counter[int]] = [Counter() for _ in stream["pools"]]
    for step in labelled:
        assert step.task is not None
        counts[step.task].update(label for _, label in step.result["labels"])
    order = stream["order"]  # in which the classes arrive
    if is_class_incremental(config):
        usual = BENCHMARKS.get(config["benchmark"])
        each = config["classes_per_task"] or (usual.classes_per_task if usual else len(order) // len(counts))
        return [[count[c] for c in order[t * each : (t + 1) * each]] for t, count in enumerate(counts)]
    return [
        [count[c] for c, examples in zip(order, pool, strict=True) if examples or count[c]]
        for count, pool in zip(counts, stream["pools"], strict=True)
    ]


def _round_accuracy(tests: Sequence[Step]) -> list[list[list[float]]] | None:
    """Accuracies after each round, by task, where every round was tested."""
    tasks: dict[int | None, list[list[float]]] = {}
    for step in tests:
        tasks.setdefault(step.task, []).append(step.result["accuracy"])
    return list(tasks.values()) or None


def row_settings(row: Row) -> dict[str, Any]:
    """The row's config; settings that did not exist when it was written have their defaults."""
    settings = {name: row.get(name, value) for name, value in default_settings(Config).items()}
    return settings | ({OPTIONS: row[OPTIONS]} if row.get(OPTIONS) else {})


def shown_settings(row: Row) -> dict[str, Any]:
    """The row's config as reports compare and show it: canonical, and `options` as text, `heat=0.5 depth=3`."""
    settings = canonical(row_settings(row))
    return settings | {OPTIONS: shlex.join(f"{name}={value}" for name, value in settings.get(OPTIONS, {}).items())}


def read_csv(path: Path) -> list[Row]:
    """The rows of a table, with numbers as numbers and lists as lists."""
    try:
        with reading(path):
            text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text; give a results.csv or a directory of runs.") from None
    reader = csv.DictReader(io.StringIO(text, newline=""))
    if not reader.fieldnames or not {*FIRST, *RUN_METRICS[:2]} <= set(reader.fieldnames):
        raise InputError(f"{path} is not a table of results; it needs columns {', '.join(FIRST)} and the metrics.")
    try:
        return [_typed_row(line) for line in reader]
    except (ValueError, csv.Error) as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}; fix or remove it.") from None


def settings_key(settings: dict[str, Any]) -> tuple[str, ...]:
    """What a result depends on, as text; numbers read from a table give the same text as those of the run."""
    return tuple(f"{name}={settings[name]!r}" for name in sorted(settings))


def add_to_csv(path: Path, rows: Iterable[Row]) -> None:
    """Put rows into the table, in place of those of the same runs; others may be adding theirs at the same time."""
    with Lock(path.with_name(f".{path.name}.lock"), wait=True):
        known = read_csv(path) if path.exists() else []
        write_csv(path, {settings_key(row_settings(row)): row for row in [*known, *rows]}.values())


def write_csv(path: Path, rows: Iterable[Row]) -> None:
    """Write the rows, sorted by their runs; the file is complete or absent."""
    rows = sorted((row_settings(row) | row for row in rows), key=_place)
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: json.dumps(value) if name in NESTED else value for name, value in row.items()})
    write_text(path, text.getvalue())


def _place(row: Row) -> tuple[Any, ...]:
    what = row_settings(row)
    return tuple(str(what[name]) for name in FIRST), [str(value) for value in what.values()]


def _typed_row(line: dict[str, Any]) -> Row:
    """Settings that are empty did not exist when the row was written, and are left out."""
    return {name: value for name, text in line.items() if name and (value := _typed(name, text)) is not ABSENT}


def _typed(name: str, text: str | None) -> Any:
    if text is None:
        raise InputError("it has fewer fields than the table has columns")
    if name in NESTED:
        return json.loads(text) if text else ABSENT if name == OPTIONS else None
    if name in (*RUN_METRICS, *CLASS_METRICS) or name.startswith("seconds_"):
        return float(text) if text else None
    field = Config.model_fields.get(name)
    if field is None:
        return text
    kinds = get_args(field.annotation) or (field.annotation,)
    if text == "":
        return None if type(None) in kinds else ABSENT
    return next((kind(text) for kind in kinds if kind in (int, float)), text)

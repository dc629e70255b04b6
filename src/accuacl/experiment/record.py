"""Finished runs as rows of one tidy table: config, metrics, seconds, version. CSV that can be committed."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

from accuacl.base.errors import InputError
from accuacl.base.files import Lock, write_text
from accuacl.data import BENCHMARKS
from accuacl.experiment.config import Config

METRICS = ("average_accuracy", "forgetting", "forgetting_max", "learning_accuracy", "calibration_error")
SECONDS = ("query", "train", "evaluate", "load", "other", "cpu")
NESTED = ("accuracy_matrix", "picked", "round_accuracy")  # JSON in the table
PUBLISHED = {"split-cifar10": 50_000, "split-cifar100": 50_000, "split-tiny-imagenet": 100_000}  # training images
FIRST = ("benchmark", "memory", "learner", "strategy")  # rows are sorted by these, then by all other settings

Row = dict[str, Any]
ABSENT = object()


def row(run: Path) -> Row:
    """What the run in this directory came to."""
    try:
        result = json.loads((run / "result.json").read_text())
    except FileNotFoundError:
        raise InputError(f"{run} has no result.json; finish the run first.") from None
    except ValueError as error:
        raise InputError(f"{run / 'result.json'} is not JSON ({error}); run the same command again.") from None
    with sqlite3.connect(run / "journal.sqlite") as db:
        steps = dict(db.execute("SELECT key, result FROM steps WHERE kind IN ('environment', 'data', 'label', 'test')"))
        finished = db.execute("SELECT finished FROM steps WHERE key = 'result'").fetchone()[0]
    db.close()
    environment = json.loads(steps["environment"])
    return {
        **result["config"],
        **{name: result[name] for name in METRICS},
        **{f"seconds_{name}": result["seconds"].get(name) for name in SECONDS},
        "version": result["version"],
        "machine": ", ".join(f"{environment[key]}" for key in ("machine", "cpu", "device"))
        + f", torch {environment['torch']}, numpy {environment['numpy']}",
        "finished": finished,
        "accuracy_matrix": result["accuracy_matrix"],
        "picked": _picked(result, steps),
        "round_accuracy": _rounds(steps),
        "note": note(result["config"]["benchmark"], json.loads(steps["data"])["train"]["shape"][0]),
    }


def note(benchmark: str, examples: int) -> str:
    """What must be known about the data, if they are not all that was published.

    >>> note("split-tiny-imagenet", 40_000)
    'split-tiny-imagenet: 40,000 of the 100,000 published training images'
    """
    published = PUBLISHED.get(benchmark, 0)
    return f"{benchmark}: {examples:,} of the {published:,} published training images" if examples < published else ""


def _picked(result: dict[str, Any], steps: dict[str, str]) -> list[list[int]]:
    """How many labels each class got, by task, classes in their order of arrival."""
    names, tested = json.loads(steps["data"])["classes"], list(result["recall"])
    config, tasks = result["config"], len(result["accuracy_matrix"])
    usual = BENCHMARKS.get(config["benchmark"], ("", 0, 0))[2]
    each = config["classes_per_task"] or usual or len(tested) // tasks
    counts: list[Counter[str]] = [Counter() for _ in range(tasks)]
    for key, text in steps.items():
        if key.endswith("/label"):
            counts[int(key[:3])].update(names[label] for _, label in json.loads(text)["labels"])
    if len(tested) == tasks * each:  # every class was tested, in this order
        return [[counts[t][name] for name in tested[t * each : (t + 1) * each]] for t in range(tasks)]
    return [[*(count for _, count in sorted(some.items())), *[0] * (each - len(some))] for some in counts]


def _rounds(steps: dict[str, str]) -> list[list[list[float]]] | None:
    """Accuracies after each round, by task, where every round was tested."""
    tasks: dict[int, list[list[float]]] = {}
    for key in sorted(key for key in steps if key.endswith("/test")):
        tasks.setdefault(int(key[:3]), []).append(json.loads(steps[key])["accuracy"])
    return [tasks[t] for t in sorted(tasks)] or None


def settings(row: Row) -> dict[str, Any]:
    """The row's config; settings that did not exist when it was written have their defaults."""
    return {name: row.get(name, field.default) for name, field in Config.model_fields.items()}


def read_csv(path: Path) -> list[Row]:
    """The rows of a table, with numbers as numbers and lists as lists."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        if not reader.fieldnames or not {*FIRST, *METRICS[:2]} <= set(reader.fieldnames):
            raise InputError(f"{path} is not a table of results; it needs columns {', '.join(FIRST)} and the metrics.")
        try:
            return [_typed_row(line) for line in reader]
        except ValueError as error:
            raise InputError(f"{path}, line {reader.line_num}: {error}; mend or remove it.") from None


def key(config: dict[str, Any]) -> tuple[str, ...]:
    """What a result depends on, as text: numbers in a table are what they were."""
    return tuple(f"{name}={config[name]!r}" for name in sorted(config))


def add_to_csv(path: Path, rows: Iterable[Row]) -> None:
    """Put rows into the table, in place of those of the same runs; others may be adding theirs at the same time."""
    with Lock(path.with_name(f".{path.name}.lock"), wait=True):
        known = read_csv(path) if path.exists() else []
        write_csv(path, {key(settings(one)): one for one in [*known, *rows]}.values())


def write_csv(path: Path, rows: Iterable[Row]) -> None:
    """Write the rows, sorted by what was run, whole or not at all."""
    rows = sorted((settings(one) | one for one in rows), key=_place)
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for one in rows:
        writer.writerow({name: json.dumps(value) if name in NESTED else value for name, value in one.items()})
    write_text(path, text.getvalue())


def _place(row: Row) -> tuple[Any, ...]:
    what = settings(row)
    return tuple(str(what[name]) for name in FIRST), [str(value) for value in what.values()]


def _typed_row(line: dict[str, Any]) -> Row:
    """Settings that are empty did not exist when the row was written, and have their defaults."""
    return {name: value for name, text in line.items() if name and (value := _typed(name, text)) is not ABSENT}


def _typed(name: str, text: str | None) -> Any:
    if text is None:
        raise InputError("it has fewer fields than the table has columns")
    if name in NESTED:
        return json.loads(text) if text else None
    if name in METRICS or name.startswith("seconds_"):
        return float(text) if text else None
    field = Config.model_fields.get(name)
    if field is None:
        return text
    kinds = get_args(field.annotation) or (field.annotation,)
    if text == "":
        return None if type(None) in kinds else ABSENT
    return next((kind(text) for kind in kinds if kind in (int, float)), text)

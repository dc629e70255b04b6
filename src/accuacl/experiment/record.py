"""What a finished run came to, as one row: config, metrics, seconds, version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accuacl.base.errors import InputError
from accuacl.data import BENCHMARKS
from accuacl.experiment.reader import Step, read_steps
from accuacl.experiment.resultfile import read_result
from accuacl.experiment.stream_settings import is_tidy

METRICS = ("average_accuracy", "forgetting", "forgetting_max", "learning_accuracy", "calibration_error")
CLASS_METRICS = ("class_accuracy", "example_accuracy", "class_forgetting")  # which older results lack
BY_ROUND = ("found", "rarest_labels")  # the same; by task and round
SECONDS = ("query", "train", "evaluate", "load", "other", "cpu")
PUBLISHED = {"split-cifar10": 50_000, "split-cifar100": 50_000, "split-tiny-imagenet": 100_000}  # training images

Row = dict[str, Any]


def run_row(run: Path) -> Row:
    """What the run in this directory came to."""
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
        **{name: result[name] for name in METRICS},
        **{name: result.get(name) for name in (*CLASS_METRICS, *BY_ROUND)},
        **{f"seconds_{name}": result["seconds"].get(name) for name in SECONDS},
        "version": result["version"],
        "machine": _machine(environment),
        "finished": of_run["result"].finished,
        "accuracy_matrix": result["accuracy_matrix"],
        "picked": _picked(result, data["classes"], [step for step in steps if step.kind == "label"]),
        "round_accuracy": _round_accuracy([step for step in steps if step.kind == "test"]),
        "note": data_note(result["config"]["benchmark"], data["train"]["shape"][0]),
    }


def _machine(environment: dict[str, Any]) -> str:
    """The machine and libraries in a line; older runs did not record the processor's name."""
    parts = [environment[key] for key in ("processor", "machine", "cpu", "device") if key in environment]
    return ", ".join([*parts, f"torch {environment['torch']}", f"numpy {environment['numpy']}"])


def data_note(benchmark: str, examples: int) -> str:
    """What must be known about the data, if they are not all that was published.

    >>> data_note("split-tiny-imagenet", 40_000)
    'split-tiny-imagenet: 40,000 of the 100,000 published training images'
    """
    published = PUBLISHED.get(benchmark, 0)
    return f"{benchmark}: {examples:,} of the {published:,} published training images" if examples < published else ""


def _picked(result: dict[str, Any], names: Sequence[str], labelled: Sequence[Step]) -> list[list[int]]:
    """How many labels each class got, by task, classes in their order of arrival."""
    tested = list(result["recall"])
    if not is_tidy(result["config"]):
        return _picked_of_pools(result["stream"], labelled)
    config, tasks = result["config"], len(result["accuracy_matrix"])
    usual = BENCHMARKS.get(config["benchmark"], ("", 0, 0))[2]
    each = config["classes_per_task"] or usual or len(tested) // tasks
    counts: list[Counter[str]] = [Counter() for _ in range(tasks)]
    for step in labelled:
        assert step.task is not None
        counts[step.task].update(names[label] for _, label in step.result["labels"])
    if len(tested) == tasks * each:  # every class was tested, in this order
        return [[counts[t][name] for name in tested[t * each : (t + 1) * each]] for t in range(tasks)]
    return [[*(n for _, n in sorted(count.items())), *[0] * (each - len(count))] for count in counts]


def _picked_of_pools(stream: dict[str, Any], labelled: Sequence[Step]) -> list[list[int]]:
    """The same for the classes that were in each task's pool, or were named in it by mistake."""
    counts: list[Counter[int]] = [Counter() for _ in stream["pools"]]
    for step in labelled:
        assert step.task is not None
        counts[step.task].update(label for _, label in step.result["labels"])
    return [
        [count[c] for c, examples in zip(stream["order"], pool, strict=True) if examples or count[c]]
        for count, pool in zip(counts, stream["pools"], strict=True)
    ]


def _round_accuracy(tests: Sequence[Step]) -> list[list[list[float]]] | None:
    """Accuracies after each round, by task, where every round was tested."""
    tasks: dict[int | None, list[list[float]]] = {}
    for step in tests:
        tasks.setdefault(step.task, []).append(step.result["accuracy"])
    return list(tasks.values()) or None

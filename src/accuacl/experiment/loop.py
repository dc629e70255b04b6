"""Algorithm 1 of the paper: tasks arrive, rounds of queries and training, then the memory is updated.

Every step goes through the journal, so that the same code starts a run, resumes one that was killed, and waits for
people.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

import accuacl
from accuacl.base.files import write_text
from accuacl.base.progress import OnProgress
from accuacl.experiment import metrics
from accuacl.experiment.config import Config
from accuacl.experiment.configfile import settings_before
from accuacl.experiment.journal import Journal
from accuacl.experiment.oracle import Oracle
from accuacl.experiment.setting import environment
from accuacl.experiment.steps import Handle, Steps

NONE = np.empty(0, np.int64)


def run(
    config: Config,
    out: Path,
    *,
    data_dir: Path | None = None,
    fresh: bool = False,
    skip_bad: bool = False,
    oracle: Oracle | None = None,
    progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Do the experiment, or go on with it, or return its result at once if it is finished."""

    def prepare() -> Steps:
        return Steps(config, out / "weights", data_dir, skip_bad, oracle, progress)

    # A new run is made ready before its directory is touched: what fails here leaves no trace.
    ready = prepare() if fresh or not (out / "config.json").exists() else None
    with Journal(out, config.model_dump(), environment(config), fresh, settings_before(type(config))) as journal:
        if journal.has("result"):
            result = journal.once("result", dict)
        else:
            if journal.environment != environment(config):
                warnings.warn(
                    f"this run was begun with {journal.environment}, now it is {environment(config)}: "
                    "its result may differ in the last bits from an undisturbed one.",
                    stacklevel=2,
                )
            torch.set_num_threads(config.threads)
            steps = ready or prepare()
            loading = journal.once("load", lambda: steps.loading)
            matrix, last, weights = all_tasks(steps, journal)
            result = journal.once("result", _finish, config, journal, matrix, last, weights, loading)
        _publish(out / "result.json", result)
    return result


def all_tasks(steps: Steps, journal: Journal) -> tuple[list[list[float | None]], dict[str, Any], Handle | None]:
    """Algorithm 1; the accuracy matrix, the last evaluation and the last weights.

    Weights and memory are handles, loaded only by a step that has not been done yet.
    """
    once = journal.once
    steps.check_data(once("data", steps.fingerprint))
    memory: Handle | None = None
    start: Handle | None = None
    weights: Handle | None = None
    past, seen = 0, NONE
    matrix: list[list[float | None]] = []
    row: dict[str, Any] = {}
    for task in steps.tasks:
        pool, asked, known, labels, start = steps.pool_of(task), NONE, NONE, NONE, weights
        for r in range(steps.rounds(task)):
            at = {"task": task.index, "round": r}
            picked = once("query", steps.query, task, r, pool, asked, known, memory, past, weights, seen, **at)
            asked = np.append(asked, np.array(picked["ids"], np.int64))
            answer = once("label", steps.label, task, r, picked["ids"], len(known), **at)
            known, labels, seen = steps.take(answer, known, labels, seen)
            if not len(known) or not steps.needs_training(task, r):
                continue
            done = journal.has("train", **at)
            weights = once("train", steps.train, task, r, known, labels, memory, start, seen, **at)
            if not done:
                steps.tidy(start, weights)
            if steps.config.evaluate == "round":
                once("test", steps.evaluate, task, r, weights, seen, **at)
        memory = once("memory", steps.remember, weights, task=task.index)["file"]
        past += len(pool)
        last = steps.rounds(task) - 1
        row = once("evaluate", steps.evaluate, task, last, weights, seen, task=task.index)
        matrix.append(row["accuracy"] + [None] * (len(steps.tasks) - len(row["accuracy"])))
    steps.tidy(start, weights)
    return matrix, row, weights


def _finish(
    config: Config,
    journal: Journal,
    matrix: list[list[float | None]],
    last: dict[str, Any],
    weights: Handle | None,
    loading: float,
) -> dict[str, Any]:
    """What result.json has."""
    spent, cpu = journal.seconds(), journal.cpu_seconds()
    spent["evaluate"] = spent.get("evaluate", 0.0) + spent.pop("test", 0.0)
    parts = {kind: spent.pop(kind, 0.0) for kind in ("query", "train", "evaluate")}
    return {
        **metrics.summary(matrix),
        "accuracy_matrix": matrix,
        "recall": last["recall"],
        "calibration_error": last["calibration_error"],
        "weights": weights["file"] if weights else None,
        "config": config.model_dump(),
        "seconds": parts | {"load": loading, "other": sum(spent.values()), "cpu": cpu},
        "version": accuacl.__version__,
    }


def _publish(path: Path, result: dict[str, Any]) -> None:
    text = json.dumps(result, indent=1) + "\n"
    if not path.exists() or path.read_text() != text:
        write_text(path, text)

"""Runs: an experiment in its directory, started, resumed, or read if it is finished."""

from __future__ import annotations

import json
import os
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch

import accuacl
from accuacl.base.errors import InputError, a_type
from accuacl.base.files import reading, strangers, write_text
from accuacl.base.progress import OnProgress, check_progress
from accuacl.experiments import learners, metrics, models
from accuacl.experiments.config import Config, default_settings, read_config
from accuacl.experiments.defaults import UNSET
from accuacl.experiments.journal import DIVERGED, WRITTEN, Journal, read_steps
from accuacl.experiments.logs import check_log, open_log
from accuacl.experiments.loop import Handle, all_tasks
from accuacl.experiments.notes import stream_notes
from accuacl.experiments.steps import ExperimentSteps, Oracle
from accuacl.experiments.strategy_options import OPTIONS, uses

MORE = ("error.txt",)  # what a sweep may have left there of a run that never began


def run(
    config: Config,
    out: Path,
    *,
    data_dir: Path | None = None,
    fresh: bool = False,
    skip_bad: bool = False,
    oracle: Oracle | None = None,
    progress: OnProgress | None = None,
    patience: float = 0,
    log_to: str | None = None,
) -> dict[str, Any]:
    """Run or resume the experiment; the result of a finished one is returned at once.

    patience: seconds to wait for another process that is working on it. log_to: tensorboard:DIR, for curves of what is
    recorded.
    """
    if not isinstance(config, Config):
        raise InputError(f"the settings are {a_type(config)}; give make(...) of them.")
    out = Path(out)

    def prepare() -> ExperimentSteps:
        return ExperimentSteps(config, out / "weights", data_dir, skip_bad, oracle, progress)

    _check_out(out)
    check_progress(progress)
    if log_to is not None:
        check_log(log_to)
    config = config if fresh else _as_begun(config, out / "config.json")
    if not fresh and (shown := _read_only_result(out, config)):
        return shown
    # A new run is prepared before its directory is touched: what fails here leaves no trace.
    ready = prepare() if fresh or not (out / "config.json").exists() else None
    for sentence in stream_notes(config, ready.stream, ready.tasks) if ready else ():
        warnings.warn(sentence, stacklevel=2)
    with Journal(out, config, fresh=fresh, patience=patience) as journal, ExitStack() as closing:
        if log_to:
            log = open_log(log_to, out, config.model_dump())
            closing.callback(log.writer.close)
            journal.on_step = log.write
        if journal.has("result"):
            result = journal.once("result", dict)
        else:
            if changed := journal.environment_change:
                warnings.warn(
                    f"this run was begun with {changed}: its result may differ in the last bits.",
                    stacklevel=2,
                )
            torch.set_num_threads(config.threads)
            steps = ready or prepare()
            loading = journal.once("load", lambda: steps.loading)
            steps.check_data(journal.once("data", steps.describe_data))
            try:
                matrix, last, weights = all_tasks(steps, journal)
            except learners.Diverged as error:
                journal.once(DIVERGED, str, error)  # so that other settings may start over here
                raise
            result = journal.once("result", _finish, steps, journal, matrix, last, weights, loading)
        _publish(out / "result.json", result)
    return result


def _read_only_result(out: Path, config: Config) -> dict[str, Any] | None:
    """The result of a finished run in a directory that cannot be written to, where no journal can be opened."""
    if os.access(out, os.W_OK) or not (out / "result.json").exists():
        return None
    if read_config(out / "config.json", Config) != default_settings(Config) | config.model_dump(mode="json"):
        return None
    with reading(out / "result.json"):
        result: dict[str, Any] = json.loads((out / "result.json").read_text(encoding="utf-8"))
    return result


def _check_out(out: Path) -> None:
    """Refuse a directory that holds other files but no run, or a project, whose labels --fresh would make useless."""
    if (out / "labels.sqlite").exists():
        raise InputError(f"{out} holds a labelling project; choose another directory as --out.")
    begun = (out / "config.json").exists() or (out / "journal.sqlite").exists()
    if not begun and (other := strangers(out, "weights", "lock", *WRITTEN, *MORE)):
        raise InputError(f"{out} holds {other}, which is not part of a run; choose an empty or new directory as --out.")


def _as_begun(config: Config, path: Path) -> Config:
    """The config of a run that is resumed from this file, with the defaults of the time when it began.

    Without a setting `sample`, coverage looked at whole pools; a sample among the options was drawn by the strategy.
    `kernel` learned from the pool on all kinds of data. Runs on a pretrained network had the same defaults as others.
    """
    try:
        recorded = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # not begun, or refused with a sentence when it is read
        return config
    if not isinstance(recorded, dict) or "learner" not in recorded:
        return config
    before: dict[str, Any] = {} if "sample" in recorded else {"sample": 0}
    drawn = (recorded.get(OPTIONS) or {}).get("sample")
    if uses(config.strategy, "sample") and drawn == config.sample and not recorded.get("sample"):
        before = {"sample": 0, OPTIONS: config.options | {"sample": drawn}}
    if config.learner == "kernel" and "pool_learning" not in config.model_fields_set:
        before["pool_learning"] = recorded.get("pool_learning", config.pool_learning)
    if config.model == models.PRETRAINED:
        unset = (UNSET & recorded.keys()) - config.model_fields_set
        changed = unset & {"scale", "strategy", "first_round"}  # whose defaults are others on a pretrained network now
        if any(recorded[name] == Config.model_fields[name].default for name in changed):
            before |= {name: recorded[name] for name in unset}
    return config.model_copy(update=before)


def _finish(
    steps: ExperimentSteps,
    journal: Journal,
    matrix: list[list[float | None]],
    last: dict[str, Any],
    weights: Handle | None,
    loading: float,
) -> dict[str, Any]:
    """The content of result.json."""
    spent, cpu = journal.seconds(), journal.cpu_seconds()
    spent["evaluate"] = spent.get("evaluate", 0.0) + spent.pop("test", 0.0)
    seconds = {kind: spent.pop(kind, 0.0) for kind in ("query", "train", "evaluate")}
    return {
        **metrics.summary(matrix),
        "accuracy_matrix": matrix,
        **{name: last[name] for name in ("recall", "recall_by_task", "confusion") if name in last},
        "calibration_error": last["calibration_error"],
        **_by_class(steps, journal),
        "weights": weights["file"] if weights else None,
        "config": steps.config.model_dump(),
        "seconds": seconds | {"load": loading, "other": sum(spent.values()), "cpu": cpu},
        "version": accuacl.__version__,
    }


def _by_class(steps: ExperimentSteps, journal: Journal) -> dict[str, Any]:
    """What result.json says about classes, and the stream: its classes, and how many of each were in each pool."""
    stream, truth = steps.stream, steps.stream.to_model
    evaluations = [step.result for step in read_steps(journal.path, "evaluate")]
    fallen = metrics.forgetting_by_class(evaluations)
    labels = steps.data.train.labels
    width = len(stream.order)
    pools = np.stack([np.bincount(truth(labels[steps.pool_of(task)]), minlength=width) for task in steps.tasks])
    of_class = np.full(len(labels), -1)
    inside = np.concatenate([task.train for task in steps.tasks])
    of_class[inside] = truth(labels[inside])
    counts = metrics.labels_by_class(read_steps(journal.path, "label"), of_class, width)
    rarest = metrics.rarest(counts, pools)
    return {
        "class_accuracy": metrics.class_accuracy(evaluations[-1]["recall"]),
        "example_accuracy": metrics.example_accuracy(
            evaluations[-1]["accuracy"], [len(steps.test_of(task)) for task in steps.tasks]
        ),
        "class_forgetting": float(np.mean(list(fallen.values()))) if fallen else 0.0,
        "forgetting_by_class": fallen,
        "found": metrics.found(counts, pools),
        "rarest_class": steps.data.classes[stream.order[rarest]],
        "rarest_labels": [[int(count[rarest]) for count in rounds] for rounds in counts],
        "stream": {"order": list(stream.order), "pools": pools.tolist()},
    }


def _publish(path: Path, result: dict[str, Any]) -> None:
    text = json.dumps(result, indent=1) + "\n"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)

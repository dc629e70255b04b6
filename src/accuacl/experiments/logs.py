"""Logs of a run for TensorBoard: what is recorded in its journal, as curves over the number of labels.

The journal is the record; the log is made from it. A resumed run rewrites its log, so that no event is in it twice, and
then continues it.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from accuacl.base.errors import InputError, install
from accuacl.base.files import making
from accuacl.experiments import metrics
from accuacl.experiments.journal import Step, read_steps

SUFFIX = ".accuacl"  # of the files of events that are ours


class RunLog:
    """The log of one run. `write` is called with each step as it is recorded. writer: TensorBoard's `SummaryWriter`."""

    def __init__(self, writer: Any, config: dict[str, Any]) -> None:
        self.writer, self.labels = writer, 0
        self.rows: list[list[float]] = []  # the accuracies after each task
        self.writer.add_text("config", f"```json\n{json.dumps(config, indent=1)}\n```", 0)

    def write(self, step: Step) -> None:
        if step.task is None:
            return
        if step.kind == "label":
            self.labels += len(step.result["labels"])
        elif step.kind in ("test", "evaluate"):
            self._accuracies("round" if step.kind == "test" else "task", step)
        if step.kind in ("query", "train"):
            self.writer.add_scalar(f"seconds/{step.kind}", step.seconds, self.labels)
        self.writer.flush()

    def _accuracies(self, when: str, step: Step) -> None:
        accuracy = step.result["accuracy"]
        values = {f"accuracy after each {when}/task {j + 1}": value for j, value in enumerate(accuracy)}
        if when == "task":
            self.rows.append(accuracy)
            matrix = [row + [None] * (len(accuracy) - len(row)) for row in self.rows]
            values |= {f"metrics/{name}": value for name, value in metrics.summary(matrix).items()}
            values["metrics/calibration_error"] = step.result["calibration_error"]
            values |= {f"recall/{name}": value for name, value in step.result["recall"].items()}
        for tag, value in values.items():
            if value is not None and math.isfinite(value):
                self.writer.add_scalar(tag, value, self.labels)


def open_log(log_to: str, run: Path, config: dict[str, Any]) -> RunLog:
    """The log of the run in this directory, with all that its journal has. log_to: such as tensorboard:DIR."""
    folder = log_folder(log_to) / run.resolve().name
    writer_class = _summary_writer()
    with making(folder):
        for earlier in folder.glob(f"events.out.tfevents.*{SUFFIX}"):
            earlier.unlink()
        log = RunLog(writer_class(str(folder), filename_suffix=SUFFIX), config)
    steps = read_steps(run / "journal.sqlite")
    for step in sorted(steps, key=lambda step: (step.task or 0, math.inf if step.round is None else step.round)):
        log.write(step)
    return log


def check_log(log_to: str) -> None:
    """Refuse a log that cannot be written, before anything is done."""
    log_folder(log_to)
    _summary_writer()


def log_folder(log_to: str) -> Path:
    """The folder that `--log-to` names.

    >>> log_folder("tensorboard:logs")
    PosixPath('logs')
    """
    kind, colon, folder = log_to.partition(":")
    if kind != "tensorboard" or not colon or not folder:
        raise InputError(f"--log-to is {log_to!r}; give tensorboard:DIR, with a directory for the logs.")
    return Path(folder)


def _summary_writer() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter  # loads torch
    except ImportError:
        raise InputError(f"--log-to needs tensorboard, which is in the extra `logs`; {install('logs')}.") from None
    return SummaryWriter

"""The stream of a run, from its settings: which of them go together, how they are described, and its tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accuacl.base.errors import InputError, no_such
from accuacl.base.progress import OnProgress
from accuacl.experiments import data, models
from accuacl.experiments.data import ARRIVALS, BENCHMARKS, OWN_STREAMS, Stream

if TYPE_CHECKING:
    from accuacl.experiments.config import Config

DRAWN = ("domains", "recurring", "blur", "imbalance", "label_noise")  # what is drawn by --stream-seed


def check_stream(config: Config) -> None:
    """Refuse settings that contradict each other."""
    own = config.benchmark not in BENCHMARKS
    if not own:
        ignored = [name for name in ("image_size", "label_column", "task_column") if getattr(config, name)]
        _leave_out(ignored, f"{config.benchmark} has its own images and labels")
    by_classes = [name for name in ("order", "classes_per_task") if getattr(config, name) not in ("fixed", 0)]
    if config.arrival not in (*ARRIVALS, *OWN_STREAMS):
        raise no_such("arrival mode", config.arrival, (*ARRIVALS, *OWN_STREAMS))
    if config.task_column and config.arrival != "given":
        raise InputError(
            "--task-column says what arrives when; leave it out, or --classes-per-task, --domains and --arrival."
        )
    if config.arrival != "classes":
        if config.arrival == "given" and not own:
            raise InputError(f"{config.benchmark} names no tasks; --arrival given is for your own data.")
        who = "the data name" if config.arrival == "given" else f"{config.arrival} makes"
        _leave_out([*by_classes, *(n for n in ("domains", "recurring") if getattr(config, n))], f"{who} the tasks")
    elif config.domains:
        if config.domains == 1:
            raise InputError("domains is 1; give at least 2, or 0 for none.")
        _leave_out(by_classes, "with --domains every task has all classes")
    elif own and config.classes_per_task == 0:
        raise InputError(
            f"{config.benchmark} needs --classes-per-task, how many classes arrive with each task, or a column or "
            "folders that name the tasks."
        )


def is_class_incremental(settings: Mapping[str, Any]) -> bool:
    """Whether every task brings new classes and nothing else, as in the paper; settings may be missing."""
    return not describe_stream(settings)


def describe_stream(settings: Mapping[str, Any]) -> str:
    """Describe how a stream differs from a class-incremental one; "" if it does not.

    >>> describe_stream({"arrival": "given", "blur": 0.1, "label_noise": 0.2, "noise": "alike"})
    'tasks as given, blur 0.1, label noise 0.2 (alike)'
    """
    usual = vars(data.StreamOptions())
    arrival = settings.get("arrival", "classes")
    words = [] if arrival == "classes" else [f"tasks as {arrival}"]
    for name in DRAWN:
        value = settings.get(name, usual[name])
        if value != usual[name]:
            kind = " (alike)" if name == "label_noise" and settings.get("noise") == "alike" else ""
            words.append(f"{name.replace('_', ' ')} {value:g}{kind}")
    return ", ".join(words)


def groups_of(config: Config, classes: int) -> list[list[int]] | None:
    """The classes of each task; None if tasks are not defined by classes."""
    if config.arrival != "classes" or config.domains:
        return None
    return data.benchmark_tasks(config.benchmark, classes, config.classes_per_task, config.order, config.order_seed)


def _leave_out(names: list[str], why: str) -> None:
    if names:
        options = " and ".join(f"--{name.replace('_', '-')}" for name in names)
        raise InputError(f"{why}, so leave out {options}.")


def open_stream(config: Config, data_dir: Path | None, skip_bad: bool, progress: OnProgress | None = None) -> Stream:
    """The tasks of the config's benchmark or folder."""
    dataset = data.load(
        data.dataset_of(config.benchmark),
        data_dir,
        skip_bad=skip_bad,
        image_size=config.image_size or None,
        label_column=config.label_column or "",
        task_column=config.task_column or "",
        progress=progress,
    )
    same = {each.name: getattr(config, each.name) for each in fields(data.StreamOptions) if each.name != "seed"}
    options = data.StreamOptions(**same, seed=config.seed if config.stream_seed is None else config.stream_seed)
    own = "" if config.arrival in ARRIVALS else config.arrival
    stream = data.make_stream(dataset, groups_of(config, len(dataset.classes)), options, own, config.tasks or None)
    if config.model == models.PRETRAINED:
        from accuacl.experiments.networks import seen_through  # loads torch

        return seen_through(stream, progress)
    return stream

"""What a config stands for: its stream of tasks, its training, and the machine that it runs on.

Torch is loaded only where the machine is asked.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import accuacl
from accuacl.base.errors import InputError, no_such
from accuacl.base.machine import cpu_name
from accuacl.base.progress import OnProgress
from accuacl.experiments import data, learners, models
from accuacl.experiments.data import ARRIVALS, BENCHMARKS, OWN_STREAMS, Stream

if TYPE_CHECKING:
    from accuacl.experiments.config import Config

DRAWN = ("domains", "recurring", "blur", "imbalance", "label_noise")  # what is drawn by --stream-seed
TRANSFORMS = {  # mean, standard deviation, crop
    "cifar10": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010), 4),
    "cifar100": ((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762), 4),
    "tiny-imagenet": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010), 0),
}


def check_stream(config: Config) -> None:
    """Refuse settings that contradict each other."""
    own = config.benchmark not in BENCHMARKS
    if not own:
        ignored = [name for name in ("image_size", "label_column", "task_column") if getattr(config, name)]
        _leave_out(ignored, f"{config.benchmark} has its own images and labels")
    by_classes = [name for name in ("order", "classes_per_task") if getattr(config, name) not in ("fixed", 0)]
    if config.arrival not in (*ARRIVALS, *OWN_STREAMS):
        raise no_such("arrival", config.arrival, (*ARRIVALS, *OWN_STREAMS))
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
            "your own data needs --classes-per-task, how many classes arrive with each task, or a column or folders "
            "that name the tasks."
        )


def is_class_incremental(settings: Mapping[str, Any]) -> bool:
    """Whether every task brings new classes and nothing else, as in the paper; settings may be missing."""
    usual = data.StreamOptions()
    return settings.get("arrival", "classes") == "classes" and all(
        settings.get(name, getattr(usual, name)) == getattr(usual, name) for name in DRAWN
    )


def describe_stream(settings: Mapping[str, Any]) -> str:
    """How a stream differs from a class-incremental one, in words; "" if it does not.

    >>> describe_stream({"arrival": "given", "blur": 0.1, "label_noise": 0.2, "noise": "alike"})
    'tasks as given, blur 0.1, label noise 0.2 (alike)'
    """
    arrival = settings.get("arrival", "classes")
    words = [] if arrival == "classes" else [f"tasks as {arrival}"]
    for name in DRAWN:
        value = settings.get(name, getattr(data.StreamOptions(), name))
        if value != getattr(data.StreamOptions(), name):
            kind = " (alike)" if name == "label_noise" and settings["noise"] == "alike" else ""
            words.append(f"{name.replace('_', ' ')} {value:g}{kind}")
    return ", ".join(words)


def groups_of(config: Config, classes: int) -> list[list[int]] | None:
    """The classes of each task; None where they do not say what arrives together."""
    if config.arrival != "classes" or config.domains:
        return None
    return data.benchmark_tasks(config.benchmark, classes, config.classes_per_task, config.order, config.order_seed)


def stream_options(config: Config) -> data.StreamOptions:
    return data.StreamOptions(
        blur=config.blur,
        imbalance=config.imbalance,
        label_noise=config.label_noise,
        noise=config.noise,
        domains=config.domains,
        recurring=config.recurring,
        seed=config.seed if config.stream_seed is None else config.stream_seed,
    )


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
    own = "" if config.arrival in ARRIVALS else config.arrival
    stream = data.make_stream(
        dataset, groups_of(config, len(dataset.classes)), stream_options(config), own, config.tasks or None
    )
    if config.model == models.PRETRAINED:
        from accuacl.experiments.networks import seen_through  # loads torch

        return seen_through(stream, progress)
    return stream


def transform_of(name: str, inputs: NDArray[Any]) -> learners.Transform:
    """Normalisation and augmentation: crop and flip at 32x32, flip only on larger images, none on vectors."""
    if inputs.ndim == 2:
        return learners.Transform(None, None)
    mean, std, crop = TRANSFORMS.get(name, (*TRANSFORMS["cifar10"][:2], 4 if inputs.shape[1] <= 32 else 0))
    return learners.Transform(mean, std, crop, flip=True)


def training_of(config: Config, classes: int, device: str) -> learners.Training:
    """How to train a head of so many classes."""
    return learners.Training(
        epochs=config.epochs,
        batch=config.batch,
        lr=config.lr,
        momentum=config.momentum,
        weight_decay=config.weight_decay,
        capacity=config.memory,
        classes=classes,
        device=device,
        cycled=config.replay == "cycled",
        alpha=config.alpha,
        beta=config.beta,
        balanced=config.sampling == "balanced",
        repeated=config.sampling == "repeated",
        policy=config.memory_policy,
        pool_learning=config.pool_learning,
    )


def device_of(device: str) -> str:
    """The torch device that a setting means: for auto the GPU, if there is one."""
    import torch  # slow to load

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise InputError(f"device is {device!r}, but torch finds no GPU; give --device cpu.")
    return device


def environment(device: str) -> dict[str, Any]:
    """What the last bits of a result depend on besides the settings. device: that of the settings."""
    import torch  # slow to load

    return {
        "accuacl": accuacl.__version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "machine": platform.machine(),
        "device": device_of(device),
        "processor": cpu_name(),
    }

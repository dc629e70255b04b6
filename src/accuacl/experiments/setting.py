"""What a config stands for on this machine: its stream of tasks, transform, device."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import accuacl
from accuacl.base.errors import InputError
from accuacl.base.machine import cpu_name
from accuacl.base.progress import OnProgress
from accuacl.experiments import learners
from accuacl.experiments.config import Config
from accuacl.experiments.data import ARRIVALS, Stream, dataset_of, load, make_stream
from accuacl.experiments.stream_settings import groups_of, stream_options

TRANSFORMS = {  # mean, standard deviation, crop
    "cifar10": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010), 4),
    "cifar100": ((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762), 4),
    "tiny-imagenet": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010), 0),
}


def open_stream(config: Config, data_dir: Path | None, skip_bad: bool, progress: OnProgress | None = None) -> Stream:
    """The tasks of the config's benchmark or folder."""
    dataset = load(
        dataset_of(config.benchmark),
        data_dir,
        skip_bad=skip_bad,
        image_size=config.image_size or None,
        label_column=config.label_column or "",
        task_column=config.task_column or "",
        progress=progress,
    )
    own = "" if config.arrival in ARRIVALS else config.arrival
    return make_stream(dataset, groups_of(config, len(dataset.classes)), stream_options(config), own)


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
        policy=config.memory_policy,
    )


def device_of(config: Config) -> str:
    """Where to compute: the GPU if there is one, unless told otherwise."""
    if config.device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if config.device.startswith("cuda") and not torch.cuda.is_available():
        raise InputError("device is 'cuda' but torch finds none; give --device cpu.")
    return config.device


def environment(config: Config) -> dict[str, Any]:
    """What the last bits of a result depend on besides the config."""
    return {
        "accuacl": accuacl.__version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "machine": platform.machine(),
        "device": device_of(config),
        "processor": cpu_name(),
    }


def difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    """Where an environment is not as it was, in words; what was not recorded then counts as the same.

    >>> difference({"torch": "2.9", "cpu": "AVX2"}, {"torch": "2.13", "cpu": "AVX2", "processor": "x"})
    'torch 2.9 (now 2.13)'
    """
    return ", ".join(
        f"{key} {before[key]} (now {value})" for key, value in now.items() if before.get(key, value) != value
    )

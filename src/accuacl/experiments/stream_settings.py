"""The settings of a config that say how its stream is made, and which of them go together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from accuacl.base.errors import InputError, no_such
from accuacl.experiments import data
from accuacl.experiments.data import ARRIVALS, BENCHMARKS, OWN_STREAMS

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
            raise InputError("domains is 1; give at least 2 looks, or 0 for none.")
        _leave_out(by_classes, "with --domains every task has all classes")
    elif own and config.classes_per_task == 0:
        raise InputError(
            "your own data needs --classes-per-task, how many classes arrive with each task, or a column or folders "
            "that name the tasks."
        )


def is_tidy(settings: Mapping[str, Any]) -> bool:
    """Whether every task brings new classes and nothing else; settings that did not exist are missing."""
    usual = data.StreamOptions()
    return settings.get("arrival", "classes") == "classes" and all(
        settings.get(name, getattr(usual, name)) == getattr(usual, name) for name in DRAWN
    )


def stream_words(settings: Mapping[str, Any]) -> str:
    """In what a stream is not tidy; of a tidy one nothing.

    >>> stream_words({"arrival": "given", "blur": 0.1, "label_noise": 0.2, "noise": "alike"})
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


SMOKE: dict[str, Any] = {"labels": 24, "rounds": 2, "epochs": 1, "batch": 8, "pool": 200, "tasks": 3, "model": "conv3"}
SMOKE["test"] = 200
CPU: dict[str, Any] = {"rounds": 5, "epochs": 8, "batch": 32, "lr": 0.03, "momentum": 0.8, "model": "conv4"}
PAPER: dict[str, Any] = {
    "rounds": 10,
    "batch": 16,
    "lr": 0.01,
    "momentum": 0.8,
    "weight_decay": 1e-4,
    "model": "resnet18",
}
DEFAULTS: dict[str, dict[str, dict[str, Any]]] = {
    "split-digits": {
        "smoke": {"memory": 20, "labels": 20, "rounds": 2, "epochs": 5, "batch": 8, "lr": 0.05},
        "cpu": {"memory": 50, "labels": 50, "rounds": 5, "epochs": 30, "batch": 8, "lr": 0.05},
        "paper": {"memory": 50, "labels": 50, "rounds": 10, "epochs": 50, "batch": 8, "lr": 0.05},
    },
    "split-cifar10": {
        "smoke": SMOKE | {"memory": 20},
        "cpu": CPU | {"memory": 100, "labels": 1000},
        "paper": PAPER | {"memory": 100, "labels": 1000, "epochs": 50},
    },
    "split-cifar100": {
        "smoke": SMOKE | {"memory": 60},
        "cpu": CPU | {"memory": 500, "labels": 1000},
        "paper": PAPER | {"memory": 500, "labels": 2000, "epochs": 20},
    },
    "split-tiny-imagenet": {
        "smoke": SMOKE | {"memory": 80},
        "cpu": CPU | {"memory": 2000, "labels": 800, "rounds": 4, "model": "conv4-stride2"},
        "paper": PAPER
        | {"memory": 2000, "labels": 3000, "epochs": 30, "batch": 32, "momentum": 0.9, "weight_decay": 0.0}
        | {"model": "resnet18-3x3-pool"},
    },
}
OWN_VECTORS = {  # vectors of one's own are trained on as the digits are
    scale: {name: defaults[name] for name in ("epochs", "batch", "lr")}
    for scale, defaults in DEFAULTS["split-digits"].items()
}
OWN: dict[str, dict[str, Any]] = {  # one's own data; the memory is as large as the labels of a task
    "smoke": SMOKE | {"memory": SMOKE["labels"]},
    "cpu": CPU | {"labels": 100, "memory": 100},
    "paper": PAPER | {"labels": 100, "memory": 100, "epochs": 50},
}

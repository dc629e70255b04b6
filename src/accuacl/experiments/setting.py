"""What a config stands for: the options of its strategy, its stream of tasks, its training, and its machine.

Six options are settings of their own (`--lam 0.5`, `lam: 0.5`); all others are in the setting `options`. Type, range
and help of both are declared in the strategies' signatures, and nowhere else.

Torch is loaded only where the machine is asked.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

import accuacl
from accuacl.base.errors import InputError, near, no_such
from accuacl.base.machine import cpu_name
from accuacl.base.progress import OnProgress
from accuacl.experiments import data, learners, models
from accuacl.experiments.data import ARRIVALS, BENCHMARKS, OWN_STREAMS, Stream
from accuacl.strategies import (
    BUILT_IN,
    REGISTRY as STRATEGIES,
    Option,
    options_help,
    options_of,
    read_options,
    takes_sample,
)

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
    """Describe how a stream differs from a class-incremental one; "" if it does not.

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
    """The classes of each task; None if tasks are not defined by classes."""
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
    """How to train a head with this many classes."""
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


def environment_of(device: str) -> dict[str, Any]:
    """What the last bits of a result depend on, apart from the settings. device: as in the settings."""
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


OPTIONS = "options"  # the setting that holds the options which are not settings of their own
OPTION_SETTINGS: dict[str, tuple[str, Any]] = {  # whose signature declares it; what leaves it to the strategy
    "variant": ("accuacl", "released"),
    "keep": ("accuacl", 0),
    "lam": ("accuacl", None),
    "oversample": ("accuacl", 2.0),
    "share": ("accuacl+uniform", None),
    "uncertainty": ("fisher-ratio", "weighed"),
}
SET_BY_RUNS = ("total_classes",)  # options that a run gives to strategies itself


def option_field(name: str) -> Any:
    """The field of a setting that is an option."""
    unset, option = OPTION_SETTINGS[name][1], setting_option(name)
    return Field(
        unset,
        description=f"{options_help(name)}.",
        ge=option.least if math.isfinite(option.least) else None,
        le=option.most if math.isfinite(option.most) else None,
    )


def setting_option(name: str) -> Option:
    """An option as the setting of its name takes it: whole numbers also as what leaves them to the strategy.

    >>> setting_option("share").expected, setting_option("keep").expected
    ('a number from 0 to 1', 'a whole number of at least 0')
    """
    strategy, unset = OPTION_SETTINGS[name]
    option = options_of(strategy)[name]
    return replace(option, least=min(option.least, unset)) if option.kind is int else option


def with_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with the options among them typed and in their places.

    Options may be given as `options: {share: 0.3}` or as `options.share: 0.3`. Those that are settings of their own
    become these.

    >>> with_options({"strategy": "bait", "options": {"oversample": "3", "ridge": 0.1}})
    {'strategy': 'bait', 'oversample': 3.0, 'options': {'ridge': 0.1}}
    """
    flat = flat_options(given)
    settings = {name: value for name, value in flat.items() if not name.startswith(f"{OPTIONS}.")}
    options = {name.partition(".")[2]: value for name, value in flat.items() if name not in settings}
    strategy = str(settings.get("strategy", "accuacl"))
    if strategy in STRATEGIES or strategy == "full":  # one that is not known is refused with the other settings
        options = check_run_options(strategy, options)
    own = [name for name in options if name in OPTION_SETTINGS and strategy in BUILT_IN and uses(strategy, name)]
    for name in own:
        settings[name] = _as_setting(name, take_option(name, options, settings))
    return with_typed_options(strategy, settings, options)


def with_typed_options(strategy: str, settings: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with the options of the strategy, typed; the `sample` that runs and projects draw is a setting.

    >>> with_typed_options("coverage", {"seed": 1}, {"sample": "70"})
    {'seed': 1, 'sample': 70}
    >>> with_typed_options("kcenter", {}, {"sample": 70})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    accuacl.base.errors.InputError: kcenter has no option 'sample'; ...
    """
    known = strategy in STRATEGIES or strategy == "full"  # one that is not known is refused with the other settings
    options = check_run_options(strategy, options) if known else dict(options)
    settings = {name: value for name, value in settings.items() if name != OPTIONS}
    if "sample" in options and strategy in STRATEGIES and takes_sample(strategy):
        sample = take_option("sample", options, settings)
        settings |= {} if sample is None else {"sample": sample}
    return settings | ({OPTIONS: options} if options else {})


def take_option(name: str, options: dict[str, Any], settings: Mapping[str, Any]) -> Any:
    """An option that becomes a setting, out of the others."""
    if name in settings:
        raise InputError(f"{name} is given by --option and by --{name}; give one of them.")
    return options.pop(name)


def flat_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with each of `options` by a name of its own, as the grid of a sweep has them.

    >>> flat_options({"strategy": "coverage", "options": {"sample": [100, 1000]}})
    {'strategy': 'coverage', 'options.sample': [100, 1000]}
    """
    options = settings.get(OPTIONS) or {}
    if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
        raise InputError(f"options is {options!r}; give names and values, such as options: {{share: 0.3}}.")
    flat = {name: value for name, value in settings.items() if name != OPTIONS}
    for name, value in options.items():
        flat[f"{OPTIONS}.{name.replace('-', '_')}"] = value
    return flat


def overridden(settings: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Flat settings of a file with those given in their places, where `share` and `options.share` are the same.

    >>> overridden({"strategy": "accuacl+uniform", "options.share": 0.3, "seed": 1}, {"share": 0.4})
    {'strategy': 'accuacl+uniform', 'seed': 1, 'share': 0.4}
    """
    strategy = str(given.get("strategy", settings.get("strategy", "accuacl")))
    known = strategy in STRATEGIES
    names = [name for name in OPTION_SETTINGS if known and uses(strategy, name)]
    pairs = [
        {name, f"{OPTIONS}.{name}"} for name in (*names, *(["sample"] if known and takes_sample(strategy) else ()))
    ]
    replaced = given.keys() | {name for pair in pairs if pair & given.keys() for name in pair}
    return {name: value for name, value in settings.items() if name not in replaced} | dict(given)


def check_run_options(strategy: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a run's strategy, typed."""
    if strategy == "full" and options:
        raise InputError(f"full labels everything and has no option {next(iter(options))!r}; leave it out.")
    for name in SET_BY_RUNS:
        if name in options:
            raise InputError(f"{name} is set automatically; leave it out.")
    for name, value in options.items():
        if isinstance(value, list | dict):
            raise InputError(f"{name} is {value!r}, but a run has one value; `accuacl sweep` does several runs.")
    return read_options(strategy, options) if options else {}


def without_foreign_options(given: Mapping[str, Any], strategies: Iterable[str]) -> dict[str, Any]:
    """The flat settings of a run without the options that only other strategies of its sweep have.

    >>> without_foreign_options({"strategy": "uniform", "options.sample": 9, "memory": 5}, ["uniform", "coverage"])
    {'strategy': 'uniform', 'memory': 5}
    """
    strategies = [strategy for strategy in strategies if strategy in STRATEGIES]
    known = {name for strategy in strategies for name in options_of(strategy)}
    for name in (name.removeprefix(f"{OPTIONS}.") for name in given if name.startswith(f"{OPTIONS}.")):
        if len(strategies) > 1 and name not in known:
            hint = f"did you mean {meant}?" if (meant := near(name, known)) else "leave it out."
            raise InputError(f"none of the strategies {', '.join(strategies)} has the option {name!r}; {hint}")
    own = options_of(str(given["strategy"])) if given.get("strategy") in strategies else known
    foreign = {f"{OPTIONS}.{name}" for name in known if name not in own}
    return {name: value for name, value in given.items() if name not in foreign}


def _as_setting(name: str, value: Any) -> Any:
    """An option's value as its setting writes it."""
    return OPTION_SETTINGS[name][1] if value is None else value


def uses(strategy: str, name: str) -> bool:
    """Whether a setting that is an option applies to a strategy.

    >>> uses("accuacl", "lam"), uses("bait", "lam"), uses("bait", "oversample"), uses("full", "keep")
    (True, False, True, False)
    """
    return strategy != "full" and name in options_of(strategy)


def options_for(config: Mapping[str, Any], strategy: str) -> dict[str, Any]:
    """The options that a run gives to a strategy: the settings that are not at their defaults, and `options`.

    strategy: the config's, or the one that chooses the first round.
    """
    values = {}
    for name, (declared_by, unset) in OPTION_SETTINGS.items():
        if uses(strategy, name) and config[name] != unset:
            values[name] = options_of(declared_by)[name].read(config[name])
    return values | (config.get(OPTIONS, {}) if strategy == config["strategy"] else {})


def canonical_options(config: Mapping[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """The config without the options that say what the strategy does anyway, and which settings of options are unused.

    A plugin that is not loaded may use them all.
    """
    strategy, rest = str(config["strategy"]), dict(config)
    if strategy == "full":
        return rest, set(OPTION_SETTINGS)
    if strategy not in STRATEGIES:
        return rest, set()
    usual = {name: option.default for name, option in options_of(strategy).items()}
    given = options_for(config, strategy)
    unused = {name for name in OPTION_SETTINGS if name not in given or given[name] == usual[name]}
    options = {name: value for name, value in rest.pop(OPTIONS, {}).items() if value != usual.get(name)}
    return rest | ({OPTIONS: options} if options else {}), unused

"""What a config stands for: the options of its strategy, its stream of tasks, its training, and its machine.

Six options are settings of their own (`--lam 0.5`, `lam: 0.5`); all others are in the setting `options`. Type, range
and help of both are declared in the strategies' signatures, and nowhere else.

Torch is loaded only where the machine is asked.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
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


def transform_of(name: str, inputs: NDArray[Any]) -> learners.Transform:
    """Normalisation and augmentation: crop and flip at 32x32, flip only on larger images, none on vectors."""
    if inputs.ndim == 2:
        return learners.Transform(None, None)
    mean, std, crop = TRANSFORMS.get(name, (*TRANSFORMS["cifar10"][:2], 4 if inputs.shape[1] <= 32 else 0))
    return learners.Transform(mean, std, crop, flip=True)


def training_of(config: Config, device: str) -> learners.Training:
    """How to train: the settings of the same names, and those that follow from others."""
    names = {each.name for each in fields(learners.Training)} & set(type(config).model_fields) - {"device"}
    return learners.Training(
        **{name: getattr(config, name) for name in names},
        capacity=config.memory,
        device=device,
        cycled=config.replay == "cycled",
        balanced=config.sampling == "balanced",
        repeated=config.sampling == "repeated",
        policy=config.memory_policy,
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
OPTION_SETTINGS: dict[str, tuple[str, Any]] = {  # whose signature declares it; the value that leaves it to the strategy
    "variant": ("accuacl", "released"),
    "keep": ("accuacl", 0),
    "lam": ("accuacl", None),
    "oversample": ("accuacl", 2.0),
    "share": ("accuacl+uniform", None),
    "uncertainty": ("fisher-ratio", "weighed"),
}
SET_BY_RUNS = ("total_classes",)  # options that a run gives to strategies itself


def option_field(name: str) -> Any:
    """The field of a setting that is an option; `read_option_setting` checks its values."""
    return Field(OPTION_SETTINGS[name][1], description=f"{options_help(name)}.")


def read_option_setting(name: str, value: Any) -> Any:
    """A setting that is an option, checked as its strategy declares it.

    >>> read_option_setting("share", "0.5"), read_option_setting("uncertainty", "ignored")
    (0.5, 'ignored')
    """
    strategy, unset = OPTION_SETTINGS[name]
    if value is None or value == unset:
        return unset
    option = options_of(strategy)[name]
    if option.kind is int:  # such as keep, which is also given as 0
        option = replace(option, least=min(option.least, unset))
    try:
        return option.read(value)
    except InputError:
        raise ValueError(f"give {option.expected}") from None  # what was given is put before it


def uses(strategy: str, name: str) -> bool:
    """Whether a setting is an option of a strategy.

    >>> uses("accuacl", "lam"), uses("bait", "lam"), uses("bait", "oversample"), uses("full", "keep")
    (True, False, True, False)
    """
    if strategy not in STRATEGIES:
        return False
    if name == "sample":
        return takes_sample(strategy)
    return name in OPTION_SETTINGS and name in options_of(strategy)


def flat_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with each of `options` by a name of its own, as the grid of a sweep has them.

    >>> flat_options({"strategy": "coverage", "options": {"sample": [100, 1000]}})
    {'strategy': 'coverage', 'options.sample': [100, 1000]}
    """
    options = settings.get(OPTIONS) or {}
    if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
        raise InputError(f"options is {options!r}; give names and values, such as options: {{share: 0.3}}.")
    flat = {name: value for name, value in settings.items() if name != OPTIONS}
    return flat | {f"{OPTIONS}.{name.replace('-', '_')}": value for name, value in options.items()}


def overridden(settings: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Flat settings of a file with those given in their places, where `share` and `options.share` are the same.

    >>> overridden({"strategy": "accuacl+uniform", "options.share": 0.3, "seed": 1}, {"share": 0.4})
    {'strategy': 'accuacl+uniform', 'seed': 1, 'share': 0.4}
    """
    strategy = str(given.get("strategy", settings.get("strategy", "accuacl")))

    def meaning(name: str) -> str:
        option = name.removeprefix(f"{OPTIONS}.")
        return option if uses(strategy, option) else name

    replaced = set(map(meaning, given))
    return {name: value for name, value in settings.items() if meaning(name) not in replaced} | dict(given)


def with_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run with its strategy's options checked; those that are settings become these.

    Options may be given as `options: {share: 0.3}` or as `options.share: 0.3`.

    >>> with_options({"strategy": "bait", "options": {"oversample": "3", "ridge": 0.1}})
    {'strategy': 'bait', 'oversample': 3.0, 'options': {'ridge': 0.1}}
    """
    flat = flat_options(given)
    settings = {name: value for name, value in flat.items() if not name.startswith(f"{OPTIONS}.")}
    options = {name.partition(".")[2]: value for name, value in flat.items() if name not in settings}
    strategy = str(settings.get("strategy", "accuacl"))
    own = tuple(OPTION_SETTINGS) if strategy in BUILT_IN else ()  # options of plugins stay as they are given
    return with_typed_options(strategy, settings, options, ("sample", *own))


def with_typed_options(
    strategy: str, settings: Mapping[str, Any], options: Mapping[str, Any], own: Iterable[str] = ("sample",)
) -> dict[str, Any]:
    """The settings with the options of the strategy, checked. own: those that are settings of their own.

    >>> with_typed_options("coverage", {"seed": 1}, {"sample": "70"})
    {'seed': 1, 'sample': 70}
    >>> with_typed_options("kcenter", {}, {"sample": 70})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    accuacl.base.errors.InputError: kcenter has no option 'sample'; ...
    """
    options = check_run_options(strategy, options)
    settings = {name: value for name, value in settings.items() if name != OPTIONS}
    for name in (name for name in own if name in options and uses(strategy, name)):
        if name in settings:
            raise InputError(f"{name} is given by --option and by --{name}; give one of them.")
        value = options.pop(name)
        settings |= {} if value is None else {name: value}
    return settings | ({OPTIONS: options} if options else {})


def check_run_options(strategy: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a run's strategy, typed; those of a strategy that is not known are left to be refused with it."""
    if strategy == "full" and options:
        raise InputError(f"full labels everything and has no option {next(iter(options))!r}; leave it out.")
    if strategy not in STRATEGIES:
        return dict(options)
    for name, value in options.items():
        if name in SET_BY_RUNS:
            raise InputError(f"{name} is set automatically; leave it out.")
        if isinstance(value, list | dict):
            raise InputError(f"{name} is {value!r}, but a run has one value; `accuacl sweep` does several runs.")
    return read_options(strategy, options)


def without_foreign_options(given: Mapping[str, Any], strategies: Iterable[str]) -> dict[str, Any]:
    """The flat settings of a run without the options that only other strategies of its sweep have.

    >>> without_foreign_options({"strategy": "uniform", "options.sample": 9, "memory": 5}, ["uniform", "coverage"])
    {'strategy': 'uniform', 'memory': 5}
    """
    strategies = [strategy for strategy in strategies if strategy in STRATEGIES]
    known = {name for strategy in strategies for name in options_of(strategy)}
    own = options_of(str(given["strategy"])) if given.get("strategy") in strategies else known
    rest = {}
    for name, value in given.items():
        option = name.removeprefix(f"{OPTIONS}.")
        if option != name and option not in known and len(strategies) > 1:
            hint = f"did you mean {meant}?" if (meant := near(option, known)) else "leave it out."
            raise InputError(f"none of the strategies {', '.join(strategies)} has the option {option!r}; {hint}")
        if option == name or option in own or option not in known:
            rest[name] = value
    return rest


def options_for(config: Mapping[str, Any], strategy: str) -> dict[str, Any]:
    """The options that a run gives to a strategy: the settings that are not at their defaults, and `options`.

    strategy: the config's, or the one that chooses the first round.
    """
    values = {
        name: options_of(declared_by)[name].read(config[name])
        for name, (declared_by, unset) in OPTION_SETTINGS.items()
        if uses(strategy, name) and config[name] != unset
    }
    return values | (config.get(OPTIONS, {}) if strategy == config["strategy"] else {})


def canonical_options(config: Mapping[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """The config without the options that say what the strategy does anyway, and which settings of options are unused.

    A plugin that is not loaded may use them all.
    """
    strategy, rest = str(config["strategy"]), dict(config)
    if strategy not in STRATEGIES:
        return rest, set(OPTION_SETTINGS) if strategy == "full" else set()
    usual = {name: option.default for name, option in options_of(strategy).items()}
    given = options_for(config, strategy)
    unused = {name for name in OPTION_SETTINGS if name not in given or given[name] == usual[name]}
    options = {name: value for name, value in rest.pop(OPTIONS, {}).items() if value != usual.get(name)}
    return rest | ({OPTIONS: options} if options else {}), unused
